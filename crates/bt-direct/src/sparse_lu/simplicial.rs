//! Left-looking sparse LU column by column: P·A·Q = L·U with partial pivoting.
//!
//! J. R. Gilbert & T. Peierls, SIAM J. Sci. Stat. Comput. 9 (1988) 862–874, doi:10.1137/0909058: the pattern of each
//! column of L and U is the set of rows reached from A's column in the graph of L, found by depth-first search, so
//! that the time is proportional to the flops. A preferred row (the one matched with the column) is taken as the
//! pivot while it is not smaller than a threshold times the largest candidate, which keeps the ordering's promise on
//! fill; threshold 1 is plain partial pivoting.
//!
//! Storage: (4 + size of T)·(nnz L + nnz U) + (16 + size of T + 8)·n bytes; the unit diagonal of L is not stored.

use bt_formats::{Monitor, Progress, RealScalar, Scalar, one, zero};

use super::scaled::Csc;
use crate::error::{FactorError, Place, Result, SingularKind, Singularity};
use crate::pivot::Pivot;
use crate::sparse_columns::Columns;

const NONE: u32 = u32::MAX;

/// How an elimination ended that met no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elimination {
    /// With factors.
    Done,
    /// Given up: more flops than allowed.
    TooCostly,
}

/// The factors, their permutations, and the work arrays of a factorization.
#[derive(Clone, Debug, Default)]
pub struct Simplicial<T: Scalar> {
    /// Strictly lower part, rows in pivot order.
    lower: Columns<T>,
    /// Strictly upper part.
    upper: Columns<T>,
    /// Diagonal of U.
    pub pivots: Vec<T>,
    /// `row_order[k]`: the row of A that is pivot k.
    pub row_order: Vec<u32>,
    /// Inverse of `row_order`; `NONE` while not yet a pivot.
    position: Vec<u32>,
    /// max |U|.
    pub max_u: f64,
    /// Multiplications, additions and divisions of scalars, counted.
    pub flops: f64,
    // Work arrays, kept for refactorisation.
    x: Vec<T>,
    marked: Vec<u32>,
    reach: Vec<u32>,
    path: Vec<(u32, usize)>,
}

impl<T: Scalar> Simplicial<T> {
    /// Entries of L and U, diagonals once.
    pub fn nnz(&self) -> usize {
        self.lower.idx.len() + self.upper.idx.len() + self.pivots.len()
    }

    /// Bytes of factors, permutations and work arrays.
    pub fn bytes(&self) -> usize {
        self.lower.bytes()
            + self.upper.bytes()
            + size_of_val(&*self.pivots)
            + size_of_val(&*self.row_order)
            + size_of_val(&*self.position)
            + size_of_val(&*self.x)
            + size_of_val(&*self.marked)
            + self.reach.capacity() * size_of::<u32>()
            + self.path.capacity() * size_of::<(u32, usize)>()
    }

    /// Factors A with its columns taken in the order `col_order`, reusing the memory of earlier factors. Gives up once
    /// the elimination has cost more than `max_flops`. `expected`: entries of L below its diagonal and of U above, if they were counted.
    #[inline(never)]
    pub fn factor(
        &mut self,
        a: &Csc<T>,
        col_order: &[u32],
        preferred_row: &[u32],
        threshold: T::Real,
        (max_flops, expected): (f64, Option<(usize, usize)>),
        monitor: &mut dyn Monitor,
    ) -> Result<Elimination> {
        let n = a.n();
        let (below, above) = expected.unwrap_or((2 * a.row_idx.len(), 2 * a.row_idx.len()));
        self.lower.restart(n, below)?;
        self.upper.restart(n, above)?;
        self.pivots.clear();
        self.row_order.clear();
        for v in [&mut self.position, &mut self.marked] {
            v.clear();
            v.resize(n, NONE);
        }
        self.x.clear();
        self.x.resize(n, zero());
        self.pivots.reserve(n);
        self.row_order.reserve(n);
        self.reach.reserve(n);
        self.path.reserve(n);
        (self.max_u, self.flops) = (0.0, 0.0);
        let mut overflowed = None;
        for k in 0..n {
            if k % 64 == 0 && monitor.observe(Progress::Step { phase: "setup", done: k, total: n }).is_break() {
                return Err(FactorError::Stopped);
            }
            let j = col_order[k] as usize;
            self.column(a, k, j, preferred_row[j] as usize, threshold)?;
            if overflowed.is_none() && !self.max_u.is_finite() {
                overflowed = Some(j);
            }
            if self.flops > max_flops {
                return Ok(Elimination::TooCostly);
            }
        }
        if let Some(j) = overflowed {
            let reason = format!("elimination overflows in column {j} (from 0)");
            return Err(FactorError::breakdown(super::scaled::METHOD, Place::Column(j), reason));
        }
        // Rows of L in pivot order.
        self.lower.idx.iter_mut().for_each(|i| *i = self.position[*i as usize]);
        Ok(Elimination::Done)
    }

    /// Makes every solve give NaN: what is left of a factorization that failed must not look like an answer.
    pub fn invalidate(&mut self, n: usize) {
        for c in [&mut self.lower, &mut self.upper] {
            c.empty(n);
        }
        self.pivots.clear();
        self.pivots.resize(n, T::rounded(f64::NAN, 0.0));
        self.row_order.clear();
        self.row_order.extend(0..n as u32);
    }

    /// Column `k` of L and U from column `j` of A.
    fn column(&mut self, a: &Csc<T>, k: usize, j: usize, preferred: usize, threshold: T::Real) -> Result<()> {
        self.find_reach(a, k, j);
        // x ← A[:, j]
        for (i, v) in a.col(j) {
            self.x[i] = v;
        }
        let below = self.reach.iter().filter(|&&i| self.position[i as usize] == NONE).count();
        // One of them is the pivot.
        self.lower.reserve(below.saturating_sub(1))?;
        self.upper.reserve(self.reach.len() - below)?;
        // x ← L⁻¹·x in topological order; the finished entries are U[:, k].
        let (mut max, mut best) = (-one::<T::Real>(), usize::MAX);
        let mut updates = 0usize;
        for r in (0..self.reach.len()).rev() {
            let i = self.reach[r] as usize;
            let p = self.position[i];
            if p == NONE {
                continue;
            }
            let xi = std::mem::take(&mut self.x[i]);
            self.upper.push(p, xi);
            self.max_u = self.max_u.max_nan(xi.abs1().to_f64());
            let range = self.lower.range(p as usize);
            updates += range.len();
            for (&i, &l) in self.lower.idx[range.clone()].iter().zip(&self.lower.val[range]) {
                self.x[i as usize] -= l * xi;
            }
        }
        self.upper.close();
        // The pivot: the preferred row while it is large enough, else the largest candidate.
        for &i in self.reach.iter().rev() {
            if self.position[i as usize] == NONE {
                let size = self.x[i as usize].abs1();
                // Also true for a NaN, which then shows as the pivot.
                if size.max_nan(max) != max {
                    (max, best) = (size, i as usize);
                }
            }
        }
        if best == usize::MAX || max == zero() {
            return Err(FactorError::Singular(Singularity { kind: SingularKind::Numerical, column: j, block: None }));
        }
        if self.position[preferred] == NONE && self.x[preferred].abs1() >= threshold * max {
            best = preferred;
        }
        let pivot = std::mem::take(&mut self.x[best]);
        if !Scalar::is_finite(pivot) {
            let reason = format!("elimination overflows in column {j} (from 0)");
            return Err(FactorError::breakdown(super::scaled::METHOD, Place::Column(j), reason));
        }
        self.max_u = self.max_u.max_nan(pivot.abs1().to_f64());
        self.position[best] = k as u32;
        self.row_order.push(best as u32);
        self.pivots.push(pivot);
        // L[:, k] ← x / pivot; exact zeros are dropped.
        let divisor = Pivot::new(pivot);
        for &i in &self.reach {
            if self.position[i as usize] == NONE {
                let v = std::mem::take(&mut self.x[i as usize]);
                if v != zero() {
                    self.lower.push(i, divisor.divide(v));
                }
            }
        }
        self.lower.close();
        self.flops += (2 * updates + self.lower.idx.len() - self.lower.ptr[k]) as f64;
        Ok(())
    }

    /// Rows reached from column `j` of A in the graph of L, in reverse topological order.
    fn find_reach(&mut self, a: &Csc<T>, k: usize, j: usize) {
        let mark = k as u32;
        let Self { lower, position, marked, reach, path, .. } = self;
        // Children of row i are the rows of the column of L whose pivot it is.
        let children = |i: u32| match position[i as usize] {
            NONE => 0..0,
            p => lower.range(p as usize),
        };
        reach.clear();
        for &root in &a.row_idx[a.range(j)] {
            if marked[root as usize] == mark {
                continue;
            }
            marked[root as usize] = mark;
            path.push((root, children(root).start));
            'descend: while let Some((i, next)) = path.last_mut() {
                let i = *i;
                let end = children(i).end;
                while *next < end {
                    let child = lower.idx[*next];
                    *next += 1;
                    if marked[child as usize] != mark {
                        marked[child as usize] = mark;
                        path.push((child, children(child).start));
                        continue 'descend;
                    }
                }
                reach.push(i);
                path.pop();
            }
        }
    }

    /// Y ← U⁻¹·L⁻¹·Y for W interleaved vectors.
    pub fn solve<const W: usize>(&self, y: &mut [[T; W]]) {
        let n = self.pivots.len();
        for j in 0..n {
            let yj = y[j];
            for (i, l) in self.lower.col(j) {
                axpy(&mut y[i], l, yj);
            }
        }
        for j in (0..n).rev() {
            let pivot = Pivot::new(self.pivots[j]);
            let yj = y[j].map(|v| pivot.divide(v));
            y[j] = yj;
            for (i, u) in self.upper.col(j) {
                axpy(&mut y[i], u, yj);
            }
        }
    }

    /// Y ← (map L)⁻ᵀ·(map U)⁻ᵀ·Y for W interleaved vectors; `map` is the identity or the conjugate.
    pub fn solve_transpose<const W: usize>(&self, y: &mut [[T; W]], map: impl Fn(T) -> T + Copy) {
        let n = self.pivots.len();
        for j in 0..n {
            let mut yj = y[j];
            for (i, u) in self.upper.col(j) {
                axpy(&mut yj, map(u), y[i]);
            }
            let pivot = Pivot::new(map(self.pivots[j]));
            y[j] = yj.map(|v| pivot.divide(v));
        }
        for j in (0..n).rev() {
            let mut yj = y[j];
            for (i, l) in self.lower.col(j) {
                axpy(&mut yj, map(l), y[i]);
            }
            y[j] = yj;
        }
    }
}

/// y ← y − a·x
#[inline(always)]
fn axpy<T: Scalar, const W: usize>(y: &mut [T; W], a: T, x: [T; W]) {
    for w in 0..W {
        y[w] -= a * x[w];
    }
}
