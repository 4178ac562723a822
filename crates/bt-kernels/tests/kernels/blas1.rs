//! Vector operations on the device: sums to rounding, the same bits every time, β = 0 never reads y.

use crate::support::{Numbers, assert_close, device};
use bt_kernels::{Device, DeviceError, DeviceScalar, DeviceVec, dot, update};

fn check<T: DeviceScalar>(device: &Device) {
    for n in [0, 1, 2, 31, 32, 33, 255, 256, 257, 5000] {
        let mut numbers = Numbers(n as u64);
        let (x, y) = (numbers.vector::<T>(n), numbers.vector::<T>(n));
        let (device_x, mut device_y) =
            (DeviceVec::from_slice(device, &x).unwrap(), DeviceVec::from_slice(device, &y).unwrap());
        let double = |v: &[T]| v.iter().map(|v| v.cast::<f64>()).collect::<Vec<_>>();
        let (x64, y64) = (double(&x), double(&y));
        // Products of f32 are exact in f64.
        let expected: f64 = x64.iter().zip(&y64).map(|(x, y)| x * y).sum();
        let size: f64 = x64.iter().zip(&y64).map(|(x, y)| (x * y).abs()).sum();
        let found = dot(&device_x, &device_y).unwrap();
        assert!((found - expected).abs() <= n as f64 * f64::EPSILON * size, "{n}: {found} is not {expected}");
        assert_eq!(found.to_bits(), dot(&device_x, &device_y).unwrap().to_bits());

        let (alpha, beta) = (T::rounded(0.5, 0.0), T::rounded(-3.0, 0.0));
        let norm = update(alpha, &device_x, beta, &mut device_y).unwrap();
        let mut found = vec![T::default(); n];
        device_y.copy_to(&mut found).unwrap();
        let expected: Vec<T> = x.iter().zip(&y).map(|(&x, &y)| alpha * x + beta * y).collect();
        assert_close("update", &found, &expected, &vec![4.0; n], 2.0);
        let squares: f64 = double(&found).iter().map(|v| v * v).sum();
        assert!((norm - squares).abs() <= n as f64 * f64::EPSILON * squares, "{n}: {norm} is not {squares}");

        let mut nan = DeviceVec::from_slice(device, &vec![T::rounded(f64::NAN, 0.0); n]).unwrap();
        update(alpha, &device_x, T::default(), &mut nan).unwrap();
        nan.copy_to(&mut found).unwrap();
        let expected: Vec<T> = x.iter().map(|&x| alpha * x).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn vector_operations_agree_with_the_host() {
    let Some(device) = device() else { return };
    check::<f64>(&device);
    check::<f32>(&device);
}

#[test]
fn lengths_must_agree() {
    let Some(device) = device() else { return };
    let vector = |n| DeviceVec::from_slice(&device, &vec![1.0f32; n]).unwrap();
    assert!(matches!(dot(&vector(2), &vector(3)), Err(DeviceError::Input(_))));
    assert!(matches!(update(1.0, &vector(2), 1.0, &mut vector(1)), Err(DeviceError::Input(_))));
}

#[test]
fn too_much_memory_is_refused_with_both_numbers() {
    let Some(device) = device() else { return };
    let bytes = device.memory() + 8;
    match DeviceVec::<u8>::zeros(&device, bytes) {
        Err(DeviceError::OutOfMemory { needed, free }) => assert!(needed == bytes && free < needed),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("{bytes} bytes on a device of {}", device.memory()),
    }
    assert!(matches!(DeviceVec::<u64>::zeros(&device, usize::MAX), Err(DeviceError::OutOfMemory { .. })));
}
