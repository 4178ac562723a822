//! The M/M/n+k cloud model: i pending tasks, j resources on.
//!
//! Yang, Li & Li, J. Supercomput. 73 (2017) 1760–1781, doi:10.1007/s11227-016-1881-x, Eq. (8). A resource holds up to K
//! tasks; tasks arrive at rate λ and are served at rate μ, resources are turned on at rate η and off at rate ν. At j
//! resources the number of tasks stays in the window K(j−1) ≤ i ≤ K(j+1), so there are n = m(2K+1) states.
//!
//! ```text
//!            literal (Eq. 8 as printed)               repaired (ours)
//! i → i+1    λ if i ≤ jK                              λ
//! i → i−1    μ if i < j, ⌊i/K⌋μ if j ≤ i ≤ jK, else Kμ  min(j, ⌈i/K⌉)μ
//! j → j+1    ⌈(i−jK)/K⌉η if i > jK                    the same
//! j → j−1    ⌊(jK−i)/K⌋ν if i < jK                    the same
//! ```
//!
//! Departures: as printed, states with i ≥ jK+2 are unreachable, a busy resource may give no service (j = 1, i < K), and
//! above jK the rate Kμ does not depend on j. Both forms drop moves that leave the windows, from the rate and from the
//! diagonal. Other rates are a function given to [`Generator::from_rates`](crate::Generator::from_rates).

use bt_formats::Partition;

use crate::error::{Error, Result};

/// A state: pending tasks and resources on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Pending tasks, i.
    pub tasks: usize,
    /// Resources on, j; the first level is 1.
    pub level: usize,
}

/// Rates of the four moves out of a state, per unit of time. What leaves the state space is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moves {
    /// To i + 1.
    pub arrival: f64,
    /// To i − 1.
    pub service: f64,
    /// To j + 1.
    pub turn_on: f64,
    /// To j − 1.
    pub turn_off: f64,
}

/// The order in which states are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// By level, then tasks: blocks are levels, tridiagonal inside.
    LevelMajor,
    /// By tasks, then level: the narrowest band, half-bandwidth 2 for the cloud model.
    #[default]
    TaskMajor,
}

/// The states: for every level a window of tasks whose ends do not decrease from one level to the next.
///
/// ```
/// use bt_queue::{Order, State, StateSpace};
/// let space = StateSpace::cloud(6, 4)?;
/// assert_eq!((space.n(), space.n_levels()), (54, 6));
/// let state = State { tasks: 8, level: 2 };
/// assert_eq!(space.index(state, Order::LevelMajor), Some(9 + 4));
/// assert_eq!(space.state(13, Order::LevelMajor), state);
/// assert_eq!(space.index(State { tasks: 0, level: 2 }, Order::LevelMajor), None);
/// # Ok::<(), bt_queue::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSpace {
    /// First and last number of tasks at each level.
    windows: Vec<(u32, u32)>,
    /// First state of each level in level-major order, and n.
    level_offsets: Vec<u32>,
    /// First state of each number of tasks, from the first of the windows on, in task-major order, and n.
    task_offsets: Vec<u32>,
    /// Lowest level (from 0) that each number of tasks occurs at.
    first_level: Vec<u32>,
}

impl StateSpace {
    /// Windows K(j−1) ≤ i ≤ K(j+1) of the cloud model for j = 1 … m.
    ///
    /// # Errors
    /// [`Error::BadParameter`] unless m ≥ 1 and K ≥ 1; [`bt_formats::Error::TooLarge`] when m(2K+1) exceeds 32-bit indices.
    ///
    /// # Cost
    /// O(m·K) bytes and operations, as [`StateSpace::new`].
    pub fn cloud(resources: usize, tasks_per_resource: usize) -> Result<Self> {
        let at_least_one = |name, value: usize| match value {
            0 => Err(Error::BadParameter { name, value: 0.0, why: "at least 1 is needed" }),
            _ => Ok(()),
        };
        at_least_one("the number of resources", resources)?;
        at_least_one("the number of tasks a resource holds", tasks_per_resource)?;
        let k = tasks_per_resource;
        let n = k.checked_mul(2).and_then(|w| w.checked_add(1)).and_then(|w| w.checked_mul(resources));
        check_states(n)?;
        Self::new((1..=resources).map(|j| (k * (j - 1), k * (j + 1))))
    }

    /// From the first and last number of tasks at each level.
    ///
    /// # Errors
    /// [`bt_formats::Error::InvalidStructure`] naming a level whose window is empty, begins or ends before that of the level
    /// below or leaves a gap to it, or when no level is given; [`bt_formats::Error::TooLarge`] beyond 32-bit indices.
    ///
    /// # Cost
    /// O(levels + tasks).
    pub fn new(windows: impl IntoIterator<Item = (usize, usize)>) -> Result<Self> {
        let invalid = |why: String| Error::from(bt_formats::Error::InvalidStructure { what: "state space", why });
        let mut checked: Vec<(u32, u32)> = Vec::new();
        let mut level_offsets = vec![0u32];
        let mut n = 0usize;
        for (first, last) in windows {
            let level = checked.len() + 1;
            if first > last {
                return Err(invalid(format!("level {level} has no states: its window is {first} to {last}")));
            }
            if let Some(&(f, l)) = checked.last() {
                if first < f as usize || last < l as usize {
                    let why = format!("the window of level {level} begins or ends below that of the level before");
                    return Err(invalid(why));
                }
                if first > l as usize + 1 {
                    return Err(invalid(format!(
                        "there is a gap between the windows of levels {} and {level}",
                        level - 1
                    )));
                }
            }
            n = check_states((last - first).checked_add(1).and_then(|w| w.checked_add(n)))?;
            check_states(Some(last))?;
            checked.push((first as u32, last as u32));
            level_offsets.push(n as u32);
        }
        let (&(base, _), &(_, most)) =
            checked.first().zip(checked.last()).ok_or_else(|| invalid("it has no level".into()))?;
        // The levels of i tasks are consecutive: from the first whose window has not ended to the last that has begun.
        let (mut task_offsets, mut first_level) = (vec![0u32], Vec::new());
        let (mut low, mut high, mut count) = (0, 0, 0);
        for i in base..=most {
            while checked[low].1 < i {
                low += 1;
            }
            while checked.get(high).is_some_and(|w| w.0 <= i) {
                high += 1;
            }
            count += (high - low) as u32;
            first_level.push(low as u32);
            task_offsets.push(count);
        }
        Ok(Self { windows: checked, level_offsets, task_offsets, first_level })
    }

    /// Number of states.
    pub fn n(&self) -> usize {
        self.level_offsets[self.n_levels()] as usize
    }

    /// Number of levels, m.
    pub fn n_levels(&self) -> usize {
        self.windows.len()
    }

    /// Smallest and largest number of tasks in any state.
    pub fn tasks(&self) -> (usize, usize) {
        let base = self.windows[0].0 as usize;
        (base, base + self.first_level.len() - 1)
    }

    /// First and last number of tasks at `level` = 1 … m.
    ///
    /// # Panics
    /// When there is no such level.
    pub fn window(&self, level: usize) -> (usize, usize) {
        let (first, last) = self.windows[level - 1];
        (first as usize, last as usize)
    }

    /// Number of a state; `None` when it is not one. O(1).
    pub fn index(&self, state: State, order: Order) -> Option<usize> {
        let State { tasks: i, level } = state;
        let j = level.checked_sub(1)?;
        let &(first, last) = self.windows.get(j)?;
        if i < first as usize || i > last as usize {
            return None;
        }
        Some(match order {
            Order::LevelMajor => self.level_offsets[j] as usize + i - first as usize,
            Order::TaskMajor => {
                let i = i - self.windows[0].0 as usize;
                self.task_offsets[i] as usize + j - self.first_level[i] as usize
            }
        })
    }

    /// State of a number. O(log of the number of levels or tasks).
    ///
    /// # Panics
    /// When `index` is not below n.
    pub fn state(&self, index: usize, order: Order) -> State {
        assert!(index < self.n(), "state {index} of {}", self.n());
        let part = |offsets: &[u32]| offsets.partition_point(|&o| o as usize <= index) - 1;
        match order {
            Order::LevelMajor => {
                let j = part(&self.level_offsets);
                State { tasks: self.windows[j].0 as usize + index - self.level_offsets[j] as usize, level: j + 1 }
            }
            Order::TaskMajor => {
                let i = part(&self.task_offsets);
                let level = self.first_level[i] as usize + index - self.task_offsets[i] as usize + 1;
                State { tasks: self.windows[0].0 as usize + i, level }
            }
        }
    }

    /// All states in an order.
    pub fn states(&self, order: Order) -> Box<dyn Iterator<Item = State> + '_> {
        match order {
            Order::LevelMajor => Box::new((1..=self.n_levels()).flat_map(|level| {
                let (first, last) = self.window(level);
                (first..=last).map(move |tasks| State { tasks, level })
            })),
            Order::TaskMajor => Box::new((0..self.first_level.len()).flat_map(|i| {
                let first = self.first_level[i] as usize + 1;
                let count = (self.task_offsets[i + 1] - self.task_offsets[i]) as usize;
                let tasks = self.windows[0].0 as usize + i;
                (first..first + count).map(move |level| State { tasks, level })
            })),
        }
    }

    /// Blocks: the levels, or the numbers of tasks.
    ///
    /// # Errors
    /// None in practice: the sizes were checked by the constructor.
    pub fn partition(&self, order: Order) -> Result<Partition> {
        let offsets = match order {
            Order::LevelMajor => &self.level_offsets,
            Order::TaskMajor => &self.task_offsets,
        };
        let sizes = offsets.windows(2).map(|w| (w[1] - w[0]) as usize);
        Ok(Partition::from_sizes(sizes)?)
    }
}

fn check_states(n: Option<usize>) -> Result<usize> {
    let limit = u32::MAX as usize - 1;
    n.filter(|&n| n <= limit).ok_or_else(|| {
        Error::from(bt_formats::Error::TooLarge {
            what: "the state space",
            needed: n.map_or_else(|| "more states than can be counted".into(), |n| format!("{n} states")),
            limit: format!("the {limit} of 32-bit indices"),
        })
    })
}

/// The unit of time that rates are given in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Rates per second.
    #[default]
    Second,
    /// Rates per minute.
    Minute,
    /// Rates per hour.
    Hour,
    /// Rates per day.
    Day,
}

impl TimeUnit {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Second, Self::Minute, Self::Hour, Self::Day];

    /// Name: `second` and so on.
    pub fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    /// How many of it make an hour.
    pub fn per_hour(self) -> f64 {
        match self {
            Self::Second => 3600.0,
            Self::Minute => 60.0,
            Self::Hour => 1.0,
            Self::Day => 1.0 / 24.0,
        }
    }
}

/// The four rates of the cloud model, per unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// λ.
    pub arrival: f64,
    /// μ, of one resource.
    pub service: f64,
    /// η, of one resource asked for.
    pub turn_on: f64,
    /// ν, of one resource to spare.
    pub turn_off: f64,
}

/// Which of the two forms of the rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// Every task is taken up to the end of the window, every needed resource serves.
    #[default]
    Repaired,
    /// Eq. (8) as printed; its recurrent class is smaller than the state space.
    Literal,
}

/// The cloud model with its parameters.
///
/// ```
/// use bt_queue::{CloudModel, Form, Order, Rates};
/// let rates = Rates { arrival: 2.0, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
/// let model = CloudModel::new(6, 4, rates, Form::Repaired)?;
/// let q = model.generator(Order::TaskMajor)?;
/// assert_eq!((q.n(), q.bandwidth()), (54, (2, 2)));
/// # Ok::<(), bt_queue::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CloudModel {
    space: StateSpace,
    tasks_per_resource: usize,
    rates: Rates,
    form: Form,
}

impl CloudModel {
    /// With m resources that hold K tasks each.
    ///
    /// # Errors
    /// [`Error::BadParameter`] naming a rate that is negative or not finite, or a service rate of zero (the queue would never
    /// empty); those of [`StateSpace::cloud`].
    pub fn new(resources: usize, tasks_per_resource: usize, rates: Rates, form: Form) -> Result<Self> {
        let named = [
            ("the arrival rate", rates.arrival),
            ("the service rate", rates.service),
            ("the rate of turning on", rates.turn_on),
            ("the rate of turning off", rates.turn_off),
        ];
        for (name, value) in named {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::BadParameter { name, value, why: "a rate is a finite number of at least 0" });
            }
        }
        if rates.service == 0.0 {
            return Err(Error::BadParameter { name: "the service rate", value: 0.0, why: "no task would ever leave" });
        }
        let space = StateSpace::cloud(resources, tasks_per_resource)?;
        Ok(Self { space, tasks_per_resource, rates, form })
    }

    /// The states.
    pub fn space(&self) -> &StateSpace {
        &self.space
    }
    /// K.
    pub fn tasks_per_resource(&self) -> usize {
        self.tasks_per_resource
    }
    /// λ, μ, η, ν.
    pub fn rates(&self) -> Rates {
        self.rates
    }
    /// The form.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Rates of the moves out of a state; also of those that leave the windows, which a generator drops.
    pub fn moves(&self, state: State) -> Moves {
        let State { tasks: i, level: j } = state;
        let k = self.tasks_per_resource;
        let Rates { arrival, service, turn_on, turn_off } = self.rates;
        let (accepts, serving) = match self.form {
            Form::Repaired => (true, j.min(i.div_ceil(k))),
            Form::Literal => (
                i <= j * k,
                if i < j {
                    1
                } else if i <= j * k {
                    i / k
                } else {
                    k
                },
            ),
        };
        Moves {
            arrival: if accepts { arrival } else { 0.0 },
            service: serving as f64 * service,
            // ⌈(i − jK)/K⌉ η and ⌊(jK − i)/K⌋ ν, zero on the other side of jK
            turn_on: i.saturating_sub(j * k).div_ceil(k) as f64 * turn_on,
            turn_off: ((j * k).saturating_sub(i) / k) as f64 * turn_off,
        }
    }

    /// The generator Q.
    ///
    /// # Errors
    /// When a rate overflows.
    ///
    /// # Cost
    /// O(n), at most five entries a row.
    pub fn generator(&self, order: Order) -> Result<crate::Generator> {
        crate::Generator::from_rates(&self.space, order, |state| self.moves(state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_number_every_state_once() {
        for space in [StateSpace::cloud(5, 3).unwrap(), StateSpace::new([(2, 3), (3, 3), (4, 9)]).unwrap()] {
            for order in [Order::LevelMajor, Order::TaskMajor] {
                let states: Vec<State> = space.states(order).collect();
                assert_eq!(states.len(), space.n());
                for (k, &state) in states.iter().enumerate() {
                    assert_eq!((space.index(state, order), space.state(k, order)), (Some(k), state));
                }
                assert_eq!(space.partition(order).unwrap().n(), space.n());
            }
        }
    }

    #[test]
    fn the_forms_differ_where_the_text_says() {
        let rates = Rates { arrival: 2.0, service: 10.0, turn_on: 100.0, turn_off: 1000.0 };
        let moves = |form, tasks, level| {
            let m = CloudModel::new(6, 4, rates, form).unwrap().moves(State { tasks, level });
            [m.arrival, m.service, m.turn_on, m.turn_off]
        };
        // Above jK: no arrivals as printed, and Kμ whatever j is.
        assert_eq!(moves(Form::Literal, 9, 2), [0.0, 40.0, 100.0, 0.0]);
        assert_eq!(moves(Form::Repaired, 9, 2), [2.0, 20.0, 100.0, 0.0]);
        // One resource with 3 of 4 tasks.
        assert_eq!(moves(Form::Literal, 3, 1), [2.0, 0.0, 0.0, 0.0]);
        assert_eq!(moves(Form::Repaired, 3, 1), [2.0, 10.0, 0.0, 0.0]);
        assert_eq!(moves(Form::Repaired, 4, 2), [2.0, 10.0, 0.0, 1000.0]);
        assert_eq!(moves(Form::Repaired, 12, 2)[2], 100.0);
    }

    #[test]
    fn bad_parameters_are_named() {
        let good = Rates { arrival: 1.0, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
        let message = |m, k, rates| CloudModel::new(m, k, rates, Form::Repaired).unwrap_err().to_string();
        assert!(message(0, 4, good).contains("the number of resources is 0"));
        assert!(message(4, 0, good).contains("tasks a resource holds"));
        assert!(message(4, 4, Rates { arrival: f64::NAN, ..good }).contains("the arrival rate is NaN"));
        assert!(message(4, 4, Rates { turn_on: -1.0, ..good }).contains("turning on is -1"));
        assert!(message(4, 4, Rates { turn_off: f64::INFINITY, ..good }).contains("turning off is inf"));
        assert!(message(4, 4, Rates { service: 0.0, ..good }).contains("no task would ever leave"));
        assert!(message(1 << 20, 1 << 20, good).contains("32-bit"));
        assert!(message(usize::MAX, usize::MAX, good).contains("32-bit"));
        assert!(StateSpace::new([(0, 3), (1, 2)]).unwrap_err().to_string().contains("level 2"));
        assert!(StateSpace::new([(3, 2)]).unwrap_err().to_string().contains("level 1"));
        assert!(StateSpace::new([(1, 2), (4, 5)]).unwrap_err().to_string().contains("gap"));
        assert!(StateSpace::new([]).is_err());
        assert!(StateSpace::new([(0, usize::MAX)]).is_err());
    }
}
