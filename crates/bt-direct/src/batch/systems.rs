//! Batches of systems of any kind: each in factors of its own, threads over systems.

use std::sync::Mutex;

use bt_formats::{Error, Par, Scalar};

use crate::band_lu::BandLu;
use crate::block_lu::BlockLu;
use crate::error::{FactorError, Result};
use crate::factorization::Factorization;
use crate::memory::reserve;

/// Factors of many systems, of the same kind but any sizes: for systems too large for lanes, say blocks of more than eight.
///
/// A system that fails is named with its error, leaves NaN in its part of x, and harms no other.
///
/// ```
/// use bt_direct::batch::FactorBatch;
/// use bt_direct::{BandLu, Factorization};
/// use bt_formats::Band;
/// let mut systems = vec![Band::zeros(2, 0, 0)?; 3];
/// for (s, d) in [(0, 2.0), (2, 4.0)] {
///     (0..2).for_each(|i| *systems[s].get_mut(i, i) = d);
/// }
/// let batch = FactorBatch::new(&systems, BandLu::new)?;
/// assert_eq!(batch.failures().len(), 1);
/// assert_eq!(batch.failures()[0].0, 1);
/// let mut x = [2.0f64, 2.0, 1.0, 1.0, 4.0, 4.0];
/// batch.solve_in_place(&mut x)?;
/// assert!(x[..2] == [1.0, 1.0] && x[2].is_nan() && x[4..] == [1.0, 1.0]);
/// assert_eq!(batch.get(2).unwrap().log_det().log_abs, 16f64.ln());
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct FactorBatch<F> {
    factors: Vec<Option<F>>,
    offsets: Vec<usize>,
    failures: Vec<(usize, FactorError)>,
}

/// Many band systems, each in LAPACK's band LU.
pub type BandSystems<T> = FactorBatch<BandLu<T>>;
/// Many block-tridiagonal systems, each in block LU.
pub type BlockTridiagonalBatch<T> = FactorBatch<BlockLu<T>>;

impl<F: Send + Sync> FactorBatch<F> {
    /// Factors every system by `factor`, on the current rayon pool.
    ///
    /// # Errors
    /// [`FactorError::Input`] when there is not the memory for the lists. What fails in one system is no error of the batch:
    /// [`FactorBatch::failures`].
    pub fn new<T: Scalar, A: bt_formats::Matrix<T>>(
        systems: &[A],
        factor: impl Fn(&A) -> Result<F> + Sync,
    ) -> Result<Self> {
        let (mut factors, mut offsets) = (Vec::new(), Vec::new());
        reserve(&mut factors, systems.len())?;
        reserve(&mut offsets, systems.len().saturating_add(1))?;
        factors.resize_with(systems.len(), || None);
        offsets.push(0usize);
        for a in systems {
            offsets.push(offsets[offsets.len() - 1].saturating_add(a.nrows()));
        }
        let failures = Mutex::new(Vec::new());
        let note =
            |s: usize, e: FactorError| failures.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((s, e));
        let bytes = systems.iter().map(bt_formats::Matrix::bytes).sum();
        split(0, &mut factors, Par::auto(bytes), &|s, place: &mut Option<F>| match factor(&systems[s]) {
            Ok(f) => *place = Some(f),
            Err(e) => note(s, e),
        });
        let mut failures = failures.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        failures.sort_unstable_by_key(|f| f.0);
        Ok(Self { factors, offsets, failures })
    }

    /// Number of systems.
    pub fn n_systems(&self) -> usize {
        self.factors.len()
    }
    /// Rows of all systems: the length of x.
    pub fn n_rows(&self) -> usize {
        self.offsets[self.factors.len()]
    }
    /// The factors of a system; none where it failed.
    pub fn get(&self, s: usize) -> Option<&F> {
        self.factors.get(s)?.as_ref()
    }
    /// The systems that could not be factored, in order, and why.
    pub fn failures(&self) -> &[(usize, FactorError)] {
        &self.failures
    }

    /// X ← A⁻¹·X for one right-hand side of each system, one after the other.
    ///
    /// # Errors
    /// [`FactorError::Input`] when `x` has another length.
    ///
    /// # Cost
    /// That of the systems, threads over systems; allocates nothing beyond what their solves do.
    pub fn solve_in_place<T: Scalar>(&self, x: &mut [T]) -> Result<()>
    where
        F: Factorization<T>,
    {
        if x.len() != self.n_rows() {
            let (expected, found) = (self.n_rows(), x.len());
            return Err(Error::DimensionMismatch { what: "right-hand sides of the batch", expected, found }.into());
        }
        let par = Par::auto(4 * size_of_val(x));
        self.solve_range(0, self.factors.len(), x, par);
        Ok(())
    }

    fn solve_range<T: Scalar>(&self, first: usize, end: usize, x: &mut [T], par: Par)
    where
        F: Factorization<T>,
    {
        if end - first > 1 {
            let middle = first + (end - first) / 2;
            let (a, b) = x.split_at_mut(self.offsets[middle] - self.offsets[first]);
            if par == Par::Rayon {
                bt_formats::join(|| self.solve_range(first, middle, a, par), || self.solve_range(middle, end, b, par));
            } else {
                self.solve_range(first, middle, a, par);
                self.solve_range(middle, end, b, par);
            }
        } else if end > first {
            match &self.factors[first] {
                Some(f) => f.solve_vec_in_place(x),
                None => x.fill(T::nan_impl()),
            }
        }
    }
}

/// Calls `f` with every place and its number, in halves on the pool.
fn split<V: Send>(first: usize, places: &mut [V], par: Par, f: &(impl Fn(usize, &mut V) + Sync)) {
    if places.len() <= 1 {
        if let [place] = places {
            f(first, place);
        }
        return;
    }
    let middle = places.len() / 2;
    let (a, b) = places.split_at_mut(middle);
    if par == Par::Rayon {
        bt_formats::join(|| split(first, a, par, f), || split(first + middle, b, par, f));
    } else {
        split(first, a, par, f);
        split(first + middle, b, par, f);
    }
}
