//! Generators of Markov chains in continuous time: Q with q_ij ≥ 0 for i ≠ j and rows that sum to zero.
//!
//! Row i holds the rates out of state i, π is a row vector: πQ = 0. Only the rates are used: each diagonal entry is recomputed
//! as minus their sum, so that a file's rounding does not enter. Storage: that of [`Csr`].

use bt_formats::{BlockTridiagonal, Csr, HybridLayout, LinearOperator, Matrix, Partition};

use crate::error::{Error, Result};
use crate::model::{Moves, Order, State, StateSpace};
use crate::seems::{Seems, Sums};

/// A checked generator.
///
/// ```
/// use bt_formats::Csr;
/// use bt_queue::Generator;
/// // Two states: 0 → 1 at rate 3, back at rate 1.
/// let q = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![-3.0, 3.0, 1.0, -1.0])?;
/// let q = Generator::new(q)?;
/// assert_eq!((q.n(), q.rate_out(0), q.rate_out(1)), (2, 3.0, 1.0));
/// # Ok::<(), bt_queue::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Generator {
    q: Csr<f64>,
}

/// P = I + Q/Λ.
#[derive(Clone, Debug)]
pub struct Uniformised {
    /// P, stochastic: πP = π.
    pub p: Csr<f64>,
    /// Λ.
    pub rate: f64,
}

/// A row sum is rounding when it is below this times the rate out of the row: files carry ten digits at least.
const ROW_SUM: f64 = 1e-9;
/// What few printed digits may leave of it where the user says so.
const FEW_DIGITS: f64 = 1e-2;

impl Generator {
    /// From a matrix whose rows hold the rates out of the states, the diagonal included.
    ///
    /// # Errors
    /// [`bt_formats::Error::NotSquare`], [`bt_formats::Error::NonFinite`]; [`Error::NegativeRate`]; [`Error::RowSum`] when a
    /// row sums to more than 1e-9 of its rates.
    ///
    /// # Cost
    /// O(n + nnz).
    pub fn new(q: Csr<f64>) -> Result<Self> {
        Self::within(q, ROW_SUM)
    }

    /// The same from a matrix printed with few digits: a row may miss zero by a hundredth of its rates.
    ///
    /// # Errors
    /// As [`Generator::new`], and for any row that misses zero by more than rounding where the columns sum to zero, or the rows
    /// to 1: the matrix is another one then.
    ///
    /// # Cost
    /// O(n + nnz).
    pub fn from_rounded(q: Csr<f64>) -> Result<Self> {
        match Self::within(q.clone(), ROW_SUM) {
            Err(Error::RowSum { seems: None | Some(Seems::Rounded), .. }) => Self::within(q, FEW_DIGITS),
            result => result,
        }
    }

    /// From the rates alone: the diagonal, where there is one, is not read.
    ///
    /// ```
    /// use bt_formats::Csr;
    /// use bt_queue::Generator;
    /// let rates = Csr::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![3.0, 1.0])?;
    /// assert!(Generator::new(rates.clone()).is_err());
    /// assert_eq!(Generator::from_rates_alone(rates)?.rate_out(0), 3.0);
    /// # Ok::<(), bt_queue::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`bt_formats::Error::NotSquare`], [`bt_formats::Error::NonFinite`]; [`Error::NegativeRate`];
    /// [`Error::RatesOverflow`].
    ///
    /// # Cost
    /// O(n + nnz).
    pub fn from_rates_alone(q: Csr<f64>) -> Result<Self> {
        q.check_square()?;
        q.check_finite()?;
        for row in 0..q.nrows() {
            if !rates_out(&q, row)?.is_finite() {
                return Err(Error::RatesOverflow { state: row });
            }
        }
        Self::finished(q)
    }

    fn within(q: Csr<f64>, tolerance: f64) -> Result<Self> {
        q.check_square()?;
        q.check_finite()?;
        for row in 0..q.nrows() {
            let rates = rates_out(&q, row)?;
            let sum = rates + q.get(row, row);
            if !(rates.is_finite() && sum.abs() <= tolerance * rates) {
                return Err(Error::RowSum { row, sum, seems: Sums::new(&q).no_generator() });
            }
        }
        Self::finished(q)
    }

    /// With its diagonal stored and recomputed.
    fn finished(mut q: Csr<f64>) -> Result<Self> {
        if (0..q.nrows()).any(|row| q.row(row).0.binary_search(&(row as u32)).is_err()) {
            // An absorbing state may have an empty row; the diagonal is stored all the same.
            q = with_diagonal(&q)?;
        }
        set_diagonal(&mut q);
        Ok(Self { q })
    }

    /// From a stochastic matrix P: Q = P − I, with the same stationary distribution.
    ///
    /// # Errors
    /// [`bt_formats::Error::NotSquare`], [`bt_formats::Error::NonFinite`]; [`Error::NegativeProbability`]; [`Error::EmptyRow`];
    /// [`Error::ProbabilitySum`] for rows that miss 1 by more than 1e-9.
    ///
    /// # Cost
    /// O(n + nnz).
    pub fn from_stochastic(p: &Csr<f64>) -> Result<Self> {
        check_probabilities(p, |sum| (sum - 1.0).abs() <= ROW_SUM)?;
        Self::finished(p.clone())
    }

    /// From counts of transitions or probabilities printed with few digits: each row is divided by its sum.
    ///
    /// ```
    /// use bt_formats::Csr;
    /// use bt_queue::Generator;
    /// let counts = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![10.0, 5.0, 3.0])?;
    /// let q = Generator::from_weights(counts)?;
    /// assert_eq!((q.rate_out(0), q.rate_out(1)), (5.0 / 15.0, 1.0));
    /// # Ok::<(), bt_queue::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Generator::from_stochastic`], where a sum may be any positive number; but when the columns sum to 1, or rows or columns to
    /// zero, the matrix is another one, and rows that do not sum to 1 are refused.
    ///
    /// # Cost
    /// O(n + nnz).
    pub fn from_weights(mut p: Csr<f64>) -> Result<Self> {
        let other = |seems| !matches!(seems, None | Some(Seems::Rounded | Seems::Counts | Seems::RatesAlone));
        match check_probabilities(&p, |sum| (sum - 1.0).abs() <= ROW_SUM) {
            Err(Error::ProbabilitySum { seems, .. }) if !other(seems) => {}
            result => result?,
        }
        check_probabilities(&p, |sum| sum > 0.0 && sum.is_finite())?;
        for row in 0..p.nrows() {
            let entries = p.row_ptr()[row] as usize..p.row_ptr()[row + 1] as usize;
            let sum: f64 = p.values()[entries.clone()].iter().sum();
            for v in &mut p.values_mut()[entries] {
                *v /= sum;
            }
        }
        Self::finished(p)
    }

    /// From the rates of the four moves out of every state; moves that leave the state space are dropped, from the rates and
    /// from the diagonal.
    ///
    /// ```
    /// use bt_queue::{Generator, Moves, Order, StateSpace};
    /// // M/M/1/9: one level, 0 to 9 tasks.
    /// let space = StateSpace::new([(0, 9)])?;
    /// let q = Generator::from_rates(&space, Order::TaskMajor, |_| Moves { arrival: 1.0, service: 2.0, ..Moves::default() })?;
    /// assert_eq!((q.rate_out(0), q.rate_out(5), q.rate_out(9)), (1.0, 3.0, 2.0));
    /// # Ok::<(), bt_queue::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BadParameter`] naming the move whose rate is negative or not finite; [`bt_formats::Error::TooLarge`].
    ///
    /// # Cost
    /// O(n), at most five entries a row.
    pub fn from_rates(space: &StateSpace, order: Order, rates: impl Fn(State) -> Moves) -> Result<Self> {
        let n = space.n();
        let too_large = |_| bt_formats::Error::TooLarge {
            what: "a generator",
            needed: format!("up to {} entries", 5 * n),
            limit: "the memory there is".into(),
        };
        bt_formats::memory::ask((n as u64).saturating_mul(4 + 5 * 12), "the generator")?;
        let (mut row_ptr, mut col_idx, mut values) = (Vec::new(), Vec::new(), Vec::<f64>::new());
        row_ptr.try_reserve_exact(n + 1).map_err(too_large)?;
        col_idx.try_reserve_exact(5 * n).map_err(too_large)?;
        values.try_reserve_exact(5 * n).map_err(too_large)?;
        row_ptr.push(0u32);
        for (index, state) in space.states(order).enumerate() {
            let State { tasks: i, level: j } = state;
            let m = rates(state);
            let arrival = ("an arrival rate", m.arrival, State { tasks: i + 1, level: j });
            let service = ("a service rate", m.service, State { tasks: i.wrapping_sub(1), level: j });
            let turn_on = ("a rate of turning on", m.turn_on, State { tasks: i, level: j + 1 });
            let turn_off = ("a rate of turning off", m.turn_off, State { tasks: i, level: j - 1 });
            // In the order of their targets; the diagonal stands in the middle.
            let moves = match order {
                Order::LevelMajor => [turn_off, service, arrival, turn_on],
                Order::TaskMajor => [service, turn_off, turn_on, arrival],
            };
            let (mut out, mut diagonal) = (0.0, 0);
            for (k, (name, value, to)) in moves.into_iter().enumerate() {
                if k == 2 {
                    diagonal = values.len();
                    col_idx.push(index as u32);
                    values.push(0.0);
                }
                if !(value >= 0.0 && value.is_finite()) {
                    return Err(Error::BadParameter { name, value, why: "a rate is a finite number of at least 0" });
                }
                if let Some(to) = space.index(to, order).filter(|_| value > 0.0) {
                    col_idx.push(to as u32);
                    values.push(value);
                    out += value;
                }
            }
            if !f64::is_finite(out) {
                return Err(Error::RatesOverflow { state: row_ptr.len() - 1 });
            }
            values[diagonal] = -out;
            row_ptr.push(col_idx.len() as u32);
        }
        Ok(Self { q: Csr::new(n, n, row_ptr, col_idx, values)? })
    }

    /// Number of states.
    pub fn n(&self) -> usize {
        self.q.nrows()
    }

    /// Q.
    pub fn matrix(&self) -> &Csr<f64> {
        &self.q
    }

    /// Q without a copy.
    pub fn into_matrix(self) -> Csr<f64> {
        self.q
    }

    /// Targets and rates out of a state, itself not among them.
    pub fn rates(&self, state: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let (cols, values) = self.q.row(state);
        let entries = cols.iter().zip(values).map(|(&to, &rate)| (to as usize, rate));
        entries.filter(move |&(to, rate)| to != state && rate > 0.0)
    }

    /// −q_ii, the rate at which a state is left.
    pub fn rate_out(&self, state: usize) -> f64 {
        -self.q.get(state, state)
    }

    /// Bandwidths below and above the diagonal.
    pub fn bandwidth(&self) -> (usize, usize) {
        bt_formats::reorder::bandwidth(&self.q)
    }

    /// P = I + Q/Λ with Λ = `margin`·max −q_ii; a margin above 1 makes every closed class aperiodic.
    ///
    /// ```
    /// use bt_queue::{CloudModel, Form, Order, Rates};
    /// let rates = Rates { arrival: 2.0, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
    /// let q = CloudModel::new(6, 4, rates, Form::Repaired)?.generator(Order::LevelMajor)?;
    /// let uniformised = q.uniformise(1.0)?;
    /// let row: f64 = uniformised.p.row(7).1.iter().sum();
    /// assert!((row - 1.0).abs() < 1e-15);
    /// # Ok::<(), bt_queue::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BadParameter`] unless the margin is a finite number of at least 1 and Λ does not overflow.
    pub fn uniformise(&self, margin: f64) -> Result<Uniformised> {
        let bad = |value, why| Err(Error::BadParameter { name: "the margin of uniformisation", value, why });
        if !(margin >= 1.0 && margin.is_finite()) {
            return bad(margin, "a finite number of at least 1 is needed");
        }
        let largest = (0..self.n()).map(|i| self.rate_out(i)).fold(0.0, f64::max);
        // A chain of absorbing states alone has P = I for any Λ.
        let rate = if largest > 0.0 { margin * largest } else { 1.0 };
        if !rate.is_finite() {
            return bad(margin, "the product with the largest rate overflows");
        }
        let mut p = self.q.clone();
        let values = p.values_mut();
        for i in 0..self.n() {
            let (start, end) = (self.q.row_ptr()[i] as usize, self.q.row_ptr()[i + 1] as usize);
            for k in start..end {
                let on_diagonal = self.q.col_idx()[k] as usize == i;
                let v = &mut values[k];
                // 1 − out/Λ, never negative
                *v = if on_diagonal { 1.0 + *v / rate } else { *v / rate };
            }
        }
        Ok(Uniformised { p, rate })
    }

    /// Q as a hybrid block-tridiagonal matrix, in the formats of fewest bytes.
    ///
    /// # Errors
    /// [`bt_formats::Error::OutsideStructure`] when a rate leads further than to a neighbouring block.
    pub fn to_block_tridiagonal(&self, partition: Partition) -> Result<BlockTridiagonal<f64>> {
        Ok(BlockTridiagonal::from_csr(&self.q, partition, HybridLayout::default())?)
    }

    /// The generator of the states `keep`, increasing; rates to other states are dropped.
    pub(crate) fn restrict(&self, keep: &[u32]) -> Result<Self> {
        let mut position = vec![u32::MAX; self.n()];
        for (new, &old) in keep.iter().enumerate() {
            position[old as usize] = new as u32;
        }
        let (mut row_ptr, mut col_idx, mut values) = (vec![0u32], Vec::new(), Vec::new());
        for &old in keep {
            let (cols, row) = self.q.row(old as usize);
            for (&j, &v) in cols.iter().zip(row).filter(|e| position[*e.0 as usize] != u32::MAX) {
                col_idx.push(position[j as usize]);
                values.push(v);
            }
            row_ptr.push(col_idx.len() as u32);
        }
        let mut q = Csr::new(keep.len(), keep.len(), row_ptr, col_idx, values)?;
        set_diagonal(&mut q);
        Ok(Self { q })
    }
}

/// The same matrix with every diagonal entry stored.
fn with_diagonal(a: &Csr<f64>) -> Result<Csr<f64>> {
    let mut coo = bt_formats::Coo::new(a.nrows(), a.ncols())?;
    for i in 0..a.nrows() {
        coo.push(i, i, 0.0)?;
    }
    let mut pushed = Ok(());
    a.for_each_entry(&mut |i, j, v| {
        if pushed.is_ok() {
            pushed = coo.push(i, j, v);
        }
    });
    pushed?;
    Ok(coo.to_csr()?)
}

/// q_ii ← −Σ_{j≠i} q_ij, the diagonal being stored.
fn set_diagonal(q: &mut Csr<f64>) {
    for i in 0..q.nrows() {
        let (start, end) = (q.row_ptr()[i] as usize, q.row_ptr()[i + 1] as usize);
        let Ok(d) = q.col_idx()[start..end].binary_search(&(i as u32)) else { continue };
        let values = &mut q.values_mut()[start..end];
        values[d] = 0.0;
        values[d] = -values.iter().sum::<f64>();
    }
}

/// Σ_{j≠i} q_ij.
fn rates_out(q: &Csr<f64>, row: usize) -> Result<f64> {
    let (cols, values) = q.row(row);
    let mut rates = 0.0;
    for (&col, &rate) in cols.iter().zip(values).filter(|e| *e.0 as usize != row) {
        if rate < 0.0 {
            return Err(Error::NegativeRate { from: row, to: col as usize, rate });
        }
        rates += rate;
    }
    Ok(rates)
}

/// Rows of numbers that are not negative, with the sums they should have.
fn check_probabilities(p: &Csr<f64>, right: impl Fn(f64) -> bool) -> Result<()> {
    p.check_square()?;
    p.check_finite()?;
    for row in 0..p.nrows() {
        let (cols, values) = p.row(row);
        if let Some(k) = values.iter().position(|&v| v < 0.0) {
            let (to, value, seems) = (cols[k] as usize, values[k], Sums::new(p).no_transitions());
            return Err(Error::NegativeProbability { from: row, to, value, seems });
        }
        let sum: f64 = values.iter().sum();
        if values.iter().all(|&v| v == 0.0) {
            return Err(Error::EmptyRow {
                row,
                seems: Sums::new(p).no_transitions().filter(|s| *s != Seems::RatesAlone),
            });
        }
        if !right(sum) {
            return Err(Error::ProbabilitySum { row, sum, seems: Sums::new(p).no_transitions() });
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::{CloudModel, Form, Rates};

    pub(crate) fn csr(n: usize, entries: &[(usize, usize, f64)]) -> Csr<f64> {
        let mut coo = bt_formats::Coo::new(n, n).unwrap();
        for &(i, j, v) in entries {
            coo.push(i, j, v).unwrap();
        }
        coo.to_csr().unwrap()
    }

    #[test]
    fn what_is_no_generator_is_named() {
        let refused = |entries: &[(usize, usize, f64)]| Generator::new(csr(2, entries)).unwrap_err();
        assert!(matches!(refused(&[(0, 1, -1.0), (0, 0, 1.0)]), Error::NegativeRate { from: 0, to: 1, .. }));
        assert!(matches!(refused(&[(0, 1, 1.0), (0, 0, -1.0), (1, 0, 1.0)]), Error::RowSum { row: 1, .. }));
        assert!(refused(&[(0, 1, f64::NAN)]).to_string().contains("NaN"));
        // Two rates of 1e308 overflow.
        let huge = csr(3, &[(0, 1, 1.7e308), (0, 2, 1.7e308), (0, 0, -1.7e308)]);
        assert!(matches!(Generator::new(huge), Err(Error::RowSum { row: 0, .. })));
        let stochastic = refused(&[(0, 0, 0.5), (0, 1, 0.5), (1, 0, 1.0)]);
        assert!(stochastic.help().unwrap().contains("transition probabilities"));
        let transposed = refused(&[(0, 0, -1.0), (1, 0, 1.0), (0, 1, 2.0), (1, 1, -2.0)]);
        assert!(transposed.help().unwrap().contains("transpose"));
        assert!(Generator::new(Csr::new(1, 2, vec![0, 0], vec![], vec![]).unwrap()).is_err());
    }

    #[test]
    fn the_diagonal_is_recomputed() {
        let q =
            Generator::new(csr(3, &[(0, 1, 0.1), (0, 2, 0.2), (0, 0, -0.300_000_000_01), (1, 0, 1.0), (1, 1, -1.0)]));
        let q = q.unwrap();
        assert_eq!((q.rate_out(0), q.rate_out(1), q.rate_out(2)), (0.1 + 0.2, 1.0, 0.0));
        assert_eq!(q.matrix().nnz(), 6);
    }

    #[test]
    fn stochastic_matrices_are_shifted() {
        let p = csr(2, &[(0, 0, 0.25), (0, 1, 0.75), (1, 0, 1.0)]);
        let q = Generator::from_stochastic(&p).unwrap();
        assert_eq!((q.rate_out(0), q.rate_out(1)), (0.75, 1.0));
        assert!(Generator::from_stochastic(&csr(1, &[(0, 0, 0.9)])).is_err());
    }

    #[test]
    fn sums_are_those_of_the_file() {
        let of =
            |entries: &[(usize, usize, f64)]| Generator::from_stochastic(&csr(3, entries)).unwrap_err().to_string();
        assert!(of(&[(0, 2, 0.5)]).starts_with("row 0 (from 0) sums to 0.5, not to 1"));
        assert!(of(&[(0, 0, 0.500_001), (0, 1, 0.5)]).starts_with("row 0 (from 0) sums to 1.000001, not to 1"));
        assert!(of(&[(0, 0, 10.0), (0, 1, 5.0)]).starts_with("row 0 (from 0) sums to 15, not"));
        assert!(of(&[(0, 1, 1.0), (1, 0, 1.0)]).starts_with("row 2 (from 0) is empty"));
        assert!(
            of(&[(0, 0, 1.1), (0, 1, -0.1)])
                .contains("the probability of going from state 0 to state 1 (from 0) is -0.1")
        );
        let rate = Generator::new(csr(2, &[(0, 1, 2.0)])).unwrap_err().to_string();
        assert!(rate.starts_with("row 0 (from 0) sums to 2, not to zero"), "{rate}");
        let rounded = Generator::new(csr(2, &[(0, 0, -0.666_667), (0, 1, 0.666_666)])).unwrap_err();
        assert!(rounded.to_string().starts_with("row 0 (from 0) sums to -1e-6, not to zero"), "{rounded}");
        assert_eq!(rounded.seems(), Some(Seems::Rounded));
    }

    /// Six digits: 1/3, 1/3 and −2/3 miss zero by 1e-6, and the rates are all that counts.
    #[test]
    fn few_digits_are_normalised() {
        let printed = csr(2, &[(0, 0, -0.666_667), (0, 1, 0.666_666), (1, 0, 0.111_111), (1, 1, -0.111_11)]);
        let q = Generator::from_rounded(printed).unwrap();
        assert_eq!((q.rate_out(0), q.rate_out(1)), (0.666_666, 0.111_111));
        assert!(Generator::from_rounded(csr(2, &[(0, 0, -0.7), (0, 1, 0.6)])).is_err());
        let q = Generator::from_weights(csr(2, &[(0, 0, 0.333_333), (0, 1, 0.666_666), (1, 0, 2.0)])).unwrap();
        assert_eq!((q.rate_out(0), q.rate_out(1)), (0.666_666 / 0.999_999, 1.0));
    }

    #[test]
    fn the_model_is_block_tridiagonal_in_both_orders() {
        let rates = Rates { arrival: 2.0, service: 1.0, turn_on: 0.5, turn_off: 0.25 };
        for form in [Form::Repaired, Form::Literal] {
            let model = CloudModel::new(7, 3, rates, form).unwrap();
            let [by_level, by_tasks] = [Order::LevelMajor, Order::TaskMajor].map(|order| {
                let q = model.generator(order).unwrap();
                let blocks = q.to_block_tridiagonal(model.space().partition(order).unwrap()).unwrap();
                assert_eq!(blocks.to_csr().unwrap(), *q.matrix());
                // What was built is what a reader of the file would accept, unchanged.
                assert_eq!(Generator::new(q.matrix().clone()).unwrap().matrix(), q.matrix());
                let p = q.uniformise(1.0).unwrap();
                assert!(p.p.values().iter().all(|v| (0.0..=1.0).contains(v)));
                q
            });
            assert_eq!(by_level.matrix().nnz(), by_tasks.matrix().nnz());
            for state in model.space().states(Order::LevelMajor) {
                let [a, b] = [Order::LevelMajor, Order::TaskMajor].map(|o| model.space().index(state, o).unwrap());
                assert!((by_level.rate_out(a) - by_tasks.rate_out(b)).abs() < 1e-15 * by_level.rate_out(a));
            }
        }
    }

    #[test]
    fn bad_rates_of_a_function_are_named() {
        let space = StateSpace::cloud(2, 2).unwrap();
        let refused = |m: Moves| Generator::from_rates(&space, Order::TaskMajor, |_| m).unwrap_err().to_string();
        assert!(refused(Moves { turn_on: f64::NAN, ..Moves::default() }).contains("turning on is NaN"));
        assert!(refused(Moves { service: -1.0, ..Moves::default() }).contains("service rate is -1"));
        assert!(refused(Moves { arrival: 1.7e308, turn_on: 1.7e308, ..Moves::default() }).contains("largest number"));
    }
}
