//! `--collect`: lines of JSON from the harness and from its peers become a file of results.
//!
//! A line has `case`, `peer`, `threads`, `total` and `phases` with their `min` in seconds, `err`, and for ours `isa`; lines that do not
//! begin with a brace are passed over. Several lines of one contestant are merged: the least counts. A phase "+solve64" is a case of its
//! own, "b1-8×64", as "+again" of a call is, "b1-8, again".

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::{Map, Value, json};

use super::capability::{CALLS, Place, is_of_steps, place};
use super::results::{Kind, Row, file};
use crate::process::{Context, Failure, Result, root};
use crate::regret;

/// What to collect, and what is told about it.
#[derive(Args)]
pub(super) struct Collection {
    /// Make a file of results from what the harness and run_peers.py printed in one run, one file for each if you like
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "name", requires = "command")]
    collect: Vec<PathBuf>,
    /// The file is benches/results/NAME.json
    #[arg(long, requires = "collect")]
    name: Option<String>,
    /// How it was measured, a line for each program
    #[arg(long, requires = "collect")]
    command: Vec<String>,
    /// What else of the machine matters: cores, what ran beside
    #[arg(long, requires = "collect")]
    machine: Option<String>,
    /// Name of the processor (default: as the system tells it)
    #[arg(long, requires = "collect")]
    processor: Option<String>,
    /// Instruction set of lines that tell none, as those of peers (default: the widest that the processor has)
    #[arg(long, requires = "collect")]
    isa: Option<String>,
    /// Commit of ours (default: the one at hand)
    #[arg(long, requires = "collect")]
    commit: Option<String>,
    /// Day of the measurement (default: today)
    #[arg(long, value_name = "YYYY-MM-DD", requires = "collect")]
    date: Option<String>,
}

impl Collection {
    pub(super) fn is_asked_for(&self) -> bool {
        !self.collect.is_empty()
    }

    /// Writes the file into `folder`.
    pub(super) fn run(&self, folder: &Path) -> Result<()> {
        let name = self.name.as_deref().unwrap_or_default();
        if name.is_empty() || name.contains(['/', '\\', '.']) {
            return Err(Failure(format!("\"{name}\" is no name of a file without its ending")));
        }
        let mut lines = Vec::new();
        for path in &self.collect {
            let text = fs::read_to_string(path).context(path.display())?;
            lines.extend(read(&text).map_err(|Failure(why)| Failure(format!("{}: {why}", path.display())))?);
        }
        let isa = self.isa.clone().unwrap_or_else(widest);
        let rows = rows(&merged(lines), &isa)?;
        if rows.is_empty() {
            return Err(Failure("no line has a time of a case that a table is about".into()));
        }
        let path = folder.join(format!("{name}.json"));
        fs::write(&path, file(&self.about(&rows)?, &rows)).context(path.display())?;
        println!("{}: {} rows; cargo xtask performance writes the page", path.display(), rows.len());
        Ok(())
    }

    fn about(&self, rows: &[Row]) -> Result<Map<String, Value>> {
        let distinct = |mut all: Vec<Value>| {
            all.sort_by_key(ToString::to_string);
            all.dedup();
            all
        };
        let sets = distinct(rows.iter().map(|row| row.instruction_set.as_str().into()).collect());
        let threads = distinct(rows.iter().map(|row| row.threads.into()).collect());
        let date = self.date.clone().map_or_else(today, Ok)?;
        let about = json!({
            "machine": self.machine.clone().unwrap_or_else(|| format!("{} threads", std::thread::available_parallelism().map_or(0, usize::from))),
            "processor": self.processor.clone().unwrap_or_else(regret::machine),
            "instruction_set": if let [one] = &sets[..] { one.clone() } else { sets.into() },
            "commit": self.commit.clone().map_or_else(commit, Ok)?,
            "date": date,
            "command": self.command,
            "threads": threads,
        });
        let Value::Object(about) = about else { return Ok(Map::new()) };
        Ok(about)
    }
}

/// The commit at hand, and whether something differs from it.
fn commit() -> Result<String> {
    let arguments = ["describe", "--always", "--dirty", "--exclude=*"];
    let output = Command::new("git").args(arguments).current_dir(root()).output().context("git describe")?;
    let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if commit.is_empty() { Err(Failure("git tells no commit: name one with --commit".into())) } else { Ok(commit) }
}

/// As `BLOCKTRI_ISA` names it.
fn widest() -> String {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        return "avx512".into();
    } else if is_x86_feature_detected!("avx2") {
        return "avx2".into();
    }
    "portable".into()
}

fn today() -> Result<String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock")?;
    Ok(day(since.as_secs() / 86400))
}

/// The day that comes `days` after 1970-01-01, by counting years and months.
fn day(mut days: u64) -> String {
    let mut year = 1970;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, days + 1)
}

/// The objects of a text, a line each.
fn read(text: &str) -> Result<Vec<Value>> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with('{')) {
        // Python writes what JSON has no word for.
        let line = line.replace(": NaN", ": null").replace(": Infinity", ": null");
        lines.push(serde_json::from_str(&line).context(format!("line {}", at + 1))?);
    }
    Ok(lines)
}

/// One line a contestant, with the least of its times.
fn merged(lines: Vec<Value>) -> Vec<Value> {
    let key = |line: &Value| ["case", "peer", "threads", "isa", "scalar"].map(|key| line[key].to_string());
    let mut all: Vec<Value> = Vec::new();
    for line in lines.into_iter().filter(|line| line["total"]["min"].is_number()) {
        let Some(old) = all.iter_mut().find(|old| key(old) == key(&line)) else {
            all.push(line);
            continue;
        };
        lower(&mut old["total"], &line["total"]);
        let names: Vec<String> = line["phases"].as_object().into_iter().flat_map(Map::keys).cloned().collect();
        for name in names {
            lower(&mut old["phases"][&name], &line["phases"][&name]);
        }
    }
    all
}

/// The least of two minima; one that is not there is no number.
fn lower(old: &mut Value, new: &Value) {
    let Some(new) = new["min"].as_f64() else { return };
    if old["min"].as_f64().is_none_or(|old| new < old) {
        old["min"] = new.into();
    }
}

/// A line said that it did not solve its case.
fn is_given_up(line: &Value, contestant: &str) -> bool {
    // A NaN is an answer that was looked at.
    let nan = line.get("err").is_some_and(Value::is_null);
    let open = line["converged"] == false || line["outcome"].as_str().is_some_and(|outcome| outcome != "Converged");
    nan || open && !is_of_steps(contestant)
}

fn rows(lines: &[Value], isa: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for line in lines {
        let text = |key: &str| line[key].as_str().ok_or_else(|| Failure(format!("{line}: no text \"{key}\"")));
        let (case, contestant) = (text("case")?, text("peer")?);
        let names = line["phases"].as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let Some(Place { capability, case: name, variant }) = place(case, contestant, names) else { continue };
        if is_given_up(line, contestant) {
            continue;
        }
        let kind = if contestant.starts_with("blocktri") { Kind::Ours } else { Kind::Peer };
        let error = line["max_rel_component_error"].as_f64().or_else(|| line["err"].as_f64());
        let error = error.filter(|_| !is_of_steps(contestant));
        let row = |case: String, seconds: &Value| {
            Some(Row {
                capability,
                case,
                contestant: contestant.to_owned(),
                kind,
                milliseconds: digits(1e3 * seconds["min"].as_f64()?),
                scalar: line["scalar"].as_str().unwrap_or("f64").to_owned(),
                instruction_set: line["isa"].as_str().unwrap_or(isa).to_owned(),
                threads: line["threads"].as_u64().unwrap_or(1),
                error,
                variant: variant.map(str::to_owned),
            })
        };
        // The second solve of a call is its own, and what setting it up takes is not asked.
        let once = !line["phases"]["+again"].is_object();
        rows.extend(row(name, &line["total"]).filter(|_| once));
        for (phase, seconds) in line["phases"].as_object().into_iter().flatten() {
            let case = match phase.strip_prefix("+solve") {
                Some(count) => format!("{case}×{count}"),
                None if phase == "+again" => format!("{case}, again"),
                None => continue,
            };
            rows.extend(row(case, seconds));
        }
        if capability == &CALLS {
            rows.extend(kernel(line, lines, isa));
        }
    }
    Ok(rows)
}

/// What the method that a call has chosen takes for itself.
fn kernel(call: &Value, lines: &[Value], isa: &str) -> Option<Row> {
    let contestant = format!("blocktri-{}", call["method"].as_str()?);
    let same = |line: &&Value| ["case", "threads", "isa", "scalar"].iter().all(|key| line[*key] == call[*key]);
    let line = lines.iter().filter(same).find(|line| line["peer"] == contestant.as_str())?;
    let again = call["phases"]["+again"].is_object();
    let (what, seconds) = if again { (", again", &line["phases"]["solve"]) } else { ("", &line["total"]) };
    Some(Row {
        capability: &CALLS,
        case: format!("{}{what}", call["case"].as_str()?),
        contestant,
        kind: Kind::Kernel,
        milliseconds: digits(1e3 * seconds["min"].as_f64()?),
        scalar: line["scalar"].as_str().unwrap_or("f64").to_owned(),
        instruction_set: line["isa"].as_str().unwrap_or(isa).to_owned(),
        threads: line["threads"].as_u64()?,
        error: line["err"].as_f64(),
        variant: None,
    })
}

/// Five digits, as the peers round theirs.
fn digits(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"
some words of a program
{"case": "b1-8", "peer": "mkl-gbtrf", "threads": 1, "total": {"min": 0.0125}, "phases": {"factor": {"min": 0.009}, "solve": {"min": 0.0035}, "+solve64": {"min": 0.08}}, "err": 3e-16}
{"case": "b1-8", "peer": "mkl-gbtrf", "threads": 1, "total": {"min": 0.012}, "phases": {"factor": {"min": 0.0087}, "solve": {"min": 0.0033}, "+solve64": {"min": 0.0802}}, "err": 3e-16}
{"case": "b1-8", "peer": "klu", "threads": 1, "failed": "out of memory"}
{"case": "b1-8", "peer": "superlu-colamd", "threads": 1, "total": {"min": 0.1}, "phases": {"factor": {"min": 0.1}}, "err": NaN}
{"case": "b1-8", "peer": "blocktri-band-lu", "isa": "avx512", "threads": 1, "total": {"min": 0.0048}, "phases": {"factor": {"min": 0.0037}, "solve": {"min": 0.0011}, "+solve64": {"min": 0.0321}}, "err": 2e-16}
{"case": "b1-8", "peer": "blocktri-facade-once", "isa": "avx512", "threads": 1, "total": {"min": 0.024}, "phases": {"call": {"min": 0.024}}, "err": 2e-16, "method": "band-lu"}
{"case": "b1-8", "peer": "blocktri-facade", "isa": "avx512", "threads": 1, "total": {"min": 0.024}, "phases": {"setup": {"min": 0.01}, "solve": {"min": 0.01}, "+again": {"min": 0.01}}, "err": 2e-16, "method": "band-lu"}
"#;

    fn told(text: &str) -> Vec<String> {
        let rows = rows(&merged(read(text).unwrap()), "avx2").unwrap();
        let told = |r: &Row| {
            format!(
                "{} {} {} {:?} {} {}",
                r.capability.name, r.case, r.contestant, r.kind, r.milliseconds, r.instruction_set
            )
        };
        rows.iter().map(told).collect()
    }

    #[test]
    fn lines_become_rows() {
        assert_eq!(
            told(LINES),
            [
                "bands b1-8 mkl-gbtrf Peer 12 avx2",
                "bands b1-8×64 mkl-gbtrf Peer 80 avx2",
                "bands b1-8 blocktri-band-lu Ours 4.8 avx512",
                "bands b1-8×64 blocktri-band-lu Ours 32.1 avx512",
                "calls b1-8 blocktri-facade-once Ours 24 avx512",
                "calls b1-8 blocktri-band-lu Kernel 4.8 avx512",
                "calls b1-8, again blocktri-facade Ours 10 avx512",
                "calls b1-8, again blocktri-band-lu Kernel 1.1 avx512",
            ]
        );
    }

    #[test]
    fn iterations_that_gave_up_are_left_out() {
        let line = |rest: &str| {
            format!(
                r#"{{"case": "lap3d", "threads": 1, "total": {{"min": 1}}, "phases": {{"iterate": {{"min": 1}}}}, {rest}}}"#
            )
        };
        assert!(told(&line(r#""peer": "scipy-cg-jacobi", "converged": false"#)).is_empty());
        assert!(told(&line(r#""peer": "blocktri-cg-jacobi", "outcome": "MaxIterations""#)).is_empty());
        assert_eq!(told(&line(r#""peer": "blocktri-cg-jacobi", "outcome": "Converged", "isa": "avx2""#)).len(), 1);
        assert_eq!(told(&line(r#""peer": "scipy-cg-100it", "converged": false"#)).len(), 1);
    }

    #[test]
    fn a_file_is_written_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let lines = folder.path().join("a.jsonl");
        fs::write(&lines, LINES).unwrap();
        let given = |name: &str| Collection {
            collect: vec![lines.clone()],
            name: Some(name.into()),
            command: vec!["harness b1-8".into()],
            machine: None,
            processor: Some("AMD EPYC".into()),
            isa: Some("avx512".into()),
            commit: Some("abc1234".into()),
            date: None,
        };
        given("bands").run(folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join("bands.json")).unwrap();
        let source = super::super::results::Source::read("bands.json", &text).unwrap();
        assert_eq!(source.about.commit, "abc1234");
        assert!(text.contains("\"instruction_set\": \"avx512\",\n") && text.contains("\"threads\": [1]"), "{text}");
        assert!(given("../bands").run(folder.path()).is_err());
        fs::write(&lines, "words\n").unwrap();
        assert!(given("none").run(folder.path()).is_err());
    }

    #[test]
    fn days_have_their_dates() {
        for (days, date) in [(0, "1970-01-01"), (59, "1970-03-01"), (789, "1972-02-29"), (20783, "2026-11-26")] {
            assert_eq!(day(days), date);
        }
    }
}
