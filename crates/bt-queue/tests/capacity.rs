//! Plans of the cloud model against published figures, balance laws and brute force.

use bt_queue::{Capacity, CloudModel, Costs, Form, Order, Rates, Stationary, TimeUnit};

fn capacity(m: usize, k: usize, r: [f64; 4], form: Form, order: Order) -> Capacity {
    let rates = Rates { arrival: r[0], service: r[1], turn_on: r[2], turn_off: r[3] };
    let model = CloudModel::new(m, k, rates, form).unwrap();
    Capacity::new(&model, order, &Stationary::gth(&model.generator(order).unwrap()).unwrap())
}

/// The table of `../shared/spec/hbisa.md`, §4: m = 40, K = 16, μ = η = ν = 1.
#[test]
fn resources_to_turn_on_in_advance() {
    for (arrival, in_advance, mean, quantile) in
        [(2.0, 2, 2.17, 3), (5.0, 5, 5.44, 6), (10.0, 10, 10.93, 12), (20.0, 21, 22.03, 24), (30.0, 33, 33.19, 35)]
    {
        for order in [Order::LevelMajor, Order::TaskMajor] {
            let c = capacity(40, 16, [arrival, 1.0, 1.0, 1.0], Form::Repaired, order);
            let level = &c.marginals.level;
            assert_eq!((c.in_advance(), level.quantile(0.95)), (in_advance, quantile), "λ = {arrival}");
            assert!((level.mean() - mean).abs() <= 0.005, "λ = {arrival}: {}", level.mean());
        }
    }
}

/// What flows in flows out: tasks, and resources, in both forms. As printed, a resource may serve at Kμ.
#[test]
fn flows_balance() {
    for form in [Form::Repaired, Form::Literal] {
        for r in [[2.0, 1.0, 1.0, 1.0], [15.0, 1.0, 0.5, 3.0], [0.24, 1.0, 1e-4, 10.0]] {
            let c = capacity(10, 4, r, form, Order::TaskMajor);
            let admitted = r[0] * (1.0 - c.loss);
            assert!((c.throughput - admitted).abs() < 1e-12 * admitted, "{form:?} {r:?}");
            assert!((c.turn_on_rate - c.turn_off_rate).abs() <= 1e-12 * c.turn_on_rate, "{form:?} {r:?}");
            for share in [c.loss, c.waiting] {
                assert!((0.0..=1.0).contains(&share), "{form:?} {r:?}");
            }
            assert!(c.utilisation > 0.0 && c.utilisation <= if form == Form::Repaired { 1.0 } else { 4.0 });
        }
    }
}

#[test]
fn no_more_resources_are_advised_than_there_are() {
    // Four tasks crowd before the places of one resource with two.
    let c = capacity(1, 2, [50.0, 1.0, 1.0, 1.0], Form::Repaired, Order::TaskMajor);
    assert_eq!((c.marginals.tasks.mode(), c.in_advance()), (4, 1));
    let costs = Costs { resource_hour: 1.0, waiting_task_hour: 1e6, switch: 0.0 };
    let (r, cost) = c.cheapest_in_advance(&costs);
    let waiting: f64 = c.marginals.tasks.iter().map(|(i, p)| p * i.saturating_sub(2) as f64).sum();
    assert!(r == 1 && (cost - (1.0 + 1e6 * waiting)).abs() <= 1e-9 * cost, "{r} {cost}");
}

#[test]
fn the_cheapest_plan_is_the_cheapest() {
    let c = capacity(12, 4, [6.0, 1.0, 1.0, 1.0], Form::Repaired, Order::TaskMajor);
    for (resource_hour, waiting_task_hour) in [(1.0, 1.0), (1.0, 50.0), (5.0, 1.0), (0.0, 1.0), (1.0, 0.0)] {
        let costs = Costs { resource_hour, waiting_task_hour, switch: 3.0 };
        let cost = |r: usize| {
            let waiting: f64 = c.marginals.tasks.iter().map(|(i, p)| p * i.saturating_sub(r * 4) as f64).sum();
            resource_hour * r as f64 + waiting_task_hour * waiting
        };
        let (r, least) = c.cheapest_in_advance(&costs);
        assert!((least - cost(r)).abs() < 1e-12);
        for other in 0..=12 {
            assert!(cost(other) >= least - 1e-12, "{resource_hour} {waiting_task_hour}: {other} is cheaper than {r}");
        }
    }
    let costs = Costs { resource_hour: 2.0, switch: 3.0, waiting_task_hour: 0.0 };
    let hour = c.cost_per_hour(&costs, TimeUnit::Hour);
    assert!((hour - 2.0 * c.marginals.level.mean() - 6.0 * c.turn_on_rate).abs() < 1e-12);
    assert!(c.cost_per_hour(&costs, TimeUnit::Minute) > 60.0 * (hour - 2.0 * c.marginals.level.mean()));
}

/// m, K, λ, μ, η, ν; loss, waiting, mean on, mean tasks, time in the system, 95 % of the time on, in advance: elimination in 40
/// digits and sums of the full states. The first losses lie below the rounding of what was admitted.
#[test]
fn losses_are_sums_of_the_full_states() {
    type Row = ((usize, usize, [f64; 4]), [f64; 5], (usize, usize));
    let rows: [Row; 13] = [
        (
            (4, 8, [0.1, 1.0, 1.0, 1.0]),
            [2.94682619935458e-19, 9.46124297670112e-9, 1.00000000074072, 0.111111112385407, 1.11111112385407],
            (1, 0),
        ),
        (
            (4, 8, [0.2, 1.0, 1.0, 1.0]),
            [1.43506691518329e-14, 2.26301442494964e-6, 1.00000037089856, 0.250000357477101, 1.25000178738552],
            (1, 0),
        ),
        (
            (40, 8, [5.0, 20.1, 240.0, 60.0]),
            [1.81590167704992e-19, 1.12267557484855e-5, 1.00000244230458, 0.33111542348208, 0.066223084696416],
            (1, 0),
        ),
        (
            (40, 8, [10.0, 20.1, 240.0, 60.0]),
            [7.05591374805716e-15, 0.00196040574546918, 1.00098822304775, 0.981743017986193, 0.09817430179862],
            (1, 0),
        ),
        (
            (40, 16, [10.0, 1.0, 1.0, 1.0]),
            [0.000308370432464575, 0.114134535254977, 10.9285725964877, 166.443100753247, 16.6494442716551],
            (12, 10),
        ),
        (
            (13, 6, [0.7285, 7.0288, 0.1477, 0.0309]),
            [1.20212995418049e-12, 1.236356398208e-6, 1.00000063277278, 0.115633151010383, 0.158727729595775],
            (1, 0),
        ),
        (
            (12, 5, [6.0, 1.0, 1e-10, 1e-10]),
            [0.0339978621212012, 0.264714330188364, 7.55100742970043, 35.8897737658438, 6.19214878148071],
            (9, 7),
        ),
        (
            (3, 4, [0.0213, 0.3986, 0.9348, 0.115]),
            [4.86003886475479e-13, 7.84212533572414e-6, 1.0000011862513, 0.0564570507741028, 2.65056576404367],
            (1, 0),
        ),
        (
            (6, 8, [0.05, 1.0, 2.0, 1.0]),
            [2.04420013161137e-25, 3.77312814442625e-11, 1.00000000000192, 0.0526315789513666, 1.05263157902733],
            (1, 0),
        ),
        (
            (10, 8, [0.5, 1.0, 1.0, 1.0]),
            [1.2064351347522e-8, 0.00250213198905945, 1.00119972109346, 0.996357955059117, 1.99271593415906],
            (1, 0),
        ),
        (
            (20, 8, [3.0, 2.0, 30.0, 10.0]),
            [5.09540896415057e-10, 0.176116714968176, 1.6011722684405, 9.16926220156158, 3.05642073541123],
            (2, 1),
        ),
        (
            (40, 8, [20.0, 20.1, 240.0, 60.0]),
            [6.96768370838256e-11, 0.0996758228695499, 1.14816639602588, 4.84284712651946, 0.242142356342844],
            (2, 1),
        ),
        (
            (12, 5, [6.0, 1.0, 1e-06, 1e-06]),
            [0.0339978351780391, 0.264714330829228, 7.55100696627755, 35.8897713657895, 6.19214819468584],
            (9, 7),
        ),
    ];
    for ((m, k, r), right, whole) in rows {
        for order in [Order::TaskMajor, Order::LevelMajor] {
            let c = capacity(m, k, r, Form::Repaired, order);
            let level = &c.marginals.level;
            let ours = [c.loss, c.waiting, level.mean(), c.marginals.tasks.mean(), c.time];
            for (ours, right) in ours.iter().zip(right) {
                assert!((ours - right).abs() <= 1e-12 * right, "{m} × {k}, {r:?}: {ours:e} for {right:e}");
            }
            assert_eq!((level.quantile(0.95), c.in_advance()), whole, "{m} × {k}, {r:?}");
            assert!((c.log10_loss() - c.loss.log10()).abs() < 1e-12);
        }
    }
}

/// A loss below every double, and none where nothing arrives.
#[test]
fn losses_beyond_the_range() {
    let c = capacity(3, 100, [0.01, 1.0, 1.0, 1.0], Form::Repaired, Order::TaskMajor);
    assert!(c.loss == 0.0 && c.log10_loss() < -330.0 && c.log10_loss().is_finite(), "{}", c.log10_loss());
    let c = capacity(3, 2, [0.0, 1.0, 1.0, 1.0], Form::Repaired, Order::TaskMajor);
    assert_eq!((c.loss, c.waiting, c.log10_loss()), (0.0, 0.0, f64::NEG_INFINITY));
}
