//! Storage of many tridiagonal systems, and their solution in one go.
//!
//! | file | case |
//! |---|---|
//! | `once.rs` | a group of them in lanes, solved in one go |
//! | `factors.rs` | factors that are kept, in lanes |
//! | `careful.rs` | one system alone, where its lane is in doubt |

mod careful;
mod factors;
mod once;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bt_formats::{Error, Par, Scalar, Tridiagonal, zero};

use super::lanes::LANES;
use super::shape::{Layout, Part, Scratch, Sizes, Source, check_len, pieces};
use super::{Failure, Pivoting, SystemStatus, Verdict};
use crate::error::Result;
use crate::memory::reserve;

use careful::System;
pub use factors::{BatchLu, Places};
use once::{Solution, kept};

/// Many tridiagonal matrices: the three arrays of [`Tridiagonal`] for all of them in one [`Layout`].
///
/// Row i of a system reads `lower[i]·x[i-1] + diag[i]·x[i] + upper[i]·x[i+1]`; `lower` of its first and `upper` of its last
/// row are zero. 3 values a row.
///
/// ```
/// use bt_direct::batch::{Layout, Pivoting, TridiagonalBatch};
/// // [2 1; 1 2] and [0 1; 4 0], one after the other
/// let a = TridiagonalBatch::new(
///     Layout::Strided, 2,
///     vec![0.0, 1.0, 0.0, 4.0], vec![2.0, 2.0, 0.0, 0.0], vec![1.0, 0.0, 1.0, 0.0],
/// )?;
/// let mut x = [3.0, 3.0, 5.0, 8.0];
/// assert!(a.solve_in_place(&mut x, Pivoting::Partial)?.all_solved());
/// assert_eq!(x, [1.0, 1.0, 2.0, 5.0]);
///
/// // Without pivoting the second one has a zero pivot. The first is solved all the same.
/// let mut x = [3.0f64, 3.0, 5.0, 8.0];
/// let verdict = a.solve_in_place(&mut x, Pivoting::None)?;
/// assert_eq!(verdict.failures().len(), 1);
/// assert_eq!(verdict.failures()[0].system, 1);
/// assert!(x[..2] == [1.0, 1.0] && x[2].is_nan() && x[3].is_nan());
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TridiagonalBatch<T> {
    layout: Layout,
    shape: Sizes,
    lower: Vec<T>,
    diag: Vec<T>,
    upper: Vec<T>,
}

impl<T: Scalar> TridiagonalBatch<T> {
    /// Systems of `n` rows each; as many as the arrays hold.
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] when the arrays differ in length, are no multiple of n, or a padding value is not
    /// zero.
    pub fn new(layout: Layout, n: usize, lower: Vec<T>, diag: Vec<T>, upper: Vec<T>) -> Result<Self> {
        let m = diag.len().checked_div(n).unwrap_or(0);
        Self::from_shape(layout, Sizes::Equal { m, n }, lower, diag, upper)
    }

    /// Systems of different sizes, one after the other.
    ///
    /// ```
    /// use bt_direct::batch::{Pivoting, TridiagonalBatch};
    /// // [4] and [2 1; 1 2]
    /// let a = TridiagonalBatch::with_sizes(&[1, 2], vec![0.0, 0.0, 1.0], vec![4.0, 2.0, 2.0], vec![0.0, 1.0, 0.0])?;
    /// let mut x = [8.0, 3.0, 3.0];
    /// assert!(a.solve_in_place(&mut x, Pivoting::None)?.all_solved());
    /// assert_eq!(x, [2.0, 1.0, 1.0]);
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    ///
    /// # Errors
    /// As [`TridiagonalBatch::new`], when the sizes do not add up to the arrays, and when there is not the memory.
    pub fn with_sizes(sizes: &[usize], lower: Vec<T>, diag: Vec<T>, upper: Vec<T>) -> Result<Self> {
        let mut offsets = Vec::new();
        reserve(&mut offsets, sizes.len().saturating_add(1))?;
        offsets.push(0usize);
        for &n in sizes {
            offsets.push(offsets[offsets.len() - 1].saturating_add(n));
        }
        Self::from_shape(Layout::Strided, Sizes::Offsets(offsets), lower, diag, upper)
    }

    /// The given matrices, one after the other.
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] when there is not the memory.
    #[inline(never)]
    pub fn from_systems(systems: &[Tridiagonal<T>]) -> Result<Self> {
        let (mut sizes, mut arrays) = (Vec::new(), [const { Vec::new() }; 3]);
        reserve(&mut sizes, systems.len())?;
        sizes.extend(systems.iter().map(|a| a.diag().len()));
        let rows = sizes.iter().fold(0usize, |sum, &n| sum.saturating_add(n));
        for array in &mut arrays {
            reserve(array, rows)?;
        }
        let [lower, diag, upper] = &mut arrays;
        for a in systems {
            lower.extend_from_slice(a.lower());
            diag.extend_from_slice(a.diag());
            upper.extend_from_slice(a.upper());
        }
        let [lower, diag, upper] = arrays;
        Self::with_sizes(&sizes, lower, diag, upper)
    }

    fn from_shape(layout: Layout, shape: Sizes, lower: Vec<T>, diag: Vec<T>, upper: Vec<T>) -> Result<Self> {
        for (what, values) in
            [("diagonals of the batch", &diag), ("lower diagonals", &lower), ("upper diagonals", &upper)]
        {
            check_len(what, &shape, values.len())?;
        }
        let out = Self { layout, shape, lower, diag, upper };
        out.check_padding()?;
        Ok(out)
    }

    fn check_padding(&self) -> Result<()> {
        let [lower, _, upper] = self.sources();
        for s in 0..self.n_systems() {
            let n = self.shape.size(s);
            if n > 0 && (lower.get(&self.shape, s, 0) != zero() || upper.get(&self.shape, s, n - 1) != zero()) {
                return Err(Error::InvalidStructure {
                    what: "padding of a tridiagonal batch",
                    why: format!(
                        "of system {s}, lower[0] and upper[{}] lie outside the matrix and must be zero",
                        n - 1
                    ),
                }
                .into());
            }
        }
        Ok(())
    }

    /// Number of systems m.
    pub fn n_systems(&self) -> usize {
        self.shape.n_systems()
    }
    /// Rows of system s.
    ///
    /// # Panics
    /// When there is no such system.
    pub fn size(&self, s: usize) -> usize {
        self.shape.size(s)
    }
    /// Rows of all systems: the length of x.
    pub fn n_rows(&self) -> usize {
        self.shape.len()
    }
    /// Rows that factors have in lanes: those of whole groups of sixteen systems, all as long as the longest of its group, up to a
    /// multiple of eight.
    pub fn padded_rows(&self) -> usize {
        self.groups().map(|g| LANES * self.shape.padded(&self.shape.group(g))).sum()
    }
    /// How the arrays lie.
    pub fn layout(&self) -> Layout {
        self.layout
    }
    /// The three arrays (lower, diagonal, upper).
    pub fn parts(&self) -> (&[T], &[T], &[T]) {
        (&self.lower, &self.diag, &self.upper)
    }

    /// Writes the three arrays (lower, diagonal, upper) anew.
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] when a padding value is not zero afterwards.
    pub fn update(&mut self, write: impl FnOnce(&mut [T], &mut [T], &mut [T])) -> Result<()> {
        write(&mut self.lower, &mut self.diag, &mut self.upper);
        self.check_padding()
    }

    /// A copy of system s.
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] when the padding was overwritten.
    ///
    /// # Panics
    /// When there is no such system.
    pub fn system(&self, s: usize) -> Result<Tridiagonal<T>> {
        let [lower, diag, upper] = self
            .sources()
            .map(|source| (0..self.shape.size(s)).map(|i| source.get(&self.shape, s, i)).collect::<Vec<T>>());
        Ok(Tridiagonal::new(lower, diag, upper)?)
    }

    fn sources(&self) -> [Source<'_, T>; 3] {
        [&self.lower, &self.diag, &self.upper].map(|values| Source::new(&self.shape, self.layout, values))
    }

    /// X ← A⁻¹·X for one right-hand side of each system, in the layout of the matrices; on the current rayon pool where
    /// that pays.
    ///
    /// Systems that fail have NaN in their part of `x` and their reason in the verdict.
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] when `x` has another length or there is not the memory.
    ///
    /// # Cost
    /// A row: 8 flops and a division (Thomas), 10 and a division (pivoted); the three diagonals and x read once, x written
    /// once. Scratch: at most 4·16 values a row of the longest system and thread.
    pub fn solve_in_place(&self, x: &mut [T], pivoting: Pivoting) -> Result<Verdict> {
        let bytes = 4 * size_of_val(x);
        self.solve_with(x, pivoting, Par::auto(bytes))
    }

    /// As [`TridiagonalBatch::solve_in_place`] with the given parallelism. The bits are the same.
    ///
    /// # Errors
    /// As [`TridiagonalBatch::solve_in_place`].
    #[inline(never)]
    pub fn solve_with(&self, x: &mut [T], pivoting: Pivoting, par: Par) -> Result<Verdict> {
        check_len("right-hand sides of the batch", &self.shape, x.len())?;
        let shape = &self.shape;
        let rows = shape.most_rows();
        let pool = Scratch::pool(par, kept(pivoting, rows), rows.saturating_mul(7))?;
        let failures = Mutex::new(Vec::new());
        let part = Part::new(shape, self.layout, x);
        pieces(
            shape,
            0..shape.n_groups(),
            par,
            part,
            &|part, g| part.split(shape, shape.group(g).start),
            &|groups, mut x| {
                Scratch::with(&pool, |scratch| {
                    for g in groups {
                        for failure in self.solve_group(g, pivoting, scratch, &mut x) {
                            failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
                        }
                    }
                });
            },
        );
        Ok(Verdict::new(failures.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }

    /// One group, and the lanes in doubt each alone.
    fn solve_group(&self, g: usize, pivoting: Pivoting, scratch: &mut Scratch<T>, x: &mut Part<'_, T>) -> Vec<Failure> {
        let (kept, values) = scratch.parts();
        let shape = &self.shape;
        let [lower, diag, upper] = self.sources();
        let group = shape.group(g);
        let lanes = Solution { shape, group: group.clone(), pivoting, lower, diag, upper, x: &mut *x, kept };
        let doubtful = bt_simd::dispatch(lanes);
        let mut failures = Vec::new();
        for (s, _) in group.clone().zip(doubtful).filter(|(_, doubt)| *doubt) {
            let status = self.solve_alone(s, pivoting, values, x);
            if status != SystemStatus::Solved {
                failures.push(Failure { system: s, status });
            }
        }
        failures
    }

    /// System s by itself.
    fn solve_alone(&self, s: usize, pivoting: Pivoting, scratch: &mut [T], x: &mut Part<'_, T>) -> SystemStatus {
        let n = self.shape.size(s);
        let (b, rest) = scratch.split_at_mut(n);
        let rhs = x.source();
        (0..n).for_each(|i| b[i] = rhs.get(&self.shape, s, i));
        let (system, factors) = self.gather(s, rest);
        let status = match pivoting {
            Pivoting::None => system.thomas(&mut factors[..n], Some(&mut *b)),
            Pivoting::Partial => system.pivoted(&mut factors[..3 * n], Some(&mut *b)),
        };
        if status != SystemStatus::Solved {
            b.fill(T::nan_impl());
        }
        (0..n).for_each(|i| x.set(&self.shape, s, i, b[i]));
        status
    }

    /// System s in three slices, and what is left of the 6n values or more of scratch.
    fn gather<'a>(&self, s: usize, scratch: &'a mut [T]) -> (System<'a, T>, &'a mut [T]) {
        let n = self.shape.size(s);
        let [lower, diag, upper] = self.sources();
        let (a, rest) = scratch.split_at_mut(n);
        let (b, rest) = rest.split_at_mut(n);
        let (c, rest) = rest.split_at_mut(n);
        for i in 0..n {
            a[i] = lower.get(&self.shape, s, i);
            b[i] = diag.get(&self.shape, s, i);
            c[i] = upper.get(&self.shape, s, i);
        }
        (System { lower: a, diag: b, upper: c }, rest)
    }

    /// Groups of systems, for those that go through them.
    fn groups(&self) -> Range<usize> {
        0..self.shape.n_groups()
    }
}
