//! Preconditioners on the device for vectors of the host: z of the host's own, bit for bit of the device's, and a device that is too small.

use crate::support::{Numbers, assert_close, device, on_host};
use bt_direct::RbtOptions;
use bt_formats::{LinearOperator, Partition};
use bt_iter::{Arms, ArmsOptions, LastSolver, Preconditioner, PreconditionerKind, TriangularSolves};
use bt_kernels::{DeviceInverse, DevicePreconditioner, DeviceVec, Offloaded, arms};
use bt_testkit::stencil;

#[test]
fn vectors_of_the_host_come_back_as_those_of_the_device() {
    let Some(device) = device() else { return };
    let a = stencil(9, 0.0);
    let n = a.nrows();
    let levels = TriangularSolves::Levels;
    for (wanted, name, kind) in [
        (DevicePreconditioner::Identity, "none", PreconditionerKind::Identity),
        (DevicePreconditioner::Jacobi, "jacobi", PreconditionerKind::General),
        (DevicePreconditioner::Ilu0(levels), "ilu0", PreconditionerKind::General),
        (DevicePreconditioner::Ic0(levels), "ic0", PreconditionerKind::Spd),
        (
            DevicePreconditioner::BlockJacobi(Partition::uniform(n, 9).unwrap()),
            "block-jacobi",
            PreconditionerKind::General,
        ),
    ] {
        let mut there = DeviceInverse::new(&device, &a, &wanted).unwrap();
        let mut m = Offloaded::new(&device, &a, &wanted).unwrap();
        assert_eq!((m.n(), m.name(), m.kind()), (n, name, kind));
        assert_eq!(m.bytes(), there.bytes() + 2 * n * size_of::<f64>());
        for seed in [1, 2] {
            let r: Vec<f64> = Numbers(seed).vector(n);
            let (mut z, mut expected, mut host) = (vec![f64::NAN; n], vec![0.0; n], vec![0.0; n]);
            let (on_device, mut z_there) =
                (DeviceVec::from_slice(&device, &r).unwrap(), DeviceVec::zeros(&device, n).unwrap());
            there.apply(&on_device, &mut z_there).unwrap();
            z_there.copy_to(&mut expected).unwrap();
            m.apply(&r, &mut z);
            assert_eq!(z, expected, "{name}");
            on_host(&a, &wanted).unwrap().apply(&r, &mut host);
            assert_close(name, &z, &host, &vec![10.0; n], 40.0);
        }
    }
}

#[test]
fn the_last_level_of_arms_is_on_the_device() {
    let Some(device) = device() else { return };
    let a = stencil(20, 0.3);
    let n = a.nrows();
    let rbt = RbtOptions::default();
    let options = ArmsOptions { last: LastSolver::Butterflies(rbt), ..ArmsOptions::default() };
    let mut there = arms(&device, &a, options, rbt).unwrap();
    let mut host = Arms::with_options(&a, options).unwrap();
    assert!(there.last_level().n > 1 && there.last_level().fallback.is_none());
    assert_eq!(there.last_level().n, host.last_level().n);
    let r: Vec<f64> = Numbers(3).vector(n);
    let (mut z, mut expected) = (vec![0.0; n], vec![0.0; n]);
    there.apply(&r, &mut z);
    host.apply(&r, &mut expected);
    let largest = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    assert_close("arms", &z, &expected, &vec![largest; n], 1e4);
}
