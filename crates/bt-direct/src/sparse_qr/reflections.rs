//! C = H₀·H₁ ⋯ Hₙ₋₁·R, column by column: reflections Hₖ = I − τₖ·vₖ·vₖᴴ with 1 in row k of vₖ, and R upper triangular.
//!
//! Column k of C meets the reflections of the columns from which a way in the tree leads to k, in that order; what is then below row k is
//! reflected onto it: α = −(x₀/|x₀|)·‖x‖, v = (x − α·e₀)/(x₀ − α), τ = 2/‖v‖² (A. S. Householder, J. ACM 5 (1958) 339–342,
//! doi:10.1145/320941.320947). |vᵢ| ≤ 1, and |R| in a column is at most the length of that column of C: elements do not grow.
//!
//! Storage: (4 + size of T)·(entries of V and R) + (2·size of T + size of a real + 16)·n bytes.

use bt_formats::{Monitor, Op, Progress, RealScalar, Scalar, one, zero};

use super::tree::Tree;
use crate::error::{FactorError, Result, SingularKind, Singularity};
use crate::pivot::{Pivot, divide_real};
use crate::sparse_columns::Columns;
use crate::sparse_lu::Csc;

const NONE: u32 = u32::MAX;

/// The factors, and the work arrays of a factorization.
#[derive(Clone, Debug)]
pub(super) struct Reflections<T: Scalar> {
    /// vₖ below its 1.
    vectors: Columns<T>,
    /// τₖ; 0 where Hₖ = I.
    taus: Vec<T::Real>,
    /// R above its diagonal.
    upper: Columns<T>,
    /// The diagonal of R.
    pub diagonal: Vec<T>,
    /// max |R|
    pub max_r: f64,
    /// Multiplications, additions and divisions of scalars, counted.
    pub flops: f64,
    /// A column while it is reflected.
    x: Vec<T>,
    marked: Vec<u32>,
    /// A way in the tree, and those found, the first to go last.
    way: Vec<u32>,
    reached: Vec<u32>,
}

impl<T: Scalar> Reflections<T> {
    /// Room for the factors of a pattern.
    pub fn with_room(tree: &Tree) -> Result<Self> {
        let n = tree.parent.len();
        let (mut vectors, mut upper) = (Columns::default(), Columns::default());
        vectors.restart(n, tree.below)?;
        upper.restart(n, tree.above)?;
        Ok(Self {
            vectors,
            taus: Vec::with_capacity(n),
            upper,
            diagonal: Vec::with_capacity(n),
            max_r: 0.0,
            flops: 0.0,
            x: vec![zero(); n],
            marked: vec![NONE; n],
            way: Vec::with_capacity(n),
            reached: Vec::with_capacity(n),
        })
    }

    /// Bytes of the factors of a pattern and of the work arrays.
    pub fn bytes(tree: &Tree) -> usize {
        let n = tree.parent.len();
        let entries = (tree.below + tree.above) * (size_of::<T>() + size_of::<u32>());
        entries + n * (2 * size_of::<T>() + size_of::<T::Real>() + 3 * size_of::<u32>() + 2 * size_of::<usize>())
    }

    /// Entries of V and R, the diagonal once.
    pub fn nnz(&self) -> usize {
        self.vectors.idx.len() + self.upper.idx.len() + self.diagonal.len()
    }

    /// Reflections that are not the identity.
    pub fn count(&self) -> usize {
        self.taus.iter().filter(|&&tau| tau != zero()).count()
    }

    /// Factors A in the order of its tree.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with a column of A that is zero below and on the diagonal; [`FactorError::Stopped`].
    #[inline(never)]
    pub fn factor(&mut self, a: &Csc<T>, tree: &Tree, monitor: &mut dyn Monitor) -> Result<()> {
        let n = a.n();
        self.vectors.restart(n, tree.below)?;
        self.upper.restart(n, tree.above)?;
        self.taus.clear();
        self.diagonal.clear();
        self.x.fill(zero());
        self.marked.fill(NONE);
        (self.max_r, self.flops) = (0.0, 0.0);
        for k in 0..n {
            if k % 64 == 0 && monitor.observe(Progress::Step { phase: "setup", done: k, total: n }).is_break() {
                return Err(FactorError::Stopped);
            }
            self.column(a, tree, k)?;
        }
        Ok(())
    }

    fn column(&mut self, a: &Csc<T>, tree: &Tree, k: usize) -> Result<()> {
        let (j, mark) = (tree.col_order[k] as usize, k as u32);
        let start = self.vectors.idx.len();
        self.marked[k] = mark;
        self.reached.clear();
        for (i, v) in a.col(j) {
            let mut c = tree.first[i];
            while self.marked[c as usize] != mark {
                self.marked[c as usize] = mark;
                self.way.push(c);
                c = tree.parent[c as usize];
            }
            while let Some(c) = self.way.pop() {
                self.reached.push(c);
            }
            let row = tree.position[i];
            self.x[row as usize] = v;
            if row > mark {
                self.take_in(row, mark);
            }
        }
        for r in (0..self.reached.len()).rev() {
            let c = self.reached[r] as usize;
            let range = self.vectors.range(c);
            reflect(
                &self.vectors.idx[range.clone()],
                &self.vectors.val[range.clone()],
                self.taus[c],
                c,
                &mut self.x,
                |v| v,
            );
            self.flops += (4 * range.len() + 3) as f64;
            let r = std::mem::take(&mut self.x[c]);
            self.max_r = self.max_r.max_nan(r.abs1().to_f64());
            self.upper.push(c as u32, r);
            if tree.parent[c] == mark {
                for p in range {
                    self.take_in(self.vectors.idx[p], mark);
                }
            }
        }
        self.upper.close();
        let place = Singularity { kind: SingularKind::Numerical, column: j, block: None };
        self.reflect_onto_diagonal(start, k).ok_or(FactorError::Singular(place))
    }

    /// A row of the reflection that is being made, unless it is among them.
    fn take_in(&mut self, row: u32, mark: u32) {
        if self.marked[row as usize] != mark {
            self.marked[row as usize] = mark;
            self.vectors.push(row, zero());
        }
    }

    /// Hₖ from x in row k and in the rows of vₖ, whose entries begin at `start`. `None` where x is zero.
    fn reflect_onto_diagonal(&mut self, start: usize, k: usize) -> Option<()> {
        let (rows, v) = (&self.vectors.idx[start..], &mut self.vectors.val[start..]);
        let head = std::mem::take(&mut self.x[k]);
        let mut largest = head.abs();
        for (v, &i) in v.iter_mut().zip(rows) {
            *v = std::mem::take(&mut self.x[i as usize]);
            largest = largest.max_nan(v.abs());
        }
        // Also for NaN.
        if !(largest > zero()) {
            return None;
        }
        let squares = v.iter().fold(zero::<T::Real>(), |sum, &v| sum + divide_real(v, largest).abs_sq());
        let (diagonal, tau) = if squares == zero() {
            (head, zero())
        } else {
            let length = largest * (divide_real(head, largest).abs_sq() + squares).sqrt();
            let phase = if head == zero() { one() } else { divide_real(head, head.abs()) };
            let divisor = Pivot::new(phase * T::from_real(head.abs() + length));
            for v in &mut *v {
                *v = divisor.divide(*v);
            }
            let rest = v.iter().fold(zero::<T::Real>(), |sum, v| sum + v.abs_sq());
            (-phase * T::from_real(length), T::Real::from_f64(2.0) / (one::<T::Real>() + rest))
        };
        self.flops += (5 * v.len() + 4) as f64;
        self.max_r = self.max_r.max_nan(diagonal.abs1().to_f64());
        self.diagonal.push(diagonal);
        self.taus.push(tau);
        self.vectors.close();
        Some(())
    }

    /// Makes every solve give NaN: what is left of a factorization that failed must not look like an answer.
    pub fn invalidate(&mut self, n: usize) {
        self.vectors.empty(n);
        self.upper.empty(n);
        self.taus.clear();
        self.taus.resize(n, zero());
        self.diagonal.clear();
        self.diagonal.resize(n, T::nan_impl());
    }

    /// y ← R⁻¹·Hₙ₋₁ ⋯ H₀·y
    pub fn solve(&self, y: &mut [T]) {
        let n = self.diagonal.len();
        for k in 0..n {
            self.reflect(k, y, |v| v);
        }
        for k in (0..n).rev() {
            y[k] = Pivot::new(self.diagonal[k]).divide(y[k]);
            let yk = y[k];
            self.upper.col(k).for_each(|(i, r)| y[i] -= r * yk);
        }
    }

    /// y ← C⁻ᵀ·y or C⁻ᴴ·y: H₀ ⋯ Hₙ₋₁·R⁻ᴴ·y, of the conjugates for the transpose.
    pub fn solve_transpose(&self, op: Op, y: &mut [T]) {
        match op {
            Op::Adjoint => self.solve_transpose_by(y, Scalar::conj, |v| v),
            _ => self.solve_transpose_by(y, |r| r, Scalar::conj),
        }
    }

    fn solve_transpose_by(&self, y: &mut [T], of_r: impl Fn(T) -> T, of_v: impl Fn(T) -> T + Copy) {
        let n = self.diagonal.len();
        for k in 0..n {
            let sum = self.upper.col(k).fold(y[k], |sum, (i, r)| sum - of_r(r) * y[i]);
            y[k] = Pivot::new(of_r(self.diagonal[k])).divide(sum);
        }
        for k in (0..n).rev() {
            self.reflect(k, y, of_v);
        }
    }

    fn reflect(&self, k: usize, y: &mut [T], of_v: impl Fn(T) -> T) {
        let range = self.vectors.range(k);
        reflect(&self.vectors.idx[range.clone()], &self.vectors.val[range], self.taus[k], k, y, of_v);
    }
}

/// y ← y − τ·v·(vᴴ·y), v of 1 in row k and the entries given.
fn reflect<T: Scalar>(rows: &[u32], v: &[T], tau: T::Real, k: usize, y: &mut [T], of_v: impl Fn(T) -> T) {
    if tau == zero() {
        return;
    }
    let entries = || rows.iter().zip(v).map(|(&i, &v)| (i as usize, of_v(v)));
    let sum = entries().fold(y[k], |sum, (i, v)| sum + Scalar::conj(v) * y[i]);
    let step = sum * T::from_real(tau);
    y[k] -= step;
    entries().for_each(|(i, v)| y[i] -= v * step);
}
