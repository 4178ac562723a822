//! Dense systems on the device: random butterflies, then LU without pivoting.
//!
//! ```text
//! Sᵣ = s·W₁ᵀ·A·W₂ = L·U      A·x = b:  z = s·(L·U)⁻¹·W₁ᵀ·b,  x = W₂·z      Aᵀ·x = b:  x = s·W₁·(L·U)⁻ᵀ·W₂ᵀ·b
//! ```
//!
//! Butterflies, border, scaling, checks and limits are those of [`bt_direct::Rbt`] (Baboulin, Dongarra, Herrmann & Tomov, ACM TOMS 39
//! (2013) 8, doi:10.1145/2427023.2427025): the same random numbers, so Sᵣ has the same bits. L and U are made by panels of 32 columns:
//! a launch factors the diagonal block and solves with its triangles, another updates (`kernels/dense.cu`). Only the rows and columns of
//! the next three panels are updated at once; the rest waits for the product of all four, 128 deep.
//!
//! Departures: A matrix that fails a check is factored by the host, with partial pivoting, and [`DeviceRbt::fallback`] says so. No
//! monitor is asked: all launches are queued at once. A solve takes launches and copies to the device; solves at the same time wait for
//! each other. A device that is lost in a solve leaves NaN, and the next call that can fail says why.
//!
//! Storage on the device: n'·(n' + 32 + 16) values for n' the next multiple of 8 (16 for `f32`) and of 2^d, 2·d·n' of the butterflies
//! and 24·n' bytes of measures. Cost: ⅔n³ + 4·d·n² flops; with values of s bytes 4s·n² bytes for the butterflies, 2s·n² for the
//! copies of A, about s·n³/192 for the updates; n/32 panels of two launches. A solve of up to 8 right-hand sides: 2n² flops each,
//! s·n² bytes, two launches and two of butterflies (n/16 where the thread blocks of 256 rows do not fit on the device at once).

use std::sync::{Mutex, PoisonError};

use bt_direct::rbt::{Eliminated, Judge};
use bt_direct::{
    Butterfly, FactorError, FactorStats, Factorization, Fallback, FallbackReason, Given, LogDet, PartialPivotLu, Rbt,
    RbtOptions,
};
use bt_formats::{Error as InputError, Monitor, Op, RealScalar, one, zero};
use faer::{Mat, MatMut, MatRef};

use crate::cg::Schedule;
use crate::device::{Arg, Device, DeviceError, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};

const METHOD: &str = "rbt";
/// Columns of a panel, and panels that wait for one product: PANEL of kernels/dense.cu.
const PANEL: usize = 32;
const PANELS: usize = 4;
/// Rows and columns of a tile of a product.
const TILE: u32 = 64;
/// Right-hand sides that pass through the factors together.
const WIDE: usize = 8;

/// A dense matrix on the device, factored after random butterflies from both sides.
///
/// ```
/// use bt_direct::{Factorization, RbtOptions};
/// use bt_kernels::{Device, DeviceRbt};
/// use faer::mat;
/// // No pivot on the diagonal: elimination as it stands would divide by zero.
/// let a = mat![[0.0, 1.0], [1.0, 0.0]];
/// if let Ok(device) = Device::open(0) {
///     let f = DeviceRbt::new(&device, a.as_ref())?;
///     let mut x = [3.0, 4.0];
///     f.solve_vec_in_place(&mut x);
///     assert!((x[0] - 4.0f64).abs() < 1e-14 && (x[1] - 3.0f64).abs() < 1e-14);
///     assert!(f.fallback().is_none());
/// }
/// # Ok::<(), bt_kernels::DeviceError>(())
/// ```
pub struct DeviceRbt<T: DeviceScalar> {
    n: usize,
    options: RbtOptions,
    butterflies: [Butterfly<T>; 2],
    /// The entries of both.
    entries: [DeviceVec<T>; 2],
    /// Sᵣ, then L and U, by columns.
    matrix: DeviceVec<T>,
    /// Factored diagonal blocks until the end of a factorization.
    diagonal: DeviceVec<T>,
    status: DeviceVec<u32>,
    /// Pivots, largest moduli of columns of L and of rows of U.
    measured: DeviceVec<f64>,
    kernels: Kernels,
    work: Mutex<Group<T>>,
    /// The factors are those of s·A.
    scale: T::Real,
    stats: FactorStats,
    det: LogDet<T>,
    reason: Option<FallbackReason>,
    pivoted: Option<PartialPivotLu<T>>,
    void: bool,
}

/// Right-hand sides on their way, WIDE of them: on the host, and twice on the device.
struct Group<T: DeviceScalar> {
    host: Vec<T>,
    from: DeviceVec<T>,
    to: DeviceVec<T>,
    meeting: Meeting,
}

/// The barrier of cooperative launches: arrivals, and rounds so far.
struct Meeting {
    arrived: DeviceVec<u32>,
    round: u32,
    /// Whether the blocks of a substitution fit on the device at once.
    fits: bool,
}

struct Kernels {
    /// None at depth 0.
    butterfly: Option<Kernel>,
    panel: Kernel,
    update: Kernel,
    settle: Kernel,
    measure: Kernel,
    /// Of one right-hand side, and of WIDE.
    substitute: [Kernel; 2],
}

impl Kernels {
    fn new<T: DeviceScalar>(device: &Device, depth: usize) -> Result<Self> {
        let kernel = |name: &str| device.kernel(Family::Dense, &format!("dense_{name}_{}", T::SUFFIX));
        Ok(Self {
            butterfly: if depth > 0 { Some(kernel(&format!("butterfly_{depth}"))?) } else { None },
            panel: kernel("panel")?,
            update: kernel("update")?,
            settle: kernel("settle")?,
            measure: kernel("measure")?,
            substitute: [kernel("substitute_1")?, kernel(&format!("substitute_{WIDE}"))?],
        })
    }
}

/// What a substitution solves with: the forms of kernels/dense.cu.
#[derive(Clone, Copy)]
enum Form {
    Lower,
    Upper,
    UpperTransposed,
    LowerTransposed,
}

impl<T: DeviceScalar> DeviceRbt<T> {
    /// Factors a square matrix of any strides, with default options.
    ///
    /// # Errors
    /// [`FactorError::Singular`] with the first column without a pivot, found by the pivoted fallback; [`FactorError::Breakdown`] when a
    /// check fails and the fallback is [`Fallback::Error`]; [`FactorError::Input`] for NaN and infinity, when `a` is not square, and for
    /// a depth above [`bt_direct::butterfly::MAX_DEPTH`]; [`FactorError::Failed`] when ‖A‖₁ overflows; errors of the device.
    ///
    /// # Cost
    /// [`DeviceRbt::flops`], and 2n² values copied; on the host n'² values of memory, and ⅔n³ flops after a fallback.
    pub fn new(device: &Device, a: MatRef<'_, T>) -> Result<Self> {
        Self::with_options(device, a, RbtOptions::default(), Schedule::Auto)
    }

    /// Like [`DeviceRbt::new`], with other options, and substitutions of one launch or of one a panel, which give the same bits.
    ///
    /// # Errors
    /// Also [`InputError::InvalidStructure`] for `Schedule::Persistent` where the blocks do not fit on the device at once.
    pub fn with_options(device: &Device, a: MatRef<'_, T>, options: RbtOptions, schedule: Schedule) -> Result<Self> {
        let n = a.nrows();
        if u32::try_from(n).is_err() {
            let (what, needed, limit) = ("a dense matrix", format!("{n} rows"), "2^32 - 1".into());
            return Err(InputError::TooLarge { what, needed, limit }.into());
        }
        // Before memory is taken.
        let judge = Judge::new(a)?;
        let butterflies = Rbt::<T>::butterflies(n, options)?;
        let padded = butterflies[0].n();
        let memory = |len| DeviceVec::uninitialized(device, len);
        let matrix = memory(padded.saturating_mul(padded))?;
        let panels = padded.div_ceil(PANEL);
        let [left, right] = &butterflies;
        let real = |w: &Butterfly<T>| w.entries().iter().map(|&v| T::from_real(v)).collect::<Vec<_>>();
        let kernels = Kernels::new::<T>(device, options.depth)?;
        let blocks = (padded as u32).div_ceil(Shape::BLOCK);
        let fits = schedule != Schedule::Launches
            && blocks <= kernels.substitute[1].resident_blocks(Shape::BLOCK, 0)?
            && blocks <= kernels.substitute[0].resident_blocks(Shape::BLOCK, 0)?;
        if schedule == Schedule::Persistent && !fits {
            let why = format!("the device does not hold {blocks} blocks of {} at once", Shape::BLOCK);
            return Err(InputError::InvalidStructure { what: "schedule", why }.into());
        }
        let work = Group {
            host: vec![zero(); padded * WIDE],
            from: memory(padded * WIDE)?,
            to: memory(padded * WIDE)?,
            meeting: Meeting { arrived: DeviceVec::zeros(device, 1)?, round: 0, fits },
        };
        let mut f = Self {
            n,
            options,
            entries: [DeviceVec::from_slice(device, &real(left))?, DeviceVec::from_slice(device, &real(right))?],
            butterflies,
            matrix,
            diagonal: memory(panels * PANEL * PANEL)?,
            status: DeviceVec::uninitialized(device, panels)?,
            measured: DeviceVec::uninitialized(device, 3 * padded)?,
            kernels,
            work: Mutex::new(work),
            scale: one(),
            stats: FactorStats::default(),
            det: LogDet::one(),
            reason: None,
            pivoted: None,
            void: false,
        };
        f.factor(a, &judge)?;
        Ok(f)
    }

    /// Factors another matrix of the same size with the same butterflies, in the same memory. After an error the factors are void: solves
    /// give NaN until a refactorisation succeeds.
    ///
    /// # Errors
    /// As [`DeviceRbt::new`], and [`InputError::DimensionMismatch`] on another size.
    pub fn refactor(&mut self, a: MatRef<'_, T>) -> Result<()> {
        if a.nrows() != self.n {
            let (what, expected, found) = ("size of the matrix", self.n, a.nrows());
            return Err(InputError::DimensionMismatch { what, expected, found }.into());
        }
        let done = Judge::new(a).map_err(DeviceError::from).and_then(|judge| self.factor(a, &judge));
        self.void = done.is_err();
        done
    }

    /// Whether a triangle is solved with in one launch.
    pub fn is_persistent(&self) -> bool {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).meeting.fits
    }

    /// Why the factors in use are those of a [`PartialPivotLu`] on the host; `None` when they are on the device.
    pub fn fallback(&self) -> Option<FallbackReason> {
        self.reason
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        let values = [&self.matrix, &self.diagonal, &self.entries[0], &self.entries[1]];
        let vectors = 2 * self.padded() * WIDE * size_of::<T>();
        values.map(DeviceVec::bytes).iter().sum::<usize>() + vectors + self.status.bytes() + self.measured.bytes()
    }

    /// Flops of the factorization: ⅔n³ + 6·d·n² + 4n², as on the host.
    pub fn flops(n: usize, depth: usize) -> f64 {
        Rbt::<T>::flops(n, depth)
    }

    /// n'
    fn padded(&self) -> usize {
        self.butterflies[0].n()
    }

    fn factor(&mut self, a: MatRef<'_, T>, judge: &Judge) -> Result<()> {
        (self.void, self.reason) = (false, None);
        self.scale = T::Real::from_f64(judge.scale());
        let reason = if self.n == 0 { None } else { self.eliminate(a, judge)? };
        if let Some(reason) = reason {
            if self.options.fallback == Fallback::Error {
                // Columns after the butterflies are none of A.
                let reason = format!("{reason}; pivoting is needed: dense-lu");
                return Err(FactorError::breakdown(METHOD, None, reason).into());
            }
            match &mut self.pivoted {
                Some(lu) => lu.refactor(a)?,
                None => self.pivoted = Some(PartialPivotLu::new(a)?),
            }
        }
        self.reason = reason;
        Ok(())
    }

    /// Sᵣ = L·U on the device; the check that failed, if one did.
    fn eliminate(&mut self, a: MatRef<'_, T>, judge: &Judge) -> Result<Option<FallbackReason>> {
        let (n, padded, scale) = (self.n, self.padded(), self.scale);
        // s·A, bordered by an identity.
        let mut bordered: Vec<T> = Vec::new();
        bordered.try_reserve_exact(padded * padded).map_err(|_| {
            let needed = format!("{padded} × {padded} values");
            DeviceError::from(InputError::TooLarge {
                what: "a copy of the matrix",
                needed,
                limit: "the memory there is".into(),
            })
        })?;
        for j in 0..padded {
            bordered.extend((0..padded).map(|i| match (i < n, j < n) {
                (true, true) => a[(i, j)] * T::from_real(scale),
                _ if i == j => one(),
                _ => zero(),
            }));
        }
        self.matrix.copy_from(&bordered)?;
        drop(bordered);
        self.transform_matrix()?;
        self.factor_panels()?;
        let mut status = vec![0; self.status.len()];
        self.status.copy_to(&mut status)?;
        if let Some(bad) = status.last().filter(|&&bad| bad > 0) {
            return Ok(Some(FallbackReason::Pivot(*bad as usize - 1)));
        }
        let eliminated = self.measure(judge)?;
        let mut tried = Ok(());
        let verdict = judge.verdict(a, self.options.seed, eliminated, |x| {
            let done = self.solve_with_butterflies(Op::Identity, MatMut::from_column_major_slice_mut(x, n, 1));
            tried = std::mem::replace(&mut tried, Ok(())).and(done);
        });
        // What the device did not do in the trial must not look like a bad matrix.
        tried.and_then(|()| self.matrix.device().synchronize("a trial solve")).map(|()| verdict)
    }

    /// X ← op(W)·X of `lines` lines of n' values.
    fn butterfly(
        &self,
        side: usize,
        op: Op,
        x: &DeviceVec<T>,
        lines: usize,
        along: usize,
        across: usize,
    ) -> Result<()> {
        let Some(kernel) = &self.kernels.butterfly else { return Ok(()) };
        let shape = Shape::over((self.padded() >> self.options.depth) as u64 * lines as u64);
        let args = [
            Arg::from(self.padded() as u32),
            self.entries[side].arg(),
            Arg::from(lines as u32),
            Arg::Word(along as u64),
            Arg::Word(across as u64),
            Arg::from(u32::from(op != Op::Identity)),
            x.arg(),
        ];
        kernel.launch(shape, &args)
    }

    /// Sᵣ ← W₁ᵀ·A·W₂
    fn transform_matrix(&self) -> Result<()> {
        let n = self.padded();
        self.butterfly(0, Op::Transpose, &self.matrix, n, 1, n)?;
        // The rows of A as its columns: Aᵀ ← W₂ᵀ·Aᵀ.
        self.butterfly(1, Op::Transpose, &self.matrix, n, n, 1)
    }

    /// struct Matrix of the kernels
    fn structure(&self) -> [u64; 4] {
        [self.padded() as u64, self.matrix.address(), self.diagonal.address(), self.status.address()]
    }

    /// A ← L\U
    fn factor_panels(&self) -> Result<()> {
        let (n, words) = (self.padded(), self.structure());
        let matrix = Arg::Struct(&words);
        let shape = |blocks: u32| Shape { blocks: blocks.max(1), rows: 1, threads: Shape::BLOCK, shared: 0 };
        for first in (0..n).step_by(PANEL * PANELS) {
            let outer = (first + PANEL * PANELS).min(n);
            for k in (first..outer).step_by(PANEL) {
                let low = (k + PANEL).min(n);
                let groups = ((n - low) as u32).div_ceil(Shape::BLOCK);
                self.kernels.panel.launch(shape(2 * groups), &[matrix, Arg::from(k as u32)])?;
                if low == n {
                    break;
                }
                // The other panels of the four now, the rest after the last of them.
                let (from, high) = if low < outer { (k, outer) } else { (first, n) };
                let (across, strip) = (tiles(n - low), tiles(high - low));
                let blocks = across * across - (across - strip) * (across - strip);
                let args = [matrix, Arg::from(from as u32), Arg::from(low as u32), Arg::from(high as u32)];
                self.kernels.update.launch(shape(blocks), &args)?;
            }
        }
        self.kernels.settle.launch(Shape::over((n * PANEL) as u64), &[matrix])
    }

    /// Growth, pivots, determinant.
    fn measure(&mut self, judge: &Judge) -> Result<Eliminated> {
        let (n, words) = (self.padded(), self.structure());
        let shape = Shape { blocks: (n + n.div_ceil(32)) as u32, rows: 1, threads: Shape::BLOCK, shared: 0 };
        self.kernels.measure.launch(shape, &[Arg::Struct(&words), self.measured.arg()])?;
        let mut measured = vec![0.0; 3 * n];
        self.measured.copy_to(&mut measured)?;
        let (pivots, (lower, upper)) = (&measured[..n], measured[n..].split_at(n));
        let largest = |v: &mut dyn Iterator<Item = f64>| v.fold(0.0, f64::max_nan);
        let eliminated = Eliminated {
            largest: largest(&mut upper.iter().copied())
                .max_nan(largest(&mut lower.iter().zip(upper).map(|(l, u)| l * u))),
            min_pivot: pivots.iter().fold(f64::INFINITY, |m: f64, p| m.min_nan(p.abs())),
            max_pivot: largest(&mut pivots.iter().map(|p| p.abs())),
        };
        // det(s·A) = det(L·U) / (det W₁·det W₂)
        let [left, right] = &self.butterflies;
        self.det = LogDet::one();
        for &p in pivots {
            self.det.multiply(T::rounded(p, 0.0));
        }
        self.det.log_abs -= left.log_abs_det() + right.log_abs_det() + self.n as f64 * judge.scale().ln();
        if left.is_det_negative() != right.is_det_negative() {
            self.det.negate();
        }
        self.stats = FactorStats {
            norm_one: judge.norm_one(),
            growth: judge.growth(eliminated),
            min_pivot: eliminated.min_pivot / judge.scale(),
            boosted_pivots: 0,
            nnz: n * n,
            bytes: self.bytes(),
            flops: Self::flops(self.n, self.options.depth),
        };
        Ok(eliminated)
    }

    /// As on the host; NaN where the device fails, and the first error.
    fn solve_with_butterflies(&self, op: Op, mut x: MatMut<'_, T>) -> Result<()> {
        if self.n == 0 {
            return Ok(());
        }
        let mut all = Ok(());
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        for first in (0..x.ncols()).step_by(WIDE) {
            let count = WIDE.min(x.ncols() - first);
            let mut part = x.as_mut().subcols_mut(first, count);
            let done = if self.void { None } else { Some(self.pass(op, part.as_mut(), &mut work)) };
            if !matches!(done, Some(Ok(()))) {
                part.fill(T::rounded(f64::NAN, 0.0));
            }
            all = all.and(done.unwrap_or(Ok(())));
        }
        all
    }

    /// X ← op(A)⁻¹·X for up to WIDE columns.
    fn pass(&self, op: Op, mut x: MatMut<'_, T>, work: &mut Group<T>) -> Result<()> {
        let (n, count) = (self.padded(), x.ncols());
        let scale = T::from_real(self.scale);
        for (j, column) in work.host.chunks_exact_mut(n).enumerate() {
            for (i, v) in column.iter_mut().enumerate() {
                *v = if j < count && i < self.n { x[(i, j)] * scale } else { zero() };
            }
        }
        work.from.copy_from(&work.host)?;
        // W₁ on the left of A, W₂ on its right.
        let (before, after, forms) = match op {
            Op::Identity => (0, 1, [Form::Lower, Form::Upper]),
            Op::Transpose | Op::Adjoint => (1, 0, [Form::UpperTransposed, Form::LowerTransposed]),
        };
        self.butterfly(before, Op::Transpose, &work.from, count, 1, n)?;
        self.substitute(forms[0], count, &work.from, &work.to, &mut work.meeting)?;
        self.substitute(forms[1], count, &work.to, &work.from, &mut work.meeting)?;
        self.butterfly(after, Op::Identity, &work.from, count, 1, n)?;
        work.from.copy_to(&mut work.host)?;
        for j in 0..count {
            for i in 0..self.n {
                x[(i, j)] = work.host[j * n + i];
            }
        }
        Ok(())
    }

    /// to ← triangle⁻¹·from; `from` is used up. One cooperative launch where its blocks fit on the device at once, else one a panel.
    fn substitute(
        &self,
        form: Form,
        count: usize,
        from: &DeviceVec<T>,
        to: &DeviceVec<T>,
        meeting: &mut Meeting,
    ) -> Result<()> {
        let (n, words) = (self.padded(), self.structure());
        let kernel = &self.kernels.substitute[usize::from(count > 1)];
        let panels = n.div_ceil(PANEL) as u32;
        let shape = Shape { blocks: (n as u32).div_ceil(Shape::BLOCK), rows: 1, threads: Shape::BLOCK, shared: 0 };
        let launch = |step: u32, steps: u32, round: u32, together: bool, arrived: &DeviceVec<u32>| {
            let [form, step, steps, count, round] = [form as u32, step, steps, count as u32, round].map(Arg::from);
            let args = [Arg::Struct(&words), form, step, steps, count, from.arg(), to.arg(), arrived.arg(), round];
            if together { kernel.launch_together(shape, &args) } else { kernel.launch(shape, &args) }
        };
        if !meeting.fits {
            return (0..panels).try_for_each(|step| launch(step, 1, 0, false, &meeting.arrived));
        }
        let rounds = panels - 1;
        // The barrier counts arrivals in 32 bits.
        if (u64::from(meeting.round) + u64::from(rounds)) * u64::from(shape.blocks) > u64::from(u32::MAX) {
            meeting.arrived.copy_from(&[0])?;
            meeting.round = 0;
        }
        launch(0, panels, meeting.round, true, &meeting.arrived)?;
        meeting.round += rounds;
        Ok(())
    }

    /// The factors with pivoting, when they are the ones in use.
    fn pivoted(&self) -> Option<&PartialPivotLu<T>> {
        self.reason.and(self.pivoted.as_ref())
    }
}

/// Tiles that cover so many rows.
fn tiles(rows: usize) -> u32 {
    (rows as u32).div_ceil(TILE)
}

impl<T: DeviceScalar> Factorization<T> for DeviceRbt<T> {
    fn n(&self) -> usize {
        self.n
    }
    fn method(&self) -> &'static str {
        METHOD
    }
    /// Columns in groups of eight. NaN where the device fails; [`Device::check`] says why.
    fn solve_op_in_place(&self, op: Op, x: MatMut<'_, T>) {
        assert_eq!(x.nrows(), self.n, "rows of X");
        match self.pivoted() {
            Some(lu) => lu.solve_op_in_place(op, x),
            None => {
                if let Err(error) = self.solve_with_butterflies(op, x) {
                    self.matrix.device().keep(error);
                }
            }
        }
    }
    fn refactor(&mut self, a: Given<'_, T>, _: &mut dyn Monitor) -> bt_direct::Result<()> {
        let mut own = Mat::new();
        Self::refactor(self, a.dense(&mut own)?).map_err(|e| match e {
            DeviceError::Input(e) => FactorError::Input(e),
            DeviceError::Factor(e) => e,
            other => FactorError::Failed { method: METHOD, reason: other.to_string() },
        })
    }
    fn stats(&self) -> FactorStats {
        self.pivoted().map_or(self.stats, |lu| {
            let tried = 2.0 / 3.0 * (self.n as f64).powi(3);
            FactorStats { flops: lu.stats().flops + tried, ..lu.stats() }
        })
    }
    fn log_det(&self) -> LogDet<T> {
        self.pivoted().map_or(self.det, PartialPivotLu::log_det)
    }
}
