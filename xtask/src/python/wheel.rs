//! Wheels, and what is asked of them: the tags of their names, the platform that auditwheel finds, their size.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Build, Environment};
use crate::process::{Context, Failure, Result, must_succeed, root};

/// Which wheel.
#[derive(Clone, Copy)]
pub enum Kind<'a> {
    /// `blocktri`: the extension module and the Python around it, built for this interpreter and later ones.
    Extension(&'a Path),
    /// `blocktri-cli`: the command.
    Command,
}

impl Kind<'_> {
    /// The folder of its `pyproject.toml`.
    fn folder(self) -> &'static str {
        match self {
            Self::Extension(_) => "python",
            Self::Command => "python/cli",
        }
    }

    /// What stands in its name between the version and the platform: one extension for every Python from 3.10, a command for any.
    fn tag(self) -> &'static str {
        match self {
            Self::Extension(_) => "-cp310-abi3-",
            Self::Command => "-py3-none-",
        }
    }

    /// Megabytes at most. Without optimizations the code of generic functions is twice as large.
    fn limit(self, build: Build) -> u64 {
        match (self, build) {
            (Self::Extension(_), Build::Quick) => 50,
            _ => 20,
        }
    }
}

/// Builds a wheel and inspects it.
///
/// # Errors
/// When it does not build, or is not what it should be.
pub fn build(venv: &Environment, kind: Kind, build: Build) -> Result<PathBuf> {
    let folder = root().join("target/python-wheels").join(kind.folder().replace('/', "-"));
    if folder.exists() {
        fs::remove_dir_all(&folder).context("wheels of another run")?;
    }
    let mut maturin = venv.command("maturin");
    maturin.current_dir(root().join(kind.folder())).arg("build");
    match kind {
        Kind::Extension(python) => maturin.args(build.of_extension()).arg("--interpreter").arg(python),
        Kind::Command => maturin.args(build.of_command()),
    };
    must_succeed(maturin.arg("--out").arg(&folder))?;
    let wheel = only_file(&folder)?;
    let bytes = fs::metadata(&wheel).context(wheel.display())?.len();
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    println!("{}", judge(&name, bytes, kind, build)?);
    if cfg!(target_os = "linux") {
        must_succeed(venv.command("python").args(["-m", "auditwheel", "show"]).arg(&wheel))?;
    }
    Ok(wheel)
}

/// What there is to say about a wheel of that name and size.
fn judge(name: &str, bytes: u64, kind: Kind, build: Build) -> Result<String> {
    let (tag, limit) = (kind.tag(), kind.limit(build));
    if !name.contains(tag) {
        return Err(Failure(format!("{name}: {tag} is not in its name; see pyproject.toml in {}", kind.folder())));
    }
    let megabytes = bytes as f64 / 1e6;
    if bytes > limit * 1_000_000 {
        return Err(Failure(format!("{name}: {megabytes:.1} MB are more than {limit} MB")));
    }
    Ok(format!("{name}: {megabytes:.1} MB of at most {limit}"))
}

/// The one file of a folder.
fn only_file(folder: &Path) -> Result<PathBuf> {
    let found = fs::read_dir(folder).context("wheels")?.next();
    let file = found.ok_or_else(|| Failure("maturin made no wheel".into()))?.context("wheels")?;
    Ok(file.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sizes_are_judged() {
        let name = "blocktri-0.1.0-cp310-abi3-manylinux_2_35_x86_64.whl";
        let extension = Kind::Extension(Path::new("python"));
        assert!(judge(name, 20_000_000, extension, Build::Published).is_ok_and(|said| said.contains("20.0 MB")));
        assert!(judge(name, 20_000_001, extension, Build::Published).is_err());
        assert!(judge(name, 1, Kind::Command, Build::Published).is_err());
        let of_one_python = "blocktri-0.1.0-cp311-cp311-linux_x86_64.whl";
        assert!(judge(of_one_python, 1, extension, Build::Quick).is_err());
        let command = "blocktri_cli-0.1.0-py3-none-manylinux_2_35_x86_64.whl";
        assert!(judge(command, 15_000_000, Kind::Command, Build::Quick).is_ok());
    }
}
