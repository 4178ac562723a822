//! Options of `reproduce`.

use std::path::PathBuf;

use blocktri::DeviceChoice;
use bt_reproduce::{Scale, Study};
use clap::{Args, ValueEnum};

/// Options of `reproduce`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blocktri reproduce hbisa --quick             seconds; the report is in reproduce-hbisa-quick
  blocktri reproduce all --out papers          the published sizes; Ctrl-C keeps what is finished
  blocktri reproduce ssor-ai --only 8047       one size, beside what the folder has
  blocktri reproduce all --quick --device gpu  what a GPU has is run there too
  blocktri reproduce all --out papers --render the report of what the folder has, by this version of the program")]
pub struct ReproduceArgs {
    /// Whose experiments
    #[arg(value_name = "STUDY")]
    pub study: StudyArg,
    /// Sizes that take seconds; the report says what is left out
    #[arg(long)]
    pub quick: bool,
    /// Folder of report.html, report.md, results.json and the figures [default: reproduce-STUDY, with --quick reproduce-STUDY-quick, with a
    /// GPU -gpu after it]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Only experiments with this in their name; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub only: Vec<String>,
    /// Where methods run: with gpu those that a GPU has are run there too, beside the processor's, and the report compares them
    #[arg(long, value_name = "cpu|gpu[:i]", default_value = "cpu", value_parser = super::values::cpu_or_gpu)]
    pub device: DeviceChoice,
    /// Results of blocktri-mpi reproduce: parms over processes of MPI, in place of the same over threads
    #[arg(long, value_name = "FILE.json")]
    pub ranks: Option<PathBuf>,
    /// Run everything again, also what the folder has results of
    #[arg(long)]
    pub fresh: bool,
    /// Run nothing: write the report anew from the folder's results, whatever build and machine made them
    #[arg(long, conflicts_with_all = ["fresh", "only", "device"])]
    pub render: bool,
}

impl ReproduceArgs {
    /// The studies.
    pub fn studies(&self) -> Vec<Study> {
        match self.study {
            StudyArg::Hbisa => vec![Study::Hbisa],
            StudyArg::SsorAi => vec![Study::SsorAi],
            StudyArg::Parms => vec![Study::Parms],
            StudyArg::Spike => vec![Study::Spike],
            StudyArg::All => Study::ALL.to_vec(),
        }
    }
    /// How much of them.
    pub fn scale(&self) -> Scale {
        if self.quick { Scale::Quick } else { Scale::Full }
    }
    /// The study as it was given.
    pub fn name(&self) -> &'static str {
        match self.studies()[..] {
            [study] => study.name(),
            _ => "all",
        }
    }
    /// Where the report goes.
    pub fn folder(&self) -> PathBuf {
        let quick = if self.quick { "-quick" } else { "" };
        let gpu = if matches!(self.device, DeviceChoice::Gpu(_)) { "-gpu" } else { "" };
        let default = || format!("reproduce-{}{quick}{gpu}", self.name()).into();
        self.out.clone().unwrap_or_else(default)
    }
    /// Whether an experiment is asked for.
    pub fn selects(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| id.contains(text))
    }
}

/// A study, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StudyArg {
    /// The hybrid block iteration on ten matrices of a cloud model (Yang, Li & Li 2017): tables 2, 3, 4, figure 5
    Hbisa,
    /// The SSOR approximate inverse on the unit disk (Helfenstein & Koko 2012): figures 1, 2, tables 1 to 3
    SsorAi,
    /// ARMS with and without random butterflies beside ILU(0) (Jamal, Baboulin, Khabou, Sosonkina): time by phase, weak scaling
    Parms,
    /// SPIKE (Polizzi & Sameh 2006): partitions, truncation, boosted pivots, bands as preconditioners
    Spike,
    /// All of them in one report
    All,
}
