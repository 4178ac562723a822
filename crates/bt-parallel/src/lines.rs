//! Many tridiagonal systems whose lines cross the ranks: eliminated on each rank, and what is left sent round once and back.
//!
//! L lines of n unknowns, of which each rank has the rows of its range, the same for all lines. The modified Thomas algorithm leaves each row of a
//! rank with its first and last unknown alone:
//!
//! ```text
//! aᵢ·xᵢ₋₁ + bᵢ·xᵢ + cᵢ·xᵢ₊₁ = dᵢ     ⟶     xᵢ + âᵢ·x_first + ĉᵢ·x_last = d̂ᵢ             inside
//!                                         x_first + â·x_before + ĉ·x_last  = d̂
//!                                         x_last  + â·x_first  + ĉ·x_after = d̂
//! ```
//!
//! The first and last rows of all ranks are a tridiagonal system of at most 2p rows for each line. One all-to-all brings the rows of a line
//! together, each rank having L/p lines whole; these are solved by the Thomas algorithm, and another all-to-all takes x_first and x_last back.
//! K.-H. Kim, J.-H. Kang, X. Pan, J.-I. Choi, PaScaL_TDMA: a library of parallel and scalable solvers for massive tridiagonal systems, Comput.
//! Phys. Commun. 260 (2021) 107722, doi:10.1016/j.cpc.2020.107722; the elimination is that of E. László, M. Giles, J. Appleyard, ACM Trans. Math.
//! Softw. 42 (2016) 31, doi:10.1145/2830568.
//!
//! Nothing is exchanged: each pivot has to be usable, as in dominant and in positive definite systems. A pivot of zero is a breakdown.
//!
//! Storage: 5 scalars a row and line, and 3 of each row of the whole lines. Counted, a solve on a rank: two all-to-alls of s·r·L
//! and of s·R·L_own bytes but for the part to itself, r = min(rows, 2), R their sum, L_own its whole lines; factoring one of
//! twice the size of the first. Flops of a solve: 9 a row and line.

use bt_formats::{Scalar, zero};

use crate::comm::{Comm, Number, Parts};
use crate::error::{Fault, FaultKind, Result, agree};

/// Factors of the lines: the rows of this rank, and the reduced systems of its whole lines.
///
/// ```
/// use bt_parallel::{Comm, Lines, thread_comm};
/// // Two lines of four unknowns, −1 2 −1 and −1 3 −1, on two ranks: entry l of row i is at i·2 + l.
/// let solved = thread_comm::run(2, |comm| {
///     let (beside, own) = ([-1.0; 4], [2.0, 3.0, 2.0, 3.0]);
///     let lines = Lines::new(comm, 2, &beside, &own, &beside)?;
///     let mut x = if comm.rank() == 0 { [1.0, 2.0, 0.0, 1.0] } else { [0.0, 1.0, 1.0, 2.0] };
///     lines.solve_in_place(&mut x)?;
///     Ok(x)
/// });
/// assert!(solved.into_iter().flat_map(|x| x.unwrap()).all(|x: f64| (x - 1.0).abs() < 1e-15));
/// ```
pub struct Lines<'c, T: Number, C: Comm> {
    comm: &'c C,
    /// Lines, L.
    width: usize,
    rows: usize,
    /// Of each row and line: the entry left of the diagonal, the reciprocal pivot, and ĉ as it is before the rows above change it.
    lower: Vec<T>,
    reciprocal: Vec<T>,
    upper: Vec<T>,
    /// â and ĉ.
    to_first: Vec<T>,
    to_last: Vec<T>,
    /// 1/(1 − â₁·ĉ₀) of each line, where there is a row between the first and the last.
    top: Vec<T>,
    /// Rows that each rank has in the reduced systems.
    reduced_rows: Vec<usize>,
    reduced: Reduced<T>,
}

/// Thomas factors of whole reduced lines, row by row.
struct Reduced<T> {
    /// Whole lines of this rank.
    width: usize,
    rows: usize,
    lower: Vec<T>,
    reciprocal: Vec<T>,
    upper: Vec<T>,
}

impl<'c, T: Number, C: Comm> Lines<'c, T, C> {
    /// Factors L = `n_lines` lines: entry l of row i of the rank is at i·L + l of the three diagonals. The first entries of the lower and the last
    /// of the upper diagonal of a whole line are not read; those between ranks are. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] for diagonals that are no whole number of rows or of different lengths, entries that are not finite, and a pivot
    /// of zero, with its line; and where the number of lines differs. Those of the communicator.
    pub fn new(comm: &'c C, n_lines: usize, lower: &[T], diagonal: &[T], upper: &[T]) -> Result<Self> {
        let rows = agree(comm, checked_rows(n_lines, [lower, diagonal, upper]))?;
        let known = comm.all_gather(&[rows as u64, n_lines as u64])?;
        let other = (0..comm.size()).find(|&rank| known.part(rank)[1] != n_lines as u64);
        let same = other.map_or(Ok(()), |rank| {
            Err(Fault::input(format!("{n_lines} lines, and rank {rank} has {}", known.part(rank)[1])))
        });
        agree(comm, same)?;
        let counts: Vec<usize> = (0..comm.size()).map(|rank| known.part(rank)[0] as usize).collect();
        let (mut lower, mut upper) = (lower.to_vec(), upper.to_vec());
        // Beyond the ends of a line there is nothing.
        let filled = |range: std::ops::Range<usize>| counts[range].iter().sum::<usize>() > 0;
        if rows > 0 && !filled(0..comm.rank()) {
            lower[..n_lines].fill(zero());
        }
        if rows > 0 && !filled(comm.rank() + 1..comm.size()) {
            upper[(rows - 1) * n_lines..].fill(zero());
        }
        let reduced_rows = counts.iter().map(|&rows| rows.min(2)).collect();
        let nothing = Reduced { width: 0, rows: 0, lower: vec![], reciprocal: vec![], upper: vec![] };
        let (to_first, to_last) = (lower.clone(), upper.clone());
        let (reciprocal, top) = (diagonal.to_vec(), Vec::new());
        let mut lines = Self {
            comm,
            width: n_lines,
            rows,
            lower,
            reciprocal,
            upper,
            to_first,
            to_last,
            top,
            reduced_rows,
            reduced: nothing,
        };
        let eliminated = lines.eliminate();
        agree(comm, eliminated)?;
        lines.factor_reduced()?;
        Ok(lines)
    }

    /// Rows of this rank.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The same row of all lines.
    fn row(&self, i: usize) -> std::ops::Range<usize> {
        i * self.width..(i + 1) * self.width
    }

    /// The lines that a rank has whole.
    fn lines_of(&self, rank: usize) -> std::ops::Range<usize> {
        let p = self.comm.size();
        rank * self.width / p..(rank + 1) * self.width / p
    }

    /// â and ĉ of all rows.
    fn eliminate(&mut self) -> Result<(), Fault> {
        let (m, n) = (self.rows, self.width);
        for i in 0..m {
            for l in 0..n {
                let k = i * n + l;
                // The first two rows are divided by their diagonal only; from then on row i − 1 is taken from row i.
                let mut pivot = self.reciprocal[k];
                if i >= 2 {
                    // pivot ← bᵢ − aᵢ·ĉᵢ₋₁;  âᵢ ← −aᵢ·âᵢ₋₁/pivot
                    pivot -= self.lower[k] * self.to_last[k - n];
                    self.to_first[k] = -self.lower[k] * self.to_first[k - n];
                }
                self.reciprocal[k] = inverse(pivot).ok_or_else(|| zero_pivot(l, "row", i))?;
                self.to_first[k] *= self.reciprocal[k];
                self.to_last[k] *= self.reciprocal[k];
            }
        }
        // Multipliers of the way back, before it changes them.
        self.upper.copy_from_slice(&self.to_last);
        for i in (1..m.saturating_sub(2)).rev() {
            for k in self.row(i) {
                // âᵢ ← âᵢ − ĉᵢ·âᵢ₊₁;  ĉᵢ ← −ĉᵢ·ĉᵢ₊₁
                let c = self.upper[k];
                let (a_next, c_next) = (self.to_first[k + n], self.to_last[k + n]);
                self.to_first[k] -= c * a_next;
                self.to_last[k] = -c * c_next;
            }
        }
        if m > 2 {
            for l in 0..n {
                // x₀ + â₀·x_before − ĉ₀·(â₁·x₀ + ĉ₁·x_last) = …
                let c = self.upper[l];
                let top =
                    inverse(T::rounded(1.0, 0.0) - c * self.to_first[n + l]).ok_or_else(|| zero_pivot(l, "row", 0))?;
                self.to_first[l] *= top;
                self.to_last[l] = -c * self.to_last[n + l] * top;
                self.top.push(top);
            }
        }
        Ok(())
    }

    /// The first and last rows of all `of` for the lines of each rank, one row after the other.
    fn ends(&self, of: &[&[T]]) -> Parts<T> {
        Parts::new((0..self.comm.size()).map(|rank| {
            let mut part = Vec::new();
            for i in self.end_rows() {
                for values in of {
                    part.extend_from_slice(&values[i * self.width..][self.lines_of(rank)]);
                }
            }
            part
        }))
    }

    /// The first and the last row, as far as there are any.
    fn end_rows(&self) -> impl Iterator<Item = usize> + use<T, C> {
        let m = self.rows;
        (0..m.min(1)).chain((m > 1).then(|| m - 1))
    }

    /// The all-to-all of coefficients, and Thomas factors of what comes.
    fn factor_reduced(&mut self) -> Result<()> {
        let own = self.lines_of(self.comm.rank());
        let n = own.len();
        let mut heard = Parts::zeros(self.reduced_rows.iter().map(|rows| 2 * rows * n));
        self.comm.all_to_all_into(&self.ends(&[&self.to_first, &self.to_last]), &mut heard)?;
        let rows: usize = self.reduced_rows.iter().sum();
        let (mut lower, mut upper) = (Vec::with_capacity(rows * n), Vec::with_capacity(rows * n));
        if n > 0 {
            for pair in heard.values().chunks_exact(2 * n) {
                lower.extend_from_slice(&pair[..n]);
                upper.extend_from_slice(&pair[n..]);
            }
        }
        let mut reciprocal = vec![T::rounded(1.0, 0.0); rows * n];
        let mut fault = Ok(());
        for k in 0..rows * n {
            // pivot ← 1 − aᵢ·cᵢ₋₁;  cᵢ ← cᵢ/pivot
            let above = if k >= n { lower[k] * upper[k - n] } else { zero() };
            match inverse(reciprocal[k] - above) {
                Some(inverse) => {
                    reciprocal[k] = inverse;
                    upper[k] *= inverse;
                }
                None if fault.is_ok() => fault = Err(zero_pivot(own.start + k % n, "reduced row", k / n)),
                None => {}
            }
        }
        self.reduced = Reduced { width: n, rows, lower, reciprocal, upper };
        agree(self.comm, fault)
    }

    /// X ← A⁻¹·X for the rows of this rank, entry l of row i at i·L + l. A collective.
    ///
    /// # Errors
    /// Those of the communicator.
    ///
    /// # Panics
    /// When the length is not that of the diagonals.
    ///
    /// # Cost
    /// Two all-to-alls, 9 flops a row and line.
    pub fn solve_in_place(&self, x: &mut [T]) -> Result<()> {
        let (m, n) = (self.rows, self.width);
        assert_eq!(x.len(), m * n, "entries of the right-hand sides");
        for i in 0..m {
            for k in self.row(i) {
                // d̂ᵢ ← (dᵢ − aᵢ·d̂ᵢ₋₁)/pivot
                let above = if i >= 2 { self.lower[k] * x[k - n] } else { zero() };
                x[k] = (x[k] - above) * self.reciprocal[k];
            }
        }
        for i in (1..m.saturating_sub(2)).rev() {
            for k in self.row(i) {
                // d̂ᵢ ← d̂ᵢ − ĉᵢ·d̂ᵢ₊₁
                let below = self.upper[k] * x[k + n];
                x[k] -= below;
            }
        }
        if m > 2 {
            for l in 0..n {
                x[l] = (x[l] - self.upper[l] * x[n + l]) * self.top[l];
            }
        }
        // The rows of whole lines come, their unknowns go back.
        let own = self.reduced.width;
        let mut whole = Parts::zeros(self.reduced_rows.iter().map(|rows| rows * own));
        self.comm.all_to_all_into(&self.ends(&[x]), &mut whole)?;
        let mut lines: Vec<T> = whole.values().to_vec();
        self.reduced.solve(&mut lines);
        let mut rest = &lines[..];
        let back = Parts::new(self.reduced_rows.iter().map(|rows| {
            let (part, after) = rest.split_at(rows * own);
            rest = after;
            part
        }));
        let mut ends = Parts::zeros((0..self.comm.size()).map(|rank| m.min(2) * self.lines_of(rank).len()));
        self.comm.all_to_all_into(&back, &mut ends)?;
        for rank in 0..self.comm.size() {
            let lines = self.lines_of(rank);
            let part = ends.part(rank);
            for (e, i) in self.end_rows().enumerate() {
                x[i * n..][lines.clone()].copy_from_slice(&part[e * lines.len()..][..lines.len()]);
            }
        }
        for i in 1..m.saturating_sub(1) {
            for l in 0..n {
                // xᵢ ← d̂ᵢ − âᵢ·x_first − ĉᵢ·x_last
                let k = i * n + l;
                let (first, last) = (x[l], x[(m - 1) * n + l]);
                x[k] -= self.to_first[k] * first + self.to_last[k] * last;
            }
        }
        Ok(())
    }
}

impl<T: Number> Reduced<T> {
    /// The Thomas algorithm for all lines side by side.
    fn solve(&self, x: &mut [T]) {
        let n = self.width;
        for k in 0..x.len() {
            let above = if k >= n { self.lower[k] * x[k - n] } else { zero() };
            x[k] = (x[k] - above) * self.reciprocal[k];
        }
        for k in (0..(self.rows * n).saturating_sub(n)).rev() {
            let below = self.upper[k] * x[k + n];
            x[k] -= below;
        }
    }
}

/// Rows of the rank.
fn checked_rows<T: Number>(n_lines: usize, diagonals: [&[T]; 3]) -> Result<usize, Fault> {
    let lengths = diagonals.map(<[T]>::len);
    if n_lines == 0 || lengths != [lengths[0]; 3] || lengths[0] % n_lines != 0 {
        let why = format!("diagonals of {lengths:?} entries are not rows of {n_lines} lines");
        return Err(Fault::input(why));
    }
    for (name, diagonal) in ["lower", "main", "upper"].into_iter().zip(diagonals) {
        if let Some(k) = diagonal.iter().position(|v| !Scalar::is_finite(*v)) {
            let (i, l) = (k / n_lines, k % n_lines);
            let why = format!("{name} diagonal: row {i} of line {l} is {}, not a finite number", diagonal[k]);
            return Err(Fault::input(why));
        }
    }
    Ok(lengths[0] / n_lines)
}

/// 1/v where that is finite.
fn inverse<T: Number>(v: T) -> Option<T> {
    let inverse = T::rounded(1.0, 0.0) / v;
    (v != zero() && Scalar::is_finite(inverse)).then_some(inverse)
}

fn zero_pivot(line: usize, what: &str, row: usize) -> Fault {
    let message = format!("no pivot in its {what} {row} of line {line}: elimination without interchanges needs one");
    Fault::new(FaultKind::Breakdown, message)
}
