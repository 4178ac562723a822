//! A crate read from its sources: modules and the items in them, without those that are for tests.

use std::io;
use std::path::{Path, PathBuf};

use syn::{Attribute, Expr, ExprLit, Item, Lit, Meta, Visibility};

use super::cfg::{Guard, guard};
use crate::process::{Context, Failure, Result};

/// A crate; module 0 is its root.
pub(super) struct Crate {
    /// As paths spell it.
    pub name: String,
    pub modules: Vec<Module>,
}

/// A module and what it holds.
pub(super) struct Module {
    /// From the crate's name on, as the sources nest.
    pub path: Vec<String>,
    /// The module around it; the root's is itself.
    pub parent: usize,
    pub entries: Vec<Entry>,
}

/// An item of a module.
pub(super) struct Entry {
    pub item: Item,
    /// Its own conditions and those of the modules around it.
    pub guard: Guard,
    pub shown: Shown,
    /// The module that it is, if it is one.
    pub child: Option<usize>,
}

/// Whether documentation shows an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shown {
    Yes,
    /// `#[doc(hidden)]`.
    Hidden,
}

impl Shown {
    /// Of an item by its attributes.
    pub(super) fn of(attributes: &[Attribute]) -> Self {
        let is_hidden = |a: &Attribute| match &a.meta {
            Meta::List(list) => list.path.is_ident("doc") && list.tokens.to_string().split(", ").any(|t| t == "hidden"),
            _ => false,
        };
        if attributes.iter().any(is_hidden) { Self::Hidden } else { Self::Yes }
    }

    /// Of something inside something: hidden where either is.
    pub(super) fn inside(self, outer: Self) -> Self {
        self.max(outer)
    }
}

/// Reads files; the tests' are strings.
pub(super) trait Files {
    fn read(&self, path: &Path) -> io::Result<String>;
}

/// Files of the disk.
pub(super) struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<String> {
        std::fs::read_to_string(path)
    }
}

/// Reads the crate whose root is the file `root`.
pub(super) fn read(name: &str, root: &Path, files: &dyn Files) -> Result<Crate> {
    let name = name.replace('-', "_");
    let text = files.read(root).context(root.display())?;
    let mut reader = Reader { files, made: Crate { name: name.clone(), modules: Vec::new() } };
    let folder = root.parent().unwrap_or(Path::new("")).to_owned();
    reader.file(root, &text, Place { path: vec![name], parent: 0, guard: Guard::new(), folder })?;
    Ok(reader.made)
}

/// What every kind of item has: its attributes, and its name and visibility where it has them.
pub(super) struct Head<'a> {
    pub attributes: &'a [Attribute],
    pub name: Option<String>,
    pub visibility: Option<&'a Visibility>,
}

impl Head<'_> {
    pub(super) fn is_public(&self) -> bool {
        self.visibility.is_some_and(is_public)
    }
}

/// Whether it is `pub` without a restriction.
pub(super) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The head of an item.
pub(super) fn head(item: &Item) -> Head<'_> {
    macro_rules! named {
        ($item:expr, $name:expr) => {
            Head { attributes: &$item.attrs, name: Some($name.to_string()), visibility: Some(&$item.vis) }
        };
    }
    macro_rules! unnamed {
        ($item:expr) => {
            Head { attributes: &$item.attrs, name: None, visibility: None }
        };
    }
    match item {
        Item::Const(i) => named!(i, i.ident),
        Item::Enum(i) => named!(i, i.ident),
        Item::Fn(i) => named!(i, i.sig.ident),
        Item::Mod(i) => named!(i, i.ident),
        Item::Static(i) => named!(i, i.ident),
        Item::Struct(i) => named!(i, i.ident),
        Item::Trait(i) => named!(i, i.ident),
        Item::TraitAlias(i) => named!(i, i.ident),
        Item::Type(i) => named!(i, i.ident),
        Item::Union(i) => named!(i, i.ident),
        Item::Use(i) => Head { attributes: &i.attrs, name: None, visibility: Some(&i.vis) },
        Item::ForeignMod(i) => unnamed!(i),
        Item::Impl(i) => unnamed!(i),
        Item::Macro(i) => unnamed!(i),
        Item::ExternCrate(i) => unnamed!(i),
        _ => Head { attributes: &[], name: None, visibility: None },
    }
}

struct Reader<'a> {
    files: &'a dyn Files,
    made: Crate,
}

/// Where a module stands, among modules and on the disk.
struct Place {
    path: Vec<String>,
    parent: usize,
    guard: Guard,
    /// Where files of its modules are.
    folder: PathBuf,
}

impl Reader<'_> {
    /// A module that is a file; `None` where the file says that it is for tests.
    fn file(&mut self, path: &Path, text: &str, mut place: Place) -> Result<Option<usize>> {
        let file = syn::parse_file(text).context(path.display())?;
        let Some(own) = guard(&file.attrs) else { return Ok(None) };
        place.guard.extend(own);
        self.module(file.items, &place).map(Some)
    }

    fn module(&mut self, items: Vec<Item>, place: &Place) -> Result<usize> {
        let index = self.made.modules.len();
        self.made.modules.push(Module { path: place.path.clone(), parent: place.parent, entries: Vec::new() });
        for mut item in items {
            let head = head(&item);
            let Some(mut guard) = guard(head.attributes) else { continue };
            guard.extend(place.guard.iter().cloned());
            let shown = Shown::of(head.attributes);
            let child = match &mut item {
                Item::Mod(module) => {
                    let Some(child) = self.child(module, index, &guard, place)? else { continue };
                    Some(child)
                }
                _ => None,
            };
            self.made.modules[index].entries.push(Entry { item, guard, shown, child });
        }
        Ok(index)
    }

    /// The module that an item `mod` opens, here or in a file.
    fn child(
        &mut self,
        module: &mut syn::ItemMod,
        parent: usize,
        guard: &Guard,
        around: &Place,
    ) -> Result<Option<usize>> {
        let name = module.ident.to_string();
        let path = around.path.iter().cloned().chain([name.clone()]).collect();
        let place = |folder| Place { path, parent, guard: guard.clone(), folder };
        if let Some((_, items)) = module.content.take() {
            return self.module(items, &place(around.folder.join(name))).map(Some);
        }
        let (file, text, folder) = self.find(&name, &module.attrs, &around.folder)?;
        self.file(&file, &text, place(folder))
    }

    /// The file of a module, what it says, and where its own modules are.
    fn find(&self, name: &str, attributes: &[Attribute], folder: &Path) -> Result<(PathBuf, String, PathBuf)> {
        let nested = folder.join(name);
        let candidates = match named_file(attributes) {
            Some(file) => {
                let file = folder.join(file);
                let beside = file.parent().unwrap_or(folder).to_owned();
                vec![(file, beside)]
            }
            None => vec![(folder.join(format!("{name}.rs")), nested.clone()), (nested.join("mod.rs"), nested)],
        };
        for (file, folder) in candidates {
            match self.files.read(&file) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                read => return read.context(file.display()).map(|text| (file, text, folder)),
            }
        }
        Err(Failure(format!("{}: there is no file of the module {name}", folder.display())))
    }
}

/// What `#[path = "…"]` names.
fn named_file(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|a| match &a.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(file), .. }) => Some(file.value()),
            _ => None,
        },
        _ => None,
    })
}

/// Files as strings, by their paths.
#[cfg(test)]
impl Files for std::collections::BTreeMap<&str, &str> {
    fn read(&self, path: &Path) -> io::Result<String> {
        let text = path.to_str().and_then(|path| self.get(path));
        text.map(|text| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn modules(files: &[(&'static str, &'static str)]) -> Vec<String> {
        let files: BTreeMap<_, _> = files.iter().copied().collect();
        let made = read("my-crate", Path::new("src/lib.rs"), &files).unwrap();
        made.modules.iter().map(|m| m.path.join("::")).collect()
    }

    #[test]
    fn modules_are_found_in_all_their_places() {
        let found = modules(&[
            ("src/lib.rs", "mod a; mod b; mod c { mod d; } #[path = \"other.rs\"] mod e;"),
            ("src/a.rs", "mod inner;"),
            ("src/a/inner.rs", ""),
            ("src/b/mod.rs", "mod inner;"),
            ("src/b/inner.rs", ""),
            ("src/c/d.rs", ""),
            ("src/other.rs", ""),
        ]);
        let names = ["a", "a::inner", "b", "b::inner", "c", "c::d", "e"].map(|name| format!("my_crate::{name}"));
        assert_eq!(found[0], "my_crate");
        assert_eq!(found[1..], names);
    }

    #[test]
    fn modules_for_tests_are_not_opened() {
        let found = modules(&[("src/lib.rs", "#[cfg(test)] mod tests; mod a;"), ("src/a.rs", "#![cfg(test)]")]);
        assert_eq!(found, ["my_crate"]);
    }

    #[test]
    fn a_file_that_is_missing_or_wrong_is_named() {
        let files = BTreeMap::from([("src/lib.rs", "mod a;")]);
        let Failure(why) = read("x", Path::new("src/lib.rs"), &files).err().unwrap();
        assert!(why.contains("module a"), "{why}");
        let files = BTreeMap::from([("src/lib.rs", "fn")]);
        let Failure(why) = read("x", Path::new("src/lib.rs"), &files).err().unwrap();
        assert!(why.starts_with("src/lib.rs:"), "{why}");
    }
}
