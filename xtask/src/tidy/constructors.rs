//! Direct methods are made and made again in one way: `new(a)` with the defaults, `with_options(a, …, monitor)` where there are options,
//! `with_monitor(a, monitor)` where there are none; `refactor(a)` and `refactor_with_monitor(a, monitor)`. `with_symbolic` takes an
//! analysis that is at hand.

use std::fs;
use std::path::Path;

use super::Violation;
use crate::process::{Context, Result};

const LISTING: &str = "docs/api/bt-direct.txt";
const CONSTRUCTORS: [&str; 3] = ["with_options", "with_monitor", "with_symbolic"];
const REFACTORS: [&str; 2] = ["refactor", "refactor_with_monitor"];

/// The public functions of bt-direct.
pub(super) fn check(root: &Path) -> Result<Vec<Violation>> {
    let listing = fs::read_to_string(root.join(LISTING)).context(LISTING)?;
    let violation = |reason| Violation { file: LISTING.to_owned(), reason };
    Ok(listing.lines().filter_map(other_way).map(violation).collect())
}

/// What is wrong with the name of a function, as the listing has it: `pub fn path::Type<T>::name(…) -> …`.
fn other_way(line: &str) -> Option<String> {
    let (path, rest) = line.strip_prefix("pub fn ")?.split_once('(')?;
    let name = path.rsplit("::").next()?.split('<').next()?;
    let makes_factors = rest.contains("-> Result<Self>") && rest.contains("a: ");
    let known = match name {
        _ if name.starts_with("refactor") => &REFACTORS[..],
        _ if name.starts_with("with_") && makes_factors => &CONSTRUCTORS[..],
        _ => return None,
    };
    (!known.contains(&name)).then(|| format!("`{path}`: all methods call it {}", known.join(" or ")))
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
        assert_eq!(other_way("pub fn bt_direct::Options::with_tips(self) -> Self"), None);
        assert_eq!(
            other_way("pub fn bt_direct::Spike<T>::refactor<'a>(&mut self, a: impl Into<SpikeMatrix<'a, T>>)"),
            None
        );
        assert_eq!(other_way("pub struct bt_direct::BandLu<T>"), None);
    }
}
