//! Curves over two axes as a plain SVG file, with the standard library alone.

use std::fmt::Write;
use std::path::PathBuf;

/// A curve, its colour and its name; one without a name belongs to the curve before it.
pub struct Curve {
    pub name: &'static str,
    pub colour: &'static str,
    pub points: Vec<(f64, f64)>,
}

const SIZE: (f64, f64) = (800.0, 470.0);
/// Left, right, above, below.
const MARGINS: [f64; 4] = [70.0, 20.0, 62.0, 54.0];
/// Of the curves in their order, for those who see no colours.
const DASHES: [&str; 4] =
    ["", " stroke-dasharray=\"8 4\"", " stroke-dasharray=\"2 3\"", " stroke-dasharray=\"10 3 2 3\""];

/// Writes `curves` to the path given as the first argument, or to `target/NAME.svg`, and says where. `labels` are those of the axes.
pub fn plot(name: &str, title: &str, labels: [&str; 2], curves: &[Curve]) {
    let [left, right, above, below] = MARGINS;
    let ends = |of: fn(&(f64, f64)) -> f64| {
        let values = curves.iter().flat_map(|c| c.points.iter().map(of));
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        if high > low { (low, high + 0.04 * (high - low)) } else { (low - 1.0, low + 1.0) }
    };
    let ((x0, x1), (y0, y1)) = (ends(|p| p.0), ends(|p| p.1));
    // Quantities that are not negative begin at zero.
    let y0 = if y0 < 0.0 { y0 } else { 0.0 };
    let (width, height) = (SIZE.0 - left - right, SIZE.1 - above - below);
    let at = |(x, y): (f64, f64)| (left + (x - x0) / (x1 - x0) * width, above + (y1 - y) / (y1 - y0) * height);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        SIZE.0, SIZE.1
    );
    let mut line = |text: String| writeln!(svg, "{text}").expect("a String takes what is written");
    let text = |x: f64, y: f64, anchor: &str, words: &str| {
        format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>")
    };
    let stroke = |path: &str, colour: &str| format!("<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\"/>");
    line(format!("<text x=\"12\" y=\"24\" font-size=\"16\">{title}</text>"));
    for (value, words) in ticks(y0, y1) {
        let y = at((x0, value)).1;
        line(stroke(&format!("M{left} {y:.1}h{width}"), "#e4e8ee"));
        line(text(left - 8.0, y + 4.5, "end", &words));
    }
    for (value, words) in ticks(x0, x1) {
        let x = at((value, y0)).0;
        line(stroke(&format!("M{x:.1} {}v5", above + height), "#9aa5b1"));
        line(text(x, above + height + 20.0, "middle", &words));
    }
    line(stroke(&format!("M{left} {above}h{width}v{height}h-{width}z"), "#9aa5b1"));
    line(text(left + width / 2.0, SIZE.1 - 12.0, "middle", labels[0]));
    let (x, y) = (20.0, above + height / 2.0);
    line(format!("<text transform=\"translate({x} {y}) rotate(-90)\" text-anchor=\"middle\">{}</text>", labels[1]));
    let (mut x, mut named) = (12.0, 0);
    for curve in curves {
        named += usize::from(!curve.name.is_empty());
        let dashes = DASHES[named.saturating_sub(1) % DASHES.len()];
        let pen = format!("fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{dashes}", curve.colour);
        let points: Vec<String> = curve.points.iter().map(|&p| at(p)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        line(format!("<polyline points=\"{}\" {pen}/>", points.join(" ")));
        if !curve.name.is_empty() {
            line(format!("<path d=\"M{x:.1} 44h28\" {pen}/>"));
            line(text(x + 35.0, 48.5, "start", curve.name));
            x += 62.0 + 7.0 * curve.name.chars().count() as f64;
        }
    }
    line("</svg>".into());
    let path = std::env::args_os().nth(1).map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target").join(format!("{name}.svg")),
        PathBuf::from,
    );
    std::fs::write(&path, svg).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    println!("picture: {}", path.display());
}

/// Multiples of {1, 2, 5}·10ᵏ, three to eight of them, with as many decimals as tell them apart.
fn ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let power = ((high - low) / 3.0).log10().floor() as i32;
    let rough = (high - low) / 7.0;
    let steps = [power - 1, power, power + 1].into_iter().flat_map(|k| [1.0, 2.0, 5.0].map(|d| (d * 10f64.powi(k), k)));
    let (step, k) = steps.into_iter().find(|(step, _)| *step >= rough).unwrap_or((rough, power));
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    let decimals = usize::try_from(-k).unwrap_or(0);
    (first..=last).map(|i| (i as f64 * step, format!("{:.decimals$}", i as f64 * step))).collect()
}
