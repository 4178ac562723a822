//! The file of results over ranks, which `blocktri-mpi reproduce parms -o FILE` writes and `blocktri reproduce parms --ranks FILE` takes.
//!
//! ```text
//! {"schema": 2, "setting": {"program": …, "scale": …}, "experiments": {name: facts, …}}
//! ```
//!
//! Results are taken where schema, version of the program and scale are those at hand: all else would be compared with what it is
//! not. Their counts are those of any processor; which one their seconds are of, the facts of each say ([`PROCESSOR`]).

use std::io;
use std::path::{Path, PathBuf};

use bt_formats::write_atomically;
use serde_json::{Value, json};

use crate::{Results, Scale};

/// What is in the file, and how.
const SCHEMA: u64 = 2;

/// The fact that names the processor of an experiment.
pub const PROCESSOR: &str = "processor";

/// Why a file of results over ranks is not taken.
#[derive(Debug, thiserror::Error)]
pub enum RanksFileError {
    /// The system does not read it.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is cut, or something else.
    #[error("{}: it is cut, or holds no results over ranks: {reason}", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
        /// What was found.
        reason: String,
    },
    /// Its results were made in another setting.
    #[error("{}: its {what} is {found}, not {expected}", file.display())]
    Different {
        /// The file.
        file: PathBuf,
        /// What differs.
        what: &'static str,
        /// As the file has it.
        found: String,
        /// As it is here.
        expected: String,
    },
}

impl Results {
    /// Those of a file that ranks have written, by this version, at this scale.
    ///
    /// # Errors
    /// [`RanksFileError`] naming the file, and what of its setting differs.
    pub fn from_ranks_file(path: &Path, scale: Scale) -> Result<Self, RanksFileError> {
        let foreign = |reason: String| RanksFileError::Foreign { file: path.to_owned(), reason };
        let text =
            std::fs::read_to_string(path).map_err(|source| RanksFileError::Io { file: path.to_owned(), source })?;
        let file: Value = serde_json::from_str(&text).map_err(|e| foreign(e.to_string()))?;
        let here = json!({"schema": SCHEMA, "setting": setting(scale)});
        for (what, pointer) in [("schema", "/schema"), ("program", "/setting/program"), ("scale", "/setting/scale")] {
            let (found, expected) = (file.pointer(pointer), here.pointer(pointer));
            if found != expected {
                let words = |value: Option<&Value>| value.map_or_else(|| "missing".to_owned(), Value::to_string);
                let (found, expected) = (words(found), words(expected));
                return Err(RanksFileError::Different { file: path.to_owned(), what, found, expected });
            }
        }
        if !file["experiments"].is_object() {
            return Err(foreign("there are no experiments in it".into()));
        }
        Ok(Self::from_json(&file["experiments"]))
    }

    /// Writes such a file, whole or not at all.
    ///
    /// # Errors
    /// [`bt_formats::Error::Io`] naming the file; what was there before is there still.
    pub fn to_ranks_file(&self, path: &Path, scale: Scale) -> bt_formats::Result<()> {
        let file = json!({"schema": SCHEMA, "setting": setting(scale), "experiments": self.to_json()});
        write_atomically(path, |out| writeln!(out, "{file:#}"))
    }
}

/// What results depend on beside the experiments themselves.
fn setting(scale: Scale) -> Value {
    json!({
        "program": format!("blocktri-mpi {}", env!("CARGO_PKG_VERSION")),
        "scale": scale.name(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let mut results = Results::default();
        for (id, iterations) in [("parms/a/1-ranks/ras", 17), ("parms/a/2-ranks/ras", 19)] {
            // Read with less care, this residual comes back as its neighbour.
            let solve = json!({"iterations": iterations, "seconds": 0.1, "relative_residual": 6.65017392389901e-9});
            let facts = json!({"transport": "mpi", "solve": solve});
            results.insert(id, facts.as_object().cloned().unwrap_or_default());
        }
        results
    }

    /// A file of these results, with its folder and its text.
    fn written() -> (tempfile::TempDir, PathBuf, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ranks.json");
        results().to_ranks_file(&path, Scale::Quick).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        (folder, path, text)
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ranks.json");
        for written in [Results::default(), results()] {
            written.to_ranks_file(&path, Scale::Quick).unwrap();
            let read = Results::from_ranks_file(&path, Scale::Quick).unwrap();
            assert_eq!(read, written);
        }
        assert_eq!(results().iter().count(), 2);
        let missing = Results::from_ranks_file(&folder.path().join("none.json"), Scale::Quick).unwrap_err();
        assert!(
            matches!(&missing, RanksFileError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound),
            "{missing}"
        );
    }

    #[test]
    fn a_cut_file_and_another_one_are_foreign() {
        let (_folder, path, text) = written();
        for length in [0, 1, text.len() / 3, text.len() / 2, text.trim_end().len() - 1] {
            std::fs::write(&path, &text.as_bytes()[..length]).unwrap();
            let error = Results::from_ranks_file(&path, Scale::Quick).unwrap_err();
            let told = error.to_string();
            assert!(matches!(error, RanksFileError::Foreign { .. }), "{length}: {told}");
            assert!(told.contains("ranks.json: it is cut, or holds no results over ranks: "), "{told}");
        }
        let without = json!({"schema": SCHEMA, "setting": setting(Scale::Quick), "experiments": 3});
        std::fs::write(&path, without.to_string()).unwrap();
        let error = Results::from_ranks_file(&path, Scale::Quick).unwrap_err();
        assert!(error.to_string().ends_with("there are no experiments in it"), "{error}");
    }

    #[test]
    fn another_setting_is_named() {
        let (_folder, path, text) = written();
        let told = |text: &str, scale| {
            std::fs::write(&path, text).unwrap();
            Results::from_ranks_file(&path, scale).unwrap_err().to_string()
        };
        let schema = text.replace("\"schema\": 2", "\"schema\": 3");
        assert!(told(&schema, Scale::Quick).ends_with("ranks.json: its schema is 3, not 2"));
        assert!(told("{}", Scale::Quick).ends_with("ranks.json: its schema is missing, not 2"));
        assert!(told(&text, Scale::Full).ends_with("ranks.json: its scale is \"quick\", not \"full\""));
        let older = text.replace(env!("CARGO_PKG_VERSION"), "0.0.1");
        assert!(told(&older, Scale::Quick).contains("its program is \"blocktri-mpi 0.0.1\", not \"blocktri-mpi "));
    }
}
