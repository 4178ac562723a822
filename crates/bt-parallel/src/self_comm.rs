//! The communicator of one rank: nothing travels, and nothing is counted.
//!
//! Messages of a rank to itself are copied, pairs matched in order as between two ranks.

use crate::comm::{Comm, Element, Number, Parts, Tag, Traffic, check_parts};
use crate::error::{Error, Result};

/// One rank alone.
///
/// ```
/// use bt_parallel::{Comm, SelfComm};
/// let mut sum = [2.5];
/// SelfComm.all_sum(&mut sum)?;
/// assert_eq!((SelfComm.size(), sum), (1, [2.5]));
/// # Ok::<(), bt_parallel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SelfComm;

impl Comm for SelfComm {
    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        1
    }
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    fn exchange<T: Element, R>(
        &self,
        _: Tag,
        sends: &[(usize, &[T])],
        receives: &mut [(usize, &mut [T])],
        meanwhile: impl FnOnce() -> R,
    ) -> Result<R> {
        let pairs = sends.iter().zip(receives.iter());
        if sends.len() != receives.len() || pairs.into_iter().any(|(s, r)| (s.0, r.0, s.1.len()) != (0, 0, r.1.len())) {
            let message = "its messages to itself do not match what it waits for".into();
            return Err(Error::OutOfStep { rank: 0, message });
        }
        for (send, receive) in sends.iter().zip(receives) {
            receive.1.copy_from_slice(send.1);
        }
        Ok(meanwhile())
    }

    fn all_to_all_into<T: Element>(&self, send: &Parts<T>, receive: &mut Parts<T>) -> Result<()> {
        check_parts(self, &[send, receive])?;
        if send.part(0).len() != receive.part(0).len() {
            return Err(Error::OutOfStep { rank: 0, message: "its part for itself has another size".into() });
        }
        receive.part_mut(0).copy_from_slice(send.part(0));
        Ok(())
    }

    fn all_gather<T: Element>(&self, own: &[T]) -> Result<Parts<T>> {
        Ok(Parts::new([own]))
    }
    fn gather<T: Element>(&self, _: usize, own: &[T]) -> Result<Option<Parts<T>>> {
        Ok(Some(Parts::new([own])))
    }
    fn broadcast<T: Element>(&self, _: usize, _: &mut Vec<T>) -> Result<()> {
        Ok(())
    }
    fn all_sum<T: Number>(&self, _: &mut [T]) -> Result<()> {
        Ok(())
    }
    fn all_max(&self, _: &mut [f64]) -> Result<()> {
        Ok(())
    }
    fn barrier(&self) -> Result<()> {
        Ok(())
    }
    fn split(&self, _: u32, _: u32) -> Result<Self> {
        Ok(*self)
    }
}
