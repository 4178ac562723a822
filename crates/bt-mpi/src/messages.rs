//! Messages between two ranks: all of them started, then completed, with lengths and types checked.
//!
//! MPI ends all ranks where a message is longer than the buffer posted for it, and does not notice one of another type. So that both become
//! [`Error::OutOfStep`], messages travel in one of three ways:
//!
//! ```text
//! short    a frame of 16 + n ≤ 4096 bytes: type and length, then the elements
//! long     a frame without elements, then the elements; received after the frame has been looked at
//! again    the elements alone, from and into the caller's memory, where the message before of the same tag between the two
//!          ranks had the same type and length: both ranks know that, since messages of a tag keep their order
//! ```
//!
//! Receives of the first and the last kind are posted before other work runs (`MPI_Irecv`); exchanges of halos are of these but for the first
//! one. Messages of more than 1 GiB go in pieces, since MPI counts in 32 bits. Storage: two frames a message.

use std::collections::{HashMap, HashSet, VecDeque};

use bt_parallel::{Element, ElementKind, Error, Result, Tag};
use mpi::datatype::Equivalence;
use mpi::point_to_point::Status;
use mpi::request::{LocalScope, RequestCollection};
use mpi::topology::Process;
use mpi::traits::{Communicator, Destination, MatchedReceiveVec, Source};

use crate::comm::MpiComm;

/// Bytes of a frame at most.
const FRAME: usize = 4096;
/// Type and length of a message.
const HEAD: usize = 16;
/// Bytes of a piece of a long message.
pub(crate) const PIECE: usize = 1 << 30;

/// What the messages of a communicator need to know of those before.
#[derive(Default)]
pub(crate) struct Messages {
    /// Type and bytes of the last message, by the other rank and the tag.
    sent: HashMap<(usize, Tag), Form>,
    received: HashMap<(usize, Tag), Form>,
    /// Messages to this rank itself that are not received yet.
    to_self: VecDeque<(Tag, ElementKind, Vec<u8>)>,
}

/// Type and length in bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Form {
    kind: ElementKind,
    bytes: usize,
}

/// How a message travels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Short,
    Long,
    Again,
}

impl Form {
    fn of<T: Element>(data: &[T]) -> Self {
        Self { kind: T::KIND, bytes: size_of_val(data) }
    }

    /// After a message of the form `last`. What could be taken for a frame is never sent without one.
    fn way(self, last: Option<&Self>) -> Way {
        if self.is_short() {
            Way::Short
        } else if self.bytes > FRAME && last == Some(&self) {
            Way::Again
        } else {
            Way::Long
        }
    }

    fn head(self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[0] = code(self.kind);
        head[8..].copy_from_slice(&(self.bytes as u64).to_ne_bytes());
        head
    }

    /// Of a frame, which is as long as it says; none of anything else.
    fn read(frame: &[u8]) -> Option<Self> {
        let head = frame.get(..HEAD)?;
        let bytes = u64::from_ne_bytes(head[8..].try_into().ok()?) as usize;
        let form = Self { kind: *KINDS.get(head[0] as usize)?, bytes };
        let elements = if form.is_short() { bytes } else { 0 };
        (frame.len() == HEAD + elements).then_some(form)
    }

    /// Whether a frame has room for the elements.
    fn is_short(self) -> bool {
        self.bytes <= FRAME - HEAD
    }
}

const KINDS: [ElementKind; 7] = [
    ElementKind::Byte,
    ElementKind::Index,
    ElementKind::Count,
    ElementKind::F32,
    ElementKind::F64,
    ElementKind::C32,
    ElementKind::C64,
];

/// A type as a number, the same on all ranks.
pub(crate) fn code(kind: ElementKind) -> u8 {
    KINDS.iter().position(|k| *k == kind).unwrap_or(0) as u8
}

/// The name of a type by its number.
pub(crate) fn kind_name(code: u8) -> String {
    KINDS.get(code as usize).map_or_else(|| format!("unknown type {code}"), |kind| format!("{kind:?}"))
}

/// A tag of MPI: 0 belongs to collectives.
fn mpi_tag(tag: Tag) -> i32 {
    i32::from(tag.0) + 1
}

/// A message that is being sent.
struct Outgoing<'d> {
    to: usize,
    /// The range of its frame among all.
    frame: std::ops::Range<usize>,
    /// What goes without a frame.
    bare: &'d [u8],
}

/// A message that is to come.
struct Incoming<'d> {
    from: usize,
    expected: Form,
    /// The message before.
    last: Option<Form>,
    way: Way,
    into: &'d mut [u8],
}

impl MpiComm {
    pub(crate) fn exchange_messages<T: Element, R>(
        &self,
        tag: Tag,
        sends: &[(usize, &[T])],
        receives: &mut [(usize, &mut [T])],
        meanwhile: impl FnOnce() -> R,
    ) -> Result<R> {
        let mut frames = Vec::new();
        let outgoing = self.outgoing(tag, sends, &mut frames);
        let (own, mut posted, later) = self.incoming(tag, receives);
        let mut buffers = vec![[0u8; FRAME]; posted.iter().filter(|m| m.way == Way::Short).count()];
        let n_receives = posted.len();
        // The inner scope ends first: what is received without being expected lets senders on the other side end.
        let (result, fault) = mpi::request::multiple_scope(2 * outgoing.len(), |outer, sending| {
            for Outgoing { to, frame, bare } in &outgoing {
                let other = self.process(*to);
                if !frame.is_empty() {
                    sending.add(other.immediate_send_with_tag(outer, &frames[frame.clone()], mpi_tag(tag)));
                }
                send_pieces(outer, &other, bare, mpi_tag(tag), sending);
            }
            let both = mpi::request::multiple_scope(n_receives, |scope, requests| {
                // Which requests belong to which receive.
                let (mut buffers, mut first) = (buffers.iter_mut(), Vec::with_capacity(posted.len()));
                for Incoming { from, way, into, .. } in &mut posted {
                    let other = self.process(*from);
                    let buffer = if *way == Way::Short { buffers.next() } else { None };
                    first.push(match buffer {
                        Some(buffer) => {
                            requests.add(other.immediate_receive_into_with_tag(scope, &mut buffer[..], mpi_tag(tag)))
                        }
                        None => receive_pieces(scope, &other, std::mem::take(into), mpi_tag(tag), requests),
                    });
                }
                let result = meanwhile();
                // Before the others are waited for, which may wait for these on their side.
                let mut fault = self.receive_later(tag, later);
                let mut done = Vec::new();
                requests.wait_all(&mut done);
                for (Incoming { from, expected, way, into, .. }, at) in posted.iter_mut().zip(first) {
                    let (_, status, data) = &done[at];
                    let found = bytes(status);
                    let frame = &data[..found];
                    match way {
                        Way::Short if Form::read(frame) == Some(*expected) => into.copy_from_slice(&frame[HEAD..]),
                        Way::Again if found == expected.bytes.min(PIECE) => {}
                        _ => {
                            let form = Form::read(frame);
                            self.drop_long(*from, tag, form, 0);
                            fault = fault.or(Some(self.unexpected(*from, *expected, form, found)));
                        }
                    }
                }
                (result, fault)
            });
            sending.wait_all(&mut Vec::new());
            both
        });
        let own = self.receive_own(tag, own);
        fault.map_or(Ok(()), Err)?;
        own?;
        Ok(result)
    }

    pub(crate) fn process(&self, rank: usize) -> Process<'_> {
        self.mpi.process_at_rank(rank as i32)
    }

    /// What is to be sent, with its frames; messages to this rank itself are set aside.
    fn outgoing<'d, T: Element>(
        &self,
        tag: Tag,
        sends: &[(usize, &'d [T])],
        frames: &mut Vec<u8>,
    ) -> Vec<Outgoing<'d>> {
        let mut messages = self.messages.borrow_mut();
        let mut outgoing = Vec::with_capacity(sends.len());
        for &(to, data) in sends {
            let (form, data) = (Form::of(data), T::bytes(data));
            if to == self.rank {
                messages.to_self.push_back((tag, T::KIND, data.to_vec()));
                continue;
            }
            let way = form.way(messages.sent.get(&(to, tag)));
            messages.sent.insert((to, tag), form);
            let start = frames.len();
            if way != Way::Again {
                frames.extend_from_slice(&form.head());
            }
            if way == Way::Short {
                frames.extend_from_slice(data);
            }
            let bare = if way == Way::Short { &[] } else { data };
            outgoing.push(Outgoing { to, frame: start..frames.len(), bare });
        }
        outgoing
    }

    /// What is to come: from this rank itself; what can be posted at once; what has to be looked at first.
    fn incoming<'d, T: Element>(
        &self,
        tag: Tag,
        receives: &'d mut [(usize, &mut [T])],
    ) -> (Vec<Incoming<'d>>, Vec<Incoming<'d>>, Vec<Incoming<'d>>) {
        let mut messages = self.messages.borrow_mut();
        let (mut own, mut posted, mut later) = (Vec::new(), Vec::new(), Vec::new());
        let mut behind = HashSet::new();
        for (from, into) in receives {
            let (from, expected) = (*from, Form::of(into));
            let last = messages.received.get(&(from, tag)).copied();
            let way = expected.way(last.as_ref());
            let message = Incoming { from, expected, last, way, into: T::bytes_mut(into) };
            if from == self.rank {
                own.push(message);
                continue;
            }
            messages.received.insert((from, tag), expected);
            // A frame has no room for what would come again.
            let unsure = way == Way::Long || way == Way::Short && last.is_some_and(|last| last.bytes > FRAME);
            if unsure || behind.contains(&from) {
                behind.insert(from);
                later.push(message);
            } else {
                posted.push(message);
            }
        }
        (own, posted, later)
    }

    /// Receives what has to be looked at first; the first fault.
    fn receive_later(&self, tag: Tag, later: Vec<Incoming<'_>>) -> Option<Error> {
        let mut fault = None;
        for Incoming { from, expected, last, way, into } in later {
            let other = self.process(from);
            let (message, status) = other.matched_probe_with_tag(mpi_tag(tag));
            let found = bytes(&status);
            if way == Way::Again && found == expected.bytes.min(PIECE) {
                let (first, rest) = into.split_at_mut(found);
                message.matched_receive_into(first);
                receive_now(&other, rest, mpi_tag(tag));
                continue;
            }
            let data: Vec<u8> = (message, status).matched_receive_vec().0;
            match Form::read(&data) {
                Some(form) if form == expected && way == Way::Short => into.copy_from_slice(&data[HEAD..]),
                Some(form) if form == expected && way == Way::Long => receive_now(&other, into, mpi_tag(tag)),
                Some(form) => {
                    self.drop_long(from, tag, Some(form), 0);
                    fault = fault.or(Some(self.unexpected(from, expected, Some(form), found)));
                }
                None => {
                    // The elements alone, of a message like the one before.
                    self.drop_long(from, tag, last, found);
                    fault = fault.or(Some(self.unexpected(from, expected, last, found)));
                }
            }
        }
        fault
    }

    /// Takes the elements of a long message that nobody expects, but for the first bytes, so that its sender does not wait.
    fn drop_long(&self, from: usize, tag: Tag, form: Option<Form>, taken: usize) {
        let Some(form) = form.filter(|form| !form.is_short()) else { return };
        let mut left = form.bytes - taken.min(form.bytes);
        while left > 0 {
            let taken = self.process(from).receive_vec_with_tag::<u8>(mpi_tag(tag)).0.len();
            left = left.saturating_sub(taken.max(1));
        }
    }

    fn unexpected(&self, from: usize, expected: Form, found: Option<Form>, bytes: usize) -> Error {
        let came = found.map_or_else(|| format!("{bytes} bytes"), |f| format!("{} bytes of {:?}", f.bytes, f.kind));
        self.out_of_step(format!(
            "it expects {} bytes of {:?} from rank {from}, and {came} came",
            expected.bytes, expected.kind
        ))
    }

    /// Messages of this rank to itself.
    fn receive_own(&self, tag: Tag, own: Vec<Incoming<'_>>) -> Result<()> {
        for Incoming { expected, into, .. } in own {
            let mut messages = self.messages.borrow_mut();
            let at = messages.to_self.iter().position(|message| message.0 == tag);
            let Some((_, kind, data)) = at.and_then(|at| messages.to_self.remove(at)) else {
                return Err(self.out_of_step("it waits for a message of its own that it has not sent".into()));
            };
            let found = Form { kind, bytes: data.len() };
            if found != expected {
                return Err(self.unexpected(self.rank, expected, Some(found), 0));
            }
            into.copy_from_slice(&data);
        }
        Ok(())
    }
}

fn bytes(status: &Status) -> usize {
    usize::try_from(status.count(u8::equivalent_datatype())).unwrap_or(0)
}

/// Starts to send bytes, in pieces.
pub(crate) fn send_pieces<'a>(
    scope: &LocalScope<'a>,
    other: &Process<'_>,
    data: &'a [u8],
    tag: i32,
    requests: &mut RequestCollection<'a, [u8]>,
) {
    for piece in data.chunks(PIECE) {
        requests.add(other.immediate_send_with_tag(scope, piece, tag));
    }
}

/// Starts to receive bytes, in pieces, of which there is one at least; the number of the first request.
pub(crate) fn receive_pieces<'a>(
    scope: &LocalScope<'a>,
    other: &Process<'_>,
    into: &'a mut [u8],
    tag: i32,
    requests: &mut RequestCollection<'a, [u8]>,
) -> usize {
    let mut pieces = into.chunks_mut(PIECE);
    let first = pieces.next().unwrap_or_default();
    let first = requests.add(other.immediate_receive_into_with_tag(scope, first, tag));
    for piece in pieces {
        requests.add(other.immediate_receive_into_with_tag(scope, piece, tag));
    }
    first
}

/// Receives bytes, in pieces, that are known to come.
fn receive_now(other: &Process<'_>, into: &mut [u8], tag: i32) {
    for piece in into.chunks_mut(PIECE) {
        other.receive_into_with_tag(piece, tag);
    }
}
