//! Many small band systems, sixteen in the lanes of vectors: LU with partial pivoting, each lane with its own exchanges.
//!
//! The elimination is that of LAPACK's unblocked `gbtf2`, by columns; a row is exchanged in the lanes that want it, by
//! selection, and not at all where no lane does. Block-tridiagonal systems with tiny blocks are band systems too, and are
//! pivoted across their blocks here.
//!
//! Storage: n(2kl + ku + 1) values a lane and n bytes of pivots, for whole groups of sixteen. Cost: 2n·kl(kl + ku + 1)
//! flops at most, as many selections where exchanges are wanted, and n(kl + 1) divisions. Meant for bands that fit the
//! first-level cache sixteenfold, kl and ku up to about 16; for larger ones [`super::FactorBatch`] of [`crate::BandLu`].

use std::sync::{Mutex, PoisonError};

use bt_formats::{Error, Matrix, Par, RealScalar, Scalar, one, zero};
use pulp::{Simd, WithSimd};

use super::lanes::{LANES, Lanes, TILE, divide, max_with, tile};
use super::shape::{Layout, Part, Scratch, Sizes, check_len, pieces};
use super::{Failure, SystemStatus, Verdict};
use crate::columns::check_size;
use crate::error::Result;
use crate::memory::reserve;

/// Factored systems of the same size, inside the same band.
///
/// ```
/// use bt_direct::batch::{BandBatch, Layout};
/// use bt_formats::Band;
/// // Twenty times [0 1 .; 2 0 1; . 1 4], which needs exchanges
/// let mut a = Band::zeros(3, 1, 1)?;
/// for (i, j, v) in [(0, 1, 1.0), (1, 0, 2.0), (1, 2, 1.0), (2, 1, 1.0), (2, 2, 4.0)] {
///     *a.get_mut(i, j) = v;
/// }
/// let lu = BandBatch::new(&vec![a; 20])?;
/// assert!(lu.verdict().all_solved());
/// let mut x = [1.0, 3.0, 5.0].repeat(20);
/// lu.solve_in_place(&mut x, Layout::Strided)?;
/// assert!(x.iter().all(|v| (v - 1.0f64).abs() < 1e-15));
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct BandBatch<T> {
    shape: Sizes,
    n: usize,
    kl: usize,
    ku: usize,
    /// Group after group, column after column as in [`bt_formats::Band`], a row of lanes for each value.
    factors: Vec<Lanes<T>>,
    /// Row exchanged with row j at step j, less j.
    pivots: Vec<[u8; LANES]>,
    /// Buffers of the threads that solve at the same time: n rows of lanes.
    scratch: Mutex<Vec<Scratch<T>>>,
    verdict: Verdict,
}

impl<T: Scalar> BandBatch<T> {
    /// Factors the systems: band, block-tridiagonal or any other matrices of one size. The band is the smallest that holds
    /// all their entries. Systems that fail are named by [`BandBatch::verdict`]; their solutions are NaN.
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] when the sizes differ, a system is not square, a bandwidth is above 255, or there is
    /// not the memory.
    ///
    /// # Cost
    /// See the head of the file; reading the entries is serial.
    #[inline(never)]
    pub fn new<A: Matrix<T>>(systems: &[A]) -> Result<Self> {
        let n = systems.first().map_or(0, bt_formats::LinearOperator::nrows);
        let (mut kl, mut ku) = (0, 0);
        for a in systems {
            a.for_each_entry(&mut |i, j, _| {
                kl = kl.max(i.saturating_sub(j));
                ku = ku.max(j.saturating_sub(i));
            });
        }
        if kl > usize::from(u8::MAX) || ku > usize::from(u8::MAX) {
            return Err(Error::TooLarge {
                what: "a batch of band systems in lanes",
                needed: format!("{kl} sub- and {ku} super-diagonals"),
                limit: "255, and much less is sensible: take FactorBatch".into(),
            }
            .into());
        }
        let shape = Sizes::Equal { m: systems.len(), n };
        let columns = shape.n_groups().saturating_mul(n);
        let (mut factors, mut pivots, mut buffers) = (Vec::new(), Vec::new(), Vec::with_capacity(64));
        let len = columns.saturating_mul(2 * kl + ku + 1);
        reserve(&mut factors, len)?;
        factors.resize(len, Lanes::zero());
        reserve(&mut pivots, columns)?;
        pivots.resize(columns, [0; LANES]);
        buffers.push(Scratch::new(n.next_multiple_of(TILE), 0)?);
        let scratch = Mutex::new(buffers);
        let mut out = Self { shape, n, kl, ku, factors, pivots, scratch, verdict: Verdict::default() };
        out.refactor(systems)?;
        Ok(out)
    }

    /// Factors other systems of the same number and size, with entries inside the same band, in the same memory. After an
    /// error the factors are void: solves return NaN until a later refactorisation succeeds.
    ///
    /// # Errors
    /// As [`BandBatch::new`], and [`crate::FactorError::Input`] naming an entry outside the band.
    #[inline(never)]
    pub fn refactor<A: Matrix<T>>(&mut self, systems: &[A]) -> Result<()> {
        let mut failures = match self.read(systems) {
            Ok(failures) => failures,
            Err(error) => {
                self.factors.fill(Lanes([T::nan_impl(); LANES]));
                return Err(error);
            }
        };
        let par = Par::auto(size_of_val(&*self.factors));
        let (n, kl, ku, ldab) = (self.n, self.kl, self.ku, self.ldab());
        let found = Mutex::new(Vec::new());
        let all = Piece { factors: &mut self.factors, pivots: &mut self.pivots, first: 0 };
        let shape = &self.shape;
        pieces(shape, 0..shape.n_groups(), par, all, &|piece, g| Piece::split(piece, g, n, ldab), &|groups, piece| {
            let chunks = groups.zip(piece.factors.chunks_mut(n * ldab).zip(piece.pivots.chunks_mut(n)));
            for (g, (factors, pivots)) in chunks {
                let verdicts = bt_simd::dispatch(Factor { n, kl, ku, factors, pivots });
                for (s, status) in shape.group(g).zip(verdicts).filter(|(_, status)| *status != SystemStatus::Solved) {
                    found.lock().unwrap_or_else(PoisonError::into_inner).push(Failure { system: s, status });
                }
            }
        });
        // What was wrong with the input explains what went wrong in elimination.
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<usize> = failures.iter().map(|f: &Failure| f.system).collect();
        failures.extend(found.into_iter().filter(|f| !known.contains(&f.system)));
        for f in &failures {
            let (g, lane) = (f.system / LANES, f.system % LANES);
            void(&mut self.factors[g * n * ldab..(g + 1) * n * ldab], ldab, kl + ku, lane);
        }
        self.verdict = Verdict::new(failures);
        Ok(())
    }

    /// Entries into the lanes; the systems that hold a NaN or an infinity.
    fn read<A: Matrix<T>>(&mut self, systems: &[A]) -> Result<Vec<Failure>> {
        check_size("systems of the batch", self.shape.n_systems(), systems.len())?;
        let (n, kl, ku, ldab) = (self.n, self.kl, self.ku, self.ldab());
        self.factors.fill(Lanes::zero());
        // Lanes without a system hold the identity.
        for lane in self.shape.n_systems()..self.shape.n_groups() * LANES {
            let group = &mut self.factors[lane / LANES * n * ldab..];
            group[..n * ldab].iter_mut().skip(kl + ku).step_by(ldab).for_each(|d| d.0[lane % LANES] = one());
        }
        let mut failures = Vec::new();
        for (s, a) in systems.iter().enumerate() {
            check_size("rows of a system of the batch", n, a.nrows())?;
            check_size("columns of a system of the batch", n, a.ncols())?;
            let (g, lane) = (s / LANES, s % LANES);
            let group = &mut self.factors[g * n * ldab..(g + 1) * n * ldab];
            let (mut outside, mut not_finite) = (None, None);
            a.for_each_entry(&mut |i, j, v| {
                if i > j + kl || j > i + ku {
                    outside = outside.or(Some((i, j)));
                } else {
                    group[j * ldab + kl + ku + i - j].0[lane] = v;
                }
                if !Scalar::is_finite(v) {
                    not_finite = not_finite.or(Some(i));
                }
            });
            if let Some((row, col)) = outside {
                let why = format!("of system {s} lies outside the {kl} sub- and {ku} super-diagonals of the batch");
                return Err(Error::OutsideStructure { row, col, why }.into());
            }
            failures.extend(not_finite.map(|row| Failure { system: s, status: SystemStatus::NotFinite { row } }));
        }
        Ok(failures)
    }

    fn ldab(&self) -> usize {
        2 * self.kl + self.ku + 1
    }

    /// Number of systems.
    pub fn n_systems(&self) -> usize {
        self.shape.n_systems()
    }
    /// Rows of each.
    pub fn n(&self) -> usize {
        self.n
    }
    /// Sub-diagonals and super-diagonals.
    pub fn bandwidths(&self) -> (usize, usize) {
        (self.kl, self.ku)
    }
    /// The systems that could not be factored.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }
    /// Bytes of the factors.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.factors) + size_of_val(&*self.pivots)
    }

    /// X ← A⁻¹·X for one right-hand side of each system, laid out as said. Allocates nothing, except that a further thread
    /// solving at the same time brings its buffer, once.
    ///
    /// # Errors
    /// [`crate::FactorError::Input`] when `x` has another length, or memory for a buffer is short.
    ///
    /// # Cost
    /// 2n(2kl + ku) flops and n divisions a system at most.
    pub fn solve_in_place(&self, x: &mut [T], layout: Layout) -> Result<()> {
        self.solve_with(x, layout, Par::auto(size_of_val(&*self.factors)))
    }

    /// As [`BandBatch::solve_in_place`] with the given parallelism. The bits are the same.
    ///
    /// # Errors
    /// As [`BandBatch::solve_in_place`].
    #[inline(never)]
    pub fn solve_with(&self, x: &mut [T], layout: Layout, par: Par) -> Result<()> {
        check_len("right-hand sides of the batch", &self.shape, x.len())?;
        let (n, ldab, shape) = (self.n, self.ldab(), &self.shape);
        let part = Part::new(shape, layout, x);
        pieces(
            shape,
            0..shape.n_groups(),
            par,
            part,
            &|p, g| p.split(shape, shape.group(g).start),
            &|groups, mut x| {
                let pool = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
                let pooled = pool().pop();
                let mut scratch =
                    pooled.unwrap_or_else(|| Scratch::new(n.next_multiple_of(TILE), 0).expect("memory for one group"));
                for g in groups {
                    bt_simd::dispatch(Substitution {
                        shape,
                        g,
                        kl: self.kl,
                        ku: self.ku,
                        factors: &self.factors[g * n * ldab..(g + 1) * n * ldab],
                        pivots: &self.pivots[g * n..(g + 1) * n],
                        x: &mut x,
                        rows: scratch.parts().0,
                    });
                }
                pool().push(scratch);
            },
        );
        Ok(())
    }
}

/// Factors of consecutive groups.
struct Piece<'a, T> {
    factors: &'a mut [Lanes<T>],
    pivots: &'a mut [[u8; LANES]],
    first: usize,
}

impl<T> Piece<'_, T> {
    fn split(self, g: usize, n: usize, ldab: usize) -> (Self, Self) {
        let at = (g - self.first) * n;
        let (a, b) = self.factors.split_at_mut(at * ldab);
        let (c, d) = self.pivots.split_at_mut(at);
        (Self { factors: a, pivots: c, first: self.first }, Self { factors: b, pivots: d, first: g })
    }
}

/// NaN for the pivots of one lane of a group.
fn void<T: Scalar>(group: &mut [Lanes<T>], ldab: usize, diag: usize, lane: usize) {
    group.iter_mut().skip(diag).step_by(ldab).for_each(|d| d.0[lane] = T::nan_impl());
}

/// The factorization of one group.
struct Factor<'a, T> {
    n: usize,
    kl: usize,
    ku: usize,
    factors: &'a mut [Lanes<T>],
    pivots: &'a mut [[u8; LANES]],
}

impl<T: Scalar> WithSimd for Factor<'_, T> {
    type Output = [SystemStatus; LANES];

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> [SystemStatus; LANES] {
        let Self { n, kl, ku, factors, pivots } = self;
        let (kv, ldab) = (kl + ku, 2 * kl + ku + 1);
        // The first column without a pivot, and the largest pivot.
        let mut singular = [usize::MAX; LANES];
        let mut largest = [zero::<T::Real>(); LANES];
        for j in 0..n {
            let below = kl.min(n - 1 - j);
            let right = kv.min(n - 1 - j);
            // p ← argmax |aᵢⱼ|, the first where several are equal
            let column = &factors[j * ldab + kv..=j * ldab + kv + below];
            let mut best = [zero::<T::Real>(); LANES];
            let mut p = [0u8; LANES];
            for l in 0..LANES {
                best[l] = column[0].0[l].abs1();
            }
            for (r, row) in column.iter().enumerate().skip(1) {
                for l in 0..LANES {
                    let size = row.0[l].abs1();
                    let larger = size > best[l];
                    best[l] = if larger { size } else { best[l] };
                    p[l] = if larger { r as u8 } else { p[l] };
                }
            }
            pivots[j] = p;
            for r in (1..=below).filter(|r| p.contains(&(*r as u8))) {
                let wanted = p.map(|p| p == r as u8);
                for c in 0..=right {
                    let at = (j + c) * ldab + kv - c;
                    exchange(factors, at, at + r, &wanted);
                }
            }
            let pivot = factors[j * ldab + kv];
            for l in 0..LANES {
                if best[l] == zero() && singular[l] == usize::MAX {
                    singular[l] = j;
                }
                largest[l] = max_with(pivot.0[l].abs1(), largest[l]);
            }
            for r in 1..=below {
                let row = &mut factors[j * ldab + kv + r];
                for l in 0..LANES {
                    row.0[l] = divide(row.0[l], pivot.0[l]);
                }
            }
            // aᵢ꜀ ← aᵢ꜀ − lᵢ·uⱼ꜀
            let (head, tail) = factors.split_at_mut((j + 1) * ldab);
            let multipliers = &head[j * ldab + kv + 1..j * ldab + kv + 1 + below];
            for c in 1..=right {
                let at = (c - 1) * ldab + kv - c;
                let (u, rows) = tail[at..=at + below].split_first_mut().expect("a row and those below it");
                for (row, m) in rows.iter_mut().zip(multipliers) {
                    for l in 0..LANES {
                        row.0[l] -= m.0[l] * u.0[l];
                    }
                }
            }
        }
        std::array::from_fn(|l| {
            if singular[l] != usize::MAX {
                SystemStatus::Singular { column: singular[l] }
            } else if !(largest[l] <= T::Real::MAX) {
                let pivot = |j: &usize| !Scalar::is_finite(factors[j * ldab + kv].0[l]);
                SystemStatus::Breakdown { row: (0..n).find(pivot).unwrap_or(0) }
            } else {
                SystemStatus::Solved
            }
        })
    }
}

/// Exchanges two rows of lanes, `a < b`, where wanted.
#[inline(always)]
fn exchange<T: Scalar>(rows: &mut [Lanes<T>], a: usize, b: usize, wanted: &[bool; LANES]) {
    let (head, tail) = rows.split_at_mut(b);
    let (a, b) = (&mut head[a].0, &mut tail[0].0);
    for l in 0..LANES {
        (a[l], b[l]) = if wanted[l] { (b[l], a[l]) } else { (a[l], b[l]) };
    }
}

/// A⁻¹ applied to the right-hand sides of one group.
struct Substitution<'a, 'x, T> {
    shape: &'a Sizes,
    g: usize,
    kl: usize,
    ku: usize,
    factors: &'a [Lanes<T>],
    pivots: &'a [[u8; LANES]],
    x: &'a mut Part<'x, T>,
    rows: &'a mut [Lanes<T>],
}

impl<T: Scalar> WithSimd for Substitution<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { shape, g, kl, ku, factors, pivots, x, rows } = self;
        let group = shape.group(g);
        let (n, kv, ldab) = (pivots.len(), kl + ku, 2 * kl + ku + 1);
        let mut t = tile::<T>();
        for i in (0..n).step_by(TILE) {
            x.source().tile(simd, shape, &group, i, zero(), &mut t);
            rows[i..i + TILE].copy_from_slice(&t);
        }
        // x ← L⁻¹·P·x, the exchanges as they were made.
        for j in 0..n {
            let below = kl.min(n - 1 - j);
            for r in (1..=below).filter(|r| pivots[j].contains(&(*r as u8))) {
                exchange(rows, j, j + r, &pivots[j].map(|p| p == r as u8));
            }
            let (head, tail) = rows.split_at_mut(j + 1);
            let multipliers = &factors[j * ldab + kv + 1..j * ldab + kv + 1 + below];
            for (row, m) in tail.iter_mut().zip(multipliers) {
                for l in 0..LANES {
                    row.0[l] -= m.0[l] * head[j].0[l];
                }
            }
        }
        // xⱼ ← xⱼ/uⱼⱼ;  xᵢ ← xᵢ − uᵢⱼ·xⱼ
        for j in (0..n).rev() {
            let above = kv.min(j);
            let column = &factors[j * ldab + kv - above..=j * ldab + kv];
            let (head, tail) = rows.split_at_mut(j);
            for l in 0..LANES {
                tail[0].0[l] = divide(tail[0].0[l], column[above].0[l]);
            }
            for (row, u) in head[j - above..].iter_mut().zip(column) {
                for l in 0..LANES {
                    row.0[l] -= u.0[l] * tail[0].0[l];
                }
            }
        }
        for i in (0..n).step_by(TILE) {
            t.copy_from_slice(&rows[i..i + TILE]);
            x.store(simd, shape, &group, i, &t);
        }
    }
}
