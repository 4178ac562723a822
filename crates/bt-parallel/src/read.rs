//! Ranks read one Matrix Market file together: each a range of its bytes, and entries go to the owners of their rows.
//!
//! Rank r parses the lines that begin in the r-th of p equal parts of the file behind its header, 4 MiB at a time; after each piece one all-to-all
//! takes the entries to the ranks whose rows they are in, so that no rank holds more than its rows, a piece and what the others send of
//! theirs. All of coordinate × real, integer, complex, pattern × general, symmetric, skew-symmetric, hermitian is read; right-hand sides are
//! arrays, too. Duplicates are summed in the order of the file: the matrix has the bits of [`bt_formats::matrix_market::read_csr`].
//!
//! A packed file has no ranges: rank 0 unpacks and parses it, in pieces of 8 MiB at most, and deals out.
//!
//! **Errors** are those of the serial reader, with file and line, the same on every rank: the first of the file. Lines are counted from the
//! parts of the ranks before once all have read. The **notes** of the serial reader, on numbers that are no doubles, are told alike on all ranks.
//!
//! Counted: for each piece of the rank with most, one maximum and three all-to-alls (sizes, indices of 8 bytes, values of s bytes
//! an entry, those that symmetry implies included). Storage of a rank beside its rows: 8 + s bytes an entry of theirs until the
//! end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::{ControlFlow, Range};
use std::path::Path;

use bt_formats::matrix_market::{
    Chunks, Field, Head, Layout, Rounded, Symmetry, check_scalar, count_entries, count_error, entries_of,
    line_of_entry, read_head, values_of,
};
use bt_formats::{Error as InputError, Monitor, ParseKind, Progress, memory};

use crate::comm::{Comm, Number, Parts};
use crate::csr::DistributedCsr;
use crate::error::{Fault, FaultKind, Origin, Result, agree};

/// Bytes of text between two all-to-alls.
const PIECE: u64 = 4 << 20;
/// No honest line is longer.
const LONGEST_LINE: usize = 16 << 20;

/// Consecutive rows for each rank: rank r owns the rows from `starts[r]` up to `starts[r + 1]`.
///
/// ```
/// use bt_parallel::RowRanges;
/// let ranges = RowRanges::even(5, 2, 1);
/// assert_eq!((ranges.of(0), ranges.of(1), ranges.owner(3)), (0..3, 3..5, 1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRanges {
    starts: Vec<usize>,
}

impl RowRanges {
    /// n rows for p ranks, as many for each but for one more on the first ones; at least `least` for each that has any, where there are as many.
    ///
    /// # Panics
    /// When p is 0.
    pub fn even(n: usize, p: usize, least: usize) -> Self {
        let q = (n / least.max(1)).clamp(1, p);
        let start = |rank: usize| (n / q) * rank.min(q) + rank.min(n % q);
        Self { starts: (0..=p).map(start).collect() }
    }

    /// From the first row of each rank and the number of rows; none where they decrease.
    pub fn new(starts: Vec<usize>) -> Option<Self> {
        (starts.len() > 1 && starts[0] == 0 && starts.is_sorted()).then_some(Self { starts })
    }

    /// Rows of all ranks.
    pub fn n(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }
    /// The rows of a rank.
    pub fn of(&self, rank: usize) -> Range<usize> {
        self.starts[rank]..self.starts[rank + 1]
    }
    /// The rank that owns a row.
    pub fn owner(&self, row: usize) -> usize {
        self.starts.partition_point(|&start| start <= row) - 1
    }
}

/// What stands before the entries, as rank 0 reads it. A collective.
///
/// # Errors
/// [`crate::Error::OnRank`] with the file, and the line where there is one.
pub fn read_head_on_all(comm: &impl Comm, path: &Path) -> Result<Head> {
    // The others read what rank 0 could: a file that only some ranks see is an error of these.
    agree(comm, if comm.rank() == 0 { read_head(path).map(|_| ()).map_err(Fault::from) } else { Ok(()) })?;
    agree(comm, read_head(path).map_err(Fault::from))
}

impl<'c, T: Number, C: Comm> DistributedCsr<'c, T, C> {
    /// Reads a square matrix from a Matrix Market file that all ranks see, with the rows that `ranges` gives them, and what is to be said of the
    /// file: the sentences of the serial reader on integers and numbers that are no doubles, the same on every rank. The monitor is told of the
    /// bytes that this rank has read; where that of any rank breaks, all end. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] with the first error of the file, as the serial reader words it; for a matrix that is not square, an array, or of
    /// another size than `ranges`; where memory is short or the monitor breaks.
    ///
    /// # Cost
    /// A p-th of the text and of the entries on each rank.
    pub fn read(
        comm: &'c C,
        path: &Path,
        head: &Head,
        ranges: &RowRanges,
        monitor: &mut dyn Monitor,
    ) -> Result<(Self, Vec<String>)> {
        let h = &head.header;
        let checked = if h.layout == Layout::Array {
            let why = "the matrix is an array: ranks read coordinate files; solve a dense system on one rank";
            Err(InputError::parse(1, ParseKind::Unsupported, why))
        } else if h.nrows != h.ncols {
            Err(InputError::NotSquare { nrows: h.nrows, ncols: h.ncols })
        } else {
            check_scalar::<T>(h)
        };
        agree(comm, checked.map_err(|e| fault(e, path)).and_then(|()| fits(ranges, h.nrows, comm)))?;
        let (from, notes) = read_entries::<T>(comm, path, head, ranges, monitor)?;
        let own = ranges.of(comm.rank());
        let n_entries: usize = from.iter().map(Vec::len).sum();
        let asked = memory::ask((n_entries * (12 + 2 * size_of::<T>())) as u64, "the own rows of the matrix");
        agree(comm, asked.map_err(Fault::from))?;
        let rows = SortedRows::new(from, &own);
        let own = own.map(|i| i as u32).collect();
        Ok((Self::from_rows(comm, h.nrows, own, rows.iter())?, notes))
    }
}

/// Reads right-hand sides, n × s, one column after the other with the own rows of `ranges`, and what is to be said of the file, as
/// [`DistributedCsr::read`] does. A collective.
///
/// # Errors
/// As [`DistributedCsr::read`]; for another number of rows than `ranges` has, and for no column.
///
/// # Cost
/// As there; an array is read twice, since what precedes a line has to be counted before its row is known.
pub fn read_columns_on_all<T: Number>(
    comm: &impl Comm,
    path: &Path,
    head: &Head,
    ranges: &RowRanges,
    monitor: &mut dyn Monitor,
) -> Result<(Vec<Vec<T>>, Vec<String>)> {
    let h = &head.header;
    let input = |message: String| Err(Fault::input(format!("{}: {message}", path.display())));
    let checked = if h.nrows != ranges.n() {
        input(format!("the right-hand side has {} rows, the matrix has {}", h.nrows, ranges.n()))
    } else if h.ncols == 0 {
        input("there is no right-hand side: the file has 0 columns".into())
    } else if h.layout == Layout::Array && h.symmetry != Symmetry::General {
        input(
            "ranks read right-hand sides as general arrays or coordinate files, this is an array with symmetry".into(),
        )
    } else {
        check_scalar::<T>(h).map_err(|e| fault(e, path))
    };
    let own = ranges.of(comm.rank());
    let asked = checked.and_then(|()| {
        memory::ask((own.len() * h.ncols * size_of::<T>()) as u64, "the own rows of the right-hand sides")?;
        fits(ranges, h.nrows, comm)
    });
    agree(comm, asked)?;
    let (from, notes) = read_entries::<T>(comm, path, head, ranges, monitor)?;
    let mut columns = vec![vec![T::default(); own.len()]; h.ncols];
    for (i, j, v) in from.into_iter().flatten() {
        columns[j as usize][i as usize - own.start] += v;
    }
    Ok((columns, notes))
}

fn fits(ranges: &RowRanges, n: usize, comm: &impl Comm) -> Result<(), Fault> {
    if ranges.n() == n && ranges.starts.len() == comm.size() + 1 {
        return Ok(());
    }
    let (m, q, p) = (ranges.n(), ranges.starts.len() - 1, comm.size());
    Err(Fault::input(format!("ranges of {m} rows for {q} ranks, and a file of {n} rows on {p}")))
}

fn fault(error: InputError, path: &Path) -> Fault {
    match error {
        InputError::NotSquare { .. } => {
            let origin = Origin {
                file: Some(path.display().to_string()),
                help: error.help().map(str::to_owned),
                ..Origin::default()
            };
            Fault::input(format!("{}: {error}", path.display())).from_file(origin)
        }
        error => error.in_file(path).into(),
    }
}

/// (row, column, value) from 0.
type Entry<T> = (u32, u32, T);
/// A list for each rank that read some.
type ByReader<T> = Vec<Vec<Entry<T>>>;

/// The entries of the own rows, by the rank that read them, each list in the order of the file; and notes on the file.
fn read_entries<T: Number>(
    comm: &impl Comm,
    path: &Path,
    head: &Head,
    ranges: &RowRanges,
    monitor: &mut dyn Monitor,
) -> Result<(ByReader<T>, Vec<String>)> {
    let (p, h) = (comm.size(), &head.header);
    let mut text = agree(comm, Text::open(comm, path, head).map_err(|e| fault(e, path)))?;
    let mut before = 0;
    if h.layout == Layout::Array {
        // The number of a value says which row it is of.
        let mut counts = Seen::default();
        let counted = count_values(&mut text, &mut counts);
        agree(comm, counted.map_err(|e| fault(e, path)))?;
        let all = comm.all_gather(&[counts.entries as u64])?;
        before = all.values()[..comm.rank()].iter().sum::<u64>() as usize;
        text = agree(comm, Text::open(comm, path, head).map_err(|e| fault(e, path)))?;
    }
    let mut from: ByReader<T> = vec![Vec::new(); p];
    let mut seen = Seen::default();
    let mut trouble = None;
    loop {
        // 0: nothing left, 1: go on, 2: a fault that is not the file's, 3: a monitor broke.
        let piece = if seen.fault.is_some() { Ok(None) } else { text.next_piece() };
        let piece = piece.unwrap_or_else(|error| {
            match error {
                // What is wrong with the text has its place among the errors of the file.
                InputError::Parse { kind, message, .. } => seen.fault = Some((kind, message)),
                error => trouble = Some(fault(error, path)),
            }
            None
        });
        let (done, total) = text.progress();
        let broken = monitor.observe(Progress::Step { phase: "read", done, total }) == ControlFlow::Break(());
        let mut state = [match (&trouble, broken) {
            (Some(_), _) => 2.0,
            (None, true) => 3.0,
            _ => f64::from(u8::from(piece.is_some())),
        }];
        comm.all_max(&mut state)?;
        if state[0] >= 2.0 {
            let stopped = || Fault::new(FaultKind::Stopped, "reading was stopped");
            let own = trouble.take().or_else(|| broken.then(stopped));
            agree(comm, own.map_or(Ok(()), Err))?;
        }
        if state[0] == 0.0 {
            break;
        }
        let entries = piece.map_or_else(Vec::new, |piece| seen.take::<T>(&piece, h, before));
        deal_out(comm, ranges, &entries, &mut from)?;
        let held: usize = from.iter().map(|f| f.capacity() * size_of::<Entry<T>>()).sum();
        let asked = memory::ask(held as u64 / 2, "the own rows of the file, as far as they are read,");
        trouble = asked.err().map(|e| fault(e, path));
    }
    let notes = agree_on_file(comm, path, head, &seen)?;
    Ok((from, notes))
}

/// What a rank has seen of the file.
#[derive(Default)]
struct Seen {
    entries: usize,
    lines: u64,
    fault: Option<(ParseKind, String)>,
    rounded: Rounded,
}

impl Seen {
    /// Parses a piece; `before` are the values of an array on other ranks.
    fn take<T: Number>(&mut self, piece: &[u8], h: &bt_formats::matrix_market::Header, before: usize) -> Vec<Entry<T>> {
        let (entries, lines, fault, rounded, data) = match h.layout {
            Layout::Coordinate => {
                let part = entries_of::<T>(piece, h);
                (part.entries, part.lines, part.fault, part.rounded, part.data)
            }
            Layout::Array => {
                let part = values_of::<T>(piece, h);
                let first = before + self.entries;
                let numbered = part.data.iter().zip(first..).filter(|(_, k)| *k < h.entries);
                let data = numbered.map(|(&v, k)| ((k % h.nrows) as u32, (k / h.nrows) as u32, v)).collect();
                (part.entries, part.lines, part.fault, part.rounded, data)
            }
        };
        self.rounded.join(rounded, self.lines);
        self.entries += entries;
        self.lines += lines;
        self.fault = fault;
        data
    }
}

/// Values of an array in the part of this rank.
fn count_values(text: &mut Text, seen: &mut Seen) -> Result<(), InputError> {
    while let Some(piece) = text.next_piece()? {
        seen.entries += count_entries(&piece);
    }
    Ok(())
}

/// Entries to the owners of their rows.
fn deal_out<T: Number>(
    comm: &impl Comm,
    ranges: &RowRanges,
    entries: &[Entry<T>],
    from: &mut [Vec<Entry<T>>],
) -> Result<()> {
    let p = comm.size();
    let mut places: Vec<Vec<u32>> = vec![Vec::new(); p];
    let mut values: Vec<Vec<T>> = vec![Vec::new(); p];
    for &(i, j, v) in entries {
        let owner = ranges.owner(i as usize);
        places[owner].extend([i, j]);
        values[owner].push(v);
    }
    let places = comm.all_to_all(&Parts::new(places))?;
    let mut received = Parts::zeros(places.sizes().map(|size| size / 2));
    comm.all_to_all_into(&Parts::new(values), &mut received)?;
    for (rank, from) in from.iter_mut().enumerate() {
        let pairs = places.part(rank).chunks_exact(2);
        from.extend(pairs.zip(received.part(rank)).map(|(pair, &v)| (pair[0], pair[1], v)));
    }
    Ok(())
}

/// The first error of the file, if there is one, from what all ranks have seen, or the notes on it.
fn agree_on_file(comm: &impl Comm, path: &Path, head: &Head, seen: &Seen) -> Result<Vec<String>> {
    let declared = head.header.entries;
    let [a, b, c, d] = seen.rounded.to_numbers();
    let own = [seen.entries as u64, seen.lines, u64::from(seen.fault.is_some()), a, b, c, d];
    let all = comm.all_gather(&own)?;
    let (mut entries, mut lines, mut rounded) = (0usize, head.lines, Rounded::default());
    let mut error = None;
    for rank in 0..comm.size() {
        let [n, n_lines, faulty, a, b, c, d] = *all.part(rank) else { continue };
        let left = declared - entries;
        let too_many = n as usize > left || n as usize == left && faulty == 1;
        if too_many || faulty == 1 {
            // Only the rank that read the line knows what is wrong with it.
            if rank == comm.rank() {
                error = Some(match &seen.fault {
                    Some((kind, message)) if !too_many => {
                        Ok(InputError::parse(lines + seen.lines + 1, *kind, message.clone()))
                    }
                    _ => line_beyond(comm, path, head, left)
                        .map(|line| count_error(&head.header, declared, lines + line)),
                });
            }
            let error = error.map_or(Ok(Vec::new()), |found| Err(fault(found.unwrap_or_else(|e| e), path)));
            return agree(comm, error);
        }
        rounded.join(Rounded::from_numbers([a, b, c, d]), lines);
        entries += n as usize;
        lines += n_lines;
    }
    let complete = if entries == declared || comm.rank() > 0 {
        Ok(rounded.notes())
    } else {
        Err(fault(count_error(&head.header, entries, lines), path))
    };
    agree(comm, complete)
}

/// The line, in the part of this rank, of the entry with so many before it there.
fn line_beyond(comm: &impl Comm, path: &Path, head: &Head, before: usize) -> Result<u64, InputError> {
    let mut text = Text::open(comm, path, head)?;
    let (mut left, mut lines) = (before, 0);
    while let Some(piece) = text.next_piece()? {
        if let Some(line) = line_of_entry(&piece, left) {
            return Ok(lines + line);
        }
        left -= count_entries(&piece);
        lines += piece.split(|c| *c == b'\n').count() as u64 - 1;
    }
    Ok(lines)
}

/// The part of a file that this rank parses.
enum Text {
    /// Lines that begin from `at` up to `end`.
    Range { file: File, start: u64, at: u64, end: u64 },
    /// All of it, unpacked.
    Packed(Box<Chunks>),
    /// Nothing: rank 0 unpacks.
    Nothing,
}

impl Text {
    fn open(comm: &impl Comm, path: &Path, head: &Head) -> Result<Self, InputError> {
        let Some(offset) = head.offset else {
            return if comm.rank() == 0 { Ok(Self::Packed(Box::new(Chunks::open(path)?))) } else { Ok(Self::Nothing) };
        };
        let length = u128::from(head.bytes.saturating_sub(offset));
        let cut = |rank: usize| offset + (length * rank as u128 / comm.size() as u128) as u64;
        let (mut at, end) = (cut(comm.rank()), cut(comm.rank() + 1));
        let io = |source| InputError::Io { file: path.to_owned(), source };
        let mut file = File::open(path).map_err(io)?;
        if at > offset {
            at = after_line_end(&mut file, at - 1).map_err(io)?;
        }
        Ok(Self::Range { file, start: at, at, end })
    }

    /// The next whole lines.
    fn next_piece(&mut self) -> Result<Option<Vec<u8>>, InputError> {
        match self {
            Self::Nothing => Ok(None),
            Self::Packed(chunks) => chunks.next_chunk(),
            Self::Range { at, end, .. } if *at >= *end => Ok(None),
            Self::Range { file, at, end, .. } => {
                let io = |source| InputError::Io { file: "".into(), source };
                let wanted = PIECE.min(*end - *at);
                file.seek(SeekFrom::Start(*at)).map_err(io)?;
                let mut piece = Vec::with_capacity(wanted as usize);
                file.take(wanted).read_to_end(&mut piece).map_err(io)?;
                // A file that has become shorter ends here.
                let short = (piece.len() as u64) < wanted;
                if !short && piece.last() != Some(&b'\n') {
                    let last = piece.iter().rposition(|c| *c == b'\n').filter(|_| *at + wanted < *end);
                    if let Some(last) = last {
                        piece.truncate(last + 1);
                    } else {
                        let next = after_line_end(file, *at + wanted).map_err(io)?;
                        let rest = next - *at - wanted;
                        if rest as usize > LONGEST_LINE {
                            let message = format!("a line longer than {LONGEST_LINE} bytes");
                            return Err(InputError::parse(0, ParseKind::BadEntry, message));
                        }
                        file.seek(SeekFrom::Start(*at + wanted)).map_err(io)?;
                        file.take(rest).read_to_end(&mut piece).map_err(io)?;
                    }
                }
                *at = if short { *end } else { *at + piece.len() as u64 };
                Ok((!piece.is_empty()).then_some(piece))
            }
        }
    }

    fn progress(&self) -> (usize, usize) {
        match self {
            Self::Range { start, at, end, .. } => {
                ((at - start) as usize, end.saturating_sub(*start).max(at - start) as usize)
            }
            _ => (0, 0),
        }
    }
}

/// The byte behind the next line end at or after `from`, or the end of the file.
fn after_line_end(file: &mut File, from: u64) -> io::Result<u64> {
    file.seek(SeekFrom::Start(from))?;
    let (mut at, mut buffer) = (from, vec![0; 1 << 16]);
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            return Ok(at);
        }
        if let Some(end) = buffer[..n].iter().position(|c| *c == b'\n') {
            return Ok(at + end as u64 + 1);
        }
        at += n as u64;
    }
}

/// Rows with increasing columns, duplicates summed.
struct SortedRows<T> {
    ptr: Vec<usize>,
    cols: Vec<u32>,
    values: Vec<T>,
}

impl<T: Number> SortedRows<T> {
    /// From lists in the order of the file.
    fn new(from: Vec<Vec<Entry<T>>>, own: &Range<usize>) -> Self {
        let mut ends = vec![0usize; own.len() + 1];
        from.iter().flatten().for_each(|e| ends[e.0 as usize - own.start + 1] += 1);
        (0..own.len()).for_each(|i| ends[i + 1] += ends[i]);
        let n_entries = ends[own.len()];
        let mut next = ends.clone();
        let (mut cols, mut values) = (vec![0u32; n_entries], vec![T::default(); n_entries]);
        for list in from {
            for (i, j, v) in list {
                let k = &mut next[i as usize - own.start];
                (cols[*k], values[*k]) = (j, v);
                *k += 1;
            }
        }
        let (mut ptr, mut out) = (vec![0], 0);
        let mut row: Vec<(u32, T)> = Vec::new();
        for i in 0..own.len() {
            row.clear();
            row.extend((ends[i]..ends[i + 1]).map(|k| (cols[k], values[k])));
            // Stable: equal columns keep the order of the file.
            row.sort_by_key(|e| e.0);
            let first = out;
            for &(j, v) in &row {
                if out > first && cols[out - 1] == j {
                    values[out - 1] += v;
                } else {
                    (cols[out], values[out]) = (j, v);
                    out += 1;
                }
            }
            ptr.push(out);
        }
        Self { ptr, cols, values }
    }

    fn iter(&self) -> impl Iterator<Item = (&[u32], &[T])> {
        self.ptr.windows(2).map(|w| (&self.cols[w[0]..w[1]], &self.values[w[0]..w[1]]))
    }
}

/// The entries of the rows `wanted`, in their order, of a vector of which each rank has those that `ranges` give it. A collective.
///
/// # Errors
/// [`crate::Error::OnRank`] for a row beyond those of `ranges`; those of the communicator.
///
/// # Cost
/// An all-to-all of 4 and one of s bytes a row wanted from others.
pub fn entries_from_ranges<T: Number>(
    comm: &impl Comm,
    ranges: &RowRanges,
    own: &[T],
    wanted: &[u32],
) -> Result<Vec<T>> {
    let n = ranges.n();
    let beyond = wanted.iter().find(|&&g| g as usize >= n);
    let checked = match beyond {
        Some(g) => Err(Fault::input(format!("row {g} is beyond the {n} rows of the system"))),
        None if own.len() != ranges.of(comm.rank()).len() => {
            Err(Fault::input(format!("{} entries for {} rows", own.len(), ranges.of(comm.rank()).len())))
        }
        None => Ok(()),
    };
    agree(comm, checked)?;
    let owners: Vec<usize> = wanted.iter().map(|&g| ranges.owner(g as usize)).collect();
    let mut asked: Vec<Vec<u32>> = vec![Vec::new(); comm.size()];
    wanted.iter().zip(&owners).for_each(|(&g, &owner)| asked[owner].push(g));
    let asked = Parts::new(asked);
    let first = ranges.of(comm.rank()).start;
    let questions = comm.all_to_all(&asked)?;
    let answers = questions.iter().map(|part| part.iter().map(|&g| own[g as usize - first]).collect::<Vec<T>>());
    let mut heard = Parts::zeros(asked.sizes());
    comm.all_to_all_into(&Parts::new(answers), &mut heard)?;
    let mut next = vec![0; comm.size()];
    let entry = |&owner: &usize| {
        next[owner] += 1;
        heard.part(owner)[next[owner] - 1]
    };
    Ok(owners.iter().map(entry).collect())
}

/// Whether a file has complex numbers.
pub fn is_complex(head: &Head) -> bool {
    head.header.field == Field::Complex
}
