//! Floor 3 of blocktri: queues. The M/M/n+k cloud model, generators of Markov chains and their stationary distributions; the
//! ten cloud matrices; and meshes.

mod capacity;
pub mod cases;
mod classes;
mod disk;
mod distribution;
mod elasticity;
mod error;
mod first_passage;
mod generator;
pub mod meshes;
mod model;
mod seems;
mod squaring;
mod stationary;
mod sweep;
mod transient;

use bt_formats::scaled;

pub use bt_formats::Scaled;
pub use capacity::{Capacity, Costs, Marginals};
pub use cases::{CloudCase, CloudParameters, CloudVariant};
pub use classes::{Classes, closed_classes};
pub use disk::UnitDisk;
pub use distribution::Distribution;
pub use elasticity::{ElasticDisk, Plane};
pub use error::{Error, Result};
pub use first_passage::mean_first_passage;
pub use generator::{Generator, Uniformised};
pub use model::{CloudModel, Form, Moves, Order, Rates, State, StateSpace, TimeUnit};
pub use seems::{Seems, has_no_diagonal};
pub use stationary::Stationary;
pub use sweep::{OnHost, Swept, sweep, sweep_by};
pub use transient::transient;
