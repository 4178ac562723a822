//! The drivers of four scalars behind one trait: ours, and LAPACK's where it can be loaded.

use std::ffi::c_char;
use std::sync::OnceLock;

use blocktri::faer::Mat;
use blocktri::{Scalar, c32, c64};
use blocktri_c::lapack as ours;
use libloading::Library;

pub type Gbsv<T> = unsafe extern "C" fn(
    *const i32,
    *const i32,
    *const i32,
    *const i32,
    *mut T,
    *const i32,
    *mut i32,
    *mut T,
    *const i32,
    *mut i32,
);
pub type Gtsv<T> = unsafe extern "C" fn(*const i32, *const i32, *mut T, *mut T, *mut T, *mut T, *const i32, *mut i32);
pub type Pbsv<T> = unsafe extern "C" fn(
    *const c_char,
    *const i32,
    *const i32,
    *const i32,
    *mut T,
    *const i32,
    *mut T,
    *const i32,
    *mut i32,
);

/// The three drivers of a scalar.
#[derive(Clone, Copy)]
pub struct Drivers<T> {
    pub gbsv: Gbsv<T>,
    pub gtsv: Gtsv<T>,
    pub pbsv: Pbsv<T>,
}

/// A scalar of LAPACK.
pub trait Lapack: Scalar {
    const LETTER: char;
    const OURS: Drivers<Self>;
}

macro_rules! lapack {
    ($scalar:ty, $letter:literal, $gbsv:ident, $gtsv:ident, $pbsv:ident) => {
        impl Lapack for $scalar {
            const LETTER: char = $letter;
            const OURS: Drivers<Self> = Drivers { gbsv: ours::$gbsv, gtsv: ours::$gtsv, pbsv: ours::$pbsv };
        }
    };
}
lapack!(f64, 'd', blocktri_dgbsv, blocktri_dgtsv, blocktri_dpbsv);
lapack!(f32, 's', blocktri_sgbsv, blocktri_sgtsv, blocktri_spbsv);
lapack!(c64, 'z', blocktri_zgbsv, blocktri_zgtsv, blocktri_zpbsv);
lapack!(c32, 'c', blocktri_cgbsv, blocktri_cgtsv, blocktri_cpbsv);

/// LAPACK's own; `None` where it cannot be loaded, which is said once.
pub fn reference<T: Lapack>() -> Option<Drivers<T>> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        // SAFETY: LAPACK has no initializers that could do harm.
        let found = unsafe { Library::new("liblapack.so.3") }.ok();
        if found.is_none() {
            println!("skipped: liblapack.so.3 cannot be loaded, nothing is compared with it");
        }
        found
    });
    let library = library.as_ref()?;
    let name = |rest: &str| format!("{}{rest}_\0", T::LETTER);
    // SAFETY: the names are those of these drivers.
    unsafe {
        Some(Drivers {
            gbsv: *library.get(name("gbsv").as_bytes()).expect("gbsv"),
            gtsv: *library.get(name("gtsv").as_bytes()).expect("gtsv"),
            pbsv: *library.get(name("pbsv").as_bytes()).expect("pbsv"),
        })
    }
}

/// Columns `ld` apart, as C has them; what lies between is NaN and must stay.
pub fn flat<T: Scalar>(a: &Mat<T>, ld: usize) -> Vec<T> {
    let mut flat = vec![T::nan_impl(); ld * a.ncols()];
    for j in 0..a.ncols() {
        flat[j * ld..j * ld + a.nrows()].copy_from_slice(a.col_as_slice(j));
    }
    flat
}

/// The columns back.
pub fn columns<T: Scalar>(flat: &[T], nrows: usize, ncols: usize, ld: usize) -> Mat<T> {
    for (j, column) in flat.chunks(ld.max(1)).enumerate().take(ncols) {
        assert!(column[nrows..].iter().all(|v| v.re() != v.re()), "column {j}: written beside the matrix");
    }
    Mat::from_fn(nrows, ncols, |i, j| flat[j * ld + i])
}
