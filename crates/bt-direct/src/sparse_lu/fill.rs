//! Entries and operations of an elimination whose pivots are given, for patterns of any kind.
//!
//! Column k of L and U has the rows that are reached from column k of A in the graph of L (J. R. Gilbert & T. Peierls, SIAM J. Sci. Stat.
//! Comput. 9 (1988) 862–874, doi:10.1137/0909058). Where lₖⱼ and uⱼₖ are both filled, what is below row k in column j of L is in column k too,
//! and is reached by way of it: the search leaves it out (S. C. Eisenstat & J. W. H. Liu, SIAM J. Matrix Anal. Appl. 13 (1992) 202–211,
//! doi:10.1137/0613016). On a pattern that is symmetric there is one way left from each column, to its parent in the elimination tree.
//!
//! Storage: the pattern of L and 20n bytes. Cost: the entries of L and U, and of those ways of the search that are left.

use super::ordering::{Counted, Ordering};
use super::scaled::Csc;

const NONE: u32 = u32::MAX;

/// What elimination in this order makes with the preferred rows as pivots. `None` when not even the pattern of L has room in memory.
pub fn count(a: &Csc<()>, ordering: &Ordering) -> Option<Counted> {
    let n = a.n();
    let mut place = vec![NONE; n];
    for (k, &j) in ordering.col_order.iter().enumerate() {
        place[ordering.row_of[j as usize] as usize] = k as u32;
    }
    // Columns of L below the diagonal, their rows by places; of each the part up to `end` is searched.
    let (mut start, mut end, mut rows) = (Vec::with_capacity(n + 1), vec![0usize; n], Vec::<u32>::new());
    let mut marked = vec![NONE; n];
    let mut path: Vec<(u32, usize)> = Vec::with_capacity(n);
    let mut above: Vec<u32> = Vec::with_capacity(n);
    start.push(0usize);
    let (mut upper, mut flops) = (0, 0.0);
    for (k, &column) in ordering.col_order.iter().enumerate() {
        above.clear();
        marked[k] = k as u32;
        rows.try_reserve(n - k).ok()?;
        for (i, ()) in a.col(column as usize) {
            let root = place[i];
            if std::mem::replace(&mut marked[root as usize], k as u32) == k as u32 {
                continue;
            }
            if root as usize > k {
                rows.push(root);
                continue;
            }
            above.push(root);
            path.push((root, start[root as usize]));
            while let Some((j, next)) = path.last_mut() {
                if *next == end[*j as usize] {
                    path.pop();
                    continue;
                }
                let i = rows[*next];
                *next += 1;
                if std::mem::replace(&mut marked[i as usize], k as u32) == k as u32 {
                    continue;
                }
                if i as usize > k {
                    rows.push(i);
                } else {
                    above.push(i);
                    path.push((i, start[i as usize]));
                }
            }
        }
        let below = rows.len() - start[k];
        end[k] = rows.len();
        start.push(rows.len());
        for &j in &above {
            let j = j as usize;
            flops += 2.0 * (start[j + 1] - start[j]) as f64;
            // With lₖⱼ among what is searched, the rows up to k come first and are all that still is.
            if end[j] == start[j + 1] && rows[start[j]..end[j]].contains(&(k as u32)) {
                let column = &mut rows[start[j]..end[j]];
                let mut kept = 0;
                for i in 0..column.len() {
                    if column[i] as usize <= k {
                        column.swap(kept, i);
                        kept += 1;
                    }
                }
                end[j] = start[j] + kept;
            }
        }
        upper += above.len();
        flops += below as f64;
    }
    Some(Counted { lower: rows.len(), upper, flops })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Filled entries of an elimination of n × n places, and the operations on them.
    fn eliminated(n: usize, mut filled: Vec<bool>) -> Counted {
        let (mut lower, mut upper, mut flops) = (0, 0, 0.0);
        for k in 0..n {
            for i in (k + 1..n).filter(|i| filled[i * n + k]).collect::<Vec<_>>() {
                (lower, flops) = (lower + 1, flops + 1.0);
                for j in k + 1..n {
                    if filled[k * n + j] {
                        filled[i * n + j] = true;
                        flops += 2.0;
                    }
                }
            }
            upper += (k + 1..n).filter(|j| filled[k * n + j]).count();
        }
        Counted { lower, upper, flops }
    }

    #[test]
    fn counts_are_those_of_an_elimination_of_all_places() {
        let mut random = 1u64;
        let mut below = |limit: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % limit
        };
        for n in [1, 2, 5, 12, 30] {
            for density in [1, 2, 4] {
                // Row `row_of[j]` is the pivot of column j; columns come in another order.
                let mut shuffled = || {
                    let mut order: Vec<u32> = (0..n as u32).collect();
                    (1..n).for_each(|i| order.swap(i, below(i + 1)));
                    order
                };
                let (row_of, col_order) = (shuffled(), shuffled());
                let mut columns: Vec<Vec<u32>> = row_of.iter().map(|&i| vec![i]).collect();
                for _ in 0..density * n {
                    let (i, j) = (below(n) as u32, below(n));
                    if !columns[j].contains(&i) {
                        columns[j].push(i);
                    }
                }
                let mut a = Csc { col_ptr: vec![0], row_idx: vec![], values: vec![] };
                let mut filled = vec![false; n * n];
                let place = |i: u32| col_order.iter().position(|&j| row_of[j as usize] == i).unwrap();
                for rows in &mut columns {
                    rows.sort_unstable();
                    a.row_idx.extend_from_slice(rows);
                    a.col_ptr.push(a.row_idx.len() as u32);
                }
                a.values = vec![(); a.row_idx.len()];
                for (k, &j) in col_order.iter().enumerate() {
                    columns[j as usize].iter().for_each(|&i| filled[place(i) * n + k] = true);
                }
                let counted = count(&a, &Ordering { col_order, row_of, is_symmetric: false });
                assert_eq!(counted, Some(eliminated(n, filled)), "{n} rows");
            }
        }
    }
}
