//! Group-independent sets: groups of unknowns of which no two are coupled.
//!
//! Groups grow breadth first in the graph of A + Aᵀ; when one has its size, the neighbours that it did not take are left
//! for the complement. Y. Saad, B. Suchomel, Numer. Linear Algebra Appl. 9 (2002) 359–378, doi:10.1002/nla.279, §3.
//!
//! Non-standard: an unknown with many couplings goes to the complement from the start, since a group around it would
//! send all its neighbours there. Cost: O(nnz), and a transpose.

use bt_formats::{Csr, LinearOperator, Matrix, Scalar};

/// Couplings, in units of the mean, that make a hub.
const HUB: usize = 4;

/// Groups one after the other: group k is `members[offsets[k]..offsets[k + 1]]`.
#[derive(Debug)]
pub(super) struct Groups {
    pub members: Vec<u32>,
    pub offsets: Vec<u32>,
}

impl Groups {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.offsets.windows(2).map(|w| &self.members[w[0] as usize..w[1] as usize])
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Membership {
    Free,
    Grouped,
    Left,
}

/// Groups of at most `size` unknowns of a square matrix.
pub(super) fn independent_groups<T: Scalar>(a: &Csr<T>, size: usize) -> Groups {
    let n = a.nrows();
    let transpose = a.transpose();
    let couplings = |v: usize| a.row(v).0.len() + transpose.row(v).0.len();
    let hub = (2 * size).max(HUB * 2 * a.nnz() / n.max(1));
    let mut state: Vec<Membership> =
        (0..n).map(|v| if couplings(v) > hub { Membership::Left } else { Membership::Free }).collect();
    let mut groups = Groups { members: Vec::with_capacity(n), offsets: vec![0] };
    for seed in 0..n {
        if state[seed] != Membership::Free {
            continue;
        }
        let start = groups.members.len();
        let mut head = start;
        state[seed] = Membership::Grouped;
        groups.members.push(seed as u32);
        while let Some(&v) = groups.members.get(head) {
            head += 1;
            for &u in a.row(v as usize).0.iter().chain(transpose.row(v as usize).0) {
                if state[u as usize] != Membership::Free {
                    continue;
                }
                if groups.members.len() - start < size {
                    state[u as usize] = Membership::Grouped;
                    groups.members.push(u);
                } else {
                    state[u as usize] = Membership::Left;
                }
            }
        }
        groups.offsets.push(groups.members.len() as u32);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(m: usize) -> Csr<f64> {
        bt_testkit::stencil(m, 0.2)
    }

    #[test]
    fn a_line_is_cut_behind_every_group() {
        let line = Csr::from_dense(faer::Mat::from_fn(7, 7, |i, j| if i.abs_diff(j) < 2 { 1.0 } else { 0.0 }).as_ref());
        let groups = independent_groups(&line.unwrap(), 2);
        assert_eq!(groups.iter().collect::<Vec<_>>(), [&[0, 1][..], &[3, 4], &[6]]);
    }

    #[test]
    fn no_two_groups_are_coupled() {
        let a = grid(20);
        for size in [1, 4, 30, 1000] {
            let groups = independent_groups(&a, size);
            let mut group_of = vec![usize::MAX; 400];
            for (k, group) in groups.iter().enumerate() {
                assert!((1..=size).contains(&group.len()));
                for &v in group {
                    assert_eq!(std::mem::replace(&mut group_of[v as usize], k), usize::MAX, "taken twice");
                }
            }
            for i in 0..400 {
                for &j in a.row(i).0 {
                    let (k, l) = (group_of[i], group_of[j as usize]);
                    assert!(k == l || k == usize::MAX || l == usize::MAX, "{i} and {j}, groups of {size}");
                }
            }
            assert!(groups.members.len() >= 400 / 3, "groups of {size} leave too much");
        }
    }

    #[test]
    fn hubs_stay_out() {
        // An arrow: the last unknown is coupled with all others.
        let arrow =
            faer::Mat::from_fn(50, 50, |i, j| if i == j || i == 49 || j == 49 { 1.0 + f64::from(i == j) } else { 0.0 });
        let groups = independent_groups(&Csr::from_dense(arrow.as_ref()).unwrap(), 5);
        assert_eq!((groups.members.len(), groups.offsets.len()), (49, 50));
    }
}
