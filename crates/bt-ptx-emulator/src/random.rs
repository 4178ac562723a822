//! Seeded choices of the scheduler: splitmix64 (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195).

/// A stream of choices. Seed 0 is the plain order: threads and blocks by number, never interrupted early.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
    seed: u64,
}

/// A thread runs at most this many operations at a stretch.
const SHARE: u64 = 20_000;

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed, seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// 0 … n − 1.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        if self.seed == 0 { 0 } else { self.next() % n }
    }

    /// A permutation of 0 … n − 1.
    pub(crate) fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        if self.seed != 0 {
            for k in (1..n).rev() {
                order.swap(k, self.below(k as u64 + 1) as usize);
            }
        }
        order
    }

    /// How many operations a thread may run now: mostly many, sometimes few.
    pub(crate) fn share(&mut self) -> u64 {
        if self.seed == 0 {
            return SHARE;
        }
        match self.next() {
            r if r.is_multiple_of(8) => 1 + (r >> 8) % 64,
            r => 1 + (r >> 8) % SHARE,
        }
    }
}
