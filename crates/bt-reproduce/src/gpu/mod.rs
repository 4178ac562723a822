//! The GPU that methods run on beside the processor, what is asked of it, and how its results are shown.
//!
//! A solve there has three times. `setup_seconds`: A is copied and the preconditioner made; the kernels are compiled before.
//! `copies_seconds`: a call without iterations, which copies b and x and recomputes the residual on the host. `seconds`: a whole call
//! less that, the iterations alone: the medians of five runs of both in turn, which `runs` has. GMRES copies nothing in such a call, so that its
//! seconds are with the copies. What the device refuses is `error`.

#[cfg(feature = "cuda")]
mod with_cuda;

use std::fmt;
use std::rc::Rc;

use bt_direct::RbtOptions;
use bt_formats::{Band, BlockTridiagonal, CancelToken, Csr, Scaled, StopCriterion};
use bt_iter::{Arms, ArmsOptions, StopRule, Sweep};
use serde_json::Value;

use crate::document::{Claim, Origin, Table, Verdict};
use crate::experiment::{Error, Results};
use crate::measure::{Krylov, converged, iterations, ratio, seconds};

/// An NVIDIA GPU, open. Clones are the same one.
///
/// ```
/// use bt_reproduce::{Gpu, Scale, Study, experiments};
/// match Gpu::open(0) {
///     Ok(gpu) => {
///         let cases = experiments(Study::Hbisa, Scale::Quick, Some(&gpu));
///         assert!(cases.iter().any(|e| e.id() == "hbisa/Cloud16-100/gpu"));
///     }
///     Err(why) => println!("{why}"),
/// }
/// ```
#[derive(Clone)]
pub struct Gpu(Rc<dyn Solvers>);

impl Gpu {
    /// Opens the GPU of this number, from 0.
    ///
    /// # Errors
    /// [`Error::Failed`] with the reason when there is none, or no driver that starts, and in builds without the feature `cuda`.
    #[cfg(feature = "cuda")]
    pub fn open(ordinal: u32) -> Result<Self, Error> {
        let device = bt_kernels::Device::open(ordinal).map_err(|e| Error::Failed(e.to_string()))?;
        Ok(Self(Rc::new(device)))
    }

    /// Opens the GPU of this number, from 0.
    ///
    /// # Errors
    /// [`Error::Failed`]: this build is without the feature `cuda`.
    #[cfg(not(feature = "cuda"))]
    pub fn open(ordinal: u32) -> Result<Self, Error> {
        Err(Error::Failed(format!("no GPU {ordinal}: this build of the library is without the feature cuda")))
    }

    /// Number, name and multiprocessors, as reports tell them.
    pub fn name(&self) -> String {
        self.0.name()
    }

    pub(crate) fn solvers(&self) -> &dyn Solvers {
        &*self.0
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// Which blocks the processor sweeps while the GPU sweeps the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    None,
    /// By the time that one sweep over all blocks takes on each.
    Measured,
}

/// Preconditioners of Krylov methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inverse {
    Identity,
    Jacobi,
    Ic0,
    /// SSOR's approximate inverse: triangles stored, read from A, of order 2, multiplied out on the pattern of A; with ω = 1 but for a
    /// diagonal scaling IP.
    Stored,
    Free,
    Second,
    Masked,
    Ip,
    /// Of order 2 by blocks of so many rows, with products by them.
    Nodes(usize),
    Ilu0,
    /// With the pattern that sweeps on the device find.
    Ilut,
}

/// Solves from zero on a GPU. [`Error::Stopped`] once `cancel` is raised; [`Error::Failed`] when the device is lost. What the device
/// refuses (memory, sizes, pivots) is a value: `error` with the reason.
pub(crate) trait Solvers {
    fn name(&self) -> String;

    /// HBISA by Jacobi or red–black sweeps; `host_blocks` are those of the processor.
    fn hbisa(
        &self,
        a: &BlockTridiagonal<f64>,
        b: &[f64],
        sweep: Sweep,
        rule: StopRule,
        share: Share,
        stop: &StopCriterion,
        cancel: &CancelToken,
    ) -> Result<Value, Error>;

    /// A Krylov method.
    fn krylov(
        &self,
        method: Krylov,
        a: &Csr<f64>,
        inverse: Inverse,
        omega: f64,
        b: &[f64],
        stop: &StopCriterion,
        cancel: &CancelToken,
    ) -> Result<Value, Error>;

    /// Stationary distributions of a batch of chains, none for a chain that the device leaves to the processor; the reason where it
    /// refuses all.
    fn stationary(&self, chains: &[&BlockTridiagonal<f64>]) -> Result<Result<Distributions, String>, Error>;

    /// ARMS on the processor with butterflies for its last level on the device; the reason where that refuses.
    fn arms(
        &self,
        a: &Csr<f64>,
        options: ArmsOptions,
        butterflies: RbtOptions,
    ) -> Result<Result<Arms<f64>, String>, Error>;

    /// SPIKE on a band in so many partitions, refined: `setup_seconds`, `solve_seconds` with copies and checks, `backward_error`, `steps`,
    /// `solved_by`.
    fn spike(&self, a: &Band<f64>, partitions: usize, b: &[f64]) -> Result<Value, Error>;

    /// Whether the device is still there; one that was lost in a solve left NaN.
    fn check(&self) -> Result<(), Error>;
}

/// Of each chain of a batch.
pub(crate) type Distributions = Vec<Option<Vec<Scaled>>>;

/// A method on the processor and on a GPU: the experiment and the place in its facts, for each.
pub(crate) struct Pair {
    /// First cells of a row.
    pub names: [String; 2],
    pub processor: (String, String),
    pub gpu: (String, String),
}

impl Pair {
    pub fn number(results: &Results, (id, pointer): &(String, String), field: &str) -> Option<f64> {
        results.number(id, &format!("{pointer}/{field}"))
    }

    /// Iterations on both, where both converged.
    pub fn iterations(&self, results: &Results) -> Option<(f64, f64)> {
        let [(p, at), (g, there)] = [&self.processor, &self.gpu];
        Some((converged(results, p, at)?, converged(results, g, there)?))
    }

    /// Seconds on the processor ÷ seconds of the iterations on the GPU, where both converged.
    pub fn gain(&self, results: &Results) -> Option<f64> {
        self.iterations(results)?;
        let at = |place| Self::number(results, place, "seconds");
        Some(at(&self.processor)? / positive(at(&self.gpu)?)?)
    }

    /// Why the device refused it.
    pub fn refusal<'r>(&self, results: &'r Results) -> Option<&'r str> {
        results.text(&self.gpu.0, &format!("{}/error", self.gpu.1))
    }

    /// Whether the device has a result of it, a refusal too.
    pub fn was_run(&self, results: &Results) -> bool {
        results.at(&self.gpu.0, &self.gpu.1).is_some()
    }
}

/// A time, unless it drowned in what was subtracted.
fn positive(seconds: f64) -> Option<f64> {
    Some(seconds).filter(|s| *s > 0.0)
}

/// Rows of pairs that were run on the GPU.
pub(crate) fn table(caption: &str, first: &str, results: &Results, pairs: &[Pair]) -> Table {
    let mut table = Table::new(
        caption,
        [
            first,
            "method",
            "iterations",
            "on the GPU",
            "seconds",
            "on the GPU",
            "an iteration on the GPU",
            "copies and checks",
            "setup on the GPU",
            "processor ÷ GPU",
        ],
    );
    for pair in pairs.iter().filter(|p| p.was_run(results)) {
        let there = |field: &str| Pair::number(results, &pair.gpu, field);
        let found = pair
            .refusal(results)
            .map_or_else(|| iterations(results, &pair.gpu.0, &pair.gpu.1), |why| format!("refused: {why}"));
        let time = there("seconds").and_then(positive);
        let each = time.zip(there("iterations").filter(|i| *i > 0.0)).map(|(t, i)| t / i);
        let [name, method] = pair.names.clone();
        table.row([
            name,
            method,
            iterations(results, &pair.processor.0, &pair.processor.1),
            found,
            seconds(Pair::number(results, &pair.processor, "seconds")),
            seconds(time),
            seconds(each),
            seconds(there("copies_seconds")),
            seconds(there("setup_seconds")),
            ratio(pair.gain(results)),
        ]);
    }
    table
}

/// As many iterations on the GPU as on the processor, within `slack(count)`.
pub(crate) fn same_counts(what: &str, why: &str, results: &Results, pairs: &[Pair], slack: fn(f64) -> f64) -> Claim {
    let refused = pairs.iter().filter(|p| p.refusal(results).is_some()).count();
    // Without a result of the processor there is nothing to compare with.
    let on_both = |p: &&Pair| p.was_run(results) && results.at(&p.processor.0, &p.processor.1).is_some();
    let run: Vec<_> = pairs.iter().filter(|p| on_both(p) && p.refusal(results).is_none()).collect();
    let holds = |p: &&&Pair| p.iterations(results).is_some_and(|(cpu, gpu)| (cpu - gpu).abs() <= slack(cpu));
    let good = run.iter().filter(holds).count();
    let off: Vec<_> = run.iter().filter(|p| !holds(p)).map(|p| p.names.join(" ")).collect();
    let exceptions = if off.is_empty() { String::new() } else { format!("; not {}", off.join(", ")) };
    let apart = if refused > 0 { format!("; {refused} refused by the device") } else { String::new() };
    let ours = format!("{good} of {}{exceptions}{apart}", run.len());
    Claim {
        what: what.into(),
        origin: Origin::Ours,
        paper: "–".into(),
        ours: if run.is_empty() { "–".into() } else { ours },
        verdict: if run.is_empty() { Verdict::NotRun } else { Verdict::of(off.is_empty()) },
        why: why.into(),
    }
}

/// The sentence that tables of the GPU share.
pub(crate) fn preface(gpu: &str) -> String {
    format!(
        "Computed on {gpu}, the same systems and rules as on the processor. Seconds of the processor are of whole solves on all its \
         threads; those of the GPU are of the iterations: a call without iterations, which copies b and x and recomputes the residual \
         on the host, is taken off, and stands beside them as copies and checks. Copying A and making the preconditioner is setup; \
         compiling the kernels is not counted. Solves are repeated: medians of five runs on the GPU, the fastest of a few on the processor."
    )
}
