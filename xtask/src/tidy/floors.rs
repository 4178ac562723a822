//! The tower: which crate may depend on which.

use cargo_metadata::{DependencyKind, Metadata, Package};

use super::Violation;

/// What the lowest floor stands on, too.
const GROUND: &str = "bt-simd";
/// Crates by floor; a normal dependency must lead to a lower one.
const FLOORS: [(&str, u32); 14] = [
    (GROUND, 0),
    ("bt-cuda-driver", 0),
    ("bt-formats", 0),
    ("bt-direct", 1),
    ("bt-iter", 2),
    ("bt-queue", 3),
    ("bt-kernels", 3),
    ("bt-parallel", 3),
    ("blocktri", 4),
    ("bt-reproduce", 4),
    ("blocktri-cli", 5),
    ("blocktri-py", 5),
    ("blocktri-c", 5),
    ("bt-mpi", 5),
];
/// Beside the tower: they may depend on every floor.
const BESIDE: [&str; 5] = ["bt-testkit", "bt-ptx-emulator", "bt-campaign", "bt-benches", "xtask"];
/// Of those, the ones that tests of the tower may use.
const TEST_ONLY: [&str; 2] = ["bt-testkit", "bt-ptx-emulator"];

fn floor(name: &str) -> Option<u32> {
    FLOORS.iter().find(|f| f.0 == name).map(|f| f.1)
}

/// All dependencies between crates of the workspace.
pub(super) fn check(metadata: &Metadata) -> Vec<Violation> {
    metadata.workspace_packages().into_iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Violation> {
    let name = package.name.as_str();
    if floor(name).is_none() && !BESIDE.contains(&name) {
        let reason = "stands on no floor: add it to FLOORS in xtask/src/tidy/floors.rs and to ARCHITECTURE.md".into();
        return vec![Violation { file: name.into(), reason }];
    }
    // Crates of the workspace are the dependencies that have no source.
    let internal = package.dependencies.iter().filter(|d| d.source.is_none());
    internal
        .filter_map(|d| forbidden(name, &d.name, d.kind))
        .map(|reason| Violation { file: format!("{name}/Cargo.toml"), reason })
        .collect()
}

/// Why `from` must not depend on `to` in this way; `None` when it may.
fn forbidden(from: &str, to: &str, kind: DependencyKind) -> Option<String> {
    if TEST_ONLY.contains(&to) {
        return (kind != DependencyKind::Development)
            .then(|| format!("{to} is for tests: only a dev-dependency may name it"));
    }
    if BESIDE.contains(&to) {
        return Some(format!("nothing may depend on {to}"));
    }
    match (floor(from), floor(to), kind) {
        (_, None, _) => Some(format!("depends on {to}, which stands on no floor")),
        // Tests may look up (bt-iter tests itself on bt-queue's matrices); cargo refuses what would be a real cycle.
        (_, _, DependencyKind::Development) | (None, _, _) => None,
        (Some(mine), Some(theirs), _) => (theirs >= mine && to != GROUND)
            .then(|| format!("floor {mine} depends on {to} of floor {theirs}: dependencies lead only downwards")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DependencyKind::{Build, Development, Normal};

    #[test]
    fn dependencies_lead_downwards() {
        assert_eq!(forbidden("bt-iter", "bt-direct", Normal), None);
        assert_eq!(forbidden("blocktri-cli", "bt-formats", Normal), None);
        assert!(forbidden("bt-direct", "bt-iter", Normal).is_some());
        assert!(forbidden("bt-direct", "bt-iter", Build).is_some());
        assert_eq!(forbidden("bt-formats", "bt-simd", Normal), None);
        assert!(forbidden("bt-simd", "bt-formats", Normal).is_some());
        // Two crates of one floor do not know each other.
        assert!(forbidden("bt-queue", "bt-kernels", Normal).is_some());
        assert_eq!(forbidden("bt-iter", "bt-queue", Development), None);
    }

    #[test]
    fn what_stands_beside_the_tower() {
        assert_eq!(forbidden("bt-formats", "bt-testkit", Development), None);
        assert_eq!(forbidden("bt-kernels", "bt-ptx-emulator", Development), None);
        assert!(forbidden("bt-kernels", "bt-ptx-emulator", Normal).is_some());
        assert!(forbidden("bt-formats", "bt-testkit", Normal).is_some());
        assert!(forbidden("bt-testkit", "xtask", Development).is_some());
        assert!(forbidden("blocktri", "bt-benches", Development).is_some());
        assert_eq!(forbidden("bt-benches", "blocktri", Normal), None);
        assert!(forbidden("bt-iter", "bt-new", Normal).is_some());
    }
}
