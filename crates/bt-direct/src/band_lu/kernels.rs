//! Inner loops on contiguous columns. They are plain loops over arrays of fixed length, which the compiler vectorises
//! for the instruction set of the function they are inlined into; call them under `bt_simd::dispatch`.

pub(crate) use bt_formats::mul_add;
use bt_formats::{Op, RealScalar, Scalar, zero};

/// y ← y − a·x.
#[inline(always)]
pub(crate) fn axpy_minus<T: Scalar, const FUSED: bool>(a: T, x: &[T], y: &mut [T]) {
    let n = x.len().min(y.len());
    let minus_a = -a;
    let (xs, x_tail) = x[..n].as_chunks::<LANES>();
    let (ys, y_tail) = y[..n].as_chunks_mut::<LANES>();
    for (y, x) in ys.iter_mut().zip(xs) {
        for k in 0..LANES {
            y[k] = mul_add::<T, FUSED>(minus_a, x[k], y[k]);
        }
    }
    for (y, &x) in y_tail.iter_mut().zip(x_tail) {
        *y = mul_add::<T, FUSED>(minus_a, x, *y);
    }
}

/// Σ xᵢyᵢ, in interleaved partial sums.
#[inline(always)]
pub(crate) fn dot<T: Scalar, const FUSED: bool>(x: &[T], y: &[T], map: impl Fn(T) -> T) -> T {
    let n = x.len().min(y.len());
    let (x, y) = (&x[..n], &y[..n]);
    let mut lanes = [zero::<T>(); LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    for ((s, &x), &y) in lanes.iter_mut().zip(xs.remainder()).zip(ys.remainder()) {
        *s = map(x) * y;
    }
    for (x, y) in xs.zip(ys) {
        for k in 0..LANES {
            lanes[k] = mul_add::<T, FUSED>(map(x[k]), y[k], lanes[k]);
        }
    }
    reduce(lanes, |a, b| a + b)
}

/// [`dot`] with xᵢ, or with its conjugate for the adjoint.
#[inline(always)]
pub(crate) fn dot_as<T: Scalar, const FUSED: bool>(op: Op, x: &[T], y: &[T]) -> T {
    if T::IS_REAL || op != Op::Adjoint { dot::<T, FUSED>(x, y, |v| v) } else { dot::<T, FUSED>(x, y, Scalar::conj) }
}

/// Values worked on together; 8 doubles are an AVX-512 register.
pub(crate) const LANES: usize = 8;

/// lanes ← max(lanes, |re vᵢ| + |im vᵢ|) lane by lane; NaN sticks.
#[inline(always)]
pub(crate) fn max_lanes<T: Scalar>(x: &[T], lanes: &mut [T::Real; LANES]) {
    let (chunks, tail) = x.as_chunks::<LANES>();
    for (m, v) in lanes.iter_mut().zip(tail) {
        *m = m.max_nan(v.abs1());
    }
    for chunk in chunks {
        for k in 0..LANES {
            lanes[k] = lanes[k].max_nan(chunk[k].abs1());
        }
    }
}

/// Σ|vᵢ| in the true modulus; lanes ← max(lanes, |re vᵢ| + |im vᵢ|) lane by lane.
#[inline(always)]
pub(crate) fn sum_and_max<T: Scalar>(x: &[T], maxima: &mut [T::Real; LANES]) -> T::Real {
    let mut sums = [zero::<T::Real>(); LANES];
    let (chunks, tail) = x.as_chunks::<LANES>();
    for (k, v) in tail.iter().enumerate() {
        sums[k] = by_squares(*v);
        maxima[k] = maxima[k].max_nan(v.abs1());
    }
    for chunk in chunks {
        for k in 0..LANES {
            sums[k] += by_squares(chunk[k]);
            maxima[k] = maxima[k].max_nan(chunk[k].abs1());
        }
    }
    sum_of_moduli(reduce(sums, |a, b| a + b), x)
}

/// |v|, of complex numbers by the squares of their parts, which may leave the range: see [`sum_of_moduli`]. Without a choice vectors
/// take it.
#[inline(always)]
pub(crate) fn by_squares<T: Scalar>(v: T) -> T::Real {
    if T::IS_REAL { v.abs() } else { v.abs_sq().sqrt() }
}

/// Σ|vᵢ|, given the sum of moduli [`by_squares`]: that, unless squares have overflowed or lost digits that it has.
#[inline(always)]
pub(crate) fn sum_of_moduli<T: Scalar>(sum: T::Real, x: &[T]) -> T::Real {
    if squares_fit::<T>(sum) { sum } else { sum_with_care(x) }
}

/// Whether a sum of moduli [`by_squares`] has lost nothing; it may have where it is zero.
#[inline(always)]
pub(crate) fn squares_fit<T: Scalar>(sum: T::Real) -> bool {
    T::IS_REAL || (sum * T::Real::EPSILON >= T::Real::MIN_POSITIVE.sqrt() && Scalar::is_finite(sum.to_f64()))
}

#[cold]
#[inline(never)]
fn sum_with_care<T: Scalar>(x: &[T]) -> T::Real {
    x.iter().map(|v| v.abs()).fold(zero(), |a, b| a + b)
}

/// Combines the lanes by halves.
#[inline(always)]
pub(crate) fn reduce<R: Copy>(mut lanes: [R; LANES], combine: impl Fn(R, R) -> R) -> R {
    let mut half = LANES / 2;
    while half > 0 {
        for k in 0..half {
            lanes[k] = combine(lanes[k], lanes[k + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// Index of the first element of largest |re| + |im|; NaN counts as none.
#[inline(always)]
pub(crate) fn index_of_max<T: Scalar>(x: &[T]) -> usize {
    let larger = |a: T::Real, b: T::Real| if b > a { b } else { a };
    let mut lanes = [zero::<T::Real>(); LANES];
    let (chunks, tail) = x.as_chunks::<LANES>();
    for (m, v) in lanes.iter_mut().zip(tail) {
        *m = larger(*m, v.abs1());
    }
    for chunk in chunks {
        for k in 0..LANES {
            lanes[k] = larger(lanes[k], chunk[k].abs1());
        }
    }
    let largest = reduce(lanes, larger);
    // By chunks, first the one that has it.
    let has = |chunk: &[T; LANES]| {
        let mut any = false;
        for k in 0..LANES {
            any |= chunk[k].abs1() >= largest;
        }
        any
    };
    let before = LANES * chunks.iter().position(has).unwrap_or(chunks.len());
    x[before..].iter().position(|v| v.abs1() >= largest).map_or(0, |i| before + i)
}

/// The next R rows of X ← L⁻¹·X for a unit lower triangular L: those above, `done`, are final; `x` holds the R rows.
/// Element (r, k) of L in these rows stands at `l[k·ldl + r]`.
#[inline(always)]
pub(crate) fn solve_rows<T: Scalar, const R: usize, const W: usize, const FUSED: bool>(
    done: &[[T; W]],
    x: &mut [[T; W]],
    l: &[T],
    ldl: usize,
) {
    let x: &mut [[T; W]; R] = x.try_into().expect("R rows");
    let mut acc = *x;
    for (k, above) in done.iter().enumerate() {
        let l: &[T; R] = l[k * ldl..k * ldl + R].try_into().expect("R values");
        for r in 0..R {
            for i in 0..W {
                acc[r][i] = mul_add::<T, FUSED>(-above[i], l[r], acc[r][i]);
            }
        }
    }
    for k in 0..R {
        let at = (done.len() + k) * ldl;
        let l: &[T; R] = l[at..at + R].try_into().expect("R values");
        let above = acc[k];
        for r in k + 1..R {
            for i in 0..W {
                acc[r][i] = mul_add::<T, FUSED>(-above[i], l[r], acc[r][i]);
            }
        }
    }
    *x = acc;
}

/// Y ← Y − L·X for R rows and C columns: `y` starts at the first element, its columns lie `stride` apart; column k of
/// L starts at `l[k·ldl]`; `x` holds X row by row, C of W values each.
#[inline(always)]
pub(crate) fn block_update<T: Scalar, const R: usize, const C: usize, const W: usize, const FUSED: bool>(
    y: &mut [T],
    stride: usize,
    l: &[T],
    ldl: usize,
    x: &[[T; W]],
) {
    let mut acc = [[zero::<T>(); R]; C];
    for (c, acc) in acc.iter_mut().enumerate() {
        acc.copy_from_slice(&y[c * stride..c * stride + R]);
    }
    for (k, x) in x.iter().enumerate() {
        let l: &[T; R] = l[k * ldl..k * ldl + R].try_into().expect("R values");
        for c in 0..C {
            let minus_x = -x[c];
            for r in 0..R {
                acc[c][r] = mul_add::<T, FUSED>(minus_x, l[r], acc[c][r]);
            }
        }
    }
    for (c, acc) in acc.iter().enumerate() {
        y[c * stride..c * stride + R].copy_from_slice(acc);
    }
}

/// to ← from, of one length: whole registers, the last one overlapping.
#[inline(always)]
pub(crate) fn copy(from: &[f64], to: &mut [f64]) {
    let len = from.len().min(to.len());
    let (from, to) = (&from[..len], &mut to[..len]);
    if let (Some(&last), Some(place)) = (from.last_chunk::<LANES>(), len.checked_sub(LANES)) {
        for (to, from) in to.as_chunks_mut::<LANES>().0.iter_mut().zip(from.as_chunks::<LANES>().0) {
            *to = *from;
        }
        to[place..].copy_from_slice(&last);
    } else {
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
    }
}
