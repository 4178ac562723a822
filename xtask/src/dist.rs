//! `cargo xtask dist`: the command for this machine as the archive that `cargo binstall blocktri-cli` looks for beside a release.
//!
//! `target/dist/blocktri-TARGET.tar.gz`, built by the release profile: the program, README.md and the two licences, none in a folder.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::process::{Context, Failure, Result, cargo, must_succeed, programs, root};

/// Beside the program.
const PAPERS: [&str; 3] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Builds the command, packs it, and runs what the archive has.
pub fn run() -> Result<()> {
    let made = programs(&mut cargo(["build", "--release", "--package", "blocktri-cli"]))?;
    let program = made.into_iter().find(|(target, _)| target.name == "blocktri");
    let (_, program) = program.ok_or_else(|| Failure("blocktri is not among the programs built".into()))?;
    let folder = root().join("target/dist");
    fs::create_dir_all(&folder).context(folder.display())?;
    let archive = folder.join(format!("blocktri-{}.tar.gz", host()?));
    let built = program.parent().ok_or_else(|| Failure(format!("{}: not in a folder", program.display())))?;
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&archive).arg("-C").arg(built).arg("blocktri").arg("-C").arg(root());
    must_succeed(tar.args(PAPERS))?;
    let unpacked = TempDir::new().context("a folder for the archive")?;
    must_succeed(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(unpacked.path()))?;
    must_succeed(Command::new(unpacked.path().join("blocktri")).arg("--version"))?;
    println!("{}: {} bytes", archive.display(), fs::metadata(&archive).context(archive.display())?.len());
    Ok(())
}

/// The target of a build that names none.
fn host() -> Result<String> {
    let told = Command::new("rustc").arg("-vV").output().context("rustc -vV")?;
    let told = String::from_utf8_lossy(&told.stdout);
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure("rustc -vV names no host".into()))
}
