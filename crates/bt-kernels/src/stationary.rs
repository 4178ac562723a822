//! Stationary distributions of many small chains on the device, by elimination without subtraction.
//!
//! State e is censored after all states above it (W. K. Grassmann, M. I. Taksar, D. P. Heyman, Oper. Res. 33 (1985) 1107–1116,
//! doi:10.1287/opre.33.5.1107), level by level from the last one, so that the rates at work are those of two levels:
//!
//! ```text
//! e = n−1 … 1   sₑ = Σ_{j<e} q_ej      w_ie = q_ie/sₑ,   q_ij ← q_ij + w_ie·q_ej     i, j < e
//! e = 0 … n−1   x₀ = 1,                xₑ = Σ_{i<e} x_i·w_ie;   π = x/Σx
//! ```
//!
//! No digit is lost to a difference, and x has exponents of its own: with wₑ the states before e in its level and in the level before,
//! |π̂_i − π_i| ≤ π_i·u·(5 + Σₑ 2wₑ(wₑ+3)) to first order, by the argument of bt-queue's elimination, which is the same but for the
//! order of its sums.
//!
//! A thread block takes a chain and has two levels in shared memory: 38 states a level at most.
//!
//! Storage: Σ kⱼ² + 2·Σ kⱼ·kⱼ₊₁ rates, 20 bytes a state, 12 a level. Cost: 2Σwₑ² flops, and as many values written and read again as
//! are read.

use std::ops::Range;

use bt_formats::{BlockTridiagonal, Error as InputError, Matrix, Scaled, memory, zeros};
use faer::MatMut;

use crate::checked::MAX_BLOCKS;
use crate::device::{Arg, Device, DeviceVec, Family, Kernel, Result, Shape};

/// States of a level at most: what 48 KiB hold of two levels.
const LARGEST: usize = 38;
/// As in kernels/stationary.cu.
const NO_WAY: u32 = 1;

/// Why the device has no distribution of a chain. States and levels count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainFault {
    /// No way leads from a state, through those after it, to one before it: the chain is reducible.
    #[error("no way leads from state {state} (from 0) to the states before it: the chain is reducible")]
    NoWay {
        /// The state.
        state: usize,
    },
    /// A rate leaves the range of doubles while a level is eliminated.
    #[error("a rate is below 1e-280 or above the largest number when level {level} (from 0) is eliminated")]
    Range {
        /// The level.
        level: usize,
    },
    /// A level is larger than the device takes.
    #[error("level {level} (from 0) has {states} states; on the GPU 38 are the most")]
    Wide {
        /// The level.
        level: usize,
        /// Its states.
        states: usize,
    },
}

/// π with πQ = 0, Σπ = 1 for each chain, or why the device has none; a chain without one disturbs no other.
///
/// The blocks are levels, each coupled with its neighbours; entries off the diagonal are rates, and the diagonal is not read.
/// Levels may be of any sizes, other ones in each chain. Chains go to the device as many at a time as fit there.
///
/// ```
/// use bt_formats::{BlockTridiagonal, Partition, Scaled};
/// use bt_kernels::{Device, stationary};
/// // 0 ⇄ 1 ⇄ 2, up at rate 1 and down at rate 2; its own diagonal is −1, −3, −2.
/// let levels = Partition::from_sizes([1, 1, 1])?;
/// let q = BlockTridiagonal::from_dense_blocks(levels, vec![0.0; 3], vec![1.0, 2.0, 1.0, 2.0])?;
/// if let Ok(device) = Device::open(0) {
///     let pi = stationary(&device, &[&q])?.remove(0).expect("an irreducible chain");
///     let sevenths = pi.iter().map(|p| 7.0 * p.to_f64()).collect::<Vec<_>>();
///     assert!(sevenths.iter().zip([4.0, 2.0, 1.0]).all(|(p, right)| (p - right).abs() < 1e-14));
/// }
/// # Ok::<(), bt_kernels::DeviceError>(())
/// ```
///
/// # Errors
/// [`InputError::NonFinite`] with the place; [`InputError::InvalidStructure`] for a negative rate or a chain without states, which is
/// named; [`InputError::TooLarge`] for 2³¹ states; [`InputError::NotEnoughMemory`]; errors of the device.
///
/// # Cost
/// 2Σwₑ² flops for wₑ states before e in its level and the one before; 8·(Σ kⱼ² + 2·Σ kⱼ·kⱼ₊₁) + 20n bytes and 12 a level on the
/// device, one launch for as many chains as fit.
pub fn stationary(device: &Device, chains: &[&BlockTridiagonal<f64>]) -> Result<Vec<Result<Vec<Scaled>, ChainFault>>> {
    for (c, chain) in chains.iter().enumerate() {
        check_rates(c, chain)?;
    }
    let wide = |chain: &BlockTridiagonal<f64>| {
        let (level, states) = chain.partition().sizes().enumerate().find(|k| k.1 > LARGEST)?;
        Some(ChainFault::Wide { level, states })
    };
    let faults: Vec<Option<ChainFault>> = chains.iter().map(|chain| wide(chain)).collect();
    let taken: Vec<&BlockTridiagonal<f64>> =
        chains.iter().zip(&faults).filter(|c| c.1.is_none()).map(|c| *c.0).collect();
    let kernel = device.kernel(Family::Stationary, "stationary")?;
    let mut found = Vec::new();
    // An eighth is left to what the driver rounds up.
    let room = device.free_memory()? / 8 * 7;
    for group in groups(&taken, room) {
        found.extend(eliminate(device, &kernel, &taken[group])?);
    }
    let mut found = found.into_iter();
    Ok(faults.into_iter().filter_map(|fault| fault.map(Err).or_else(|| found.next())).collect())
}

/// Every entry off the diagonal is a finite number of at least 0.
fn check_rates(c: usize, chain: &BlockTridiagonal<f64>) -> Result<(), InputError> {
    let wrong = |why| InputError::InvalidStructure { what: "a chain", why };
    if chain.n() == 0 {
        return Err(wrong(format!("chain {c} (from 0) has no states")));
    }
    let mut found = None;
    chain.for_each_entry(&mut |row, col, rate| {
        if found.is_some() || row == col {
            return;
        }
        if !rate.is_finite() {
            found = Some(InputError::NonFinite { what: "chain", row, col, value: rate.to_string() });
        } else if rate < 0.0 {
            let of = format!("from state {row} to state {col} of chain {c} (from 0)");
            found = Some(wrong(format!("the rate {of} is {rate:e}: rates are not negative")));
        }
    });
    found.map_or(Ok(()), Err)
}

/// States of the level before level j, 0 of the first.
fn before(chain: &BlockTridiagonal<f64>, j: usize) -> usize {
    if j > 0 { chain.partition().size(j - 1) } else { 0 }
}

/// Rates of level j: C over D, then B.
fn rates_of(chain: &BlockTridiagonal<f64>, j: usize) -> usize {
    let (k, before) = (chain.partition().size(j), before(chain, j));
    (2 * before + k) * k
}

/// Bytes on the device.
fn bytes_of(chain: &BlockTridiagonal<f64>) -> usize {
    let levels = chain.n_blocks();
    8 * (0..levels).map(|j| rates_of(chain, j)).sum::<usize>() + 20 * chain.n() + 12 * levels + 12
}

/// Consecutive chains that fit into `room` bytes, at least one at a time.
fn groups(chains: &[&BlockTridiagonal<f64>], room: usize) -> Vec<Range<usize>> {
    let (mut groups, mut first, mut used, mut states) = (Vec::new(), 0, 0usize, 0usize);
    for (c, chain) in chains.iter().enumerate() {
        let bytes = bytes_of(chain);
        if c > first && (used.saturating_add(bytes) > room || states + chain.n() > MAX_BLOCKS) {
            groups.push(first..c);
            (first, used, states) = (c, 0, 0);
        }
        (used, states) = (used.saturating_add(bytes), states + chain.n());
    }
    if first < chains.len() {
        groups.push(first..chains.len());
    }
    groups
}

/// One launch.
fn eliminate(
    device: &Device,
    kernel: &Kernel,
    chains: &[&BlockTridiagonal<f64>],
) -> Result<Vec<Result<Vec<Scaled>, ChainFault>>> {
    let (mut first, mut row, mut place) = (vec![0u32], vec![0u32], Vec::new());
    let (mut n, mut end, mut largest) = (0usize, 0usize, 1usize);
    for chain in chains {
        for (j, k) in chain.partition().sizes().enumerate() {
            place.push(end as u64);
            (n, end, largest) = (n + k, end + rates_of(chain, j), largest.max(k));
            row.push(n as u32);
        }
        first.push(place.len() as u32);
    }
    if n > MAX_BLOCKS {
        let (what, limit) = ("a chain on the GPU", "2^31 - 1 states".into());
        return Err(InputError::TooLarge { what, needed: format!("{n} states"), limit }.into());
    }
    // Memory of the device first: it is the scarcer.
    let mut rates = DeviceVec::uninitialized(device, end)?;
    let x = [DeviceVec::<f64>::uninitialized(device, n)?, DeviceVec::uninitialized(device, n)?];
    let status = DeviceVec::uninitialized(device, 2 * chains.len())?;
    rates.copy_from(&pack(chains, end)?)?;
    let (first, row) = (DeviceVec::from_slice(device, &first)?, DeviceVec::from_slice(device, &row)?);
    let place = DeviceVec::from_slice(device, &place)?;
    // Structure Chains of kernels/stationary.cu.
    let at = [
        first.address(),
        row.address(),
        place.address(),
        rates.address(),
        x[0].address(),
        x[1].address(),
        status.address(),
    ];
    let half = 2 * largest;
    let shape = Shape {
        blocks: chains.len() as u32,
        rows: 1,
        threads: ((half * half) as u32).next_power_of_two().clamp(32, Shape::BLOCK),
        shared: (size_of::<f64>() * (half * (half + 1) + 2 * half)) as u32,
    };
    kernel.launch(shape, &[Arg::Struct(&at), Arg::from(chains.len() as u32), Arg::from(largest as u32)])?;
    let (mut mantissas, mut exponents) = (host(n)?, host(n)?);
    let mut statuses = vec![0; status.len()];
    status.copy_to(&mut statuses)?;
    x[0].copy_to(&mut mantissas)?;
    x[1].copy_to(&mut exponents)?;
    let numbers: Vec<(f64, f64)> = mantissas.into_iter().zip(exponents).collect();
    let mut rest = &numbers[..];
    let mut found = Vec::new();
    for (chain, status) in chains.iter().zip(statuses.chunks_exact(2)) {
        let (of_chain, after) = rest.split_at(chain.n());
        rest = after;
        let place = (status[1] as usize).saturating_sub(1);
        found.push(match status[0] {
            0 => Ok(normalised(of_chain)),
            NO_WAY => Err(ChainFault::NoWay { state: place }),
            _ => Err(ChainFault::Range { level: place }),
        });
    }
    Ok(found)
}

/// π = x/Σx from mantissas and exponents.
fn normalised(x: &[(f64, f64)]) -> Vec<Scaled> {
    let mut x: Vec<Scaled> = x.iter().map(|&(m, e)| Scaled::with_exponent(m, e as i64)).collect();
    let total = Scaled::total(&x);
    for x in &mut x {
        *x = *x / total;
    }
    x
}

/// C over D, and then B, of all levels, by columns, one after another.
fn pack(chains: &[&BlockTridiagonal<f64>], len: usize) -> Result<Vec<f64>, InputError> {
    let mut rates = host(len)?;
    let mut rest = &mut rates[..];
    for chain in chains {
        for j in 0..chain.n_blocks() {
            let (k, before) = (chain.partition().size(j), before(chain, j));
            let (level, after) = rest.split_at_mut((2 * before + k) * k);
            rest = after;
            let (to, b) = level.split_at_mut((before + k) * k);
            let (c, d) = MatMut::from_column_major_slice_mut(to, before + k, k).split_at_row_mut(before);
            chain.copy_diagonal_block(j, d);
            if before > 0 {
                chain.copy_upper_block(j - 1, c);
                chain.copy_lower_block(j, MatMut::from_column_major_slice_mut(b, k, before));
            }
        }
    }
    Ok(rates)
}

/// Zeros in memory of the host.
fn host(len: usize) -> Result<Vec<f64>, InputError> {
    let bytes = len.saturating_mul(size_of::<f64>()) as u64;
    memory::ask(bytes, "chains for the GPU")?;
    zeros(len).map_err(|_| InputError::TooLarge {
        what: "chains for the GPU",
        needed: format!("{bytes} bytes"),
        limit: "the memory there is".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::Partition;

    #[test]
    fn groups_fit_and_leave_nothing_out() {
        let chain = |sizes: &[usize]| {
            let (d, c) = (sizes.iter().map(|k| k * k).sum(), sizes.windows(2).map(|k| 2 * k[0] * k[1]).sum());
            let levels = Partition::from_sizes(sizes.iter().copied()).unwrap();
            BlockTridiagonal::from_dense_blocks(levels, vec![1.0; d], vec![1.0; c]).unwrap()
        };
        let (small, large) = (chain(&[1, 2]), chain(&[4, 4, 4]));
        // 1 + 4 + 2·2 rates, 3 states, 2 levels; three words for the chain.
        assert_eq!(bytes_of(&small), 8 * 9 + 20 * 3 + 12 * 2 + 12);
        let chains = [&small, &small, &large, &small, &small, &small];
        assert_eq!(groups(&chains, 2 * bytes_of(&small)), [0..2, 2..3, 3..5, 5..6]);
        assert_eq!(groups(&chains, usize::MAX).first(), Some(&(0..6)));
        assert_eq!(groups(&chains, 0).len(), 6);
        assert!(groups(&[], 100).is_empty());
    }
}
