//! One system by `bt-direct` alone.

use bt_direct::{BandLu, Factorization};
use bt_formats::Csr;

fn main() {
    // [ 2 1   ]
    // [ 1 3 1 ] · (1, 1, 1)ᵀ = (3, 5, 5)ᵀ
    // [   1 4 ]
    let coordinates = [(0, 0, 2.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 3.0), (1, 2, 1.0), (2, 1, 1.0), (2, 2, 4.0)];
    let mut coo = bt_formats::Coo::new(3, 3).expect("a shape");
    for (i, j, v) in coordinates {
        coo.push(i, j, v).expect("an entry in the matrix");
    }
    let a: Csr<f64> = coo.to_csr().expect("a matrix");
    let lu = BandLu::new(&bt_formats::Band::from_csr(&a).expect("a band")).expect("factors");
    let mut x = [3.0, 5.0, 5.0];
    lu.solve_vec_in_place(&mut x);
    assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-15), "{x:?}");
    println!("x = {x:?}");
}
