//! Periodic and arrowhead block-tridiagonal matrices: a border around block LU.

use bt_formats::{
    BlockTridiagonal, Coo, Csr, Error, HybridLayout, LinearOperator, Matrix, Monitor, Op, Partition, RealScalar,
    Scalar, zero,
};
use faer::{Mat, MatMut};

use super::{Border, Bordered, Deflation};
use crate::block_lu::BlockLu;
use crate::columns::check_size;
use crate::error::{FactorError, Result};
use crate::factorization::{FactorStats, Factorization, LogDet};
use crate::given::Given;

/// A factored matrix whose last rows and columns border a block-tridiagonal one.
///
/// ```text
/// periodic                        arrowhead
/// [ D₀ U₀        | L₀ ]           [ D₀ U₀        | × ]
/// [ L₁ D₁ U₁     |    ]           [ L₁ D₁ U₁     | × ]
/// [    L₂ D₂     | U₂ ]           [    L₂ D₂     | × ]
/// [--------------+----]           [--------------+---]
/// [ U₃       L₃  | D₃ ]           [ ×  ×  ×      | × ]
/// ```
///
/// ```
/// use bt_direct::{BorderedBlocks, Factorization};
/// use bt_formats::{Coo, Partition};
/// // Periodic: 4 on the diagonal, −1 beside it, and −1 in the corners.
/// let n = 6;
/// let mut a = Coo::new(n, n)?;
/// for i in 0..n {
///     a.push(i, i, 4.0)?;
///     a.push(i, (i + 1) % n, -1.0)?;
///     a.push(i, (i + n - 1) % n, -1.0)?;
/// }
/// let factors = BorderedBlocks::new(&a.to_csr()?, Partition::uniform(n - 1, 1)?)?;
/// let mut x = vec![2.0; n];
/// factors.solve_vec_in_place(&mut x);
/// assert!(x.iter().all(|v: &f64| (v - 1.0).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct BorderedBlocks<T: Scalar> {
    /// The part inside the border, with places for all of the last block's diagonal.
    rows: Csr<T>,
    blocks: BlockTridiagonal<T>,
    e: Mat<T>,
    f: Mat<T>,
    c: Mat<T>,
    factors: Bordered<T, BlockLu<T>>,
}

impl<T: Scalar> BorderedBlocks<T> {
    /// Factors `a`, whose leading rows and columns are block-tridiagonal over `inside` and whose other rows and columns
    /// are the border (they may be full).
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] when block LU breaks down inside the border, when what is inside stays nearly singular with
    /// its last block moved, and when the border's Schur complement has no pivot (`sparse-lu` tells whether A is singular);
    /// [`FactorError::Input`] for entries outside the structure, for NaN and infinity with their place, for a partition
    /// larger than A, and when there is not the memory.
    ///
    /// # Cost
    /// Block LU of the inside and as many solves with it as the border is wide; the border is stored twice, in full. Half
    /// as much again when the inside is singular and has to be moved.
    #[inline(never)]
    pub fn new(a: &Csr<T>, inside: Partition) -> Result<Self> {
        a.check_square()?;
        a.check_finite()?;
        let n = inside.n();
        if n > a.nrows() || inside.n_blocks() == 0 {
            return Err(Error::InvalidStructure {
                what: "partition of the inside",
                why: format!("it has {n} rows in {} blocks, the matrix has {}", inside.n_blocks(), a.nrows()),
            }
            .into());
        }
        let q = a.nrows() - n;
        let mut inner = Coo::new(n, n)?;
        a.for_each_entry(&mut |i, j, v| {
            if i < n && j < n {
                inner.push(i, j, v).expect("inside");
            }
        });
        for i in inside.range(inside.n_blocks() - 1) {
            inner.push(i, i, zero())?;
        }
        let rows = inner.to_csr()?;
        let layout = HybridLayout::default().unless_full(&rows, &inside);
        let blocks = BlockTridiagonal::from_csr(&rows, inside, layout)?;
        let (mut e, mut f, mut c) = (Mat::zeros(n, q), Mat::zeros(q, n), Mat::zeros(q, q));
        fill_border(a, n, &mut e, &mut f, &mut c);
        let border = Border { e: e.as_ref(), f: f.as_ref(), c: c.as_ref() };
        let mut moved = blocks.clone();
        let factors = match BlockLu::forwards(&blocks).map(|lu| Bordered::empty(lu, q)) {
            Ok(factors) => {
                let mut factors = factors?;
                match factors.assemble(&blocks, border, None) {
                    Ok(()) => factors,
                    Err(FactorError::Breakdown { .. }) => {
                        let how = deflate(&rows, &border, &mut moved)?;
                        factors.inner.refactor_forwards(&moved, &mut ())?;
                        factors.assemble(&blocks, border, Some(how))?;
                        factors
                    }
                    Err(e) => return Err(e),
                }
            }
            // The last block: nothing but it is known to be singular.
            Err(FactorError::Singular(_)) if q > 0 => {
                let how = deflate(&rows, &border, &mut moved)?;
                let mut factors = Bordered::empty(BlockLu::forwards(&moved).map_err(advice)?, q)?;
                factors.assemble(&blocks, border, Some(how))?;
                factors
            }
            Err(e) => return Err(advice(e)),
        };
        Ok(Self { rows, blocks: moved, e, f, c, factors })
    }

    /// Factors a matrix with the same structure and new values, without taking memory unless the inside of this matrix is
    /// singular and has to be moved.
    ///
    /// After an error the factors are unusable: solves give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`BorderedBlocks::new`], and [`FactorError::Input`] for an entry that has no place inside.
    #[inline(never)]
    pub fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        let done = self.update(a);
        if done.is_err() {
            self.factors.invalidate();
        }
        done
    }

    /// The factors: [`Bordered::deflated`] tells whether the inside had to be moved.
    pub fn factors(&self) -> &Bordered<T, BlockLu<T>> {
        &self.factors
    }

    fn update(&mut self, a: &Csr<T>) -> Result<()> {
        let n = self.rows.nrows();
        check_size("size of the matrix", n + self.c.nrows(), a.nrows())?;
        check_size("columns of the matrix", n + self.c.nrows(), a.ncols())?;
        a.check_finite()?;
        self.rows.values_mut().fill(zero());
        for i in 0..n {
            let (cols, values) = a.row(i);
            for (&j, &v) in cols.iter().zip(values).filter(|&(&j, _)| (j as usize) < n) {
                let start = self.rows.row_ptr()[i] as usize;
                match self.rows.row(i).0.binary_search(&j) {
                    Ok(at) => self.rows.values_mut()[start + at] += v,
                    Err(_) if v == zero() => {}
                    Err(_) => {
                        let why = "is not in the pattern of the matrix that was factored".into();
                        return Err(Error::OutsideStructure { row: i, col: j as usize, why }.into());
                    }
                }
            }
        }
        fill_border(a, n, &mut self.e, &mut self.f, &mut self.c);
        let border = Border { e: self.e.as_ref(), f: self.f.as_ref(), c: self.c.as_ref() };
        self.blocks.update_values(&self.rows)?;
        let plain = self.factors.inner.refactor_forwards(&self.blocks, &mut ());
        match plain {
            Ok(()) => match self.factors.assemble(&self.rows, border, None) {
                Err(FactorError::Breakdown { .. }) => {}
                done => return done,
            },
            Err(FactorError::Singular(_)) if self.c.nrows() > 0 => {}
            Err(e) => return Err(advice(e)),
        }
        let how = deflate(&self.rows, &border, &mut self.blocks)?;
        self.factors.inner.refactor_forwards(&self.blocks, &mut ()).map_err(advice)?;
        self.factors.assemble(&self.rows, border, Some(how))
    }
}

/// E, F, C from the rows of A.
pub(super) fn fill_border<T: Scalar>(a: &Csr<T>, n: usize, e: &mut Mat<T>, f: &mut Mat<T>, c: &mut Mat<T>) {
    e.fill(zero());
    f.fill(zero());
    c.fill(zero());
    a.for_each_entry(&mut |i, j, v| match (i < n, j < n) {
        (true, true) => {}
        (true, false) => e[(i, j - n)] += v,
        (false, true) => f[(i - n, j)] += v,
        (false, false) => c[(i - n, j - n)] += v,
    });
}

/// `blocks` ← T + σ·P·Pᵀ for the last block, σ = 2·max|A|.
fn deflate<T: Scalar>(rows: &Csr<T>, border: &Border<'_, T>, blocks: &mut BlockTridiagonal<T>) -> Result<Deflation> {
    let mut max = rows.norm_max().to_f64();
    for part in [border.e, border.f, border.c] {
        max = (0..part.ncols())
            .flat_map(|j| (0..part.nrows()).map(move |i| part[(i, j)].abs().to_f64()))
            .fold(max, f64::max);
    }
    // A power of two: dividing by it rounds nothing. Zero only when A is.
    let sigma = if max > 0.0 { 2f64.powi(max.log2().floor() as i32 + 1) } else { 1.0 };
    let sigma = if sigma.is_finite() { sigma } else { max };
    let last = blocks.partition().range(blocks.n_blocks() - 1);
    let mut moved = rows.clone();
    for i in last.clone() {
        let (start, cols) = (rows.row_ptr()[i] as usize, rows.row(i).0);
        let at = cols.binary_search(&(i as u32)).expect("the diagonal of the last block has places");
        moved.values_mut()[start + at] += T::rounded(sigma, 0.0);
    }
    blocks.update_values(&moved)?;
    Ok(Deflation { r: last.len(), sigma })
}

/// Block LU recommends band LU, which would not see the border.
fn advice(e: FactorError) -> FactorError {
    match e {
        // The inside comes first: its rows, columns and blocks have the numbers that they have in A.
        FactorError::Breakdown { place, reason, .. } => {
            let reason = format!("inside the border, {}; here: sparse-lu", reason.trim_end_matches(": band-lu"));
            FactorError::breakdown(super::METHOD, place, reason)
        }
        e => e,
    }
}

impl<T: Scalar> Factorization<T> for BorderedBlocks<T> {
    fn n(&self) -> usize {
        self.factors.n()
    }
    fn method(&self) -> &'static str {
        self.factors.method()
    }
    #[inline(never)]
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        self.factors.solve_op_in_place(op, x);
    }
    #[inline(never)]
    fn refactor(&mut self, a: Given<'_, T>, _: &mut dyn Monitor) -> Result<()> {
        self.refactor(&*a.csr()?)
    }
    fn stats(&self) -> FactorStats {
        self.factors.stats()
    }
    fn log_det(&self) -> LogDet<T> {
        self.factors.log_det()
    }
}
