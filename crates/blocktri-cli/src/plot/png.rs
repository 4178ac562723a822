//! PNG: the SVG of a picture, its texts turned into outlines of glyphs, rasterised with resvg.
//!
//! resvg lays texts out by itself with its feature `text`, which knows every script and takes four times as long to build as all the
//! rest (`docs/adr/0002-own-svg-writer.md`). The texts of pictures are names and numbers that read from left to right: a glyph for each
//! character, from the first font that has one, and kerning between neighbours.

use std::fmt::Write as _;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::roxmltree::{Document, Node};
use resvg::usvg::{Options, Tree};
use ttf_parser::gpos::{PairAdjustment, PositioningSubtable};
use ttf_parser::{Face, GlyphId, OutlineBuilder, Tag};

/// Pixels of a PNG for each unit of the SVG.
const SCALE: f32 = 2.0;

/// The file of a picture.
///
/// # Errors
/// On a document that is no SVG, and on one without a size or with one too large for memory.
pub(super) fn rasterise(svg: &str) -> Result<Vec<u8>, String> {
    let tree = Tree::from_str(&outlined(svg)?, &Options::default()).map_err(|e| e.to_string())?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or("the picture has no size")?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or("the picture is too large for memory")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| e.to_string())
}

/// The document with a path in the place of each text.
fn outlined(svg: &str) -> Result<String, String> {
    let document = Document::parse(svg).map_err(|e| e.to_string())?;
    let fonts = Fonts::new()?;
    let mut drawn = String::with_capacity(2 * svg.len());
    let mut copied = 0;
    for text in document.descendants().filter(|node| node.has_tag_name("text")) {
        drawn.push_str(&svg[copied..text.range().start]);
        drawn.push_str(&fonts.path(text));
        copied = text.range().end;
    }
    drawn.push_str(&svg[copied..]);
    Ok(drawn)
}

/// The first has the letters, the second signs that the first lacks.
struct Fonts([Face<'static>; 2]);

impl Fonts {
    fn new() -> Result<Self, String> {
        let face = |font| Face::parse(font, 0).map_err(|e| e.to_string());
        Ok(Self([face(epaint_default_fonts::UBUNTU_LIGHT)?, face(epaint_default_fonts::HACK_REGULAR)?]))
    }

    /// From the first font that has it; one without a glyph is the box that the first font has for it.
    fn glyph(&self, character: char) -> (&Face<'static>, GlyphId) {
        let found = self.0.iter().find_map(|face| Some((face, face.glyph_index(character)?)));
        found.unwrap_or((&self.0[0], GlyphId(0)))
    }

    /// A `<path>` that shows what the `<text>` does, from the attributes that the writer gives each: it leaves nothing to be inherited.
    fn path(&self, text: Node<'_, '_>) -> String {
        let mut line = Line { path: String::new(), pen: (0.0, 0.0), scale: 1.0 };
        for piece in text.descendants().filter(Node::is_text) {
            // The text itself, or a <tspan> with a size and a shift of its own.
            let Some(span) = piece.parent_element() else { continue };
            line.pen.1 += number(span, "dy");
            self.write(&mut line, piece.text().unwrap_or_default(), number(span, "font-size"));
        }
        let attribute = |name| text.attribute(name).unwrap_or_default();
        let before = match attribute("text-anchor") {
            "middle" => 0.5 * line.pen.0,
            "end" => line.pen.0,
            _ => 0.0,
        };
        let (x, y) = (number(text, "x") - before, number(text, "y"));
        format!(
            "<path transform=\"{} translate({x} {y})\" fill=\"{}\" d=\"{}\"/>",
            attribute("transform"),
            attribute("fill"),
            line.path
        )
    }

    /// Adds the glyphs of a text, white space as SVG has it: one blank for many, none at the ends.
    fn write(&self, line: &mut Line, text: &str, size: f32) {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let mut last: Option<(&Face<'_>, GlyphId)> = None;
        for character in words.join(" ").chars() {
            let (face, glyph) = self.glyph(character);
            line.scale = size / f32::from(face.units_per_em());
            if let Some((_, left)) = last.filter(|(of, _)| std::ptr::eq(*of, face)) {
                line.pen.0 += line.scale * f32::from(kerning(face, left, glyph).unwrap_or(0));
            }
            // A blank has no outline.
            let _ = face.outline_glyph(glyph, line);
            line.pen.0 += line.scale * f32::from(face.glyph_hor_advance(glyph).unwrap_or(0));
            last = Some((face, glyph));
        }
    }
}

/// An attribute that is a number.
fn number(node: Node<'_, '_>, name: &str) -> f32 {
    node.attribute(name).and_then(|value| value.parse().ok()).unwrap_or(0.0)
}

/// What two neighbours are to be apart beside their widths, in units of the font: the first subtable that knows them says it.
fn kerning(face: &Face<'_>, left: GlyphId, right: GlyphId) -> Option<i16> {
    let table = face.tables().gpos?;
    let lookups = table.features.find(Tag::from_bytes(b"kern"))?.lookup_indices;
    let lookups = lookups.into_iter().filter_map(|index| table.lookups.get(index));
    let subtables = lookups.flat_map(|lookup| lookup.subtables.into_iter::<PositioningSubtable<'_>>());
    let pairs = subtables.filter_map(|subtable| match subtable {
        PositioningSubtable::Pair(pair) => Some((pair, pair.coverage().get(left)?)),
        _ => None,
    });
    let mut found = pairs.filter_map(|(pair, row)| match pair {
        PairAdjustment::Format1 { sets, .. } => sets.get(row)?.get(right),
        PairAdjustment::Format2 { classes, matrix, .. } => matrix.get((classes.0.get(left), classes.1.get(right))),
    });
    found.next().map(|(of_left, _)| of_left.x_advance)
}

/// Outlines as the data of a path.
struct Line {
    path: String,
    /// Where the next glyph begins, on its base line.
    pen: (f32, f32),
    /// Units of the picture for one of the font.
    scale: f32,
}

impl Line {
    /// The font's y points upwards.
    fn segment<const N: usize>(&mut self, command: char, points: [(f32, f32); N]) {
        self.path.push(command);
        for (x, y) in points {
            // Writing to a String cannot fail.
            let _ = write!(self.path, "{:.3} {:.3} ", self.pen.0 + self.scale * x, self.pen.1 - self.scale * y);
        }
    }
}

impl OutlineBuilder for Line {
    fn move_to(&mut self, x: f32, y: f32) {
        self.segment('M', [(x, y)]);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.segment('L', [(x, y)]);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.segment('Q', [(x1, y1), (x, y)]);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.segment('C', [(x1, y1), (x2, y2), (x, y)]);
    }
    fn close(&mut self) {
        self.path.push('z');
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Anchor, INK, Svg};
    use super::*;

    /// Smallest and largest x and y of dark pixels, in units of the picture.
    fn ink(draw: impl Fn(&mut Svg)) -> [f64; 4] {
        let mut svg = Svg::new(100.0, 50.0);
        draw(&mut svg);
        let png = rasterise(&svg.finish()).unwrap();
        assert_eq!(&png[1..4], b"PNG");
        let pixels = Pixmap::decode_png(&png).unwrap();
        assert_eq!((pixels.width(), pixels.height()), (200, 100));
        let dark = pixels.pixels().iter().enumerate().filter(|(_, p)| p.red() < 130);
        let places = dark.map(|(i, _)| ((i % 200) as f64 / 2.0, (i / 200) as f64 / 2.0));
        places.fold([f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY, f64::NEG_INFINITY], |[a, b, c, d], (x, y)| {
            [a.min(x), b.max(x), c.min(y), d.max(y)]
        })
    }

    #[test]
    fn texts_stand_where_they_are_fastened() {
        let label = |anchor| ink(|svg| svg.label((50.0, 30.0), 20, anchor, INK, "HH"));
        let [left, right, top, bottom] = label(Anchor::Start);
        assert!((50.0..54.0).contains(&left) && (65.0..85.0).contains(&right), "{left} {right}");
        assert!((14.0..18.0).contains(&top) && (29.0..31.0).contains(&bottom), "{top} {bottom}");
        let [left, right, ..] = label(Anchor::End);
        assert!((15.0..35.0).contains(&left) && (46.0..50.0).contains(&right), "{left} {right}");
        let [left, right, ..] = label(Anchor::Middle);
        assert!((left + right - 100.0).abs() < 1.5, "{left} {right}");
        // Turned: what was to the right is above.
        let [left, right, top, bottom] = ink(|svg| svg.label_upwards((50.0, 25.0), 20, INK, "HH"));
        assert!((34.0..38.0).contains(&left) && (49.0..51.0).contains(&right), "{left} {right}");
        assert!((top + bottom - 50.0).abs() < 1.5 && bottom - top > 15.0, "{top} {bottom}");
    }

    #[test]
    fn exponents_are_raised() {
        let [.., top, _] = ink(|svg| svg.label((20.0, 30.0), 20, Anchor::Start, INK, "10"));
        let [.., raised, bottom] = ink(|svg| svg.power((20.0, 30.0), 20, Anchor::Start, INK, -7));
        assert!(raised < top - 3.0 && (29.0..31.0).contains(&bottom), "{raised} {top} {bottom}");
    }

    #[test]
    fn signs_come_from_the_font_that_has_them() {
        let fonts = Fonts::new().unwrap();
        for sign in "−·×…√≤π‖∞₂⁻¹²ρλν°\u{a0}".chars() {
            assert_ne!(fonts.glyph(sign).1, GlyphId(0), "{sign}");
        }
        let second = |sign| std::ptr::eq(fonts.glyph(sign).0, &raw const fonts.0[1]);
        assert!(second('‖') && !second('ρ'));
        // A box for what neither has.
        assert_eq!(fonts.glyph('漢').1, GlyphId(0));
    }

    #[test]
    fn neighbours_close_up_and_names_stay_text() {
        let fonts = Fonts::new().unwrap();
        let face = &fonts.0[0];
        let apart = |left, right| kerning(face, face.glyph_index(left).unwrap(), face.glyph_index(right).unwrap());
        assert!(apart('A', 'V').is_some_and(|units| units < 0) && apart('n', 'n').unwrap_or(0) == 0);
        let mut svg = Svg::new(100.0, 50.0);
        svg.label((50.0, 30.0), 20, Anchor::Start, INK, "a<b>&\"c\"");
        let drawn = outlined(&svg.finish()).unwrap();
        assert!(!drawn.contains("<text") && drawn.contains("<path") && drawn.ends_with("</svg>\n"), "{drawn}");
    }
}
