//! A report as values: sections of text, tables, figures and claims. Whoever writes files gives them their form.

/// The report of a study.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its title.
    pub title: String,
    /// The paper it is about.
    pub source: String,
    /// What was left out, and what was not.
    pub scope: String,
    /// In reading order.
    pub sections: Vec<Section>,
}

impl Report {
    /// All claims, in reading order.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.sections.iter().flat_map(|s| &s.items).flat_map(|item| match item {
            Item::Claims(claims) => claims.as_slice(),
            _ => &[],
        })
    }
}

/// A part of a report.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its title.
    pub title: String,
    /// In reading order.
    pub items: Vec<Item>,
}

/// A piece of a section.
#[derive(Clone, Debug)]
pub enum Item {
    /// A paragraph.
    Text(String),
    /// What is claimed, and what became of it.
    Claims(Vec<Claim>),
    /// A table.
    Table(Table),
    /// A figure.
    Figure(Figure),
}

/// A statement of a paper, or of this library about its method, beside what was measured.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What is stated.
    pub what: String,
    /// Who states it.
    pub origin: Origin,
    /// The published figure.
    pub paper: String,
    /// The figure measured here.
    pub ours: String,
    /// Whether they agree, by a rule that is fixed before the measurement.
    pub verdict: Verdict,
    /// The rule, and the reason where it fails and one is known.
    pub why: String,
}

impl Claim {
    /// The verdict in words, which differ where the statement is not the paper's.
    pub fn label(&self) -> &'static str {
        self.verdict.label(self.origin)
    }
}

/// Who states a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A paper.
    Paper,
    /// Nobody but this library: counted apart.
    Ours,
}

impl Origin {
    /// In files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Ours => "ours",
        }
    }
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds here too.
    Reproduced,
    /// It does not.
    NotReproduced,
    /// The figures are of different things: another machine, another matrix.
    NotComparable,
    /// Times of five runs whose quartiles lie on both sides of what is claimed.
    NotDecided,
    /// The experiment has no result yet.
    NotRun,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Reproduced, Self::NotReproduced, Self::NotDecided, Self::NotComparable, Self::NotRun];

    /// Of a claim that all of some things hold: one that does not decides it.
    pub fn of_all(verdicts: impl IntoIterator<Item = Self>) -> Self {
        let all: Vec<Self> = verdicts.into_iter().collect();
        let worst = [Self::NotReproduced, Self::NotDecided, Self::NotComparable, Self::Reproduced];
        worst.into_iter().find(|v| all.contains(v)).unwrap_or(Self::NotRun)
    }
    /// In words, which differ where the statement is not a paper's.
    pub fn label(self, origin: Origin) -> &'static str {
        match (origin, self) {
            (Origin::Ours, Self::Reproduced) => "holds",
            (Origin::Ours, Self::NotReproduced) => "does not hold",
            _ => self.name(),
        }
    }
    /// Reproduced or not.
    pub fn of(holds: bool) -> Self {
        if holds { Self::Reproduced } else { Self::NotReproduced }
    }
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::NotReproduced => "not reproduced",
            Self::NotComparable => "not comparable",
            Self::NotDecided => "not decided",
            Self::NotRun => "not run",
        }
    }
}

/// Rows of text.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Headings.
    pub columns: Vec<String>,
    /// As many cells each as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Without rows.
    pub fn new<const N: usize>(caption: impl Into<String>, columns: [&str; N]) -> Self {
        Self { caption: caption.into(), columns: columns.map(Into::into).to_vec(), rows: Vec::new() }
    }
    /// Adds a row.
    ///
    /// # Panics
    /// When it has not as many cells as there are columns.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<_> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "cells of a row of '{}'", self.caption);
        self.rows.push(cells);
    }
}

/// Curves over a common axis.
#[derive(Clone, Debug)]
pub struct Figure {
    /// File name without its ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// At most six.
    pub curves: Vec<Curve>,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: String,
    /// How.
    pub scaling: Scaling,
    /// Names of the places 0, 1, 2, … where they are not numbers.
    pub names: Vec<String>,
}

impl Axis {
    /// With numbers.
    pub fn new(label: &str, scaling: Scaling) -> Self {
        Self { label: label.into(), scaling, names: Vec::new() }
    }
}

/// Of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// Equal steps.
    Linear,
    /// Equal ratios; values that are not positive are left out.
    Logarithmic,
}

/// A named curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// In the legend.
    pub name: String,
    /// How it is drawn.
    pub stroke: Stroke,
    /// (x, y), x increasing.
    pub points: Vec<(f64, f64)>,
}

/// Of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Ours.
    Solid,
    /// The paper's.
    Dashed,
}
