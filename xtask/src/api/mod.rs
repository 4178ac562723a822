//! `cargo xtask api`: the public items of the crates that are published, as docs/api/CRATE.txt, so that a review sees every
//! change of them as a difference.
//!
//! Made from the sources, without building: [`source`] reads modules, [`names`] says what names in them mean, [`paths`] how users name
//! what is public, and [`lines`] writes a line for each.

mod cfg;
mod lines;
mod names;
mod paths;
mod signature;
mod source;
mod text;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand, TargetKind};
use clap::Args;

use crate::process::{Context, Failure, Result, root};

/// Options of the chore.
#[derive(Args)]
pub struct Options {
    /// Write docs/api instead of comparing it
    #[arg(long)]
    write: bool,
}

/// A listing that is not what the sources say.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    /// Relative to the root.
    pub file: String,
    /// Which lines, and what to do.
    pub reason: String,
}

/// Where the listings are.
const FOLDER: &str = "docs/api";
const ADVICE: &str = "run `cargo xtask api --write` and read the diff";

/// Writes the listings, or compares them.
///
/// # Errors
/// Where a listing is not what the sources say.
pub fn run(options: &Options) -> Result<()> {
    let root = root();
    let metadata =
        MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec().context("cargo metadata")?;
    if options.write {
        return write(&root, &metadata);
    }
    let differences = differences(&root, &metadata)?;
    for Difference { file, reason } in &differences {
        println!("{file}: {reason}");
    }
    match differences.len() {
        0 => Ok(()),
        n => Err(Failure(format!("{n} listings of public items are not what the sources say: {ADVICE}"))),
    }
}

/// Listings that are not what the sources say, and files of no crate.
///
/// # Errors
/// Where sources cannot be read.
pub fn differences(root: &Path, metadata: &Metadata) -> Result<Vec<Difference>> {
    let mut out = Vec::new();
    let mut left = files(root)?;
    for (name, library) in published(metadata) {
        let file = format!("{FOLDER}/{name}.txt");
        left.remove(&file);
        let listed = fs::read_to_string(root.join(&file)).unwrap_or_default();
        out.extend(difference(&listed, &listing(&name, &library)?).map(|reason| Difference { file, reason }));
    }
    out.extend(
        left.into_iter().map(|file| Difference { file, reason: format!("is the listing of no crate: {ADVICE}") }),
    );
    Ok(out)
}

fn write(root: &Path, metadata: &Metadata) -> Result<()> {
    fs::create_dir_all(root.join(FOLDER)).context(FOLDER)?;
    let mut left = files(root)?;
    for (name, library) in published(metadata) {
        let text = listing(&name, &library)?;
        let file = format!("{FOLDER}/{name}.txt");
        left.remove(&file);
        println!("{file}: {} lines", text.lines().count());
        fs::write(root.join(&file), text).context(&file)?;
    }
    left.into_iter().try_for_each(|file| fs::remove_file(root.join(&file)).context(&file))
}

/// The listings that are there.
fn files(root: &Path) -> Result<BTreeSet<String>> {
    let mut out = BTreeSet::new();
    if let Ok(entries) = fs::read_dir(root.join(FOLDER)) {
        for entry in entries {
            out.insert(format!("{FOLDER}/{}", entry.context(FOLDER)?.file_name().to_string_lossy()));
        }
    }
    Ok(out)
}

/// The crates under crates/ that are published and have a library: names, and the files of their roots.
fn published(metadata: &Metadata) -> Vec<(String, PathBuf)> {
    let is_published = |p: &&cargo_metadata::Package| {
        let is_allowed = p.publish.as_ref().is_none_or(|registries| !registries.is_empty());
        is_allowed && p.manifest_path.starts_with(metadata.workspace_root.join("crates"))
    };
    let mut out: Vec<_> = metadata
        .workspace_packages()
        .into_iter()
        .filter(is_published)
        .filter_map(|p| {
            let library = p.targets.iter().find(|t| t.kind.contains(&TargetKind::Lib))?;
            Some((p.name.to_string(), library.src_path.clone().into_std_path_buf()))
        })
        .collect();
    out.sort();
    out
}

/// The listing of a crate.
fn listing(name: &str, library: &Path) -> Result<String> {
    let (shown, hidden) = lines::list(&source::read(name, library, &source::Disk)?);
    let head = format!(
        "# Public items of {name}, one a line, by path: made from the sources by `cargo xtask api --write`.\n\
         # Types in signatures stand as they are written there, and values are left out. `alias A = B`: A is another path of B.\n\
         # Macros are not expanded: `macro-made` are names that only a macro can make, and calls beside public items.\n\
         # In brackets at the end: derives, and the conditions under which an item is there.\n"
    );
    let mut text = head + &shown.join("\n") + "\n";
    if !hidden.is_empty() {
        text += "\n# hidden: public, but left out of the documentation\n";
        text += &(hidden.join("\n") + "\n");
    }
    Ok(text)
}

/// What must be added to a listing and removed from it; `None` where it is right.
fn difference(listed: &str, made: &str) -> Option<String> {
    if listed == made {
        return None;
    }
    let [old, new] = [listed, made].map(|text| text.lines().collect::<BTreeSet<_>>());
    let removed: Vec<String> = listed.lines().filter(|l| !new.contains(l)).map(|l| format!("\n- {l}")).collect();
    let added: Vec<String> = made.lines().filter(|l| !old.contains(l)).map(|l| format!("\n+ {l}")).collect();
    if removed.is_empty() && added.is_empty() {
        return Some(format!("has the lines in another order, some of them twice, or with other ends: {ADVICE}"));
    }
    let (less, more) = (removed.len(), added.len());
    Some(format!("{more} lines more and {less} less in the sources; {ADVICE}{}{}", removed.concat(), added.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_libraries_have_listings_and_nothing_else_has() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let put = |file: &str, text: &str| {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("Cargo.toml", "[workspace]\nmembers = [\"crates/*\", \"tool\"]\nresolver = \"3\"\n");
        for (package, more, file) in [
            ("crates/a-b", "", "lib.rs"),
            ("crates/quiet", "publish = false\n", "lib.rs"),
            ("crates/command", "", "main.rs"),
            ("tool", "", "lib.rs"),
        ] {
            let name = package.rsplit('/').next().unwrap();
            put(
                &format!("{package}/Cargo.toml"),
                &format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\n{more}"),
            );
            put(&format!("{package}/src/{file}"), "pub fn main() {}");
        }
        let metadata = MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec().unwrap();
        let files = || differences(root, &metadata).unwrap().into_iter().map(|d| d.file).collect::<Vec<_>>();
        assert_eq!(files(), ["docs/api/a-b.txt"]);
        write(root, &metadata).unwrap();
        assert_eq!(files(), Vec::<String>::new());
        let listed = fs::read_to_string(root.join("docs/api/a-b.txt")).unwrap();
        assert!(listed.ends_with("\npub fn a_b::main()\n"), "{listed}");
        put("docs/api/gone.txt", "");
        put("crates/a-b/src/lib.rs", "");
        assert_eq!(files(), ["docs/api/a-b.txt", "docs/api/gone.txt"]);
        write(root, &metadata).unwrap();
        assert!(!root.join("docs/api/gone.txt").exists());
    }

    #[test]
    fn a_difference_names_its_lines() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let told = difference("a\nb\n", "a\nc\nd\n").unwrap();
        assert!(told.starts_with("2 lines more and 1 less"), "{told}");
        assert!(told.ends_with("read the diff\n- b\n+ c\n+ d"), "{told}");
        assert!(difference("b\na\n", "a\nb\n").unwrap().contains("order"));
        assert!(difference("a\r\n", "a\n").is_some());
    }
}
