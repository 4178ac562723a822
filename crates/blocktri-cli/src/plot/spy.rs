//! The pattern of a matrix: every entry a square, or, for large matrices, the density of entries in a raster.

use std::fmt::Write as _;

use super::{Anchor, Area, BLUE, GREY, INK, LINE, RED, Svg, grouped, round_numbers, shorten};

/// Largest side of the picture of the matrix.
const SIDE: f64 = 680.0;
/// Up to this many rows and columns, entries are drawn one by one.
const SINGLE: usize = 800;
/// Cells of the raster on the longer side.
const RASTER: usize = 340;
/// More blocks than this hide the entries behind lines.
const MOST_BLOCKS: usize = 60;
/// Light to dark: the density in a raster cell, on a logarithmic scale.
const COLOURS: [&str; 8] = ["#c6dbef", "#a6cbe8", "#7fb5dd", "#579dcf", "#3784be", "#1f6aab", "#0d5092", "#08306b"];

/// What is drawn: the stored entries of a matrix and, where known, its blocks.
pub struct Pattern<'a> {
    /// Rows.
    pub nrows: usize,
    /// Columns.
    pub ncols: usize,
    /// First entry of each row, and the number of entries.
    pub row_ptr: &'a [u32],
    /// Column of each entry, increasing in a row.
    pub col_idx: &'a [u32],
    /// First row of each block, and n.
    pub blocks: Option<&'a [u32]>,
}

/// The picture. Its size is bounded whatever the matrix.
///
/// # Cost
/// O(nnz + nrows).
pub fn spy(title: &str, subtitle: &str, pattern: &Pattern<'_>) -> String {
    let longest = pattern.nrows.max(pattern.ncols).max(1);
    let unit = SIDE / longest as f64;
    // A single row still needs some height to be seen.
    let side = |n: usize| (n as f64 * unit).max(8.0);
    let area = Area { x: 92.0, y: 108.0, width: side(pattern.ncols), height: side(pattern.nrows) };
    let raster = longest > SINGLE;
    let (width, height) = (92.0 + SIDE + if raster { 118.0 } else { 40.0 }, area.bottom() + 34.0);

    let mut svg = Svg::new(width, height);
    svg.label((area.x, 34.0), 19, Anchor::Start, INK, &shorten(title, 64));
    svg.label((area.x, 56.0), 14, Anchor::Start, GREY, &shorten(subtitle, 96));
    axes(&mut svg, area, pattern);
    if raster {
        let density = Density::of(pattern);
        density.draw(&mut svg, area, longest);
        density.legend(&mut svg, (92.0 + SIDE + 28.0, area.y));
    } else {
        entries(&mut svg, area, unit, pattern);
    }
    if let Some(offsets) = pattern.blocks.filter(|b| (3..=MOST_BLOCKS + 1).contains(&b.len())) {
        let mut path = String::new();
        for &offset in &offsets[1..offsets.len() - 1] {
            let d = f64::from(offset) * unit;
            let _ = write!(path, "M{:.1} {:.1}H{:.1}", area.x, area.y + d, area.right());
            let _ = write!(path, "M{:.1} {:.1}V{:.1}", area.x + d, area.y, area.bottom());
        }
        svg.push(format_args!("<path d=\"{path}\" stroke=\"{RED}\" stroke-width=\"0.8\" stroke-opacity=\"0.55\"/>"));
    }
    svg.frame(area);
    svg.finish()
}

fn axes(svg: &mut Svg, area: Area, pattern: &Pattern<'_>) {
    let most = |pixels: f64| ((pixels / 75.0) as usize).max(1);
    let at = |i: usize, n: usize, pixels: f64| (i as f64 + 0.5) * pixels / n.max(1) as f64;
    for j in round_numbers(pattern.ncols.saturating_sub(1), most(area.width)) {
        let x = area.x + at(j, pattern.ncols, area.width);
        svg.line((x, area.y - 5.0), (x, area.y), LINE, 1.0);
        svg.label((x, area.y - 10.0), 13, Anchor::Middle, GREY, &grouped(j));
    }
    for i in round_numbers(pattern.nrows.saturating_sub(1), most(area.height)) {
        let y = area.y + at(i, pattern.nrows, area.height);
        svg.line((area.x - 5.0, y), (area.x, y), LINE, 1.0);
        svg.label((area.x - 9.0, y + 4.5), 13, Anchor::End, GREY, &grouped(i));
    }
    svg.label((area.right(), area.y - 28.0), 13, Anchor::End, INK, "column (from 0)");
    svg.label_upwards((24.0, area.y + area.height / 2.0), 13, INK, "row (from 0)");
}

/// Every entry as a square; neighbours in a row share one stroke where single squares could not be told apart.
fn entries(svg: &mut Svg, area: Area, unit: f64, pattern: &Pattern<'_>) {
    let separate = unit >= 6.0;
    let mut path = String::new();
    for i in 0..pattern.nrows {
        let columns = &pattern.col_idx[pattern.row_ptr[i] as usize..pattern.row_ptr[i + 1] as usize];
        let mut rest = columns;
        while let Some(&first) = rest.first() {
            let run =
                if separate { 1 } else { rest.iter().zip(first..).take_while(|&(&j, expected)| j == expected).count() };
            rest = &rest[run..];
            let length = run as f64 - if separate { 0.14 } else { 0.0 };
            let start = f64::from(first) + if separate { 0.07 } else { 0.0 };
            let _ = write!(path, "M{start} {i}.5h{length}");
        }
    }
    // Entries stay at least a good pixel high, or a diagonal of 800 would vanish.
    let stroke = if separate { 0.86 } else { (1.3 / unit).max(1.0) };
    svg.push(format_args!(
        "<path transform=\"translate({} {}) scale({unit:.6})\" d=\"{path}\" stroke=\"{BLUE}\" \
         stroke-width=\"{stroke:.3}\"/>",
        area.x, area.y
    ));
}

/// Entries counted in the cells of a raster.
struct Density {
    rows: usize,
    cols: usize,
    counts: Vec<u64>,
    /// Matrix rows (and columns) a cell stands for.
    cell: f64,
}

impl Density {
    fn of(pattern: &Pattern<'_>) -> Self {
        let longest = pattern.nrows.max(pattern.ncols);
        let cell = longest as f64 / RASTER as f64;
        let cells = |n: usize| ((n as f64 / cell).ceil() as usize).clamp(1, RASTER);
        let (rows, cols) = (cells(pattern.nrows), cells(pattern.ncols));
        let mut counts = vec![0u64; rows * cols];
        for i in 0..pattern.nrows {
            let row = (i * RASTER / longest).min(rows - 1) * cols;
            for &j in &pattern.col_idx[pattern.row_ptr[i] as usize..pattern.row_ptr[i + 1] as usize] {
                counts[row + (j as usize * RASTER / longest).min(cols - 1)] += 1;
            }
        }
        Self { rows, cols, counts, cell }
    }

    /// Fewest and most entries of a cell that has any.
    fn range(&self) -> (u64, u64) {
        let filled = || self.counts.iter().copied().filter(|&c| c > 0);
        (filled().min().unwrap_or(1), filled().max().unwrap_or(1))
    }

    fn level(count: u64, (low, high): (u64, u64)) -> usize {
        if low == high {
            return COLOURS.len() - 3;
        }
        let t = (count as f64 / low as f64).ln() / (high as f64 / low as f64).ln();
        ((t * COLOURS.len() as f64) as usize).min(COLOURS.len() - 1)
    }

    fn draw(&self, svg: &mut Svg, area: Area, longest: usize) {
        let range = self.range();
        let mut paths = [const { String::new() }; COLOURS.len()];
        for r in 0..self.rows {
            let row = &self.counts[r * self.cols..(r + 1) * self.cols];
            let mut c = 0;
            while c < self.cols {
                if row[c] == 0 {
                    c += 1;
                    continue;
                }
                let level = Self::level(row[c], range);
                let run = row[c..].iter().take_while(|&&k| k > 0 && Self::level(k, range) == level).count();
                let _ = write!(paths[level], "M{c} {r}.5h{run}");
                c += run;
            }
        }
        let unit = SIDE * self.cell / longest as f64;
        for (path, colour) in paths.iter().zip(COLOURS).filter(|(path, _)| !path.is_empty()) {
            svg.push(format_args!(
                "<path transform=\"translate({} {}) scale({unit:.6})\" d=\"{path}\" stroke=\"{colour}\" \
                 shape-rendering=\"crispEdges\"/>",
                area.x, area.y
            ));
        }
    }

    /// Scale of colours: entries in a cell.
    fn legend(&self, svg: &mut Svg, (x, y): (f64, f64)) {
        const STEP: f64 = 22.0;
        let (low, high) = self.range();
        svg.label((x, y + 10.0), 13, Anchor::Start, INK, "entries in");
        svg.label((x, y + 26.0), 13, Anchor::Start, INK, "a pixel");
        let top = y + 40.0;
        if low == high {
            let colour = COLOURS[Self::level(low, (low, high))];
            svg.push(format_args!("<rect x=\"{x}\" y=\"{top}\" width=\"16\" height=\"{STEP}\" fill=\"{colour}\"/>"));
            svg.label((x + 24.0, top + 16.0), 13, Anchor::Start, GREY, &grouped(low as usize));
            return;
        }
        for (k, colour) in COLOURS.iter().rev().enumerate() {
            let y = top + k as f64 * STEP;
            svg.push(format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"16\" height=\"{STEP}\" fill=\"{colour}\"/>"));
        }
        let bottom = top + STEP * COLOURS.len() as f64;
        let middle = ((low as f64 * high as f64).sqrt()).round() as usize;
        svg.label((x + 24.0, top + 11.0), 13, Anchor::Start, GREY, &grouped(high as usize));
        svg.label((x + 24.0, f64::midpoint(top, bottom) + 5.0), 13, Anchor::Start, GREY, &grouped(middle));
        svg.label((x + 24.0, bottom), 13, Anchor::Start, GREY, &grouped(low as usize));
        svg.label((x, bottom + 26.0), 12, Anchor::Start, GREY, "a pixel covers");
        let rows = format!("{} rows", grouped(self.cell.round().max(1.0) as usize));
        svg.label((x, bottom + 42.0), 12, Anchor::Start, GREY, &rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagonal(n: usize) -> (Vec<u32>, Vec<u32>) {
        ((0..=n as u32).collect(), (0..n as u32).collect())
    }

    #[test]
    fn size_is_bounded() {
        let (row_ptr, col_idx) = diagonal(1_000_000);
        let pattern =
            Pattern { nrows: 1_000_000, ncols: 1_000_000, row_ptr: &row_ptr, col_idx: &col_idx, blocks: None };
        let density = Density::of(&pattern);
        assert_eq!(density.counts.iter().sum::<u64>(), 1_000_000);
        assert!((0..RASTER).all(|i| density.counts[i * RASTER + i] > 0));
        assert!(spy("t", "s", &pattern).len() < 20_000);
    }

    #[test]
    fn awkward_shapes_draw() {
        for (nrows, ncols) in [(0, 0), (1, 1), (1, 5000), (5000, 1), (801, 3)] {
            let row_ptr = vec![0u32; nrows + 1];
            let svg = spy("t", "s", &Pattern { nrows, ncols, row_ptr: &row_ptr, col_idx: &[], blocks: Some(&[0]) });
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{nrows} × {ncols}");
        }
    }

    #[test]
    fn runs_merge_and_separate_squares_do_not() {
        let row_ptr: Vec<u32> = vec![0, 3];
        let draw =
            |ncols| spy("t", "s", &Pattern { nrows: 1, ncols, row_ptr: &row_ptr, col_idx: &[0, 1, 3], blocks: None });
        assert!(draw(400).contains("M0 0.5h2M3 0.5h1"));
        assert_eq!(draw(4).matches("h0.86").count(), 3);
    }
}
