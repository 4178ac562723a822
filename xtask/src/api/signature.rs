//! Signatures with a path in the place of the name, and without a body.

use quote::ToTokens;
use syn::{Attribute, Field, Fields, FnArg, GenericParam, Generics, Pat, ReturnType, Signature, StaticMutability};

use super::source::is_public;
use super::text::line;

/// Bounds of an impl block, which hold for what is in it: as a user reads them, in a where clause.
pub(super) fn bounds(generics: &Generics) -> Vec<String> {
    let mut out = Vec::new();
    for param in &generics.params {
        match param {
            GenericParam::Type(t) if !t.bounds.is_empty() => {
                out.push(format!("{}: {}", t.ident, line(t.bounds.to_token_stream())));
            }
            GenericParam::Lifetime(l) if !l.bounds.is_empty() => out.push(line(param.to_token_stream())),
            GenericParam::Const(_) => out.push(line(param.to_token_stream())),
            GenericParam::Type(_) | GenericParam::Lifetime(_) => {}
        }
    }
    out.extend(predicates(generics));
    out
}

fn predicates(generics: &Generics) -> Vec<String> {
    let clause = generics.where_clause.iter().flat_map(|c| &c.predicates);
    clause.map(|p| line(p.to_token_stream())).collect()
}

/// The parameters in angle brackets, with their bounds and defaults.
pub(super) fn parameters(generics: &Generics) -> String {
    let all: Vec<String> = generics.params.iter().map(|p| line(p.to_token_stream())).collect();
    if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
}

/// The where clause with what an impl block demands.
pub(super) fn clause(outer: &[String], generics: &Generics) -> String {
    let all: Vec<String> = outer.iter().cloned().chain(predicates(generics)).collect();
    if all.is_empty() { String::new() } else { format!(" where {}", all.join(", ")) }
}

/// A function.
pub(super) fn function(signature: &Signature, path: &str, outer: &[String]) -> String {
    let mut out = String::new();
    for (word, is_there) in [
        ("const ", signature.constness.is_some()),
        ("async ", signature.asyncness.is_some()),
        ("unsafe ", signature.unsafety.is_some()),
    ] {
        if is_there {
            out += word;
        }
    }
    if let Some(abi) = &signature.abi {
        out += &line(abi.to_token_stream());
        out.push(' ');
    }
    let arguments: Vec<String> = signature.inputs.iter().map(argument).collect();
    let variadic = if signature.variadic.is_some() { ", ..." } else { "" };
    let returned = match &signature.output {
        ReturnType::Default => String::new(),
        ReturnType::Type(_, t) => format!(" -> {}", line(t.to_token_stream())),
    };
    let (generics, clause) = (parameters(&signature.generics), clause(outer, &signature.generics));
    out + &format!("fn {path}{generics}({}{variadic}){returned}{clause}", arguments.join(", "))
}

/// An argument as callers see it: whether it may change inside, or is taken apart there, is not theirs.
fn argument(argument: &FnArg) -> String {
    match argument {
        FnArg::Receiver(own) => {
            let text = line(own.to_token_stream());
            text.strip_prefix("mut ").map_or(text.clone(), str::to_owned)
        }
        FnArg::Typed(typed) => {
            let name = if let Pat::Ident(name) = &*typed.pat { name.ident.to_string() } else { "_".into() };
            format!("{name}: {}", line(typed.ty.to_token_stream()))
        }
    }
}

/// The shape of a structure behind its name; public fields with names are lines of their own.
pub(super) fn shape(fields: &Fields, generics: &Generics) -> String {
    let clause = clause(&[], generics);
    match fields {
        Fields::Named(named) if named.named.iter().all(|f| is_public(&f.vis)) => format!("{clause} {{}}"),
        Fields::Named(_) => format!("{clause} {{ .. }}"),
        Fields::Unnamed(unnamed) => {
            let of = |f: &Field| {
                if is_public(&f.vis) { format!("pub {}", line(f.ty.to_token_stream())) } else { "_".into() }
            };
            format!("({}){clause}", unnamed.unnamed.iter().map(of).collect::<Vec<_>>().join(", "))
        }
        Fields::Unit => clause,
    }
}

/// The fields of a variant, which are all public.
pub(super) fn variant(fields: &Fields) -> String {
    let typed = |f: &Field| line(f.ty.to_token_stream());
    match fields {
        Fields::Named(named) => {
            let of =
                |f: &Field| format!("{}: {}", f.ident.as_ref().map(ToString::to_string).unwrap_or_default(), typed(f));
            format!(" {{ {} }}", named.named.iter().map(of).collect::<Vec<_>>().join(", "))
        }
        Fields::Unnamed(unnamed) => format!("({})", unnamed.unnamed.iter().map(typed).collect::<Vec<_>>().join(", ")),
        Fields::Unit => String::new(),
    }
}

/// What attributes say to users, at the end of a line.
pub(super) fn tags(attributes: &[Attribute]) -> String {
    let mut derives = Vec::new();
    let mut others = Vec::new();
    for attribute in attributes {
        if attribute.path().is_ident("derive") {
            if let Ok(list) = attribute.meta.require_list() {
                derives.extend(line(list.tokens.clone()).split(", ").map(|d| d.trim_end_matches(',').to_owned()));
            }
        } else if ["non_exhaustive", "repr", "deprecated"].iter().any(|name| attribute.path().is_ident(name)) {
            others.push(format!(" [{}]", line(attribute.meta.to_token_stream())));
        }
    }
    derives.sort();
    others.sort();
    let derived = if derives.is_empty() { String::new() } else { format!(" [derive {}]", derives.join(", ")) };
    derived + &others.concat()
}

/// `static` or `static mut`.
pub(super) fn storage(mutability: &StaticMutability) -> &'static str {
    if matches!(mutability, StaticMutability::Mut(_)) { "static mut" } else { "static" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_of(text: &str) -> String {
        let item: syn::ItemFn = syn::parse_str(&format!("{text} {{}}")).unwrap();
        function(&item.sig, "x::f", &["T: Scalar".into()])
    }

    #[test]
    fn a_function_is_one_line_without_its_body() {
        assert_eq!(
            function_of(
                "pub async unsafe extern \"C\" fn f<'a, const N: usize>(\n  x: &'a [u8; N],\n mut y: u8,\n (a, b): (u8, u8),\n) -> u8 where u8: Copy"
            ),
            "async unsafe extern \"C\" fn x::f<'a, const N: usize>(x: &'a [u8; N], y: u8, _: (u8, u8)) -> u8 \
             where T: Scalar, u8: Copy"
        );
        assert_eq!(function_of("fn f(mut self, x: impl Fn(u8))"), "fn x::f(self, x: impl Fn(u8)) where T: Scalar");
        assert_eq!(function_of("fn f(&mut self)"), "fn x::f(&mut self) where T: Scalar");
    }

    #[test]
    fn bounds_of_an_impl_block_are_a_clause() {
        let block: syn::ItemImpl =
            syn::parse_str("impl<'a: 'static, T: Scalar + Send, U, const N: usize> S<T, U, N> where U: Copy, {}")
                .unwrap();
        assert_eq!(bounds(&block.generics), ["'a: 'static", "T: Scalar + Send", "const N: usize", "U: Copy"]);
    }

    #[test]
    fn private_fields_are_told_by_their_presence() {
        let shape_of = |text: &str| {
            let item: syn::ItemStruct = syn::parse_str(text).unwrap();
            shape(&item.fields, &item.generics)
        };
        assert_eq!(shape_of("struct S<T> where T: Copy { pub a: T, b: T }"), " where T: Copy { .. }");
        assert_eq!(shape_of("struct S { pub a: u8 }"), " {}");
        assert_eq!(shape_of("struct S(pub u8, u8);"), "(pub u8, _)");
        assert_eq!(shape_of("struct S;"), "");
    }

    #[test]
    fn derives_come_in_one_order() {
        let item: syn::ItemStruct = syn::parse_str(
            "#[derive(Debug, Clone,)] #[non_exhaustive] #[derive(thiserror::Error)] #[inline] struct S;",
        )
        .unwrap();
        assert_eq!(tags(&item.attrs), " [derive Clone, Debug, thiserror::Error] [non_exhaustive]");
    }
}
