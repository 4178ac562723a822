//! What ranks say to each other: [`Comm`], the parts that collectives carry, and the exact count of what travels.
//!
//! The trait is the part of MPI that the methods need, in the form in which borrowed buffers are safe: non-blocking sends and
//! receives are started, other work runs, and they are completed before the call returns ([`Comm::exchange`], in MPI
//! `Isend`, `Irecv`, `Waitall`). One thread of a rank talks (`MPI_THREAD_FUNNELED`): communicators are neither `Send` nor `Sync`, and
//! the threads of rayon compute only.
//!
//! Every call that is named a collective is made by all ranks of the communicator, in one order. Sums are taken in the order of
//! the ranks:
//!
//! ```text
//! s = ((s₀ + s₁) + s₂) + … + s_{p−1}
//! ```
//!
//! so that they have the same bits on every rank and in every run. Maxima are NaN where a number is.
//!
//! Traffic, counted in the same way by every communicator: a message and its bytes where it is sent to another rank; a collective
//! once on each rank, with the bytes that this rank contributes for others. A communicator of one rank counts nothing.

use std::cell::Cell;

use bt_formats::{Scalar, c32, c64};

use crate::error::{Error, Result};

/// Which type the elements of a message have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementKind {
    /// `u8`: texts.
    Byte,
    /// `u32`: rows and columns.
    Index,
    /// `u64`: counts.
    Count,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// `c32`.
    C32,
    /// `c64`.
    C64,
}

mod sealed {
    pub trait Sealed {}
}

/// What messages are made of: numbers, indices, counts and bytes.
pub trait Element: sealed::Sealed + Copy + Default + PartialEq + Send + Sync + 'static {
    /// The type as a value.
    const KIND: ElementKind;

    /// The elements as the bytes that this machine keeps them in, for communicators that move bytes.
    ///
    /// ```
    /// use bt_parallel::Element;
    /// assert_eq!(u32::bytes(&[1, 2]).len(), 8);
    /// ```
    fn bytes(elements: &[Self]) -> &[u8];

    /// The same for overwriting: any bytes are elements.
    fn bytes_mut(elements: &mut [Self]) -> &mut [u8];
}

macro_rules! element {
    ($($t:ty => $kind:ident),*) => { $(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const KIND: ElementKind = ElementKind::$kind;
            fn bytes(elements: &[Self]) -> &[u8] {
                bytemuck::cast_slice(elements)
            }
            fn bytes_mut(elements: &mut [Self]) -> &mut [u8] {
                bytemuck::cast_slice_mut(elements)
            }
        }
    )* };
}
element!(u8 => Byte, u32 => Index, u64 => Count, f32 => F32, f64 => F64, c32 => C32, c64 => C64);

/// The four scalars, which travel.
pub trait Number: Scalar + Element {}
impl<T: Scalar + Element> Number for T {}

/// Which exchange a message belongs to: messages of one tag between two ranks arrive in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(pub u16);

/// What a rank has sent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages to other ranks.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Collectives taken part in.
    pub collectives: u64,
    /// Bytes contributed to them for other ranks.
    pub collective_bytes: u64,
}

impl Traffic {
    /// What was sent after `earlier` was.
    ///
    /// ```
    /// use bt_parallel::Traffic;
    /// let now = Traffic { messages: 3, bytes: 24, ..Traffic::default() };
    /// let earlier = Traffic { messages: 1, bytes: 8, ..Traffic::default() };
    /// assert_eq!(now.since(earlier), Traffic { messages: 2, bytes: 16, ..Traffic::default() });
    /// ```
    pub fn since(self, earlier: Self) -> Self {
        Self {
            messages: self.messages - earlier.messages,
            bytes: self.bytes - earlier.bytes,
            collectives: self.collectives - earlier.collectives,
            collective_bytes: self.collective_bytes - earlier.collective_bytes,
        }
    }
}

/// The count that a communicator keeps.
#[derive(Debug, Default)]
pub struct Counter(Cell<Traffic>);

impl Counter {
    /// The count so far.
    pub fn traffic(&self) -> Traffic {
        self.0.get()
    }
    /// Counts a message of `bytes` bytes to another rank.
    pub fn message(&self, bytes: usize) {
        let t = self.0.get();
        self.0.set(Traffic { messages: t.messages + 1, bytes: t.bytes + bytes as u64, ..t });
    }
    /// Counts a collective with `bytes` bytes of this rank for others.
    pub fn collective(&self, bytes: usize) {
        let t = self.0.get();
        let collective_bytes = t.collective_bytes + bytes as u64;
        self.0.set(Traffic { collectives: t.collectives + 1, collective_bytes, ..t });
    }
}

/// One slice for, or from, every rank.
///
/// ```
/// use bt_parallel::Parts;
/// let parts = Parts::new([&[1.0, 2.0][..], &[], &[3.0]]);
/// assert_eq!((parts.n_parts(), parts.part(0), parts.part(2)), (3, &[1.0, 2.0][..], &[3.0][..]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts<T> {
    values: Vec<T>,
    offsets: Vec<usize>,
}

impl<T: Copy + Default> Parts<T> {
    /// From the slices, in the order of the ranks.
    pub fn new<P: AsRef<[T]>>(parts: impl IntoIterator<Item = P>) -> Self {
        let (mut values, mut offsets) = (Vec::new(), vec![0]);
        for part in parts {
            values.extend_from_slice(part.as_ref());
            offsets.push(values.len());
        }
        Self { values, offsets }
    }

    /// Zeros, so many for every rank.
    pub fn zeros(sizes: impl IntoIterator<Item = usize>) -> Self {
        let mut offsets = vec![0];
        let mut sum = 0;
        for size in sizes {
            sum += size;
            offsets.push(sum);
        }
        Self { values: vec![T::default(); sum], offsets }
    }

    /// Ranks.
    pub fn n_parts(&self) -> usize {
        self.offsets.len() - 1
    }
    /// The slice of a rank.
    pub fn part(&self, rank: usize) -> &[T] {
        &self.values[self.offsets[rank]..self.offsets[rank + 1]]
    }
    /// The slice of a rank for overwriting.
    pub fn part_mut(&mut self, rank: usize) -> &mut [T] {
        &mut self.values[self.offsets[rank]..self.offsets[rank + 1]]
    }
    /// All slices, in the order of the ranks.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        self.offsets.windows(2).map(|w| &self.values[w[0]..w[1]])
    }
    /// How many elements each has.
    pub fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.offsets.windows(2).map(|w| w[1] - w[0])
    }
    /// All elements, one rank after the other.
    pub fn values(&self) -> &[T] {
        &self.values
    }
    /// Bytes of the parts but for that of `rank`.
    pub fn bytes_for_others(&self, rank: usize) -> usize {
        size_of::<T>() * (self.values.len() - self.part(rank).len())
    }
}

/// A rank's view of the ranks that work together.
///
/// Every method fails with [`Error::Lost`] once a rank is gone. An error of a communicator is final: what is called after it fails in
/// the same way.
///
/// ```
/// use bt_parallel::{Comm, Tag, thread_comm};
/// // Every rank passes its number to the next one in a ring.
/// let heard = thread_comm::run(3, |comm| {
///     let (rank, p) = (comm.rank(), comm.size());
///     let mut from_left = [0u32];
///     comm.exchange(
///         Tag(0),
///         &[((rank + 1) % p, &[rank as u32][..])],
///         &mut [((rank + p - 1) % p, &mut from_left[..])],
///         || {},
///     )?;
///     Ok(from_left[0])
/// });
/// assert_eq!(heard, [Ok(2), Ok(0), Ok(1)]);
/// ```
pub trait Comm: Sized {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// Ranks, p.
    fn size(&self) -> usize;

    /// What this rank has sent over this communicator.
    fn traffic(&self) -> Traffic;

    /// Sends and receives slices while `meanwhile` runs; all of them are complete at the end. A pair is (rank, slice). Not a
    /// collective: ranks without messages need not call.
    ///
    /// # Errors
    /// [`Error::OutOfStep`] for a message of another length or type than is expected.
    ///
    /// # Cost
    /// One message for each pair of `sends` to another rank.
    fn exchange<T: Element, R>(
        &self,
        tag: Tag,
        sends: &[(usize, &[T])],
        receives: &mut [(usize, &mut [T])],
        meanwhile: impl FnOnce() -> R,
    ) -> Result<R>;

    /// Part j of `send` to rank j, whose part for this rank fills part j of `receive`: sizes are known on both sides. A collective.
    ///
    /// # Errors
    /// [`Error::OutOfStep`] where sizes disagree.
    fn all_to_all_into<T: Element>(&self, send: &Parts<T>, receive: &mut Parts<T>) -> Result<()>;

    /// The slices of all ranks, on every rank. A collective.
    ///
    /// # Errors
    /// Those of the communicator.
    fn all_gather<T: Element>(&self, own: &[T]) -> Result<Parts<T>>;

    /// The slices of all ranks, on `root` alone. A collective.
    ///
    /// # Errors
    /// Those of the communicator.
    fn gather<T: Element>(&self, root: usize, own: &[T]) -> Result<Option<Parts<T>>>;

    /// `data` ← that of `root`, whatever its length. A collective.
    ///
    /// # Errors
    /// Those of the communicator.
    fn broadcast<T: Element>(&self, root: usize, data: &mut Vec<T>) -> Result<()>;

    /// Each number ← its sum over the ranks, in their order. A collective.
    ///
    /// # Errors
    /// [`Error::OutOfStep`] for slices of different lengths.
    fn all_sum<T: Number>(&self, terms: &mut [T]) -> Result<()>;

    /// Each number ← the largest of the ranks, NaN where one is. A collective.
    ///
    /// # Errors
    /// [`Error::OutOfStep`] for slices of different lengths.
    fn all_max(&self, values: &mut [f64]) -> Result<()>;

    /// Returns on no rank before all have called. A collective.
    ///
    /// # Errors
    /// Those of the communicator.
    fn barrier(&self) -> Result<()>;

    /// A communicator of the ranks that name the same color, in the order of their keys and of their ranks here. A collective.
    ///
    /// # Errors
    /// Those of the communicator.
    fn split(&self, color: u32, key: u32) -> Result<Self>;

    /// Part j of `send` to rank j; what all ranks sent here. A collective, two in the count: sizes travel first.
    ///
    /// # Errors
    /// Those of the communicator.
    fn all_to_all<T: Element>(&self, send: &Parts<T>) -> Result<Parts<T>> {
        let sizes = Parts::new(send.sizes().map(|size| [size as u64]));
        let mut coming = Parts::zeros((0..self.size()).map(|_| 1));
        self.all_to_all_into(&sizes, &mut coming)?;
        let mut receive = Parts::zeros(coming.values().iter().map(|&size| size as usize));
        self.all_to_all_into(send, &mut receive)?;
        Ok(receive)
    }
}

/// Whether `parts` are for as many ranks as there are.
pub(crate) fn check_parts<T: Copy + Default>(comm: &impl Comm, parts: &[&Parts<T>]) -> Result<()> {
    match parts.iter().find(|parts| parts.n_parts() != comm.size()) {
        Some(parts) => Err(Error::OutOfStep {
            rank: comm.rank(),
            message: format!("{} parts for {} ranks", parts.n_parts(), comm.size()),
        }),
        None => Ok(()),
    }
}
