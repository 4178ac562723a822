//! Seconds and bytes that a method will take: counts of its work against constants of the machine.
//!
//! seconds = call + entry·nnz + step·steps + moved/bandwidth + flops/rate + ordering·ordered + pairing·paired + analysis·analysed
//!
//! The counts come from the structure and, for sparse factors, from a symbolic phase. The constants stand for one call from end to
//! end, certificate included; [`Machine::here`] has them for the instruction set at hand, `calibrate` measures them.
//!
//! Bandwidth and rate are a kernel's own: a narrow band or small blocks never reach the rate of wide ones, and what they take
//! beyond it grows with the numbers stored. The terms, flops over a rate and bytes over a bandwidth, are those of the roofline
//! model (S. Williams, A. Waterman, D. Patterson, Commun. ACM 52 (2009) 65–76, doi:10.1145/1498765.1498785).

use std::sync::OnceLock;

use bt_formats::{RealScalar, Scalar};
use bt_simd::Isa;

use crate::error::Error;

/// Loops that share a pair of constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// Recurrences along three diagonals.
    Tridiagonal,
    /// Elimination in a band.
    Band,
    /// The same without row interchanges, on one thread.
    BandNoPivot,
    /// The same of one half of a Hermitian band.
    BandCholesky,
    /// Elimination by dense blocks.
    Blocks,
    /// The same by equal blocks of a few rows, which stand in registers.
    EqualBlocks,
    /// The same of one half of a Hermitian matrix.
    BlockCholesky,
    /// Sparse elimination with row interchanges, by supernodes; a step is an entry of the factors.
    Sparse,
    /// The same column by column, where there is little fill.
    SparseColumns,
    /// Sparse elimination of one half of a Hermitian matrix; a step is an entry of the factor.
    SparseCholesky,
    /// Sparse elimination of one half of a Hermitian matrix that is not definite; a step is an entry of the factor.
    SparseLdl,
    /// Elimination of all n² numbers.
    Dense,
    /// Iterations on compressed rows; a step is an entry that a sweep visits.
    Sweep,
}

/// What this process predicts with.
static HERE: OnceLock<Machine> = OnceLock::new();

impl Kernel {
    /// Name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tridiagonal => "tridiagonal",
            Self::Band => "band",
            Self::BandNoPivot => "band-nopivot",
            Self::BandCholesky => "band-cholesky",
            Self::Blocks => "blocks",
            Self::EqualBlocks => "equal-blocks",
            Self::BlockCholesky => "block-cholesky",
            Self::Sparse => "sparse",
            Self::SparseColumns => "sparse-columns",
            Self::SparseCholesky => "sparse-cholesky",
            Self::SparseLdl => "sparse-ldl",
            Self::Dense => "dense",
            Self::Sweep => "sweep",
        }
    }

    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Tridiagonal,
        Self::Band,
        Self::BandNoPivot,
        Self::BandCholesky,
        Self::Blocks,
        Self::EqualBlocks,
        Self::BlockCholesky,
        Self::Sparse,
        Self::SparseColumns,
        Self::SparseCholesky,
        Self::SparseLdl,
        Self::Dense,
        Self::Sweep,
    ];

    /// Whether it has a symbolic phase.
    pub(crate) fn is_sparse(self) -> bool {
        matches!(self, Self::Sparse | Self::SparseColumns | Self::SparseCholesky | Self::SparseLdl)
    }
}

/// What a kernel costs on a machine, in double precision on the threads that it uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Seconds a step, whatever there is to do in it.
    pub step: f64,
    /// Bytes of factors a second.
    pub bandwidth: f64,
    /// Flops a second.
    pub flops: f64,
    /// Seconds a row or an entry of A for the symbolic phase of sparse factors beside their order: scaling, structure, memory. Of other
    /// kernels it is not read.
    pub analysis: f64,
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
    /// Seconds a row or an entry of A where its pattern is not symmetric: rows are matched with columns, columns ordered, and eliminated
    /// without numbers.
    pub pairing: f64,
    /// The kernels, in the order of [`Kernel::ALL`].
    pub rates: [Rate; 13],
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
    /// Where the pattern of A is not symmetric and LU takes it, rows and entries of A, and a fifth of those of the factors.
    pub paired: f64,
    /// Rows and entries of A that a symbolic phase reads.
    pub analysed: f64,
}

impl Machine {
    /// The constants that this process predicts with: those given to [`Machine::set`], or those shipped for the instruction set.
    pub fn here() -> &'static Self {
        HERE.get_or_init(Self::of_instruction_set)
    }

    /// Lets this process predict with these constants. They are taken once, before the first prediction.
    ///
    /// # Errors
    /// [`Error::Usage`] when a constant is not positive and finite, or when predictions have been made.
    pub fn set(self) -> Result<(), Error> {
        if let Some((name, value)) = self.constants().into_iter().find(|(_, v)| !(*v > 0.0 && v.is_finite())) {
            let message = format!("the constant '{name}' of the machine is {value}; it must be positive and finite");
            return Err(Error::Usage { message });
        }
        let late =
            || Error::Usage { message: "the constants of the machine are set once, before the first solve".into() };
        HERE.set(self).map_err(|_| late())
    }

    /// Name of the instruction set that the shipped constants are of.
    pub fn instruction_set() -> &'static str {
        Isa::in_use().name()
    }

    /// All constants by name.
    pub fn constants(&self) -> Vec<(String, f64)> {
        let mut all =
            [("call", self.call), ("entry", self.entry), ("ordering", self.ordering), ("pairing", self.pairing)]
                .map(|(name, value)| (name.to_owned(), value))
                .to_vec();
        for (kernel, rate) in Kernel::ALL.iter().zip(&self.rates) {
            all.push((format!("{}.step", kernel.name()), rate.step));
            all.push((format!("{}.bandwidth", kernel.name()), rate.bandwidth));
            all.push((format!("{}.flops", kernel.name()), rate.flops));
            if kernel.is_sparse() {
                all.push((format!("{}.analysis", kernel.name()), rate.analysis));
            }
        }
        all
    }

    /// The machine with these constants, in the order of [`Machine::constants`].
    ///
    /// # Errors
    /// [`Error::Usage`] naming a constant that is missing, or one that there is not.
    pub fn with_constants(given: &[(String, f64)]) -> Result<Self, Error> {
        let mut machine = Self::of_instruction_set();
        let names: Vec<String> = machine.constants().into_iter().map(|(name, _)| name).collect();
        let value = |name: &str| given.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
        if let Some(missing) = names.iter().find(|name| value(name).is_none()) {
            return Err(Error::Usage { message: format!("the constant '{missing}' of the machine is missing") });
        }
        if let Some((unknown, _)) = given.iter().find(|(name, _)| !names.contains(name)) {
            return Err(Error::Usage { message: format!("'{unknown}' is not a constant of the machine") });
        }
        let of = |name: &str| value(name).unwrap_or(f64::NAN);
        (machine.call, machine.entry) = (of("call"), of("entry"));
        (machine.ordering, machine.pairing) = (of("ordering"), of("pairing"));
        for (kernel, rate) in Kernel::ALL.iter().zip(&mut machine.rates) {
            let own = |name: &str| of(&format!("{}.{name}", kernel.name()));
            let analysis = if kernel.is_sparse() { own("analysis") } else { 0.0 };
            *rate = Rate { step: own("step"), bandwidth: own("bandwidth"), flops: own("flops"), analysis };
        }
        Ok(machine)
    }

    /// Measured by `blocktri calibrate` on an AMD EPYC (Zen 4), one thread, with AVX-512 and, through `BLOCKTRI_ISA`, with AVX2; the
    /// flops of sparse factors by supernodes by a cube of 40³, larger than what is measured there. Step and analysis of sparse LU, and
    /// flops by columns, were measured in the same way on an Intel Xeon with AVX-512. The band without interchanges and Cholesky of
    /// blocks have the constants of LU there, times the ratio of both: of the published cases with AVX-512 and of four calibrations with
    /// AVX2 (ADR 6) the first, of the medians of eleven calibrations of a later day Cholesky (ADR 18). That of bands has the medians of four
    /// calibrations of each (ADR 19). Equal blocks have step and flops of four calibrations of
    /// that day, and a bandwidth between those and what 160 000 rows take. Without vectors flops are taken to go at a quarter of the rate of AVX2.
    fn of_instruction_set() -> Self {
        let isa = Isa::in_use();
        // [with AVX-512, with AVX2]
        let rate = |step: [f64; 2], bandwidth: [f64; 2], flops: [f64; 2]| match isa {
            Isa::Avx512 => Rate { step: step[0], bandwidth: bandwidth[0], flops: flops[0], analysis: 0.0 },
            Isa::Avx2 => Rate { step: step[1], bandwidth: bandwidth[1], flops: flops[1], analysis: 0.0 },
            Isa::Base128 | Isa::Portable => {
                Rate { step: step[1], bandwidth: bandwidth[1] / 2.0, flops: flops[1] / 4.0, analysis: 0.0 }
            }
        };
        let sparse = |analysis: f64, step: f64, flops| Rate { analysis, ..rate([step; 2], [1e15; 2], flops) };
        let none = [1e15; 2];
        Self {
            call: 2e-6,
            entry: 1e-9,
            ordering: 3.5e-8,
            pairing: 9e-8,
            rates: [
                rate([3.9e-8; 2], none, none),
                rate([3.3e-8, 5.6e-8], [4.1e9, 3.4e9], [4.2e10, 2.8e10]),
                rate([4.4e-8, 2.8e-8], [3.7e9, 2.5e9], [7.7e10, 2.8e10]),
                rate([6.1e-8, 5.3e-8], [1.1e10, 4.9e9], [2.7e10, 2.8e10]),
                rate([7.3e-7, 4.3e-7], [1.9e9, 1.8e9], [7.7e10, 5.9e10]),
                rate([1.9e-7, 2.2e-7], [2.5e9, 2.3e9], [2.5e10, 1.5e10]),
                rate([4.4e-7, 4.3e-7], [1.4e9, 1.3e9], [3.9e10, 3.7e10]),
                sparse(1.6e-7, 5.6e-9, [3.5e10, 3e10]),
                sparse(6.8e-8, 1e-15, [3e8; 2]),
                sparse(2.5e-8, 1.8e-8, [5.5e10, 4.5e10]),
                sparse(8e-8, 1.7e-8, [4.2e10, 3.5e10]),
                rate([2.2e-7, 2.4e-7], [2.6e9, 2.7e9], [4.8e10, 4.6e10]),
                rate([4.4e-10; 2], none, none),
            ],
        }
    }

    /// The constants of a kernel.
    pub fn rate(&self, kernel: Kernel) -> Rate {
        self.rates[kernel as usize]
    }

    /// Seconds of `work` on a matrix of `nnz` entries of scalar T.
    pub fn seconds<T: Scalar>(&self, nnz: usize, work: &Work) -> f64 {
        let Rate { step, bandwidth, flops, analysis } = self.rate(work.kernel);
        // The constants are those of doubles: numbers of half the size go twice as fast.
        let width = T::Real::EPSILON.to_f64();
        let halved = if width > 1e-10 { 0.5 } else { 1.0 };
        let elimination = step * work.steps + work.moved / bandwidth + halved * work.flops / flops;
        let symbolic = self.ordering * work.ordered + self.pairing * work.paired + analysis * work.analysed;
        self.call + self.entry * nnz as f64 + elimination + symbolic
    }
}

/// Real operations of a multiplication and an addition, in units of those of real numbers.
pub(crate) fn arithmetic<T: Scalar>() -> f64 {
    if T::IS_REAL { 1.0 } else { 4.0 }
}
