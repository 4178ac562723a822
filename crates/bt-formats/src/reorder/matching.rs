//! p
use crate::{Csr,Permutation,Result,Scalar};
pub struct Matching;pub struct StructuralDeficiency;
pub fn maximum_product_matching<T:Scalar>(_a:&Csr<T>)->Result<Permutation>{todo!()}
