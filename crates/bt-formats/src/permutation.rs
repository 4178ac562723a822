//! Permutations of rows and columns, stored with their inverse; clones share both.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// A permutation of 0..n. `order()[new] = old`: position `new` of the permuted vector holds entry `old`.
///
/// ```
/// use bt_formats::Permutation;
/// let p = Permutation::from_order(vec![2, 0, 1])?;
/// let mut y = [0.0; 3];
/// p.gather(&[10.0, 11.0, 12.0], &mut y);
/// assert_eq!(y, [12.0, 10.0, 11.0]);
/// let mut x = [0.0; 3];
/// p.scatter(&y, &mut x);
/// assert_eq!(x, [10.0, 11.0, 12.0]);
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    order: Arc<[u32]>,
    position: Arc<[u32]>,
}

impl Permutation {
    /// The identity of length `n`.
    pub fn identity(n: usize) -> Self {
        let order: Arc<[u32]> = (0..n as u32).collect();
        Self { position: order.clone(), order }
    }

    /// From `order[new] = old`.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] when some index is missing, repeated or too large.
    pub fn from_order(order: Vec<u32>) -> Result<Self> {
        let mut position = vec![u32::MAX; order.len()];
        for (new, &old) in order.iter().enumerate() {
            match position.get_mut(old as usize) {
                Some(p) if *p == u32::MAX => *p = new as u32,
                _ => {
                    return Err(Error::InvalidStructure {
                        what: "permutation",
                        why: format!("index {old} at position {new} is repeated or not below {}", order.len()),
                    });
                }
            }
        }
        Ok(Self { order: order.into(), position: position.into() })
    }

    /// Length n.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether n = 0.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// `order()[new] = old`.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// `position()[old] = new`.
    pub fn position(&self) -> &[u32] {
        &self.position
    }

    /// The inverse permutation.
    pub fn inverse(&self) -> Self {
        Self { order: self.position.clone(), position: self.order.clone() }
    }

    /// This permutation after `first`: `order[new] = first.order[self.order[new]]`.
    pub fn after(&self, first: &Self) -> Self {
        let order = self.order.iter().map(|&mid| first.order[mid as usize]).collect();
        let position = first.position.iter().map(|&mid| self.position[mid as usize]).collect();
        Self { order, position }
    }

    /// Whether nothing moves.
    pub fn is_identity(&self) -> bool {
        // Only the identity is made with one array for both.
        Arc::ptr_eq(&self.order, &self.position) || self.order.iter().enumerate().all(|(new, &old)| new == old as usize)
    }

    /// Whether the sign is −1: a product of an odd number of transpositions. O(n).
    pub fn is_odd(&self) -> bool {
        is_odd(&self.order)
    }

    /// `new_x[new] = x[order[new]]`.
    ///
    /// # Panics
    /// When a length is not n.
    pub fn gather<T: Scalar>(&self, x: &[T], new_x: &mut [T]) {
        assert_eq!((x.len(), new_x.len()), (self.len(), self.len()), "lengths");
        for (y, &old) in new_x.iter_mut().zip(&*self.order) {
            *y = x[old as usize];
        }
    }

    /// `x[order[new]] = new_x[new]`, the inverse of [`Permutation::gather`].
    ///
    /// # Panics
    /// When a length is not n.
    pub fn scatter<T: Scalar>(&self, new_x: &[T], x: &mut [T]) {
        assert_eq!((x.len(), new_x.len()), (self.len(), self.len()), "lengths");
        for (y, &old) in new_x.iter().zip(&*self.order) {
            x[old as usize] = *y;
        }
    }
}

/// Whether an order of 0..n (every index once) is an odd permutation: n minus the number of its cycles is odd.
pub fn is_odd(order: &[u32]) -> bool {
    let mut seen = vec![false; order.len()];
    let mut odd = order.len() % 2 == 1;
    for start in 0..order.len() {
        let mut i = start;
        odd ^= !seen[i];
        while !std::mem::replace(&mut seen[i], true) {
            i = order[i] as usize;
        }
    }
    odd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parity() {
        assert!(!is_odd(&[]) && !is_odd(&[0, 1, 2]));
        assert!(is_odd(&[1, 0, 2]));
        assert!(!is_odd(&[1, 2, 0]));
        assert!(is_odd(&[1, 2, 3, 0]));
    }
}
