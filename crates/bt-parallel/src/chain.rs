//! What a matrix of a chain holds, checked on the ranks that have its rows before it is taken for rates: as `bt_queue` checks a matrix of one
//! process.
//!
//! Communication: a maximum over the ranks; where rows are not what they should be sums of columns go to their owners, one message of 8 bytes
//! an entry of the halo, and seven flags are agreed on. Cost: O(m + z) for m rows with z entries. Storage: 8 bytes a row and an entry of the
//! halo, once there is an error.

use crate::comm::Comm;
use crate::csr::DistributedCsr;
use crate::error::{Fault, Result, agree};

/// What a row's sum may miss by, relative to its rates: files carry ten digits at least.
const ROW_SUM: f64 = 1e-9;
/// The same of files printed with few digits.
const FEW_DIGITS: f64 = 1e-2;
/// What few printed digits leave of the sums by which a kind of matrix is recognised.
const PRINTED: f64 = 1e-4;

/// What the entries of a matrix are.
///
/// ```
/// use bt_parallel::{ChainEntries, DistributedCsr, Division, StationaryDistribution, thread_comm};
/// // Counts: from 0 to 1 one time in four, back every time.
/// let counts = bt_testkit::csr(2, |i, j| [[3.0, 1.0], [5.0, 0.0]][i][j]);
/// let found = thread_comm::run(2, |comm| {
///     let a = DistributedCsr::from_replicated(comm, &counts, &Division::contiguous(2, 2))?;
///     let pi = StationaryDistribution::new(&ChainEntries::Weights.check(a)?)?;
///     Ok(pi.own()[0].to_f64())
/// });
/// assert!((found[0].as_ref().unwrap() - 0.8).abs() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainEntries {
    /// Rates out of a state in its row, minus their sum on the diagonal: rows sum to zero, up to 1e-9 of the rates.
    Generator,
    /// The same printed with few digits: up to a hundredth of the rates.
    RoundedGenerator,
    /// Rates; what is on the diagonal is not read.
    Rates,
    /// Transition probabilities: rows sum to 1, up to 1e-9.
    Transitions,
    /// Counts of transitions, or probabilities printed with few digits: each row is divided by its sum.
    Weights,
}

impl ChainEntries {
    /// The matrix with the rates of the chain off its diagonal, for [`crate::StationaryDistribution`]. A collective.
    ///
    /// # Errors
    /// [`crate::Error::OnRank`] for an entry off the diagonal, or a probability, that is negative, rates whose sum overflows, a row of
    /// probabilities that is empty, and a row whose sum is not what it should be, with what the matrix seems to be instead: where that is another
    /// kind of matrix or its transpose, `RoundedGenerator` and `Weights` refuse it too.
    ///
    /// # Cost
    /// O(m + z) for the own m rows with z entries; a maximum over the ranks where all is well.
    pub fn check<C: Comm>(self, mut a: DistributedCsr<'_, f64, C>) -> Result<DistributedCsr<'_, f64, C>> {
        let comm = a.comm();
        let found = self.first_fault(&a, ROW_SUM);
        let mut wrong = [f64::from(u8::from(found.is_err()))];
        comm.all_max(&mut wrong)?;
        if wrong[0] > 0.0 {
            let seems = Sums::new(&a)?.seems(comm, self)?;
            let loose = match (self, seems) {
                (Self::RoundedGenerator, None | Some(Seems::Rounded))
                | (Self::Weights, None | Some(Seems::Rounded | Seems::Counts | Seems::Rates)) => {
                    self.first_fault(&a, FEW_DIGITS)
                }
                _ => found,
            };
            let told = |fault: Fault| match seems {
                Some(seems) => Fault::input(format!("{}; {}", fault.message, seems.in_words())),
                None => fault,
            };
            agree(comm, loose.map_err(told))?;
        }
        if self == Self::Weights {
            let sums: Vec<f64> = (0..a.rows().own().len()).map(|i| a.row(i).map(|e| e.1).sum()).collect();
            a.divide_rows(&sums)?;
        }
        Ok(a)
    }

    /// The first own row that is not as it should be, up to a tolerance.
    fn first_fault<C: Comm>(self, a: &DistributedCsr<'_, f64, C>, tolerance: f64) -> Result<(), Fault> {
        a.rows().own().iter().enumerate().try_for_each(|(i, &g)| match self {
            Self::Generator | Self::RoundedGenerator | Self::Rates => self.check_rates(a, (i, g), tolerance),
            Self::Transitions | Self::Weights => self.check_probabilities(a, (i, g), tolerance),
        })
    }

    fn check_rates<C: Comm>(
        self,
        a: &DistributedCsr<'_, f64, C>,
        (i, g): (usize, u32),
        tolerance: f64,
    ) -> Result<(), Fault> {
        let (mut rates, mut diagonal) = (0.0, 0.0);
        for (j, v) in a.row(i) {
            if j as usize == i {
                diagonal = v;
            } else if v < 0.0 {
                return Err(Fault::input(format!(
                    "the rate from state {g} to state {} (from 0) is {v}: rates are not negative",
                    a.global(j)
                )));
            } else {
                rates += v;
            }
        }
        let sum: f64 = rates + diagonal;
        if !f64::is_finite(rates) {
            return Err(Fault::input(format!(
                "the rates out of state {g} (from 0) sum to more than the largest number: divide all rates by one factor"
            )));
        }
        if self != Self::Rates && !(sum.abs() <= tolerance * rates) {
            return Err(Fault::input(format!("row {g} (from 0) sums to {sum}, not to zero: not a generator")));
        }
        Ok(())
    }

    fn check_probabilities<C: Comm>(
        self,
        a: &DistributedCsr<'_, f64, C>,
        (i, g): (usize, u32),
        tolerance: f64,
    ) -> Result<(), Fault> {
        if let Some((j, v)) = a.row(i).find(|e| e.1 < 0.0) {
            return Err(Fault::input(format!(
                "the probability of going from state {g} to state {} (from 0) is {v}: probabilities are not negative",
                a.global(j)
            )));
        }
        let sum: f64 = a.row(i).map(|e| e.1).sum();
        if sum == 0.0 {
            return Err(Fault::input(format!(
                "row {g} (from 0) is empty: no probability leads out of state {g}; a state that is never left has a 1 on the diagonal"
            )));
        }
        // Any sum will do where rows are divided by it, once the matrix is known to be no other.
        let right = (sum - 1.0).abs() <= ROW_SUM || self == Self::Weights && tolerance > ROW_SUM && sum.is_finite();
        if right {
            Ok(())
        } else {
            Err(Fault::input(format!(
                "row {g} (from 0) sums to {sum}, not to 1: these are no transition probabilities"
            )))
        }
    }
}

/// What a matrix seems to be that is not what it was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seems {
    Transitions,
    TransposedTransitions,
    Generator,
    TransposedGenerator,
    Rates,
    Counts,
    Rounded,
}

impl Seems {
    fn in_words(self) -> &'static str {
        match self {
            Self::Transitions => "the rows sum to 1, as those of a matrix of transition probabilities do",
            Self::TransposedTransitions => {
                "the columns sum to 1: this is the transpose of a matrix of transition probabilities"
            }
            Self::Generator => "the rows sum to zero, as those of a generator do",
            Self::TransposedGenerator => "the columns sum to zero: this is the transpose of a generator",
            Self::Rates => "the diagonal is missing: these are rates alone, perhaps",
            Self::Counts => "the entries are whole numbers, counts of transitions perhaps",
            Self::Rounded => "the sums miss by no more than the rounding of a few printed digits",
        }
    }
}

/// Of the own rows and columns, what tells kinds of matrices apart.
struct Sums {
    rows: Vec<f64>,
    columns: Vec<f64>,
    /// Σ_{j≠i} |a_ij|, by rows and by columns.
    off_diagonal: [Vec<f64>; 2],
    diagonal: Vec<f64>,
    negative: bool,
    fractions: bool,
}

impl Sums {
    /// A collective.
    fn new<C: Comm>(a: &DistributedCsr<'_, f64, C>) -> Result<Self> {
        let m = a.rows().own().len();
        let zeros = || vec![0.0; m];
        let mut sums = Self {
            rows: zeros(),
            columns: zeros(),
            off_diagonal: [zeros(), zeros()],
            diagonal: zeros(),
            negative: false,
            fractions: false,
        };
        let mut of_halo = [vec![0.0; a.halo().len()], vec![0.0; a.halo().len()]];
        for i in 0..m {
            for (j, v) in a.row(i) {
                let j = j as usize;
                sums.rows[i] += v;
                sums.negative |= v < 0.0;
                sums.fractions |= v.fract() != 0.0;
                if j == i {
                    sums.diagonal[i] = v;
                } else {
                    sums.off_diagonal[0][i] += v.abs();
                }
                if j >= m {
                    of_halo[0][j - m] += v;
                    of_halo[1][j - m] += v.abs();
                } else {
                    sums.columns[j] += v;
                    sums.off_diagonal[1][j] += if j == i { 0.0 } else { v.abs() };
                }
            }
        }
        a.halo().add_back(a.comm(), &of_halo[0], &mut sums.columns)?;
        a.halo().add_back(a.comm(), &of_halo[1], &mut sums.off_diagonal[1])?;
        Ok(sums)
    }

    /// What the matrix of all ranks seems to be, where it is not `taken`. A collective.
    fn seems(&self, comm: &impl Comm, taken: ChainEntries) -> Result<Option<Seems>> {
        let near_one = |sums: &[f64]| !self.negative && sums.iter().all(|s| (s - 1.0).abs() <= PRINTED);
        let near_zero =
            |sums: &[f64], rates: &[f64]| sums.iter().zip(rates).all(|(s, rates)| s.abs() <= PRINTED * rates);
        // 1 where it is not so: on all ranks it is where the largest is 0.
        let mut not = [
            near_one(&self.rows),
            near_one(&self.columns),
            near_zero(&self.rows, &self.off_diagonal[0]),
            near_zero(&self.columns, &self.off_diagonal[1]),
            !self.negative && self.diagonal.iter().all(|&d| d == 0.0),
            !self.negative && !self.fractions,
            // Some diagonal entry is negative.
            !self.diagonal.iter().any(|&d| d < 0.0),
        ]
        .map(|holds| f64::from(u8::from(!holds)));
        comm.all_max(&mut not)?;
        let [rows_one, columns_one, rows_zero, columns_zero, no_diagonal, counts, none_below] = not.map(|x| x == 0.0);
        let (rows_zero, columns_zero) = (rows_zero && !none_below, columns_zero && !none_below);
        let (own, others) = match taken {
            ChainEntries::Generator | ChainEntries::RoundedGenerator | ChainEntries::Rates => (
                rows_zero,
                [
                    (rows_one, Seems::Transitions),
                    (columns_zero, Seems::TransposedGenerator),
                    (columns_one, Seems::TransposedTransitions),
                    (no_diagonal, Seems::Rates),
                    (counts, Seems::Counts),
                ],
            ),
            ChainEntries::Transitions | ChainEntries::Weights => (
                rows_one,
                [
                    (rows_zero, Seems::Generator),
                    (columns_one, Seems::TransposedTransitions),
                    (columns_zero, Seems::TransposedGenerator),
                    (counts, Seems::Counts),
                    (no_diagonal, Seems::Rates),
                ],
            ),
        };
        let found = [(own, Seems::Rounded)].into_iter().chain(others).find(|e| e.0);
        Ok(found.map(|e| e.1))
    }
}
