//! Reports on chains, files and the command: an index with the columns `file`, `command`, `must happen`, `right value`.
//!
//! What can be judged by a machine is: the exit code, words of the message, the distribution against `STEM_pi.mtx` or a value
//! of the index, the numbers of entries, and the plans of a table to [`PLAN`] relative.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::decimal::Decimal;
use super::index::records;
use super::judge::Run;
use super::{Bench, vector};
use crate::process::{Context, Result, blocktri};

/// Relative error allowed in a plan by elimination without subtraction.
const PLAN: f64 = 1e-12;
/// Relative error allowed in a probability, or a plan, where no bound is printed.
const PROBABILITY: f64 = 1e-4;

/// A row of the index.
struct Row {
    file: PathBuf,
    command: String,
    must: String,
    right: String,
}

/// Columns that such an index has.
pub(super) const COLUMNS: [&str; 3] = ["file", "command", "must happen"];

/// Words of messages that an index describes in other words: file, and lists of which one word each must be said; FILE is the
/// path as the message has it.
const WORDS: [(&str, &[&[&str]]); 17] = [
    ("classroom_two_closed.mtx", &[&["2 closed classes"], &["3"], &["5"]]),
    ("accumulation_absorbing.mtx", &[&["closed classes"], &["absorbing"]]),
    ("attribution_not_stochastic.mtx", &[&["row 0"], &["0.5", "5e-1"]]),
    ("two_absorbing_of_five.mtx", &[&["state 0"], &["state 1"]]),
    ("nan_row.mtx", &[&["FILE:4"]]),
    ("tar_named_gz.mtx.gz", &[&["tar archive"]]),
    ("tarball.tar.gz", &[&["tar archive"], &["unpack", "tar -x", "tar x"]]),
    ("trailing_garbage.mtx.gz", &[&["zero", "after the gzip", "trailing"]]),
    ("field_float.mtx", &[&["float"]]),
    ("nnz_2447013140.mtx", &[&["FILE:"], &["2447013140"]]),
    ("rates_no_diagonal.mtx", &[&["diagonal"]]),
    ("generator_6_digits.mtx", &[&["--diagonal", "--normalize"]]),
    ("transitions_sum_1000001.mtx", &[&["1.000001"]]),
    ("transitions_negative.mtx", &[&["probability"], &["-0.1", "-1e-1"]]),
    ("transitions_empty_row.mtx", &[&["row 2"], &["empty", "no entries", "no entry"]]),
    ("counts.mtx", &[&["15"], &["--normalize", "counts"]]),
    ("skew_array_4_zero_diagonal.mtx", &[&["skew"], &["diagonal"]]),
];

/// Words that a message must not have.
const NOT_SAID: [(&str, &str); 4] = [
    ("attribution_not_stochastic.mtx", "-5e-1"),
    ("transitions_negative.mtx", "the rate"),
    ("transitions_sum_1000001.mtx", "not to zero"),
    ("ring_even_64.mtx", "stayed the most probable"),
];

/// What may happen.
#[derive(Debug, PartialEq)]
struct Expected {
    /// Exit codes.
    exits: Vec<i32>,
    /// Entries that `info` must count.
    entries: Option<u64>,
}

/// Judges the folder's index: how many runs, and how many were not as they must be.
pub(super) fn run(dir: &Path, only: &str, bench: &Bench, table: &mut Vec<Value>) -> Result<()> {
    println!("\n{}\n{:<34} {:<46} {:>10}  verdict", dir.display(), "file", "arguments", "exit");
    for row in read(dir)?.iter().filter(|row| row.name().contains(only)) {
        for (arguments, verdict, run) in judge(row, bench)? {
            let said = if verdict.is_empty() { "ok".to_owned() } else { format!("FAIL {}", verdict.join("; ")) };
            println!("{:<34} {:<46} {:>10}  {said}", row.name(), arguments, run.exit_name());
            table.push(json!({
                "name": row.name(), "arguments": arguments, "exit": run.exit, "verdict": said,
                "must_happen": row.must, "stderr": run.stderr, "report": run.report,
            }));
        }
    }
    Ok(())
}

fn read(dir: &Path) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for row in records(dir)? {
        let field = |name: &str| row.get(name).map(|v| v.trim().to_owned()).unwrap_or_default();
        let file = dir.join(field("file"));
        fs::metadata(&file).context(file.display())?;
        rows.push(Row { file, command: field("command"), must: field("must happen"), right: field("right value") });
    }
    Ok(rows)
}

impl Row {
    fn name(&self) -> String {
        self.file.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn stem(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The arguments between the command's name and its file, one list for each run the row asks for.
    fn variants(&self) -> Vec<Vec<String>> {
        let words: Vec<&str> = self.command.split_whitespace().skip(1).map(|w| w.trim_end_matches(',')).collect();
        let command = words.first().copied().unwrap_or_default();
        let fixed = |word: &&str| ["--transitions", "--generator"].contains(word);
        let mut start: Vec<String> = vec![command.to_owned()];
        start.extend(words.iter().filter(|w| fixed(w)).map(|w| (*w).to_owned()));
        let after = |name: &str| words.iter().position(|w| *w == name).and_then(|p| words.get(p + 1).copied());
        let blocks = after("--blocks").map(|k| vec!["--blocks".to_owned(), k.to_owned()]).unwrap_or_default();
        let methods: Vec<&str> = match after("--method") {
            Some(list) => list.split('|').collect(),
            None if self.command.contains("all methods") => vec!["gth", "block-lu", "hbisa", "power"],
            None => Vec::new(),
        };
        // "also" asks for the default too.
        let plain = methods.is_empty() || self.command.contains("also");
        let with = |method: Option<&str>| {
            let mut arguments = start.clone();
            arguments.extend(blocks.iter().cloned());
            arguments.extend(method.into_iter().flat_map(|m| ["--method".to_owned(), m.to_owned()]));
            arguments
        };
        plain.then(|| with(None)).into_iter().chain(methods.into_iter().map(|m| with(Some(m)))).collect()
    }

    fn expected(&self) -> Expected {
        let must = self.must.to_lowercase();
        let code = must.strip_prefix("exit ").and_then(|rest| rest.get(..1)).and_then(|digit| digit.parse().ok());
        let refusals = ["refusal", "true sum", "probability, not rate", "row 2 is empty"];
        let mut exits: Vec<i32> = match code {
            Some(0) if must.contains("or an error") => vec![0, 3],
            // An option that takes it would be another run.
            Some(code) => vec![code],
            None if must.starts_with("accept") && must.contains("exit 2") => vec![0, 2],
            None if must.starts_with("accept") && must.contains("message") => vec![0, 2],
            None if must.starts_with("not converged, or right") => vec![0, 3],
            None if refusals.iter().any(|r| must.starts_with(r)) => vec![2],
            None => vec![0],
        };
        exits.dedup();
        let count = |text: &str| text.split_whitespace().next().and_then(|w| w.parse().ok());
        let entries = (self.command.contains("info") && exits.contains(&0)).then(|| count(&self.right)).flatten();
        // "6 values expected" is no number of entries.
        Expected { exits, entries: entries.filter(|_| !self.right.contains("values")) }
    }
}

type Judged = (String, Vec<String>, Run);

fn judge(row: &Row, bench: &Bench) -> Result<Vec<Judged>> {
    if row.file.extension().is_some_and(|e| e == "csv") {
        return plans(&row.file, bench);
    }
    if row.command.contains("solve") {
        return solve(row, bench).map(|judged| vec![judged]);
    }
    let expected = row.expected();
    let mut judged = Vec::new();
    for arguments in row.variants() {
        let queue = arguments[0] == "queue";
        let table = bench.scratch.join("pi.csv");
        let picture = bench.scratch.join("pi.svg");
        let _ = (fs::remove_file(&table), fs::remove_file(&picture));
        let mut command = blocktri(&bench.program);
        // The file follows --generator or --transitions, or the command's name.
        let place = 1 + usize::from(queue);
        command.args(&arguments[..place]).arg(&row.file).args(&arguments[place..]).arg("--json");
        if queue {
            command.arg("--output").arg(&table);
        }
        if row.command.contains("--plot") {
            command.arg("--plot").arg(&picture);
        }
        let run = bench.run(command)?;
        let mut complaints = Vec::new();
        if run.timed_out || !run.exit.is_some_and(|code| expected.exits.contains(&code)) {
            let said = run.stderr.lines().next().unwrap_or_default();
            complaints.push(format!("exit {}, not {:?}: {said}", run.exit_name(), expected.exits));
        }
        complaints.extend(words(row, &run));
        if let (Some(entries), Some(0)) = (expected.entries, run.exit)
            && run.report["nnz"].as_u64() != Some(entries)
        {
            complaints.push(format!("{} entries, not {entries}", run.report["nnz"]));
        }
        if queue && run.exit == Some(0) {
            complaints.extend(distribution(row, &table, &run));
        }
        if row.command.contains("--plot") && run.exit == Some(0) && !picture.is_file() {
            complaints.push("no picture".into());
        }
        judged.push((arguments.join(" "), complaints, run));
    }
    Ok(judged)
}

/// Words that a refusal must and must not have.
fn words(row: &Row, run: &Run) -> Vec<String> {
    // A name like counts.mtx must not count as a word.
    let (name, said) = (row.name(), run.stderr.replace(&row.file.display().to_string(), "FILE"));
    let mut complaints = Vec::new();
    let refused = run.exit != Some(0);
    for (_, groups) in WORDS.iter().filter(|(file, _)| refused && *file == name) {
        for group in *groups {
            if !group.iter().any(|word| said.contains(word)) {
                complaints
                    .push(format!("the message has none of {group:?}: {}", said.lines().next().unwrap_or_default()));
            }
        }
    }
    for (_, word) in NOT_SAID.iter().filter(|(file, _)| *file == name) {
        if said.contains(word) {
            complaints.push(format!("the message says {word:?}"));
        }
    }
    complaints
}

/// π of the table that was written against the reference, to the bound that was printed.
fn distribution(row: &Row, table: &Path, run: &Run) -> Vec<String> {
    let reference = match reference(row) {
        Ok(Some(reference)) => reference,
        Ok(None) => return Vec::new(),
        Err(why) => return vec![why],
    };
    let bound = run.report["error_bound"].as_f64();
    let computed = match probabilities(table) {
        Ok(computed) => computed,
        Err(why) => return vec![why],
    };
    let reference = if reference.len() == 1 { vec![reference[0]; computed.len()] } else { reference };
    if computed.len() != reference.len() {
        return vec![format!("{} probabilities, not {}", computed.len(), reference.len())];
    }
    // The reference has 17 digits; a logarithm near 10⁴ has an ulp of 10⁻¹² of its own.
    let allowed = bound.unwrap_or(PROBABILITY) + 1e-15;
    let mut worst = (0.0, 0);
    for (i, ((p, log), right)) in computed.iter().zip(&reference).enumerate() {
        let (p, log) = (*p, *log);
        let off = match right.to_f64() {
            right if right > 1e-290 => (p - right).abs() / right / allowed,
            _ if right.is_zero() => {
                if p == 0.0 {
                    0.0
                } else {
                    f64::INFINITY
                }
            }
            _ => {
                let log_allowed = allowed / std::f64::consts::LN_10 + right.log10().abs() * 4.0 * f64::EPSILON;
                (log - right.log10()).abs() / log_allowed
            }
        };
        if !(off <= worst.0) {
            worst = (off, i);
        }
    }
    let (off, i) = worst;
    if off <= 1.0 {
        return Vec::new();
    }
    let relative = off * allowed;
    vec![format!(
        "probability of state {i} is off by {relative:.1e}, {} {allowed:.1e}",
        if bound.is_some() { "printed bound" } else { "allowed" }
    )]
}

/// From `STEM_pi.mtx`, or from the column: "(0,1/3,2/3)", "1/64 each", "1/12" (then one value for all states).
fn reference(row: &Row) -> Result<Option<Vec<Decimal>>, String> {
    let file = row.file.with_file_name(format!("{}_pi.mtx", row.stem()));
    if file.is_file() {
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let numbers = text.lines().filter(|l| !l.starts_with('%')).skip(1).map(str::trim).filter(|l| !l.is_empty());
        return numbers.map(str::parse).collect::<Result<_, _>>().map(Some);
    }
    let right = row.right.trim_end_matches(" each");
    let fraction = |text: &str| match text.trim().split_once('/') {
        Some((p, q)) => p.parse::<f64>().ok().zip(q.parse::<f64>().ok()).map(|(p, q)| Decimal::from(p / q)),
        None => text.trim().parse::<f64>().ok().map(Decimal::from),
    };
    if let Some(list) = right.strip_prefix('(').and_then(|r| r.strip_suffix(')')) {
        return Ok(list.split(',').map(fraction).collect());
    }
    Ok(if right.contains('/') { fraction(right).map(|p| vec![p]) } else { None })
}

/// Columns `probability` and `log10` of the table.
fn probabilities(table: &Path) -> Result<Vec<(f64, f64)>, String> {
    let at = |e: &dyn std::fmt::Display| format!("{}: {e}", table.display());
    let mut reader = csv::Reader::from_path(table).map_err(|e| at(&e))?;
    let mut found = Vec::new();
    for record in reader.deserialize::<HashMap<String, String>>() {
        let row = record.map_err(|e| at(&e))?;
        let number = |name: &str| row.get(name).and_then(|v| v.parse::<f64>().ok());
        found.push(number("probability").zip(number("log10")).ok_or_else(|| at(&"no probability and log10"))?);
    }
    Ok(found)
}

/// Parameters of the model, as columns and as options.
const MODEL: [(&str, &str); 6] = [
    ("resources", "--resources"),
    ("threshold", "--threshold"),
    ("lambda", "--lambda"),
    ("mu", "--mu"),
    ("eta", "--eta"),
    ("nu", "--nu"),
];
/// Columns of a plan, and where the report has them.
const FIGURES: [(&str, &str); 7] = [
    ("loss", "/plan/loss"),
    ("waiting", "/plan/waiting"),
    ("mean_on", "/plan/mean_on"),
    ("mean_tasks", "/tasks/mean"),
    ("time_in_system", "/plan/time_in_system"),
    ("on_95", "/plan/on_95"),
    ("in_advance", "/plan/in_advance"),
];

/// Every line of a table of plans by every method: right, or said not to be converged; and right by the default one.
fn plans(file: &Path, bench: &Bench) -> Result<Vec<Judged>> {
    let mut judged = Vec::new();
    let mut reader = csv::Reader::from_path(file).context(file.display())?;
    for (line, record) in reader.deserialize::<HashMap<String, String>>().enumerate() {
        let row = record.context(file.display())?;
        for method in ["auto", "gth", "block-lu", "hbisa", "power"] {
            let mut command = blocktri(&bench.program);
            command.arg("queue");
            for (column, option) in MODEL {
                command.arg(option).arg(row.get(column).map_or("", String::as_str));
            }
            command.args(["--method", method, "--json"]);
            let run = bench.run(command)?;
            let certain = ["auto", "gth"].contains(&method);
            // A loss is a sum of probabilities over another.
            let bound = run.report["error_bound"].as_f64().map_or(PROBABILITY, |bound| 4.0 * bound);
            let allowed = if certain { PLAN } else { PLAN.max(bound) };
            let gave_up = run.stderr.contains("stayed the most probable");
            let compare = |(column, place): &(&str, &str)| figure(&row, column, place, &run, allowed);
            let complaints = match run.exit {
                Some(0) => FIGURES.iter().filter_map(compare).collect(),
                Some(3) if !certain && !gave_up => Vec::new(),
                _ => vec![format!("exit {}: {}", run.exit_name(), run.stderr.lines().next().unwrap_or_default())],
            };
            judged.push((format!("line {}, --method {method}", line + 2), complaints, run));
        }
    }
    Ok(judged)
}

fn figure(row: &HashMap<String, String>, column: &str, place: &str, run: &Run, allowed: f64) -> Option<String> {
    let right = row.get(column).and_then(|v| v.parse::<f64>().ok())?;
    let Some(found) = run.report.pointer(place).and_then(Value::as_f64) else {
        return Some(format!("no {column}"));
    };
    // Tables have 15 digits.
    ((found - right).abs() > (allowed + 5e-15) * right.abs()).then(|| format!("{column} {found:e}, not {right:e}"))
}

/// A system whose file has its right-hand side, with x_i = i from 1: used, or said not to be.
fn solve(row: &Row, bench: &Bench) -> Result<Judged> {
    let solution = bench.scratch.join("x.mtx");
    let _ = fs::remove_file(&solution);
    let mut command = blocktri(&bench.program);
    command.arg("solve").arg(&row.file).arg("-o").arg(&solution).arg("--json");
    let run = bench.run(command)?;
    let mut complaints = Vec::new();
    if run.exit == Some(0) {
        let x = vector::read(&solution)?;
        let counted = vector::Dense::column((1..=x.nrows()).map(|i| i as f64).collect());
        let used = vector::relative_difference(&x, &counted) < 1e-9;
        let notes = run.report["notes"].to_string();
        let said = [&run.stderr, &notes].iter().any(|text| text.contains("right-hand side"));
        if !used && !said {
            complaints.push("the right-hand side of the file is not used, and nothing is said".into());
        }
    } else {
        complaints.push(format!("exit {}: {}", run.exit_name(), run.stderr.lines().next().unwrap_or_default()));
    }
    Ok(("solve -o x.mtx".into(), complaints, run))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn row(file: &str, command: &str, must: &str, right: &str) -> Row {
        let [command, must, right] = [command, must, right].map(str::to_owned);
        Row { file: PathBuf::from(file), command, must, right }
    }

    fn run(exit: i32, stderr: &str) -> Run {
        Run {
            exit: Some(exit),
            timed_out: false,
            wall: Duration::ZERO,
            report: Value::Null,
            stderr: stderr.into(),
            solution: None,
        }
    }

    #[test]
    fn commands_of_the_index() {
        let variants = |command: &str| -> Vec<String> {
            row("a.mtx", command, "", "").variants().iter().map(|arguments| arguments.join(" ")).collect()
        };
        assert_eq!(variants("blocktri queue --transitions"), ["queue --transitions"]);
        assert_eq!(
            variants("blocktri queue --transitions, also --method power"),
            ["queue --transitions", "queue --transitions --method power"]
        );
        assert_eq!(variants("blocktri queue --generator --method power|hbisa").len(), 2);
        assert_eq!(variants("blocktri queue --transitions, all methods").len(), 4);
        assert_eq!(variants("blocktri queue --generator --blocks 2"), ["queue --generator --blocks 2"]);
        assert_eq!(variants("blocktri info"), ["info"]);
    }

    #[test]
    fn codes_of_the_index() {
        let exits = |must: &str| row("a.mtx", "blocktri queue", must, "").expected().exits;
        assert_eq!(exits("exit 4, both closed classes named"), [4]);
        assert_eq!(exits("exit 0 in spite of the period"), [0]);
        assert_eq!(exits("exit 0 (uniform), or an error without failing on a tie"), [0, 3]);
        assert_eq!(exits("exit 2; the message gives the row and its true sum"), [2]);
        assert_eq!(exits("not converged, or right: (1,1,2,2)/6"), [0, 3]);
        assert_eq!(exits("refusal with a way out (rescale, tolerance), since gth needs only the rates"), [2]);
        assert_eq!(exits("accept"), [0]);
        assert_eq!(exits("accept or exit 2"), [0, 2]);
        assert_eq!(row("a", "blocktri info", "1198 entries: all", "1198").expected().entries, Some(1198));
        assert_eq!(row("a", "blocktri info", "exit 2", "1198").expected().entries, None);
    }

    #[test]
    fn messages_are_held_to_their_words() {
        let words = |file: &str, said: &str| words(&row(file, "", "", ""), &run(2, said)).len();
        assert_eq!(words("nan_row.mtx", "error: nan_row.mtx:4: NaN"), 0);
        assert_eq!(words("nan_row.mtx", "error: NaN"), 1);
        assert_eq!(words("attribution_not_stochastic.mtx", "row 0 sums to -5e-1"), 1);
        assert_eq!(words("attribution_not_stochastic.mtx", "row 0 sums to 0.5, not to one"), 0);
        // The name is no word of the message.
        assert_eq!(words("rates_no_diagonal.mtx", "error: rates_no_diagonal.mtx: row 0 sums to 2"), 1);
    }

    #[test]
    fn plans_are_held_to_twelve_digits() {
        let plan = HashMap::from([("loss".to_owned(), "2.94682619935458e-19".to_owned())]);
        let mut run = run(0, "");
        run.report = json!({ "plan": { "loss": 2.946826199354579e-19 } });
        assert_eq!(figure(&plan, "loss", "/plan/loss", &run, PLAN), None);
        run.report = json!({ "plan": { "loss": 2.9468261993e-19 } });
        assert!(figure(&plan, "loss", "/plan/loss", &run, PLAN).is_some());
        run.report = json!({});
        assert!(figure(&plan, "loss", "/plan/loss", &run, PLAN).is_some());
    }

    #[test]
    fn references_in_the_index() {
        let values = |right: &str| {
            let found = reference(&row("none.mtx", "", "", right)).unwrap();
            found.map(|v| v.iter().map(|d| d.to_f64()).collect::<Vec<_>>())
        };
        assert_eq!(values("(0,1/4,3/4)"), Some(vec![0.0, 0.25, 0.75]));
        assert_eq!(values("1/64 each"), Some(vec![1.0 / 64.0]));
        assert_eq!(values("binomial"), None);
    }
}
