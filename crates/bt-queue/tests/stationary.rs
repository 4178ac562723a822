//! Stationary distributions against closed forms, the 60-digit references of `../shared/reference` and the chains of
//! `../shared/data/markov`.

use std::path::PathBuf;

use bt_formats::matrix_market;
use bt_formats::{Coo, Csr};
use bt_queue::{CloudModel, Error, Form, Generator, Moves, Order, Rates, StateSpace, Stationary};

fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: ../shared is absent");
    None
}

fn rates(r: [f64; 4]) -> Rates {
    Rates { arrival: r[0], service: r[1], turn_on: r[2], turn_off: r[3] }
}

/// π of a model in level-major order, computed in either order.
fn by_level(model: &CloudModel, order: Order) -> (Vec<f64>, Stationary) {
    let pi = Stationary::gth(&model.generator(order).unwrap()).unwrap();
    let space = model.space();
    let at = |s| pi.probability(space.index(s, order).unwrap()).to_f64();
    (space.states(Order::LevelMajor).map(at).collect(), pi)
}

/// `stationary_small.json`: GTH in 60 digits; where the vector itself is not given, its smallest entry is.
#[test]
fn small_models_match_sixty_digits() {
    let Some(path) = shared("reference/stationary_small.json") else { return };
    // The file writes NaN for errors of other methods, which JSON does not know.
    let text = std::fs::read_to_string(path).unwrap().replace("NaN", "null");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut vectors = 0;
    for case in json.as_array().unwrap() {
        let size = |key: &str| case[key].as_u64().unwrap() as usize;
        let form = if case["form"] == "literal" { Form::Literal } else { Form::Repaired };
        let r = [0, 1, 2, 3].map(|k| case["rates"][k].as_f64().unwrap());
        let model = CloudModel::new(size("m"), size("K"), rates(r), form).unwrap();
        assert_eq!(model.space().n(), size("states"));
        for order in [Order::LevelMajor, Order::TaskMajor] {
            let (pi, report) = by_level(&model, order);
            let name = format!("{} {form:?} {order:?}", case["case"]);
            assert_eq!(report.recurrent(), size("recurrent"), "{name}");
            assert!(report.balance() < 1e-14, "{name}: {}", report.balance());
            assert!(report.error_bound().unwrap() < 2e-10, "{name}");
            assert!((report.least().log10() - case["l10min"].as_f64().unwrap()).abs() < 1e-12, "{name}");
            if let Some(reference) = case["pi"].as_array() {
                vectors += 1;
                let recurrent: Vec<f64> = pi.into_iter().filter(|&p| p > 0.0).collect();
                assert_eq!(recurrent.len(), reference.len(), "{name}");
                for (ours, exact) in recurrent.iter().zip(reference) {
                    let exact: f64 = exact.as_str().unwrap().parse().unwrap();
                    assert!((ours - exact).abs() <= 1e-14 * exact, "{name}: {ours} against {exact}");
                }
            }
        }
    }
    assert_eq!(vectors, 4);
}

/// Smallest probabilities, far below 1e−308. The logarithms are those of GTH in 60 digits (mpmath), our own run: the second
/// replaces −234.9782682978 of `../shared/spec/hbisa.md`, which that run does not confirm; the others agree with it.
#[test]
fn probabilities_far_below_the_smallest_double() {
    for (m, k, arrival, log10) in [
        (100, 16, 50.0, -399.567_346_913_904_8),
        (100, 8, 50.0, -234.978_268_301_643_33),
        (500, 8, 250.0, -1_336.450_684_219_193),
    ] {
        let model = CloudModel::new(m, k, rates([arrival, 1.0, 1.0, 1.0]), Form::Repaired).unwrap();
        let pi = Stationary::gth(&model.generator(Order::TaskMajor).unwrap()).unwrap();
        assert_eq!(pi.recurrent(), model.space().n());
        assert!((pi.least().log10() - log10).abs() < 2e-12, "{m}, {k}: {}", pi.least().log10());
        assert!(pi.balance() < 1e-14 && pi.error_bound().unwrap() < 1e-10);
        assert!((pi.to_f64().iter().sum::<f64>() - 1.0).abs() < 1e-14);
    }
}

fn read(file: &std::path::Path) -> Csr<f64> {
    matrix_market::read_csr(file).unwrap()
}

/// Every chain of the collection: entrywise to 1e−13, exact zeros where states are transient, or the error it must be.
#[test]
fn the_collection_of_chains() {
    let Some(folder) = shared("data/markov") else { return };
    let mut chains = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        if file.extension().is_none_or(|e| e != "mtx") || name.ends_with("_pi") {
            continue;
        }
        chains += 1;
        let q = Generator::new(read(&file)).unwrap();
        let reference = folder.join(format!("{name}_pi.mtx"));
        if !reference.exists() {
            let error = Stationary::gth(&q).unwrap_err();
            assert!(matches!(error, Error::SeveralClosedClasses { count: 2, .. }), "{name}: {error}");
            continue;
        }
        let exact = matrix_market::read_dense::<f64>(&reference).unwrap();
        let pi = Stationary::gth(&q).unwrap();
        for i in 0..q.n() {
            let (ours, exact) = (pi.probability(i).to_f64(), exact[(i, 0)]);
            assert!((ours - exact).abs() <= 1e-13 * exact, "{name}, state {i}: {ours} against {exact}");
        }
        assert!(pi.balance() < 1e-13, "{name}: {}", pi.balance());
    }
    assert_eq!(chains, 13);
}

/// M/M/1/N: πᵢ ∝ ρⁱ, down to 1e−3000.
#[test]
fn a_single_queue_has_its_closed_form() {
    let n = 3000;
    let space = StateSpace::new([(0, n)]).unwrap();
    for rho in [0.1, 10.0] {
        let moves = Moves { arrival: rho, service: 1.0, ..Moves::default() };
        let pi = Stationary::gth(&Generator::from_rates(&space, Order::TaskMajor, |_| moves).unwrap()).unwrap();
        let first = pi.probability(0).log10();
        for i in [1, 2, 10, 1000, n] {
            let exact = first + i as f64 * rho.log10();
            assert!((pi.probability(i).log10() - exact).abs() < 1e-10, "{rho}, {i}");
        }
    }
}

/// Two phases that meet only at the far ends of a long line: no product of rates along the way fits a double, and the
/// probability of the second phase comes through them all.
#[test]
fn rates_that_underflow_are_carried_with_exponents() {
    let n = 600;
    let (up, down) = (1e-3, 1.0);
    let mut coo = Coo::new(2 * n, 2 * n).unwrap();
    let mut rate = |i: usize, j: usize, q: f64| {
        coo.push(i, j, q).unwrap();
        coo.push(i, i, -q).unwrap();
    };
    // State (level a, phase p) is 2a + p; phases change upwards at the top, downwards at the bottom.
    for p in 0..2 {
        for a in 0..n - 1 {
            rate(2 * a + p, 2 * a + 2 + p, up);
            rate(2 * a + 2 + p, 2 * a + p, down);
        }
    }
    rate(2 * n - 2, 2 * n - 1, 1.0);
    rate(1, 0, 1.0);
    let q = Generator::new(coo.to_csr().unwrap()).unwrap();
    let pi = Stationary::gth(&q).unwrap();
    assert!(pi.notes().iter().any(|n| n.contains("exponent")), "{:?}", pi.notes());
    assert!(pi.balance() < 1e-14, "{}", pi.balance());
    // What goes up through phase 0 at the top comes down through phase 1 at the bottom: π(top, 0)·1 = π(0, 1)·1.
    let (top, bottom) = (pi.probability(2 * n - 2), pi.probability(1));
    assert!((top.log10() - bottom.log10()).abs() < 1e-11);
    assert!(top.log10() < -1700.0, "{}", top.log10());
}

/// Dense chains of several widths against the definition, and the same bits in a permuted file's order where none is better.
#[test]
fn dense_and_block_chains_balance() {
    for (n, w) in [(1, 1), (2, 1), (7, 6), (40, 39), (65, 9), (130, 21), (131, 22)] {
        let mut coo = Coo::new(n, n).unwrap();
        for i in 0..n {
            for j in i.saturating_sub(w)..(i + w + 1).min(n) {
                let q = ((i * 31 + j * 17) % 23 + 1) as f64;
                if i != j {
                    coo.push(i, j, q).unwrap();
                    coo.push(i, i, -q).unwrap();
                }
            }
        }
        if n == 1 {
            coo.push(0, 0, 0.0).unwrap();
        }
        let pi = Stationary::gth(&Generator::new(coo.to_csr().unwrap()).unwrap()).unwrap();
        assert!(pi.balance() < 1e-14, "{n}, {w}: {}", pi.balance());
        assert!((pi.to_f64().iter().sum::<f64>() - 1.0).abs() < 1e-14);
    }
}

#[test]
fn chains_without_an_answer_say_why() {
    // η = ν = 0: every level is a class of its own.
    let model = CloudModel::new(5, 2, rates([1.0, 1.0, 0.0, 0.0]), Form::Repaired).unwrap();
    let error = Stationary::gth(&model.generator(Order::LevelMajor).unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the chain has 5 closed classes (5 states from 0 on; 5 states from 5 on; 5 states from 10 on; 5 states from 15 on; \
         …): its stationary distribution is not unique"
    );
    let absorbing = Csr::new(2, 2, vec![0, 0, 0], vec![], vec![]).unwrap();
    let error = Stationary::gth(&Generator::new(absorbing).unwrap()).unwrap_err();
    assert!(error.to_string().contains("state 0, absorbing; state 1, absorbing"), "{error}");
    let none = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
    assert!(Stationary::gth(&Generator::new(none).unwrap()).unwrap_err().to_string().contains("no states"));
}

/// Random chains whose rates span up to 300 decades, and their states in another order: the same distribution, entry by entry, to
/// the sum of both bounds.
#[test]
fn random_chains_in_any_order() {
    let mut seed = 1u64;
    let mut uniform = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 * 2f64.powi(-53)
    };
    let mut with_exponents = 0;
    for case in 0..60 {
        let n = 2 + (uniform() * 60.0) as usize;
        let decades = [0.0, 3.0, 30.0, 300.0][case % 4];
        // A ring makes it irreducible; further rates come near the diagonal or anywhere.
        let reach = if case % 3 == 0 { n as f64 } else { 6.0 };
        let mut edges: Vec<(usize, usize, f64)> = Vec::new();
        for i in 0..n {
            for k in 0..=(uniform() * 4.0) as usize {
                let j =
                    if k == 0 { (i + 1) % n } else { (i + n + (uniform() * reach) as usize - reach as usize / 2) % n };
                if i != j && !edges.iter().any(|e| (e.0, e.1) == (i, j)) {
                    edges.push((i, j, 10f64.powf(decades * (uniform() - 0.5))));
                }
            }
        }
        let mut shuffled: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            shuffled.swap(i, (uniform() * (i + 1) as f64) as usize);
        }
        let chain = |place: &dyn Fn(usize) -> usize| {
            let mut coo = Coo::new(n, n).unwrap();
            for &(i, j, rate) in &edges {
                coo.push(place(i), place(j), rate).unwrap();
                coo.push(place(i), place(i), -rate).unwrap();
            }
            Stationary::gth(&Generator::new(coo.to_csr().unwrap()).unwrap()).unwrap()
        };
        let (a, b) = (chain(&|i| i), chain(&|i| shuffled[i]));
        let bound = a.error_bound().unwrap() + b.error_bound().unwrap();
        assert!(bound < 1e-9 && a.balance() < 1e-13 && b.balance() < 1e-13, "case {case}: {bound}");
        for i in 0..n {
            let ratio = (a.probability(i) / b.probability(shuffled[i])).to_f64();
            assert!((ratio - 1.0).abs() <= bound, "case {case}, state {i}: {ratio} against {bound}");
        }
        with_exponents += usize::from(a.notes().iter().any(|n| n.contains("exponent")));
    }
    assert!(with_exponents > 5, "{with_exponents}");
}

/// Rates alone.
fn alone(n: usize, entries: &[(usize, usize, f64)]) -> Result<Generator, Error> {
    let mut coo = Coo::new(n, n).unwrap();
    for &(i, j, v) in entries {
        coo.push(i, j, v).unwrap();
    }
    Generator::from_rates_alone(coo.to_csr().unwrap())
}

#[test]
fn a_rate_that_underflows_when_it_is_divided_is_not_lost() {
    // A chain of births and deaths: π₃ = π₂·5e−324/2, and half of the least number is none.
    let q = alone(4, &[(0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0), (2, 3, 5e-324), (3, 2, 2.0)]).unwrap();
    let pi = Stationary::gth(&q).unwrap();
    // 5e−324 is 2⁻¹⁰⁷⁴.
    let expected = (1.0 / 3.0f64).log10() - 1075.0 * 2f64.log10();
    assert!((pi.probability(3).log10() - expected).abs() < 1e-9, "{} {expected}", pi.probability(3).log10());
}

#[test]
fn rates_whose_sum_overflows_are_named() {
    let error = alone(3, &[(0, 1, 1.0), (1, 0, 1e308), (1, 2, 1e308), (2, 1, 1.0)]).unwrap_err();
    assert!(matches!(error, Error::RatesOverflow { state: 1 }), "{error}");
}
