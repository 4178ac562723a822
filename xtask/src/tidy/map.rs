//! Files, their headers, and the code map of ARCHITECTURE.md.
//!
//! The map owns a file when a path in backticks names it or a folder above it. A path stands either from the root
//! (`` `xtask/src/tidy` ``) or, under a heading that holds a folder in backticks, from that folder: under
//! "### `crates/bt-direct/src`" the item "- `thomas.rs`: …" owns crates/bt-direct/src/thomas.rs. A folder that is
//! itself a source root (crates/NAME/src, xtask/src) is too coarse to own anything.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;

use cargo_metadata::Metadata;

use super::Violation;
use crate::process::{Context, Result};

/// Folders whose files need an owner: every crate's sources, and these.
const OWNED: [&str; 4] = ["xtask", "benches", "kernels", "docs"];

/// All files of the workspace, relative to the root with `/`, without build outputs and hidden folders.
pub(super) fn workspace_files(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    collect(root, "", &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(root: &Path, folder: &str, files: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder)).context(folder)? {
        let entry = entry.context(folder)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        let kind = entry.file_type().context(&path)?;
        if kind.is_dir() {
            collect(root, &path, files)?;
        } else if kind.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// Every Rust file opens with an inner documentation comment.
pub(super) fn check_headers(root: &Path, files: &[String]) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|f| Path::new(f).extension().is_some_and(|e| e == "rs")) {
        let mut first = String::new();
        BufReader::new(fs::File::open(root.join(file)).context(file)?).read_line(&mut first).context(file)?;
        if first.strip_prefix("//!").is_none_or(|header| header.trim().is_empty()) {
            violations.push(Violation {
                file: file.clone(),
                reason: "opens without a `//!` header that says what the file is".into(),
            });
        }
    }
    Ok(violations)
}

/// Every crate is named in backticks.
pub(super) fn check_crates(metadata: &Metadata, architecture: &str) -> Vec<Violation> {
    let packages = metadata.workspace_packages().into_iter();
    packages
        .filter(|p| !architecture.contains(&format!("`{}`", p.name)))
        .map(|p| Violation { file: "ARCHITECTURE.md".into(), reason: format!("does not name the crate `{}`", p.name) })
        .collect()
}

/// Every source file has an owner in the map, and the map names nothing that is not there.
pub(super) fn check_owners(files: &[String], architecture: &str) -> Vec<Violation> {
    let paths = mapped_paths(architecture);
    let owns =
        |path: &str, file: &str| file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let mut violations = Vec::new();
    for file in files.iter().filter(|f| needs_owner(f)) {
        if !paths.iter().any(|p| !is_source_root(p) && owns(p, file)) {
            let reason = "has no owner: give it a line in the code map of ARCHITECTURE.md".into();
            violations.push(Violation { file: file.clone(), reason });
        }
    }
    for path in paths.iter().filter(|p| !files.iter().any(|f| owns(p, f))) {
        let reason = format!("names `{path}`, which is not there");
        violations.push(Violation { file: "ARCHITECTURE.md".into(), reason });
    }
    violations
}

fn needs_owner(file: &str) -> bool {
    let mut parts = file.split('/');
    match parts.next() {
        Some("crates") => parts.nth(1) == Some("src"),
        Some(top) => OWNED.contains(&top) && parts.next().is_some(),
        None => false,
    }
}

/// Folders that hold a whole crate or area, too coarse to own a file.
fn is_source_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], [_] | ["crates", _] | ["crates", _, "src"] | ["xtask" | "benches", "src"])
}

/// Paths from the root that the map names: in headings, and at the start of list items up to the first colon.
fn mapped_paths(architecture: &str) -> BTreeSet<String> {
    let mut base = "";
    let mut paths = BTreeSet::new();
    for line in architecture.lines() {
        if line.starts_with('#') {
            base = backticked(line)
                .find(|p| p.contains('/') || OWNED.contains(p))
                .unwrap_or_default()
                .trim_end_matches('/');
            if !base.is_empty() {
                paths.insert(base.to_owned());
            }
        } else if let Some(item) = line.trim_start().strip_prefix("- `") {
            let names = item.split(": ").next().unwrap_or_default();
            for name in backticked(&format!("`{names}")) {
                let name = name.trim_end_matches('/');
                if !base.is_empty() {
                    paths.insert(format!("{base}/{name}"));
                } else if name.contains('/') {
                    paths.insert(name.to_owned());
                }
            }
        }
    }
    paths
}

/// The texts between backticks of one line.
fn backticked(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "\
# Architecture
- `xtask/src/tidy`: rules
## `crates/bt-direct/src`
- `thomas.rs`, `band_lu.rs`: solvers, see `nowhere.rs`
- `spike/`: a folder
### `benches`
- `benches`: one folder of that name in the other
## Elsewhere
- `plain`: a word, not a path
";

    fn check(files: &[&str]) -> Vec<String> {
        let files: Vec<String> = files.iter().map(|f| (*f).to_owned()).collect();
        check_owners(&files, MAP).into_iter().map(|v| format!("{}: {}", v.file, v.reason)).collect()
    }

    const ALL: [&str; 5] = [
        "crates/bt-direct/src/thomas.rs",
        "crates/bt-direct/src/band_lu.rs",
        "crates/bt-direct/src/spike/mod.rs",
        "xtask/src/tidy/map.rs",
        "benches/benches/spmv.rs",
    ];

    #[test]
    fn a_complete_map_passes() {
        assert_eq!(check(&ALL), Vec::<String>::new());
    }

    #[test]
    fn files_without_owner_are_named() {
        let stray = ["crates/bt-direct/src/stray.rs", "docs/stray.md", "crates/bt-direct/tests/free.rs", "README.md"];
        let found = check(&[&ALL[..], &stray].concat());
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/bt-direct/src/stray.rs: has no owner"));
        assert!(found[1].starts_with("docs/stray.md"));
    }

    #[test]
    fn a_name_is_not_a_prefix_of_a_longer_name() {
        let found = check(&[&ALL[..], &["crates/bt-direct/src/thomas.rs.bak"]].concat());
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn paths_that_rotted_are_named() {
        assert_eq!(check(&ALL[1..]), ["ARCHITECTURE.md: names `crates/bt-direct/src/thomas.rs`, which is not there"]);
    }
}
