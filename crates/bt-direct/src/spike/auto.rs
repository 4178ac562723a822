//! The polyalgorithm: which variant, how many partitions, and why.

use bt_formats::{Band, Monitor, RealScalar, Scalar, zero};

use super::{Partitions, ReducedSystem, Spike, SpikeOptions};
use crate::error::{FactorError, Result};
use crate::refine::unit_roundoff;

/// What was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The options.
    pub options: SpikeOptions,
    /// minᵢ |aᵢᵢ| / Σ_{j≠i} |aᵢⱼ|, infinite for a diagonal matrix.
    pub dominance: f64,
    /// The reason, one sentence.
    pub reason: String,
}

impl Choice {
    /// For a matrix of `n` rows with half-bandwidths `kl` and `ku`, `dominance` as in [`Choice::dominance`], and so many
    /// threads. It depends on nothing else, so that a fixed number of threads gives fixed results on any machine.
    ///
    /// ```
    /// use bt_direct::spike::{Choice, Partitions, ReducedSystem};
    /// let wild = Choice::new::<f64>(100_000, 8, 8, 0.3, 4);
    /// assert_eq!(wild.options.partitions, Partitions::Balanced(4));
    /// assert_eq!(wild.options.reduced, ReducedSystem::Recursive);
    /// let dominant = Choice::new::<f64>(100_000, 8, 8, 1.5, 4);
    /// assert!(matches!(dominant.options.reduced, ReducedSystem::Truncated { .. }));
    /// assert_eq!(Choice::new::<f64>(100, 8, 8, 1.5, 4).options.partitions, Partitions::Balanced(1));
    /// ```
    pub fn new<T: Scalar>(n: usize, kl: usize, ku: usize, dominance: f64, threads: usize) -> Self {
        let m = kl.max(ku).max(1);
        // A partition shorter than this costs more in its tips than it saves.
        let p = threads.min(n / (64 * m)).max(1);
        let truncated = ReducedSystem::truncated::<T>();
        // Spikes decay by the dominance every m rows.
        let decay = dominance.powf(-((n / p / m) as f64));
        let allowed = unit_roundoff::<T>().powf(0.25);
        let (reduced, reason) = if p == 1 {
            let why = if threads < 2 {
                "one thread: the plain band solver does the least work".into()
            } else {
                format!("{n} rows are fewer than two partitions of 64 half-bandwidths ({m}): the plain band solver")
            };
            (ReducedSystem::Recursive, why)
        } else if p == 2 {
            let why = "two partitions: eliminated from both ends they need no truncation, exact costs no more";
            (ReducedSystem::Recursive, why.into())
        } else if dominance > 1.0 && decay <= allowed {
            let why = format!(
                "{p} partitions; rows dominated by their diagonal {dominance:.2} times let the spikes decay to {decay:.1e}: \
                 truncated"
            );
            (truncated, why)
        } else {
            let why = format!(
                "{p} partitions; with a dominance of {dominance:.2} the spikes decay to {decay:.1e} only: recursive"
            );
            (ReducedSystem::Recursive, why)
        };
        let options = SpikeOptions { partitions: Partitions::Balanced(p), reduced, ..SpikeOptions::default() };
        Self { options, dominance, reason }
    }
}

/// minᵢ |aᵢᵢ| / Σ_{j≠i} |aᵢⱼ|: above 1 rows are dominated by their diagonal. 0 when a row is zero.
pub(super) fn dominance<T: Scalar>(a: &Band<T>) -> f64 {
    let n = a.n();
    let (mut sums, mut diagonal) = (vec![zero::<T::Real>(); n], vec![zero::<T::Real>(); n]);
    for j in 0..n {
        let rows = a.column_range(j);
        let start = j * a.ldab() + a.kl() + a.ku() + rows.start - j;
        for (sum, v) in sums[rows.clone()].iter_mut().zip(&a.values()[start..start + rows.len()]) {
            *sum += v.abs();
        }
        diagonal[j] = a.get(j, j).abs();
        sums[j] -= diagonal[j];
    }
    let ratio = |(sum, d): (&T::Real, &T::Real)| match (sum.to_f64().max(0.0), d.to_f64()) {
        (_, 0.0) => 0.0,
        (sum, d) => d / sum,
    };
    sums.iter().zip(&diagonal).map(ratio).fold(f64::INFINITY, f64::min)
}

impl<T: Scalar> Spike<T> {
    /// Factors a band matrix the way [`Choice::new`] has it, its dominance measured; what was chosen and why is in
    /// [`Spike::report`]. The choice depends on the number of threads given, not on the machine. Should truncation drop
    /// too much after all, the recursive variant takes over, and the reason says so.
    ///
    /// ```
    /// use bt_direct::Spike;
    /// use bt_formats::Band;
    /// let mut a = Band::zeros(1000, 2, 1)?;
    /// (0..1000).for_each(|i| *a.get_mut(i, i) = 1.0);
    /// let spike = Spike::auto(&a, 2, &mut ())?;
    /// assert_eq!(spike.report().partitions, [500, 500]);
    /// # Ok::<(), bt_direct::FactorError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Spike::with_options`].
    #[inline(never)]
    pub fn auto(a: &Band<T>, threads: usize, monitor: &mut dyn Monitor) -> Result<Self> {
        let mut choice = Choice::new::<T>(a.n(), a.kl(), a.ku(), dominance(a), threads);
        let mut spike = Self::of_band(a, &choice.options, monitor);
        if let (Err(FactorError::Breakdown { reason, .. }), ReducedSystem::Truncated { .. }) =
            (&spike, choice.options.reduced)
        {
            choice.reason = format!("{}; but {reason}: recursive", choice.reason);
            choice.options.reduced = ReducedSystem::Recursive;
            spike = Self::of_band(a, &choice.options, monitor);
        }
        let mut spike = spike?;
        spike.choice = Some(choice);
        Ok(spike)
    }
}
