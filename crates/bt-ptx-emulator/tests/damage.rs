//! Damaged modules: loading and running them ends in an error or not at all well, and never in a panic.

use bt_ptx_emulator::{Device, Races, Residency, Settings, Shape};

const SAMPLES: &str = include_str!("../testdata/samples.ptx");
const KERNELS: [&str; 7] = ["csr_rows", "dot", "pcr", "lu4", "calls", "votes", "histogram"];

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }
}

/// The samples before a kernel, the kernel, and what follows it.
fn parts(kernel: &str) -> [&'static str; 3] {
    let from = SAMPLES.find(&format!(".visible .entry {kernel}(")).unwrap();
    let to = from + SAMPLES[from..].find("// -- End function").unwrap();
    [&SAMPLES[..from], &SAMPLES[from..to], &SAMPLES[to..]]
}

/// Words taken away, doubled, exchanged, or replaced by others of the text.
fn damage(text: &str, random: &mut Random) -> String {
    let mut words: Vec<&str> = text.split_inclusive([' ', '\t', '\n', ',']).collect();
    for _ in 0..=random.below(3) {
        let (a, b) = (random.below(words.len()), random.below(words.len()));
        match random.below(4) {
            0 => words[a] = words[b],
            1 => words.swap(a, b),
            2 => words.insert(a, words[b]),
            _ => {
                words.remove(a);
            }
        }
    }
    let mut bytes = words.concat().into_bytes();
    if random.below(2) == 0 {
        let at = random.below(bytes.len());
        bytes[at] = b" 0123456789abcdefrx.%$_{}()[];,:<>!@+-"[random.below(38)];
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn damaged_kernels_never_panic() {
    let mut random = Random(17);
    let (mut loaded, mut ran) = (0, 0);
    let rounds: usize = std::env::var("DAMAGE_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    for kernel in KERNELS {
        let [before, text, behind] = parts(kernel);
        for round in 0..rounds {
            let settings =
                Settings { seed: round as u64, budget: 20_000, races: Races::Everywhere, ..Settings::default() };
            let mut device = Device::new(settings);
            let Ok(module) = device.load(&[before, &damage(text, &mut random), behind].concat()) else { continue };
            loaded += 1;
            let Ok(id) = device.kernel(module, kernel) else { continue };
            let buffers: Vec<u64> = (0..6).map(|_| device.allocate(1024).unwrap()).collect();
            for buffer in &buffers {
                device.write(*buffer, &[0; 1024]).unwrap();
            }
            // The first parameter is a number in some kernels and an address in others.
            let first = if random.below(2) == 0 { 40 } else { buffers[5] };
            let parameters: Vec<u8> =
                [&[first][..], &buffers].concat().into_iter().flat_map(u64::to_le_bytes).collect();
            let shape =
                Shape { grid: [2, 1, 1], block: [40, 1, 1], dynamic_shared: 2000, residency: Residency::Ordinary };
            ran += u32::from(device.launch(id, shape, &parameters).is_ok());
        }
    }
    assert!(loaded > 50 && ran > 0, "{loaded} loaded and {ran} ran: too few to show anything");
}
