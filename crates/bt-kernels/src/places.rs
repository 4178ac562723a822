//! Places that share one system, and how its rows or blocks are dealt out to them: each place has some that follow each other, in the
//! order of the list.

use bt_formats::Error as InputError;

use crate::device::{Device, Result};

/// A place that computes.
#[derive(Clone)]
pub enum Place {
    /// The processor.
    Host,
    /// A device.
    Device(Device),
}

/// How many rows or blocks each place has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Shares {
    /// As many on each.
    #[default]
    Even,
    /// In proportion to the speeds that a trial of even shares shows.
    Measured,
    /// So many on the last place, as many on each of the others.
    Last(usize),
    /// So many, in the order of the places.
    Counts(Vec<usize>),
}

impl Place {
    /// As the command spells it.
    fn name(&self) -> String {
        match self {
            Self::Host => "cpu".into(),
            Self::Device(device) => format!("gpu:{}", device.ordinal()),
        }
    }
}

/// Names of places with what each has, for a note.
pub(crate) fn told(places: &[Place], counts: &[usize]) -> String {
    let each = places.iter().zip(counts).map(|(place, count)| format!("{} {count}", place.name()));
    each.collect::<Vec<_>>().join(", ")
}

/// [`InputError::InvalidStructure`] without places, or for one that is named twice.
pub(crate) fn check(places: &[Place]) -> Result<()> {
    let mut names: Vec<String> = places.iter().map(Place::name).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| format!("{} is named twice", pair[0]));
    match twice.or_else(|| names.is_empty().then(|| "there is none".into())) {
        Some(why) => Err(InputError::InvalidStructure { what: "list of places", why }.into()),
        None => Ok(()),
    }
}

/// Counts of `total` things in proportion to `weights`, cut before multiples of `unit`.
pub(crate) fn deal(total: usize, unit: usize, weights: &[f64]) -> Vec<usize> {
    let whole: f64 = weights.iter().sum();
    let (mut sum, mut dealt) = (0.0, 0);
    let counts = weights.iter().enumerate().map(|(k, weight)| {
        sum += weight;
        let cut = (total as f64 * (sum / whole) / unit as f64).round() as usize * unit;
        let cut = if k + 1 == weights.len() { total } else { cut.clamp(dealt, total) };
        let count = cut - dealt;
        dealt = cut;
        count
    });
    counts.collect()
}

/// What the shares say before anything is measured: then as many for each place.
pub(crate) fn first_counts(
    shares: &Shares,
    places: usize,
    total: usize,
    unit: usize,
    what: &str,
) -> Result<Vec<usize>> {
    let refuse = |why| Err(InputError::InvalidStructure { what: "shares", why }.into());
    let counts = match *shares {
        Shares::Even | Shares::Measured => return Ok(deal(total, unit, &vec![1.0; places])),
        Shares::Last(last) if last > total => {
            return refuse(format!("{last} {what} for the last place, but there are {total}"));
        }
        Shares::Last(last) => {
            let others = if places > 1 { deal(total - last, unit, &vec![1.0; places - 1]) } else { Vec::new() };
            &[&others[..], &[last]].concat()
        }
        Shares::Counts(ref counts) => counts,
    };
    let sum = counts.iter().fold(0, |sum: usize, &count| sum.saturating_add(count));
    if counts.len() == places && sum == total {
        return Ok(counts.clone());
    }
    refuse(format!("{} shares with {sum} {what} in all, for {places} places and {total} {what}", counts.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_dealt_out_in_proportion_and_cut_at_multiples() {
        assert_eq!(deal(10, 1, &[1.0, 1.0]), [5, 5]);
        assert_eq!(deal(10, 1, &[3.0, 1.0, 1.0]), [6, 2, 2]);
        assert_eq!(deal(10, 4, &[1.0, 1.0]), [4, 6]);
        assert_eq!(deal(1, 1, &[1.0; 3]), [0, 1, 0]);
        assert_eq!(deal(0, 2, &[1.0; 2]), [0, 0]);
        assert_eq!(deal(7, 2, &[1e-9, 1.0]), [0, 7]);
    }

    #[test]
    fn counts_have_to_add_up_and_places_to_differ() {
        assert_eq!(first_counts(&Shares::Counts(vec![1, 4]), 2, 5, 1, "rows").unwrap(), [1, 4]);
        for counts in [vec![5], vec![1, 3], vec![usize::MAX, 6]] {
            let error = first_counts(&Shares::Counts(counts), 2, 5, 1, "rows").unwrap_err();
            assert!(error.to_string().contains("for 2 places and 5 rows"), "{error}");
        }
        assert_eq!(first_counts(&Shares::Last(3), 3, 10, 2, "blocks").unwrap(), [4, 3, 3]);
        assert_eq!(first_counts(&Shares::Last(3), 1, 3, 1, "blocks").unwrap(), [3]);
        let error = first_counts(&Shares::Last(4), 2, 3, 1, "blocks").unwrap_err();
        assert!(error.to_string().contains("4 blocks for the last place, but there are 3"), "{error}");
        assert!(check(&[]).is_err_and(|e| e.to_string().contains("there is none")));
        assert!(check(&[Place::Host, Place::Host]).is_err_and(|e| e.to_string().contains("cpu is named twice")));
        assert!(check(&[Place::Host]).is_ok());
    }
}
