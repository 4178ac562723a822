//! Factors of a batch of tridiagonal matrices, kept in lanes.
//!
//! The operations and their order are those of [`crate::Thomas`] and [`crate::TridiagonalLu`], lane by lane: a system of a
//! batch has the bits it has alone. Storage: 3 values a row without, 4 and a flag with pivoting, for whole groups of sixteen
//! systems of the size of their largest, rounded up to a multiple of eight. Cost: as those types, sixteen systems at a time.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bt_formats::{Error, Op, Par, RealScalar, Scalar, one, zero};
use pulp::{Simd, WithSimd};

use super::TridiagonalBatch;
use crate::batch::lanes::{LANES, Lanes, TILE, Tile, divide, max_with, tile};
use crate::batch::shape::{Layout, Part, Scratch, Sizes, Source, check_len, pieces};
use crate::batch::{Failure, Pivoting, SystemStatus, Verdict};
use crate::columns::check_size;
use crate::error::Result;
use crate::factorization::LogDet;
use crate::lines::{self, apart};
use crate::memory::reserve;

/// Factored tridiagonal systems, for any number of right-hand sides.
///
/// ```
/// use bt_direct::batch::{BatchLu, Layout, Pivoting, TridiagonalBatch};
/// // A hundred times [2 -1; -1 2]
/// let repeat = |row: [f64; 2]| row.repeat(100);
/// let a = TridiagonalBatch::new(Layout::Strided, 2, repeat([0.0, -1.0]), repeat([2.0, 2.0]), repeat([-1.0, 0.0]))?;
/// let lu = BatchLu::with_options(&a, Pivoting::None)?;
/// assert!(lu.verdict().all_solved());
/// // The right-hand sides of one step may be the rows of a field, those of the next its columns.
/// let mut x = repeat([1.0, 1.0]);
/// lu.solve_in_place(&mut x, Layout::Strided)?;
/// assert!(x.iter().all(|v| (v - 1.0).abs() < 1e-15));
/// lu.solve_in_place(&mut x, Layout::Interleaved)?;
/// assert!(x.iter().all(|v| (v - 1.0).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct BatchLu<T> {
    shape: Sizes,
    pivoting: Pivoting,
    /// Rows of lanes, `per_row` for each row of a group: (l, d, w), or (l, d, u, s).
    factors: Vec<Lanes<T>>,
    /// Where rows i and i + 1 were exchanged; empty without pivoting.
    exchanged: Vec<[bool; LANES]>,
    /// First padded row of each group, and their number; empty for equal sizes.
    starts: Vec<usize>,
    verdict: Verdict,
}

/// What a piece of the factorization writes.
struct Factors<'a, T> {
    rows: &'a mut [Lanes<T>],
    exchanged: &'a mut [[bool; LANES]],
    /// First padded row.
    base: usize,
}

impl<T: Scalar> BatchLu<T> {
    /// Factors every system with pivoting. Those that fail are named by [`BatchLu::verdict`]; their solutions are NaN.
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] when there is not the memory.
    ///
    /// # Cost
    /// As [`crate::TridiagonalLu::new`]; [`BatchLu::bytes`].
    pub fn new(a: &TridiagonalBatch<T>) -> Result<Self> {
        Self::with_options(a, Pivoting::default())
    }

    /// Like [`BatchLu::new`], with pivoting or without.
    ///
    /// # Errors
    /// As [`BatchLu::new`].
    ///
    /// # Cost
    /// As [`crate::Thomas::new`] without pivoting.
    #[inline(never)]
    pub fn with_options(a: &TridiagonalBatch<T>, pivoting: Pivoting) -> Result<Self> {
        let shape = a.shape.clone();
        let mut starts = Vec::new();
        if let Sizes::Offsets(_) = shape {
            reserve(&mut starts, shape.n_groups() + 1)?;
            starts.push(0);
            for g in 0..shape.n_groups() {
                starts.push(starts[g] + shape.padded(&shape.group(g)));
            }
        }
        let mut out =
            Self { shape, pivoting, factors: Vec::new(), exchanged: Vec::new(), starts, verdict: Verdict::default() };
        let rows = out.row(out.shape.n_groups());
        let len = rows.saturating_mul(per_row(pivoting));
        reserve(&mut out.factors, len)?;
        out.factors.resize(len, Lanes::zero());
        if pivoting == Pivoting::Partial {
            reserve(&mut out.exchanged, rows)?;
            out.exchanged.resize(rows, [false; LANES]);
        }
        out.refactor(a)?;
        Ok(out)
    }

    /// Factors other matrices of the same number and sizes in the same memory. Where all succeed only a fixed scratch is
    /// allocated: 6 values a row of the longest system and thread.
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] on other sizes.
    #[inline(never)]
    pub fn refactor(&mut self, a: &TridiagonalBatch<T>) -> Result<()> {
        check_size("systems of the batch", self.shape.n_systems(), a.shape.n_systems())?;
        if self.shape != a.shape {
            let s = (0..self.n_systems()).find(|&s| self.shape.size(s) != a.shape.size(s)).unwrap_or(0);
            let (expected, found) = (self.shape.size(s), a.shape.size(s));
            return Err(Error::DimensionMismatch { what: "rows of a system of the batch", expected, found }.into());
        }
        let (shape, pivoting) = (&self.shape, self.pivoting);
        let rows = shape.most_rows();
        let par = Par::auto(size_of_val(&*self.factors));
        let pool = Scratch::pool(par, 0, rows.saturating_mul(6))?;
        let failures = Mutex::new(Vec::new());
        let starts = &self.starts;
        let first_row = |g: usize| first_row(shape, starts, g);
        let all = Factors { rows: &mut self.factors, exchanged: &mut self.exchanged, base: 0 };
        pieces(
            shape,
            a.groups(),
            par,
            all,
            &|part, g| Factors::split(part, first_row(g), pivoting),
            &|groups, part| {
                for g in groups {
                    let at = first_row(g) - part.base..first_row(g + 1) - part.base;
                    let width = per_row(pivoting);
                    let rows = &mut part.rows[width * at.start..width * at.end];
                    let exchanged = part.exchanged.get_mut(at).unwrap_or_default();
                    let doubtful = lines::dispatch::<T, _>(Factor { a, g, pivoting, rows: &mut *rows, exchanged });
                    for (lane, s) in shape.group(g).enumerate().filter(|(lane, _)| doubtful[*lane]) {
                        let status = Scratch::with(&pool, |scratch| {
                            let (system, rest) = a.gather(s, scratch.parts().1);
                            match pivoting {
                                Pivoting::None => system.thomas(rest, None),
                                Pivoting::Partial => system.pivoted(rest, None),
                            }
                        });
                        if status != SystemStatus::Solved {
                            rows.iter_mut().skip(1).step_by(width).for_each(|d| d.0[lane] = T::nan_impl());
                            let failure = Failure { system: s, status };
                            failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
                        }
                    }
                }
            },
        );
        self.verdict = Verdict::new(failures.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    /// Number of systems.
    pub fn n_systems(&self) -> usize {
        self.shape.n_systems()
    }
    /// Rows of all systems: the length of x.
    pub fn n_rows(&self) -> usize {
        self.shape.len()
    }
    /// Which elimination.
    pub fn pivoting(&self) -> Pivoting {
        self.pivoting
    }
    /// The systems that could not be factored.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }
    /// Bytes of the factors.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.factors) + size_of_val(&*self.exchanged) + size_of_val(&*self.starts)
    }

    /// First padded row of group g.
    fn row(&self, g: usize) -> usize {
        first_row(&self.shape, &self.starts, g)
    }

    /// The rows of system s among those of the factors.
    fn rows(&self, s: usize) -> Range<usize> {
        let first = self.row(s / LANES);
        first..first + self.shape.size(s)
    }

    /// The pivots of system s in their order; NaN where it failed.
    ///
    /// # Panics
    /// When there is no such system.
    pub fn pivots(&self, s: usize) -> impl ExactSizeIterator<Item = T> + '_ {
        self.rows(s).map(move |i| self.factors[per_row(self.pivoting) * i + 1].0[s % LANES])
    }

    /// log|det A| and the sign of system s.
    ///
    /// # Panics
    /// When there is no such system.
    pub fn log_det(&self, s: usize) -> LogDet<T> {
        let mut det = LogDet::one();
        for (i, pivot) in self.rows(s).zip(self.pivots(s)) {
            det.multiply(pivot);
            if self.exchanged.get(i).is_some_and(|e| e[s % LANES]) {
                det.negate();
            }
        }
        det
    }

    /// X ← A⁻¹·X for one right-hand side of each system, laid out as said: not necessarily as the matrices were. Solves
    /// allocate nothing and may run concurrently.
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] when `x` has another length, or is to be interleaved where sizes differ.
    ///
    /// # Cost
    /// A row: 4 flops and a division, 3 values of the factors and x read, x written (twice where the group exceeds the
    /// cache); with pivoting 7 flops and 4 values.
    pub fn solve_in_place(&self, x: &mut [T], layout: Layout) -> Result<()> {
        self.solve_op_in_place(Op::Identity, x, layout)
    }

    /// X ← op(A)⁻¹·X.
    ///
    /// # Errors
    /// As [`BatchLu::solve_in_place`].
    pub fn solve_op_in_place(&self, op: Op, x: &mut [T], layout: Layout) -> Result<()> {
        let bytes = size_of_val(&*self.factors);
        self.solve_with(op, x, layout, Par::auto(bytes))
    }

    /// As [`BatchLu::solve_op_in_place`] with the given parallelism. The bits are the same.
    ///
    /// # Errors
    /// As [`BatchLu::solve_in_place`].
    #[inline(never)]
    pub fn solve_with(&self, op: Op, x: &mut [T], layout: Layout, par: Par) -> Result<()> {
        check_len("right-hand sides of the batch", &self.shape, x.len())?;
        self.shape.check_layout(layout)?;
        self.substitute(op, None, &self.shape, Part::new(&self.shape, layout, x), par);
        Ok(())
    }

    /// Where the systems' vectors are in an array that has other things between them: the rows of each system, one after the other.
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] for other sizes than the systems have, and for rows that begin before those of the system before
    /// end.
    pub fn places(&self, rows: impl IntoIterator<Item = Range<usize>>) -> Result<Places> {
        let systems: Vec<Range<usize>> = rows.into_iter().collect();
        check_size("systems of the batch", self.n_systems(), systems.len())?;
        let mut end = 0;
        for (s, rows) in systems.iter().enumerate() {
            let expected = self.shape.size(s);
            if rows.len() != expected {
                let found = rows.len();
                return Err(Error::DimensionMismatch { what: "rows of a system of the batch", expected, found }.into());
            }
            if rows.start < end {
                let why = format!("system {s} begins in row {}, before row {end}, where the last one ends", rows.start);
                return Err(Error::InvalidStructure { what: "places of a batch", why }.into());
            }
            end = rows.end;
        }
        Ok(Places(match systems.iter().map(ExactSizeIterator::len).min() {
            Some(least) if end != self.n_rows() => Sizes::Spread { systems, least },
            _ => self.shape.clone(),
        }))
    }

    /// x ← A⁻¹·b for one right-hand side of each system: b holds one system after the other, x has them in their places and is
    /// left alone elsewhere. The bits are those of [`BatchLu::solve_with`].
    ///
    /// ```
    /// use bt_direct::batch::{BatchLu, Pivoting, TridiagonalBatch};
    /// use bt_formats::{Op, Par};
    /// // [4] and [2 1; 1 2], in rows 0, 2 and 3 of four
    /// let a = TridiagonalBatch::with_sizes(&[1, 2], vec![0.0, 0.0, 1.0], vec![4.0, 2.0, 2.0], vec![0.0, 1.0, 0.0])?;
    /// let lu = BatchLu::with_options(&a, Pivoting::None)?;
    /// let mut x = [7.0; 4];
    /// lu.solve_into(Op::Identity, &[8.0, 3.0, 3.0], &lu.places([0..1, 2..4])?, &mut x, Par::Seq)?;
    /// assert_eq!(x, [2.0, 7.0, 1.0, 1.0]);
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] when b has another length, x ends before the last place, or the places are of other systems.
    #[inline(never)]
    pub fn solve_into(&self, op: Op, b: &[T], places: &Places, x: &mut [T], par: Par) -> Result<()> {
        let Places(places) = places;
        check_len("right-hand sides of the batch", &self.shape, b.len())?;
        check_size("systems of the batch", self.n_systems(), places.n_systems())?;
        if let Some(s) = self.shape.differs(places) {
            let (expected, found) = (self.shape.size(s), places.size(s));
            return Err(Error::DimensionMismatch { what: "rows of a system of the batch", expected, found }.into());
        }
        if x.len() < places.len() {
            let (expected, found) = (places.len(), x.len());
            return Err(Error::DimensionMismatch { what: "rows of x", expected, found }.into());
        }
        let source = Source::new(&self.shape, Layout::Strided, b);
        self.substitute(op, Some(source), places, Part::new(places, Layout::Strided, x), par);
        Ok(())
    }

    /// Solutions to right-hand sides that are elsewhere, or where x is.
    #[inline(never)]
    fn substitute(&self, op: Op, b: Option<Source<'_, T>>, places: &Sizes, x: Part<'_, T>, par: Par) {
        let shape = &self.shape;
        pieces(
            shape,
            0..shape.n_groups(),
            par,
            x,
            &|part, g| part.split(places, shape.group(g).start),
            &|groups, mut x| {
                for g in groups {
                    let at = self.row(g)..self.row(g + 1);
                    let width = per_row(self.pivoting);
                    lines::dispatch::<T, _>(Substitution {
                        b: b.map(|b| (b, shape)),
                        shape: places,
                        group: shape.group(g),
                        op,
                        pivoting: self.pivoting,
                        factors: &self.factors[width * at.start..width * at.end],
                        exchanged: self.exchanged.get(at).unwrap_or_default(),
                        x: &mut x,
                    });
                }
            },
        );
    }
}

/// Where the systems of a batch are in an array: [`BatchLu::places`].
#[derive(Clone, Debug, PartialEq)]
pub struct Places(Sizes);

/// Rows of lanes kept for a row of the matrices.
fn per_row(pivoting: Pivoting) -> usize {
    match pivoting {
        Pivoting::None => 3,
        Pivoting::Partial => 4,
    }
}

/// First padded row of group g.
fn first_row(shape: &Sizes, starts: &[usize], g: usize) -> usize {
    match shape {
        Sizes::Equal { n, .. } => g * n.next_multiple_of(TILE),
        Sizes::Offsets(_) | Sizes::Spread { .. } => starts[g],
    }
}

impl<T> Factors<'_, T> {
    fn split(self, row: usize, pivoting: Pivoting) -> (Self, Self) {
        let at = row - self.base;
        let (a, b) = self.rows.split_at_mut(per_row(pivoting) * at);
        let (c, d) = self.exchanged.split_at_mut(at.min(self.exchanged.len()));
        (Self { rows: a, exchanged: c, base: self.base }, Self { rows: b, exchanged: d, base: row })
    }
}

/// The factorization of one group.
struct Factor<'a, T> {
    a: &'a TridiagonalBatch<T>,
    g: usize,
    pivoting: Pivoting,
    rows: &'a mut [Lanes<T>],
    exchanged: &'a mut [[bool; LANES]],
}

impl<T: Scalar> WithSimd for Factor<'_, T> {
    /// Lanes that the exact test has to judge; their factors are in place all the same.
    type Output = [bool; LANES];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [bool; LANES] {
        let shape = &self.a.shape;
        let group = shape.group(self.g);
        let [lower, diag, upper] = self.a.sources();
        let (mut l, mut a, mut u) = (tile::<T>(), tile::<T>(), tile::<T>());
        let mut thomas = Thomas::new();
        let mut pivoted = Pivoted::new();
        let rows = shape.padded(&group);
        for i in (0..rows).step_by(TILE) {
            for (from, pad, out) in [(lower, zero(), &mut l), (diag, one(), &mut a), (upper, zero(), &mut u)] {
                apart(simd, Read { from, shape, group: &group, i, pad, out });
            }
            match self.pivoting {
                Pivoting::None => {
                    let rows = self.rows[3 * i..3 * (i + TILE)].as_chunks_mut::<3>().0;
                    for k in 0..TILE {
                        thomas.row(&l[k].0, &a[k].0, &u[k].0, &mut rows[k]);
                    }
                }
                Pivoting::Partial => {
                    if i == 0 {
                        (pivoted.d, pivoted.u) = (a[0].0, u[0].0);
                    }
                    for k in usize::from(i == 0)..TILE {
                        let at = i + k - 1;
                        let row = self.rows[4 * at..].first_chunk_mut::<4>().expect("4 rows of lanes a row");
                        pivoted.row(&l[k].0, &a[k].0, &u[k].0, row, &mut self.exchanged[at]);
                    }
                }
            }
        }
        match self.pivoting {
            Pivoting::None => thomas.doubtful(),
            Pivoting::Partial => {
                let none = [zero(); LANES];
                if let (Some(row), Some(exchanged)) = (self.rows.last_chunk_mut::<4>(), self.exchanged.last_mut()) {
                    pivoted.row(&none, &none, &none, row, exchanged);
                }
                pivoted.doubtful()
            }
        }
    }
}

/// What one row of the elimination without pivoting hands to the next.
struct Thomas<T: Scalar> {
    pivot: [T; LANES],
    ratio: [T; LANES],
    /// As in the solution in one go: the largest 6·|lᵢwᵢ₋₁|·√ε − (|lᵢ| + |aᵢ| + |uᵢ|), and the sum of all moduli.
    worst: [T::Real; LANES],
    sum: [T::Real; LANES],
}

impl<T: Scalar> Thomas<T> {
    #[inline(always)]
    fn new() -> Self {
        let none = [zero(); LANES];
        Self { pivot: [one(); LANES], ratio: none, worst: [zero(); LANES], sum: [zero(); LANES] }
    }

    /// dᵢ ← aᵢ − lᵢwᵢ₋₁, wᵢ ← uᵢ/dᵢ, l'ᵢ ← lᵢ/dᵢ₋₁.
    #[inline(always)]
    fn row(&mut self, l: &[T; LANES], a: &[T; LANES], u: &[T; LANES], out: &mut [Lanes<T>; 3]) {
        let limit = T::Real::from_f64(6.0) * T::Real::EPSILON.sqrt();
        let [multipliers, pivots, ratios] = out;
        for j in 0..LANES {
            let product = l[j] * self.ratio[j];
            let d = a[j] - product;
            multipliers.0[j] = divide(l[j], self.pivot[j]);
            let w = divide(u[j], d);
            let size = l[j].abs1() + a[j].abs1() + u[j].abs1();
            self.worst[j] = max_with(product.abs1() * limit - size, self.worst[j]);
            self.sum[j] += size;
            (pivots.0[j], ratios.0[j]) = (d, w);
            (self.pivot[j], self.ratio[j]) = (d, w);
        }
    }

    #[inline(always)]
    fn doubtful(&self) -> [bool; LANES] {
        std::array::from_fn(
            #[inline(always)]
            |j| {
                // The last pivot stands before no other row that would turn to NaN.
                let last = self.pivot[j] != zero() && Scalar::is_finite(self.pivot[j]);
                !(last && self.worst[j] <= zero() && self.sum[j] <= T::Real::MAX)
            },
        )
    }
}

/// What one step of the elimination with pivoting hands to the next.
struct Pivoted<T: Scalar> {
    d: [T; LANES],
    u: [T; LANES],
    smallest: [T::Real; LANES],
    largest: [T::Real; LANES],
}

impl<T: Scalar> Pivoted<T> {
    #[inline(always)]
    fn new() -> Self {
        let none = [zero(); LANES];
        Self { d: none, u: none, smallest: [T::Real::MAX; LANES], largest: [zero(); LANES] }
    }

    #[inline(always)]
    fn row(
        &mut self,
        l: &[T; LANES],
        a: &[T; LANES],
        c: &[T; LANES],
        out: &mut [Lanes<T>; 4],
        exchanged: &mut [bool; LANES],
    ) {
        let [multipliers, pivots, uppers, seconds] = out;
        for j in 0..LANES {
            let exchange = l[j].abs1() > self.d[j].abs1();
            let pick = |yes: T, no: T| if exchange { yes } else { no };
            let (pivot, other) = (pick(l[j], self.d[j]), pick(self.d[j], l[j]));
            let (first, other_first) = (pick(a[j], self.u[j]), pick(self.u[j], a[j]));
            let (second, other_second) = (pick(c[j], zero()), pick(zero(), c[j]));
            let m = divide(other, pivot);
            (multipliers.0[j], pivots.0[j], uppers.0[j], seconds.0[j]) = (m, pivot, first, second);
            exchanged[j] = exchange;
            self.d[j] = other_first - m * first;
            self.u[j] = other_second - m * second;
            let size = pivot.abs1();
            self.smallest[j] = if size < self.smallest[j] { size } else { self.smallest[j] };
            self.largest[j] = max_with(size, self.largest[j]);
            self.largest[j] = max_with(first.abs1(), self.largest[j]);
        }
    }

    #[inline(always)]
    fn doubtful(&self) -> [bool; LANES] {
        std::array::from_fn(
            #[inline(always)]
            |j| !(self.smallest[j] > zero() && self.largest[j] <= T::Real::MAX),
        )
    }
}

/// op(A)⁻¹ applied to the right-hand sides of one group.
struct Substitution<'a, 'x, T> {
    /// Right-hand sides that are not in x, and where.
    b: Option<(Source<'a, T>, &'a Sizes)>,
    /// Of x.
    shape: &'a Sizes,
    group: Range<usize>,
    op: Op,
    pivoting: Pivoting,
    factors: &'a [Lanes<T>],
    exchanged: &'a [[bool; LANES]],
    x: &'a mut Part<'x, T>,
}

impl<T: Scalar> WithSimd for Substitution<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match (self.pivoting, self.op) {
            (Pivoting::None, Op::Identity) => self.thomas(simd),
            (Pivoting::None, Op::Transpose) => self.thomas_transposed(simd, |v| v),
            (Pivoting::None, Op::Adjoint) => self.thomas_transposed(simd, Scalar::conj),
            (Pivoting::Partial, Op::Identity) => self.pivoted(simd),
            (Pivoting::Partial, Op::Transpose) => self.pivoted_transposed(simd, |v| v),
            (Pivoting::Partial, Op::Adjoint) => self.pivoted_transposed(simd, Scalar::conj),
        }
    }
}

/// Rows `i..i + TILE` of one of a group's vectors into lanes. Like all that moves tiles, a function of its own: see [`apart`].
struct Read<'a, T> {
    from: Source<'a, T>,
    shape: &'a Sizes,
    group: &'a Range<usize>,
    i: usize,
    pad: T,
    out: &'a mut Tile<T>,
}

impl<T: Scalar> WithSimd for Read<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.from.tile(simd, self.shape, self.group, self.i, self.pad, self.out);
    }
}

/// What a tile of x is moved for.
enum Move<'a, T> {
    /// A tile of x ← this one.
    Store(&'a Tile<T>),
    /// See [`Part::keep`].
    Keep(&'a Tile<T>),
    /// See [`Part::kept`].
    Kept(&'a mut Tile<T>),
}

/// The move of rows `i..i + TILE`.
struct Moved<'a, 'x, T> {
    x: &'a mut Part<'x, T>,
    shape: &'a Sizes,
    group: &'a Range<usize>,
    i: usize,
    tile: Move<'a, T>,
}

impl<T: Scalar> WithSimd for Moved<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, shape, group, i, tile } = self;
        match tile {
            Move::Store(tile) => x.store(simd, shape, group, i, tile),
            Move::Keep(tile) => x.keep(simd, shape, group, i, tile),
            Move::Kept(tile) => x.kept(simd, shape, group, i, tile),
        }
    }
}

impl<T: Scalar> Substitution<'_, '_, T> {
    /// Rows `i..i + TILE` of the right-hand sides.
    #[inline(always)]
    fn right_hand_sides<S: Simd>(&self, simd: S, i: usize, out: &mut Tile<T>) {
        let (from, shape) = self.b.unwrap_or((self.x.source(), self.shape));
        apart(simd, Read { from, shape, group: &self.group, i, pad: zero(), out });
    }

    #[inline(always)]
    fn tile<S: Simd>(&mut self, simd: S, i: usize, tile: Move<'_, T>) {
        apart(simd, Moved { x: self.x, shape: self.shape, group: &self.group, i, tile });
    }
}

impl<T: Scalar> Substitution<'_, '_, T> {
    /// yᵢ = bᵢ − lᵢ·yᵢ₋₁; back: xᵢ = yᵢ/dᵢ − wᵢ·xᵢ₊₁.
    #[inline(always)]
    fn thomas<S: Simd>(mut self, simd: S) {
        let factors = self.factors;
        let factors = factors.as_chunks::<3>().0;
        let rows = factors.len();
        let mut t = tile::<T>();
        let mut last = [zero::<T>(); LANES];
        for i in (0..rows).step_by(TILE) {
            self.right_hand_sides(simd, i, &mut t);
            for k in 0..TILE {
                let [l, _, _] = &factors[i + k];
                for j in 0..LANES {
                    last[j] = t[k].0[j] - l.0[j] * last[j];
                }
                t[k].0 = last;
            }
            self.tile(simd, i, Move::Keep(&t));
        }
        let mut next = [zero::<T>(); LANES];
        for i in (0..rows).step_by(TILE).rev() {
            self.tile(simd, i, Move::Kept(&mut t));
            for k in (0..TILE).rev() {
                let [_, d, w] = &factors[i + k];
                for j in 0..LANES {
                    next[j] = divide(t[k].0[j], d.0[j]) - w.0[j] * next[j];
                }
                t[k].0 = next;
            }
            self.tile(simd, i, Move::Store(&t));
        }
    }

    /// Aᵀ = Wᵀ·D·Lᵀ: yᵢ = bᵢ − wᵢ₋₁·yᵢ₋₁; back: xᵢ = yᵢ/dᵢ − lᵢ₊₁·xᵢ₊₁.
    #[inline(always)]
    fn thomas_transposed<S: Simd>(mut self, simd: S, map: impl Fn(T) -> T + Copy) {
        let factors = self.factors;
        let factors = factors.as_chunks::<3>().0;
        let rows = factors.len();
        let mut t = tile::<T>();
        let (mut last, mut ratio) = ([zero::<T>(); LANES], [zero::<T>(); LANES]);
        for i in (0..rows).step_by(TILE) {
            self.right_hand_sides(simd, i, &mut t);
            for k in 0..TILE {
                for j in 0..LANES {
                    last[j] = t[k].0[j] - map(ratio[j]) * last[j];
                }
                ratio = factors[i + k][2].0;
                t[k].0 = last;
            }
            self.tile(simd, i, Move::Keep(&t));
        }
        let (mut next, mut multiplier) = ([zero::<T>(); LANES], [zero::<T>(); LANES]);
        for i in (0..rows).step_by(TILE).rev() {
            self.tile(simd, i, Move::Kept(&mut t));
            for k in (0..TILE).rev() {
                let [l, d, _] = &factors[i + k];
                for j in 0..LANES {
                    next[j] = divide(t[k].0[j], map(d.0[j])) - map(multiplier[j]) * next[j];
                }
                multiplier = l.0;
                t[k].0 = next;
            }
            self.tile(simd, i, Move::Store(&t));
        }
    }

    /// The exchanges and eliminations in their order; back: xᵢ = (yᵢ − sᵢ·xᵢ₊₂ − uᵢ·xᵢ₊₁)/dᵢ.
    #[inline(always)]
    fn pivoted<S: Simd>(mut self, simd: S) {
        let (factors, exchanged) = (self.factors, self.exchanged);
        let factors = factors.as_chunks::<4>().0;
        let rows = factors.len();
        let (mut t, mut out) = (tile::<T>(), tile::<T>());
        // The row that is still to be eliminated: step i − 1 is done when row i is known, and gives row i − 1.
        let mut current = [zero::<T>(); LANES];
        for i in (0..=rows).step_by(TILE) {
            if i < rows {
                self.right_hand_sides(simd, i, &mut t);
            }
            let first = usize::from(i == 0);
            if i == 0 && rows > 0 {
                current = t[0].0;
            }
            // Rows i − 1 .. i + 7 come out: the first of them belongs to the tile before.
            let steps = if i < rows { first..TILE } else { 0..usize::from(rows > 0) };
            for k in steps {
                let at = i + k - 1;
                let m = &factors[at][0].0;
                let below = if i < rows { t[k].0 } else { [zero(); LANES] };
                let exchange = &exchanged[at];
                let place = &mut out[at % TILE].0;
                for j in 0..LANES {
                    let (top, rest) = if exchange[j] { (below[j], current[j]) } else { (current[j], below[j]) };
                    place[j] = top;
                    current[j] = rest - m[j] * top;
                }
                if k == 0 {
                    self.tile(simd, i - TILE, Move::Keep(&out));
                }
            }
        }
        let (mut x1, mut x2) = ([zero::<T>(); LANES], [zero::<T>(); LANES]);
        for i in (0..rows).step_by(TILE).rev() {
            self.tile(simd, i, Move::Kept(&mut t));
            for k in (0..TILE).rev() {
                let [_, d, u, s] = &factors[i + k];
                for j in 0..LANES {
                    let v = divide(t[k].0[j] - s.0[j] * x2[j] - u.0[j] * x1[j], d.0[j]);
                    x2[j] = x1[j];
                    x1[j] = v;
                }
                t[k].0 = x1;
            }
            self.tile(simd, i, Move::Store(&t));
        }
    }

    /// Uᵀy = b: yᵢ = (bᵢ − uᵢ₋₁·yᵢ₋₁ − sᵢ₋₂·yᵢ₋₂)/dᵢ; then the steps in reverse: xᵢ = yᵢ − mᵢ·xᵢ₊₁, rows exchanged after it.
    #[inline(always)]
    fn pivoted_transposed<S: Simd>(mut self, simd: S, map: impl Fn(T) -> T + Copy) {
        let (factors, exchanged) = (self.factors, self.exchanged);
        let factors = factors.as_chunks::<4>().0;
        let rows = factors.len();
        let (mut t, mut out) = (tile::<T>(), tile::<T>());
        let none = [zero::<T>(); LANES];
        // yᵢ₋₁, yᵢ₋₂ and their factors uᵢ₋₁, sᵢ₋₂; sᵢ₋₁ waits a step.
        let (mut y1, mut y2, mut u1, mut s1, mut s2) = (none, none, none, none, none);
        for i in (0..rows).step_by(TILE) {
            self.right_hand_sides(simd, i, &mut t);
            for k in 0..TILE {
                let [_, d, u, s] = &factors[i + k];
                for j in 0..LANES {
                    let v = divide(t[k].0[j] - map(u1[j]) * y1[j] - map(s2[j]) * y2[j], map(d.0[j]));
                    y2[j] = y1[j];
                    y1[j] = v;
                }
                s2 = s1;
                (u1, s1) = (u.0, s.0);
                t[k].0 = y1;
            }
            self.tile(simd, i, Move::Keep(&t));
        }
        // What stands in row i + 1 when step i is undone.
        let mut below = none;
        for i in (0..rows).step_by(TILE).rev() {
            self.tile(simd, i, Move::Kept(&mut t));
            for k in (0..TILE).rev() {
                let at = i + k;
                let m = &factors[at][0].0;
                let exchange = &exchanged[at];
                // Row at + 1 is final after this step; the last step has no row below it.
                let mut lower = none;
                for j in 0..LANES {
                    let v = t[k].0[j] - map(m[j]) * below[j];
                    lower[j] = if exchange[j] { v } else { below[j] };
                    below[j] = if exchange[j] { below[j] } else { v };
                }
                out[(at + 1) % TILE].0 = lower;
                if k + 1 == TILE && at + 1 < rows {
                    self.tile(simd, at + 1, Move::Store(&out));
                }
            }
        }
        if rows > 0 {
            out[0].0 = below;
            self.tile(simd, 0, Move::Store(&out));
        }
    }
}
