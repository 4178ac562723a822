//! y ← αAx + βy on the device: compressed rows, diagonals, hybrid block-tridiagonal matrices.
//!
//! Compressed rows have four kernels. A thread a row suits rows of a few entries; eight lanes or a warp a row read longer
//! ones side by side; where rows differ much, groups of rows with as many entries each are multiplied into shared memory and
//! summed by segments, as J. L. Greathouse, M. Daga, SC14, doi:10.1109/SC.2014.68 do (their CSR-Stream and CSR-Vector).
//!
//! Storage and traffic are those of the host's formats. A row is summed in one fixed order.

use bt_formats::{BlockTridiagonal, Csr, Dia, DiagonalBlocks, Error as InputError, LinearOperator, Matrix, Scalar};

use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};

/// How the rows of a matrix are dealt out to threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowRule {
    /// A thread a row.
    Thread,
    /// Eight lanes a row.
    Eight,
    /// A warp a row.
    Warp,
    /// Products into shared memory, then sums of segments.
    Segments,
}

impl RowRule {
    /// From the lengths of the rows: segments where the longest row has over 32 entries and eight times the mean, else about
    /// as many lanes as a row has entries. The limits are reasoned, not measured.
    pub fn for_rows<T: Scalar>(a: &Csr<T>) -> Self {
        let longest = a.row_ptr().windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0) as usize;
        let mean = a.values().len().div_ceil(a.nrows().max(1));
        if longest > 32.max(8 * mean) {
            Self::Segments
        } else if mean <= 8 {
            Self::Thread
        } else if mean <= 48 {
            Self::Eight
        } else {
            Self::Warp
        }
    }

    /// As [`RowRule::for_rows`] where a row's sum goes on as one of a method's: groups of rows do not carry those along.
    pub(crate) fn for_sums<T: Scalar>(a: &Csr<T>) -> Self {
        match Self::for_rows(a) {
            Self::Segments => Self::Eight,
            other => other,
        }
    }

    /// Lanes of a row; segments share a block.
    pub(crate) fn lanes(self) -> u32 {
        match self {
            Self::Thread | Self::Segments => 1,
            Self::Eight => 8,
            Self::Warp => 32,
        }
    }

    fn kernel(self) -> &'static str {
        match self {
            Self::Thread => "csr_thread",
            Self::Eight => "csr_eight",
            Self::Warp => "csr_warp",
            Self::Segments => "csr_segments",
        }
    }
}

/// Entries that a block takes at once: TILE of kernels/spmv.cu.
const TILE: u32 = 2048;

/// A matrix in compressed rows on a device.
pub struct DeviceCsr<T: DeviceScalar> {
    size: Size,
    row_ptr: DeviceVec<u32>,
    col_idx: DeviceVec<u32>,
    values: DeviceVec<T>,
    rule: RowRule,
    /// First rows of the groups of `RowRule::Segments`, and the end.
    groups: Option<DeviceVec<u32>>,
    kernel: Kernel,
}

impl<T: DeviceScalar> DeviceCsr<T> {
    /// A copy of `a`, with the rule for its rows.
    ///
    /// # Errors
    /// Those of the device; [`InputError::NonFinite`] naming an entry.
    ///
    /// # Example
    /// ```
    /// use bt_formats::Csr;
    /// use bt_kernels::{Device, DeviceCsr, DeviceVec};
    /// let a = Csr::from_dense(faer::mat![[2.0, 1.0], [0.0, 4.0]].as_ref())?;
    /// if let Ok(device) = Device::open(0) {
    ///     let x = DeviceVec::from_slice(&device, &[1.0, 1.0])?;
    ///     let mut y = DeviceVec::from_slice(&device, &[0.0, 0.0])?;
    ///     DeviceCsr::new(&device, &a)?.apply(1.0, &x, 0.0, &mut y)?;
    ///     let mut host = [0.0; 2];
    ///     y.copy_to(&mut host)?;
    ///     assert_eq!(host, [3.0, 4.0]);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(device: &Device, a: &Csr<T>) -> Result<Self> {
        Self::with_options(device, a, RowRule::for_rows(a))
    }

    /// A copy of `a`, with a rule of choice.
    ///
    /// # Errors
    /// As [`DeviceCsr::new`].
    pub fn with_options(device: &Device, a: &Csr<T>, rule: RowRule) -> Result<Self> {
        a.check_finite()?;
        let groups = match rule {
            RowRule::Segments => Some(DeviceVec::from_slice(device, &groups(a.row_ptr()))?),
            _ => None,
        };
        Ok(Self {
            size: Size { nrows: a.nrows(), ncols: a.ncols() },
            row_ptr: DeviceVec::from_slice(device, a.row_ptr())?,
            col_idx: DeviceVec::from_slice(device, a.col_idx())?,
            values: DeviceVec::from_slice(device, a.values())?,
            rule,
            groups,
            kernel: device.kernel(Family::Spmv, &format!("{}_{}", rule.kernel(), T::SUFFIX))?,
        })
    }

    /// The rule in use.
    pub fn rule(&self) -> RowRule {
        self.rule
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.row_ptr.bytes()
            + self.col_idx.bytes()
            + self.values.bytes()
            + self.groups.as_ref().map_or(0, DeviceVec::bytes)
    }

    /// y ← αAx + βy; x has as many elements as A has columns, y as A has rows. β = 0 never reads y.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; errors of the device.
    ///
    /// # Cost
    /// nnz(s + 4) + 4(n + 1) + s·(ncols + n) bytes of traffic for values of s bytes, if x is read once; 2·nnz flops; one launch.
    pub fn apply(&self, alpha: T, x: &DeviceVec<T>, beta: T, y: &mut DeviceVec<T>) -> Result<()> {
        self.size.check(x, y)?;
        let rows = [self.row_ptr.arg(), self.col_idx.arg(), self.values.arg()];
        let vectors = [alpha.arg().0, x.arg(), beta.arg().0, y.arg()];
        let (shape, head) = if let Some(groups) = &self.groups {
            let count = groups.len() as u32 - 1;
            (Shape::blocks(count), vec![Arg::from(count), groups.arg()])
        } else {
            let n = self.size.nrows as u32;
            (Shape::over(u64::from(n) * u64::from(self.rule.lanes())), vec![Arg::from(n)])
        };
        self.kernel.launch(shape, &[&head[..], &rows, &vectors].concat())
    }

    pub(crate) fn addresses(&self) -> [u64; 3] {
        [self.row_ptr.address(), self.col_idx.address(), self.values.address()]
    }
}

/// First rows of groups of at most TILE entries, or of one row with more, and the end.
fn groups(row_ptr: &[u32]) -> Vec<u32> {
    let n = row_ptr.len() - 1;
    let mut first = vec![0];
    let mut low = 0;
    for i in 0..n {
        if i > low && row_ptr[i + 1] - row_ptr[low] > TILE {
            first.push(i as u32);
            low = i;
        }
    }
    if n > 0 {
        first.push(n as u32);
    }
    first
}

/// A matrix by diagonals on a device.
pub struct DeviceDia<T: DeviceScalar> {
    size: Size,
    offsets: DeviceVec<i32>,
    values: DeviceVec<T>,
    kernel: Kernel,
}

impl<T: DeviceScalar> DeviceDia<T> {
    /// A copy of `a`.
    ///
    /// # Errors
    /// Those of the device; [`InputError::NonFinite`] naming an entry.
    pub fn new(device: &Device, a: &Dia<T>) -> Result<Self> {
        check_finite(a)?;
        Ok(Self {
            size: Size { nrows: a.nrows(), ncols: a.ncols() },
            offsets: DeviceVec::from_slice(device, a.offsets())?,
            values: DeviceVec::from_slice(device, a.values())?,
            kernel: device.kernel(Family::Spmv, &format!("dia_{}", T::SUFFIX))?,
        })
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.offsets.bytes() + self.values.bytes()
    }

    /// y ← αAx + βy. β = 0 never reads y.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; errors of the device.
    ///
    /// # Cost
    /// s·(d·nrows + ncols + nrows) bytes of traffic for d diagonals, if x is read once; 2·d·nrows flops; one launch.
    pub fn apply(&self, alpha: T, x: &DeviceVec<T>, beta: T, y: &mut DeviceVec<T>) -> Result<()> {
        self.size.check(x, y)?;
        let [nrows, ncols] = [self.size.nrows, self.size.ncols].map(|n| Arg::from(n as u32));
        let diagonals = Arg::from(self.offsets.len() as u32);
        let matrix = [nrows, ncols, diagonals, self.offsets.arg(), self.values.arg()];
        let vectors = [alpha.arg().0, x.arg(), beta.arg().0, y.arg()];
        self.kernel.launch(Shape::over(self.size.nrows as u64), &[&matrix[..], &vectors].concat())
    }
}

/// A block-tridiagonal matrix on a device: the diagonal blocks by diagonals or dense, as on the host, the couplings in
/// compressed rows.
pub struct DeviceHybrid<T: DeviceScalar> {
    n: usize,
    /// The block of each row, and the first row of each block and the end.
    home: DeviceVec<u32>,
    first: DeviceVec<u32>,
    kl: u32,
    ku: u32,
    /// Where dense blocks begin.
    starts: Option<DeviceVec<u64>>,
    diagonal: DeviceVec<T>,
    row_ptr: DeviceVec<u32>,
    col_idx: DeviceVec<u32>,
    values: DeviceVec<T>,
    kernel: Kernel,
}

impl<T: DeviceScalar> DeviceHybrid<T> {
    /// A copy of `a`.
    ///
    /// # Errors
    /// Those of the device; [`InputError::NonFinite`] naming an entry.
    pub fn new(device: &Device, a: &BlockTridiagonal<T>) -> Result<Self> {
        check_finite(a)?;
        let partition = a.partition();
        let home: Vec<u32> =
            (0..partition.n_blocks()).flat_map(|j| partition.range(j).map(move |_| j as u32)).collect();
        let (kl, ku, starts, diagonal) = match a.diagonal() {
            DiagonalBlocks::Tridiagonal(t) => (1, 1, None, [t.lower(), t.diag(), t.upper()].concat()),
            DiagonalBlocks::Band { kl, ku, values } => (*kl as u32, *ku as u32, None, values.clone()),
            DiagonalBlocks::Dense { starts, values } => {
                (0, 0, Some(starts.iter().map(|&s| s as u64).collect::<Vec<_>>()), values.clone())
            }
            _ => {
                let why = "of a kind that the device does not know".into();
                return Err(InputError::InvalidStructure { what: "diagonal blocks", why }.into());
            }
        };
        let (row_ptr, col_idx, values) = couplings(a);
        Ok(Self {
            n: a.n(),
            home: DeviceVec::from_slice(device, &home)?,
            first: DeviceVec::from_slice(device, partition.offsets())?,
            kl,
            ku,
            starts: starts.map(|s| DeviceVec::from_slice(device, &s)).transpose()?,
            diagonal: DeviceVec::from_slice(device, &diagonal)?,
            row_ptr: DeviceVec::from_slice(device, &row_ptr)?,
            col_idx: DeviceVec::from_slice(device, &col_idx)?,
            values: DeviceVec::from_slice(device, &values)?,
            kernel: device.kernel(Family::Spmv, &format!("hybrid_{}", T::SUFFIX))?,
        })
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        let indices = [&self.home, &self.first, &self.row_ptr, &self.col_idx].map(DeviceVec::bytes);
        let starts = self.starts.as_ref().map_or(0, DeviceVec::bytes);
        indices.iter().sum::<usize>() + starts + self.diagonal.bytes() + self.values.bytes()
    }

    /// y ← αAx + βy. β = 0 never reads y.
    ///
    /// # Errors
    /// [`InputError::DimensionMismatch`]; errors of the device.
    ///
    /// # Cost
    /// That of the values and couplings of the format, 8n bytes of row and block numbers and 2s·n of vectors; one launch.
    pub fn apply(&self, alpha: T, x: &DeviceVec<T>, beta: T, y: &mut DeviceVec<T>) -> Result<()> {
        Size { nrows: self.n, ncols: self.n }.check(x, y)?;
        let args = [
            Arg::from(self.n as u32),
            self.home.arg(),
            self.first.arg(),
            Arg::from(self.kl),
            Arg::from(self.ku),
            self.starts.as_ref().map_or(Arg::Word(0), DeviceVec::arg),
            self.diagonal.arg(),
            self.row_ptr.arg(),
            self.col_idx.arg(),
            self.values.arg(),
            alpha.arg().0,
            x.arg(),
            beta.arg().0,
            y.arg(),
        ];
        self.kernel.launch(Shape::over(self.n as u64), &args)
    }
}

/// L + U in compressed rows.
pub(crate) fn couplings<T: Scalar>(a: &BlockTridiagonal<T>) -> (Vec<u32>, Vec<u32>, Vec<T>) {
    let (mut row_ptr, mut col_idx, mut values) = (vec![0; a.n() + 1], Vec::new(), Vec::new());
    let (partition, mut home) = (a.partition(), 0..0);
    a.for_each_entry(&mut |i, c, v| {
        if !home.contains(&i) {
            home = partition.range(partition.block_of(i));
        }
        if !home.contains(&c) {
            row_ptr[i + 1] += 1;
            col_idx.push(c as u32);
            values.push(v);
        }
    });
    for i in 0..a.n() {
        row_ptr[i + 1] += row_ptr[i];
    }
    (row_ptr, col_idx, values)
}

#[derive(Clone, Copy)]
struct Size {
    nrows: usize,
    ncols: usize,
}

impl Size {
    fn check<T: DeviceScalar>(self, x: &DeviceVec<T>, y: &DeviceVec<T>) -> Result<()> {
        for (what, expected, found) in [("length of x", self.ncols, x.len()), ("length of y", self.nrows, y.len())] {
            if expected != found {
                return Err(InputError::DimensionMismatch { what, expected, found }.into());
            }
        }
        Ok(())
    }
}

fn check_finite<T: Scalar, A: Matrix<T>>(a: &A) -> Result<(), InputError> {
    let mut found = None;
    a.for_each_entry(&mut |row, col, v| {
        if found.is_none() && !Scalar::is_finite(v) {
            found = Some(InputError::NonFinite { what: "matrix", row, col, value: v.to_string() });
        }
    });
    found.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_a_tile_or_one_long_row() {
        assert_eq!(groups(&[0]), [0]);
        assert_eq!(groups(&[0, 0]), [0, 1]);
        assert_eq!(groups(&[0, 1000, 2048, 2049]), [0, 2, 3]);
        assert_eq!(groups(&[0, 1, 5000, 5001, 5001]), [0, 1, 2, 4]);
    }
}
