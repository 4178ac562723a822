//! SPIKE on the central band of a general sparse matrix, as a preconditioner.
//!
//! A' = P·(Π·R·A·C)·Pᵀ: a maximum-product matching Π with scalings R, C puts large entries on the diagonal (I. S. Duff, J.
//! Koster, SIAM J. Matrix Anal. Appl. 22 (2001) 973–996, doi:10.1137/S0895479899358443), an order P brings large ones next to
//! it, and what then lies within a half-bandwidth k is factored by SPIKE, exact or truncated:
//!
//! ```text
//! M⁻¹ = C·Pᵀ·S⁻¹·P·Π·R,   S = the entries of A' with |i − j| ≤ k
//! ```
//!
//! M. Manguoglu, M. Koyutürk, A. H. Sameh, A. Grama, SIAM J. Sci. Comput. 32 (2010) 1201–1216, doi:10.1137/080713409;
//! E. Polizzi, A. Sameh, Parallel Comput. 32 (2006) 177–194, doi:10.1016/j.parco.2005.07.005.
//!
//! Departures: k is the smallest that keeps a fraction of ‖A'‖_F unless it is given, and never more than memory for
//! [`FILL`]·nnz values allows; of several orders the one that takes the least k is used. A band may be singular where A is not:
//! partitions without a usable pivot are factored again without interchanges, small pivots boosted.
//!
//! Storage: the factors, about n·(2kl + ku + 1) values with interchanges and n·(kl + ku + 1) without; two permutations, two
//! scalings, a vector. Cost of an application: the solve, O(n·(2kl + ku)), and two passes that permute and scale.

use bt_direct::spike::{PartitionSolver, ReducedSystem, SpikeReport};
use bt_direct::{Boosting, FactorError, Factorization, Result, SingularKind, Singularity, Spike, SpikeOptions};
use bt_formats::reorder::{Matching, MatchingError, maximum_product_matching, rcm, spectral};
use bt_formats::{Band, Csr, Error, LinearOperator, Matrix, Permutation, RealScalar, Scalar, max_abs, zero};

use crate::incomplete_lu::check_refactor;
use crate::preconditioner::{Preconditioner, PreconditionerKind, Refactor, check_lengths};

/// Values of the band's storage, n·(3k + 1), for each entry of A, where k is not given.
const FILL: usize = 64;

/// What comes on the diagonal before the band is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Diagonal {
    /// The diagonal of A, nothing scaled: M is Hermitian where A is.
    Given,
    /// The entries of largest product, rows and columns scaled so that they are about 1 and no other is larger.
    #[default]
    Matched,
}

/// The symmetric order in which the band is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BandOrder {
    /// As the rows come.
    Given,
    /// Reverse Cuthill–McKee: a narrow pattern, whatever the values.
    Rcm,
    /// Weighted spectral: large entries near the diagonal.
    Spectral,
    /// The one of these three that takes the least k, or keeps the most where k is given; of equals the first.
    #[default]
    Best,
}

impl BandOrder {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Rcm => "rcm",
            Self::Spectral => "spectral",
            Self::Best => "best",
        }
    }
}

/// The half-bandwidth k.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BandWidth {
    /// The smallest with ‖S‖_F ≥ f·‖A'‖_F, within memory for 64·nnz values.
    Keeps(f64),
    /// This one.
    Half(usize),
}

impl Default for BandWidth {
    /// f = 0.999.
    fn default() -> Self {
        Self::Keeps(0.999)
    }
}

/// What [`BandSpike`] does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BandSpikeOptions {
    /// Matching or not.
    pub diagonal: Diagonal,
    /// Order.
    pub order: BandOrder,
    /// Half-bandwidth.
    pub width: BandWidth,
    /// How the band is factored: partitions, pivoting, reduced system.
    pub spike: SpikeOptions,
}

impl BandSpikeOptions {
    /// With a truncated reduced system. As a preconditioner it may drop anything: the bound is reported, not enforced.
    pub fn truncated() -> Self {
        let reduced = ReducedSystem::Truncated { tolerance: f64::INFINITY };
        Self { spike: SpikeOptions { reduced, ..SpikeOptions::default() }, ..Self::default() }
    }
}

/// What a setup chose and found.
#[derive(Clone, Debug, PartialEq)]
pub struct BandSpikeReport {
    /// The order that was used, never [`BandOrder::Best`].
    pub order: BandOrder,
    /// Sub-diagonals of S that are not zero.
    pub kl: usize,
    /// Super-diagonals of S that are not zero.
    pub ku: usize,
    /// ‖A' − S‖_F/‖A'‖_F.
    pub left_out: f64,
    /// Why the pivoted factorization was replaced by one with boosted pivots, where it was.
    pub replaced: Option<String>,
    /// Partitions, truncation, boosted pivots.
    pub spike: SpikeReport,
}

/// The preconditioner.
///
/// ```
/// use bt_formats::Csr;
/// use bt_iter::{BandSpike, Preconditioner};
/// // A band up to the order of its rows: nothing is left out, M = A.
/// let a = Csr::from_dense(faer::mat![[0.0, 1.0, 4.0], [4.0, 1.0, 0.0], [1.0, 4.0, 1.0]].as_ref())?;
/// let mut m = BandSpike::new(&a)?;
/// let mut z = [0.0; 3];
/// m.apply(&[5.0, 5.0, 6.0], &mut z);
/// assert!(z.iter().all(|z| (z - 1.0f64).abs() < 1e-15));
/// assert_eq!(m.report().left_out, 0.0);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
pub struct BandSpike<T: Scalar> {
    /// Row k of S is row `rows.order()[k]` of A, column k column `cols.order()[k]`.
    rows: Permutation,
    cols: Permutation,
    matching: Option<Matching<T::Real>>,
    spike: Spike<T>,
    y: Vec<T>,
    report: BandSpikeReport,
    /// The last factorization failed: applications give NaN.
    failed: bool,
}

impl<T: Scalar> BandSpike<T> {
    /// The preconditioner with [`BandSpikeOptions::default`].
    ///
    /// # Errors
    /// As [`BandSpike::with_options`].
    pub fn new(a: &Csr<T>) -> Result<Self> {
        Self::with_options(a, &BandSpikeOptions::default())
    }

    /// Matches, orders, takes the band and factors it.
    ///
    /// # Errors
    /// [`FactorError::Input`] when A is not square or not finite, when f is not in (0, 1], for unusable partition sizes, and
    /// when memory is short; [`FactorError::Singular`] naming a column when no matching covers all columns;
    /// [`FactorError::Breakdown`] where the band cannot be factored with boosted pivots either.
    ///
    /// # Cost
    /// Matching O(nnz) as a rule, RCM O(nnz), spectral O(nnz) an iteration of at most 100; SPIKE on the band.
    #[inline(never)]
    pub fn with_options(a: &Csr<T>, options: &BandSpikeOptions) -> Result<Self> {
        a.check_square()?;
        a.check_finite()?;
        if let BandWidth::Keeps(f) = options.width
            && !(f > 0.0 && f <= 1.0)
        {
            let why = format!("{f} is not in (0, 1]");
            return Err(Error::InvalidStructure { what: "fraction of the norm to keep", why }.into());
        }
        let matching = match options.diagonal {
            Diagonal::Given => None,
            Diagonal::Matched => Some(matched(a)?),
        };
        let heavy = matching.as_ref().map(|m| m.apply(a));
        let heavy = heavy.as_ref().unwrap_or(a);
        let tried: &[BandOrder] = match &options.order {
            BandOrder::Best => &[BandOrder::Given, BandOrder::Rcm, BandOrder::Spectral],
            order => std::slice::from_ref(order),
        };
        let mut best: Option<(BandOrder, Permutation, Cut)> = None;
        for &order in tried {
            let p = match order {
                BandOrder::Rcm => rcm(heavy)?,
                BandOrder::Spectral => spectral(heavy)?,
                _ => Permutation::identity(a.nrows()),
            };
            let cut = Cut::of(heavy, &p, options.width);
            if best.as_ref().is_none_or(|(.., other)| cut.beats(other)) {
                best = Some((order, p, cut));
            }
        }
        let (order, p, cut) = best.expect("one order at least is tried");
        let rows = matching.as_ref().map_or_else(|| p.clone(), |m| p.after(&m.rows));
        let (kl, ku) = extent(heavy, &p, cut.half);
        let (band, left_out) = band(a, matching.as_ref(), (&rows, &p), (kl, ku))?;
        let (spike, replaced) = factor(&band, &options.spike).map_err(|e| in_given_order(e, &rows, &p))?;
        let report = BandSpikeReport { order, kl, ku, left_out, replaced, spike: spike.report() };
        Ok(Self { rows, cols: p, matching, spike, y: vec![zero(); a.nrows()], report, failed: false })
    }

    /// What was chosen and found.
    pub fn report(&self) -> &BandSpikeReport {
        &self.report
    }
}

fn matched<T: Scalar>(a: &Csr<T>) -> Result<Matching<T::Real>> {
    maximum_product_matching(a).map_err(|e| match e {
        MatchingError::Input(input) => input.into(),
        MatchingError::Singular(deficiency) => FactorError::Singular(Singularity {
            kind: SingularKind::Structural,
            column: deficiency.unmatched_cols[0] as usize,
            block: None,
        }),
    })
}

/// A half-bandwidth and the weight beyond it.
#[derive(Clone, Copy)]
struct Cut {
    half: usize,
    left_out: f64,
}

impl Cut {
    fn of<T: Scalar>(a: &Csr<T>, p: &Permutation, width: BandWidth) -> Self {
        let n = a.nrows();
        let scale = match max_abs(a.values()) {
            0.0 => 1.0,
            largest => largest,
        };
        // Squares by distance from the diagonal, the farthest summed first: the tail is what is small.
        let mut squares = vec![0.0f64; n];
        a.for_each_entry(&mut |i, j, v| {
            let distance = p.position()[i].abs_diff(p.position()[j]) as usize;
            squares[distance] += (v.abs().to_f64() / scale).powi(2);
        });
        let total: f64 = squares.iter().rev().sum();
        let most = match width {
            BandWidth::Half(k) => k,
            BandWidth::Keeps(_) => (FILL * (a.nnz() / n.max(1) + 1)) / 3,
        }
        .min(n.saturating_sub(1));
        let allowed = match width {
            BandWidth::Half(_) => f64::INFINITY,
            // ‖S‖² ≥ f²·‖A'‖²
            BandWidth::Keeps(f) => (1.0 - f * f) * total,
        };
        let mut half = most;
        let mut tail: f64 = squares.iter().skip(most + 1).rev().sum();
        while matches!(width, BandWidth::Keeps(_)) && half > 0 && tail + squares[half] <= allowed {
            tail += squares[half];
            half -= 1;
        }
        Self { half, left_out: if total > 0.0 { (tail / total).sqrt() } else { 0.0 } }
    }

    /// Narrower without leaving out more than the rule allows both, or as narrow and heavier.
    fn beats(&self, other: &Self) -> bool {
        (self.half, self.left_out) < (other.half, other.left_out)
    }
}

/// Half-bandwidths (kl, ku) of the entries that are not zero with |i − j| ≤ k.
fn extent<T: Scalar>(a: &Csr<T>, p: &Permutation, half: usize) -> (usize, usize) {
    let (mut kl, mut ku) = (0, 0);
    a.for_each_entry(&mut |i, j, v| {
        let (i, j) = (p.position()[i] as usize, p.position()[j] as usize);
        if i.abs_diff(j) <= half && v != zero() {
            kl = kl.max(i.saturating_sub(j));
            ku = ku.max(j.saturating_sub(i));
        }
    });
    (kl, ku)
}

/// The entries of A' = R·A·C that the permutations put inside the band, and ‖A' − S‖_F/‖A'‖_F.
fn band<T: Scalar>(
    a: &Csr<T>,
    matching: Option<&Matching<T::Real>>,
    (rows, cols): (&Permutation, &Permutation),
    (kl, ku): (usize, usize),
) -> Result<(Band<T>, f64)> {
    let mut band = Band::zeros(a.nrows(), kl, ku)?;
    let scaled = |i, j, v| matching.map_or(v, |m| m.scale_entry(i, j, v));
    let mut largest = 0.0f64;
    a.for_each_entry(&mut |i, j, v| largest = largest.max(scaled(i, j, v).abs().to_f64()));
    let (mut inside, mut outside) = (0.0f64, 0.0f64);
    a.for_each_entry(&mut |i, j, v| {
        let (k, l, v) = (rows.position()[i] as usize, cols.position()[j] as usize, scaled(i, j, v));
        let square = (v.abs().to_f64() / largest).powi(2);
        if k <= l + kl && l <= k + ku {
            *band.get_mut(k, l) = v;
            inside += square;
        } else {
            outside += square;
        }
    });
    Ok((band, if outside > 0.0 { (outside / (inside + outside)).sqrt() } else { 0.0 }))
}

/// SPIKE as asked for; where that meets no pivot, without interchanges and with boosting, and why.
fn factor<T: Scalar>(band: &Band<T>, options: &SpikeOptions) -> Result<(Spike<T>, Option<String>)> {
    match Spike::with_options(band, options, &mut ()) {
        Ok(spike) => Ok((spike, None)),
        Err(why @ (FactorError::Breakdown { .. } | FactorError::Singular(_))) => {
            let boosted = PartitionSolver::NoPivot(Some(Boosting::of::<T>()));
            if options.solver == boosted {
                return Err(why);
            }
            let options = SpikeOptions { solver: boosted, ..options.clone() };
            Ok((Spike::with_options(band, &options, &mut ())?, Some(why.to_string())))
        }
        Err(other) => Err(other),
    }
}

/// A breakdown on the band, with rows and columns of A.
fn in_given_order(error: FactorError, rows: &Permutation, cols: &Permutation) -> FactorError {
    let of = |p: &Permutation, place: usize| p.order().get(place).map(|&old| old as usize);
    error.map_place(|place| place.renumbered(|i| of(rows, i), |j| of(cols, j)))
}

impl<T: Scalar> Refactor<T> for BandSpike<T> {
    /// Keeps order, scalings, bandwidths and the way of factoring, and takes the band's memory for the time of the call. Entries
    /// beyond the band are left out, wherever they are.
    #[inline(never)]
    fn refactor(&mut self, a: &Csr<T>) -> Result<()> {
        self.failed = true;
        check_refactor(self.y.len(), a)?;
        let (kl, ku) = (self.report.kl, self.report.ku);
        let (band, left_out) = band(a, self.matching.as_ref(), (&self.rows, &self.cols), (kl, ku))?;
        self.spike.refactor(&band).map_err(|e| in_given_order(e, &self.rows, &self.cols))?;
        self.report.left_out = left_out;
        self.report.spike = self.spike.report();
        self.failed = false;
        Ok(())
    }
}

impl<T: Scalar> Preconditioner<T> for BandSpike<T> {
    fn n(&self) -> usize {
        self.y.len()
    }
    fn name(&self) -> &'static str {
        self.spike.method()
    }
    fn kind(&self) -> PreconditionerKind {
        PreconditionerKind::General
    }
    #[inline(never)]
    fn apply(&mut self, r: &[T], z: &mut [T]) {
        check_lengths(self.y.len(), r, z);
        if self.failed {
            z.fill(T::nan_impl());
            return;
        }
        // y ← P·Π·R·r
        for (y, &i) in self.y.iter_mut().zip(self.rows.order()) {
            let i = i as usize;
            *y = self.matching.as_ref().map_or(r[i], |m| r[i] * T::from_real(m.row_scale[i]));
        }
        // y ← S⁻¹·y
        self.spike.solve_vec_in_place(&mut self.y);
        // z ← C·Pᵀ·y
        for (&y, &j) in self.y.iter().zip(self.cols.order()) {
            let j = j as usize;
            z[j] = self.matching.as_ref().map_or(y, |m| y * T::from_real(m.col_scale[j]));
        }
    }
    fn nnz(&self) -> usize {
        self.spike.stats().nnz
    }
    fn bytes(&self) -> usize {
        let permutations = 4 * size_of::<u32>() * self.y.len();
        let scalings = self.matching.as_ref().map_or(0, |m| 2 * size_of_val(&*m.row_scale) + permutations / 2);
        self.spike.stats().bytes + permutations + scalings + size_of_val(&*self.y)
    }
}
