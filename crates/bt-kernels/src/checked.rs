//! Direct solutions of the device, checked and refined on the host with the matrices of the caller.
//!
//! r ← b − A·x, x ← x + F⁻¹·r with the factors on the device, at most three times, for all systems of a batch that gain by it at
//! once. Where the backward error stays above 32 units of rounding, the host solves the system by the same method, and the report
//! says so.

use std::ops::Range;

use bt_direct::refine::unit_roundoff;
use bt_direct::{FactorError, Factorization, Refinement, refine};
use bt_formats::{Certificate, Error as InputError, Matrix, Op, Par, certify, one};
use faer::{Mat, MatMut, MatRef};

use crate::device::{DeviceScalar, DeviceVec, Result};
use crate::krylov::check_vector;

/// Backward errors above this many units of rounding send a system to the host.
const DOUBTFUL: f64 = 32.0;
const MAX_STEPS: usize = 3;
/// Blocks of a launch at most, and right-hand sides that are on the device at once.
pub(crate) const MAX_BLOCKS: usize = i32::MAX as usize;
const MAX_COLUMNS: usize = 64;

/// Who made an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolvedBy {
    /// The device.
    Device,
    /// The host, since the answer of the device was poor.
    Host,
}

/// How a direct solve on the device ended, for one system.
#[derive(Clone, Copy, Debug)]
pub struct DirectReport {
    /// Of the answer, from the A of the caller.
    pub certificate: Certificate,
    /// Steps of refinement that were kept.
    pub steps: usize,
    /// Products with A on the host, those of certificates included.
    pub operator_applications: usize,
    /// Solves with the factors.
    pub solves: usize,
    /// Who made it.
    pub solved_by: SolvedBy,
    /// Backward error that the device reached; infinite where its answer was not finite.
    pub device_error: f64,
}

/// X ← A⁻¹·X for one system: see [`solve_systems`].
pub(crate) fn solve_system<T, A, F>(
    a: &A,
    mut x: MatMut<'_, T>,
    device: impl FnMut(MatMut<'_, T>) -> Result<()>,
    host: impl Fn(&A) -> Result<F, FactorError>,
) -> Result<DirectReport>
where
    T: DeviceScalar,
    A: Matrix<T>,
    F: Factorization<T>,
{
    let mut y = x.as_ref().to_owned();
    let report = solve_systems(&[a], y.as_mut(), device, host)?.remove(0)?;
    x.copy_from(&y);
    Ok(report)
}

/// X ← A⁻¹·X for systems whose rows follow each other, by `device` for all of them, or by the factors of `host`. A system that
/// fails has NaN for x and disturbs no other. After an error `x` is as it was.
pub(crate) fn solve_systems<T, A, F>(
    systems: &[&A],
    mut x: MatMut<'_, T>,
    mut device: impl FnMut(MatMut<'_, T>) -> Result<()>,
    host: impl Fn(&A) -> Result<F, FactorError>,
) -> Result<Vec<Result<DirectReport, FactorError>>>
where
    T: DeviceScalar,
    A: Matrix<T>,
    F: Factorization<T>,
{
    let starts: Vec<usize> = systems
        .iter()
        .scan(0, |row, a| {
            *row += a.nrows();
            Some(*row - a.nrows())
        })
        .collect();
    let rows = |s: usize| starts[s]..starts[s] + systems[s].nrows();
    let (n, nrhs) = (systems.iter().map(|a| a.nrows()).sum(), x.ncols());
    if x.nrows() != n {
        let what = "rows of the right-hand sides";
        return Err(InputError::DimensionMismatch { what, expected: n, found: x.nrows() }.into());
    }
    let b = x.to_owned();
    for j in 0..nrhs {
        check_vector("right-hand side", b.col_as_slice(j), n)?;
    }
    let mut y = b.clone();
    device(y.as_mut())?;
    let judge = |s: usize, x: &Mat<T>| certify(systems[s], Op::Identity, part(x, rows(s)), part(&b, rows(s)));
    let first = |s: usize| DirectReport {
        certificate: judge(s, &y),
        steps: 0,
        operator_applications: nrhs,
        solves: nrhs,
        solved_by: SolvedBy::Device,
        device_error: f64::NAN,
    };
    let mut found: Vec<DirectReport> = (0..systems.len()).map(first).collect();

    // Below a few units of roundoff nothing is left to improve.
    let u = unit_roundoff::<T>();
    let gains = |c: &Certificate| {
        c.backward_error.is_finite() && (c.backward_error > 2.0 * u || c.componentwise_backward_error > 16.0 * u)
    };
    let mut open: Vec<usize> = (0..systems.len()).filter(|&s| gains(&found[s].certificate)).collect();
    for _ in 0..MAX_STEPS {
        if open.is_empty() {
            break;
        }
        // d ← F⁻¹·(b − A·x), zero for systems that are done
        let mut d = Mat::zeros(n, nrhs);
        for &s in &open {
            let mut r = d.get_mut(rows(s), ..);
            r.copy_from(part(&b, rows(s)));
            systems[s].apply_many(
                Op::Identity,
                -one::<T>(),
                part(&y, rows(s)),
                one(),
                r,
                Par::auto(systems[s].bytes()),
            );
        }
        device(d.as_mut())?;
        open.retain(|&s| {
            let mut candidate = d.get_mut(rows(s), ..);
            candidate += part(&y, rows(s));
            let (old, new) = (found[s].certificate, judge(s, &d));
            found[s].operator_applications += 2 * nrhs;
            found[s].solves += nrhs;
            if !better(&new, &old, 2.0 * u) {
                return false;
            }
            y.get_mut(rows(s), ..).copy_from(part(&d, rows(s)));
            (found[s].certificate, found[s].steps) = (new, found[s].steps + 1);
            // Progress by less than a factor two is the end of it.
            gains(&new) && new.componentwise_backward_error <= 0.5 * old.componentwise_backward_error
        });
    }

    let mut reports = Vec::new();
    for (s, (a, mut report)) in systems.iter().zip(found).enumerate() {
        report.device_error = report.certificate.backward_error;
        if report.device_error <= DOUBTFUL * u {
            reports.push(Ok(report));
            continue;
        }
        let again = host(a).map(|factors| {
            let rhs = part(&b, rows(s));
            let mut z = rhs.to_owned();
            factors.solve_in_place(z.as_mut());
            (refine(*a, &factors, Op::Identity, rhs, &mut z, Refinement::Auto), z)
        });
        reports.push(again.map(|(refined, z)| {
            report.operator_applications += refined.operator_applications;
            report.solves += refined.solves + nrhs;
            if refined.certificate.backward_error < report.device_error {
                y.get_mut(rows(s), ..).copy_from(&z);
                (report.certificate, report.steps) = (refined.certificate, refined.steps);
                report.solved_by = SolvedBy::Host;
            }
            report
        }));
        if reports[s].is_err() {
            y.get_mut(rows(s), ..).fill(T::nan_impl());
        }
    }
    x.copy_from(&y);
    Ok(reports)
}

/// [`InputError::TooLarge`] unless a thread block for each of `m` systems of n rows together makes a launch.
pub(crate) fn check_batch(n: usize, m: usize) -> Result<()> {
    if n.max(m) > MAX_BLOCKS {
        let (what, limit) = ("a batch on the GPU", "2^31 - 1 rows".into());
        return Err(InputError::TooLarge { what, needed: format!("{n} rows"), limit }.into());
    }
    Ok(())
}

/// Where each system failed: the kernels leave the place from 1, and 0 for none.
pub(crate) fn failures(status: &DeviceVec<u32>) -> Result<Vec<Option<usize>>> {
    let mut places = vec![0; status.len()];
    status.copy_to(&mut places)?;
    Ok(places.into_iter().map(|place| (place as usize).checked_sub(1)).collect())
}

/// Some rows of all columns.
fn part<T>(x: &Mat<T>, rows: Range<usize>) -> MatRef<'_, T> {
    x.get(rows, ..)
}

/// Better in the componentwise sense without being worse in the normwise sense, beyond the noise of rounding.
fn better(new: &Certificate, old: &Certificate, noise: f64) -> bool {
    new.backward_error < 0.5 * old.backward_error
        || (new.componentwise_backward_error < old.componentwise_backward_error
            && new.backward_error <= old.backward_error.max(noise))
}

/// Calls `solve` with up to 64 columns of `x`, n rows, at a time, one after another in memory, as far as `blocks` thread blocks a
/// column allow.
pub(crate) fn by_columns<T: DeviceScalar>(
    n: usize,
    mut x: MatMut<'_, T>,
    blocks: usize,
    mut solve: impl FnMut(&mut [T], usize) -> Result<()>,
) -> Result<()> {
    if x.nrows() != n {
        let what = "rows of the right-hand sides";
        return Err(InputError::DimensionMismatch { what, expected: n, found: x.nrows() }.into());
    }
    let at_once = (MAX_BLOCKS / blocks.max(1)).clamp(1, MAX_COLUMNS);
    let mut columns = Vec::new();
    for first in (0..if n == 0 { 0 } else { x.ncols() }).step_by(at_once) {
        let width = at_once.min(x.ncols() - first);
        columns.resize(n * width, T::default());
        for (j, column) in columns.chunks_exact_mut(n).enumerate() {
            column
                .copy_from_slice(x.as_ref().col(first + j).try_as_col_major().expect("contiguous columns").as_slice());
        }
        solve(&mut columns, width)?;
        for (j, column) in columns.chunks_exact(n).enumerate() {
            let x = x.as_mut().col_mut(first + j).try_as_col_major_mut().expect("contiguous columns");
            x.as_slice_mut().copy_from_slice(column);
        }
    }
    Ok(())
}
