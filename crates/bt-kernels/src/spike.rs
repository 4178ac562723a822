//! SPIKE on the device: one band or block-tridiagonal matrix, cut into a batch of partitions.
//!
//! A = D·S with D = diag(A₁, …, Aₚ), V_j = A_j⁻¹·[0; B_j] and W_j = A_j⁻¹·[C_j; 0] (E. Polizzi, A. Sameh, Parallel Comput. 32 (2006)
//! 177–194, doi:10.1016/j.parco.2005.07.005). The partitions are factored by [`crate::DeviceBlockLu`] or [`crate::DeviceBandLu`], a
//! thread block each. The spikes are formed on the device and only their tips, the rows next to the cuts, come to the host, where
//! block LU factors the exact reduced system. A solve goes through the partitions twice: for the tips, and with the couplings to the
//! tips on the right-hand side; no spike is kept.
//!
//! Storage: the factors of the partitions; while factoring n(kl + ku) values more (blocks: 2nk). Cost: the factorization of the batch
//! and kl + ku solves (blocks: 2k); a solve is two of the batch.

use std::ops::Range;

use bt_direct::{BlockLu, FactorError, Factorization, Place, Spike, SpikeOptions};
use bt_formats::{Band, BlockTridiagonal, Error as InputError, Partition, Scalar};
use faer::{Mat, MatMut, MatRef};

use crate::band_lu::BandFactors;
use crate::block_lu::{BlockFactors, check_finite};
use crate::checked::{DirectReport, by_columns, solve_system};
use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};

const METHOD: &str = "spike";

/// A band or block-tridiagonal matrix on a device, in factored partitions.
///
/// ```
/// use bt_formats::Band;
/// use bt_kernels::{Device, DeviceSpike};
/// let mut a = Band::zeros(6, 1, 1)?;
/// for i in 0..6 {
///     *a.get_mut(i, i) = 4.0;
///     if i > 0 {
///         *a.get_mut(i, i - 1) = 1.0;
///         *a.get_mut(i - 1, i) = 1.0;
///     }
/// }
/// if let Ok(device) = Device::open(0) {
///     let spike = DeviceSpike::band(&device, &a, Some(3))?;
///     assert_eq!(spike.partitions(), [2, 2, 2]);
///     let mut x = faer::mat![[5.0], [6.0], [6.0], [6.0], [6.0], [5.0]];
///     let report = spike.solve_in_place(x.as_mut())?;
///     assert!(report.certificate.backward_error < 1e-15);
///     assert!((x[(2, 0)] - 1.0f64).abs() < 1e-15);
/// }
/// # Ok::<(), bt_kernels::DeviceError>(())
/// ```
pub struct DeviceSpike<'a, T: DeviceScalar> {
    a: Source<'a, T>,
    factors: Factors<T>,
    /// Rows of the partitions.
    sizes: Vec<usize>,
    cuts: Vec<Cut<T>>,
    reduced: Option<BlockLu<T>>,
    /// Rows of all tips: of each cut those above it, then those below.
    tips: DeviceVec<u32>,
    gather: Kernel,
    device: Device,
}

enum Source<'a, T: DeviceScalar> {
    Blocks(&'a BlockTridiagonal<T>),
    Band(&'a Band<T>),
}

enum Factors<T: DeviceScalar> {
    Blocks(BlockFactors<T>),
    Band(BandFactors<T>),
}

/// What stands at a cut before row `split`: above.len() unknowns above it meet C below it, below.len() unknowns below it meet B above.
struct Cut<T: Scalar> {
    above: Range<usize>,
    below: Range<usize>,
    /// Rows before the cut, in the columns `below`; rows behind it, in the columns `above`.
    b: Mat<T>,
    c: Mat<T>,
}

impl<T: Scalar> Cut<T> {
    fn split(&self) -> usize {
        self.below.start
    }
    fn order(&self) -> usize {
        self.above.len() + self.below.len()
    }
    /// Rows that B and C are in.
    fn rows_of_b(&self) -> Range<usize> {
        self.split() - self.b.nrows()..self.split()
    }
    fn rows_of_c(&self) -> Range<usize> {
        self.split()..self.split() + self.c.nrows()
    }
}

impl<T: DeviceScalar> Factors<T> {
    fn solve(&self, x: &DeviceVec<T>, nrhs: u32) -> Result<()> {
        match self {
            Self::Blocks(factors) => factors.solve_on_device(x, nrhs),
            Self::Band(factors) => factors.solve_on_device(x, nrhs),
        }
    }
}

impl<'a, T: DeviceScalar> DeviceSpike<'a, T> {
    /// Factors a band matrix in so many partitions of equal size, by default two for each multiprocessor; fewer where they would
    /// have under 2·max(kl, ku) rows (by default 64 times that bandwidth).
    ///
    /// # Errors
    /// [`FactorError::Breakdown`] naming a partition without a pivot (A need not be singular), or from the reduced system;
    /// [`InputError`]s as [`crate::DeviceBandLu::new`]; errors of the device.
    ///
    /// # Cost
    /// That of the batch's factorization and kl + ku solves with it; n(kl + ku) values of memory beside the factors meanwhile.
    pub fn band(device: &Device, a: &'a Band<T>, partitions: Option<usize>) -> Result<Self> {
        check_finite(a)?;
        let (n, kl, ku) = (a.n(), a.kl(), a.ku());
        let widest = kl.max(ku);
        let count = if widest == 0 { 1 } else { count(device, partitions, n, [2 * widest, 64 * widest]) };
        let starts: Vec<usize> = (0..=count).map(|p| p * n / count).collect();
        let parts = starts.windows(2).map(|w| band_part(a, w[0]..w[1])).collect::<Result<Vec<_>, _>>()?;
        let factors = BandFactors::new(device, &parts.iter().collect::<Vec<_>>())?;
        drop(parts);
        pivots(&factors.failed, "column")?;
        let cut = |&split: &usize| {
            let (above, below) = (split - kl..split, split..split + ku);
            let b = Mat::from_fn(ku, ku, |i, j| a.get(split - ku + i, split + j));
            let c = Mat::from_fn(kl, kl, |i, j| a.get(split + i, split - kl + j));
            Cut { above, below, b, c }
        };
        let cuts = starts[1..count].iter().map(cut).collect();
        Self::build(device, Source::Band(a), Factors::Band(factors), &starts, cuts)
    }

    /// Factors a block-tridiagonal matrix in partitions of whole blocks, two at least (by default eight) in each.
    ///
    /// # Errors
    /// As [`DeviceSpike::band`], with the [`InputError`]s of [`crate::DeviceBlockLu::new`].
    pub fn blocks(device: &Device, a: &'a BlockTridiagonal<T>, partitions: Option<usize>) -> Result<Self> {
        check_finite(a)?;
        let (m, offsets) = (a.n_blocks(), a.partition().offsets());
        let count = count(device, partitions, m, [2, 8]);
        let first: Vec<usize> = (0..=count).map(|p| p * m / count).collect();
        let parts = first.windows(2).map(|w| a.part(w[0]..w[1])).collect::<Result<Vec<_>, _>>()?;
        let factors = BlockFactors::new(device, &parts.iter().collect::<Vec<_>>())?;
        drop(parts);
        pivots(&factors.failed, "block")?;
        let cut = |&j: &usize| {
            let (above, below) = (a.partition().range(j - 1), a.partition().range(j));
            let (mut b, mut c) = (Mat::zeros(above.len(), below.len()), Mat::zeros(below.len(), above.len()));
            a.copy_upper_block(j - 1, b.as_mut());
            a.copy_lower_block(j, c.as_mut());
            Cut { above, below, b, c }
        };
        let cuts = first[1..count].iter().map(cut).collect();
        let starts: Vec<usize> = first.iter().map(|&j| offsets[j] as usize).collect();
        Self::build(device, Source::Blocks(a), Factors::Blocks(factors), &starts, cuts)
    }

    fn build(
        device: &Device,
        a: Source<'a, T>,
        factors: Factors<T>,
        starts: &[usize],
        cuts: Vec<Cut<T>>,
    ) -> Result<Self> {
        let tips: Vec<u32> =
            cuts.iter().flat_map(|cut| cut.above.clone().chain(cut.below.clone())).map(|i| i as u32).collect();
        let mut spike = Self {
            a,
            factors,
            sizes: starts.windows(2).map(|w| w[1] - w[0]).collect(),
            cuts,
            reduced: None,
            tips: DeviceVec::from_slice(device, &tips)?,
            gather: device.kernel(Family::Spike, &format!("spike_gather_{}", T::SUFFIX))?,
            device: device.clone(),
        };
        if !spike.cuts.is_empty() {
            let spikes = spike.tips_of_spikes()?;
            let row = |i: usize| tips.get(i).map(|&row| row as usize);
            let in_whole = |e: FactorError| e.map_place(|place| place.renumbered(row, row));
            spike.reduced = Some(BlockLu::new(&reduced(&spike.cuts, &spikes)?).map_err(in_whole)?);
        }
        Ok(spike)
    }

    /// Rows of the partitions.
    pub fn partitions(&self) -> &[usize] {
        &self.sizes
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        let factors = match &self.factors {
            Factors::Blocks(factors) => factors.bytes(),
            Factors::Band(factors) => factors.bytes(),
        };
        factors + self.tips.bytes()
    }

    /// X ← A⁻¹·X for the contiguous columns of `x`, refined on the host with residuals from A. Where the backward error stays above
    /// 32u, the host solves the system by [`Spike`] with its own partitions.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; [`InputError::NonFinite`] in a right-hand side; what the host's factorization says; errors
    /// of the device. `x` is then as it was.
    ///
    /// # Cost
    /// One to four solves, each two of the batch of partitions; a few products with A on the host.
    pub fn solve_in_place(&self, x: MatMut<'_, T>) -> Result<DirectReport> {
        let options = SpikeOptions::default();
        match self.a {
            Source::Blocks(a) => {
                solve_system(a, x, |x| self.solve_once(x), |a| Spike::with_options(a, &options, &mut ()))
            }
            Source::Band(a) => {
                solve_system(a, x, |x| self.solve_once(x), |a| Spike::with_options(a, &options, &mut ()))
            }
        }
    }

    /// X ← A⁻¹·X as the device computes it, neither refined nor checked.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; errors of the device, after which `x` is as it was, save for whole columns that are solved.
    pub fn solve_once(&self, x: MatMut<'_, T>) -> Result<()> {
        let n = self.n();
        by_columns(n, x, self.sizes.len(), |columns, nrhs| {
            // y = D⁻¹·b
            let mut x = DeviceVec::from_slice(&self.device, columns)?;
            self.factors.solve(&x, nrhs as u32)?;
            if let Some(reduced) = &self.reduced {
                // The tips of x; then D·x = b less the couplings to them.
                let mut tips = self.tips_of(&x, nrhs)?;
                reduced.solve_in_place(tips.as_mut());
                for j in 0..nrhs {
                    subtract(&self.cuts, tips.col_as_slice(j), &mut columns[j * n..(j + 1) * n]);
                }
                x.copy_from(columns)?;
                self.factors.solve(&x, nrhs as u32)?;
            }
            x.copy_to(columns)
        })
    }

    fn n(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// The rows next to the cuts of the columns on the device.
    fn tips_of(&self, x: &DeviceVec<T>, nrhs: usize) -> Result<Mat<T>> {
        let count = self.tips.len();
        let values = DeviceVec::uninitialized(&self.device, count * nrhs)?;
        let sizes = [Arg::Word(self.n() as u64), Arg::from(count as u32), Arg::from(nrhs as u32)];
        let args = [sizes[0], sizes[1], sizes[2], self.tips.arg(), x.arg(), values.arg()];
        self.gather.launch(Shape::over((count * nrhs) as u64), &args)?;
        let mut host = vec![T::default(); count * nrhs];
        values.copy_to(&mut host)?;
        Ok(MatRef::from_column_major_slice(&host, count, nrhs).to_owned())
    }

    /// Tips of [W V], W in as many columns as the widest cut has unknowns above.
    fn tips_of_spikes(&self) -> Result<Mat<T>> {
        let (w, v) = widths(&self.cuts);
        let rows = || self.cuts.iter().flat_map(|cut| cut.rows_of_b().chain(cut.rows_of_c()));
        let count = rows().count();
        let mut couplings = Mat::<T>::zeros(count, w + v);
        let mut at = 0;
        for cut in &self.cuts {
            let (b, c) = (cut.b.as_ref(), cut.c.as_ref());
            couplings.get_mut(at..at + b.nrows(), w..w + b.ncols()).copy_from(b);
            at += b.nrows();
            couplings.get_mut(at..at + c.nrows(), ..c.ncols()).copy_from(c);
            at += c.nrows();
        }
        let values: Vec<T> = (0..w + v).flat_map(|j| couplings.col_as_slice(j).iter().copied()).collect();
        let rows: Vec<u32> = rows().map(|i| i as u32).collect();
        let (rows, values) =
            (DeviceVec::from_slice(&self.device, &rows)?, DeviceVec::from_slice(&self.device, &values)?);
        let spikes = DeviceVec::<T>::zeros(&self.device, self.n().saturating_mul(w + v))?;
        let sizes = [Arg::Word(self.n() as u64), Arg::from(count as u32), Arg::from((w + v) as u32)];
        let spread = self.device.kernel(Family::Spike, &format!("spike_spread_{}", T::SUFFIX))?;
        let args = [sizes[0], sizes[1], sizes[2], rows.arg(), values.arg(), spikes.arg()];
        spread.launch(Shape::over((count * (w + v)) as u64), &args)?;
        self.factors.solve(&spikes, (w + v) as u32)?;
        self.tips_of(&spikes, w + v)
    }
}

/// How many partitions of `n` rows or blocks: as many as are asked for or the device has use for, none too short.
fn count(device: &Device, asked: Option<usize>, n: usize, [least, default_least]: [usize; 2]) -> usize {
    match asked {
        Some(p) => p.min(n / least),
        None => (2 * device.multiprocessors() as usize).min(n / default_least),
    }
    .max(1)
}

/// [`FactorError::Breakdown`] where a partition has no pivot.
fn pivots(failed: &[Option<usize>], what: &str) -> Result<(), FactorError> {
    let Some((p, at)) = failed.iter().enumerate().find_map(|(p, at)| Some((p, (*at)?))) else { return Ok(()) };
    let reason = format!("partition {p} has no pivot in its {what} {at} (from 0)");
    Err(FactorError::breakdown(METHOD, Place::Partition(p), reason))
}

fn band_part<T: Scalar>(a: &Band<T>, rows: Range<usize>) -> Result<Band<T>, InputError> {
    let mut part = Band::zeros(rows.len(), a.kl(), a.ku())?;
    for j in 0..rows.len() {
        for i in part.column_range(j) {
            *part.get_mut(i, j) = a.get(rows.start + i, rows.start + j);
        }
    }
    Ok(part)
}

/// Columns of W and of V.
fn widths<T: Scalar>(cuts: &[Cut<T>]) -> (usize, usize) {
    cuts.iter().fold((0, 0), |(w, v), cut| (w.max(cut.above.len()), v.max(cut.below.len())))
}

/// The reduced system from the tips of [W V]: at cut j with the unknowns (above, below) the rows
/// `[W_above | I V_above | 0]` and `[0 | W_below I | V_below]` in the unknowns of cuts j − 1, j and j + 1.
fn reduced<T: Scalar>(cuts: &[Cut<T>], spikes: &Mat<T>) -> Result<BlockTridiagonal<T>> {
    let (w, _) = widths(cuts);
    let order = |j: usize| cuts.get(j).map_or(0, Cut::order);
    let (mut diagonal, mut couplings, mut at) = (Vec::new(), Vec::new(), 0);
    for (j, cut) in cuts.iter().enumerate() {
        let (above, k) = (cut.above.len(), cut.order());
        let tip = |i: usize, column: usize| spikes[(at + i, column)];
        let one = |same: bool| if same { bt_formats::one() } else { T::default() };
        // V of the partition above and W of the one below meet at this cut.
        let own = |i: usize, c: usize| match (i < above, c < above) {
            (true, false) => tip(i, w + c - above),
            (false, true) => tip(i, c),
            _ => one(i == c),
        };
        diagonal.extend((0..k).flat_map(|c| (0..k).map(move |i| (i, c))).map(|(i, c)| own(i, c)));
        let before = if j > 0 { order(j - 1) } else { 0 };
        let beside = |i: usize, c: usize| {
            // Unknowns above the cut before meet W of the partition between, unknowns below the next its V.
            if c < before {
                if i < above && c < cuts[j - 1].above.len() { tip(i, c) } else { T::default() }
            } else {
                let (c, next) = (c - before, cuts[j + 1].above.len());
                if i >= above && c >= next { tip(i, w + c - next) } else { T::default() }
            }
        };
        let columns = before + order(j + 1);
        couplings.extend((0..columns).flat_map(|c| (0..k).map(move |i| (i, c))).map(|(i, c)| beside(i, c)));
        at += k;
    }
    let partition = Partition::from_sizes(cuts.iter().map(Cut::order))?;
    Ok(BlockTridiagonal::from_dense_blocks(partition, diagonal, couplings)?)
}

/// b ← b less the couplings across the cuts times the tips of x.
fn subtract<T: Scalar>(cuts: &[Cut<T>], tips: &[T], b: &mut [T]) {
    let minus = |b: &mut [T], matrix: &Mat<T>, x: &[T]| {
        for (i, b) in b.iter_mut().enumerate() {
            *b = x.iter().enumerate().fold(*b, |b, (j, &x)| b - matrix[(i, j)] * x);
        }
    };
    let mut rest = tips;
    for cut in cuts {
        let (above, after) = rest.split_at(cut.above.len());
        let (below, after) = after.split_at(cut.below.len());
        minus(&mut b[cut.rows_of_b()], &cut.b, below);
        minus(&mut b[cut.rows_of_c()], &cut.c, above);
        rest = after;
    }
}
