//! What a sparse Cholesky factorization will be, told from the pattern: order, exact fill, flops, bytes, and the structure
//! that faer's kernels work on.

use std::sync::OnceLock;

use bt_formats::reorder::minimum_degree;
use bt_formats::{Csr, LinearOperator, Matrix, Scalar, buffers};
use faer::Par;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::sparse::linalg::SymbolicSupernodalParams;
use faer::sparse::linalg::cholesky::{simplicial, supernodal};

use super::counts::{Counts, count};
use super::pattern::{Pattern, Triangle, too_large};
use super::subtrees::Supernodes;
use super::supernodal::Elimination;
use super::vectors::WIDE;
use crate::error::{FactorError, Result};
use crate::guard::{parallelism_for, quietly};

/// Flops per entry of L from which dense kernels on supernodes pay.
const SUPERNODAL_FLOPS: f64 = 20.0;

/// The symbolic phase of P·A·Pᵀ = L·Lᴴ, and of L·D·Lᴴ: it depends on the pattern of A alone.
///
/// Order, fill and flops are found at once; the structure of L when bytes are asked for or numbers are factored.
///
/// ```
/// use bt_direct::SymbolicCholesky;
/// use bt_formats::Csr;
/// // An arrow: the centre comes last, and nothing fills in.
/// // [ 4 1 1 ]
/// // [ 1 2   ]
/// // [ 1   2 ]
/// let a = Csr::new(3, 3, vec![0, 3, 5, 7], vec![0, 1, 2, 0, 1, 0, 2], vec![4.0, 1.0, 1.0, 1.0, 2.0, 1.0, 2.0])?;
/// let symbolic = SymbolicCholesky::new(&a)?;
/// assert_eq!(symbolic.fill(), 5);
/// // Two columns with an entry below the diagonal: a division, a product and a difference each.
/// assert_eq!(symbolic.flops(), 6.0);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Debug)]
pub struct SymbolicCholesky {
    pub(crate) order: Vec<u32>,
    pub(crate) position: Vec<u32>,
    /// The entries of A, in the order of its rows.
    pub(crate) pattern: Pattern,
    /// What is eliminated, where it has more entries than A.
    eliminated: Option<Pattern>,
    fill: u64,
    flops: f64,
    lu_flops: f64,
    supernodal: bool,
    structure: OnceLock<Result<Structure, Beyond>>,
}

/// faer could not make the structure: indices overflow, or memory is short.
#[derive(Clone, Copy, Debug)]
struct Beyond;

/// The structure of L as faer keeps it.
#[derive(Debug)]
pub(crate) enum Structure {
    Simplicial(simplicial::SymbolicSimplicialCholesky<u32>),
    Supernodal(Box<Supernodes>),
}

impl Structure {
    /// Values of L, zeros inside supernodes included.
    pub fn values(&self) -> usize {
        match self {
            Self::Simplicial(s) => s.len_val(),
            Self::Supernodal(s) => s.len_val(),
        }
    }

    /// Where the columns of L stand among the values, each from its diagonal on.
    pub fn columns(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let n = match self {
            Self::Simplicial(s) => s.nrows(),
            Self::Supernodal(s) => s.nrows(),
        };
        let mut at = 0;
        (0..n).map(move |j| match self {
            Self::Simplicial(s) => s.col_ptr()[j] as usize..s.col_ptr()[j + 1] as usize,
            Self::Supernodal(s) => {
                while s.supernode_end()[at] as usize <= j {
                    at += 1;
                }
                let (begin, end) = (s.supernode_begin()[at] as usize, s.supernode_end()[at] as usize);
                let ld = end - begin + s.supernode(at).pattern().len();
                let column = s.col_ptr_for_val()[at] as usize + (j - begin) * ld;
                column + j - begin..column + ld
            }
        })
    }

    /// The places of the diagonal among the values.
    pub fn diagonal(&self) -> impl Iterator<Item = usize> + '_ {
        self.columns().map(|column| column.start)
    }

    pub fn solve_scratch<T: Scalar>(&self) -> StackReq {
        match self {
            Self::Simplicial(s) => s.solve_in_place_scratch::<T>(WIDE),
            Self::Supernodal(_) => StackReq::EMPTY,
        }
    }

    fn bytes(&self) -> usize {
        let indices = match self {
            Self::Simplicial(s) => s.row_idx().len() + 2 * s.nrows() + 1,
            // Rows of supernodes by columns, supernodes by rows, tasks, and the supernode of each row.
            Self::Supernodal(s) => 2 * s.row_idx().len() + 6 * s.n_supernodes() + 4 + s.nrows(),
        };
        indices * size_of::<u32>()
    }
}

impl SymbolicCholesky {
    /// Of a Hermitian matrix, in its approximate minimum degree order. Values are not looked at; stored zeros count as
    /// entries.
    ///
    /// # Errors
    /// [`FactorError::Input`] when A is not square or too large, or memory is short; [`FactorError::Failed`] when faer's
    /// ordering does.
    ///
    /// # Cost
    /// The ordering, O(n·nnz) at worst and little more than O(nnz) on grids; some 10·nnz + 20n numbers of four bytes.
    pub fn new<T: Scalar>(a: &Csr<T>) -> Result<Self> {
        a.check_square()?;
        let pattern = Pattern::of(a);
        let eliminated = (!pattern.is_symmetric()).then(|| pattern.of_sum());
        // Products of blocks end the program where their buffer has no room.
        let supernodal_flops = if buffers::is_at_hand() { SUPERNODAL_FLOPS } else { f64::INFINITY };
        Self::in_order(pattern, eliminated, &minimum_degree(a)?.order, supernodal_flops)
    }

    /// `eliminated` with the entries of `pattern`, and more, eliminated in the order given; by supernodes from so many flops an
    /// entry of L on.
    pub(crate) fn in_order(
        pattern: Pattern,
        eliminated: Option<Pattern>,
        order: &[u32],
        supernodal_flops: f64,
    ) -> Result<Self> {
        let (n, nnz) = (pattern.n(), pattern.idx.len());
        if n.max(nnz) > i32::MAX as usize / 4 {
            return Err(too_large(n, nnz));
        }
        let Counts { order, position, columns } = count(eliminated.as_ref().unwrap_or(&pattern), order);
        // Column j of L with b entries below its diagonal: b quotients, and b(b + 1)/2 products taken from the columns behind.
        // Of an LU on this pattern b quotients and b² products.
        let below = || columns.iter().map(|&c| f64::from(c - 1));
        let flops = below().map(|b| b * (b + 2.0)).sum();
        let lu_flops = below().map(|b| b * (2.0 * b + 1.0)).sum();
        let fill = columns.iter().map(|&c| u64::from(c)).sum();
        Ok(Self {
            order,
            position,
            pattern,
            eliminated,
            fill,
            flops,
            lu_flops,
            supernodal: flops >= supernodal_flops * fill as f64,
            structure: OnceLock::new(),
        })
    }

    /// Whether [`SparseCholesky`](crate::SparseCholesky) forms L row by row, not by supernodes, for which so many flops and entries of L are
    /// counted.
    pub fn pays_by_rows(flops: f64, fill: f64) -> bool {
        flops < SUPERNODAL_FLOPS * fill
    }

    /// n.
    pub fn n(&self) -> usize {
        self.order.len()
    }

    /// Entries of L, its diagonal included: exactly those that elimination fills, unless numbers happen to cancel.
    pub fn fill(&self) -> u64 {
        self.fill
    }

    /// Operations of the factorization, n roots apart: Σⱼ bⱼ(bⱼ + 2) for bⱼ entries below the diagonal of column j.
    pub fn flops(&self) -> f64 {
        self.flops
    }

    /// Operations of a right-hand side: two passes over L.
    pub fn solve_flops(&self) -> f64 {
        4.0 * self.fill as f64 - 2.0 * self.n() as f64
    }

    /// `order()[k]`: the row of A that is eliminated as number k.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Whether rows are eliminated in pairs, as [`SparseLdl::analyse`](crate::SparseLdl::analyse) has them where diagonal entries
    /// are small: L has the entries of both.
    pub fn has_pairs(&self) -> bool {
        self.eliminated.is_some() && self.pattern.is_symmetric()
    }

    /// Bytes of a Cholesky factorization with all that it holds on to, which is also the most that its making takes beside
    /// this symbolic phase.
    ///
    /// # Errors
    /// [`FactorError::Input`] when L has more than 2³¹ numbers, or memory for its structure is short.
    ///
    /// # Cost
    /// At first O(fill) time, and four bytes an entry of L where they are few.
    pub fn bytes<T: Scalar>(&self) -> Result<usize> {
        let structure = self.structure()?;
        let work = match structure {
            Structure::Simplicial(s) => {
                let scratch = simplicial::factorize_simplicial_numeric_llt_scratch::<u32, T>(s.nrows());
                scratch.size_bytes() + self.triangle_bytes::<T>()
            }
            Structure::Supernodal(s) => Elimination::<T>::bytes(s, self.par()),
        };
        Ok(self.held::<T>(structure) + work)
    }

    /// Operations of an LU on this pattern without interchanges: Σⱼ bⱼ(2bⱼ + 1).
    pub(crate) fn lu_flops(&self) -> f64 {
        self.lu_flops
    }

    /// Bytes of the order, the patterns and the structure of L.
    pub(crate) fn structure_bytes(&self) -> Result<usize> {
        Ok(self.structure()?.bytes() + self.own_bytes())
    }

    /// The threads that a factorization is worth.
    pub(crate) fn par(&self) -> Par {
        parallelism_for(self.flops)
    }

    /// All but the work space of a factorization.
    pub(crate) fn held<T: Scalar>(&self, structure: &Structure) -> usize {
        let n = self.n();
        let solve = structure.solve_scratch::<T>().size_bytes() + 2 * WIDE * n * size_of::<T>();
        // And the places of mirror images.
        structure.bytes() + structure.values() * size_of::<T>() + self.own_bytes() + solve + n * size_of::<u32>()
    }

    /// Bytes of this symbolic phase without the structure of L.
    fn own_bytes(&self) -> usize {
        2 * size_of_val(&*self.order) + self.pattern.bytes() + self.eliminated.as_ref().map_or(0, Pattern::bytes)
    }

    pub(crate) fn triangle_bytes<T: Scalar>(&self) -> usize {
        self.triangle_entries() * (size_of::<T>() + 4) + (self.n() + 1) * 4
    }

    /// Entries of one half of A, at most.
    pub(crate) fn triangle_entries(&self) -> usize {
        (self.pattern.idx.len() + self.n()).div_ceil(2)
    }

    /// The structure of L.
    pub(crate) fn structure(&self) -> Result<&Structure> {
        let made = self.structure.get_or_init(|| quietly(|| self.make_structure()).unwrap_or(Err(Beyond)));
        made.as_ref().map_err(|Beyond| too_large(self.n(), self.pattern.idx.len()))
    }

    fn make_structure(&self) -> Result<Structure, Beyond> {
        let n = self.n();
        let mut upper = Triangle::<()>::default();
        let eliminated = self.eliminated.as_ref().unwrap_or(&self.pattern);
        upper.fill(eliminated, (&self.order, &self.position), |_, _| ());
        let request = StackReq::any_of(&[
            simplicial::prefactorize_symbolic_cholesky_scratch::<u32>(n, self.pattern.idx.len()),
            simplicial::factorize_simplicial_symbolic_cholesky_scratch::<u32>(n),
            supernodal::factorize_supernodal_symbolic_cholesky_scratch::<u32>(n),
        ]);
        let mut memory = MemBuffer::try_new(request).map_err(|_| Beyond)?;
        let stack = MemStack::new(&mut memory);
        let (mut tree, mut counts) = (vec![0i32; n], vec![0u32; n]);
        let tree = simplicial::prefactorize_symbolic_cholesky(&mut tree, &mut counts, upper.symbolic(), stack);
        if self.supernodal {
            let relaxed = SymbolicSupernodalParams::default();
            supernodal::factorize_supernodal_symbolic_cholesky(upper.symbolic(), tree, &counts, stack, relaxed)
                .map(|s| Structure::Supernodal(Box::new(Supernodes::new(s))))
        } else {
            bt_formats::memory::ask(4 * self.fill, "the structure of a sparse factor").map_err(|_| Beyond)?;
            simplicial::factorize_simplicial_symbolic_cholesky(upper.symbolic(), tree, &counts, stack)
                .map(Structure::Simplicial)
        }
        .map_err(|_| Beyond)
    }

    /// That A has the pattern that was analysed.
    pub(crate) fn check_pattern<T: Scalar>(&self, a: &Csr<T>) -> Result<()> {
        let other = |why: String| -> FactorError {
            bt_formats::Error::InvalidStructure { what: "matrix for a symbolic phase", why }.into()
        };
        if a.nrows() != self.n() || a.nnz() != self.pattern.idx.len() {
            let found = format!("{} rows and {} entries", a.nrows(), a.nnz());
            return Err(other(format!("{found}, but {} and {} were analysed", self.n(), self.pattern.idx.len())));
        }
        for i in (0..self.n()).filter(|&i| a.row(i).0 != self.pattern.row(i)) {
            if let Some(j) = a.row(i).0.iter().find(|j| self.pattern.row(i).binary_search(j).is_err()) {
                return Err(other(format!("the entry at row {i}, column {j} (from 0) is new")));
            }
        }
        Ok(())
    }
}
