//! Options of `queue` and of `generate queue`.

use std::path::PathBuf;
use std::str::FromStr;

use blocktri::{DeviceChoice, StopCriterion};
use bt_queue::{CloudModel, Costs, Form, Order, Rates, TimeUnit};
use clap::{Args, ValueEnum};

use super::values::{count, device, real, tolerance};
use super::{BlocksArg, Target};
use crate::exit::{Failure, Result as CommandResult};

/// The cloud model.
#[derive(Clone, Debug, Args)]
pub struct ModelArgs {
    /// Resources, m
    #[arg(long, value_name = "M", value_parser = count)]
    pub resources: Option<usize>,
    /// Tasks that a resource may hold, K
    #[arg(long, value_name = "K", value_parser = count)]
    pub threshold: Option<usize>,
    /// Arrival rate λ
    #[arg(long, value_name = "RATE", value_parser = rate, allow_negative_numbers = true)]
    pub lambda: Option<f64>,
    /// Service rate μ of a resource [default: 1]
    #[arg(long, value_name = "RATE", value_parser = rate, allow_negative_numbers = true)]
    pub mu: Option<f64>,
    /// Rate η of turning on [default: 1]
    #[arg(long, value_name = "RATE", value_parser = rate, allow_negative_numbers = true)]
    pub eta: Option<f64>,
    /// Rate ν of turning off [default: 1]
    #[arg(long, value_name = "RATE", value_parser = rate, allow_negative_numbers = true)]
    pub nu: Option<f64>,
    /// Form of the rates [default: repaired]
    #[arg(long, value_name = "FORM")]
    pub form: Option<FormArg>,
}

/// What gives a chain.
const GIVEN: [&str; 2] = ["generator", "transitions"];
/// All that a model is given by; a given chain takes none of it.
const OF_A_MODEL: [&str; 7] = ["resources", "threshold", "lambda", "mu", "eta", "nu", "form"];

impl ModelArgs {
    /// The parameters with their defaults; what a sweep goes over need not be given.
    ///
    /// # Errors
    /// When resources, threshold or λ are missing.
    pub fn parameters(&self, sweep: Option<&SweepArg>) -> CommandResult<Parameters> {
        let swept = |over: SweepOver| sweep.filter(|s| s.over == over).and_then(|s| s.values.first().copied());
        let resources = self.resources.or(swept(SweepOver::Resources).map(|m| m as usize));
        let threshold = self.threshold.or(swept(SweepOver::Threshold).map(|k| k as usize));
        let lambda = self.lambda.or(swept(SweepOver::Lambda));
        if let (Some(resources), Some(threshold), Some(arrival)) = (resources, threshold, lambda) {
            let rates = Rates {
                arrival,
                service: self.mu.unwrap_or(1.0),
                turn_on: self.eta.unwrap_or(1.0),
                turn_off: self.nu.unwrap_or(1.0),
            };
            let form = match self.form {
                None | Some(FormArg::Repaired) => Form::Repaired,
                Some(FormArg::Literal) => Form::Literal,
            };
            return Ok(Parameters { resources, threshold, rates, form });
        }
        let given = [resources.is_some(), threshold.is_some(), lambda.is_some()];
        let missing: Vec<&str> = ["--resources M", "--threshold K", "--lambda RATE"]
            .into_iter()
            .zip(given)
            .filter(|e| !e.1)
            .map(|e| e.0)
            .collect();
        let failure = match missing.len() {
            3 => Failure::usage("no model is given"),
            _ => Failure::usage(format!("the model is not complete without {}", missing.join(" and "))),
        };
        Err(failure.help("a model is given by --resources M --threshold K --lambda RATE"))
    }
}

/// A rate.
fn rate(text: &str) -> Result<f64, String> {
    tolerance(text).map_err(|_| "a rate is a finite number of at least 0".into())
}

/// A time.
fn time(text: &str) -> Result<f64, String> {
    tolerance(text).map_err(|_| "a time is a finite number of at least 0".into())
}

/// A cost.
fn cost(text: &str) -> Result<f64, String> {
    tolerance(text).map_err(|_| "a cost is a finite number of at least 0".into())
}

/// Parameters of a cloud model.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// m.
    pub resources: usize,
    /// K.
    pub threshold: usize,
    /// λ, μ, η, ν.
    pub rates: Rates,
    /// The form.
    pub form: Form,
}

impl Parameters {
    /// The model.
    ///
    /// # Errors
    /// As [`CloudModel::new`].
    pub fn model(&self) -> bt_queue::Result<CloudModel> {
        CloudModel::new(self.resources, self.threshold, self.rates, self.form)
    }

    /// `repaired` or `literal`.
    pub fn form_name(&self) -> &'static str {
        match self.form {
            Form::Repaired => "repaired",
            Form::Literal => "literal",
        }
    }

    /// As options of the command.
    pub fn as_options(&self) -> String {
        self.as_options_of(None)
    }

    /// The same, what a sweep goes over being its range.
    pub fn as_options_of(&self, sweep: Option<&SweepArg>) -> String {
        let Rates { arrival, service, turn_on, turn_off } = self.rates;
        let options = [
            (SweepOver::Resources, "resources", self.resources.to_string()),
            (SweepOver::Threshold, "threshold", self.threshold.to_string()),
            (SweepOver::Lambda, "lambda", arrival.to_string()),
            (SweepOver::Mu, "mu", service.to_string()),
            (SweepOver::Eta, "eta", turn_on.to_string()),
            (SweepOver::Nu, "nu", turn_off.to_string()),
        ];
        let swept = |over: SweepOver| sweep.is_some_and(|s| s.over == over);
        let fixed = options.into_iter().filter(|o| !swept(o.0)).map(|(_, name, value)| format!("--{name} {value} "));
        format!("{}--form {}", fixed.collect::<String>(), self.form_name())
    }
}

/// Forms of the rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormArg {
    /// Every needed resource serves, arrivals end only at the window
    Repaired,
    /// Eq. (8) of the paper as printed
    Literal,
}

/// Options of `queue`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blocktri queue --resources 40 --threshold 16 --lambda 10
  blocktri queue --resources 40 --threshold 16 --lambda 10 --sweep lambda=1:30:1 --plot plan.svg
  blocktri queue --resources 40 --threshold 16 --lambda 10 --cost-resource 0.4 --cost-waiting 0.05 --time-unit minute
  blocktri queue --generator Q.mtx -o pi.mtx --json
  blocktri queue --generator rates.mtx --diagonal missing --times 1,10,100 --start 3
  blocktri queue --transitions counts.mtx --normalize")]
pub struct QueueArgs {
    /// Parameters.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Generator of any chain: rates out of a state in its row, rows that sum to zero
    #[arg(long, value_name = "Q.mtx", conflicts_with_all = OF_A_MODEL, conflicts_with_all = ["transitions", "sweep"])]
    pub generator: Option<PathBuf>,
    /// Transition probabilities of any chain: rows that sum to one
    #[arg(long, value_name = "P.mtx", conflicts_with_all = OF_A_MODEL, conflicts_with = "sweep")]
    pub transitions: Option<PathBuf>,
    /// Whether the diagonal of the generator is in the file
    #[arg(long, value_name = "WHERE", default_value = "given", requires = "generator", conflicts_with_all = OF_A_MODEL,
        conflicts_with_all = ["transitions", "sweep"])]
    pub diagonal: DiagonalArg,
    /// Divide each row of --transitions by its sum (counts, few digits); make the diagonal of --generator from the rates
    #[arg(long, conflicts_with_all = OF_A_MODEL, conflicts_with = "sweep")]
    pub normalize: bool,
    /// Levels of a given chain: uniform size, or a file with one size a line
    #[arg(long, value_name = "K|FILE", conflicts_with_all = OF_A_MODEL)]
    pub blocks: Option<BlocksArg>,
    /// Method
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub method: MethodArg,
    /// Tolerance of hbisa and power on ‖πQ‖₁, relative to the flow Σπ_i|q_ii|; every probability is certified to it, or to
    /// 1e-8 where that is larger [default: 1e-8]
    #[arg(long, value_name = "TOL", value_parser = tolerance, allow_negative_numbers = true)]
    pub rtol: Option<f64>,
    /// Iterations of hbisa and power at most [default: 10000]
    #[arg(long, value_name = "N")]
    pub max_iters: Option<usize>,
    /// Times, one or more, at which the distribution is wanted, from an empty start or --start
    #[arg(
        long,
        value_name = "T,..",
        value_delimiter = ',',
        value_parser = time,
        allow_negative_numbers = true,
        conflicts_with = "sweep"
    )]
    pub times: Vec<f64>,
    /// Where a given chain starts: a state, from 0, or a file with a probability for each state [default: 0]
    #[arg(long, value_name = "STATE|FILE.mtx", requires = "times", conflicts_with_all = OF_A_MODEL)]
    pub start: Option<StartArg>,
    /// Where π goes: .mtx (n × 1, by level or in the order of the file), or .csv and .json with log10 π; with --sweep
    /// the table, .csv or .json
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Picture of π, or with --sweep of the plans
    #[arg(long, value_name = "FILE.svg|png")]
    pub plot: Option<PathBuf>,
    /// A plan for each value of lambda, mu, eta, nu, resources or threshold
    #[arg(long, value_name = "NAME=FROM:TO:STEP")]
    pub sweep: Option<SweepArg>,
    /// Where the chains of --sweep are eliminated; auto is the processor
    #[arg(long, value_name = "cpu|auto|gpu[:i]", default_value = "cpu", value_parser = device, requires = "sweep")]
    pub device: DeviceChoice,
    /// Unit of time of the rates
    #[arg(long, value_name = "UNIT", default_value = "second")]
    pub time_unit: TimeUnitArg,
    /// Cost of a resource on for an hour
    #[arg(long, value_name = "COST", value_parser = cost, allow_negative_numbers = true, conflicts_with_all = GIVEN)]
    pub cost_resource: Option<f64>,
    /// Cost of turning a resource on or off
    #[arg(long, value_name = "COST", value_parser = cost, allow_negative_numbers = true, conflicts_with_all = GIVEN)]
    pub cost_switch: Option<f64>,
    /// Cost of a task waiting for an hour
    #[arg(long, value_name = "COST", value_parser = cost, allow_negative_numbers = true, conflicts_with_all = GIVEN)]
    pub cost_waiting: Option<f64>,
}

impl QueueArgs {
    /// When an iterative method stops.
    pub fn stop(&self) -> StopCriterion {
        let default = StopCriterion::default();
        StopCriterion {
            rtol: self.rtol.unwrap_or(default.rtol),
            max_iters: self.max_iters.unwrap_or(default.max_iters),
            ..default
        }
    }

    /// Options given that will not be read.
    pub fn unread_options(&self) -> Vec<&'static str> {
        let iterative = self.method.is_iterative() && self.sweep.is_none();
        let plain = matches!(self.method, MethodArg::Auto | MethodArg::Gth);
        [
            ("--rtol", self.rtol.is_some() && !iterative),
            ("--max-iters", self.max_iters.is_some() && !iterative),
            ("--method", self.sweep.is_some() && !plain),
        ]
        .into_iter()
        .filter(|o| o.1)
        .map(|o| o.0)
        .collect()
    }

    /// The costs, if any is given.
    pub fn costs(&self) -> Option<Costs> {
        let given = [self.cost_resource, self.cost_switch, self.cost_waiting];
        given.iter().any(Option::is_some).then(|| {
            let [resource_hour, switch, waiting_task_hour] = given.map(Option::unwrap_or_default);
            Costs { resource_hour, switch, waiting_task_hour }
        })
    }
}

/// Methods of `queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodArg {
    /// gth
    Auto,
    /// Elimination without subtraction: every probability with a bound of its relative error
    Gth,
    /// Block LU on the levels with the mode pinned: no guarantee for small probabilities
    BlockLu,
    /// Block Gauss-Seidel sweeps on the levels, to a tolerance
    Hbisa,
    /// Power iteration, to a tolerance
    Power,
}

impl MethodArg {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Gth => "gth",
            Self::BlockLu => "block-lu",
            Self::Hbisa => "hbisa",
            Self::Power => "power",
        }
    }

    /// Whether it works to a tolerance.
    pub fn is_iterative(self) -> bool {
        matches!(self, Self::Hbisa | Self::Power)
    }

    /// The order of the cloud model's states that suits it.
    pub fn order(self) -> Order {
        match self {
            Self::BlockLu | Self::Hbisa => Order::LevelMajor,
            _ => Order::TaskMajor,
        }
    }
}

/// Where the diagonal of a generator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiagonalArg {
    /// In the file: rows sum to zero, and are checked
    Given,
    /// Nowhere: the entries are rates, and what is on the diagonal is not read
    Missing,
    /// In the file where any entry of it is not zero, else nowhere
    Auto,
}

/// Where a chain starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartArg {
    /// In a state, from 0.
    State(usize),
    /// With the probabilities in a file.
    File(PathBuf),
}

impl FromStr for StartArg {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(state) => Ok(Self::State(state)),
            Err(_) if text.is_empty() || text.parse::<f64>().is_ok() => {
                Err("a state is a whole number from 0; or the name of a file".into())
            }
            Err(_) => Ok(Self::File(text.into())),
        }
    }
}

/// Units of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TimeUnitArg {
    /// Rates per second
    Second,
    /// Rates per minute
    Minute,
    /// Rates per hour
    Hour,
    /// Rates per day
    Day,
}

impl From<TimeUnitArg> for TimeUnit {
    fn from(unit: TimeUnitArg) -> Self {
        match unit {
            TimeUnitArg::Second => Self::Second,
            TimeUnitArg::Minute => Self::Minute,
            TimeUnitArg::Hour => Self::Hour,
            TimeUnitArg::Day => Self::Day,
        }
    }
}

/// What a sweep changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepOver {
    /// λ.
    Lambda,
    /// μ.
    Mu,
    /// η.
    Eta,
    /// ν.
    Nu,
    /// m.
    Resources,
    /// K.
    Threshold,
}

/// NAME=FROM:TO:STEP.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepArg {
    /// What changes.
    pub over: SweepOver,
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Vec<f64>,
}

impl FromStr for SweepArg {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        const MOST: f64 = 1e5;
        let form = "NAME=FROM:TO:STEP is needed, lambda=1:100:1 for example";
        let (name, range) = text.split_once('=').ok_or(form)?;
        let over = match name {
            "lambda" => SweepOver::Lambda,
            "mu" => SweepOver::Mu,
            "eta" => SweepOver::Eta,
            "nu" => SweepOver::Nu,
            "resources" => SweepOver::Resources,
            "threshold" => SweepOver::Threshold,
            _ => return Err(format!("'{name}' is none of lambda, mu, eta, nu, resources, threshold")),
        };
        let ends: Vec<f64> = range.split(':').map(real).collect::<Result<_, _>>()?;
        let &[from, to, step] = &ends[..] else { return Err(form.into()) };
        if !(step > 0.0 && from >= 0.0 && to >= from) {
            return Err("0 ≤ FROM ≤ TO and STEP > 0 are needed".into());
        }
        let whole = matches!(over, SweepOver::Resources | SweepOver::Threshold);
        if whole && ends.iter().any(|&x| x.fract() != 0.0 || x < 1.0) {
            return Err(format!("{name} takes whole numbers of at least 1"));
        }
        // A last value that rounding puts just beyond TO still counts.
        let steps = ((to - from) / step * (1.0 + 1e-12)).floor();
        if !(steps < MOST) {
            return Err(format!("at most {MOST} values"));
        }
        let values = (0..=steps as usize).map(|i| (from + i as f64 * step).min(to)).collect();
        Ok(Self { over, name: name.into(), values })
    }
}

impl SweepArg {
    /// What changes, with its unit.
    pub fn quantity(&self, unit: TimeUnit) -> String {
        let rate = |name: &str| format!("{name} per {}", unit.name());
        match self.over {
            SweepOver::Lambda => rate("λ, tasks that arrive"),
            SweepOver::Mu => rate("μ, tasks that a resource finishes"),
            SweepOver::Eta => rate("η, resources turned on"),
            SweepOver::Nu => rate("ν, resources turned off"),
            SweepOver::Resources => "resources there are".into(),
            SweepOver::Threshold => "tasks that a resource may hold".into(),
        }
    }
    /// The parameters with one of the values.
    pub fn apply(&self, mut to: Parameters, value: f64) -> Parameters {
        match self.over {
            SweepOver::Lambda => to.rates.arrival = value,
            SweepOver::Mu => to.rates.service = value,
            SweepOver::Eta => to.rates.turn_on = value,
            SweepOver::Nu => to.rates.turn_off = value,
            SweepOver::Resources => to.resources = value as usize,
            SweepOver::Threshold => to.threshold = value as usize,
        }
        to
    }
}

/// `generate queue`.
#[derive(Debug, Args)]
pub struct GenerateQueueArgs {
    /// Parameters.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Order of the states
    #[arg(long, value_name = "ORDER", default_value = "level")]
    pub order: OrderArg,
    /// Which matrix
    #[arg(long, value_name = "Q|P", default_value = "q", ignore_case = true)]
    pub matrix: MatrixArg,
    /// Where it goes.
    #[command(flatten)]
    pub target: Target,
}

/// Orders of the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    /// By level, then tasks: m blocks of 2K + 1 states
    Level,
    /// By tasks, then level: the narrowest band
    Tasks,
}

/// Matrices of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MatrixArg {
    /// The generator
    Q,
    /// The uniformised chain I + Q/Λ, Λ the largest rate out of a state
    P,
}

impl From<OrderArg> for Order {
    fn from(order: OrderArg) -> Self {
        match order {
            OrderArg::Level => Self::LevelMajor,
            OrderArg::Tasks => Self::TaskMajor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_parse() {
        let values = |text: &str| text.parse::<SweepArg>().unwrap().values;
        assert_eq!(values("lambda=1:3:1"), [1.0, 2.0, 3.0]);
        assert_eq!(values("mu=0.1:0.3:0.1").len(), 3);
        assert_eq!(values("resources=2:9:3"), [2.0, 5.0, 8.0]);
        assert_eq!(values("nu=5:5:1"), [5.0]);
        for bad in
            ["lambda", "x=1:2:1", "mu=1:2", "mu=2:1:1", "mu=1:2:0", "mu=1:2:nan", "threshold=0.5:2:1", "eta=0:1:1e-9"]
        {
            assert!(bad.parse::<SweepArg>().is_err(), "{bad}");
        }
    }
}
