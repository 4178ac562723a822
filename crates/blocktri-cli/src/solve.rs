//! `blocktri solve`: read, solve, verify, write.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use blocktri::faer::{Mat, MatRef};
use blocktri::formats::{AnyMatrix, Matrix, Op, Par, max_abs, one, zero};
use blocktri::kernels as gpu;
use blocktri::{
    Blocks, CancelToken, Csr, DeviceChoice, Outcome, Scalar, Solution, SolveOptions, SolveReport, StopRule, c64,
};

use crate::args::{BlocksArg, Global, SolveArgs};
use crate::exit::{Exit, Failure, Reply, Result};
use crate::load::{self, AnyDense};
use crate::output::Output;
use crate::plot::{self, Picture};
use crate::progress::{Curve, Line, Watch};
use crate::report::{Facts, Seconds};

/// Runs the command.
///
/// # Errors
/// On unusable input and options, a singular matrix, a method that cannot factor it, an unwritable output.
pub fn run(args: &SolveArgs, global: &Global, cancel: &CancelToken) -> Result<Reply> {
    check_options(args)?;
    // Open until the end: a GPU that is not there should not cost the reading of a large file.
    let _device = match args.device {
        DeviceChoice::Cpu | DeviceChoice::Auto => None,
        DeviceChoice::Gpu(ordinal) => Some(gpu::Device::open(ordinal).map_err(|e| Failure::no_device(&e))?),
    };
    // Before the work: a folder that cannot be written to should not cost an hour of computing.
    let targets = Targets::create(args)?;
    let job = Job { args, global, cancel };
    let started = Instant::now();
    let reading = Line::spinner(!global.quiet, format!("reading {}", args.matrix.display()));
    let a = load::matrix(&args.matrix, cancel)?;
    let n = job.check_shape(&a)?;
    let b = args.rhs.as_deref().map(|file| load::rhs(file, n)).transpose()?;
    let blocks = job.blocks(n)?;
    drop(reading);
    let read = started.elapsed().as_secs_f64();
    match (a, b) {
        (AnyMatrix::Real(a), None) => job.solve(&a, None, blocks, read, targets),
        (AnyMatrix::Real(a), Some(AnyDense::Real(b))) => job.solve(&a, Some(b), blocks, read, targets),
        (AnyMatrix::Real(a), Some(AnyDense::Complex(b))) => job.solve(&a.cast::<c64>(), Some(b), blocks, read, targets),
        (AnyMatrix::Complex(a), None) => job.solve(&a, None, blocks, read, targets),
        (AnyMatrix::Complex(a), Some(AnyDense::Complex(b))) => job.solve(&a, Some(b), blocks, read, targets),
        (AnyMatrix::Complex(a), Some(AnyDense::Real(b))) => job.solve(&a, Some(load::cast(&b)), blocks, read, targets),
    }
}

fn check_options(args: &SolveArgs) -> Result<()> {
    let wants_history =
        [("--history", &args.history), ("--plot", &args.plot)].into_iter().find(|(_, file)| file.is_some());
    if let Some((option, _)) = wants_history.filter(|_| !args.method.is_iterative()) {
        let iterative: Vec<_> =
            blocktri::Method::ALL.into_iter().filter(|m| m.is_iterative()).map(blocktri::Method::name).collect();
        return Err(Failure::usage(format!(
            "{option} records the residual of every iteration, but --method {} is direct and has none",
            args.method
        ))
        .help(format!("iterative methods: {}", iterative.join(", "))));
    }
    different_files(args)
}

/// Two outputs under one name would leave only the last.
fn different_files(args: &SolveArgs) -> Result<()> {
    let outputs = [("--output", &args.output), ("--history", &args.history), ("--plot", &args.plot)];
    let given: Vec<_> =
        outputs.iter().filter_map(|(option, file)| file.as_deref().map(|file| (option, file))).collect();
    for (k, (option, file)) in given.iter().enumerate() {
        // A device takes them one after the other.
        if let Some((first, _)) = given[..k].iter().find(|(_, other)| other == file && !is_device(file)) {
            return Err(Failure::io(file, &format_args!("{first} and {option} name the same file")));
        }
    }
    Ok(())
}

fn is_device(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Files to write.
struct Targets {
    solution: Option<Output>,
    history: Option<Output>,
    plot: Option<Picture>,
}

impl Targets {
    fn create(args: &SolveArgs) -> Result<Self> {
        let solution = args.output.as_deref().map(Output::create).transpose()?;
        let history = args.history.as_deref().map(Output::create).transpose()?;
        let plot = args.plot.as_deref().map(Picture::create).transpose()?;
        Ok(Self { solution, history, plot })
    }

    /// Writes all of them, and only then lets them appear.
    fn write<T: Scalar>(self, x: MatRef<'_, T>, curves: &[Curve], facts: &Facts<'_>) -> Result<()> {
        let mut written = Vec::new();
        if let Some(mut output) = self.solution {
            let comment = format!(
                "solution of {} by blocktri {}, method {}, backward error {:.2e}",
                facts.file,
                env!("CARGO_PKG_VERSION"),
                facts.report.method,
                facts.report.certificate.backward_error
            );
            load::write_dense(&mut output, x, &[comment])?;
            written.push(output);
        }
        if let Some(mut output) = self.history {
            output.write(|w| write_history(w, facts.options.stop_rule, curves))?;
            written.push(output);
        }
        if let Some(picture) = self.plot {
            let file = Path::new(facts.file);
            let file = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
            let title = format!("{} on {file}", facts.report.method);
            let report = facts.report;
            let subtitle = format!(
                "n = {}, {} after {} iterations, relative residual {:.2e}",
                facts.n,
                report.outcome.name(),
                report.iterations,
                report.certificate.relative_residual
            );
            let (label, tolerance) = match facts.options.stop_rule {
                StopRule::Residual => ("relative residual", Some(facts.options.stop.rtol)),
                // rtol is relative to x, which is no line.
                StopRule::Update => {
                    ("update", Some(facts.options.stop.atol).filter(|_| facts.options.stop.rtol == 0.0))
                }
            };
            written.push(picture.draw(&plot::residual_history(&title, &subtitle, label, curves, tolerance))?);
        }
        written.into_iter().try_for_each(Output::finish)
    }
}

fn write_history(w: &mut dyn Write, rule: StopRule, curves: &[Curve]) -> std::io::Result<()> {
    let norm = match rule {
        StopRule::Residual => "relative_residual",
        StopRule::Update => "update",
    };
    writeln!(w, "iteration,{norm},rhs")?;
    for (rhs, curve) in curves.iter().enumerate() {
        // Before the first iteration there is no update.
        for (iteration, residual) in curve.iter().filter(|&&(i, r)| i > 0 || r.is_finite()) {
            writeln!(w, "{iteration},{residual:e},{rhs}")?;
        }
    }
    Ok(())
}

struct Job<'a> {
    args: &'a SolveArgs,
    global: &'a Global,
    cancel: &'a CancelToken,
}

impl Job<'_> {
    fn file(&self) -> &Path {
        &self.args.matrix
    }

    fn check_shape(&self, a: &AnyMatrix) -> Result<usize> {
        let checked = match a {
            AnyMatrix::Real(a) => a.check_square(),
            AnyMatrix::Complex(a) => a.check_square(),
        };
        checked.map_err(|e| Failure::input(&e, self.file()))?;
        match a.nrows() {
            0 => Err(Failure::io(self.file(), &"the matrix is 0 × 0: there is nothing to solve")),
            n => Ok(n),
        }
    }

    fn blocks(&self, n: usize) -> Result<Blocks> {
        Ok(match &self.args.blocks {
            None => Blocks::Detect,
            Some(BlocksArg::Uniform(k)) if *k > n => {
                return Err(Failure::usage(format!("--blocks {k}: the matrix has only {n} rows")));
            }
            Some(BlocksArg::Uniform(k)) => Blocks::Uniform(*k),
            Some(BlocksArg::File(file)) => Blocks::Sizes(load::block_sizes(file, Some(n))?),
        })
    }

    fn solve<T: Scalar>(
        &self,
        a: &Csr<T>,
        b: Option<Mat<T>>,
        blocks: Blocks,
        read: f64,
        targets: Targets,
    ) -> Result<Reply> {
        let n = a.row_ptr().len() - 1;
        let options = SolveOptions { blocks, ..self.args.solve_options() };
        let (b, x_star) = if let Some(b) = b {
            (b, None)
        } else {
            let x = known_solution(n);
            let mut b = Mat::zeros(n, 1);
            // b ← A·x*
            a.apply_many(Op::Identity, one(), x.as_ref(), zero(), b.as_mut(), Par::auto(a.bytes()));
            (b, Some(x))
        };
        let mut seconds = Seconds::new(read);
        let mut curves = Vec::new();
        let mut solved = None;
        for repetition in 1..=self.args.repeat {
            // The memory of the last answer is for the next.
            drop(solved.take());
            let line = Line::spinner(!self.global.quiet, format!("solving {}", self.file().display()));
            let mut watch = Watch::new(self.cancel.clone(), line, options.stop.rtol);
            if repetition == self.args.repeat && (targets.history.is_some() || targets.plot.is_some()) {
                watch.record();
            }
            let started = Instant::now();
            let solution = blocktri::solve(a, b.as_ref(), &options, &mut watch);
            let elapsed = started.elapsed().as_secs_f64();
            if self.cancel.is_cancelled() {
                return Err(Failure::interrupted());
            }
            let solution = solution.map_err(|e| Failure::solve(&e, self.file()))?;
            seconds.push(&solution.report.times, elapsed);
            curves = watch.into_curves();
            solved = Some(solution);
        }
        let Some(solution) = solved else { return Err(Failure::usage("--repeat must be at least 1")) };
        self.finish(a, &b, x_star.as_ref(), &solution, seconds, &curves, targets)
    }

    fn finish<T: Scalar>(
        &self,
        a: &Csr<T>,
        b: &Mat<T>,
        x_star: Option<&Mat<T>>,
        solution: &Solution<T>,
        seconds: Seconds,
        curves: &[Curve],
        targets: Targets,
    ) -> Result<Reply> {
        let report = &solution.report;
        let mut warnings = solution.warnings.clone();
        let mut notes = report.notes.clone();
        let options = self.args.solve_options();
        let exit = if report.outcome == Outcome::Converged { Exit::Done } else { Exit::NotConverged };
        if exit == Exit::NotConverged {
            let sentence = why_not(report, &options);
            notes.push(sentence.clone());
            warnings.push(sentence);
        }
        for option in self.args.unread_options() {
            let sentence = format!("{option} is not read by --method {}", self.args.method);
            notes.push(sentence.clone());
            warnings.push(sentence);
        }
        let file = self.file().display().to_string();
        let facts = Facts {
            file: &file,
            scalar: T::KIND,
            n: b.nrows(),
            nnz: a.values().len(),
            nrhs: b.ncols(),
            blocks: solution.blocks,
            method_requested: self.args.method,
            reorder: solution.reorder,
            precond: solution.precond,
            report,
            forward_error: x_star.map(|x_star| forward_error(&solution.x, x_star)),
            rcond: solution.rcond,
            device: solution.device,
            options: &options,
            seconds,
            notes,
            output: self.args.output.as_deref(),
        };
        targets.write(solution.x.as_ref(), curves, &facts)?;
        Ok(Reply { exit, json: facts.to_json(), text: facts.to_text(), warnings })
    }
}

/// x*_i = 1 + ((7·i) mod 11)/11, i from 0.
fn known_solution<T: Scalar>(n: usize) -> Mat<T> {
    Mat::from_fn(n, 1, |i, _| T::from_parts(1.0 + ((7 * i) % 11) as f64 / 11.0, 0.0))
}

/// ‖x − x*‖∞ / ‖x*‖∞
fn forward_error<T: Scalar>(x: &Mat<T>, x_star: &Mat<T>) -> f64 {
    let column = |m: &Mat<T>| (0..m.nrows()).map(|i| m[(i, 0)]).collect::<Vec<_>>();
    let (x, x_star) = (column(x), column(x_star));
    let difference: Vec<T> = x.iter().zip(&x_star).map(|(&x, &s)| x - s).collect();
    max_abs(&difference) / max_abs(&x_star)
}

/// Why there is no convergence, and what to try.
fn why_not(report: &SolveReport, options: &SolveOptions) -> String {
    let residual = report.certificate.relative_residual;
    let asked = match options.stop_rule {
        StopRule::Residual => format!("the relative residual is {residual:.2e}, not {:.0e}", options.stop.rtol),
        StopRule::Update => {
            format!("the update did not fall to the tolerance, the relative residual is {residual:.2e}")
        }
    };
    let (why, then) = match report.outcome {
        Outcome::IterationLimit => (
            format!("{} iterations were not enough: {asked}", report.iterations),
            "raise --max-iters, or use --method auto for a direct solution",
        ),
        Outcome::TimeLimit => (format!("the time is up: {asked}"), "allow more time"),
        Outcome::FalseConvergence => (
            format!("the method believed it had converged, but recomputed from A, {asked}"),
            "raise --rtol, or use --method auto for a direct solution",
        ),
        Outcome::Breakdown(reason) => (
            format!("{} broke down after {} iterations: {reason}; {asked}", report.method, report.iterations),
            "use --method auto for a direct solution, or larger --blocks",
        ),
        Outcome::Inaccurate => (
            format!("the backward error {:.2e} is above rounding level", report.certificate.backward_error),
            "use --method auto or sparse-lu, which pivot across the whole matrix",
        ),
        other => (format!("the solve ended as {}", other.name()), "use --method auto"),
    };
    format!("not converged: {why}; to try: {then}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_solution_is_the_documented_one() {
        let x = known_solution::<f64>(12);
        assert_eq!([x[(0, 0)], x[(1, 0)], x[(2, 0)], x[(11, 0)]], [1.0, 1.0 + 7.0 / 11.0, 1.0 + 3.0 / 11.0, 1.0]);
        let y = known_solution::<c64>(2);
        assert_eq!(y[(1, 0)], c64::new(1.0 + 7.0 / 11.0, 0.0));
    }

    #[test]
    fn forward_error_is_relative_and_sees_nan() {
        let x_star = Mat::from_fn(2, 1, |i, _| [1.0, 4.0][i]);
        let x = Mat::from_fn(2, 1, |i, _| [1.5, 4.0][i]);
        assert_eq!(forward_error(&x, &x_star), 0.125);
        assert!(forward_error(&Mat::from_fn(2, 1, |_, _| f64::NAN), &x_star).is_nan());
    }
}
