//! Stationary distributions on the device: every probability as the processor's elimination has it, whatever the rates.

use crate::support::{Numbers, device};
use bt_formats::{BlockTridiagonal, Coo, HybridLayout, Outcome, Partition, Scaled};
use bt_kernels::{ChainFault, DeviceError, stationary};
use bt_queue::{CloudModel, Form, Generator, Order, Rates, Stationary};

/// Rates 10^±`decades` with neighbours in line, and for half of the pairs in neighbouring levels.
fn chain(sizes: &[usize], decades: f64, seed: u64) -> BlockTridiagonal<f64> {
    let levels = Partition::from_sizes(sizes.iter().copied()).unwrap();
    let mut numbers = Numbers(seed);
    of(sizes, |i, j| {
        let beside = levels.block_of(i).abs_diff(levels.block_of(j)) <= 1;
        let rate = 10f64.powf(decades * numbers.real::<f64>());
        if beside && (i.abs_diff(j) == 1 || numbers.below(2) == 0) { rate } else { 0.0 }
    })
}

fn of(sizes: &[usize], mut rate: impl FnMut(usize, usize) -> f64) -> BlockTridiagonal<f64> {
    let n = sizes.iter().sum();
    let mut coo = Coo::new(n, n).unwrap();
    for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|(i, j)| i != j) {
        let q = rate(i, j);
        if q != 0.0 {
            coo.push(i, j, q).unwrap();
            coo.push(i, i, -q).unwrap();
        }
    }
    let levels = Partition::from_sizes(sizes.iter().copied()).unwrap();
    BlockTridiagonal::from_csr(&coo.to_csr().unwrap(), levels, HybridLayout::default()).unwrap()
}

fn generator(chain: &BlockTridiagonal<f64>) -> Generator {
    Generator::from_rounded(chain.to_csr().unwrap()).unwrap()
}

/// The largest relative error of a probability, the processor's answers being right.
fn error(found: &[Scaled], chain: &BlockTridiagonal<f64>) -> f64 {
    let right = Stationary::gth(&generator(chain)).unwrap();
    assert_eq!(found.len(), chain.n());
    let errors = found.iter().zip(right.probabilities()).map(|(&p, &right)| {
        assert!(!p.is_zero(), "irreducible chains have no zeros");
        ((p / right).to_f64() - 1.0).abs()
    });
    errors.fold(0.0, f64::max)
}

#[test]
fn every_probability_is_that_of_the_processor() {
    let Some(device) = device() else { return };
    let shapes: [&[usize]; 11] =
        [&[1], &[2], &[1, 1], &[3], &[1, 4, 2], &[2; 20], &[5, 3, 4, 6], &[16, 17], &[9, 32, 1], &[33, 5], &[38, 38]];
    let chains: Vec<_> = shapes.iter().zip(1..).map(|(sizes, seed)| chain(sizes, 12.0, seed)).collect();
    let all: Vec<_> = chains.iter().collect();
    let found = stationary(&device, &all).unwrap();
    assert_eq!(found.len(), chains.len());
    for ((chain, found), sizes) in chains.iter().zip(&found).zip(shapes) {
        let pi = found.as_ref().unwrap();
        let error = error(pi, chain);
        let allowed = (4 + chain.n()) as f64 * f64::EPSILON / 2.0;
        assert!(error <= allowed, "{sizes:?}: {error:e} > {allowed:e}");
        assert!((Scaled::total(pi).to_f64() - 1.0).abs() <= 4.0 * f64::EPSILON);
        // What is promised without looking at the rates, and flows that balance to it.
        let certified = Stationary::from_elimination(&generator(chain), chain.partition(), pi).unwrap();
        assert_eq!(certified.outcome(), Outcome::Converged, "{sizes:?}: {}", certified.balance());
        assert!(
            error
                <= certified.error_bound().unwrap()
                    + Stationary::gth(&generator(chain)).unwrap().error_bound().unwrap()
        );
        // The same bits alone.
        assert_eq!(stationary(&device, &[chain]).unwrap()[0].as_ref(), Ok(pi));
    }
    assert!(stationary(&device, &[]).unwrap().is_empty());
}

#[test]
fn probabilities_reach_far_below_the_least_double() {
    let Some(device) = device() else { return };
    // Up at rate 1e-12, down at 1e12: π_i = 1e-24^i to seven roundings each.
    let sizes = [1; 90];
    let line = of(&sizes, |i, j| {
        if j == i + 1 {
            1e-12
        } else if i == j + 1 {
            1e12
        } else {
            0.0
        }
    });
    let pi = stationary(&device, &[&line]).unwrap().remove(0).unwrap();
    assert!((pi[89].log10() + 24.0 * 89.0).abs() < 1e-10, "{}", pi[89].log10());
    assert!(error(&pi, &line) < 90.0 * f64::EPSILON);
    // And as far up: the last state is the likely one.
    let up = of(&sizes, |i, j| {
        if j == i + 1 {
            1e12
        } else if i == j + 1 {
            1e-12
        } else {
            0.0
        }
    });
    let pi = stationary(&device, &[&up]).unwrap().remove(0).unwrap();
    assert!((pi[0].log10() + 24.0 * 89.0).abs() < 1e-10 && (pi[89].to_f64() - 1.0).abs() < 1e-15);
    assert!(error(&pi, &up) < 90.0 * f64::EPSILON);
}

#[test]
fn cloud_models_of_a_sweep_are_solved_at_once() {
    let Some(device) = device() else { return };
    let chain = |arrival: f64| {
        let rates = Rates { arrival, service: 1.0, turn_on: 0.5, turn_off: 2.0 };
        let model = CloudModel::new(4 + arrival as usize, 3, rates, Form::Repaired).unwrap();
        let levels = model.space().partition(Order::TaskMajor).unwrap();
        model.generator(Order::TaskMajor).unwrap().to_block_tridiagonal(levels).unwrap()
    };
    let chains: Vec<_> = (1..9).map(|k| chain(0.5 * f64::from(k))).collect();
    let found = stationary(&device, &chains.iter().collect::<Vec<_>>()).unwrap();
    for (chain, found) in chains.iter().zip(found) {
        assert!(error(&found.unwrap(), chain) <= chain.n() as f64 * f64::EPSILON);
    }
}

#[test]
fn a_chain_without_an_answer_disturbs_no_other() {
    let Some(device) = device() else { return };
    let good = chain(&[3, 2, 4], 3.0, 7);
    // Nothing leads down from state 1; from state 2 of a level whose states 0 and 1 talk to each other only.
    let upward = of(&[1, 1], |i, j| f64::from(i < j));
    let split = of(&[1, 3], |i, j| f64::from((i < 3) == (j < 3)));
    // 1e-200·1e-100 is no double of full precision; nor is 1e-300 a pivot, or a sum of these an answer.
    let small = of(&[3], |i, j| {
        if (i, j) == (0, 2) {
            1e-200
        } else if (i, j) == (2, 1) {
            1e-100
        } else {
            1.0
        }
    });
    let tiny = of(&[1, 1, 1], |i, j| {
        if i == j + 1 {
            1e-300
        } else if j == i + 1 {
            1.0
        } else {
            0.0
        }
    });
    let large = of(&[1, 3], |i, j| if i == 3 && j < 3 { 1e308 } else { 1.0 });
    let wide = chain(&[2, 39], 1.0, 3);
    let chains = [&upward, &good, &split, &small, &wide, &tiny, &good, &large];
    let found = stationary(&device, &chains).unwrap();
    let alone = stationary(&device, &[&good]).unwrap().remove(0);
    assert!(error(alone.as_ref().unwrap(), &good) < 1e-14);
    assert_eq!((&found[1], &found[6]), (&alone, &alone));
    let faults: Vec<_> = found.into_iter().filter_map(Result::err).collect();
    let expected = [
        ChainFault::NoWay { state: 1 },
        ChainFault::NoWay { state: 3 },
        ChainFault::Range { level: 0 },
        ChainFault::Wide { level: 1, states: 39 },
        ChainFault::Range { level: 2 },
        ChainFault::Range { level: 1 },
    ];
    assert_eq!(faults, expected);
    assert!(faults[1].to_string().contains("state 3 (from 0)") && faults[3].to_string().contains("39 states"));
}

#[test]
fn states_that_nothing_leads_to_have_probability_zero() {
    let Some(device) = device() else { return };
    // 0 ⇄ 1, and 2 leads to both.
    let transient = of(&[2, 1], |i, j| if j < 2 { 1.0 + (i + j) as f64 } else { 0.0 });
    let pi = stationary(&device, &[&transient]).unwrap().remove(0).unwrap();
    assert_eq!([pi[0].to_f64(), pi[1].to_f64(), pi[2].to_f64()], [0.5, 0.5, 0.0]);
}

#[test]
fn rates_are_checked() {
    let Some(device) = device() else { return };
    let good = chain(&[2, 2], 1.0, 1);
    for (value, wanted) in [
        (f64::NAN, "row 0, column 1"),
        (f64::INFINITY, "row 0, column 1"),
        (-2.0, "from state 0 to state 1 of chain 1 (from 0) is -2e0"),
    ] {
        let levels = Partition::from_sizes([2]).unwrap();
        // Whatever is on the diagonal.
        let bad = BlockTridiagonal::from_dense_blocks(levels, vec![f64::NAN, 1.0, value, 5.0], vec![]).unwrap();
        let error = stationary(&device, &[&good, &bad]).unwrap_err();
        assert!(matches!(error, DeviceError::Input(_)) && error.to_string().contains(wanted), "{error}");
    }
    let levels = Partition::from_sizes([2]).unwrap();
    let swap = BlockTridiagonal::from_dense_blocks(levels, vec![f64::NAN, 1.0, 3.0, 5.0], vec![]).unwrap();
    let pi = stationary(&device, &[&swap]).unwrap().remove(0).unwrap();
    assert_eq!([pi[0].to_f64(), pi[1].to_f64()], [0.25, 0.75]);
}
