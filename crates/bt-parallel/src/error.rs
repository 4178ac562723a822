//! What ends the work of all ranks, the same error on each of them.
//!
//! A rank that meets unusable data does not return: the others would wait for it. All ranks come to [`agree`] instead, with a value or a
//! [`Fault`], and leave with their values or with the fault of the lowest rank that had one. Cost: one maximum over the ranks where all
//! is well, one broadcast more where it is not.

use bt_direct::{FactorError, Singularity};

use crate::comm::Comm;

/// Result of what ranks do together.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What sort of trouble a rank met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Data that cannot be used.
    Input,
    /// A matrix, or the part of it that a rank factors, is singular.
    Singular,
    /// A method that cannot factor its part.
    Breakdown,
    /// Memory that is not there.
    Memory,
    /// A GPU that is not there, or did not do what was asked.
    Device,
    /// A request to stop.
    Stopped,
}

/// The trouble of one rank, before the others know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Of which sort.
    pub kind: FaultKind,
    /// What was met, and where.
    pub message: String,
    /// The file it came from, and what to do, where that is known.
    pub origin: Option<Box<Origin>>,
}

/// The file that trouble came from, and what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Its name.
    pub file: Option<String>,
    /// From 1, where one line is to blame.
    pub line: Option<u64>,
    /// What the user can do.
    pub help: Option<String>,
}

impl Fault {
    /// Trouble of this sort.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), origin: None }
    }
    /// Unusable data.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Input, message)
    }
    /// The same with its origin.
    pub fn from_file(self, origin: Origin) -> Self {
        Self { origin: Some(Box::new(origin)), ..self }
    }
}

impl Origin {
    /// What an error of a file says by itself.
    fn of(error: &bt_formats::Error) -> Option<Self> {
        let (file, line) = match error {
            bt_formats::Error::Parse { file, line, .. } => (Some(file), (*line > 0).then_some(*line)),
            bt_formats::Error::Io { file, .. } => (Some(file), None),
            _ => (None, None),
        };
        let file = file.filter(|file| !file.as_os_str().is_empty()).map(|file| file.display().to_string());
        let known = Self { file, line, help: error.help().map(str::to_owned) };
        (known != Self::default()).then_some(known)
    }
}

impl From<bt_formats::Error> for Fault {
    fn from(error: bt_formats::Error) -> Self {
        FactorError::from(error).into()
    }
}

impl From<FactorError> for Fault {
    fn from(error: FactorError) -> Self {
        let origin = match &error {
            FactorError::Input(input) => Origin::of(input).map(Box::new),
            _ => None,
        };
        Self { kind: Self::from_kind(&error), message: error.to_string(), origin }
    }
}

impl Fault {
    /// Of a local matrix whose row i is row `numbers[i]` of the system: columns by the numbers of the system, and which part it was.
    pub(crate) fn in_part(error: FactorError, part: &str, numbers: impl ExactSizeIterator<Item = u32> + Clone) -> Self {
        let rows = numbers.len();
        let global = |column: usize| numbers.clone().nth(column).map_or(column, |g| g as usize);
        let kind = Self::from_kind(&error);
        let what = match error {
            FactorError::Singular(s) => Singularity { column: global(s.column), ..s }.to_string(),
            FactorError::Breakdown { method, reason, .. } => {
                let (least, most) = (numbers.clone().min().unwrap_or(0), numbers.max().unwrap_or(0));
                format!("{method} breaks down, by rows of the part, which are within {least} to {most}: {reason}")
            }
            other => other.to_string(),
        };
        Self::new(kind, format!("its {part} of {rows} rows: {what}"))
    }

    fn from_kind(error: &FactorError) -> FaultKind {
        match error {
            FactorError::Input(bt_formats::Error::NotEnoughMemory { .. } | bt_formats::Error::TooLarge { .. }) => {
                FaultKind::Memory
            }
            FactorError::Input(_) => FaultKind::Input,
            FactorError::Singular(_) => FaultKind::Singular,
            FactorError::Stopped => FaultKind::Stopped,
            _ => FaultKind::Breakdown,
        }
    }
}

/// Why ranks ended without a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// One rank met trouble and all agreed to end; the same on every rank.
    #[error("rank {rank}: {message}")]
    OnRank {
        /// The lowest rank that met any.
        rank: usize,
        /// Of which sort.
        kind: FaultKind,
        /// What was met, and where.
        message: String,
        /// The file it came from, and what to do, where that is known.
        origin: Option<Box<Origin>>,
    },
    /// A rank ended while others counted on it.
    #[error("rank {rank} is gone: {message}")]
    Lost {
        /// Which one.
        rank: usize,
        /// Why, as far as it could tell.
        message: String,
    },
    /// A rank waited longer than it was to.
    #[error("rank {rank} waited {milliseconds} ms for rank {source_rank}")]
    TimedOut {
        /// Which one.
        rank: usize,
        /// For which one.
        source_rank: usize,
        /// How long.
        milliseconds: u64,
    },
    /// Ranks that do not make the same calls, or disagree on sizes: an error in the program.
    #[error("rank {rank} is out of step: {message}")]
    OutOfStep {
        /// The rank that noticed.
        rank: usize,
        /// What it expected and what came.
        message: String,
    },
}

/// The values of all ranks, each on its own, or on all of them the fault of the lowest rank that has one. A collective.
///
/// # Errors
/// [`Error::OnRank`]; those of the communicator.
///
/// # Cost
/// One maximum over the ranks; one broadcast more where there is a fault.
///
/// ```
/// use bt_parallel::{Comm, Error, Fault, FaultKind, agree, thread_comm};
/// let results = thread_comm::run(3, |comm| {
///     agree(comm, if comm.rank() == 1 { Err(Fault::input("row 7 has no entries")) } else { Ok(()) })
/// });
/// let fault = Error::OnRank { rank: 1, kind: FaultKind::Input, message: "row 7 has no entries".into(), origin: None };
/// assert_eq!(results, [Err(fault.clone()), Err(fault.clone()), Err(fault)]);
/// ```
pub fn agree<V>(comm: &impl Comm, own: Result<V, Fault>) -> Result<V> {
    let p = comm.size();
    // The lowest rank has the largest distance from p.
    let mut worst = [if own.is_err() { (p - comm.rank()) as f64 } else { 0.0 }];
    comm.all_max(&mut worst)?;
    let fault = match own {
        Ok(value) if worst[0] == 0.0 => return Ok(value),
        own => own.err(),
    };
    let rank = p - (worst[0] as usize).clamp(1, p);
    let mut bytes = match &fault {
        Some(fault) if comm.rank() == rank => packed(fault),
        _ => Vec::new(),
    };
    comm.broadcast(rank, &mut bytes)?;
    let Fault { kind, message, origin } = unpacked(&bytes);
    Err(Error::OnRank { rank, kind, message, origin })
}

/// The kind, then the message, file, line and help: of each the length from 1, 0 where there is none, and its bytes.
fn packed(fault: &Fault) -> Vec<u8> {
    let Origin { file, line, help } = fault.origin.as_deref().cloned().unwrap_or_default();
    let mut bytes = vec![code(fault.kind)];
    for text in [Some(fault.message.clone()), file, line.map(|line| line.to_string()), help] {
        let length = text.as_ref().map_or(0, |text| text.len() as u64 + 1);
        bytes.extend(length.to_le_bytes());
        bytes.extend(text.unwrap_or_default().into_bytes());
    }
    bytes
}

/// What others have packed; as much of it as there is.
fn unpacked(bytes: &[u8]) -> Fault {
    let (kind, mut rest) = bytes.split_first().map_or((FaultKind::Input, bytes), |(&c, rest)| (kind(c), rest));
    let mut next = || {
        let (length, behind) = rest.split_first_chunk()?;
        let length = u64::from_le_bytes(*length).checked_sub(1);
        let (text, behind) = behind.split_at_checked(length.unwrap_or(0) as usize)?;
        rest = behind;
        length.map(|_| String::from_utf8_lossy(text).into_owned())
    };
    let [message, file, line, help] = [next(), next(), next(), next()];
    let origin = Origin { file, line: line.and_then(|line| line.parse().ok()), help };
    let origin = (origin != Origin::default()).then(|| Box::new(origin));
    Fault { kind, message: message.unwrap_or_default(), origin }
}

const KINDS: [FaultKind; 6] = [
    FaultKind::Input,
    FaultKind::Singular,
    FaultKind::Breakdown,
    FaultKind::Memory,
    FaultKind::Device,
    FaultKind::Stopped,
];

fn code(kind: FaultKind) -> u8 {
    KINDS.iter().position(|k| *k == kind).unwrap_or(0) as u8
}

fn kind(code: u8) -> FaultKind {
    KINDS.get(code as usize).copied().unwrap_or(FaultKind::Input)
}
