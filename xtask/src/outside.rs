//! `cargo xtask outside`: programs outside the workspace that depend on its crates, as they are here or as they are packaged; of packages also
//! the command, as `cargo install` makes it.
//!
//! What such a program needs and the workspace hides: versions of dependencies, patches, features, files left out of a package.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;
use tempfile::TempDir;

use crate::process::{Context, Failure, Result, cargo, must_succeed, root};

/// Options of the chore.
#[derive(Args)]
pub struct Options {
    /// Depend on the packages that `cargo package` makes, not on the checkout
    #[arg(long)]
    packaged: bool,
}

/// Builds the packages if they are asked for, then builds and runs the programs.
///
/// # Errors
/// When one does not package, build, or give the right answers.
pub fn run(source: Source) -> Result<()> {
    if source == Source::Packages {
        package()?;
    }
    for scratch in [Scratch::Direct, Scratch::Facade] {
        let program = scratch.create(source)?;
        program.compile_as_the_workspace_does()?;
        println!("$ cargo run   # {}", scratch.name());
        must_succeed(program.cargo(&["run", "--quiet"]).env("CARGO_TARGET_DIR", root().join("target")))?;
    }
    if source == Source::Packages { installed() } else { Ok(()) }
}

/// `cargo install` of the command from its package, with the packages of all crates below it, and what it installs solves a system.
fn installed() -> Result<()> {
    let folder = TempDir::new().context("a folder for the command")?;
    let path = folder.path();
    let workspace = root().join("Cargo.toml");
    let profile = dev_profile(&fs::read_to_string(&workspace).context(workspace.display())?);
    let settings = path.join("config.toml");
    fs::write(&settings, format!("{}\n{profile}", patches()?)).context(settings.display())?;
    let mut install = cargo(["install", "--quiet", "--debug", "--path"]);
    install.arg(unpacked("blocktri-cli")?).arg("--config").arg(&settings).arg("--root").arg(path);
    must_succeed(install.env("CARGO_TARGET_DIR", root().join("target")))?;
    let example = root().join("examples/data/cloud16-100.mtx");
    must_succeed(Command::new(path.join("bin/blocktri")).arg("solve").arg(example).stdout(Stdio::null()))
}

/// The crates in the order in which they are published. `bt-kernels` needs CUDA to be built outside the workspace (ADR 3).
pub const PUBLISHED: [&str; 12] = [
    "bt-simd",
    "bt-formats",
    "bt-direct",
    "bt-iter",
    "bt-queue",
    "bt-parallel",
    "bt-cuda-driver",
    "bt-kernels",
    "bt-reproduce",
    "bt-mpi",
    "blocktri",
    "blocktri-cli",
];

/// Makes all packages; the programs are what builds them.
fn package() -> Result<()> {
    let mut command = cargo(["package", "--allow-dirty", "--no-verify"]);
    for name in PUBLISHED {
        command.args(["--package", name]);
    }
    must_succeed(&mut command)
}

impl Options {
    /// What they ask for.
    pub fn source(&self) -> Source {
        if self.packaged { Source::Packages } else { Source::Checkout }
    }
}

/// Where the crates come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The folders here.
    Checkout,
    /// What `cargo package` packs.
    Packages,
}

/// A program by what it depends on.
#[derive(Clone, Copy)]
pub enum Scratch {
    /// The facade, as a user of all formats.
    Facade,
    /// `bt-direct` alone.
    Direct,
}

/// A program in a folder of its own.
pub struct Program {
    folder: TempDir,
}

impl Scratch {
    fn name(self) -> &'static str {
        match self {
            Self::Facade => "blocktri",
            Self::Direct => "bt-direct",
        }
    }

    /// Writes the program.
    ///
    /// # Errors
    /// With the system's reason.
    pub fn create(self, source: Source) -> Result<Program> {
        let folder = TempDir::new().context("a folder for a program")?;
        let dependencies: &[&str] = match self {
            Self::Facade => &["blocktri", "sprs"],
            Self::Direct => &["bt-direct", "bt-formats"],
        };
        let mut manifest = vec![
            "[package]".to_owned(),
            format!("name = \"outside-{}\"", self.name()),
            "version = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]".to_owned(),
        ];
        for &name in dependencies {
            manifest.push(match name {
                "sprs" => "sprs = { version = \"0.11\", default-features = false }".to_owned(),
                name => format!("{name} = {}", toml_path(source, name)?),
            });
        }
        if source == Source::Packages {
            manifest.push(format!("\n{}", patches()?));
        }
        let program = match self {
            Self::Facade => include_str!("outside/facade.rs"),
            Self::Direct => include_str!("outside/direct.rs"),
        };
        let path = folder.path();
        fs::create_dir(path.join("src")).context("src")?;
        fs::write(path.join("Cargo.toml"), manifest.join("\n") + "\n").context("Cargo.toml")?;
        fs::write(path.join("src/main.rs"), program).context("main.rs")?;
        // The versions that the workspace is tested with.
        fs::copy(root().join("Cargo.lock"), path.join("Cargo.lock")).context("Cargo.lock")?;
        Ok(Program { folder })
    }
}

impl Program {
    /// Gives it the workspace's profile, so that in one target folder it finds the dependencies from the registry built.
    fn compile_as_the_workspace_does(&self) -> Result<()> {
        let path = self.folder.path().join("Cargo.toml");
        let mut manifest = fs::read_to_string(&path).context(path.display())?;
        let workspace = root().join("Cargo.toml");
        manifest.push_str(&dev_profile(&fs::read_to_string(&workspace).context(workspace.display())?));
        fs::write(&path, manifest).context(path.display())
    }

    /// A cargo command on it, in a target folder of its own.
    pub fn cargo(&self, args: &[&str]) -> Command {
        let mut command = cargo(args.iter().copied());
        let target = self.folder.path().join("target");
        command.current_dir(self.folder.path()).env("CARGO_TARGET_DIR", target);
        command
    }
}

/// The sections of a manifest that say how cargo builds by default.
fn dev_profile(manifest: &str) -> String {
    let mut is_in = false;
    let in_profile = |line: &&str| {
        if line.starts_with('[') {
            is_in = line.starts_with("[profile.dev");
        }
        is_in
    };
    manifest.lines().filter(in_profile).fold(String::from("\n"), |sections, line| sections + line + "\n")
}

/// The section by which cargo takes the packages made here for those of the registry.
fn patches() -> Result<String> {
    let patch = |&name: &&str| Ok(format!("{name} = {}", toml_path(Source::Packages, name)?));
    let lines = PUBLISHED.iter().map(patch).collect::<Result<Vec<_>>>()?;
    Ok(format!("[patch.crates-io]\n{}", lines.join("\n")))
}

/// `{ path = "…" }` of a crate.
fn toml_path(source: Source, name: &str) -> Result<String> {
    let folder: PathBuf = match source {
        Source::Checkout => root().join("crates").join(name),
        Source::Packages => unpacked(name)?,
    };
    let path = serde_json::to_string(&folder.to_string_lossy()).context("a path")?;
    Ok(format!("{{ path = {path} }}"))
}

/// The folder of a package, unpacked. Its files are of this moment: packed they all have one time, by which cargo would take what it compiled
/// of an older package for what this one is.
fn unpacked(name: &str) -> Result<PathBuf> {
    let packages = root().join("target/unpacked");
    fs::create_dir_all(&packages).context(packages.display())?;
    let folder = packages.join(format!("{name}-{}", env!("CARGO_PKG_VERSION")));
    let packed = root().join("target/package").join(format!("{name}-{}.crate", env!("CARGO_PKG_VERSION")));
    if !packed.is_file() {
        return Err(Failure(format!("{}: not there; run cargo package", packed.display())));
    }
    let bytes = fs::metadata(&packed).and_then(|m| m.modified()).context(packed.display())?;
    let fresh = fs::metadata(&folder).and_then(|m| m.modified()).is_ok_and(|at| at >= bytes);
    if !fresh {
        let _ = fs::remove_dir_all(&folder);
        must_succeed(Command::new("tar").arg("-xzmf").arg(&packed).arg("-C").arg(&packages))?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cargo_metadata::MetadataCommand;
    use std::collections::BTreeSet;

    #[test]
    fn every_crate_that_may_be_published_is() {
        let manifest = root().join("Cargo.toml");
        let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().unwrap();
        let may = metadata.packages.iter().filter(|package| package.publish.is_none()).map(|package| &**package.name);
        assert_eq!(may.collect::<BTreeSet<_>>(), BTreeSet::from(PUBLISHED));
    }

    #[test]
    fn the_profile_is_copied_with_its_packages() {
        let manifest = "[profile.release]\nlto = false\n[profile.dev]\ndebug = false\n\n[profile.dev.package]\nfaer.opt-level = 2\n[lib]\n";
        assert_eq!(
            dev_profile(manifest),
            "\n[profile.dev]\ndebug = false\n\n[profile.dev.package]\nfaer.opt-level = 2\n"
        );
    }

    #[test]
    fn a_program_names_the_crates_of_the_checkout() {
        let program = Scratch::Direct.create(Source::Checkout).unwrap();
        let manifest = fs::read_to_string(program.folder.path().join("Cargo.toml")).unwrap();
        let line = manifest.lines().find(|line| line.starts_with("bt-direct = ")).unwrap();
        assert!(line.contains("crates/bt-direct"), "{line}");
        assert!(program.folder.path().join("src/main.rs").is_file());
    }
}
