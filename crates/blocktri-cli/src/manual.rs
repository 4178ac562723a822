//! Shell completions and man pages, from the definition of the command line.

use std::io;
use std::path::Path;

use clap::CommandFactory;
use serde_json::json;

use crate::args::Cli;
use crate::exit::{Exit, Failure, Reply, Result};

/// The completion script of a shell.
pub fn completions(shell: clap_complete::Shell) -> Reply {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "blocktri", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Reply {
        exit: Exit::Done,
        json: json!({ "schema": 1, "shell": shell.to_string(), "script": script }),
        text: script,
        warnings: Vec::new(),
    }
}

/// The man page, or with a folder, made where it is missing, one page for each command.
///
/// # Errors
/// When the folder cannot be made or a page cannot be written.
pub fn man(folder: Option<&Path>) -> Result<Reply> {
    let reply = |text: String| Reply {
        exit: Exit::Done,
        json: json!({ "schema": 1, "man": text }),
        text,
        warnings: Vec::new(),
    };
    let failed = |e: io::Error| Failure::io(folder.unwrap_or(Path::new("man page")), &e);
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).map_err(failed)?;
        clap_mangen::generate_to(Cli::command(), folder).map_err(failed)?;
        return Ok(reply(format!("{}: man pages of blocktri and its commands\n", folder.display())));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(failed)?;
    Ok(reply(String::from_utf8_lossy(&page).into_owned()))
}
