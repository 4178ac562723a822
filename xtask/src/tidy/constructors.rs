//! Factors, preconditioners and iterations are made and made again in one way: `new(a, …)` with what has no default,
//! `with_options(a, …, monitor)` where there is more to choose, `with_monitor(a, monitor)` where there is nothing but the monitor;
//! `refactor(a)` and `refactor_with_monitor(a, monitor)`. A constructor that takes a part which the caller has is named after it.

use std::fs;
use std::path::Path;

use super::Violation;
use crate::process::{Context, Result};

const LISTINGS: [&str; 4] =
    ["docs/api/bt-direct.txt", "docs/api/bt-iter.txt", "docs/api/bt-kernels.txt", "docs/api/bt-parallel.txt"];
const CONSTRUCTORS: [&str; 2] = ["with_options", "with_monitor"];
/// An analysis, an order, solvers and factors that are there.
const OF_PARTS: [&str; 5] = ["with_symbolic", "with_order", "with_last", "with_solver", "with_factors"];
const REFACTORS: [&str; 2] = ["refactor", "refactor_with_monitor"];
/// What has a default, and is therefore not for `new`.
const OPTIONS: [&str; 3] = ["options: ", "omega: ", "monitor: "];

/// The public functions of the crates of methods.
pub(super) fn check(root: &Path) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for listing in LISTINGS {
        let text = fs::read_to_string(root.join(listing)).context(listing)?;
        found.extend(other_ways(&text).into_iter().map(|reason| Violation { file: listing.to_owned(), reason }));
    }
    Ok(found)
}

/// What is wrong with the functions of a listing.
fn other_ways(listing: &str) -> Vec<String> {
    let mut found: Vec<String> = listing.lines().filter_map(other_way).collect();
    // A type has one of the two.
    let path =
        |line: &str, name: &str| Some(line.strip_prefix("pub fn ")?.split_once(&format!("::{name}"))?.0.to_owned());
    let with_options: Vec<_> = listing.lines().filter_map(|line| path(line, "with_options")).collect();
    let twice = listing.lines().filter_map(|line| path(line, "with_monitor")).filter(|of| with_options.contains(of));
    found.extend(twice.map(|of| format!("`{of}::with_monitor`: with_options takes the monitor")));
    found
}

/// What is wrong with a function, as the listing has it: `pub fn path::Type<T>::name(…) -> …`.
fn other_way(line: &str) -> Option<String> {
    let (path, rest) = line.strip_prefix("pub fn ")?.split_once('(')?;
    let name = path.rsplit("::").next()?.split('<').next()?;
    let makes_factors = rest.contains("-> Result<Self") && rest.contains("a: ");
    let known = match name {
        _ if name.starts_with("refactor") => &REFACTORS[..],
        _ if name.starts_with("with_") && makes_factors && !OF_PARTS.contains(&name) => &CONSTRUCTORS[..],
        "new" if makes_factors && OPTIONS.iter().any(|option| rest.contains(option)) => &CONSTRUCTORS[..],
        _ => return None,
    };
    (!known.contains(&name)).then(|| format!("`{path}`: all types call it {}", known.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_are_found() {
        let line =
            |name: &str| format!("pub fn bt_direct::BandLu<T>::{name}(a: &Band<T>) -> Result<Self> where T: Scalar");
        for name in ["new", "with_options", "with_monitor", "refactor"] {
            assert_eq!(other_way(&line(name)), None, "{name}");
        }
        for name in ["with_boosting", "refactor_blocks"] {
            assert!(other_way(&line(name)).unwrap().contains(name), "{name}");
        }
        let chosen = |name: &str| format!("pub fn bt_iter::Ssor<T>::{name}(a: &Csr<T>, omega: f64) -> Result<Self>");
        assert!(other_way(&chosen("new")).is_some());
        assert_eq!(other_way(&chosen("with_options")), None);
        assert_eq!(other_way("pub fn bt_direct::Options::with_tips(self) -> Self"), None);
        assert_eq!(
            other_way("pub fn bt_direct::Spike<T>::refactor<'a>(&mut self, a: impl Into<SpikeMatrix<'a, T>>)"),
            None
        );
        assert_eq!(other_way("pub struct bt_direct::BandLu<T>"), None);
    }

    #[test]
    fn a_type_has_options_or_a_monitor_alone() {
        let both =
            "pub fn a::F::with_monitor(a: &A)\npub fn a::G::with_options(a: &A)\npub fn a::F::with_options(a: &A)";
        assert_eq!(other_ways(both), ["`a::F::with_monitor`: with_options takes the monitor"]);
    }
}
