//! The automatic choice: counted work of every direct method in every order worth trying, the cheapest first.
//!
//! Counts are floating-point operations of factorization and one solve, weighted by how far each kernel is from the
//! band kernel's rate. Band LU is counted with the fill that row interchanges may cause, 2·n·kl·(kl + ku); block LU by
//! its block sizes; sparse LU by the fill of an approximate minimum degree order of A + Aᵀ, which is what elimination
//! without interchanges would do (a lower bound when it has to pivot).

use bt_direct::BlockLu;
use bt_formats::detect::natural_partition;
use bt_formats::reorder::{bandwidth, bandwidth_under, rcm};
use bt_formats::{Csr, LinearOperator, Matrix, Partition, Permutation, Scalar, zero};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::sparse::SymbolicSparseColMatRef;
use faer::sparse::linalg::amd;

use crate::direct::Direct;
use crate::error::Error;
use crate::factors::partition;
use crate::options::{Blocks, Reorder};

/// A way to solve: method, order, and what it costs.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Direct method.
    pub method: Direct,
    /// Order it works in.
    pub reorder: Reorder,
    /// Counted floating-point operations of factorization and one solve.
    pub flops: f64,
    /// Structure that the count rests on, for reports: "half-bandwidths 4 and 4", "100 blocks of at most 16".
    pub structure: String,
}

impl Candidate {
    /// Flops weighted by the method's rate: sparse elimination runs at about a quarter of the band kernel's.
    fn cost(&self) -> f64 {
        match self.method {
            Direct::SparseLu => 4.0 * self.flops,
            _ => self.flops,
        }
    }
}

/// What was found out about the matrix while choosing.
pub(crate) struct Plan {
    /// Cheapest first.
    pub candidates: Vec<Candidate>,
    /// Reverse Cuthill–McKee order, when it was computed.
    pub rcm: Option<Permutation>,
}

/// Flops of a band LU with interchanges and one solve.
pub(crate) fn band_flops(n: usize, kl: usize, ku: usize) -> f64 {
    let (n, kl, ku) = (n as f64, kl as f64, (ku + kl) as f64);
    n * (kl + 2.0 * kl * ku) + n * (2.0 * kl + 2.0 * ku + 1.0)
}

/// Flops of a block LU and one solve.
pub(crate) fn block_flops(partition: &Partition) -> f64 {
    let solve: f64 = partition.sizes().map(|k| 6.0 * (k * k) as f64).sum();
    BlockLu::<f64>::flops(partition) + solve
}

/// Flops of an LU of A + Aᵀ without interchanges in approximate minimum degree order; infinite when it cannot be told.
fn minimum_degree_flops<T: Scalar>(a: &Csr<T>) -> f64 {
    let n = a.nrows();
    let (mut order, mut position) = (vec![0u32; n], vec![0u32; n]);
    let mut memory = MemBuffer::new(amd::order_scratch::<u32>(n, a.nnz()));
    // The rows of A are the columns of Aᵀ, and the order only sees A + Aᵀ.
    let pattern = SymbolicSparseColMatRef::new_checked(n, n, a.row_ptr(), None, a.col_idx());
    amd::order(&mut order, &mut position, pattern, amd::Control::default(), MemStack::new(&mut memory))
        .map_or(f64::INFINITY, |count| count.n_div + 2.0 * count.n_mult_subs_lu)
}

/// Ranks the direct methods for `a`. `reorder` restricts the orders that are tried; `blocks` are those of the given order.
pub(crate) fn plan<T: Scalar>(a: &Csr<T>, reorder: Reorder, blocks: &Blocks) -> Result<Plan, Error> {
    let mut candidates = Vec::new();
    let (kl, ku) = bandwidth(a);
    let natural = matches!(reorder, Reorder::None | Reorder::Auto);
    if natural {
        push_narrow(&mut candidates, a, Reorder::None, (kl, ku), &partition(a, blocks, true)?);
    }
    // A structure whose elimination costs no more than reading the matrix a few dozen times needs no other order.
    let cheap = |c: &[Candidate]| c.iter().any(|c| c.flops <= 64.0 * a.nnz() as f64);
    let mut order = None;
    if reorder == Reorder::Rcm || (reorder == Reorder::Auto && !cheap(&candidates)) {
        let p = rcm(a)?;
        let narrow = bandwidth_under(a, &p);
        push_narrow(&mut candidates, a, Reorder::Rcm, narrow, &natural_partition(&a.permute(&p, &p))?);
        order = Some(p);
    }
    if natural && !cheap(&candidates) {
        candidates.push(Candidate {
            method: Direct::SparseLu,
            reorder: Reorder::None,
            flops: minimum_degree_flops(a) + 4.0 * a.nnz() as f64,
            structure: format!("{} non-zeros, minimum degree order", a.nnz()),
        });
    }
    candidates.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
    Ok(Plan { candidates, rcm: order })
}

/// Factors of more values than this are not considered: 8 GiB of f64.
const MAX_VALUES: f64 = 1e9;

fn push_narrow<T: Scalar>(
    candidates: &mut Vec<Candidate>,
    a: &Csr<T>,
    reorder: Reorder,
    (kl, ku): (usize, usize),
    partition: &Partition,
) {
    let n = a.nrows();
    if kl <= 1 && ku <= 1 {
        // Without pivoting half the work, but only where dominance makes the pivots safe.
        let method = if dominant(a) { Direct::Thomas } else { Direct::TridiagonalLu };
        candidates.push(Candidate { method, reorder, flops: 10.0 * n as f64, structure: "tridiagonal".into() });
        return;
    }
    if n as f64 * (2 * kl + ku + 1) as f64 <= MAX_VALUES {
        candidates.push(Candidate {
            method: Direct::BandLu,
            reorder,
            flops: band_flops(n, kl, ku),
            structure: format!("{kl} sub- and {ku} super-diagonals"),
        });
    }
    let (min, max) = partition.min_max_size();
    if partition.n_blocks() > 1 && BlockLu::<f64>::bytes(partition) <= 8.0 * MAX_VALUES {
        candidates.push(Candidate {
            method: Direct::BlockLu,
            reorder,
            flops: block_flops(partition),
            structure: format!("{} diagonal blocks of {min} to {max}", partition.n_blocks()),
        });
    }
}

/// Weakly diagonally dominant by rows or by columns: elimination without pivoting has growth at most 2.
fn dominant<T: Scalar>(a: &Csr<T>) -> bool {
    let n = a.nrows();
    let mut rows = vec![zero::<T::Real>(); n];
    let mut cols = vec![zero::<T::Real>(); n];
    a.for_each_entry(&mut |i, j, v| {
        let modulus = if i == j { -v.abs() } else { v.abs() };
        rows[i] += modulus;
        cols[j] += modulus;
    });
    let weak = |sums: &[T::Real]| sums.iter().all(|s| *s <= zero());
    weak(&rows) || weak(&cols)
}

/// The choice and its reason as a sentence; `candidates` is not empty.
pub(crate) fn explain(candidates: &[Candidate]) -> String {
    let best = &candidates[0];
    let order = match best.reorder {
        Reorder::None => String::new(),
        other => format!(" in {other} order"),
    };
    let others: Vec<String> =
        candidates[1..].iter().take(2).map(|c| format!("{} ({}) {:.2e}", c.method, c.reorder, c.flops)).collect();
    let next = if others.is_empty() { String::new() } else { format!("; next best {}", others.join(", ")) };
    format!("auto chose {}{order}: {}, {:.2e} flops counted{next}", best.method, best.structure, best.flops)
}
