//! B ≈ L·U group by group, by ILUT with rows that have no good pivot sent to the complement.
//!
//! A row whose pivot is below δ times its largest entry in A is taken out of its group, with its column: what is left of
//! the group is still independent of the others, the factors are those of the smaller B, and the row meets a better pivot
//! on a later level. No pivot is replaced here. The rows of B⁻¹F then stay within about 1/δ of those of F.
//!
//! Cost: the flops of the entries kept, and g² a group of g rows to look for them.

use bt_direct::Result;
use bt_formats::{Csr, LinearOperator, RealScalar, Scalar, norm2, one, zero};

use super::ArmsOptions;
use super::groups::Groups;
use super::sparse_row::in_chunks;
use crate::blas1::divide;
use crate::ilut::keep_largest;
use crate::triangular::Rows;

/// Factors of the groups; columns count from the first row of the group.
pub(super) struct Interior<T> {
    /// Rows of A, group after group.
    pub members: Vec<u32>,
    /// Rows of each group.
    pub sizes: Vec<usize>,
    pub lower: Rows<T>,
    pub upper: Rows<T>,
    pub reciprocals: Vec<T>,
    /// Rows that were sent to the complement.
    pub rejected: usize,
}

const NONE: u32 = u32::MAX;

struct Workspace<T> {
    /// Place in the group of each row of A.
    place: Vec<u32>,
    /// Number of each place among those kept.
    number: Vec<u32>,
    w: Vec<T>,
    upper: Rows<T>,
    left: Vec<u32>,
    right: Vec<u32>,
}

impl<T: Scalar> Interior<T> {
    fn none() -> Self {
        Self {
            members: Vec::new(),
            sizes: Vec::new(),
            lower: Rows::none(),
            upper: Rows::none(),
            reciprocals: Vec::new(),
            rejected: 0,
        }
    }

    /// All groups, in parallel.
    pub fn new(a: &Csr<T>, groups: &Groups, options: &ArmsOptions) -> Result<Self> {
        let workspace = || Workspace {
            place: vec![NONE; a.nrows()],
            number: Vec::new(),
            w: Vec::new(),
            upper: Rows::none(),
            left: Vec::new(),
            right: Vec::new(),
        };
        let groups: Vec<&[u32]> = groups.iter().collect();
        let parts = in_chunks(groups.len(), workspace, |work, range| {
            let mut out = Self::none();
            for group in &groups[range] {
                out.add(a, group, options, work);
            }
            out
        });
        let mut all = Self::none();
        for mut part in parts {
            all.members.append(&mut part.members);
            all.sizes.append(&mut part.sizes);
            all.lower.append(part.lower)?;
            all.upper.append(part.upper)?;
            all.reciprocals.append(&mut part.reciprocals);
            all.rejected += part.rejected;
        }
        Ok(all)
    }

    fn add(&mut self, a: &Csr<T>, group: &[u32], options: &ArmsOptions, work: &mut Workspace<T>) {
        let Workspace { place, number, w, upper, left, right } = work;
        let m = group.len();
        for (k, &v) in group.iter().enumerate() {
            place[v as usize] = k as u32;
        }
        upper.idx.clear();
        upper.val.clear();
        upper.ptr.truncate(1);
        number.clear();
        number.resize(m, NONE);
        let first = self.members.len();
        for i in 0..m {
            let (cols, vals) = a.row(group[i] as usize);
            let threshold = options.interior.drop_tolerance * norm2(vals);
            let mut largest = zero::<T::Real>();
            w.clear();
            w.resize(m, zero());
            for (&j, &v) in cols.iter().zip(vals) {
                largest = largest.max_nan(v.abs());
                if let Some(w) = w.get_mut(place[j as usize] as usize) {
                    *w = v;
                }
            }
            left.clear();
            for k in 0..i {
                if number[k] == NONE || w[k] == zero() || w[k].abs().to_f64() < threshold {
                    continue;
                }
                // lᵢₖ ← wₖ/uₖₖ;  w ← w − lᵢₖ·uₖ
                let l: T = w[k] * self.reciprocals[first + number[k] as usize];
                w[k] = l;
                left.push(k as u32);
                for (j, u) in upper.row(number[k] as usize) {
                    w[j as usize] -= l * u;
                }
            }
            let reciprocal = divide(one::<T>(), w[i]);
            let limit = T::Real::from_f64(options.pivot_threshold) * largest;
            if !(w[i].abs() >= limit && Scalar::is_finite(reciprocal)) {
                continue;
            }
            right.clear();
            right
                .extend((i + 1..m).filter(|&j| w[j] != zero() && !(w[j].abs().to_f64() < threshold)).map(|j| j as u32));
            keep_largest(left, options.interior.fill, w);
            keep_largest(right, options.interior.fill, w);
            number[i] = (self.members.len() - first) as u32;
            self.members.push(group[i]);
            self.reciprocals.push(reciprocal);
            self.lower.idx.extend(left.iter().map(|&k| number[k as usize]));
            self.lower.val.extend(left.iter().map(|&k| w[k as usize]));
            self.lower.ptr.push(self.lower.idx.len() as u32);
            upper.val.extend(right.iter().map(|&j| w[j as usize]));
            upper.idx.append(right);
            upper.ptr.push(upper.idx.len() as u32);
        }
        // Columns of U without those of the rows sent away.
        let kept = self.members.len() - first;
        for k in 0..kept {
            for (j, u) in upper.row(k).filter(|(j, _)| number[*j as usize] != NONE) {
                self.upper.idx.push(number[j as usize]);
                self.upper.val.push(u);
            }
            self.upper.ptr.push(self.upper.idx.len() as u32);
        }
        for &v in group {
            place[v as usize] = NONE;
        }
        if kept > 0 {
            self.sizes.push(kept);
        }
        self.rejected += m - kept;
    }
}
