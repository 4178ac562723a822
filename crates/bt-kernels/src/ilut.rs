//! ILUT(p, τ) on the device: a pattern found by parallel sweeps, then eliminated as ILU(0) is.
//!
//! ```text
//! S₀ = diagonal;   S ∪ A ∪ L·U  →  a sweep for all values  →  the p largest of either side of a row, none below τ  =  S₁;  a sweep;  …
//! ```
//!
//! H. Anzt, E. Chow, J. Dongarra, SIAM J. Sci. Comput. 40 (2018) C503–C519, doi:10.1137/16M1079506, with the sizes of [`bt_iter::ilut`]
//! and its threshold for each row. Departures: a sweep reads the values of the one before and not those of its neighbours, so that every run has the
//! same bits; the values that solves use are not those of the last sweep but of an elimination on the pattern found, one launch more, so
//! that what sweeps leave of A − L·U there does not depend on how many there were. With p or τ so generous that nothing is dropped, the factors
//! are those of Gaussian elimination.
//!
//! Each step is ten launches on all rows at once (`kernels/ilut.cu`) and brings fill of one level more; the search ends when a
//! step leaves the pattern as it was, and after [`STEPS`] in any case. The symmetric form, for CG, is that on the pattern with its
//! transpose, where every pivot has to be positive, as in IC(0).
//!
//! Storage beside the factors, during the search: A, and 12 + 2s bytes a candidate, of which a row has as many as A and the rows of U that its p
//! entries of L name.

use bt_formats::{Csr, Error as InputError, LinearOperator, norm2};
use bt_iter::{IlutOptions, TriangularSolves, column_units, positive_diagonal};

use crate::device::{Arg, Device, DeviceScalar, DeviceVec, Family, Kernel, Result, Shape};
use crate::ilu0::{Ilu0, Outside, Pattern, Pivots};
use crate::preconditioner::{Apply, InverseFacts, SearchFacts};
use crate::sweep::Step;

/// Steps of the search at most. Each brings a level of fill. On ten small matrices of the Matrix Market collection and two of grids, with p of
/// 5, 10 and 20, BiCGSTAB takes at most 1.3 times the steps that it takes with ILUT of the host after as many, but for `nos7` with p of 5 and 10;
/// after ten steps `gre_115` takes three times as many.
const STEPS: usize = 20;

/// Rows of L and U with the diagonal, on the device.
struct Rows<T: DeviceScalar> {
    ptr: DeviceVec<u32>,
    col: DeviceVec<u32>,
    diag: DeviceVec<u32>,
    val: DeviceVec<T>,
}

impl<T: DeviceScalar> Rows<T> {
    fn entries(&self) -> usize {
        self.col.len()
    }
}

/// Where L and U lie on the device, both by rows with the diagonal of U between them, and 1 / that diagonal.
#[derive(Clone, Copy)]
pub(crate) struct FactorsAt {
    pub ptr: u64,
    pub col: u64,
    pub diag: u64,
    pub val: u64,
    pub reciprocal: u64,
}

/// Where a kernel writes: rows of candidates, or nowhere.
#[derive(Clone, Copy, Default)]
struct CandidatesAt {
    ptr: u64,
    col: u64,
    diag: u64,
    val: u64,
    size: u64,
    keep: u64,
}

/// Candidates of all rows.
struct Candidates<T: DeviceScalar> {
    ptr: DeviceVec<u32>,
    col: DeviceVec<u32>,
    val: DeviceVec<T>,
    size: DeviceVec<f64>,
    keep: DeviceVec<u32>,
}

/// A and what a search has for every row.
struct Search<'a, T: DeviceScalar> {
    device: &'a Device,
    options: IlutOptions,
    n: usize,
    ptr: DeviceVec<u32>,
    col: DeviceVec<u32>,
    val: DeviceVec<T>,
    /// Units of the columns of A, where they differ.
    unit: Option<DeviceVec<T>>,
    /// ‖aᵢ‖ and ‖aᵢ·C‖; ‖uᵢ‖ and ‖uᵢ·C‖; 1 / uᵢᵢ.
    norm: DeviceVec<f64>,
    reach: DeviceVec<f64>,
    reciprocal: DeviceVec<T>,
    /// Diagonals of the candidates; entries of each row, and those left of the diagonal.
    diag: DeviceVec<u32>,
    counts: DeviceVec<u32>,
    left: DeviceVec<u32>,
    /// Squares of what is left of A − L·U, relative to the rows of A: all of it, and that on the pattern.
    left_over: DeviceVec<f64>,
    kernels: Kernels,
}

struct Kernels {
    count: Kernel,
    expand: Kernel,
    select: Kernel,
    compact: Kernel,
    sweep: Kernel,
    measure: Kernel,
    scan: Kernel,
    compare: Kernel,
}

impl<'a, T: DeviceScalar> Search<'a, T> {
    fn new(device: &'a Device, a: &Csr<T>, options: IlutOptions) -> Result<Self> {
        let n = a.nrows();
        let units = column_units(a);
        let mut norms = vec![0.0; 2 * n];
        for i in 0..n {
            let (cols, vals) = a.row(i);
            norms[i] = norm2(vals);
            norms[n + i] = match &units {
                None => norms[i],
                Some(units) => {
                    let scaled = cols.iter().zip(vals).map(|(&j, &v)| v * T::rounded(units[j as usize], 0.0));
                    norm2(&scaled.collect::<Vec<_>>())
                }
            };
        }
        let units = units.map(|units| units.into_iter().map(|u| T::rounded(u, 0.0)).collect::<Vec<_>>());
        let kernel = |name: &str| device.kernel(Family::Ilut, &format!("ilut_{name}_{}", T::SUFFIX));
        let words = |len| DeviceVec::<u32>::uninitialized(device, len);
        Ok(Self {
            device,
            options,
            n,
            ptr: DeviceVec::from_slice(device, a.row_ptr())?,
            col: DeviceVec::from_slice(device, a.col_idx())?,
            val: DeviceVec::from_slice(device, a.values())?,
            unit: units.map(|units| DeviceVec::from_slice(device, &units)).transpose()?,
            norm: DeviceVec::from_slice(device, &norms)?,
            reach: DeviceVec::uninitialized(device, 2 * n)?,
            reciprocal: DeviceVec::uninitialized(device, n)?,
            diag: words(n)?,
            counts: words(n)?,
            left: words(n)?,
            left_over: DeviceVec::uninitialized(device, 2 * n)?,
            kernels: Kernels {
                count: kernel("count")?,
                expand: kernel("expand")?,
                select: kernel("select")?,
                compact: kernel("compact")?,
                sweep: kernel("sweep")?,
                measure: kernel("measure")?,
                scan: device.kernel(Family::Ilut, "ilut_scan")?,
                compare: device.kernel(Family::Ilut, "ilut_compare")?,
            },
        })
    }

    /// A warp a row.
    fn shape(&self) -> Shape {
        Shape::over(32 * self.n as u64)
    }

    /// struct Search of the kernels.
    fn words(&self, factors: FactorsAt, cursor: u64, to: CandidatesAt) -> [u64; 22] {
        [
            self.n as u64 | (self.options.fill.min(self.n) as u64) << 32,
            self.ptr.address(),
            self.col.address(),
            self.val.address(),
            self.unit.as_ref().map_or(0, DeviceVec::address),
            self.norm.address(),
            factors.ptr,
            factors.col,
            factors.diag,
            factors.val,
            factors.reciprocal,
            self.reach.address(),
            cursor,
            to.ptr,
            to.col,
            to.diag,
            to.val,
            to.size,
            to.keep,
            self.counts.address(),
            self.left.address(),
            self.options.drop_tolerance.to_bits(),
        ]
    }

    fn at(&self, rows: &Rows<T>) -> FactorsAt {
        let [ptr, col, diag] = [&rows.ptr, &rows.col, &rows.diag].map(DeviceVec::address);
        FactorsAt { ptr, col, diag, val: rows.val.address(), reciprocal: self.reciprocal.address() }
    }

    fn candidates_at(&self, found: &Candidates<T>) -> CandidatesAt {
        let [ptr, col, keep] = [&found.ptr, &found.col, &found.keep].map(DeviceVec::address);
        CandidatesAt { ptr, col, diag: self.diag.address(), val: found.val.address(), size: found.size.address(), keep }
    }

    /// L = I and U = diag(A).
    fn diagonal(&self, a: &Csr<T>) -> Result<Rows<T>> {
        let all: Vec<u32> = (0..=self.n as u32).collect();
        let diagonal: Vec<T> = (0..self.n).map(|i| a.get(i, i)).collect();
        let each = DeviceVec::from_slice(self.device, &all[..self.n])?;
        Ok(Rows {
            ptr: DeviceVec::from_slice(self.device, &all)?,
            col: DeviceVec::from_slice(self.device, &all[..self.n])?,
            diag: each,
            val: DeviceVec::from_slice(self.device, &diagonal)?,
        })
    }

    /// Where rows of the counted lengths start, and their total.
    fn starts(&self) -> Result<(DeviceVec<u32>, usize)> {
        let ptr = DeviceVec::<u32>::uninitialized(self.device, self.n + 1)?;
        let total = DeviceVec::<u64>::uninitialized(self.device, 1)?;
        let args = [Arg::Word(self.n as u64), self.counts.arg(), ptr.arg(), total.arg()];
        self.kernels.scan.launch(Shape::blocks(1), &args)?;
        let mut count = [0];
        total.copy_to(&mut count)?;
        let Ok(count) = u32::try_from(count[0]) else {
            let (needed, limit) = (format!("{} entries", count[0]), "2^32 - 1".into());
            return Err(InputError::TooLarge { what: "the candidates of ilut", needed, limit }.into());
        };
        Ok((ptr, count as usize))
    }

    /// 1 / uᵢᵢ and ‖uᵢ‖.
    fn measure(&self, rows: &Rows<T>) -> Result<()> {
        let epsilon = if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let words = self.words(self.at(rows), 0, CandidatesAt::default());
        self.kernels.measure.launch(self.shape(), &[Arg::Struct(&words), Arg::Word((64.0 * epsilon).to_bits())])
    }

    /// All entries that one level of fill may bring, with their values.
    fn candidates(&self, rows: &Rows<T>) -> Result<Candidates<T>> {
        let cursor = DeviceVec::<u32>::uninitialized(self.device, rows.entries())?;
        let words = |to| self.words(self.at(rows), cursor.address(), to);
        self.kernels.count.launch(self.shape(), &[Arg::Struct(&words(CandidatesAt::default()))])?;
        let (ptr, count) = self.starts()?;
        let found = Candidates {
            ptr,
            col: DeviceVec::uninitialized(self.device, count)?,
            val: DeviceVec::uninitialized(self.device, count)?,
            size: DeviceVec::uninitialized(self.device, count)?,
            keep: DeviceVec::uninitialized(self.device, count)?,
        };
        self.kernels.expand.launch(self.shape(), &[Arg::Struct(&words(self.candidates_at(&found)))])?;
        Ok(found)
    }

    /// Those that stay, of candidates that `rows` brought.
    fn selected(&self, rows: &Rows<T>, found: &Candidates<T>) -> Result<Rows<T>> {
        let words = self.words(self.at(rows), 0, self.candidates_at(found));
        self.kernels.select.launch(self.shape(), &[Arg::Struct(&words)])?;
        let (ptr, count) = self.starts()?;
        let kept = Rows {
            ptr,
            col: DeviceVec::uninitialized(self.device, count)?,
            diag: DeviceVec::uninitialized(self.device, self.n)?,
            val: DeviceVec::uninitialized(self.device, count)?,
        };
        let args = [Arg::Struct(&words), kept.ptr.arg(), kept.col.arg(), kept.diag.arg(), kept.val.arg()];
        self.kernels.compact.launch(self.shape(), &args)?;
        Ok(kept)
    }

    /// The values of one more sweep on the pattern of the factors, and in `left_over` what A − L·U was before it.
    fn sweep(&self, factors: FactorsAt, entries: usize) -> Result<DeviceVec<T>> {
        let cursor = DeviceVec::<u32>::uninitialized(self.device, entries)?;
        let better = DeviceVec::uninitialized(self.device, entries)?;
        let words = self.words(factors, cursor.address(), CandidatesAt { val: better.address(), ..Default::default() });
        self.kernels.sweep.launch(self.shape(), &[Arg::Struct(&words), self.left_over.arg()])?;
        Ok(better)
    }

    fn same_pattern(&self, one: &Rows<T>, other: &Rows<T>) -> Result<bool> {
        let differing = DeviceVec::from_slice(self.device, &[0u32])?;
        let [[ptr, col], [other_ptr, other_col]] = [one, other].map(|rows| [rows.ptr.arg(), rows.col.arg()]);
        let args = [Arg::Word(self.n as u64), ptr, col, other_ptr, other_col, differing.arg()];
        self.kernels.compare.launch(Shape::over(self.n as u64), &args)?;
        let mut count = [0];
        differing.copy_to(&mut count)?;
        Ok(count[0] == 0)
    }

    /// The pattern, and the steps it took.
    fn run(&self, a: &Csr<T>) -> Result<(Pattern, usize)> {
        let mut rows = self.diagonal(a)?;
        self.measure(&rows)?;
        let mut steps = 0;
        loop {
            steps += 1;
            let found = self.candidates(&rows)?;
            let mut next = self.selected(&rows, &found)?;
            self.measure(&next)?;
            next.val = self.sweep(self.at(&next), next.entries())?;
            self.measure(&next)?;
            let done = steps == STEPS || self.same_pattern(&rows, &next)?;
            rows = next;
            if done {
                break;
            }
        }
        let host = |from: &DeviceVec<u32>| {
            let mut to = vec![0; from.len()];
            from.copy_to(&mut to).map(|()| to)
        };
        Ok((Pattern { ptr: host(&rows.ptr)?, col: host(&rows.col)?, diag: host(&rows.diag)? }, steps))
    }

    /// √(Σ‖rᵢ‖²/‖aᵢ‖² / n) for the rows rᵢ of A − L·U, and for what of them is in the pattern of the factors.
    fn left_over(&self, ilu: &Ilu0<T>) -> Result<[f64; 2]> {
        self.sweep(ilu.factors_at(), ilu.entries())?;
        let mut squares = vec![0.0; 2 * self.n];
        self.left_over.copy_to(&mut squares)?;
        let mean = |part: &[f64]| (part.iter().sum::<f64>() / self.n.max(1) as f64).sqrt();
        Ok([mean(&squares[..self.n]), mean(&squares[self.n..])])
    }
}

/// Factors of what the search found.
///
/// # Errors
/// As [`bt_iter::ilut`]; of the positive form also as [`bt_iter::ic0`]; errors of the device, which must hold the candidates.
pub(crate) fn ilut<T: DeviceScalar>(
    device: &Device,
    a: &Csr<T>,
    options: IlutOptions,
    pivots: Pivots,
    solves: TriangularSolves,
) -> Result<Ilut<T>> {
    a.check_square()?;
    a.check_finite()?;
    let drop_tolerance = options.drop_tolerance;
    if !(drop_tolerance >= 0.0) {
        let (what, why) = ("drop tolerance", format!("{drop_tolerance} is not a number of at least 0"));
        return Err(InputError::InvalidStructure { what, why }.into());
    }
    if pivots == Pivots::Positive {
        positive_diagonal(a, Outside::Dropped.method(pivots))?;
    }
    let search = Search::new(device, a, options)?;
    let (pattern, steps) = search.run(a)?;
    let pattern = if pivots == Pivots::Positive { pattern.with_transpose()? } else { pattern };
    let ilu = Ilu0::on(device, a, pattern, Outside::Dropped, pivots, solves)?;
    let search = Some(SearchFacts { steps, left_over: search.left_over(&ilu)? });
    Ok(Ilut { facts: InverseFacts { search, ..ilu.facts() }, ilu })
}

/// Incomplete factors on a pattern that was searched.
pub(crate) struct Ilut<T: DeviceScalar> {
    ilu: Ilu0<T>,
    facts: InverseFacts,
}

impl<T: DeviceScalar> Apply<T> for Ilut<T> {
    fn enqueue(&self, r: u64, z: u64, now: u64) -> Result<()> {
        self.ilu.enqueue(r, z, now)
    }

    fn parts(&self, r: u64, z: u64) -> Option<Vec<Step>> {
        self.ilu.parts(r, z)
    }

    fn facts(&self) -> InverseFacts {
        self.facts
    }

    fn bytes(&self) -> usize {
        self.ilu.bytes()
    }
}
