//! Maximum-product matching with scaling: a row permutation that puts large entries on the diagonal.
//!
//! Duff & Koster, SIAM J. Matrix Anal. Appl. 22 (2001), doi:10.1137/S0895479899358443 (the objective of MC64's job 5):
//! among all ways to pick one non-zero in each row and column, the one with the largest product of moduli. With
//! cᵢⱼ = log₂ maxₖ|aᵢₖ| − log₂|aᵢⱼ| ≥ 0 it is the linear assignment of least Σ c, found by shortest augmenting paths:
//! from each row without a partner, Dijkstra's algorithm on the reduced costs c̄ᵢⱼ = cᵢⱼ − uᵢ − vⱼ ≥ 0 with a binary
//! heap. Its dual variables u, v scale the matrix: with rᵢ = 2^uᵢ / maxₖ|aᵢₖ| and sⱼ = 2^vⱼ,
//!
//! ```text
//! |rᵢ aᵢⱼ sⱼ| = 2^(−c̄ᵢⱼ) ≤ 1,  with equality where i and j are matched.
//! ```
//!
//! Non-standard: the search runs over rows (the transpose of the paper's), so that CSR needs no copy; logarithms are to
//! base 2 and the factors rounded to powers of two, so that scaling is exact. On failure a set of rows with too few
//! columns is returned, which proves that the matrix is structurally singular.
//!
//! Storage: 8·nnz + 56n bytes and the heap. Cost: O(n·(nnz + n)·log n) at worst; a cheap assignment first leaves few
//! rows to search from, and each search stops at the first free column, so that practice is close to O(nnz).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use crate::csr::Csr;
use crate::error::Error;
use crate::operator::LinearOperator;
use crate::permutation::Permutation;
use crate::rounded::{Power, exponent_of};
use crate::scalar::{RealScalar, Scalar, ScalarKind};

/// No partner.
const NONE: u32 = u32::MAX;

/// A row permutation P and diagonal scalings R, C that make P·R·A·C heavy on the diagonal.
///
/// With the exact factors all |entries| ≤ 1 and the diagonal has modulus 1; the factors are the nearest powers of two,
/// so that |entries| ≤ 2 and 1/2 ≤ |diagonal| ≤ 2 up to the rounding of logarithms. To solve A x = b: solve
/// (P·R·A·C) y = P·R·b, then x = C·y.
///
/// Factors are limited to the normal numbers of the type; only a matrix whose rows or columns differ by more than its
/// whole range (10⁶⁰⁰ for `f64`) meets that limit and loses the bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Matching<R> {
    /// P: `rows.order()[j]` is the row matched with column j, to be moved to position j.
    pub rows: Permutation,
    /// R by row of A (before the permutation): powers of two.
    pub row_scale: Vec<R>,
    /// C by column: powers of two.
    pub col_scale: Vec<R>,
}

impl<R: RealScalar> Matching<R> {
    /// P·R·A·C.
    ///
    /// Exact unless a result is subnormal; intermediate products neither overflow nor underflow needlessly.
    ///
    /// # Panics
    /// When A is not square of the matching's size.
    pub fn apply<T: Scalar + faer::traits::ComplexField<Real = R>>(&self, a: &Csr<T>) -> Csr<T> {
        let mut scaled = a.clone();
        let values = scaled.values_mut();
        for i in 0..a.nrows() {
            let entries = a.row_ptr()[i] as usize..a.row_ptr()[i + 1] as usize;
            for (&j, v) in a.col_idx()[entries.clone()].iter().zip(&mut values[entries]) {
                *v = self.scale_entry(i, j as usize, *v);
            }
        }
        scaled.permute(&self.rows, &Permutation::identity(a.ncols()))
    }

    /// rᵢ·v·cⱼ for the entry v = aᵢⱼ of A, exact as [`Matching::apply`] is.
    ///
    /// # Panics
    /// When i or j is not below n.
    pub fn scale_entry<T: Scalar + faer::traits::ComplexField<Real = R>>(&self, i: usize, j: usize, v: T) -> T {
        let (r, c) = (self.row_scale[i], self.col_scale[j]);
        let (low, high) = if r < c { (r, c) } else { (c, r) };
        // The first factor moves |v| towards 1.
        let (first, second) = if v.abs1() >= R::from_f64(1.0) { (low, high) } else { (high, low) };
        v * T::from_real(first) * T::from_real(second)
    }
}

/// Proof that every matrix of this pattern is singular: `short_rows` have non-zeros in `short_cols` only, one fewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructuralDeficiency {
    /// n.
    pub n: usize,
    /// Largest number of non-zeros no two of which share a row or a column.
    pub structural_rank: usize,
    /// Rows left without a partner by one largest matching, n − rank of them.
    pub unmatched_rows: Vec<u32>,
    /// Columns left without a partner by the same matching.
    pub unmatched_cols: Vec<u32>,
    /// Rows that are too many for their columns (an empty row or column if there is one, else the first such set met).
    pub short_rows: Vec<u32>,
    /// All columns in which `short_rows` have non-zeros; one fewer than those rows.
    pub short_cols: Vec<u32>,
}

impl fmt::Display for StructuralDeficiency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "structurally singular, rank {} of {}: ", self.structural_rank, self.n)?;
        // The rest of the columns is short of rows: n − r + 1 columns with non-zeros in only n − r rows. The smaller
        // of the two sets says more.
        let (r, n) = (self.short_rows.len(), self.n);
        if r <= n - r + 1 {
            too_few(f, ["row", "columns"], &self.short_rows, r - 1)
        } else {
            let cols: Vec<u32> = (0..n as u32).filter(|j| self.short_cols.binary_search(j).is_err()).collect();
            too_few(f, ["column", "rows"], &cols, n - r)
        }
    }
}

/// "the 3 rows 0, 2, 3 have non-zeros in only 2 columns"
fn too_few(f: &mut fmt::Formatter<'_>, [line, others]: [&str; 2], which: &[u32], few: usize) -> fmt::Result {
    const SHOWN: usize = 8;
    if let [k] = which {
        return write!(f, "{line} {k} (from 0) has no non-zero");
    }
    let names: Vec<_> = which.iter().take(SHOWN).map(u32::to_string).collect();
    let more = if which.len() > SHOWN { ", …" } else { "" };
    write!(
        f,
        "the {} {line}s {}{more} (from 0) have non-zeros in only {few} {}",
        which.len(),
        names.join(", "),
        if few == 1 { others.trim_end_matches('s') } else { others }
    )
}

impl std::error::Error for StructuralDeficiency {}

/// Why there is no matching.
#[derive(Debug, thiserror::Error)]
pub enum MatchingError {
    /// A matrix that is not square or holds a NaN or an infinity.
    #[error(transparent)]
    Input(#[from] Error),
    /// No zero-free diagonal exists: the matrix is singular whatever its values.
    #[error(transparent)]
    Singular(#[from] StructuralDeficiency),
}

/// The permutation and scalings that maximise ∏ |diagonal entries|; see [`Matching`].
///
/// Stored zeros are no candidates. Deterministic.
///
/// # Errors
/// [`MatchingError::Input`] when A is not square or not finite; [`MatchingError::Singular`] when no choice of n
/// non-zeros in different rows and columns exists, with the rows to blame.
///
/// # Cost
/// O(n·nnz·log n) at worst, near O(nnz) in practice; 8·nnz + 56n bytes.
///
/// ```
/// use bt_formats::{Csr, reorder::maximum_product_matching};
/// // [ 1    100 ]   1·1 < 100·0.5: the rows change places.
/// // [ 0.5    1 ]
/// let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, 100.0, 0.5, 1.0])?;
/// let m = maximum_product_matching(&a)?;
/// assert_eq!(m.rows.order(), [1, 0]);
/// let heavy = m.apply(&a);
/// assert!((0..2).all(|i| heavy.get(i, i) >= 0.5) && heavy.values().iter().all(|v| *v <= 2.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[inline(never)]
pub fn maximum_product_matching<T: Scalar>(a: &Csr<T>) -> Result<Matching<T::Real>, MatchingError> {
    a.check_square()?;
    a.check_finite()?;
    let n = a.nrows();
    let (log_max, cost) = costs(a);
    let mut assignment = Assignment::new(a.row_ptr(), a.col_idx(), &cost);
    assignment.assign_cheaply();
    let mut shortage = None;
    let mut search = Search::new(n);
    for i in 0..n as u32 {
        if assignment.col_of_row[i as usize] == NONE && !search.augment(&mut assignment, i) {
            shortage.get_or_insert_with(|| search.reached(&assignment, i));
        }
    }
    if let Some(shortage) = shortage {
        let (short_rows, short_cols) = empty_line(&assignment).unwrap_or(shortage);
        let free = |partner: &[u32]| (0..n as u32).filter(|&k| partner[k as usize] == NONE).collect::<Vec<_>>();
        let unmatched_rows = free(&assignment.col_of_row);
        return Err(MatchingError::Singular(StructuralDeficiency {
            n,
            structural_rank: n - unmatched_rows.len(),
            unmatched_rows,
            unmatched_cols: free(&assignment.row_of_col),
            short_rows,
            short_cols,
        }));
    }
    // log₂ rᵢ = uᵢ − log₂ maxₖ|aᵢₖ|, log₂ sⱼ = vⱼ
    let rows: Vec<f64> = assignment.u.iter().zip(&log_max).map(|(u, m)| u - m).collect();
    let (row_scale, col_scale) = powers_of_two::<T>(&rows, &assignment.v);
    Ok(Matching { rows: Permutation::from_order(assignment.row_of_col)?, row_scale, col_scale })
}

/// The shortest proof of all, where there is one: an empty row, or all rows but an empty column.
fn empty_line(s: &Assignment<'_>) -> Option<(Vec<u32>, Vec<u32>)> {
    let n = s.u.len() as u32;
    if let Some(i) = (0..n).find(|&i| s.row(i).next().is_none()) {
        return Some((vec![i], Vec::new()));
    }
    let mut empty = vec![true; n as usize];
    for (j, _) in (0..n).flat_map(|i| s.row(i)) {
        empty[j as usize] = false;
    }
    let column = empty.iter().position(|e| *e)? as u32;
    Some(((0..n).collect(), (0..n).filter(|j| *j != column).collect()))
}

/// log₂ of the largest modulus of each row, and cᵢⱼ ≥ 0 in the order of the entries; +∞ for a stored zero.
fn costs<T: Scalar>(a: &Csr<T>) -> (Vec<f64>, Vec<f64>) {
    let mut cost: Vec<f64> = a.values().iter().map(|v| log2_abs(*v)).collect();
    let mut log_max = vec![0.0; a.nrows()];
    for (i, w) in a.row_ptr().windows(2).enumerate() {
        let row = &mut cost[w[0] as usize..w[1] as usize];
        let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if max.is_finite() {
            log_max[i] = max;
        }
        // c ← log₂ max − log₂ |a|
        for c in row {
            *c = log_max[i] - *c;
        }
    }
    (log_max, cost)
}

/// log₂ |z|, −∞ for zero; finite for every finite z ≠ 0. The exponent and 32 binary digits: sums of such numbers round
/// nothing, so that a power of two in front of A changes no decision.
fn log2_abs<T: Scalar>(z: T) -> f64 {
    const DIGITS: f64 = (1u64 << 32) as f64;
    let (re, im) = (z.re().to_f64(), z.im().to_f64());
    let whole = re.hypot(im);
    let (modulus, halved) = if whole.is_finite() { (whole, 0) } else { ((re / 2.0).hypot(im / 2.0), 1) };
    if modulus == 0.0 {
        return f64::NEG_INFINITY;
    }
    let exponent = exponent_of(modulus);
    let fraction = Power::of(-exponent).times(modulus).log2();
    f64::from(exponent + halved) + (fraction * DIGITS).round() / DIGITS
}

/// A partial assignment and dual variables: c̄ᵢⱼ = cᵢⱼ − uᵢ − vⱼ ≥ 0, = 0 where i and j are matched.
struct Assignment<'a> {
    row_ptr: &'a [u32],
    col_idx: &'a [u32],
    cost: &'a [f64],
    u: Vec<f64>,
    v: Vec<f64>,
    col_of_row: Vec<u32>,
    row_of_col: Vec<u32>,
}

impl<'a> Assignment<'a> {
    /// No partners; vⱼ = minᵢ cᵢⱼ, uᵢ = minⱼ (cᵢⱼ − vⱼ).
    fn new(row_ptr: &'a [u32], col_idx: &'a [u32], cost: &'a [f64]) -> Self {
        let n = row_ptr.len() - 1;
        let mut v = vec![f64::INFINITY; n];
        for (&j, &c) in col_idx.iter().zip(cost) {
            v[j as usize] = v[j as usize].min(c);
        }
        let finite = |x: &mut f64| *x = if x.is_finite() { *x } else { 0.0 };
        v.iter_mut().for_each(finite);
        let mut s =
            Self { row_ptr, col_idx, cost, u: vec![0.0; n], v, col_of_row: vec![NONE; n], row_of_col: vec![NONE; n] };
        for i in 0..n as u32 {
            let least = s.row(i).map(|(_, c)| c).fold(f64::INFINITY, f64::min);
            s.u[i as usize] = least;
        }
        s.u.iter_mut().for_each(finite);
        s
    }

    /// (j, cᵢⱼ − vⱼ) of the non-zeros of row i.
    fn row(&self, i: u32) -> impl Iterator<Item = (u32, f64)> + '_ {
        let range = self.row_ptr[i as usize] as usize..self.row_ptr[i as usize + 1] as usize;
        self.col_idx[range.clone()]
            .iter()
            .zip(&self.cost[range])
            .filter(|(_, c)| c.is_finite())
            .map(|(&j, &c)| (j, c - self.v[j as usize]))
    }

    /// Columns that row i can take at no cost: c̄ᵢⱼ = 0.
    fn tight(&self, i: u32) -> impl Iterator<Item = u32> + '_ {
        self.row(i).filter(move |e| e.1 <= self.u[i as usize]).map(|e| e.0)
    }

    fn is_free(&self, j: u32) -> bool {
        self.row_of_col[j as usize] == NONE
    }

    fn marry(&mut self, i: u32, j: u32) {
        self.col_of_row[i as usize] = j;
        self.row_of_col[j as usize] = i;
    }

    /// Each row takes a free tight column, or one whose row can move to a free tight column.
    fn assign_cheaply(&mut self) {
        let n = self.u.len();
        for i in 0..n as u32 {
            let free = self.tight(i).find(|&j| self.is_free(j));
            if let Some(j) = free {
                self.marry(i, j);
            }
        }
        // Once a row has no free tight column, it never has one again: columns do not become free.
        let mut stuck = vec![false; n];
        for i in 0..n as u32 {
            if self.col_of_row[i as usize] != NONE {
                continue;
            }
            let mut found = None;
            for j in self.tight(i) {
                let other = self.row_of_col[j as usize];
                if other == NONE {
                    found = Some((j, None));
                } else if !stuck[other as usize] {
                    match self.tight(other).find(|&k| self.is_free(k)) {
                        Some(k) => found = Some((j, Some((other, k)))),
                        None => stuck[other as usize] = true,
                    }
                }
                if found.is_some() {
                    break;
                }
            }
            if let Some((j, moved)) = found {
                if let Some((other, k)) = moved {
                    self.marry(other, k);
                }
                self.marry(i, j);
            }
        }
    }
}

/// A distance in the heap; no NaN arises from finite costs.
#[derive(PartialEq)]
struct Distance(f64);

impl Eq for Distance {}
impl PartialOrd for Distance {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Distance {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Dijkstra's search for a shortest augmenting path; its arrays are reset by what a search touched.
struct Search {
    heap: BinaryHeap<Reverse<(Distance, u32)>>,
    /// Shortest distance to a column found so far.
    distance: Vec<f64>,
    /// Row from which that distance came.
    from: Vec<u32>,
    settled: Vec<bool>,
    /// Columns whose distance is finite.
    touched: Vec<u32>,
    /// Settled columns, in the order of their distances.
    done: Vec<u32>,
}

impl Search {
    fn new(n: usize) -> Self {
        Self {
            heap: BinaryHeap::new(),
            distance: vec![f64::INFINITY; n],
            from: vec![NONE; n],
            settled: vec![false; n],
            touched: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Finds a partner for row `root`; false when no augmenting path exists.
    fn augment(&mut self, s: &mut Assignment<'_>, root: u32) -> bool {
        for &j in &self.touched {
            self.distance[j as usize] = f64::INFINITY;
            self.settled[j as usize] = false;
        }
        self.touched.clear();
        self.done.clear();
        self.heap.clear();

        // Shortest distance to a free column, and that column.
        let (mut shortest, mut end) = (f64::INFINITY, NONE);
        let (mut i, mut base) = (root, 0.0);
        loop {
            for (j, c) in s.row(i) {
                let reached = &mut self.distance[j as usize];
                // d ← d(i) + c̄ᵢⱼ; rounding must not make it smaller than d(i).
                let d = base + (c - s.u[i as usize]).max(0.0);
                if d < shortest && d < *reached && !self.settled[j as usize] {
                    if reached.is_infinite() {
                        self.touched.push(j);
                    }
                    *reached = d;
                    self.from[j as usize] = i;
                    if s.is_free(j) {
                        (shortest, end) = (d, j);
                    } else {
                        self.heap.push(Reverse((Distance(d), j)));
                    }
                }
            }
            // The nearest column that is not settled and not further than the free one.
            let next = loop {
                match self.heap.pop() {
                    Some(Reverse((Distance(d), _))) if d >= shortest => break None,
                    Some(Reverse((_, j))) if self.settled[j as usize] => {}
                    other => break other,
                }
            };
            let Some(Reverse((Distance(d), j))) = next else { break };
            self.settled[j as usize] = true;
            self.done.push(j);
            // The matched edge back costs nothing: c̄ = 0.
            (i, base) = (s.row_of_col[j as usize], d);
        }
        if end == NONE {
            return false;
        }

        // v ← v − (shortest − d) for settled columns; then u follows from c̄ = 0 on the new matching.
        for &j in &self.done {
            s.v[j as usize] -= shortest - self.distance[j as usize];
        }
        let rows: Vec<u32> = self.done.iter().map(|&j| s.row_of_col[j as usize]).collect();
        let mut j = end;
        loop {
            let i = self.from[j as usize];
            let previous = s.col_of_row[i as usize];
            s.marry(i, j);
            if i == root {
                break;
            }
            j = previous;
        }
        for i in rows.into_iter().chain([root]) {
            let partner = s.col_of_row[i as usize];
            let u = s.row(i).find(|e| e.0 == partner).map_or(0.0, |e| e.1);
            s.u[i as usize] = u;
        }
        true
    }

    /// After a failed search: the rows reached from `root` and the columns they have.
    fn reached(&self, s: &Assignment<'_>, root: u32) -> (Vec<u32>, Vec<u32>) {
        let mut cols = self.done.clone();
        let mut rows: Vec<u32> = cols.iter().map(|&j| s.row_of_col[j as usize]).chain([root]).collect();
        rows.sort_unstable();
        cols.sort_unstable();
        (rows, cols)
    }
}

/// 2^(r + t) and 2^(c − t), rounded to powers of two, where t centres the exponents on zero.
fn powers_of_two<T: Scalar>(rows: &[f64], cols: &[f64]) -> (Vec<T::Real>, Vec<T::Real>) {
    let range = |x: &[f64]| x.iter().fold((0.0f64, 0.0f64), |(a, b), &x| (a.min(x), b.max(x)));
    let ((r_min, r_max), (c_min, c_max)) = (range(rows), range(cols));
    // Least maximum of r_max + t, −(r_min + t), c_max − t, −(c_min − t).
    // A whole number, and ties upwards, so that a power of two in front of A moves exponents and changes no choice.
    let t = (((-r_min).max(c_max) - r_max.max(-c_min)) / 2.0).floor();
    let limit = match T::KIND {
        ScalarKind::F32 | ScalarKind::C32 => 126.0,
        ScalarKind::F64 | ScalarKind::C64 => 1022.0,
    };
    let power = |x: f64| {
        let exponent = (x + 0.5).floor().clamp(-limit, limit) as i64;
        T::Real::from_f64(f64::from_bits(((exponent + 1023) as u64) << 52))
    };
    (rows.iter().map(|r| power(r + t)).collect(), cols.iter().map(|c| power(c - t)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_product_wins_not_the_larger_entry() {
        // [ 2  3 ]   the largest entry 3 has the product 3·1 = 3, the diagonal 2·2 = 4.
        // [ 1  2 ]
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, 3.0, 1.0, 2.0]).unwrap();
        assert!(maximum_product_matching(&a).unwrap().rows.is_identity());
    }

    #[test]
    fn extreme_entries_scale_exactly() {
        // A diagonal over 606 decades.
        let a = Csr::new(3, 3, vec![0, 1, 2, 3], vec![2, 0, 1], vec![1e-306, 1e300, -3.0]).unwrap();
        let m = maximum_product_matching(&a).unwrap();
        assert_eq!(m.rows.order(), [1, 2, 0]);
        for v in m.apply(&a).values() {
            assert!((0.5..=2.0).contains(&f64::abs(*v)), "{v:e}");
        }
        let huge = Csr::new(1, 1, vec![0, 1], vec![0], vec![crate::c64::new(f64::MAX, f64::MAX)]).unwrap();
        let v = maximum_product_matching(&huge).unwrap().apply(&huge).get(0, 0);
        assert!((0.5..=2.0).contains(&Scalar::abs(v)));
    }

    #[test]
    fn three_rows_in_two_columns() {
        // Rows 0, 2, 3 have only columns 1 and 3; the stored zero at (0, 0) is no candidate.
        let a = Csr::new(
            4,
            4,
            vec![0, 2, 5, 7, 8],
            vec![0, 1, 0, 1, 2, 1, 3, 3],
            vec![0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        )
        .unwrap();
        let Err(MatchingError::Singular(d)) = maximum_product_matching(&a) else { panic!("not detected") };
        assert_eq!((d.structural_rank, &*d.short_rows, &*d.short_cols), (3, &[0, 2, 3][..], &[1, 3][..]));
        assert_eq!((d.unmatched_rows.len(), d.unmatched_cols.len()), (1, 1));
        assert_eq!(
            d.to_string(),
            "structurally singular, rank 3 of 4: the 2 columns 0, 2 (from 0) have non-zeros in only 1 row"
        );
    }

    #[test]
    fn an_empty_row_and_an_empty_column_are_named() {
        let a = |row_ptr, cols: Vec<u32>| {
            let values = vec![1.0; cols.len()];
            maximum_product_matching(&Csr::new(3, 3, row_ptr, cols, values).unwrap()).unwrap_err().to_string()
        };
        let row = "structurally singular, rank 2 of 3: row 1 (from 0) has no non-zero";
        assert_eq!(a(vec![0, 3, 3, 6], vec![0, 1, 2, 0, 1, 2]), row);
        let column = "structurally singular, rank 2 of 3: column 2 (from 0) has no non-zero";
        assert_eq!(a(vec![0, 2, 4, 6], vec![0, 1, 0, 1, 0, 1]), column);
    }

    #[test]
    fn empty_rectangular_and_nan() {
        let empty = Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap();
        assert!(maximum_product_matching(&empty).unwrap().rows.is_empty());
        let wide = Csr::new(1, 2, vec![0, 1], vec![0], vec![1.0]).unwrap();
        assert!(matches!(maximum_product_matching(&wide), Err(MatchingError::Input(Error::NotSquare { .. }))));
        let nan = Csr::new(1, 1, vec![0, 1], vec![0], vec![f64::NAN]).unwrap();
        assert!(matches!(maximum_product_matching(&nan), Err(MatchingError::Input(Error::NonFinite { .. }))));
    }
}
