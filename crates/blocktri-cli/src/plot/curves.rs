//! Curves over a linear axis.

use std::fmt::Write as _;

use super::{Anchor, Area, FAINT, GREY, INK, LINE, PALETTE, Svg, shorten};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
const AREA: Area = Area { x: 84.0, y: 92.0, width: 740.0, height: 364.0 };

/// A named curve.
pub struct Series {
    /// What it is called.
    pub name: String,
    /// (x, y), x increasing. Points that are not finite are left out.
    pub points: Vec<(f64, f64)>,
}

/// A picture of up to three curves with a legend.
pub fn curves(title: &str, subtitle: &str, labels: [&str; 2], series: &[Series]) -> String {
    let points = || series.iter().flat_map(|s| &s.points).copied().filter(|p| p.0.is_finite() && p.1.is_finite());
    let [xs, ys] = [span(points().map(|p| p.0)), span(points().map(|p| p.1))];
    let at = |(x, y): (f64, f64)| {
        let across = (x - xs.0) / (xs.1 - xs.0);
        let up = (y - ys.0) / (ys.1 - ys.0);
        (AREA.x + AREA.width * across, AREA.bottom() - AREA.height * up)
    };
    let mut svg = Svg::new(WIDTH, HEIGHT);
    svg.label((AREA.x, 32.0), 19, Anchor::Start, INK, &shorten(title, 70));
    svg.label((AREA.x, 54.0), 14, Anchor::Start, GREY, &shorten(subtitle, 100));
    for y in ticks(ys) {
        let (_, place) = at((xs.0, y));
        svg.line((AREA.x, place), (AREA.right(), place), FAINT, 1.0);
        svg.label((AREA.x - 10.0, place + 5.0), 14, Anchor::End, GREY, &number(y));
    }
    for x in ticks(xs) {
        let (place, _) = at((x, ys.0));
        svg.line((place, AREA.bottom()), (place, AREA.bottom() + 5.0), LINE, 1.0);
        svg.label((place, AREA.bottom() + 22.0), 14, Anchor::Middle, GREY, &number(x));
    }
    svg.frame(AREA);
    svg.label((AREA.x + AREA.width / 2.0, HEIGHT - 14.0), 15, Anchor::Middle, INK, labels[0]);
    svg.label_upwards((26.0, AREA.y + AREA.height / 2.0), 15, INK, labels[1]);
    for (k, (s, colour)) in series.iter().zip(PALETTE).enumerate() {
        let mut path = String::new();
        for (x, y) in s.points.iter().copied().filter(|p| p.0.is_finite() && p.1.is_finite()).map(at) {
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
        }
        svg.push(format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linejoin=\"round\"/>"
        ));
        let x = AREA.x + 250.0 * k as f64;
        svg.line((x, AREA.y - 16.0), (x + 24.0, AREA.y - 16.0), colour, 3.0);
        svg.label((x + 32.0, AREA.y - 11.0), 14, Anchor::Start, INK, &shorten(&s.name, 28));
    }
    svg.finish()
}

/// Least and largest, apart from each other.
pub(super) fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    if low > high {
        (0.0, 1.0)
    } else if low == high {
        (low - 0.5 * low.abs().max(1.0), high + 0.5 * high.abs().max(1.0))
    } else {
        (low, high)
    }
}

/// Some six round numbers s·{1, 2, 5}·10ᵏ within.
pub(super) fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let rough = (high - low) / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|&s| s >= rough).unwrap_or(rough);
    let first = (low / step).ceil();
    // Never more than a few: the loop ends even where the step is lost in rounding.
    (0..12).map(|k| (first + f64::from(k)) * step).take_while(|&t| t <= high + 1e-9 * step).collect()
}

pub(super) fn number(x: f64) -> String {
    if x == 0.0 {
        "0".into()
    } else if (1e-3..1e6).contains(&x.abs()) {
        let text = format!("{x:.4}");
        text.trim_end_matches('0').trim_end_matches('.').replace('-', "−")
    } else {
        format!("{x:.1e}").replace('-', "−")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks((0.0, 30.0)), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]);
        assert_eq!(ticks((-400.0, 0.0)), [-400.0, -300.0, -200.0, -100.0, 0.0]);
        assert!(ticks((1e300, 1.000_000_000_000_001e300)).len() <= 12);
        assert_eq!((number(0.25), number(-3.0), number(0.0)), ("0.25".into(), "−3".into(), "0".into()));
    }

    #[test]
    fn odd_values_do_not_reach_the_document() {
        let series =
            [Series { name: "a<b".into(), points: vec![(0.0, f64::NAN), (1.0, f64::NEG_INFINITY), (2.0, 3.0)] }];
        for series in [&series[..], &[]] {
            let svg = curves("t", "s", ["x", "y"], series);
            assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("a<b"), "{svg}");
        }
    }
}
