//! What a name means inside a crate: items, imports, globs, and names that only macros can have made.
//!
//! Names of one spelling in several name spaces are all found. Privacy does not matter here: what compiles may be named.

use std::collections::BTreeSet;

use quote::ToTokens;
use syn::{Item, ItemUse, UseTree};

use super::cfg::Guard;
use super::source::{Crate, Module, Shown, head, is_public};
use super::text;

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Def {
    /// By its number.
    Module(usize),
    /// The module and the place of the item in it.
    Item(usize, usize),
    /// Of an enum, and its name.
    Variant(usize, usize, String),
    /// A module whose macros make something of this name.
    Made(usize, String),
    /// A path into another crate, or a name that every crate has.
    External(String),
}

/// One name, or all names of a module, that a `use` brings.
pub(super) struct Import {
    pub name: Imported,
    pub path: Vec<String>,
    pub reach: Reach,
    pub guard: Guard,
    pub shown: Shown,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Imported {
    One(String),
    All,
}

/// Who may name what an import brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Public,
    Private,
}

/// The names of a crate.
pub(super) struct Names<'a> {
    pub krate: &'a Crate,
    /// By module.
    imports: Vec<Vec<Import>>,
    made: BTreeSet<(usize, String)>,
}

/// Imports that are being followed, by module and number: one that leads to itself ends there.
type Trail = Vec<(usize, usize)>;

impl<'a> Names<'a> {
    pub(super) fn new(krate: &'a Crate) -> Self {
        let imports = krate.modules.iter().map(imports).collect();
        let mut names = Self { krate, imports, made: BTreeSet::new() };
        names.made = names.made_by_macros();
        names
    }

    pub(super) fn imports(&self, module: usize) -> &[Import] {
        &self.imports[module]
    }

    /// What a path means in a module.
    pub(super) fn resolve(&self, module: usize, path: &[String]) -> Vec<Def> {
        self.follow(module, path, &mut Trail::new())
    }

    fn follow(&self, module: usize, path: &[String], trail: &mut Trail) -> Vec<Def> {
        let Some((first, rest)) = path.split_first() else { return vec![Def::Module(module)] };
        let start = match first.as_str() {
            "crate" => vec![Def::Module(0)],
            "self" => vec![Def::Module(module)],
            "super" => vec![Def::Module(self.krate.modules[module].parent)],
            "" => return vec![Def::External(rest.join("::"))],
            name => match self.lookup(module, name, trail) {
                none if none.is_empty() => vec![Def::External(name.to_owned())],
                some => some,
            },
        };
        rest.iter()
            .fold(start, |defs, name| unique(defs.into_iter().flat_map(|def| self.member(def, name, trail)).collect()))
    }

    /// What a name means inside a definition.
    fn member(&self, def: Def, name: &str, trail: &mut Trail) -> Vec<Def> {
        match def {
            Def::Module(module) if name == "super" => vec![Def::Module(self.krate.modules[module].parent)],
            Def::Module(module) if name == "self" => vec![Def::Module(module)],
            Def::Module(module) => self.lookup(module, name, trail),
            Def::Item(module, entry) => match &self.krate.modules[module].entries[entry].item {
                Item::Enum(item) if item.variants.iter().any(|v| v.ident == name) => {
                    vec![Def::Variant(module, entry, name.to_owned())]
                }
                _ => Vec::new(),
            },
            Def::External(path) => vec![Def::External(format!("{path}::{name}"))],
            Def::Variant(..) | Def::Made(..) => Vec::new(),
        }
    }

    /// What one name means in a module: its own and imported by name, else by a glob, else made by a macro.
    fn lookup(&self, module: usize, name: &str, trail: &mut Trail) -> Vec<Def> {
        let own = self.krate.modules[module].entries.iter().enumerate();
        let mut found: Vec<Def> = own
            .filter(|(_, e)| head(&e.item).name.as_deref() == Some(name))
            .map(|(entry, e)| e.child.map_or(Def::Item(module, entry), Def::Module))
            .collect();
        found.extend(self.imported(
            module,
            trail,
            |import| import.name == Imported::One(name.to_owned()),
            |_, def, _| vec![def],
        ));
        if found.is_empty() {
            found = self.imported(
                module,
                trail,
                |import| import.name == Imported::All,
                |names, def, trail| {
                    if matches!(def, Def::External(_)) { Vec::new() } else { names.member(def, name, trail) }
                },
            );
        }
        if found.is_empty() && self.made.contains(&(module, name.to_owned())) {
            found.push(Def::Made(module, name.to_owned()));
        }
        unique(found)
    }

    /// What the imports of a module that are `wanted` lead to, and `then` of that.
    fn imported(
        &self,
        module: usize,
        trail: &mut Trail,
        wanted: impl Fn(&Import) -> bool,
        then: impl Fn(&Self, Def, &mut Trail) -> Vec<Def>,
    ) -> Vec<Def> {
        let mut found = Vec::new();
        for (number, import) in self.imports[module].iter().enumerate() {
            if !wanted(import) || trail.contains(&(module, number)) {
                continue;
            }
            trail.push((module, number));
            for def in self.follow(module, &import.path, trail) {
                found.extend(then(self, def, trail));
            }
            trail.pop();
        }
        found
    }

    /// Names that an import expects of a module, which has them of none but its macros.
    fn made_by_macros(&self) -> BTreeSet<(usize, String)> {
        let mut made = BTreeSet::new();
        for (module, imports) in self.imports.iter().enumerate() {
            for import in imports.iter().filter(|i| i.name != Imported::All) {
                let Some((name, path)) = import.path.split_last() else { continue };
                for def in self.resolve(module, path) {
                    if let Def::Module(from) = def
                        && self.lookup(from, name, &mut Trail::new()).is_empty()
                        && mentions(&self.krate.modules[from], name)
                    {
                        made.insert((from, name.clone()));
                    }
                }
            }
        }
        made
    }
}

/// Whether a macro is called in this module with this name among its tokens.
fn mentions(module: &Module, name: &str) -> bool {
    module.entries.iter().any(|e| match &e.item {
        Item::Macro(call) if call.ident.is_none() => text::words(call.mac.to_token_stream()).iter().any(|w| w == name),
        _ => false,
    })
}

fn unique(mut defs: Vec<Def>) -> Vec<Def> {
    defs.sort();
    defs.dedup();
    defs
}

/// All imports of a module, one a name.
fn imports(module: &Module) -> Vec<Import> {
    let mut out = Vec::new();
    for entry in &module.entries {
        match &entry.item {
            Item::Use(item) => {
                for (path, name) in names(item) {
                    let reach = if is_public(&item.vis) { Reach::Public } else { Reach::Private };
                    out.push(Import { name, path, reach, guard: entry.guard.clone(), shown: entry.shown });
                }
            }
            Item::ExternCrate(item) => {
                let name = item.rename.as_ref().map_or(&item.ident, |(_, name)| name).to_string();
                let reach = if is_public(&item.vis) { Reach::Public } else { Reach::Private };
                let path = vec![String::new(), item.ident.to_string()];
                let (guard, shown) = (entry.guard.clone(), entry.shown);
                out.push(Import { name: Imported::One(name), path, reach, guard, shown });
            }
            _ => {}
        }
    }
    out
}

/// The paths of a `use`, and what each is called.
fn names(item: &ItemUse) -> Vec<(Vec<String>, Imported)> {
    let start = if item.leading_colon.is_some() { vec![String::new()] } else { Vec::new() };
    let mut out = Vec::new();
    tree(&item.tree, start, &mut out);
    out
}

fn tree(tree: &UseTree, mut path: Vec<String>, out: &mut Vec<(Vec<String>, Imported)>) {
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            self::tree(&step.tree, path, out);
        }
        UseTree::Group(group) => group.items.iter().for_each(|t| self::tree(t, path.clone(), out)),
        UseTree::Glob(_) => out.push((path, Imported::All)),
        UseTree::Name(name) if name.ident == "self" => {
            let own = path.last().cloned().unwrap_or_default();
            out.push((path, Imported::One(own)));
        }
        UseTree::Name(name) => {
            path.push(name.ident.to_string());
            out.push((path, Imported::One(name.ident.to_string())));
        }
        UseTree::Rename(rename) => {
            if rename.ident != "self" {
                path.push(rename.ident.to_string());
            }
            out.push((path, Imported::One(rename.rename.to_string())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;
    use std::collections::BTreeMap;
    use std::path::Path;

    /// What a path means at the root: paths of modules, names of items.
    fn meaning(text: &'static str, path: &str) -> Vec<String> {
        let krate = source::read("x", Path::new("lib.rs"), &BTreeMap::from([("lib.rs", text)])).unwrap();
        let path: Vec<String> = path.split("::").map(str::to_owned).collect();
        let shown = |def| match def {
            Def::Module(m) => krate.modules[m].path.join("::"),
            Def::Item(m, e) => {
                let name = head(&krate.modules[m].entries[e].item).name.unwrap();
                format!("{}::{name}", krate.modules[m].path.join("::"))
            }
            Def::Variant(.., name) => format!("variant {name}"),
            Def::Made(m, name) => format!("made {}::{name}", krate.modules[m].path.join("::")),
            Def::External(path) => format!("other {path}"),
        };
        Names::new(&krate).resolve(0, &path).into_iter().map(shown).collect()
    }

    #[test]
    fn paths_lead_through_modules_and_imports() {
        let text = "mod a { pub mod b { pub struct S; pub use super::super::T; } pub use self::b as c; } struct T; use a::c::S as R;";
        assert_eq!(meaning(text, "a::b::S"), ["x::a::b::S"]);
        assert_eq!(meaning(text, "R"), ["x::a::b::S"]);
        assert_eq!(meaning(text, "crate::a::c"), ["x::a::b"]);
        assert_eq!(meaning(text, "a::c::T"), ["x::T"]);
        assert!(meaning(text, "a::absent").is_empty());
    }

    #[test]
    fn globs_bring_what_is_not_named() {
        let text = "mod a { pub struct S; pub enum E { V } } use a::*; use E::*; mod b { pub struct S; } use b::S;";
        assert_eq!(meaning(text, "S"), ["x::b::S"]);
        assert_eq!(meaning(text, "E"), ["x::a::E"]);
        assert_eq!(meaning(text, "V"), ["variant V"]);
    }

    #[test]
    fn one_spelling_may_have_two_meanings() {
        let text = "pub mod refine { pub fn refine() {} } pub use refine::refine;";
        assert_eq!(meaning(text, "refine"), ["x::refine", "x::refine::refine"]);
    }

    #[test]
    fn other_crates_keep_their_whole_path() {
        let text = "use std::fmt; use ::faer::{self, Mat as M}; mod faer {}";
        assert_eq!(meaning(text, "fmt::Display"), ["other std::fmt::Display"]);
        assert_eq!(meaning(text, "M"), ["other faer::Mat"]);
        assert_eq!(meaning(text, "Default"), ["other Default"]);
    }

    #[test]
    fn imports_in_a_circle_mean_nothing() {
        assert_eq!(
            meaning("mod a { pub use super::b::S; } mod b { pub use super::a::S; } use a::S;", "S"),
            ["other S"]
        );
        assert_eq!(meaning("mod a { pub use super::*; } use a::*;", "S"), ["other S"]);
    }

    #[test]
    fn a_macro_makes_what_is_imported_and_mentioned() {
        let text = "mod a { make! { Any, Csr } } use a::Any; use a::Absent;";
        assert_eq!(meaning(text, "a::Any"), ["made x::a::Any"]);
        assert!(meaning(text, "a::Absent").is_empty());
        assert!(meaning(text, "a::Csr").is_empty());
    }
}
