//! Cases one after the other on every core, and the findings by kind, method and family.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bt_formats::Error;
use fastrand::Rng;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::exact::Truth;
use crate::family::{Family, system};
use crate::judge::{Case, Finding, has_twin, judge_threads, judge_twins};
use crate::run::{End, Reach, THREAD, run, tasks};
use crate::system::System;

/// A run that did not do what it must.
pub struct Sighting {
    /// Number of the case.
    pub case: u64,
    /// Method and options.
    pub label: String,
    /// What is wrong.
    pub finding: Finding,
}

/// Findings of one kind, method and family.
struct Group {
    count: u64,
    /// Case, unknowns and entries of the smallest.
    smallest: (usize, usize, u64),
    detail: String,
}

/// Methods of a kind of finding in the report.
const SHOWN: usize = 40;

/// What a campaign has seen.
#[derive(Default)]
pub struct Tally {
    systems: u64,
    singular: u64,
    runs: u64,
    groups: BTreeMap<(&'static str, String, Family), Group>,
}

/// The pools a case is run in.
pub struct Pools {
    one: ThreadPool,
    two: ThreadPool,
}

impl Pools {
    /// Of one and of two threads.
    ///
    /// # Errors
    /// When the system has no threads left.
    pub fn new() -> Result<Self, rayon::ThreadPoolBuildError> {
        let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).thread_name(|_| THREAD.to_owned()).build();
        Ok(Self { one: pool(1)?, two: pool(2)? })
    }
}

/// Runs everything on the system of a case.
pub fn run_case(
    seed: u64,
    case: u64,
    pools: &Pools,
    each: &mut dyn FnMut(&str, &End),
) -> (System, bool, u64, Vec<Sighting>) {
    let system = system(seed, case);
    let truth = Truth::of(&system);
    let judged = Case { system: &system, truth: &truth };
    let twins = has_twin(&system, &truth);
    let mut rng = Rng::with_seed(seed ^ case.rotate_left(32) ^ 0x5eed);
    let mut sightings = Vec::new();
    let mut runs = 0;
    // A system by `auto` takes a tenth of the time of one by every method, and `auto` has to solve all of them.
    let reach = if case.is_multiple_of(4) { Reach::All } else { Reach::Auto };
    for task in tasks(&system, reach, &mut rng) {
        let mut see = |finding| sightings.push(Sighting { case, label: task.label.clone(), finding });
        let end = run(&system, &task.options, &pools.one);
        each(&task.label, &end);
        runs += 1;
        judged.judge(&task, &end).into_iter().for_each(&mut see);
        if task.on_two_threads {
            let two = run(&system, &task.options, &pools.two);
            runs += 1;
            judge_threads(&task, &end, &two).into_iter().for_each(&mut see);
        }
        if let Some((alpha, beta)) = task.twin.filter(|_| twins) {
            let twin = run(&system.twin(alpha, beta), &task.options, &pools.one);
            runs += 1;
            judge_twins((alpha, beta), &end, &twin).into_iter().for_each(&mut see);
        }
    }
    let singular = truth.solution.is_none();
    (system, singular, runs, sightings)
}

impl Tally {
    fn add(&mut self, system: &System, singular: bool, runs: u64, sightings: Vec<Sighting>) -> Vec<Sighting> {
        self.systems += 1;
        self.singular += u64::from(singular);
        self.runs += runs;
        let mut fresh = Vec::new();
        for sighting in sightings {
            let size = (system.n, system.entries.len(), sighting.case);
            let Finding { kind, detail } = &sighting.finding;
            let new = !self.groups.keys().any(|(k, ..)| k == kind);
            let key = (*kind, sighting.label.clone(), system.family);
            let group =
                self.groups.entry(key).or_insert_with(|| Group { count: 0, smallest: size, detail: detail.clone() });
            group.count += 1;
            if size < group.smallest {
                (group.smallest, group.detail) = (size, detail.clone());
            }
            if new {
                fresh.push(sighting);
            }
        }
        fresh
    }

    /// Whether nothing was found but digits and steps of twins in other units, which are counted and shown: a tie that rounding
    /// decides is no fault of an answer.
    pub fn is_clean(&self) -> bool {
        self.groups.keys().all(|(kind, ..)| kind.starts_with("units"))
    }

    /// Counts by kind, then a line for each group with its smallest case.
    pub fn report(&self) -> String {
        let mut text = String::new();
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        for ((kind, ..), group) in &self.groups {
            *kinds.entry(kind).or_default() += group.count;
        }
        let _ = writeln!(text, "{} runs on {} systems, {} of them singular", self.runs, self.systems, self.singular);
        for (kind, count) in &kinds {
            let _ = writeln!(text, "{kind:<18} {count}");
        }
        if kinds.is_empty() {
            let _ = writeln!(text, "no finding");
        }
        for kind in kinds.keys() {
            let _ = writeln!(text, "\n{kind}");
            // Methods in turn, families with their counts behind them, the smallest case of all.
            let mut methods: BTreeMap<&str, Vec<(&Family, &Group)>> = BTreeMap::new();
            for ((_, label, family), group) in self.groups.iter().filter(|((k, ..), _)| k == kind) {
                methods.entry(label).or_default().push((family, group));
            }
            let mut methods: Vec<_> = methods.into_iter().collect();
            methods.sort_by_key(|(_, groups)| std::cmp::Reverse(groups.iter().map(|(_, g)| g.count).sum::<u64>()));
            let more = methods.len().saturating_sub(SHOWN);
            for (label, groups) in methods.into_iter().take(SHOWN) {
                let count: u64 = groups.iter().map(|(_, g)| g.count).sum();
                let Some((_, least)) = groups.iter().min_by_key(|(_, g)| g.smallest) else { continue };
                let families: Vec<String> = groups.iter().map(|(f, g)| format!("{} {}", f.name(), g.count)).collect();
                let _ = writeln!(
                    text,
                    "  {count:>5} {label} [{}]; --case {} (n = {}): {}",
                    families.join(", "),
                    least.smallest.2,
                    least.smallest.0,
                    least.detail
                );
            }
            if more > 0 {
                let _ = writeln!(text, "        and {more} more methods");
            }
        }
        text
    }
}

/// Cases from `first` on until the time or the number is used up; new kinds of findings are printed when they are met.
///
/// # Errors
/// When a system that is to be kept cannot be written.
pub fn campaign(seed: u64, first: u64, until: &Until, jobs: usize, keep: Option<&Path>) -> Result<Tally, Error> {
    let next = AtomicU64::new(first);
    let tally = Mutex::new(Tally::default());
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                let Ok(pools) = Pools::new() else { return };
                loop {
                    let case = next.fetch_add(1, Ordering::Relaxed);
                    if until.is_over(case - first) {
                        return;
                    }
                    let (system, singular, runs, sightings) = run_case(seed, case, &pools, &mut |_, _| {});
                    let found = !sightings.is_empty();
                    let fresh = match tally.lock() {
                        Ok(mut tally) => tally.add(&system, singular, runs, sightings),
                        Err(_) => return,
                    };
                    for Sighting { case, label, finding } in fresh {
                        println!("{}: {label}, --seed {seed} --case {case}: {}", finding.kind, finding.detail);
                    }
                    if let (Some(folder), true) = (keep, found)
                        && let Err(e) = system.write(folder, &format!("seed{seed}_case{case}"), &[])
                        && let Ok(mut failed) = failed.lock()
                    {
                        *failed = Some(e);
                    }
                }
            });
        }
    });
    match failed.into_inner() {
        Ok(Some(e)) => Err(e),
        _ => Ok(tally.into_inner().unwrap_or_default()),
    }
}

/// When a campaign ends.
pub enum Until {
    /// At this moment.
    Time(Instant),
    /// After so many cases.
    Cases(u64),
}

impl Until {
    fn is_over(&self, done: u64) -> bool {
        match self {
            Self::Time(end) => Instant::now() >= *end,
            Self::Cases(count) => done >= *count,
        }
    }
}
