//! One sweep of a block iteration from a zero start, as a preconditioner: block Jacobi, Gauss–Seidel, symmetric forms.
//!
//! With A = L + D + U over a block partition, L and U the couplings below and above:
//!
//! ```text
//! block-jacobi     M = D                               z ← D⁻¹r                      blocks in parallel
//! block-gs         M = D + L                           zⱼ ← Dⱼ⁻¹(rⱼ − Lⱼzⱼ₋₁)        blocks in order
//! block-sgs        M = (D + L)·D⁻¹·(D + U)             then zⱼ ← zⱼ − Dⱼ⁻¹Uⱼzⱼ₊₁     blocks in order, and back
//! block-redblack   the same with the even blocks first: even, odd, even again          blocks of a colour in parallel
//! ```
//!
//! The last two are Hermitian positive definite where A is, so that conjugate gradients take them; block-gs is for
//! general methods. Couplings join blocks of different colours only, so a colour has no order.
//!
//! Source of the splitting: Yang, Li & Li, J. Supercomput. 73 (2017) 1760–1781, doi:10.1007/s11227-016-1881-x; as a
//! preconditioner: Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., §10.2, §12.2, doi:10.1137/1.9780898718003.
//!
//! Storage: the factors of D; the couplings (A in hybrid storage) but for block-jacobi; one block of work, the rows of a
//! colour for block-redblack. Cost: one solve with D (two for block-sgs, three halves for block-redblack) and the couplings once
//! (block-sgs: L and U once each).

use std::sync::Arc;

use bt_direct::Result;
use bt_formats::{BlockTridiagonal, Error, Matrix, Par, Partition, Scalar, zero};

use crate::block_set::{BlockSet, SweepFactors};
use crate::preconditioner::{Preconditioner, PreconditionerKind, check_lengths};

/// Which sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockForm {
    /// M = D.
    Jacobi,
    /// M = D + L.
    GaussSeidel,
    /// M = (D + L)·D⁻¹·(D + U).
    Symmetric,
    /// The same in the order even blocks, odd blocks.
    RedBlack,
}

/// A sweep over the blocks of a block-tridiagonal matrix.
///
/// ```
/// use bt_formats::{BlockTridiagonal, Csr, HybridLayout, Partition};
/// use bt_iter::{BlockForm, BlockPreconditioner, Preconditioner};
/// let a = Csr::from_dense(faer::mat![[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 5.0, 4.0]].as_ref())?;
/// let blocks = BlockTridiagonal::from_csr(&a, Partition::from_sizes([2, 1])?, HybridLayout::default())?;
/// // U = 0 here, so that D + L is A itself.
/// let mut z = [0.0; 3];
/// BlockPreconditioner::new(blocks, BlockForm::GaussSeidel)?.apply(&[3.0, 3.0, 9.0], &mut z);
/// assert!(z.iter().all(|z| (z - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct BlockPreconditioner<T: Scalar> {
    form: BlockForm,
    partition: Partition,
    factors: SweepFactors<T>,
    /// The couplings, where the form reads them.
    a: Option<Arc<BlockTridiagonal<T>>>,
    work: Vec<T>,
    /// The last factorization failed: applications give NaN.
    failed: bool,
}

impl<T: Scalar> BlockPreconditioner<T> {
    /// Factors the diagonal blocks; tridiagonal ones with interchanges where a pivot vanishes. The couplings are those of `a`, which may be
    /// shared with whoever multiplies by it.
    ///
    /// # Errors
    /// [`bt_direct::FactorError::Singular`] naming a diagonal block that is singular.
    ///
    /// # Cost
    /// Σ kⱼ for tridiagonal blocks, Σ kⱼ³ for dense ones.
    pub fn new(a: impl Into<Arc<BlockTridiagonal<T>>>, form: BlockForm) -> Result<Self> {
        let a = a.into();
        let factors = match form {
            BlockForm::Jacobi => SweepFactors::all(&a),
            BlockForm::GaussSeidel | BlockForm::Symmetric => SweepFactors::each(&a),
            BlockForm::RedBlack => SweepFactors::colours(&a),
        }?;
        let partition = a.partition().clone();
        let work = factors.work(&partition);
        let a = (form != BlockForm::Jacobi).then_some(a);
        Ok(Self { form, partition, factors, a, work: vec![zero(); work], failed: false })
    }

    /// M of another matrix with the same blocks, in the memory of the factors: to the bits of a new one. One block at a time is
    /// copied, for block-jacobi and block-redblack all tridiagonal ones. After an error applications give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`BlockPreconditioner::new`]; [`bt_direct::FactorError::Input`] for other blocks.
    pub fn refactor(&mut self, a: impl Into<Arc<BlockTridiagonal<T>>>) -> Result<()> {
        let a = a.into();
        self.failed = true;
        if *a.partition() != self.partition {
            let why = "it has not the blocks of the matrix that was factored".into();
            return Err(Error::InvalidStructure { what: "matrix for refactorisation", why }.into());
        }
        self.factors.refactor(&a)?;
        if self.form != BlockForm::Jacobi {
            self.a = Some(a);
        }
        self.failed = false;
        Ok(())
    }

    /// Tridiagonal blocks that needed row interchanges because a pivot vanished.
    pub fn pivoted_blocks(&self) -> usize {
        self.factors.pivoted_blocks()
    }

    fn parallel(&self) -> Par {
        Par::auto(self.factors.bytes())
    }
}

impl<T: Scalar> Preconditioner<T> for BlockPreconditioner<T> {
    fn n(&self) -> usize {
        self.partition.n()
    }
    fn name(&self) -> &'static str {
        match self.form {
            BlockForm::Jacobi => "block-jacobi",
            BlockForm::GaussSeidel => "block-gs",
            BlockForm::Symmetric => "block-sgs",
            BlockForm::RedBlack => "block-redblack",
        }
    }
    fn kind(&self) -> PreconditionerKind {
        PreconditionerKind::General
    }
    #[inline(never)]
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        check_lengths(self.partition.n(), r, z);
        if self.failed {
            z.fill(T::nan_impl());
            return;
        }
        let par = self.parallel();
        let Self { partition, factors, a, work, form, .. } = self;
        match (factors, a) {
            (SweepFactors::All(all), _) => all.solve_into(partition, r, z, par),
            (SweepFactors::Colours(colours), Some(a)) => red_black(a, colours, r, z, work, par),
            (SweepFactors::Each(factors), Some(a)) => {
                let blocks = partition.n_blocks();
                for j in 0..blocks {
                    // zⱼ ← Dⱼ⁻¹(rⱼ − Lⱼ·zⱼ₋₁)
                    let y = &mut work[..partition.size(j)];
                    y.copy_from_slice(&r[partition.range(j)]);
                    a.subtract_lower(j, z, y);
                    factors.solve_block(j, y);
                    z[partition.range(j)].copy_from_slice(y);
                }
                if *form == BlockForm::Symmetric {
                    for j in (0..blocks.saturating_sub(1)).rev() {
                        // zⱼ ← zⱼ + Dⱼ⁻¹(−Uⱼ·zⱼ₊₁)
                        let y = &mut work[..partition.size(j)];
                        y.fill(zero());
                        a.subtract_upper(j, z, y);
                        factors.solve_block(j, y);
                        for (z, y) in z[partition.range(j)].iter_mut().zip(&*y) {
                            *z += *y;
                        }
                    }
                }
            }
            _ => unreachable!("only block-jacobi has no couplings"),
        }
    }
    fn nnz(&self) -> usize {
        self.factors.nnz() + self.a.as_ref().map_or(0, |a| a.nnz_couplings())
    }
    #[inline(never)]
    fn bytes(&self) -> usize {
        self.factors.bytes() + self.a.as_ref().map_or(0, |a| a.bytes()) + size_of_val(&*self.work)
    }
}

/// Even blocks, odd blocks, even blocks again; a colour reads only the other.
fn red_black<T: Scalar>(
    a: &BlockTridiagonal<T>,
    [even, odd]: &[BlockSet<T>; 2],
    r: &[T],
    z: &mut [T],
    work: &mut [T],
    par: Par,
) {
    // zₑ ← Dₑ⁻¹·rₑ, zₒ ← Dₒ⁻¹(rₒ − (L + U)·zₑ), zₑ ← Dₑ⁻¹(rₑ − (L + U)·zₒ)
    let y = &mut work[..even.partition().n()];
    even.gather(a.partition(), r, y);
    even.solve_into(a.partition(), y, z, par);
    for set in [odd, even] {
        let y = &mut work[..set.partition().n()];
        set.couple(a, r, z, y, par);
        set.solve_into(a.partition(), y, z, par);
    }
}
