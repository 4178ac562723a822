//! Kinds of matrices that are taken for one another: generators, transition probabilities, their transposes, counts.
//!
//! Cost: O(n + nnz), when an error is made.

use bt_formats::{Csr, LinearOperator, Matrix};

/// What few printed digits leave of the sums by which a kind of matrix is recognised.
const PRINTED: f64 = 1e-4;

/// What a matrix seems to be that is not what it was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Seems {
    /// Transition probabilities: rows that sum to 1.
    Transitions,
    /// Their transpose: columns that sum to 1.
    TransposedTransitions,
    /// A generator: rows that sum to zero.
    Generator,
    /// Its transpose: columns that sum to zero.
    TransposedGenerator,
    /// Rates without the diagonal, as model checkers export them.
    RatesAlone,
    /// Counts of transitions: whole numbers.
    Counts,
    /// Sums that a few printed digits have spoiled.
    Rounded,
}

impl Seems {
    /// What is seen.
    pub fn seen(self) -> &'static str {
        match self {
            Self::Transitions => "the rows sum to 1, as those of a matrix of transition probabilities do",
            Self::TransposedTransitions => {
                "the columns sum to 1: this is the transpose of a matrix of transition probabilities"
            }
            Self::Generator => "the rows sum to zero, as those of a generator do",
            Self::TransposedGenerator => "the columns sum to zero: this is the transpose of a generator",
            Self::RatesAlone => "the diagonal is missing: these are rates alone, perhaps",
            Self::Counts => "the entries are whole numbers, counts of transitions perhaps",
            Self::Rounded => "the sums miss by no more than the rounding of a few printed digits",
        }
    }

    /// What is seen, and what to do about it.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Transitions => {
                "the rows sum to 1, as those of a matrix of transition probabilities do: Generator::from_stochastic"
            }
            Self::Generator => "the rows sum to zero, as those of a generator do: Generator::new",
            Self::RatesAlone => "the diagonal is missing: Generator::from_rates_alone takes the rates without it",
            Self::Counts => "the entries are whole numbers, counts of transitions perhaps: Generator::from_weights",
            Self::Rounded => {
                "the sums miss by no more than the rounding of a few printed digits: Generator::from_rounded, from_weights"
            }
            Self::TransposedTransitions | Self::TransposedGenerator => self.seen(),
        }
    }
}

/// Whether no entry of the diagonal is other than zero: what is there are rates alone, or counts of transitions that all leave their state. A NaN is
/// an entry.
///
/// ```
/// use bt_formats::Csr;
/// use bt_queue::has_no_diagonal;
/// let rates = Csr::from_dense(faer::mat![[0.0, 3.0], [1.0, 0.0]].as_ref())?;
/// let generator = Csr::from_dense(faer::mat![[-3.0, 3.0], [1.0, -1.0]].as_ref())?;
/// assert!(has_no_diagonal(&rates) && !has_no_diagonal(&generator));
/// # Ok::<(), bt_formats::Error>(())
/// ```
///
/// # Cost
/// O(nnz).
pub fn has_no_diagonal(a: &Csr<f64>) -> bool {
    let mut none = true;
    a.for_each_entry(&mut |i, j, v| none &= i != j || v == 0.0);
    none
}

/// What tells kinds of matrices apart.
pub(crate) struct Sums<'a> {
    a: &'a Csr<f64>,
    rows: Vec<f64>,
    columns: Vec<f64>,
    /// Σ_{j≠i} |a_ij|.
    off_diagonal: Vec<f64>,
    /// The same by column.
    off_diagonal_columns: Vec<f64>,
    diagonal: Vec<f64>,
}

impl<'a> Sums<'a> {
    pub(crate) fn new(a: &'a Csr<f64>) -> Self {
        let zeros = vec![0.0; a.nrows()];
        let mut sums = Self {
            a,
            rows: zeros.clone(),
            columns: zeros.clone(),
            off_diagonal: zeros.clone(),
            off_diagonal_columns: zeros.clone(),
            diagonal: zeros,
        };
        a.for_each_entry(&mut |i, j, v| {
            sums.rows[i] += v;
            sums.columns[j] += v;
            if i == j {
                sums.diagonal[i] = v;
            } else {
                sums.off_diagonal[i] += v.abs();
                sums.off_diagonal_columns[j] += v.abs();
            }
        });
        sums
    }

    /// All sums are 1 to a few printed digits, of numbers that are not negative.
    fn are_one(&self, sums: &[f64]) -> bool {
        self.a.values().iter().all(|&v| v >= 0.0) && sums.iter().all(|s| (s - 1.0).abs() <= PRINTED)
    }

    /// All sums are zero to a few printed digits, below a diagonal that is not zero.
    fn are_zero(&self, sums: &[f64], off_diagonal: &[f64]) -> bool {
        self.diagonal.iter().any(|&d| d < 0.0)
            && sums.iter().zip(off_diagonal).all(|(s, rates)| s.abs() <= PRINTED * rates)
    }

    fn has_no_diagonal(&self) -> bool {
        self.a.values().iter().all(|&v| v >= 0.0) && has_no_diagonal(self.a)
    }

    fn are_counts(&self) -> bool {
        self.a.values().iter().all(|&v| v >= 0.0 && v.fract() == 0.0)
    }

    /// What a matrix seems to be that is no generator.
    pub(crate) fn no_generator(&self) -> Option<Seems> {
        if self.are_one(&self.rows) {
            Some(Seems::Transitions)
        } else if self.are_zero(&self.rows, &self.off_diagonal) {
            Some(Seems::Rounded)
        } else if self.are_zero(&self.columns, &self.off_diagonal_columns) {
            Some(Seems::TransposedGenerator)
        } else if self.are_one(&self.columns) {
            Some(Seems::TransposedTransitions)
        } else if self.has_no_diagonal() {
            Some(Seems::RatesAlone)
        } else if self.are_counts() {
            Some(Seems::Counts)
        } else {
            None
        }
    }

    /// What a matrix seems to be that holds no transition probabilities.
    pub(crate) fn no_transitions(&self) -> Option<Seems> {
        if self.are_zero(&self.rows, &self.off_diagonal) {
            Some(Seems::Generator)
        } else if self.are_one(&self.rows) {
            Some(Seems::Rounded)
        } else if self.are_one(&self.columns) {
            Some(Seems::TransposedTransitions)
        } else if self.are_zero(&self.columns, &self.off_diagonal_columns) {
            Some(Seems::TransposedGenerator)
        } else if self.are_counts() {
            Some(Seems::Counts)
        } else if self.has_no_diagonal() && self.a.values().iter().any(|&v| v > 1.0) {
            Some(Seems::RatesAlone)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Generator;
    use crate::generator::tests::csr;

    #[test]
    fn one_entry_is_a_diagonal() {
        let with = |v: f64| csr(3, &[(0, 1, 2.0), (1, 1, 0.0), (2, 2, v), (2, 0, 1.0)]);
        assert!(has_no_diagonal(&with(0.0)) && has_no_diagonal(&with(-0.0)) && has_no_diagonal(&csr(3, &[])));
        for v in [-1.0, 1e-300, f64::NAN] {
            assert!(!has_no_diagonal(&with(v)), "{v}");
        }
    }

    /// Small matrices that users take for another kind, and what they are told.
    #[test]
    fn matrices_of_another_kind_are_recognised() {
        let rates = csr(3, &[(0, 1, 2.0), (1, 0, 1.0), (1, 2, 3.0), (2, 0, 0.5)]);
        let counts = csr(3, &[(0, 0, 10.0), (0, 1, 5.0), (1, 0, 3.0), (1, 2, 7.0), (2, 0, 4.0), (2, 2, 6.0)]);
        let columns = csr(2, &[(0, 0, 0.5), (1, 0, 0.5), (0, 1, 0.25), (1, 1, 0.75)]);
        let generator = csr(2, &[(0, 0, -1.0), (0, 1, 1.0), (1, 0, 2.0), (1, 1, -2.0)]);
        let as_generator = |a: &Csr<f64>| Generator::new(a.clone()).unwrap_err();
        let as_transitions = |a: &Csr<f64>| Generator::from_stochastic(a).unwrap_err();
        assert_eq!(as_generator(&rates).seems(), Some(Seems::RatesAlone));
        assert_eq!(as_generator(&counts).seems(), Some(Seems::Counts));
        assert_eq!(as_generator(&columns).seems(), Some(Seems::TransposedTransitions));
        assert_eq!(as_generator(&generator.transpose()).seems(), Some(Seems::TransposedGenerator));
        assert_eq!(as_transitions(&rates).seems(), Some(Seems::RatesAlone));
        assert_eq!(as_transitions(&counts).seems(), Some(Seems::Counts));
        assert_eq!(as_transitions(&columns).seems(), Some(Seems::TransposedTransitions));
        assert_eq!(as_transitions(&generator).seems(), Some(Seems::Generator));
        assert_eq!(as_transitions(&generator.transpose()).seems(), Some(Seems::TransposedGenerator));
        // An absorbing state of a generator is no empty row of probabilities.
        let absorbing = csr(2, &[(0, 1, 1.0), (0, 0, -1.0)]);
        assert_eq!(as_transitions(&absorbing).seems(), Some(Seems::Generator));
        // What is another matrix is not normalised.
        for a in [&columns, &generator, &generator.transpose()] {
            assert!(Generator::from_weights(a.clone()).is_err());
        }
        assert!(Generator::from_rounded(generator.transpose()).is_err());
        assert!(Generator::from_rounded(rates).is_err());
    }
}
