//! Stationary distributions: stationary.

use bt_formats::{BlockTridiagonal, Partition};
use bt_kernels::stationary;

use crate::support::Numbers;
use crate::{alone, counted, exactly};

#[test]
fn eliminations_take_what_their_header_says() {
    let Some((device, _guard)) = alone() else { return };
    for sizes in [&[1u64][..], &[2], &[3, 3], &[5, 5, 5, 5], &[1, 4, 2], &[20, 20], &[2, 2, 2]] {
        let numbers =
            |len: u64| Numbers(12).vector::<f64>(len as usize).iter().map(|v| v.abs() + 0.1).collect::<Vec<_>>();
        let (d, c) = (sizes.iter().map(|k| k * k).sum(), sizes.windows(2).map(|k| 2 * k[0] * k[1]).sum());
        let levels = Partition::from_sizes(sizes.iter().map(|&k| k as usize)).unwrap();
        let chain = BlockTridiagonal::from_dense_blocks(levels, numbers(d), numbers(c)).unwrap();
        let found = counted(|| assert!(stationary(&device, &[&chain]).unwrap()[0].is_ok()));
        let half = 2 * sizes.iter().max().unwrap();
        let threads = (half * half).next_power_of_two().clamp(32, 256);
        let (mut bytes, mut flops) = (8 + 8 * threads, 0);
        for (l, &k) in sizes.iter().enumerate() {
            let before = if l > 0 { sizes[l - 1] } else { 0 };
            let (rows, last) = (before + k, l + 1 == sizes.len());
            // C over D of the last level, C of the others, B, D of the level before; w out and in again; x and its exponents.
            bytes += 8 * (k * if last { rows } else { before } + before * k + before * before + 2 * k * rows) + 16 * k;
            // What a level is, by every thread, up and down, and the level before on the way up.
            bytes += threads * [32, 52, 56][l.min(2)];
            for e in 0..k {
                // States before this one: its pivot by every warp, its column, what it adds to the others; its own sum by a warp.
                let w = before + e;
                if w > 0 {
                    flops += threads / 32 * w + 5 * threads + w + 2 * w * (w - 1);
                }
                flops += 6 * w + 4 * 32 + 2;
            }
        }
        exactly(format!("stationary {sizes:?}"), found, bytes, flops);
    }
}
