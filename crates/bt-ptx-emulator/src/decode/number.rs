//! Numbers in slots: how each PTX type reads and writes the 64 bits of a register.

/// A type that lives in a slot, zero above its own bits.
pub(super) trait Bits: Copy {
    fn of(slot: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! integers {
    ($($t:ty as $u:ty),*) => {$(
        impl Bits for $t {
            fn of(slot: u64) -> Self {
                slot as Self
            }
            fn bits(self) -> u64 {
                self as $u as u64
            }
        }
    )*};
}

integers!(u8 as u8, u16 as u16, u32 as u32, u64 as u64, i8 as u16, i16 as u16, i32 as u32, i64 as u64);

impl Bits for f32 {
    fn of(slot: u64) -> Self {
        Self::from_bits(slot as u32)
    }
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Bits for f64 {
    fn of(slot: u64) -> Self {
        Self::from_bits(slot)
    }
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

impl Bits for bool {
    fn of(slot: u64) -> Self {
        slot == 1
    }
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

pub(super) fn unary<T: Bits, R: Bits>(a: u64, f: impl Fn(T) -> R) -> u64 {
    f(T::of(a)).bits()
}

pub(super) fn binary<T: Bits, R: Bits>(a: u64, b: u64, f: impl Fn(T, T) -> R) -> u64 {
    f(T::of(a), T::of(b)).bits()
}

pub(super) fn ternary<T: Bits, R: Bits>(a: u64, b: u64, c: u64, f: impl Fn(T, T, T) -> R) -> u64 {
    f(T::of(a), T::of(b), T::of(c)).bits()
}

/// Functions of slots from one of values of type `T`, for the PTX type of the list that is `$name`.
macro_rules! unary_by {
    ($name:expr, [$($ptx:literal => $t:ty),*], $f:expr) => {
        match $name {
            $($ptx => {
                #[allow(dead_code)]
                type T = $t;
                Some((|a| $crate::decode::number::unary::<T, _>(a, $f)) as $crate::op::F1)
            })*
            _ => None,
        }
    };
}

macro_rules! binary_by {
    ($name:expr, [$($ptx:literal => $t:ty),*], $f:expr) => {
        match $name {
            $($ptx => {
                #[allow(dead_code)]
                type T = $t;
                Some((|a, b| $crate::decode::number::binary::<T, _>(a, b, $f)) as $crate::op::F2)
            })*
            _ => None,
        }
    };
}

macro_rules! ternary_by {
    ($name:expr, [$($ptx:literal => $t:ty),*], $f:expr) => {
        match $name {
            $($ptx => {
                #[allow(dead_code)]
                type T = $t;
                Some((|a, b, c| $crate::decode::number::ternary::<T, _>(a, b, c, $f)) as $crate::op::F3)
            })*
            _ => None,
        }
    };
}

pub(super) use {binary_by, ternary_by, unary_by};
