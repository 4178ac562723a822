//! Places of a skeleton that are not filled in: `TODO(NAME)`, as `cargo xtask new-method` leaves them.

use std::fs;
use std::path::Path;

use super::Violation;
use crate::process::{Context, Result};

const MARK: &str = "TODO(";

/// All Rust files of the crates.
pub(super) fn check(root: &Path, files: &[String]) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|f| f.starts_with("crates/") && Path::new(f).extension().is_some_and(|e| e == "rs"))
    {
        let text = fs::read_to_string(root.join(file)).context(file)?;
        violations.extend(left(&text).map(|reason| Violation { file: file.clone(), reason }));
    }
    Ok(violations)
}

/// How much is left, with the first place.
fn left(text: &str) -> Option<String> {
    let mut marked = text.lines().enumerate().filter(|(_, line)| line.contains(MARK));
    let (line, place) = marked.next()?;
    let name = place.split(MARK).nth(1)?.split(')').next()?;
    Some(format!("TODO({name}) is left in {} lines, the first is {}: fill them in", 1 + marked.count(), line + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_counted_and_named() {
        assert_eq!(left("fn f() {}\n// to do (later)\n"), None);
        let told = left("//! A.\n//! TODO(band-qr): source\n\n// TODO(band-qr): cost\n").unwrap();
        assert!(told.starts_with("TODO(band-qr) is left in 2 lines, the first is 2:"), "{told}");
    }

    #[test]
    fn only_sources_of_crates_are_read() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("crates/a/src")).unwrap();
        fs::create_dir_all(root.path().join("xtask")).unwrap();
        let files = ["crates/a/src/b.rs", "crates/a/README.md", "xtask/c.rs"].map(str::to_owned);
        for file in &files {
            fs::write(root.path().join(file), "TODO(x): all").unwrap();
        }
        let found: Vec<String> = check(root.path(), &files).unwrap().into_iter().map(|v| v.file).collect();
        assert_eq!(found, ["crates/a/src/b.rs"]);
    }
}
