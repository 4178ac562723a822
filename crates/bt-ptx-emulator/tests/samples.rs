//! Kernels as clang writes them, against the same computation on the host, for several orders of threads.

use bt_ptx_emulator::{Device, FaultKind, KernelId, LaunchError, Races, Residency, Settings, Shape};

const SAMPLES: &str = include_str!("../testdata/samples.ptx");

/// A device with the samples loaded.
struct Bench {
    device: Device,
    module: bt_ptx_emulator::ModuleId,
}

/// Parameters of a launch, each at a multiple of its size.
#[derive(Default)]
struct Parameters(Vec<u8>);

impl Parameters {
    fn with<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        self.0.resize(self.0.len().next_multiple_of(N), 0);
        self.0.extend(bytes);
        self
    }
    fn u32(self, value: u32) -> Self {
        self.with(value.to_le_bytes())
    }
    fn at(self, address: u64) -> Self {
        self.with(address.to_le_bytes())
    }
}

fn none() -> Parameters {
    Parameters::default()
}

impl Bench {
    fn new(seed: u64) -> Self {
        // Odd seeds look for races in global memory too.
        let races = if seed % 2 == 1 { Races::Everywhere } else { Races::Shared };
        let mut device = Device::new(Settings { seed, races, ..Settings::default() });
        let module = device.load(SAMPLES).unwrap();
        Self { device, module }
    }

    fn bytes(&mut self, bytes: &[u8]) -> u64 {
        let address = self.device.allocate(bytes.len()).unwrap();
        self.device.write(address, bytes).unwrap();
        address
    }

    fn doubles(&mut self, values: &[f64]) -> u64 {
        self.bytes(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
    }

    fn words(&mut self, values: &[u32]) -> u64 {
        self.bytes(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
    }

    fn space(&mut self, bytes: usize) -> u64 {
        self.device.allocate(bytes).unwrap()
    }

    fn read_doubles(&self, address: u64, count: usize) -> Vec<f64> {
        let bytes = self.device.read(address, 8 * count).unwrap();
        bytes.chunks_exact(8).map(|c| f64::from_le_bytes(c.try_into().unwrap())).collect()
    }

    fn read_words(&self, address: u64, count: usize) -> Vec<u32> {
        let bytes = self.device.read(address, 4 * count).unwrap();
        bytes.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
    }

    fn kernel(&self, name: &str) -> KernelId {
        self.device.kernel(self.module, name).unwrap()
    }

    fn run(&mut self, name: &str, blocks: u32, threads: u32, dynamic_shared: u32, parameters: &Parameters) {
        let shape =
            Shape { grid: [blocks, 1, 1], block: [threads, 1, 1], dynamic_shared, residency: Residency::Ordinary };
        self.device.launch(self.kernel(name), shape, &parameters.0).unwrap();
    }

    fn run_cooperatively(&mut self, name: &str, blocks: u32, threads: u32, parameters: &Parameters) {
        let shape = Shape {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            dynamic_shared: 0,
            residency: Residency::Cooperative,
        };
        self.device.launch(self.kernel(name), shape, &parameters.0).unwrap();
    }
}

const SEEDS: [u64; 3] = [0, 1, 0x5eed];

/// Numbers in −1 … 1 without pattern.
fn number(k: usize) -> f64 {
    let mixed = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 27) as i64 as f64 / 2f64.powi(63)
}

fn numbers(count: usize, salt: usize) -> Vec<f64> {
    (0..count).map(|k| number(k + 1000 * salt)).collect()
}

/// Rows of 0, 1, 2, … 40 entries, and the product with x in f64.
fn matrix(n: usize) -> (Vec<u32>, Vec<u32>, Vec<f64>) {
    let mut start = vec![0];
    let (mut column, mut value) = (Vec::new(), Vec::new());
    for i in 0..n {
        for j in 0..i % 41 {
            column.push(((i * 7 + j * 13) % n) as u32);
            value.push(number(i * 100 + j));
        }
        start.push(column.len() as u32);
    }
    (start, column, value)
}

#[test]
fn csr_rows_has_the_bits_of_the_host() {
    for (n, seed) in [1, 2, 31, 257].into_iter().flat_map(|n| SEEDS.map(|s| (n, s))) {
        let mut bench = Bench::new(seed);
        let (start, column, value) = matrix(n);
        let x = numbers(n, 1);
        // Clang fuses v·x + sum.
        let expected: Vec<f64> = (0..n)
            .map(|i| {
                (start[i]..start[i + 1]).fold(0., |s, j| value[j as usize].mul_add(x[column[j as usize] as usize], s))
            })
            .collect();
        let (y, padded) = (bench.space(8 * n), |v: &[f64]| [v, &[0.]].concat());
        let parameters = none().u32(n as u32).at(bench.words(&start)).at(bench.words(&[&column[..], &[0]].concat()));
        let parameters = parameters.at(bench.doubles(&padded(&value))).at(bench.doubles(&x)).at(y);
        bench.run("csr_rows", n.div_ceil(64) as u32, 64, 0, &parameters);
        assert_eq!(bench.read_doubles(y, n), expected);
    }
}

#[test]
fn csr_warps_agrees_within_rounding() {
    for seed in SEEDS {
        let (n, mut bench) = (100, Bench::new(seed));
        let (start, column, value) = matrix(n);
        let value: Vec<f32> = value.iter().map(|v| *v as f32).collect();
        let x: Vec<f32> = numbers(n, 1).iter().map(|v| *v as f32).collect();
        let singles = |v: &[f32]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
        let y = bench.space(4 * n);
        let parameters = none().u32(n as u32).at(bench.words(&start)).at(bench.words(&column));
        let parameters = parameters.at(bench.bytes(&singles(&value))).at(bench.bytes(&singles(&x))).at(y);
        bench.run("csr_warps", 25, 128, 0, &parameters);
        for (i, y) in bench.read_words(y, n).into_iter().map(f32::from_bits).enumerate() {
            let terms = (start[i]..start[i + 1]).map(|j| j as usize);
            let expected: f64 = terms.map(|j| f64::from(value[j]) * f64::from(x[column[j] as usize])).sum();
            assert!((f64::from(y) - expected).abs() <= 1e-6, "row {i}: {y} and {expected}");
        }
    }
}

#[test]
fn dot_has_one_result_for_all_orders() {
    let (n, blocks) = (1000, 3);
    let (x, y) = (numbers(n, 1), numbers(n, 2));
    let expected: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
    let results = SEEDS.map(|seed| {
        let mut bench = Bench::new(seed);
        let partial = bench.space(8 * blocks);
        let parameters = none().u32(n as u32).at(bench.doubles(&x)).at(bench.doubles(&y)).at(partial);
        bench.run("dot", blocks as u32, 96, 0, &parameters);
        bench.read_doubles(partial, blocks).iter().sum::<f64>()
    });
    assert!((results[0] - expected).abs() < 1e-12, "{results:?} and {expected}");
    assert!(results.iter().all(|r| r.to_bits() == results[0].to_bits()));
}

/// A diagonally dominant tridiagonal system of known solution.
fn tridiagonal(n: usize) -> [Vec<f64>; 5] {
    let (a, c, x) = (numbers(n, 1), numbers(n, 2), numbers(n, 3));
    let b: Vec<f64> = (0..n).map(|i| 2.5 + number(i + 7)).collect();
    let neighbour = |v: &[f64], i: usize| v.get(i).copied().unwrap_or(0.);
    let r = (0..n).map(|i| {
        let below = if i > 0 { a[i] * x[i - 1] } else { 0. };
        below + b[i] * x[i] + if i + 1 < n { c[i] * neighbour(&x, i + 1) } else { 0. }
    });
    let r = r.collect();
    [a, b, c, r, x]
}

fn assert_close(found: &[f64], expected: &[f64], bound: f64) {
    for (k, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= bound, "element {k}: {f} and {e}");
    }
}

#[test]
fn pcr_solves_in_dynamic_shared_memory() {
    for (n, seed) in [1, 2, 33, 256, 1024].into_iter().flat_map(|n| SEEDS.map(|s| (n, s))) {
        let mut bench = Bench::new(seed);
        let [a, b, c, r, x] = tridiagonal(n);
        let found = bench.space(8 * n);
        let parameters = none().at(bench.doubles(&a)).at(bench.doubles(&b)).at(bench.doubles(&c));
        let parameters = parameters.at(bench.doubles(&r)).at(found);
        bench.run("pcr", 1, n as u32, 32 * n as u32, &parameters);
        assert_close(&bench.read_doubles(found, n), &x, 1e-12);
    }
}

#[test]
fn thomas_solves_interleaved_systems() {
    let (rows, systems, mut bench) = (50, 40, Bench::new(7));
    let [a, b, c, r, x] = tridiagonal(rows);
    let spread = |v: &[f64]| v.iter().flat_map(|v| vec![*v; systems]).collect::<Vec<_>>();
    let clean = |v: Vec<f64>, at: usize| {
        v.iter().enumerate().map(|(k, v)| if k / systems == at { 0. } else { *v }).collect::<Vec<_>>()
    };
    let (a, c, d) = (clean(spread(&a), 0), clean(spread(&c), rows - 1), spread(&r));
    let d = bench.doubles(&d);
    let parameters = none().u32(rows as u32).u32(systems as u32).at(bench.doubles(&a)).at(bench.doubles(&spread(&b)));
    let parameters = parameters.at(bench.doubles(&c)).at(d);
    bench.run("thomas", 2, 32, 0, &parameters);
    assert_close(&bench.read_doubles(d, rows * systems), &spread(&x), 1e-12);
}

#[test]
fn lu_in_local_memory_multiplies_back() {
    let (count, mut bench) = (33, Bench::new(3));
    let matrices = numbers(16 * count, 5);
    let at = bench.doubles(&matrices);
    bench.run("lu4", 2, 32, 0, &none().u32(count as u32).at(at));
    let factors = bench.read_doubles(at, 16 * count);
    for (m, lu) in matrices.chunks_exact(16).zip(factors.chunks_exact(16)) {
        // |det| does not know the order of the rows.
        let minor = |r: [usize; 3], c: [usize; 3]| -> f64 {
            let e = |i: usize, j: usize| m[4 * r[i] + c[j]];
            e(0, 0) * (e(1, 1) * e(2, 2) - e(1, 2) * e(2, 1)) - e(0, 1) * (e(1, 0) * e(2, 2) - e(1, 2) * e(2, 0))
                + e(0, 2) * (e(1, 0) * e(2, 1) - e(1, 1) * e(2, 0))
        };
        let rest = |k: usize| -> [usize; 3] { (0..4).filter(|c| *c != k).collect::<Vec<_>>().try_into().unwrap() };
        let det: f64 = (0..4).map(|k| (1. - 2. * (k % 2) as f64) * m[k] * minor([1, 2, 3], rest(k))).sum();
        let product: f64 = (0..4).map(|k| lu[5 * k]).product();
        assert!((det.abs() - product.abs()).abs() < 1e-12, "{det} and {product}");
        assert!((0..4).all(|c| (0..c).all(|r| lu[4 * c + r].abs() <= 1.)), "multipliers are bounded");
    }
}

#[test]
fn structures_are_parameters() {
    let (n, mut bench) = (100, Bench::new(1));
    let (x, y) = (numbers(n, 1), numbers(n, 2));
    let (dx, dy) = (bench.doubles(&x), bench.doubles(&y));
    let parameters = none().with(1.5f64.to_le_bytes()).u32(n as u32).at(dx).at(dy);
    bench.run("axpy", 4, 32, 0, &parameters);
    let expected: Vec<f64> = x.iter().zip(&y).map(|(x, y)| 1.5f64.mul_add(*x, *y)).collect();
    assert_eq!(bench.read_doubles(dy, n), expected);
}

#[test]
fn a_cooperative_launch_meets_at_grid_barriers() {
    for seed in SEEDS {
        let (n, steps, mut bench) = (1000usize, 9, Bench::new(seed));
        let mut x = numbers(n, 1);
        let (dx, dy) = (bench.doubles(&x), bench.space(8 * n));
        let parameters = none().u32(n as u32).u32(steps).at(dx).at(dy).at(bench.words(&[0]));
        bench.run_cooperatively("jacobi", 7, 64, &parameters);
        for _ in 0..steps {
            let at = |i: Option<usize>| i.and_then(|i| x.get(i)).copied().unwrap_or(0.);
            x = (0..n).map(|i| (at(i.checked_sub(1)) + at(Some(i + 1)) + [1., 2., 3.][i % 3]) * 0.25).collect();
        }
        assert_eq!(bench.read_doubles(dy, n), x);
    }
}

#[test]
fn a_grid_barrier_without_its_fences_is_a_race() {
    for seed in SEEDS {
        let mut device = Device::new(Settings { seed, races: Races::Everywhere, ..Settings::default() });
        let module = device.load(&SAMPLES.replace("membar.gl;", "")).unwrap();
        let mut bench = Bench { device, module };
        let (x, y) = (bench.doubles(&numbers(1000, 1)), bench.space(8000));
        let parameters = none().u32(1000).u32(9).at(x).at(y).at(bench.words(&[0]));
        let shape = Shape { grid: [7, 1, 1], block: [64, 1, 1], dynamic_shared: 0, residency: Residency::Cooperative };
        let kernel = bench.kernel("jacobi");
        let Err(LaunchError::Fault(fault)) = bench.device.launch(kernel, shape, &parameters.0) else { panic!() };
        assert_eq!(fault.kind, FaultKind::Race, "{fault}");
    }
}

#[test]
fn conjugate_gradients_in_one_launch() {
    for (n, seed) in [(1usize, 0), (33, 1), (500, 2)] {
        let (blocks, mut bench) = (4, Bench::new(seed));
        let b = numbers(n, 1);
        let x = bench.space(8 * n);
        let parameters = none().u32(n as u32).u32(40).at(bench.doubles(&b)).at(x);
        let parameters = parameters.at(bench.space(8 * n)).at(bench.space(8 * n)).at(bench.space(8 * n));
        let parameters = parameters.at(bench.space(16 * blocks)).at(bench.words(&[0]));
        bench.run_cooperatively("cg", blocks as u32, 64, &parameters);
        let x = bench.read_doubles(x, n);
        let at = |i: Option<usize>| i.and_then(|i| x.get(i)).copied().unwrap_or(0.);
        let product: Vec<f64> = (0..n).map(|i| 2.5 * x[i] - at(i.checked_sub(1)) - at(Some(i + 1))).collect();
        assert_close(&product, &b, 1e-10);
    }
}

#[test]
fn segmented_sums_of_a_block() {
    let (n, mut bench) = (256, Bench::new(9));
    let value = numbers(n, 1);
    let head: Vec<u32> = (0..n).map(|i| u32::from(i % 37 == 0 || i == 5)).collect();
    let mut expected = value.clone();
    for i in (1..n).filter(|i| head[*i] == 0) {
        expected[i] += expected[i - 1];
    }
    let sum = bench.space(8 * n);
    let parameters = none().at(bench.words(&head)).at(bench.doubles(&value)).at(sum);
    bench.run("segmented_sums", 1, n as u32, 0, &parameters);
    assert_close(&bench.read_doubles(sum, n), &expected, 1e-13);
}

#[test]
fn calls_have_frames() {
    let mut bench = Bench::new(0);
    let x = bench.doubles(&numbers(32, 1));
    bench.run("calls", 1, 32, 0, &none().at(x).u32(3));
    let expected: Vec<f64> = numbers(32, 1).iter().enumerate().map(|(k, x)| x * ((3 + k) % 8) as f64 + 8.).collect();
    assert_eq!(bench.read_doubles(x, 32), expected);
}

#[test]
fn votes_of_a_warp() {
    for seed in SEEDS {
        let mut bench = Bench::new(seed);
        let out = bench.space(4 * 128);
        bench.run("votes", 1, 32, 0, &none().at(out));
        let found = bench.read_words(out, 128);
        for t in 0..32 {
            let row = [found[t], found[32 + t], found[64 + t], found[96 + t]];
            assert_eq!(row, [0xaaaa_aaaa, 3, 0xf << (t / 4 * 4), 28 + 200]);
        }
    }
}

#[test]
fn atomics_count_in_shared_and_global_memory() {
    for seed in SEEDS {
        let mut bench = Bench::new(seed);
        let value: Vec<u32> = (0..1000).map(|k| k * k).collect();
        let count = bench.words(&[0; 16]);
        let parameters = none().u32(1000).at(bench.words(&value)).at(count);
        bench.run("histogram", 3, 64, 0, &parameters);
        let mut expected = [0; 16];
        for v in &value {
            expected[*v as usize % 16] += 1;
        }
        assert_eq!(bench.read_words(count, 16), expected);
    }
}
