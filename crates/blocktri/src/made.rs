//! Factors as a method makes them, with what is told of them.

use bt_direct::Factorization;
use bt_formats::{Note, Partition, Scalar};

use crate::partition::BlockSummary;

/// Factors, and what is told of them.
pub(crate) struct Made<T: Scalar> {
    pub factors: Box<dyn Factorization<T>>,
    /// Bytes of the matrix in the format they are made from.
    pub matrix_bytes: usize,
    pub blocks: Option<BlockSummary>,
    pub notes: Vec<Note>,
}

impl<T: Scalar> Made<T> {
    pub fn new(factors: impl Factorization<T> + 'static, matrix_bytes: usize) -> Self {
        Self { factors: Box::new(factors), matrix_bytes, blocks: None, notes: Vec::new() }
    }

    /// On these blocks.
    pub fn on(self, partition: &Partition) -> Self {
        Self { blocks: Some(BlockSummary::of(partition)), ..self }
    }

    pub fn noted(mut self, notes: impl IntoIterator<Item = Note>) -> Self {
        self.notes.extend(notes);
        self
    }
}
