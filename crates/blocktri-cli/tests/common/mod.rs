//! A folder to work in, and the built binary run inside it.

#![allow(dead_code)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A temporary folder.
pub struct Sandbox(tempfile::TempDir);

/// What a run left.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// The one JSON object on stdout.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
    /// Checks the code.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }
}

impl Sandbox {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).expect("a file in the sandbox");
    }
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file the command wrote")
    }
    /// All names, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.0.path())
            .expect("the sandbox")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name in UTF-8"))
            .collect();
        names.sort();
        names
    }
    /// Without constants that `blocktri calibrate` may have left on this machine.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(program());
        command.env("XDG_CACHE_HOME", self.path("no-cache")).current_dir(self.0.path()).args(line.split_whitespace());
        command
    }
    /// Runs `blocktri` with the words of `line`.
    pub fn run(&self, line: &str) -> Run {
        self.run_with(line, &[])
    }
    /// With variables of the environment.
    pub fn run_with(&self, line: &str, variables: &[(&str, &str)]) -> Run {
        self.command(line).envs(variables.iter().copied()).output().expect("the command starts").into()
    }
}

/// The command under test: the one that cargo built beside the tests, or the one that `BLOCKTRI_COMMAND` names.
pub fn program() -> OsString {
    std::env::var_os("BLOCKTRI_COMMAND").unwrap_or_else(|| env!("CARGO_BIN_EXE_blocktri").into())
}

/// ../shared of the repository, if it is there.
pub fn shared(folder: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(folder);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: ../shared is absent");
    None
}

/// x of an array file.
pub fn numbers(text: &str) -> Vec<f64> {
    text.lines()
        .filter(|line| !line.starts_with('%'))
        .skip(1)
        .map(|line| line.trim().parse().expect("a number"))
        .collect()
}

/// tridiag(−1, 4, −1) with n = 4: A·(1, 1, 1, 1) = (3, 2, 2, 3).
pub const SMALL: &str = "%%MatrixMarket matrix coordinate real symmetric\n4 4 7\n\
    1 1 4\n2 2 4\n3 3 4\n4 4 4\n2 1 -1\n3 2 -1\n4 3 -1\n";
/// Its right-hand side for ones.
pub const SMALL_RHS: &str = "%%MatrixMarket matrix array real general\n4 1\n3\n2\n2\n3\n";
