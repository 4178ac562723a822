//! `cargo xtask docs --check` and `--write`: README.md and the book show what the programs print.
//!
//! The commands of a page run one after the other in a folder of their own that holds `examples/data` and the page's files, on two
//! threads, as they were built for tests. A picture of the book that lies beside its page must be one that these commands write.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::blocks::{self, Page};
use super::compare;
use crate::process::{Context, Failure, Result, blocktri, root};

/// Pages: this one, and those of these folders.
const README: &str = "README.md";
const FOLDERS: [&str; 3] = ["docs", "docs/src", "docs/adr"];
/// Lines are broken at this width.
const WIDTH: usize = 118;
/// Where the text of a report's line begins.
const TEXT: usize = 21;

/// What becomes of a block that differs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It is a failure.
    Check,
    /// It is written anew.
    Write,
}

/// Checks or writes all pages with the programs of a target folder (`target/debug`).
pub(super) fn run(mode: Mode, programs: &Path) -> Result<()> {
    let root = root();
    let mut pages = vec![PathBuf::from(README)];
    for folder in FOLDERS {
        let mut names = Vec::new();
        for entry in fs::read_dir(root.join(folder)).context(folder)? {
            names.push(Path::new(folder).join(entry.context(folder)?.file_name()));
        }
        names.retain(|name| name.extension().is_some_and(|e| e == "md"));
        names.sort();
        pages.append(&mut names);
    }
    let (mut count, mut wrong) = (0, Vec::new());
    for name in &pages {
        let text = fs::read_to_string(root.join(name)).context(name.display())?;
        let place = |Failure(why): Failure| Failure(format!("{}:{why}", name.display()));
        let page = Page::read(&text).map_err(place)?;
        let pictures = blocks::pictures(&text);
        if page.shown.is_empty() && pictures.is_empty() {
            continue;
        }
        let sandbox = Sandbox::new(&root, &page)?;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut replaced = Vec::new();
        for shown in &page.shown {
            count += 1;
            let printed = sandbox.run(&shown.command, programs)?;
            let block = &lines[shown.lines.clone()];
            if compare::agrees(block, &printed) {
                continue;
            }
            let new = compare::refreshed(block, &printed);
            if new.iter().all(|l| compare::is_gap(l)) {
                return Err(Failure(format!(
                    "{}:{}: `{}` prints none of these lines any longer; write the block by hand",
                    name.display(),
                    shown.lines.start + 1,
                    shown.command
                )));
            }
            println!("{}:{}: $ {}", name.display(), shown.lines.start + 1, shown.command);
            block.iter().filter(|l| !new.contains(l)).for_each(|l| println!("- {l}"));
            new.iter().filter(|l| !block.contains(l)).for_each(|l| println!("+ {l}"));
            wrong.push(format!("{}:{}", name.display(), shown.lines.start + 1));
            replaced.push((shown.lines.clone(), new));
        }
        if mode == Mode::Write && !replaced.is_empty() {
            for (range, new) in replaced.into_iter().rev() {
                lines.splice(range, new);
            }
            fs::write(root.join(name), lines.join("\n") + "\n").context(name.display())?;
        }
        for picture in pictures {
            let shown = root.join(name).with_file_name(&picture);
            if !sandbox.picture_agrees(&shown, &picture, mode)? {
                wrong.push(shown.strip_prefix(&root).unwrap_or(&shown).display().to_string());
            }
        }
    }
    match (mode, wrong.len()) {
        (_, 0) => println!("docs: {count} blocks of {} pages show what the programs print", pages.len()),
        (Mode::Write, n) => println!("docs: {n} of {count} blocks and pictures written: {}", wrong.join(", ")),
        (Mode::Check, n) => {
            let which = wrong.join(", ");
            return Err(Failure(format!(
                "{n} blocks or pictures differ from what the programs print: {which}; `cargo xtask docs --write` writes them"
            )));
        }
    }
    Ok(())
}

/// A folder where the commands of a page run.
struct Sandbox(tempfile::TempDir);

impl Sandbox {
    fn new(root: &Path, page: &Page) -> Result<Self> {
        let folder = tempfile::tempdir().context("a temporary folder")?;
        let data = Path::new("examples/data");
        fs::create_dir_all(folder.path().join(data)).context(data.display())?;
        for entry in fs::read_dir(root.join(data)).context(data.display())? {
            let name = data.join(entry.context(data.display())?.file_name());
            fs::copy(root.join(&name), folder.path().join(&name)).context(name.display())?;
        }
        for (name, text) in &page.files {
            fs::write(folder.path().join(name), text).context(name)?;
        }
        Ok(Self(folder))
    }

    /// Lines that a command prints, stderr last.
    fn run(&self, command: &str, programs: &Path) -> Result<Vec<String>> {
        let words: Vec<&str> = command.split_whitespace().collect();
        let (program, args) = match words.as_slice() {
            ["blocktri", args @ ..] | ["cargo", "run", "--release", "--", args @ ..] => {
                (PathBuf::from("blocktri"), args)
            }
            ["cargo", "run", "-p", "blocktri", "--example", name, args @ ..] => {
                (Path::new("examples").join(name), args)
            }
            _ => return Err(Failure(format!("`{command}` is neither blocktri nor an example of the crate blocktri"))),
        };
        let program = programs.join(program).with_extension(std::env::consts::EXE_EXTENSION);
        let mut process = blocktri(&program);
        process.args(args).current_dir(self.0.path()).env("RAYON_NUM_THREADS", "2");
        let done = process.output().context(program.display())?;
        if done.status.code().is_none_or(|code| code == 101) {
            let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
            return Err(Failure(format!("`{command}`: {}: {stderr}", done.status)));
        }
        let stdout = String::from_utf8_lossy(&done.stdout);
        let stdout = match serde_json::from_str::<Value>(&stdout) {
            // An object in one long line is shown with a line for each of its fields.
            Ok(object @ Value::Object(_)) => format!("{object:#}\n"),
            _ => stdout.into_owned(),
        };
        let text = stdout + &String::from_utf8_lossy(&done.stderr);
        Ok(text.trim_end().lines().flat_map(wrapped).collect())
    }

    /// Whether a picture is the one that the commands wrote; [`Mode::Write`] makes it so.
    fn picture_agrees(&self, shown: &Path, name: &str, mode: Mode) -> Result<bool> {
        let made = fs::read_to_string(self.0.path().join(name))
            .map_err(|_| Failure(format!("{}: no command of its page writes this picture", shown.display())))?;
        let old = fs::read_to_string(shown).unwrap_or_default();
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        if compare::agrees(&lines(&old), &lines(&made)) {
            return Ok(true);
        }
        if mode == Mode::Write {
            fs::write(shown, made).context(shown.display())?;
        }
        Ok(false)
    }
}

/// A line broken at spaces; what follows stands below the text of a report's line.
fn wrapped(line: &str) -> Vec<String> {
    let indent = if line.starts_with("  ") { TEXT } else { 4 };
    let mut lines = Vec::new();
    let mut rest = line.trim_end().to_owned();
    while let Some((end, _)) = rest.char_indices().nth(WIDTH) {
        let words = rest.len() - rest.trim_start().len();
        let Some(space) = rest[..end].rfind(' ').filter(|&s| s > words.max(indent)) else { break };
        let tail = rest.split_off(space);
        lines.push(rest);
        rest = " ".repeat(indent) + tail.trim_start();
    }
    lines.push(rest);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_below_their_text() {
        let line = format!("  note               {}", "word ".repeat(40));
        let lines = wrapped(&line);
        assert_eq!(lines.len(), 3);
        assert!(
            lines.iter().all(|l| l.chars().count() <= WIDTH)
                && lines[1].starts_with(&format!("{}word", " ".repeat(TEXT)))
        );
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&lines.join(" ")), words(&line));
        assert_eq!(wrapped(&"x".repeat(300)), ["x".repeat(300)]);
        assert_eq!(wrapped(""), [""]);
    }

    #[test]
    fn other_programs_are_not_run() {
        let sandbox = Sandbox::new(&root(), &Page::default()).unwrap();
        assert!(sandbox.run("rm -r x", Path::new("target/debug")).is_err());
    }
}
