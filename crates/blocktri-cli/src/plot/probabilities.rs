//! A stationary distribution as bars over its states.

use super::axis::{Axis, Scale};
use super::chart::{Chart, Series, Shape, chart};
use super::grouped;

/// Probability that a picture leaves out, at both ends together.
const LEFT_OUT: f64 = 1e-12;
/// Probabilities below this are not drawn.
const LOWEST: f64 = -18.0;

/// Probabilities that differ by a factor of more than this have a logarithmic axis.
const WIDE: f64 = 100.0;

/// Bars over the states `(k, log₁₀ p)`, k increasing: the range that holds all but 1e-12 of the probability, each state with a place of
/// its own. `what` names the states.
pub fn probabilities(title: &str, subtitle: &str, what: &str, states: &[(usize, f64)]) -> String {
    let (first, last) = range(states);
    let held = &states[first..last];
    let drawn = held.iter().filter(|s| s.1 >= LOWEST).map(|&(k, log)| (k as f64, 10f64.powf(log)));
    let mut points: Vec<(f64, f64)> = drawn.collect();
    let mut notes = Vec::from_iter(Some(subtitle.to_owned()).filter(|s| !s.is_empty()));
    if let ([low, .., high] | [low @ high], true) = (held, held.len() < states.len()) {
        let most = grouped(states.last().map_or(0, |s| s.0));
        let shown = if low.0 == high.0 { grouped(low.0) } else { format!("{} to {}", grouped(low.0), grouped(high.0)) };
        notes.push(format!("shown: {shown} of 0 to {most}, all but {LEFT_OUT:e} of the probability"));
    }
    if points.len() < held.len() {
        notes.push(format!("{} below 1e{LOWEST:.0} not drawn", grouped(held.len() - points.len())));
    }
    let (least, largest) = points.iter().fold((f64::INFINITY, 0.0f64), |(l, h), p| (l.min(p.1), h.max(p.1)));
    let scale = if largest > WIDE * least { Scale::Logarithmic } else { Scale::FromZero };
    // The ends have their places even where they are not drawn, and so has a neighbour or two of a state alone.
    let spare = 3usize.saturating_sub(held.len());
    let above = spare.div_ceil(2).min(states.len() - last);
    let around = &states[first.saturating_sub(spare - above)..last + above];
    let ends = [around.first(), around.last()];
    points.extend(ends.into_iter().flatten().map(|s| (s.0 as f64, f64::NAN)));
    chart(&Chart {
        title: title.into(),
        subtitle: notes.join("; "),
        x: Axis::new(what, Scale::Whole),
        y: Axis::new("probability", scale),
        series: vec![Series { name: String::new(), shape: Shape::Bars, points }],
    })
}

/// The shortest run of states with all but [`LEFT_OUT`] that dropping the less probable end gives.
fn range(states: &[(usize, f64)]) -> (usize, usize) {
    let p = |i: usize| 10f64.powf(states[i].1);
    let (mut first, mut last, mut dropped) = (0, states.len(), 0.0);
    while last - first > 1 {
        let next = p(first).min(p(last - 1));
        if dropped + next > LEFT_OUT {
            break;
        }
        dropped += next;
        if p(first) <= p(last - 1) { first += 1 } else { last -= 1 }
    }
    (first, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(p: &[f64]) -> Vec<(usize, f64)> {
        p.iter().map(|p| p.log10()).enumerate().collect()
    }

    #[test]
    fn the_range_holds_all_but_a_trillionth() {
        assert_eq!(range(&logs(&[0.0, 1e-13, 0.5, 0.25, 0.25, 1e-11, 1e-30])), (2, 6));
        // Together the two ends are more than that.
        assert_eq!(range(&logs(&[6e-13, 0.5, 0.5, 7e-13])), (1, 4));
        assert_eq!(range(&logs(&[1.0])), (0, 1));
        assert_eq!(range(&[]), (0, 0));
        // 1e-400 is no double, its logarithm is.
        assert_eq!(range(&[(0, -400.0), (1, 0.0)]), (1, 2));
    }

    /// Bars, and the numbers below the axis.
    fn bars(svg: &str) -> usize {
        svg.split("<path").find(|p| p.contains("fill-opacity")).map_or(0, |p| p.matches('z').count())
    }

    #[test]
    fn one_state_is_a_bar_between_numbers() {
        for (states, marks) in [
            (logs(&[1.0]), ["0", "1", "2"]),
            (logs(&[0.0, 0.0, 1.0, 0.0]), ["1", "2", "3"]),
            (logs(&[0.0, 0.0, 0.0, 1.0]), ["1", "2", "3"]),
        ] {
            let svg = probabilities("t", "", "state (from 0)", &states);
            assert_eq!(bars(&svg), 1, "{svg}");
            for mark in marks {
                assert!(svg.contains(&format!("text-anchor=\"middle\" fill=\"#5f6b7a\">{mark}<")), "{mark}: {svg}");
            }
            assert!(svg.contains(">probability<") && !svg.contains("NaN") && !svg.contains("inf"));
        }
        assert!(probabilities("t", "", "s", &[]).contains("nothing to show yet"));
    }

    #[test]
    fn what_is_not_drawn_is_said() {
        let mut p = vec![0.0; 50];
        (p[10], p[11], p[12], p[13]) = (0.5, 1e-30, 0.499, 0.001);
        let svg = probabilities("t", "50 states", "s", &logs(&p));
        assert_eq!(bars(&svg), 3);
        assert!(svg.contains("probability, logarithmic"));
        assert!(svg.contains("10 to 13 of 0 to 49") && svg.contains("1 below 1e-18 not drawn"), "{svg}");
    }
}
