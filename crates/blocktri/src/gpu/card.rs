//! What an iteration with M = diag(A) takes on a GPU: bytes over the bandwidth of its memory, and the copies to it and back.
//!
//! seconds = call + entry·nnz + copied/`COPY` + steps·(`LATENCY`·products + bytes/(`SHARE`·bandwidth))
//!
//! The bytes of a step are those of `docs/src/gpu.md`. Of direct methods there are no candidates: they read A once, as the copy to the GPU
//! does, which takes as long as the elimination on a processor.

use bt_formats::{Csr, LinearOperator, Matrix, Note, Scalar, memory, seconds_in_words};

use crate::candidate::{Candidate, Known, LEAST_STEPS, refusal};
use crate::cost::{Kernel, Machine, Work};
use crate::counts::work;
use crate::gpu::open::OpenDevice;
use crate::method::{Krylov, KrylovMethod};
use crate::options::{DeviceChoice, Reorder};
use crate::preconditioners::Precond;

/// Bytes a second of a copy from pageable memory: an H200 on PCIe 5, see `docs/adr/0017-what-a-gpu-should-take.md`.
const COPY: f64 = 7.6e9;

/// What a step reaches of the bandwidth in the data sheet: conjugate gradients for 10⁷ rows move 1.69 GB in 568 µs on an H200 with 4.8 TB/s,
/// ibidem.
const SHARE: f64 = 0.6;

/// Seconds of a product and what goes with it, however small: a step of conjugate gradients for 32 768 rows takes 7.6 µs, ibidem.
const LATENCY: f64 = 8e-6;

/// Vectors of n numbers on the device, of the hungrier of the two methods.
const VECTORS: usize = 12;

/// A GPU as a plan sees it, held open.
pub(crate) struct Card {
    pub facts: Facts,
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub open: OpenDevice,
}

/// What of a GPU decides.
pub(crate) struct Facts {
    /// Its number.
    pub ordinal: u32,
    /// Bytes of its memory that nobody has taken.
    pub free: u64,
    /// Bytes a second of its memory, by its data sheet.
    pub bandwidth: f64,
}

impl Facts {
    /// Seconds of a step with M = diag(A).
    pub fn step<T: Scalar>(&self, a: &Csr<T>, method: KrylovMethod) -> f64 {
        let (n, nnz, number) = (a.nrows() as f64, a.nnz() as f64, size_of::<T>() as f64);
        let (products, vectors) = if method.is_symmetric() { (1.0, 10.0) } else { (2.0, 23.0) };
        let bytes = products * (nnz * (number + 4.0) + 4.0 * n) + vectors * number * n;
        LATENCY * products + bytes / (SHARE * self.bandwidth)
    }

    /// The method with M = diag(A) there.
    pub fn candidate<T: Scalar>(&self, a: &Csr<T>, method: KrylovMethod) -> Candidate {
        let (n, nnz, number) = (a.nrows() as f64, a.nnz() as f64, size_of::<T>() as f64);
        let products = if method.is_symmetric() { 1.0 } else { 2.0 };
        // A, and right-hand sides and corrections of a few refinements.
        let copied = a.bytes() as f64 + 8.0 * number * n;
        let machine = Machine::here();
        let seconds = machine.call + machine.entry * nnz + copied / COPY + LEAST_STEPS * self.step(a, method);
        let held = a.bytes() as u64 + (VECTORS * a.nrows() * size_of::<T>()) as u64;
        let no_room = format!("GPU {} has {} free", self.ordinal, memory::in_words(self.free));
        // The scaled copy that goes there is made on the host.
        let refused = (held > self.free).then_some(no_room).or_else(|| refusal(a.bytes() as u64, memory::allowed));
        let visits = LEAST_STEPS * products * (2.0 * nnz + 6.0 * n);
        Candidate {
            method: Krylov::new(method, Precond::Jacobi).into(),
            device: DeviceChoice::Gpu(self.ordinal),
            reorder: Reorder::None,
            work: Work { moved: copied, ..work::<T>(Kernel::Sweep, visits, 0.0, 0.0) },
            seconds,
            bytes: held,
            structure: format!("on GPU {}, copied in {}", self.ordinal, seconds_in_words(copied / COPY)),
            refused,
        }
    }
}

/// The part that a GPU has in a plan of `auto`.
pub(crate) enum Gpu {
    /// None was asked for.
    NotAsked,
    /// None was looked for, in words why.
    NotWorth(String),
    /// There is none that can be taken, in words why.
    Absent(String),
    /// This one, and its candidate.
    Open(Card, Box<Candidate>),
}

impl Gpu {
    /// Where the system is solved, and why: a note where a GPU was asked for.
    pub fn note(&self, device: DeviceChoice, known: &Known) -> Option<Note> {
        let place = if device.is_gpu() { device.to_string() } else { "the processor".to_owned() };
        let why = match self {
            Self::NotAsked => return None,
            _ if !device.is_gpu() && known.iter().any(|(tried, _)| tried.is_gpu()) => {
                "the iteration on the GPU was given up".to_owned()
            }
            Self::NotWorth(why) | Self::Absent(why) => why.clone(),
            Self::Open(_, candidate) => {
                let Candidate { method, device: gpu, bytes, seconds, refused, .. } = &**candidate;
                let least = seconds_in_words(*seconds);
                match refused {
                    Some(why) => format!("{method} on {gpu} needs {}: {why}", memory::in_words(*bytes)),
                    None if device.is_gpu() => format!("{method} takes at least {least} there"),
                    None => format!("{method} on {gpu}, at least {least}, is not predicted to be faster"),
                }
            }
        };
        Some(Note::DeviceChosen { place, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tridiagonal(n: usize) -> Csr<f64> {
        let mut entries = Vec::new();
        for i in 0..n as u32 {
            entries.extend((i.saturating_sub(1)..=(i + 1).min(n as u32 - 1)).map(|j| (i, j, 1.0)));
        }
        let ptr = (0..=n).map(|i| (3 * i).saturating_sub(1 + usize::from(i == n)) as u32).collect();
        let (cols, values) = entries.into_iter().map(|(_, j, v)| (j, v)).unzip();
        Csr::new(n, n, ptr, cols, values).expect("three diagonals")
    }

    #[test]
    fn a_step_takes_its_bytes_and_its_products() {
        let a = tridiagonal(1000);
        let of = |free, bandwidth, method| Facts { ordinal: 0, free, bandwidth }.candidate(&a, method);
        let seconds = |bandwidth, method| of(u64::MAX, bandwidth, method).seconds;
        let (slow, fast) = (1e9, f64::INFINITY);
        let bytes = 2998.0 * 12.0 + 4000.0 + 80.0 * 1000.0;
        let cg = seconds(slow, KrylovMethod::Cg) - seconds(fast, KrylovMethod::Cg);
        assert!((cg / (LEAST_STEPS * bytes / (SHARE * slow)) - 1.0).abs() < 1e-12, "{cg}");
        let two = seconds(fast, KrylovMethod::BiCgStab) - seconds(fast, KrylovMethod::Cg);
        assert!((two / (LEAST_STEPS * LATENCY) - 1.0).abs() < 1e-9, "{two}");
    }

    #[test]
    fn what_its_free_memory_does_not_hold_is_refused() {
        let a = tridiagonal(1000);
        let of = |free| Facts { ordinal: 1, free, bandwidth: 1e12 }.candidate(&a, KrylovMethod::Cg);
        let needed = of(u64::MAX).bytes;
        assert_eq!(needed, a.bytes() as u64 + 96_000);
        assert_eq!(of(needed).refused, None);
        assert!(of(needed - 1).refused.is_some_and(|why| why.starts_with("GPU 1 has ")));
    }
}
