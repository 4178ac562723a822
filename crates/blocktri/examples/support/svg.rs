//! Curves as a plain SVG file, with the standard library alone.

use std::fmt::Write;
use std::path::PathBuf;

/// A curve, its colour and its name.
pub struct Curve {
    pub name: &'static str,
    pub colour: &'static str,
    pub points: Vec<(f64, f64)>,
}

/// Writes `curves` to the path given as the first argument, or to `target/NAME.svg`, and says where.
pub fn plot(name: &str, title: &str, curves: &[Curve]) {
    const SIZE: (f64, f64) = (800.0, 450.0);
    const MARGIN: f64 = 45.0;
    let all = || curves.iter().flat_map(|c| &c.points);
    let range = |of: fn(&(f64, f64)) -> f64| {
        let (lo, hi) = all().map(of).fold((f64::MAX, f64::MIN), |(lo, hi), v| (lo.min(v), hi.max(v)));
        (lo, if hi > lo { hi } else { lo + 1.0 })
    };
    let ((x0, x1), (y0, y1)) = (range(|p| p.0), range(|p| p.1));
    let at = |(x, y): (f64, f64)| {
        let (w, h) = (SIZE.0 - 2.0 * MARGIN, SIZE.1 - 2.0 * MARGIN);
        (MARGIN + (x - x0) / (x1 - x0) * w, SIZE.1 - MARGIN - (y - y0) / (y1 - y0) * h)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{MARGIN}\" y=\"18\" font-size=\"15\">{title}</text>\n",
        SIZE.0, SIZE.1
    );
    let mut line = |text: String| writeln!(svg, "{text}").expect("a String takes what is written");
    for (value, (x, y)) in [(x0, at((x0, y0))), (x1, at((x1, y0)))] {
        line(format!("<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value:.4}</text>", y + 18.0));
    }
    for (value, (x, y)) in [(y0, at((x0, y0))), (y1, at((x0, y1)))] {
        line(format!("<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value:.3}</text>", x - 4.0, y + 4.0));
    }
    for (i, curve) in curves.iter().enumerate() {
        let points: Vec<String> = curve.points.iter().map(|&p| at(p)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (points, colour) = (points.join(" "), curve.colour);
        line(format!("<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"));
        let y = 36.0 + 16.0 * i as f64;
        line(format!(
            "<text x=\"{:.1}\" y=\"{y}\" text-anchor=\"end\" fill=\"{colour}\">{}</text>",
            SIZE.0 - 10.0,
            curve.name
        ));
    }
    line("</svg>".into());
    let path = std::env::args_os().nth(1).map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target").join(format!("{name}.svg")),
        PathBuf::from,
    );
    std::fs::write(&path, svg).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    println!("picture: {}", path.display());
}
