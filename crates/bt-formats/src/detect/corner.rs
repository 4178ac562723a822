//! Entries far from the diagonal that are confined to the corners (periodic) or to a border (arrowhead).
//!
//! ```text
//! periodic, w = 1, b = 1        arrowhead, last, w = 1, b = 1
//! [ × ×       × ]               [ × ×       × ]
//! [ × × ×       ]               [ × × ×     × ]
//! [   × × ×     ]               [   × × ×   × ]
//! [     × × ×   ]               [     × × × × ]
//! [ ×     . × × ]               [ × × × × × × ]
//! ```
//!
//! **Periodic.** Let d = |i − j| run over the non-zeros. b = max {d : d ≤ n/2}, w = max {n − d : d > n/2}. The matrix
//! is a band of half-width b with corners of width w when w ≥ 1 and b + w ≤ n/2: between the two, at least half of all
//! distances are empty.
//!
//! **Arrowhead.** Let B(t) be the half-bandwidth of what is left when the last (first) t rows and columns are taken
//! away; B decreases in t. The border is the smallest t that minimises t + B(t), the half-width of a band that pays for
//! the border as well; it is recognised when that is at most B(0)/2 and t ≥ 1. The better side wins, the last on a tie.
//!
//! A periodic matrix is also an arrowhead with t = w; it is called periodic. Cost: O(nnz + n), 8n bytes.

use std::fmt;

use crate::csr::Csr;
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::reorder::for_each_nonzero;
use crate::scalar::Scalar;

/// Which end of the index range a border stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// First rows and columns.
    First,
    /// Last rows and columns.
    Last,
}

/// Where the far entries stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Corner {
    /// No such confinement.
    None,
    /// Cyclic: all far entries have |i − j| ≥ n − width, in the top right and bottom left corners.
    Periodic {
        /// Size w of the corner blocks.
        width: usize,
        /// Half-bandwidth of the rest.
        inner_bandwidth: usize,
    },
    /// Bordered: all far entries stand in the first or last `width` rows and columns.
    Arrowhead {
        /// At which end.
        side: Side,
        /// Rows and columns of the border.
        width: usize,
        /// Half-bandwidth of the rest.
        inner_bandwidth: usize,
    },
}

impl fmt::Display for Corner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no corners"),
            Self::Periodic { width, inner_bandwidth } => {
                write!(f, "periodic: corners of width {width} on a band of half-width {inner_bandwidth}")
            }
            Self::Arrowhead { side, width, inner_bandwidth } => write!(
                f,
                "arrowhead: the {} {width} rows and columns border a band of half-width {inner_bandwidth}",
                if *side == Side::First { "first" } else { "last" }
            ),
        }
    }
}

/// Recognises a periodic or bordered matrix; the rules stand at the head of this module's source.
///
/// # Errors
/// [`crate::Error::NotSquare`].
///
/// # Cost
/// O(nnz + n).
pub fn corner<T: Scalar>(a: &Csr<T>) -> Result<Corner> {
    a.check_square()?;
    let n = a.nrows();
    let (mut b, mut w) = (0, 0);
    // Furthest coupling of index m with a smaller index, and with a larger one.
    let (mut before, mut after) = (vec![0u32; n], vec![0u32; n]);
    for_each_nonzero(a, |i, j| {
        let d = i.abs_diff(j);
        if 2 * d <= n {
            b = b.max(d);
        } else {
            w = w.max(n - d);
        }
        let (low, high) = (i.min(j), i.max(j));
        before[high] = before[high].max(d as u32);
        after[low] = after[low].max(d as u32);
    });
    if w >= 1 && 2 * (b + w) <= n {
        return Ok(Corner::Periodic { width: w, inner_bandwidth: b });
    }
    let full = before.iter().max().map_or(0, |&d| d as usize);
    let last = border(before.iter());
    let first = border(after.iter().rev());
    let (side, (width, inner_bandwidth)) =
        if first.0 + first.1 < last.0 + last.1 { (Side::First, first) } else { (Side::Last, last) };
    if width >= 1 && 2 * (width + inner_bandwidth) <= full {
        return Ok(Corner::Arrowhead { side, width, inner_bandwidth });
    }
    Ok(Corner::None)
}

/// (t, B(t)) for the smallest t that minimises t + B(t); `reach` gives the furthest coupling of each index with the
/// ones before it, the border coming last.
fn border<'a>(reach: impl ExactSizeIterator<Item = &'a u32>) -> (usize, usize) {
    let n = reach.len();
    let mut best = (n, 0);
    let mut inner = 0;
    // Without the last t = n − 1 − m indices, B(t) is the maximum over the first m + 1.
    for (m, &d) in reach.enumerate() {
        inner = inner.max(d as usize);
        let t = n - 1 - m;
        if t + inner <= best.0 + best.1 {
            best = (t, inner);
        }
    }
    best
}
