//! The page: words, and between markers the tables.

use super::capability::{ALL, Capability};
use super::results::Source;
use super::table;
use crate::process::{Failure, Result};

const BEGIN: &str = "<!-- performance: ";
const END: &str = "<!-- end -->";
/// Bytes: what takes longer to read is an argument, and belongs in a record.
const LONGEST: usize = 8000;

/// The page with the tables that `sources` have.
///
/// # Errors
/// Where a marker names no capability or has no end, where a table has no place, and where the page is too long.
pub(super) fn filled(page: &str, sources: &[Source]) -> Result<String> {
    let mut text = String::with_capacity(page.len());
    let mut places: Vec<&'static Capability> = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        text += line;
        text.push('\n');
        let Some(named) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let mut words = named.split_whitespace();
        let name = words.next().unwrap_or_default();
        let capability = Capability::find(name).ok_or_else(|| {
            let known: Vec<&str> = ALL.iter().map(|c| c.name).collect();
            Failure(format!("line {}: no capability \"{name}\"; there are {}", at + 1, known.join(", ")))
        })?;
        if places.contains(&capability) {
            return Err(Failure(format!("line {}: \"{name}\" has a second place", at + 1)));
        }
        places.push(capability);
        let ends = lines.by_ref().map(|(_, line)| line).find(|line| *line == END || line.starts_with(BEGIN));
        if ends != Some(END) {
            return Err(Failure(format!("line {}: no line \"{END}\" after it", at + 1)));
        }
        let cases: Vec<&str> = words.collect();
        let section = table::section(capability, &cases, sources);
        if section.is_empty() && !table::section(capability, &[], sources).is_empty() {
            return Err(Failure(format!("line {}: no results of {}", at + 1, cases.join(", "))));
        }
        if !section.is_empty() {
            // Markdown ends a comment of HTML at an empty line.
            text.extend(["\n", &section, "\n"]);
        }
        text.extend([END, "\n"]);
    }
    for capability in ALL {
        if !places.contains(&capability) && !table::section(capability, &[], sources).is_empty() {
            return Err(Failure(format!("has no line \"{BEGIN}{} -->\", and there are results", capability.name)));
        }
    }
    if text.len() > LONGEST {
        let why = format!(
            "{} bytes, and at most {LONGEST} are read: name cases in a marker, \"{BEGIN}bands b1-8 b1-32 -->\", or move an argument to docs/adr",
            text.len()
        );
        return Err(Failure(why));
    }
    Ok(text)
}

/// Fails at the first line in which the page differs from what it should be.
///
/// # Errors
/// With the number of the line.
pub(super) fn same(old: &str, new: &str) -> Result<()> {
    if old == new {
        return Ok(());
    }
    let at = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
    Err(Failure(format!("line {}: differs from what benches/results has: cargo xtask performance writes it", at + 1)))
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{row, source};
    use super::*;

    fn results() -> [Source; 1] {
        [source("a.json", "2026-11-26", vec![row("b1-8", "blocktri-band-lu", 4.8), row("b1-8", "mkl-gbtrf", 12.0)])]
    }

    const PAGE: &str = "# Performance\n\nWords.\n\n<!-- performance: bands -->\nold\n<!-- end -->\n\nMore words.\n";

    #[test]
    fn words_are_kept_and_tables_written() {
        let new = filled(PAGE, &results()).unwrap();
        assert!(new.starts_with("# Performance\n\nWords.\n\n<!-- performance: bands -->\n\n## Bands\n"));
        assert!(new.ends_with("b1-8 | 4.8 | 12 | 2.5\n\n<!-- end -->\n\nMore words.\n"), "{new}");
        assert!(!new.contains("old"));
        assert_eq!(filled(&new, &results()).unwrap(), new);
        assert!(same(&new, &new).is_ok());
        assert!(same(PAGE, &new).unwrap_err().0.starts_with("line 6:"));
    }

    #[test]
    fn a_capability_without_data_has_no_table() {
        let new = filled(PAGE, &[]).unwrap();
        assert!(new.contains("bands -->\n<!-- end -->\n"), "{new}");
    }

    #[test]
    fn places_that_are_wrong_are_refused() {
        for (page, says) in [
            ("<!-- performance: bnads -->\n<!-- end -->\n", "line 1: no capability \"bnads\""),
            ("\n<!-- performance: bands -->\n", "line 2: no line \"<!-- end -->\""),
            ("<!-- performance: bands -->\n<!-- performance: blocks -->\n<!-- end -->\n", "line 1: no line"),
            ("no markers\n", "and there are results"),
            ("<!-- performance: bands b1-9 -->\n<!-- end -->\n", "line 1: no results of b1-9"),
        ] {
            let Failure(why) = filled(page, &results()).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
        let twice = PAGE.repeat(2);
        assert!(filled(&twice, &results()).unwrap_err().0.contains("second place"));
    }

    #[test]
    fn a_long_page_is_refused() {
        let page = |words: usize| PAGE.replace("Words.", &"w".repeat(words));
        let room = LONGEST - filled(&page(0), &results()).unwrap().len();
        assert_eq!(filled(&page(room), &results()).unwrap().len(), LONGEST);
        let Failure(why) = filled(&page(room + 1), &results()).unwrap_err();
        assert!(why.starts_with("8001 bytes"), "{why}");
    }
}
