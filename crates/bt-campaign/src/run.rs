//! What is run on a system, and how a run ended.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use blocktri::{
    ArmsOptions, Auto, BlockIteration, Blocks, CentralBand, Certificate, Direct, Error, FactorError, Factoring,
    Fallback, Krylov, KrylovMethod, LastSolver, Local, Method, Note, Outcome, Precision, Precond, RbtOptions,
    Relaxation, Reorder, Scalar, SingularKind, SolveOptions, StopCriterion, StopRule, Sweep, TriangularSolves, c32,
    c64, solve,
};
use bt_formats::ScalarKind;
use fastrand::Rng;
use rayon::ThreadPool;

use crate::judge::twin_shift;
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
    pub warnings: Vec<Note>,
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
            Self::Singular(_, text) | Self::Refused(text) | Self::Failed(text) => format!("error: {text}"),
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
    let shift = twin_shift(system.kind);
    let exponents = [(shift, 0), (-shift, 0), (0, shift), (0, -shift), (shift, -shift), (-shift, -shift)];
    let mut push = |label: String, options: SolveOptions, rng: &mut Rng, percent: u32| {
        let twin = (rng.u32(..100) < percent).then(|| exponents[rng.usize(..exponents.len())]);
        tasks.push(Task { label, options, on_two_threads: rng.u32(..100) < percent, twin });
    };

    let auto = SolveOptions::default();
    push("auto".into(), auto.clone(), rng, 100);
    if system.kind != ScalarKind::C64 {
        let single = Factoring { precision: Precision::Single, ..Factoring::default() };
        let method = Auto { factoring: single, ..Auto::default() };
        push("auto --precision single".into(), SolveOptions::by(Method::Auto(method)), rng, 30);
    }
    let reorder = Reorder::ALL[rng.usize(..Reorder::ALL.len())];
    push(format!("auto --reorder {reorder}"), SolveOptions { reorder, ..auto.clone() }, rng, 30);
    push("auto --blocks".into(), SolveOptions { blocks: blocks(system.n, rng), ..auto }, rng, 30);
    if reach == Reach::Auto {
        return tasks;
    }

    let rtol = rtol(system.kind);
    let stop = StopCriterion { rtol, max_iters: 200, time_limit: Some(Duration::from_secs(20)), ..Default::default() };
    let preconds = Precond::all();
    for mut method in Method::all().into_iter().filter(|method| !method.is_auto()) {
        match &mut method {
            Method::Krylov(krylov) => krylov.precond = preconds[rng.usize(..preconds.len())],
            Method::Blocks(blocks) if rng.u32(..4) == 0 => blocks.rule = StopRule::Update,
            _ => {}
        }
        if let Some(criterion) = method.stop_mut() {
            *criterion = stop;
        }
        let options = Draw { rng, system }.options(method);
        push(label(&options), options, rng, 25);
    }
    for precond in preconds {
        let method = KrylovMethod::ALL[rng.usize(..KrylovMethod::ALL.len())];
        let options = Draw { rng, system }.options(Krylov { stop, ..Krylov::new(method, precond) }.into());
        push(label(&options), options, rng, 15);
    }
    tasks
}

/// Method, preconditioner and what changes the arithmetic.
fn label(options: &SolveOptions) -> String {
    let mut words = vec![options.method.name()];
    if let Method::Krylov(krylov) = &options.method {
        words.extend(["--precond", krylov.precond.name()]);
    }
    if precision(&options.method) == Precision::Single {
        words.push("--precision single");
    }
    if by_updates(&options.method) {
        words.push("--stop update");
    }
    if options.fallback == Fallback::Stronger {
        words.push("--fallback");
    }
    words.join(" ")
}

/// Of factors, or of the preconditioner.
fn precision(method: &Method) -> Precision {
    match method {
        Method::Krylov(krylov) => krylov.precision,
        other => other.factoring().map_or(Precision::Working, |factoring| factoring.precision),
    }
}

/// Whether its tolerance is held against updates of x, which bound no residual.
pub fn by_updates(method: &Method) -> bool {
    matches!(method, Method::Blocks(blocks) if blocks.rule == StopRule::Update)
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

/// Draws other values of what methods read.
struct Draw<'a> {
    rng: &'a mut Rng,
    system: &'a System,
}

impl Draw<'_> {
    /// The method with other values, half of the time.
    fn options(&mut self, method: Method) -> SolveOptions {
        let mut options = SolveOptions::by(method);
        if self.rng.bool() {
            return options;
        }
        if self.rng.bool() {
            options.blocks = blocks(self.system.n, self.rng);
        }
        if self.rng.u32(..3) == 0 {
            options.reorder = Reorder::ALL[self.rng.usize(..Reorder::ALL.len())];
        }
        options.method = match options.method {
            Method::Direct(direct, factoring) => {
                if direct.row().stronger.is_some() && self.rng.bool() {
                    options.fallback = Fallback::Stronger;
                }
                let precision = self.precision(direct.is_in_single());
                Method::Direct(self.direct(direct), Factoring { precision, ..factoring })
            }
            Method::Krylov(given) => {
                let precision = self.precision(given.precond.is_in_single());
                let (method, precond) = (self.krylov(given.method), self.precond(given.precond));
                Krylov { method, precond, precision, ..given }.into()
            }
            Method::Blocks(given) => BlockIteration { sweep: self.sweep(given.sweep), ..given }.into(),
            other => other,
        };
        options
    }

    /// Single at times where it is there to be asked for. In f32 it is the precision of the matrix, and changes nothing.
    fn precision(&mut self, is_in_single: bool) -> Precision {
        let there = is_in_single && self.system.kind != ScalarKind::C64;
        if there && self.rng.u32(..4) == 0 { Precision::Single } else { Precision::Working }
    }

    fn partitions(&mut self) -> Option<usize> {
        self.rng.bool().then(|| self.rng.usize(1..=4))
    }

    /// ω inside (0, 2).
    fn omega(&mut self) -> Option<f64> {
        (self.rng.u32(..4) == 0).then(|| 0.25 + 1.5 * self.rng.f64())
    }

    fn direct(&mut self, method: Direct) -> Direct {
        match method {
            Direct::TridiagonalSpike { interior, .. } => {
                Direct::TridiagonalSpike { interior, partitions: self.partitions() }
            }
            Direct::Spike { .. } => Direct::Spike { partitions: self.partitions() },
            Direct::SpikeTruncated { .. } => Direct::SpikeTruncated { partitions: self.partitions() },
            Direct::BlockRbt { .. } => Direct::BlockRbt { seed: self.rng.u64(..) },
            Direct::Rbt { .. } => Direct::Rbt { seed: self.rng.u64(..) },
            other => other,
        }
    }

    fn sweep(&mut self, sweep: Sweep) -> Sweep {
        match (sweep, self.omega()) {
            (Sweep::Sor(_), Some(omega)) => Sweep::Sor(Relaxation::Fixed(omega)),
            _ => sweep,
        }
    }

    fn krylov(&mut self, method: KrylovMethod) -> KrylovMethod {
        let restart = [30, 5, 2, 1][self.rng.usize(..4)];
        let basis = if self.rng.u32(..4) == 0 { Precision::Single } else { Precision::Working };
        match method {
            KrylovMethod::Gmres { .. } => KrylovMethod::Gmres { restart, basis },
            KrylovMethod::Fgmres { .. } => KrylovMethod::Fgmres { restart, basis },
            other => other,
        }
    }

    fn precond(&mut self, mut precond: Precond) -> Precond {
        match &mut precond {
            Precond::Ssor { omega, solves } => {
                *omega = self.omega().unwrap_or(*omega);
                *solves = self.solves();
            }
            Precond::SsorAi { omega, .. } | Precond::SsorAiMasked { omega } | Precond::BlockSsorAi { omega } => {
                *omega = self.omega().unwrap_or(*omega);
            }
            Precond::Iluk { levels, solves } => (*levels, *solves) = (self.levels(), self.solves()),
            Precond::Ilu0 { solves, .. } | Precond::Ilut { solves, .. } | Precond::Ic0 { solves, .. } => {
                *solves = self.solves();
            }
            Precond::Schwarz { layers, subdomains, local, .. } => {
                (*layers, *subdomains) = (self.rng.usize(0..=2), self.partitions());
                *local = match Local::all()[self.rng.usize(..Local::all().len())] {
                    Local::Iluk(_) => Local::Iluk(self.levels()),
                    other => other,
                };
            }
            Precond::Arms(ArmsOptions { last: LastSolver::Butterflies(RbtOptions { seed, .. }), .. }) => {
                *seed = self.rng.u64(..);
            }
            Precond::Spike(CentralBand { partitions, .. })
            | Precond::SpikeTruncated(CentralBand { partitions, .. }) => *partitions = self.partitions(),
            _ => {}
        }
        precond
    }

    fn levels(&mut self) -> usize {
        self.rng.usize(0..=3)
    }

    fn solves(&mut self) -> TriangularSolves {
        if self.rng.u32(..4) == 0 { TriangularSolves::Sweeps(self.rng.usize(1..=6)) } else { TriangularSolves::Levels }
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Tasks of 200 systems in a scalar type.
    fn drawn(kind: ScalarKind) -> Vec<Task> {
        let system = System { kind, ..System::dense(3, &[2.0, 1.0, 0.0, 1.0, 3.0, 1.0, 0.0, 1.0, 4.0], &[1.0; 3]) };
        let mut rng = Rng::with_seed(1);
        (0..200).flat_map(|_| tasks(&system, Reach::All, &mut rng)).collect()
    }

    #[test]
    fn every_method_and_every_preconditioner_is_run_on_every_system() {
        let system = System::dense(1, &[1.0], &[1.0]);
        for seed in 0..20 {
            let all = tasks(&system, Reach::All, &mut Rng::with_seed(seed));
            let runs = |name: &str| all.iter().any(|task| task.options.method.name() == name);
            assert!(Method::all().iter().all(|method| runs(method.name())));
            let with = |name: &str| {
                all.iter()
                    .any(|task| matches!(&task.options.method, Method::Krylov(krylov) if krylov.precond.name() == name))
            };
            assert!(Precond::all().iter().all(|precond| with(precond.name())));
            let auto = tasks(&system, Reach::Auto, &mut Rng::with_seed(seed));
            assert!(auto.iter().all(|task| task.options.method.is_auto()));
        }
    }

    #[test]
    fn single_precision_is_asked_for_where_it_is() {
        let single = |kind| {
            let asked = drawn(kind).into_iter().filter(|task| precision(&task.options.method) == Precision::Single);
            asked.map(|task| match task.options.method {
                Method::Krylov(krylov) => format!("krylov {}", krylov.precond),
                method => method.name().to_owned(),
            })
        };
        let preconds = Precond::all().into_iter().filter(Precond::is_in_single).map(|p| format!("krylov {p}"));
        let direct = blocktri::DIRECT.iter().filter(|row| row.method.is_in_single()).map(|row| row.name.to_owned());
        let there: BTreeSet<_> = preconds.chain(direct).chain(["auto".to_owned()]).collect();
        assert_eq!(single(ScalarKind::F64).collect::<BTreeSet<_>>(), there);
        assert_eq!(single(ScalarKind::C64).count(), 0);
    }

    #[test]
    fn what_has_values_is_run_with_other_ones() {
        let (mut methods, mut preconds) = (BTreeSet::new(), BTreeSet::new());
        for task in drawn(ScalarKind::F64) {
            let given = task.options.method;
            let is_other = match (&given, given.name().parse::<Method>().unwrap()) {
                (Method::Direct(drawn, _), Method::Direct(plain, _)) => *drawn != plain,
                (Method::Krylov(drawn), Method::Krylov(plain)) => drawn.method != plain.method,
                (Method::Blocks(drawn), Method::Blocks(plain)) => drawn.sweep != plain.sweep,
                _ => false,
            };
            methods.extend(is_other.then(|| given.name()));
            if let Method::Krylov(Krylov { precond, .. }) = given {
                preconds.extend((precond != precond.name().parse().unwrap()).then(|| precond.name()));
            }
        }
        let of_spike = ["g-spike", "spike", "spike-diagonal-pivoting", "spike-lu", "spike-truncated"];
        let others = ["block-rbt", "fgmres", "gmres", "hbisa-sor", "rbt"];
        assert_eq!(methods, of_spike.into_iter().chain(others).collect());
        let solves = ["ssor", "ilu0", "milu0", "iluk", "ilut", "ic0", "mic0"];
        let omegas = ["ssor-ai", "ssor-ai-free", "ssor-ai-masked", "ssor-ai2", "block-ssor-ai2", "ip"];
        let others = ["schwarz", "ras", "arms-rbt", "spike", "spike-truncated"];
        assert_eq!(preconds, solves.into_iter().chain(omegas).chain(others).collect());
    }

    #[test]
    fn labels_name_what_is_run() {
        let krylov = Krylov { precision: Precision::Single, ..Krylov::new(KrylovMethod::Cg, "ic0".parse().unwrap()) };
        assert_eq!(label(&SolveOptions::by(krylov)), "cg --precond ic0 --precision single");
        let updates = BlockIteration { rule: StopRule::Update, ..BlockIteration::new(Sweep::Jacobi) };
        assert_eq!(label(&SolveOptions::by(updates)), "hbisa --stop update");
        let thomas = SolveOptions { fallback: Fallback::Stronger, ..SolveOptions::by(Direct::Thomas) };
        assert_eq!(label(&thomas), "thomas --fallback");
        let handed = |task: &Task| task.options.fallback == Fallback::Stronger;
        let all = drawn(ScalarKind::F32);
        assert!(all.iter().any(handed));
        assert!(all.iter().filter(|task| handed(task)).all(|task| task.label.ends_with(" --fallback")));
    }
}
