//! The tips of truncated SPIKE: each two neighbours by themselves.
//!
//! ```text
//! [ I       Vᵇᵢ ] [ bᵢ      ]   [ gᵇᵢ      ]
//! [ Wᵗᵢ₊₁   I   ] [ t_{i+1} ] = [ gᵗ_{i+1} ]        on rank i, without Vᵗ and Wᵇ
//! ```
//!
//! Rank i + 1 sends Wᵗ once and gᵗ for every solve, and receives bᵢ. C. C. K. Mikkelsen, M. Manguoglu, SIAM J. Matrix Anal. Appl.
//! 30 (2009) 1500–1519, doi:10.1137/080719571, bounds what is neglected for dominant matrices.

use bt_direct::{Factorization, PartialPivotLu};
use faer::Mat;

use super::local::{Around, Local, Tips};
use crate::comm::{Comm, Number, Tag};
use crate::error::{Fault, FaultKind, Result};

const FACTORS: Tag = Tag(3);
const LEFT: Tag = Tag(4);
const RIGHT: Tag = Tag(5);

/// Of one rank: the system that it shares with the next one.
pub(super) struct Pairs<T: Number> {
    k: usize,
    lu: Option<PartialPivotLu<T>>,
}

impl<T: Number> Pairs<T> {
    /// Of a rank without rows.
    pub fn none() -> Self {
        Self { k: 0, lu: None }
    }

    /// The system of this rank and the next, or why it has no factors; and the largest number neglected.
    pub fn new<C: Comm>(comm: &C, k: usize, local: &Local<T>) -> Result<(Result<Self, Fault>, f64)> {
        let (rank, q) = (comm.rank(), comm.size());
        let own = columns(&local.w.top);
        let mut packed = vec![T::default(); k * k];
        let sends: Vec<(usize, &[T])> = (rank > 0).then(|| (rank - 1, &own[..])).into_iter().collect();
        let mut receives: Vec<(usize, &mut [T])> =
            (rank + 1 < q).then(|| (rank + 1, &mut packed[..])).into_iter().collect();
        comm.exchange(FACTORS, &sends, &mut receives, || {})?;
        // The far tips couple with ranks beyond the neighbours.
        let between = rank > 0 && rank + 1 < q;
        let far = [&local.v.top, &local.w.bottom].map(|tips| bt_formats::max_abs(&columns(tips)));
        let neglected = if between { far[0].max(far[1]) } else { 0.0 };
        if rank + 1 == q {
            return Ok((Ok(Self { k, lu: None }), neglected));
        }
        let w = from_columns(k, k, &packed);
        let system = Mat::from_fn(2 * k, 2 * k, |i, j| match (i < k, j < k) {
            (true, false) => local.v.bottom[(i, j - k)],
            (false, true) => w[(i - k, j)],
            _ => T::rounded(f64::from(u8::from(i == j)), 0.0),
        });
        let lu = PartialPivotLu::new(system.as_ref()).map_err(|error| {
            let what = "truncated SPIKE has no factors where it meets the next rank that has rows";
            Fault::new(FaultKind::Breakdown, format!("{what}: {error}"))
        });
        Ok((lu.map(|lu| Self { k, lu: Some(lu) }), neglected))
    }

    /// The tips of the neighbours of this rank, from those of g.
    pub fn solve<C: Comm>(&self, comm: &C, tips: &Tips<T>) -> Result<Around<T>> {
        let (rank, q, k, nrhs) = (comm.rank(), comm.size(), self.k, tips.top.ncols());
        let top = columns(&tips.top);
        let mut packed = vec![T::default(); k * nrhs];
        let sends: Vec<(usize, &[T])> = (rank > 0).then(|| (rank - 1, &top[..])).into_iter().collect();
        let mut receives: Vec<(usize, &mut [T])> =
            (rank + 1 < q).then(|| (rank + 1, &mut packed[..])).into_iter().collect();
        comm.exchange(LEFT, &sends, &mut receives, || {})?;
        let mut after = Mat::zeros(k, nrhs);
        let mut bottom = Vec::new();
        if let Some(lu) = &self.lu {
            let next = from_columns(k, nrhs, &packed);
            let mut h = Mat::from_fn(2 * k, nrhs, |i, j| if i < k { tips.bottom[(i, j)] } else { next[(i - k, j)] });
            lu.solve_in_place(h.as_mut());
            bottom = columns(&h.subrows(0, k).to_owned());
            after = h.subrows(k, k).to_owned();
        }
        let sends: Vec<(usize, &[T])> = (rank + 1 < q).then(|| (rank + 1, &bottom[..])).into_iter().collect();
        let mut receives: Vec<(usize, &mut [T])> =
            (rank > 0).then(|| (rank - 1, &mut packed[..])).into_iter().collect();
        comm.exchange(RIGHT, &sends, &mut receives, || {})?;
        let before = if rank > 0 { from_columns(k, nrhs, &packed) } else { Mat::zeros(k, nrhs) };
        Ok(Around { after, before })
    }

    pub fn bytes(&self) -> usize {
        self.lu.as_ref().map_or(0, |lu| lu.stats().bytes)
    }
}

/// One column after the other.
fn columns<T: Number>(a: &Mat<T>) -> Vec<T> {
    (0..a.ncols()).flat_map(|j| a.col_as_slice(j)).copied().collect()
}

fn from_columns<T: Number>(k: usize, nrhs: usize, packed: &[T]) -> Mat<T> {
    Mat::from_fn(k, nrhs, |i, j| packed[j * k + i])
}
