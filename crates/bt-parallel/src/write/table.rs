//! Tables that ranks write together: lines of text, those of each rank after those of the ranks before it.
//!
//! Lines are as long as they are. A rank makes its own twice: to count their bytes, from which all ranks know where their lines begin, and to write
//! them. No rank holds more of its text than a piece.
//!
//! Counted: one gather of 8 bytes a rank, one maximum for each step, and for a table the all-to-alls of an array. Storage: a
//! piece of 1 MiB; of a table the rows of this rank once more.

use std::fmt::Write as _;
use std::io::{Seek, SeekFrom, Write as _};

use super::{BLOCK, Target, consecutive, finite, is_complex};
use crate::comm::{Comm, Number};
use crate::error::{Result, agree};
use crate::read::RowRanges;
use crate::rows::Rows;

impl Target {
    /// Writes `head`, then the lines of the ranks in their order, and lets the file appear. `line(i, text)` appends line i of the
    /// `lines` of this rank with its end to the text, the same one whenever it is asked. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] for what the system refuses; nothing has changed then.
    ///
    /// # Cost
    /// Each line is made twice.
    ///
    /// ```
    /// use std::fmt::Write;
    ///
    /// use bt_parallel::{Comm, Target, thread_comm};
    /// let path = std::env::temp_dir().join("bt-parallel-doc-example.csv");
    /// let written = thread_comm::run(2, |comm| {
    ///     let rank = comm.rank();
    ///     Target::create(comm, &path)?.write_lines(comm, "rank,square\n", 1, |_, text| {
    ///         let _ = writeln!(text, "{rank},{}", rank * rank);
    ///     })
    /// });
    /// assert!(written.iter().all(Result::is_ok));
    /// assert_eq!(std::fs::read_to_string(&path)?, "rank,square\n0,0\n1,1\n");
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn write_lines(
        self,
        comm: &impl Comm,
        head: &str,
        lines: usize,
        line: impl Fn(usize, &mut String),
    ) -> Result<()> {
        let head = if comm.rank() == 0 { head } else { "" };
        let length = head.len() as u64 + pieces(lines, &line).map(|text| text.len() as u64).sum::<u64>();
        let lengths = comm.all_gather(&[length])?;
        let before: u64 = lengths.values()[..comm.rank()].iter().sum();
        self.fill(comm, Ok(()), |file| {
            file.seek(SeekFrom::Start(before))?;
            file.write_all(head.as_bytes())?;
            for text in pieces(lines, &line) {
                file.write_all(text.as_bytes())?;
            }
            Ok(())
        })
    }

    /// Writes columns of n numbers, of which each rank has its own rows, as the table that `blocktri solve` writes, and lets the
    /// file appear: `row,x1,x2,…` above a line for each row, a complex number as `x1_re,x1_im`, each number as the shortest
    /// decimals that read back to it. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] for a number that is not finite, with its row, and for what the system refuses; nothing has changed then.
    pub fn write_table<T: Number>(self, comm: &impl Comm, rows: &Rows, columns: &[Vec<T>]) -> Result<()> {
        agree(comm, finite(rows, columns))?;
        let ranges = RowRanges::even(rows.n(), comm.size(), 1);
        let own = ranges.of(comm.rank());
        let columns = consecutive(comm, rows, &ranges, columns)?;
        let complex = is_complex::<T>();
        let parts: &[&str] = if complex { &["_re", "_im"] } else { &[""] };
        let mut head = String::from("row");
        for j in 1..=columns.len() {
            for part in parts {
                let _ = write!(head, ",x{j}{part}");
            }
        }
        head.push('\n');
        self.write_lines(comm, &head, own.len(), |i, text| {
            let _ = write!(text, "{}", own.start + i);
            for column in &columns {
                let _ = write!(text, ",{:e}", column[i].re());
                if complex {
                    let _ = write!(text, ",{:e}", column[i].im());
                }
            }
            text.push('\n');
        })
    }
}

/// The text of the lines, in pieces.
fn pieces(lines: usize, line: &impl Fn(usize, &mut String)) -> impl Iterator<Item = String> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let mut text = String::new();
        while next < lines && text.len() < BLOCK {
            line(next, &mut text);
            next += 1;
        }
        (!text.is_empty()).then_some(text)
    })
}
