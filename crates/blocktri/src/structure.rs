//! What one pass over a matrix tells of its elimination.

use bt_formats::{Csr, LinearOperator, Scalar, Weight, zero};

/// What a breadth-first search tells along the rows of A.
pub(crate) struct Search {
    /// Unknowns of the smallest level that has a quarter of the unknowns on either side at least, and the rows that are nearly full.
    pub middle: usize,
    /// Whether it reaches all unknowns: then A has no parts that nothing connects.
    pub reaches_all: bool,
}

/// Begins at a last unknown of another search. Rows that are nearly full, which an ordering puts last, are left out and counted.
pub(crate) fn search<T: Scalar>(a: &Csr<T>) -> Search {
    let n = a.nrows();
    // As approximate minimum degree has it (P. R. Amestoy, T. A. Davis & I. S. Duff, ACM TOMS 30 (2004), doi:10.1145/1024074.1024081).
    let full = (10.0 * (n as f64).sqrt()).max(16.0) as usize;
    let is_full: Vec<bool> = (0..n).map(|i| a.row(i).0.len() > full).collect();
    let fulls = is_full.iter().filter(|f| **f).count();
    let mut seen = vec![false; n];
    let mut queue = Vec::with_capacity(n);
    let mut sizes = Vec::new();
    let Some(mut start) = is_full.iter().position(|f| !f) else { return Search { middle: n, reaches_all: false } };
    for _ in 0..2 {
        seen.copy_from_slice(&is_full);
        queue.clear();
        sizes.clear();
        queue.push(start as u32);
        seen[start] = true;
        let mut at = 0;
        while at < queue.len() {
            let end = queue.len();
            sizes.push(end - at);
            for k in at..end {
                for &j in a.row(queue[k] as usize).0 {
                    if !std::mem::replace(&mut seen[j as usize], true) {
                        queue.push(j);
                    }
                }
            }
            at = end;
        }
        start = queue.last().map_or(start, |&i| i as usize);
    }
    let reached = queue.len();
    let mut before = 0;
    let middle = sizes.iter().filter(|&&size| {
        before += size;
        before - size <= 3 * reached / 4 && 4 * before >= reached
    });
    Search { middle: middle.copied().min().unwrap_or(n) + fulls, reaches_all: reached == n }
}

/// Weakly diagonally dominant by rows or by columns: elimination without pivoting has growth at most 2.
pub(crate) fn dominant<T: Scalar>(a: &Csr<T>) -> bool {
    match a.survey().weight {
        Weight::ByRows => return true,
        Weight::Less => return false,
        Weight::InAll => {}
    }
    let mut sums = vec![zero::<T::Real>(); a.ncols()];
    for i in 0..a.nrows() {
        let (cols, values) = a.row(i);
        cols.iter().zip(values).for_each(|(j, v)| sums[*j as usize] += if i as u32 == *j { -v.abs() } else { v.abs() });
    }
    sums.iter().all(|s| *s <= zero())
}
