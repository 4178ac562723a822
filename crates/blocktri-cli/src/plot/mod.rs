//! Pictures: a small SVG writer, and, with the feature `png`, the same rasterised with fonts that travel in the binary.
//!
//! The SVG is written here and not by a plotting library because a spy plot of millions of entries must stay small:
//! runs of equal pixels become one path each colour.
//!
//! | file | case |
//! |---|---|
//! | `chart.rs`, `axis.rs` | curves and bars between two axes; their scales and marks: for the next three |
//! | `history.rs` | residuals of an iteration |
//! | `probabilities.rs` | a stationary distribution |
//! | `figure.rs` | figures of the report of `reproduce` |
//! | `spy.rs` | the pattern of a matrix |
//! | `png.rs` | any of these as PNG, with the feature `png` |

mod axis;
mod chart;
mod figure;
mod history;
#[cfg(feature = "png")]
mod png;
mod probabilities;
mod spy;

use std::fmt::Write as _;
use std::path::Path;

pub use axis::{Axis, Scale};
pub use chart::{Chart, Series, Shape, chart};
pub use figure::figure;
pub use history::residual_history;
pub use probabilities::probabilities;
pub use spy::{Pattern, spy};

use crate::exit::{Failure, Result};
use crate::output::Output;

/// File formats of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Svg,
    #[cfg(feature = "png")]
    Png,
}

/// What is wrong with another ending, and what to do about it.
const ENDINGS: (&str, &str) = if cfg!(feature = "png") {
    ("a picture is written as .svg or .png", "end the file's name in .svg or .png")
} else {
    ("this build writes pictures as .svg only", "end the file's name in .svg, or build with the feature png")
};

/// A picture file to be.
#[derive(Debug)]
pub struct Picture {
    output: Output,
    format: Format,
}

impl Picture {
    /// Prepares to write `name`, in the format of its ending.
    ///
    /// # Errors
    /// On an ending other than `.svg` and `.png`, on `.png` without the feature of that name, and when the file cannot be created.
    pub fn create(name: &Path) -> Result<Self> {
        let ending = name.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
        let format = match ending.as_deref() {
            Some("svg") => Format::Svg,
            #[cfg(feature = "png")]
            Some("png") => Format::Png,
            _ => return Err(Failure::io(name, &ENDINGS.0).help(ENDINGS.1)),
        };
        Ok(Self { output: Output::create(name)?, format })
    }

    /// Writes the picture; it appears with [`Output::finish`].
    ///
    /// # Errors
    /// With the system's reason.
    pub fn draw(mut self, svg: &str) -> Result<Output> {
        match self.format {
            Format::Svg => self.output.write(|w| w.write_all(svg.as_bytes()))?,
            #[cfg(feature = "png")]
            Format::Png => {
                let png = png::rasterise(svg).map_err(|reason| Failure::io(self.output.name(), &reason))?;
                self.output.write(|w| w.write_all(&png))?;
            }
        }
        Ok(self.output)
    }
}

/// Dark text.
const INK: &str = "#1f2933";
/// Secondary text.
const GREY: &str = "#5f6b7a";
/// Grid lines.
const FAINT: &str = "#e4e8ee";
/// Frames and ticks.
const LINE: &str = "#9aa5b1";
/// The data.
const BLUE: &str = "#1f5fa8";
/// What is to be compared with the data.
const RED: &str = "#c4432b";
/// One for each curve.
const PALETTE: [&str; 6] = [BLUE, RED, "#4a7c3a", "#7b4fa3", "#a86a10", "#1a7f86"];
/// Names of all these in the style of a page.
const NAMES: [(&str, &str); 10] = [
    (INK, "ink"),
    (GREY, "grey"),
    (FAINT, "faint"),
    (LINE, "line"),
    (PALETTE[0], "blue"),
    (PALETTE[1], "red"),
    (PALETTE[2], "green"),
    (PALETTE[3], "violet"),
    (PALETTE[4], "ochre"),
    (PALETTE[5], "teal"),
];

/// What a picture stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// A file of its own, on white.
    White,
    /// A page whose style sets the colours.
    Page,
}

/// Where a text is fastened to its point.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// An SVG document.
struct Svg {
    text: String,
    ground: Ground,
}

impl Svg {
    fn new(width: f64, height: f64) -> Self {
        Self::on(Ground::White, width, height)
    }

    /// In a page the picture is as wide as its place, and the ground is the page's.
    fn on(ground: Ground, width: f64, height: f64) -> Self {
        let mut text = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\"");
        // Writing to a String cannot fail.
        let _ = match ground {
            Ground::White => writeln!(
                text,
                " width=\"{width}\" height=\"{height}\" font-family=\"Ubuntu, Helvetica, Arial, sans-serif\">\n\
                 <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"
            ),
            Ground::Page => writeln!(text, " role=\"img\">"),
        };
        Self { text, ground }
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(element);
        self.text.push('\n');
    }

    fn label(&mut self, (x, y): (f64, f64), size: u32, anchor: Anchor, colour: &str, label: &str) {
        let (anchor, label) = (anchor.name(), escape(label));
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{label}</text>"
        ));
    }

    /// 10ᵏ with a raised exponent.
    fn power(&mut self, (x, y): (f64, f64), size: u32, anchor: Anchor, colour: &str, exponent: i32) {
        let (anchor, exponent) = (anchor.name(), exponent.to_string().replace('-', "−"));
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{colour}\">10<tspan \
             dy=\"-{:.1}\" font-size=\"{}\">{exponent}</tspan></text>",
            0.42 * f64::from(size),
            size - 3
        ));
    }

    /// A label that reads upwards.
    fn label_upwards(&mut self, (x, y): (f64, f64), size: u32, colour: &str, label: &str) {
        let label = escape(label);
        self.push(format_args!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" font-size=\"{size}\" text-anchor=\"middle\" \
             fill=\"{colour}\">{label}</text>"
        ));
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        self.push(format_args!(
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    fn frame(&mut self, area: Area) {
        self.push(format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"none\" stroke=\"{LINE}\"/>",
            area.x, area.y, area.width, area.height
        ));
    }

    fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        match self.ground {
            Ground::White => self.text,
            Ground::Page => NAMES.iter().fold(self.text, |text, (colour, name)| {
                text.replace(&format!("\"{colour}\""), &format!("\"var(--{name})\""))
            }),
        }
    }
}

/// A rectangle of the page.
#[derive(Clone, Copy)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Area {
    fn right(self) -> f64 {
        self.x + self.width
    }
    fn bottom(self) -> f64 {
        self.y + self.height
    }
}

/// A text that ends no tag and no attribute.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no place for control characters, escaped or not.
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The end of a text too long for its place.
fn shorten(text: &str, most: usize) -> String {
    match text.chars().count().checked_sub(most) {
        None | Some(0) => text.to_owned(),
        Some(excess) => std::iter::once('…').chain(text.chars().skip(excess + 1)).collect(),
    }
}

/// Round numbers 0, s, 2s, … ≤ `last`, s of the form {1, 2, 5}·10ᵏ, at most `most` + 1 of them.
fn round_numbers(last: usize, most: usize) -> impl Iterator<Item = usize> {
    let mut step = 1usize;
    while last / step > most {
        let leading: usize = step.to_string()[..1].parse().unwrap_or(1);
        // 1 → 2 → 5 → 10
        step = if leading == 2 { step / 2 * 5 } else { step * 2 };
    }
    (0..=last).step_by(step)
}

/// 1234567 as 1 234 567 (thin spaces).
fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && digits.len() > 4 {
            text.push('\u{a0}');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(round_numbers(7, 8).collect::<Vec<_>>(), (0..=7).collect::<Vec<_>>());
        assert_eq!(round_numbers(100, 5).collect::<Vec<_>>(), [0, 20, 40, 60, 80, 100]);
        assert_eq!(round_numbers(1_234_567, 4).collect::<Vec<_>>(), [0, 500_000, 1_000_000]);
        assert_eq!(round_numbers(0, 4).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn names_cannot_break_the_document() {
        assert_eq!(escape("a<b>&\"c\u{1}"), "a&lt;b&gt;&amp;&quot;c ");
        assert_eq!(shorten("abcdef", 4), "…def");
        assert_eq!(shorten("abcd", 4), "abcd");
        assert_eq!(grouped(1_234_567), "1\u{a0}234\u{a0}567");
    }
}
