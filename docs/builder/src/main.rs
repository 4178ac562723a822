//! Builds an mdBook: `builder BOOK OUTPUT`, paths from the current folder.
//!
//! A package of its own with its own lock file: mdBook's dependencies stay out of the workspace.

use std::path::PathBuf;
use std::process::ExitCode;

use mdbook_driver::MDBook;

fn main() -> ExitCode {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [book, output] = paths.as_slice() else {
        eprintln!("usage: builder BOOK OUTPUT");
        return ExitCode::from(2);
    };
    match build(book, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn build(book: &PathBuf, output: &PathBuf) -> Result<(), String> {
    // mdBook takes a relative output folder from the book, not from here.
    let output = std::path::absolute(output).map_err(|e| format!("{}: {e}", output.display()))?;
    let mut book = MDBook::load(book).map_err(|e| format!("{e:#}"))?;
    book.config.build.build_dir = output;
    book.build().map_err(|e| format!("{e:#}"))
}
