//! Whether a page shows what a program prints, up to what differs from machine to machine.
//!
//! - A line "…" stands for any lines, "…" within a line for any text. Spaces count as one.
//! - Times (a number before s, ms, µs or ns) and numbers of refinement steps, which rounding decides, are not compared.
//! - Numbers of at most 1e-12 are errors at rounding level: they may differ by a factor of ten.
//! - Other numbers with a point or an exponent agree within a unit of their last digit, or a relative 1e-5; whole numbers are equal, but
//!   for numbers of iterations, which may differ by 3 %.

/// What stands for something left out.
const LEFT_OUT: char = '…';

/// A piece of a line.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// With the size of its last digit, 0 for a whole number.
    Number {
        value: f64,
        last: f64,
    },
    Time,
    Steps,
    Iterations(f64),
    Space,
    Other(char),
    LeftOut,
}

/// Numbers up to this are errors at rounding level.
const ROUNDING: f64 = 1e-12;

impl Token {
    fn agrees(&self, printed: &Self) -> bool {
        match (self, printed) {
            (Self::Iterations(a), Self::Iterations(b)) => (a - b).abs() <= (0.03 * a.max(*b)).max(0.5),
            (Self::Number { value: a, last: s }, Self::Number { value: b, last: t }) => {
                let (low, high) = (a.abs().min(b.abs()), a.abs().max(b.abs()));
                // The finer of two last digits; a whole number has none.
                let unit = if s.min(*t) > 0.0 { s.min(*t) } else { s.max(*t) };
                a == b
                    || (high <= ROUNDING && (high <= 10.0 * low || high <= 1e-3 * ROUNDING))
                    || (unit > 0.0 && (a - b).abs() <= (1.0001 * unit).max(1e-5 * high))
            }
            (a, b) => a == b,
        }
    }
}

fn tokens(line: &str) -> Vec<Token> {
    let chars: Vec<char> = line.trim_end().chars().collect();
    let mut tokens = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        if c == ' ' {
            while chars.get(i) == Some(&' ') {
                i += 1;
            }
            tokens.push(Token::Space);
        } else if c.is_ascii_digit() && !(i > 0 && chars[i - 1].is_ascii_alphabetic()) {
            let (value, last, end) = number(&chars, i);
            let rest: String = chars[end..].iter().take(24).collect();
            let words: Vec<&str> = rest.split(' ').skip_while(|w| w.is_empty()).collect();
            let word = words.first().map_or("", |w| w.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default());
            let (token, unit) = match word {
                // The unit goes too: 999 µs here are 1.1 ms there, and 1 step is 2 steps.
                "s" | "ms" | "µs" | "ns" => (Token::Time, word),
                "refinement" if rest.starts_with(" refinement steps") => (Token::Steps, "refinement steps"),
                "refinement" if rest.starts_with(" refinement step") => (Token::Steps, "refinement step"),
                "iteration" | "iterations" => (Token::Iterations(value), ""),
                _ => (Token::Number { value, last }, ""),
            };
            i = end;
            if !unit.is_empty() {
                i += rest.chars().take_while(|c| *c == ' ').count() + unit.chars().count();
            }
            tokens.push(token);
        } else {
            tokens.push(if c == LEFT_OUT { Token::LeftOut } else { Token::Other(c) });
            i += 1;
        }
    }
    tokens
}

/// A number without sign at `start`: its value, the size of its last digit, and where it ends.
fn number(chars: &[char], start: usize) -> (f64, f64, usize) {
    let digits = |mut i: usize| {
        while chars.get(i).is_some_and(char::is_ascii_digit) {
            i += 1;
        }
        i
    };
    let mut end = digits(start);
    let mut decimals = 0;
    if chars.get(end) == Some(&'.') && chars.get(end + 1).is_some_and(char::is_ascii_digit) {
        let fraction = digits(end + 1);
        (decimals, end) = (fraction - end - 1, fraction);
    }
    let mut exponent = 0;
    if chars.get(end) == Some(&'e') {
        let sign = usize::from(matches!(chars.get(end + 1), Some('-' | '+')));
        let last = digits(end + 1 + sign);
        if last > end + 1 + sign {
            exponent = chars[end + 1..last].iter().collect::<String>().parse().unwrap_or(0);
            end = last;
        }
    }
    let text: String = chars[start..end].iter().collect();
    let last = if text.contains(['.', 'e']) { 10f64.powi(exponent - decimals as i32) } else { 0.0 };
    (text.parse().unwrap_or(f64::NAN), last, end)
}

/// Whether `shown`, with [`LEFT_OUT`] for some of its elements, is `printed`: each run in between is looked for from left to right, the
/// first stands at the beginning and the last at the end.
fn fits<T>(shown: &[T], printed: &[T], left_out: impl Fn(&T) -> bool, agrees: impl Fn(&T, &T) -> bool) -> bool {
    let runs: Vec<&[T]> = shown.split(left_out).collect();
    let at = |run: &[T], place: usize| {
        printed.get(place..place + run.len()).is_some_and(|p| run.iter().zip(p).all(|(a, b)| agrees(a, b)))
    };
    let mut place = 0;
    for (k, run) in runs.iter().enumerate() {
        let found = match (k == 0, k + 1 == runs.len()) {
            (true, true) => (run.len() == printed.len() && at(run, 0)).then_some(0),
            (true, false) => at(run, 0).then_some(0),
            (false, true) => printed.len().checked_sub(run.len()).filter(|&p| p >= place && at(run, p)),
            (false, false) => (place..=printed.len()).find(|&p| at(run, p)),
        };
        match found {
            Some(found) => place = found + run.len(),
            None => return false,
        }
    }
    true
}

/// Whether a line shows a line.
pub(super) fn line_agrees(shown: &str, printed: &str) -> bool {
    fits(&tokens(shown), &tokens(printed), |t| *t == Token::LeftOut, Token::agrees)
}

/// Whether a line stands for any lines.
pub(super) fn is_gap(line: &str) -> bool {
    line.trim() == "…"
}

/// Whether lines show lines.
pub(super) fn agrees(shown: &[String], printed: &[String]) -> bool {
    fits(shown, printed, |l| is_gap(l), |a, b| line_agrees(a, b))
}

/// `printed` as the page shows it: the same lines left out, lines that agree kept as they are.
///
/// Where the program has a new line among those that were shown without a gap, the page gets it; a line that it prints no longer goes.
pub(super) fn refreshed(shown: &[String], printed: &[String]) -> Vec<String> {
    let mut new: Vec<String> = Vec::new();
    let mut place = 0;
    for (k, line) in shown.iter().enumerate() {
        if is_gap(line) {
            new.push(line.clone());
            continue;
        }
        let rest = || (place..printed.len()).map(|i| (i, &printed[i]));
        let same = rest().find(|(_, p)| line_agrees(line, p));
        let found = same.or_else(|| rest().find(|(_, p)| key(line) == key(p)));
        let Some((i, text)) = found else { continue };
        if k > 0 && new.last().is_none_or(|last| !is_gap(last)) {
            new.extend(printed[place..i].iter().cloned());
        }
        new.push(if same.is_some() { line.clone() } else { cut(line, text) });
        place = i + 1;
    }
    if shown.last().is_none_or(|last| !is_gap(last)) {
        new.extend(printed[place..].iter().cloned());
    }
    new.dedup_by(|a, b| is_gap(a) && is_gap(b));
    new
}

/// What a line is about: its label, or its first word.
fn key(line: &str) -> &str {
    let line = line.trim();
    let end = [line.find("  "), line.find(':'), line.find(|c: char| c.is_ascii_digit()).filter(|&i| i > 0)];
    let label = &line[..end.into_iter().flatten().min().unwrap_or(line.len())];
    if line.starts_with(|c: char| c.is_ascii_digit()) {
        line.split(' ').next().unwrap_or_default()
    } else {
        label.trim()
    }
}

/// `text` cut where `shown` was: after the word before its "…", or else after as many characters.
fn cut(shown: &str, text: &str) -> String {
    let Some(start) = shown.strip_suffix(LEFT_OUT) else { return text.to_owned() };
    let word = start.split_whitespace().last().unwrap_or_default();
    let end = text.find(word).map_or_else(
        || text.char_indices().nth(start.chars().count()).map_or(text.len(), |(i, _)| i),
        |i| i + word.len(),
    );
    format!("{} {LEFT_OUT}", text[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_a_machine_changes_is_not_compared() {
        for (shown, printed) in [
            ("time  read 1.20 ms, total 0.3 s", "time    read 999 µs, total 12.0 s"),
            ("backward error 1.13e-16 ‖b‖", "backward error 6.02e-16 ‖b‖"),
            ("residual 0e0, 1e-17", "residual 3e-18, 0e0"),
            ("converged, 344 iterations", "converged, 341 iterations"),
            ("rcond 8.46e-3", "rcond 8.45e-3"),
            ("note auto chose block-lu; …", "note auto chose block-lu; next best x"),
            ("converged, 1 refinement step", "converged, 0 refinement steps"),
            ("a … c", "a b c"),
        ] {
            assert!(line_agrees(shown, printed), "{shown} | {printed}");
        }
        for (shown, printed) in [
            ("n = 1600", "n = 1601"),
            ("backward error 1.13e-16", "backward error 3.1e-15"),
            ("backward error 1.13e-16", "backward error 1e-3"),
            ("converged, 344 iterations", "converged, 300 iterations"),
            ("rcond 8.46e-3", "rcond 8.43e-3"),
            ("mean 10.93", "mean 10.95"),
            ("method x (chosen by auto)", "method x"),
            ("a … c", "a b d"),
            ("lost 6.97e-11", "lost 7.20e-11"),
            ("took 3 steps", "took 4 steps"),
        ] {
            assert!(!line_agrees(shown, printed), "{shown} | {printed}");
        }
    }

    #[test]
    fn lines_are_left_out_only_where_it_says_so() {
        let printed = lines("a 1\nb 2\nc 3\nd 4");
        for (shown, holds) in [
            ("a 1\nb 2\nc 3\nd 4", true),
            ("a 1\n…\nd 4", true),
            ("…\nb 2\nc 3\n…", true),
            ("…", true),
            ("a 1\nb 2", false),
            ("b 2\nc 3\nd 4", false),
            ("a 1\nc 3\n…", false),
            ("a 1\n…\nc 4\nd 4", false),
            ("…\nd 4\n…\na 1\n…", false),
        ] {
            assert_eq!(agrees(&lines(shown), &printed), holds, "{shown}");
        }
        assert!(agrees(&[], &[]) && !agrees(&[], &printed));
    }

    #[test]
    fn a_refreshed_block_agrees_and_leaves_out_what_was_left_out() {
        let printed = lines(
            "A.mtx: n = 7\n  method   x\n  blocks   3 of 4\n  time     2 s\n  note     because of 12 y; and z\n  end      1",
        );
        for (shown, expected) in [
            ("…\n  blocks   9 of 9\n…", "…\n  blocks   3 of 4\n…"),
            ("…\n  time     9 s\n…", "…\n  time     9 s\n…"),
            (
                "A.mtx: n = 6\n  method   x\n  gone     1\n…\n  note     because of 11 y; …\n…",
                "A.mtx: n = 7\n  method   x\n…\n  note     because of 12 y; …\n…",
            ),
            (
                "A.mtx: n = 7\n  method   x\n  time     1 s\n…",
                "A.mtx: n = 7\n  method   x\n  blocks   3 of 4\n  time     1 s\n…",
            ),
            (
                "…\n  time 2 s\n  note     because of 12 y; …",
                "…\n  time 2 s\n  note     because of 12 y; …\n  end      1",
            ),
        ] {
            let new = refreshed(&lines(shown), &printed);
            assert_eq!(new, lines(expected));
            assert!(agrees(&new, &printed), "{new:?}");
        }
    }
}
