//! Every way through elimination, on matrices small enough for many.

use super::source::Source;
use super::*;
use bt_formats::{LinearOperator, c32, c64};
use proptest::prelude::*;

fn random<T: Scalar>(n: usize, kl: usize, ku: usize, seed: u64) -> Band<T> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let mut a = Band::<T>::zeros(n, kl, ku).unwrap();
    for j in 0..n {
        for i in a.column_range(j) {
            *a.get_mut(i, j) = T::rounded(next(), next());
        }
    }
    a
}

/// Writes `value` wherever LAPACK's layout has no entry of the matrix.
pub(crate) fn fill_room(a: &mut Band<f64>, value: f64) {
    let (n, kl, ku, ld) = (a.n(), a.kl(), a.ku(), a.ldab());
    for (j, column) in a.values_mut().chunks_exact_mut(ld).enumerate() {
        column[..kl + ku.saturating_sub(j)].fill(value);
        column[ld.min(kl + ku + n - j)..].fill(value);
    }
}

/// Columns of U and of L, wherever they are.
fn columns<T: Scalar>(end: &End<T>) -> Vec<(Vec<T>, Vec<T>)> {
    let EndSizes { cols, ncols, .. } = end.shape;
    let (ld, kv, lu) = (end.shape.ld(), end.shape.kv(), end.triangles());
    let column = |j| {
        // Of the columns left over the rows of U.
        let (rows, l) = if j < cols { (kv + 1, lu.l(j)) } else { (kv + cols - j, &[][..]) };
        (end.values[j * ld..][..rows].to_vec(), l.to_vec())
    };
    (0..ncols).map(column).collect()
}

/// All kernels perform the same operations on an element in the same order: the factors agree in all bits.
fn same_factors<T: Scalar>(n: usize, kl: usize, ku: usize, tuning: Tuning, seed: u64) {
    same_factors_of(&random::<T>(n, kl, ku, seed), tuning);
}

fn same_factors_of<T: Scalar>(a: &Band<T>, tuning: Tuning) {
    let (n, kl, ku) = (a.n(), a.kl(), a.ku());
    let factors = |tuning: Tuning| {
        let mut lu = BandLu::one_ended(n, kl, ku, tuning, tuning.place(), None).unwrap();
        // What an earlier factorization left does not matter.
        lu.parts.iter_mut().for_each(End::void);
        lu.factor(Source::Band(a.values()), &mut ()).map(|()| lu).map_err(|e| e.to_string())
    };
    let (one, other) = (factors(Tuning::Narrow { registers: 4, strip: 5 }), factors(tuning));
    let (Ok(one), Ok(other)) = (&one, &other) else {
        // A product of small multipliers may vanish.
        assert_eq!(one.err(), other.err());
        return;
    };
    let parts = |lu: &BandLu<T>| (lu.parts[0].pivots.clone(), lu.parts[0].tops.clone(), columns(&lu.parts[0]));
    assert_eq!(parts(one), parts(other));
    assert_eq!(FactorStats { bytes: 0, ..one.stats }, FactorStats { bytes: 0, ..other.stats });
}

/// From two ends the solutions, the determinant and the norm are those from one.
fn same_solutions<T: Scalar>(n: usize, kl: usize, ku: usize, tunings: [Tuning; 2], seed: u64) {
    let mut a = random::<T>(n, kl, ku, seed);
    // Well conditioned, and still in need of exchanges.
    for j in 0..n {
        let i =
            if j + 1 < n && kl > 0 && j % 2 == 0 { j + 1 } else { j.saturating_sub(usize::from(ku > 0 && j % 2 == 1)) };
        *a.get_mut(i, j) += T::rounded(3.0 * (kl + ku) as f64, 0.0);
    }
    let mut one = BandLu::one_ended(n, kl, ku, Tuning::of(kl), Tuning::of(kl).place(), None).unwrap();
    one.factor(Source::Band(a.values()), &mut ()).unwrap();
    let mut two = BandLu::two_ended(n, kl, ku, halves_of(n, kl, ku, tunings), tunings).unwrap();
    for _ in 0..2 {
        two.factor(Source::Band(a.values()), &mut ()).unwrap();
        let u = T::Real::EPSILON.to_f64();
        let tolerance = 1e3 * u * n as f64 * one.stats.growth.max(two.stats.growth) / one.rcond().max(u);
        assert_eq!(one.stats.norm_one, two.stats.norm_one);
        assert!((one.log_det().log_abs - two.log_det().log_abs).abs() <= tolerance);
        if tolerance < 0.1 {
            assert!((one.log_det().sign - two.log_det().sign).abs().to_f64() < 0.5);
        }
        for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
            for nrhs in [1, 9] {
                let b = faer::Mat::<T>::from_fn(n, nrhs, |i, j| T::rounded((i * (j + 1)) as f64 % 7.0 - 3.0, 1.0));
                let (mut x, mut y) = (b.clone(), b.clone());
                one.solve_op_in_place(op, x.as_mut());
                two.solve_op_in_place(op, y.as_mut());
                for j in 0..nrhs {
                    let size = (0..n).map(|i| x[(i, j)].abs().to_f64()).fold(0.0, f64::max);
                    for i in 0..n {
                        let difference = (x[(i, j)] - y[(i, j)]).abs().to_f64();
                        assert!(difference <= tolerance * size, "{op:?} ({i}, {j}): {difference:e}, size {size:e}");
                    }
                }
            }
        }
    }
    // A column of zeros is found from either end and in the middle.
    for column in [0, n / 2, n - 1] {
        let mut singular = a.clone();
        for i in a.column_range(column) {
            *singular.get_mut(i, column) = bt_formats::zero();
        }
        let Err(FactorError::Singular(place)) = two.factor(Source::Band(singular.values()), &mut ()) else {
            panic!("not singular")
        };
        assert_eq!(place.column, column);
        let mut x = vec![T::rounded(1.0, 0.0); n];
        two.solve_vec_in_place(&mut x);
        assert!(x.iter().all(|v| v.abs().to_f64().is_nan()));
    }
    // And an entry that is no number.
    for (row, col) in [(0, 0), (n / 2, n / 2), (n - 1, n - 1)] {
        let mut bad = a.clone();
        *bad.get_mut(row, col) = T::nan_impl();
        let message = two.factor(Source::Band(bad.values()), &mut ()).unwrap_err().to_string();
        assert!(message.contains(&format!("row {row}, column {col}")), "{message}");
    }
    assert_eq!(two.rcond(), 0.0);
    let _ = a.nrows();
}

fn tuning() -> impl Strategy<Value = Tuning> {
    prop_oneof![
        Just(Tuning::Wide { panel: 8 }),
        Just(Tuning::Wide { panel: 16 }),
        (1usize..9).prop_map(|strip| Tuning::Narrow { registers: 4, strip }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn kernels_do_not_change_the_factors(n in 0usize..110, kl in 0usize..20, ku in 0usize..20, t in tuning(), seed: u32) {
        let seed = u64::from(seed);
        same_factors::<f64>(n, kl, ku, t, seed);
        same_factors::<c64>(n, kl, ku, t, seed);
        same_factors::<c32>(n, kl, ku, t, seed);
    }

    #[test]
    fn two_ends_are_one_factorization(
        kl in 1usize..12, ku in 1usize..12, more in 0usize..60, t in tuning(), s in tuning(), seed: u32,
    ) {
        let (n, seed) = (kl + ku + 2 + more, u64::from(seed));
        same_solutions::<f64>(n, kl, ku, [t, s], seed);
        same_solutions::<c64>(n, kl, ku, [t, s], seed);
    }
}

#[test]
fn registers_do_not_change_the_factors() {
    for (kl, registers) in [(0, 1), (1, 1), (7, 1), (8, 1), (9, 2), (16, 2), (8, 2)] {
        for ku in [0, 1, 8, 13] {
            same_factors::<f64>(77, kl, ku, Tuning::Narrow { registers, strip: 32 }, 3);
            same_factors::<c64>(40, kl, ku, Tuning::Narrow { registers, strip: 7 }, 4);
        }
    }
    for (kl, ku) in [(40, 30), (33, 60), (70, 3)] {
        same_factors_wide(kl, ku);
    }
}

/// The row that enters with the last step of the vectors ends with the matrix; now and then it is the pivot.
#[test]
fn the_last_strip_of_vectors_may_reach_the_end() {
    for seed in 0..40 {
        same_factors::<f64>(32 + 3 * 4, 4, 4, Tuning::Narrow { registers: 1, strip: 32 }, seed);
    }
}

/// No exchanges, some, and pivots whose reciprocals overflow.
#[test]
fn dominance_and_scale_do_not_matter_to_kernels() {
    for (kl, registers) in [(1, 1), (8, 1), (16, 2), (20, 4)] {
        for ku in [0, 3, 8, 21] {
            for (diagonal, scale) in [(50.0, 1.0), (3.0, 1.0), (1.0, 1e-310), (1.0, 1e300)] {
                let mut a = random::<f64>(150, kl, ku, 6);
                for j in 0..150 {
                    *a.get_mut(j, j) *= diagonal;
                }
                a.values_mut().iter_mut().for_each(|v| *v *= scale);
                for strip in [2, 32] {
                    same_factors_of(&a, Tuning::Narrow { registers, strip });
                }
            }
        }
    }
}

/// The window leaves the registers between rounds, at pivots without a reciprocal, and when a value is not finite.
#[test]
fn registers_are_left_and_entered_again() {
    for (kl, ku) in [(1, 1), (2, 2), (6, 5), (8, 8), (8, 0), (1, 7)] {
        let tuning = Tuning::Narrow { registers: 1, strip: 32 };
        for n in (0..20).chain([48, 49, 3000]) {
            same_factors::<f64>(n, kl, ku, tuning, 7);
        }
        let mut a = random::<f64>(230, kl, ku, 8);
        for j in (5..220).step_by(43) {
            for i in a.column_range(j) {
                *a.get_mut(i, j) *= 1e-309;
            }
        }
        same_factors_of(&a, tuning);
        // In place, too: found before rows of U replace it.
        let within = (84..104).map(|row| (row, row + ku / 2));
        for (row, col) in [(0, 0), (31, 32), (100, 100), (229, 229)].into_iter().chain(within) {
            let mut bad = random::<f64>(230, kl, ku, 8);
            *bad.get_mut(row, col.min(row + ku)) = f64::NAN;
            for outcome in [BandLu::new(&bad), BandLu::from_band(bad)] {
                let message = outcome.unwrap_err().to_string();
                assert!(message.contains(&format!("row {row}, column {}", col.min(row + ku))), "{message}");
            }
        }
    }
}

/// Rows and columns come from A upwards and downwards, whatever stands in its room for fill.
#[test]
fn two_ends_in_registers_have_the_factors_of_other_kernels() {
    for (kl, ku) in [(1, 1), (2, 2), (6, 5), (8, 8), (8, 7), (1, 7), (3, 8), (8, 1)] {
        for (n, room) in [(100, 1e9), (700, f64::NAN), (700, 1e9), (2003, 1e9)] {
            let mut a = random::<f64>(n, kl, ku, 10);
            fill_room(&mut a, room);
            let [one, other] = [1, 4].map(|registers| {
                let tunings = [Tuning::Narrow { registers, strip: 32 }; 2];
                let mut lu = BandLu::two_ended(n, kl, ku, halves_of(n, kl, ku, tunings), tunings).unwrap();
                lu.factor(Source::Band(a.values()), &mut ()).unwrap();
                lu
            });
            for (one, other) in one.parts.iter().zip(&other.parts) {
                assert_eq!(one.pivots, other.pivots, "{kl} {ku} {n}");
                assert_eq!(one.tops, other.tops);
                for (j, (one, other)) in columns(one).iter().zip(columns(other)).enumerate() {
                    assert_eq!(*one, other, "{kl} {ku} {n} column {j}");
                }
            }
            assert_eq!(FactorStats { bytes: 0, ..one.stats }, FactorStats { bytes: 0, ..other.stats });
        }
    }
}

/// Entries are finite, sums of their moduli are not.
#[test]
fn sums_may_overflow_where_entries_do_not() {
    for (kl, ku) in [(1, 1), (8, 8)] {
        let mut a = random::<f64>(300, kl, ku, 11);
        for j in [0, 40, 131, 299] {
            for i in a.column_range(j) {
                *a.get_mut(i, j) = if i == j { 1.7e308 } else { 1e308 };
            }
        }
        same_factors_of(&a, Tuning::Narrow { registers: 1, strip: 32 });
    }
}

/// In its own storage, whatever stands where the matrix has no entries, several rounds long.
#[test]
fn factors_in_place_are_those_of_a_copy() {
    let n = 1300usize;
    for (kl, ku) in [(1, 1), (2, 2), (6, 5), (8, 8), (1, 20), (9, 3), (20, 20)] {
        // U grows above A without dominance, and solutions may overflow.
        for (dominance, room) in [(0.0, f64::NAN), (2.0, 1e9)] {
            let mut a = random::<f64>(n, kl, ku, 8);
            for j in 0..n {
                *a.get_mut(j, j) += dominance * (kl + ku) as f64;
            }
            let mut lu = BandLu::one_ended(n, kl, ku, Tuning::of(kl), Tuning::of(kl).place(), None).unwrap();
            lu.factor(Source::Band(a.values()), &mut ()).unwrap();
            fill_room(&mut a, room);
            let in_place = BandLu::from_band(a).unwrap();
            assert_eq!(lu.parts[0].pivots, in_place.parts[0].pivots);
            assert_eq!(lu.parts[0].tops, in_place.parts[0].tops);
            assert_eq!(FactorStats { bytes: 0, ..lu.stats }, FactorStats { bytes: 0, ..in_place.stats });
            for op in [Op::Identity, Op::Transpose] {
                let b = faer::Mat::<f64>::from_fn(n, 1, |i, _| (i % 7) as f64 - 3.0);
                let (mut x, mut y) = (b.clone(), b);
                lu.solve_op_in_place(op, x.as_mut());
                in_place.solve_op_in_place(op, y.as_mut());
                let same = |i: usize| x[(i, 0)].is_finite() && x[(i, 0)] == y[(i, 0)];
                assert!(dominance == 0.0 || (0..n).all(same), "{kl} {ku} {op:?}");
            }
        }
    }
}

/// One right-hand side in registers, and the same among nine.
#[test]
fn one_right_hand_side_is_solved_as_nine_are() {
    for (kl, ku) in [(0, 3), (1, 1), (2, 5), (8, 8), (9, 7), (17, 0), (20, 20), (24, 1), (32, 32), (33, 2)] {
        for n in [1, 8, 30, 65, 150] {
            let mut a = random::<f64>(n, kl.min(n - 1), ku.min(n - 1), 9);
            for j in 0..n {
                *a.get_mut(j.saturating_sub(usize::from(ku > 0 && n > 1)), j) += 3.0 * (kl + ku) as f64;
                *a.get_mut(j, j) += 5.0 * (kl + ku) as f64;
            }
            let lu = BandLu::new(&a).unwrap();
            for op in [Op::Identity, Op::Transpose] {
                let b = faer::Mat::<f64>::from_fn(n, 9, |i, j| ((i * (j + 2)) % 11) as f64 - 5.0);
                let (mut all, mut one) = (b.clone(), b);
                lu.solve_op_in_place(op, all.as_mut());
                lu.solve_op_in_place(op, one.as_mut().subcols_mut(4, 1));
                for i in 0..n {
                    let (x, y) = (all[(i, 4)], one[(i, 4)]);
                    assert!((x - y).abs() <= 1e-13 * (1.0 + y.abs()), "{kl} {ku} {n} {op:?} row {i}: {x} {y}");
                }
            }
        }
    }
}

/// Panels of two widths, where a column is too long for the narrow kernel.
fn same_factors_wide(kl: usize, ku: usize) {
    let a = random::<f64>(200, kl, ku, 5);
    let [one, other] = [8, 24].map(|panel| {
        let mut lu = BandLu::one_ended(200, kl, ku, Tuning::Wide { panel }, Place::BehindU, None).unwrap();
        lu.factor(Source::Band(a.values()), &mut ()).unwrap();
        lu
    });
    assert_eq!(*one.parts[0].values, *other.parts[0].values);
    assert_eq!(one.parts[0].pivots, other.parts[0].pivots);
}

/// Rows that are written into columns some at a time leave what a band does, in every part and bit for bit, also where factors of a band
/// were before; and say the same of what is not finite.
#[test]
fn rows_leave_the_factors_of_a_band() {
    fn same<T: Scalar>(n: usize, kl: usize, ku: usize) {
        let [a, other] = [11, 12].map(|seed| {
            let mut a = random::<T>(n, kl, ku, seed);
            if kl.min(ku) == 0 {
                // Solutions of triangles grow.
                (0..n).for_each(|j| *a.get_mut(j, j) += T::rounded(20.0, 0.0));
            }
            a
        });
        let rows = a.to_csr().unwrap();
        let parts = |lu: &BandLu<T>| -> Vec<_> {
            lu.parts.iter().map(|p| (p.pivots.clone(), p.tops.clone(), columns(p))).collect()
        };
        let tunings = [Tuning::of(kl), Tuning::of(ku)];
        let one = |()| BandLu::<T>::one_ended(n, kl, ku, tunings[0], tunings[0].place(), None).unwrap();
        let two = |()| BandLu::<T>::two_ended(n, kl, ku, halves_of(n, kl, ku, tunings), tunings).unwrap();
        let both: [&dyn Fn(()) -> BandLu<T>; 2] = [&one, &two];
        for new in &both[..if kl.min(ku) > 0 && n > 4 * (kl + ku) { 2 } else { 1 }] {
            let (mut of_band, mut of_rows) = (new(()), new(()));
            of_band.factor(Source::Band(a.values()), &mut ()).unwrap();
            of_rows.factor(Source::Rows(&rows), &mut ()).unwrap();
            assert!(parts(&of_band) == parts(&of_rows), "{n} {kl} {ku}");
            assert_eq!(of_band.stats, of_rows.stats);
            of_rows.refactor(&other).unwrap();
            Factorization::refactor(&mut of_band, (&other.to_csr().unwrap()).into(), &mut ()).unwrap();
            assert!(parts(&of_band) == parts(&of_rows), "{n} {kl} {ku}");
        }
    }
    for (kl, ku) in [(0, 0), (1, 1), (0, 3), (3, 0), (8, 8), (2, 9), (17, 16), (32, 30), (40, 35), (60, 3)] {
        for n in [1, 70, 1023, 3000].into_iter().filter(|&n| kl.max(ku) < n) {
            same::<f64>(n, kl, ku);
        }
        same::<f32>(1100, kl, ku);
        same::<c64>(1100, kl, ku);
    }
    for (row, col) in [(0, 0), (1023, 1024), (1122, 1119), (4999, 4992)] {
        let mut bad = random::<f64>(5000, 8, 8, 13);
        *bad.get_mut(row, col) = f64::NAN;
        let (of_band, of_rows) = (BandLu::new(&bad), BandLu::from_csr(&bad.to_csr().unwrap(), &mut ()));
        assert_eq!(of_band.unwrap_err().to_string(), of_rows.unwrap_err().to_string());
    }
}

/// Entries outside of the band are named, unless they are zeros.
#[test]
fn rows_stay_in_the_band() {
    let rows = |v: f64| {
        let (mut pointers, mut cols, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..2000u32 {
            cols.extend([i, i + 1].iter().filter(|&&c| c < 2000));
            values.resize(cols.len(), 2.0);
            if i == 1500 {
                cols.push(1700);
                values.push(v);
            }
            pointers.push(cols.len() as u32);
        }
        Csr::new(2000, 2000, pointers, cols, values).unwrap()
    };
    let mut lu = BandLu::from_csr(&rows(0.0), &mut ()).unwrap();
    assert_eq!((lu.kl, lu.ku), (0, 1));
    let message = Factorization::refactor(&mut lu, (&rows(3.0)).into(), &mut ()).unwrap_err().to_string();
    assert!(message.contains("row 1500") && message.contains("column 1700"), "{message}");
    assert!(lu.stats.norm_one.is_nan());
}
