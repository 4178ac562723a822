//! Curves of a report: linear or logarithmic axes, or places with names; a legend below. Small enough for a phone.

use std::fmt::Write as _;

use bt_reproduce::{Axis, Curve, Figure, Scaling, Stroke};

use super::curves::{number, span, ticks};
use super::{Anchor, Area, FAINT, GREY, INK, LINE, PALETTE, Svg};

const WIDTH: f64 = 440.0;
const AREA: Area = Area { x: 60.0, y: 40.0, width: 368.0, height: 230.0 };
/// Room below the axis for its numbers and label.
const BELOW: f64 = 58.0;
/// Height of a row of the legend, which has two columns.
const ROW: f64 = 20.0;
const SIZE: u32 = 12;

/// What a picture stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// A file of its own, on white.
    White,
    /// A page whose style sets the colours.
    Page,
}

/// The picture.
pub fn figure(figure: &Figure, ground: Ground) -> String {
    let points = || figure.curves.iter().flat_map(|c| &c.points).copied().filter(|&p| drawable(figure, p));
    let xs = range(&figure.x, points().map(|p| p.0), Zero::Free);
    let ys = range(&figure.y, points().map(|p| p.1), Zero::Included);
    let place = |axis: &Axis, (low, high): (f64, f64), v: f64| (measure(axis, v) - low) / (high - low);
    let x = |v: f64| AREA.x + AREA.width * place(&figure.x, xs, v);
    let y = |v: f64| AREA.bottom() - AREA.height * place(&figure.y, ys, v);

    let shown: Vec<&Curve> = figure.curves.iter().filter(|c| c.points.iter().any(|&p| drawable(figure, p))).collect();
    let legend = AREA.bottom() + BELOW;
    let mut svg = Svg::on(ground, WIDTH, legend + ROW * shown.len().div_ceil(2) as f64);
    svg.label((10.0, 22.0), 14, Anchor::Start, INK, &cut(&figure.title, 56));
    for v in marks(&figure.y, ys) {
        svg.line((AREA.x, y(v)), (AREA.right(), y(v)), FAINT, 1.0);
        svg.label((AREA.x - 7.0, y(v) + 4.0), SIZE, Anchor::End, GREY, &number(v));
    }
    let names = figure.x.names.iter().enumerate().map(|(i, name)| (i as f64, name.clone())).collect::<Vec<_>>();
    let labels =
        if names.is_empty() { marks(&figure.x, xs).into_iter().map(|v| (v, number(v))).collect() } else { names };
    for (i, (v, label)) in labels.iter().enumerate() {
        // Names are longer than the steps between them: every other one stands lower.
        let lower = if figure.x.names.is_empty() || i % 2 == 0 { 0.0 } else { 13.0 };
        svg.line((x(*v), AREA.bottom()), (x(*v), AREA.bottom() + 4.0), LINE, 1.0);
        svg.label((x(*v), AREA.bottom() + 17.0 + lower), SIZE, Anchor::Middle, GREY, label);
    }
    svg.frame(AREA);
    svg.label((AREA.x + AREA.width / 2.0, AREA.bottom() + 45.0), SIZE, Anchor::Middle, INK, &figure.x.label);
    svg.label_upwards((14.0, AREA.y + AREA.height / 2.0), SIZE, INK, &figure.y.label);
    if shown.is_empty() {
        let middle = (AREA.x + AREA.width / 2.0, AREA.y + AREA.height / 2.0);
        svg.label(middle, SIZE, Anchor::Middle, GREY, "no results yet");
    }
    for (k, curve) in shown.iter().enumerate() {
        let (colour, dashes) = (colour(&figure.curves, curve), dashes(curve.stroke));
        let mut path = String::new();
        for &(px, py) in curve.points.iter().filter(|&&p| drawable(figure, p)) {
            let _ = write!(path, "{}{:.1} {:.1}", if path.is_empty() { 'M' } else { 'L' }, x(px), y(py));
            if curve.stroke == Stroke::Solid {
                svg.push(format_args!("<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.6\" fill=\"{colour}\"/>", x(px), y(py)));
            }
        }
        svg.push(format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" stroke-linejoin=\"round\"{dashes}/>"
        ));
        let (left, top) = (10.0 + 215.0 * (k % 2) as f64, legend + ROW * (k / 2) as f64);
        svg.push(format_args!(
            "<path d=\"M{left:.1} {top:.1}h24\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.4\"{dashes}/>"
        ));
        svg.label((left + 31.0, top + 4.0), SIZE, Anchor::Start, INK, &cut(&curve.name, 29));
    }
    svg.finish()
}

/// The start of a text too long for its place.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most - 1).chain(['…']).collect() }
}

fn dashes(stroke: Stroke) -> &'static str {
    match stroke {
        Stroke::Solid => "",
        Stroke::Dashed => " stroke-dasharray=\"6 4\"",
    }
}

/// Curves of one subject ("CG" and "CG, paper") have one colour.
fn colour(curves: &[Curve], curve: &Curve) -> &'static str {
    let subject = |c: &Curve| c.name.split(',').next().unwrap_or_default().to_owned();
    let mut subjects: Vec<String> = Vec::new();
    for s in curves.iter().map(subject) {
        if !subjects.contains(&s) {
            subjects.push(s);
        }
    }
    let k = subjects.iter().position(|s| *s == subject(curve)).unwrap_or(0);
    PALETTE[k % PALETTE.len()]
}

fn drawable(figure: &Figure, (x, y): (f64, f64)) -> bool {
    let fits = |axis: &Axis, v: f64| v.is_finite() && (axis.scaling == Scaling::Linear || v > 0.0);
    fits(&figure.x, x) && fits(&figure.y, y)
}

/// The value as the axis measures it.
fn measure(axis: &Axis, v: f64) -> f64 {
    match axis.scaling {
        Scaling::Linear => v,
        Scaling::Logarithmic => v.log10(),
    }
}

/// Whether a linear axis of positive values starts at zero.
#[derive(Clone, Copy, PartialEq)]
enum Zero {
    Included,
    Free,
}

/// From the least to the largest measure, with a little room.
fn range(axis: &Axis, values: impl Iterator<Item = f64>, zero: Zero) -> (f64, f64) {
    if !axis.names.is_empty() {
        return (-0.5, axis.names.len() as f64 - 0.5);
    }
    let (low, high) = span(values.map(|v| measure(axis, v)));
    let room = 0.05 * (high - low);
    if axis.scaling == Scaling::Linear && zero == Zero::Included && low >= 0.0 {
        (0.0, high + room)
    } else {
        (low - room, high + room)
    }
}

/// Values with a mark: round ones; on a logarithmic axis {1, 2, 5}·10ᵏ, or powers of ten alone where there are many.
fn marks(axis: &Axis, (low, high): (f64, f64)) -> Vec<f64> {
    if axis.scaling == Scaling::Linear {
        return ticks((low, high));
    }
    let decades = high - low;
    let digits: &[f64] = if decades <= 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let step = (decades / 8.0).ceil().max(1.0) as usize;
    let inside = |v: &f64| (low..=high).contains(&v.log10());
    let powers = (low.floor() as i32..=high.ceil() as i32).step_by(step);
    powers.flat_map(|k| digits.iter().map(move |d| d * 10f64.powi(k))).filter(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(points: &[(f64, f64)]) -> Figure {
        let curve = |name: &str, stroke| Curve { name: name.into(), stroke, points: points.to_vec() };
        Figure {
            name: "f".into(),
            title: "a<b".into(),
            x: Axis::new("x", Scaling::Linear),
            y: Axis::new("y", Scaling::Logarithmic),
            curves: vec![curve("CG", Stroke::Solid), curve("CG, paper", Stroke::Dashed), curve("HBISA", Stroke::Solid)],
        }
    }

    #[test]
    fn odd_values_do_not_reach_the_document() {
        for points in [
            vec![],
            vec![(0.0, f64::NAN), (1.0, 0.0), (2.0, -1.0)],
            vec![(0.0, 1.0)],
            vec![(0.0, 1e-300), (1.0, 1e300)],
        ] {
            let svg = figure(&example(&points), Ground::White);
            assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("a<b"), "{svg}");
        }
        assert!(figure(&example(&[]), Ground::White).contains("no results yet"));
    }

    #[test]
    fn a_subject_has_one_colour_and_a_page_sets_it() {
        let figures = example(&[(0.0, 1.0), (1.0, 2.0)]);
        let [cg, paper, hbisa] = [0, 1, 2].map(|k| colour(&figures.curves, &figures.curves[k]));
        assert!(cg == paper && cg != hbisa);
        assert!(figure(&figures, Ground::White).contains("#ffffff"));
        let page = figure(&figures, Ground::Page);
        assert!(page.contains("var(--blue)") && !page.contains('#'), "{page}");
    }

    #[test]
    fn marks_are_round() {
        let axis = Axis::new("", Scaling::Logarithmic);
        assert_eq!(marks(&axis, (0.0, 1.6)), [1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(marks(&axis, (-3.0, 0.0)), [1e-3, 1e-2, 1e-1, 1.0]);
        assert!(marks(&axis, (-300.0, 300.0)).len() < 10);
    }
}
