//! Rows of A that other ranks own, with their columns in the numbers of the system, and rows that name them.
//!
//! The graph that domains grow in is that of A + Aᵀ: for a row of another rank its owner sends the columns of A, the values, and the rows
//! that have it as a column. Those of its own rows that other ranks have are found once, by [`Transposed::new`].
//!
//! Communication: the transposed pattern takes an all-to-all of 8 bytes an entry of X; a fetch two of 4 and 8 bytes a row, one of 4 bytes an
//! entry and a neighbour, and one of s bytes an entry.

use crate::comm::{Comm, Number, Parts};
use crate::csr::DistributedCsr;
use crate::error::Result;
use crate::rows::Owner;

/// The rows of the system that have an own row as a column, by own row.
pub(crate) struct Transposed {
    /// Where the own rows of each begin, and they, by their numbers in the system.
    starts: Vec<u32>,
    own: Vec<u32>,
    /// An own row and a row of another rank that has it, increasing.
    others: Vec<(u32, u32)>,
}

impl Transposed {
    /// Of a matrix. A collective.
    pub fn new<T: Number, C: Comm>(a: &DistributedCsr<'_, T, C>) -> Result<Self> {
        let (numbers, local) = (a.rows().own(), a.local());
        // Counted, then filled from the ends.
        let mut starts = vec![0u32; numbers.len() + 1];
        local.col_idx().iter().for_each(|&j| starts[j as usize] += 1);
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        let mut own = vec![0; local.col_idx().len()];
        for (i, &g) in numbers.iter().enumerate().rev() {
            for &j in local.row(i).0 {
                starts[j as usize] -= 1;
                own[starts[j as usize] as usize] = g;
            }
        }
        let mut told: Vec<Vec<u32>> = vec![Vec::new(); a.comm().size()];
        for (k, &i) in a.boundary.iter().enumerate() {
            for &j in a.external.row(k).0 {
                let owner = a.halo().owners()[j as usize];
                told[owner.rank as usize].extend([owner.place, numbers[i as usize]]);
            }
        }
        let pairs = a.comm().all_to_all(&Parts::new(told))?;
        let mut others: Vec<(u32, u32)> = pairs.values().chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        others.sort_unstable();
        Ok(Self { starts, own, others })
    }

    /// The rows of other ranks that have an own row as a column.
    pub fn others(&self) -> impl Iterator<Item = u32> + '_ {
        self.others.iter().map(|pair| pair.1)
    }

    /// The rows that have row i as a column.
    fn of_row(&self, i: usize) -> Vec<u32> {
        let own = &self.own[self.starts[i] as usize..self.starts[i + 1] as usize];
        let first = self.others.partition_point(|pair| pair.0 < i as u32);
        let others = self.others[first..].iter().take_while(|pair| pair.0 == i as u32).map(|pair| pair.1);
        own.iter().copied().chain(others).collect()
    }
}

/// A row of A: its columns and values, and the rows that have it as a column.
#[derive(Clone, Debug)]
pub(crate) struct FullRow<T> {
    pub cols: Vec<u32>,
    pub values: Vec<T>,
    pub named_by: Vec<u32>,
}

/// An own row.
fn own_row<T: Number, C: Comm>(a: &DistributedCsr<'_, T, C>, transposed: &Transposed, i: usize) -> FullRow<T> {
    let (cols, values) = a.row(i).map(|(j, v)| (a.global(j), v)).unzip();
    FullRow { cols, values, named_by: transposed.of_row(i) }
}

/// Rows of others, in the order in which they are asked for. A collective: every rank asks, if for nothing.
pub(crate) fn fetch<T: Number, C: Comm>(
    a: &DistributedCsr<'_, T, C>,
    transposed: &Transposed,
    wanted: &[Owner],
) -> Result<Vec<FullRow<T>>> {
    let (comm, p) = (a.comm(), a.comm().size());
    let mut asked: Vec<Vec<u32>> = vec![Vec::new(); p];
    for owner in wanted {
        asked[owner.rank as usize].push(owner.place);
    }
    let asked = Parts::new(asked);
    let questions = comm.all_to_all(&asked)?;
    let rows: Vec<Vec<FullRow<T>>> =
        questions.iter().map(|part| part.iter().map(|&i| own_row(a, transposed, i as usize)).collect()).collect();
    let of_rows = |f: &dyn Fn(&FullRow<T>) -> Vec<u32>| {
        Parts::new(rows.iter().map(|r| r.iter().flat_map(f).collect::<Vec<u32>>()))
    };
    let mut lengths = Parts::zeros(asked.sizes().map(|size| 2 * size));
    let own_lengths = of_rows(&|row| vec![row.cols.len() as u32, row.named_by.len() as u32]);
    comm.all_to_all_into(&own_lengths, &mut lengths)?;
    let indices = comm.all_to_all(&of_rows(&|row| [&row.cols[..], &row.named_by[..]].concat()))?;
    let values = rows.iter().map(|r| r.iter().flat_map(|row| row.values.iter().copied()).collect::<Vec<T>>());
    let values = comm.all_to_all(&Parts::new(values))?;
    // What comes from one rank is in the order of what it was asked.
    let (mut row, mut index, mut value) = (vec![0; p], vec![0; p], vec![0; p]);
    let unpack = |owner: &Owner| {
        let rank = owner.rank as usize;
        let lengths = &lengths.part(rank)[2 * row[rank]..];
        let (n_cols, n_named) = (lengths[0] as usize, lengths[1] as usize);
        let found = FullRow {
            cols: indices.part(rank)[index[rank]..][..n_cols].to_vec(),
            named_by: indices.part(rank)[index[rank] + n_cols..][..n_named].to_vec(),
            values: values.part(rank)[value[rank]..][..n_cols].to_vec(),
        };
        row[rank] += 1;
        index[rank] += n_cols + n_named;
        value[rank] += n_cols;
        found
    };
    Ok(wanted.iter().map(unpack).collect())
}
