//! What can be known about a matrix before it is solved: structure, orders, sizes, and what `auto` would do.

use bt_formats::detect::{Structure, detect, finest_partition};
use bt_formats::reorder::{bandwidth_under, rcm};
use bt_formats::{
    BlockTridiagonal, CouplingKind, Csr, DiagonalKind, HybridLayout, LinearOperator, Matrix, Note, Permutation, Scalar,
};

use crate::candidate::{Candidate, Known, choice};
use crate::check::check_matrix;
use crate::error::Error;
use crate::gpu;
use crate::method::Method;
use crate::options::{Blocks, DeviceChoice, Reorder, SolveOptions};
use crate::partition::BlockSummary;
use crate::plan::{Depth, plan};
use crate::prepare::{order_asked, planned, prepared};

/// Bandwidths and blocks in the reverse Cuthill–McKee order.
#[derive(Clone, Debug)]
pub struct RcmStructure {
    /// Sub-diagonals.
    pub kl: usize,
    /// Super-diagonals.
    pub ku: usize,
    /// The finest block-tridiagonal partition.
    pub blocks: BlockSummary,
    /// The order.
    pub order: Permutation,
}

/// The hybrid storage with the fewest bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HybridSummary {
    /// How the diagonal blocks are stored.
    pub diagonal: DiagonalKind,
    /// How the couplings are stored.
    pub couplings: CouplingKind,
}

/// Bytes of the matrix in one format; `None` where the format cannot hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatBytes {
    /// Name of the format.
    pub format: &'static str,
    /// Bytes of its arrays.
    pub bytes: Option<u128>,
}

/// What `blocktri info` prints.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Structure in the given order; only values that are not zero count.
    pub structure: Structure,
    /// Bandwidths and blocks in reverse Cuthill–McKee order.
    pub rcm: RcmStructure,
    /// The hybrid storage that `structure.natural`, the blocks that methods take by themselves, gives.
    pub hybrid: Option<HybridSummary>,
    /// Bytes in each format, in the given order.
    pub bytes: Vec<FormatBytes>,
    /// What `auto` weighs: what has least to do once orders are made ([`Candidate::seconds_after_order`]) first, what is out of the question last.
    pub candidates: Vec<Candidate>,
    /// The choice and its reason as a sentence.
    pub choice: String,
}

/// Analyses a square matrix.
///
/// # Errors
/// [`Error::Input`] when the matrix is not square.
///
/// # Cost
/// O(nnz log nnz), and for `candidates` an approximate minimum degree order where no narrow structure was found.
///
/// # Example
/// ```
/// use blocktri::{Csr, analyze, faer::mat};
/// let a = Csr::from_dense(mat![[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]].as_ref())?;
/// let analysis = analyze(&a)?;
/// assert_eq!((analysis.structure.kl, analysis.structure.ku), (1, 1));
/// assert_eq!(analysis.candidates[0].method.name(), "thomas");
/// # Ok::<(), blocktri::Error>(())
/// ```
pub fn analyze<T: Scalar>(a: &Csr<T>) -> Result<Analysis, Error> {
    a.check_square()?;
    let (n, value) = (a.nrows() as u128, size_of::<T>() as u128);
    let stored = a.nnz() as u128;
    let kept;
    let a = if a.values().contains(&bt_formats::zero()) {
        kept = a.without_zeros();
        &kept
    } else {
        a
    };
    let structure = detect(a)?;
    let order = rcm(a)?;
    let (kl, ku) = bandwidth_under(a, &order);
    let blocks = BlockSummary::of(&finest_partition(&a.permute(&order, &order))?);
    let hybrid = BlockTridiagonal::from_csr(a, structure.natural.clone(), HybridLayout::default()).ok();

    let tridiagonal = structure.kl <= 1 && structure.ku <= 1;
    let (skl, sku) = (structure.kl as u128, structure.ku as u128);
    let bytes = [
        ("coo", Some(stored * (8 + value))),
        ("csr", Some(4 * (n + 1) + stored * (4 + value))),
        ("dia", Some(n * diagonals(a) as u128 * value)),
        ("tridiagonal", tridiagonal.then_some(3 * n * value)),
        ("band, with room for pivoting", Some((2 * skl + sku + 1) * n * value)),
        ("hybrid block-tridiagonal", hybrid.as_ref().map(|h| h.bytes() as u128)),
        ("dense", Some(n * n * value)),
    ];
    let plan = plan(a, Reorder::Auto, &Blocks::Detect, Depth::All)?;
    let choice = match plan.possible().next() {
        Some(chosen) => choice(chosen, &plan.candidates).to_string(),
        None => "no method fits memory".into(),
    };
    let candidates = plan.candidates;
    Ok(Analysis {
        structure,
        rcm: RcmStructure { kl, ku, blocks, order },
        hybrid: hybrid.map(|h| HybridSummary { diagonal: h.diagonal_kind(), couplings: h.coupling_kind() }),
        bytes: bytes.into_iter().map(|(format, bytes)| FormatBytes { format, bytes }).collect(),
        candidates,
        choice,
    })
}

/// What [`explain`] tells.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// What `auto` weighs: what has least to do once orders are made ([`Candidate::seconds_after_order`]) first, what is out of the question last.
    pub candidates: Vec<Candidate>,
    /// What was found out about the matrix; with [`DeviceChoice::Auto`] why a GPU has a candidate or none.
    pub notes: Vec<Note>,
}

/// The methods that `auto` weighs for a system with these options: counts, predicted seconds and bytes. Nothing is factored, and an iteration
/// is not probed.
///
/// # Errors
/// [`Error::Input`] when the matrix is not square or not finite; [`Error::Singular`] when its pattern is.
///
/// # Example
/// ```
/// use blocktri::{Csr, SolveOptions, explain, faer::mat};
/// let a = Csr::from_dense(mat![[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]].as_ref())?;
/// let candidates = explain(&a, &SolveOptions::default())?.candidates;
/// assert_eq!(candidates[0].method.name(), "thomas");
/// assert!(candidates[0].seconds < 1e-3);
/// # Ok::<(), blocktri::Error>(())
/// ```
pub fn explain<T: Scalar>(a: &Csr<T>, options: &SolveOptions) -> Result<Explanation, Error> {
    check_matrix(a)?;
    let mut notes = Vec::new();
    let kept = prepared(a, &mut notes)?;
    let (mut plan, _) = planned(&kept, order_asked(options), options, Depth::All, &mut notes)?;
    gpu::weigh(&kept, options.device, &mut plan, &Known::new());
    let limit = plan.limit().unwrap_or(f64::INFINITY);
    let place = plan.possible().find(|c| match &c.method {
        Method::Krylov(krylov) => plan.least_limit(&kept, c, krylov.method, 1.0) <= limit,
        _ => true,
    });
    notes.splice(0..0, plan.gpu.note(place.map_or(DeviceChoice::Cpu, |c| c.device), &Known::new()));
    Ok(Explanation { candidates: plan.candidates, notes })
}

/// Diagonals that hold an entry.
fn diagonals<T: Scalar>(a: &Csr<T>) -> usize {
    let n = a.nrows();
    let mut used = vec![false; 2 * n];
    a.for_each_entry(&mut |i, j, _| used[n + j - i] = true);
    used.into_iter().filter(|u| *u).count()
}
