//! Connected components, each weighed, ordered, scaled and factored by itself, as `auto` does with a matrix.
//!
//! Storage: the factors of the parts, two permutations. Cost: the sum of the parts.

use std::sync::atomic::{AtomicU64, Ordering};

use bt_direct::{Components, FactorError, Factorization};
use bt_formats::{Csr, Matrix, Monitor, Note, Scalar, memory};

use crate::direct::Direct;
use crate::error::Error;
use crate::made::Made;
use crate::parts::{Parts, counted};
use crate::plan::{Plan, WeighedParts};

/// Factors of one part by its plan: by any method, which is therefore told to components from above.
pub(crate) type FactorPart<T> = fn(&Csr<T>, &Plan, &mut dyn Monitor) -> Result<Box<dyn Factorization<T>>, Error>;

/// The factors of each part by the fastest method that factors it, the parts as they are `known` where they are.
pub(crate) fn factor<T: Scalar>(
    a: &Csr<T>,
    known: Option<&WeighedParts>,
    factor_part: FactorPart<T>,
    monitor: &mut dyn Monitor,
) -> Result<Made<T>, Error> {
    let found;
    let WeighedParts { parts: Parts { order, partition, components }, plans } = if let Some(parts) = known {
        parts
    } else {
        found = WeighedParts::new(a, Parts::of(a)?)?;
        &found
    };
    let unseen = AtomicU64::new(0);
    let best = |k: usize, part: &Csr<T>, monitor: &mut dyn Monitor| {
        let asked = ask_with_others(&plans[k], &unseen);
        asked.and_then(|()| factor_part(part, &plans[k], monitor)).map_err(of_part)
    };
    let made = Components::with_options(a, order.clone(), partition.clone(), best, monitor)?;
    let methods = counted(made.parts().map(Factorization::method));
    let note = Note::Components { components: *components, parts: made.parts().len(), methods };
    Ok(Made::new(made, a.bytes()).noted([note]))
}

/// Bytes of small parts at which memory is asked for them together: for each alone nobody looks.
const MANY: u64 = 64 << 20;

/// Asks for the memory of the factors that are made first, with those of parts that were not asked for yet.
fn ask_with_others(plan: &Plan, unseen: &AtomicU64) -> Result<(), Error> {
    let own = plan.first_direct().map_or(0, |c| c.bytes);
    let together = unseen.fetch_add(own, Ordering::Relaxed) + own;
    if together >= MANY {
        unseen.store(0, Ordering::Relaxed);
        memory::ask(together, "the factors of components")?;
    }
    Ok(())
}

/// As a factorization tells it.
fn of_part(error: Error) -> FactorError {
    match error {
        Error::Singular(place) => FactorError::Singular(place),
        Error::Factor(error) => error,
        Error::Input(error) => error.into(),
        other => FactorError::Failed { method: Direct::Components.name(), reason: other.to_string() },
    }
}
