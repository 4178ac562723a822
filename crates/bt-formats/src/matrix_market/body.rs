//! The entries: chunks of text, cut into pieces that are parsed in parallel.
//!
//! While one chunk is parsed the next one is read. Pieces have a fixed size in bytes, so that neither the result
//! nor an error depends on the number of threads: the error reported is the first in the file. Memory follows the
//! text that was read, never the declared number of entries.

use std::io;
use std::ops::ControlFlow;

use memchr::{memchr, memchr_iter};
use rayon::prelude::*;

use super::assemble::{Buckets, Entry, Piece, assembled_bytes};
use super::header::{Field, Header, Layout, Symmetry};
use super::source::Lines;
use super::token::{
    Fault, blanks, careful_index, careful_integer, careful_number, digits, integer, is_no_double, line_end, number,
    shown, skip_blanks, tokens, vanishes,
};
use crate::error::{Error, ParseKind, Result};
use crate::memory;
use crate::monitor::{Monitor, Progress};
use crate::scalar::Scalar;

/// Bytes of text that one task parses: its entries stay in the second-level cache.
const PIECE: usize = 192 << 10;

/// Numbers of the file that are no doubles, by more than rounding in the last digit; lines from 1 in whatever text it is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounded {
    /// Integers beyond 2⁵³ that are no double.
    integers: Tally,
    /// Numbers so small that the nearest double is 0.
    vanished: Tally,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    count: usize,
    /// Line of the first one, from 1.
    line: u64,
}

impl Tally {
    /// Adds those that follow after `lines` lines.
    fn join(&mut self, next: Self, lines: u64) {
        if self.count == 0 && next.count > 0 {
            self.line = next.line.saturating_add(lines);
        }
        self.count = self.count.saturating_add(next.count);
    }
}

impl Rounded {
    /// Looks at the values of one line.
    fn look<'a>(&mut self, field: Field, values: impl Iterator<Item = &'a [u8]>, line: u64) {
        let (tally, is_one): (_, fn(&[u8]) -> bool) = match field {
            Field::Integer => (&mut self.integers, is_no_double),
            _ => (&mut self.vanished, vanishes),
        };
        values.filter(|token| is_one(token)).for_each(|_| tally.join(Tally { count: 1, line }, 0));
    }

    /// Adds those that follow after `lines` lines.
    pub fn join(&mut self, next: Self, lines: u64) {
        self.integers.join(next.integers, lines);
        self.vanished.join(next.vanished, lines);
    }

    /// As numbers, to be sent to others.
    pub fn to_numbers(self) -> [u64; 4] {
        let Self { integers, vanished } = self;
        [integers.count as u64, integers.line, vanished.count as u64, vanished.line]
    }

    /// From those of [`Rounded::to_numbers`].
    pub fn from_numbers([integers, first_integer, vanished, first_vanished]: [u64; 4]) -> Self {
        let tally = |count: u64, line| Tally { count: count as usize, line };
        Self { integers: tally(integers, first_integer), vanished: tally(vanished, first_vanished) }
    }

    /// A sentence about each kind that there is.
    pub fn notes(self) -> Vec<String> {
        let sentence = |tally: Tally, one: [&str; 2], many: [&str; 2]| match tally {
            Tally { count: 0, .. } => None,
            Tally { count: 1, line } => Some(format!("{}, in line {line}, {}", one[0], one[1])),
            Tally { count, line } => Some(format!("{count} {} {}, the first of them in line {line}", many[0], many[1])),
        };
        let integers = sentence(
            self.integers,
            ["an integer beyond 2^53", "was rounded to the nearest double"],
            ["integers beyond 2^53", "were rounded to the nearest doubles"],
        );
        let vanished = sentence(
            self.vanished,
            ["a number below the range of doubles", "was read as 0"],
            ["numbers below the range of doubles", "were read as 0"],
        );
        integers.into_iter().chain(vanished).collect()
    }
}

/// What came out of a piece of text.
pub(super) struct Parsed<P> {
    pub(super) data: P,
    pub(super) rounded: Rounded,
    /// Entries of the file, before the fault if there is one.
    pub(super) entries: usize,
    /// Lines, before the fault if there is one.
    pub(super) lines: u64,
    pub(super) fault: Option<Fault>,
}

/// Entries between two questions for memory.
const ASK_EVERY: usize = 1 << 20;

/// All entries of a coordinate file.
pub(super) fn coordinate<T: Scalar>(
    lines: Lines<'_>,
    h: &Header,
    monitor: &mut dyn Monitor,
) -> Result<(Vec<Piece<T>>, Rounded)> {
    let buckets = Buckets::of(h.nrows);
    let mut pieces: Vec<Piece<T>> = Vec::new();
    let (mut total, mut asked) = (0, 0);
    let parse = |text: &[u8]| coordinate_part(text, h, buckets);
    let rounded = each_piece(lines, h, monitor, parse, |piece| {
        total += piece.len();
        if total > asked + ASK_EVERY {
            // What is read so far must become a matrix beside its entries.
            memory::ask(assembled_bytes::<T>(h.nrows, total), "the matrix in the file, as far as it is read,")?;
            asked = total;
        }
        if piece.len() > 0 {
            pieces.push(piece);
        }
        crate::csr::check_nnz(total)
    })?;
    Ok((pieces, rounded))
}

/// The entries of whole lines.
pub(super) fn coordinate_part<T: Scalar>(text: &[u8], h: &Header, buckets: Buckets) -> Parsed<Piece<T>> {
    match h.field {
        Field::Real | Field::Complex => entries(text, h, buckets, number::<T>),
        Field::Integer => entries(text, h, buckets, integer::<T>),
        Field::Pattern => entries(text, h, buckets, |_| None),
    }
}

/// All values of an array file, in the file's order.
pub(super) fn array<T: Scalar>(lines: Lines<'_>, h: &Header, monitor: &mut dyn Monitor) -> Result<(Vec<T>, Rounded)> {
    let mut all = Vec::new();
    let rounded = each_piece(
        lines,
        h,
        monitor,
        |text| values(text, h),
        |piece: Vec<T>| {
            if all.capacity() - all.len() < piece.len() {
                // It is about to double, and all of it is to be unpacked beside it.
                let count = 2 * all.len() + piece.len();
                memory::ask((count * size_of::<T>()) as u64, "the array in the file, as far as it is read,")?;
            }
            all.try_reserve(piece.len()).map_err(|_| Error::TooLarge {
                what: "an array from file",
                needed: format!("{} values", h.entries),
                limit: "the memory that could be had".into(),
            })?;
            all.extend_from_slice(&piece);
            Ok(())
        },
    )?;
    Ok((all, rounded))
}

/// Runs `parse` over the pieces of the text and `absorb` over its results in file order.
fn each_piece<P: Send>(
    lines: Lines<'_>,
    h: &Header,
    monitor: &mut dyn Monitor,
    parse: impl Fn(&[u8]) -> Parsed<P> + Sync,
    mut absorb: impl FnMut(P) -> Result<()>,
) -> Result<Rounded> {
    let (mut source, mut chunk, start, mut line) = lines.into_rest();
    let (mut text, mut spare, mut entries) = (start..chunk.len(), Vec::new(), 0);
    let mut rounded = Rounded::default();
    loop {
        let pieces = cut(&chunk[text.clone()]);
        let (next, parsed) = rayon::join(
            || source.next_chunk(std::mem::take(&mut spare)),
            || pieces.par_iter().map(|piece| parse(piece)).collect::<Vec<_>>(),
        );
        for (piece, p) in pieces.into_iter().zip(parsed) {
            let left = h.entries - entries;
            if p.entries > left || (p.entries == left && p.fault.is_some()) {
                return Err(Error::parse(line + nth_data_line(piece, left), ParseKind::TooManyEntries, too_many(h)));
            }
            if let Some((kind, message)) = p.fault {
                return Err(Error::parse(line + p.lines + 1, kind, message));
            }
            absorb(p.data)?;
            rounded.join(p.rounded, line);
            entries += p.entries;
            line += p.lines;
        }
        let (done, total) = source.progress();
        if monitor.observe(Progress::Step { phase: "read", done, total }) == ControlFlow::Break(()) {
            let source = io::Error::new(io::ErrorKind::Interrupted, "reading was stopped");
            return Err(Error::Io { file: std::path::PathBuf::new(), source });
        }
        match next? {
            Some(next) => spare = std::mem::replace(&mut chunk, next),
            None => break,
        }
        text = 0..chunk.len();
    }
    if entries < h.entries {
        return Err(Error::parse(line, ParseKind::TooFewEntries, too_few(h, entries)));
    }
    Ok(rounded)
}

/// What the number of entries is the number of.
fn how_many(h: &Header) -> &'static str {
    match (h.layout, h.symmetry) {
        (Layout::Coordinate, _) => "entries declared",
        (Layout::Array, Symmetry::General) => "values declared",
        (Layout::Array, Symmetry::SkewSymmetric) => {
            "values: a skew-symmetric array has those below the diagonal, without its zeros, column by column"
        }
        (Layout::Array, Symmetry::Symmetric | Symmetry::Hermitian) => {
            "values: a symmetric or hermitian array has those on and below the diagonal, column by column"
        }
    }
}

pub(super) fn too_few(h: &Header, entries: usize) -> String {
    format!("the file ends after {entries} of {} {}", h.entries, how_many(h))
}

pub(super) fn too_many(h: &Header) -> String {
    format!("data after the {} {}", h.entries, how_many(h))
}

/// Pieces of whole lines.
fn cut(mut text: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::with_capacity(text.len() / PIECE + 1);
    while text.len() > PIECE {
        let Some(end) = memchr(b'\n', &text[PIECE..]) else { break };
        let (piece, rest) = text.split_at(PIECE + end + 1);
        pieces.push(piece);
        text = rest;
    }
    pieces.push(text);
    pieces
}

/// Line (from 1) of the entry that has `skipped` entries before it.
pub(super) fn nth_data_line(text: &[u8], skipped: usize) -> u64 {
    let lines = text.split(|c| *c == b'\n').zip(1..);
    lines.filter(|(line, _)| !is_empty(line)).nth(skipped).map_or(0, |(_, number)| number)
}

/// Lines with entries.
pub(super) fn count_data_lines(text: &[u8]) -> usize {
    text.split(|c| *c == b'\n').filter(|line| !is_empty(line)).count()
}

/// A blank line or a comment.
fn is_empty(line: &[u8]) -> bool {
    tokens(line).next().is_none_or(|t| t[0] == b'%')
}

/// First line of the text (without its end) and the rest.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    memchr(b'\n', text).map_or((text, &[]), |end| (&text[..end], &text[end + 1..]))
}

/// Entries that a piece of text can hold at most, given the shortest line.
fn bound(text: &[u8], shortest: usize) -> usize {
    (memchr_iter(b'\n', text).count() + 1).min(text.len() / shortest + 1)
}

/// Coordinate entries, mirrored as the symmetry says.
#[inline(always)]
fn entries<T: Scalar>(
    mut text: &[u8],
    h: &Header,
    buckets: Buckets,
    part: impl Fn(&[u8]) -> Option<(f64, &[u8])>,
) -> Parsed<Piece<T>> {
    let copies = if h.symmetry == Symmetry::General { 1 } else { 2 };
    let mut out: Vec<Entry<T>> = Vec::with_capacity(copies * bound(text, 4));
    let (mut count, mut lines, mut fault) = (0, 0, None);
    let mut rounded = Rounded::default();
    while !text.is_empty() {
        let (i, j, v) = if let Some((entry, rest)) = quick_entry(text, h, &part) {
            text = rest;
            entry
        } else {
            let (line, rest) = split_line(text);
            match careful_entry(line, h) {
                Err(f) => {
                    fault = Some(f);
                    break;
                }
                Ok(entry) => {
                    text = rest;
                    let Some(entry) = entry else {
                        lines += 1;
                        continue;
                    };
                    rounded.look(h.field, tokens(line).skip(2), lines + 1);
                    entry
                }
            }
        };
        lines += 1;
        count += 1;
        out.push((i, j, v));
        if i != j {
            match h.symmetry {
                Symmetry::General => {}
                Symmetry::Symmetric => out.push((j, i, v)),
                Symmetry::SkewSymmetric => out.push((j, i, -v)),
                Symmetry::Hermitian => out.push((j, i, Scalar::conj(v))),
            }
        }
    }
    Parsed { data: Piece::new(out, buckets), rounded, entries: count, lines, fault }
}

/// The entry at the start of the text and the text of the next line, if it is as plain as almost all are.
#[inline(always)]
fn quick_entry<'a, T: Scalar>(
    text: &'a [u8],
    h: &Header,
    part: impl Fn(&[u8]) -> Option<(f64, &[u8])>,
) -> Option<(Entry<T>, &'a [u8])> {
    let (i, s) = digits(skip_blanks(text))?;
    let (j, s) = digits(blanks(s)?)?;
    let (value, s) = match h.field {
        Field::Pattern => (T::rounded(1.0, 0.0), s),
        Field::Real | Field::Integer => {
            let (re, s) = part(blanks(s)?)?;
            (T::rounded(re, 0.0), s)
        }
        Field::Complex => {
            let (re, s) = part(blanks(s)?)?;
            let (im, s) = part(blanks(s)?)?;
            (T::rounded(re, im), s)
        }
    };
    let s = line_end(s)?;
    let (i, j) = (i.wrapping_sub(1), j.wrapping_sub(1));
    let fits = i < h.nrows as u64 && j < h.ncols as u64;
    // Anything near the edge of the rules is judged by the careful reader.
    let lawful = h.symmetry == Symmetry::General || i > j || (i == j && h.symmetry == Symmetry::Symmetric);
    (fits && lawful).then_some(((i as u32, j as u32, value), s))
}

/// One line as an entry; `None` for a blank line or a comment.
#[cold]
fn careful_entry<T: Scalar>(line: &[u8], h: &Header) -> Result<Option<Entry<T>>, Fault> {
    if is_empty(line) {
        return Ok(None);
    }
    let (values, form) = match h.field {
        Field::Pattern => (0, "row column"),
        Field::Real | Field::Integer => (1, "row column value"),
        Field::Complex => (2, "row column real imaginary"),
    };
    let words: Vec<&[u8]> = tokens(line).take(6).collect();
    // An entry of another length is most often a cut line or the wrong banner.
    if words.len() != 2 + values {
        let found = shown(line.trim_ascii());
        return Err((ParseKind::BadEntry, format!("expected {} numbers ({form}), found {found}", 2 + values)));
    }
    let i = careful_index(words[0], "row", h.nrows)?;
    let j = careful_index(words[1], "column", h.ncols)?;
    let v = careful_value::<T>(&words[2..], h.field)?;
    match h.symmetry {
        Symmetry::General => {}
        _ if j > i => {
            let word = h.symmetry.word();
            let message = format!("entry ({i}, {j}) above the diagonal; a {word} file holds the lower triangle only");
            return Err((ParseKind::BadEntry, message));
        }
        Symmetry::SkewSymmetric | Symmetry::Hermitian if i == j => check_diagonal(h.symmetry, i, v)?,
        _ => {}
    }
    Ok(Some((i as u32 - 1, j as u32 - 1, v)))
}

/// aᵢᵢ = 0 in a skew-symmetric, Im aᵢᵢ = 0 in a Hermitian matrix.
pub(crate) fn check_diagonal<T: Scalar>(symmetry: Symmetry, i: usize, v: T) -> Result<(), Fault> {
    let fault = |why: &str| Err((ParseKind::BadEntry, format!("diagonal entry ({i}, {i}) is {v}; {why}")));
    match symmetry {
        Symmetry::SkewSymmetric if v != T::default() => fault("a skew-symmetric matrix has zeros there"),
        Symmetry::Hermitian if v.im() != T::default().im() => fault("a Hermitian matrix has real numbers there"),
        _ => Ok(()),
    }
}

fn careful_value<T: Scalar>(words: &[&[u8]], field: Field) -> Result<T, Fault> {
    Ok(match field {
        Field::Pattern => T::rounded(1.0, 0.0),
        Field::Real => T::rounded(careful_number::<T>(words[0])?, 0.0),
        Field::Integer => T::rounded(careful_integer::<T>(words[0])?, 0.0),
        Field::Complex => T::rounded(careful_number::<T>(words[0])?, careful_number::<T>(words[1])?),
    })
}

/// Array values, one a line.
pub(super) fn values<T: Scalar>(mut text: &[u8], h: &Header) -> Parsed<Vec<T>> {
    let mut out = Vec::with_capacity(bound(text, 2));
    let (mut lines, mut fault) = (0, None);
    let mut rounded = Rounded::default();
    let quick = |text| {
        let (re, s) = number::<T>(skip_blanks(text))?;
        Some((T::rounded(re, 0.0), line_end(s)?))
    };
    while !text.is_empty() {
        if h.field == Field::Real
            && let Some((value, rest)) = quick(text)
        {
            out.push(value);
            text = rest;
            lines += 1;
            continue;
        }
        let (line, rest) = split_line(text);
        match careful_array_line::<T>(line, h) {
            Ok(None) => {}
            Ok(Some(value)) => {
                out.push(value);
                rounded.look(h.field, tokens(line), lines + 1);
            }
            Err(f) => {
                fault = Some(f);
                break;
            }
        }
        text = rest;
        lines += 1;
    }
    Parsed { entries: out.len(), data: out, rounded, lines, fault }
}

fn careful_array_line<T: Scalar>(line: &[u8], h: &Header) -> Result<Option<T>, Fault> {
    if is_empty(line) {
        return Ok(None);
    }
    let (count, form) = if h.field == Field::Complex { (2, "real imaginary") } else { (1, "value") };
    let words: Vec<&[u8]> = tokens(line).take(4).collect();
    if words.len() != count {
        let found = shown(line.trim_ascii());
        return Err((ParseKind::BadEntry, format!("expected {count} numbers ({form}), found {found}")));
    }
    careful_value(&words, h.field).map(Some)
}
