//! The report of a solve, for scripts (JSON) and for people.

use std::fmt::Write as _;
use std::path::Path;

use blocktri::{BlockSummary, Candidate, DeviceChoice, Method, Precond, Reorder, SolveReport};
use bt_formats::{PhaseTimes, ScalarKind, memory};
use serde_json::{Map, Value, json};

use crate::explain;

/// Everything the report says.
pub struct Facts<'a> {
    pub file: &'a str,
    pub scalar: ScalarKind,
    pub n: usize,
    pub nnz: usize,
    pub nrhs: usize,
    pub blocks: Option<BlockSummary>,
    pub method_requested: &'a Method,
    /// That which solved.
    pub method: &'a Method,
    pub reorder: Reorder,
    pub precond: Precond,
    pub report: &'a SolveReport,
    pub forward_error: Option<f64>,
    pub rcond: Option<f64>,
    pub device: DeviceChoice,
    pub seconds: Seconds,
    pub notes: Vec<String>,
    pub output: Option<&'a Path>,
    /// What `auto` weighed, where it is to be told.
    pub candidates: &'a [Candidate],
}

/// Wall times in seconds: one reading, any number of solves.
#[derive(Clone, Debug)]
pub struct Seconds {
    read: f64,
    /// reorder, setup, solve, total of each repetition.
    solves: Vec<[f64; 4]>,
}

impl Seconds {
    const NAMES: [&str; 4] = ["reorder", "setup", "solve", "total"];

    /// After a reading.
    pub fn new(read: f64) -> Self {
        Self { read, solves: Vec::new() }
    }

    /// Adds a solve: its phases, and its whole.
    pub fn push(&mut self, times: &PhaseTimes, elapsed: f64) {
        let [reorder, setup, solve] = [times.reorder, times.setup, times.solve].map(|d| d.as_secs_f64());
        self.solves.push([reorder, setup, solve, self.read + elapsed]);
    }

    /// The least seconds of a whole solve, without reading.
    fn of_solve(&self) -> f64 {
        self.minimum_and_median(3).0 - self.read
    }

    /// The least seconds of the phases that are predicted, together: the condition number of a report is not.
    fn of_phases(&self) -> f64 {
        (0..3).map(|phase| self.minimum_and_median(phase).0).sum()
    }

    fn minimum_and_median(&self, phase: usize) -> (f64, f64) {
        let mut all: Vec<f64> = self.solves.iter().map(|times| times[phase]).collect();
        all.sort_by(f64::total_cmp);
        match all.len() {
            0 => (0.0, 0.0),
            len => (all[0], f64::midpoint(all[(len - 1) / 2], all[len / 2])),
        }
    }

    /// Numbers after one solve, {"min", "median"} after several.
    fn to_json(&self) -> Value {
        let value = |(min, median): (f64, f64)| match self.solves.len() {
            0 | 1 => json!(min),
            _ => json!({ "min": min, "median": median }),
        };
        let mut object = Map::new();
        object.insert("read".into(), value((self.read, self.read)));
        for (phase, name) in Self::NAMES.into_iter().enumerate() {
            object.insert(name.into(), value(self.minimum_and_median(phase)));
        }
        Value::Object(object)
    }

    fn to_text(&self) -> String {
        let mut text = format!("read {}", duration(self.read));
        for (phase, name) in Self::NAMES.into_iter().enumerate() {
            let (min, median) = self.minimum_and_median(phase);
            // What was found out about the matrix, methods compared and orders made, beside the solve that it was for.
            let share = (phase == 0).then(|| format!(" ({:.0} %)", 100.0 * min / self.of_solve().max(min)));
            let share = share.filter(|_| min > 0.0).unwrap_or_default();
            let name = if phase == 0 { "choice and order" } else { name };
            let _ = match self.solves.len() {
                0 | 1 => write!(text, ", {name} {}{share}", duration(min)),
                _ => write!(text, ", {name} {}{share} (median {})", duration(min), duration(median)),
            };
        }
        if self.solves.len() > 1 {
            let _ = write!(text, "; fastest of {}", self.solves.len());
        }
        text
    }
}

impl Facts<'_> {
    /// The JSON object of the contract.
    pub fn to_json(&self) -> Value {
        let system = json!({
            "schema": 1,
            "file": self.file,
            "scalar": self.scalar.to_string(),
            "n": self.n,
            "nnz": self.nnz,
            "nrhs": self.nrhs,
            "blocks": self.blocks.map(|b| json!({ "count": b.count, "min": b.min, "max": b.max })),
            "method_requested": self.method_requested.name(),
            "precond": self.precond.name(),
            "reorder": self.reorder.name(),
            "device": self.device.to_string(),
            "threads": rayon::current_num_threads(),
            "seed": self.method_requested.seed(),
        });
        // Seconds of several solves, and what was found in the files before the report.
        let run = json!({
            "forward_error": self.forward_error,
            "rcond": self.rcond,
            "seconds": self.seconds.to_json(),
            "notes": self.notes,
        });
        let mut object = self.report.to_json(system, run);
        if !self.candidates.is_empty() {
            object["candidates"] = explain::as_json(self.candidates);
        }
        object
    }

    /// A page for people.
    pub fn to_text(&self) -> String {
        let report = self.report;
        let certificate = report.certificate;
        let mut page = Page::new(format!(
            "{}: n = {}, nnz = {}, {}, {}",
            self.file,
            self.n,
            self.nnz,
            self.scalar,
            plural(self.nrhs, "right-hand side")
        ));
        let requested = match self.method_requested {
            Method::Auto(_) => " (chosen by auto)",
            asked if asked.name() != report.method => " (after the method asked for)",
            _ => "",
        };
        page.line("method", format_args!("{}{requested}", report.method));
        page.line("reordering", self.reorder);
        if let Some(b) = self.blocks {
            page.line("blocks", format_args!("{}, sizes {} to {}", b.count, b.min, b.max));
        }
        let steps = if self.is_iterative() {
            plural(report.iterations, "iteration")
        } else {
            plural(report.iterations, "refinement step")
        };
        page.line("outcome", format_args!("{}, {steps}", report.outcome.name()));
        page.line("relative residual", format_args!("{:.2e}   ‖b − Ax‖₂ / ‖b‖₂", certificate.relative_residual));
        page.line("backward error", format_args!("{:.2e}   ‖b − Ax‖∞ / (‖A‖∞‖x‖∞ + ‖b‖∞)", certificate.backward_error));
        page.line(
            "  componentwise",
            format_args!("{:.2e}   max |b − Ax| / (|A||x| + |b|)", certificate.componentwise_backward_error),
        );
        if let Some(error) = self.forward_error {
            page.line("forward error", format_args!("{error:.2e}   ‖x − x*‖∞ / ‖x*‖∞, b = A·x*"));
        }
        if let Some(rcond) = self.rcond {
            page.line("rcond", format_args!("{rcond:.2e}   1 / (‖A‖₁‖A⁻¹‖₁), estimated"));
        }
        page.line("time", self.seconds.to_text());
        page.line(
            "memory",
            format_args!(
                "matrix {}, factors {}, workspace {}",
                bytes(report.bytes.matrix),
                bytes(report.bytes.factors),
                bytes(report.bytes.workspace)
            ),
        );
        if let Some(output) = self.output {
            page.line("solution", output.display());
        }
        for note in &self.notes {
            page.line("note", note);
        }
        if !self.candidates.is_empty() {
            page.line("weighed by auto", "");
            page.text(&explain::table(self.candidates));
            let taken = self.seconds.of_phases();
            page.line(
                "",
                explain::predicted_and_actual(
                    self.candidates,
                    (report.method, self.device),
                    taken,
                    report.bytes.factors,
                )
                .unwrap_or_default(),
            );
        }
        page.finish()
    }

    fn is_iterative(&self) -> bool {
        self.method.is_iterative()
    }
}

/// Lines of a name and a value, aligned.
pub struct Page {
    text: String,
}

impl Page {
    /// A page with its heading.
    pub fn new(mut heading: String) -> Self {
        heading.push('\n');
        Self { text: heading }
    }
    /// Adds a line.
    pub fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.text, "  {name:<18} {value}");
    }
    /// Adds lines as they are.
    pub fn text(&mut self, lines: &str) {
        self.text.push_str(lines);
    }
    /// The whole.
    pub fn finish(self) -> String {
        self.text
    }
}

/// 1 thing, 2 things.
pub fn plural(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// Bytes with a unit: powers of 1024.
pub fn bytes(count: usize) -> String {
    memory::in_words(count as u64)
}

/// Seconds with a unit, three digits.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.1} µs", s * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn several_solves_give_minimum_and_median() {
        let mut seconds = Seconds::new(1.0);
        let times = |solve| PhaseTimes { solve: Duration::from_secs(solve), ..PhaseTimes::default() };
        seconds.push(&times(4), 4.0);
        assert_eq!(seconds.to_json()["solve"], json!(4.0));
        seconds.push(&times(1), 1.0);
        seconds.push(&times(2), 2.0);
        seconds.push(&times(9), 9.0);
        assert_eq!(seconds.to_json()["solve"], json!({ "min": 1.0, "median": 3.0 }));
        assert_eq!(seconds.to_json()["total"], json!({ "min": 2.0, "median": 4.0 }));
        assert_eq!(seconds.to_json()["read"], json!({ "min": 1.0, "median": 1.0 }));
    }

    #[test]
    fn units() {
        assert_eq!([bytes(1023), bytes(1536), bytes(5 << 30)], ["1023 B", "1.5 KiB", "5.0 GiB"]);
        assert_eq!([duration(0.0), duration(1.5), duration(0.002)], ["0.0 µs", "1.50 s", "2.000 ms"]);
        assert_eq!([plural(1, "step"), plural(0, "step")], ["1 step", "0 steps"]);
    }
}
