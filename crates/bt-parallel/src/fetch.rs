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
    rows: Vec<Vec<u32>>,
}

impl Transposed {
    /// Of a matrix. A collective.
    pub fn new<T: Number, C: Comm>(a: &DistributedCsr<'_, T, C>) -> Result<Self> {
        let own = a.rows().own();
        let mut rows = vec![Vec::new(); own.len()];
        for (i, &g) in own.iter().enumerate() {
            a.local().row(i).0.iter().for_each(|&j| rows[j as usize].push(g));
        }
        let mut told: Vec<Vec<u32>> = vec![Vec::new(); a.comm().size()];
        for (k, &i) in a.boundary.iter().enumerate() {
            for &j in a.external.row(k).0 {
                let owner = a.halo().owners()[j as usize];
                told[owner.rank as usize].extend([owner.place, own[i as usize]]);
            }
        }
        for pair in a.comm().all_to_all(&Parts::new(told))?.values().chunks_exact(2) {
            rows[pair[0] as usize].push(pair[1]);
        }
        Ok(Self { rows })
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
pub(crate) fn own_row<T: Number, C: Comm>(
    a: &DistributedCsr<'_, T, C>,
    transposed: &Transposed,
    i: usize,
) -> FullRow<T> {
    let (cols, values) = a.row(i).map(|(j, v)| (a.global(j), v)).unzip();
    FullRow { cols, values, named_by: transposed.rows[i].clone() }
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
