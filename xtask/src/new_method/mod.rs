//! `cargo xtask new-method NAME`: the skeleton of a direct method, which compiles and does nothing yet, and the places that a method
//! has elsewhere.
//!
//! What must be filled in is marked `TODO(NAME)`; `cargo xtask tidy` fails while such a mark is left.

mod library;
mod name;
mod places;

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::Args;

use crate::process::{Context, Failure, Result, root};
use name::Name;
use places::{Place, places};

/// Options of the chore.
#[derive(Args)]
pub struct Options {
    /// Name in commands and reports, in kebab case: band-qr
    name: String,
}

const FOLDER: &str = "crates/bt-direct/src";
const LIBRARY: &str = "crates/bt-direct/src/lib.rs";
const REGISTRY: &str = "crates/blocktri/src/direct.rs";
/// The skeleton, with NAME and TYPE for the method's.
const SKELETON: &str = include_str!("method.txt");

/// Makes the skeleton and prints what else belongs to a method.
///
/// # Errors
/// Where the name is not one, or exists.
pub fn run(options: &Options) -> Result<()> {
    let name = Name::read(&options.name)?;
    let made = make(&root(), &name)?;
    println!("made {FOLDER}/{}.rs: fill in what is marked TODO({})", name.snake, name.kebab);
    match made.lines {
        Lines::Inserted => println!("added to {LIBRARY}:"),
        Lines::Left => println!("\n{LIBRARY}, whose order leaves the places to you:"),
    }
    println!("{}", indented(&library::lines(&name).join("\n")));
    println!("\nwhat is left, in the order of work:");
    for Place { file, what, code } in made.places {
        println!("\n{file}: {what}");
        if !code.is_empty() {
            println!("{}", indented(&code));
        }
    }
    Ok(())
}

/// Lines as a block of code.
fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// What was done, and what is left to do by hand.
#[derive(Debug)]
struct Made {
    lines: Lines,
    places: Vec<Place>,
}

/// What became of the lines in lib.rs.
#[derive(Debug, PartialEq, Eq)]
enum Lines {
    Inserted,
    Left,
}

/// Makes the file and the lines in lib.rs; nothing where the name exists.
fn make(root: &Path, name: &Name) -> Result<Made> {
    let read = |file: &str| fs::read_to_string(root.join(file)).context(file);
    let (library, registry) = (read(LIBRARY)?, read(REGISTRY)?);
    refuse_what_exists(root, name, &library, &registry)?;

    let file = format!("{FOLDER}/{}.rs", name.snake);
    let text = SKELETON.replace("NAME", &name.kebab).replace("TYPE", &name.camel);
    // Not even a file that appears now is written over.
    fs::File::create_new(root.join(&file)).and_then(|mut f| f.write_all(text.as_bytes())).context(&file)?;
    let lines = match library::with_lines(&library, name) {
        Some(text) => {
            fs::write(root.join(LIBRARY), text).context(LIBRARY)?;
            Lines::Inserted
        }
        None => Lines::Left,
    };
    Ok(Made { lines, places: places(name) })
}

fn refuse_what_exists(root: &Path, name: &Name, library: &str, registry: &str) -> Result<()> {
    let Name { kebab, snake, .. } = name;
    for path in [format!("{FOLDER}/{snake}.rs"), format!("{FOLDER}/{snake}")] {
        if root.join(&path).exists() {
            return Err(Failure(format!("'{kebab}' exists: {path}")));
        }
    }
    if registry.contains(&format!("\"{kebab}\"")) {
        return Err(Failure(format!("'{kebab}' exists: {REGISTRY} has a method of this name")));
    }
    if library::names(library, name) {
        return Err(Failure(format!("'{kebab}' exists: {LIBRARY} names {snake} or {}", name.camel)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const LIB: &str =
        "//! Methods.\n\nmod band_lu;\nmod thomas;\n\npub use band_lu::BandLu;\npub use thomas::Thomas;\n";

    /// A workspace with two methods.
    fn workspace(library: &str) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in [
            (LIBRARY, library),
            (
                REGISTRY,
                "pub static DIRECT: &[DirectRow] = &[row(Direct::BandLu, \"band-lu\"), row(Direct::Thomas, \"thomas-lu\")];",
            ),
            ("crates/bt-direct/src/thomas.rs", "//! Thomas.\n"),
            ("crates/bt-direct/src/spike/mod.rs", "//! SPIKE.\n"),
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn read(folder: &TempDir, file: &str) -> String {
        fs::read_to_string(folder.path().join(file)).unwrap()
    }

    #[test]
    fn a_skeleton_is_made_and_registered() {
        let folder = workspace(LIB);
        let made = make(folder.path(), &Name::read("band-qr").unwrap()).unwrap();
        assert_eq!(made.lines, Lines::Inserted);
        let lib = LIB.replace("mod thomas", "mod band_qr;\nmod thomas");
        assert_eq!(read(&folder, LIBRARY), lib.replace("pub use thomas", "pub use band_qr::BandQr;\npub use thomas"));
        let text = read(&folder, "crates/bt-direct/src/band_qr.rs");
        assert!(text.starts_with("//! TODO(band-qr): ") && text.contains("const METHOD: &str = \"band-qr\";"));
        assert!(text.contains("for BandQr<T>") && !text.contains("NAME") && !text.contains("TYPE"));
        assert!(!text.contains("todo!") && syn::parse_file(&text).is_ok());
    }

    #[test]
    fn what_exists_is_refused_and_nothing_is_changed() {
        let folder = workspace(LIB);
        for (name, why) in [
            ("thomas", "thomas.rs"),
            ("spike", "src/spike"),
            ("thomas-lu", "has a method"),
            ("band-lu", "has a method"),
        ] {
            let Failure(told) = make(folder.path(), &Name::read(name).unwrap()).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
        let named = workspace(&LIB.replace("BandLu;", "{BandLu, BandQr};"));
        let Failure(told) = make(named.path(), &Name::read("band-qr").unwrap()).unwrap_err();
        assert!(told.contains("band_qr or BandQr"), "{told}");
        assert_eq!(
            (read(&folder, LIBRARY).as_str(), read(&folder, "crates/bt-direct/src/thomas.rs").as_str()),
            (LIB, "//! Thomas.\n")
        );
        assert!(!named.path().join("crates/bt-direct/src/band_qr.rs").exists());
    }

    #[test]
    fn a_library_in_another_order_is_left_as_it_is() {
        let lib = "mod thomas;\nmod band_lu;\npub use thomas::Thomas;\n";
        let folder = workspace(lib);
        let made = make(folder.path(), &Name::read("band-qr").unwrap()).unwrap();
        assert_eq!((made.lines, read(&folder, LIBRARY).as_str()), (Lines::Left, lib));
        assert!(folder.path().join("crates/bt-direct/src/band_qr.rs").exists());
    }
}
