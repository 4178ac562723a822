//! Distributions in time and first-passage times against closed forms, each other, and brute force.

use bt_formats::Progress;
use bt_queue::{
    CloudModel, Error, Form, Generator, Moves, Order, Rates, Scaled, StateSpace, Stationary, mean_first_passage,
    transient,
};
use std::ops::ControlFlow;

fn cloud(m: usize, k: usize, arrival: f64) -> (CloudModel, Generator) {
    let rates = Rates { arrival, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
    let model = CloudModel::new(m, k, rates, Form::Repaired).unwrap();
    let q = model.generator(Order::TaskMajor).unwrap();
    (model, q)
}

fn empty(n: usize) -> Vec<f64> {
    let mut p = vec![0.0; n];
    p[0] = 1.0;
    p
}

#[test]
fn time_zero_steps_and_equilibrium() {
    let (_, q) = cloud(6, 4, 2.0);
    let start = empty(q.n());
    let p = transient(&q, &start, &[0.0, 0.7, 2.0, 400.0], 1e-13, &mut ()).unwrap();
    assert_eq!(p[0], start);
    // One step as well as two.
    let direct = transient(&q, &start, &[2.0], 1e-13, &mut ()).unwrap();
    for (a, b) in p[2].iter().zip(&direct[0]) {
        assert!((a - b).abs() < 1e-12);
    }
    let pi = Stationary::gth(&q).unwrap();
    for (a, b) in p[3].iter().zip(pi.to_f64()) {
        assert!((a - b).abs() < 1e-11, "{a} {b}");
    }
    for p in &p {
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-14 && p.iter().all(|&p| p >= 0.0));
    }
}

/// M/M/∞ from empty: Poisson with mean (λ/μ)(1 − e^{−μt}).
#[test]
fn an_unlimited_queue_is_poisson() {
    let space = StateSpace::new([(0, 60)]).unwrap();
    let rates = |s: bt_queue::State| Moves { arrival: 5.0, service: s.tasks as f64, ..Moves::default() };
    let q = Generator::from_rates(&space, Order::TaskMajor, rates).unwrap();
    let times = [0.1, 1.0, 3.0];
    let p = transient(&q, &empty(61), &times, 1e-14, &mut ()).unwrap();
    for (p, t) in p.iter().zip(times) {
        let mean = 5.0 * (1.0 - (-t).exp());
        let mut exact = (-mean).exp();
        for (k, &p) in p.iter().enumerate().take(25) {
            assert!((p - exact).abs() < 1e-12, "{t} {k}: {p} {exact}");
            exact *= mean / (k + 1) as f64;
        }
    }
}

#[test]
fn bad_requests_are_named() {
    let (_, q) = cloud(3, 2, 1.0);
    let p = empty(q.n());
    let refused = |p: &[f64], t: &[f64], tolerance| transient(&q, p, t, tolerance, &mut ()).unwrap_err().to_string();
    assert!(refused(&[1.0], &[1.0], 1e-9).contains("initial distribution"));
    assert!(refused(&vec![0.5; q.n()], &[1.0], 1e-9).contains("must be 1"));
    assert!(refused(&vec![f64::NAN; q.n()], &[1.0], 1e-9).contains("NaN"));
    assert!(refused(&p, &[2.0, 1.0], 1e-9).contains("decrease"));
    assert!(refused(&p, &[f64::INFINITY], 1e-9).contains("finite"));
    assert!(refused(&p, &[1e12], 1e-9).contains("1e9"));
    assert!(refused(&p, &[1.0], 0.0).contains("tolerance"));
    let mut stop = |_: Progress| ControlFlow::Break(());
    assert!(matches!(transient(&q, &p, &[1.0], 1e-9, &mut stop), Err(Error::Stopped)));
    assert!(mean_first_passage(&q, |_| false).unwrap_err().to_string().contains("target"));
}

/// The defining equations, Σ_j q_ij (h_i − h_j) = 1, in several orders and widths.
#[test]
fn mean_times_solve_their_equations() {
    for order in [Order::LevelMajor, Order::TaskMajor] {
        let rates = Rates { arrival: 6.0, service: 1.0, turn_on: 0.5, turn_off: 2.0 };
        let model = CloudModel::new(7, 12, rates, Form::Repaired).unwrap();
        let q = model.generator(order).unwrap();
        // Targets at either end and in the middle, and a scattered one.
        for residue in [0, 5, 11] {
            let target = |s: usize| s % 60 == residue;
            let h = mean_first_passage(&q, target).unwrap();
            for i in 0..q.n() {
                let h_i = h[i].unwrap().to_f64();
                if target(i) {
                    assert_eq!(h_i, 0.0);
                    continue;
                }
                let inflow: f64 = q.rates(i).map(|(j, rate)| rate * h[j].unwrap().to_f64()).sum();
                assert!((q.rate_out(i) * h_i - 1.0 - inflow).abs() < 1e-12 * q.rate_out(i) * h_i, "{order:?} {i}");
            }
        }
    }
}

/// Upwards against a strong drift: h = Σ_{j<N} Σ_{i≤j} ρ^{−…}, about 10^1000, and its leading digits.
#[test]
fn enormous_mean_times() {
    let n = 1000;
    let space = StateSpace::new([(0, n)]).unwrap();
    let moves = Moves { arrival: 1.0, service: 10.0, ..Moves::default() };
    let q = Generator::from_rates(&space, Order::TaskMajor, |_| moves).unwrap();
    let h = mean_first_passage(&q, |s| s == n).unwrap();
    // E₀T_N = Σ_{k=0}^{N−1} (1/λ) Σ_{i=0}^{k} (μ/λ)^i = (10·(10^N − 1)/9 − N)/9 for μ/λ = 10
    let exact = n as f64 + (10.0f64 / 81.0).log10();
    assert!((h[0].unwrap().log10() - exact).abs() < 1e-9, "{}", h[0].unwrap().log10());
}

#[test]
fn targets_that_may_be_missed_take_forever() {
    // 0 ← 1 → 2, 3 → 1: from 1 the chain may end in 0.
    let mut coo = bt_formats::Coo::new(5, 5).unwrap();
    for (i, j) in [(1, 0), (1, 2), (3, 1), (4, 2)] {
        coo.push(i, j, 1.0).unwrap();
        coo.push(i, i, -1.0).unwrap();
    }
    let q = Generator::new(coo.to_csr().unwrap()).unwrap();
    let h: Vec<Option<f64>> =
        mean_first_passage(&q, |s| s == 2).unwrap().iter().map(|h| h.map(Scaled::to_f64)).collect();
    assert_eq!(h, [None, None, Some(0.0), None, Some(1.0)]);
    let h: Vec<Option<f64>> =
        mean_first_passage(&q, |s| s == 2 || s == 0).unwrap().iter().map(|h| h.map(Scaled::to_f64)).collect();
    assert_eq!(h, [Some(0.0), Some(0.5), Some(0.0), Some(1.5), Some(1.0)]);
}

/// Events without end: once the chain is steady no product follows, and the monitor sees few of them.
#[test]
fn a_steady_chain_needs_no_products() {
    for (m, k, arrival) in [(6, 4, 2.0), (40, 16, 10.0)] {
        let (_, q) = cloud(m, k, arrival);
        let rate = q.uniformise(1.0).unwrap().rate;
        let pi = Stationary::gth(&q).unwrap().to_f64();
        let mut products = 0;
        let mut count = |p: Progress| {
            assert!(matches!(p, Progress::Step { phase: "uniformisation", .. }));
            products += 1;
            ControlFlow::Continue(())
        };
        let p = transient(&q, &empty(q.n()), &[1e7 / rate, 1e8 / rate], 1e-12, &mut count).unwrap();
        for p in &p {
            let distance: f64 = p.iter().zip(&pi).map(|(a, b)| (a - b).abs()).sum();
            assert!(distance < 1e-9, "{m}: {distance:e}");
        }
        assert!(products < 100_000, "{m}: {products}");
    }
}

/// What the detection leaves is what the products give: the same chain with so many more that it does not pay, and one without.
#[test]
fn the_steady_state_is_not_taken_too_early() {
    // Two states that change at 1e-3 beside one that turns at rate 1: slow against Λ.
    let mut coo = bt_formats::Coo::new(3, 3).unwrap();
    for (i, j, rate) in [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 1e-3), (2, 1, 3e-3)] {
        coo.push(i, j, rate).unwrap();
        coo.push(i, i, -rate).unwrap();
    }
    let q = Generator::new(coo.to_csr().unwrap()).unwrap();
    // p₂(t) by the eigenvalues of the three states: a tenth of the way for t = 30 and all of it for 30 000.
    let times = [30.0, 300.0, 3000.0, 30_000.0];
    let p = transient(&q, &empty(3), &times, 1e-13, &mut ()).unwrap();
    // σ² − (2 + 1e-3 + 3e-3)σ + (3·2e-3 + 1e-3) = 0 for the decays, π = (3, 3, 1)/7
    let (sum, product) = (2.0 + 4e-3, 2.0 * 3e-3 + 1e-3);
    let slow = 2.0 * product / (sum + f64::sqrt(sum * sum - 4.0 * product));
    let fast = product / slow;
    for (p, t) in p.iter().zip(times) {
        let exact = (1.0 - (fast * f64::exp(-slow * t) - slow * f64::exp(-fast * t)) / (fast - slow)) / 7.0;
        assert!((p[2] - exact).abs() < 1e-11, "{t}: {} {exact}", p[2]);
    }
}

/// Several closed classes: the limit depends on the start, and is found all the same.
#[test]
fn a_gambler_is_ruined_in_good_time() {
    // A fair game between 0 and 10 from 3, Λ = 1: ruined with probability 7/10.
    let n = 11;
    let mut coo = bt_formats::Coo::new(n, n).unwrap();
    for i in 1..n - 1 {
        coo.push(i, i - 1, 0.5).unwrap();
        coo.push(i, i + 1, 0.5).unwrap();
        coo.push(i, i, -1.0).unwrap();
    }
    let q = Generator::new(coo.to_csr().unwrap()).unwrap();
    let mut start = vec![0.0; n];
    start[3] = 1.0;
    let mut products = 0;
    let mut count = |_: Progress| {
        products += 1;
        ControlFlow::Continue(())
    };
    let p = transient(&q, &start, &[1e8], 1e-12, &mut count).unwrap();
    assert!((p[0][0] - 0.7).abs() < 1e-11 && (p[0][10] - 0.3).abs() < 1e-11, "{:?}", p[0]);
    assert!(products < 2000, "{products}");
}

/// Pairs that change places once in 1e7 events or so, after 1e8 events: squared, for products would take minutes.
#[test]
fn slow_chains_are_squared() {
    for epsilon in [1e-6, 1e-8, 1e-10] {
        let mut coo = bt_formats::Coo::new(4, 4).unwrap();
        let pairs = [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 2.0 * epsilon), (2, 1, epsilon), (2, 3, 1.0), (3, 2, 1.0)];
        for (i, j, rate) in pairs {
            coo.push(i, j, rate).unwrap();
            coo.push(i, i, -rate).unwrap();
        }
        let q = Generator::new(coo.to_csr().unwrap()).unwrap();
        let (mut squarings, mut products) = (0, 0);
        let mut count = |p: Progress| {
            match p {
                Progress::Step { phase: "squaring", .. } => squarings += 1,
                _ => products += 1,
            }
            ControlFlow::Continue(())
        };
        let times = [1e4, 1e6, 3e7, 1e8];
        let p = transient(&q, &empty(4), &times, 1e-12, &mut count).unwrap();
        assert!(squarings > 10 && products < 200_000, "{squarings} {products}");
        // Between the pairs at rates ε and ε/2, but for terms of order ε.
        for (p, t) in p.iter().zip(times) {
            let exact = 2.0 / 3.0 * (1.0 - f64::exp(-1.5 * epsilon * t));
            let ours = p[2] + p[3];
            assert!((ours - exact).abs() < 2.0 * epsilon + 1e-11, "{epsilon} {t}: {ours} {exact}");
        }
    }
}

/// Squaring and products agree where both can be done: a birth and death chain that is not steady at the end.
#[test]
fn squaring_agrees_with_products() {
    let n = 8;
    let chain = |extra: usize| {
        let mut coo = bt_formats::Coo::new(n + extra, n + extra).unwrap();
        for i in 0..n + extra - 1 {
            let (up, down) = if i == 3 { (2e-5, 1e-5) } else { (1.0 + i as f64 / 8.0, 1.5) };
            // The states added make the matrix too large to square, and are never reached.
            for (a, b, rate) in [(i, i + 1, if i + 1 < n { up } else { 0.0 }), (i + 1, i, down)] {
                coo.push(a, b, rate).unwrap();
                coo.push(a, a, -rate).unwrap();
            }
        }
        Generator::new(coo.to_csr().unwrap()).unwrap()
    };
    let run = |q: &Generator| {
        let mut squared = false;
        let mut watch = |p: Progress| {
            squared |= matches!(p, Progress::Step { phase: "squaring", .. });
            ControlFlow::Continue(())
        };
        let p = transient(q, &empty(q.n()), &[400.0, 1600.0], 1e-13, &mut watch).unwrap();
        (p, squared)
    };
    let ((squared, yes), (products, no)) = (run(&chain(0)), run(&chain(3000)));
    assert!(yes && !no);
    for (a, b) in squared.iter().zip(&products) {
        for i in 0..n {
            assert!((a[i] - b[i]).abs() < 1e-11, "{i}: {} {}", a[i], b[i]);
        }
    }
}
