//! How many operations a second kernels of the samples run at: `cargo run -p bt-ptx-emulator --example speed`.

use std::time::Instant;

use bt_ptx_emulator::{Device, Residency, Settings, Shape};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut device = Device::new(Settings::default());
    let module = device.load(include_str!("../testdata/samples.ptx"))?;
    let n = 100_000u64;
    let doubles = |device: &mut Device, count: u64, value: f64| -> Result<u64, Box<dyn std::error::Error>> {
        let address = device.allocate(8 * count as usize)?;
        device.write(address, &value.to_le_bytes().repeat(count as usize))?;
        Ok(address)
    };
    let words = |device: &mut Device, values: Vec<u32>| -> Result<u64, Box<dyn std::error::Error>> {
        let address = device.allocate(4 * values.len())?;
        device.write(address, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())?;
        Ok(address)
    };
    let (x, y, z) = (doubles(&mut device, n, 0.5)?, doubles(&mut device, n, 3.)?, doubles(&mut device, n, 0.)?);
    let (value, start) =
        (doubles(&mut device, 5 * n, 1.)?, words(&mut device, (0..=n as u32).map(|i| 5 * i).collect())?);
    let column = words(&mut device, (0..5 * n as u32).map(|k| (k / 5 + k % 5) % n as u32).collect())?;
    let arrived = words(&mut device, vec![0])?;
    let (ordinary, cooperative) = (Residency::Ordinary, Residency::Cooperative);
    for (name, blocks, threads, dynamic_shared, residency, parameters) in [
        ("csr_rows", n.div_ceil(256), 256, 0, ordinary, vec![n, start, column, value, x, z]),
        ("dot", 20, 256, 0, ordinary, vec![n, x, y, z]),
        ("pcr", 1, 1024, 32 << 10, ordinary, vec![x, y, x, y, z]),
        ("pcr", 20, 64, 2 << 10, ordinary, vec![x, y, x, y, z]),
        ("thomas", 16, 64, 0, ordinary, vec![0x3e8_0000_005a, x, y, z, z]),
        ("jacobi", 16, 128, 0, cooperative, vec![n + (4 << 32), x, z, arrived]),
    ] {
        let shape = Shape { grid: [blocks as u32, 1, 1], block: [threads, 1, 1], dynamic_shared, residency };
        let parameters: Vec<u8> = parameters.into_iter().flat_map(u64::to_le_bytes).collect();
        let (kernel, before, began) = (device.kernel(module, name)?, device.operations(), Instant::now());
        let mut launches = 0;
        while began.elapsed().as_secs_f64() < 0.3 && (residency == ordinary || launches == 0) {
            device.launch(kernel, shape, &parameters).map_err(|error| format!("{error:?}"))?;
            launches += 1;
        }
        let (operations, seconds) = (device.operations() - before, began.elapsed().as_secs_f64());
        println!("{name:10} {:8.1} million operations/s, {launches} launches", operations as f64 / seconds / 1e6);
    }
    Ok(())
}
