//! Times and what they decide: five runs, each method in turn, their median and quartiles.

use serde_json::{Value, json};

use crate::document::Verdict;
use crate::experiment::{Error, Facts, Results};
use crate::measure::ratio;

/// Runs of each method that a claim on seconds is about.
pub const ROUNDS: usize = 5;
/// A time of fewer runs counts as known up to this factor.
const ONE_RUN: f64 = 2.0;

/// The middle half of some runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

impl Spread {
    /// Median and quartiles of five runs or more; fewer are known up to a factor of two. None for no runs.
    pub fn of(runs: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut runs: Vec<f64> = runs.into_iter().collect();
        runs.sort_by(f64::total_cmp);
        let (first, last) = (*runs.first()?, *runs.last()?);
        let at = |q: f64| {
            let place = q * (runs.len() - 1) as f64;
            let (below, above) = (runs[place.floor() as usize], runs[place.ceil() as usize]);
            below + place.fract() * (above - below)
        };
        Some(match runs.len() {
            ROUNDS.. => Self { low: at(0.25), median: at(0.5), high: at(0.75) },
            _ => Self { low: first / ONE_RUN, median: at(0.5), high: last * ONE_RUN },
        })
    }

    /// Of two times that were not measured in turn: the quotient of their medians, and as far as it may be off.
    pub fn quotient(self, other: Self) -> Self {
        Self { low: self.low / other.high, median: self.median / other.median, high: self.high / other.low }
    }

    /// Whether it is above a bound: not decided where the bound lies between the quartiles.
    pub fn above(self, bound: f64) -> Verdict {
        match () {
            () if self.low > bound => Verdict::Reproduced,
            () if self.high < bound => Verdict::NotReproduced,
            () => Verdict::NotDecided,
        }
    }

    /// Whether it is between two bounds, likewise.
    pub fn within(self, [low, high]: [f64; 2]) -> Verdict {
        match () {
            () if self.low >= low && self.high <= high => Verdict::Reproduced,
            () if self.high < low || self.low > high => Verdict::NotReproduced,
            () => Verdict::NotDecided,
        }
    }

    /// "1.25 (1.20 to 1.31)"
    pub fn factor(self) -> String {
        let [low, median, high] = [self.low, self.median, self.high].map(|v| ratio(Some(v)));
        format!("{median} ({low} to {high})")
    }

    /// "+25 % (20 to 31)" of a factor less 1.
    pub fn percent(self) -> String {
        let [low, median, high] = [self.low, self.median, self.high].map(|v| 100.0 * v);
        format!("{median:+.0} % ({low:+.0} to {high:+.0})").replace('-', "−")
    }
}

/// A piece of work with a name: facts with its `seconds`, or `solve_seconds`, and perhaps `setup_seconds`.
pub type Work<'a> = (&'static str, Box<dyn FnMut() -> Result<Value, Error> + 'a>);

/// Five rounds of some pieces of work, one after the other in each: the facts of the first round, the medians of their seconds,
/// and `runs`, the seconds of each round, setup included, with `shares`, what a preconditioner took of each solve. What fails or
/// does not converge is not repeated.
pub fn rounds(mut work: Vec<Work<'_>>) -> Result<Facts, Error> {
    let mut all: Vec<Vec<Value>> = vec![Vec::new(); work.len()];
    for round in 0..ROUNDS {
        for ((_, run), found) in work.iter_mut().zip(&mut all) {
            if round == 0 || found[0]["outcome"] == "converged" || found[0]["solve_seconds"].is_number() {
                found.push(run()?);
            }
        }
    }
    let summary = |found: Vec<Value>| {
        let runs: Vec<f64> = found.iter().filter_map(whole).collect();
        let mut facts = found[0].clone();
        for (key, value) in facts.as_object_mut().into_iter().flatten().filter(|(key, _)| key.ends_with("seconds")) {
            if let Some(spread) = Spread::of(found.iter().filter_map(|f| f[key.as_str()].as_f64())) {
                *value = json!(spread.median);
            }
        }
        facts["runs"] = json!(runs);
        let shares: Vec<f64> = found.iter().filter_map(share).collect();
        if !shares.is_empty() {
            facts["shares"] = json!(shares);
        }
        facts
    };
    Ok(work.iter().map(|(name, _)| (*name).to_owned()).zip(all.into_iter().map(summary)).collect())
}

/// Seconds of a run, setup included.
fn whole(facts: &Value) -> Option<f64> {
    let solve = facts["solve_seconds"].as_f64().or_else(|| facts["seconds"].as_f64())?;
    Some(facts["setup_seconds"].as_f64().unwrap_or(0.0) + solve)
}

/// Of a solve that its preconditioner took.
fn share(facts: &Value) -> Option<f64> {
    Some(facts["preconditioner_seconds"].as_f64()? / facts["seconds"].as_f64()?)
}

/// Numbers of a list in the facts of an experiment.
pub fn list(results: &Results, id: &str, pointer: &str) -> Vec<f64> {
    let values = results.at(id, pointer).and_then(Value::as_array);
    values.into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// Quotients of the runs of two methods that were run in turn. None where one of them has none.
pub fn quotients(results: &Results, id: &str, [over, under]: [&str; 2]) -> Option<Spread> {
    let [a, b] = [over, under].map(|key| list(results, id, &format!("/{key}/runs")));
    Spread::of(a.into_iter().zip(b).map(|(a, b)| a / b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_five_are_the_second_and_the_fourth() {
        let spread = Spread::of([5.0, 1.0, 2.0, 100.0, 3.0]).unwrap();
        assert_eq!(spread, Spread { low: 2.0, median: 3.0, high: 5.0 });
        assert_eq!(spread.factor(), "3.00 (2.00 to 5.00)");
        assert_eq!(Spread::of([3.0]).unwrap(), Spread { low: 1.5, median: 3.0, high: 6.0 });
        assert_eq!(Spread::of([]), None);
        let half = Spread { low: -0.5, median: -0.25, high: 0.5 };
        assert_eq!(half.percent(), "−25 % (−50 to +50)");
    }

    #[test]
    fn what_straddles_is_not_decided() {
        let spread = Spread { low: 2.0, median: 3.0, high: 5.0 };
        assert_eq!(
            [1.0, 4.0, 6.0].map(|b| spread.above(b)),
            [Verdict::Reproduced, Verdict::NotDecided, Verdict::NotReproduced]
        );
        let within = [[1.0, 6.0], [2.5, 6.0], [1.0, 4.0], [5.5, 6.0], [0.0, 1.0]].map(|b| spread.within(b));
        let [yes, open, no] = [Verdict::Reproduced, Verdict::NotDecided, Verdict::NotReproduced];
        assert_eq!(within, [yes, open, open, no, no]);
        assert_eq!(spread.quotient(spread), Spread { low: 0.4, median: 1.0, high: 2.5 });
    }

    #[test]
    fn rounds_take_turns_and_repeat_what_converges() {
        use std::cell::RefCell;
        let order = RefCell::new(String::new());
        let count = RefCell::new(0.0);
        let facts = rounds(vec![
            (
                "a",
                Box::new(|| {
                    order.borrow_mut().push('a');
                    *count.borrow_mut() += 1.0;
                    Ok(json!({ "outcome": "converged", "seconds": *count.borrow(), "setup_seconds": 10.0 }))
                }),
            ),
            (
                "b",
                Box::new(|| {
                    order.borrow_mut().push('b');
                    Ok(json!({ "outcome": "iteration-limit", "seconds": 1.0 }))
                }),
            ),
            (
                "c",
                Box::new(|| {
                    order.borrow_mut().push('c');
                    Ok(json!({ "setup_seconds": 1.0, "solve_seconds": 2.0 }))
                }),
            ),
        ])
        .unwrap();
        assert_eq!(*order.borrow(), "abcacacacac");
        assert_eq!(facts["a"]["runs"], json!([11.0, 12.0, 13.0, 14.0, 15.0]));
        assert_eq!((&facts["a"]["seconds"], &facts["b"]["runs"]), (&json!(3.0), &json!([1.0])));
        assert_eq!(facts["c"]["runs"], json!([3.0, 3.0, 3.0, 3.0, 3.0]));
    }
}
