//! How long stationary distributions take: `cargo run --release -p bt-queue --example stationary_size -- cloud RESOURCES
//! TASKS_PER_RESOURCE`, `… level` with the states by level, or `… blocks LEVELS PHASES` for dense blocks.

use std::time::Instant;

use bt_formats::Csr;
use bt_queue::{CloudModel, Form, Generator, Order, Rates, Stationary};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, m, k] = &args[..] else { return Err("cloud|level|blocks M K".into()) };
    let (m, k) = (m.parse()?, k.parse()?);
    let start = Instant::now();
    let q = match kind.as_str() {
        "blocks" => Generator::new(blocks(m, k)?)?,
        kind => {
            let order = if kind == "level" { Order::LevelMajor } else { Order::TaskMajor };
            let rates = Rates { arrival: 0.5 * m as f64, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
            CloudModel::new(m, k, rates, Form::Repaired)?.generator(order)?
        }
    };
    println!("{} states, {} entries: {:.1?}", q.n(), q.matrix().values().len(), start.elapsed());
    for _ in 0..5 {
        let start = Instant::now();
        let pi = Stationary::gth(&q)?;
        let seconds = start.elapsed();
        let (least, bound) = (pi.least().log10(), pi.error_bound().unwrap_or(f64::NAN));
        println!("{seconds:.1?}: least 1e{least:.1}, balance {:.1e}, bound {bound:.1e}", pi.balance());
        println!("  {}", pi.notes().join("; "));
    }
    Ok(())
}

/// m levels of k phases, all coupled inside and with the next levels; upwards a little slower than downwards.
fn blocks(m: usize, k: usize) -> Result<Csr<f64>, bt_formats::Error> {
    let mut random = 1u64;
    let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..m * k {
        let level = i / k;
        let start = values.len();
        let mut diagonal = start;
        for j in level.saturating_sub(1) * k..(level + 2).min(m) * k {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = (random >> 11) as f64 * 2f64.powi(-53);
            if i == j {
                diagonal = values.len();
            }
            col_idx.push(j as u32);
            values.push(if i == j { 0.0 } else { uniform * if j / k > level { 0.99 } else { 1.0 } });
        }
        values[diagonal] = -values[start..].iter().sum::<f64>();
        row_ptr.push(values.len() as u32);
    }
    Csr::new(m * k, m * k, row_ptr, col_idx, values)
}
