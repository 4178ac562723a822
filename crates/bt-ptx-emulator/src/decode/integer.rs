//! Integer and logical instructions (PTX ISA 6.3, sections 9.7.1, 9.7.2 and 9.7.7).
// The closures of these tables are instantiated for several types.
#![allow(clippy::redundant_closure_for_method_calls)]

use super::number::{binary_by, ternary_by, unary_by};
use crate::op::{F1, F2, F3};

pub(super) fn unary(opcode: &[&str]) -> Option<F1> {
    match *opcode {
        ["neg", ty] => unary_by!(ty, ["s16" => i16, "s32" => i32, "s64" => i64], |a| a.wrapping_neg()),
        ["abs", ty] => unary_by!(ty, ["s16" => i16, "s32" => i32, "s64" => i64], |a| a.wrapping_abs()),
        ["not", "pred"] => Some(|a| a ^ 1),
        ["not", ty] => unary_by!(ty, ["b16" => u16, "b32" => u32, "b64" => u64], |a| !a),
        ["cnot", ty] => unary_by!(ty, ["b16" => u16, "b32" => u32, "b64" => u64], |a| T::from(a == 0)),
        ["popc", ty] => unary_by!(ty, ["b32" => u32, "b64" => u64], |a| a.count_ones()),
        ["clz", ty] => unary_by!(ty, ["b32" => u32, "b64" => u64], |a| a.leading_zeros()),
        ["brev", ty] => unary_by!(ty, ["b32" => u32, "b64" => u64], |a| a.reverse_bits()),
        // The position of the highest bit that differs from the sign; all ones where there is none.
        ["bfind", ty] => unary_by!(ty, ["u32" => u32, "u64" => u64, "s32" => i32, "s64" => i64], |a| {
            let a = if a < 0 as T { !a } else { a };
            (T::BITS - 1).wrapping_sub(a.leading_zeros())
        }),
        ["bfind", "shiftamt", ty] => unary_by!(ty, ["u32" => u32, "u64" => u64, "s32" => i32, "s64" => i64], |a| {
            let a = if a < 0 as T { !a } else { a };
            if a == 0 as T { u32::MAX } else { a.leading_zeros() }
        }),
        _ => None,
    }
}

pub(super) fn binary(opcode: &[&str]) -> Option<F2> {
    match *opcode {
        ["add", ty] => words(ty)
            .and_then(|ty| binary_by!(ty, ["b16" => u16, "b32" => u32, "b64" => u64], |a, b| a.wrapping_add(b))),
        ["sub", ty] => words(ty)
            .and_then(|ty| binary_by!(ty, ["b16" => u16, "b32" => u32, "b64" => u64], |a, b| a.wrapping_sub(b))),
        ["mul", "lo", ty] => words(ty)
            .and_then(|ty| binary_by!(ty, ["b16" => u16, "b32" => u32, "b64" => u64], |a, b| a.wrapping_mul(b))),
        ["mul", "hi", ty] => binary_by!(
            ty,
            ["u16" => u16, "u32" => u32, "u64" => u64, "s16" => i16, "s32" => i32, "s64" => i64],
            |a, b| ((a as i128).wrapping_mul(b as i128) >> T::BITS) as T
        ),
        ["mul", "wide", ty] => binary_by!(
            ty,
            ["u16" => u16, "s16" => i16, "u32" => u32, "s32" => i32],
            |a, b| (a as i64).wrapping_mul(b as i64) as u64 & (u64::MAX >> (64 - 2 * T::BITS))
        ),
        ["min", ty] => binary_by!(
            ty,
            ["u16" => u16, "u32" => u32, "u64" => u64, "s16" => i16, "s32" => i32, "s64" => i64],
            |a, b| a.min(b)
        ),
        ["max", ty] => binary_by!(
            ty,
            ["u16" => u16, "u32" => u32, "u64" => u64, "s16" => i16, "s32" => i32, "s64" => i64],
            |a, b| a.max(b)
        ),
        ["and", "pred" | "b16" | "b32" | "b64"] => Some(|a, b| a & b),
        ["or", "pred" | "b16" | "b32" | "b64"] => Some(|a, b| a | b),
        ["xor", "pred" | "b16" | "b32" | "b64"] => Some(|a, b| a ^ b),
        // Shift counts are unsigned 32-bit numbers; beyond the width everything is shifted out.
        ["shl", "b16"] => Some(|a, n| u64::from((a as u16).checked_shl(n as u32).unwrap_or(0))),
        ["shl", "b32"] => Some(|a, n| u64::from((a as u32).checked_shl(n as u32).unwrap_or(0))),
        ["shl", "b64"] => Some(|a, n| a.checked_shl(n as u32).unwrap_or(0)),
        ["shr", "b16" | "u16"] => Some(|a, n| u64::from((a as u16).checked_shr(n as u32).unwrap_or(0))),
        ["shr", "b32" | "u32"] => Some(|a, n| u64::from((a as u32).checked_shr(n as u32).unwrap_or(0))),
        ["shr", "b64" | "u64"] => Some(|a, n| a.checked_shr(n as u32).unwrap_or(0)),
        ["shr", "s16"] => Some(|a, n| u64::from((a as i16 >> (n as u32).min(15)) as u16)),
        ["shr", "s32"] => Some(|a, n| u64::from((a as i32 >> (n as u32).min(31)) as u32)),
        ["shr", "s64"] => Some(|a, n| (a as i64 >> (n as u32).min(63)) as u64),
        _ => None,
    }
}

/// Divisions: the interpreter refuses a zero divisor before it calls them.
pub(super) fn division(opcode: &[&str]) -> Option<F2> {
    match *opcode {
        ["div", ty] => binary_by!(
            ty,
            ["u16" => u16, "u32" => u32, "u64" => u64, "s16" => i16, "s32" => i32, "s64" => i64],
            |a, b| a.wrapping_div(b)
        ),
        ["rem", ty] => binary_by!(
            ty,
            ["u16" => u16, "u32" => u32, "u64" => u64, "s16" => i16, "s32" => i32, "s64" => i64],
            |a, b| a.wrapping_rem(b)
        ),
        _ => None,
    }
}

pub(super) fn ternary(opcode: &[&str]) -> Option<F3> {
    match *opcode {
        ["mad", "lo", ty] => words(ty).and_then(
            |ty| ternary_by!(ty, ["b16" => u16, "b32" => u32, "b64" => u64], |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        ),
        ["mad", "hi", ty] => ternary_by!(
            ty,
            ["u16" => u16, "u32" => u32, "u64" => u64, "s16" => i16, "s32" => i32, "s64" => i64],
            |a, b, c| (((a as i128).wrapping_mul(b as i128) >> T::BITS) as T).wrapping_add(c)
        ),
        ["mad", "wide", "u16"] => Some(|a, b, c| u64::from((a as u16 as u32 * b as u16 as u32).wrapping_add(c as u32))),
        ["mad", "wide", "s16"] => {
            Some(|a, b, c| u64::from((a as i16 as i32 * b as i16 as i32).wrapping_add(c as i32) as u32))
        }
        ["mad", "wide", "u32"] => Some(|a, b, c| (u64::from(a as u32) * u64::from(b as u32)).wrapping_add(c)),
        ["mad", "wide", "s32"] => {
            Some(|a, b, c| (i64::from(a as i32) * i64::from(b as i32)).wrapping_add(c as i64) as u64)
        }
        ["sad", ty] => ternary_by!(
            ty,
            ["u16" => u16, "u32" => u32, "u64" => u64, "s16" => i16, "s32" => i32, "s64" => i64],
            |a, b, c| c.wrapping_add(a.abs_diff(b) as T)
        ),
        // The 64 bits b:a shifted; a is the low word.
        ["shf", "l", "wrap", "b32"] => Some(|a, b, n| u64::from((join(a, b) << (n & 31) >> 32) as u32)),
        ["shf", "l", "clamp", "b32"] => Some(|a, b, n| u64::from((join(a, b) << (n as u32).min(32) >> 32) as u32)),
        ["shf", "r", "wrap", "b32"] => Some(|a, b, n| u64::from((join(a, b) >> (n & 31)) as u32)),
        ["shf", "r", "clamp", "b32"] => Some(|a, b, n| u64::from((join(a, b) >> (n as u32).min(32)) as u32)),
        ["prmt", "b32"] => Some(permute),
        ["bfe", "u32"] => Some(|a, at, len| extract(u64::from(a as u32), at, len)),
        ["bfe", "u64"] => Some(extract),
        ["bfe", "s32"] => Some(|a, at, len| u64::from(extract_signed(i64::from(a as i32), at, len, 31) as u32)),
        ["bfe", "s64"] => Some(|a, at, len| extract_signed(a as i64, at, len, 63) as u64),
        _ => None,
    }
}

/// a + b + carry, or a − b − borrow, and the carry or borrow out of it.
pub(super) fn extended(operation: &str, ty: &str) -> Option<(F3, F3)> {
    Some(match (operation, words(ty)?) {
        ("add", "b32") => (
            |a, b, c| u64::from((a as u32).wrapping_add(b as u32).wrapping_add(c as u32)),
            |a, b, c| (u64::from(a as u32) + u64::from(b as u32) + c) >> 32,
        ),
        ("add", "b64") => (
            |a, b, c| a.wrapping_add(b).wrapping_add(c),
            |a, b, c| ((u128::from(a) + u128::from(b) + u128::from(c)) >> 64) as u64,
        ),
        ("sub", "b32") => (
            |a, b, c| u64::from((a as u32).wrapping_sub(b as u32).wrapping_sub(c as u32)),
            |a, b, c| u64::from(u64::from(a as u32) < u64::from(b as u32) + c),
        ),
        ("sub", "b64") => (
            |a, b, c| a.wrapping_sub(b).wrapping_sub(c),
            |a, b, c| u64::from(u128::from(a) < u128::from(b) + u128::from(c)),
        ),
        _ => return None,
    })
}

/// Addition, subtraction and the low product do not depend on signs.
fn words(ty: &str) -> Option<&'static str> {
    match ty {
        "u16" | "s16" => Some("b16"),
        "u32" | "s32" => Some("b32"),
        "u64" | "s64" => Some("b64"),
        _ => None,
    }
}

fn join(low: u64, high: u64) -> u64 {
    high << 32 | u64::from(low as u32)
}

/// Each nibble of the selector names a byte of b:a; its highest bit asks for copies of that byte's sign.
fn permute(a: u64, b: u64, selector: u64) -> u64 {
    let bytes = join(a, b).to_le_bytes();
    let pick = |k: u32| {
        let nibble = selector >> (4 * k) & 15;
        let byte = bytes[(nibble & 7) as usize];
        let byte = if nibble & 8 != 0 { ((byte as i8) >> 7) as u8 } else { byte };
        u64::from(byte) << (8 * k)
    };
    (0..4).map(pick).sum()
}

/// `len` bits from position `at`; both are taken modulo 256.
fn extract(a: u64, at: u64, len: u64) -> u64 {
    let (at, len) = (at as u8 as u32, len as u8 as u32);
    let shifted = a.checked_shr(at).unwrap_or(0);
    if len < 64 { shifted & ((1 << len) - 1) } else { shifted }
}

/// The same with the sign: of the field's highest bit, or of `a` where the field reaches beyond bit `top`.
fn extract_signed(a: i64, at: u64, len: u64, top: u32) -> i64 {
    let (at, len) = (at as u8 as u32, len as u8 as u32);
    if len == 0 {
        return 0;
    }
    let sign_at = (at + len - 1).min(top);
    let sign = a >> sign_at & 1;
    let field = if at > top { 0 } else { (a >> at) as u64 };
    let kept = if at > top { 0 } else { sign_at - at + 1 };
    let mask = if kept >= 64 { u64::MAX } else { (1 << kept) - 1 };
    ((field & mask) | if sign == 1 { !mask } else { 0 }) as i64
}

/// The `len` bits from position `at`.
pub(super) fn field(at: u64, len: u64) -> u64 {
    let (at, len) = (at as u8 as u32, len as u8 as u32);
    let ones = if len < 64 { (1 << len) - 1 } else { u64::MAX };
    ones.checked_shl(at).unwrap_or(0)
}
