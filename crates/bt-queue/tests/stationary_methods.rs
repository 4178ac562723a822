//! The methods that `gth` is compared with: right where they can be, and never a wrong answer called converged.

use bt_formats::{Coo, Outcome, Progress, StopCriterion};
use bt_queue::{CloudModel, Error, Form, Generator, Order, Rates, Stationary};
use std::ops::ControlFlow;

fn model(m: usize, k: usize, r: [f64; 4], form: Form) -> CloudModel {
    CloudModel::new(m, k, Rates { arrival: r[0], service: r[1], turn_on: r[2], turn_off: r[3] }, form).unwrap()
}

fn stop(rtol: f64) -> StopCriterion {
    StopCriterion { rtol, ..StopCriterion::default() }
}

/// Σ|π − π̂|/2, the largest error of the probability of any event.
fn distance(a: &Stationary, b: &Stationary) -> f64 {
    a.to_f64().iter().zip(b.to_f64()).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
}

#[test]
fn all_methods_agree_on_easy_models() {
    for form in [Form::Repaired, Form::Literal] {
        let model = model(6, 4, [2.0, 1.0, 1.0, 1.0], form);
        let q = model.generator(Order::LevelMajor).unwrap();
        let levels = model.space().partition(Order::LevelMajor).unwrap();
        let gth = Stationary::gth(&q).unwrap();
        assert_eq!((gth.outcome(), gth.iterations()), (Outcome::Converged, 0));
        let stop = stop(1e-13);
        for (pi, within) in [
            (Stationary::block_lu(&q, Some(&levels)), 1e-14),
            (Stationary::block_lu(&q, None), 1e-14),
            (Stationary::hbisa(&q, Some(&levels), &stop, &mut ()), 1e-11),
            (Stationary::hbisa(&q, None, &stop, &mut ()), 1e-11),
            (Stationary::power(&q, &stop, &mut ()), 1e-10),
        ] {
            let pi = pi.unwrap();
            assert_eq!((pi.outcome(), pi.recurrent()), (Outcome::Converged, gth.recurrent()), "{}", pi.method());
            assert!(distance(&pi, &gth) < within, "{}: {}", pi.method(), distance(&pi, &gth));
            assert!(pi.error_bound().unwrap() <= 1e-8, "{}: {:?}", pi.method(), pi.error_bound());
            assert_eq!(pi.iterations() > 0, pi.method() != "block-lu");
        }
    }
}

/// Rates a million apart: a power iteration has no chance, and says so.
#[test]
fn what_does_not_converge_says_so() {
    let model = model(6, 4, [2.0, 1.0, 1e-6, 1e-6], Form::Repaired);
    let q = model.generator(Order::LevelMajor).unwrap();
    let pi = Stationary::power(&q, &StopCriterion { rtol: 1e-12, max_iters: 500, ..stop(0.0) }, &mut ()).unwrap();
    assert_eq!((pi.outcome(), pi.iterations()), (Outcome::IterationLimit, 500));
    assert!((pi.to_f64().iter().sum::<f64>() - 1.0).abs() < 1e-14);
    let mut seen = 0;
    let mut third = |p: Progress| {
        assert!(matches!(p, Progress::Iteration { residual, .. } if residual.is_finite()));
        seen += 1;
        if seen == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let levels = model.space().partition(Order::LevelMajor).unwrap();
    let pi = Stationary::hbisa(&q, Some(&levels), &stop(1e-300), &mut third).unwrap();
    assert_eq!((pi.outcome(), pi.iterations()), (Outcome::Stopped, 2));
}

/// Probabilities down to 1e−400: with the mode pinned, the likely states are right to rounding. Without the guess by sweeps the
/// second model came out with 40 negative probabilities.
#[test]
fn block_lu_finds_the_mode() {
    for (m, k, arrival) in [(100, 8, 50.0), (12, 4, 0.24), (10, 4, 15.0), (100, 16, 50.0)] {
        let model = model(m, k, [arrival, 1.0, 1.0, 1.0], Form::Repaired);
        let q = model.generator(Order::LevelMajor).unwrap();
        let levels = model.space().partition(Order::LevelMajor).unwrap();
        let (pi, gth) = (Stationary::block_lu(&q, Some(&levels)).unwrap(), Stationary::gth(&q).unwrap());
        assert_eq!((pi.outcome(), pi.mode()), (Outcome::Converged, gth.mode()), "{m}: {:?}", pi.notes());
        assert!(distance(&pi, &gth) < 1e-12, "{m}: {}", distance(&pi, &gth));
    }
}

#[test]
fn levels_that_are_none_are_refused() {
    let model = model(5, 2, [1.0; 4], Form::Repaired);
    let q = model.generator(Order::LevelMajor).unwrap();
    let wrong = bt_formats::Partition::uniform(24, 6).unwrap();
    assert!(Stationary::block_lu(&q, Some(&wrong)).unwrap_err().to_string().contains("expected 25"));
    let narrow = bt_formats::Partition::uniform(25, 1).unwrap();
    assert!(matches!(Stationary::hbisa(&q, Some(&narrow), &stop(1e-8), &mut ()), Err(Error::Input(_))));
    let whole = bt_formats::Partition::uniform(25, 25).unwrap();
    let error = Stationary::hbisa(&q, Some(&whole), &stop(1e-8), &mut ()).unwrap_err();
    assert!(error.to_string().contains("one block"), "{error}");
    // One absorbing state, whatever the method.
    let mut coo = Coo::new(2, 2).unwrap();
    coo.push(0, 1, 1.0).unwrap();
    coo.push(0, 0, -1.0).unwrap();
    let q = Generator::new(coo.to_csr().unwrap()).unwrap();
    for pi in [Stationary::power(&q, &stop(1e-8), &mut ()), Stationary::block_lu(&q, None)] {
        assert_eq!(pi.unwrap().to_f64(), [0.0, 1.0]);
    }
}

fn chain(n: usize, rates: impl IntoIterator<Item = (usize, usize, f64)>) -> Generator {
    let mut coo = Coo::new(n, n).unwrap();
    for (i, j, rate) in rates {
        coo.push(i, j, rate).unwrap();
        coo.push(i, i, -rate).unwrap();
    }
    Generator::new(coo.to_csr().unwrap()).unwrap()
}

/// All methods but gth, to the default tolerance.
fn others(q: &Generator) -> Vec<Stationary> {
    let stop = StopCriterion::default();
    let run = [
        Stationary::block_lu(q, None),
        Stationary::hbisa(q, None, &stop, &mut ()),
        Stationary::power(q, &stop, &mut ()),
    ];
    run.into_iter().map(Result::unwrap).collect()
}

/// What is called converged is right in every state to its bound; the largest relative error.
fn judged(pi: &Stationary, exact: impl Fn(usize) -> f64) -> f64 {
    let error = (0..pi.n()).map(|i| (pi.probability(i).to_f64() / exact(i) - 1.0).abs()).fold(0.0, f64::max);
    if let Some(bound) = pi.error_bound() {
        assert!(error <= bound, "{}: {error:e} beyond {bound:e}", pi.method());
    }
    if pi.outcome() == Outcome::Converged {
        assert!(pi.error_bound().unwrap() <= 1e-8, "{}: {:?}", pi.method(), pi.error_bound());
    }
    error
}

/// Pairs that hardly lead to each other balance for any weights of the pairs; (1, 1, 2, 2)/6 is right.
#[test]
fn nearly_decomposable_chains_are_right_or_not_converged() {
    for epsilon in [1e-6, 1e-9, 1e-12, 1e-15, 1e-30] {
        let pairs = [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 2.0 * epsilon), (2, 1, epsilon), (2, 3, 1.0), (3, 2, 1.0)];
        let q = chain(4, pairs);
        for pi in others(&q) {
            let error = judged(&pi, |i| [1.0, 1.0, 2.0, 2.0][i] / 6.0);
            let right = pi.method() != "power";
            assert_eq!(pi.outcome() == Outcome::Converged, right, "{} {epsilon}: {error:e}", pi.method());
        }
    }
}

/// Courtois' matrix: three groups of states, 1e-4 between them. The groups are no levels, so that the sweeps have one state a level.
#[test]
fn groups_across_the_order() {
    let n = 12;
    let group = |i: usize| i % 3;
    let rates = (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|(i, j)| i != j).map(|(i, j)| {
        let base = ((7 * i + 3 * j) % 5 + 1) as f64;
        (i, j, if group(i) == group(j) { base } else { 1e-7 * base })
    });
    let q = chain(n, rates);
    let gth = Stationary::gth(&q).unwrap();
    for (pi, name) in
        [(Stationary::block_lu(&q, None), "block-lu"), (Stationary::power(&q, &stop(1e-8), &mut ()), "power")]
    {
        let pi = pi.unwrap();
        let error = judged(&pi, |i| gth.probability(i).to_f64());
        assert_eq!((pi.method(), pi.outcome() == Outcome::Converged), (name, name == "block-lu"), "{error:e}");
    }
}

/// Down to 1e-900: with exponents where doubles end.
#[test]
fn sweeps_reach_below_the_smallest_double() {
    let n = 300;
    let q = chain(n, (0..n - 1).flat_map(|i| [(i, i + 1, 1e-3), (i + 1, i, 1.0)]));
    let model = model(100, 16, [50.0, 1.0, 1.0, 1.0], Form::Repaired);
    let cloud = model.generator(Order::LevelMajor).unwrap();
    for (q, least) in [(q, -890.0), (cloud, -399.0)] {
        let gth = Stationary::gth(&q).unwrap();
        for pi in [Stationary::hbisa(&q, None, &stop(1e-8), &mut ()), Stationary::block_lu(&q, None)] {
            let pi = pi.unwrap();
            assert_eq!(pi.outcome(), Outcome::Converged, "{}: {:?}", pi.method(), pi.notes());
            assert!(pi.least().log10() < least);
            for (a, b) in pi.probabilities().iter().zip(gth.probabilities()) {
                assert!(((*a / *b).to_f64() - 1.0).abs() <= pi.error_bound().unwrap(), "{}", pi.method());
            }
        }
    }
}

/// Rates near the ends of the range neither panic nor end as converged and wrong.
#[test]
fn rates_at_the_ends_of_the_range() {
    for scale in [1e307, 1e150, 1e-150, 1e-300] {
        let n = 6;
        let q = chain(n, (0..n - 1).flat_map(|i| [(i, i + 1, 0.5 * scale), (i + 1, i, (i + 1) as f64 * scale)]));
        let gth = Stationary::gth(&q).unwrap();
        let stop = StopCriterion { max_iters: 500, ..StopCriterion::default() };
        let runs = [
            Stationary::block_lu(&q, None),
            Stationary::hbisa(&q, None, &stop, &mut ()),
            Stationary::power(&q, &stop, &mut ()),
        ];
        for pi in runs.into_iter().flatten() {
            judged(&pi, |i| gth.probability(i).to_f64());
        }
    }
}

/// Every state a tie, and rings that are periodic.
#[test]
fn ties_do_not_stop_block_lu() {
    for n in [2, 3, 12, 64, 65] {
        let q = chain(n, (0..n).flat_map(|i| [(i, (i + 1) % n, 1.0), ((i + 1) % n, i, 1.0)]));
        for pi in others(&q) {
            let error = judged(&pi, |_| 1.0 / n as f64);
            assert_eq!(pi.outcome(), Outcome::Converged, "{} of {n}: {error:e}", pi.method());
        }
        // One way round.
        let q = chain(n, (0..n).map(|i| (i, (i + 1) % n, 1.0)));
        let pi = Stationary::block_lu(&q, None).unwrap();
        assert!(judged(&pi, |_| 1.0 / n as f64) < 1e-13 && pi.outcome() == Outcome::Converged, "{n}");
    }
}

/// Ehrenfest's urns: binomial, down to 2⁻⁴⁰.
#[test]
fn binomial_urns() {
    let n = 40;
    let q = chain(n + 1, (0..n).flat_map(|i| [(i, i + 1, (n - i) as f64), (i + 1, i, (i + 1) as f64)]));
    let mut binomial = vec![0.5f64.powi(n as i32)];
    for i in 0..n {
        binomial.push(binomial[i] * (n - i) as f64 / (i + 1) as f64);
    }
    for pi in others(&q) {
        let error = judged(&pi, |i| binomial[i]);
        assert_eq!(pi.outcome(), Outcome::Converged, "{}: {error:e}", pi.method());
    }
}

/// Probabilities down to 1e-200 in every direction, and rates of turning on and off that hold the levels apart.
#[test]
fn cloud_models_are_right_or_not_converged() {
    for (m, k, r, power) in [
        (40, 16, [10.0, 1.0, 1.0, 1.0], false),
        (12, 5, [6.0, 1.0, 1e-10, 1e-10], false),
        (12, 5, [6.0, 1.0, 1e-6, 1e-6], false),
        (13, 6, [0.7285, 7.0288, 0.1477, 0.0309], false),
        (4, 8, [0.1, 1.0, 1.0, 1.0], true),
    ] {
        let model = model(m, k, r, Form::Repaired);
        let q = model.generator(Order::LevelMajor).unwrap();
        let levels = model.space().partition(Order::LevelMajor).unwrap();
        let gth = Stationary::gth(&q).unwrap();
        let exact = |i: usize| gth.probability(i).to_f64();
        let default = StopCriterion::default();
        for pi in [Stationary::block_lu(&q, Some(&levels)), Stationary::hbisa(&q, Some(&levels), &default, &mut ())] {
            let pi = pi.unwrap();
            let error = judged(&pi, exact);
            assert_eq!(pi.outcome(), Outcome::Converged, "{} of {m} × {k}: {error:e} {:?}", pi.method(), pi.notes());
        }
        let pi = Stationary::power(&q, &StopCriterion { max_iters: 3000, ..default }, &mut ()).unwrap();
        let error = judged(&pi, exact);
        assert_eq!(pi.outcome() == Outcome::Converged, power, "{m} × {k}: {error:e}");
    }
}
