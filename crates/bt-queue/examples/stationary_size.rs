//! How long the stationary distribution of the cloud model takes: `cargo run --release -p bt-queue --example
//! stationary_size -- RESOURCES TASKS_PER_RESOURCE [level]`, the last for the order by levels.

use std::time::Instant;

use bt_queue::{CloudModel, Form, Order, Rates, Stationary};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut size = |default: usize| args.next().map_or(Ok(default), |a| a.parse());
    let (m, k) = (size(2000)?, size(8)?);
    let order = if args.next().is_some() { Order::LevelMajor } else { Order::TaskMajor };
    let rates = Rates { arrival: 0.5 * m as f64, service: 1.0, turn_on: 1.0, turn_off: 1.0 };
    let start = Instant::now();
    let q = CloudModel::new(m, k, rates, Form::Repaired)?.generator(order)?;
    let built = start.elapsed();
    for _ in 0..3 {
        let start = Instant::now();
        let pi = Stationary::gth(&q)?;
        let solved = start.elapsed();
        let least = pi.least().log10();
        println!(
            "{} states: generator {built:.1?}, stationary {solved:.1?}, least 1e{least:.1}, balance {:.1e}, bound {:.1e}",
            q.n(),
            pi.balance(),
            pi.error_bound().unwrap_or(f64::NAN),
        );
        println!("  {}", pi.notes().join("; "));
    }
    Ok(())
}
