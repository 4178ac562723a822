//! Elimination by supernodes, those that need nothing of each other on threads of their own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bt_formats::{Monitor, Progress, RealScalar, Scalar};
use faer::Par;
use faer::dyn_stack::{MemBuffer, StackReq};
use faer::sparse::linalg::cholesky::supernodal::SymbolicSupernodalCholesky;

use super::earlier::{Links, LinksOf, Places};
use super::numbers::Numbers;
use super::pattern::too_large;
use super::subtrees::{Supernodes, Task};
use crate::error::Result;
use crate::memory::zeros;

/// Why there are no factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// There is no pivot in this row in the order of L.
    NoPivot(usize),
    /// The monitor said so.
    Stopped,
}

/// What came out: the largest |L|·|U| of a column, or |L|·|D|·|Lᴴ|, and the least modulus of a pivot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub product: f64,
    pub pivot: f64,
}

impl Sizes {
    pub const NONE: Self = Self { product: 0.0, pivot: f64::INFINITY };

    pub fn and(self, other: Self) -> Self {
        Self { product: self.product.max_nan(other.product), pivot: self.pivot.min_nan(other.pivot) }
    }

    /// Not so of NaN.
    fn is_sound(self) -> bool {
        self.product.is_finite() && self.pivot > 0.0
    }
}

/// What is done with a supernode: its number, the numbers and links of its task, and the work space of the thread.
type One<'f, T> =
    dyn Fn(usize, &mut Numbers<'_, T>, &mut LinksOf<'_>, &mut Room<T>) -> Result<Sizes, Ended> + Sync + 'f;

/// Work space of a thread.
pub(crate) struct Room<T> {
    pub places: Places,
    /// For products: so many numbers of the largest block as were asked for.
    pub product: Vec<T>,
    /// For interchanges of the widest.
    pub inverse: Vec<u32>,
    /// For kernels for dense blocks.
    pub memory: MemBuffer,
}

/// What an elimination works with beside its numbers.
pub(crate) struct Scratch<T> {
    links: Links,
    rooms: Vec<Room<T>>,
}

impl<T: Scalar> Scratch<T> {
    /// With room for `products` times the numbers of the largest block.
    pub fn new(s: &Supernodes, kernels: StackReq, products: usize, par: Par) -> Result<Self> {
        let room = |(numbers, columns): (usize, usize)| -> Result<Room<T>> {
            let memory = MemBuffer::try_new(kernels).map_err(|_| too_large(s.nrows(), 0))?;
            let (product, inverse) = (zeros(products * numbers)?, zeros(columns)?);
            Ok(Room { places: Places::new(s.nrows())?, product, inverse, memory })
        };
        Ok(Self { links: Links::new(s)?, rooms: largest_of_rooms(s, par).map(room).collect::<Result<_>>()? })
    }

    pub fn bytes(s: &Supernodes, kernels: StackReq, products: usize, par: Par) -> usize {
        let room = |(numbers, columns): (usize, usize)| {
            Places::bytes(s.nrows()) + products * numbers * size_of::<T>() + 4 * columns + kernels.size_bytes()
        };
        Links::bytes(s) + largest_of_rooms(s, par).map(room).sum::<usize>()
    }

    /// Eliminates supernode after supernode by `one`, observed between them.
    ///
    /// # Errors
    /// As `one`, of the first task for which it has any, and where sizes are not finite or a pivot is zero; [`Ended::Stopped`].
    pub fn eliminate(
        &mut self,
        s: &Supernodes,
        mut numbers: Numbers<'_, T>,
        monitor: &mut dyn Monitor,
        one: &One<'_, T>,
    ) -> Result<Sizes, Ended> {
        let Self { links, rooms } = self;
        links.clear();
        let (done, total) = (AtomicUsize::new(0), s.n_supernodes());
        let all = Mutex::new(Sizes::NONE);
        for (stage, tasks) in s.subtrees.stages.iter().enumerate() {
            if stage > 0 {
                links.join(s);
            }
            let threads = rooms.len().min(tasks.len());
            let Some((first, others)) = rooms[..threads].split_first_mut() else { continue };
            let queue = Mutex::new(divide(s, tasks, numbers.reborrow(), links.all(s)).enumerate());
            // The first task that ended early, and why; what the monitor says comes before all.
            let ended: Mutex<Option<(usize, Ended)>> = Mutex::new(None);
            let until = AtomicUsize::new(usize::MAX);
            let end = |task: usize, why: Ended| {
                let mut ended = ended.lock().expect("no thread panics here");
                *ended = Some(ended.filter(|&(other, _)| other <= task).unwrap_or((task, why)));
                until.fetch_min(task, Ordering::Relaxed);
            };
            let work = |room: &mut Room<T>, monitor: &mut dyn Monitor| {
                let mut sizes = Sizes::NONE;
                loop {
                    let next = queue.lock().expect("no thread panics here").next();
                    let Some((task, (nodes, mut numbers, mut links))) = next else { break };
                    for some in nodes.chunks(16) {
                        let done = done.fetch_add(some.len(), Ordering::Relaxed);
                        if monitor.observe(Progress::Step { phase: "setup", done, total }).is_break() {
                            end(0, Ended::Stopped);
                        }
                        if until.load(Ordering::Relaxed) <= task {
                            break;
                        }
                        for &k in some {
                            match one(k as usize, &mut numbers, &mut links, room) {
                                Ok(own) if own.is_sound() => sizes = sizes.and(own),
                                Ok(_) => return end(task, Ended::NoPivot(s.supernode_begin()[k as usize] as usize)),
                                Err(why) => return end(task, why),
                            }
                        }
                    }
                }
                let mut all = all.lock().expect("no thread panics here");
                *all = all.and(sizes);
            };
            if others.is_empty() {
                work(first, monitor);
            } else {
                rayon::in_place_scope(|scope| {
                    for room in others {
                        scope.spawn(|_| work(room, &mut ()));
                    }
                    work(first, monitor);
                });
            }
            if let Some((_, why)) = ended.into_inner().expect("no thread panics here") {
                return Err(why);
            }
        }
        Ok(all.into_inner().expect("no thread panics here"))
    }
}

/// Of each thread the largest supernode it meets: the first goes on where there is nothing beside.
fn largest_of_rooms(s: &Supernodes, par: Par) -> impl Iterator<Item = (usize, usize)> {
    let others = s.subtrees.threads(par.degree()) - 1;
    std::iter::once(s.largest).chain(std::iter::repeat_n(s.largest_beside, others))
}

type Part<'a, T> = (&'a [u32], Numbers<'a, T>, LinksOf<'a>);

/// The supernodes of each task, with numbers and links of its range.
fn divide<'a, T>(
    s: &'a SymbolicSupernodalCholesky<u32>,
    tasks: &'a [Task],
    numbers: Numbers<'a, T>,
    links: LinksOf<'a>,
) -> impl Iterator<Item = Part<'a, T>> {
    tasks.iter().scan(Some((numbers, links)), move |rest, Task { range, nodes }| {
        let (numbers, links) = rest.take()?;
        let ((_, numbers), (_, links)) = (numbers.split_at(s, range.start), links.split_at(range.start));
        let ((own, numbers), (own_links, links)) = (numbers.split_at(s, range.end), links.split_at(range.end));
        *rest = Some((numbers, links));
        Some((&nodes[..], own, own_links))
    })
}
