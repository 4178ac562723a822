//! Seconds and bytes that a method will take: counts of its work against constants of the machine.
//!
//! seconds = call + entry·nnz + max(step·steps + flops/rate, moved/bandwidth) + ordering·ordered
//!
//! The counts come from the structure and, for sparse factors, from a symbolic phase. The constants stand for one call from end to
//! end, certificate included; [`Machine::here`] has them for the instruction set at hand, `calibrate` measures them.
//!
//! The form, flops against a rate or bytes against a bandwidth, is that of the roofline model (S. Williams, A. Waterman, D. Patterson,
//! Commun. ACM 52 (2009) 65–76, doi:10.1145/1498765.1498785).

use bt_formats::{RealScalar, Scalar};

/// Loops that share a pair of constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// Recurrences along three diagonals.
    Tridiagonal,
    /// Elimination in a band.
    Band,
    /// The same of one half of a Hermitian band.
    BandCholesky,
    /// Elimination by dense blocks.
    Blocks,
    /// The same of one half of a Hermitian matrix.
    BlockCholesky,
    /// Sparse elimination with row interchanges; a step is an entry of the factors.
    Sparse,
    /// Sparse elimination of one half of a Hermitian matrix; a step is an entry of the factor.
    SparseCholesky,
    /// Elimination of all n² numbers.
    Dense,
    /// Iterations on compressed rows; a step is an entry that a sweep visits.
    Sweep,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Tridiagonal,
        Self::Band,
        Self::BandCholesky,
        Self::Blocks,
        Self::BlockCholesky,
        Self::Sparse,
        Self::SparseCholesky,
        Self::Dense,
        Self::Sweep,
    ];
}

/// What a kernel costs on a machine, in double precision on the threads that it uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Seconds a step, that do not depend on its flops.
    pub step: f64,
    /// Flops a second.
    pub flops: f64,
}

/// The instruction sets that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstructionSet {
    Avx512,
    Avx2,
    Base,
}

impl InstructionSet {
    fn here() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Self::Avx2;
            }
        }
        Self::Base
    }
}

/// Constants of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Seconds of a call, whatever its size.
    pub call: f64,
    /// Seconds an entry of A, for reading its structure, copying it and certifying the answer.
    pub entry: f64,
    /// Seconds an entry of A that a symbolic phase orders.
    pub ordering: f64,
    /// Bytes a second from memory.
    pub bandwidth: f64,
    /// The kernels, in the order of [`Kernel::ALL`].
    pub rates: [Rate; 9],
}

/// Counts of a method's work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// What does it.
    pub kernel: Kernel,
    /// Steps: rows of a band or of blocks, entries of sparse factors, entries that sweeps visit.
    pub steps: f64,
    /// Real floating-point operations of factorization and one solve.
    pub flops: f64,
    /// Bytes that pass from and to memory.
    pub moved: f64,
    /// Entries that a symbolic phase orders.
    pub ordered: f64,
}

impl Machine {
    /// The constants of this machine: those that were measured here, or those of the instruction set.
    pub fn here() -> &'static Self {
        static HERE: std::sync::OnceLock<Machine> = std::sync::OnceLock::new();
        HERE.get_or_init(Self::of_instruction_set)
    }

    /// Measured on an AMD EPYC (Zen 4) with one thread with AVX-512; what other instruction sets do slower follows from the width of
    /// their vectors.
    fn of_instruction_set() -> Self {
        let slower = [1.0, 1.6, 4.0][InstructionSet::here() as usize];
        let rate = |step: f64, flops: f64| Rate { step, flops: flops / slower };
        Self {
            call: 5e-5,
            entry: 2.5e-8,
            ordering: 1.5e-7,
            bandwidth: 1.2e10,
            rates: [
                rate(1e-8, 1e9),
                rate(1.2e-7, 2.0e10),
                rate(1.5e-7, 1.0e10),
                rate(8e-8, 2.0e10),
                rate(1.2e-7, 1.2e10),
                rate(2.5e-8, 5e9),
                rate(1.5e-8, 8e9),
                rate(1e-7, 3.0e10),
                rate(2.5e-9, 1e9),
            ],
        }
    }

    /// The constants of a kernel.
    pub fn rate(&self, kernel: Kernel) -> Rate {
        self.rates[kernel as usize]
    }

    /// Seconds of `work` on a matrix of `nnz` entries of scalar T.
    pub fn seconds<T: Scalar>(&self, nnz: usize, work: &Work) -> f64 {
        let Rate { step, flops } = self.rate(work.kernel);
        // The constants are those of doubles: numbers of half the size go twice as fast.
        let width = T::Real::EPSILON.to_f64();
        let halved = if width > 1e-10 { 0.5 } else { 1.0 };
        let elimination = (step * work.steps + halved * work.flops / flops).max(work.moved / self.bandwidth);
        self.call + self.entry * nnz as f64 + elimination + self.ordering * work.ordered
    }
}

/// Real operations of a multiplication and an addition, in units of those of real numbers.
pub(crate) fn arithmetic<T: Scalar>() -> f64 {
    if T::IS_REAL { 1.0 } else { 4.0 }
}
