//! Ranks write one file together, whole or not at all: a Matrix Market array, or lines of text (`write/table.rs`).
//!
//! Every line of an array has the same length, so that each rank knows where its rows are: 24 characters for a double, `{:24.16e}`, which reads back
//! as the same number, and a line end. Rows go to where they are consecutive by one all-to-all first; then each rank writes one range for each
//! column into a file with a temporary name, which rank 0 renames when all have written. An error on any rank is one on all, and leaves what was
//! there before; what a rank that was killed leaves is removed by the next run that writes into that folder ([`bt_formats::PartialFile`]).
//!
//! Counted, an array: three all-to-alls of 4 + s bytes a row and column at most, a broadcast, and one maximum for each step.
//! Storage: the rows of this rank once more.

mod table;

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bt_formats::{PartialFile, RealScalar, Scalar, ScalarKind};

use crate::comm::{Comm, Number, Parts};
use crate::error::{Fault, Result, agree};
use crate::read::RowRanges;
use crate::rows::Rows;

/// Characters of a number.
const WIDTH: usize = 24;
/// Bytes between two writes.
const BLOCK: usize = 1 << 20;

/// A file that ranks are about to write: its folder has been tried.
pub struct Target {
    path: PathBuf,
    /// On rank 0.
    partial: Option<PartialFile>,
    /// The temporary name, as rank 0 made it.
    temporary: PathBuf,
}

impl Target {
    /// Makes the temporary file beside `path`. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] where it cannot be made, or another rank does not see it.
    pub fn create(comm: &impl Comm, path: &Path) -> Result<Self> {
        let fault = |e: &dyn std::fmt::Display| Fault::input(format!("{}: {e}", path.display()));
        let made = if comm.rank() > 0 {
            Ok(None)
        } else if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            Err(fault(&"ranks write into regular files only"))
        } else {
            PartialFile::create(path)
                .map(Some)
                .map_err(|e| fault(&format_args!("cannot create a file there: {}", reason(&e))))
        };
        let partial = agree(comm, made)?;
        let mut name = partial.as_ref().map_or(Vec::new(), |p| p.path().to_string_lossy().into_owned().into_bytes());
        comm.broadcast(0, &mut name)?;
        let temporary = PathBuf::from(String::from_utf8_lossy(&name).into_owned());
        let seen = OpenOptions::new().write(true).open(&temporary).map(drop);
        let apart =
            |e| fault(&format_args!("this rank does not see what rank 0 wrote there, is it one file system? ({e})"));
        agree(comm, seen.map_err(apart))?;
        Ok(Self { path: path.to_owned(), partial, temporary })
    }

    /// The temporary name, for whoever has to remove it when a signal ends the program; on rank 0.
    pub fn temporary(&self) -> Option<&Path> {
        self.partial.as_ref().map(PartialFile::path)
    }

    /// Writes columns of n numbers, of which each rank has its own rows, and lets the file appear. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] for a number that is not finite, with its row, and for what the system refuses; nothing has changed then.
    pub fn write<T: Number>(self, comm: &impl Comm, rows: &Rows, columns: &[Vec<T>], comment: &str) -> Result<()> {
        let n = rows.n();
        let ranges = RowRanges::even(n, comm.size(), 1);
        let complex = is_complex::<T>();
        let field = if complex { "complex" } else { "real" };
        let comment = comment.replace(['\n', '\r'], " ");
        let head = format!("%%MatrixMarket matrix array {field} general\n% {comment}\n{n} {}\n", columns.len());
        let line = if complex { 2 * WIDTH + 2 } else { WIDTH + 1 };
        let own = ranges.of(comm.rank());
        let checked = finite(rows, columns);
        let consecutive = consecutive(comm, rows, &ranges, columns)?;
        let first = comm.rank() == 0;
        self.fill(comm, checked, |file| {
            if first {
                file.write_all(head.as_bytes())?;
            }
            for (j, column) in consecutive.iter().enumerate() {
                file.seek(SeekFrom::Start((head.len() + (j * n + own.start) * line) as u64))?;
                let mut text = Vec::with_capacity(BLOCK + 64);
                for &v in column {
                    line_of(v, complex, &mut text)?;
                    if text.len() >= BLOCK {
                        file.write_all(&text)?;
                        text.clear();
                    }
                }
                file.write_all(&text)?;
            }
            Ok(())
        })
    }

    /// Lets `write` write the part of this rank, where all is well before, and the file appear once all ranks have written. A collective.
    fn fill(
        self,
        comm: &impl Comm,
        checked: Result<(), Fault>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<()> {
        let Self { path, partial, temporary } = self;
        let fault = |e: &dyn std::fmt::Display| Fault::input(format!("{}: {e}", path.display()));
        let filled = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).open(&temporary)?;
            write(&mut file)?;
            file.sync_all()
        };
        agree(comm, checked.and_then(|()| filled().map_err(|e| fault(&e))))?;
        let appeared = partial.map_or(Ok(()), PartialFile::persist);
        agree(comm, appeared.map_err(|e| fault(&reason(&e))))
    }
}

fn is_complex<T: Scalar>() -> bool {
    matches!(T::KIND, ScalarKind::C32 | ScalarKind::C64)
}

/// The system's reason without the temporary name.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" at path ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

fn finite<T: Number>(rows: &Rows, columns: &[Vec<T>]) -> Result<(), Fault> {
    let find = |column: &Vec<T>| column.iter().position(|v| !Scalar::is_finite(*v)).map(|i| (i, column[i]));
    match columns.iter().find_map(find) {
        Some((i, v)) => {
            Err(Fault::input(format!("row {} (from 0) of x is {v}: only finite numbers are written", rows.own()[i])))
        }
        None => Ok(()),
    }
}

/// The columns with the rows that the ranges give this rank.
fn consecutive<T: Number>(
    comm: &impl Comm,
    rows: &Rows,
    ranges: &RowRanges,
    columns: &[Vec<T>],
) -> Result<Vec<Vec<T>>> {
    let own = ranges.of(comm.rank());
    let by_owner = || {
        let mut places: Vec<Vec<usize>> = vec![Vec::new(); comm.size()];
        rows.own().iter().enumerate().for_each(|(i, &g)| places[ranges.owner(g as usize)].push(i));
        places
    };
    let places = by_owner();
    let numbers = places.iter().map(|p| p.iter().map(|&i| rows.own()[i]).collect::<Vec<u32>>());
    let numbers = comm.all_to_all(&Parts::new(numbers))?;
    let mut out = Vec::with_capacity(columns.len());
    for column in columns {
        let values = places.iter().map(|p| p.iter().map(|&i| column[i]).collect::<Vec<T>>());
        let mut received = Parts::zeros(numbers.sizes());
        comm.all_to_all_into(&Parts::new(values), &mut received)?;
        let mut part = vec![T::default(); own.len()];
        numbers.values().iter().zip(received.values()).for_each(|(&g, &v)| part[g as usize - own.start] = v);
        out.push(part);
    }
    Ok(out)
}

fn line_of<T: Scalar>(v: T, complex: bool, text: &mut Vec<u8>) -> io::Result<()> {
    write!(text, "{:24.16e}", v.re().to_f64())?;
    if complex {
        write!(text, " {:24.16e}", v.im().to_f64())?;
    }
    text.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::error::Error;
    use crate::thread_comm;

    #[test]
    fn what_was_there_stays_where_a_rank_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.mtx");
        fs::write(&path, "before").unwrap();
        for failing in 0..3 {
            let results = thread_comm::run(3, |comm| {
                Target::create(comm, &path)?.fill(comm, Ok(()), |file| {
                    file.write_all(b"half of it")?;
                    if comm.rank() == failing { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
                })
            });
            for result in results {
                let Err(Error::OnRank { rank, message, .. }) = result else { panic!("{result:?}") };
                assert!(rank == failing && message.contains("x.mtx: "), "rank {rank}: {message}");
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), "before");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
