//! Floor 4 of blocktri: the published experiments behind it, run again.
//!
//! A [`Study`] is the experiments of one paper. Each [`Experiment`] ends in a JSON object of plain numbers, so that finished ones
//! can be kept in a file and the rest run later; [`report`] makes tables, figures and checked claims of those that are there.
//! Of files only that of results over ranks is read and written here ([`Results::from_ranks_file`]).

mod document;
mod experiment;
mod gpu;
mod hbisa;
mod measure;
mod parms;
mod processor;
mod ranks_file;
mod spike;
mod spread;
mod ssor_ai;

pub use document::{Axis, Claim, Curve, Figure, Item, Origin, Report, Scaling, Section, Stroke, Table, Verdict};
pub use experiment::{Error, Experiment, Facts, Results};
pub use gpu::Gpu;
pub use parms::{RankExperiment, rank_experiments};
pub use processor::processor;
pub use ranks_file::{PROCESSOR, RanksFileError};

/// What is run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Study {
    /// The hybrid block iteration on ten matrices of a cloud model: Yang, Li & Li, doi:10.1007/s11227-016-1881-x.
    Hbisa,
    /// The SSOR approximate inverse: Helfenstein & Koko, doi:10.1016/j.cam.2011.04.025.
    SsorAi,
    /// ARMS with random butterflies on its last level: Jamal, Baboulin, Khabou & Sosonkina.
    Parms,
    /// SPIKE: Polizzi & Sameh, doi:10.1016/j.parco.2005.07.005.
    Spike,
}

impl Study {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Hbisa, Self::SsorAi, Self::Parms, Self::Spike];

    /// Name in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hbisa => "hbisa",
            Self::SsorAi => "ssor-ai",
            Self::Parms => "parms",
            Self::Spike => "spike",
        }
    }
}

/// How much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scale {
    /// Seconds a study: the sizes that allow that.
    Quick,
    /// The published sizes.
    Full,
}

impl Scale {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// The experiments of a study, in the order they are best run: small ones first. With a GPU the methods that it has are run there too,
/// in experiments of their own whose names end in `gpu`.
///
/// ```
/// use bt_reproduce::{Scale, Study, experiments};
/// let cases = experiments(Study::Hbisa, Scale::Quick, None);
/// assert!(cases.iter().any(|e| e.id() == "hbisa/Cloud16-100"));
/// ```
pub fn experiments(study: Study, scale: Scale, gpu: Option<&Gpu>) -> Vec<Experiment> {
    match study {
        Study::Hbisa => hbisa::experiments(scale, gpu),
        Study::SsorAi => ssor_ai::experiments(scale, gpu),
        Study::Parms => parms::experiments(scale, gpu),
        Study::Spike => spike::experiments(scale, gpu),
    }
}

/// What the results say. Rows without a result are left out, claims without one are [`Verdict::NotRun`]. `gpu` is the name of the GPU
/// that was asked for, which has a section of the report.
pub fn report(study: Study, scale: Scale, gpu: Option<&str>, results: &Results) -> Report {
    match study {
        Study::Hbisa => hbisa::report(gpu, results),
        Study::SsorAi => ssor_ai::report(scale, gpu, results),
        Study::Parms => parms::report(scale, gpu, results),
        Study::Spike => spike::report(scale, gpu, results),
    }
}
