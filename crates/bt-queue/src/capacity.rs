//! What a stationary distribution says about capacity: how many resources to have on, who waits, what it costs.
//!
//! The question of Yang, Li & Li (doi:10.1007/s11227-016-1881-x, §3), how many resources to turn on in advance, has the
//! paper's answer ⌈M/K⌉ for the most probable number of tasks M, and beside it the mean and quantiles of the resources on.
//! Rates and probabilities are per state (i, j) with the rates of the moves that the generator kept:
//!
//! ```text
//! throughput    Σ π_ij μ_ij                    utilisation   throughput / (μ Σ π_ij j)
//! loss          Σ π_ij where λ_ij = 0 < λ      waiting       Σ_{i ≥ jK, λ_ij > 0} π_ij / Σ_{λ_ij > 0} π_ij
//! time          Σ π_ij i / throughput (Little)     switches      Σ π_ij η_ij, Σ π_ij ν_ij
//! ```
//!
//! All of them are sums of positive terms, so that each is as accurate as π, however small: a loss of 1e−19 is the sum of the
//! full states and not one minus what was admitted.

use crate::distribution::Distribution;
use crate::model::{CloudModel, Order, State, StateSpace, TimeUnit};
use crate::scaled::Scaled;
use crate::stationary::Stationary;

/// Marginals of π over the tasks and over the levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Marginals {
    /// Of pending tasks.
    pub tasks: Distribution,
    /// Of resources on.
    pub level: Distribution,
}

impl Marginals {
    /// Sums the probabilities of states that are numbered in `order`.
    ///
    /// # Panics
    /// When there are not as many as the space has states.
    pub fn new(space: &StateSpace, order: Order, probabilities: &[f64]) -> Self {
        assert_eq!(space.n(), probabilities.len(), "number of states");
        let (first, last) = space.tasks();
        let (mut tasks, mut level) = (vec![0.0; last - first + 1], vec![0.0; space.n_levels()]);
        for (state, p) in space.states(order).zip(probabilities) {
            tasks[state.tasks - first] += p;
            level[state.level - 1] += p;
        }
        Self { tasks: Distribution::new(first, tasks), level: Distribution::new(1, level) }
    }
}

/// What a plan for a cloud model needs to know.
///
/// ```
/// use bt_queue::{Capacity, CloudModel, Form, Order, Rates, Stationary};
/// let rates = Rates { arrival: 10.0, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
/// let model = CloudModel::new(40, 16, rates, Form::Repaired)?;
/// let pi = Stationary::gth(&model.generator(Order::TaskMajor)?)?;
/// let capacity = Capacity::new(&model, Order::TaskMajor, &pi);
/// assert_eq!((capacity.in_advance(), capacity.marginals.level.quantile(0.95)), (10, 12));
/// # Ok::<(), bt_queue::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// Tasks and resources, each by itself.
    pub marginals: Marginals,
    /// Tasks served per unit of time.
    pub throughput: f64,
    /// Throughput over what the resources that are on could serve.
    pub utilisation: f64,
    /// Share of arriving tasks that are lost, because no state has room for them.
    pub loss: f64,
    /// Share of admitted tasks that find every place of every resource that is on taken.
    pub waiting: f64,
    /// Mean number of tasks beyond the places of the resources that are on, E max(i − jK, 0).
    pub waiting_tasks: f64,
    /// Mean time from arrival to end of service, in units of time.
    pub time: f64,
    /// Resources turned on per unit of time.
    pub turn_on_rate: f64,
    /// Resources turned off per unit of time.
    pub turn_off_rate: f64,
    exact_loss: Scaled,
    tasks_per_resource: usize,
    resources: usize,
}

/// Prices in any currency.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Of a resource on for an hour.
    pub resource_hour: f64,
    /// Of turning a resource on or off.
    pub switch: f64,
    /// Of a task waiting for an hour.
    pub waiting_task_hour: f64,
}

impl Capacity {
    /// From π of the model's generator, whose states are numbered in `order`.
    ///
    /// # Panics
    /// When π has another number of states than the model.
    ///
    /// # Cost
    /// O(n).
    pub fn new(model: &CloudModel, order: Order, pi: &Stationary) -> Self {
        let (space, k) = (model.space(), model.tasks_per_resource());
        let exact = pi.probabilities();
        let pi = pi.to_f64();
        let marginals = Marginals::new(space, order, &pi);
        let kept = |rate: f64, tasks: usize, level: usize| match space.index(State { tasks, level }, order) {
            Some(_) => rate,
            None => 0.0,
        };
        let (mut admitted, mut delayed, mut lost) = (0.0, 0.0, Scaled::ZERO);
        let (mut throughput, mut waiting_tasks, mut on, mut off) = (0.0, 0.0, 0.0, 0.0);
        for ((state, p), &exact) in space.states(order).zip(pi).zip(exact) {
            let State { tasks: i, level: j } = state;
            let moves = model.moves(state);
            if kept(moves.arrival, i + 1, j) > 0.0 {
                admitted += p;
                if i >= j * k {
                    delayed += p;
                }
            } else {
                lost = lost + exact;
            }
            throughput += p * kept(moves.service, i.wrapping_sub(1), j);
            waiting_tasks += p * i.saturating_sub(j * k) as f64;
            on += p * kept(moves.turn_on, i, j + 1);
            off += p * kept(moves.turn_off, i, j - 1);
        }
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        // Where nothing arrives nothing is lost.
        let exact_loss = if model.rates().arrival > 0.0 { lost } else { Scaled::ZERO };
        Self {
            throughput,
            utilisation: share(throughput, model.rates().service * marginals.level.mean()),
            loss: exact_loss.to_f64(),
            exact_loss,
            waiting: share(delayed, admitted),
            waiting_tasks,
            time: share(marginals.tasks.mean(), throughput),
            turn_on_rate: on,
            turn_off_rate: off,
            marginals,
            tasks_per_resource: k,
            resources: space.n_levels(),
        }
    }

    /// log₁₀ of the loss, also where [`loss`](Self::loss) is below the smallest double; −∞ where nothing is lost.
    pub fn log10_loss(&self) -> f64 {
        self.exact_loss.log10()
    }

    /// ⌈M/K⌉ for the most probable number of tasks M, at most all resources: the paper's number of resources to turn on
    /// in advance.
    pub fn in_advance(&self) -> usize {
        self.marginals.tasks.mode().div_ceil(self.tasks_per_resource).min(self.resources)
    }

    /// Mean cost per hour of running as the model does, rates being per `unit`:
    /// resources on, switches, waiting tasks.
    pub fn cost_per_hour(&self, costs: &Costs, unit: TimeUnit) -> f64 {
        let switches = (self.turn_on_rate + self.turn_off_rate) * unit.per_hour();
        costs.resource_hour * self.marginals.level.mean()
            + costs.switch * switches
            + costs.waiting_task_hour * self.waiting_tasks
    }

    /// The cheapest number of resources r to have on in advance, and its cost per hour: the smallest minimiser of
    /// `resource_hour`·r + `waiting_task_hour`·E max(i − rK, 0) over r ≤ the number of resources, for tasks distributed as
    /// in π.
    pub fn cheapest_in_advance(&self, costs: &Costs) -> (usize, f64) {
        let k = self.tasks_per_resource;
        // E max(i − rK, 0) = Σ_{t ≥ rK} P(i > t), from the largest r down.
        let mut beyond: Vec<f64> = self.marginals.tasks.iter().map(|(_, p)| p).collect();
        for i in (1..beyond.len()).rev() {
            beyond[i - 1] += beyond[i];
        }
        let cost = |r: usize, waiting: f64| costs.resource_hour * r as f64 + costs.waiting_task_hour * waiting;
        let most = self.resources;
        let mut waiting: f64 = beyond.iter().skip(most * k + 1).sum();
        let mut best = (most, cost(most, waiting));
        for r in (0..most).rev() {
            waiting += beyond.iter().skip(r * k + 1).take(k).sum::<f64>();
            let cost = cost(r, waiting);
            if cost <= best.1 {
                best = (r, cost);
            }
        }
        best
    }
}
