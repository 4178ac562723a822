//! Blocks of a Markdown file that show what a program prints.
//!
//! ~~~text
//! <!-- output of: blocktri solve a.mtx -->     the block after it shows what this command prints
//! $ blocktri solve a.mtx                       inside a block: what follows, up to the next prompt, is its output
//! <!-- not checked: why -->                    the block after it is not a program's, or depends on the machine
//! <!-- file a.mtx                              the commands of this page find such a file; its lines follow
//! %%MatrixMarket …
//! -->
//! ~~~
//!
//! Every block whose language is `text` must be one of the first three.

use std::ops::Range;
use std::path::Path;

use crate::process::{Failure, Result};

/// A page, cut into lines.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// Files that its commands read.
    pub files: Vec<(String, String)>,
    /// In reading order.
    pub shown: Vec<Shown>,
}

/// A command, and where the page shows its output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// As it was typed, in one line.
    pub command: String,
    /// Lines of the page, from 0; empty where the page shows none.
    pub lines: Range<usize>,
}

const PROMPT: &str = "$ ";

impl Page {
    /// Reads a page.
    ///
    /// # Errors
    /// With the number of the line, where a block says nothing of its origin or has no end.
    pub(super) fn read(text: &str) -> Result<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let mut page = Self::default();
        let mut origin = None;
        let mut i = 0;
        while i < lines.len() {
            let line = lines[i].trim();
            if let Some(name) = line.strip_prefix("<!-- file ") {
                let end = find(&lines, i + 1, "-->")?;
                page.files.push((name.trim().to_owned(), lines[i + 1..end].join("\n") + "\n"));
                i = end;
            } else if let Some(comment) = line.strip_prefix("<!-- ").and_then(|c| c.strip_suffix(" -->")) {
                origin = Some(comment);
            } else if let Some(language) = line.strip_prefix("```") {
                let end = find(&lines, i + 1, "```")?;
                if language == "text" {
                    page.block(&lines, i + 1..end, origin)?;
                }
                (i, origin) = (end, None);
            } else if !line.is_empty() {
                origin = None;
            }
            i += 1;
        }
        Ok(page)
    }

    fn block(&mut self, lines: &[&str], block: Range<usize>, origin: Option<&str>) -> Result<()> {
        if let Some(command) = origin.and_then(|o| o.strip_prefix("output of: ")) {
            self.shown.push(Shown { command: command.trim().to_owned(), lines: block });
        } else if origin.is_some_and(|o| o.starts_with("not checked: ")) {
        } else if lines[block.clone()].first().is_some_and(|l| l.starts_with(PROMPT)) {
            let mut i = block.start;
            while i < block.end {
                let mut command = lines[i].trim_start_matches(PROMPT).to_owned();
                while command.ends_with('\\') && i + 1 < block.end {
                    i += 1;
                    command.truncate(command.len() - 1);
                    command += lines[i].trim();
                }
                let start = i + 1;
                i = (start..block.end).find(|&k| lines[k].starts_with(PROMPT)).unwrap_or(block.end);
                self.shown.push(Shown { command, lines: start..i });
            }
        } else {
            return Err(Failure(format!(
                "{}: a block of text begins neither with a command after \"$ \" nor after a line \
                 <!-- output of: COMMAND --> or <!-- not checked: WHY -->",
                block.start
            )));
        }
        Ok(())
    }
}

/// The next line that is `what`.
fn find(lines: &[&str], from: usize, what: &str) -> Result<usize> {
    (from..lines.len())
        .find(|&k| lines[k].trim() == what)
        .ok_or_else(|| Failure(format!("{from}: what begins here has no line \"{what}\" at its end")))
}

/// Pictures that a page shows: `![…](NAME.svg)`, files beside it.
pub(super) fn pictures(text: &str) -> Vec<String> {
    let names = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let beside = |name: &&str| !name.contains('/') && Path::new(name).extension().is_some_and(|e| e == "svg");
    names.filter(beside).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(String, Range<usize>)> {
        Page::read(text).unwrap().shown.into_iter().map(|s| (s.command, s.lines)).collect()
    }

    #[test]
    fn a_comment_and_a_prompt_name_commands() {
        let marked = "words\n<!-- output of: blocktri info a.mtx -->\n```text\na\nb\n```\n";
        assert_eq!(shown(marked), [("blocktri info a.mtx".into(), 3..5)]);
        let session = "```text\n$ blocktri solve \\\n    a.mtx\nx\n$ blocktri man\n```\n";
        assert_eq!(shown(session), [("blocktri solve a.mtx".into(), 3..4), ("blocktri man".into(), 5..5)]);
        assert!(shown("```sh\nblocktri solve a.mtx\n```\n").is_empty());
        assert!(shown("<!-- not checked: a drawing -->\n```text\n+--+\n```\n").is_empty());
    }

    #[test]
    fn a_block_without_origin_is_refused_by_its_line() {
        for (text, line) in [
            ("a\n```text\nb\n```\n", "2:"),
            ("<!-- output of: x -->\nother words\n```text\nb\n```\n", "3:"),
            ("```text\nb\n", "1:"),
        ] {
            let Failure(why) = Page::read(text).unwrap_err();
            assert!(why.starts_with(line), "{why}");
        }
    }

    #[test]
    fn files_and_pictures_are_found() {
        let page = Page::read("<!-- file a.mtx\n1\n2\n-->\n").unwrap();
        assert_eq!(page.files, [("a.mtx".to_owned(), "1\n2\n".to_owned())]);
        assert_eq!(pictures("![a](b.svg) [c](d.md) ![e](f/g.svg)"), ["b.svg"]);
    }
}
