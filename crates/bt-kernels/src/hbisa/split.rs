//! HBISA on the device and the processor at once: the last blocks are swept by the host while the device sweeps the others.
//!
//! Blocks couple to their neighbours alone, so that after a sweep (half a sweep of red–black) the two blocks at the cut are all that is
//! exchanged. Norms of both parts come together on the host, which judges after every sweep; one launch for many sweeps is not
//! possible. The iterates are those of the undivided iteration, to rounding.
//!
//! Traffic between the two in a sweep: the two blocks at the cut, and 96 bytes for each thread block, whose sums are read.

use std::time::Instant;

use bt_formats::{
    BlockTridiagonal, Breakdown, Error as InputError, Matrix, Monitor, Note, Outcome, Par, Partition, RealScalar,
    Scalar, SolveReport, StopCriterion, norm2, one,
};
use bt_iter::{BlockDiagonal, Rate, StopRule, for_blocks};

use super::run::{ATOL, NORM, STATE, judge};
use super::{DeviceHbisa, colours};
use crate::device::{Arg, DeviceScalar, Result};
use crate::krylov::FIELDS;

/// Which blocks the processor sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostShare {
    /// None of them.
    #[default]
    None,
    /// The last so many.
    Blocks(usize),
    /// By the time that one sweep over all blocks takes on each.
    Measured,
}

/// The host's part of the iteration.
pub(super) struct Host<T: DeviceScalar> {
    /// Blocks of the device.
    cut: usize,
    factors: BlockDiagonal<T>,
    /// The host's blocks.
    partition: Partition,
}

/// The host's vectors in a run.
struct Vectors<T> {
    /// As on the device: iterate i is at i mod 3. Rows of the host, and of the last block of the device.
    x: [Vec<T>; 3],
    /// b − (L + U)·x, and D·x, on the rows of the host.
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

impl<T: DeviceScalar> DeviceHbisa<'_, T> {
    /// The same iteration with a part of the blocks on the processor, which factors them once more for itself.
    ///
    /// # Errors
    /// [`InputError::InvalidStructure`] for more blocks than there are; errors of the device.
    ///
    /// # Cost
    /// `HostShare::Measured`: three sweeps.
    pub fn shared(mut self, share: HostShare) -> Result<Self> {
        let m = self.a.n_blocks();
        let blocks = match share {
            HostShare::None => {
                self.host = None;
                return Ok(self);
            }
            HostShare::Blocks(count) if count > m => {
                let why = format!("{count} blocks for the processor, but there are {m}");
                return Err(InputError::InvalidStructure { what: "share", why }.into());
            }
            HostShare::Blocks(count) => count,
            HostShare::Measured => self.measured_share()?,
        };
        self.host = Some(Host::new(self.a, m - blocks)?);
        Ok(self)
    }

    /// Blocks that the processor sweeps.
    pub fn host_blocks(&self) -> usize {
        self.host.as_ref().map_or(0, |host| self.a.n_blocks() - host.cut)
    }

    /// Sweeps as fast as each can: blocks in proportion.
    fn measured_share(&mut self) -> Result<usize> {
        let (n, m) = (self.a.n(), self.a.n_blocks());
        let b = vec![one::<T>(); n];
        let mut device = f64::INFINITY;
        // The first one loads the kernels.
        for _ in 0..2 {
            self.load_alone(&b, &vec![T::default(); n], 0.0)?;
            let start = Instant::now();
            for colour in 0..colours(self.sweep) {
                self.half_sweep(0, colour, m)?;
            }
            self.vectors.x.device().synchronize("sweeping")?;
            device = start.elapsed().as_secs_f64();
        }
        let host = Host::new(self.a, 0)?;
        let mut vectors = Vectors::new(self.a.n(), &[]);
        let start = Instant::now();
        for colour in 0..colours(self.sweep) {
            host.half_sweep(self.a, &b, &mut vectors, 0, colour, colours(self.sweep));
        }
        let share = device / (device + start.elapsed().as_secs_f64());
        Ok((share * m as f64).round() as usize)
    }

    /// As `solve`, on both.
    pub(super) fn solve_split(
        &mut self,
        host: &Host<T>,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport> {
        let start = Instant::now();
        let (norm_r0, threshold, baseline) = self.measures(b, x, stop);
        let by_residual = self.rule == StopRule::Residual;
        self.load_alone(b, x, norm_r0)?;
        let mut vectors = Vectors::new(x.len(), x);
        let mut rate = Rate::default();
        let mut newest = (0, if by_residual { norm_r0 } else { f64::INFINITY });
        let mut best: (f64, Vec<T>) = (f64::INFINITY, Vec::new());
        let mut outcome = judge(newest, threshold, stop, &mut rate, baseline, monitor, start);
        let mut step = 0;
        while outcome.is_none() {
            let norms = self.sweep_both(host, b, &mut vectors, step)?;
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
                best = (newest.1, self.gather(host, &vectors, newest.0)?);
            }
            newest = (i, norm);
            outcome = judge(newest, target, stop, &mut rate, baseline, monitor, start);
        }
        let mut norm = newest.1;
        let first = x.to_vec();
        if step > 0 {
            let answer = if norm <= best.0 || best.1.is_empty() {
                self.gather(host, &vectors, newest.0)?
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
        self.not_worse_than(&first, b, x, &mut outcome);
        let mut report = self.report(b, x, outcome, newest.0 as usize, norm, threshold, &rate, start);
        let m = self.a.n_blocks();
        report.notes.push(Note::SweptByProcessor { blocks: m - host.cut, of: m });
        report.bytes.factors += host.factors.bytes();
        Ok(report)
    }

    /// Iterate `step` + 1 on both.
    fn sweep_both(&mut self, host: &Host<T>, b: &[T], vectors: &mut Vectors<T>, step: u32) -> Result<Norms> {
        let (colours, e) = (colours(self.sweep), self.exponents);
        let next = (step as usize + 1) % 3;
        let (n, m) = (self.a.n(), self.a.n_blocks());
        let mut norms = Norms::default();
        for colour in 0..colours {
            self.half_sweep(step, colour, host.cut)?;
            norms.join(host.half_sweep(self.a, b, vectors, step, colour, colours));
            // The blocks at the cut that are new.
            let is_new = |j: usize| j as u32 % colours == colour;
            if host.cut > 0 && host.cut < m {
                if is_new(host.cut - 1) {
                    let rows = self.a.partition().range(host.cut - 1);
                    let block = &mut vectors.x[next][rows.clone()];
                    self.vectors.x.copy_range_to(next * n + rows.start, block)?;
                    e.restore(block);
                }
                if is_new(host.cut) {
                    let rows = self.a.partition().range(host.cut);
                    self.vectors.x.copy_range_from(next * n + rows.start, &e.to_scaled(&vectors.x[next][rows]))?;
                }
            }
        }
        // Sums, largest changes, largest values of the thread blocks.
        let blocks = self.shape.blocks as usize;
        let mut parts = vec![0.0; 4 * 3 * blocks];
        self.vectors.parts.copy_range_to(0, &mut parts)?;
        for colour in 0..colours {
            let part = &parts[((step & 1) * 2 + colour) as usize * 3 * blocks..][..3 * blocks];
            let largest = |v: &[f64]| v.iter().fold(0.0, |m: f64, &v| m.max_nan(v));
            let sum = part[..blocks].iter().sum::<f64>();
            if step > 0 && !sum.is_finite() {
                // The device has stopped by itself. The first sum is of what the last solve has left.
                norms.change = f64::NAN;
            }
            norms.join(Norms {
                residual: e.norm(sum.sqrt()),
                change: e.solution(largest(&part[blocks..2 * blocks])),
                size: e.solution(largest(&part[2 * blocks..])),
            });
        }
        Ok(norms)
    }

    /// Iterate i, as the caller knows it.
    fn gather(&self, host: &Host<T>, vectors: &Vectors<T>, i: u32) -> Result<Vec<T>> {
        let (n, at) = (self.a.n(), i as usize % 3);
        let first = self.a.n() - host.partition.n();
        let mut x = vectors.x[at].clone();
        self.vectors.x.copy_range_to(at * n, &mut x[..first])?;
        self.exponents.restore(&mut x[..first]);
        Ok(x)
    }

    /// b and iterate 0 to the device, and a state that never stops it.
    fn load_alone(&mut self, b: &[T], x: &[T], norm_r0: f64) -> Result<()> {
        self.exponents = self.exponents.with_rhs(b);
        let e = self.exponents;
        self.reserve(1)?;
        self.vectors.b.copy_range_from(0, &e.rhs(b))?;
        let mut iterates = e.to_scaled(x);
        iterates.resize(3 * x.len(), T::default());
        self.vectors.x.copy_range_from(0, &iterates)?;
        let mut state = [0.0; STATE];
        state[FIELDS + NORM] = e.scaled_norm(norm_r0);
        // No norm reaches a negative tolerance.
        state[ATOL] = -1.0;
        self.vectors.state.copy_range_from(0, &state)
    }

    /// Half a sweep of the first `cut` blocks, judged by nobody.
    fn half_sweep(&self, step: u32, colour: u32, cut: usize) -> Result<()> {
        let words = self.words(cut, StopRule::Residual);
        let [step, colour, limit] = [step, colour, u32::MAX].map(Arg::from);
        self.half.launch(self.shape, &[Arg::Struct(&words), step, colour, limit])
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

impl<T: DeviceScalar> Vectors<T> {
    fn new(n: usize, x: &[T]) -> Self {
        let zeros = || vec![T::default(); n];
        let mut first = x.to_vec();
        first.resize(n, T::default());
        Self { x: [first, zeros(), zeros()], t: zeros(), image: zeros() }
    }
}

impl<T: DeviceScalar> Host<T> {
    fn new(a: &BlockTridiagonal<T>, cut: usize) -> Result<Self> {
        let partition = Partition::from_sizes(a.partition().sizes().skip(cut))?;
        Ok(Self { cut, factors: BlockDiagonal::new(a)?, partition })
    }

    /// The blocks of a colour: x ← D⁻¹·t with t = b − (L + U)·x, as the kernels do.
    fn half_sweep(
        &self,
        a: &BlockTridiagonal<T>,
        b: &[T],
        vectors: &mut Vectors<T>,
        step: u32,
        colour: u32,
        colours: u32,
    ) -> Norms {
        let first = a.n() - self.partition.n();
        let at = |i: u32| (i % 3) as usize;
        let Vectors { x, t, image } = vectors;
        let mut next = std::mem::take(&mut x[at(step + 1)]);
        let before = &x[at(step)];
        let mine = |j: usize| (j + self.cut) as u32 % colours == colour;
        let coupled = if colour == 0 { before } else { &next };
        let par = Par::auto(a.bytes());
        for_blocks(&self.partition, &mut t[first..], par, &|j, t| {
            if mine(j) {
                t.copy_from_slice(&b[a.partition().range(j + self.cut)]);
                a.subtract_couplings(j + self.cut, coupled, t);
            }
        });
        let mut norms = Norms::default();
        let rows =
            || (0..self.partition.n_blocks()).filter(|&j| mine(j)).flat_map(|j| a.partition().range(j + self.cut));
        if colour == 0 {
            // t − D·x, scaled as norms are against overflow.
            let r: Vec<T> = rows().map(|i| t[i] - image[i]).collect();
            norms.residual = norm2(&r);
            rows().for_each(|i| image[i] = t[i]);
        }
        for_blocks(&self.partition, &mut next[first..], par, &|j, x| {
            if mine(j) {
                x.copy_from_slice(&t[a.partition().range(j + self.cut)]);
                self.factors.solve_block(j + self.cut, x);
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
