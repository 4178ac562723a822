//! The plans of a sweep, made by the processor or, their chains eliminated at once, on a GPU.

use blocktri::{DeviceChoice, OpenDevice};
use bt_queue::{Capacity, Error, OnHost, sweep, sweep_by};

use super::failure;
use super::words::number;
use crate::args::{Parameters, QueueArgs, SweepArg};
use crate::exit::{Failure, Result};
use crate::progress::Watch;
use crate::report::plural;

/// Plans, where their chains were eliminated, and what is to be said of it.
pub struct Plans {
    pub capacities: Vec<Capacity>,
    pub device: DeviceChoice,
    pub notes: Vec<String>,
    pub warnings: Vec<String>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        failure(&error, None)
    }
}

impl Plans {
    /// One for each value.
    ///
    /// # Errors
    /// On parameters that make no chain, when stopped, and on a GPU that is not there or fails.
    pub fn new(p: Parameters, over: &SweepArg, args: &QueueArgs, watch: &mut Watch) -> Result<Self> {
        let model = |value| over.apply(p, value).model();
        let mut made =
            Self { capacities: Vec::new(), device: DeviceChoice::Cpu, notes: Vec::new(), warnings: Vec::new() };
        let DeviceChoice::Gpu(ordinal) = args.device else {
            if args.device == DeviceChoice::Auto {
                let why = "a state takes about 8 flops, fewer than the bytes of its copies to a GPU";
                made.notes.push(format!("device auto: the processor, since {why}"));
            }
            made.capacities = sweep(&over.values, watch, model)?;
            return Ok(made);
        };
        let lost = |error: blocktri::Error| match error {
            blocktri::Error::Device(reason) => Failure::no_device(&reason),
            other => Failure::usage(other.to_string()),
        };
        let gpu = OpenDevice::open(ordinal).map_err(lost)?;
        let mut refused = None;
        let swept = sweep_by(&over.values, watch, model, |chains| {
            let found = gpu.stationary(chains).map_err(lost)?;
            let mut taken = Vec::new();
            for pi in found {
                match pi {
                    Ok(pi) => taken.push(Some(pi)),
                    Err(why) => {
                        refused.get_or_insert(why);
                        taken.push(None);
                    }
                }
            }
            Ok::<_, Failure>(taken)
        })?;
        made.notes.push(format!("gth: a thread block of GPU {ordinal} for each chain"));
        if let Some(&(first, why)) = swept.on_host.first() {
            let (count, value) = (plural(swept.on_host.len(), "chain"), number(over.values[first]));
            let why = match why {
                OnHost::Transient => "it has transient states".into(),
                OnHost::Refused => format!("on the GPU {}", refused.unwrap_or_default()),
                OnHost::Unbalanced => "the flows of the GPU's answer did not balance".into(),
            };
            made.warnings
                .push(format!("the processor eliminated {count}, the first at {} = {value}: {why}", over.name));
        }
        (made.capacities, made.device) = (swept.plans, args.device);
        Ok(made)
    }
}
