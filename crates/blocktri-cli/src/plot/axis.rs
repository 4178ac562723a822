//! Axes: from values to places, and the marks between.

/// What an axis measures, and how.
#[derive(Clone, Debug)]
pub struct Axis {
    /// With its unit. A logarithmic axis says so after it.
    pub label: String,
    pub scale: Scale,
    /// Names of the places 0, 1, 2, … where they are not numbers.
    pub names: Vec<String>,
}

/// Of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps.
    Linear,
    /// The same from zero, where no value is negative.
    FromZero,
    /// The same between whole numbers, each with a place of width 1.
    Whole,
    /// Equal ratios; values that are not positive are left out.
    Logarithmic,
}

impl Axis {
    /// With numbers.
    pub fn new(label: impl Into<String>, scale: Scale) -> Self {
        Self { label: label.into(), scale, names: Vec::new() }
    }
    /// The label as it is drawn.
    pub(super) fn caption(&self) -> String {
        match self.scale {
            Scale::Logarithmic => format!("{}, logarithmic", self.label),
            _ => self.label.clone(),
        }
    }
    pub(super) fn has_place_for(&self, v: f64) -> bool {
        v.is_finite() && (self.scale != Scale::Logarithmic || v > 0.0)
    }
}

/// A mark's text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Label {
    Text(String),
    /// 10ᵏ
    Power(i32),
}

/// Fewest marks of an axis.
const FEWEST: usize = 3;

/// An axis with its ends.
pub(super) struct Ruler<'a> {
    axis: &'a Axis,
    /// As [`measure`] gives them, apart from each other.
    ends: (f64, f64),
}

impl<'a> Ruler<'a> {
    /// That holds all `values` for which the axis has a place.
    pub(super) fn new(axis: &'a Axis, values: impl Iterator<Item = f64>) -> Self {
        let measured = values.filter(|&v| axis.has_place_for(v)).map(|v| measure(axis.scale, v));
        let (low, high) = measured.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let ends = match axis.scale {
            _ if !axis.names.is_empty() => (-0.5, axis.names.len() as f64 - 0.5),
            Scale::Whole if low > high => whole(0.0, 0.0),
            _ if low > high => (0.0, 1.0),
            Scale::Whole => whole(low, high),
            Scale::Logarithmic => {
                // Half a decade at least: 1 alone stands between 0.5 and 2. Not beyond the powers of ten that are numbers.
                let room = if high - low < 0.5 { 0.3 } else { 0.03 * (high - low) };
                ((low - room).max(-323.0), (high + room).min(308.25))
            }
            Scale::FromZero if low >= 0.0 => (0.0, if high > 0.0 { 1.05 * high } else { 1.0 }),
            Scale::Linear | Scale::FromZero if low == high => {
                (low - 0.5 * low.abs().max(1.0), high + 0.5 * high.abs().max(1.0))
            }
            // Halved first: the difference may be beyond the largest number.
            Scale::Linear | Scale::FromZero => {
                let room = 0.06 * (0.5 * high - 0.5 * low);
                (low - room, high + room)
            }
        };
        Self { axis, ends }
    }

    /// From 0 at the lower end to 1 at the upper one.
    pub(super) fn place(&self, v: f64) -> f64 {
        let (low, high) = (0.5 * self.ends.0, 0.5 * self.ends.1);
        (0.5 * measure(self.axis.scale, v) - low) / (high - low)
    }

    /// Values with their labels, from low to high: at least three, unless there are fewer numbers between the ends than that.
    pub(super) fn marks(&self) -> Vec<(f64, Label)> {
        let (low, high) = self.ends;
        let text = |t: &String| Label::Text(t.clone());
        match self.axis.scale {
            _ if !self.axis.names.is_empty() => {
                self.axis.names.iter().enumerate().map(|(i, name)| (i as f64, text(name))).collect()
            }
            Scale::Logarithmic => logarithmic(low, high),
            Scale::Whole => linear(low, high, 1.0),
            Scale::Linear | Scale::FromZero => linear(low, high, 0.0),
        }
    }
}

fn measure(scale: Scale, v: f64) -> f64 {
    if scale == Scale::Logarithmic { v.log10() } else { v }
}

/// Places from `low` to `high`, and as many beside them that there are three.
fn whole(low: f64, high: f64) -> (f64, f64) {
    let (mut low, mut high) = (low.round(), high.round());
    while high - low < (FEWEST - 1) as f64 {
        high += 1.0;
        if low > 0.0 && high - low < (FEWEST - 1) as f64 {
            low -= 1.0;
        }
    }
    (low - 0.5, high + 0.5)
}

/// Multiples of s = {1, 2, 5}·10ᵏ ≥ `least`, the largest s with at least four marks, or three.
fn linear(low: f64, high: f64, least: f64) -> Vec<(f64, Label)> {
    let exponent = (0.5 * high - 0.5 * low).log10().floor().clamp(-305.0, 307.0) as i32;
    let steps = (exponent - 2..=exponent + 1).rev().flat_map(|k| [5.0, 2.0, 1.0].map(|d| d * 10f64.powi(k)));
    let multiples = |step: f64| -> Vec<f64> {
        let first = (low / step).ceil();
        // Never more than some: the step may be lost in rounding.
        (0..12).map(|k| (first + f64::from(k)) * step).take_while(|&v| v.is_finite() && v <= high).collect()
    };
    let all: Vec<(f64, Vec<f64>)> =
        steps.filter(|&s| s >= least.max(f64::MIN_POSITIVE)).map(|s| (s, multiples(s))).collect();
    let with = |count: usize| all.iter().find(|(_, marks)| marks.len() >= count);
    let Some((step, marks)) = with(4).or_else(|| with(FEWEST)).or_else(|| all.last()) else { return Vec::new() };
    marks.iter().map(|&v| (v, Label::Text(number(v, *step)))).collect()
}

/// Powers of ten, every second, third, … where there are more than nine; {1, 2, 5}·10ᵏ where there are few; numbers in equal steps
/// where there are fewer still.
fn logarithmic(low: f64, high: f64) -> Vec<(f64, Label)> {
    let inside = |v: &f64| (low..=high).contains(&v.log10());
    let powers: Vec<i32> = (low.ceil() as i32..=high.floor() as i32).collect();
    let step = powers.len().div_ceil(9).max(1);
    if powers.len() > FEWEST {
        let first = powers[0].rem_euclid(step as i32);
        let skip = if first == 0 { 0 } else { step - first as usize };
        return powers.into_iter().skip(skip).step_by(step).map(|k| (10f64.powi(k), Label::Power(k))).collect();
    }
    let digits = [1.0, 2.0, 5.0];
    let values =
        (low.floor() as i32..=high.ceil() as i32).flat_map(|k| digits.map(|d| (d * 10f64.powi(k), 10f64.powi(k))));
    let marks: Vec<_> = values.filter(|(v, _)| inside(v)).map(|(v, unit)| (v, Label::Text(number(v, unit)))).collect();
    if marks.len() >= FEWEST { marks } else { linear(10f64.powf(low), 10f64.powf(high), 0.0) }
}

/// A multiple of `step`, with the digits that tell it from the next.
pub(super) fn number(v: f64, step: f64) -> String {
    let place = step.log10().floor() as i32;
    let text = match v.abs() {
        // What is left of zero after rounding.
        a if a < 0.5 * step => "0".into(),
        1e4..1e15 if place >= 0 => {
            let grouped = super::grouped(v.abs().round() as usize);
            if v < 0.0 { format!("-{grouped}") } else { grouped }
        }
        1e-4..1e6 if place > -12 => format!("{v:.*}", usize::try_from(-place).unwrap_or(0)),
        a => format!("{v:.*e}", usize::try_from(a.log10().floor() as i32 - place).unwrap_or(0).min(15)),
    };
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: Scale, values: &[f64]) -> Vec<String> {
        let axis = Axis::new("", scale);
        let marks = Ruler::new(&axis, values.iter().copied()).marks();
        marks
            .into_iter()
            .map(|(_, label)| match label {
                Label::Text(text) => text,
                Label::Power(k) => format!("10^{k}"),
            })
            .collect()
    }

    #[test]
    fn marks_are_round() {
        assert_eq!(texts(Scale::FromZero, &[0.0, 30.0]), ["0", "10", "20", "30"]);
        assert_eq!(texts(Scale::Linear, &[-400.0, 0.0]), ["−400", "−300", "−200", "−100", "0"]);
        assert_eq!(texts(Scale::FromZero, &[0.3, 0.9]), ["0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(texts(Scale::Whole, &[120.0, 126.0]), ["120", "122", "124", "126"]);
        assert_eq!(texts(Scale::Logarithmic, &[1.0, 40.0]), ["1", "2", "5", "10", "20"]);
        assert_eq!(texts(Scale::Logarithmic, &[1e-3, 1.0]), ["10^-3", "10^-2", "10^-1", "10^0"]);
        assert_eq!(
            texts(Scale::FromZero, &[2e6]),
            ["0", "500\u{a0}000", "1\u{a0}000\u{a0}000", "1\u{a0}500\u{a0}000", "2\u{a0}000\u{a0}000"]
        );
    }

    #[test]
    fn every_axis_has_three_marks_that_differ_and_stand_inside() {
        let ranges: [&[f64]; 14] = [
            &[],
            &[0.0],
            &[1.0],
            &[-7.25],
            &[3.0, 4.0],
            &[1e-300, 1e300],
            &[-1e308, 1e308],
            &[1e300],
            &[1e-300],
            &[1.0, 1.000_001],
            &[0.97, 1.02],
            &[5.0, 51.0],
            &[999_999.0, 1_000_003.0],
            &[1e12, 3e12],
        ];
        for scale in [Scale::Linear, Scale::FromZero, Scale::Whole, Scale::Logarithmic] {
            for values in ranges {
                if scale == Scale::Whole && values.iter().any(|v| v.abs() > 1e15) {
                    continue;
                }
                let axis = Axis::new("", scale);
                let ruler = Ruler::new(&axis, values.iter().copied());
                let marks = ruler.marks();
                let mut labels = texts(scale, values);
                assert!((FEWEST..=12).contains(&marks.len()), "{scale:?} {values:?}: {labels:?}");
                assert!(
                    marks.iter().all(|(v, _)| (-1e-9..=1.0 + 1e-9).contains(&ruler.place(*v))),
                    "{scale:?} {values:?}: {marks:?}"
                );
                let held = values.iter().filter(|&&v| axis.has_place_for(v));
                assert!(held.clone().all(|&v| (0.0..=1.0).contains(&ruler.place(v))), "{scale:?} {values:?}");
                labels.dedup();
                assert_eq!(labels.len(), marks.len(), "{scale:?} {values:?}: {labels:?}");
                if scale == Scale::Whole {
                    assert!(marks.iter().all(|(v, _)| v.fract() == 0.0), "{marks:?}");
                }
            }
        }
    }
}
