//! A sparse matrix by rows that are spread over ranks, made from rows that a program already has.
//!
//! Each rank keeps its rows in two parts: A₀ with the columns that it owns, square, and X with those of its halo, for the rows that have
//! such columns alone. In the words of Y. Saad, M. Sosonkina, Distributed Schur complement techniques for general sparse linear
//! systems, SIAM J. Sci. Comput. 21 (1999) 1337–1356, doi:10.1137/S1064827597328996, rows without columns of the halo are internal
//! where nobody needs their unknowns, all others are interface rows:
//!
//! ```text
//!        own      halo
//!     [ B  F ]   [ 0 ]   internal
//! Aᵢ = [ E  C ]   [ X ]   interface        A₀ = [B F; E C] in the order of [`Rows::own`], not permuted
//! ```
//!
//! Storage: that of the two parts, 4(h + b) bytes for h entries of the halo and b rows of X. Communication of the making: that of
//! `rows.rs` and `halo.rs`.

use std::cell::RefCell;

use bt_formats::{Csr, Scalar, zero};

use crate::comm::{Comm, Number};
use crate::error::{Fault, Result, agree};
use crate::halo::Halo;
use crate::rows::Rows;

/// A, n × n, with the rows of this rank.
///
/// ```
/// use bt_parallel::{Comm, DistributedCsr, thread_comm};
/// // [2 1 0 0; 1 2 1 0; 0 1 2 1; 0 0 1 2], the first row on rank 0, the others on rank 1; rank 2 has none.
/// let products = thread_comm::run(3, |comm| {
///     let own: Vec<u32> = [vec![0], vec![1, 2, 3], vec![]][comm.rank()].clone();
///     let rows: Vec<(Vec<u32>, Vec<f64>)> = own
///         .iter()
///         .map(|&i| (0..4u32).filter(|j| j.abs_diff(i) <= 1).map(|j| (j, if i == j { 2.0 } else { 1.0 })).unzip())
///         .collect();
///     let a = DistributedCsr::from_rows(comm, 4, own, rows.iter().map(|(cols, values)| (&cols[..], &values[..])))?;
///     let mut y = vec![0.0; a.rows().own().len()];
///     a.apply(1.0, &vec![1.0; y.len()], 0.0, &mut y)?;
///     Ok(y)
/// });
/// assert_eq!(products, [Ok(vec![3.0]), Ok(vec![4.0, 4.0, 3.0]), Ok(vec![])]);
/// ```
pub struct DistributedCsr<'c, T: Number, C: Comm> {
    pub(crate) comm: &'c C,
    rows: Rows,
    /// A₀.
    pub(crate) local: Csr<T>,
    /// X, by the rows of `boundary`.
    pub(crate) external: Csr<T>,
    /// Own rows that have columns of the halo, increasing.
    pub(crate) boundary: Vec<u32>,
    pub(crate) halo: Halo<T>,
    /// The halo of a product.
    pub(crate) received: RefCell<Vec<T>>,
    /// ‖A‖∞ of the whole matrix.
    norm_inf: f64,
    nnz: u64,
}

impl<'c, T: Number, C: Comm> DistributedCsr<'c, T, C> {
    /// From the rows of this rank, `own[i]` being the number of row i in the system and its columns those of the system, in any order.
    /// A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`], naming rank and row: what [`Rows::new`] refuses; another number of rows than of their numbers; a row whose columns
    /// and values differ in length, with a column beyond n or twice the same, with a value that is not finite.
    ///
    /// # Cost
    /// O(z log z) for z entries; communication of the halo.
    pub fn from_rows<'r>(
        comm: &'c C,
        n: usize,
        own: Vec<u32>,
        rows: impl IntoIterator<Item = (&'r [u32], &'r [T])>,
    ) -> Result<Self> {
        let owned = Rows::new(comm, n, own)?;
        // Places of own columns, by bisection.
        let mut places: Vec<(u32, u32)> = owned.own().iter().zip(0..).map(|(&g, i)| (g, i)).collect();
        places.sort_unstable();
        let sorted = agree(comm, OwnRows::sorted(owned.own(), n, rows, &places))?;
        let halo = Halo::new(comm, &owned, &sorted.needed)?;
        let built = sorted.build(&halo, owned.own().len());
        let Halves { local, external, boundary } = agree(comm, built)?;
        let mut norm = [sorted.norm_inf];
        comm.all_max(&mut norm)?;
        let nnz = comm.all_gather(&[(local.values().len() + external.values().len()) as u64])?.values().iter().sum();
        let received = RefCell::new(vec![zero(); halo.len()]);
        Ok(Self { comm, rows: owned, local, external, boundary, halo, received, norm_inf: norm[0], nnz })
    }

    /// The same from a matrix of the own rows with n columns.
    ///
    /// # Errors
    /// As [`DistributedCsr::from_rows`].
    pub fn from_csr(comm: &'c C, own: Vec<u32>, a: &Csr<T>) -> Result<Self> {
        let n = bt_formats::LinearOperator::ncols(a);
        let nrows = bt_formats::LinearOperator::nrows(a);
        Self::from_rows(comm, n, own, (0..nrows).map(|i| a.row(i)))
    }

    /// The communicator.
    pub fn comm(&self) -> &'c C {
        self.comm
    }
    /// Who owns what.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }
    /// A₀: the own rows with the own columns, by their places.
    pub fn local(&self) -> &Csr<T> {
        &self.local
    }
    /// What is exchanged for a product.
    pub fn halo(&self) -> &Halo<T> {
        &self.halo
    }
    /// ‖A‖∞ of the whole matrix.
    pub fn norm_inf(&self) -> f64 {
        self.norm_inf
    }
    /// Entries of the whole matrix.
    pub fn nnz(&self) -> u64 {
        self.nnz
    }

    /// Own rows whose unknowns no other rank needs and that need none of others, and the rest, each increasing.
    pub fn internal_and_interface(&self) -> (Vec<u32>, Vec<u32>) {
        let mut interface = vec![false; self.rows.own().len()];
        let needed = self.halo.sends().iter().flat_map(|s| &s.1);
        self.boundary.iter().chain(needed).for_each(|&i| interface[i as usize] = true);
        (0..interface.len() as u32).partition(|&i| !interface[i as usize])
    }

    /// Row i with columns by place: the own ones, then those of the halo from m on.
    pub(crate) fn row(&self, i: usize) -> impl Iterator<Item = (u32, T)> + '_ {
        let m = self.rows.own().len() as u32;
        let (cols, values) = self.local.row(i);
        let external = self.boundary.binary_search(&(i as u32)).map(|k| self.external.row(k)).unwrap_or_default();
        let own = cols.iter().copied().zip(values.iter().copied());
        own.chain(external.0.iter().map(move |&j| j + m).zip(external.1.iter().copied()))
    }

    /// The number of a column by place in the system.
    pub(crate) fn global(&self, j: u32) -> u32 {
        let own = self.rows.own();
        own.get(j as usize).copied().unwrap_or_else(|| self.halo.rows()[j as usize - own.len()])
    }
}

impl<C: Comm> DistributedCsr<'_, f64, C> {
    /// a_ij ← a_ij/dᵢ for a number of each own row. A collective.
    pub(crate) fn divide_rows(&mut self, d: &[f64]) -> Result<()> {
        let parts = [(&mut self.local, None), (&mut self.external, Some(&self.boundary))];
        for (part, rows) in parts {
            for k in 0..bt_formats::LinearOperator::nrows(part) {
                let row = part.row_ptr()[k] as usize..part.row_ptr()[k + 1] as usize;
                let i = rows.map_or(k, |rows| rows[k] as usize);
                for v in &mut part.values_mut()[row] {
                    *v /= d[i];
                }
            }
        }
        let sums = (0..d.len()).map(|i| self.row(i).map(|e| e.1.abs()).sum());
        let mut norm = [sums.fold(0.0, f64::max)];
        self.comm.all_max(&mut norm)?;
        self.norm_inf = norm[0];
        Ok(())
    }
}

/// The rows of a rank, in order, with columns by place: own ones as they are, others as m + their place in `needed`.
struct OwnRows<T> {
    row_ptr: Vec<usize>,
    entries: Vec<(u32, T)>,
    /// Columns of others, increasing.
    needed: Vec<u32>,
    norm_inf: f64,
}

impl<T: Number> OwnRows<T> {
    fn sorted<'r>(
        own: &[u32],
        n: usize,
        rows: impl IntoIterator<Item = (&'r [u32], &'r [T])>,
        places: &[(u32, u32)],
    ) -> Result<Self, Fault> {
        let (mut row_ptr, mut entries, mut needed) = (vec![0], Vec::new(), Vec::new());
        let mut norm_inf = 0.0f64;
        for (i, (cols, values)) in rows.into_iter().enumerate() {
            let Some(&g) = own.get(i) else {
                return Err(Fault::input(format!("more rows than the {} that it owns", own.len())));
            };
            if cols.len() != values.len() {
                let why = format!("row {g} has {} columns and {} values", cols.len(), values.len());
                return Err(Fault::input(why));
            }
            if let Some(j) = cols.iter().find(|&&j| j as usize >= n) {
                return Err(Fault::input(format!("row {g} has column {j}, beyond the {n} of the system")));
            }
            if let Some(k) = values.iter().position(|v| !Scalar::is_finite(*v)) {
                let why = format!("row {g}, column {}: {} is not a finite number", cols[k], values[k]);
                return Err(Fault::input(why));
            }
            let first = entries.len();
            entries.extend(cols.iter().copied().zip(values.iter().copied()));
            let row = &mut entries[first..];
            row.sort_by_key(|e| e.0);
            if let Some(pair) = row.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(Fault::input(format!("row {g} has column {} twice", pair[0].0)));
            }
            let sum: f64 = row.iter().map(|e| bt_formats::RealScalar::to_f64(Scalar::abs(e.1))).sum();
            norm_inf = norm_inf.max(sum);
            needed.extend(row.iter().map(|e| e.0).filter(|j| places.binary_search_by_key(j, |p| p.0).is_err()));
            row_ptr.push(entries.len());
        }
        if row_ptr.len() - 1 != own.len() {
            return Err(Fault::input(format!("{} rows instead of the {} that it owns", row_ptr.len() - 1, own.len())));
        }
        needed.sort_unstable();
        needed.dedup();
        // Columns by place: own ones below m, the others from m on.
        let m = own.len();
        if m + needed.len() >= u32::MAX as usize {
            return Err(Fault::input("more columns than 32-bit indices hold"));
        }
        for entry in &mut entries {
            entry.0 = match places.binary_search_by_key(&entry.0, |p| p.0) {
                Ok(k) => places[k].1,
                Err(_) => (m + needed.binary_search(&entry.0).unwrap_or(0)) as u32,
            };
        }
        Ok(Self { row_ptr, entries, needed, norm_inf })
    }

    /// A₀, X and the rows of X.
    fn build(&self, halo: &Halo<T>, m: usize) -> Result<Halves<T>, Fault> {
        // From the order of `needed` to that of the halo.
        let mut place = vec![0u32; self.needed.len()];
        for (k, g) in halo.rows().iter().enumerate() {
            if let Ok(at) = self.needed.binary_search(g) {
                place[at] = k as u32;
            }
        }
        let mut parts = [Part::new(), Part::new()];
        let mut boundary = Vec::new();
        for i in 0..m {
            let row = &self.entries[self.row_ptr[i]..self.row_ptr[i + 1]];
            let (own, others): (Vec<_>, Vec<_>) = row.iter().partition(|e| (e.0 as usize) < m);
            parts[0].push(own);
            if !others.is_empty() {
                boundary.push(i as u32);
                parts[1].push(others.into_iter().map(|(j, v)| (place[j as usize - m], v)).collect());
            }
        }
        let [local, external] = parts;
        Ok(Halves { local: local.build(m)?, external: external.build(halo.len())?, boundary })
    }
}

/// A₀, X and the rows of X.
struct Halves<T> {
    local: Csr<T>,
    external: Csr<T>,
    boundary: Vec<u32>,
}

/// Rows that become a matrix.
struct Part<T> {
    row_ptr: Vec<u32>,
    cols: Vec<u32>,
    values: Vec<T>,
}

impl<T: Number> Part<T> {
    fn new() -> Self {
        Self { row_ptr: vec![0], cols: Vec::new(), values: Vec::new() }
    }

    fn push(&mut self, mut row: Vec<(u32, T)>) {
        row.sort_unstable_by_key(|e| e.0);
        self.cols.extend(row.iter().map(|e| e.0));
        self.values.extend(row.iter().map(|e| e.1));
        self.row_ptr.push(self.cols.len() as u32);
    }

    fn build(self, ncols: usize) -> Result<Csr<T>, Fault> {
        Ok(Csr::new(self.row_ptr.len() - 1, ncols, self.row_ptr, self.cols, self.values)?)
    }
}
