//! Patterns of sparse matrices, their approximate minimum degree order, and the upper triangle of P·A·Pᵀ.

use bt_formats::reorder::minimum_degree_of_pattern;
use bt_formats::{Csr, Scalar};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};

use crate::error::{FactorError, Result};

/// The columns of each row.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    pub ptr: Vec<u32>,
    pub idx: Vec<u32>,
}

impl Pattern {
    /// The entries that A stores.
    pub fn of<T: Scalar>(a: &Csr<T>) -> Self {
        Self { ptr: a.row_ptr().to_vec(), idx: a.col_idx().to_vec() }
    }

    /// That of A + Aᵀ, by rows in order.
    pub fn of_sum(&self) -> Self {
        let n = self.n();
        // The transpose; rows come in order, so its rows are sorted too.
        let mut start = vec![0u32; n + 1];
        self.idx.iter().for_each(|&j| start[j as usize + 1] += 1);
        (0..n).for_each(|j| start[j + 1] += start[j]);
        let (mut next, mut rows) = (start.clone(), vec![0u32; self.idx.len()]);
        for i in 0..n {
            for &j in self.row(i) {
                rows[next[j as usize] as usize] = i as u32;
                next[j as usize] += 1;
            }
        }
        let mut sum = Self { ptr: vec![0], idx: Vec::with_capacity(self.idx.len()) };
        for i in 0..n {
            let (mut here, mut mirrored) = (self.row(i), &rows[start[i] as usize..start[i + 1] as usize]);
            while let Some(&j) = here.first().into_iter().chain(mirrored.first()).min() {
                sum.idx.push(j);
                here = &here[usize::from(here.first() == Some(&j))..];
                mirrored = &mirrored[usize::from(mirrored.first() == Some(&j))..];
            }
            sum.ptr.push(sum.idx.len() as u32);
        }
        sum
    }

    /// Whether every entry (i, j) has its mirror (j, i).
    pub fn is_symmetric(&self) -> bool {
        (0..self.n()).all(|i| self.row(i).iter().all(|&j| self.row(j as usize).binary_search(&(i as u32)).is_ok()))
    }

    pub fn n(&self) -> usize {
        self.ptr.len() - 1
    }

    pub fn row(&self, i: usize) -> &[u32] {
        &self.idx[self.ptr[i] as usize..self.ptr[i + 1] as usize]
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.ptr) + size_of_val(&*self.idx)
    }

    /// The approximate minimum degree order of A + Aᵀ: entry k is the row that is eliminated as number k.
    pub fn minimum_degree(&self) -> Result<Vec<u32>> {
        Ok(minimum_degree_of_pattern(self.n(), &self.ptr, &self.idx)?.order)
    }
}

/// That indices and work space are beyond what they can be.
pub fn too_large(n: usize, nnz: usize) -> FactorError {
    bt_formats::Error::TooLarge {
        what: "a sparse factorization",
        needed: format!("the order and factors of {n} rows with {nnz} entries"),
        limit: "32-bit indices and the memory there is".into(),
    }
    .into()
}

/// The upper half of P·A·Pᵀ by columns, with the diagonal: places, and values where there are some.
#[derive(Clone, Debug, Default)]
pub struct Triangle<T> {
    col_ptr: Vec<u32>,
    row_idx: Vec<u32>,
    values: Vec<T>,
}

impl<T: Copy> Triangle<T> {
    /// Takes column k from row `order[k]`, which is its mirror image, and the value of each entry from `value`, which is
    /// given the row and the index of the entry in the pattern.
    pub fn fill(
        &mut self,
        pattern: &Pattern,
        (order, position): (&[u32], &[u32]),
        mut value: impl FnMut(usize, usize) -> T,
    ) {
        self.col_ptr.clear();
        self.row_idx.clear();
        self.values.clear();
        self.col_ptr.push(0);
        for (k, &i) in order.iter().enumerate() {
            let start = pattern.ptr[i as usize] as usize;
            for (e, &j) in pattern.row(i as usize).iter().enumerate() {
                let p = position[j as usize];
                if p as usize <= k {
                    self.row_idx.push(p);
                    self.values.push(value(i as usize, start + e));
                }
            }
            self.col_ptr.push(self.row_idx.len() as u32);
        }
    }

    /// Room for as many entries as the half can have.
    pub fn reserve(&mut self, n: usize, entries: usize) -> Result<()> {
        crate::memory::reserve(&mut self.col_ptr, n + 1)?;
        crate::memory::reserve(&mut self.row_idx, entries)?;
        crate::memory::reserve(&mut self.values, entries)
    }

    pub fn symbolic(&self) -> SymbolicSparseColMatRef<'_, u32> {
        let n = self.col_ptr.len() - 1;
        SymbolicSparseColMatRef::new_unsorted_checked(n, n, &self.col_ptr, None, &self.row_idx)
    }

    pub fn matrix(&self) -> SparseColMatRef<'_, u32, T> {
        SparseColMatRef::new(self.symbolic(), &self.values[..])
    }
}
