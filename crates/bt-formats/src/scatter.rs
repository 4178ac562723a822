//! Rows written into a matrix that is stored by columns.
//!
//! Columns of a large matrix lie so far apart that a row by itself fetches a line of the cache for each number. Eight rows, eight columns at
//! a time, find most of their lines where the row before left them.

/// Rows that are written together, at most: the doubles of a line.
pub(crate) const ROWS: usize = 8;

/// Columns at a time: their lines fit into one set of a cache, where a power of two between columns puts them.
const COLUMNS: u32 = 8;

/// Numbers of a column from which rows are written together.
const LARGE: usize = 64;

/// Columns and values of a row, or what is left of them.
pub(crate) type Entries<'a, T> = (&'a [u32], &'a [T]);

/// Where rows go: entry c of the r-th to (c − before)·stride + first + r.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub first: usize,
    pub before: usize,
    pub stride: usize,
}

/// Whether columns of so many numbers lie so far apart that rows go together.
pub(crate) fn is_large(stride: usize) -> bool {
    stride >= LARGE
}

/// Writes rows that lie one below the other, columns increasing, and leaves nothing of them; those that there are not are empty.
#[inline(always)]
pub(crate) fn write_columns<T: Copy, const R: usize>(to: &mut [T], place: Place, rows: &mut [Entries<'_, T>; R]) {
    let Place { first, before, stride } = place;
    if R == 1 {
        return write_row(to, place, std::mem::take(&mut rows[0]));
    }
    while let Some(start) = rows.iter().filter_map(|(cols, _)| cols.first()).min().copied() {
        let start_of = (start as usize - before) * stride + first;
        if let Some(square) = full_square(rows, start) {
            for (c, numbers) in square.iter().enumerate() {
                to[start_of + c * stride..][..R].copy_from_slice(numbers);
            }
            continue;
        }
        for (r, (cols, values)) in rows.iter_mut().enumerate() {
            let count = cols.iter().take_while(|&&c| c - start < COLUMNS).count();
            for (&c, &v) in cols[..count].iter().zip(*values) {
                to[(c as usize - before) * stride + first + r] = v;
            }
            (*cols, *values) = (&cols[count..], &values[count..]);
        }
    }
}

/// One row; where no column between its first and its last is missing, without a look at each.
#[inline(always)]
fn write_row<T: Copy>(to: &mut [T], Place { first, before, stride }: Place, (cols, values): Entries<'_, T>) {
    let (Some(&start), Some(&end)) = (cols.first(), cols.last()) else { return };
    if (end - start) as usize + 1 == cols.len() {
        let to = &mut to[(start as usize - before) * stride + first..];
        // A row of one column has no stride.
        for (to, &v) in to.iter_mut().step_by(stride.max(1)).zip(values) {
            *to = v;
        }
    } else {
        for (&c, &v) in cols.iter().zip(values) {
            to[(c as usize - before) * stride + first] = v;
        }
    }
}

/// The next columns of all rows, from `start` on, if none of them is missing; they are taken from the rows.
#[inline(always)]
fn full_square<T: Copy, const R: usize>(
    rows: &mut [Entries<'_, T>; R],
    start: u32,
) -> Option<[[T; R]; COLUMNS as usize]> {
    const LAST: usize = COLUMNS as usize - 1;
    // Columns increase: between the first and one that is so far behind there is no room for others.
    let is_full = |cols: &[u32]| cols.first() == Some(&start) && cols.get(LAST) == Some(&(start + LAST as u32));
    if !rows.iter().all(|(cols, _)| is_full(cols)) {
        return None;
    }
    let mut square = [[rows[0].1[0]; R]; COLUMNS as usize];
    for (r, (cols, values)) in rows.iter_mut().enumerate() {
        let (now, later) = values.split_first_chunk::<{ COLUMNS as usize }>().expect("a value a column");
        for c in 0..COLUMNS as usize {
            square[c][r] = now[c];
        }
        (*cols, *values) = (&cols[LAST + 1..], later);
    }
    Some(square)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight rows together leave what one after the other does: full squares, gaps in one of them, rows that end early or are not there.
    #[test]
    fn rows_together_are_rows_one_by_one() {
        let full: Vec<u32> = (3..30).collect();
        let gap: Vec<u32> = full.iter().copied().filter(|&c| c != 17).collect();
        for (odd, present) in
            [(full.clone(), 8), (gap, 8), (full[..5].to_vec(), 8), (full[8..].to_vec(), 8), (full.clone(), 5)]
        {
            let columns: Vec<&[u32]> = (0..present).map(|r| if r == 2 { &*odd } else { &*full }).collect();
            let values: Vec<Vec<f64>> =
                (0..present).map(|r| columns[r].iter().map(|&c| f64::from(100 * c) + r as f64).collect()).collect();
            let place = Place { first: 1, before: 3, stride: 70 };
            let (mut together, mut alone) = (vec![0.0; 27 * 70], vec![0.0; 27 * 70]);
            let mut rows = [Entries::default(); ROWS];
            for r in 0..present {
                rows[r] = (columns[r], &*values[r]);
                write_columns(&mut alone, Place { first: 1 + r, ..place }, &mut [rows[r]]);
            }
            write_columns(&mut together, place, &mut rows);
            assert_eq!(together, alone, "{present}");
            assert!(rows.iter().all(|(cols, values)| cols.is_empty() && values.is_empty()));
        }
    }
}
