//! What `solve` and `stationary` do alike with files: forms of outputs that are no inputs, rows dealt out in order, as many as couplings reach.

use std::path::Path;

use bt_formats::Monitor;
use bt_formats::matrix_market::Head;
use bt_parallel::{Comm, DistributedCsr, Number, Result, RowRanges};

/// What an output is, by the ending of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A Matrix Market array.
    Array,
    /// A line for each row, with commas between numbers.
    Table,
}

impl Form {
    /// None for an ending that ranks do not write.
    pub fn of(output: &Path) -> Option<Self> {
        let ending = output.extension()?.to_string_lossy().to_ascii_lowercase();
        match ending.as_str() {
            "mtx" => Some(Self::Array),
            "csv" => Some(Self::Table),
            _ => None,
        }
    }
}

/// Whether the output has a name that ranks write, and names none of the inputs.
///
/// # Errors
/// A sentence with the file.
pub fn check_output(
    comm: &impl Comm,
    output: Option<&Path>,
    inputs: &[(&str, Option<&Path>)],
) -> std::result::Result<(), String> {
    let Some(output) = output else { return Ok(()) };
    if Form::of(output).is_none() {
        return Err(format!(
            "{}: ranks write .mtx and .csv files, not packed: give it one of these endings",
            output.display()
        ));
    }
    for (what, input) in inputs {
        // One rank judges: the others may see the files a moment later.
        if comm.rank() == 0 && input.is_some_and(|input| same_file(input, output)) {
            return Err(format!("{}: {what} and --output name the same file", output.display()));
        }
    }
    Ok(())
}

/// Whether two names stand for one file that exists.
fn same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (std::fs::metadata(a), std::fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Consecutive rows for each rank, as many as couplings reach beyond it for each that has any, and notes on the file. A collective.
///
/// # Errors
/// As [`DistributedCsr::read`].
pub fn consecutive<'c, T: Number, C: Comm>(
    comm: &'c C,
    path: &Path,
    head: &Head,
    watch: &mut dyn Monitor,
) -> Result<(DistributedCsr<'c, T, C>, Vec<String>)> {
    let ranges = RowRanges::even(head.header.nrows, comm.size(), 1);
    let (a, notes) = DistributedCsr::read(comm, path, head, &ranges, watch)?;
    // Where a rank has fewer rows, others get them and the file is read again.
    let (beyond, inside) = reach(&a)?;
    let least = (0..comm.size()).map(|rank| ranges.of(rank).len()).min().unwrap_or(0);
    if beyond <= least {
        return Ok((a, notes));
    }
    let wider = RowRanges::even(ranges.n(), comm.size(), beyond.max(inside));
    if wider == ranges {
        return Ok((a, notes));
    }
    drop(a);
    DistributedCsr::read(comm, path, head, &wider, watch)
}

/// How far couplings reach beyond the consecutive rows of a rank, and from row to column within them, at most. A collective.
///
/// # Errors
/// Those of the communicator.
pub fn reach<T: Number, C: Comm>(a: &DistributedCsr<'_, T, C>) -> Result<(usize, usize)> {
    let own = a.rows().own();
    let (first, last) = (own.first().copied().unwrap_or(0), own.last().copied().unwrap_or(0));
    let beyond = a.halo().rows().iter().map(|&g| if g < first { first - g } else { g - last });
    let inside = (0..own.len()).flat_map(|i| a.local().row(i).0.iter().map(move |&j| (j as usize).abs_diff(i)));
    let mut largest = [f64::from(beyond.max().unwrap_or(0)), inside.max().unwrap_or(0) as f64];
    a.comm().all_max(&mut largest)?;
    Ok((largest[0] as usize, largest[1] as usize))
}
