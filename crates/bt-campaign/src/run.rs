//! What is run on a system, and how a run ended.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use blocktri::formats::ScalarKind;
use blocktri::{
    Blocks, Certificate, Error, FactorError, Local, Method, Outcome, Precision, Precond, Reorder, Scalar, SingularKind,
    SolveOptions, StopRule, TriangularSolves, c32, c64, solve,
};
use fastrand::Rng;
use rayon::ThreadPool;

use crate::system::{System, is_single};

/// A method with its options.
#[derive(Clone, Debug)]
pub struct Task {
    /// As the table of findings names it.
    pub label: String,
    /// Options of the solve.
    pub options: SolveOptions,
    /// Whether it is run again on two threads.
    pub on_two_threads: bool,
    /// Exponents (α, β) of a twin 2^α·A·y = 2^β·b that is run too.
    pub twin: Option<(i32, i32)>,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub enum End {
    /// With an x.
    Answer(Answer),
    /// The matrix is said to be singular.
    Singular(SingularKind, String),
    /// The method or the options do not fit the matrix.
    Refused(String),
    /// The method could not factor the matrix.
    Failed(String),
    /// A panic: message and place.
    Panic(String),
}

/// What of a solution is judged.
#[derive(Clone, Debug)]
pub struct Answer {
    /// x.
    pub x: Vec<[f64; 2]>,
    /// How it ended.
    pub outcome: Outcome,
    /// Method that produced x.
    pub method: &'static str,
    /// Iterations or refinement steps.
    pub iterations: usize,
    /// Figures as reported.
    pub certificate: Certificate,
    /// Reciprocal condition number as reported.
    pub rcond: Option<f64>,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// Kinds of ends that must not depend on threads or units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Converged.
    Solved,
    /// An x that is said to be no solution.
    Unsolved,
    /// Said to be singular.
    Singular,
    /// No answer for another reason.
    None,
}

impl End {
    /// Kind of end.
    pub fn class(&self) -> Class {
        match self {
            Self::Answer(answer) if answer.outcome == Outcome::Converged => Class::Solved,
            Self::Answer(_) => Class::Unsolved,
            Self::Singular(..) => Class::Singular,
            _ => Class::None,
        }
    }

    /// In a few words.
    pub fn text(&self) -> String {
        match self {
            Self::Answer(a) => {
                let reason = match a.outcome {
                    Outcome::Breakdown(reason) => format!(" ({reason})"),
                    _ => String::new(),
                };
                format!("{}{reason} by {} after {}", a.outcome.name(), a.method, a.iterations)
            }
            Self::Singular(_, text) => format!("error: {text}"),
            Self::Refused(text) | Self::Failed(text) => format!("error: {text}"),
            Self::Panic(text) => format!("panic: {text}"),
        }
    }
}

/// Relative tolerance of iterative methods, by the precision of the type.
pub fn rtol(kind: ScalarKind) -> f64 {
    if is_single(kind) { 1e-4 } else { 1e-8 }
}

/// What of the methods is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// `auto` alone.
    Auto,
    /// Every method.
    All,
}

/// `auto` in several ways; then every method, and every preconditioner with one of the Krylov methods.
pub fn tasks(system: &System, reach: Reach, rng: &mut Rng) -> Vec<Task> {
    let mut tasks = Vec::new();
    let shift = if is_single(system.kind) { 30 } else { 60 };
    let mut push = |label: String, options: SolveOptions, rng: &mut Rng, percent: u32| {
        let exponents = [(shift, 0), (-shift, 0), (0, shift), (0, -shift), (shift, -shift), (-shift, -shift)];
        let twin = (rng.u32(..100) < percent).then(|| exponents[rng.usize(..exponents.len())]);
        tasks.push(Task { label, options, on_two_threads: rng.u32(..100) < percent, twin });
    };
    let mut base = SolveOptions::default();
    base.stop.rtol = rtol(system.kind);
    base.stop.max_iters = 200;
    base.stop.time_limit = Some(Duration::from_secs(20));

    push("auto".into(), base.clone(), rng, 100);
    push("auto --precision single".into(), SolveOptions { precision: Precision::Single, ..base.clone() }, rng, 30);
    let reorder = Reorder::ALL[rng.usize(..Reorder::ALL.len())];
    push(format!("auto --reorder {reorder}"), SolveOptions { reorder, ..base.clone() }, rng, 30);
    push("auto --blocks".into(), SolveOptions { blocks: blocks(system.n, rng), ..base.clone() }, rng, 30);

    if reach == Reach::Auto {
        return tasks;
    }
    for method in Method::ALL.into_iter().filter(|m| *m != Method::Auto) {
        let krylov = method.reads().contains(&"--precond");
        let mut options = vary(&SolveOptions { method, ..base.clone() }, system.n, rng);
        if krylov {
            options.precond = Precond::ALL[rng.usize(..Precond::ALL.len())];
        }
        if method.name().starts_with("hbisa") && rng.u32(..4) == 0 {
            options.stop_rule = StopRule::Update;
        }
        push(label(&options), options, rng, 25);
    }
    let krylov = [Method::Cg, Method::Fcg, Method::BiCgStab, Method::Gmres, Method::Fgmres];
    for precond in Precond::ALL {
        let method = krylov[rng.usize(..krylov.len())];
        let options = vary(&SolveOptions { method, precond, ..base.clone() }, system.n, rng);
        push(label(&options), options, rng, 15);
    }
    tasks
}

/// Method, preconditioner and what changes the arithmetic.
fn label(options: &SolveOptions) -> String {
    let mut label = options.method.name().to_owned();
    if options.method.reads().contains(&"--precond") {
        label += &format!(" --precond {}", options.precond.name());
    }
    if options.precision == Precision::Single {
        label += " --precision single";
    }
    if options.stop_rule == StopRule::Update {
        label += " --stop update";
    }
    label
}

fn blocks(n: usize, rng: &mut Rng) -> Blocks {
    match rng.u32(..3) {
        0 => Blocks::Detect,
        1 => Blocks::Uniform(rng.usize(1..=4.min(n))),
        _ => {
            let mut left = n;
            let mut sizes = Vec::new();
            while left > 0 {
                let size = rng.usize(1..=left.min(5));
                sizes.push(size);
                left -= size;
            }
            Blocks::Sizes(sizes)
        }
    }
}

/// Other values of what methods read, half of the time.
fn vary(options: &SolveOptions, n: usize, rng: &mut Rng) -> SolveOptions {
    let mut options = options.clone();
    if rng.bool() {
        return options;
    }
    if rng.bool() {
        options.blocks = blocks(n, rng);
    }
    if rng.u32(..4) == 0 {
        options.precision = Precision::Single;
    }
    if rng.u32(..3) == 0 {
        options.reorder = Reorder::ALL[rng.usize(..Reorder::ALL.len())];
    }
    if rng.bool() {
        options.partitions = Some(rng.usize(1..=4));
    }
    options.seed = rng.u64(..);
    options.levels = rng.usize(0..=3);
    options.local = Local::ALL[rng.usize(..Local::ALL.len())];
    options.overlap = rng.usize(0..=2);
    options.restart = [30, 5, 2, 1][rng.usize(..4)];
    if rng.u32(..4) == 0 {
        options.basis = Precision::Single;
    }
    if rng.u32(..4) == 0 {
        options.triangular = TriangularSolves::Sweeps(rng.usize(1..=6));
    }
    if rng.u32(..4) == 0 {
        options.omega = Some(0.25 + 1.5 * rng.f64());
    }
    options
}

/// Runs it in a pool of threads.
pub fn run(system: &System, options: &SolveOptions, pool: &ThreadPool) -> End {
    pool.install(|| {
        let end = catch_unwind(AssertUnwindSafe(|| match system.kind {
            ScalarKind::F32 => run_as::<f32>(system, options),
            ScalarKind::F64 => run_as::<f64>(system, options),
            ScalarKind::C32 => run_as::<c32>(system, options),
            ScalarKind::C64 => run_as::<c64>(system, options),
        }));
        end.unwrap_or_else(|_| End::Panic(last_panic()))
    })
}

fn run_as<T: Scalar>(system: &System, options: &SolveOptions) -> End {
    let a = match system.matrix::<T>() {
        Ok(a) => a,
        Err(e) => return End::Refused(e.to_string()),
    };
    match solve(&a, system.rhs::<T>().as_ref(), options, &mut ()) {
        Ok(solution) => {
            let parts = |i: usize| {
                let v: c64 = solution.x[(i, 0)].cast();
                [v.re, v.im]
            };
            End::Answer(Answer {
                x: (0..system.n).map(parts).collect(),
                outcome: solution.report.outcome,
                method: solution.report.method,
                iterations: solution.report.iterations,
                certificate: solution.report.certificate,
                rcond: solution.rcond,
                warnings: solution.warnings,
            })
        }
        Err(Error::Singular(place)) => End::Singular(place.kind, place.to_string()),
        Err(e @ Error::Factor(FactorError::Breakdown { .. } | FactorError::Failed { .. })) => {
            End::Failed(e.to_string())
        }
        Err(e) => End::Refused(e.to_string()),
    }
}

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Name of the threads that runs are on.
pub const THREAD: &str = "run";

/// Panics of runs are kept, not printed.
pub fn keep_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().name() != Some(THREAD) {
            print(info);
        } else if let Ok(mut last) = LAST_PANIC.lock() {
            *last = info.to_string().replace('\n', " ");
        }
    }));
}

fn last_panic() -> String {
    LAST_PANIC.lock().map_or_else(|_| String::new(), |last| last.clone())
}
