//! Sparse factors while they are made: compressed columns that grow one by one.

use bt_formats::{Scalar, memory};

use crate::error::{FactorError, Result};

/// Compressed columns that grow one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns<T> {
    pub ptr: Vec<usize>,
    pub idx: Vec<u32>,
    pub val: Vec<T>,
}

impl<T: Scalar> Columns<T> {
    /// None of n columns yet, with room for `nnz` entries.
    pub fn restart(&mut self, n: usize, nnz: usize) -> Result<()> {
        self.ptr.clear();
        self.idx.clear();
        self.val.clear();
        self.ptr.try_reserve(n + 1).map_err(|_| out_of_memory(n))?;
        self.ptr.push(0);
        self.reserve(nnz)
    }

    pub fn reserve(&mut self, more: usize) -> Result<()> {
        let nnz = self.idx.len() + more;
        if nnz > self.idx.capacity() {
            // It doubles.
            let grown = more.max(self.idx.len()) * (size_of::<u32>() + size_of::<T>());
            memory::ask(grown as u64, "the factors")?;
        }
        self.idx.try_reserve(more).and_then(|()| self.val.try_reserve(more)).map_err(|_| out_of_memory(nnz))
    }

    /// An entry of the column that is being made.
    pub fn push(&mut self, i: u32, v: T) {
        self.idx.push(i);
        self.val.push(v);
    }

    /// The end of the column that is being made.
    pub fn close(&mut self) {
        self.ptr.push(self.idx.len());
    }

    /// n empty columns.
    pub fn empty(&mut self, n: usize) {
        self.ptr.clear();
        self.ptr.resize(n + 1, 0);
    }

    pub fn range(&self, j: usize) -> std::ops::Range<usize> {
        self.ptr[j]..self.ptr[j + 1]
    }

    pub fn col(&self, j: usize) -> impl DoubleEndedIterator<Item = (usize, T)> + '_ {
        let range = self.range(j);
        self.idx[range.clone()].iter().zip(&self.val[range]).map(|(&i, &v)| (i as usize, v))
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.ptr) + size_of_val(&*self.idx) + size_of_val(&*self.val)
    }
}

fn out_of_memory(nnz: usize) -> FactorError {
    bt_formats::Error::TooLarge {
        what: "a sparse factor",
        needed: format!("{nnz} entries"),
        limit: "the memory that could be had".into(),
    }
    .into()
}
