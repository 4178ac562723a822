//! Reads a Matrix Market file once for every line on standard input and prints the seconds each took, so that a
//! script can interleave it with another reader: `yes | head -5 | cargo run --release --example read_speed A.mtx`.

use std::io::BufRead;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: read_speed FILE")?;
    for line in std::io::stdin().lock().lines() {
        line?;
        let start = Instant::now();
        let a = bt_formats::read_matrix(&path)?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{seconds} {}", a.nnz());
    }
    Ok(())
}
