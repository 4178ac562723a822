//! `cargo xtask tidy`: rules of the house that the compiler does not know.
//!
//! 1. [`floors`]: a crate depends only on crates of lower floors.
//! 2. [`map`]: every source file opens with `//!`, and ARCHITECTURE.md has a place for every file and no others.
//! 3. [`licences`]: every dependency comes under a licence on the list.
//! 4. [`kernels`]: committed PTX belongs to its source.
//! 5. [`api`]: docs/api lists the public items that the sources have.
//! 6. [`mod@todo`]: no place of a skeleton is left open in a crate.
//! 7. [`performance`]: docs/performance.md has the tables of benches/results, and is short.
//! 8. [`constructors`]: methods are made, and made again, by functions of the same names.
//! 9. [`circles`]: the files of the facade, and of crates beside it, do not import each other in circles.
//!
//! Every violation is printed with its file and the reason; none is fixed silently.

mod circles;
mod constructors;
mod floors;
mod licences;
mod map;
mod todo;

use std::fs;

use cargo_metadata::{CargoOpt, MetadataCommand};

use crate::api::{self, Difference};
use crate::kernels;
use crate::performance;
use crate::process::{Context, Failure, Result, root};

/// A broken rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    /// File or manifest, relative to the root.
    file: String,
    /// Which rule, and what to do.
    reason: String,
}

/// Checks all rules.
pub fn run() -> Result<()> {
    let root = root();
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .features(CargoOpt::AllFeatures)
        .exec()
        .context("cargo metadata")?;
    let files = map::workspace_files(&root)?;
    let architecture = fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;

    let mut violations = floors::check(&metadata);
    violations.extend(map::check_headers(&root, &files)?);
    violations.extend(map::check_crates(&metadata, &architecture));
    violations.extend(map::check_owners(&files, &architecture));
    violations.extend(licences::check(&metadata));
    violations.extend(todo::check(&root, &files)?);
    let different = api::differences(&root, &metadata)?.into_iter();
    violations.extend(different.map(|Difference { file, reason }| Violation { file, reason }));
    violations.extend(constructors::check(&root)?);
    violations.extend(circles::check(&root, &files)?);
    if let Err(Failure(reason)) = kernels::check_fresh(&root) {
        violations.push(Violation { file: "kernels/ptx".into(), reason });
    }
    if let Err(Failure(reason)) = performance::check(&root) {
        violations.push(Violation { file: performance::PAGE.into(), reason });
    }
    violations.sort();

    for Violation { file, reason } in &violations {
        println!("{file}: {reason}");
    }
    match violations.len() {
        0 => {
            println!("tidy: {} files, {} packages, nothing to complain of", files.len(), metadata.packages.len());
            Ok(())
        }
        n => Err(Failure(format!("tidy: {n} violations"))),
    }
}
