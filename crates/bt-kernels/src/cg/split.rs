//! Conjugate gradients on several devices: each has rows that follow each other, and what its rows of A refer to of the others' rows.
//!
//! An iteration is the two launches of one device, on every device. Behind the residual each device sends z on the rows that
//! another one's rows refer to, from the first of them to the last, and behind both launches the sums of its thread blocks, so that
//! all form α and β from the same sums in the same order. The direction p ← z + β·p is formed on received rows, too, which saves sending
//! it. Copies go from memory to memory; streams wait for each other, the host for nothing until it reads norms, once in 32 iterations.
//!
//! Where a row is one thread's (8 entries a row on average or fewer, and none of over 32 and eight times the mean), rows are cut
//! at multiples of the 256 of a thread block, and no device has more rows than threads, sums are of the same rows however they
//! are dealt out: a run has the bits that it has on one device. Otherwise they differ by rounding, and are the same each time for
//! the same shares. M is I or diag(A).
//!
//! Storage of a device with n rows and h received ones: as on one device with n + h rows. Traffic between devices in an iteration: h values,
//! and 24 bytes for each thread block to each of the others. A banded matrix has an h of twice its half bandwidth at most.

use std::ops::Range;
use std::time::Instant;

use bt_formats::{Bytes, Csr, Error as InputError, LinearOperator, Monitor, Note, SolveReport, StopCriterion, one};

use super::Kernels;
use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Result, Shape};
use crate::krylov::{self, BEST, FIELDS, HISTORY, Held, Iterate, Steps};
use crate::places::{self, Place, Shares};
use crate::preconditioner::{DevicePreconditioner, InverseFacts, reciprocals};
use crate::scaled::Exponents;
use crate::spmv::RowRule;

/// The method on one matrix whose rows are on several devices.
///
/// ```
/// use bt_formats::{Csr, Outcome, StopCriterion};
/// use bt_kernels::{Device, DevicePreconditioner, Place, Shares, SplitCg};
/// let a = Csr::from_dense(faer::mat![[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]].as_ref())?;
/// if let (Ok(first), Ok(second)) = (Device::open(0), Device::open(1)) {
///     let places = [Place::Device(first), Place::Device(second)];
///     let mut x = [0.0; 3];
///     let mut cg = SplitCg::new(&places, &Shares::Counts(vec![1, 2]), &a, &DevicePreconditioner::Jacobi)?;
///     let report = cg.solve(&[5.0, 5.0, 3.0], &mut x, &StopCriterion::default(), &mut ())?;
///     assert_eq!(report.outcome, Outcome::Converged);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SplitCg<'a, T: DeviceScalar> {
    spread: Spread<'a, T>,
    places: Vec<Place>,
    counts: Vec<usize>,
}

/// The system, spread over devices.
pub(crate) struct Spread<'a, T: DeviceScalar> {
    a: &'a Csr<T>,
    exponents: Exponents,
    /// In the order of rows: the devices that have rows, or one.
    parts: Vec<Part<T>>,
    /// Thread blocks of all of them.
    blocks: u32,
    jacobi: bool,
}

/// What all parts are made from.
struct Source<'a, T: DeviceScalar> {
    a: &'a Csr<T>,
    exponents: Exponents,
    /// 1 / diag(A), scaled.
    inverse: Option<Vec<T>>,
    lanes: u32,
}

/// Rows that a device receives of another.
struct Halo {
    /// Its part.
    from: usize,
    /// Of A.
    rows: Range<usize>,
    /// Where they are here.
    at: usize,
}

/// Rows of A on a device: its own, then those that it receives, with rows of A that are empty.
struct Part<T: DeviceScalar> {
    rows: Range<usize>,
    halo: Vec<Halo>,
    ptr: DeviceVec<u32>,
    col: DeviceVec<u32>,
    val: DeviceVec<T>,
    inverse: Option<DeviceVec<T>>,
    b: DeviceVec<T>,
    x: DeviceVec<T>,
    best: DeviceVec<T>,
    r: DeviceVec<T>,
    /// Where M is not I.
    z: Option<DeviceVec<T>>,
    /// Two of them.
    p: DeviceVec<T>,
    q: DeviceVec<T>,
    /// Of all devices: rᵀz, rᵀr, pᵀq.
    sums: DeviceVec<f64>,
    state: DeviceVec<f64>,
    kernels: Kernels,
    shape: Shape,
    /// Thread blocks of the parts before.
    before: u32,
}

impl<'a, T: DeviceScalar> SplitCg<'a, T> {
    /// Deals out the rows and copies to each device what is its own. M is `Identity` or `Jacobi`.
    ///
    /// # Errors
    /// Those of [`DeviceCg::new`](super::DeviceCg::new); [`InputError::InvalidStructure`] for another preconditioner, for the processor among
    /// the places or one that is named twice, and for shares that do not fit them or the matrix.
    ///
    /// # Cost
    /// `Shares::Measured`: the copies twice, and two products on each device.
    pub fn new(places: &[Place], shares: &Shares, a: &'a Csr<T>, precond: &DevicePreconditioner) -> Result<Self> {
        places::check(places)?;
        a.check_square()?;
        a.check_finite()?;
        let refuse = |what, why: String| Err(InputError::InvalidStructure { what, why }.into());
        if places.iter().any(|place| matches!(place, Place::Host)) {
            return refuse("list of places", "cg is split over GPUs only; cpu is among them".into());
        }
        let exponents = Exponents::of(a.values());
        let inverse = match precond {
            DevicePreconditioner::Identity => None,
            DevicePreconditioner::Jacobi => {
                let n = a.nrows();
                let scaled = Csr::new(n, n, a.row_ptr().to_vec(), a.col_idx().to_vec(), exponents.matrix(a.values()))?;
                // What is wrong is told with the values of A as it was given.
                Some(reciprocals(&scaled).map_err(|e| reciprocals(a).err().unwrap_or(e))?)
            }
            other => {
                return refuse(
                    "preconditioner",
                    format!("{} is not split over GPUs; none and jacobi are", other.name()),
                );
            }
        };
        let source = Source { a, exponents, inverse, lanes: RowRule::for_sums(a).lanes() };
        let (n, unit) = (a.nrows(), source.unit());
        let counts = places::first_counts(shares, places.len(), n, unit, "rows")?;
        let mut method = Self { spread: Spread::new(&source, places, &counts)?, places: places.to_vec(), counts };
        // Where a place has nothing there is nothing to measure.
        if *shares == Shares::Measured && method.spread.parts.len() == places.len() {
            method.counts = places::deal(n, unit, &method.spread.speeds()?);
            method.spread.parts.clear();
            method.spread = Spread::new(&source, places, &method.counts)?;
        }
        Ok(method)
    }

    /// Rows of each place.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Bytes on all devices.
    pub fn bytes(&self) -> Bytes {
        self.spread.bytes()
    }

    /// What the preconditioner is made of.
    pub fn preconditioner(&self) -> InverseFacts {
        let nnz = if self.spread.jacobi { self.spread.a.nrows() } else { 0 };
        InverseFacts { nnz, ..InverseFacts::default() }
    }

    /// Iterates from the `x` given, as [`DeviceCg::solve`](super::DeviceCg::solve).
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`], [`InputError::NonFinite`]; errors of a device, after which `x` is as it was given.
    pub fn solve(
        &mut self,
        b: &[T],
        x: &mut [T],
        stop: &StopCriterion,
        monitor: &mut dyn Monitor,
    ) -> Result<SolveReport> {
        let mut report = krylov::solve(self, b, x, stop, monitor)?;
        let shares = places::told(&self.places, &self.counts);
        report.notes.push(Note::SharedOut { what: "rows", shares });
        Ok(report)
    }
}

impl<T: DeviceScalar> Source<'_, T> {
    /// Rows of a thread block, where rows are cut only between them: lanes that share a row leave other sums anyway.
    fn unit(&self) -> usize {
        if self.lanes == 1 { Shape::BLOCK as usize } else { 1 }
    }

    /// Rows that each part needs of the others: of every other one from the first to the last that its rows refer to.
    fn halos(&self, parts: &[Range<usize>]) -> Vec<Vec<Halo>> {
        let needed = parts.iter().map(|own| {
            let [first, end] = [own.start, own.end].map(|i| self.a.row_ptr()[i] as usize);
            let mut hulls: Vec<Option<Range<usize>>> = vec![None; parts.len()];
            for c in self.a.col_idx()[first..end].iter().map(|&c| c as usize).filter(|c| !own.contains(c)) {
                let hull = hulls[parts.partition_point(|part| part.end <= c)].get_or_insert(c..c + 1);
                *hull = hull.start.min(c)..hull.end.max(c + 1);
            }
            let mut at = own.len();
            let halo = hulls.into_iter().enumerate().filter_map(|(from, rows)| {
                let halo = Halo { from, rows: rows?, at };
                at += halo.rows.len();
                Some(halo)
            });
            halo.collect()
        });
        needed.collect()
    }
}

impl<'a, T: DeviceScalar> Spread<'a, T> {
    fn new(source: &Source<'a, T>, places: &[Place], counts: &[usize]) -> Result<Self> {
        let (mut first, mut devices, mut ranges) = (0, Vec::new(), Vec::new());
        for (place, &count) in places.iter().zip(counts) {
            // A matrix without rows is a part, too.
            let has_part = count > 0 || (source.a.nrows() == 0 && devices.is_empty());
            if let (Place::Device(device), true) = (place, has_part) {
                devices.push(device);
                ranges.push(first..first + count);
            }
            first += count;
        }
        let shapes: Vec<Shape> =
            ranges.iter().map(|rows| Shape::over(rows.len() as u64 * u64::from(source.lanes))).collect();
        let blocks = shapes.iter().map(|shape| shape.blocks).sum();
        let (mut parts, mut before) = (Vec::new(), 0);
        let halos = source.halos(&ranges);
        for (((device, rows), halo), shape) in devices.into_iter().zip(ranges).zip(halos).zip(shapes) {
            parts.push(Part::new(device, source, rows, halo, shape, [before, blocks])?);
            before += shape.blocks;
        }
        Ok(Self { a: source.a, exponents: source.exponents, parts, blocks, jacobi: source.inverse.is_some() })
    }

    /// After a launch on every device: sums of thread blocks, from the `firsts`-th of all on, to all devices; z to those that receive it.
    fn exchange(&mut self, firsts: &[u32], with_z: bool) -> Result<()> {
        for k in 0..self.parts.len() {
            let (left, rest) = self.parts.split_at_mut(k);
            let [from, right @ ..] = rest else { return Ok(()) };
            for to in left.iter_mut().chain(right) {
                for &first in firsts {
                    let at = (first + from.before) as usize;
                    to.sums.receive(at, &from.sums, at, from.shape.blocks as usize)?;
                }
                let Some(halo) = to.halo.iter().find(|halo| with_z && halo.from == k) else { continue };
                let (at, len) = (halo.at, halo.rows.len());
                let z = if let Some(z) = &mut to.z { z } else { &mut to.r };
                z.receive(at, from.z.as_ref().unwrap_or(&from.r), halo.rows.start - from.rows.start, len)?;
            }
        }
        for to in &self.parts {
            for from in self.parts.iter().filter(|from| from.before != to.before) {
                to.device().wait_for(from.device())?;
            }
        }
        Ok(())
    }

    /// rᵀz, rᵀr and z to all.
    fn exchange_residual(&mut self) -> Result<()> {
        self.exchange(&[0, self.blocks], true)
    }

    /// pᵀq to all.
    fn exchange_direction(&mut self) -> Result<()> {
        self.exchange(&[2 * self.blocks], false)
    }

    fn start(&mut self) -> Result<()> {
        for part in &self.parts {
            let system = part.system(self.blocks, Leaves::Residual);
            part.kernels.start.launch(part.shape, &[Arg::Struct(&system), part.b.arg()])?;
        }
        self.exchange_residual()
    }

    fn direction(&self, part: &Part<T>, numbers: [u32; 3], threshold: f64) -> Result<()> {
        let [step, limit, new] = numbers.map(Arg::from);
        let system = part.system(self.blocks, Leaves::Direction);
        part.kernels.direction.launch(part.shape, &[Arg::Struct(&system), step, limit, new, threshold.arg().0])
    }

    /// Rows that each part multiplies in a second.
    fn speeds(&mut self) -> Result<Vec<f64>> {
        let n = self.a.nrows();
        self.load(&vec![one::<T>(); n], &vec![T::default(); n])?;
        let mut state = [0.0; 2 * FIELDS + HISTORY];
        (state[BEST], state[FIELDS + BEST]) = (f64::INFINITY, f64::INFINITY);
        self.write_state(&state)?;
        self.start()?;
        let seconds = |part: &Part<T>| -> Result<f64> {
            part.device().synchronize("starting")?;
            let start = Instant::now();
            self.direction(part, [0, u32::MAX, 1], 0.0)?;
            part.device().synchronize("multiplying")?;
            Ok(start.elapsed().as_secs_f64())
        };
        let timed = self.parts.iter().map(|part| {
            // The first one loads the kernels.
            seconds(part)?;
            Ok(part.rows.len() as f64 / seconds(part)?.max(f64::MIN_POSITIVE))
        });
        timed.collect()
    }
}

/// The kernel that a system is for: it leaves sums behind those of the parts before, and reads those of all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// cg_start and cg_residual, on the rows that are its own.
    Residual,
    /// cg_direction, on all rows.
    Direction,
}

impl<T: DeviceScalar> Part<T> {
    fn new(
        device: &Device,
        source: &Source<'_, T>,
        rows: Range<usize>,
        halo: Vec<Halo>,
        shape: Shape,
        [before, blocks]: [u32; 2],
    ) -> Result<Self> {
        let a = source.a;
        let own = rows.len();
        let n = own + halo.iter().map(|halo| halo.rows.len()).sum::<usize>();
        let [first, end] = [rows.start, rows.end].map(|i| a.row_ptr()[i]);
        let mut ptr: Vec<u32> = a.row_ptr()[rows.start..=rows.end].iter().map(|p| p - first).collect();
        ptr.resize(n + 1, end - first);
        let entries = first as usize..end as usize;
        let place = |c: usize| match halo.iter().find(|halo| halo.rows.contains(&c)) {
            Some(halo) => halo.at + c - halo.rows.start,
            None => c - rows.start,
        };
        let col: Vec<u32> = a.col_idx()[entries.clone()].iter().map(|&c| place(c as usize) as u32).collect();
        let vector = |len: usize| DeviceVec::uninitialized(device, len);
        let inverse = match &source.inverse {
            Some(inverse) => Some(DeviceVec::from_slice(device, &inverse[rows.clone()])?),
            None => None,
        };
        Ok(Self {
            ptr: DeviceVec::from_slice(device, &ptr)?,
            col: DeviceVec::from_slice(device, &col)?,
            val: DeviceVec::from_slice(device, &source.exponents.matrix(&a.values()[entries]))?,
            b: vector(own)?,
            x: vector(n)?,
            best: vector(n)?,
            r: vector(n)?,
            z: if inverse.is_some() { Some(vector(n)?) } else { None },
            p: vector(2 * n)?,
            q: vector(n)?,
            inverse,
            sums: DeviceVec::uninitialized(device, 3 * blocks as usize)?,
            state: DeviceVec::uninitialized(device, 2 * FIELDS + HISTORY)?,
            kernels: Kernels::new::<T>(device, source.lanes)?,
            rows,
            halo,
            shape,
            before,
        })
    }

    fn device(&self) -> &Device {
        self.x.device()
    }

    /// struct System of the kernels, with the sums of `blocks` thread blocks.
    fn system(&self, blocks: u32, leaves: Leaves) -> [u64; 17] {
        let n = if leaves == Leaves::Direction { self.x.len() } else { self.rows.len() } as u64;
        let [mut part_r, mut part_q] = [0, 2 * u64::from(blocks)].map(|k| self.sums.address() + 8 * k);
        match leaves {
            Leaves::Residual => part_r += 8 * u64::from(self.before),
            Leaves::Direction => part_q += 8 * u64::from(self.before),
        }
        [
            n | u64::from(self.inverse.is_some()) << 32,
            self.ptr.address(),
            self.col.address(),
            self.val.address(),
            self.inverse.as_ref().map_or(0, DeviceVec::address),
            self.x.address(),
            self.r.address(),
            self.z.as_ref().unwrap_or(&self.r).address(),
            self.p.address(),
            self.q.address(),
            self.best.address(),
            part_r,
            part_q,
            self.state.address(),
            self.state.address() + 2 * FIELDS as u64 * 8,
            u64::from(blocks) | u64::from(blocks) << 32,
            0,
        ]
    }
}

impl<T: DeviceScalar> Held<T> for Spread<'_, T> {
    fn matrix(&self) -> &Csr<T> {
        self.a
    }

    fn load(&mut self, b: &[T], x: &[T]) -> Result<Exponents> {
        self.exponents = self.exponents.with_rhs(b);
        let (b, x) = (self.exponents.rhs(b), self.exponents.to_scaled(x));
        for part in &mut self.parts {
            part.b.copy_from(&b[part.rows.clone()])?;
            part.x.copy_range_from(0, &x[part.rows.clone()])?;
            for halo in &part.halo {
                part.x.copy_range_from(halo.at, &x[halo.rows.clone()])?;
            }
        }
        Ok(self.exponents)
    }

    fn write_state(&mut self, state: &[f64]) -> Result<()> {
        self.parts.iter_mut().try_for_each(|part| part.state.copy_from(state))
    }

    /// All devices have the same.
    fn read_state(&self, state: &mut [f64]) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.state.copy_to(state))
    }

    fn read(&self, which: Iterate, answer: &mut [T]) -> Result<()> {
        for part in &self.parts {
            let iterate = if matches!(which, Iterate::Last) { &part.x } else { &part.best };
            iterate.copy_range_to(0, &mut answer[part.rows.clone()])?;
        }
        self.exponents.restore(answer);
        Ok(())
    }

    fn bytes(&self) -> Bytes {
        let mut sum = Bytes::default();
        for part in &self.parts {
            sum.matrix += part.ptr.bytes() + part.col.bytes() + part.val.bytes();
            sum.factors += part.inverse.as_ref().map_or(0, DeviceVec::bytes);
            let vectors = [&part.b, &part.x, &part.best, &part.r, &part.p, &part.q].map(DeviceVec::bytes);
            sum.workspace += vectors.iter().sum::<usize>() + part.z.as_ref().map_or(0, DeviceVec::bytes);
            sum.workspace += part.sums.bytes() + part.state.bytes();
        }
        sum
    }
}

impl<'a, T: DeviceScalar> Steps<T> for SplitCg<'a, T> {
    type Held = Spread<'a, T>;
    const NAME: &'static str = "cg";
    const PRODUCTS: usize = 1;

    fn held(&mut self) -> &mut Spread<'a, T> {
        &mut self.spread
    }

    fn start(&mut self) -> Result<()> {
        self.spread.start()
    }

    fn steps(&mut self, first: u32, count: u32, limit: u32, fresh: bool, threshold: f64) -> Result<()> {
        for step in first..first + count {
            let new = u32::from(fresh && step == first);
            for part in &self.spread.parts {
                self.spread.direction(part, [step, limit, new], threshold)?;
            }
            self.spread.exchange_direction()?;
            for part in &self.spread.parts {
                let system = part.system(self.spread.blocks, Leaves::Residual);
                part.kernels.residual.launch(part.shape, &[Arg::Struct(&system), Arg::from(step)])?;
            }
            self.spread.exchange_residual()?;
        }
        Ok(())
    }
}
