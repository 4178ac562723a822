//! Floating-point arithmetic (PTX ISA 6.3, section 9.7.3) in the one rounding that is supported: to nearest even.
//!
//! The host's arithmetic is IEEE 754's, as the device's is for these instructions. What is approximate on the device, and
//! `.ftz`, `.sat` and the directed roundings, are refused when the module is loaded.
// The closures of these tables are instantiated for several types.
#![allow(clippy::redundant_closure_for_method_calls)]

use super::number::{binary_by, ternary_by, unary_by};
use crate::op::{F1, F2, F3, Precision};

/// The precision of an instruction that counts as floating-point operations.
pub(super) fn counted(opcode: &[&str]) -> Option<Precision> {
    let precision = match opcode.last() {
        Some(&"f32") => Precision::Single,
        Some(&"f64") => Precision::Double,
        _ => return None,
    };
    matches!(opcode[0], "add" | "sub" | "mul" | "fma" | "mad" | "div" | "sqrt" | "rcp").then_some(precision)
}

pub(super) fn unary(opcode: &[&str]) -> Option<F1> {
    match *opcode {
        ["neg", ty] => unary_by!(ty, ["f32" => f32, "f64" => f64], |a| -a),
        ["abs", ty] => unary_by!(ty, ["f32" => f32, "f64" => f64], |a| a.abs()),
        ["sqrt", "rn", ty] => unary_by!(ty, ["f32" => f32, "f64" => f64], |a| a.sqrt()),
        ["rcp", "rn", ty] => unary_by!(ty, ["f32" => f32, "f64" => f64], |a| 1.0 as T / a),
        ["testp", test, ty] => match test {
            "finite" => unary_by!(ty, ["f32" => f32, "f64" => f64], |a| a.is_finite()),
            "infinite" => unary_by!(ty, ["f32" => f32, "f64" => f64], |a| a.is_infinite()),
            "number" => unary_by!(ty, ["f32" => f32, "f64" => f64], |a| !a.is_nan()),
            "notanumber" => unary_by!(ty, ["f32" => f32, "f64" => f64], |a| a.is_nan()),
            "normal" => unary_by!(ty, ["f32" => f32, "f64" => f64], |a| a.is_normal()),
            "subnormal" => unary_by!(ty, ["f32" => f32, "f64" => f64], |a| a.is_subnormal()),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn binary(opcode: &[&str]) -> Option<F2> {
    match *opcode {
        ["add", ty] | ["add", "rn", ty] => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| a + b),
        ["sub", ty] | ["sub", "rn", ty] => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| a - b),
        ["mul", ty] | ["mul", "rn", ty] => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| a * b),
        ["div", "rn", ty] => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| a / b),
        // The number where one operand is NaN; −0 is below +0.
        ["min", ty] => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| {
            if b.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }
        }),
        ["max", ty] => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| {
            if b.is_nan() || a > b || (a == b && a.is_sign_positive()) { a } else { b }
        }),
        // The sign of a with the magnitude of b.
        ["copysign", ty] => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| b.copysign(a)),
        _ => None,
    }
}

pub(super) fn ternary(opcode: &[&str]) -> Option<F3> {
    match *opcode {
        ["fma" | "mad", "rn", ty] => ternary_by!(ty, ["f32" => f32, "f64" => f64], |a, b, c| a.mul_add(b, c)),
        _ => None,
    }
}
