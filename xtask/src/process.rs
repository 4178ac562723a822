//! Running programs from the workspace root.

use std::fmt::Display;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_metadata::{Message, Target};

/// Why a chore failed, as a sentence for the terminal.
#[derive(Debug)]
pub struct Failure(pub String);

/// Result of a chore or a part of one.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Adds to an error what was being done.
pub trait Context<T> {
    /// `what` is a noun or a path: the message reads "what: error".
    fn context(self, what: impl Display) -> Result<T>;
}

impl<T, E: Display> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl Display) -> Result<T> {
        self.map_err(|e| Failure(format!("{what}: {e}")))
    }
}

/// The folder of the workspace's Cargo.toml.
pub fn root() -> PathBuf {
    // xtask's own manifest lies one folder below it.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// The cargo that runs us, with `args`, in the workspace root.
pub fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// The command `blocktri` at `program`, without constants that `blocktri calibrate` may have left on this machine.
pub fn blocktri(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("XDG_CACHE_HOME", root().join("target/no-cache"));
    command
}

/// Runs a command to its end, its output passed through.
pub fn must_succeed(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command.status().context(&shown)?;
    if status.success() { Ok(()) } else { Err(Failure(format!("{shown}: {status}"))) }
}

/// Runs a build to its end: the programs it made.
pub fn programs(command: &mut Command) -> Result<Vec<(Target, PathBuf)>> {
    command.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    let shown = show(command);
    let mut child = command.spawn().context(&shown)?;
    let mut programs = Vec::new();
    for message in child.stdout.take().into_iter().flat_map(|out| Message::parse_stream(BufReader::new(out))) {
        if let Message::CompilerArtifact(artifact) = message.context(&shown)?
            && let Some(program) = artifact.executable
        {
            programs.push((artifact.target, program.into_std_path_buf()));
        }
    }
    let status = child.wait().context(&shown)?;
    if status.success() && !programs.is_empty() {
        return Ok(programs);
    }
    Err(Failure(format!("{shown}: {status}, {} programs", programs.len())))
}

/// The command as one would type it.
pub fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
