//! SSOR's approximate inverse on the device: the two or four products of [`bt_iter::SsorAi`], or the one of [`SsorAiMasked`].
//!
//! R. Helfenstein, J. Koko, J. Comput. Appl. Math. 236 (2012) 3584–3590, doi:10.1016/j.cam.2011.04.025. A product and the vector
//! operations around it are one launch (`kernels/sweep.cu`):
//!
//! ```text
//! order 1   y ← (2−ω)·D̄⁻¹·(r − N·r),  z ← y − Nᴴ·y
//! order 2   t ← r − N·r,  y ← (2−ω)·D̄⁻¹·(r − N·t),  t ← y − Nᴴ·y,  z ← y − Nᴴ·t
//! ip        y ← r − Nᴴ·r,  z ← y − N·y
//! masked    z ← M̄_A·r
//! ```
//!
//! Storage: N and Nᴴ in compressed rows and D̄⁻¹, or only D̄⁻¹ and the places of the diagonal in A; one vector of work, of order 2 two. M̄_A
//! is as large as A, and the host makes it. Traffic of order 1, s bytes a value, z entries off the diagonal: z(s + 4) + 8n + 5s·n bytes and
//! gathers, read from A 8n + s·n and gathers of D̄⁻¹ more; of order 2 twice the entries, 16n + 9s·n. Of M̄_A: nnz(s + 4) + 4n + s·n.

use std::sync::Arc;

use bt_formats::{Csr, LinearOperator, Matrix, RealScalar, Scalar};
use bt_iter::{Series, SsorAiMasked, Triangles, positive_diagonal};

use crate::device::{Device, DeviceScalar, DeviceVec, Result};
use crate::preconditioner::{Apply, InverseFacts};
use crate::spmv::DeviceCsr;
use crate::sweep::{Rows, Step, Sweep, SweepKernel};

/// What keeps the rows: N and Nᴴ; or A, which is counted elsewhere, and where its diagonal is.
enum Stored<T: DeviceScalar> {
    Copies(Box<[DeviceCsr<T>; 2]>),
    OfMatrix { _matrix: Arc<DeviceCsr<T>>, diagonal: DeviceVec<u32> },
}

pub(crate) struct SsorAi<T: DeviceScalar> {
    series: Series,
    stored: Stored<T>,
    /// N; N with the factor (2−ω)·D̄⁻¹; Nᴴ.
    lower: Rows,
    scaled: Rows,
    upper: Rows,
    kernel: SweepKernel,
    nnz: usize,
    /// D̄⁻¹
    inverses: DeviceVec<T>,
    work: DeviceVec<T>,
}

impl<T: DeviceScalar> SsorAi<T> {
    /// From `a` symmetric with a positive diagonal; its triangles are read from `matrix`, or copied where there is none.
    ///
    /// # Errors
    /// As [`bt_iter::SsorAi::with_options`]; errors of the device.
    pub fn new(
        device: &Device,
        a: &Csr<T>,
        matrix: Option<Arc<DeviceCsr<T>>>,
        omega: f64,
        series: Series,
    ) -> Result<Self> {
        // All checks.
        bt_iter::SsorAi::with_options(a, omega, series, Triangles::OfMatrix)?;
        let omega = if series == Series::IncompletePoisson { 1.0 } else { omega };
        let n = a.nrows();
        let diagonal = positive_diagonal(a, "ssor-ai")?;
        let host: Vec<T> = diagonal.iter().map(|d| T::rounded(omega / d.to_f64(), 0.0)).collect();
        let inverses = DeviceVec::from_slice(device, &host)?;
        let (stored, lower, upper) = if let Some(matrix) = matrix {
            let place = |i: usize| a.row_ptr()[i] + a.row(i).0.partition_point(|&j| (j as usize) < i) as u32;
            let diagonal = DeviceVec::from_slice(device, &(0..n).map(place).collect::<Vec<_>>())?;
            let all = Rows::all(n, matrix.addresses());
            let lower = Rows { end: diagonal.address(), right: inverses.address(), ..all };
            let upper = Rows { begin: diagonal.address(), skip: 1, left: inverses.address(), ..all };
            (Stored::OfMatrix { _matrix: matrix, diagonal }, lower, upper)
        } else {
            let copy = |keep: fn(usize, usize) -> bool| DeviceCsr::new(device, &triangle(a, &host, keep)?);
            let copies = [copy(|i, j| j < i)?, copy(|i, j| j > i)?];
            let [lower, upper] = copies.each_ref().map(|copy| Rows::all(n, copy.addresses()));
            (Stored::Copies(Box::new(copies)), lower, upper)
        };
        let work = if series == Series::Second { 2 * n } else { n };
        let copied = if matches!(stored, Stored::Copies(_)) { a.nnz() - n } else { 0 };
        Ok(Self {
            series,
            stored,
            lower,
            scaled: Rows { factor: inverses.address(), scale: 2.0 - omega, ..lower },
            upper,
            kernel: SweepKernel::new::<T>(device, a.nnz() / 2, n)?,
            nnz: copied + n,
            inverses,
            work: DeviceVec::uninitialized(device, work)?,
        })
    }
}

/// The entries of N = L·D̄⁻¹ or of Nᴴ: those of A in the triangle, times D̄⁻¹ of the lesser index.
fn triangle<T: Scalar>(a: &Csr<T>, inverses: &[T], keep: fn(usize, usize) -> bool) -> Result<Csr<T>> {
    let n = a.nrows();
    let (mut ptr, mut idx, mut val) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let (cols, vals) = a.row(i);
        for (&j, &v) in cols.iter().zip(vals).filter(|(j, _)| keep(i, **j as usize)) {
            idx.push(j);
            val.push(v * inverses[i.min(j as usize)]);
        }
        ptr.push(idx.len() as u32);
    }
    Ok(Csr::new(n, n, ptr, idx, val)?)
}

impl<T: DeviceScalar> SsorAi<T> {
    fn sweeps(&self, r: u64, z: u64) -> Vec<Sweep> {
        let y = self.work.address();
        let t = y + self.inverses.bytes() as u64;
        let Self { kernel, lower, scaled, upper, .. } = self;
        match self.series {
            Series::First => vec![kernel.sweep(scaled, r, r, y), kernel.sweep(upper, y, y, z)],
            Series::Second => vec![
                kernel.sweep(lower, r, r, t),
                kernel.sweep(scaled, r, t, y),
                kernel.sweep(upper, y, y, t),
                kernel.sweep(upper, y, t, z),
            ],
            Series::IncompletePoisson => vec![kernel.sweep(upper, r, r, y), kernel.sweep(lower, y, y, z)],
        }
    }
}

impl<T: DeviceScalar> Apply<T> for SsorAi<T> {
    fn enqueue(&self, r: u64, z: u64, now: u64) -> Result<()> {
        self.kernel.run(&self.sweeps(r, z), now)
    }

    fn parts(&self, r: u64, z: u64) -> Option<Vec<Step>> {
        Some(self.sweeps(r, z).into_iter().map(Step::Sweep).collect())
    }

    fn facts(&self) -> InverseFacts {
        let launches = if self.series == Series::Second { 4 } else { 2 };
        InverseFacts { nnz: self.nnz, launches, ..InverseFacts::default() }
    }

    fn bytes(&self) -> usize {
        let stored = match &self.stored {
            Stored::Copies(copies) => copies.iter().map(DeviceCsr::bytes).sum(),
            Stored::OfMatrix { diagonal, .. } => diagonal.bytes(),
        };
        stored + self.inverses.bytes() + self.work.bytes()
    }
}

pub(crate) struct Masked<T: DeviceScalar> {
    matrix: DeviceCsr<T>,
    rows: Rows,
    kernel: SweepKernel,
    nnz: usize,
}

impl<T: DeviceScalar> Masked<T> {
    /// M̄_A of `a`, made by the host.
    ///
    /// # Errors
    /// As [`SsorAiMasked::with_options`]; errors of the device.
    pub fn new(device: &Device, a: &Csr<T>, omega: f64) -> Result<Self> {
        let m = SsorAiMasked::with_options(a, omega)?;
        let (matrix, nnz) = (DeviceCsr::new(device, m.matrix())?, a.nnz());
        let rows = Rows::all(a.nrows(), matrix.addresses());
        Ok(Self { matrix, rows, kernel: SweepKernel::new::<T>(device, nnz, a.nrows())?, nnz })
    }
}

impl<T: DeviceScalar> Apply<T> for Masked<T> {
    fn enqueue(&self, r: u64, z: u64, now: u64) -> Result<()> {
        self.kernel.run(&[self.kernel.sweep(&self.rows, 0, r, z)], now)
    }

    fn parts(&self, r: u64, z: u64) -> Option<Vec<Step>> {
        Some(vec![Step::Sweep(self.kernel.sweep(&self.rows, 0, r, z))])
    }

    fn facts(&self) -> InverseFacts {
        InverseFacts { nnz: self.nnz, launches: 1, ..InverseFacts::default() }
    }

    fn bytes(&self) -> usize {
        self.matrix.bytes()
    }
}
