//! Many systems in one call, a system a thread.

use bt_direct::{FactorError, Given};
use bt_formats::{Monitor, Progress, Scalar};
use faer::MatRef;
use rayon::prelude::*;

use crate::error::Error;
use crate::options::{DeviceChoice, SolveOptions};
use crate::solution::Solution;
use crate::solve::solve;

/// Systems that a thread solves between two looks at the monitor.
const ROUND: usize = 64;

/// Solves Aₛ·Xₛ = Bₛ for every pair of `systems`, in any formats and sizes: each as [`solve`] does, with a report and a certificate of its own.
/// A system that fails disturbs no other. The answers are those of one call each, bit for bit.
///
/// Fewer systems than threads, and systems on a GPU, are solved one after another, each by all threads. `options.time_limit` is that of each.
/// The monitor sees how many are done; once it breaks, the others end with [`FactorError::Stopped`].
///
/// Thousands of tridiagonal systems of one size are faster without a report each: `bt_direct::batch::TridiagonalBatch`.
///
/// # Errors
/// [`Error::Usage`] when the options contradict each other; what is wrong with one system stands in its place.
///
/// # Example
/// ```
/// use blocktri::{Given, SolveOptions, Tridiagonal, faer::mat, solve_batch};
/// // [ d 1 ] [ x ]   [ d + 1 ]
/// // [ 1 d ] [ y ] = [ 1 + d ]
/// let chain = |d: f64| Tridiagonal::new(vec![0.0, 1.0], vec![d; 2], vec![1.0, 0.0]);
/// let (chains, right) = ([chain(3.0)?, chain(1.0)?, chain(5.0)?], [mat![[4.0], [4.0]], mat![[2.0], [2.0]], mat![[6.0], [6.0]]]);
/// let systems: Vec<_> = chains.iter().zip(&right).map(|(a, b)| (Given::from(a), b.as_ref())).collect();
/// let answers = solve_batch(&systems, &SolveOptions::default(), &mut ())?;
/// assert!(answers[1].is_err()); // singular
/// for answer in [&answers[0], &answers[2]] {
///     let x = &answer.as_ref().expect("regular").x;
///     assert!((x - mat![[1.0], [1.0]]).norm_max() < 1e-15);
/// }
/// # Ok::<(), blocktri::Error>(())
/// ```
pub fn solve_batch<T: Scalar>(
    systems: &[(Given<'_, T>, MatRef<'_, T>)],
    options: &SolveOptions,
    monitor: &mut dyn Monitor,
) -> Result<Vec<Result<Solution<T>, Error>>, Error> {
    options.check()?;
    let (total, threads) = (systems.len(), rayon::current_num_threads());
    let one_by_one = total < threads || options.device != DeviceChoice::Cpu;
    let mut answers = Vec::with_capacity(total);
    for round in systems.chunks(if one_by_one { 1 } else { ROUND * threads }) {
        if monitor.observe(Progress::Step { phase: "solve", done: answers.len(), total }).is_break() {
            break;
        }
        if one_by_one {
            answers.extend(round.iter().map(|&(a, b)| solve(a, b, options, monitor)));
        } else {
            answers.par_extend(round.par_iter().map(|&(a, b)| solve(a, b, options, &mut ())));
        }
    }
    answers.resize_with(total, || Err(Error::Factor(FactorError::Stopped)));
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use bt_formats::{Csr, Tridiagonal};
    use faer::Mat;

    use super::*;

    #[test]
    fn answers_are_those_of_one_call_each() {
        let chains: Vec<Tridiagonal<f64>> = (0..300)
            .map(|s| {
                let n = 2 + s % 7;
                let (mut lower, mut upper) = (vec![1.0; n], vec![-1.5; n]);
                (lower[0], upper[n - 1]) = (0.0, 0.0);
                Tridiagonal::new(lower, (0..n).map(|i| 2.5 + (i + s) as f64).collect(), upper).unwrap()
            })
            .collect();
        let rows: Vec<Csr<f64>> = chains.iter().map(|a| a.to_csr().unwrap()).collect();
        let right: Vec<Mat<f64>> =
            rows.iter().map(|a| Mat::from_fn(a.to_dense().nrows(), 2, |i, j| (1 + i + 3 * j) as f64)).collect();
        let mixed = chains.iter().zip(&rows).zip(&right).enumerate();
        let systems: Vec<_> =
            mixed.map(|(s, ((a, r), b))| (if s % 2 == 0 { a.into() } else { r.into() }, b.as_ref())).collect();
        let options = SolveOptions::default();
        let answers = solve_batch(&systems, &options, &mut ()).unwrap();
        assert_eq!(answers.len(), systems.len());
        for (answer, &(a, b)) in answers.iter().zip(&systems) {
            let (answer, alone) = (answer.as_ref().unwrap(), solve(a, b, &options, &mut ()).unwrap());
            assert_eq!(
                (&answer.x, &answer.method, answer.report.outcome),
                (&alone.x, &alone.method, alone.report.outcome)
            );
        }
    }

    #[test]
    fn a_monitor_that_breaks_ends_what_is_left() {
        struct After(usize);
        impl Monitor for After {
            fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
                match progress {
                    Progress::Step { phase: "solve", done, .. } if done >= self.0 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            }
        }
        let (a, b) = (Tridiagonal::new(vec![0.0], vec![2.0], vec![0.0]).unwrap(), Mat::from_fn(1, 1, |_, _| 4.0));
        let systems = vec![(Given::from(&a), b.as_ref()); 2 * ROUND * rayon::current_num_threads()];
        let answers = solve_batch(&systems, &SolveOptions::default(), &mut After(1)).unwrap();
        let solved = answers.iter().take_while(|answer| answer.is_ok()).count();
        assert_eq!(solved, systems.len() / 2);
        let stopped =
            |answer: &Result<Solution<f64>, Error>| matches!(answer, Err(Error::Factor(FactorError::Stopped)));
        assert!(answers[solved..].iter().all(stopped));
        assert!(solve_batch(&systems, &SolveOptions::default(), &mut After(0)).unwrap().iter().all(stopped));
    }
}
