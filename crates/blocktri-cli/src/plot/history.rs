//! The residual of every iteration, on a logarithmic scale.

use std::fmt::Write as _;

use super::{Anchor, Area, BLUE, FAINT, GREY, INK, LINE, RED, Svg, grouped, round_numbers, shorten};
use crate::progress::Curve;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
const AREA: Area = Area { x: 84.0, y: 72.0, width: 740.0, height: 384.0 };

/// A curve of (iteration, relative residual) for each right-hand side, and the tolerance asked for.
///
/// Long histories are thinned to the extremes of each column of pixels, so that the file stays small and no peak
/// is lost. Residuals of zero and non-finite ones cannot be drawn; the curve breaks there.
pub fn residual_history(title: &str, subtitle: &str, label: &str, curves: &[Curve], tolerance: Option<f64>) -> String {
    let drawable = |r: f64| r.is_finite() && r > 0.0;
    let exponents = curves
        .iter()
        .flatten()
        .map(|&(_, r)| r)
        .chain(tolerance)
        .filter(|&r| drawable(r))
        .map(f64::log10)
        .collect::<Vec<_>>();
    let low = exponents.iter().copied().fold(f64::INFINITY, f64::min).min(0.0).floor();
    let high = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max).max(low).ceil().max(low + 1.0);
    let last = curves.iter().flatten().map(|&(i, _)| i).max().unwrap_or(0).max(1);
    let x = |i: f64| AREA.x + AREA.width * i / last as f64;
    let y = |exponent: f64| AREA.y + AREA.height * (high - exponent) / (high - low);

    let mut svg = Svg::new(WIDTH, HEIGHT);
    svg.label((AREA.x, 32.0), 19, Anchor::Start, INK, &shorten(title, 70));
    svg.label((AREA.x, 54.0), 14, Anchor::Start, GREY, &shorten(subtitle, 100));
    // At most nine decades are labelled.
    let decade = ((high - low) / 9.0).ceil().max(1.0);
    let mut exponent = (low / decade).ceil() * decade;
    while exponent <= high {
        svg.line((AREA.x, y(exponent)), (AREA.right(), y(exponent)), FAINT, 1.0);
        power_of_ten(&mut svg, (AREA.x - 10.0, y(exponent) + 5.0), exponent as i32);
        exponent += decade;
    }
    for i in round_numbers(last, 8) {
        let x = x(i as f64);
        svg.line((x, AREA.bottom()), (x, AREA.bottom() + 5.0), LINE, 1.0);
        svg.label((x, AREA.bottom() + 22.0), 14, Anchor::Middle, GREY, &grouped(i));
    }
    svg.frame(AREA);
    svg.label((AREA.x + AREA.width / 2.0, HEIGHT - 14.0), 15, Anchor::Middle, INK, "iteration");
    svg.label_upwards((26.0, AREA.y + AREA.height / 2.0), 15, INK, label);

    if let Some(tolerance) = tolerance.filter(|&t| drawable(t)) {
        let y = y(tolerance.log10());
        svg.push(format_args!(
            "<path d=\"M{:.1} {y:.1}H{:.1}\" stroke=\"{RED}\" stroke-width=\"1.5\" stroke-dasharray=\"7 5\"/>",
            AREA.x,
            AREA.right()
        ));
        let label = format!("tolerance {tolerance:.0e}");
        // Curves fall to the right: the label is in nobody's way at the left.
        svg.label((AREA.x + 8.0, y - 7.0), 14, Anchor::Start, RED, &label);
    }

    for curve in curves {
        let mut path = String::new();
        let mut pen_down = false;
        for (i, r) in thin(curve, AREA.width as usize) {
            if drawable(r) {
                let _ = write!(path, "{}{:.1} {:.1}", if pen_down { 'L' } else { 'M' }, x(i as f64), y(r.log10()));
            }
            pen_down = drawable(r);
        }
        svg.push(format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{BLUE}\" stroke-width=\"2\" stroke-linejoin=\"round\" \
             stroke-opacity=\"0.85\"/>"
        ));
        // Few points are worth seeing one by one.
        for &(i, r) in curve.iter().filter(|&&(_, r)| curve.len() <= 60 && drawable(r)) {
            svg.push(format_args!(
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{BLUE}\"/>",
                x(i as f64),
                y(r.log10())
            ));
        }
    }
    svg.finish()
}

/// 10ᵏ with a raised exponent.
fn power_of_ten(svg: &mut Svg, (x, y): (f64, f64), exponent: i32) {
    svg.push(format_args!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"14\" text-anchor=\"end\" fill=\"{GREY}\">10<tspan dy=\"-6\" \
         font-size=\"11\">{}</tspan></text>",
        exponent.to_string().replace('-', "−")
    ));
}

/// First, smallest, largest and last of each bucket of iterations, where there are more points than buckets can show.
fn thin(history: &[(usize, f64)], buckets: usize) -> Vec<(usize, f64)> {
    if history.len() <= 4 * buckets {
        return history.to_vec();
    }
    let mut thinned = Vec::with_capacity(4 * buckets);
    for bucket in history.chunks(history.len().div_ceil(buckets)) {
        let by = |a: &&(usize, f64), b: &&(usize, f64)| a.1.total_cmp(&b.1);
        let mut kept: Vec<_> = [bucket.first(), bucket.iter().min_by(by), bucket.iter().max_by(by), bucket.last()]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        kept.sort_by_key(|&(i, _)| i);
        kept.dedup_by_key(|&mut (i, _)| i);
        thinned.append(&mut kept);
    }
    thinned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_peaks_and_ends() {
        let mut history: Vec<_> = (0..100_000).map(|i| (i, 1.0)).collect();
        history[54_321].1 = 9.0;
        let thinned = thin(&history, 100);
        assert!(thinned.len() <= 400);
        assert!(thinned.contains(&(54_321, 9.0)));
        assert_eq!((thinned[0].0, thinned[thinned.len() - 1].0), (0, 99_999));
    }

    #[test]
    fn odd_values_do_not_reach_the_document() {
        let history = vec![(0, 1.0), (1, f64::NAN), (2, 0.0), (3, f64::INFINITY), (4, 1e-300)];
        let svg = residual_history("t", "s", "residual", &[history], Some(0.0));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(!residual_history("t", "s", "residual", &[], None).contains("NaN"));
    }
}
