//! Licences of all dependencies, read from their manifests as SPDX expressions.
//!
//! Grammar (SPDX 2.3, annex D), `AND` binding tighter than `OR`; the old `/` of crates.io means `OR`:
//!
//! ```text
//! any  = all { ("OR" | "/") all }
//! all  = one { "AND" one }
//! one  = "(" any ")" | id [ "WITH" exception ]
//! ```

use std::iter::Peekable;

use cargo_metadata::Metadata;

use super::Violation;

/// Licences whose terms a program under MIT OR Apache-2.0 can meet by naming its dependencies.
const ALLOWED: [&str; 16] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "OFL-1.1",
    "Ubuntu-font-1.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// All packages of the dependency graph, the workspace's own included.
pub(super) fn check(metadata: &Metadata) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in &metadata.packages {
        let reason = match package.license.as_deref().map(|l| (l, permits(l))) {
            Some((_, Ok(true))) => continue,
            Some((licence, Ok(false))) => format!("licence '{licence}' is not on the list"),
            Some((licence, Err(why))) => format!("licence '{licence}' cannot be read: {why}"),
            None => "names no licence".into(),
        };
        violations.push(Violation { file: format!("{} {}", package.name, package.version), reason });
    }
    violations
}

/// Whether the expression leaves a choice on the list.
fn permits(expression: &str) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut tokens = spaced.split_whitespace().peekable();
    let permitted = any(&mut tokens)?;
    tokens.next().map_or(Ok(permitted), |rest| Err(format!("unexpected '{rest}'")))
}

fn any<'a>(tokens: &mut Peekable<impl Iterator<Item = &'a str>>) -> Result<bool, String> {
    let mut permitted = all(tokens)?;
    while tokens.next_if_eq(&"OR").is_some() {
        permitted |= all(tokens)?;
    }
    Ok(permitted)
}

fn all<'a>(tokens: &mut Peekable<impl Iterator<Item = &'a str>>) -> Result<bool, String> {
    let mut permitted = one(tokens)?;
    while tokens.next_if_eq(&"AND").is_some() {
        permitted &= one(tokens)?;
    }
    Ok(permitted)
}

fn one<'a>(tokens: &mut Peekable<impl Iterator<Item = &'a str>>) -> Result<bool, String> {
    match tokens.next() {
        Some("(") => {
            let permitted = any(tokens)?;
            tokens.next_if_eq(&")").map_or_else(|| Err("a parenthesis is not closed".into()), |_| Ok(permitted))
        }
        None | Some(")" | "AND" | "OR" | "WITH") => Err("a licence is missing".into()),
        Some(id) if tokens.next_if_eq(&"WITH").is_some() => {
            let exception = tokens.next().ok_or("an exception is missing after WITH")?;
            Ok(ALLOWED.contains(&format!("{id} WITH {exception}").as_str()))
        }
        Some(id) => Ok(ALLOWED.contains(&id)),
    }
}

#[cfg(test)]
mod tests {
    use super::permits;

    #[test]
    fn or_needs_one_and_needs_all() {
        assert_eq!(permits("MIT OR GPL-3.0-only"), Ok(true));
        assert_eq!(permits("MIT AND GPL-3.0-only"), Ok(false));
        assert_eq!(permits("GPL-3.0-only"), Ok(false));
        assert_eq!(permits("MIT/Apache-2.0"), Ok(true));
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert_eq!(permits("GPL-3.0-only AND MIT OR MIT"), Ok(true));
        assert_eq!(permits("MIT OR MIT AND GPL-3.0-only"), Ok(true));
        assert_eq!(permits("(MIT OR MIT) AND GPL-3.0-only"), Ok(false));
        assert_eq!(permits("(MIT OR Apache-2.0) AND OFL-1.1 AND Ubuntu-font-1.0"), Ok(true));
    }

    #[test]
    fn exceptions_belong_to_their_licence() {
        assert_eq!(permits("Apache-2.0 WITH LLVM-exception"), Ok(true));
        assert_eq!(permits("GPL-2.0-only WITH Classpath-exception-2.0"), Ok(false));
    }

    #[test]
    fn nonsense_is_an_error() {
        for bad in ["", "MIT OR", "(MIT", "MIT)", "MIT MIT", "AND", "Apache-2.0 WITH"] {
            assert!(permits(bad).is_err(), "{bad:?} was read");
        }
    }
}
