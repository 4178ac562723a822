//! Algorithm 1 of the paper over ranks: FGMRES with the global preconditioners of pARMS, iterations, messages and bytes by ranks, and the time
//! of each step.
//!
//! ```text
//! 2, 3  domains by site expansion, rows to their owners, what is exchanged     distribute
//! 4, 5  factors of the local parts, Sᵢ among them                              factor
//! 6, 7  inner GMRES on the interface, back-substitution: M⁻¹                   apply
//! 8, 9  products with A, vectors of the outer FGMRES                           outer
//! ```
//!
//! Ranks are threads of this process, or processes of MPI under `blocktri-mpi reproduce`, which run the same [`RankExperiment`]: both count the
//! same messages and bytes, and where there are more ranks than cores they take turns, so that counts are those of any machine and seconds
//! are not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use bt_formats::{CancelToken, Csr, Matrix, Outcome};
use bt_iter::{ArmsOptions, Overlap, PreconditionerKind};
use bt_parallel::{
    Comm, DistributedCsr, DistributedPreconditioner, Division, Error as RankError, Fault, FaultKind, Krylov,
    LocalSolver, Method, Result as RankResult, Schur, Schwarz, Timed, agree, thread_comm,
};
use bt_queue::meshes::Mesh;
use serde_json::json;

use super::{System, butterflies, id, rule};
use crate::Scale;
use crate::document::{Axis, Claim, Curve, Figure, Item, Origin, Scaling, Section, Stroke, Table, Verdict};
use crate::experiment::{Error, Experiment, Facts, Results};
use crate::measure::{converged, count, iterations, outcome, ratio, rhs, seconds};
use crate::ranks_file::PROCESSOR;

/// Global and local preconditioners, by the names that `blocktri-mpi` has for them.
const PRECONDITIONERS: [&str; 7] =
    ["block-jacobi/ilu0", "block-jacobi/arms", "ras/ilu0", "ras/arms", "schur/ilu0", "schur/arms", "schur/arms-rbt"];
/// The steps of the header.
const STEPS: [&str; 4] = ["distribute", "factor", "apply", "outer"];
/// Ranks of the systems that grow on as many ranks.
const FIXED_RANKS: usize = 4;
/// Iterations with the Schur complement on most ranks may be so many times those on one.
const GROWTH: f64 = 2.0;

/// Systems of the strong scaling.
fn systems(scale: Scale) -> Vec<System> {
    match scale {
        Scale::Quick => vec![System::Box([32, 32, 64]), System::Epb3(1)],
        Scale::Full => vec![System::Edf(128), System::Box([128, 128, 128]), System::Epb3(64), System::Flame(4)],
    }
}

fn ranks(scale: Scale) -> Vec<usize> {
    match scale {
        Scale::Quick => vec![1, 2, 4],
        Scale::Full => vec![1, 2, 3, 4, 6, 8, 12],
    }
}

/// Ranks of the weak scalings, and the system of each: as many copies of edf a rank, which do not interact, and boxes of as many unknowns,
/// refined and truly coupled.
fn weak_systems(scale: Scale) -> [Vec<(usize, System)>; 2] {
    let (copies, boxes): (usize, &[(usize, [usize; 3])]) = match scale {
        Scale::Quick => (1, &[(1, [16, 32, 32]), (2, [32, 32, 32]), (4, [32, 32, 64])]),
        Scale::Full => (16, &[(1, [64, 64, 64]), (2, [64, 64, 128]), (4, [64, 128, 128]), (8, [128, 128, 128])]),
    };
    let copied = boxes.iter().map(|&(p, _)| (p, System::Edf(copies * p))).collect();
    [copied, boxes.iter().map(|&(p, size)| (p, System::Box(size))).collect()]
}

/// Copies of edf whose number grows while that of the ranks does not.
fn growing_systems(scale: Scale) -> Vec<(usize, System)> {
    let copies: &[usize] = match scale {
        Scale::Quick => &[1, 2, 4],
        Scale::Full => &[16, 32, 64, 128],
    };
    copies.iter().map(|&copies| (FIXED_RANKS, System::Edf(copies))).collect()
}

fn rank_id(system: System, p: usize, precond: &str) -> String {
    id(system, &format!("{p}-ranks/{precond}"))
}

/// FGMRES(30) on one system with one preconditioner over some ranks.
#[derive(Clone, Copy, PartialEq)]
pub struct RankExperiment {
    system: System,
    ranks: usize,
    precond: &'static str,
}

/// All of them, each once.
///
/// ```
/// use bt_parallel::SelfComm;
/// use bt_reproduce::{Scale, rank_experiments};
/// let all = rank_experiments(Scale::Quick);
/// let one = all.iter().find(|e| e.id() == "parms/edf-x1/1-ranks/block-jacobi/ilu0").expect("a system on one rank");
/// let facts = one.run(&SelfComm, &bt_formats::CancelToken::new())?;
/// assert_eq!(facts["solve"]["outcome"], "converged");
/// # Ok::<(), bt_parallel::Error>(())
/// ```
pub fn rank_experiments(scale: Scale) -> Vec<RankExperiment> {
    let weak = weak_systems(scale).into_iter().flatten();
    let strong = systems(scale).into_iter().flat_map(|system| ranks(scale).into_iter().map(move |p| (p, system)));
    let mut runs: Vec<(usize, System)> = Vec::new();
    for run in weak.chain(growing_systems(scale)).chain(strong) {
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    let each = |(ranks, system)| PRECONDITIONERS.map(|precond| RankExperiment { system, ranks, precond });
    runs.into_iter().flat_map(each).collect()
}

impl RankExperiment {
    /// The name under which its result is kept, whatever ranks are.
    pub fn id(&self) -> String {
        rank_id(self.system, self.ranks, self.precond)
    }
    /// What it does, for people who wait.
    pub fn what(&self) -> String {
        format!("{}, {}, {} ranks", self.system.name(), self.precond, self.ranks)
    }
    /// How many ranks it is for.
    pub fn ranks(&self) -> usize {
        self.ranks
    }
    /// Does it on the ranks of a communicator, each of which makes its own rows of the system. A collective; the same facts on every rank.
    ///
    /// # Errors
    /// [`FaultKind::Stopped`] once `cancel` is raised on a rank; those of the ranks, agreed on.
    pub fn run<C: Comm>(&self, comm: &C, cancel: &CancelToken) -> RankResult<Facts> {
        solve(comm, self.system, self.precond, cancel)
    }
}

impl fmt::Debug for RankExperiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id(), self.what())
    }
}

/// The same over threads of this process.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let over_threads = |e: RankExperiment| {
        Experiment::new(e.id(), e.what(), move |cancel| on_threads(e.system, e.ranks, e.precond, cancel))
    };
    rank_experiments(scale).into_iter().map(over_threads).collect()
}

fn on_threads(system: System, p: usize, precond: &str, cancel: &CancelToken) -> Result<Facts, Error> {
    thread_comm::run(p, |comm| solve(comm, system, precond, cancel)).swap_remove(0).map_err(failed)
}

/// An error that all ranks share.
fn failed(error: RankError) -> Error {
    match error {
        RankError::OnRank { kind: FaultKind::Stopped, .. } => Error::Stopped,
        other => Error::Failed(other.to_string()),
    }
}

/// Applications of a preconditioner, timed.
struct Metered<'a> {
    inner: Box<dyn DistributedPreconditioner<f64> + 'a>,
    spent: Duration,
}

impl DistributedPreconditioner<f64> for Metered<'_> {
    fn rows(&self) -> usize {
        self.inner.rows()
    }
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn kind(&self) -> PreconditionerKind {
        self.inner.kind()
    }
    fn apply(&mut self, r: &[f64], z: &mut [f64]) -> RankResult<()> {
        let start = Instant::now();
        let applied = self.inner.apply(r, z);
        self.spent += start.elapsed();
        applied
    }
    fn nnz(&self) -> usize {
        self.inner.nnz()
    }
    fn bytes(&self) -> usize {
        self.inner.bytes()
    }
}

/// The preconditioner of a name. A collective.
fn made<'a, 'c: 'a, C: Comm>(
    a: &'a DistributedCsr<'c, f64, C>,
    precond: &str,
) -> RankResult<Box<dyn DistributedPreconditioner<f64> + 'a>> {
    let (global, local) = precond.split_once('/').unwrap_or((precond, "ilu0"));
    let local = match local {
        "ilu0" => LocalSolver::Ilu0,
        "arms" => LocalSolver::Arms(ArmsOptions::default()),
        _ => LocalSolver::Arms(butterflies()),
    };
    Ok(match global {
        "schur" => Box::new(Schur::new(a, |part| local.of(part))?),
        "ras" => Box::new(Schwarz::new(a, 1, Overlap::Restricted, |part| local.of(part))?),
        _ => Box::new(Schwarz::new(a, 0, Overlap::Added, |part| local.of(part))?),
    })
}

/// Some rows of a system. A collective.
fn rows<C: Comm>(comm: &C, mesh: Mesh, numbers: &[u32]) -> RankResult<Csr<f64>> {
    let made = mesh.rows(numbers.iter().map(|&i| i as usize));
    agree(comm, made.map_err(|e| Fault::input(e.to_string())))
}

/// FGMRES(30) on the ranks: the outcome, the slowest rank's seconds by step, what the busiest rank sent. A collective.
fn solve<C: Comm>(comm: &C, system: System, precond: &str, cancel: &CancelToken) -> RankResult<Facts> {
    let mesh = system.mesh();
    let n = agree(comm, mesh.n().map_err(|e| Fault::input(e.to_string())))?;
    let (p, rank) = (comm.size(), comm.rank());
    let comm = &Timed::new(comm);
    let part = rows(comm, mesh, &Division::contiguous(n, p).rows(rank))?;
    let start = Instant::now();
    let d = DistributedCsr::from_csr(comm, Division::contiguous(n, p).rows(rank), &part)?;
    drop(part);
    let d = d.by_site_expansion()?;
    let distribute = start.elapsed().as_secs_f64();
    // Each row by the product of one process, so that b has the same bits on any number of ranks: no rank has A, and x* only here.
    let b = rhs(&rows(comm, mesh, d.rows().own())?);
    let start = Instant::now();
    let mut m = Metered { inner: made(&d, precond)?, spent: Duration::ZERO };
    let factor = start.elapsed().as_secs_f64();
    let mut x = vec![0.0; d.rows().own().len()];
    let (meter, start) = (comm.meter(), Instant::now());
    let mut fgmres = Krylov::new(&d, Method::Fgmres { restart: 30 });
    let report = fgmres.solve(&d, &mut m, &b, &mut x, &rule(), &mut cancel.clone())?;
    let (solve, apply) = (start.elapsed().as_secs_f64(), m.spent.as_secs_f64());
    let costs = meter.stop(comm).over_ranks(comm)?;
    let mut steps = [distribute, factor, apply, solve - apply];
    comm.all_max(&mut steps)?;
    let mut inside = [d.local().nnz() as f64];
    comm.all_sum(&mut inside)?;
    let cut = d.nnz() as f64 - inside[0];
    let interrupted = || Fault::new(FaultKind::Stopped, "interrupted");
    agree(comm, if report.outcome == Outcome::Stopped { Err(interrupted()) } else { Ok(()) })?;
    let steps: Facts = STEPS.iter().zip(steps).map(|(step, seconds)| ((*step).to_owned(), json!(seconds))).collect();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(Facts::from_iter([
        ("n".to_owned(), json!(n)),
        ("nnz".to_owned(), json!(d.nnz())),
        ("ranks".to_owned(), json!(p)),
        ("cores".to_owned(), json!(cores)),
        ("cut".to_owned(), json!(cut)),
        ("solve".to_owned(), outcome(&report, costs.seconds.most)),
        ("steps".to_owned(), steps.into()),
        ("communication".to_owned(), json!(costs.communication.most)),
        ("messages".to_owned(), json!(costs.messages.most)),
        ("bytes".to_owned(), json!(costs.bytes.most)),
        ("collectives".to_owned(), json!(costs.collectives.most)),
    ]))
}

/// A count of the solve by iteration, for the busiest rank.
fn by_iteration(results: &Results, id: &str, pointer: &str) -> Option<f64> {
    Some(results.number(id, pointer)? / results.number(id, "/solve/iterations")?.max(1.0))
}

fn total(results: &Results, id: &str) -> Option<f64> {
    STEPS.iter().map(|step| results.number(id, &format!("/steps/{step}"))).sum()
}

/// What the results say.
pub fn section(scale: Scale, results: &Results) -> Section {
    let all = || systems(scale).into_iter().flat_map(|s| PRECONDITIONERS.map(|m| (s, m)));
    let runs = || all().flat_map(|(s, m)| ranks(scale).into_iter().map(move |p| (s, m, p)));
    let mut counts = Table::new(
        "Counts by ranks: messages, bytes and collectives of the busiest rank in one iteration, cut entries of A between domains.",
        ["system", "preconditioner", "ranks", "iterations", "messages", "bytes", "collectives", "cut"],
    );
    let mut steps = Table::new(
        "Time by step of Algorithm 1, of the slowest rank in each: more ranks than cores take turns.",
        [
            "system",
            "preconditioner",
            "ranks / cores",
            "2, 3 distribute",
            "4, 5 factor",
            "6, 7 apply M⁻¹",
            "8, 9 outer",
            "communication in 6 to 9",
        ],
    );
    for (system, precond, p) in runs() {
        let id = rank_id(system, p, precond);
        if !results.contains(&id) {
            continue;
        }
        let at = |pointer: &str| results.number(&id, pointer);
        let each = |pointer: &str| count(by_iteration(results, &id, pointer));
        counts.row([
            system.name(),
            precond.into(),
            p.to_string(),
            iterations(results, &id, "/solve"),
            each("/messages"),
            each("/bytes"),
            each("/collectives"),
            count(at("/cut")),
        ]);
        let head = [system.name(), precond.into(), format!("{p} / {}", count(at("/cores")))];
        let times = STEPS.map(|step| seconds(at(&format!("/steps/{step}"))));
        steps.row(head.into_iter().chain(times).chain([seconds(at("/communication"))]));
    }
    let figures = systems(scale).into_iter().flat_map(|system| {
        let curves = |of: &dyn Fn(&str) -> Option<f64>| -> Vec<Curve> {
            let points = |m: &str| -> Vec<(f64, f64)> {
                ranks(scale).into_iter().filter_map(|p| Some((p as f64, of(&rank_id(system, p, m))?))).collect()
            };
            PRECONDITIONERS
                .iter()
                .map(|m| Curve { name: (*m).into(), stroke: Stroke::Solid, points: points(m) })
                .collect()
        };
        let figure = |what: &str, title: &str, y: &str, curves: Vec<Curve>| Figure {
            name: format!("parms-ranks-{what}-{}", system.name()),
            title: format!("{title}: {}", system.name()),
            x: Axis::new("ranks", Scaling::Linear),
            y: Axis::new(y, Scaling::Logarithmic),
            curves,
        };
        [
            figure("iterations", "Iterations by ranks", "iterations", curves(&|id| converged(results, id, "/solve"))),
            figure(
                "seconds",
                "Seconds of all steps, ranks beyond the cores in turns",
                "seconds",
                curves(&|id| converged(results, id, "/solve").and_then(|_| total(results, id))),
            ),
            figure(
                "bytes",
                "Bytes of the busiest rank",
                "bytes an iteration",
                curves(&|id| by_iteration(results, id, "/bytes")),
            ),
        ]
    });
    let items = [
        Item::Text(format!(
            "FGMRES(30) over ranks, {}: the same code, the same bits, the same messages. The paper's figures 4 to 7 over processes are of 1 to 12 \
             on a machine with accelerators; compared are counts, not seconds, which are shown beside them. On one rank nothing is sent, and \
             schur is its local solver.{}",
            what_ranks_are(scale, results),
            whose_seconds(scale, results)
        )),
        Item::Claims(vec![schur_grows_least(scale, results)]),
        Item::Table(counts),
        Item::Table(steps),
        Item::Table(weak(scale, results)),
        Item::Table(growing(scale, results)),
    ];
    Section {
        title: "Figures 4 to 7: over ranks".into(),
        items: items.into_iter().chain(figures.map(Item::Figure)).collect(),
    }
}

/// Which of the results are of processes: facts that have a `transport` name it.
fn what_ranks_are(scale: Scale, results: &Results) -> String {
    let all = rank_experiments(scale);
    let run = all.iter().filter(|e| results.contains(&e.id())).count();
    let of_mpi = all.iter().filter(|e| results.text(&e.id(), "/transport") == Some("mpi")).count();
    match of_mpi {
        0 => "which are threads of this process here and processes of MPI for blocktri-mpi".into(),
        all if all == run => "which are processes of MPI".into(),
        some => format!("which are processes of MPI in {some} of {run} runs and threads of one process in the others"),
    }
}

/// Which processors took the seconds of which ranks, where results name them.
fn whose_seconds(scale: Scale, results: &Results) -> String {
    let mut ranks_of: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    let all = rank_experiments(scale);
    let ids: Vec<_> = all.iter().map(|e| (e.ranks, e.id())).collect();
    for (p, id) in &ids {
        if let Some(model) = results.text(id, &format!("/{PROCESSOR}")) {
            ranks_of.entry(model).or_default().insert(*p);
        }
    }
    let words = |(model, ranks): (&&str, &BTreeSet<usize>)| {
        let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        format!("{model} (ranks: {})", ranks.join(", "))
    };
    match ranks_of.len() {
        0 => String::new(),
        1 => format!(" Seconds are of {}.", ranks_of.iter().map(words).collect::<String>()),
        _ => format!(
            " Seconds are of {}, and compared on one of them only.",
            ranks_of.iter().map(words).collect::<Vec<_>>().join(" and ")
        ),
    }
}

/// On as many ranks for all sizes: the time of a copy is what stays the same.
fn growing(scale: Scale, results: &Results) -> Table {
    let mut table = Table::new(
        format!(
            "Copies of edf on {FIXED_RANKS} ranks, whatever their number: all steps, and those of 16 384 unknowns, which are one copy."
        ),
        ["system", "n", "preconditioner", "iterations", "all steps", "of a copy"],
    );
    for ((p, system), precond) in growing_systems(scale).into_iter().flat_map(|run| PRECONDITIONERS.map(|m| (run, m))) {
        let id = rank_id(system, p, precond);
        let System::Edf(copies) = system else { continue };
        if results.contains(&id) {
            let time = total(results, &id);
            table.row([
                system.name(),
                count(results.number(&id, "/n")),
                precond.into(),
                iterations(results, &id, "/solve"),
                seconds(time),
                seconds(time.map(|time| time / copies as f64)),
            ]);
        }
    }
    table
}

fn weak(scale: Scale, results: &Results) -> Table {
    let mut table = Table::new(
        "Weak scaling over ranks: as many copies of edf for each, which do not interact, so that iterations do not grow; and boxes of as many \
         unknowns, which are coupled. Efficiency is the time of all steps on one rank over that on p, of one processor.",
        ["system", "ranks / cores", "preconditioner", "iterations", "bytes an iteration", "all steps", "efficiency"],
    );
    for runs in weak_systems(scale) {
        for ((p, system), precond) in runs.iter().flat_map(|run| PRECONDITIONERS.map(|precond| (run, precond))) {
            let id = rank_id(*system, *p, precond);
            if !results.contains(&id) {
                continue;
            }
            let first = runs.first().map(|(p, system)| rank_id(*system, *p, precond));
            let model = |id: &str| results.text(id, &format!("/{PROCESSOR}"));
            let alone = first.filter(|first| model(first) == model(&id)).and_then(|first| total(results, &first));
            let time = total(results, &id);
            table.row([
                system.name(),
                format!("{p} / {}", count(results.number(&id, "/cores"))),
                precond.into(),
                iterations(results, &id, "/solve"),
                count(by_iteration(results, &id, "/bytes")),
                seconds(time),
                ratio(alone.zip(time).map(|(alone, time)| alone / time)),
            ]);
        }
    }
    table
}

fn schur_grows_least(scale: Scale, results: &Results) -> Claim {
    let most = ranks(scale).into_iter().max().unwrap_or(1);
    let growth = |system: System, precond: &str| {
        let of = |p| converged(results, &rank_id(system, p, precond), "/solve");
        Some(of(most)? / of(1)?.max(1.0))
    };
    let coupled = systems(scale).into_iter().filter(|s| matches!(s, System::Box(_)));
    let found: Vec<_> =
        coupled.filter_map(|s| Some((s, growth(s, "schur/arms")?, growth(s, "block-jacobi/arms")?))).collect();
    let words = |(s, schur, jacobi): &(System, f64, f64)| format!("{}: {schur:.2}, block Jacobi {jacobi:.2}", s.name());
    Claim {
        what: format!("With the Schur complement {most} ranks take at most {GROWTH} times the iterations of one, and block Jacobi no fewer than it"),
        origin: Origin::Ours,
        paper: "–".into(),
        ours: if found.is_empty() { "–".into() } else { found.iter().map(words).collect::<Vec<_>>().join("; ") },
        verdict: if found.is_empty() {
            Verdict::NotRun
        } else {
            Verdict::of(found.iter().all(|(_, schur, jacobi)| *schur <= GROWTH && schur <= jacobi))
        },
        why: "Rule: on the boxes, whose domains are coupled, with ARMS on each rank. Copies of edf are not: they prove nothing.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_have_names_of_their_own_and_their_results_are_told() {
        for scale in [Scale::Quick, Scale::Full] {
            let mut ids: Vec<String> = experiments(scale).iter().map(|e| e.id().to_owned()).collect();
            let all = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), all);
        }
        let small = System::Box([6, 5, 4]);
        let mut results = Results::default();
        for p in ranks(Scale::Quick) {
            for precond in PRECONDITIONERS {
                let facts = on_threads(small, p, precond, &CancelToken::new()).unwrap();
                assert_eq!(facts["solve"]["outcome"], "converged", "{precond} on {p}");
                assert_eq!(facts["messages"].as_f64().unwrap() > 0.0, p > 1, "{precond} on {p}");
                assert!(facts["solve"]["relative_residual"].as_f64().unwrap() <= 1.1e-8);
                results.insert(&rank_id(System::Box([32, 32, 64]), p, precond), facts);
            }
        }
        let section = section(Scale::Quick, &results);
        let rows: usize = section.items.iter().map(|i| if let Item::Table(t) = i { t.rows.len() } else { 0 }).sum();
        // Counts and steps of each run; the box on four ranks is the last of the weak scaling.
        assert_eq!(rows, (2 * 3 + 1) * PRECONDITIONERS.len());
        let words = |results: &Results| what_ranks_are(Scale::Quick, results);
        assert!(words(&results).contains("threads of this process"));
        let id = rank_id(System::Box([32, 32, 64]), 4, PRECONDITIONERS[0]);
        let mut facts = results.at(&id, "").and_then(|facts| facts.as_object().cloned()).unwrap();
        facts.insert("transport".into(), "mpi".into());
        results.insert(&id, facts);
        assert!(words(&results).contains("in 1 of 21 runs"), "{}", words(&results));
        assert_eq!(whose_seconds(Scale::Quick, &results), "");
        let claim = schur_grows_least(Scale::Quick, &results);
        assert_eq!(claim.verdict, Verdict::Reproduced, "{}", claim.ours);
        assert_eq!(schur_grows_least(Scale::Quick, &Results::default()).verdict, Verdict::NotRun);
    }

    /// Rows that each rank makes are those of the whole matrix, and so is the right-hand side, to the bit.
    #[test]
    fn rows_made_by_ranks_are_those_of_the_whole() {
        for system in [System::Box([9, 8, 7]), System::Edf(2), System::Epb3(1)] {
            let whole = system.matrix().unwrap();
            let b = rhs(&whole);
            for p in [1, 3] {
                let of_ranks = thread_comm::run(p, |comm| {
                    let numbers = Division::contiguous(b.len(), p).rows(comm.rank());
                    let d = DistributedCsr::from_csr(comm, numbers.clone(), &rows(comm, system.mesh(), &numbers)?)?;
                    let same = DistributedCsr::from_replicated(comm, &whole, &Division::contiguous(b.len(), p))?;
                    assert!(d.local() == same.local() && d.halo().rows() == same.halo().rows());
                    let (d, same) = (d.by_site_expansion()?, same.by_site_expansion()?);
                    assert!(d.local() == same.local() && d.rows().own() == same.rows().own());
                    assert_eq!(d.nnz(), whole.nnz() as u64);
                    assert!(rhs(&rows(comm, system.mesh(), d.rows().own())?) == d.own_entries(&b), "{}", system.name());
                    Ok(())
                });
                assert!(of_ranks.iter().all(Result::is_ok), "{of_ranks:?}");
            }
        }
    }

    #[test]
    fn seconds_of_one_processor_are_compared() {
        let steps: Facts = STEPS.iter().map(|step| ((*step).to_owned(), json!(1.0))).collect();
        let told = |models: [&str; 2]| {
            let mut results = Results::default();
            for (&(p, system), model) in weak_systems(Scale::Quick)[1].iter().zip(models) {
                let facts = [("steps".to_owned(), steps.clone().into()), (PROCESSOR.to_owned(), json!(model))];
                results.insert(&rank_id(system, p, PRECONDITIONERS[0]), Facts::from_iter(facts));
            }
            let efficiency = weak(Scale::Quick, &results).rows.last().and_then(|row| row.last().cloned());
            (efficiency, whose_seconds(Scale::Quick, &results))
        };
        assert_eq!(told(["A", "A"]), (Some(ratio(Some(1.0))), " Seconds are of A (ranks: 1, 2).".into()));
        let both = " Seconds are of A (ranks: 1) and B (ranks: 2), and compared on one of them only.";
        assert_eq!(told(["A", "B"]), (Some(ratio(None)), both.into()));
    }

    #[test]
    fn a_cancelled_solve_is_no_result() {
        let cancel = CancelToken::new();
        cancel.cancel();
        assert_eq!(on_threads(System::Box([6, 5, 4]), 2, "schur/arms", &cancel).unwrap_err(), Error::Stopped);
    }
}
