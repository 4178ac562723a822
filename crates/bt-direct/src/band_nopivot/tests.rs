//! The ways through elimination against one another.

use super::*;
use crate::band_lu::tests::fill_room;
use bt_formats::c64;

/// A random band with this diagonal, then the entry `odd` in its place.
fn band<T: Scalar>(n: usize, kl: usize, ku: usize, diagonal: f64, odd: Option<(usize, usize, f64)>) -> Band<T> {
    let mut a = Band::zeros(n, kl, ku).unwrap();
    let mut state = 1u64;
    for j in 0..n {
        for i in a.column_range(j) {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let v = (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            *a.get_mut(i, j) = T::rounded(if i == j { diagonal + v } else { v }, v / 3.0);
        }
    }
    if let Some((i, j, v)) = odd {
        *a.get_mut(i, j) = T::rounded(v, 0.0);
    }
    a
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Chosen,
    Window,
    Panels,
    Columns,
    /// The way that is chosen, A by rows.
    Rows,
}

/// The columns of L and U, wherever they lie.
fn columns<T: Scalar>(lu: &mut BandLuNoPivot<T>) -> Vec<Vec<T>> {
    (0..lu.n).map(|j| lu.split(j, lu.rows_of(j)).concat()).collect()
}

/// In registers or by groups, in the window, by panels and column by column: the same bits, the same place where it goes wrong.
fn same<T: Scalar>(a: &Band<T>, boosting: Option<Boosting>) -> Result<()> {
    let (n, kl, ku) = (a.n(), a.kl(), a.ku());
    let factored = |kind: Kind| {
        let chosen = matches!(kind, Kind::Chosen | Kind::Rows);
        let storage = (!chosen).then(|| Storage::zeros(n, kl, ku).unwrap());
        let mut lu = BandLuNoPivot::allocate(n, kl, ku, storage, boosting).unwrap();
        lu.way = match kind {
            Kind::Chosen | Kind::Rows => lu.way,
            Kind::Window => Way::Window(window::Workspace::new(kl, ku).unwrap().unwrap()),
            Kind::Panels => Way::Panels(zeros(panels::scratch(kl, ku)).unwrap()),
            Kind::Columns => Way::Columns,
        };
        let outcome = match kind {
            Kind::Rows => Factorization::refactor(&mut lu, (&a.to_csr().unwrap()).into(), &mut ()),
            _ => lu.refactor(a),
        };
        let message = outcome.as_ref().map_err(ToString::to_string).copied();
        let FactorStats { norm_one, growth, min_pivot, boosted_pivots, .. } = lu.stats;
        ((message, norm_one, growth, min_pivot, boosted_pivots), columns(&mut lu), outcome)
    };
    let window = factored(Kind::Window);
    // Single precision fuses products in panels only.
    let panels = (T::Real::EPSILON.to_f64() < 1e-10 && kl.min(ku) >= 32).then(|| factored(Kind::Panels));
    for other in panels.into_iter().chain([Kind::Columns, Kind::Chosen, Kind::Rows].map(factored)) {
        assert_eq!(window.0.0, other.0.0, "{n} {kl} {ku}");
        if window.2.is_ok() {
            // The norm is summed in another order.
            assert!((window.0.1 - other.0.1).abs() <= 1e-6 * other.0.1);
            assert_eq!((window.0.2, window.0.3, window.0.4), (other.0.2, other.0.3, other.0.4), "{n} {kl} {ku}");
            assert!(window.1 == other.1, "{n} {kl} {ku}");
        }
    }
    window.2
}

const SHAPES: [(usize, usize, usize); 22] = [
    (1, 0, 0),
    (7, 1, 1),
    (8, 2, 1),
    (9, 8, 8),
    (20, 0, 3),
    (21, 3, 0),
    (40, 1, 1),
    (41, 7, 8),
    (64, 8, 7),
    (65, 9, 1),
    (66, 1, 9),
    (100, 16, 16),
    (101, 15, 17),
    (77, 24, 5),
    (33, 32, 32),
    (150, 32, 32),
    (151, 33, 47),
    (149, 60, 34),
    (40, 39, 39),
    (2000, 2, 3),
    (2100, 17, 17),
    (5, 4, 4),
];

#[test]
fn all_ways_make_the_same_factors() {
    for (n, kl, ku) in SHAPES {
        for diagonal in [100.0, 2.0] {
            for boosting in [None, Some(Boosting { zero: 1e-2, eps: 0.3 })] {
                let _ = same(&band::<f64>(n, kl, ku, diagonal, None), boosting);
                let _ = same(&band::<c64>(n, kl, ku, diagonal, None), boosting);
                let _ = same(&band::<f32>(n, kl, ku, diagonal, None), boosting);
            }
        }
    }
}

#[test]
fn all_ways_go_wrong_in_the_same_place() {
    let reason = |a: &Band<f64>| same(a, None).unwrap_err().to_string();
    for (n, kl, ku) in SHAPES.into_iter().filter(|s| s.0 > 9 && s.1 > 0 && s.2 > 0) {
        for j in [0, 3, 8, n / 2, n - 2, n - 1] {
            // The first pivot is a matrix entry; later ones are small, and rows grow.
            let zero_pivot = band::<f64>(n, kl, ku, 100.0, Some((0, 0, 0.0)));
            assert!(reason(&zero_pivot).contains("row 0"));
            if j > 0 {
                let a = band::<f64>(n, kl, ku, 100.0, Some((j, j, 1e-12)));
                let _ = same(&a, None);
                let _ = same(&a, Some(Boosting { zero: 1e-2, eps: 0.3 }));
            }
            let a = band::<f64>(n, kl, ku, 100.0, Some((j, j.saturating_sub(1), f64::NAN)));
            assert!(
                matches!(same(&a, None), Err(FactorError::Input(bt_formats::Error::NonFinite { row, .. })) if row == j)
            );
            // Overflow has no row.
            let a = band::<f64>(n, kl, ku, 1e155, Some((j.max(1) - 1, j.max(1), 1e300)));
            let _ = same(&a, None);
            let mut a = band::<f64>(n, kl, ku, 1.0, Some((j.max(1) - 1, j.max(1), 1e300)));
            *a.get_mut(j.max(1), j.max(1) - 1) = 1e300;
            assert!(same(&a, None).is_err());
            // An entry that is not finite is named whatever goes wrong before it.
            let mut a = zero_pivot;
            *a.get_mut(j, j.max(1) - 1) = f64::INFINITY;
            assert!(
                matches!(same(&a, None), Err(FactorError::Input(bt_formats::Error::NonFinite { row, .. })) if row == j)
            );
        }
    }
}

/// Bands with more columns than there are between two reports.
const LONG: [(usize, usize, usize); 8] = [
    (23_000, 1, 1),
    (21_000, 2, 1),
    (7_500, 4, 5),
    (3_000, 8, 8),
    (1_700, 8, 15),
    (1_300, 18, 20),
    (2_501, 9, 8),
    (500, 41, 23),
];

#[test]
fn strips_hand_over_to_one_another() {
    for (n, kl, ku) in LONG {
        assert!(n > WORK_BETWEEN_REPORTS / (kl * ku + 8));
        let reason = |a: &Band<f64>, boosting| same(a, boosting).err().map(|e| e.to_string());
        // Held against the row of A next to it, a row would grow.
        let mut dominant = band(n, kl, ku, 100.0, None);
        for j in 0..n {
            for i in dominant.column_range(j).filter(|i| i % 2 == 1) {
                *dominant.get_mut(i, j) *= 1e-12;
            }
        }
        assert_eq!(reason(&dominant, None), None);
        assert_eq!(reason(&band(n, kl, ku, 2.0, None), Some(Boosting { zero: 1e-2, eps: 0.3 })), None);
        let mut late = dominant;
        *late.get_mut(n - 1, n - 1) = f64::INFINITY;
        assert!(reason(&late, None).unwrap().contains(&format!("row {}", n - 1)));
    }
}

/// Values of the storage that are none of the matrix do not matter.
#[test]
fn in_place_the_factors_are_the_same() {
    for (n, kl, ku) in SHAPES.into_iter().chain(LONG) {
        let a = band::<f64>(n, kl, ku, 100.0, None);
        let mut surrounded = a.clone();
        fill_room(&mut surrounded, f64::NAN);
        for boosting in [None, Some(Boosting { zero: 1e-2, eps: 0.3 })] {
            let mut copied = BandLuNoPivot::with_options(&surrounded, boosting, &mut ()).unwrap();
            let mut in_place = BandLuNoPivot::from_band(surrounded.clone(), boosting).unwrap();
            let expected = (columns(&mut in_place), in_place.stats.growth);
            let same = |copied: &mut BandLuNoPivot<f64>| (columns(copied), copied.stats.growth) == expected;
            assert!(same(&mut copied), "{n} {kl} {ku}");
            copied.refactor(&a).unwrap();
            assert!(same(&mut copied), "{n} {kl} {ku}");
            // In place without room between the columns.
            let mut filled = BandLuNoPivot::empty(n, kl, ku, boosting).unwrap();
            filled.values.fill(f64::NAN);
            let column = |j: usize, rows: Range<usize>, out: &mut [f64]| {
                out.copy_from_slice(&a.values()[j * a.ldab() + kl + ku + rows.start - j..][..rows.len()]);
            };
            filled.refactor_from(column, &mut ()).unwrap();
            assert!(same(&mut filled), "{n} {kl} {ku}");
        }
    }
}
