//! D⁻¹ on a rank: the factors of its diagonal blocks, or solvers that a caller makes of them, on a device for example.
//!
//! A solver is exact for a matrix that has diagonal blocks alone: all of the rank, or those of one colour, one after the other. What it solves for is
//! copied there and back.
//!
//! Storage: of factors nothing more; of solvers 4 bytes and 2 numbers a row.

use bt_formats::{Csr, Par, Partition, one, zero};
use bt_iter::{BlockDiagonal, Identity, Preconditioner, for_blocks};

use super::BlockSweep;
use crate::comm::{Comm, Number};
use crate::csr::DistributedCsr;
use crate::error::{Fault, Result};

/// What solves with the diagonal blocks of a rank.
pub(super) enum Solves<T: Number> {
    /// Factors of each block.
    Factors(BlockDiagonal<T>),
    /// A solver of all blocks, or of the even ones and of the odd ones.
    Solvers(Vec<Part<T>>),
}

impl<T: Number> Solves<T> {
    /// By solvers of the blocks, of which there are `first_block` on the ranks before.
    ///
    /// # Errors
    /// Those of `solver`, with the rows of the system; for a solver of another number of rows.
    pub fn by<C: Comm>(
        a: &DistributedCsr<'_, T, C>,
        (blocks, first_block): (&Partition, usize),
        sweep: BlockSweep,
        mut solver: impl FnMut(&Csr<T>, &Partition) -> bt_direct::Result<Box<dyn Preconditioner<T>>>,
    ) -> Result<Self, Fault> {
        let colours = match sweep {
            BlockSweep::Jacobi => 1,
            BlockSweep::RedBlack { .. } => 2,
        };
        let mut parts = Vec::new();
        for colour in 0..colours {
            let of: Vec<usize> = (0..blocks.n_blocks()).filter(|j| (first_block + j) % colours == colour).collect();
            parts.push(Part::new(a, blocks, &of, &mut solver)?);
        }
        Ok(Self::Solvers(parts))
    }

    /// x ← x + D⁻¹·r for all blocks; r is not r any more.
    pub fn relax_all(&mut self, blocks: &Partition, r: &mut [T], x: &mut [T]) {
        match self {
            Self::Factors(factors) => {
                factors.solve(blocks, r, Par::Seq);
                x.iter_mut().zip(&*r).for_each(|(x, &r)| *x += r);
            }
            Self::Solvers(parts) => parts.iter_mut().for_each(|part| part.relax(one(), r, x)),
        }
    }

    /// x_c ← x_c + ω·D_c⁻¹·r_c for the blocks of a colour, 0 of the even ones and 1 of the odd ones, counted from `first_block`
    /// on; r_c is not r_c any more.
    pub fn relax(
        &mut self,
        (blocks, first_block): (&Partition, usize),
        colour: usize,
        omega: T,
        r: &mut [T],
        x: &mut [T],
    ) {
        match self {
            Self::Factors(factors) => {
                for_blocks(blocks, r, Par::Seq, &|j, r| {
                    if (first_block + j) % 2 == colour {
                        factors.solve_block(j, r);
                    }
                });
                for j in (0..blocks.n_blocks()).filter(|j| (first_block + j) % 2 == colour) {
                    blocks.range(j).for_each(|i| x[i] += omega * r[i]);
                }
            }
            Self::Solvers(parts) => parts[colour].relax(omega, r, x),
        }
    }

    /// Bytes of the factors, or of the solvers and what is copied for them.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Factors(factors) => factors.bytes(),
            Self::Solvers(parts) => parts.iter().map(Part::bytes).sum(),
        }
    }
}

/// Some of the blocks of a rank, and their solver.
pub(super) struct Part<T: Number> {
    /// Own rows.
    rows: Vec<u32>,
    solver: Box<dyn Preconditioner<T>>,
    r: Vec<T>,
    z: Vec<T>,
}

impl<T: Number> Part<T> {
    fn new<C: Comm>(
        a: &DistributedCsr<'_, T, C>,
        blocks: &Partition,
        of: &[usize],
        solver: &mut impl FnMut(&Csr<T>, &Partition) -> bt_direct::Result<Box<dyn Preconditioner<T>>>,
    ) -> Result<Self, Fault> {
        let rows: Vec<u32> = of.iter().flat_map(|&j| blocks.range(j)).map(|i| i as u32).collect();
        let solver: Box<dyn Preconditioner<T>> = if rows.is_empty() {
            Box::new(Identity::new(0))
        } else {
            let sizes = Partition::from_sizes(of.iter().map(|&j| blocks.size(j)))?;
            let own = a.rows().own();
            let numbers = rows.iter().map(|&i| own[i as usize]);
            solver(&diagonal_blocks(a.local(), blocks, of)?, &sizes)
                .map_err(|error| Fault::in_part(error, "diagonal blocks", numbers))?
        };
        if solver.n() != rows.len() {
            let why = format!("{} is for {} rows, not {}", solver.name(), solver.n(), rows.len());
            return Err(Fault::input(why));
        }
        let vector = || vec![zero::<T>(); rows.len()];
        let (r, z) = (vector(), vector());
        Ok(Self { rows, solver, r, z })
    }

    /// x ← x + ω·D⁻¹·r in the rows of these blocks.
    fn relax(&mut self, omega: T, r: &[T], x: &mut [T]) {
        self.r.iter_mut().zip(&self.rows).for_each(|(v, &i)| *v = r[i as usize]);
        self.solver.apply(&self.r, &mut self.z);
        self.rows.iter().zip(&self.z).for_each(|(&i, &z)| x[i as usize] += omega * z);
    }

    fn bytes(&self) -> usize {
        self.solver.bytes() + size_of_val(&*self.rows) + 2 * size_of_val(&*self.r)
    }
}

/// The diagonal blocks of these numbers, one after the other, and nothing beside them.
fn diagonal_blocks<T: Number>(a: &Csr<T>, blocks: &Partition, of: &[usize]) -> Result<Csr<T>, Fault> {
    let (mut ptr, mut cols, mut values) = (vec![0u32], Vec::new(), Vec::new());
    let mut first = 0;
    for &j in of {
        let range = blocks.range(j);
        for i in range.clone() {
            let (js, vs) = a.row(i);
            for (&j, &v) in js.iter().zip(vs).filter(|(j, _)| range.contains(&(**j as usize))) {
                cols.push((first + j as usize - range.start) as u32);
                values.push(v);
            }
            ptr.push(cols.len() as u32);
        }
        first += range.len();
    }
    Ok(Csr::new(first, first, ptr, cols, values)?)
}

#[cfg(test)]
mod tests {
    use bt_formats::LinearOperator;

    use super::*;

    #[test]
    fn blocks_lose_what_couples_them() {
        let a = bt_testkit::csr(5, |i, j| (10 * i + j + 1) as f64);
        let blocks = Partition::from_sizes([2, 1, 2]).unwrap();
        let d = diagonal_blocks(&a, &blocks, &[0, 2]).unwrap();
        assert_eq!((d.nrows(), d.row_ptr()), (4, &[0, 2, 4, 6, 8][..]));
        assert_eq!(d.col_idx(), [0, 1, 0, 1, 2, 3, 2, 3]);
        assert_eq!(d.values(), [1.0, 2.0, 11.0, 12.0, 34.0, 35.0, 44.0, 45.0]);
        assert_eq!(diagonal_blocks(&a, &blocks, &[]).unwrap().nrows(), 0);
    }
}
