//! Indexes: which systems a folder holds, and what is known about each.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Context, Failure, Result};

/// A system of the corpus.
#[derive(Debug, PartialEq)]
pub(super) struct System {
    /// Name in the index.
    pub name: String,
    /// Matrix file.
    pub matrix: PathBuf,
    /// Right-hand side, where one is shipped.
    pub rhs: Option<PathBuf>,
    /// Reference solution for that right-hand side.
    pub reference: Option<PathBuf>,
    /// Block sizes.
    pub blocks: Option<PathBuf>,
    /// Condition number, in the 2-norm if the index has it, else the estimate in the 1-norm.
    pub condition: Option<f64>,
    /// Whether the index says that the matrix is singular.
    pub singular: bool,
}

impl System {
    /// 10·cond·2⁻⁵³: what a backward stable method may lose.
    pub fn forward_error_bound(&self) -> Option<f64> {
        self.condition.filter(|c| c.is_finite()).map(|c| 10.0 * c * (-53f64).exp2())
    }
}

/// Folders, this one and those in it, whose index has all of these columns.
pub(super) fn folders_with(dir: &Path, columns: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in std::iter::once(dir.to_owned()).chain(subfolders(dir)?) {
        let index = folder.join("index.csv");
        if index.is_file() {
            let mut reader = csv::Reader::from_path(&index).context(index.display())?;
            let headers = reader.headers().context(index.display())?;
            if columns.iter().all(|column| headers.iter().any(|h| h == *column)) {
                found.push(folder);
            }
        }
    }
    Ok(found)
}

/// Systems of the folder's index and of those of its subfolders. A folder without one is looked up in its parent's.
pub(super) fn read(dir: &Path) -> Result<Vec<System>> {
    let mut systems = Vec::new();
    let own = dir.join("index.csv");
    if own.is_file() {
        systems.extend(read_index(&own)?);
    } else if let Some(parent) = dir.canonicalize().context(dir.display())?.parent() {
        let above = parent.join("index.csv");
        if !above.is_file() {
            return Err(Failure(format!("{}: no index.csv here or above", dir.display())));
        }
        let here = dir.canonicalize().context(dir.display())?;
        systems.extend(read_index(&above)?.into_iter().filter(|s| s.matrix.starts_with(&here)));
    }
    for folder in subfolders(dir)? {
        let index = folder.join("index.csv");
        if index.is_file() {
            systems.extend(read_index(&index)?);
        }
    }
    Ok(systems)
}

/// Systems of one index; none when it lists something else (it then has no condition numbers).
fn read_index(index: &Path) -> Result<Vec<System>> {
    let folder = index.parent().unwrap_or(Path::new("."));
    let mut reader = csv::Reader::from_path(index).context(index.display())?;
    let columns = reader.headers().context(index.display())?.clone();
    let has = |name: &str| columns.iter().any(|c| c == name);
    if !has("name") || !(has("cond2") || has("cond1_est")) {
        return Ok(Vec::new());
    }
    let mut systems = Vec::new();
    for record in reader.deserialize::<HashMap<String, String>>() {
        let row = record.context(index.display())?;
        let system = system(folder, &row);
        if !system.matrix.is_file() {
            let matrix = system.matrix.display();
            return Err(Failure(format!("{}: lists {matrix}, which is not there", index.display())));
        }
        systems.push(system);
    }
    Ok(systems)
}

/// The rows of the folder's index.csv by column.
pub(super) fn records(dir: &Path) -> Result<Vec<HashMap<String, String>>> {
    let index = dir.join("index.csv");
    let mut reader = csv::Reader::from_path(&index).context(index.display())?;
    reader.deserialize().map(|record| record.context(index.display())).collect()
}

fn system(folder: &Path, row: &HashMap<String, String>) -> System {
    let field = |column: &str| row.get(column).map(|v| v.trim()).filter(|v| !v.is_empty());
    let name = field("name").unwrap_or_default().to_owned();
    let named = |column: &str| field(column).map(|f| folder.join(f));
    let beside = |suffix: &str| Some(folder.join(format!("{name}{suffix}"))).filter(|f| f.is_file());
    let condition = |column: &str| field(column).and_then(|v| v.parse::<f64>().ok());
    let number = |column: &str| field(column).and_then(|v| v.parse::<usize>().ok());
    let rank_deficient = number("struct_rank").zip(number("n")).is_some_and(|(rank, n)| rank < n);
    System {
        matrix: named("file").unwrap_or_else(|| folder.join(format!("{name}.mtx"))),
        rhs: named("rhs_file").or_else(|| beside("_b.mtx")),
        reference: named("xref_file").or_else(|| beside("_xref.mtx")),
        blocks: beside(".blocks"),
        condition: condition("cond2").or_else(|| condition("cond1_est")),
        singular: rank_deficient
            || field("singular_info").is_some()
            || field("expect").is_some_and(|e| e.starts_with("must report singular")),
        name,
    }
}

/// All .mtx files below a folder, sorted.
pub(super) fn matrix_files(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let mut here = Vec::new();
    for entry in fs::read_dir(dir).context(dir.display())? {
        here.push(entry.context(dir.display())?.path());
    }
    here.sort();
    for path in here {
        if path.is_dir() {
            matrix_files(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "mtx") {
            files.push(path);
        }
    }
    Ok(())
}

/// Whether a file is a vector beside a matrix, by its name.
pub(super) fn is_vector(file: &Path) -> bool {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    ["_b", "_xref", "_pi"].iter().any(|suffix| stem.ends_with(suffix))
}

fn subfolders(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(dir).context(dir.display())? {
        let path = entry.context(dir.display())?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fields: &[(&str, &str)]) -> System {
        system(
            Path::new("d"),
            &fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<HashMap<_, _>>(),
        )
    }

    #[test]
    fn condition_and_singularity() {
        let s = row(&[("name", "a"), ("cond1_est", "4e3"), ("cond2", ""), ("singular_info", ""), ("expect", "")]);
        assert_eq!((s.condition, s.singular, s.matrix), (Some(4e3), false, PathBuf::from("d/a.mtx")));
        assert!(row(&[("name", "a"), ("singular_info", "exactly singular")]).singular);
        assert!(row(&[("name", "a"), ("n", "3"), ("struct_rank", "2")]).singular);
        assert!(row(&[("name", "a"), ("expect", "must report singular")]).singular);
        let pivoting = "block Thomas must not trust the result: pivot across blocks or report singular block";
        assert!(!row(&[("name", "a"), ("expect", pivoting)]).singular);
    }

    #[test]
    fn bound_follows_the_condition() {
        let bound = row(&[("name", "a"), ("cond2", "8"), ("cond1_est", "9")]).forward_error_bound().unwrap();
        assert_eq!(bound, 80.0 / 2f64.powi(53));
        assert_eq!(row(&[("name", "a"), ("cond2", "inf")]).forward_error_bound(), None);
    }
}
