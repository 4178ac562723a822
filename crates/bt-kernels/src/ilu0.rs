//! ILU(0) and IC(0) on the device: the factorization, and the solves with L and U.
//!
//! Rows and results are those of [`bt_iter::ilu0`] and [`bt_iter::ic0`] to the bit, but where a pivot is replaced, whose terms are added
//! up in another order (Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., Algorithm 10.4,
//! doi:10.1137/1.9780898718003). The factorization is one launch, a solve with each triangle another (`kernels/ilu0.cu`): rows in the
//! order of their levels, each waiting for the values it needs and for nothing else. A barrier a level would cost as many waits for the
//! whole device, or launches, as there are levels, which are many and small where the order of A is a band's.
//!
//! Solves read copies of L and U by levels, whose neighbours lie side by side. Jacobi sweeps (H. Anzt, E. Chow, J. Dongarra, Euro-Par
//! 2015, doi:10.1007/978-3-662-48096-0_50) need no order and read the factors where they were made.
//!
//! Storage for z entries off the diagonal, values of s bytes: the pattern 4z + 16n, A and the factors 2s·z + 3s·n; the copies by levels
//! (8 + s)z + 20n + 3s·n, or 2s·n for sweeps. Traffic of an application: z(s + 4) + 20n + 8s·n bytes and gathers, 2z + n flops; of m sweeps
//! m(z(s + 4) + 16n + 5s·n) + 3s·n bytes and gathers, 2m·z flops.

use bt_direct::{FactorError, Place};
use bt_formats::{Csr, Error as InputError, LinearOperator, zero};
use bt_iter::{TriangularSolves, positive_diagonal};

use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};
use crate::ilut::FactorsAt;
use crate::preconditioner::{Apply, InverseFacts};
use crate::sweep::{Rows, Step, Sweep, SweepKernel};

/// What becomes of a pivot that cannot be divided by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pivots {
    /// One of at most 64ε of the terms that were added up to make it is replaced by 10⁻⁴ of them: ILU(0).
    Replaced,
    /// All have to be positive, of A + α·diag(A) with α the first of 0, 10⁻³, 2·10⁻³, … that works: IC(0).
    Positive,
}

/// What becomes of entries of A that the pattern has no place for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// They are an error: the pattern is that of A.
    Refused,
    /// They are dropped: the pattern was searched.
    Dropped,
}

impl Outside {
    pub fn method(self, pivots: Pivots) -> &'static str {
        match (self, pivots) {
            (Self::Refused, Pivots::Replaced) => "ilu0",
            (Self::Refused, Pivots::Positive) => "ic0",
            (Self::Dropped, Pivots::Replaced) => "ilut",
            (Self::Dropped, Pivots::Positive) => "ict",
        }
    }
}

/// The first α tried after a breakdown, and the last.
const FIRST_SHIFT: f64 = 1e-3;
const LAST_SHIFT: f64 = 16.0;

/// The pattern on the host: columns increase, the diagonal of row i is at diag[i].
pub(crate) struct Pattern {
    pub ptr: Vec<u32>,
    pub col: Vec<u32>,
    pub diag: Vec<u32>,
}

impl Pattern {
    /// The places of `a` and of the diagonal.
    fn of<T: DeviceScalar>(a: &Csr<T>) -> Result<Self> {
        let n = a.nrows();
        let (mut ptr, mut col, mut diag) = (vec![0], Vec::with_capacity(a.values().len() + n), Vec::with_capacity(n));
        for i in 0..n {
            let columns = a.row(i).0;
            let (left, rest) = columns.split_at(columns.partition_point(|&j| (j as usize) < i));
            col.extend_from_slice(left);
            diag.push(col.len() as u32);
            col.push(i as u32);
            col.extend(rest.iter().filter(|&&j| j as usize > i));
            ptr.push(end(col.len())?);
        }
        Ok(Self { ptr, col, diag })
    }

    /// With a place at (j, i) for each at (i, j).
    pub fn with_transpose(&self) -> Result<Self> {
        let n = self.n();
        // Columns of the transpose, by rows: they increase, since rows are taken in order.
        let mut starts = vec![0usize; n + 1];
        self.col.iter().for_each(|&j| starts[j as usize + 1] += 1);
        (0..n).for_each(|j| starts[j + 1] += starts[j]);
        let (mut next, mut transposed) = (starts.clone(), vec![0u32; self.col.len()]);
        for i in 0..n {
            for &j in &self.col[self.ptr[i] as usize..self.ptr[i + 1] as usize] {
                transposed[next[j as usize]] = i as u32;
                next[j as usize] += 1;
            }
        }
        let (mut ptr, mut col, mut diag) = (vec![0], Vec::with_capacity(self.col.len()), Vec::with_capacity(n));
        for i in 0..n {
            let (own, other) = (self.ptr[i] as usize..self.ptr[i + 1] as usize, starts[i]..starts[i + 1]);
            let from = col.len();
            col.extend_from_slice(&self.col[own]);
            col.extend_from_slice(&transposed[other]);
            col[from..].sort_unstable();
            let row = col.split_off(from);
            col.extend(row.iter().enumerate().filter(|&(k, &j)| k == 0 || row[k - 1] != j).map(|(_, &j)| j));
            diag.push((from + col[from..].partition_point(|&j| (j as usize) < i)) as u32);
            ptr.push(end(col.len())?);
        }
        Ok(Self { ptr, col, diag })
    }

    fn n(&self) -> usize {
        self.diag.len()
    }

    /// Columns left of the diagonal.
    fn left(&self, i: usize) -> std::ops::Range<usize> {
        self.ptr[i] as usize..self.diag[i] as usize
    }

    /// Columns right of it.
    fn right(&self, i: usize) -> std::ops::Range<usize> {
        self.diag[i] as usize + 1..self.ptr[i + 1] as usize
    }

    /// The values of `a` in these places, zero where it has none.
    fn place<T: DeviceScalar>(&self, a: &Csr<T>, outside: Outside) -> Result<Vec<T>> {
        let mut values = vec![zero::<T>(); self.col.len()];
        for i in 0..self.n() {
            let (mut at, end) = (self.ptr[i] as usize, self.ptr[i + 1] as usize);
            let (cols, vals) = a.row(i);
            for (&j, &v) in cols.iter().zip(vals) {
                at += self.col[at..end].partition_point(|&c| c < j);
                if at == end || self.col[at] != j {
                    if outside == Outside::Dropped {
                        continue;
                    }
                    let why = "is outside the pattern that was factored".into();
                    return Err(InputError::OutsideStructure { row: i, col: j as usize, why }.into());
                }
                values[at] = v;
            }
        }
        Ok(values)
    }
}

/// A pointer behind so many entries.
fn end(entries: usize) -> Result<u32> {
    let too_large = |_| {
        let (needed, limit) = (format!("{entries} entries"), "2^32 - 1".into());
        InputError::TooLarge { what: "the pattern of incomplete factors", needed, limit }.into()
    };
    u32::try_from(entries).map_err(too_large)
}

/// Rows of a triangle in the order of their levels.
struct Levels {
    /// Row at each position; position of each row.
    order: Vec<u32>,
    position: Vec<u32>,
    count: usize,
}

impl Levels {
    /// `rows` in an order in which each comes after those that it waits for.
    fn new<'a>(n: usize, rows: impl Iterator<Item = usize>, waits: impl Fn(usize) -> &'a [u32]) -> Self {
        let mut level = vec![0u32; n];
        let mut starts = vec![0u32];
        for i in rows {
            let own = waits(i).iter().map(|&j| level[j as usize] + 1).max().unwrap_or(0);
            level[i] = own;
            starts.resize(starts.len().max(own as usize + 2), 0);
            starts[own as usize + 1] += 1;
        }
        let count = starts.len() - 1;
        for l in 0..count {
            starts[l + 1] += starts[l];
        }
        let (mut order, mut position) = (vec![0u32; n], vec![0u32; n]);
        for i in 0..n {
            let place = &mut starts[level[i] as usize];
            (position[i], order[*place as usize]) = (*place, i as u32);
            *place += 1;
        }
        Self { order, position, count }
    }
}

/// Lanes of a row with so many entries in a triangle: few entries leave more than one idle.
fn lanes(entries: usize, n: usize) -> u64 {
    match entries.div_ceil(2 * n.max(1)) {
        0..=4 => 1,
        5..=32 => 8,
        _ => 32,
    }
}

/// A triangle by levels: struct Triangle of the kernels.
struct Triangle<T: DeviceScalar> {
    ptr: DeviceVec<u32>,
    idx: DeviceVec<u32>,
    /// Where each value is among the factors.
    from: DeviceVec<u32>,
    val: DeviceVec<T>,
    source: DeviceVec<u32>,
    x: DeviceVec<T>,
    kernel: Kernel,
}

impl<T: DeviceScalar> Triangle<T> {
    /// `row(i)` are the places of row i of the pattern, in the order of the sum.
    fn new<I: Iterator<Item = usize>>(
        device: &Device,
        pattern: &Pattern,
        levels: &Levels,
        row: impl Fn(usize) -> I,
        source: &[u32],
        kernel: &str,
    ) -> Result<Self> {
        let (mut ptr, mut from) = (vec![0], Vec::new());
        for &i in &levels.order {
            from.extend(row(i as usize).map(|e| e as u32));
            ptr.push(from.len() as u32);
        }
        let idx: Vec<u32> = from.iter().map(|&e| levels.position[pattern.col[e as usize] as usize]).collect();
        Ok(Self {
            ptr: DeviceVec::from_slice(device, &ptr)?,
            idx: DeviceVec::from_slice(device, &idx)?,
            from: DeviceVec::from_slice(device, &from)?,
            val: DeviceVec::uninitialized(device, from.len())?,
            source: DeviceVec::from_slice(device, source)?,
            x: DeviceVec::uninitialized(device, pattern.n())?,
            kernel: device.kernel(Family::Ilu0, kernel)?,
        })
    }

    fn bytes(&self) -> usize {
        let indices = [&self.ptr, &self.idx, &self.from, &self.source].map(DeviceVec::bytes);
        indices.iter().sum::<usize>() + self.val.bytes() + self.x.bytes()
    }
}

/// Both triangles by levels.
struct ByLevels<T: DeviceScalar> {
    lower: Triangle<T>,
    upper: Triangle<T>,
    /// Row at each position of U, and 1 / its diagonal.
    order: DeviceVec<u32>,
    reciprocals: DeviceVec<T>,
    /// Tickets of L and of U.
    tickets: DeviceVec<u32>,
}

/// L and U for solves by Jacobi sweeps.
struct BySweeps<T: DeviceScalar> {
    count: usize,
    lower: Rows,
    upper: Rows,
    kernel: SweepKernel,
    buffers: DeviceVec<T>,
}

impl<T: DeviceScalar> BySweeps<T> {
    fn sweeps(&self, r: u64, z: u64) -> Vec<Sweep> {
        let Self { count, ref lower, ref upper, ref kernel, ref buffers } = *self;
        let buffer = |k: usize| buffers.address() + (k % 2 * buffers.bytes() / 2) as u64;
        let mut sweeps = Vec::with_capacity(2 * count + 1);
        // y ← r − N·y, from r on
        let mut y = r;
        for k in 0..count {
            sweeps.push(kernel.sweep(lower, r, y, buffer(k)));
            y = buffer(k);
        }
        // z ← D⁻¹·(y − N·z), from D⁻¹·y on, in turns with the buffer that y is not in
        let mut x = 0;
        for k in 0..=count {
            let to = if (count - k) % 2 == 0 { z } else { buffer(count) };
            sweeps.push(kernel.sweep(upper, y, x, to));
            x = to;
        }
        sweeps
    }
}

/// How L and U are solved with.
enum Solves<T: DeviceScalar> {
    Levels(Box<ByLevels<T>>),
    Sweeps(Box<BySweeps<T>>),
}

pub(crate) struct Ilu0<T: DeviceScalar> {
    pivots: Pivots,
    outside: Outside,
    pattern: Pattern,
    facts: InverseFacts,
    ptr: DeviceVec<u32>,
    col: DeviceVec<u32>,
    diag: DeviceVec<u32>,
    /// Rows by levels of L.
    order: DeviceVec<u32>,
    /// A, overwritten.
    values: DeviceVec<T>,
    /// L and U, and 1 / the diagonal of U behind them.
    factors: DeviceVec<T>,
    status: DeviceVec<u32>,
    factor: Kernel,
    gather: Kernel,
    mark: Kernel,
    shape: Shape,
    solves: Solves<T>,
}

impl<T: DeviceScalar> Ilu0<T> {
    /// Factors `a`.
    ///
    /// # Errors
    /// As [`bt_iter::ilu0`] or [`bt_iter::ic0`]; errors of the device.
    pub fn new(device: &Device, a: &Csr<T>, pivots: Pivots, solves: TriangularSolves) -> Result<Self> {
        a.check_square()?;
        Self::on(device, a, Pattern::of(a)?, Outside::Refused, pivots, solves)
    }

    /// Factors `a` on a pattern of as many rows.
    ///
    /// # Errors
    /// As [`Ilu0::new`].
    pub fn on(
        device: &Device,
        a: &Csr<T>,
        pattern: Pattern,
        outside: Outside,
        pivots: Pivots,
        solves: TriangularSolves,
    ) -> Result<Self> {
        let n = a.nrows();
        let (nnz, suffix) = (pattern.col.len(), T::SUFFIX);
        let lanes = lanes(nnz - n, n);
        let lower = Levels::new(n, 0..n, |i| &pattern.col[pattern.left(i)]);
        let upper = Levels::new(n, (0..n).rev(), |i| &pattern.col[pattern.right(i)]);
        let kernel = |name: &str| device.kernel(Family::Ilu0, name);
        let [ptr, col, diag] = [&pattern.ptr, &pattern.col, &pattern.diag].map(|v| DeviceVec::from_slice(device, v));
        let (ptr, col, diag) = (ptr?, col?, diag?);
        let factors = DeviceVec::<T>::uninitialized(device, nnz + n)?;
        let reciprocals = factors.address() + (nnz * size_of::<T>()) as u64;
        let shape = Shape::over(n as u64 * lanes);
        let solves = match solves {
            TriangularSolves::Levels => {
                let source: Vec<u32> = upper.order.iter().map(|&i| lower.position[i as usize]).collect();
                let name = |which| format!("ilu0_{which}_{lanes}_{suffix}");
                // Towards the diagonal, as on the processor.
                let (left, right) = (|i| pattern.left(i), |i| pattern.right(i).rev());
                Solves::Levels(Box::new(ByLevels {
                    lower: Triangle::new(device, &pattern, &lower, left, &lower.order, &name("lower"))?,
                    upper: Triangle::new(device, &pattern, &upper, right, &source, &name("upper"))?,
                    order: DeviceVec::from_slice(device, &upper.order)?,
                    reciprocals: DeviceVec::uninitialized(device, n)?,
                    tickets: DeviceVec::from_slice(device, &[0, 0])?,
                }))
            }
            TriangularSolves::Sweeps(count) => {
                let all = Rows::all(n, [ptr.address(), col.address(), factors.address()]);
                Solves::Sweeps(Box::new(BySweeps {
                    count,
                    lower: Rows { end: diag.address(), ..all },
                    upper: Rows { begin: diag.address(), skip: 1, factor: reciprocals, ..all },
                    kernel: SweepKernel::new::<T>(device, (nnz - n) / 2, n)?,
                    buffers: DeviceVec::uninitialized(device, 2 * n)?,
                }))
            }
        };
        let launches = if let Solves::Sweeps(s) = &solves { 2 * s.count + 1 } else { 2 };
        let levels = Some((lower.count, upper.count));
        let mut made = Self {
            pivots,
            outside,
            facts: InverseFacts { nnz, launches, levels, ..InverseFacts::default() },
            ptr,
            col,
            diag,
            order: DeviceVec::from_slice(device, &lower.order)?,
            values: DeviceVec::uninitialized(device, nnz)?,
            factors,
            status: DeviceVec::uninitialized(device, 4)?,
            factor: kernel(&format!("ilu0_factor_{lanes}_{suffix}"))?,
            gather: kernel(&format!("ilu0_gather_{suffix}"))?,
            mark: kernel(&format!("ilu0_mark_{suffix}"))?,
            shape,
            solves,
            pattern,
        };
        made.refactor(a)?;
        Ok(made)
    }

    /// M of a matrix whose entries the pattern has a place for. After an error applications give NaN until the next success.
    ///
    /// # Errors
    /// As [`Ilu0::new`]; [`InputError::DimensionMismatch`], [`InputError::OutsideStructure`].
    pub fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        let done = self.eliminate(a);
        if done.is_err() {
            // NaN for the diagonal of U.
            self.fill(self.reciprocals(), self.pattern.n())?;
        }
        if let Solves::Levels(s) = &self.solves {
            for triangle in [&s.lower, &s.upper] {
                self.copy(self.factors.address(), &triangle.from, &triangle.val)?;
                self.fill(triangle.x.address(), triangle.x.len())?;
            }
            self.copy(self.reciprocals(), &s.order, &s.reciprocals)?;
        }
        done
    }

    /// Entries of L and U, the diagonal included.
    pub fn entries(&self) -> usize {
        self.pattern.col.len()
    }

    pub fn factors_at(&self) -> FactorsAt {
        let [ptr, col, diag] = [&self.ptr, &self.col, &self.diag].map(DeviceVec::address);
        FactorsAt { ptr, col, diag, val: self.factors.address(), reciprocal: self.reciprocals() }
    }

    /// Address of 1 / the diagonal of U.
    fn reciprocals(&self) -> u64 {
        self.factors.address() + (self.pattern.col.len() * size_of::<T>()) as u64
    }

    /// to ← from at the places `at`.
    fn copy(&self, from: u64, at: &DeviceVec<u32>, to: &DeviceVec<T>) -> Result<()> {
        let count = at.len() as u64;
        self.gather.launch(Shape::over(count), &[Arg::Word(count), at.arg(), Arg::Word(from), to.arg()])
    }

    /// Marks, which are NaN.
    fn fill(&self, at: u64, count: usize) -> Result<()> {
        self.mark.launch(Shape::over(count as u64), &[Arg::Word(count as u64), Arg::Word(at)])
    }

    fn eliminate(&mut self, a: &Csr<T>) -> Result<()> {
        a.check_square()?;
        let (expected, found) = (self.pattern.n(), a.nrows());
        if found != expected {
            return Err(InputError::DimensionMismatch { what: "size of the matrix", expected, found }.into());
        }
        a.check_finite()?;
        let method = self.outside.method(self.pivots);
        if self.pivots == Pivots::Positive {
            positive_diagonal(a, method)?;
        }
        let values = self.pattern.place(a, self.outside)?;
        let broken =
            |row: u32, reason: String| Err(FactorError::breakdown(method, Place::Row(row as usize), reason).into());
        let (mut shift, mut breakdowns) = (0.0, 0);
        loop {
            let [replaced, stopped, overflowed] = self.attempt(&values, shift)?;
            if stopped.min(overflowed) == u32::MAX {
                let facts = &mut self.facts;
                (facts.replaced_pivots, facts.shift, facts.breakdowns) = (replaced as usize, shift, breakdowns);
                return Ok(());
            }
            if overflowed < stopped {
                let row = overflowed;
                let reason = format!("elements overflow in row {row} (from 0); scale the matrix, or use matching");
                return broken(row, reason);
            }
            if shift >= LAST_SHIFT {
                let reason = format!("no positive pivot in row {stopped} (from 0), also of A + {shift}·diag(A)");
                return broken(stopped, reason);
            }
            breakdowns += 1;
            shift = if shift == 0.0 { FIRST_SHIFT } else { 2.0 * shift };
        }
    }

    /// Pivots replaced; the first row without a positive pivot, and the first that overflows.
    fn attempt(&mut self, values: &[T], shift: f64) -> Result<[u32; 3]> {
        self.values.copy_from(values)?;
        self.status.copy_from(&[0, u32::MAX, u32::MAX, 0])?;
        self.fill(self.factors.address(), self.factors.len())?;
        let positive = u64::from(self.pivots == Pivots::Positive);
        let epsilon = if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        // struct Pattern of the kernels
        let pattern = [
            self.pattern.n() as u64 | positive << 32,
            self.ptr.address(),
            self.col.address(),
            self.diag.address(),
            self.order.address(),
            self.values.address(),
            self.factors.address(),
            self.reciprocals(),
            self.status.address(),
            shift.to_bits(),
            (64.0 * epsilon).to_bits(),
        ];
        self.factor.launch(self.shape, &[Arg::Struct(&pattern)])?;
        let mut status = [0; 4];
        self.status.copy_to(&mut status)?;
        let [replaced, stopped, overflowed, _] = status;
        Ok([replaced, stopped, overflowed])
    }
}

impl<T: DeviceScalar> Apply<T> for Ilu0<T> {
    fn enqueue(&self, r: u64, z: u64, now: u64) -> Result<()> {
        let n = self.pattern.n() as u64;
        match &self.solves {
            Solves::Levels(s) => {
                let ByLevels { lower, upper, order, reciprocals, tickets } = &**s;
                let ticket = |k: u64| tickets.address() + 4 * k;
                let launch = |t: &Triangle<T>, [reciprocal, target]: [u64; 2], k, [rhs, out]: [u64; 2]| {
                    let [ptr, idx, source] = [&t.ptr, &t.idx, &t.source].map(DeviceVec::address);
                    let (own, other) = (ticket(k), ticket(1 - k));
                    let words = [n, ptr, idx, t.val.address(), reciprocal, source, target, t.x.address(), own, other];
                    t.kernel.launch(self.shape, &[Arg::Struct(&words), Arg::Word(rhs), Arg::Word(out), Arg::Word(now)])
                };
                // y ← L⁻¹·r, marks for x;  z ← U⁻¹·y, marks for y
                launch(lower, [0, 0], 0, [r, upper.x.address()])?;
                launch(upper, [reciprocals.address(), order.address()], 1, [lower.x.address(), z])
            }
            Solves::Sweeps(s) => s.kernel.run(&s.sweeps(r, z), now),
        }
    }

    fn parts(&self, r: u64, z: u64) -> Option<Vec<Step>> {
        let Solves::Sweeps(s) = &self.solves else { return None };
        Some(s.sweeps(r, z).into_iter().map(Step::Sweep).collect())
    }

    fn facts(&self) -> InverseFacts {
        self.facts
    }

    fn bytes(&self) -> usize {
        let indices = [&self.ptr, &self.col, &self.diag, &self.order, &self.status].map(DeviceVec::bytes);
        let solves = match &self.solves {
            Solves::Levels(s) => {
                s.lower.bytes() + s.upper.bytes() + s.order.bytes() + s.reciprocals.bytes() + s.tickets.bytes()
            }
            Solves::Sweeps(s) => s.buffers.bytes(),
        };
        indices.iter().sum::<usize>() + self.values.bytes() + self.factors.bytes() + solves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_the_rows_that_are_waited_for() {
        // 0 –, 1 ← 0, 2 –, 3 ← 1, 2
        let waits: [&[u32]; 4] = [&[], &[0], &[], &[1, 2]];
        let Levels { order, position, count } = Levels::new(4, 0..4, |i| waits[i]);
        assert_eq!((order, position, count), (vec![0, 2, 1, 3], vec![0, 2, 1, 3], 3));
        let none = Levels::new(0, 0..0, |_| &[]);
        assert_eq!((none.order.len(), none.count), (0, 0));
    }

    #[test]
    fn the_diagonal_is_part_of_the_pattern() {
        let a = Csr::from_dense(faer::mat![[1.0, 2.0, 0.0], [3.0, 0.0, 4.0], [0.0, 0.0, 5.0]].as_ref()).unwrap();
        let pattern = Pattern::of(&a).unwrap();
        assert_eq!((&pattern.ptr[..], &pattern.diag[..]), (&[0, 2, 5, 6][..], &[0, 3, 5][..]));
        assert_eq!(pattern.col, [0, 1, 0, 1, 2, 2]);
        assert_eq!(pattern.place(&a, Outside::Refused).unwrap(), [1.0, 2.0, 3.0, 0.0, 4.0, 5.0]);
        let full = Csr::from_dense(faer::mat![[1.0, 0.0, 7.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].as_ref()).unwrap();
        assert_eq!(pattern.place(&full, Outside::Dropped).unwrap(), [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
        assert!(pattern.place(&full, Outside::Refused).unwrap_err().to_string().contains("outside the pattern"));
    }

    #[test]
    fn a_pattern_with_its_transpose_is_symmetric() {
        // 0 · 2     0 · 2
        // 0 1 ·  →  0 1 2, with its transpose
        // · 1 2     · 1 2
        let a = Csr::from_dense(faer::mat![[1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]].as_ref()).unwrap();
        let both = Pattern::of(&a).unwrap().with_transpose().unwrap();
        assert_eq!((&both.ptr[..], &both.diag[..]), (&[0, 3, 6, 9][..], &[0, 4, 8][..]));
        assert_eq!(both.col, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
        let lower = Csr::from_dense(faer::mat![[1.0, 0.0], [1.0, 1.0]].as_ref()).unwrap();
        let both = Pattern::of(&lower).unwrap().with_transpose().unwrap();
        assert_eq!((&both.ptr[..], &both.col[..]), (&[0, 2, 4][..], &[0, 1, 0, 1][..]));
    }
}
