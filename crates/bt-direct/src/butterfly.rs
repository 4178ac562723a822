//! Recursive random butterflies, which make pivoting unnecessary with high probability.
//!
//! ```text
//! B⟨n⟩ = 1/√2 · [R₀  R₁]      W⟨n,1⟩ = B⟨n⟩      W⟨n,d⟩ = diag(B₁, …, B_{2^(d−1)}) · W⟨n,d−1⟩
//!               [R₀ −R₁]
//! ```
//!
//! R₀ and R₁ are random diagonals with entries exp(r/10), r uniform in [−1/2, 1/2], so that ‖W‖‖W⁻¹‖ ≤ 1.11^d. n is a
//! multiple of 2^d. The determinant is known: (−1)^(n/2) and Σ r/10 a level, since det B⟨n⟩ = (−1)^(n/2)·∏ exp(r/10).
//!
//! Parker, Random butterfly transformations with applications in computational linear algebra, UCLA CSD-950023 (1995);
//! Baboulin, Dongarra, Herrmann & Tomov, ACM TOMS 39 (2013) 8, doi:10.1145/2427023.2427025 (depth 2 suffices). The
//! numbers come from SplitMix64 (Steele, Lea & Flood, OOPSLA 2014, doi:10.1145/2660193.2660195).
//!
//! Storage: d·n reals. Cost: 3·d·n flops a vector, and 6·d·n² for Wᵀ·A·W on both sides, in one pass over A: the 2^d
//! columns that a butterfly of the right side mixes are loaded, transformed from the left while each is in the cache,
//! and mixed.

use bt_formats::{Error, Op, Par, RealScalar, Scalar};
use faer::MatMut;

use crate::columns::{check_size, for_each_column};
use crate::dense::join;
use crate::error::Result;
use crate::lines;
use crate::memory::reserve;
use crate::nopivot::times;

/// Largest depth: 2^4 columns are transformed together.
pub const MAX_DEPTH: usize = 4;
/// Most columns of A that are transformed together.
const SECTIONS: usize = 1 << MAX_DEPTH;
/// Columns of a section that one task transforms, at least.
const GRAIN: usize = 16;

/// A random butterfly W of size n and depth d.
///
/// ```
/// use bt_direct::Butterfly;
/// use bt_formats::Op;
/// let w = Butterfly::<f64>::new(8, 2, 42)?;
/// // yᵀ·(W·x) = (Wᵀ·y)ᵀ·x
/// let (mut x, mut y) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
/// let before = (x, y);
/// w.apply(Op::Identity, &mut x);
/// w.apply(Op::Transpose, &mut y);
/// let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
/// assert!((dot(&x, &before.1) - dot(&before.0, &y)).abs() < 1e-13);
/// # Ok::<(), bt_direct::FactorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Butterfly<T: Scalar> {
    n: usize,
    depth: usize,
    seed: u64,
    /// Level ℓ at ℓ·n: the diagonals of its blocks of n/2^ℓ rows, R₀ then R₁, divided by √2. Level 0 is B⟨n⟩.
    levels: Vec<T::Real>,
    log_abs_det: f64,
}

impl<T: Scalar> Butterfly<T> {
    /// The butterfly of a seed; the same for the same n, d and seed. Depth 0 is the identity.
    ///
    /// # Errors
    /// [`FactorError::Input`](crate::FactorError::Input) when the depth is above [`MAX_DEPTH`], n is not a multiple of
    /// 2^d, or there is not the memory.
    pub fn new(n: usize, depth: usize, seed: u64) -> Result<Self> {
        if depth > MAX_DEPTH || !n.is_multiple_of(1 << depth) {
            return Err(Error::InvalidStructure {
                what: "butterfly",
                why: format!(
                    "depth {depth} and size {n}: the depth is at most {MAX_DEPTH}, the size a multiple of 2^depth"
                ),
            }
            .into());
        }
        let mut levels = Vec::new();
        reserve(&mut levels, depth * n)?;
        let mut w = Self { n, depth, seed, levels, log_abs_det: 0.0 };
        w.fill(seed);
        Ok(w)
    }

    /// Draws the entries anew.
    fn fill(&mut self, seed: u64) {
        self.levels.clear();
        self.log_abs_det = 0.0;
        let mut state = seed;
        for _ in 0..self.depth * self.n {
            let entry = T::Real::from_f64((uniform(&mut state) / 10.0).exp() * std::f64::consts::FRAC_1_SQRT_2);
            // Of the entry as rounded.
            self.log_abs_det += entry.to_f64().ln() + std::f64::consts::LN_2 / 2.0;
            self.levels.push(entry);
        }
    }

    /// Size n.
    pub fn n(&self) -> usize {
        self.n
    }
    /// Depth d.
    pub fn depth(&self) -> usize {
        self.depth
    }
    /// The seed it was drawn from.
    pub fn seed(&self) -> u64 {
        self.seed
    }
    /// The entries: level ℓ at ℓ·n, the diagonals R₀ then R₁ of each of its blocks of n/2^ℓ rows, divided by √2.
    pub fn entries(&self) -> &[T::Real] {
        &self.levels
    }
    /// log|det W|.
    pub fn log_abs_det(&self) -> f64 {
        self.log_abs_det
    }
    /// Whether det W < 0: every level of 2^ℓ blocks contributes (−1)^(n/2).
    pub fn is_det_negative(&self) -> bool {
        self.depth % 2 == 1 && self.n % 4 == 2
    }
    /// Bytes of the entries.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.levels)
    }

    /// x ← op(W)·x. W is real, so Wᴴ = Wᵀ.
    ///
    /// # Panics
    /// When `x` has not n elements.
    pub fn apply(&self, op: Op, x: &mut [T]) {
        assert_eq!(x.len(), self.n, "length of x");
        lines::dispatch::<T, _>(bt_simd::Loops(
            #[inline(always)]
            || match op {
                Op::Identity => self.forward(x),
                Op::Transpose | Op::Adjoint => self.transposed(x),
            },
        ));
    }

    /// X ← op(W)·X, column by column.
    ///
    /// # Panics
    /// When `x` has not n rows, or its columns are not contiguous.
    pub fn apply_many(&self, op: Op, x: MatMut<'_, T>) {
        for_each_column(x, |x| self.apply(op, x));
    }

    /// (x₀, x₁) ← (R₀x₀ + R₁x₁, R₀x₀ − R₁x₁)/√2 in every block, the largest first.
    #[inline(always)]
    fn forward(&self, x: &mut [T]) {
        for level in 0..self.depth {
            let size = self.n >> level;
            let w = &self.levels[level * self.n..(level + 1) * self.n];
            for (x, w) in x.chunks_exact_mut(size.max(1)).zip(w.chunks_exact(size.max(1))) {
                let ((x0, x1), (w0, w1)) = (x.split_at_mut(size / 2), w.split_at(size / 2));
                for i in 0..x0.len() {
                    let (a, b) = (times(x0[i], w0[i]), times(x1[i], w1[i]));
                    (x0[i], x1[i]) = (a + b, a - b);
                }
            }
        }
    }

    /// (x₀, x₁) ← (R₀(x₀ + x₁), R₁(x₀ − x₁))/√2 in every block, the smallest first.
    #[inline(always)]
    fn transposed(&self, x: &mut [T]) {
        let mut depth = self.depth;
        while depth >= 2 {
            depth -= 2;
            self.transposed_twice(depth, x);
        }
        if depth == 1 {
            let size = self.n;
            let w = &self.levels[..self.n];
            for (x, w) in x.chunks_exact_mut(size.max(1)).zip(w.chunks_exact(size.max(1))) {
                let ((x0, x1), (w0, w1)) = (x.split_at_mut(size / 2), w.split_at(size / 2));
                for i in 0..x0.len() {
                    let (a, b) = (x0[i], x1[i]);
                    (x0[i], x1[i]) = (times(a + b, w0[i]), times(a - b, w1[i]));
                }
            }
        }
    }

    /// Levels ℓ + 1 and ℓ in one pass over quarters of the blocks of level ℓ.
    #[inline(always)]
    fn transposed_twice(&self, level: usize, x: &mut [T]) {
        let quarter = (self.n >> level) / 4;
        if quarter == 0 {
            return;
        }
        let fine = self.levels[(level + 1) * self.n..(level + 2) * self.n].chunks_exact(4 * quarter);
        let coarse = self.levels[level * self.n..(level + 1) * self.n].chunks_exact(4 * quarter);
        for ((x, w), v) in x.chunks_exact_mut(4 * quarter).zip(fine).zip(coarse) {
            let ((x0, rest), [w0, w1, w2, w3]) = (x.split_at_mut(quarter), quarters(w, quarter));
            let ((x1, rest), [v0, v1, v2, v3]) = (rest.split_at_mut(quarter), quarters(v, quarter));
            let (x2, x3) = rest.split_at_mut(quarter);
            let x3 = &mut x3[..quarter];
            for i in 0..quarter {
                let (a, b) = (times(x0[i] + x1[i], w0[i]), times(x0[i] - x1[i], w1[i]));
                let (c, d) = (times(x2[i] + x3[i], w2[i]), times(x2[i] - x3[i], w3[i]));
                (x0[i], x1[i]) = (times(a + c, v0[i]), times(b + d, v1[i]));
                (x2[i], x3[i]) = (times(a - c, v2[i]), times(b - d, v3[i]));
            }
        }
    }

    /// A ← Wᵀ·A·V for W = `self` and V = `right`, in place: n × n values by columns `ld` apart.
    ///
    /// # Errors
    /// [`FactorError::Input`](crate::FactorError::Input) when sizes or depths of the two differ.
    ///
    /// # Panics
    /// When `a` has not ld·n values, or ld < n.
    ///
    /// # Cost
    /// 6·d·n² flops, one pass over A; columns are split among the threads of the pool with [`Par::Rayon`].
    pub fn transform(&self, right: &Self, a: &mut [T], ld: usize, par: Par) -> Result<()> {
        self.load_transformed(right, a, ld, par, &|_, _| {})
    }

    /// The same of the matrix whose columns `load` writes: column j into the `ld` values of its second argument.
    #[inline(never)]
    pub(crate) fn load_transformed(
        &self,
        right: &Self,
        a: &mut [T],
        ld: usize,
        par: Par,
        load: &(impl Fn(usize, &mut [T]) + Sync),
    ) -> Result<()> {
        check_size("size of the right butterfly", self.n, right.n)?;
        check_size("depth of the right butterfly", self.depth, right.depth)?;
        assert!(ld >= self.n && a.len() == ld * self.n, "values of A");
        if self.n == 0 {
            return Ok(());
        }
        let sections = 1 << self.depth;
        let mut rest = a.chunks_exact_mut(ld * (self.n / sections));
        let work = TwoSided { left: self, right, ld, load };
        let columns = std::array::from_fn(|s| if s < sections { rest.next().unwrap_or_default() } else { &mut [][..] });
        work.run(0, columns, par);
        Ok(())
    }
}

/// The next number of SplitMix64, uniform in [−1/2, 1/2).
pub(crate) fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    // The upper 53 bits as a fraction.
    ((z ^ (z >> 31)) >> 11) as f64 * (-53f64).exp2() - 0.5
}

/// The four quarters of a list.
#[inline(always)]
fn quarters<R>(w: &[R], quarter: usize) -> [&[R]; 4] {
    [0, 1, 2, 3].map(|k| &w[k * quarter..(k + 1) * quarter])
}

/// A transformation from both sides.
struct TwoSided<'a, T: Scalar, L> {
    left: &'a Butterfly<T>,
    right: &'a Butterfly<T>,
    ld: usize,
    load: &'a L,
}

impl<T: Scalar, L: Fn(usize, &mut [T]) + Sync> TwoSided<'_, T, L> {
    /// The columns from `first` on of every section.
    fn run(&self, first: usize, mut columns: [&mut [T]; SECTIONS], par: Par) {
        let count = columns[0].len() / self.ld;
        if count >= 2 * GRAIN {
            let half = count / 2 * self.ld;
            let mut rest: [&mut [T]; SECTIONS] = std::array::from_fn(|_| &mut [][..]);
            for (columns, rest) in columns.iter_mut().zip(&mut rest) {
                let whole = std::mem::take(columns);
                (*columns, *rest) = whole.split_at_mut(half.min(whole.len()));
            }
            join(par, || self.run(first, columns, par), || self.run(first + count / 2, rest, par));
            return;
        }
        lines::dispatch::<T, _>(bt_simd::Loops(
            #[inline(always)]
            || {
                for j in 0..count {
                    self.group(first, j, &mut columns);
                }
            },
        ));
    }

    /// Column j of every piece, which is column first + j of its section.
    #[inline(always)]
    fn group(&self, first: usize, j: usize, columns: &mut [&mut [T]; SECTIONS]) {
        let (n, depth, ld) = (self.left.n, self.left.depth, self.ld);
        let sections = 1 << depth;
        let section = n / sections;
        let rows = j * ld..j * ld + n;
        for (s, columns) in columns[..sections].iter_mut().enumerate() {
            (self.load)(s * section + first + j, &mut columns[j * ld..(j + 1) * ld]);
            // Wᵀ·a
            self.left.transposed(&mut columns[rows.clone()]);
        }
        // The rows of A are transformed as its columns are: (Aᵀ ← Vᵀ·Aᵀ).
        let entry = |level: usize, s: usize| self.right.levels[level * n + s * section + first + j];
        let mut levels = depth;
        while levels >= 2 {
            // Levels ℓ + 1 and ℓ in one pass over four columns.
            levels -= 2;
            let step = sections >> (levels + 2);
            for s in (0..sections).filter(|s| s & (3 * step) == 0) {
                let [s0, s1, s2, s3] = [0, 1, 2, 3].map(|k| s + k * step);
                let [w0, w1, w2, w3] = [s0, s1, s2, s3].map(|s| entry(levels + 1, s));
                let [v0, v1, v2, v3] = [s0, s1, s2, s3].map(|s| entry(levels, s));
                let (x0, rest) = columns[s0..].split_at_mut(step);
                let (x1, rest) = rest.split_at_mut(step);
                let (x2, x3) = rest.split_at_mut(step);
                let [x0, x1, x2, x3] = [x0, x1, x2, x3].map(|x| &mut x[0][rows.clone()]);
                for i in 0..n {
                    let (a, b) = (times(x0[i] + x1[i], w0), times(x0[i] - x1[i], w1));
                    let (c, d) = (times(x2[i] + x3[i], w2), times(x2[i] - x3[i], w3));
                    (x0[i], x1[i]) = (times(a + c, v0), times(b + d, v1));
                    (x2[i], x3[i]) = (times(a - c, v2), times(b - d, v3));
                }
            }
        }
        for level in (0..levels).rev() {
            // The one level left of an odd depth: the largest blocks.
            let half = sections / 2;
            for s in (0..sections).filter(|s| s & half == 0) {
                let (before, after) = columns.split_at_mut(s + half);
                let (x0, x1) = (&mut before[s][rows.clone()], &mut after[0][rows.clone()]);
                let (w0, w1) = (entry(level, s), entry(level, s + half));
                for (x0, x1) in x0.iter_mut().zip(x1) {
                    let (a, b) = (*x0, *x1);
                    (*x0, *x1) = (times(a + b, w0), times(a - b, w1));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::{c32, c64, zero};
    use faer::Mat;

    /// W as a matrix, by its definition.
    fn explicit<T: Scalar>(w: &Butterfly<T>) -> Mat<T> {
        let n = w.n;
        let mut product = Mat::<T>::identity(n, n);
        for level in 0..w.depth {
            let size = n >> level;
            let factor = Mat::from_fn(n, n, |i, j| {
                let (block, h) = (i / size * size, size / 2);
                if j / size * size != block || (i - j.min(i)) % h != 0 || (j - i.min(j)) % h != 0 {
                    return zero();
                }
                let entry = T::from_real(w.levels[level * n + j]);
                if i - block >= h && j - block >= h { -entry } else { entry }
            });
            product = factor * product;
        }
        product
    }

    fn check<T: Scalar>(n: usize, depth: usize) {
        let (w, v) = (Butterfly::<T>::new(n, depth, 7).unwrap(), Butterfly::<T>::new(n, depth, 8).unwrap());
        let (wx, vx) = (explicit(&w), explicit(&v));
        let a = Mat::from_fn(n, n, |i, j| T::rounded(((3 * i + 5 * j) % 7) as f64 - 3.0, ((i + 2 * j) % 5) as f64));
        let u = crate::refine::unit_roundoff::<T>();
        let close = |x: &Mat<T>, y: &Mat<T>| {
            let difference = x - y;
            difference.norm_max().to_f64() <= 100.0 * u * y.norm_max().to_f64()
        };
        for (op, expected) in
            [(Op::Identity, &wx * &a), (Op::Transpose, wx.transpose() * &a), (Op::Adjoint, wx.adjoint() * &a)]
        {
            let mut x = a.clone();
            w.apply_many(op, x.as_mut());
            assert!(close(&x, &expected), "{op:?}, n = {n}, depth {depth}");
        }
        let ld = n + 3;
        let mut values = vec![zero::<T>(); ld * n];
        for j in 0..n {
            for i in 0..n {
                values[j * ld + i] = a[(i, j)];
            }
        }
        w.transform(&v, &mut values, ld, Par::Seq).unwrap();
        let found = Mat::from_fn(n, n, |i, j| values[j * ld + i]);
        assert!(close(&found, &(wx.transpose() * &a * &vx)), "n = {n}, depth {depth}");
        // The determinant.
        let lu = wx.partial_piv_lu();
        let log: f64 = (0..n).map(|i| lu.U()[(i, i)].abs().to_f64().ln()).sum();
        assert!((log - w.log_abs_det()).abs() < 1e3 * n as f64 * u, "{log} {}", w.log_abs_det());
        let det = wx.determinant().re().to_f64();
        assert_eq!(det < 0.0, w.is_det_negative(), "n = {n}, depth {depth}: {det}");
    }

    #[test]
    fn agrees_with_the_definition() {
        for (n, depth) in [(1, 0), (2, 1), (6, 1), (4, 2), (12, 2), (24, 3), (16, 4), (80, 2), (160, 1)] {
            check::<f64>(n, depth);
            check::<c32>(n, depth);
        }
        check::<f32>(8, 2);
        check::<c64>(8, 2);
    }

    #[test]
    fn entries_are_in_their_range_and_seeded() {
        let w = Butterfly::<f64>::new(64, 2, 1).unwrap();
        let scaled: Vec<f64> = w.levels.iter().map(|e| (e * 2f64.sqrt()).ln() * 10.0).collect();
        assert!(scaled.iter().all(|r| r.abs() <= 0.5 + 1e-12));
        assert!(scaled.iter().any(|r| *r > 0.3) && scaled.iter().any(|r| *r < -0.3));
        assert_eq!(w.levels, Butterfly::<f64>::new(64, 2, 1).unwrap().levels);
        assert_ne!(w.levels, Butterfly::<f64>::new(64, 2, 2).unwrap().levels);
        assert_eq!(w.bytes(), 8 * 2 * 64);
    }

    #[test]
    fn sizes_are_checked() {
        assert!(Butterfly::<f64>::new(6, 2, 0).is_err());
        assert!(Butterfly::<f64>::new(32, 5, 0).is_err());
        let (w, v) = (Butterfly::<f64>::new(8, 2, 0).unwrap(), Butterfly::<f64>::new(8, 1, 0).unwrap());
        assert!(w.transform(&v, &mut [0.0; 64], 8, Par::Seq).is_err());
        let none = Butterfly::<f64>::new(0, 2, 0).unwrap();
        none.transform(&none, &mut [], 0, Par::Seq).unwrap();
    }

    #[test]
    fn threads_do_not_change_bits() {
        let n = 256;
        let (w, v) = (Butterfly::<f32>::new(n, 2, 1).unwrap(), Butterfly::<f32>::new(n, 2, 2).unwrap());
        let a: Vec<f32> = (0..n * n).map(|k| (k % 97) as f32 - 40.0).collect();
        let run = |par| {
            let mut a = a.clone();
            w.transform(&v, &mut a, n, par).unwrap();
            a
        };
        let reference = run(Par::Seq);
        for threads in 1..=3 {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert!(pool.install(|| run(Par::Rayon)) == reference);
        }
    }
}
