//! Vectors that tests multiply with.

use bt_formats::Scalar;

/// The x* of the command: 1 + ((7i) mod 11)/11, i from 0; complex types add ((3i) mod 5)/5 as the imaginary part.
pub fn x_star<T: Scalar>(n: usize) -> Vec<T> {
    (0..n).map(|i| T::rounded(1.0 + (7 * i % 11) as f64 / 11.0, (3 * i % 5) as f64 / 5.0)).collect()
}

/// Numbers in [−1, 1), uniform in each part, the same for the same seed: SplitMix64 (Steele, Lea & Flood, OOPSLA 2014,
/// doi:10.1145/2660193.2660195).
pub fn random_vector<T: Scalar>(n: usize, seed: u64) -> Vec<T> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // The upper 53 bits as a fraction.
        ((z ^ (z >> 31)) >> 11) as f64 * (-52f64).exp2() - 1.0
    };
    (0..n).map(|_| T::rounded(next(), next())).collect()
}
