//! Other libraries' matrices: what goes out comes back, and what is malformed is refused.

use bt_formats::{Coo, Csr, LinearOperator, Matrix, Scalar, c32, c64, interop};

fn sample<T: Scalar>() -> Csr<T> {
    let mut a = Coo::new(4, 5).unwrap();
    for (i, j, v) in [(0, 4, 1.0), (0, 1, -2.0), (2, 0, 3.0), (2, 3, 4.5), (3, 2, -1.0)] {
        a.push(i, j, T::rounded(v, v + 1.0)).unwrap();
    }
    a.to_csr().unwrap()
}

fn round_trips<T: Scalar>() {
    let a = sample::<T>();
    let view = interop::sprs_view(&a).unwrap();
    assert_eq!((view.rows(), view.cols(), view.nnz()), (4, 5, a.nnz()));
    assert!(std::ptr::eq(view.data(), a.values()), "a view must not copy");
    let values = a.values().as_ptr();
    let sprs = interop::into_sprs(a.clone()).unwrap();
    assert_eq!(interop::from_sprs(sprs.clone()).unwrap(), a);
    assert_eq!(interop::copy_sprs(sprs.view()).unwrap(), a);
    // Taken over: the same memory comes back.
    let there_and_back = interop::from_sprs(interop::into_sprs(a).unwrap()).unwrap();
    assert_eq!(there_and_back.values().as_ptr(), values);

    let a = sample::<T>();
    let faer = interop::faer_view(&a);
    assert!(std::ptr::eq(faer.val(), a.values()), "a view must not copy");
    let columns = faer.to_col_major().unwrap();
    assert_eq!(interop::copy_faer_columns(columns.as_ref()).unwrap(), a);
    let rows = columns.to_row_major().unwrap();
    let values = rows.val().as_ptr();
    let back = interop::from_faer(rows).unwrap();
    assert_eq!(back, a);
    assert_eq!(back.values().as_ptr(), values, "sorted rows are taken over");
}

#[test]
fn round_trips_in_all_scalars() {
    round_trips::<f32>();
    round_trips::<f64>();
    round_trips::<c32>();
    round_trips::<c64>();
}

#[test]
fn sprs_by_columns_is_transposed() {
    let a = sample::<f64>();
    let by_columns = interop::into_sprs(a.transpose()).unwrap().transpose_into();
    assert!(by_columns.is_csc());
    assert_eq!(interop::copy_sprs(by_columns.view()).unwrap(), a);
    assert_eq!(interop::from_sprs(by_columns).unwrap(), a);
}

#[test]
fn sprs_slices_with_shifted_pointers_are_copied() {
    let a = sample::<f64>();
    let view = interop::sprs_view(&a).unwrap();
    let rows = view.slice_outer(2..4);
    let b = interop::copy_sprs(rows).unwrap();
    assert_eq!((b.nrows(), b.get(0, 3), b.get(1, 2)), (2, 4.5, -1.0));
}

#[test]
fn faer_columns_in_any_order_are_rows() {
    use faer::sparse::{SparseColMat, SymbolicSparseColMat};
    let columns = |counts, rows| {
        let pattern = SymbolicSparseColMat::<usize>::new_unsorted_checked(3, 2, vec![0, 3, 4], counts, rows);
        interop::copy_faer_columns(SparseColMat::new(pattern, vec![1.0, 2.0, 3.0, 4.0]).as_ref()).unwrap()
    };
    // [ 2   ]
    // [   4 ]
    // [ 1   ]
    let expected = Csr::new(3, 2, vec![0, 1, 2, 3], vec![0, 1, 0], vec![2.0, 4.0, 1.0]).unwrap();
    // Room for one more entry in the first column.
    assert_eq!(columns(Some(vec![2, 1]), vec![2, 0, 1, 1]), expected);
    let sorted = Csr::new(3, 2, vec![0, 1, 3, 4], vec![0, 0, 1, 0], vec![1.0, 2.0, 4.0, 3.0]).unwrap();
    assert_eq!(columns(None, vec![0, 1, 2, 1]), sorted);
}

#[test]
fn unsorted_faer_rows_are_sorted() {
    use faer::sparse::{SparseRowMat, SymbolicSparseRowMat};
    let pattern = SymbolicSparseRowMat::<u32>::new_unsorted_checked(2, 3, vec![0, 2, 3], None, vec![2, 0, 1]);
    let a = interop::from_faer(SparseRowMat::new(pattern, vec![1.0, 2.0, 3.0])).unwrap();
    assert_eq!(a, Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![2.0, 1.0, 3.0]).unwrap());
}

#[cfg(feature = "nalgebra-sparse")]
#[test]
fn nalgebra_round_trip() {
    let a = sample::<f64>();
    let n = interop::to_nalgebra(&a).unwrap();
    assert_eq!(n.get_entry(2, 3).unwrap().into_value(), 4.5);
    assert_eq!(interop::copy_nalgebra(&n).unwrap(), a);
    let by_columns = nalgebra_sparse::CscMatrix::from(&n);
    assert_eq!(interop::copy_nalgebra_columns(&by_columns).unwrap(), a);
    let dense = nalgebra_sparse::na::DMatrix::from(&n);
    assert_eq!(interop::nalgebra_view(&dense), a.to_dense());
}
