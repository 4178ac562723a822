//! Products with a distributed matrix, the exchange hidden behind the part of A that needs none; residuals and certificates of whole systems.
//!
//! ```text
//! start:    send the entries of x that others need, receive the halo xₕ
//! meanwhile y ← α·A₀·x + β·y                                all own rows, own columns
//! then      y_b ← y_b + α·X·xₕ                               the rows with columns of the halo
//! ```
//!
//! With one rank X has no rows and the bits are those of the product with A.
//!
//! Counted, a product on a rank: `halo().n_sends()` messages of s·`halo().n_sent()` bytes, s the size of a scalar; 2·nnz flops (8·nnz
//! for complex ones). A certificate: one exchange and two collectives more.

use bt_formats::{
    Certificate, Csr, LinearOperator, Op, RealScalar, Scalar, Scaled, certify_with_residual, max_abs, zero,
};
use faer::{MatMut, MatRef};

use crate::comm::{Comm, Number};
use crate::csr::DistributedCsr;
use crate::error::{Fault, Result, agree};

impl<T: Number, C: Comm> DistributedCsr<'_, T, C> {
    /// y ← α·A·x + β·y for the own rows of x and y. β = 0 never reads y. All ranks call.
    ///
    /// # Errors
    /// Those of the communicator; y is then of no use.
    ///
    /// # Panics
    /// When a length is not that of the own rows.
    ///
    /// # Cost
    /// One exchange of the halo, and 2·nnz flops.
    pub fn apply(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) -> Result<()> {
        let mut halo = self.received.borrow_mut();
        self.halo.exchange(self.comm, x, &mut halo, || self.local.apply(alpha, x, beta, y))?;
        for (k, &i) in self.boundary.iter().enumerate() {
            let (cols, values) = self.external.row(k);
            // y_b ← y_b + α·X·xₕ
            let sum: T = cols.iter().zip(values).map(|(&j, &v)| v * halo[j as usize]).sum();
            y[i as usize] += alpha * sum;
        }
        Ok(())
    }

    /// The certificate of x as solution of A·x = b over the whole system, the same numbers on every rank, from residuals in twice the
    /// precision as [`bt_formats::certify`] takes them. A collective. Takes a copy of the own rows for its time.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] where x or b have another length than the own rows; those of the communicator.
    pub fn certify(&self, x: &[T], b: &[T]) -> Result<Certificate> {
        let m = self.rows().own().len();
        let lengths = if (x.len(), b.len()) == (m, m) {
            self.with_halo_columns()
        } else {
            Err(Fault::input(format!("{} and {} entries of x and b for {m} rows", x.len(), b.len())))
        };
        let a = agree(self.comm, lengths)?;
        let mut extended = x.to_vec();
        extended.resize(m + self.halo.len(), zero());
        let (own, halo) = extended.split_at_mut(m);
        self.halo.exchange(self.comm, own, halo, || {})?;
        let mut r = vec![zero::<T>(); m];
        let column = |v| MatRef::from_column_major_slice(v, m, 1);
        let certificate = certify_with_residual(
            &a,
            Op::Identity,
            MatRef::from_column_major_slice(&extended, extended.len(), 1),
            column(b),
            MatMut::from_column_major_slice_mut(&mut r, m, 1),
        );
        if self.comm.size() == 1 {
            return Ok(certificate);
        }
        self.over_all_ranks(certificate, x, b, &r)
    }

    /// From the certificate and the residual of the own rows.
    fn over_all_ranks(&self, own: Certificate, x: &[T], b: &[T], r: &[T]) -> Result<Certificate> {
        // A rank without rows has nothing that is not finite.
        let finite = own.backward_error.is_finite() || r.iter().all(|v| Scalar::is_finite(*v));
        let mut largest = [
            if finite { own.componentwise_backward_error } else { f64::INFINITY },
            if finite { max_abs(r) } else { f64::INFINITY },
            max_abs(x),
            max_abs(b),
        ];
        self.comm.all_max(&mut largest)?;
        let [componentwise, norm_r, norm_x, norm_b] = largest;
        if !norm_r.is_finite() {
            let infinite = f64::INFINITY;
            return Ok(Certificate {
                relative_residual: infinite,
                backward_error: infinite,
                componentwise_backward_error: infinite,
            });
        }
        // ‖r‖₂ and ‖b‖₂ relative to the largest entry.
        let square = |v: &[T], largest: f64| -> f64 {
            let scale = if largest > 0.0 { largest } else { 1.0 };
            v.iter().map(|v| (v.re().to_f64() / scale).powi(2) + (v.im().to_f64() / scale).powi(2)).sum()
        };
        let mut squares = [square(r, norm_r), square(b, norm_b)];
        self.comm.all_sum(&mut squares)?;
        let scaled = Scaled::new;
        let ratio = |numerator: Scaled, denominator: Scaled| match (numerator.is_zero(), denominator.is_zero()) {
            (true, _) => 0.0,
            (false, true) => f64::INFINITY,
            (false, false) => (numerator / denominator).to_f64(),
        };
        Ok(Certificate {
            relative_residual: ratio(
                scaled(norm_r) * scaled(squares[0].sqrt()),
                scaled(norm_b) * scaled(squares[1].sqrt()),
            ),
            // ‖r‖∞ / (‖A‖∞·‖x‖∞ + ‖b‖∞)
            backward_error: ratio(scaled(norm_r), scaled(self.norm_inf()) * scaled(norm_x) + scaled(norm_b)),
            componentwise_backward_error: componentwise,
        })
    }

    /// [A₀ X] as one matrix, own columns first.
    fn with_halo_columns(&self) -> Result<Csr<T>, Fault> {
        let m = self.rows().own().len();
        let (mut ptr, mut cols, mut values) = (vec![0u32], Vec::new(), Vec::new());
        for i in 0..m {
            for (j, v) in self.row(i) {
                cols.push(j);
                values.push(v);
            }
            ptr.push(cols.len() as u32);
        }
        Ok(Csr::new(m, m + self.halo.len(), ptr, cols, values)?)
    }
}
