//! A launch that the driver refuses where the work cannot return an error: NaN, the reason on request, and a device that goes on. One test,
//! since refusals are of the whole process.

mod support;

use bt_direct::Factorization;
use bt_iter::{Preconditioner, TriangularSolves};
use bt_kernels::{DeviceError, DevicePreconditioner, DeviceRbt, Offloaded};
use bt_testkit::stencil;
use support::{Numbers, device};

#[test]
fn a_refused_launch_is_told_once_and_nothing_is_lost() {
    let Some(device) = device() else { return };
    if !bt_cuda_driver::set_launches(u64::MAX) {
        println!("skipped: a real driver refuses nothing on request");
        return;
    }
    let a = stencil(5, 0.3);
    let r: Vec<f64> = Numbers(1).vector(25);
    let mut m = Offloaded::new(&device, &a, &DevicePreconditioner::Ilu0(TriangularSolves::Levels)).unwrap();
    let dense = a.to_dense();
    let lu = DeviceRbt::new(&device, dense.as_ref()).unwrap();
    let mut apply = |z: &mut [f64]| m.apply(&r, z);
    let solve = |z: &mut [f64]| {
        z.copy_from_slice(&r);
        lu.solve_in_place(faer::MatMut::from_column_major_slice_mut(z, 25, 1));
    };
    for work in [&mut apply as &mut dyn FnMut(&mut [f64]), &mut { solve }] {
        let (mut expected, mut z) = (vec![0.0; 25], vec![0.0; 25]);
        work(&mut expected);
        device.check("a good application").unwrap();
        bt_cuda_driver::set_launches(1);
        work(&mut z);
        work(&mut z);
        bt_cuda_driver::set_launches(u64::MAX);
        assert!(z.iter().all(|z| z.is_nan()), "{z:?}");
        match device.check("a refused one") {
            Err(DeviceError::Launch { reason, .. }) => assert!(reason.contains("CUDA error 701"), "{reason}"),
            other => panic!("{other:?}"),
        }
        device.check("told once").unwrap();
        work(&mut z);
        assert_eq!(z, expected);
    }
}
