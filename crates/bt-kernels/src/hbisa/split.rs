//! HBISA on several devices, and on the processor beside them: each place sweeps blocks that follow each other.
//!
//! Blocks couple to their neighbours alone, so that after a sweep (half a sweep of red–black) the two blocks at each cut are all that is
//! exchanged: between devices by copies from one memory to the other, behind which the reader's stream waits. Norms of all parts come
//! together on the host, which judges after every sweep; one launch for many sweeps is not possible.
//!
//! An iterate of devices has the bits that it has on one of them, however the blocks are dealt out: no sum crosses a block. Norms, whose
//! sums are added up in the order of blocks, have the same bits however blocks are dealt out while no device has over 1024 blocks of a
//! colour; those of [`DeviceHbisa`](crate::DeviceHbisa) differ by rounding, and so do blocks of the processor.
//!
//! Storage of a device: its blocks and their vectors as on one device, and 5 values for each row of the two blocks beside them. Traffic
//! of a sweep: the two blocks at each cut, and 96 bytes for each thread block, whose sums are read.

use std::ops::Range;
use std::time::Instant;

use bt_formats::{
    BlockTridiagonal, Breakdown, Bytes, Matrix, Monitor, Note, Outcome, Par, Partition, RealScalar, Scalar,
    SolveReport, StopCriterion, norm2, one,
};
use bt_iter::{BlockDiagonal, Rate, StopRule, Sweep, for_blocks};
use faer::{MatMut, MatRef};

use super::piece::{Piece, Share, Source};
use super::run::{Told, judge};
use super::{Iteration, colours, refuse};
use crate::device::{DeviceScalar, Result};
use crate::krylov::{check_vector, slices};
use crate::places::{self, Place, Shares};
use crate::scaled::Exponents;
use crate::tridiagonal::BlockSolver;

/// The iteration on one matrix whose blocks are on several places.
///
/// ```
/// use bt_formats::{BlockTridiagonal, Csr, DiagonalKind, HybridLayout, Outcome, Partition, StopCriterion};
/// use bt_iter::{StopRule, Sweep};
/// use bt_kernels::{Device, Place, Shares, SplitHbisa};
/// let a = Csr::from_dense(faer::mat![
///     [4.0, 1.0, 0.5, 0.0],
///     [1.0, 4.0, 0.0, 0.5],
///     [0.5, 0.0, 4.0, 1.0],
///     [0.0, 0.5, 1.0, 4.0],
/// ].as_ref())?;
/// let layout = HybridLayout { diagonal: Some(DiagonalKind::Tridiagonal), ..HybridLayout::default() };
/// let a = BlockTridiagonal::from_csr(&a, Partition::uniform(4, 2)?, layout)?;
/// if let Ok(device) = Device::open(0) {
///     let places = [Place::Device(device), Place::Host];
///     let mut x = [0.0; 4];
///     let mut method = SplitHbisa::new(&places, &Shares::Even, &a, Sweep::Jacobi, StopRule::Residual)?;
///     let report = method.solve(&[5.5; 4], &mut x, &StopCriterion::default(), &mut ())?;
///     assert_eq!((report.outcome, method.counts()), (Outcome::Converged, [1, 1].as_slice()));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SplitHbisa<'a, T: DeviceScalar> {
    iteration: Iteration<'a, T>,
    exponents: Exponents,
    places: Vec<Place>,
    counts: Vec<usize>,
    /// Of the places that have blocks, in order.
    parts: Vec<Part<T>>,
}

/// Blocks of a place.
enum Part<T: DeviceScalar> {
    Host(Host<T>),
    Device(Box<Piece<T>>),
}

/// The processor's blocks, and its vectors. It scales nothing.
struct Host<T: DeviceScalar> {
    blocks: Range<usize>,
    factors: BlockDiagonal<T>,
    partition: Partition,
    /// As on a device: iterate i is at i mod 3. Its rows, and those of the blocks on either side.
    x: [Vec<T>; 3],
    /// b − (L + U)·x, and D·x, on its rows.
    t: Vec<T>,
    image: Vec<T>,
}

/// Norms of a sweep: of the residual before it, of the update, of the new iterate.
#[derive(Clone, Copy, Default)]
struct Norms {
    residual: f64,
    change: f64,
    size: f64,
}

impl<'a, T: DeviceScalar> SplitHbisa<'a, T> {
    /// Deals out the blocks and copies to each place what is its own. Red–black sweeps cut before blocks of even number.
    ///
    /// # Errors
    /// As [`DeviceHbisa::new`](crate::DeviceHbisa::new); [`bt_formats::Error::InvalidStructure`] for places and shares that do not fit
    /// each other or the matrix, and for a place that is named twice.
    ///
    /// # Cost
    /// `Shares::Measured`: the copies twice, and two sweeps on each place. Factors of all diagonal blocks on the host, once more
    /// where it has a part.
    pub fn new(
        places: &[Place],
        shares: &Shares,
        a: &'a BlockTridiagonal<T>,
        sweep: Sweep,
        rule: StopRule,
    ) -> Result<Self> {
        let iteration = Iteration::new(a, sweep, rule)?;
        places::check(places)?;
        let (m, unit) = (a.n_blocks(), colours(sweep) as usize);
        let counts = places::first_counts(shares, places.len(), m, unit, "blocks")?;
        let source = Source::new(a)?;
        let mut method = Self::dealt(iteration, &source, places, counts)?;
        // Where a place has nothing there is nothing to measure.
        if *shares == Shares::Measured && method.parts.len() == places.len() {
            let counts = places::deal(m, unit, &method.speeds()?);
            drop(method);
            method = Self::dealt(iteration, &source, places, counts)?;
        }
        Ok(method)
    }

    fn dealt(iteration: Iteration<'a, T>, source: &Source<T>, places: &[Place], counts: Vec<usize>) -> Result<Self> {
        let Iteration { a, sweep, .. } = iteration;
        let (mut parts, mut first) = (Vec::new(), 0);
        for (place, count) in places.iter().zip(&counts) {
            let blocks = first..first + count;
            first = blocks.end;
            match place {
                _ if blocks.is_empty() => {}
                Place::Host => parts.push(Part::Host(Host::new(a, blocks)?)),
                Place::Device(_) if !blocks.start.is_multiple_of(colours(sweep) as usize) => {
                    let why = format!("a GPU begins at block {}; red–black sweeps need an even one", blocks.start);
                    return refuse("shares", why);
                }
                Place::Device(device) => {
                    parts.push(Part::Device(Box::new(Piece::new(device, a, source, blocks, sweep, Share::Nothing)?)));
                }
            }
        }
        Ok(Self { iteration, exponents: source.exponents, places: places.to_vec(), counts, parts })
    }

    /// Blocks of each place.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Bytes of all places.
    pub fn bytes(&self) -> Bytes {
        let mut sum = Bytes::default();
        for part in &self.parts {
            match part {
                Part::Host(host) => sum.factors += host.factors.bytes(),
                Part::Device(piece) => {
                    let [matrix, factors] = piece.bytes();
                    sum.matrix += matrix;
                    sum.factors += factors;
                    sum.workspace += piece.vectors.bytes();
                }
            }
        }
        sum
    }

    /// Iterates from the `x` given (zero is a good start) towards the solution of A·x = b; on every exit `x` is the best iterate.
    ///
    /// # Errors
    /// [`bt_formats::Error::DimensionMismatch`], [`bt_formats::Error::NonFinite`]; errors of a device, after which `x` is as it was given.
    pub fn solve(
        &mut self,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport> {
        let n = self.iteration.a.n();
        check_vector("right-hand side", b, n)?;
        check_vector("x", x, n)?;
        self.run(b, x, stop, monitor)
    }

    /// As [`SplitHbisa::solve`] for the contiguous columns of B and X, one after the other: a report for each. When the monitor ends
    /// the run, columns not yet begun have no report.
    ///
    /// # Errors
    /// As [`SplitHbisa::solve`]; columns that had ended when a device failed are solved.
    pub fn solve_many(
        &mut self,
        b: MatRef<'_, T>,
        x: MatMut<'_, T>,
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<SolveReport>> {
        let (b, x) = slices(self.iteration.a.n(), b, x)?;
        let (several, mut reports) = (b.len() > 1, Vec::new());
        for (j, (b, x)) in b.into_iter().zip(x).enumerate() {
            let mut told = Told { monitor: &mut *monitor, column: several.then_some(j) };
            reports.push(self.run(b, x, stop, &mut told)?);
            if reports[j].outcome == Outcome::Stopped {
                break;
            }
        }
        Ok(reports)
    }

    /// Blocks that each part sweeps in a second.
    fn speeds(&mut self) -> Result<Vec<f64>> {
        let n = self.iteration.a.n();
        let b = vec![one::<T>(); n];
        self.load(&b, &vec![T::default(); n], 0.0)?;
        let Iteration { a, sweep, .. } = self.iteration;
        let seconds = |part: &mut Part<T>| -> Result<f64> {
            let start = Instant::now();
            for colour in 0..colours(sweep) {
                match part {
                    Part::Host(host) => drop(host.half_sweep(a, &b, 0, colour, colours(sweep))),
                    Part::Device(piece) => piece.sweep_alone(sweep, 0, colour)?,
                }
            }
            if let Part::Device(piece) = part {
                piece.device().synchronize("sweeping")?;
            }
            Ok(start.elapsed().as_secs_f64())
        };
        let timed = self.parts.iter_mut().zip(&self.counts).map(|(part, &count)| {
            // The first one loads the kernels.
            seconds(part)?;
            Ok(count as f64 / seconds(part)?.max(f64::MIN_POSITIVE))
        });
        timed.collect()
    }

    fn run(&mut self, b: &[T], x: &mut [T], stop: &StopCriterion, monitor: &mut dyn Monitor) -> Result<SolveReport> {
        let start = Instant::now();
        let iteration = self.iteration;
        let (norm_r0, threshold, baseline) = iteration.measures(b, x, stop);
        let by_residual = iteration.rule == StopRule::Residual;
        self.load(b, x, norm_r0)?;
        let mut rate = Rate::default();
        let mut newest = (0, if by_residual { norm_r0 } else { f64::INFINITY });
        let mut best: (f64, Vec<T>) = (f64::INFINITY, Vec::new());
        let mut outcome = judge(newest, threshold, stop, &mut rate, baseline, monitor, start);
        let mut step = 0;
        while outcome.is_none() {
            let norms = self.sweep(b, step)?;
            step += 1;
            // The residual is that of the iterate before the sweep.
            let (i, norm, target) = if by_residual {
                (step - 1, norms.residual, threshold)
            } else {
                (step, norms.change, stop.atol.max(stop.rtol * norms.size))
            };
            if i == 0 {
                continue;
            }
            if !(norm <= newest.1) && newest.1 < best.0 {
                best = (newest.1, self.gather(newest.0)?);
            }
            newest = (i, norm);
            outcome = judge(newest, target, stop, &mut rate, baseline, monitor, start);
        }
        let mut norm = newest.1;
        let first = x.to_vec();
        if step > 0 {
            let answer = if norm <= best.0 || best.1.is_empty() {
                self.gather(newest.0)?
            } else {
                norm = best.0;
                best.1
            };
            // x may leave the range although its scaled twin does not.
            if answer.iter().all(|v| Scalar::is_finite(*v)) {
                x.copy_from_slice(&answer);
            } else {
                norm = f64::NAN;
            }
        }
        let mut outcome = match outcome {
            Some(outcome) if !norm.is_nan() => outcome,
            _ => Outcome::Breakdown(Breakdown::NonFinite),
        };
        iteration.not_worse_than(&first, b, x, &mut outcome);
        let interchanged = self.parts.iter().map(|part| match part {
            Part::Host(_) => 0,
            Part::Device(piece) => piece.interchanged(),
        });
        let made = (self.bytes(), interchanged.sum());
        let mut report = iteration.report(b, x, outcome, newest.0 as usize, norm, threshold, &rate, start, made);
        let shares = places::told(&self.places, &self.counts);
        report.notes.push(Note::SharedOut { what: "blocks", shares });
        Ok(report)
    }

    /// b and iterate 0 to all places.
    fn load(&mut self, b: &[T], x: &[T], norm_r0: f64) -> Result<()> {
        self.exponents = self.exponents.with_rhs(b);
        for part in &mut self.parts {
            match part {
                Part::Host(host) => host.load(x),
                Part::Device(piece) => piece.load_alone(self.exponents, b, x, norm_r0)?,
            }
        }
        Ok(())
    }

    /// Iterate `step` + 1 on all places.
    fn sweep(&mut self, b: &[T], step: u32) -> Result<Norms> {
        let (Iteration { a, sweep, .. }, e) = (self.iteration, self.exponents);
        let mut of_host = Norms::default();
        for colour in 0..colours(sweep) {
            for part in &self.parts {
                if let Part::Device(piece) = part {
                    piece.sweep_alone(sweep, step, colour)?;
                }
            }
            // While the devices are at it.
            for part in &mut self.parts {
                if let Part::Host(host) = part {
                    of_host.join(host.half_sweep(a, b, step, colour, colours(sweep)));
                }
            }
            for cut in 1..self.parts.len() {
                let (left, right) = self.parts.split_at_mut(cut);
                let (left, right) = (&mut left[cut - 1], &mut right[0]);
                // The blocks at the cut that are new.
                let j = right.blocks().start;
                let is_new = |j: usize| j as u32 % colours(sweep) == colour;
                if is_new(j - 1) {
                    left.send(right, a.partition().range(j - 1), step + 1, e)?;
                }
                if is_new(j) {
                    right.send(left, a.partition().range(j), step + 1, e)?;
                }
            }
        }
        // Sums of squares are added up in the order of blocks.
        let mut all = Norms::default();
        for part in &self.parts {
            if let Part::Device(piece) = part {
                let (mut sums, mut largest) = (0.0, [0.0f64; 2]);
                piece.norms(sweep, step, |sum, change, size| {
                    all.residual += sum;
                    sums += sum;
                    largest = [largest[0].max_nan(change), largest[1].max_nan(size)];
                })?;
                // Then the device has stopped by itself. The first sum is of what the last solve has left.
                let change = if step > 0 && !sums.is_finite() { f64::NAN } else { largest[0] };
                all.change = all.change.max_nan(e.solution(change));
                all.size = all.size.max_nan(e.solution(largest[1]));
            }
        }
        all.residual = e.norm(all.residual.sqrt());
        all.join(of_host);
        Ok(all)
    }

    /// Iterate i, as the caller knows it.
    fn gather(&self, i: u32) -> Result<Vec<T>> {
        let a = self.iteration.a;
        let mut x = vec![T::default(); a.n()];
        for part in &self.parts {
            let rows = rows_of(a, part.blocks());
            let x = &mut x[rows.clone()];
            match part {
                Part::Host(host) => x.copy_from_slice(&host.x[i as usize % 3][rows]),
                Part::Device(piece) => {
                    piece.vectors.x.copy_range_to(piece.place(i, rows.start), x)?;
                    self.exponents.restore(x);
                }
            }
        }
        Ok(x)
    }
}

/// Rows of blocks that follow each other.
fn rows_of<T: Scalar>(a: &BlockTridiagonal<T>, blocks: &Range<usize>) -> Range<usize> {
    let offsets = a.partition().offsets();
    offsets[blocks.start] as usize..offsets[blocks.end] as usize
}

impl<T: DeviceScalar> Part<T> {
    fn blocks(&self) -> &Range<usize> {
        match self {
            Self::Host(host) => &host.blocks,
            Self::Device(piece) => &piece.blocks,
        }
    }

    /// Rows of iterate i, which are new here, to a neighbour.
    fn send(&self, to: &mut Self, rows: Range<usize>, i: u32, e: Exponents) -> Result<()> {
        let at = i as usize % 3;
        match (self, to) {
            (Self::Device(from), Self::Device(to)) => {
                let first = to.place(i, rows.start);
                to.vectors.x.receive(first, &from.vectors.x, from.place(i, rows.start), rows.len())?;
                to.device().wait_for(from.device())
            }
            (Self::Device(from), Self::Host(to)) => {
                let x = &mut to.x[at][rows.clone()];
                from.vectors.x.copy_range_to(from.place(i, rows.start), x)?;
                e.restore(x);
                Ok(())
            }
            (Self::Host(from), Self::Device(to)) => {
                to.vectors.x.copy_range_from(to.place(i, rows.start), &e.to_scaled(&from.x[at][rows]))
            }
            (Self::Host(_), Self::Host(_)) => unreachable!("the processor is one place"),
        }
    }
}

impl<T: DeviceScalar> Piece<T> {
    /// Half a sweep. The device judges by the residual, which no state that is loaded alone lets it find small.
    fn sweep_alone(&self, sweep: Sweep, step: u32, colour: u32) -> Result<()> {
        let words = self.words(sweep, StopRule::Residual, BlockSolver::default());
        self.half_sweep(&words, [step, colour, u32::MAX])
    }

    /// Sums, largest changes and largest values of its thread blocks in a sweep, one after the other.
    fn norms(&self, sweep: Sweep, step: u32, mut each: impl FnMut(f64, f64, f64)) -> Result<()> {
        let blocks = self.shape.blocks as usize;
        let mut parts = vec![0.0; 4 * 3 * blocks];
        self.vectors.parts.copy_range_to(0, &mut parts)?;
        for colour in 0..colours(sweep) {
            let part = &parts[((step & 1) * 2 + colour) as usize * 3 * blocks..][..3 * blocks];
            (0..blocks).for_each(|k| each(part[k], part[blocks + k], part[2 * blocks + k]));
        }
        Ok(())
    }
}

impl Norms {
    /// With those of other rows.
    fn join(&mut self, other: Self) {
        self.residual = self.residual.hypot(other.residual);
        self.change = self.change.max_nan(other.change);
        self.size = self.size.max_nan(other.size);
    }
}

impl<T: DeviceScalar> Host<T> {
    fn new(a: &BlockTridiagonal<T>, blocks: Range<usize>) -> Result<Self> {
        let partition = Partition::from_sizes(blocks.clone().map(|j| a.partition().size(j)))?;
        let zeros = || vec![T::default(); a.n()];
        let x = std::array::from_fn(|_| zeros());
        Ok(Self { blocks, factors: BlockDiagonal::new(a)?, partition, x, t: zeros(), image: zeros() })
    }

    fn load(&mut self, x: &[T]) {
        self.x[0].copy_from_slice(x);
        self.image.fill(T::default());
    }

    /// The blocks of a colour: x ← D⁻¹·t with t = b − (L + U)·x, as the kernels do.
    fn half_sweep(&mut self, a: &BlockTridiagonal<T>, b: &[T], step: u32, colour: u32, colours: u32) -> Norms {
        let Self { blocks, factors, partition, x, t, image } = self;
        let (own, home) = (rows_of(a, blocks), |j: usize| j + blocks.start);
        let at = |i: u32| (i % 3) as usize;
        let mut next = std::mem::take(&mut x[at(step + 1)]);
        let before = &x[at(step)];
        let mine = |j: usize| home(j) as u32 % colours == colour;
        let coupled = if colour == 0 { before } else { &next };
        let par = Par::auto(a.bytes());
        for_blocks(partition, &mut t[own.clone()], par, &|j, t| {
            if mine(j) {
                t.copy_from_slice(&b[a.partition().range(home(j))]);
                a.subtract_couplings(home(j), coupled, t);
            }
        });
        let mut norms = Norms::default();
        let rows = || (0..partition.n_blocks()).filter(|&j| mine(j)).flat_map(|j| a.partition().range(home(j)));
        if colour == 0 {
            // t − D·x, scaled as norms are against overflow.
            let r: Vec<T> = rows().map(|i| t[i] - image[i]).collect();
            norms.residual = norm2(&r);
            rows().for_each(|i| image[i] = t[i]);
        }
        for_blocks(partition, &mut next[own], par, &|j, x| {
            if mine(j) {
                x.copy_from_slice(&t[a.partition().range(home(j))]);
                factors.solve_block(home(j), x);
            }
        });
        for i in rows() {
            norms.change = norms.change.max_nan((next[i] - before[i]).abs().to_f64());
            norms.size = norms.size.max_nan(next[i].abs().to_f64());
        }
        x[at(step + 1)] = next;
        norms
    }
}
