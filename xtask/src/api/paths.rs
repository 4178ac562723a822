//! Every path by which a user of the crate names something.
//!
//! Something with several paths is listed under the shortest; the others are aliases.

use std::collections::{BTreeMap, BTreeSet};

use super::cfg::Guard;
use super::names::{Def, Imported, Names, Reach};
use super::source::{Shown, head};

/// A public path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub segments: Vec<String>,
    /// Of the path and of what it names.
    pub guard: Guard,
    pub shown: Shown,
}

impl Path {
    pub(super) fn text(&self) -> String {
        self.segments.join("::")
    }
}

/// All public paths by what they name, the shortest first.
pub(super) struct Paths(BTreeMap<Def, Vec<Path>>);

impl Paths {
    pub(super) fn of(names: &Names) -> Self {
        let mut walk = Walk { names, found: BTreeMap::new(), inside: Vec::new() };
        let root = Path { segments: vec![names.krate.name.clone()], guard: Guard::new(), shown: Shown::Yes };
        walk.module(0, &root);
        let mut found = walk.found;
        for paths in found.values_mut() {
            paths.sort_by(|a, b| {
                let rank = |p: &Path| (p.shown, p.segments.len(), p.guard.len());
                rank(a).cmp(&rank(b)).then_with(|| a.segments.cmp(&b.segments)).then_with(|| a.guard.cmp(&b.guard))
            });
            paths.dedup();
        }
        Self(found)
    }

    /// The shortest path.
    pub(super) fn first(&self, def: &Def) -> Option<&Path> {
        self.0.get(def).and_then(|paths| paths.first())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Def, &[Path])> {
        self.0.iter().map(|(def, paths)| (def, &paths[..]))
    }
}

/// A name that a module offers.
struct Offer {
    name: String,
    def: Def,
    guard: Guard,
    shown: Shown,
}

struct Walk<'a> {
    names: &'a Names<'a>,
    found: BTreeMap<Def, Vec<Path>>,
    /// Modules around the place, so that one that holds itself is not entered again.
    inside: Vec<usize>,
}

impl Walk<'_> {
    fn module(&mut self, module: usize, path: &Path) {
        if self.inside.contains(&module) {
            return;
        }
        self.inside.push(module);
        for Offer { name, def, guard, shown } in offers(self.names, module, &mut Vec::new()) {
            let own = own(self.names, &def);
            let path = Path {
                segments: path.segments.iter().cloned().chain([name]).collect(),
                guard: [&path.guard, &guard, &own.0].into_iter().flatten().cloned().collect(),
                shown: shown.inside(path.shown).inside(own.1),
            };
            if let Def::Module(child) = def {
                self.module(child, &path);
            }
            self.found.entry(def).or_default().push(path);
        }
        self.inside.pop();
    }
}

/// Conditions under which something is defined, and whether its documentation is shown.
fn own(names: &Names, def: &Def) -> (Guard, Shown) {
    let entry = match def {
        Def::Item(module, entry) | Def::Variant(module, entry, _) => &names.krate.modules[*module].entries[*entry],
        Def::Module(child) => {
            let parent = &names.krate.modules[names.krate.modules[*child].parent];
            let Some(entry) = parent.entries.iter().find(|e| e.child == Some(*child)) else {
                return (Guard::new(), Shown::Yes);
            };
            entry
        }
        Def::Made(..) | Def::External(_) => return (Guard::new(), Shown::Yes),
    };
    (entry.guard.clone(), entry.shown)
}

/// The public names of a module: its own, those it imports by name, and those of its globs that these do not hide.
fn offers(names: &Names, module: usize, inside: &mut Vec<usize>) -> Vec<Offer> {
    if inside.contains(&module) {
        return Vec::new();
    }
    inside.push(module);
    let mut out = Vec::new();
    for (entry, e) in names.krate.modules[module].entries.iter().enumerate() {
        let head = head(&e.item);
        if let Some(name) = head.name.clone().filter(|_| head.is_public()) {
            let def = e.child.map_or(Def::Item(module, entry), Def::Module);
            out.push(Offer { name, def, guard: Guard::new(), shown: Shown::Yes });
        }
    }
    let public = || names.imports(module).iter().filter(|i| i.reach == Reach::Public);
    for import in public() {
        if let Imported::One(name) = &import.name {
            let defs = names.resolve(module, &import.path).into_iter().filter(|def| is_public(names, def));
            let (guard, shown) = (&import.guard, import.shown);
            out.extend(defs.map(|def| Offer { name: name.clone(), def, guard: guard.clone(), shown }));
        }
    }
    let named: BTreeSet<String> = out.iter().map(|o| o.name.clone()).collect();
    for import in public().filter(|i| i.name == Imported::All) {
        let all = names.resolve(module, &import.path).into_iter().flat_map(|def| contents(names, def, inside));
        out.extend(all.filter(|o| !named.contains(&o.name)).map(|mut offer| {
            offer.guard.extend(import.guard.iter().cloned());
            offer.shown = offer.shown.inside(import.shown);
            offer
        }));
    }
    inside.pop();
    out
}

/// What a glob brings.
fn contents(names: &Names, def: Def, inside: &mut Vec<usize>) -> Vec<Offer> {
    let plain = |name: String, def| Offer { name, def, guard: Guard::new(), shown: Shown::Yes };
    match def {
        Def::Module(module) => offers(names, module, inside),
        Def::Item(module, entry) => match &names.krate.modules[module].entries[entry].item {
            syn::Item::Enum(item) => {
                let all = item.variants.iter().map(|v| v.ident.to_string());
                all.map(|name| plain(name.clone(), Def::Variant(module, entry, name))).collect()
            }
            _ => Vec::new(),
        },
        Def::External(path) => vec![plain("*".into(), Def::External(format!("{path}::*")))],
        Def::Variant(..) | Def::Made(..) => Vec::new(),
    }
}

/// Whether a definition may be made public by an import.
fn is_public(names: &Names, def: &Def) -> bool {
    match def {
        Def::Item(module, entry) => head(&names.krate.modules[*module].entries[*entry].item).is_public(),
        Def::Module(0) | Def::Variant(..) | Def::Made(..) | Def::External(_) => true,
        Def::Module(child) => {
            let parent = &names.krate.modules[names.krate.modules[*child].parent];
            parent.entries.iter().any(|e| e.child == Some(*child) && head(&e.item).is_public())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cfg::tag;
    use super::super::source;
    use super::*;

    /// Paths of everything, each in its order.
    fn paths(text: &'static str) -> Vec<String> {
        let files = BTreeMap::from([("lib.rs", text)]);
        let krate = source::read("x", std::path::Path::new("lib.rs"), &files).unwrap();
        let paths = Paths::of(&Names::new(&krate));
        let shown = |p: &Path| {
            let hidden = if p.shown == Shown::Hidden { " (hidden)" } else { "" };
            format!("{}{}{hidden}", p.text(), tag(&p.guard))
        };
        paths.iter().map(|(_, paths)| paths.iter().map(shown).collect::<Vec<_>>().join(" = ")).collect()
    }

    #[test]
    fn only_what_is_public_all_the_way_has_a_path() {
        assert_eq!(
            paths("pub mod a { pub struct S; struct T; pub(crate) struct U; mod c { pub struct V; } }"),
            ["x::a", "x::a::S"]
        );
        assert_eq!(paths("mod a { pub struct S; }"), Vec::<String>::new());
    }

    #[test]
    fn the_shortest_path_comes_first() {
        assert_eq!(paths("pub mod a { pub struct S; } pub use a::S;"), ["x::a", "x::S = x::a::S"]);
        assert_eq!(paths("mod a { pub struct S; } pub use a::S as R;"), ["x::R"]);
        assert_eq!(
            paths("pub mod a { pub use super::b::S; } mod b { pub struct S; } #[doc(hidden)] pub use b::S;"),
            ["x::a", "x::a::S = x::S (hidden)"]
        );
    }

    #[test]
    fn globs_bring_public_names_that_are_not_hidden_by_others() {
        assert_eq!(
            paths("mod a { pub struct S; struct T; pub use super::b::*; } mod b { pub fn f() {} } pub use a::*;"),
            ["x::S", "x::f"]
        );
        assert_eq!(paths("mod a { pub struct S; } pub use a::*; pub struct S;"), ["x::S"]);
        assert_eq!(paths("pub enum E { V } pub use E::*;"), ["x::E", "x::V"]);
        assert_eq!(paths("pub use other::*;"), ["x::*"]);
        assert_eq!(paths("mod a { pub use super::*; } pub use a::*; pub struct S;"), ["x::S"]);
    }

    #[test]
    fn conditions_and_hiding_are_those_of_the_path_and_the_item() {
        let text = "#[cfg(feature = \"a\")] pub mod m { #[cfg(feature = \"b\")] pub struct S; }";
        assert_eq!(paths(text), ["x::m [feature a]", "x::m::S [feature a, feature b]"]);
        assert_eq!(
            paths("mod m { #[cfg(unix)] pub struct S; } #[cfg(feature = \"a\")] pub use m::S;"),
            ["x::S [feature a, unix]"]
        );
        assert_eq!(paths("#[doc(hidden)] pub mod m { pub struct S; }"), ["x::m (hidden)", "x::m::S (hidden)"]);
    }

    #[test]
    fn a_private_module_of_the_same_name_is_not_made_public() {
        assert_eq!(paths("mod m { mod f {} pub fn f() {} } pub use m::f;"), ["x::f"]);
    }
}
