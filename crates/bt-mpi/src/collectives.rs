//! Collectives: every one begins with the same step, so that calls that do not match are found and end on all ranks in the same way.
//!
//! ```text
//! MPI_Gather   a block from each rank to rank 0: which call, type, number and, where they fit, the elements
//! rank 0       compares the blocks; adds the elements up where the call is a sum
//! MPI_Bcast    a block with the verdict, and the result where it fits
//! ```
//!
//! A sum of up to 33 doubles, which is what GMRES(30) takes, is done with that. Longer ones follow in pieces of 64 KiB by the same two calls; the
//! data of other collectives by `MPI_Bcast`, or from rank to rank. Sizes that disagree within an all-to-all are found where the parts
//! arrive. A communicator of one rank does nothing of it. What is counted is the collective and not its steps.

use bt_parallel::{Comm, Element, Parts, Result};
use mpi::traits::{CommunicatorCollectives, Root};

use crate::comm::MpiComm;
use crate::messages::{PIECE, code, kind_name, receive_pieces, send_pieces};

/// Bytes before the elements of a block.
const HEAD: usize = 16;
/// Bytes of a block.
const BLOCK: usize = HEAD + 33 * 8;
/// Bytes of a rank's piece of a longer sum.
const LONG: usize = 64 << 10;
/// The tag of messages within collectives.
const TAG: i32 = 0;
/// A verdict that the calls match.
const MATCH: u8 = u8::MAX;

/// Which collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Sum,
    Maximum,
    Barrier,
    Gather,
    AllGather,
    AllToAll,
    Broadcast,
}

const WHATS: [&str; 7] =
    ["a sum", "a maximum", "a barrier", "a gather", "an all-gather", "an all-to-all", "a broadcast"];

/// What rank 0 says.
struct Verdict {
    /// Elements, of the root where only it has some.
    length: usize,
    block: [u8; BLOCK],
}

/// Of one rank: call, type, root and number of elements.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Call {
    what: u8,
    kind: u8,
    root: u32,
    length: u64,
}

impl Call {
    fn write(self, block: &mut [u8; BLOCK]) {
        (block[0], block[1]) = (self.what, self.kind);
        block[4..8].copy_from_slice(&self.root.to_ne_bytes());
        block[8..HEAD].copy_from_slice(&self.length.to_ne_bytes());
    }

    fn read(block: &[u8]) -> Self {
        let (mut root, mut length) = ([0; 4], [0; 8]);
        root.copy_from_slice(&block[4..8]);
        length.copy_from_slice(&block[8..HEAD]);
        let (root, length) = (u32::from_ne_bytes(root), u64::from_ne_bytes(length));
        Self { what: block[0], kind: block[1], root, length }
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = WHATS.get(self.what as usize).unwrap_or(&"an unknown call");
        write!(f, "{name} of {} × {}", self.length, kind_name(self.kind))?;
        if self.root > 0 { write!(f, " with root {}", self.root) } else { Ok(()) }
    }
}

impl MpiComm {
    /// The first step. Calls have to be alike but for lengths where only the root's counts; `fold` is given the blocks of all ranks on rank 0
    /// and writes the result into that of the verdict.
    fn step<T: Element>(
        &self,
        what: What,
        root: usize,
        own: &[T],
        fold: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<Verdict> {
        let call = Call { what: what as u8, kind: code(T::KIND), root: root as u32, length: own.len() as u64 };
        let mut block = [0; BLOCK];
        call.write(&mut block);
        let data = T::bytes(own);
        if data.len() <= BLOCK - HEAD {
            block[HEAD..HEAD + data.len()].copy_from_slice(data);
        }
        let first = self.process(0);
        if self.rank == 0 {
            let mut all = vec![0; BLOCK * self.size];
            first.gather_into_root(&block[..], &mut all[..]);
            block = verdict(what, root, &all, fold);
        } else {
            first.gather_into(&block[..]);
        }
        first.broadcast_into(&mut block[..]);
        let told = Call::read(&block);
        if told.what == MATCH {
            return Ok(Verdict { length: told.length as usize, block });
        }
        // The rank in the place of the root is that which differs from rank 0.
        let other = told.root as usize;
        let message = if other == self.rank {
            format!("it makes {call}, and rank 0 does not")
        } else {
            format!("rank {other} makes {}, and rank 0 does not", Call { root: 0, ..told })
        };
        Err(self.out_of_step(message))
    }

    /// Each number ← those of all ranks put together by `f`, in the order of the ranks.
    pub(crate) fn fold<T: Element>(&self, what: What, values: &mut [T], f: impl Fn(T, T) -> T) -> Result<()> {
        if self.size == 1 {
            return Ok(());
        }
        let bytes = size_of_val(values);
        let in_block = bytes <= BLOCK - HEAD;
        let verdict = self.step(what, 0, values, |all, result| {
            if !in_block {
                return;
            }
            let length = bytes / size_of::<T>();
            let (mut sum, mut term) = (vec![T::default(); length], vec![T::default(); length]);
            for (rank, block) in all.chunks(BLOCK).enumerate() {
                T::bytes_mut(&mut term).copy_from_slice(&block[HEAD..HEAD + bytes]);
                put_together(rank, &mut sum, &term, &f);
            }
            result[..bytes].copy_from_slice(T::bytes(&sum));
        })?;
        if in_block {
            T::bytes_mut(values).copy_from_slice(&verdict.block[HEAD..HEAD + bytes]);
            return Ok(());
        }
        let first = self.process(0);
        for piece in values.chunks_mut(LONG / size_of::<T>()) {
            if self.rank == 0 {
                let mut all = vec![T::default(); piece.len() * self.size];
                first.gather_into_root(T::bytes(piece), T::bytes_mut(&mut all));
                for (rank, term) in all.chunks(piece.len()).enumerate() {
                    put_together(rank, piece, term, &f);
                }
            } else {
                first.gather_into(T::bytes(piece));
            }
            first.broadcast_into(T::bytes_mut(piece));
        }
        Ok(())
    }

    pub(crate) fn broadcast_data<T: Element>(&self, root: usize, data: &mut Vec<T>) -> Result<()> {
        if self.size == 1 {
            return Ok(());
        }
        let own: &[T] = if self.rank == root { data } else { &[] };
        let verdict = self.step(What::Broadcast, root, own, |all, result| {
            if let Some(block) = all.chunks(BLOCK).nth(root) {
                result.copy_from_slice(&block[HEAD..]);
            }
        })?;
        let bytes = verdict.length * size_of::<T>();
        if self.rank != root {
            data.clear();
            data.resize(verdict.length, T::default());
        }
        if bytes <= BLOCK - HEAD {
            if self.rank != root {
                T::bytes_mut(data).copy_from_slice(&verdict.block[HEAD..HEAD + bytes]);
            }
            return Ok(());
        }
        self.broadcast_pieces(root, T::bytes_mut(data));
        Ok(())
    }

    /// Of a length that all ranks know.
    fn broadcast_pieces(&self, root: usize, data: &mut [u8]) {
        for piece in data.chunks_mut(PIECE) {
            self.process(root).broadcast_into(piece);
        }
    }

    pub(crate) fn all_gather_parts<T: Element>(&self, own: &[T]) -> Result<Parts<T>> {
        if self.size == 1 {
            return Ok(Parts::new([own]));
        }
        self.step(What::AllGather, 0, own, |_, _| {})?;
        let mut lengths = vec![0u64; self.size];
        self.mpi.all_gather_into(&[own.len() as u64][..], &mut lengths[..]);
        let mut parts = Parts::zeros(lengths.iter().map(|&length| length as usize));
        let total = size_of_val(parts.values());
        if total < PIECE {
            let counts: Vec<i32> = lengths.iter().map(|&length| (length as usize * size_of::<T>()) as i32).collect();
            let places: Vec<i32> =
                counts.iter().scan(0, |end, &count| Some(std::mem::replace(end, *end + count))).collect();
            let mut all = vec![T::default(); parts.values().len()];
            let mut into = mpi::datatype::PartitionMut::new(T::bytes_mut(&mut all), counts, places);
            self.mpi.all_gather_varcount_into(T::bytes(own), &mut into);
            let mut rest = &all[..];
            for rank in 0..self.size {
                let (part, after) = rest.split_at(parts.part(rank).len());
                parts.part_mut(rank).copy_from_slice(part);
                rest = after;
            }
        } else {
            // Beyond what MPI counts.
            parts.part_mut(self.rank).copy_from_slice(own);
            (0..self.size).for_each(|root| self.broadcast_pieces(root, T::bytes_mut(parts.part_mut(root))));
        }
        Ok(parts)
    }

    pub(crate) fn gather_parts<T: Element>(&self, root: usize, own: &[T]) -> Result<Option<Parts<T>>> {
        if self.size == 1 {
            return Ok(Some(Parts::new([own])));
        }
        self.step(What::Gather, root, own, |_, _| {})?;
        let to = self.process(root);
        if self.rank != root {
            to.gather_into(&[own.len() as u64][..]);
            mpi::request::multiple_scope(1, |scope, requests| {
                send_pieces(scope, &to, T::bytes(own), TAG, requests);
                requests.wait_all(&mut Vec::new());
            });
            return Ok(None);
        }
        let mut lengths = vec![0u64; self.size];
        to.gather_into_root(&[own.len() as u64][..], &mut lengths[..]);
        let mut parts: Vec<Vec<T>> = lengths.iter().map(|&length| vec![T::default(); length as usize]).collect();
        parts[root].copy_from_slice(own);
        mpi::request::multiple_scope(self.size, |scope, requests| {
            for (from, part) in parts.iter_mut().enumerate().filter(|(from, part)| *from != root && !part.is_empty()) {
                receive_pieces(scope, &self.process(from), T::bytes_mut(part), TAG, requests);
            }
            requests.wait_all(&mut Vec::new());
        });
        Ok(Some(Parts::new(parts)))
    }

    pub(crate) fn all_to_all_parts<T: Element>(&self, send: &Parts<T>, receive: &mut Parts<T>) -> Result<()> {
        let mut lengths = vec![send.values().len() as u64];
        if self.size > 1 {
            self.step(What::AllToAll, 0, &[] as &[T], |_, _| {})?;
            let sizes: Vec<u64> = send.sizes().map(|size| size as u64).collect();
            lengths = vec![0; self.size];
            self.mpi.all_to_all_into(&sizes[..], &mut lengths[..]);
        }
        // Sizes that disagree are an error here; the senders are to hear nothing of it.
        let wrong = (0..self.size).find(|&from| lengths[from] as usize != receive.part(from).len());
        let mut parts: Vec<Vec<T>> = lengths.iter().map(|&length| vec![T::default(); length as usize]).collect();
        parts[self.rank].copy_from_slice(send.part(self.rank));
        let other = |rank: usize| rank != self.rank();
        mpi::request::multiple_scope(2 * self.size, |scope, requests| {
            for (from, part) in parts.iter_mut().enumerate().filter(|(from, part)| other(*from) && !part.is_empty()) {
                receive_pieces(scope, &self.process(from), T::bytes_mut(part), TAG, requests);
            }
            for to in (0..self.size).filter(|to| other(*to)) {
                send_pieces(scope, &self.process(to), T::bytes(send.part(to)), TAG, requests);
            }
            requests.wait_all(&mut Vec::new());
        });
        if let Some(from) = wrong {
            let (expected, found) = (receive.part(from).len(), parts[from].len());
            return Err(self.out_of_step(format!("the part from rank {from} has {found} elements, not {expected}")));
        }
        parts.iter().enumerate().for_each(|(from, part)| receive.part_mut(from).copy_from_slice(part));
        Ok(())
    }
}

/// sum ← f(sum, term), or the term of the first rank.
fn put_together<T: Element>(rank: usize, sum: &mut [T], term: &[T], f: &impl Fn(T, T) -> T) {
    if rank == 0 {
        sum.copy_from_slice(term);
    } else {
        sum.iter_mut().zip(term).for_each(|(sum, &term)| *sum = f(*sum, term));
    }
}

/// What rank 0 says to the blocks of all ranks.
fn verdict(what: What, root: usize, all: &[u8], fold: impl FnOnce(&[u8], &mut [u8])) -> [u8; BLOCK] {
    let calls: Vec<Call> = all.chunks(BLOCK).map(Call::read).collect();
    let lengths_count = matches!(what, What::Sum | What::Maximum | What::Barrier);
    let same = |call: &Call| Call { length: calls[0].length, ..*call } == calls[0];
    let differs = |call: &Call| !same(call) || lengths_count && call.length != calls[0].length;
    let mut block = [0; BLOCK];
    if let Some(other) = calls.iter().position(differs) {
        Call { root: other as u32, ..calls[other] }.write(&mut block);
    } else {
        let length = calls.get(root).map_or(0, |call| call.length);
        Call { what: MATCH, length, ..calls[0] }.write(&mut block);
        fold(all, &mut block[HEAD..]);
    }
    block
}
