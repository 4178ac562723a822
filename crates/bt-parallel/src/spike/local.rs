//! The part of one rank: factors of Aᵢ, the couplings with its neighbours, and the tips of its spikes.

use bt_direct::Factorization;
use bt_formats::zero;
use faer::{Mat, MatMut, MatRef};

use crate::comm::{Comm, Number};
use crate::csr::DistributedCsr;
use crate::error::{Fault, Result, agree};

/// The rows of a rank among those of all, and how far couplings reach.
pub(crate) struct OwnRows {
    pub first: usize,
    pub rows: usize,
    pub k: usize,
}

impl OwnRows {
    /// # Errors
    /// Rows that are not consecutive and in the order of the ranks, or fewer than k on a rank that has some.
    pub fn new<T: Number, C: Comm>(a: &DistributedCsr<'_, T, C>) -> Result<Self> {
        let (comm, own) = (a.comm(), a.rows().own());
        let first: usize = a.rows().counts()[..comm.rank()].iter().sum();
        let stray = own.iter().enumerate().find(|(i, g)| **g as usize != first + i);
        let in_order = match stray {
            Some((i, g)) => Err(Fault::input(format!(
                "its row {i} is row {g} of the system, and rows are taken in the order of the ranks: row {}",
                first + i
            ))),
            None => Ok(()),
        };
        agree(comm, in_order)?;
        let rows = own.len();
        // Columns of the halo lie before the first row or after the last.
        let reach = |&g: &u32| (first.saturating_sub(g as usize)).max((g as usize + 1).saturating_sub(first + rows));
        let mut k = [a.halo().rows().iter().map(reach).max().unwrap_or(0) as f64];
        comm.all_max(&mut k)?;
        let k = k[0] as usize;
        let enough = if rows == 0 || rows >= k {
            Ok(())
        } else {
            Err(Fault::input(format!(
                "it has {rows} rows, fewer than the {k} that couplings reach: give them to fewer ranks"
            )))
        };
        agree(comm, enough)?;
        Ok(Self { first, rows, k })
    }
}

/// Two blocks of k rows: of the first and of the last unknowns.
#[derive(Clone, Debug)]
pub(super) struct Tips<T> {
    pub top: Mat<T>,
    pub bottom: Mat<T>,
}

/// The tips of the neighbours: t_{i+1} and b_{i−1}; zero where there is none.
#[derive(Clone, Debug)]
pub(super) struct Around<T> {
    pub after: Mat<T>,
    pub before: Mat<T>,
}

/// The part of a rank that has rows.
pub(super) struct Local<T: Number> {
    factors: Box<dyn Factorization<T>>,
    /// Tips of V and W.
    pub v: Tips<T>,
    pub w: Tips<T>,
    /// For each entry of the halo its place in t_{i+1}, or in b_{i−1}.
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    After(usize),
    Before(usize),
}

impl<T: Number> Local<T> {
    pub fn new<C: Comm>(
        a: &DistributedCsr<'_, T, C>,
        shape: &OwnRows,
        factors: Box<dyn Factorization<T>>,
    ) -> Result<Self, Fault> {
        let OwnRows { first, rows, k } = *shape;
        if factors.n() != rows {
            return Err(Fault::input(format!("{} is for {} rows, not {rows}", factors.method(), factors.n())));
        }
        // Columns of the halo are within k of the range.
        let place = |&g: &u32| {
            let g = g as usize;
            if g < first { Place::Before(g + k - first) } else { Place::After(g - first - rows) }
        };
        let places: Vec<Place> = a.halo().rows().iter().map(place).collect();
        let mut local = Self { factors, v: Tips::zeros(k, k), w: Tips::zeros(k, k), places };
        let identity = Mat::identity(k, k);
        let none = Mat::zeros(k, k);
        // −V ← Aᵢ⁻¹·(−B̂),  −W ← Aᵢ⁻¹·(−Ĉ)
        let spike = |after: &Mat<T>, before: &Mat<T>| {
            let mut s = Mat::zeros(rows, k);
            local.subtract_couplings(a, &Around { after: after.clone(), before: before.clone() }, k, s.as_mut());
            local.factors.solve_in_place(s.as_mut());
            let tips = Tips::of(s.as_ref(), k);
            Tips { top: -tips.top, bottom: -tips.bottom }
        };
        let (v, w) = (spike(&identity, &none), spike(&none, &identity));
        (local.v, local.w) = (v, w);
        let tips = [&local.v.top, &local.v.bottom, &local.w.top, &local.w.bottom];
        if tips.iter().any(|t| (0..k).any(|j| t.col_as_slice(j).iter().any(|v| !bt_formats::Scalar::is_finite(*v)))) {
            return Err(Fault::new(
                crate::error::FaultKind::Breakdown,
                "spikes that are not finite: its part of the matrix is singular to working precision",
            ));
        }
        Ok(local)
    }

    /// X ← Aᵢ⁻¹·X
    pub fn solve(&self, x: MatMut<'_, T>) {
        self.factors.solve_in_place(x);
    }

    /// X ← X − B̂ᵢ·t_{i+1} − Ĉᵢ·b_{i−1}
    pub fn subtract_couplings<C: Comm>(
        &self,
        a: &DistributedCsr<'_, T, C>,
        around: &Around<T>,
        k: usize,
        mut x: MatMut<'_, T>,
    ) {
        debug_assert!(around.after.nrows() == k && around.before.nrows() == k);
        for (row, &i) in a.boundary.iter().enumerate() {
            let (cols, values) = a.external.row(row);
            for (&j, &v) in cols.iter().zip(values) {
                let (from, place) = match self.places[j as usize] {
                    Place::After(place) => (&around.after, place),
                    Place::Before(place) => (&around.before, place),
                };
                for q in 0..x.ncols() {
                    x[(i as usize, q)] -= v * from[(place, q)];
                }
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.factors.stats().bytes
            + super::bytes_of(&[&self.v.top, &self.v.bottom, &self.w.top, &self.w.bottom])
            + size_of_val(&*self.places)
    }
}

impl<T: Number> Tips<T> {
    /// The first and the last k rows.
    pub fn of(x: MatRef<'_, T>, k: usize) -> Self {
        Self { top: x.subrows(0, k).to_owned(), bottom: x.subrows(x.nrows() - k, k).to_owned() }
    }

    pub fn zeros(k: usize, nrhs: usize) -> Self {
        Self { top: Mat::zeros(k, nrhs), bottom: Mat::zeros(k, nrhs) }
    }

    /// One column after the other, top above bottom.
    pub fn pack(&self) -> Vec<T> {
        let columns = (0..self.top.ncols()).flat_map(|j| [self.top.col_as_slice(j), self.bottom.col_as_slice(j)]);
        columns.flatten().copied().collect()
    }

    /// From 2k·nrhs numbers.
    pub fn unpack(k: usize, nrhs: usize, packed: &[T]) -> Self {
        let entry = |i: usize, j: usize| packed.get(2 * k * j + i).copied().unwrap_or_else(zero);
        Self { top: Mat::from_fn(k, nrhs, entry), bottom: Mat::from_fn(k, nrhs, |i, j| entry(k + i, j)) }
    }
}
