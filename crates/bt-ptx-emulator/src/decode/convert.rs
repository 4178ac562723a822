//! `cvt` and `cvta` (PTX ISA 6.3, section 9.7.8).

use super::number::Bits;
use crate::memory::{LOCAL_WINDOW, SHARED_WINDOW, WINDOWS};
use crate::op::F1;

/// Integer types that `cvt` knows.
trait Integer: Bits {
    fn wide(self) -> i128;
    fn narrow(wide: i128) -> Self;
    fn to_f64(self) -> f64;
    fn to_f32(self) -> f32;
    /// Saturating; zero for NaN.
    fn from_f64(x: f64) -> Self;
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Integer for $t {
            fn wide(self) -> i128 {
                self as i128
            }
            fn narrow(wide: i128) -> Self {
                wide as Self
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn to_f32(self) -> f32 {
                self as f32
            }
            fn from_f64(x: f64) -> Self {
                x as Self
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! by_integer {
    ($ty:expr, $f:ident $(, $more:ty)*) => {
        Some(match $ty {
            "u8" => $f::<u8 $(, $more)*> as F1,
            "u16" => $f::<u16 $(, $more)*>,
            "u32" => $f::<u32 $(, $more)*>,
            "u64" => $f::<u64 $(, $more)*>,
            "s8" => $f::<i8 $(, $more)*>,
            "s16" => $f::<i16 $(, $more)*>,
            "s32" => $f::<i32 $(, $more)*>,
            "s64" => $f::<i64 $(, $more)*>,
            _ => return None,
        })
    };
}

/// `cvt`, from what stands behind its first dot.
pub(super) fn convert(opcode: &[&str]) -> Option<F1> {
    match *opcode {
        ["f64", "f32"] => Some(|a| f64::from(f32::of(a)).bits()),
        ["rn", "f32", "f64"] => Some(|a| (f64::of(a) as f32).bits()),
        ["f32", "f32"] | ["f64", "f64"] => Some(|a| a),
        ["rni", "f32", "f32"] => Some(|a| f32::of(a).round_ties_even().bits()),
        ["rzi", "f32", "f32"] => Some(|a| f32::of(a).trunc().bits()),
        ["rmi", "f32", "f32"] => Some(|a| f32::of(a).floor().bits()),
        ["rpi", "f32", "f32"] => Some(|a| f32::of(a).ceil().bits()),
        ["rni", "f64", "f64"] => Some(|a| f64::of(a).round_ties_even().bits()),
        ["rzi", "f64", "f64"] => Some(|a| f64::of(a).trunc().bits()),
        ["rmi", "f64", "f64"] => Some(|a| f64::of(a).floor().bits()),
        ["rpi", "f64", "f64"] => Some(|a| f64::of(a).ceil().bits()),
        ["rn", "f64", from] => by_integer!(from, to_double),
        ["rn", "f32", from] => by_integer!(from, to_single),
        // An f32 is an f64 exactly, and so are its roundings to integers.
        ["rni", to, "f64"] => by_integer!(to, nearest, Double),
        ["rzi", to, "f64"] => by_integer!(to, towards_zero, Double),
        ["rmi", to, "f64"] => by_integer!(to, down, Double),
        ["rpi", to, "f64"] => by_integer!(to, up, Double),
        ["rni", to, "f32"] => by_integer!(to, nearest, Single),
        ["rzi", to, "f32"] => by_integer!(to, towards_zero, Single),
        ["rmi", to, "f32"] => by_integer!(to, down, Single),
        ["rpi", to, "f32"] => by_integer!(to, up, Single),
        [to, "u8"] => by_integer!(to, cast, u8),
        [to, "u16"] => by_integer!(to, cast, u16),
        [to, "u32"] => by_integer!(to, cast, u32),
        [to, "u64"] => by_integer!(to, cast, u64),
        [to, "s8"] => by_integer!(to, cast, i8),
        [to, "s16"] => by_integer!(to, cast, i16),
        [to, "s32"] => by_integer!(to, cast, i32),
        [to, "s64"] => by_integer!(to, cast, i64),
        _ => None,
    }
}

fn cast<To: Integer, From: Integer>(a: u64) -> u64 {
    To::narrow(From::of(a).wide()).bits()
}

fn to_double<From: Integer>(a: u64) -> u64 {
    From::of(a).to_f64().bits()
}

fn to_single<From: Integer>(a: u64) -> u64 {
    From::of(a).to_f32().bits()
}

struct Single;
struct Double;

trait Real {
    fn value(slot: u64) -> f64;
}

impl Real for Single {
    fn value(slot: u64) -> f64 {
        f64::from(f32::of(slot))
    }
}

impl Real for Double {
    fn value(slot: u64) -> f64 {
        f64::of(slot)
    }
}

fn nearest<To: Integer, From: Real>(a: u64) -> u64 {
    To::from_f64(From::value(a).round_ties_even()).bits()
}

fn towards_zero<To: Integer, From: Real>(a: u64) -> u64 {
    To::from_f64(From::value(a)).bits()
}

fn down<To: Integer, From: Real>(a: u64) -> u64 {
    To::from_f64(From::value(a).floor()).bits()
}

fn up<To: Integer, From: Real>(a: u64) -> u64 {
    To::from_f64(From::value(a).ceil()).bits()
}

/// `cvta.space.u64`, `cvta.to.space.u64` and `isspacep.space`; global and constant addresses are generic ones already.
pub(super) fn address(opcode: &[&str]) -> Option<F1> {
    Some(match *opcode {
        ["cvta", "global" | "const", "u64"] | ["cvta", "to", "global" | "const", "u64"] => |a| a,
        ["cvta", "shared", "u64"] => |a| a | SHARED_WINDOW,
        ["cvta", "local", "u64"] => |a| a | LOCAL_WINDOW,
        // Of an address outside the window something stays that no bounds check accepts.
        ["cvta", "to", "shared", "u64"] => |a| a ^ SHARED_WINDOW,
        ["cvta", "to", "local", "u64"] => |a| a ^ LOCAL_WINDOW,
        ["isspacep", "global"] => |a| u64::from(a & WINDOWS == 0),
        ["isspacep", "shared"] => |a| u64::from(a & WINDOWS == SHARED_WINDOW),
        ["isspacep", "local"] => |a| u64::from(a & WINDOWS == LOCAL_WINDOW),
        _ => return None,
    })
}
