//! The listing of a crate: a line an item, with its path as a user names it.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Fields, ForeignItem, ImplItem, Item, ItemImpl, ItemMacro, TraitItem, Type};

use super::cfg::{Guard, guard, tag};
use super::names::{Def, Names};
use super::paths::{Path, Paths};
use super::signature::{bounds, clause, function, parameters, shape, storage, tags, variant};
use super::source::{Crate, Entry, Shown, is_public};
use super::text;

/// Of a macro's call more characters than this are not shown.
const CALL: usize = 80;

/// The lines of a listing in its order.
type Lines = BTreeSet<Line>;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    shown: Shown,
    /// What it is about: what is in an item comes right behind it.
    key: String,
    kind: Kind,
    text: String,
}

/// Lines about one path come in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Item,
    Implementation,
    Call,
}

impl Line {
    fn new(shown: Shown, path: &str, kind: Kind, text: String) -> Self {
        Self { shown, key: path.replace("::", "\0").replace('<', "\u{1}"), kind, text }
    }
}

/// All lines of a crate: those that documentation shows, and those that it hides.
pub(super) fn list(krate: &Crate) -> (Vec<String>, Vec<String>) {
    let names = Names::new(krate);
    let paths = Paths::of(&names);
    let mut list = List { names: &names, paths: &paths, lines: Lines::new(), open: BTreeSet::from([0]) };
    for (def, paths) in paths.iter() {
        list.def(def, paths);
    }
    for module in 0..krate.modules.len() {
        list.unnamed(module);
    }
    let (shown, hidden): (Lines, Lines) = list.lines.into_iter().partition(|line| line.shown == Shown::Yes);
    let text = |lines: Lines| lines.into_iter().map(|line| line.text).collect();
    (text(shown), text(hidden))
}

struct List<'a> {
    names: &'a Names<'a>,
    paths: &'a Paths,
    lines: Lines,
    /// Modules of which something is public: their macros may make more of that kind.
    open: BTreeSet<usize>,
}

/// What all parts of an item have: the path before their names, their conditions, whether they are shown.
struct Part<'a> {
    path: &'a str,
    guard: &'a Guard,
    shown: Shown,
    /// Bounds of the impl block around them.
    bounds: &'a [String],
}

impl List<'_> {
    /// A line about an item or something in it; nothing where it is for tests.
    fn put(&mut self, part: &Part, attributes: &[syn::Attribute], name: &str, line: impl FnOnce(&str) -> String) {
        self.put_as(Kind::Item, part, attributes, name, line);
    }

    fn put_as(
        &mut self,
        kind: Kind,
        part: &Part,
        attributes: &[syn::Attribute],
        name: &str,
        line: impl FnOnce(&str) -> String,
    ) {
        let Some(own) = guard(attributes) else { return };
        let path = if name.is_empty() { part.path.to_owned() } else { format!("{}::{name}", part.path) };
        let guard: Guard = part.guard.iter().cloned().chain(own).collect();
        let line = line(&path) + &tags(attributes) + &tag(&guard);
        self.lines.insert(Line::new(Shown::of(attributes).inside(part.shown), &path, kind, line));
    }

    /// Something with public paths: itself under the first, a line an alias.
    fn def(&mut self, def: &Def, paths: &[Path]) {
        let [first, others @ ..] = paths else { return };
        let path = first.text();
        let line = match def {
            Def::Item(module, entry) => {
                self.open.insert(*module);
                self.item(&self.names.krate.modules[*module].entries[*entry].item, first);
                None
            }
            Def::Module(module) => {
                self.open.insert(*module);
                Some(format!("pub mod {path}"))
            }
            Def::Variant(module, entry, name) => {
                let of = self.paths.first(&Def::Item(*module, *entry)).map(Path::text);
                let of = of.unwrap_or_else(|| self.names.krate.modules[*module].path.join("::"));
                Some(format!("alias {path} = {of}::{name}"))
            }
            Def::Made(module, _) => {
                self.open.insert(*module);
                Some(format!("macro-made: {path}"))
            }
            Def::External(from) => Some(format!("pub use {from} as {path}")),
        };
        let all = line.into_iter().map(|line| (first, line));
        for (at, line) in all.chain(others.iter().map(|at| (at, format!("alias {} = {path}", at.text())))) {
            self.lines.insert(Line::new(at.shown, &at.text(), Kind::Item, line + &tag(&at.guard)));
        }
    }

    fn item(&mut self, item: &Item, at: &Path) {
        // Conditions of the item itself are among those of its path.
        let path = at.text();
        let part = Part { path: &path, guard: &at.guard, shown: at.shown, bounds: &[] };
        match item {
            Item::Fn(i) => self.put(&part, &i.attrs, "", |path| format!("pub {}", function(&i.sig, path, &[]))),
            Item::Const(i) => {
                self.put(&part, &i.attrs, "", |path| {
                    format!("pub const {path}: {}", text::line(i.ty.to_token_stream()))
                });
            }
            Item::Static(i) => self.put(&part, &i.attrs, "", |path| {
                format!("pub {} {path}: {}", storage(&i.mutability), text::line(i.ty.to_token_stream()))
            }),
            Item::Type(i) => self.put(&part, &i.attrs, "", |path| {
                let (parameters, clause) = (parameters(&i.generics), clause(&[], &i.generics));
                format!("pub type {path}{parameters}{clause} = {}", text::line(i.ty.to_token_stream()))
            }),
            Item::TraitAlias(i) => self.put(&part, &i.attrs, "", |path| {
                format!("pub trait {path}{} = {}", parameters(&i.generics), text::line(i.bounds.to_token_stream()))
            }),
            Item::Struct(i) => {
                self.put(&part, &i.attrs, "", |path| {
                    format!("pub struct {path}{}{}", parameters(&i.generics), shape(&i.fields, &i.generics))
                });
                self.fields(&i.fields, &part);
            }
            Item::Union(i) => {
                let fields = Fields::Named(i.fields.clone());
                self.put(&part, &i.attrs, "", |path| {
                    format!("pub union {path}{}{}", parameters(&i.generics), shape(&fields, &i.generics))
                });
                self.fields(&fields, &part);
            }
            Item::Enum(i) => self.enumeration(i, &part),
            Item::Trait(i) => self.interface(i, &part),
            _ => {}
        }
    }

    /// Public fields that have names.
    fn fields(&mut self, fields: &Fields, part: &Part) {
        let Fields::Named(named) = fields else { return };
        for field in named.named.iter().filter(|f| is_public(&f.vis)) {
            let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
            self.put(part, &field.attrs, &name, |path| {
                format!("field {path}: {}", text::line(field.ty.to_token_stream()))
            });
        }
    }

    fn enumeration(&mut self, item: &syn::ItemEnum, part: &Part) {
        self.put(part, &item.attrs, "", |path| {
            format!("pub enum {path}{}{}", parameters(&item.generics), clause(&[], &item.generics))
        });
        for v in &item.variants {
            let value = v.discriminant.as_ref().map(|(_, value)| format!(" = {}", text::line(value.to_token_stream())));
            self.put(part, &v.attrs, &v.ident.to_string(), |path| {
                format!("variant {path}{}{}", variant(&v.fields), value.unwrap_or_default())
            });
        }
    }

    /// A trait and what is in it; what an implementation need not give ends with `{ .. }`.
    fn interface(&mut self, item: &syn::ItemTrait, part: &Part) {
        let unsafety = if item.unsafety.is_some() { "unsafe " } else { "" };
        let above = text::line(item.supertraits.to_token_stream());
        let above = if above.is_empty() { above } else { format!(": {above}") };
        self.put(part, &item.attrs, "", |path| {
            format!("pub {unsafety}trait {path}{}{above}{}", parameters(&item.generics), clause(&[], &item.generics))
        });
        let given = |is_given: bool| if is_given { " { .. }" } else { "" };
        for inner in &item.items {
            match inner {
                TraitItem::Fn(f) => self.put(part, &f.attrs, &f.sig.ident.to_string(), |path| {
                    function(&f.sig, path, &[]) + given(f.default.is_some())
                }),
                TraitItem::Const(c) => self.put(part, &c.attrs, &c.ident.to_string(), |path| {
                    format!("const {path}: {}{}", text::line(c.ty.to_token_stream()), given(c.default.is_some()))
                }),
                TraitItem::Type(t) => self.put(part, &t.attrs, &t.ident.to_string(), |path| {
                    let bounds = text::line(t.bounds.to_token_stream());
                    let bounds = if bounds.is_empty() { bounds } else { format!(": {bounds}") };
                    let (parameters, clause) = (parameters(&t.generics), clause(&[], &t.generics));
                    format!("type {path}{parameters}{bounds}{clause}{}", given(t.default.is_some()))
                }),
                TraitItem::Macro(m) => self.put_as(Kind::Call, part, &m.attrs, "", |path| call(path, &m.mac)),
                _ => {}
            }
        }
    }

    /// Impl blocks, macros, and calls of macros, wherever they stand.
    fn unnamed(&mut self, module: usize) {
        for entry in &self.names.krate.modules[module].entries {
            match &entry.item {
                Item::Impl(block) if block.trait_.is_some() => self.implementation(module, entry, block),
                Item::Impl(block) => self.inherent(module, entry, block),
                Item::Macro(item) => self.macro_item(module, entry, item),
                Item::ForeignMod(_) => self.foreign(module, entry),
                _ => {}
            }
        }
    }

    fn macro_item(&mut self, module: usize, entry: &Entry, item: &ItemMacro) {
        let krate = self.names.krate;
        let part = |path| Part { path, guard: &entry.guard, shown: entry.shown, bounds: &[] };
        match &item.ident {
            Some(name) if item.attrs.iter().any(|a| a.path().is_ident("macro_export")) => {
                self.put(&part(&krate.name), &item.attrs, &name.to_string(), |path| format!("macro {path}!"));
            }
            None if self.open.contains(&module) => {
                let path = krate.modules[module].path.join("::");
                self.put_as(Kind::Call, &part(&path), &item.attrs, "", |path| call(path, &item.mac));
            }
            _ => {}
        }
    }

    /// Functions of other languages in a public module.
    fn foreign(&mut self, module: usize, entry: &Entry) {
        let (Item::ForeignMod(block), Some(at)) = (&entry.item, self.paths.first(&Def::Module(module))) else { return };
        let path = at.text();
        let part = Part { path: &path, guard: &entry.guard, shown: entry.shown.inside(at.shown), bounds: &[] };
        for inner in &block.items {
            if let ForeignItem::Fn(f) = inner
                && is_public(&f.vis)
            {
                let abi = text::line(block.abi.to_token_stream());
                self.put(&part, &f.attrs, &f.sig.ident.to_string(), |path| {
                    format!("pub {abi} {}", function(&f.sig, path, &[]))
                });
            }
        }
    }

    /// Public functions, constants and types of a type with a public path.
    fn inherent(&mut self, module: usize, entry: &Entry, block: &ItemImpl) {
        let Some(at) = self.owner(module, &block.self_ty) else { return };
        let path = at.text() + &arguments(&block.self_ty);
        let guard: Guard = entry.guard.union(&at.guard).cloned().collect();
        let bounds = bounds(&block.generics);
        let part = Part { path: &path, guard: &guard, shown: entry.shown.inside(at.shown), bounds: &bounds };
        for inner in &block.items {
            self.associated(inner, &part);
        }
    }

    fn associated(&mut self, item: &ImplItem, part: &Part) {
        let none = syn::Generics::default();
        match item {
            ImplItem::Fn(f) if is_public(&f.vis) => self.put(part, &f.attrs, &f.sig.ident.to_string(), |path| {
                format!("pub {}", function(&f.sig, path, part.bounds))
            }),
            ImplItem::Const(c) if is_public(&c.vis) => self.put(part, &c.attrs, &c.ident.to_string(), |path| {
                format!("pub const {path}: {}{}", text::line(c.ty.to_token_stream()), clause(part.bounds, &none))
            }),
            ImplItem::Macro(m) => self.put_as(Kind::Call, part, &m.attrs, "", |path| call(path, &m.mac)),
            _ => {}
        }
    }

    /// `impl Trait for Type`, where a user can name both.
    fn implementation(&mut self, module: usize, entry: &Entry, block: &ItemImpl) {
        let Some((not, of, _)) = &block.trait_ else { return };
        let generics: BTreeSet<String> = parameter_names(&block.generics);
        let (Some(of), Some(on)) = (
            self.named(module, of.to_token_stream(), &generics),
            self.named(module, block.self_ty.to_token_stream(), &generics),
        ) else {
            return;
        };
        let owner = self.owner(module, &block.self_ty);
        // What is about types of others is about the trait.
        let path = owner.map_or_else(|| of.split('<').next().unwrap_or_default().to_owned(), Path::text);
        let guard: Guard = entry.guard.iter().chain(owner.iter().flat_map(|at| &at.guard)).cloned().collect();
        let shown = owner.map_or(entry.shown, |at| entry.shown.inside(at.shown));
        let unsafety = if block.unsafety.is_some() { "unsafe " } else { "" };
        let not = if not.is_some() { "!" } else { "" };
        let types: Vec<String> = block
            .items
            .iter()
            .filter_map(|i| if let ImplItem::Type(t) = i { Some(t) } else { None })
            .map(|t| format!("type {}{} = {}", t.ident, parameters(&t.generics), text::line(t.ty.to_token_stream())))
            .collect();
        let types = if types.is_empty() { String::new() } else { format!(" {{ {} }}", types.join("; ")) };
        let (parameters, clause) = (parameters(&block.generics), clause(&[], &block.generics));
        let part = Part { path: &path, guard: &guard, shown, bounds: &[] };
        self.put_as(Kind::Implementation, &part, &block.attrs, "", |_| {
            format!("{unsafety}impl{parameters} {not}{of} for {on}{clause}{types}")
        });
    }

    /// The public path of the type that an impl block is about.
    fn owner(&self, module: usize, on: &Type) -> Option<&Path> {
        let Type::Path(on) = on else { return None };
        let segments: Vec<String> = on.path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.names.resolve(module, &segments).iter().find_map(|def| self.paths.first(def))
    }

    /// Tokens with public paths in the place of paths, or `None` where one has none.
    fn named(&self, module: usize, tokens: TokenStream, generics: &BTreeSet<String>) -> Option<String> {
        let words = text::words(tokens);
        let mut out = Vec::new();
        let mut i = 0;
        while i < words.len() {
            let mut end = i + 1;
            while is_name(&words[end - 1])
                && words.get(end).is_some_and(|w| w == "::")
                && words.get(end + 1).is_some_and(|w| is_name(w))
            {
                end += 2;
            }
            let path: Vec<String> = words[i..end].iter().filter(|w| *w != "::").cloned().collect();
            // A name behind a type, as in <T as Scalar>::Real, is that type's.
            let is_free = i == 0 || words[i - 1] != "::";
            if is_name(&words[i]) && is_free && !generics.contains(&path[0]) {
                out.push(self.path_of(module, &path)?);
            } else {
                out.extend(words[i..end].iter().cloned());
            }
            i = end;
        }
        Some(text::join(&out))
    }

    /// The path of a user for one of the sources.
    fn path_of(&self, module: usize, path: &[String]) -> Option<String> {
        let defs = self.names.resolve(module, path);
        if let Some(at) =
            defs.iter().find_map(|def| if let Def::External(_) = def { None } else { self.paths.first(def) })
        {
            return Some(at.text());
        }
        defs.into_iter().find_map(|def| if let Def::External(path) = def { Some(path) } else { None })
    }
}

/// A call of a macro among items, cut short.
fn call(path: &str, call: &syn::Macro) -> String {
    let name = text::line(call.path.to_token_stream());
    let all = text::line(call.tokens.clone());
    let cut: String = all.chars().take(CALL).collect();
    let cut = if cut == all { cut } else { format!("{} …", cut.trim_end()) };
    format!("macro-made: {path}: {name}!({cut})")
}

/// The type arguments of a type, as they are written.
fn arguments(of: &Type) -> String {
    let Type::Path(of) = of else { return String::new() };
    of.path.segments.last().map(|s| text::line(s.arguments.to_token_stream())).unwrap_or_default()
}

fn parameter_names(generics: &syn::Generics) -> BTreeSet<String> {
    let types = generics.type_params().map(|t| t.ident.to_string());
    types.chain(generics.const_params().map(|c| c.ident.to_string())).collect()
}

/// Whether a word may be a name of an item.
fn is_name(word: &str) -> bool {
    let begins = word.starts_with(|c: char| c.is_alphabetic() || c == '_');
    begins && !["as", "const", "dyn", "extern", "fn", "for", "impl", "mut", "unsafe", "Self", "_"].contains(&word)
}

#[cfg(test)]
mod tests;
