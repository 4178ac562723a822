//! Work compiled once, here, for each of the four scalars: a generic function would be compiled again, with every method in it, by
//! every crate that solves.

/// A generic function on matrices of T, by way of a function that is not generic for each scalar. The matrices come first.
macro_rules! by_scalar {
    ($function:ident($($matrix:ident: $Matrix:ident),+; $($rest:ident: $Rest:ty),+) -> $Made:ident) => {{
        by_scalar!(@f32 $function($($matrix: $Matrix),+; $($rest: $Rest),+) -> $Made);
        by_scalar!(@f64 $function($($matrix: $Matrix),+; $($rest: $Rest),+) -> $Made);
        by_scalar!(@c32 $function($($matrix: $Matrix),+; $($rest: $Rest),+) -> $Made);
        by_scalar!(@c64 $function($($matrix: $Matrix),+; $($rest: $Rest),+) -> $Made);
        unreachable!("there are four scalars")
    }};
    (@$scalar:ident $function:ident($($matrix:ident: $Matrix:ident),+; $($rest:ident: $Rest:ty),+) -> $Made:ident) => {{
        fn compiled($($matrix: &$Matrix<$scalar>,)+ $($rest: $Rest),+) -> Result<$Made<$scalar>, Error> {
            $function($($matrix,)+ $($rest),+)
        }
        if let ($(Some($matrix),)+) = ($(($matrix as &dyn std::any::Any).downcast_ref(),)+) {
            let made: Box<dyn std::any::Any> = Box::new(compiled($($matrix,)+ $($rest),+)?);
            return Ok(*made.downcast().expect("what was made is of the same scalar"));
        }
    }};
}

pub(crate) use by_scalar;
