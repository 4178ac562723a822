//! Substitution for several vectors at once: they are gathered in the order of the factors by fours, twos and ones, side by side, and
//! scattered back.
//!
//! Storage: eight vectors for each thread that solves at the same time as others, and what faer's kernels ask for.

use bt_formats::Scalar;
use faer::MatMut;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};

use super::pattern::too_large;
use crate::error::Result;
use crate::memory::zeros;
use crate::pool::Pool;

/// Vectors that share one sweep over the factors.
pub(crate) const WIDE: usize = 4;

/// Work space of solves: one for every thread that has solved at the same time.
pub(crate) struct Buffers<T> {
    kernels: StackReq,
    pool: Pool<Buffer<T>>,
}

struct Buffer<T> {
    /// `WIDE` interleaved vectors in the order of the factors, and as many as work space.
    x: Vec<T>,
    memory: MemBuffer,
}

/// Interleaved vectors: number k of vector w is `values[columns·k + w]`.
pub(crate) struct Interleaved<'a, T> {
    columns: usize,
    values: &'a mut [T],
    /// As many numbers.
    work: &'a mut [T],
    stack: &'a mut MemStack,
}

/// Factors for W interleaved vectors, with as much work space.
pub(crate) trait Substitution<T> {
    fn substitute<const W: usize>(&self, y: &mut [[T; W]], work: &mut [[T; W]]);
}

impl<'a, T: Scalar> Interleaved<'a, T> {
    /// As a matrix, and work space for faer.
    pub fn matrix(self) -> (MatMut<'a, T>, &'a mut MemStack) {
        let n = self.values.len() / self.columns;
        (MatMut::from_row_major_slice_mut(self.values, n, self.columns), self.stack)
    }

    /// y ← what `factors` make of it.
    pub fn substitute(self, factors: &impl Substitution<T>) {
        match self.columns {
            1 => factors.substitute(chunks::<T, 1>(self.values), chunks(self.work)),
            2 => factors.substitute(chunks::<T, 2>(self.values), chunks(self.work)),
            _ => factors.substitute(chunks::<T, WIDE>(self.values), chunks(self.work)),
        }
    }
}

fn chunks<T, const W: usize>(values: &mut [T]) -> &mut [[T; W]] {
    values.as_chunks_mut().0
}

/// An order, and what is done with number i of it on the way.
pub(crate) struct Route<'a, F>(pub &'a [u32], pub F);

impl<T: Scalar> Buffers<T> {
    /// For vectors of n numbers, with what faer's kernels ask for.
    pub fn new(n: usize, kernels: StackReq) -> Result<Self> {
        let pool = Pool::new();
        pool.put(Buffer::new(n, kernels)?);
        Ok(Self { kernels, pool })
    }

    /// Solves for the columns of `x`, gathered by one way, solved, and scattered by another.
    pub fn solve(
        &self,
        there: &Route<'_, impl Fn(usize, T) -> T>,
        back: &Route<'_, impl Fn(usize, T) -> T>,
        mut x: MatMut<'_, T>,
        solve: impl Fn(Interleaved<'_, T>),
    ) {
        let n = there.0.len();
        assert_eq!(x.nrows(), n, "rows of the right-hand sides");
        let mut buffer = self.pool.take(|| Buffer::new(n, self.kernels).expect("memory for a solve"));
        let (mut first, nrhs) = (0, x.ncols());
        while first < nrhs {
            let columns = [WIDE, 2, 1].into_iter().find(|&c| first + c <= nrhs).unwrap_or(1);
            let (values, work) = buffer.x[..2 * n * columns].split_at_mut(n * columns);
            for c in 0..columns {
                let x = column(x.as_mut(), first + c);
                let y = values.iter_mut().skip(c).step_by(columns);
                y.zip(there.0).for_each(|(y, &i)| *y = (there.1)(i as usize, x[i as usize]));
            }
            solve(Interleaved { columns, values, work, stack: MemStack::new(&mut buffer.memory) });
            for c in 0..columns {
                let x = column(x.as_mut(), first + c);
                let y = values.iter().skip(c).step_by(columns);
                y.zip(back.0).for_each(|(y, &i)| x[i as usize] = (back.1)(i as usize, *y));
            }
            first += columns;
        }
        self.pool.put(buffer);
    }
}

fn column<T>(x: MatMut<'_, T>, j: usize) -> &mut [T] {
    x.col_mut(j).try_as_col_major_mut().expect("columns must be contiguous").as_slice_mut()
}

impl<T: Scalar> Buffer<T> {
    fn new(n: usize, kernels: StackReq) -> Result<Self> {
        let memory = MemBuffer::try_new(kernels).map_err(|_| too_large(n, 0))?;
        Ok(Self { x: zeros(n.saturating_mul(2 * WIDE))?, memory })
    }
}
