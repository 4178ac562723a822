//! What `#[cfg(…)]` leaves in a build that is not for tests: nothing, or conditions to name.

use std::collections::BTreeSet;

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Token};

use super::text;

/// Conditions that must all hold, as the listing shows them.
pub(super) type Guard = BTreeSet<String>;

/// When an item is there.
#[derive(Debug, PartialEq, Eq)]
enum There {
    Never,
    /// With no conditions always.
    If(Guard),
}

/// The conditions of an item; `None` for one that is there in tests only.
pub(super) fn guard(attributes: &[Attribute]) -> Option<Guard> {
    let mut guard = Guard::new();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("cfg")) {
        match attribute.parse_args().map_or_else(|_| unread(attribute), |meta| there(&meta)) {
            There::Never => return None,
            There::If(more) => guard.extend(more),
        }
    }
    Some(guard)
}

/// The conditions as the end of a line.
pub(super) fn tag(guard: &Guard) -> String {
    if guard.is_empty() { String::new() } else { format!(" [{}]", list(guard)) }
}

fn list(guard: &Guard) -> String {
    guard.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn unread(attribute: &Attribute) -> There {
    one(text::line(attribute.meta.to_token_stream()))
}

fn one(condition: String) -> There {
    There::If(Guard::from([condition]))
}

fn there(meta: &Meta) -> There {
    match meta {
        Meta::Path(path) if path.is_ident("test") => There::Never,
        Meta::NameValue(pair) if pair.path.is_ident("feature") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) => one(format!("feature {}", name.value())),
            _ => one(text::line(meta.to_token_stream())),
        },
        Meta::List(list) => {
            let Ok(parts) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) else {
                return one(text::line(meta.to_token_stream()));
            };
            let parts = parts.iter().map(there);
            match list.path.get_ident().map(ToString::to_string).as_deref() {
                Some("not") => parts.map(not).next().unwrap_or(There::Never),
                Some("all") => all(parts),
                Some("any") => any(parts),
                _ => one(text::line(meta.to_token_stream())),
            }
        }
        _ => one(text::line(meta.to_token_stream())),
    }
}

fn not(part: There) -> There {
    match part {
        There::Never => There::If(Guard::new()),
        There::If(guard) if guard.is_empty() => There::Never,
        There::If(guard) => one(format!("not({})", as_one(&guard))),
    }
}

fn all(parts: impl Iterator<Item = There>) -> There {
    let mut guard = Guard::new();
    for part in parts {
        match part {
            There::Never => return There::Never,
            There::If(more) => guard.extend(more),
        }
    }
    There::If(guard)
}

fn any(parts: impl Iterator<Item = There>) -> There {
    let choices: Vec<Guard> =
        parts.filter_map(|part| if let There::If(guard) = part { Some(guard) } else { None }).collect();
    match &choices[..] {
        [] => There::Never,
        [only] => There::If(only.clone()),
        several if several.iter().any(BTreeSet::is_empty) => There::If(Guard::new()),
        several => one(format!("any({})", several.iter().map(as_one).collect::<Vec<_>>().join(", "))),
    }
}

/// Several conditions as one.
fn as_one(guard: &Guard) -> String {
    if guard.len() == 1 { list(guard) } else { format!("all({})", list(guard)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(attributes: &str) -> Option<String> {
        let item: syn::ItemUse = syn::parse_str(&format!("{attributes} use x;")).unwrap();
        guard(&item.attrs).map(|g| tag(&g))
    }

    #[test]
    fn tests_are_left_out() {
        assert_eq!(shown("#[cfg(test)]"), None);
        assert_eq!(shown("#[cfg(all(test, unix))]"), None);
        assert_eq!(shown("#[cfg(not(not(test)))]"), None);
        assert_eq!(shown("#[cfg(any(test))]"), None);
        assert_eq!(shown("#[cfg(not(test))]").as_deref(), Some(""));
        assert_eq!(shown("#[inline]").as_deref(), Some(""));
    }

    #[test]
    fn conditions_are_named_in_one_order() {
        assert_eq!(shown("#[cfg(feature = \"cuda\")]").as_deref(), Some(" [feature cuda]"));
        assert_eq!(
            shown("#[cfg(unix)] #[cfg(feature = \"b\")] #[cfg(feature = \"a\")]").as_deref(),
            Some(" [feature a, feature b, unix]")
        );
        assert_eq!(
            shown("#[cfg(all(any(debug_assertions, feature = \"compiled\"), not(test)))]").as_deref(),
            Some(" [any(debug_assertions, feature compiled)]")
        );
        assert_eq!(shown("#[cfg(any(test, feature = \"a\"))]").as_deref(), Some(" [feature a]"));
        assert_eq!(shown("#[cfg(any(unix, not(test)))]").as_deref(), Some(""));
        assert_eq!(
            shown("#[cfg(not(all(unix, target_arch = \"x86_64\")))]").as_deref(),
            Some(" [not(all(target_arch = \"x86_64\", unix))]")
        );
    }
}
