//! When results were made, and how busy the machine was: one entry for each run of the command that added some.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::report::plural;

/// The machine at a moment.
pub struct Moment {
    seconds: u64,
    load: Option<f64>,
}

impl Moment {
    /// This one.
    pub fn now() -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        // Linux says how many processes ran or waited, on average over a minute.
        let load = fs::read_to_string("/proc/loadavg").ok();
        Self { seconds, load: load.and_then(|text| text.split(' ').next()?.parse().ok()) }
    }

    /// A run between two moments that added `ran` results.
    pub fn session(&self, ran: usize) -> Value {
        let end = Self::now();
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        json!({
            "from": date(self.seconds), "to": date(end.seconds), "load": [self.load, end.load], "processors": processors,
            "ran": ran,
        })
    }
}

/// Seconds since 1970 as "2026-11-25 14:05 UTC".
fn date(seconds: u64) -> String {
    let (days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02} {:02}:{:02} UTC", month + 1, day + 1, minutes / 60, minutes % 60)
}

/// For people.
pub fn in_words(session: &Value) -> String {
    let text = |key: &str| session[key].as_str().unwrap_or("at an unknown time").to_owned();
    let load = |k: usize| session["load"][k].as_f64().map_or_else(|| "unknown".into(), |l| format!("{l:.2}"));
    let ran = plural(session["ran"].as_u64().unwrap_or(0) as usize, "experiment");
    format!(
        "{ran} from {} to {}; load {} before and {} after, of {} processors",
        text("from"),
        text("to"),
        load(0),
        load(1),
        session["processors"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59 UTC"),
            (1_764_079_500, "2025-11-25 14:05 UTC"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }

    #[test]
    fn a_session_says_when_and_how_busy() {
        let session = json!({ "from": "a", "to": "b", "load": [0.5, null], "processors": 2, "ran": 1 });
        assert_eq!(in_words(&session), "1 experiment from a to b; load 0.50 before and unknown after, of 2 processors");
        assert_eq!(Moment::now().session(3)["ran"], 3);
    }
}
