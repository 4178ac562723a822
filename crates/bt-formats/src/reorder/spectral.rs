//! p
use crate::{Csr,Permutation,Result,Scalar};
pub fn spectral<T:Scalar>(_a:&Csr<T>)->Result<Permutation>{todo!()}
