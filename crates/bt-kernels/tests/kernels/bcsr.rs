//! Krylov methods whose products are by blocks of nodes: the answers, steps and bits of those by rows, and no more bytes.

use crate::support::{Numbers, device};
use bt_formats::{Bcsr, Csr, LinearOperator, Matrix, Outcome, Scalar, SolveReport, StopCriterion};
use bt_iter::{BiCgStab, BlockSsorAi, Cg, Gmres};
use bt_kernels::{Device, DeviceBiCgStab, DeviceCg, DeviceGmres, DevicePreconditioner, DeviceScalar, Result, Schedule};
use bt_testkit::csr;
use faer::Mat;

/// Symmetric, of full blocks of k × k in a ring of nodes, and definite.
fn nodes<T: Scalar>(n: usize, k: usize) -> Csr<T> {
    let count = n / k;
    csr(n, |i, j| {
        let (a, b) = (i / k, j / k);
        let beside = a.abs_diff(b) <= 1 || a.abs_diff(b) == count - 1;
        let off = 0.5 / (1 + i % k + j % k) as f64;
        let value = if i == j { 2.0 * k as f64 + 1.0 } else { -off };
        T::rounded(if beside { value } else { 0.0 }, 0.0)
    })
}

#[derive(Clone, Copy, Debug)]
enum Method {
    Cg,
    BiCgStab,
    Gmres(usize),
}

/// The report, and rows of a block.
fn on_device<T: DeviceScalar>(
    device: &Device,
    a: &Csr<T>,
    method: Method,
    precond: &DevicePreconditioner,
    b: &[T],
    x: &mut [T],
    stop: &StopCriterion,
) -> Result<(SolveReport, Option<usize>)> {
    macro_rules! solved {
        ($made:expr) => {{
            let mut made = $made?;
            let rows = made.block_rows();
            Ok((made.solve(b, x, stop, &mut ())?, rows))
        }};
    }
    match method {
        Method::Cg => solved!(DeviceCg::new(device, a, precond, Schedule::Auto)),
        Method::BiCgStab => solved!(DeviceBiCgStab::new(device, a, precond, Schedule::Auto)),
        Method::Gmres(m) => solved!(DeviceGmres::new(device, a, precond, m, Schedule::Auto)),
    }
}

fn agrees<T: DeviceScalar>(device: &Device, k: usize, n: usize, method: Method, rtol: f64) {
    let a = nodes::<T>(n, k);
    let precond = DevicePreconditioner::BlockSsorAi { omega: 1.2, block_size: k };
    let b = Numbers(n as u64).vector::<T>(n);
    let stop = StopCriterion { rtol, ..StopCriterion::default() };
    let mut x = vec![T::default(); n];
    let (found, rows) = on_device(device, &a, method, &precond, &b, &mut x, &stop).unwrap();
    // On the host with products by blocks, too.
    let blocks = Bcsr::from_csr(&a, k).unwrap();
    let (mut m, mut expected) = (BlockSsorAi::with_options(&a, k, 1.2).unwrap(), vec![T::default(); n]);
    let host = match method {
        Method::Cg => Cg::new(n).solve(&blocks, &mut m, &b, &mut expected, &stop, &mut ()),
        Method::BiCgStab => BiCgStab::new(n).solve(&blocks, &mut m, &b, &mut expected, &stop, &mut ()),
        Method::Gmres(restart) => Gmres::new(n, restart).solve(&blocks, &mut m, &b, &mut expected, &stop, &mut ()),
    }
    .unwrap();
    let what = format!("{method:?}, k = {k}, n = {n}, {}: {found:?}, {host:?}", T::SUFFIX);
    assert!(blocks.bytes() <= a.bytes());
    assert_eq!(rows, Some(k), "{what}");
    assert_eq!((found.outcome, host.outcome), (Outcome::Converged, Outcome::Converged), "{what}");
    assert!(found.iterations.abs_diff(host.iterations) <= 1 && found.iterations > 0, "{what}");
    assert!(found.certificate.relative_residual <= rtol, "{what}");
}

#[test]
fn products_by_blocks_give_the_steps_of_the_host() {
    let Some(device) = device() else { return };
    for k in 2..=6 {
        for method in [Method::Cg, Method::BiCgStab, Method::Gmres(7)] {
            for n in [5 * k, 60 * k] {
                agrees::<f64>(&device, k, n, method, 1e-9);
                agrees::<f32>(&device, k, n, method, 1e-4);
            }
        }
    }
}

#[test]
fn blocks_are_taken_where_they_save_bytes() {
    let Some(device) = device() else { return };
    let (b, stop) = (vec![1.0; 60], StopCriterion { rtol: 1e-8, ..StopCriterion::default() });
    let of = |a: &Csr<f64>, block_size: usize| {
        let precond = DevicePreconditioner::BlockSsorAi { omega: 1.1, block_size };
        let mut x = vec![0.0; 60];
        let (report, rows) = on_device(&device, a, Method::Cg, &precond, &b, &mut x, &stop).unwrap();
        assert_eq!(report.outcome, Outcome::Converged);
        rows
    };
    let full = nodes::<f64>(60, 3);
    assert_eq!([of(&full, 1), of(&full, 3)], [None, Some(3)]);
    // Blocks of a tridiagonal matrix hold more zeros than the indices that they save.
    let line = csr::<f64>(60, |i, j| [3.0, -1.0].get(i.abs_diff(j)).copied().unwrap_or(0.0));
    assert_eq!(of(&line, 3), None);
    // Another preconditioner has products by rows.
    let mut x = vec![0.0; 60];
    let jacobi = DevicePreconditioner::Jacobi;
    assert_eq!(on_device(&device, &full, Method::Cg, &jacobi, &b, &mut x, &stop).unwrap().1, None);
    let precond = DevicePreconditioner::BlockSsorAi { omega: 1.1, block_size: 3 };
    let refused = DeviceCg::new(&device, &full, &precond, Schedule::Persistent).err().unwrap();
    assert!(refused.to_string().contains("launches of its own"), "{refused}");
}

#[test]
fn columns_in_step_have_products_by_blocks() {
    let Some(device) = device() else { return };
    let (n, a) = (60, nodes::<f64>(60, 2));
    let precond = DevicePreconditioner::BlockSsorAi { omega: 1.1, block_size: 2 };
    let mut numbers = Numbers(3);
    let (b, stop) = (Mat::from_fn(n, 3, |_, _| numbers.real::<f64>()), StopCriterion::default());
    let mut method = DeviceGmres::new(&device, &a, &precond, 5, Schedule::Auto).unwrap();
    assert_eq!(method.block_rows(), Some(2));
    let mut x = Mat::zeros(n, 3);
    method.solve_many(b.as_ref(), x.as_mut(), &stop, &mut ()).unwrap();
    for j in 0..3 {
        let mut alone = vec![0.0; n];
        method.solve(b.col_as_slice(j), &mut alone, &stop, &mut ()).unwrap();
        assert_eq!(x.col_as_slice(j), alone);
        let mut r = b.col_as_slice(j).to_vec();
        a.apply(-1.0, &alone, 1.0, &mut r);
        assert!(r.iter().all(|r| r.abs() < 1e-6), "{r:?}");
    }
}
