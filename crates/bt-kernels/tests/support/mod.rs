//! The device of the tests: the stand-in driver, or a real GPU where `BLOCKTRI_TEST_GPU=1` asks for one. With `REQUIRE_GPU=1` a
//! missing GPU is a failure.

#![allow(dead_code)] // each test program takes what it needs

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use bt_direct::Result;
use bt_formats::{Csr, HybridLayout, RealScalar, Scalar};
use bt_iter::{
    BlockForm, BlockPreconditioner, BlockSsorAi, DroppedFill, Identity, Jacobi, Preconditioner, QuasiBlockTridiagonal,
    SsorAi, SsorAiMasked, ic0, ilu0,
};
use bt_kernels::{Device, DevicePreconditioner, DeviceScalar};
use bt_testkit::csr;
use faer::MatRef;

/// Device 0; none, with a word why, where a real GPU is asked for and there is none.
pub fn device() -> Option<Device> {
    let asked = |name| std::env::var(name).is_ok_and(|v| v == "1");
    if !asked("BLOCKTRI_TEST_GPU") && !asked("REQUIRE_GPU") {
        bt_cuda_driver::choose(&stand_in()).expect("the stand-in is chosen first");
        let device = Device::open(0).expect("the stand-in driver has a device");
        assert!(bt_cuda_driver::look_for_races(), "the stand-in driver finds races");
        if std::env::var_os("BLOCKTRI_EMULATOR_SEED").is_none() {
            assert!(bt_cuda_driver::set_seed(order_of_threads()), "the stand-in driver has orders of threads");
        }
        return Some(device);
    }
    match Device::open(0) {
        Ok(device) => Some(device),
        Err(why) => {
            assert!(!asked("REQUIRE_GPU"), "{why}");
            println!("skipped: {why}");
            None
        }
    }
}

/// Devices 0 to `count`; none where a real machine is asked for that has fewer. The stand-in has one more, with little memory.
pub fn devices(count: u32) -> Option<Vec<Device>> {
    device()?;
    if bt_cuda_driver::set_devices(count.max(3) + 1) {
        assert!(bt_cuda_driver::set_memory(3, 20_000) && bt_cuda_driver::look_for_races());
        bt_cuda_driver::set_seed(order_of_threads());
    } else if Device::count().expect("a driver") < count {
        println!("skipped: there are fewer than {count} GPUs");
        return None;
    }
    Some((0..count).map(|ordinal| Device::open(ordinal).expect("a device")).collect())
}

/// A seed from the name of the test: kernels run in many orders of threads, the same ones every time.
fn order_of_threads() -> u64 {
    let mut hasher = DefaultHasher::new();
    std::thread::current().name().hash(&mut hasher);
    hasher.finish()
}

/// Cargo builds the library of the dev-dependency beside the test program.
pub fn stand_in() -> PathBuf {
    let program = std::env::current_exe().expect("the path of this program");
    let name = format!("{}bt_ptx_emulator{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    program.parent().expect("its folder").join(name)
}

/// Whole numbers from a seed, the same everywhere: SplitMix64.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    /// In (−1, 1), never 0.
    pub fn real<T: Scalar>(&mut self) -> T {
        let v = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        T::rounded(2.0 * v - 1.0 + 1e-9, 0.0)
    }
    pub fn vector<T: Scalar>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| self.real()).collect()
    }
    /// Rows of the lengths given, columns anywhere.
    pub fn rows<T: Scalar>(&mut self, ncols: usize, lengths: &[usize]) -> Csr<T> {
        let (mut ptr, mut idx, mut val) = (vec![0], Vec::new(), Vec::new());
        for &length in lengths {
            let mut columns: Vec<u32> = (0..length).map(|_| self.below(ncols) as u32).collect();
            columns.sort_unstable();
            columns.dedup();
            val.extend(columns.iter().map(|_| self.real::<T>()));
            idx.extend(columns);
            ptr.push(idx.len() as u32);
        }
        Csr::new(lengths.len(), ncols, ptr, idx, val).expect("columns increase")
    }
}

/// Rows of many entries, for eight lanes and a warp a row: the diagonal 2·reach, within reach `above`/d and `below`/d.
pub fn long_rows<T: Scalar>(n: usize, reach: usize, above: f64, below: f64) -> Csr<T> {
    let entry = |i: usize, j: usize| match i.abs_diff(j) {
        0 => 2.0 * reach as f64,
        d if d <= reach => (if i < j { above } else { below }) / d as f64,
        _ => 0.0,
    };
    csr(n, |i, j| T::rounded(entry(i, j), 0.0))
}

/// The preconditioner of the same name on the host.
pub fn on_host<'a, T: Scalar>(a: &'a Csr<T>, wanted: &DevicePreconditioner) -> Result<Box<dyn Preconditioner<T> + 'a>> {
    Ok(match *wanted {
        DevicePreconditioner::Identity => Box::new(Identity::new(a.row_ptr().len() - 1)),
        DevicePreconditioner::Jacobi => Box::new(Jacobi::new(a)?),
        DevicePreconditioner::BlockJacobi(ref partition) => {
            let quasi = QuasiBlockTridiagonal::new(a, partition.clone(), HybridLayout::default())?;
            Box::new(BlockPreconditioner::new(quasi.into_blocks(), BlockForm::Jacobi)?)
        }
        DevicePreconditioner::Ilu0(solves) => Box::new(ilu0(a, DroppedFill::Forgotten)?.solved_by(solves)),
        DevicePreconditioner::Ic0(solves) => Box::new(ic0(a, DroppedFill::Forgotten)?.factors.solved_by(solves)),
        DevicePreconditioner::SsorAi { omega, series, triangles } => {
            Box::new(SsorAi::with_options(a, omega, series, triangles)?)
        }
        DevicePreconditioner::SsorAiMasked { omega } => Box::new(SsorAiMasked::with_options(a, omega)?),
        DevicePreconditioner::BlockSsorAi { omega, block_size } => {
            Box::new(BlockSsorAi::with_options(a, block_size, omega)?)
        }
        ref other => panic!("{other:?} is not on the host"),
    })
}

/// Machine epsilon.
pub fn epsilon<T: DeviceScalar>() -> f64 {
    if size_of::<T>() == 4 { f32::EPSILON.into() } else { f64::EPSILON }
}

/// |found − expected| ≤ allowed·max|expected| in every column.
pub fn assert_columns_close<T: DeviceScalar>(what: &str, found: MatRef<'_, T>, expected: MatRef<'_, T>, allowed: f64) {
    assert_eq!((found.nrows(), found.ncols()), (expected.nrows(), expected.ncols()), "{what}");
    let number = |m: MatRef<'_, T>, i, j| m[(i, j)].cast::<f64>();
    for j in 0..expected.ncols() {
        let size = (0..expected.nrows()).fold(0.0f64, |size, i| size.max(number(expected, i, j).abs()));
        for i in 0..expected.nrows() {
            let off = (number(found, i, j) - number(expected, i, j)).abs();
            assert!(off <= allowed * size, "{what}: x({i}, {j}) is off by {off:e} of {size:e}");
        }
    }
}

/// |found − expected| ≤ factor·ε·size for every element.
pub fn assert_close<T: DeviceScalar>(what: &str, found: &[T], expected: &[T], sizes: &[f64], factor: f64) {
    assert_eq!(found.len(), expected.len(), "{what}: lengths");
    for (i, ((&f, &e), &size)) in found.iter().zip(expected).zip(sizes).enumerate() {
        let error = (f - e).abs().to_f64();
        let bound = factor * epsilon::<T>() * size;
        assert!(error <= bound, "{what}: element {i} is {f:e}, not {e:e}: off by {error:e}, more than {bound:e}");
    }
}
