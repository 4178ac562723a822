//! What the caller asks for beside the method: order, blocks, device, and what may take the method's place.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::method::Method;

/// A reordering before the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reorder {
    /// As the file has it.
    None,
    /// Reverse Cuthill–McKee.
    Rcm,
    /// Weighted spectral (Fiedler vector).
    Spectral,
    /// Maximum-product matching with scaling: a heavy, zero-free diagonal.
    Matching,
    /// Matching, then reverse Cuthill–McKee.
    MatchingRcm,
    /// Whatever makes the cheapest factorization.
    #[default]
    Auto,
}

impl Reorder {
    /// All reorderings, in the order of the help text.
    pub const ALL: [Self; 6] = [Self::None, Self::Rcm, Self::Spectral, Self::Matching, Self::MatchingRcm, Self::Auto];

    /// Name in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Rcm => "rcm",
            Self::Spectral => "spectral",
            Self::Matching => "matching",
            Self::MatchingRcm => "matching+rcm",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The block partition to work with.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Blocks {
    /// The natural block-tridiagonal partition of the pattern; for the hybrid block iteration its lines, if it has lines.
    #[default]
    Detect,
    /// Uniform blocks of this size, the last one smaller when it does not divide n.
    Uniform(usize),
    /// These sizes.
    Sizes(Vec<usize>),
}

/// Where a system is solved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// On the processor.
    #[default]
    Cpu,
    /// On the NVIDIA GPU of this number, from 0, in real arithmetic: cg, bicgstab, gmres and fgmres without a preconditioner or
    /// with jacobi, block-jacobi, ilu0, ic0, ilut and SSOR's approximate inverses; hbisa and hbisa-redblack; tridiagonal-lu,
    /// block-lu, band-lu and spike; and the factors of rbt and of the last level of arms-rbt. A [`Solver`](crate::Solver) keeps
    /// factors there of rbt alone. Needs the feature `cuda`.
    Gpu(u32),
    /// On several of them, with rows (cg without a preconditioner or with Jacobi's) or blocks (hbisa, hbisa-redblack) dealt out evenly.
    /// Needs the feature `cuda`.
    Gpus(Gpus),
    /// One solve: on GPU 0 where it is there, has the method, and the work outweighs the copies to it, else on the processor; the
    /// first note says why. `Method::Auto` weighs iterations on GPU 0 beside its other candidates. Factors that a
    /// [`Solver`](crate::Solver) keeps are on the processor.
    Auto,
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Gpu(ordinal) => write!(f, "gpu:{ordinal}"),
            Self::Gpus(gpus) => {
                let numbers: Vec<String> = gpus.ordinals().map(|ordinal| ordinal.to_string()).collect();
                write!(f, "gpu:{}", numbers.join(","))
            }
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// `cpu`, `auto`, `gpu`, `gpu:1`, `gpu:0,1`; else a sentence on what is needed.
///
/// ```
/// use blocktri::DeviceChoice;
/// assert_eq!("gpu:1,0".parse::<DeviceChoice>().map(|d| d.to_string()), Ok("gpu:0,1".into()));
/// ```
impl FromStr for DeviceChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "cpu" => Ok(Self::Cpu),
            None if text == "auto" => Ok(Self::Auto),
            None if text == "gpu" => Ok(Self::Gpu(0)),
            Some(("gpu", numbers)) => {
                let number = |text: &str| text.parse().map_err(|_| format!("'{text}' is not the number of a GPU"));
                let ordinals = numbers.split(',').map(number).collect::<Result<Vec<u32>, _>>()?;
                match ordinals[..] {
                    [ordinal] => Ok(Self::Gpu(ordinal)),
                    _ => Gpus::of(&ordinals)
                        .map(Self::Gpus)
                        .ok_or_else(|| format!("'{numbers}': several GPUs have different numbers, at most 63")),
                }
            }
            _ => Err("devices: cpu, auto, gpu, gpu:0, gpu:1, …, gpu:0,1, …".into()),
        }
    }
}

/// NVIDIA GPUs of different numbers, from 0 to 63: one or more.
///
/// ```
/// use blocktri::Gpus;
/// assert_eq!(Gpus::of(&[1, 0]).map(|gpus| gpus.ordinals().collect()), Some(vec![0, 1]));
/// assert_eq!([Gpus::of(&[0, 0]), Gpus::of(&[64]), Gpus::of(&[])], [None; 3]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpus(u64);

impl Gpus {
    /// Those of these numbers; none where one is named twice or above 63, or there is none.
    pub fn of(ordinals: &[u32]) -> Option<Self> {
        let mut bits = 0u64;
        for &ordinal in ordinals {
            let bit = 1u64.checked_shl(ordinal)?;
            bits = if bits & bit == 0 { bits | bit } else { return None };
        }
        (bits != 0).then_some(Self(bits))
    }

    /// Their numbers, from small to large.
    pub fn ordinals(self) -> impl Iterator<Item = u32> {
        (0..u64::BITS).filter(move |ordinal| self.0 >> ordinal & 1 == 1)
    }
}

impl DeviceChoice {
    /// Whether it names GPUs.
    pub(crate) fn is_gpu(self) -> bool {
        matches!(self, Self::Gpu(_) | Self::Gpus(_))
    }
}

/// What happens where a method asked for by name meets a pivot that it cannot use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// The solve ends with the method's error.
    #[default]
    Never,
    /// The next stronger method on the same structure factors ([`Direct::fallback`](crate::Direct::fallback)), and a warning says
    /// so. Where there is none, the solve ends with the method's error.
    Stronger,
}

/// When the condition number of a direct method's matrix is estimated, which costs some five solves, once per factorization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// When the answer is in doubt: a correction by one more solve is not small beside x. Small systems always are.
    #[default]
    InDoubt,
    /// Always.
    Always,
}

/// Options of a solve. `SolveOptions::default()` is what `blocktri solve A.mtx` uses.
///
/// ```
/// use blocktri::{Direct, SolveOptions};
/// let options = SolveOptions::by(Direct::BandLu);
/// assert_eq!(options.method.name(), "band-lu");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SolveOptions {
    /// Method, with its options.
    pub method: Method,
    /// Reordering.
    pub reorder: Reorder,
    /// Block partition, for methods and preconditioners on blocks.
    pub blocks: Blocks,
    /// Whether another method may take the place of a named one. `Method::Auto` always goes to a stronger one.
    pub fallback: Fallback,
    /// Where to compute.
    pub device: DeviceChoice,
    /// When the condition number is estimated.
    pub condition: Condition,
    /// Wall time at most; `None` for any. What is not done by then ends with the best x so far and
    /// [`Outcome::TimeLimit`](crate::Outcome::TimeLimit).
    pub time_limit: Option<Duration>,
}

impl SolveOptions {
    /// By a method, everything else as it is by default.
    pub fn by(method: impl Into<Method>) -> Self {
        Self { method: method.into(), ..Self::default() }
    }
}
