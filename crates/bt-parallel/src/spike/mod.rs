//! SPIKE over ranks: band and block-tridiagonal systems, exact by recursive doubling or truncated.
//!
//! Rank i has consecutive rows, Aᵢ on the diagonal, and couplings with at most k unknowns on either side: for a band k is the larger half
//! bandwidth, for blocks that ranks have whole the largest block at a border:
//!
//! ```text
//! Aᵢ·xᵢ + B̂ᵢ·t_{i+1} + Ĉᵢ·b_{i−1} = fᵢ            t, b: the first and the last k unknowns of a rank, its tips
//! xᵢ = gᵢ − Vᵢ·t_{i+1} − Wᵢ·b_{i−1},               gᵢ = Aᵢ⁻¹fᵢ, Vᵢ = Aᵢ⁻¹B̂ᵢ, Wᵢ = Aᵢ⁻¹Ĉᵢ
//! ```
//!
//! E. Polizzi, A. H. Sameh, A parallel hybrid banded system solver: the SPIKE algorithm, Parallel Comput. 32 (2006) 177–194,
//! doi:10.1016/j.parco.2005.07.005. Only the tips of V and W are kept; once the tips of its neighbours are known a rank solves a second time,
//! with fᵢ − B̂ᵢ·t_{i+1} − Ĉᵢ·b_{i−1}.
//!
//! **Exact** (`tree.rs`): two neighbouring segments become one by a system of order 2k for the tips where they meet, with partial pivoting;
//! ⌈log₂ q⌉ times for q ranks that have rows, then the tips go back. **Truncated**: where the far tips of the spikes are negligible, as they are
//! for dominant matrices, each two neighbours solve for their tips alone; what is neglected is measured.
//!
//! Aᵢ is factored by band LU with partial pivoting, or by any direct method that is given. Where an Aᵢ is singular while A is
//! not, that is an error which names the rank. Pivots are sought within a rank, so that A⁻¹ may be applied less accurately than
//! by band LU of the whole; each solve is followed by steps of refinement with residuals of A, one unless said otherwise.
//!
//! Counted: messages of a solve over all ranks, with r refinements and m right-hand sides
//!
//! ```text
//! exact      (r + 1)·2(q − 1) messages of 2k·m scalars      at most 2⌈log₂ q⌉ one after the other
//! truncated  (r + 1)·2(q − 1) messages of  k·m scalars      2 one after the other
//! ```
//!
//! and the exchanges of r·m products; factoring q − 1 messages of 4k² scalars, or of k² truncated. Storage of a rank beside its
//! factors: at most ⌈log₂ q⌉ systems of order 2k. Flops of a rank: those of its factors, 2k solves for the tips, O(k³) for each
//! system.

mod local;
mod pairs;
mod tree;

use bt_direct::{BandLu, Factorization};
use bt_formats::{Band, Csr, one};
use faer::MatMut;

use crate::comm::{Comm, Number, Traffic};
use crate::csr::DistributedCsr;
use crate::error::{Fault, Result, agree};
pub(crate) use local::OwnRows;
use local::{Local, Tips};
use pairs::Pairs;
use tree::Tree;

/// How the tips are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coupling {
    /// Exactly, by recursive doubling.
    #[default]
    Exact,
    /// Without the far tips of the spikes.
    Truncated,
}

/// How [`Spike`] works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpikeOptions {
    /// How the tips are found.
    pub coupling: Coupling,
    /// Steps of refinement after each solve; default 1.
    pub refinements: usize,
}

impl Default for SpikeOptions {
    fn default() -> Self {
        Self { coupling: Coupling::Exact, refinements: 1 }
    }
}

/// Factors of a matrix whose rows are spread over ranks in order.
///
/// ```
/// use bt_parallel::{DistributedCsr, Division, Spike, thread_comm};
/// let a = bt_testkit::chain::<f64>(10, 2.0, -1.0);
/// let mut b = vec![0.0; 10];
/// (b[0], b[9]) = (1.0, 1.0);
/// let solved = thread_comm::run(3, |comm| {
///     let a = DistributedCsr::from_replicated(comm, &a, &Division::contiguous(10, 3))?;
///     let spike = Spike::new(&a)?;
///     let mut x = a.own_entries(&b);
///     let rows = x.len();
///     spike.solve_in_place(faer::MatMut::from_column_major_slice_mut(&mut x, rows, 1))?;
///     a.whole(&x)
/// });
/// assert!(solved[0].as_ref().unwrap().iter().all(|x| (x - 1.0).abs() < 1e-14));
/// ```
pub struct Spike<'a, 'c, T: Number, C: Comm> {
    a: &'a DistributedCsr<'c, T, C>,
    options: SpikeOptions,
    /// Nothing on a rank without rows.
    local: Option<Local<T>>,
    /// The ranks that have rows, in order.
    active: C,
    k: usize,
    reduced: Reduced<T>,
    neglected: f64,
}

enum Reduced<T: Number> {
    Tree(Tree<T>),
    Pairs(Pairs<T>),
}

impl<'a, 'c, T: Number, C: Comm> Spike<'a, 'c, T, C> {
    /// With band LU on every rank and [`SpikeOptions::default`]. A collective.
    ///
    /// # Errors
    /// As [`Spike::with_factors`].
    pub fn new(a: &'a DistributedCsr<'c, T, C>) -> Result<Self> {
        Self::with_options(a, SpikeOptions::default())
    }

    /// With band LU on every rank. A collective.
    ///
    /// # Errors
    /// As [`Spike::with_factors`].
    pub fn with_options(a: &'a DistributedCsr<'c, T, C>, options: SpikeOptions) -> Result<Self> {
        Self::with_factors(a, options, |local| Ok(Box::new(BandLu::from_band(Band::from_csr(local)?)?)))
    }

    /// With the factors that `factor` makes of Aᵢ, on the ranks that have rows; for block-tridiagonal matrices of ranks with
    /// whole blocks, block LU. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] where rows are not consecutive in the order of the ranks, a rank has fewer rows than k (see
    /// [`crate::Division::contiguous_of_at_least`]), an Aᵢ cannot be factored, or the system of two segments is singular, naming the
    /// rank; those of the communicator.
    pub fn with_factors(
        a: &'a DistributedCsr<'c, T, C>,
        options: SpikeOptions,
        factor: impl FnOnce(&Csr<T>) -> bt_direct::Result<Box<dyn Factorization<T>>>,
    ) -> Result<Self> {
        let comm = a.comm();
        let shape = OwnRows::new(a)?;
        let made = if shape.rows == 0 {
            Ok(None)
        } else {
            let factors = factor(a.local());
            let factors = factors.map_err(|error| Fault::in_part(error, "part", a.rows().own().iter().copied()));
            factors.and_then(|factors| Local::new(a, &shape, factors)).map(Some)
        };
        let local = agree(comm, made)?;
        let active = comm.split(u32::from(local.is_none()), 0)?;
        let k = shape.k;
        let (reduced, own_neglected) = match (&local, options.coupling) {
            (Some(local), Coupling::Truncated) => {
                let (pairs, neglected) = Pairs::new(&active, k, local)?;
                (pairs.map(Reduced::Pairs), neglected)
            }
            (Some(local), Coupling::Exact) => (Tree::new(&active, k, local)?.map(Reduced::Tree), 0.0),
            (None, _) => (Ok(Reduced::Pairs(Pairs::none())), 0.0),
        };
        let reduced = agree(comm, reduced)?;
        let mut neglected = [own_neglected];
        comm.all_max(&mut neglected)?;
        Ok(Self { a, options, local, active, k, reduced, neglected: neglected[0] })
    }

    /// Unknowns of a rank that its neighbours couple with, at most: k.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The largest entry of the tips that truncation neglects; 0 where nothing is neglected.
    pub fn neglected(&self) -> f64 {
        self.neglected
    }

    /// What this rank has sent for factors and solves, but for the products of refinement.
    pub fn traffic(&self) -> Traffic {
        self.active.traffic()
    }

    /// Bytes of the factors of this rank.
    pub fn bytes(&self) -> usize {
        self.local.as_ref().map_or(0, Local::bytes)
            + match &self.reduced {
                Reduced::Tree(tree) => tree.bytes(),
                Reduced::Pairs(pairs) => pairs.bytes(),
            }
    }

    /// X ← A⁻¹·X for the own rows of X, columns contiguous and as many on every rank; with the steps of refinement. A collective.
    ///
    /// # Errors
    /// Those of the communicator.
    ///
    /// # Panics
    /// When X has another number of rows, or its columns are not contiguous.
    pub fn solve_in_place(&self, mut x: MatMut<'_, T>) -> Result<()> {
        let rows = self.a.rows().own().len();
        assert_eq!(x.nrows(), rows, "rows of X");
        if self.options.refinements == 0 {
            return self.solve_once(x);
        }
        let b = x.to_owned();
        self.solve_once(x.as_mut())?;
        for _ in 0..self.options.refinements {
            // r ← b − A·x;  x ← x + A⁻¹·r
            let mut r = b.clone();
            for j in 0..x.ncols() {
                let column = x.as_ref().col(j).try_as_col_major().expect("columns of X must be contiguous");
                self.a.apply(-one::<T>(), column.as_slice(), one(), r.col_as_slice_mut(j))?;
            }
            self.solve_once(r.as_mut())?;
            x += &r;
        }
        Ok(())
    }

    fn solve_once(&self, mut x: MatMut<'_, T>) -> Result<()> {
        let Some(local) = &self.local else { return Ok(()) };
        // Where nothing couples the ranks, as with one, g is x.
        let coupled = self.k > 0;
        let f = coupled.then(|| x.to_owned());
        // gᵢ ← Aᵢ⁻¹·fᵢ
        local.solve(x.as_mut());
        let tips = Tips::of(x.as_ref(), self.k);
        let around = match &self.reduced {
            Reduced::Tree(tree) => tree.solve(&self.active, &tips)?,
            Reduced::Pairs(pairs) => pairs.solve(&self.active, &tips)?,
        };
        if let Some(f) = f {
            // xᵢ ← Aᵢ⁻¹·(fᵢ − B̂ᵢ·t_{i+1} − Ĉᵢ·b_{i−1})
            x.copy_from(&f);
            local.subtract_couplings(self.a, &around, self.k, x.as_mut());
            local.solve(x);
        }
        Ok(())
    }
}

/// Bytes of dense matrices.
fn bytes_of<T: Number>(matrices: &[&faer::Mat<T>]) -> usize {
    matrices.iter().map(|a| size_of::<T>() * a.nrows() * a.ncols()).sum()
}
