//! What a file under benches/results has in it.
//!
//! ```json
//! { "about": { "machine": "2 cores, nothing else running", "processor": "AMD EPYC (Zen 4)", "instruction_set": "avx512",
//!              "commit": "6229c16", "date": "2026-11-24", "command": ["…"], "threads": [1, 2] },
//!   "rows": [ { "capability": "bands", "case": "b1-8", "contestant": "mkl-gbtrf", "kind": "peer", "milliseconds": 12.0,
//!               "scalar": "f64", "instruction_set": "avx512", "threads": 1, "error": null } ] }
//! ```
//!
//! `milliseconds` is the least of the repetitions, `error` that of the answer, null where it is not known. `kind` is `ours`, `peer`, or
//! `kernel`: what of ours a call is measured against. A row of ours with a `variant` ("without pivoting") has a line of its own and meets
//! all peers; a peer with one meets ours of the same variant only. Two more formats are read: what `python/benchmarks/versus_scipy.py
//! --json` writes (`about` and `table`), and what `cargo xtask regret --output` does (`verdict`).

use serde_json::{Map, Value, json};

use super::capability::{Capability, PYTHON};
use crate::process::{Context, Failure, Result};

/// A file.
#[derive(Debug)]
pub(super) struct Source {
    /// Its name.
    pub file: String,
    pub about: About,
    pub content: Content,
}

/// Where and when a file was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct About {
    pub processor: String,
    pub commit: String,
    pub date: String,
}

#[derive(Debug)]
pub(super) enum Content {
    Rows(Vec<Row>),
    Regret(Regret),
}

/// Whose time a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ours,
    Peer,
    /// The factorization and substitution under a call.
    Kernel,
}

/// The least time of one contestant in one case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub capability: &'static Capability,
    pub case: String,
    pub contestant: String,
    pub kind: Kind,
    pub milliseconds: f64,
    pub scalar: String,
    pub instruction_set: String,
    pub threads: u64,
    pub error: Option<f64>,
    pub variant: Option<String>,
}

/// The time of `auto` over the least, of many systems.
#[derive(Debug, PartialEq)]
pub(super) struct Regret {
    pub systems: u64,
    pub median: f64,
    pub percentile_95: f64,
    pub worst: f64,
    pub predicted: f64,
}

impl Source {
    /// Reads a file of any of the formats.
    ///
    /// # Errors
    /// With the name of the file and the place in it.
    pub(super) fn read(file: &str, text: &str) -> Result<Self> {
        let json: Value = serde_json::from_str(text).context(file)?;
        let read = || -> Result<(About, Content)> {
            if let Some(rows) = json["rows"].as_array() {
                return Ok((About::read(&json["about"])?, Content::Rows(numbered(rows, Row::read)?)));
            }
            if let Some(table) = json["table"].as_array() {
                let about = &json["about"];
                let pairs = numbered(table, |row| beside_scipy(about, row))?;
                return Ok((About::read(about)?, Content::Rows(pairs.into_iter().flatten().collect())));
            }
            if json["verdict"].is_object() {
                return Ok((About::of_regret(&json), Content::Regret(Regret::read(&json["verdict"])?)));
            }
            Err(Failure("has neither rows nor table nor verdict: benches/results/README.md has the formats".into()))
        };
        let (about, content) = read().map_err(|Failure(why)| Failure(format!("{file}: {why}")))?;
        Ok(Self { file: file.into(), about, content })
    }

    /// What was measured of one capability.
    pub(super) fn rows(&self, of: &'static Capability) -> impl Iterator<Item = &Row> {
        let rows: &[Row] = match &self.content {
            Content::Rows(rows) => rows,
            Content::Regret(_) => &[],
        };
        rows.iter().filter(move |row| row.capability == of)
    }
}

/// Reads all elements, and names the one that is wrong by its number.
fn numbered<T>(list: &[Value], read: impl Fn(&Value) -> Result<T>) -> Result<Vec<T>> {
    let one = |(at, value)| read(value).map_err(|Failure(why)| Failure(format!("row {at}: {why}")));
    list.iter().enumerate().map(one).collect()
}

fn text(of: &Value, key: &str) -> Result<String> {
    of[key].as_str().map(str::to_owned).ok_or_else(|| Failure(format!("no text \"{key}\"")))
}

fn number(of: &Value, key: &str) -> Result<f64> {
    of[key].as_f64().ok_or_else(|| Failure(format!("no number \"{key}\"")))
}

fn whole(of: &Value, key: &str) -> Result<u64> {
    of[key].as_u64().ok_or_else(|| Failure(format!("no whole number \"{key}\"")))
}

impl About {
    fn read(about: &Value) -> Result<Self> {
        let processor = text(about, "processor").unwrap_or_default();
        Ok(Self { processor, commit: text(about, "commit")?, date: text(about, "date")? })
    }

    /// `"commit": "d0f939c 2026-11-26"`.
    fn of_regret(json: &Value) -> Self {
        let commit = json["commit"].as_str().unwrap_or_default();
        let (commit, date) = commit.split_once(' ').unwrap_or((commit, ""));
        let processor = json["machine"].as_str().unwrap_or_default();
        Self { processor: processor.into(), commit: commit.into(), date: date.into() }
    }
}

impl Row {
    fn read(row: &Value) -> Result<Self> {
        let name = text(row, "capability")?;
        let capability =
            Capability::find(&name).ok_or_else(|| Failure(format!("there is no capability \"{name}\"")))?;
        let kind = match row["kind"].as_str() {
            Some("ours") => Kind::Ours,
            Some("peer") => Kind::Peer,
            Some("kernel") => Kind::Kernel,
            _ => return Err(Failure("\"kind\" is none of ours, peer, kernel".into())),
        };
        let milliseconds = number(row, "milliseconds")?;
        if milliseconds <= 0.0 {
            return Err(Failure("\"milliseconds\" is not positive".into()));
        }
        Ok(Self {
            capability,
            case: text(row, "case")?,
            contestant: text(row, "contestant")?,
            kind,
            milliseconds,
            scalar: text(row, "scalar")?,
            instruction_set: text(row, "instruction_set")?,
            threads: whole(row, "threads")?,
            error: row["error"].as_f64(),
            variant: row["variant"].as_str().map(str::to_owned),
        })
    }

    /// As [`Row::read`] reads it.
    pub(super) fn json(&self) -> Value {
        let kind = match self.kind {
            Kind::Ours => "ours",
            Kind::Peer => "peer",
            Kind::Kernel => "kernel",
        };
        let mut row = json!({
            "capability": self.capability.name, "case": self.case, "contestant": self.contestant, "kind": kind,
            "milliseconds": self.milliseconds, "scalar": self.scalar, "instruction_set": self.instruction_set,
            "threads": self.threads, "error": self.error,
        });
        if let Some(variant) = &self.variant {
            row["variant"] = variant.as_str().into();
        }
        row
    }

    /// Whether its answer is one.
    pub(super) fn is_solved(&self) -> bool {
        let single = matches!(self.scalar.as_str(), "f32" | "c32");
        let most = if single { self.capability.largest_error.max(1e-4) } else { self.capability.largest_error };
        // !(error > most) would let a NaN pass.
        self.error.is_none_or(|error| error <= most)
    }
}

/// A row of `versus_scipy.py`: seconds of both.
fn beside_scipy(about: &Value, row: &Value) -> Result<[Row; 2]> {
    let version = about["scipy"].as_str().unwrap_or_default();
    let processor = about["processor"].as_str().unwrap_or_default();
    let instruction_set = match processor {
        _ if processor.contains("no AVX-512") => "avx2",
        _ if processor.contains("AVX-512") => "avx512",
        _ => "",
    };
    let side = |key: &str, contestant: String, kind| -> Result<Row> {
        Ok(Row {
            capability: &PYTHON,
            case: text(row, "case")?,
            contestant,
            kind,
            milliseconds: 1e3 * number(row, key)?,
            scalar: "f64".into(),
            instruction_set: instruction_set.into(),
            threads: whole(row, "threads")?,
            error: None,
            variant: None,
        })
    };
    let peer = format!("SciPy {version}").trim_end().to_owned();
    Ok([side("blocktri", "blocktri".into(), Kind::Ours)?, side("scipy", peer, Kind::Peer)?])
}

impl Regret {
    fn read(verdict: &Value) -> Result<Self> {
        Ok(Self {
            systems: whole(verdict, "systems")?,
            median: number(verdict, "median")?,
            percentile_95: number(verdict, "percentile_95")?,
            worst: number(verdict, "worst")?,
            predicted: number(verdict, "predicted_within_2")?,
        })
    }
}

/// A file as it is kept: a row a line, so that differences are read.
pub(super) fn file(about: &Map<String, Value>, rows: &[Row]) -> String {
    let about: Vec<String> = about.iter().map(|(key, value)| format!("    {}: {value}", json!(key))).collect();
    let rows: Vec<String> = rows.iter().map(|row| format!("    {}", row.json())).collect();
    format!("{{\n  \"about\": {{\n{}\n  }},\n  \"rows\": [\n{}\n  ]\n}}\n", about.join(",\n"), rows.join(",\n"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row of ours, of one thread on AVX-512.
    pub(in super::super) fn row(case: &str, contestant: &str, milliseconds: f64) -> Row {
        let kind = if contestant.starts_with("blocktri") { Kind::Ours } else { Kind::Peer };
        Row {
            capability: Capability::find("bands").unwrap(),
            case: case.into(),
            contestant: contestant.into(),
            kind,
            milliseconds,
            scalar: "f64".into(),
            instruction_set: "avx512".into(),
            threads: 1,
            error: Some(1e-16),
            variant: None,
        }
    }

    /// A file of such rows.
    pub(in super::super) fn source(file: &str, date: &str, rows: Vec<Row>) -> Source {
        let about = About { processor: "AMD EPYC (Zen 4)".into(), commit: "abc1234".into(), date: date.into() };
        Source { file: file.into(), about, content: Content::Rows(rows) }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut rows = vec![row("b1-8", "blocktri-band-lu", 4.8), row("b1-8", "mkl-gbtrf", 12.0)];
        rows[0].variant = Some("without pivoting".into());
        rows[1].error = None;
        let about = json!({"processor": "AMD EPYC", "commit": "abc", "date": "2026-11-26"});
        let text = file(about.as_object().unwrap(), &rows);
        let read = Source::read("a.json", &text).unwrap();
        assert_eq!(read.about.date, "2026-11-26");
        assert_eq!(read.rows(Capability::find("bands").unwrap()).cloned().collect::<Vec<_>>(), rows);
        assert_eq!(read.rows(Capability::find("blocks").unwrap()).count(), 0);
    }

    #[test]
    fn times_beside_scipy_become_pairs() {
        let text = r#"{"about": {"scipy": "1.17.1", "processor": "AMD EPYC, AVX-512", "commit": "abc", "date": "2026-11-26"},
            "table": [{"case": "solve_banded", "threads": 2, "blocktri": 0.001, "scipy": 0.003, "ratio": 3.0}]}"#;
        let read = Source::read("python.json", text).unwrap();
        let rows: Vec<_> = read.rows(&PYTHON).collect();
        assert_eq!((rows[0].kind, rows[0].milliseconds, rows[0].threads), (Kind::Ours, 1.0, 2));
        assert_eq!((rows[1].contestant.as_str(), rows[1].milliseconds), ("SciPy 1.17.1", 3.0));
        assert_eq!(rows[1].instruction_set, "avx512");
    }

    #[test]
    fn regret_has_its_commit_and_date() {
        let text = r#"{"commit": "d0f939c 2026-11-26", "machine": "AMD EPYC", "verdict":
            {"systems": 173, "median": 1.0, "percentile_95": 1.8, "worst": 3.4, "predicted_within_2": 0.71}}"#;
        let read = Source::read("regret.json", text).unwrap();
        assert_eq!((read.about.commit.as_str(), read.about.date.as_str()), ("d0f939c", "2026-11-26"));
        assert!(matches!(read.content, Content::Regret(Regret { systems: 173, .. })));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let with = |row: &str| format!(r#"{{"about": {{"commit": "c", "date": "d"}}, "rows": [{row}]}}"#);
        let good = row("b1-8", "mkl-gbtrf", 12.0).json();
        for (key, value, says) in [
            ("capability", json!("bnads"), "no capability \"bnads\""),
            ("kind", json!("theirs"), "none of ours, peer, kernel"),
            ("milliseconds", json!(0.0), "not positive"),
            ("threads", json!(1.5), "no whole number \"threads\""),
        ] {
            let mut bad = good.clone();
            bad[key] = value;
            let Failure(why) = Source::read("a.json", &with(&bad.to_string())).unwrap_err();
            assert!(why.starts_with("a.json: row 0:") && why.contains(says), "{why}");
        }
        assert!(Source::read("a.json", r#"{"rows": []}"#).unwrap_err().0.contains("commit"));
    }

    #[test]
    fn a_wrong_answer_is_none() {
        let mut row = row("b1-8", "blocktri-band-lu-nopivot", 1.0);
        for (error, solved) in [(Some(1e-12), true), (Some(1e-3), false), (Some(f64::NAN), false), (None, true)] {
            row.error = error;
            assert_eq!(row.is_solved(), solved, "{error:?}");
        }
        (row.scalar, row.error) = ("f32".into(), Some(1e-5));
        assert!(row.is_solved());
    }
}
