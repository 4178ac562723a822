//! ‖b − A·x‖₂/‖b‖₂ in doubled precision, from the files, to hold the command's figure against.
//!
//! A, x and b are divided by the powers of two of their largest entries first, so that nothing overflows; sums are kept as
//! unevaluated pairs with error-free products and sums (Dekker 1971, doi:10.1007/BF01397083; Knuth, TAOCP 2, 4.2.2).

use std::fs;
use std::path::Path;

use super::vector::Dense;

/// Entries (row, column, [re, im]) of a coordinate file, general or with its mirrored half filled in; `None` for other files.
pub(super) fn entries(file: &Path) -> Option<Vec<(usize, usize, [f64; 2])>> {
    parse(&fs::read_to_string(file).ok()?)
}

fn parse(text: &str) -> Option<Vec<(usize, usize, [f64; 2])>> {
    let mut lines = text.lines();
    let banner = lines.next()?.to_lowercase();
    let words: Vec<&str> = banner.split_whitespace().collect();
    let [_, "matrix", "coordinate", field, symmetry] = words[..] else { return None };
    let mut lines = lines.filter(|l| !l.starts_with('%') && !l.trim().is_empty());
    lines.next()?;
    let mut entries = Vec::new();
    for line in lines {
        let mut words = line.split_whitespace();
        let mut index = || words.next()?.parse::<usize>().ok()?.checked_sub(1);
        let (i, j) = (index()?, index()?);
        let mut number = || words.next().map_or(Some(0.0), |w| w.parse::<f64>().ok());
        let (re, im) = (number()?, if field == "complex" { number()? } else { 0.0 });
        entries.push((i, j, [re, im]));
        if i != j {
            match symmetry {
                "symmetric" => entries.push((j, i, [re, im])),
                "hermitian" => entries.push((j, i, [re, -im])),
                "skew-symmetric" => entries.push((j, i, [-re, -im])),
                _ => {}
            }
        }
    }
    Some(entries)
}

/// The relative residual of the first column.
pub(super) fn relative(entries: &[(usize, usize, [f64; 2])], x: &Dense, b: &Dense) -> f64 {
    let (x, b) = (x.first_column(), b.first_column());
    let exponent = |largest: f64| if largest == 0.0 { 0 } else { largest.log2().floor() as i32 };
    let largest = |v: &mut dyn Iterator<Item = f64>| v.fold(0.0, |m: f64, v| m.max(v.abs()));
    let size_a = exponent(largest(&mut entries.iter().flat_map(|e| e.2)));
    let size_x = exponent(largest(&mut x.iter().flatten().copied()));
    let size_b = exponent(largest(&mut b.iter().flatten().copied()));
    let scaled = |v: f64, e: i32| v * power(e / 2) * power(e - e / 2);
    let shift = |v: [f64; 2], e: i32| [scaled(v[0], e), scaled(v[1], e)];
    // b relative to A·x, both below one.
    let gap = (size_b - size_a - size_x).clamp(-2000, 2000);
    let (down_product, down_rhs) = if gap > 0 { (-gap, 0) } else { (0, gap) };
    let mut sums: Vec<[(f64, f64); 2]> =
        b.iter().map(|v| shift(shift(*v, -size_b), down_rhs)).map(|v| [(v[0], 0.0), (v[1], 0.0)]).collect();
    for &(i, j, a) in entries {
        let a = shift(shift(a, -size_a), down_product);
        let y = shift(x[j], -size_x);
        for (part, p, q) in [(0, -a[0], y[0]), (0, a[1], y[1]), (1, -a[0], y[1]), (1, -a[1], y[0])] {
            add_product(&mut sums[i][part], p, q);
        }
    }
    let norm = |v: &mut dyn Iterator<Item = f64>| {
        let v: Vec<f64> = v.collect();
        let largest = v.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        if largest == 0.0 { 0.0 } else { largest * v.iter().map(|v| (v / largest).powi(2)).sum::<f64>().sqrt() }
    };
    let residual = norm(&mut sums.iter().flatten().map(|s| s.0 + s.1));
    residual / norm(&mut b.iter().flat_map(|v| shift(shift(*v, -size_b), down_rhs)))
}

fn power(e: i32) -> f64 {
    f64::from(e).exp2()
}

/// s ← s + p·q
fn add_product(s: &mut (f64, f64), p: f64, q: f64) {
    let product = p * q;
    let rest = p.mul_add(q, -product);
    let sum = s.0 + product;
    let virtual_part = sum - s.0;
    let lost = (s.0 - (sum - virtual_part)) + (product - virtual_part);
    let low = s.1 + (lost + rest);
    s.0 = sum + low;
    s.1 = low - (s.0 - sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relative_of(matrix: &str, x: &[f64], b: &[f64]) -> f64 {
        let text = format!("%%MatrixMarket matrix coordinate real general\n2 2 4\n{matrix}");
        relative(&parse(&text).unwrap(), &Dense::column(x.to_vec()), &Dense::column(b.to_vec()))
    }

    #[test]
    fn what_a_double_cannot_see() {
        // 1·3 − 1·3·(1 + 2⁻⁵²) is 3·2⁻⁵², and rounds to 0 or 2⁻⁵¹ in double precision.
        let x = [3.0, 3.0 * (1.0 + f64::EPSILON)];
        let a = format!("1 1 1\n1 2 -1\n2 2 {}\n", 1.0 / 3.0);
        let r = relative_of(&a, &x, &[0.0, 1.0]);
        let third = (1.0 / 3.0f64).mul_add(x[1], -1.0);
        assert!((r - third.hypot(x[1] - x[0])).abs() < 1e-30, "{r:e}");
        assert_eq!(relative_of("1 1 1\n2 2 1\n", &[1.0, 2.0], &[1.0, 2.0]), 0.0);
        assert_eq!(relative_of("1 1 1\n2 2 1\n", &[0.0, 0.0], &[1.0, 2.0]), 1.0);
    }

    #[test]
    fn the_ends_of_the_range() {
        assert_eq!(relative_of("1 1 1e308\n1 2 1e308\n2 2 1e308\n", &[1.0, 0.0], &[1e308, 0.0]), 0.0);
        assert_eq!(relative_of("1 1 5e-324\n2 2 1e-310\n", &[0.0, 0.0], &[1e-310, 0.0]), 1.0);
        assert_eq!(relative_of("1 1 1e300\n2 2 1e300\n", &[f64::MIN_POSITIVE, 0.0], &[1.0, 0.0]).round(), 1.0);
        assert!((relative_of("1 1 1e300\n2 2 1e300\n", &[1e-300, 0.0], &[2.0, 0.0]) - 0.5).abs() < 1e-15);
    }

    #[test]
    fn halves_are_filled_in() {
        let text = "%%MatrixMarket matrix coordinate complex hermitian\n% note\n2 2 2\n1 1 2 0\n2 1 0 1\n";
        assert_eq!(parse(text).unwrap(), [(0, 0, [2.0, 0.0]), (1, 0, [0.0, 1.0]), (0, 1, [0.0, -1.0])]);
        assert!(parse("%%MatrixMarket matrix array real general\n1 1\n1\n").is_none());
    }
}
