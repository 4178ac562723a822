//! Ours beside the best peer of each case, as a table.

use std::collections::BTreeSet;

use super::capability::{AUTO, CALLS, Capability};
use super::results::{About, Content, Kind, Regret, Row, Source};

/// A line of a table: ours, and what it meets in the same file.
#[derive(Debug, PartialEq)]
struct Line<'a> {
    source: &'a Source,
    ours: &'a Row,
    best: &'a Row,
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

/// In a marker, before a number: only lines of so many.
const THREADS: &str = "threads=";

/// Heading, origin and table of a capability, of all cases or those that `cases` has, which may have numbers of threads, too; nothing where
/// nothing was measured.
pub(super) fn section(capability: &'static Capability, cases: &[&str], sources: &[Source]) -> String {
    if capability == &AUTO {
        return regret(sources);
    }
    let mut lines = lines(capability, sources);
    let (threads, cases): (Vec<&str>, Vec<&str>) = cases.iter().partition(|word| word.starts_with(THREADS));
    lines.retain(|line| cases.is_empty() || cases.iter().any(|case| is_of(case, &line.ours.case)));
    lines.retain(|line| threads.is_empty() || threads.contains(&format!("{THREADS}{}", line.ours.threads).as_str()));
    if lines.is_empty() {
        return String::new();
    }
    let (folded, shown): (Vec<_>, Vec<_>) = Column::all(&lines).into_iter().partition(Column::is_folded);
    let common: Vec<String> = folded.iter().filter_map(Column::common).filter(|word| !word.is_empty()).collect();
    let above: Vec<String> = [common.join(", "), origins(&lines)].into_iter().filter(|part| !part.is_empty()).collect();
    let heads: Vec<&str> = shown.iter().map(|column| column.head).collect();
    let mut text = vec![format!("## {}\n\n{}\n", capability.title, above.join("; "))];
    text.push(heads.join(" | "));
    text.push(vec!["-"; heads.len()].join("|"));
    text.extend((0..lines.len()).map(|at| {
        let cells: Vec<&str> = shown.iter().map(|column| column.cells[at].as_str()).collect();
        cells.join(" | ")
    }));
    text.join("\n") + "\n"
}

/// Whether a case is the one that a marker names: "b1-8" is not "b1-80".
fn is_of(name: &str, case: &str) -> bool {
    case.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
}

/// Processors, each with the commits measured on it.
fn origins(lines: &[Line]) -> String {
    let mut files: Vec<&Source> = Vec::new();
    for line in lines {
        if !files.contains(&line.source) {
            files.push(line.source);
        }
    }
    let groups = files.chunk_by(|a, b| a.about.processor == b.about.processor).map(|group| {
        let processor =
            group.iter().take(1).map(|source| source.about.processor.clone()).filter(|name| !name.is_empty());
        let told = processor.chain(group.iter().map(|source| commit(&source.about)));
        told.collect::<Vec<_>>().join(", ")
    });
    groups.collect::<Vec<_>>().join("; ")
}

fn commit(about: &About) -> String {
    format!("{} ({})", about.commit, about.date)
}

/// Whether two rows are about the same, so that the newer one counts. Not all files tell the instruction set.
fn is_again(a: &Row, b: &Row) -> bool {
    let key = |row: &Row| (row.case.clone(), row.variant.clone(), row.scalar.clone(), row.threads);
    let sets = [&a.instruction_set, &b.instruction_set];
    key(a) == key(b) && (sets[0] == sets[1] || sets.iter().any(|set| set.is_empty()))
}

/// The fastest of ours for every case, variant, scalar, instruction set and number of threads, with the fastest that it meets.
fn lines<'a>(capability: &'static Capability, sources: &'a [Source]) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for source in sources {
        for ours in source.rows(capability).filter(|row| row.kind == Kind::Ours && row.is_solved()) {
            let meets = |other: &&Row| {
                let same = |row: &Row| (row.scalar.clone(), row.instruction_set.clone(), row.threads, row.case.clone());
                other.kind != Kind::Ours
                    && other.is_solved()
                    && same(other) == same(ours)
                    && (other.variant.is_none() || other.variant == ours.variant)
            };
            let Some(best) = fastest(source.rows(capability).filter(meets)) else { continue };
            let line = Line { source, ours, best };
            match lines.iter_mut().find(|old| is_again(old.ours, ours)) {
                None => lines.push(line),
                Some(old) if old.source == source => {
                    if ours.milliseconds < old.ours.milliseconds {
                        *old = line;
                    }
                }
                Some(old) if old.source.about.date <= source.about.date => *old = line,
                Some(_) => {}
            }
        }
    }
    // The widest first, as far as the names tell: avx512, avx2.
    lines.sort_by(|a, b| b.ours.instruction_set.cmp(&a.ours.instruction_set));
    lines
}

fn fastest<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    rows.min_by(|a, b| a.milliseconds.total_cmp(&b.milliseconds))
}

/// A column, or a word above the table where all its cells are the same.
struct Column {
    head: &'static str,
    cells: Vec<String>,
    /// How a common cell is told; `None` where the column always stands.
    told: Option<fn(&str) -> String>,
}

impl Column {
    fn all(lines: &[Line]) -> Vec<Self> {
        let calls = lines.iter().any(|line| line.ours.capability == &CALLS);
        let ratio = |line: &Line| {
            let (ours, other) = (line.ours.milliseconds, line.best.milliseconds);
            if calls { ours / other } else { other / ours }
        };
        let column = |head, cell: &dyn Fn(&Line) -> String, told| {
            let cells = lines.iter().map(cell).collect();
            Self { head, cells, told }
        };
        let (other, its, over) =
            if calls { ("kernel", "kernel ms", "call / kernel") } else { ("peer", "peer ms", "ratio") };
        let several = lines.iter().any(|line| line.ours.contestant != lines[0].ours.contestant);
        // Where the method stands beside it, its name tells the variant.
        let case = |line: &Line| match &line.ours.variant {
            Some(variant) if !several => format!("{}, {variant}", line.ours.case),
            _ => line.ours.case.clone(),
        };
        vec![
            column("case", &case, None),
            column("ours", &|l| short(l.ours), Some(|c| format!("ours {c}"))),
            column("ms", &|l| significant(l.ours.milliseconds), None),
            column(other, &|l| short(l.best), Some(|c| format!("beside {c}"))),
            column(its, &|l| significant(l.best.milliseconds), None),
            column(over, &|l| significant(ratio(l)), None),
            column("scalar", &|l| l.ours.scalar.clone(), Some(str::to_owned)),
            column("set", &|l| set(&l.ours.instruction_set), Some(str::to_owned)),
            column("threads", &|l| l.ours.threads.to_string(), Some(threads)),
        ]
    }

    fn is_folded(&self) -> bool {
        self.told.is_some() && self.cells.iter().collect::<BTreeSet<_>>().len() == 1
    }

    fn common(&self) -> Option<String> {
        Some((self.told?)(self.cells.first()?))
    }
}

/// A contestant without what its column or its case tells.
fn short(row: &Row) -> String {
    let name = row.contestant.trim_start_matches("blocktri-");
    if row.capability.name != "iterations" {
        return name.to_owned();
    }
    ["bicgstab-", "gmres-", "cg-"].into_iter().fold(name.to_owned(), |name, method| name.replace(method, ""))
}

fn threads(count: &str) -> String {
    if count == "1" { "one thread".into() } else { format!("{count} threads") }
}

/// As processors' manuals spell it.
fn set(name: &str) -> String {
    match name {
        "avx512" => "AVX-512".into(),
        "avx2" => "AVX2".into(),
        other => other.into(),
    }
}

/// Three digits at most; a number of fewer keeps them.
fn significant(value: f64) -> String {
    if value >= 100.0 {
        return format!("{value:.0}");
    }
    let digits = (2.0 - value.log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// One line of the table for each file `regret-NAME.json`.
fn regret(sources: &[Source]) -> String {
    let (mut measured, mut lines) = (Vec::new(), Vec::new());
    for source in sources {
        let Content::Regret(Regret { systems, median, percentile_95, worst, predicted }) = &source.content else {
            continue;
        };
        let about = format!("{}, {}", source.about.processor, commit(&source.about));
        if !measured.contains(&about) {
            measured.push(about);
        }
        let name = source.file.trim_start_matches("regret-").trim_end_matches(".json").replace('-', " ");
        let predicted = 100.0 * predicted;
        let regret = format!("{median:.2} | {percentile_95:.2} | {worst:.2}");
        lines.push(format!("{name}: {systems} | {regret} | {predicted:.0} %\n"));
    }
    if measured.is_empty() {
        return String::new();
    }
    let heading = "systems | regret, median | 95 % | worst | predicted within 2×\n-|-|-|-|-\n";
    let (measured, lines) = (measured.join("; "), lines.concat());
    format!("## {}\n\n{measured}\n\n{heading}{lines}goal | 1.1 | 1.5 | 2 | 90 %\n", AUTO.title)
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{row, source};
    use super::*;

    fn bands() -> &'static Capability {
        Capability::find("bands").unwrap()
    }

    fn table(rows: Vec<Row>) -> Vec<String> {
        let text = section(bands(), &[], &[source("a.json", "2026-11-26", rows)]);
        text.lines().filter(|line| line.contains('|')).skip(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_best_peer_is_the_fastest_that_solved() {
        let mut wrong = row("b1-8", "pardiso", 1.0);
        wrong.error = Some(1e-3);
        let rows = vec![
            row("b1-8", "mkl-gbtrf", 12.0),
            wrong,
            row("b1-8", "blocktri-band-lu", 4.8),
            row("b1-8", "openblas-gbtrf", 14.2),
            row("b1-8", "blocktri-spike-1", 9.0),
            row("b1-32", "mkl-gbtrf", 1.0),
        ];
        let text = section(bands(), &[], &[source("a.json", "2026-11-26", rows)]);
        assert_eq!(
            text,
            "## Bands\n\nours band-lu, beside mkl-gbtrf, f64, AVX-512, one thread; AMD EPYC (Zen 4), abc1234 (2026-11-26)\n\n\
             case | ms | peer ms | ratio\n-|-|-|-\nb1-8 | 4.8 | 12 | 2.5\n"
        );
    }

    #[test]
    fn peers_are_of_the_same_kind_of_run() {
        let mut two = row("b1-8", "mkl-gbtrf", 1.0);
        two.threads = 2;
        let mut set = row("b1-8", "mkl-gbtrf", 1.0);
        set.instruction_set = "avx2".into();
        let mut single = row("b1-8", "mkl-gbtrf", 1.0);
        single.scalar = "f32".into();
        assert!(table(vec![row("b1-8", "blocktri-band-lu", 4.8), two, set, single]).is_empty());
    }

    #[test]
    fn who_exchanges_rows_is_not_beside_who_does_not() {
        let mut no_exchange = row("b1-8", "mkl-genp", 2.0);
        no_exchange.variant = Some("without pivoting".into());
        let mut ours = row("b1-8", "blocktri-band-lu-nopivot", 1.0);
        ours.variant = Some("without pivoting".into());
        let rows = vec![row("b1-8", "blocktri-band-lu", 4.0), ours, row("b1-8", "mkl-gbtrf", 12.0), no_exchange];
        assert_eq!(
            table(rows),
            ["b1-8 | band-lu | 4 | mkl-gbtrf | 12 | 3", "b1-8 | band-lu-nopivot | 1 | mkl-genp | 2 | 2"]
        );
    }

    #[test]
    fn of_two_files_the_newer_counts_whole() {
        let old =
            vec![row("b1-8", "blocktri-band-lu", 4.0), row("b1-8", "mkl-gbtrf", 12.0), row("b1-32", "mkl-gbtrf", 6.0)];
        let new = vec![
            row("b1-8", "blocktri-band-lu", 5.0),
            row("b1-8", "mkl-gbtrf", 10.0),
            row("b1-32", "blocktri-band-lu", 1.0),
        ];
        let sources = [source("z.json", "2026-11-25", old), source("a.json", "2026-11-26", new)];
        let text = section(bands(), &[], &sources);
        assert!(text.ends_with("-|-|-|-\nb1-8 | 5 | 10 | 2\n"), "{text}");
        assert!(!text.contains("2026-11-25"));
    }

    #[test]
    fn a_processor_is_named_once_for_its_files() {
        let pair = |case| vec![row(case, "blocktri-band-lu", 1.0), row(case, "mkl-gbtrf", 2.0)];
        let mut other = source("c.json", "2026-11-26", pair("b1-64"));
        other.about.processor = "Xeon".into();
        let sources =
            [source("a.json", "2026-11-25", pair("b1-8")), source("b.json", "2026-11-26", pair("b1-32")), other];
        let text = section(bands(), &[], &sources);
        let told = "AMD EPYC (Zen 4), abc1234 (2026-11-25), abc1234 (2026-11-26); Xeon, abc1234 (2026-11-26)\n";
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn the_variant_is_told_where_the_method_is_not() {
        let mut ours = row("t2-64", "blocktri-batch", 1.0);
        ours.variant = Some("without pivoting".into());
        assert_eq!(table(vec![ours, row("t2-64", "c-thomas", 2.0)]), ["t2-64, without pivoting | 1 | 2 | 2"]);
    }

    #[test]
    fn a_marker_chooses_cases() {
        let pair = |case| [row(case, "blocktri-band-lu", 1.0), row(case, "mkl-gbtrf", 2.0)];
        let rows = [pair("b1-8"), pair("b1-80"), pair("b1-8, again")].concat();
        let text = section(bands(), &["b1-8"], &[source("a.json", "2026-11-26", rows)]);
        assert_eq!(text.matches(" | 1 | 2 | 2\n").count(), 2);
        assert!(!text.contains("b1-80"));
    }

    #[test]
    fn a_marker_chooses_threads() {
        let mut two = [row("b1-8", "blocktri-band-lu", 3.0), row("b1-8", "mkl-gbtrf", 9.0)];
        for row in &mut two {
            row.threads = 2;
        }
        let rows = [[row("b1-8", "blocktri-band-lu", 1.0), row("b1-8", "mkl-gbtrf", 2.0)], two].concat();
        let sources = [source("a.json", "2026-11-26", rows)];
        assert!(section(bands(), &[], &sources).contains("b1-8 | 3 | 9 | 3 | 2\n"));
        assert!(section(bands(), &["threads=1"], &sources).ends_with("ratio\n-|-|-|-\nb1-8 | 1 | 2 | 2\n"));
        assert!(section(bands(), &["b1-8", "threads=2"], &sources).ends_with("ratio\n-|-|-|-\nb1-8 | 3 | 9 | 3\n"));
        assert_eq!(section(bands(), &["threads=4"], &sources), "");
    }

    #[test]
    fn a_file_that_tells_no_instruction_set_gives_way() {
        let mut old = [row("b1-8", "blocktri-band-lu", 4.0), row("b1-8", "mkl-gbtrf", 12.0)];
        for row in &mut old {
            row.instruction_set.clear();
        }
        let new = vec![row("b1-8", "blocktri-band-lu", 5.0), row("b1-8", "mkl-gbtrf", 10.0)];
        let sources = [source("a.json", "2026-11-25", old.to_vec()), source("b.json", "2026-11-26", new)];
        assert!(section(bands(), &[], &sources).ends_with("\n-|-|-|-\nb1-8 | 5 | 10 | 2\n"));
    }

    #[test]
    fn calls_are_over_their_kernels() {
        let mut call = row("b1-8", "blocktri-facade-once", 24.0);
        let mut kernel = row("b1-8", "blocktri-band-lu", 6.0);
        (call.capability, kernel.capability, kernel.kind) = (&CALLS, &CALLS, Kind::Kernel);
        let text = section(&CALLS, &[], &[source("a.json", "2026-11-26", vec![call, kernel])]);
        assert!(text.contains(" | call / kernel\n") && text.contains(" | 24 | 6 | 4\n"), "{text}");
    }

    #[test]
    fn regret_stands_beside_its_goals() {
        let content =
            Content::Regret(Regret { systems: 173, median: 1.0, percentile_95: 1.834, worst: 3.45, predicted: 0.7125 });
        let other =
            Content::Regret(Regret { systems: 26, median: 1.0, percentile_95: 2.0, worst: 3.0, predicted: 0.9 });
        let source = |file: &str, content| Source { file: file.into(), about: About::default(), content };
        let text =
            section(&AUTO, &[], &[source("regret-data.json", content), source("regret-two-threads.json", other)]);
        let lines = "data: 173 | 1.00 | 1.83 | 3.45 | 71 %\ntwo threads: 26 | 1.00 | 2.00 | 3.00 | 90 %\ngoal | ";
        assert!(text.contains(lines), "{text}");
        assert_eq!(section(&AUTO, &[], &[]), "");
    }

    #[test]
    fn numbers_keep_their_digits() {
        for (value, text) in [
            (4.8, "4.8"),
            (0.0071, "0.0071"),
            (12.04, "12"),
            (73.84, "73.8"),
            (164.4, "164"),
            (45200.0, "45200"),
            (2.5333, "2.53"),
        ] {
            assert_eq!(significant(value), text);
        }
    }
}
