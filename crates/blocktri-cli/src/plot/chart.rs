//! Curves and bars between two axes, with a legend: one drawing for all kinds of pictures.

use std::fmt::Write as _;

use super::axis::{Axis, Label, Ruler};
use super::{Anchor, Area, FAINT, GREY, Ground, INK, LINE, PALETTE, RED, Svg};

/// A picture to be.
pub struct Chart {
    pub title: String,
    pub subtitle: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

/// Something with a name in the legend; a chart with one series has no legend.
pub struct Series {
    pub name: String,
    pub shape: Shape,
    /// (x, y), x increasing. The drawing breaks where the axes have no place for a point.
    pub points: Vec<(f64, f64)>,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A line in the colour, the dashes and the points of a number.
    Line { style: usize, dashes: Dashes, points: Points },
    /// A bar of width 1 from the lower end of the axis for each; one outline where they stand close.
    Bars,
    /// A level to be compared with: dashed, its name above it and not in the legend.
    Level,
}

/// Of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dashes {
    /// As its number says, beside the colour.
    ByStyle,
    Solid,
    Dashed,
}

/// Of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// A circle, a square, … beside the colour.
    Marked,
    Bare,
}

impl Shape {
    /// The k-th of some lines.
    pub fn line(k: usize) -> Self {
        Self::Line { style: k, dashes: Dashes::ByStyle, points: Points::Bare }
    }
}

/// For each number of a line.
const DASHES: [&str; 6] = ["", "8 4", "2 3", "10 3 2 3", "14 5", "5 2 2 2 2 2"];

/// Sizes of a picture.
struct Layout {
    area: Area,
    /// Room to the right of the axes, and below them.
    margins: (f64, f64),
    /// Sizes of letters: title, the rest.
    letters: [u32; 2],
    /// Height of a row of the legend.
    row: f64,
}

const FILE: Layout = Layout {
    area: Area { x: 98.0, y: 74.0, width: 726.0, height: 374.0 },
    margins: (36.0, 66.0),
    letters: [19, 14],
    row: 24.0,
};
/// Small enough for a phone.
const FIGURE: Layout = Layout {
    area: Area { x: 66.0, y: 46.0, width: 358.0, height: 230.0 },
    margins: (16.0, 60.0),
    letters: [14, 12],
    row: 20.0,
};

/// A picture in a file of its own.
pub fn chart(chart: &Chart) -> String {
    draw(chart, &FILE, Ground::White)
}

/// A figure of a report.
pub(super) fn small(chart: &Chart, ground: Ground) -> String {
    draw(chart, &FIGURE, ground)
}

fn draw(chart: &Chart, layout: &Layout, ground: Ground) -> String {
    let fits = |&(x, y): &(f64, f64)| chart.x.has_place_for(x) && chart.y.has_place_for(y);
    // A level stands wherever the others are; what has no height still has its place across.
    let across = chart.series.iter().filter(|s| s.shape != Shape::Level).flat_map(|s| &s.points).map(|p| p.0);
    let up = chart.series.iter().flat_map(|s| &s.points).filter(|p| fits(p)).map(|p| p.1);
    let rulers = (Ruler::new(&chart.x, across), Ruler::new(&chart.y, up));
    let [heading, size] = layout.letters;
    let shown: Vec<&Series> = chart.series.iter().filter(|s| s.points.iter().any(fits)).collect();
    let named: Vec<&Series> = shown.iter().copied().filter(|s| s.shape != Shape::Level).collect();
    let places = if named.len() > 1 { legend(&named, layout) } else { Vec::new() };
    let rows = places.last().map_or(0.0, |&(_, row)| (row + 1) as f64 * layout.row);
    let area = Area { y: layout.area.y + rows, ..layout.area };
    let (width, height) = (area.right() + layout.margins.0, area.bottom() + layout.margins.1);
    let mut svg = Svg::on(ground, width, height);

    let letters = |size: u32| ((width - 20.0) / (0.52 * f64::from(size))) as usize;
    svg.label((12.0, 10.0 + f64::from(heading)), heading, Anchor::Start, INK, &cut(&chart.title, letters(heading)));
    let below = 16.0 + f64::from(heading + size);
    svg.label((12.0, below), size, Anchor::Start, GREY, &cut(&chart.subtitle, letters(size)));
    axes(&mut svg, chart, &rulers, area, size);
    if shown.is_empty() {
        let middle = (area.x + area.width / 2.0, area.y + area.height / 2.0);
        svg.label(middle, size, Anchor::Middle, GREY, "nothing to show yet");
    }
    let pen = Pen { x: &rulers.0, y: &rulers.1, area };
    for series in &shown {
        match series.shape {
            Shape::Line { style, dashes, points } => pen.line(&mut svg, series, fits, (style, dashes, points)),
            Shape::Bars => pen.bars(&mut svg, series, fits),
            Shape::Level => pen.level(&mut svg, series, size),
        }
    }
    for (series, (x, row)) in named.iter().zip(places) {
        let y = layout.area.y + row as f64 * layout.row - 2.0;
        match series.shape {
            Shape::Line { style, dashes, points } => {
                let colour = PALETTE[style % PALETTE.len()];
                stroke(&mut svg, &format!("M{x:.1} {y:.1}h30"), colour, dash(style, dashes));
                if points == Points::Marked && dashes != Dashes::Dashed {
                    marker(&mut svg, style, (x + 15.0, y));
                }
            }
            Shape::Bars | Shape::Level => svg.line((x, y), (x + 30.0, y), PALETTE[0], 6.0),
        }
        svg.label((x + 37.0, y + 0.35 * f64::from(size)), size, Anchor::Start, INK, &series.name);
    }
    svg.finish()
}

/// Left end and row of each name: as many in a row as it holds.
fn legend(named: &[&Series], layout: &Layout) -> Vec<(f64, usize)> {
    let (mut x, mut row) = (12.0, 0);
    let right = layout.area.right();
    let mut places = Vec::new();
    for series in named {
        let width = 37.0 + 0.49 * f64::from(layout.letters[1]) * series.name.chars().count() as f64;
        if x > 12.0 && x + width > right {
            (x, row) = (12.0, row + 1);
        }
        places.push((x, row));
        x += width + 22.0;
    }
    places
}

fn axes(svg: &mut Svg, chart: &Chart, rulers: &(Ruler<'_>, Ruler<'_>), area: Area, size: u32) {
    let letter = f64::from(size);
    for (v, label) in rulers.1.marks() {
        let y = area.bottom() - area.height * rulers.1.place(v);
        svg.line((area.x, y), (area.right(), y), FAINT, 1.0);
        svg.line((area.x - 4.0, y), (area.x, y), LINE, 1.0);
        mark(svg, (area.x - 8.0, y + 0.35 * letter), size, Anchor::End, &label);
    }
    for (i, (v, label)) in rulers.0.marks().into_iter().enumerate() {
        let x = area.x + area.width * rulers.0.place(v);
        svg.line((x, area.bottom()), (x, area.bottom() + 4.0), LINE, 1.0);
        // Names are longer than the steps between them: every other one stands lower.
        let lower = if chart.x.names.is_empty() || i % 2 == 0 { 0.0 } else { letter + 1.0 };
        mark(svg, (x, area.bottom() + 7.0 + letter + lower), size, Anchor::Middle, &label);
    }
    svg.frame(area);
    let names = if chart.x.names.is_empty() { 0.0 } else { 0.6 * letter };
    let foot = area.bottom() + 2.0 * letter + 16.0 + names;
    svg.label((area.x + area.width / 2.0, foot), size, Anchor::Middle, INK, &chart.x.caption());
    svg.label_upwards((4.0 + letter, area.y + area.height / 2.0), size, INK, &chart.y.caption());
}

fn mark(svg: &mut Svg, at: (f64, f64), size: u32, anchor: Anchor, label: &Label) {
    match label {
        Label::Text(text) => svg.label(at, size, anchor, GREY, text),
        Label::Power(exponent) => svg.power(at, size, anchor, GREY, *exponent),
    }
}

/// The start of a text too long for its place.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most - 1).chain(['…']).collect() }
}

fn dash(style: usize, dashes: Dashes) -> &'static str {
    match dashes {
        Dashes::Solid => "",
        Dashes::Dashed => DASHES[1],
        Dashes::ByStyle => DASHES[style % DASHES.len()],
    }
}

fn stroke(svg: &mut Svg, path: &str, colour: &str, dashes: &str) {
    let dashes = if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
    svg.push(format_args!(
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linejoin=\"round\"{dashes}/>"
    ));
}

/// A circle, a square, a triangle, a diamond, the same upside down, a cross: for those who see no colours.
fn marker(svg: &mut Svg, style: usize, (x, y): (f64, f64)) {
    let colour = PALETTE[style % PALETTE.len()];
    let path = match style % 6 {
        0 => {
            svg.push(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"));
            return;
        }
        1 => "m-3 -3h6v6h-6z",
        2 => "m-3.5 3l3.5 -6.5l3.5 6.5z",
        3 => "m-4 0l4 -4l4 4l-4 4z",
        4 => "m-3.5 -3l3.5 6.5l3.5 -6.5z",
        _ => "m-4 -1h3v-3h2v3h3v2h-3v3h-2v-3h-3z",
    };
    svg.push(format_args!("<path d=\"M{x:.1} {y:.1}{path}\" fill=\"{colour}\"/>"));
}

/// From values to elements.
struct Pen<'a> {
    x: &'a Ruler<'a>,
    y: &'a Ruler<'a>,
    area: Area,
}

impl Pen<'_> {
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.area.x + self.area.width * self.x.place(x), self.area.bottom() - self.area.height * self.y.place(y))
    }

    fn line(
        &self,
        svg: &mut Svg,
        series: &Series,
        fits: impl Fn(&(f64, f64)) -> bool,
        (style, dashes, points): (usize, Dashes, Points),
    ) {
        let mut path = String::new();
        let mut pen_down = false;
        for point in thin(&series.points, self.area.width as usize) {
            if fits(&point) {
                let (x, y) = self.at(point);
                let _ = write!(path, "{}{x:.1} {y:.1}", if pen_down { 'L' } else { 'M' });
            }
            pen_down = fits(&point);
        }
        stroke(svg, &path, PALETTE[style % PALETTE.len()], dash(style, dashes));
        // A point alone is no line.
        if (points == Points::Marked && dashes != Dashes::Dashed) || series.points.len() == 1 {
            series.points.iter().filter(|p| fits(p)).for_each(|&p| marker(svg, style, self.at(p)));
        }
    }

    /// Bars with a gap where there is room for one, else their outline filled.
    fn bars(&self, svg: &mut Svg, series: &Series, fits: impl Fn(&(f64, f64)) -> bool) {
        let width = self.area.width * (self.x.place(1.0) - self.x.place(0.0));
        let floor = self.area.bottom();
        let gap = if width >= 4.0 { (0.2 * width).min(4.0) } else { 0.0 };
        let mut path = String::new();
        // Columns of at least half a pixel, the largest value in each.
        let mut columns: Vec<(f64, f64, f64)> = Vec::new();
        for (x, y) in series.points.iter().filter(|p| fits(p)).map(|&p| self.at(p)) {
            let (left, right) = (x - 0.5 * width + 0.5 * gap, x + 0.5 * width - 0.5 * gap);
            match columns.last_mut() {
                Some(last) if right - last.0 < 0.5 => (last.1, last.2) = (right, last.2.min(y)),
                _ => columns.push((left, right, y)),
            }
        }
        for (left, right, top) in columns {
            // The smallest of them is still to be seen.
            let top = top.min(floor - 1.0);
            let _ = write!(path, "M{left:.2} {floor:.1}V{top:.1}H{right:.2}V{floor:.1}z");
        }
        svg.push(format_args!("<path d=\"{path}\" fill=\"{}\" fill-opacity=\"0.85\"/>", PALETTE[0]));
    }

    fn level(&self, svg: &mut Svg, series: &Series, size: u32) {
        let Some(&point) = series.points.first() else { return };
        let y = self.at(point).1;
        stroke(svg, &format!("M{:.1} {y:.1}H{:.1}", self.area.x, self.area.right()), RED, DASHES[1]);
        // Curves fall to the right: the label is in nobody's way at the left.
        svg.label((self.area.x + 8.0, y - 6.0), size, Anchor::Start, RED, &series.name);
    }
}

/// First, smallest, largest and last of each bucket of points, where there are more than buckets can show.
fn thin(points: &[(f64, f64)], buckets: usize) -> Vec<(f64, f64)> {
    if points.len() <= 4 * buckets {
        return points.to_vec();
    }
    let mut thinned = Vec::with_capacity(4 * buckets);
    for bucket in points.chunks(points.len().div_ceil(buckets)) {
        let by = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let mut kept: Vec<_> = [bucket.first(), bucket.iter().min_by(by), bucket.iter().max_by(by), bucket.last()]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        kept.sort_by(|a, b| a.0.total_cmp(&b.0));
        kept.dedup_by_key(|p| p.0);
        thinned.append(&mut kept);
    }
    thinned
}

#[cfg(test)]
mod tests {
    use super::super::axis::Scale;
    use super::*;

    fn example(shape: Shape, points: &[(f64, f64)]) -> Chart {
        let series = (0..2).map(|k| Series { name: format!("a<b {k}"), shape, points: points.to_vec() }).collect();
        Chart {
            title: "t".into(),
            subtitle: "s".into(),
            x: Axis::new("x", Scale::Linear),
            y: Axis::new("y", Scale::Logarithmic),
            series,
        }
    }

    #[test]
    fn odd_values_do_not_reach_the_document() {
        for shape in [Shape::line(1), Shape::Bars, Shape::Level] {
            for points in [
                vec![],
                vec![(0.0, f64::NAN), (1.0, f64::NEG_INFINITY), (2.0, 0.0), (3.0, -1.0)],
                vec![(0.0, 1.0)],
                vec![(0.0, 1e-300), (1.0, 1e300), (2.0, f64::INFINITY)],
            ] {
                let svg = chart(&example(shape, &points));
                assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("a<b"), "{svg}");
            }
        }
        assert!(chart(&example(Shape::Bars, &[])).contains("nothing to show yet"));
    }

    #[test]
    fn lines_differ_by_more_than_colour_and_a_logarithmic_axis_says_so() {
        let mut c = example(Shape::line(0), &[(0.0, 1.0), (1.0, 2.0)]);
        c.series[1].shape = Shape::line(1);
        let svg = chart(&c);
        // The curve, and its sample in the legend.
        assert_eq!(svg.matches("stroke-dasharray=\"8 4\"").count(), 2);
        assert!(svg.contains(">y, logarithmic<") && svg.contains(">x<"));
        let points = |style| Shape::Line { style, dashes: Dashes::Solid, points: Points::Marked };
        (c.series[0].shape, c.series[1].shape) = (points(0), points(1));
        let svg = chart(&c);
        assert!(svg.matches("<circle").count() == 3 && svg.matches("h6v6h-6z").count() == 3, "{svg}");
    }

    #[test]
    fn long_names_take_rows_of_their_own() {
        let mut c = example(Shape::line(0), &[(0.0, 1.0), (1.0, 2.0)]);
        for s in &mut c.series {
            s.name = "n".repeat(60);
        }
        let named: Vec<&Series> = c.series.iter().collect();
        assert_eq!(legend(&named, &FILE).iter().map(|p| p.1).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn thinning_keeps_peaks_and_ends() {
        let mut points: Vec<_> = (0..100_000).map(|i| (f64::from(i), 1.0)).collect();
        points[54_321].1 = 9.0;
        let thinned = thin(&points, 100);
        assert!(thinned.len() <= 400);
        assert!(thinned.contains(&(54_321.0, 9.0)));
        assert_eq!((thinned[0].0, thinned[thinned.len() - 1].0), (0.0, 99_999.0));
    }

    #[test]
    fn many_bars_make_a_small_file() {
        let points: Vec<_> = (0..200_000).map(|i| (f64::from(i), 1.0)).collect();
        let svg = chart(&example(Shape::Bars, &points));
        assert!(svg.len() < 150_000, "{}", svg.len());
    }
}
