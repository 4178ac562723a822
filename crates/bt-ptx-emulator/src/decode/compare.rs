//! Comparisons (PTX ISA 6.3, section 9.7.5): the relation of `setp`, `set` and the condition of `slct`.

use super::number::binary_by;
use crate::op::F2;

macro_rules! ordered {
    ($ty:expr, |$a:ident, $b:ident| $body:expr) => {
        binary_by!(
            $ty,
            [
                "u16" => u16, "u32" => u32, "u64" => u64, "s16" => i16, "s32" => i32, "s64" => i64, "f32" => f32,
                "f64" => f64
            ],
            |$a, $b| $body
        )
    };
}
/// a `relation` b as a predicate. Ordered relations of floats are false with a NaN, those that end in `u` are true.
pub(super) fn compare(relation: &str, ty: &str) -> Option<F2> {
    match relation {
        "eq" => match ty {
            "f32" | "f64" => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| a == b),
            _ => bits(ty).and_then(|ty| binary_by!(ty, ["16" => u16, "32" => u32, "64" => u64], |a, b| a == b)),
        },
        // Ordered: unequal numbers.
        "ne" => match ty {
            "f32" | "f64" => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| a != b && !a.is_nan() && !b.is_nan()),
            _ => bits(ty).and_then(|ty| binary_by!(ty, ["16" => u16, "32" => u32, "64" => u64], |a, b| a != b)),
        },
        "lt" => ordered!(ty, |a, b| a < b),
        "le" => ordered!(ty, |a, b| a <= b),
        "gt" => ordered!(ty, |a, b| a > b),
        "ge" => ordered!(ty, |a, b| a >= b),
        "lo" => binary_by!(ty, ["u16" => u16, "u32" => u32, "u64" => u64], |a, b| a < b),
        "ls" => binary_by!(ty, ["u16" => u16, "u32" => u32, "u64" => u64], |a, b| a <= b),
        "hi" => binary_by!(ty, ["u16" => u16, "u32" => u32, "u64" => u64], |a, b| a > b),
        "hs" => binary_by!(ty, ["u16" => u16, "u32" => u32, "u64" => u64], |a, b| a >= b),
        "equ" => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| a == b || a.is_nan() || b.is_nan()),
        "neu" => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| a != b),
        "ltu" => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| !(a >= b)),
        "leu" => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| !(a > b)),
        "gtu" => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| !(a <= b)),
        "geu" => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| !(a < b)),
        "num" => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| !a.is_nan() && !b.is_nan()),
        "nan" => binary_by!(ty, ["f32" => f32, "f64" => f64], |a, b| a.is_nan() || b.is_nan()),
        _ => None,
    }
}

/// Equality of integers looks at bits only.
fn bits(ty: &str) -> Option<&'static str> {
    match ty {
        "b16" | "u16" | "s16" => Some("16"),
        "b32" | "u32" | "s32" => Some("32"),
        "b64" | "u64" | "s64" => Some("64"),
        _ => None,
    }
}

/// How `setp` and `set` join a comparison with a predicate.
pub(super) fn join(name: &str) -> Option<F2> {
    Some(match name {
        "and" => |a, b| a & b,
        "or" => |a, b| a | b,
        "xor" => |a, b| a ^ b,
        _ => return None,
    })
}
