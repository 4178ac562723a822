//! Numbers in text. The fast functions take what almost every file holds and return `None` for the rest;
//! the careful ones take one token and say what is wrong with it.

use memchr::memchr_iter;

use crate::error::ParseKind;
use crate::scalar::{Scalar, ScalarKind};

/// What is wrong with a line: class and sentence.
pub(crate) type Fault = (ParseKind, String);

/// Text after the spaces and tabs it starts with.
#[inline(always)]
pub(super) fn skip_blanks(mut s: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = s {
        s = rest;
    }
    s
}

/// Text after at least one space or tab.
#[inline(always)]
pub(super) fn blanks(s: &[u8]) -> Option<&[u8]> {
    match s {
        [b' ' | b'\t', rest @ ..] => Some(skip_blanks(rest)),
        _ => None,
    }
}

/// Text after the end of the line.
#[inline(always)]
pub(super) fn line_end(s: &[u8]) -> Option<&[u8]> {
    match s {
        [b'\n', rest @ ..] => Some(rest),
        _ => match skip_blanks(s) {
            [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => Some(rest),
            [] | [b'\r'] => Some(&[]),
            _ => None,
        },
    }
}

/// Values of up to 8 leading digits and how many they are, by arithmetic on 8 bytes at a time.
///
/// With t = bytes ⊕ "00000000", a byte of t is a digit if it is at most 9, that is if adding 0x76 leaves its top
/// bit clear; a carry can only disturb bytes after the first that is none. The digits are then moved to the end
/// of the word (zeros before them do no harm) and joined pairwise: 10·a + b, 100·ab + cd, 10⁴·abcd + efgh.
#[inline(always)]
fn eight(bytes: [u8; 8]) -> (u64, usize) {
    let t = u64::from_le_bytes(bytes) ^ 0x3030_3030_3030_3030;
    let other = (t.wrapping_add(0x7676_7676_7676_7676) | t) & 0x8080_8080_8080_8080;
    let n = (other.trailing_zeros() / 8) as usize;
    if n == 0 {
        return (0, 0);
    }
    let t = t << (64 - 8 * n);
    let t = t.wrapping_mul(10).wrapping_add(t >> 8);
    let low = (t & 0x0000_00FF_0000_00FF).wrapping_mul(0x000F_4240_0000_0064);
    let high = ((t >> 16) & 0x0000_00FF_0000_00FF).wrapping_mul(0x0000_2710_0000_0001);
    (low.wrapping_add(high) >> 32, n)
}

/// 1 to 16 digits as an integer, and the text after them.
#[inline(always)]
pub(super) fn digits(s: &[u8]) -> Option<(u64, &[u8])> {
    let Some(word) = s.first_chunk::<8>() else { return few_digits(s) };
    match eight(*word) {
        (_, 0) => None,
        (value, 8) => more_digits(value, &s[8..]),
        (value, n) => Some((value, &s[n..])),
    }
}

/// The second half of [`digits`]: up to 8 more.
fn more_digits(first: u64, s: &[u8]) -> Option<(u64, &[u8])> {
    let n = s.iter().take_while(|c| c.is_ascii_digit()).count();
    let value = s[..n.min(8)].iter().fold(first, |v, c| 10 * v + u64::from(c - b'0'));
    (n <= 8).then(|| (value, &s[n..]))
}

/// [`digits`] where fewer than 8 bytes of text are left.
#[cold]
fn few_digits(s: &[u8]) -> Option<(u64, &[u8])> {
    let n = s.iter().take_while(|c| c.is_ascii_digit()).count();
    let value = s[..n].iter().fold(0, |v, c| 10 * v + u64::from(c - b'0'));
    (n > 0).then(|| (value, &s[n..]))
}

/// A finite decimal number rounded once to `T::Real` (returned as the `f64` that equals it), and the text after it.
#[inline(always)]
pub(super) fn number<T: Scalar>(s: &[u8]) -> Option<(f64, &[u8])> {
    if let Some(found) = short_number::<T>(s) {
        return Some(found);
    }
    let (value, n) = match T::KIND {
        ScalarKind::F64 | ScalarKind::C64 => fast_float2::parse_partial::<f64, _>(s).ok()?,
        ScalarKind::F32 | ScalarKind::C32 => {
            let (value, n) = fast_float2::parse_partial::<f32, _>(s).ok()?;
            (f64::from(value), n)
        }
    };
    // What vanishes in rounding is for the careful reader, who notes it.
    (value.is_finite() && (value != 0.0 || !vanishes(&s[..n]))).then(|| (value, &s[n..]))
}

/// Whether a number that is read as 0 is not 0 as it is written.
#[cold]
pub(super) fn vanishes(token: &[u8]) -> bool {
    let mantissa = token.split(u8::is_ascii_alphabetic).next().unwrap_or_default();
    mantissa.iter().any(|c| matches!(c, b'1'..=b'9')) && careful_number::<f64>(token).is_ok_and(|value| value == 0.0)
}

/// A number of at most 8 digits before and 7 after the point, without exponent: its digits m < 10¹⁵ < 2⁵³ and the
/// power of ten are exact, so that m / 10ᵏ is rounded once (Clinger's fast path).
#[inline(always)]
fn short_number<T: Scalar>(s: &[u8]) -> Option<(f64, &[u8])> {
    const POWERS: [f64; 8] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];
    if matches!(T::KIND, ScalarKind::F32 | ScalarKind::C32) {
        return None;
    }
    let (negative, s) = match s {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, s),
    };
    let (whole, n) = eight(*s.first_chunk()?);
    if n == 0 {
        return None;
    }
    let s = &s[n..];
    let (digits, places, s) = match s {
        [b'.', rest @ ..] => match eight(*rest.first_chunk()?) {
            (_, 8) => return None,
            (part, places) => (whole * POWERS[places] as u64 + part, places, &rest[places..]),
        },
        _ => (whole, 0, s),
    };
    // Anything but the end of the token (a ninth digit, an exponent) is for the general routine.
    if !matches!(s.first(), Some(b'\n' | b' ' | b'\r' | b'\t')) {
        return None;
    }
    let value = digits as f64 / POWERS[places];
    Some((if negative { -value } else { value }, s))
}

/// A signed integer of up to 16 digits, rounded once to `T::Real`, and the text after it.
#[inline(always)]
pub(super) fn integer<T: Scalar>(s: &[u8]) -> Option<(f64, &[u8])> {
    let (negative, s) = match s {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, s),
    };
    // Larger ones may have to be rounded, which the careful reader notes.
    let (value, s) = digits(s).filter(|(value, _)| *value <= 1 << 53)?;
    let value = match T::KIND {
        ScalarKind::F64 | ScalarKind::C64 => value as f64,
        ScalarKind::F32 | ScalarKind::C32 => f64::from(value as f32),
    };
    Some((if negative { -value } else { value }, s))
}

/// A token as it may be shown in a message: printable and short.
pub(crate) fn shown(token: &[u8]) -> String {
    let text: String = token.iter().take(40).flat_map(|c| std::ascii::escape_default(*c)).map(char::from).collect();
    if token.len() > 40 { format!("\"{text}…\"") } else { format!("\"{text}\"") }
}

/// One token as a real number, Fortran exponents (`1.5D2`) included, rounded once to `T::Real`.
pub(crate) fn careful_number<T: Scalar>(token: &[u8]) -> Result<f64, Fault> {
    let (mantissa, exponent) = match token.iter().position(|c| matches!(c, b'e' | b'E' | b'd' | b'D')) {
        Some(at) => (&token[..at], Some(&token[at + 1..])),
        None => (token, None),
    };
    let (sign, mantissa) = mantissa.split_at(usize::from(matches!(mantissa.first(), Some(b'+' | b'-'))));
    let point = memchr_iter(b'.', mantissa).count();
    let plain = mantissa.iter().all(|c| c.is_ascii_digit() || *c == b'.') && point <= 1 && mantissa.len() > point;
    if !plain || exponent.is_some_and(|e| integer_token(e).is_none()) {
        let word = token.to_ascii_lowercase();
        let word = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(&word);
        return Err(if [&b"nan"[..], b"inf", b"infinity"].contains(&word) || word.starts_with(b"nan(") {
            (ParseKind::NonFinite, format!("the value is {}; a finite number was expected", shown(token)))
        } else {
            (ParseKind::BadNumber, format!("{} is not a number", shown(token)))
        });
    }
    let mut text = [if sign == b"-" { &b"-"[..] } else { b"" }, mantissa].concat();
    if let Some(e) = exponent {
        text.push(b'e');
        text.extend_from_slice(e.strip_prefix(b"+").unwrap_or(e));
    }
    let (value, kind) = match T::KIND {
        ScalarKind::F64 | ScalarKind::C64 => (fast_float2::parse::<f64, _>(&text).unwrap_or(f64::NAN), "f64"),
        ScalarKind::F32 | ScalarKind::C32 => {
            (f64::from(fast_float2::parse::<f32, _>(&text).unwrap_or(f32::NAN)), "f32")
        }
    };
    if value.is_finite() {
        Ok(value)
    } else {
        Err((ParseKind::NonFinite, format!("{} overflows {kind}; a finite number was expected", shown(token))))
    }
}

/// Whether a token is an integer: its sign and its digits.
fn integer_token(token: &[u8]) -> Option<(bool, &[u8])> {
    let (negative, digits) = match token {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, token),
    };
    (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit)).then_some((negative, digits))
}

/// Whether an integer in decimal is no double, so that reading it rounds it.
pub(super) fn is_no_double(token: &[u8]) -> bool {
    let Some((_, digits)) = integer_token(token) else { return false };
    let value = digits.iter().try_fold(0u128, |v, c| v.checked_mul(10)?.checked_add(u128::from(c - b'0')));
    // Beyond 128 bits only powers of two times few digits would be doubles; nobody writes them out.
    value.is_none_or(|v| v as f64 as u128 != v)
}

/// One token as an integer value.
pub(crate) fn careful_integer<T: Scalar>(token: &[u8]) -> Result<f64, Fault> {
    match integer_token(token) {
        Some(_) => careful_number::<T>(token),
        None => match careful_number::<T>(token) {
            Err(fault) => Err(fault),
            Ok(_) => Err((ParseKind::BadNumber, format!("{} is not an integer, as the banner promises", shown(token)))),
        },
    }
}

/// One token as an index from 1 to `limit`; `what` is "row" or "column".
pub(crate) fn careful_index(token: &[u8], what: &str, limit: usize) -> Result<usize, Fault> {
    let Some((negative, digits)) = integer_token(token) else {
        return Err((ParseKind::BadNumber, format!("{what} {} is not an integer", shown(token))));
    };
    let value = digits.iter().try_fold(0usize, |v, c| v.checked_mul(10)?.checked_add(usize::from(c - b'0')));
    match value {
        Some(i) if !negative && (1..=limit).contains(&i) => Ok(i),
        _ => {
            let text = String::from_utf8_lossy(&token[..token.len().min(40)]).into_owned();
            Err((ParseKind::IndexOutOfRange, format!("{what} {text} lies outside 1 to {limit}")))
        }
    }
}

/// One token of a size line; `what` names it.
pub(crate) fn careful_size(token: &[u8], what: &str) -> Result<usize, Fault> {
    let bad = |why: &str| Err((ParseKind::BadSize, format!("{what} is {}, {why}", shown(token))));
    match integer_token(token) {
        None => bad("not an integer"),
        Some((true, digits)) if digits.iter().any(|c| *c != b'0') => bad("a negative number"),
        Some((_, digits)) => digits
            .iter()
            .try_fold(0usize, |v, c| v.checked_mul(10)?.checked_add(usize::from(c - b'0')))
            .map_or_else(|| bad("beyond 64 bits"), Ok),
    }
}

/// Tokens of a line, split at white space.
pub(crate) fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|c| c.is_ascii_whitespace() || *c == 0x0b).filter(|t| !t.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_every_length() {
        let long = "1234567890123456789012345";
        for n in 1..=16 {
            let expected: u64 = long[..n].parse().unwrap();
            for after in ["", " 77 88888888888", ".5", "\n99999999999", "x", "\u{e9}"] {
                let text = format!("{}{after}", &long[..n]);
                assert_eq!(digits(text.as_bytes()), Some((expected, after.as_bytes())), "{text}");
            }
        }
        assert_eq!(digits(b"12345678901234567 "), None);
        assert_eq!(digits(b""), None);
        assert_eq!(digits(b"/0000000"), None);
        assert_eq!(digits(b":0000000"), None);
        assert_eq!(digits(b"-1"), None);
        assert_eq!(digits(b"00000012"), Some((12, &b""[..])));
    }

    #[test]
    fn numbers_with_reasons() {
        assert_eq!(careful_number::<f64>(b"1.5D+2"), Ok(150.0));
        assert_eq!(careful_number::<f64>(b"+.5d-1"), Ok(0.05));
        assert_eq!(careful_number::<f64>(b"-7."), Ok(-7.0));
        assert_eq!(careful_number::<f64>(b"-0").map(f64::to_bits), Ok((-0.0f64).to_bits()));
        assert_eq!(careful_number::<f64>(b"1e-400"), Ok(0.0));
        let kind = |t: &[u8]| careful_number::<f64>(t).unwrap_err().0;
        for t in [&b"."[..], b"", b"-", b"1.2.3", b"1e", b"1e+", b"e5", b"0x10", b"--1", b"1,5", b"\xff"] {
            assert_eq!(kind(t), ParseKind::BadNumber, "{t:?}");
        }
        for t in [&b"NaN"[..], b"-Inf", b"+infinity", b"1e400", b"-1d999999999999999999999"] {
            assert_eq!(kind(t), ParseKind::NonFinite, "{t:?}");
        }
        assert_eq!(careful_number::<f32>(b"1e39").unwrap_err().0, ParseKind::NonFinite);
        assert_eq!(careful_integer::<f64>(b"1.5").unwrap_err().0, ParseKind::BadNumber);
        assert_eq!(careful_integer::<f64>(b"9007199254740993"), Ok(9007199254740992.0));
        assert_eq!(integer::<f64>(b"-9007199254740993\n"), None, "rounded by the careful reader, which says so");
        assert_eq!(integer::<f64>(b"-9007199254740992\n"), Some((-9007199254740992.0, &b"\n"[..])));
        for (token, rounded) in [
            (&b"9007199254740993"[..], true),
            (b"-9007199254740994", false),
            (b"18014398509481985", true),
            (b"100000000000000000000", false),
            (b"100000000000000000001", true),
            (b"12", false),
        ] {
            assert_eq!(is_no_double(token), rounded, "{}", String::from_utf8_lossy(token));
        }
        assert_eq!(integer::<f32>(b"16777217"), Some((16777216.0, &b""[..])));
    }

    #[test]
    fn short_numbers_equal_the_general_routine() {
        for text in [
            "0",
            "-0",
            "-0.0",
            "5.",
            "7.25",
            "-1",
            "12345678",
            "123456789",
            "12345678.1234567",
            "99999999.9999999",
            "0.3",
            "0.0000001",
            "1.12345678",
            "3e5",
            "3.5E-2",
            "00000001.5",
            "2.50",
        ] {
            let line = format!("{text} 1 1 1 1 1\n");
            let (value, rest) = number::<f64>(line.as_bytes()).unwrap();
            assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
            assert_eq!(rest, b" 1 1 1 1 1\n");
        }
    }

    #[test]
    fn f32_is_rounded_once() {
        // Just above the midpoint of 1 and 1 + 2⁻²³, by less than f64 can see: rounding twice would give 1.
        let text = b"1.00000005960464477539062500000000001";
        assert_eq!(number::<f32>(text).unwrap().0, f64::from(1.0f32 + f32::EPSILON));
        assert_eq!(careful_number::<f32>(text), Ok(f64::from(1.0f32 + f32::EPSILON)));
    }

    #[test]
    fn messages_show_no_control_characters() {
        assert_eq!(shown(b"\x00\xff1"), "\"\\x00\\xff1\"");
        assert!(shown(&[b'x'; 100]).chars().count() < 50);
    }
}
