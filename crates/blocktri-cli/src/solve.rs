//! `blocktri solve`: read, solve, verify, write.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use blocktri::faer::{Mat, MatRef};
use blocktri::{
    AnyScalar, Blocks, CancelToken, Csr, DeviceChoice, HostBlocks, Method, OpenDevice, Outcome, Scalar, Solution,
    SolveOptions, SolveReport, StopCriterion, StopRule, Sweep, c64,
};
use bt_formats::{
    FileDense, FileMatrix, Matrix, Note, Op, Par, RealScalar, RhsInFile, ScalarKind, System, max_abs, memory, one, zero,
};

use crate::args::{BlocksArg, Global, SolveArgs, method};
use crate::exit::{self, Exit, Failure, Reply, Result};
use crate::load;
use crate::machine;
use crate::needs;
use crate::output::{self, Format, Output};
use crate::plot::{self, Picture};
use crate::progress::{Curve, Line, Watch};
use crate::report::{Facts, Seconds, plural};
use serde_json::json;

/// Runs the command.
///
/// # Errors
/// On unusable input and options, a singular matrix, a method that cannot factor it, an unwritable output.
pub fn run(args: &SolveArgs, global: &Global, cancel: &CancelToken) -> Result<Reply> {
    check_options(args, global)?;
    // Open until the end: a GPU that is not there should not cost the reading of a large file.
    let ordinals = match args.device {
        DeviceChoice::Cpu | DeviceChoice::Auto => Vec::new(),
        DeviceChoice::Gpu(ordinal) => vec![ordinal],
        DeviceChoice::Gpus(gpus) => gpus.ordinals().collect(),
    };
    let open = |ordinal| OpenDevice::open(ordinal).map_err(|e| Failure::no_device(&e));
    let _devices = ordinals.into_iter().map(open).collect::<Result<Vec<_>>>()?;
    // Before the work: a folder that cannot be written to should not cost an hour of computing.
    let targets = Targets::create(args)?;
    let job = Job { args, global, cancel };
    let started = Instant::now();
    let line = Line::spinner(!global.quiet, format!("reading {}", args.matrix.display()));
    let mut watch = Watch::new(cancel.clone(), line, 1.0);
    let wanted = if args.rhs.is_some() { RhsInFile::Skip } else { RhsInFile::Read };
    let mut told = machine::load();
    let System { matrix: a, rhs, mut notes } = load::system(&args.matrix, wanted, &mut watch, cancel)?;
    notes.append(&mut told);
    let n = job.check_shape(&a)?;
    let b = if let Some(file) = args.rhs.as_deref() {
        let mut columns = load::rhs(file, n, &mut watch, cancel)?;
        notes.append(&mut columns.notes);
        Some(columns.values)
    } else {
        notes.extend(rhs.as_ref().map(|b| {
            let which = plural(b.ncols(), "right-hand side");
            format!("b is the {which} in the file of the matrix; --rhs would take another")
        }));
        rhs
    };
    let blocks = job.blocks(n)?;
    drop(watch);
    let given = Given { blocks, notes, read: started.elapsed().as_secs_f64() };
    match (a, b) {
        (FileMatrix::Real(a), None) => job.solve(&a, None, given, targets),
        (FileMatrix::Real(a), Some(FileDense::Real(b))) => job.solve(&a, Some(b), given, targets),
        (FileMatrix::Real(a), Some(FileDense::Complex(b))) => job.solve(&a.cast::<c64>(), Some(b), given, targets),
        (FileMatrix::Complex(a), None) => job.solve(&a, None, given, targets),
        (FileMatrix::Complex(a), Some(FileDense::Complex(b))) => job.solve(&a, Some(b), given, targets),
        (FileMatrix::Complex(a), Some(FileDense::Real(b))) => job.solve(&a, Some(load::cast(&b)), given, targets),
    }
}

/// What belongs to a system beside its numbers.
struct Given {
    blocks: Blocks,
    /// What the readers had to say.
    notes: Vec<String>,
    /// Seconds of reading.
    read: f64,
}

fn check_options(args: &SolveArgs, global: &Global) -> Result<()> {
    let wants_history =
        [("--history", &args.history), ("--plot", &args.plot)].into_iter().find(|(_, file)| file.is_some());
    if let Some((option, _)) = wants_history.filter(|_| !args.method.is_iterative()) {
        let all = Method::all();
        let iterative: Vec<_> = all.iter().filter(|m| m.is_iterative()).map(Method::name).collect();
        return Err(Failure::usage(format!(
            "{option} records the residual of every iteration, but --method {} is direct and has none",
            args.method
        ))
        .help(format!("iterative methods: {}", iterative.join(", "))));
    }
    check_host_blocks(args)?;
    let blocks = match &args.blocks {
        Some(BlocksArg::File(file)) => Some(file.as_path()),
        _ => None,
    };
    let inputs = [("the matrix", Some(args.matrix.as_path())), ("--rhs", args.rhs.as_deref()), ("--blocks", blocks)];
    let outputs = [
        ("--output", args.output.as_deref()),
        ("--history", args.history.as_deref()),
        ("--plot", args.plot.as_deref()),
    ];
    output::check_names(global, &inputs, &outputs)?;
    args.output.as_deref().map(|name| Format::of(name, &load::SOLUTIONS)).transpose()?;
    args.history.as_deref().map(|name| Format::of(name, &HISTORIES)).transpose()?;
    Ok(())
}

/// The processor has a part of two methods on a GPU only.
fn check_host_blocks(args: &SolveArgs) -> Result<()> {
    let shared = matches!(&args.method, Method::Blocks(b) if matches!(b.sweep, Sweep::Jacobi | Sweep::RedBlack));
    if args.host_blocks == HostBlocks::None
        || (shared && matches!(args.device, DeviceChoice::Gpu(_) | DeviceChoice::Gpus(_)))
    {
        return Ok(());
    }
    let wrong = if shared { format!("--device {}", args.device) } else { format!("--method {}", args.method) };
    Err(Failure::usage(format!("--host-blocks is for hbisa and hbisa-redblack with --device gpu, not for {wrong}")))
}

/// Formats of histories.
const HISTORIES: [Format; 2] = [Format::Csv, Format::Json];

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
        let (rule, stop) = stop_of(facts.method_requested);
        if let Some(mut output) = self.solution {
            let comment = format!(
                "solution of {} by blocktri {}, method {}, backward error {:.2e}",
                facts.file,
                env!("CARGO_PKG_VERSION"),
                facts.report.method,
                facts.report.certificate.backward_error
            );
            load::write_solution(&mut output, x, &[comment])?;
            written.push(output);
        }
        if let Some(mut output) = self.history {
            let write = match Format::of(output.name(), &HISTORIES)? {
                Format::Json => history_as_json,
                _ => history_as_table,
            };
            output.write(|w| write(w, rule, curves))?;
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
            let (label, tolerance) = match rule {
                StopRule::Residual => ("relative residual", Some(stop.rtol)),
                // rtol is relative to x, which is no line.
                StopRule::Update => ("update", Some(stop.atol).filter(|_| stop.rtol == 0.0)),
            };
            written.push(picture.draw(&plot::residual_history(&title, &subtitle, label, curves, tolerance))?);
        }
        written.into_iter().try_for_each(Output::finish)
    }
}

/// What an iterative method stops on; what it would, of others.
fn stop_of(method: &Method) -> (StopRule, StopCriterion) {
    let rule = if let Method::Blocks(blocks) = method { blocks.rule } else { StopRule::Residual };
    (rule, method.stop().copied().unwrap_or_default())
}

fn norm_of(rule: StopRule) -> &'static str {
    match rule {
        StopRule::Residual => "relative_residual",
        StopRule::Update => "update",
    }
}

fn history_as_table(w: &mut dyn Write, rule: StopRule, curves: &[Curve]) -> std::io::Result<()> {
    writeln!(w, "iteration,{},rhs", norm_of(rule))?;
    for (rhs, curve) in curves.iter().enumerate() {
        // Before the first iteration there is no update.
        for (iteration, residual) in curve.iter().filter(|&&(i, r)| i > 0 || r.is_finite()) {
            writeln!(w, "{iteration},{residual:e},{rhs}")?;
        }
    }
    Ok(())
}

/// `curves` has a list of \[iteration, norm\] for each right-hand side; a norm that is no number is null.
fn history_as_json(w: &mut dyn Write, rule: StopRule, curves: &[Curve]) -> std::io::Result<()> {
    writeln!(w, "{}", json!({ "schema": 1, "norm": norm_of(rule), "curves": curves }))
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

    fn check_shape(&self, a: &FileMatrix) -> Result<usize> {
        let checked = match a {
            FileMatrix::Real(a) => a.check_square(),
            FileMatrix::Complex(a) => a.check_square(),
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

    fn solve<T: AnyScalar>(
        &self,
        a: &Csr<T>,
        b: Option<Mat<T>>,
        Given { blocks, notes, read }: Given,
        targets: Targets,
    ) -> Result<Reply> {
        let n = a.row_ptr().len() - 1;
        let options = SolveOptions { blocks, ..self.args.solve_options() };
        let nrhs = b.as_ref().map_or(1, Mat::ncols);
        let (bytes, what) = needs::before(a, nrhs, &options);
        memory::ask(bytes, &what).map_err(|e| Failure::input(&e, self.file()))?;
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
            let mut watch = Watch::new(self.cancel.clone(), line, stop_of(&options.method).1.rtol);
            if repetition == self.args.repeat && (targets.history.is_some() || targets.plot.is_some()) {
                watch.record();
            }
            let started = Instant::now();
            let solution = T::solve(a.into(), b.as_ref(), &options, &mut watch);
            let elapsed = started.elapsed().as_secs_f64();
            if self.cancel.is_cancelled() {
                return Err(Failure::interrupted());
            }
            let solution = solution.map_err(|e| Failure::solve(&e, self.file(), &options.method))?;
            seconds.push(&solution.report.times, elapsed);
            curves = watch.into_curves();
            solved = Some(solution);
        }
        let Some(solution) = solved else { return Err(Failure::usage("--repeat must be at least 1")) };
        self.finish(a, &b, x_star.as_ref(), &solution, seconds, notes, &curves, targets)
    }

    fn finish<T: Scalar>(
        &self,
        a: &Csr<T>,
        b: &Mat<T>,
        x_star: Option<&Mat<T>>,
        solution: &Solution<T>,
        seconds: Seconds,
        mut notes: Vec<String>,
        curves: &[Curve],
        mut targets: Targets,
    ) -> Result<Reply> {
        let report = &solution.report;
        let mut warnings: Vec<_> = solution.warnings.iter().map(ToString::to_string).collect();
        notes.extend(report.notes.iter().map(ToString::to_string));
        let options = self.args.solve_options();
        let overflow = not_a_number(&solution.x, &options.method);
        let converged = report.outcome == Outcome::Converged && overflow.is_none();
        let exit = if converged { Exit::Done } else { Exit::NotConverged };
        if !converged {
            let sentence = overflow.clone().unwrap_or_else(|| why_not(report, &options.method));
            notes.push(sentence.clone());
            warnings.push(sentence);
        }
        for option in method::unread(self.args) {
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
            method_requested: &options.method,
            method: &solution.method,
            reorder: solution.reorder,
            precond: solution.precond,
            report,
            forward_error: x_star.map(|x_star| forward_error(&solution.x, x_star)),
            rcond: solution.rcond,
            device: solution.device,
            seconds,
            notes,
            output: self.args.output.as_deref().filter(|_| overflow.is_none()),
            candidates: if self.args.explain { &solution.candidates } else { &[] },
        };
        if overflow.is_some() {
            // No reader takes such numbers.
            targets.solution = None;
        }
        targets.write(solution.x.as_ref(), curves, &facts)?;
        Ok(Reply { exit, json: facts.to_json(), text: facts.to_text(), warnings })
    }
}

/// x*_i = 1 + ((7·i) mod 11)/11, i from 0.
fn known_solution<T: Scalar>(n: usize) -> Mat<T> {
    Mat::from_fn(n, 1, |i, _| T::rounded(1.0 + ((7 * i) % 11) as f64 / 11.0, 0.0))
}

/// ‖x − x*‖∞ / ‖x*‖∞
fn forward_error<T: Scalar>(x: &Mat<T>, x_star: &Mat<T>) -> f64 {
    let column = |m: &Mat<T>| (0..m.nrows()).map(|i| m[(i, 0)]).collect::<Vec<_>>();
    let (x, x_star) = (column(x), column(x_star));
    let difference: Vec<T> = x.iter().zip(&x_star).map(|(&x, &s)| x - s).collect();
    max_abs(&difference) / max_abs(&x_star)
}

/// What to say where x is not finite.
fn not_a_number<T: Scalar>(x: &Mat<T>, asked: &Method) -> Option<String> {
    let places = (0..x.ncols()).flat_map(|j| (0..x.nrows()).map(move |i| (i, j)));
    let (row, column) = places.into_iter().find(|&at| !Scalar::is_finite(x[at]))?;
    let value = x[(row, column)];
    let infinite = value.re().to_f64().is_infinite() || value.im().to_f64().is_infinite();
    let why = if infinite {
        let largest = match T::KIND {
            ScalarKind::F32 | ScalarKind::C32 => f64::from(f32::MAX),
            ScalarKind::F64 | ScalarKind::C64 => f64::MAX,
        };
        format!("the solution itself exceeds the largest number, {largest:.1e}; scale b down, or the unit of x up")
    } else {
        format!("the method broke down; to try: {}", exit::advice(asked))
    };
    Some(format!("not converged: row {row} (from 0) of x is {value}: {why}; x is not written"))
}

/// The error of the answer of a direct method that is above rounding level: row by row, where the norm does not see it.
fn larger_error(report: &SolveReport) -> String {
    let c = report.certificate;
    // 32u
    if c.backward_error <= 16.0 * f64::EPSILON {
        format!("componentwise backward error {:.2e}", c.componentwise_backward_error)
    } else {
        format!("backward error {:.2e}", c.backward_error)
    }
}

/// Why there is no convergence, and what to try.
fn why_not(report: &SolveReport, method: &Method) -> String {
    let residual = report.certificate.relative_residual;
    let (rule, stop) = stop_of(method);
    let asked = match rule {
        StopRule::Residual => format!("the relative residual is {residual:.2e}, not {:.0e}", stop.rtol),
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
        Outcome::Loose => (
            format!("the attainable accuracy is reached: {asked}"),
            "raise --rtol, or use --method auto for a direct solution",
        ),
        Outcome::FalseConvergence => (
            format!("the method believed it had converged, but recomputed from A, {asked}"),
            "raise --rtol, or use --method auto for a direct solution",
        ),
        Outcome::Breakdown(reason) => (
            format!("{} broke down after {} iterations: {reason}; {asked}", report.method, report.iterations),
            "use --method auto for a direct solution, or larger --blocks",
        ),
        Outcome::Inaccurate if report.notes.contains(&Note::ConditionBeyondFactors) => (
            format!(
                "{}, though the backward error is {:.2e}",
                Note::ConditionBeyondFactors,
                report.certificate.backward_error
            ),
            exit::advice(method),
        ),
        Outcome::Inaccurate => (format!("the {} is above rounding level", larger_error(report)), exit::advice(method)),
        other => (format!("the solve ended as {}", other.name()), exit::advice(method)),
    };
    format!("not converged: {why}; to try: {then}")
}

#[cfg(test)]
mod tests {
    use blocktri::Direct;
    use bt_formats::{Bytes, PhaseTimes};

    use super::*;

    #[test]
    fn the_known_solution_is_the_documented_one() {
        let x = known_solution::<f64>(12);
        assert_eq!([x[(0, 0)], x[(1, 0)], x[(2, 0)], x[(11, 0)]], [1.0, 1.0 + 7.0 / 11.0, 1.0 + 3.0 / 11.0, 1.0]);
        let y = known_solution::<c64>(2);
        assert_eq!(y[(1, 0)], c64::new(1.0 + 7.0 / 11.0, 0.0));
    }

    #[test]
    fn auto_is_not_told_to_use_auto() {
        let certificate = |normwise, rowwise| blocktri::Certificate {
            relative_residual: 0.0,
            backward_error: normwise,
            componentwise_backward_error: rowwise,
        };
        let report = |certificate| SolveReport {
            method: "band-lu",
            outcome: Outcome::Inaccurate,
            iterations: 0,
            recurrence_residual: None,
            certificate,
            operator_applications: 0,
            preconditioner_applications: 0,
            times: PhaseTimes::default(),
            bytes: Bytes::default(),
            notes: Vec::new(),
        };
        let text = why_not(&report(certificate(1e-17, 0.5)), &Method::default());
        assert!(text.contains("componentwise backward error 5.00e-1") && !text.contains("--method"), "{text}");
        let text = why_not(&report(certificate(1e-9, 0.5)), &Direct::BandLu.into());
        assert!(text.contains("the backward error 1.00e-9") && text.contains("--method auto"), "{text}");
    }

    #[test]
    fn an_x_that_overflows_is_explained() {
        assert_eq!(not_a_number(&Mat::from_fn(2, 1, |i, _| [1.0, f64::MAX][i]), &Method::default()), None);
        let text = not_a_number(&Mat::from_fn(2, 1, |i, _| [1.0, f64::NEG_INFINITY][i]), &Method::default()).unwrap();
        assert!(text.contains("row 1 (from 0) of x is -inf: the solution itself exceeds the largest number, 1.8e308"));
        let text = not_a_number(&Mat::from_fn(1, 2, |_, j| [1.0, f64::NAN][j]), &Direct::Thomas.into()).unwrap();
        assert!(text.contains("row 0 (from 0) of x is NaN: the method broke down"), "{text}");
    }

    #[test]
    fn forward_error_is_relative_and_sees_nan() {
        let x_star = Mat::from_fn(2, 1, |i, _| [1.0, 4.0][i]);
        let x = Mat::from_fn(2, 1, |i, _| [1.5, 4.0][i]);
        assert_eq!(forward_error(&x, &x_star), 0.125);
        assert!(forward_error(&Mat::from_fn(2, 1, |_, _| f64::NAN), &x_star).is_nan());
    }
}
