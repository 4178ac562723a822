//! What follows a method that failed or is weak: the next stronger one, up to one that nothing defeats.

use bt_direct::{ExactLu, SparseQr};
use bt_formats::{Csr, LinearOperator, Scalar};

use crate::candidate::Candidate;
use crate::direct::Direct;
use crate::options::Reorder;

/// The step after one of the way of `auto`: at its end sparse LU, in its own order and then with the rows matched; for small systems dense
/// LU in twice the precision, then exactly; at last reflections, in which no element grows, where they are a matter of minutes.
pub(crate) fn stronger_step<T: Scalar>((method, reorder): (Direct, Reorder), a: &Csr<T>) -> Option<(Direct, Reorder)> {
    match (method.row().stronger, method, reorder) {
        (Some(next @ Direct::TridiagonalLu), ..) => Some((next, Reorder::None)),
        (Some(Direct::SparseLu), ..) => Some((Direct::SparseLu, Reorder::None)),
        (_, Direct::SparseLu, Reorder::Matching) if a.nrows() <= DOUBLED_ROWS => {
            Some((Direct::DenseLuDoubled, Reorder::Matching))
        }
        (_, Direct::SparseLu, order) if order != Reorder::Matching => Some((Direct::SparseLu, Reorder::Matching)),
        (_, Direct::DenseLuDoubled, _) if is_soon_exact(a) => Some((Direct::ExactLu, Reorder::None)),
        (Some(Direct::SparseQr), ..) => is_soon_reflected(a).then_some((Direct::SparseQr, Reorder::None)),
        (next, _, order) => next.map(|next| (next, order)),
    }
}

/// Whether a step that finds the matrix singular, though its elements have not grown, is believed: the strongest elimination.
pub(crate) fn is_last_word<T: Scalar>((method, reorder): (Direct, Reorder), a: &Csr<T>) -> bool {
    match method {
        Direct::SparseLu => reorder == Reorder::Matching && a.nrows() > DOUBLED_ROWS,
        Direct::DenseLuDoubled => !is_soon_exact(a),
        _ => method.row().stronger.is_none(),
    }
}

/// What follows a method that broke down. Where that is block LU, which found no pivot inside a block, the fastest candidate that looks for
/// them further: the stronger method, a band in the same order, may be far from it. Otherwise the stronger method.
pub(crate) fn next_step<T: Scalar>(
    failed: (Direct, Reorder),
    candidates: &[Candidate],
    a: &Csr<T>,
) -> Option<(Direct, Reorder)> {
    let looks_further =
        |method: &Direct| matches!(method, Direct::BandLu | Direct::SparseLdl | Direct::SparseLu | Direct::DenseLu);
    let mut possible = candidates.iter().filter(|c| failed.0 == Direct::BlockLu && c.refused.is_none());
    let fastest = possible.find_map(|c| Some((c.direct().filter(looks_further)?, c.reorder)));
    fastest.or_else(|| stronger_step(failed, a))
}

/// Rows up to which a system in doubt is eliminated in twice the precision: a second or so.
pub(crate) const DOUBLED_ROWS: usize = 512;

/// Rows, and products of words, up to which a system in doubt is eliminated in exact integers: a second or two.
const EXACT_ROWS: usize = 256;

const EXACT_WORK: f64 = 5e8;

/// Whether the exact elimination of A is a matter of a second.
pub(crate) fn is_soon_exact<T: Scalar>(a: &Csr<T>) -> bool {
    a.nrows() <= EXACT_ROWS && ExactLu::work(a.to_dense().as_ref()) <= EXACT_WORK
}

/// Operations up to which a matrix that elimination cannot do is reflected: some minutes.
const REFLECTED_FLOPS: f64 = 1e11;

/// Whether A = QR is a matter of minutes.
pub(crate) fn is_soon_reflected<T: Scalar>(a: &Csr<T>) -> bool {
    SparseQr::flops(a).is_ok_and(|flops| flops <= REFLECTED_FLOPS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Kernel, Work};
    use crate::options::DeviceChoice;

    fn candidate(method: Direct, reorder: Reorder, refused: Option<&str>) -> Candidate {
        let work =
            Work { kernel: Kernel::Band, steps: 1.0, flops: 1.0, moved: 0.0, ordered: 0.0, paired: 0.0, analysed: 0.0 };
        let (structure, refused) = (String::new(), refused.map(str::to_owned));
        let device = DeviceChoice::Cpu;
        Candidate { method: method.into(), device, reorder, work, seconds: 1.0, bytes: 1, structure, refused }
    }

    #[test]
    fn the_fastest_that_looks_for_pivots_further_follows_block_lu() {
        let a = Csr::<f64>::new(1, 1, vec![0, 1], vec![0], vec![1.0]).unwrap();
        let list = |refused| {
            [
                candidate(Direct::BlockCholesky, Reorder::Rcm, None),
                candidate(Direct::BlockLu, Reorder::Rcm, None),
                candidate(Direct::SparseLu, Reorder::None, refused),
                candidate(Direct::BandLu, Reorder::Rcm, None),
            ]
        };
        let next = |method, reorder, refused| next_step((method, reorder), &list(refused), &a);
        assert_eq!(next(Direct::BlockLu, Reorder::Rcm, None), Some((Direct::SparseLu, Reorder::None)));
        assert_eq!(next(Direct::BlockLu, Reorder::Rcm, Some("too large")), Some((Direct::BandLu, Reorder::Rcm)));
        // Others are followed by the stronger method, listed or not.
        assert_eq!(next(Direct::BlockCholesky, Reorder::Rcm, None), Some((Direct::BlockLu, Reorder::Rcm)));
        assert_eq!(next(Direct::BandLu, Reorder::Rcm, None), Some((Direct::SparseLu, Reorder::None)));
        let others =
            [candidate(Direct::Components, Reorder::None, None), candidate(Direct::DenseLu, Reorder::None, None)];
        for method in [Direct::Components, Direct::SparseLdl] {
            assert_eq!(next_step((method, Reorder::None), &others, &a), Some((Direct::SparseLu, Reorder::None)));
        }
    }
}
