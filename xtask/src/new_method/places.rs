//! What a new method needs beside its file, as text to paste.

use super::name::Name;

/// A place and what belongs there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub file: &'static str,
    pub what: String,
    pub code: String,
}

impl Place {
    fn new(file: &'static str, what: impl Into<String>, code: impl Into<String>) -> Self {
        Self { file, what: what.into(), code: code.into() }
    }
}

/// All of them, in the order of work.
pub(super) fn places(name: &Name) -> Vec<Place> {
    let Name { kebab, snake, camel } = name;
    vec![
        Place::new(
            "crates/bt-direct/src/instances.rs",
            "what is compiled with the crate; its name in the imports, and in the list of factorizations",
            format!("methods::<T, {camel}<T>>();\ncompile!({camel}::<T>::new, {camel}::<T>::refactor);"),
        ),
        Place::new(
            "crates/bt-direct/tests/methods/contracts.rs",
            format!(
                "its name in the imports, a constructor, `{snake}: Limited;` in catalogue_tests!, a line in check_refactor"
            ),
            format!(
                "fn {snake}<T: Scalar>(s: &System<T>) -> Option<Factored<T>> {{\n    \
                 Some({camel}::new(&Band::from_csr(&s.a).ok()?).map(|f| Box::new(f) as _))\n}}\n\n    \
                 {snake}: Limited;\n\n    \
                 named(\"{kebab}\", refactor_contract(&f, &s, Some(&z), {camel}::new, {camel}::refactor))?;"
            ),
        ),
        Place::new(
            "crates/bt-direct/tests/methods/refactor.rs",
            "its name in the imports, a line in check_all",
            format!("band.check(\"{kebab}\", All, |a| Ok(boxed({camel}::new(&*Given::Csr(a).band(kl, ku)?)?)))?;"),
        ),
        Place::new(
            "crates/blocktri/src/direct.rs",
            "the variant of Direct, and its row in DIRECT",
            format!(
                "    /// TODO({kebab}): what it is.\n    {camel},\n\n        \
                 row(Direct::{camel}, \"{kebab}\", \"TODO({kebab}): what it is, in a line\", Band, Some(Direct::BandLu), Extent::band_with_fill),"
            ),
        ),
        Place::new(
            "crates/blocktri/src/build.rs",
            "its name in the imports, and how it is made of A, which the compiler asks for",
            format!(
                "            Direct::{camel} => {{\n                let band = self.band()?;\n                \
                 Ok(Made::new({camel}::new(&band)?, band.bytes()))\n            }}"
            ),
        ),
        Place::new("crates/blocktri/src/plan.rs", "its count of operations, if `auto` may take it", ""),
        Place::new(
            "ARCHITECTURE.md",
            "under crates/bt-direct/src",
            format!("- `{snake}.rs`: TODO({kebab}): what it is"),
        ),
        Place::new(
            "docs/src/direct.md",
            "a row of the table, and a section",
            format!(
                "| `{kebab}` | for | flops to factor | values stored | pivoting |\n\n\
                 **{kebab}.** TODO({kebab}): what it is for, when it breaks down, what it costs."
            ),
        ),
        Place::new("CHANGELOG.md", "a word in the line on direct methods", ""),
        Place::new("docs/api", "the new public items", "cargo xtask api --write"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_names_the_method_in_its_spelling() {
        let all = places(&Name::read("band-qr").unwrap());
        let code = |file: &str| &all.iter().find(|p| p.file.ends_with(file)).unwrap().code;
        assert!(
            code("contracts.rs").contains("fn band_qr<T: Scalar>") && code("contracts.rs").contains("BandQr::refactor")
        );
        assert!(
            code("direct.rs").contains("row(Direct::BandQr, \"band-qr\",")
                && code("build.rs").contains("Direct::BandQr =>")
        );
        assert!(code("ARCHITECTURE.md").starts_with("- `band_qr.rs`: "));
        assert!(code("direct.md").contains("**band-qr.**"));
    }
}
