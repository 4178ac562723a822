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
        let (cols, values) = std::mem::take(&mut rows[0]);
        for (&c, &v) in cols.iter().zip(values) {
            to[(c as usize - before) * stride + first] = v;
        }
        return;
    }
    while let Some(start) = rows.iter().filter_map(|(cols, _)| cols.first()).min().copied() {
        for (r, (cols, values)) in rows.iter_mut().enumerate() {
            let count = cols.iter().take_while(|&&c| c - start < COLUMNS).count();
            for (&c, &v) in cols[..count].iter().zip(*values) {
                to[(c as usize - before) * stride + first + r] = v;
            }
            (*cols, *values) = (&cols[count..], &values[count..]);
        }
    }
}
