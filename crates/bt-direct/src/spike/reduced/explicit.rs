//! Explicit: S̃ as a block-tridiagonal matrix with a block [b_i; t_i] a cut, factored by block LU.
//!
//! ```text
//!            b_{i−1}    b_i  t_i     t_{i+1}
//! row b_i  [ W_i^(b) |  I  V_i^(b)  |                 ]
//! row t_i  [         | W_{i+1}^(t) I | V_{i+1}^(t)     ]
//! ```

use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Matrix, Op, Partition, Scalar, one};
use faer::MatMut;

use super::super::factor::{GROUP, Part, for_groups, piece};
use super::super::partition::{Interface, Layout};
use super::super::scratch::Scratch;
use super::{check_pivots, named};
use crate::block_lu::BlockLu;
use crate::error::{FactorError, Place, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::memory::{reserve, zeros};

pub(in super::super) struct Explicit<T: Scalar> {
    /// S̃ by rows, the pattern of all values that may differ from zero, and the same as blocks.
    rows: Csr<T>,
    blocks: BlockTridiagonal<T>,
    /// None before the first factorization.
    lu: Option<BlockLu<T>>,
    scratch: Scratch<T>,
}

impl<T: Scalar> Explicit<T> {
    #[inline(never)]
    pub(super) fn empty(layout: &Layout) -> Result<Self> {
        let order = layout.reduced_order();
        let (mut ptr, mut cols) = (Vec::new(), Vec::new());
        reserve(&mut ptr, order + 1)?;
        ptr.push(0);
        let mut base = 0;
        for (i, cut) in layout.interfaces.iter().enumerate() {
            let last = i.checked_sub(1).map_or(0..0, |l| {
                let before = layout.interfaces[l];
                base - before.order()..base - before.nt
            });
            let next = layout.interfaces.get(i + 1).map_or(0..0, |next| {
                let start = base + cut.order() + next.nb;
                start..start + next.nt
            });
            let (b, t) = (base..base + cut.nb, base + cut.nb..base + cut.order());
            for row in b.clone() {
                cols.extend(last.clone().chain(row..=row).chain(t.clone()).map(|c| c as u32));
                ptr.push(cols.len() as u32);
            }
            for row in t {
                cols.extend(b.clone().chain(row..=row).chain(next.clone()).map(|c| c as u32));
                ptr.push(cols.len() as u32);
            }
            base += cut.order();
        }
        let values = zeros(cols.len())?;
        let rows = Csr::new(order, order, ptr, cols, values)?;
        let partition = Partition::from_sizes(layout.interfaces.iter().map(Interface::order))?;
        let blocks = BlockTridiagonal::from_csr(&rows, partition, HybridLayout::DENSE)?;
        Ok(Self { rows, blocks, lu: None, scratch: Scratch::new(order.saturating_mul(GROUP))? })
    }

    pub(super) fn factor(&mut self, layout: &Layout, parts: &[Part<T>]) -> Result<f64> {
        let mut values = self.rows.values_mut().iter_mut();
        let mut put = |v: T| *values.next().expect("a place for every value") = v;
        for (i, cut) in layout.interfaces.iter().enumerate() {
            let (before, after) = (&parts[i].tips, &parts[i + 1].tips);
            for r in 0..cut.nb {
                if i > 0 {
                    (0..before.wb.ncols()).for_each(|c| put(before.wb[(r, c)]));
                }
                put(one());
                (0..cut.nt).for_each(|c| put(before.vb[(r, c)]));
            }
            for r in 0..cut.nt {
                (0..cut.nb).for_each(|c| put(after.wt[(r, c)]));
                put(one());
                if i + 1 < layout.interfaces.len() {
                    (0..after.vt.ncols()).for_each(|c| put(after.vt[(r, c)]));
                }
            }
        }
        self.blocks.update_values(&self.rows)?;
        let done = match &mut self.lu {
            Some(lu) => lu.refactor(&self.blocks),
            None => BlockLu::new(&self.blocks).map(|lu| self.lu = Some(lu)),
        };
        done.map_err(|e| in_reduced(e, layout))?;
        let only = (layout.interfaces.len() == 1).then_some(0);
        check_pivots::<T>(self.lu().stats(), layout.n(), only)?;
        Ok(self.lu().stats().growth)
    }

    fn lu(&self) -> &BlockLu<T> {
        self.lu.as_ref().expect("factored on construction")
    }

    pub(super) fn solve(&self, op: Op, layout: &Layout, mut x: MatMut<'_, T>) {
        let order = layout.reduced_order();
        for_groups(x.ncols(), |columns| {
            self.scratch.with(|buffer| {
                let mut z = piece(buffer, order, columns.len());
                let mut x = x.as_mut().subcols_mut(columns.start, columns.len());
                let mut base = 0;
                for cut in &layout.interfaces {
                    let rows = cut.rows();
                    z.as_mut().subrows_mut(base, rows.len()).copy_from(x.as_ref().subrows(rows.start, rows.len()));
                    base += rows.len();
                }
                self.lu().solve_op_in_place(op, z.as_mut());
                base = 0;
                for cut in &layout.interfaces {
                    let rows = cut.rows();
                    x.as_mut().subrows_mut(rows.start, rows.len()).copy_from(z.as_ref().subrows(base, rows.len()));
                    base += rows.len();
                }
            });
        });
    }

    pub(super) fn log_det(&self) -> LogDet<T> {
        self.lu().log_det()
    }

    pub(super) fn stats(&self) -> FactorStats {
        let stats = self.lu().stats();
        let copies = Matrix::bytes(&self.rows) + Matrix::bytes(&self.blocks) + self.scratch.bytes();
        FactorStats { bytes: stats.bytes + copies, ..stats }
    }
}

/// In terms of SPIKE.
fn in_reduced(error: FactorError, layout: &Layout) -> FactorError {
    let row = |i: usize| layout.interfaces.iter().flat_map(Interface::rows).nth(i);
    match error {
        FactorError::Breakdown { place, reason, .. } => {
            let place = place.and_then(|place| match place {
                // That of a cut, which is behind the partition of its number.
                Place::Block(cut) => Some(Place::Partition(cut)),
                place => place.renumbered(row, row),
            });
            let reason = format!("its reduced system, factored by block-lu: {reason}");
            FactorError::breakdown(super::METHOD, place, reason)
        }
        // One block, one cut.
        other => named(other, 0, &layout.interfaces[0]),
    }
}
