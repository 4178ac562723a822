//! Numbers for people: shares, times and counts in words.

use bt_queue::{Scaled, TimeUnit};

/// Four significant digits; a power of ten only where zeros would be many.
pub fn number(x: f64) -> String {
    let size = x.abs();
    if size == 0.0 {
        "0".into()
    } else if (1e-3..1e7).contains(&size) {
        // 0 for 1000 and above, 6 for 0.001
        let decimals = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
        format!("{x:.decimals$}")
    } else {
        format!("{x:.3e}")
    }
}

/// A share of a whole, with its logarithm for what no double can hold: `9.884 %`, `2.376e-5`, `10^-399.57`, `none`.
pub fn share(x: f64, log10: f64) -> String {
    if x >= 1e-4 {
        format!("{} %", number(100.0 * x))
    } else if x > 0.0 {
        format!("{x:.3e}")
    } else if log10.is_finite() {
        format!("10^{log10:.2}")
    } else {
        "none".into()
    }
}

/// Seconds in a year.
const YEAR: f64 = 365.25 * 86_400.0;

/// A time in the unit that people would take.
pub fn time(t: Scaled, unit: TimeUnit) -> String {
    let second = 3600.0 / unit.per_hour();
    let seconds = t.to_f64() * second;
    if !(seconds / YEAR).is_finite() {
        return format!("10^{:.2} years", t.log10() + (second / YEAR).log10());
    }
    let units = [
        (1e-3, 1e-6, "microseconds"),
        (1.0, 1e-3, "milliseconds"),
        (120.0, 1.0, "seconds"),
        (7200.0, 60.0, "minutes"),
        (2.0 * 86_400.0, 3600.0, "hours"),
        (2.0 * YEAR, 86_400.0, "days"),
    ];
    let (size, name) = units.iter().find(|u| seconds < u.0).map_or((YEAR, "years"), |u| (u.1, u.2));
    format!("{} {name}", number(seconds / size))
}

/// Seconds of a clock.
pub fn elapsed(seconds: f64) -> String {
    time(Scaled::new(seconds), TimeUnit::Second)
}

/// A time as it was given: `1 hour`, `2.5 hours`, `1e7 hours`.
pub fn given_time(t: f64, unit: TimeUnit) -> String {
    let number = if t == 0.0 || (1e-3..1e6).contains(&t) { t.to_string() } else { format!("{t:e}") };
    format!("{number} {}{}", unit.name(), if t == 1.0 { "" } else { "s" })
}

/// A residual or a bound.
pub fn tiny(x: f64) -> String {
    if x == 0.0 || x >= 1e-3 { number(x) } else { format!("{x:.1e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let cases = [(0.0, "0"), (10.93, "10.93"), (0.046_95, "0.04695"), (1234.6, "1235"), (9_999_999.0, "9999999")];
        for (x, text) in cases {
            assert_eq!(number(x), text);
        }
        assert_eq!((number(1e-9), number(3.2e9)), ("1.000e-9".into(), "3.200e9".into()));
    }

    #[test]
    fn shares_are_percents_until_they_are_small() {
        let of = |x: f64| share(x, x.log10());
        assert_eq!([of(0.114_134), of(1.0), of(3.0837e-4)], ["11.41 %", "100.0 %", "0.03084 %"]);
        assert_eq!([of(2.9468e-19), of(0.0), share(0.0, -399.567)], ["2.947e-19", "none", "10^-399.57"]);
    }

    #[test]
    fn times_have_a_unit_of_their_size() {
        let hours = |t: f64| time(Scaled::new(t), TimeUnit::Hour);
        assert_eq!(hours(0.038_73), "2.324 minutes");
        assert_eq!([hours(0.01), hours(30.0), hours(100.0)], ["36.00 seconds", "30.00 hours", "4.167 days"]);
        assert_eq!(time(Scaled::new(2e-5), TimeUnit::Second), "20.00 microseconds");
        assert_eq!(time(Scaled::new(3.155_76e16), TimeUnit::Second), "1.000e9 years");
        let long = Scaled::new(1e300) * Scaled::new(1e300);
        assert_eq!(time(long, TimeUnit::Day), "10^597.44 years");
        let given = [0.0, 1.0, 2.5, 1e7].map(|t| given_time(t, TimeUnit::Day));
        assert_eq!(given, ["0 days", "1 day", "2.5 days", "1e7 days"]);
        assert_eq!((tiny(0.0), tiny(2e-16), elapsed(0.0)), ("0".into(), "2.0e-16".into(), "0 microseconds".into()));
    }
}
