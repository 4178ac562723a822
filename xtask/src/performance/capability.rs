//! What the page has a table of, and what of it a line of the harness is.

/// One table of the page.
#[derive(Debug, PartialEq)]
pub(super) struct Capability {
    /// Its name in files and markers.
    pub name: &'static str,
    /// Heading of its table.
    pub title: &'static str,
    /// Error above which an answer is none, of doubles.
    pub largest_error: f64,
}

/// Direct methods reach rounding level; a peer that boosts pivots and does not refine may not.
const DIRECT: f64 = 1e-10;
/// Iterations end at residuals of 1e-6 and 1e-7 of b.
const ITERATED: f64 = 1e-5;

const fn new(name: &'static str, title: &'static str, largest_error: f64) -> Capability {
    Capability { name, title, largest_error }
}

/// Of calls, whose other side is a kernel of ours.
pub(super) static CALLS: Capability = new("calls", "Calls over their kernels", DIRECT);
/// Of the Python package.
pub(super) static PYTHON: Capability = new("python", "From Python, beside SciPy", DIRECT);
/// Of the choice of `auto`: its results are no rows.
pub(super) static AUTO: Capability = new("auto", "What auto's choice costs", DIRECT);

static TRIDIAGONAL: Capability = new("tridiagonal", "One tridiagonal system", DIRECT);
static BATCHES: Capability = new("batches", "Many tridiagonal systems", DIRECT);
static BANDS: Capability = new("bands", "Bands", DIRECT);
static BLOCKS: Capability = new("blocks", "Dense blocks", DIRECT);
static CLOUDS: Capability = new("clouds", "Cloud types, factored", DIRECT);
static DENSE: Capability = new("dense", "Dense systems", DIRECT);
static SPARSE: Capability = new("sparse", "Sparse direct methods", DIRECT);
static PRODUCTS: Capability = new("products", "Products", 1e-12);
static ITERATIONS: Capability = new("iterations", "Krylov methods", ITERATED);
static CHAINS: Capability = new("chains", "Stationary distributions", 1e-6);
static FILES: Capability = new("files", "Reading Matrix Market files", DIRECT);

/// All of them, in no order: the page has its own.
pub(super) static ALL: [&Capability; 14] = [
    &TRIDIAGONAL,
    &BATCHES,
    &BANDS,
    &BLOCKS,
    &CLOUDS,
    &DENSE,
    &SPARSE,
    &PRODUCTS,
    &ITERATIONS,
    &CHAINS,
    &CALLS,
    &PYTHON,
    &FILES,
    &AUTO,
];

impl Capability {
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        ALL.into_iter().find(|capability| capability.name == name)
    }
}

/// Where a contestant of the harness or of its peers belongs.
#[derive(Debug, PartialEq)]
pub(super) struct Place {
    pub capability: &'static Capability,
    pub case: String,
    pub variant: Option<&'static str>,
}

/// What was done in `case` by `contestant`, whose phases are `phases`; `None` where no table is about it.
pub(super) fn place<'a>(case: &str, contestant: &str, mut phases: impl Iterator<Item = &'a str>) -> Option<Place> {
    if case == "limits" {
        return None;
    }
    let method = contestant.split_once('-').map_or(contestant, |(_, method)| method);
    let phase = phases.find(|phase| ["mv", "iterate"].contains(phase));
    let (capability, case) = match phase {
        _ if contestant.starts_with("blocktri-facade") => (&CALLS, case.to_owned()),
        Some("mv") => (&PRODUCTS, case.to_owned()),
        Some(_) if is_of_steps(contestant) => (&ITERATIONS, format!("{case}, 100 of {}", spelled(method))),
        Some(_) => (&ITERATIONS, format!("{case}, {}", spelled(method))),
        None => (direct(case)?, case.to_owned()),
    };
    Some(Place { capability, case, variant: variant(capability, method) })
}

/// Whether a contestant takes a given number of steps, after which any residual will do.
pub(super) fn is_of_steps(contestant: &str) -> bool {
    contestant.ends_with("-100it")
}

fn direct(case: &str) -> Option<&'static Capability> {
    let kinds = [
        ("t1", &TRIDIAGONAL),
        ("t2", &BATCHES),
        ("bt1", &BLOCKS),
        ("bt2", &CLOUDS),
        ("b1", &BANDS),
        ("b2", &BANDS),
        ("d1", &DENSE),
        ("q1", &CHAINS),
        ("lap", &SPARSE),
        ("convdiff", &SPARSE),
    ];
    kinds.into_iter().find(|(start, _)| case.starts_with(start)).map(|(_, capability)| capability)
}

/// The method at the beginning of its name.
fn spelled(method: &str) -> &str {
    match method.split('-').next() {
        Some("bicgstab") => "BiCGSTAB",
        Some("gmres") => "GMRES(30)",
        Some("cg") => "CG",
        _ => method,
    }
}

/// Which methods exchange no rows, which products are those of a format with blocks, which iterations round their basis or
/// are on a smaller system.
fn variant(capability: &Capability, method: &str) -> Option<&'static str> {
    let names: &[&str] = match capability.name {
        "tridiagonal" => &["thomas", "once-dominant", "ddtsvb", "ddttrfb"],
        "batches" => &["batch", "batch-lu", "thomas", "thomas-simd", "ddtsvb-pyloop"],
        "bands" | "clouds" | "dense" => &["band-lu-nopivot", "genp", "getrfnp"],
        "calls" if method.ends_with("as-given") => return Some("as given"),
        "products" => return (method == "hybrid").then_some("hybrid"),
        "iterations" if method.ends_with("single-basis") => return Some("basis in single precision"),
        "iterations" if method.ends_with("block-reduced") => return Some("every other block eliminated"),
        _ => &[],
    };
    names.contains(&method).then_some("without pivoting")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(case: &str, contestant: &str, phases: &[&str]) -> Option<(&'static str, String, Option<&'static str>)> {
        place(case, contestant, phases.iter().copied()).map(|p| (p.capability.name, p.case, p.variant))
    }

    #[test]
    fn names_are_different() {
        for capability in ALL {
            assert_eq!(ALL.iter().filter(|c| c.name == capability.name).count(), 1, "{}", capability.name);
        }
    }

    #[test]
    fn lines_of_the_harness_find_their_table() {
        let solve = ["factor", "solve"];
        assert_eq!(at("bt1-16", "blocktri-block-lu", &solve), Some(("blocks", "bt1-16".into(), None)));
        assert_eq!(at("b2-8", "mkl-pbtrf", &solve), Some(("bands", "b2-8".into(), None)));
        assert_eq!(
            at("b1-8", "blocktri-band-lu-nopivot", &solve),
            Some(("bands", "b1-8".into(), Some("without pivoting")))
        );
        assert_eq!(at("bt2-16", "spmv-mkl", &["mv"]), Some(("products", "bt2-16".into(), None)));
        assert_eq!(at("bt2-16", "blocktri-hybrid", &["mv"]), Some(("products", "bt2-16".into(), Some("hybrid"))));
        let krylov = ["setup", "iterate"];
        assert_eq!(at("bt2-16", "petsc-gmres-ilu0", &krylov), Some(("iterations", "bt2-16, GMRES(30)".into(), None)));
        for name in ["scipy-cg-100it", "blocktri-cg-none-100it"] {
            assert_eq!(at("lap3d", name, &krylov), Some(("iterations", "lap3d, 100 of CG".into(), None)));
        }
        assert_eq!(at("t1-1e6", "blocktri-facade-once", &["call"]), Some(("calls", "t1-1e6".into(), None)));
        assert_eq!(at("t1-1e6", "c-thomas", &["solve"]).unwrap().2, Some("without pivoting"));
        assert_eq!(at("limits", "triad", &["run"]), None);
        assert_eq!(at("new-kind", "x", &solve), None);
    }
}
