//! `cargo xtask performance`: the tables of docs/performance.md from what was measured.
//!
//! Each JSON file under benches/results is one run on one machine; [`results`] says what is in it. A table stands between
//! `<!-- performance: bands -->` and `<!-- end -->`; the page keeps its words around them. With `--collect` the
//! lines that the harness and its peers print become such a file.

mod capability;
mod collect;
mod page;
mod results;
mod table;

use std::fs;
use std::path::Path;

use clap::Args;

use crate::process::{Context, Failure, Result, root};
use results::Source;

/// Options of the chore.
#[derive(Args)]
pub struct Options {
    /// Write nothing: fail where docs/performance.md shows other tables than benches/results has
    #[arg(long, conflicts_with = "collect")]
    check: bool,
    #[command(flatten)]
    collect: collect::Collection,
}

/// The page, from the root.
pub const PAGE: &str = "docs/performance.md";
/// Where the results are, from the root.
const RESULTS: &str = "benches/results";

/// Writes the tables, checks them, or makes a file of results.
///
/// # Errors
/// Where a file cannot be read, the page is too long or has no place for a table, and with `--check` where it differs.
pub fn run(options: &Options) -> Result<()> {
    let root = root();
    if options.check {
        return check(&root).map_err(|Failure(why)| Failure(format!("{PAGE}: {why}")));
    }
    if options.collect.is_asked_for() {
        return options.collect.run(&root.join(RESULTS));
    }
    let (old, new) = pages(&root).map_err(|Failure(why)| Failure(format!("{PAGE}: {why}")))?;
    if old == new {
        println!("{PAGE}: nothing to write");
        return Ok(());
    }
    fs::write(root.join(PAGE), new).context(PAGE)?;
    println!("{PAGE}: written");
    Ok(())
}

/// Fails where the page differs from the results.
///
/// # Errors
/// As [`run`] with `--check`.
pub fn check(root: &Path) -> Result<()> {
    let (old, new) = pages(root)?;
    page::same(&old, &new)
}

/// The page as it is and as it should be.
fn pages(root: &Path) -> Result<(String, String)> {
    let old = fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let sources = sources(&root.join(RESULTS))?;
    let new = page::filled(&old, &sources)?;
    Ok((old, new))
}

/// All results, by the names of their files.
fn sources(folder: &Path) -> Result<Vec<Source>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).context(folder.display())? {
        let name = entry.context(folder.display())?.file_name().to_string_lossy().into_owned();
        if Path::new(&name).extension().is_some_and(|e| e == "json") {
            names.push(name);
        }
    }
    names.sort();
    let read = |name: &String| Source::read(name, &fs::read_to_string(folder.join(name)).context(name)?);
    names.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[test]
    fn options_go_together() {
        crate::Args::command().debug_assert();
        let given = |line: &str| crate::Args::try_parse_from(line.split(' ')).is_ok();
        assert!(given("xtask performance --collect a.jsonl b.jsonl --name a --command c"));
        assert!(!given("xtask performance --collect a.jsonl --name a"));
        assert!(!given("xtask performance --check --collect a.jsonl --name a --command c"));
    }

    #[test]
    fn files_are_read_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.json", "a.json", "README.md"] {
            fs::write(folder.path().join(name), r#"{"about": {"commit": "c", "date": "2026-11-26"}, "rows": []}"#)
                .unwrap();
        }
        let names: Vec<String> = sources(folder.path()).unwrap().into_iter().map(|s| s.file).collect();
        assert_eq!(names, ["a.json", "b.json"]);
        fs::write(folder.path().join("c.json"), "{}").unwrap();
        let Failure(why) = sources(folder.path()).err().unwrap();
        assert!(why.starts_with("c.json:"), "{why}");
    }

    #[test]
    fn the_page_is_checked_where_it_lies() {
        let root = tempfile::tempdir().unwrap();
        let page = root.path().join(PAGE);
        let results = root.path().join(RESULTS);
        fs::create_dir_all(page.parent().unwrap()).unwrap();
        fs::create_dir_all(&results).unwrap();
        fs::write(&page, "# Performance\n\n<!-- performance: bands -->\nold\n<!-- end -->\n").unwrap();
        let Failure(why) = check(root.path()).unwrap_err();
        assert!(why.starts_with("line 4:"), "{why}");
        let (_, new) = pages(root.path()).unwrap();
        fs::write(&page, new).unwrap();
        assert!(check(root.path()).is_ok());
    }
}
