//! Curves of a report: linear or logarithmic axes, or places with names.

use bt_reproduce::{Curve, Figure, Scaling, Stroke};

use super::Ground;
use super::axis::{Axis, Scale};
use super::chart::{Chart, Dashes, Points, Series, Shape, small};

/// The picture.
pub fn figure(figure: &Figure, ground: Ground) -> String {
    let axis = |axis: &bt_reproduce::Axis, linear: Scale| Axis {
        label: axis.label.clone(),
        scale: if axis.scaling == Scaling::Logarithmic { Scale::Logarithmic } else { linear },
        names: axis.names.clone(),
    };
    let series = figure.curves.iter().map(|curve| Series {
        name: curve.name.clone(),
        shape: Shape::Line {
            style: subject(&figure.curves, curve),
            dashes: if curve.stroke == Stroke::Solid { Dashes::Solid } else { Dashes::Dashed },
            points: Points::Marked,
        },
        points: curve.points.clone(),
    });
    let chart = Chart {
        title: figure.title.clone(),
        subtitle: String::new(),
        x: axis(&figure.x, Scale::Linear),
        y: axis(&figure.y, Scale::FromZero),
        series: series.collect(),
    };
    small(&chart, ground)
}

/// Curves of one subject ("CG" and "CG, paper") have one number, which is their colour.
fn subject(curves: &[Curve], curve: &Curve) -> usize {
    let subject = |c: &Curve| c.name.split(',').next().unwrap_or_default().to_owned();
    let mut subjects: Vec<String> = Vec::new();
    for s in curves.iter().map(subject) {
        if !subjects.contains(&s) {
            subjects.push(s);
        }
    }
    subjects.iter().position(|s| *s == subject(curve)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(points: &[(f64, f64)]) -> Figure {
        let curve = |name: &str, stroke| Curve { name: name.into(), stroke, points: points.to_vec() };
        Figure {
            name: "f".into(),
            title: "a<b".into(),
            x: bt_reproduce::Axis::new("x", Scaling::Linear),
            y: bt_reproduce::Axis::new("y", Scaling::Logarithmic),
            curves: vec![curve("CG", Stroke::Solid), curve("CG, paper", Stroke::Dashed), curve("HBISA", Stroke::Solid)],
        }
    }

    #[test]
    fn a_subject_has_one_colour_and_a_page_sets_it() {
        let figures = example(&[(0.0, 1.0), (1.0, 2.0)]);
        assert_eq!([0, 1, 2].map(|k| subject(&figures.curves, &figures.curves[k])), [0, 0, 1]);
        assert!(figure(&figures, Ground::White).contains("#ffffff"));
        let page = figure(&figures, Ground::Page);
        assert!(page.contains("var(--blue)") && !page.contains('#') && !page.contains("a<b"), "{page}");
        assert!(figure(&example(&[]), Ground::White).contains("nothing to show yet"));
    }
}
