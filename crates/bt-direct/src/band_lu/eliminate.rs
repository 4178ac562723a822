//! The elimination of some columns from one end, by what there is for their numbers and their bandwidth.

use std::any::Any;

use bt_formats::{Numbers, Scalar, ScalarKind, c32, c64};

use super::end::End;
use super::narrow::Loops;
use super::{Tuning, vectors};
#[cfg(target_arch = "x86_64")]
use super::{panel_registers, registers, two_steps};
use crate::error::Result;
use crate::lines;

impl<T: Scalar> End<T> {
    /// Eliminates as many of the columns first..last as there are registers for, and measures the columns they reach; the first
    /// column left.
    pub(super) fn advance_in_registers(&mut self, source: Option<&[T]>, first: usize, last: usize) -> usize {
        #[cfg(target_arch = "x86_64")]
        if let (Numbers::F64(a), None) = (T::numbers(source.unwrap_or(&[])), self.found.singular) {
            let this: &mut dyn Any = self;
            if let Some(end) = this.downcast_mut() {
                return registers::eliminate(end, source.map(|_| a), first..last);
            }
        }
        first
    }

    /// Eliminates the columns first..last, a strip or panel; measures the columns they reach.
    pub(super) fn advance(&mut self, source: Option<&[T]>, first: usize, last: usize) -> Result<()> {
        self.measure(source, last + self.shape.kv())?;
        if self.found.singular.is_none() && !self.eliminate_in_vectors(source, first, last) {
            lines::dispatch::<T, _>(Strip { end: self, source, first, last });
        }
        Ok(())
    }

    /// Eliminates them in explicit vectors; false where there are none for these numbers or this shape.
    fn eliminate_in_vectors(&mut self, source: Option<&[T]>, first: usize, last: usize) -> bool {
        let this: &mut dyn Any = self;
        // Constants, so that kernels for other numbers are not compiled.
        match T::numbers(source.unwrap_or(&[])) {
            Numbers::F64(a) if const { lines::is::<T>(ScalarKind::F64) } => {
                let a = source.map(|_| a);
                this.downcast_mut().is_some_and(|end| {
                    #[cfg(target_arch = "x86_64")]
                    if two_steps::eliminate(end, a, first, last) || panel_registers::eliminate(end, a, first, last) {
                        return true;
                    }
                    vectors::eliminate::<f64>(end, a, first, last)
                })
            }
            Numbers::F32(a) if const { lines::is::<T>(ScalarKind::F32) } => {
                this.downcast_mut().is_some_and(|end| vectors::eliminate::<f32>(end, source.map(|_| a), first, last))
            }
            Numbers::C64(a) if const { lines::is::<T>(ScalarKind::C64) } => this
                .downcast_mut()
                .is_some_and(|end| vectors::eliminate_complex::<c64>(end, source.map(|_| a), first, last)),
            Numbers::C32(a) if const { lines::is::<T>(ScalarKind::C32) } => this
                .downcast_mut()
                .is_some_and(|end| vectors::eliminate_complex::<c32>(end, source.map(|_| a), first, last)),
            _ => false,
        }
    }
}

/// A strip or panel, as work for a SIMD instruction set.
struct Strip<'a, T: Scalar> {
    end: &'a mut End<T>,
    source: Option<&'a [T]>,
    first: usize,
    last: usize,
}

impl<T: Scalar> pulp::WithSimd for Strip<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, s: S) {
        // A function for each, which the compiler is done with sooner than with all in one. Vectors have kernels that come before
        // these, see [`End::eliminate_in_vectors`].
        let Tuning::Narrow { registers, .. } = self.end.tuning else {
            if const { on_avx512::<T, S>() } {
                unreachable!("panels in registers");
            }
            return self.panels(s);
        };
        if const { size_of::<S::f64s>() > size_of::<[f64; 2]>() } {
            unreachable!("strips in explicit vectors");
        }
        match registers {
            1 => lines::apart(s, Narrow::<_, 1>(self)),
            2 => lines::apart(s, Narrow::<_, 2>(self)),
            _ => lines::apart(s, Narrow::<_, 4>(self)),
        }
    }
}

/// Whether there is `panel_registers.rs`.
const fn on_avx512<T: Scalar, S: pulp::Simd>() -> bool {
    cfg!(target_arch = "x86_64") && lines::is::<T>(ScalarKind::F64) && size_of::<S::f64s>() == size_of::<[f64; 8]>()
}

/// A strip of a narrow band, in windows of V vectors.
struct Narrow<'a, T: Scalar, const V: usize>(Strip<'a, T>);

impl<T: Scalar, const V: usize> pulp::WithSimd for Narrow<'_, T, V> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Strip { end, source, first, last } = self.0;
        if S::IS_SCALAR || cfg!(target_family = "wasm") {
            end.eliminate_strip::<V>(Loops::<false>, source, first, last);
        } else {
            end.eliminate_strip::<V>(Loops::<true>, source, first, last);
        }
    }
}

impl<T: Scalar> Strip<'_, T> {
    #[inline(always)]
    fn panels<S: pulp::Simd>(self, s: S) {
        if S::IS_SCALAR || cfg!(target_family = "wasm") { self.panel::<false, S>(s) } else { self.panel::<true, S>(s) }
    }

    #[inline(always)]
    fn panel<const FUSED: bool, S: pulp::Simd>(self, s: S) {
        let Self { end, source, first, last } = self;
        end.eliminate_panel::<FUSED, S, _>(s, Loops::<FUSED>, source.unwrap_or_default(), first, last);
        end.finish_columns(first, last);
    }
}
