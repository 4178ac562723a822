//! The residual of every iteration, on a logarithmic scale.

use super::axis::{Axis, Scale};
use super::chart::{Chart, Dashes, Points, Series, Shape, chart};
use crate::progress::Curve;

/// More curves than this are not told apart.
const MOST_NAMED: usize = 6;
/// Longer curves are lines without points.
const MOST_MARKED: usize = 60;

/// A curve of (iteration, relative residual) for each right-hand side, and the tolerance asked for.
///
/// Long histories are thinned to the extremes of each column of pixels, so that the file stays small and no peak
/// is lost. Residuals of zero and non-finite ones cannot be drawn; the curve breaks there.
pub fn residual_history(title: &str, subtitle: &str, label: &str, curves: &[Curve], tolerance: Option<f64>) -> String {
    let named = curves.len() <= MOST_NAMED;
    let curve = |(k, curve): (usize, &Curve)| Series {
        name: format!("right-hand side {}", k + 1),
        // Few points are worth seeing one by one.
        shape: Shape::Line {
            style: if named { k } else { 0 },
            dashes: Dashes::ByStyle,
            points: if curve.len() <= MOST_MARKED { Points::Marked } else { Points::Bare },
        },
        points: curve.iter().map(|&(i, r)| (i as f64, r)).collect(),
    };
    let level =
        tolerance.map(|t| Series { name: format!("tolerance {t:.0e}"), shape: Shape::Level, points: vec![(0.0, t)] });
    let mut series: Vec<Series> = curves.iter().enumerate().map(curve).chain(level).collect();
    if !named {
        // One line of many pieces has no legend: each begins anew after a point that has no place.
        let points = series.iter().filter(|s| s.shape != Shape::Level);
        let joined = points.flat_map(|s| s.points.iter().copied().chain([(0.0, f64::NAN)])).collect();
        series.retain(|s| s.shape == Shape::Level);
        series.push(Series { name: String::new(), shape: Shape::line(0), points: joined });
    }
    chart(&Chart {
        title: title.into(),
        subtitle: subtitle.into(),
        x: Axis::new("iteration", Scale::Whole),
        y: Axis::new(label, Scale::Logarithmic),
        series,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_values_do_not_reach_the_document() {
        let history = vec![(0, 1.0), (1, f64::NAN), (2, 0.0), (3, f64::INFINITY), (4, 1e-300)];
        let svg = residual_history("t", "s", "residual", &[history], Some(0.0));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(!residual_history("t", "s", "residual", &[], None).contains("NaN"));
    }

    #[test]
    fn right_hand_sides_are_named_while_they_are_few() {
        let draw = |count| residual_history("t", "s", "r", &vec![vec![(0, 1.0), (1, 1e-9)]; count], Some(1e-8));
        assert!(!draw(1).contains("right-hand side"));
        assert!(draw(3).contains("right-hand side 3") && draw(3).contains("stroke-dasharray=\"2 3\""));
        assert!(!draw(7).contains("right-hand side") && draw(7).contains("tolerance 1e-8"));
        // A line of seven pieces.
        let pieces = |svg: &str| svg.split("<path").map(|p| p.matches('M').count()).max();
        assert_eq!((pieces(&draw(7)), pieces(&draw(3))), (Some(7), Some(1)));
    }
}
