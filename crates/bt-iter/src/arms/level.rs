//! One level: B, E and F of a matrix in the order of its groups, and the Schur complement that the next level factors.
//!
//! ```text
//! P·A·Pᵀ = [ B F ]    B ≈ L·U    S = C − (E·U⁻¹)·(L⁻¹·F)
//!          [ E C ]
//! ```
//!
//! The rows of L⁻¹F, of EU⁻¹ and of S are made one by one with dropping, in parallel; of the three only S is kept. A
//! multiplier of a row of EU⁻¹ is judged before the division by its pivot, so that it is of the size of A.

use bt_direct::{FactorError, Result};
use bt_formats::{Csr, LinearOperator, Matrix, Par, Partition, Permutation, RealScalar, Scalar, norm2, one, zero};
use rayon::prelude::*;

use super::groups::independent_groups;
use super::interior::Interior;
use super::last::Last;
use super::sparse_row::{SparseRow, in_chunks};
use super::{ArmsOptions, LevelFacts};
use crate::block_diagonal::for_blocks;
use crate::ilut::keep_largest;
use crate::triangular::Rows;

/// A level that takes fewer of its rows than one in this many is not worth having.
const WORTHWHILE: usize = 10;
/// Elements from which on threads share a copy.
const PARALLEL: usize = 1 << 15;

pub(super) struct Level<T> {
    /// Interior rows first, group after group.
    order: Permutation,
    groups: Partition,
    /// By interior row; columns count from the first row of the group.
    lower: Rows<T>,
    upper: Rows<T>,
    reciprocals: Vec<T>,
    e: Csr<T>,
    f: Csr<T>,
    work: Vec<T>,
    pub facts: LevelFacts,
}

/// `out[i] ← value(i)`
pub(super) fn fill<T: Scalar>(out: &mut [T], value: impl Fn(usize) -> T + Sync) {
    if out.len() >= PARALLEL && rayon::current_num_threads() > 1 {
        const CHUNK: usize = PARALLEL / 8;
        out.par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(c, out)| (c * CHUNK..).zip(out).for_each(|(i, out)| *out = value(i)));
    } else {
        (0..).zip(out).for_each(|(i, out)| *out = value(i));
    }
}

impl<T: Scalar> Level<T> {
    /// A level of `a` and the S below it; none where too few rows can be taken.
    ///
    /// # Errors
    /// [`FactorError::Input`] where a part exceeds 32-bit pointers, [`FactorError::Breakdown`] where S overflows.
    pub fn new(a: &Csr<T>, options: &ArmsOptions) -> Result<Option<(Self, Csr<T>)>> {
        let n = a.nrows();
        let Interior { members, sizes, lower, upper, reciprocals, rejected } =
            Interior::new(a, &independent_groups(a, options.group_size), options)?;
        let interior = members.len();
        if interior == 0 || interior * WORTHWHILE < n {
            return Ok(None);
        }
        let groups = Partition::from_sizes(sizes)?;
        let mut taken = vec![false; n];
        for &v in &members {
            taken[v as usize] = true;
        }
        let mut order = members;
        order.extend((0..n as u32).filter(|&v| !taken[v as usize]));
        let order = Permutation::from_order(order)?;
        let (e, f) = couplings(a, &order, interior)?;
        let work = vec![zero(); n];
        let facts = LevelFacts { n, interior, groups: groups.n_blocks(), rejected, nnz: 0 };
        let mut level = Self { order, groups, lower, upper, reciprocals, e, f, work, facts };
        level.facts.nnz = level.nnz();
        let s = level.schur(a, options)?;
        Ok(Some((level, s)))
    }

    /// S with dropping.
    fn schur(&self, a: &Csr<T>, options: &ArmsOptions) -> Result<Csr<T>> {
        let (interior, n) = (self.facts.interior, self.facts.n - self.facts.interior);
        let norm = |p: usize| norm2(a.row(self.order.order()[p] as usize).1);
        let join = |parts: Vec<Rows<T>>| {
            let mut rows = Rows::none();
            parts.into_iter().try_for_each(|part| rows.append(part)).map(|()| rows)
        };
        let coupling = options.coupling;
        // W = L⁻¹·F
        let parts = in_chunks(
            self.groups.n_blocks(),
            || SparseRow::new(n),
            |row, blocks| {
                let mut out = Rows::none();
                for range in blocks.map(|j| self.groups.range(j)) {
                    let first = out.ptr.len() - 1;
                    for p in range {
                        // wₚ ← fₚ − Σ lₚₖ·wₖ
                        let (cols, vals) = self.f.row(p);
                        cols.iter().zip(vals).for_each(|(&j, &v)| row.add(j, v));
                        for (k, l) in self.lower.row(p) {
                            out.row(first + k as usize).for_each(|(j, w)| row.add(j, -l * w));
                        }
                        row.store(coupling.drop_tolerance * norm(p), coupling.fill, None, &mut out);
                    }
                }
                out
            },
        );
        let w = join(parts)?;
        let workspace = || (SparseRow::new(n), vec![zero::<T>(); interior], Vec::new());
        let parts = in_chunks(n, workspace, |(row, g, kept), rows| {
            let mut out = Rows::none();
            for i in rows {
                let norm = norm(interior + i);
                self.multipliers(i, coupling.drop_tolerance * norm, g, kept);
                keep_largest(kept, coupling.fill, g);
                // sᵢ ← cᵢ − gᵢ·W
                let (cols, vals) = a.row(self.order.order()[interior + i] as usize);
                for (&j, &v) in cols.iter().zip(vals) {
                    let p = self.order.position()[j as usize] as usize;
                    if p >= interior {
                        row.add((p - interior) as u32, v);
                    }
                }
                for k in kept.drain(..) {
                    w.row(k as usize).for_each(|(j, w)| row.add(j, -g[k as usize] * w));
                }
                let schur = options.schur;
                row.store(schur.drop_tolerance * norm, schur.fill, Some(i as u32), &mut out);
            }
            out
        });
        let Rows { ptr, idx, val } = join(parts)?;
        let s = Csr::new(n, n, ptr, idx, val)?;
        s.check_finite().map_err(|_| {
            let reason =
                format!("elements of the Schur complement of {n} rows overflow; raise the threshold of pivots");
            FactorError::breakdown("arms", None, reason)
        })?;
        Ok(s)
    }

    /// Row i of G = E·U⁻¹ in `g`, where `kept` says; the rest of `g` is not to be read.
    fn multipliers(&self, i: usize, threshold: f64, g: &mut [T], kept: &mut Vec<u32>) {
        let (cols, vals) = self.e.row(i);
        let mut next = 0;
        while let Some(&first) = cols.get(next) {
            let range = self.groups.range(self.groups.block_of(first as usize));
            g[range.clone()].fill(zero());
            while cols.get(next).is_some_and(|&k| (k as usize) < range.end) {
                g[cols[next] as usize] = vals[next];
                next += 1;
            }
            for k in first as usize..range.end {
                if g[k] == zero() || g[k].abs().to_f64() < threshold {
                    continue;
                }
                // gₖ ← gₖ/uₖₖ;  g ← g − gₖ·uₖ
                g[k] *= self.reciprocals[k];
                kept.push(k as u32);
                for (j, u) in self.upper.row(k) {
                    let change: T = g[k] * u;
                    g[range.start + j as usize] -= change;
                }
            }
        }
    }

    /// x ← B⁻¹·(x − F·y) by groups; without y, x ← B⁻¹·x.
    fn solve(&self, x: &mut [T], y: Option<&[T]>) {
        let par = if x.len() >= PARALLEL / 8 && rayon::current_num_threads() > 1 { Par::Rayon } else { Par::Seq };
        for_blocks(&self.groups, x, par, &|j, x| {
            let start = self.groups.range(j).start;
            if let Some(y) = y {
                for (i, x) in (start..).zip(x.iter_mut()) {
                    let (cols, vals) = self.f.row(i);
                    *x -= cols.iter().zip(vals).map(|(&j, &f)| f * y[j as usize]).sum::<T>();
                }
            }
            for i in 0..x.len() {
                let sum: T = self.lower.row(start + i).map(|(k, l)| l * x[k as usize]).sum();
                x[i] -= sum;
            }
            for i in (0..x.len()).rev() {
                let sum: T = self.upper.row(start + i).map(|(k, u)| u * x[k as usize]).sum();
                x[i] = (x[i] - sum) * self.reciprocals[start + i];
            }
        });
    }

    fn nnz(&self) -> usize {
        self.lower.val.len() + self.upper.val.len() + self.reciprocals.len() + self.e.nnz() + self.f.nnz()
    }

    pub fn bytes(&self) -> usize {
        2 * size_of_val(self.order.order())
            + size_of_val(self.groups.offsets())
            + self.lower.bytes()
            + self.upper.bytes()
            + size_of_val(&*self.reciprocals)
            + self.e.bytes()
            + self.f.bytes()
            + size_of_val(&*self.work)
    }
}

/// E and F.
fn couplings<T: Scalar>(a: &Csr<T>, order: &Permutation, interior: usize) -> Result<(Csr<T>, Csr<T>)> {
    let rest = a.nrows() - interior;
    let (mut e, mut f) = (Rows::none(), Rows::none());
    let mut line = Vec::new();
    for (p, &i) in order.order().iter().enumerate() {
        let (cols, vals) = a.row(i as usize);
        let rows = if p < interior { &mut f } else { &mut e };
        line.clear();
        let columns = cols.iter().map(|&j| order.position()[j as usize]).zip(vals.iter().copied());
        if p < interior {
            line.extend(columns.filter(|c| c.0 as usize >= interior).map(|(j, v)| (j - interior as u32, v)));
        } else {
            line.extend(columns.filter(|c| (c.0 as usize) < interior));
        }
        line.sort_unstable_by_key(|c| c.0);
        rows.idx.extend(line.iter().map(|c| c.0));
        rows.val.extend(line.iter().map(|c| c.1));
        rows.ptr.push(rows.idx.len() as u32);
    }
    Ok((Csr::new(rest, interior, e.ptr, e.idx, e.val)?, Csr::new(interior, rest, f.ptr, f.idx, f.val)?))
}

/// v ← M⁻¹·v through the levels given and the last one.
pub(super) fn sweep<T: Scalar>(levels: &mut [Level<T>], last: &mut Last<T>, v: &mut [T]) {
    let Some((level, below)) = levels.split_first_mut() else { return last.solve(v) };
    let mut x = std::mem::take(&mut level.work);
    let interior = level.facts.interior;
    let order = level.order.order();
    fill(&mut x, |p| v[order[p] as usize]);
    let (f, g) = x.split_at_mut(interior);
    // g ← g − E·B⁻¹·f
    let t = &mut v[..interior];
    t.copy_from_slice(f);
    level.solve(t, None);
    level.e.apply(-one::<T>(), t, one(), g);
    // g ← S⁻¹·g on the levels below
    sweep(below, last, g);
    // f ← B⁻¹·(f − F·g)
    level.solve(f, Some(g));
    let position = level.order.position();
    fill(v, |i| x[position[i] as usize]);
    level.work = x;
}
