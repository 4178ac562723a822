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
        for other in 0..=13 {
            assert!(cost(other) >= least - 1e-12, "{resource_hour} {waiting_task_hour}: {other} is cheaper than {r}");
        }
    }
    let costs = Costs { resource_hour: 2.0, switch: 3.0, waiting_task_hour: 0.0 };
    let hour = c.cost_per_hour(&costs, TimeUnit::Hour);
    assert!((hour - 2.0 * c.marginals.level.mean() - 6.0 * c.turn_on_rate).abs() < 1e-12);
    assert!(c.cost_per_hour(&costs, TimeUnit::Minute) > 60.0 * (hour - 2.0 * c.marginals.level.mean()));
}
