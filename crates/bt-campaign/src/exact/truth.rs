//! What is true of a system A·x = b: whether it is singular, its solution, its condition.

use num_bigint::BigInt;

use super::adjugate::{Gaussian, adjugate};
use super::dyadic::{Dyadic, Exact};
use super::wide::Wide;
use crate::system::System;

/// Facts about a system.
pub struct Truth {
    /// Largest number of entries, no two of them in one row or column.
    pub structural_rank: usize,
    /// |aᵢⱼ| by rows.
    pub a: Vec<Wide>,
    /// What there is where det(A) ≠ 0.
    pub solution: Option<Known>,
}

/// Facts about a nonsingular system.
pub struct Known {
    /// d·x, with d below.
    numerators: Vec<Exact>,
    /// Common denominator.
    denominator: Exact,
    /// |xᵢ|.
    pub x: Vec<Wide>,
    /// (|A||x| + |b|)ᵢ.
    pub bound: Vec<Wide>,
    /// (|A⁻¹|(|A||x| + |b|))ᵢ: the error of xᵢ is at most the componentwise backward error times this, to first order.
    pub component: Vec<Wide>,
    /// ρ(|A⁻¹||A|): the smallest condition number in the ∞-norm that scaling of rows and columns can reach (Bauer 1963).
    pub scaled_condition: Wide,
    /// 1/(‖A‖₁‖A⁻¹‖₁).
    pub rcond: Wide,
    /// The same after rows and columns are scaled by powers of two until their largest entries are near one: what a program can
    /// reach, where the best scaling may be a limit that none attains.
    pub equilibrated_rcond: Wide,
}

impl Truth {
    /// Of a system. Cost: an elimination without fractions, 2n³ products of numbers as long as the determinant.
    pub fn of(system: &System) -> Self {
        let n = system.n;
        let mut a = vec![Wide::ZERO; n * n];
        for &(i, j, v) in &system.entries {
            a[i * n + j] = Exact::new(v).wide();
        }
        Self { structural_rank: structural_rank(n, &a), solution: known(system, &a), a }
    }
}

impl Known {
    /// |yᵢ − xᵢ|.
    pub fn error(&self, i: usize, y: [f64; 2]) -> Wide {
        Exact::new(y).mul(&self.denominator).sub(&self.numerators[i]).wide() / self.denominator.wide()
    }
}

/// Powers of two that divide the rows, then the columns: A = 2^rows · integers · 2^columns.
fn scales(n: usize, entries: &[(usize, usize, Exact)]) -> (Vec<i64>, Vec<i64>) {
    let (mut rows, mut columns) = (vec![0i64; n], vec![0i64; n]);
    for _ in 0..3 {
        for by_rows in [true, false] {
            let mut least = vec![i64::MAX; n];
            for (i, j, v) in entries {
                let place = if by_rows { *i } else { *j };
                for part in [&v.re, &v.im].into_iter().filter(|p| !p.is_zero()) {
                    least[place] = least[place].min(part.trailing() - rows[*i] - columns[*j]);
                }
            }
            let scale = if by_rows { &mut rows } else { &mut columns };
            for (s, least) in scale.iter_mut().zip(least).filter(|(_, least)| *least != i64::MAX) {
                *s += least;
            }
        }
    }
    (rows, columns)
}

fn known(system: &System, a: &[Wide]) -> Option<Known> {
    let n = system.n;
    let entries: Vec<_> = system.entries.iter().map(|&(i, j, v)| (i, j, Exact::new(v))).collect();
    let (rows, columns) = scales(n, &entries);
    let real = entries.iter().all(|(.., v)| v.im.is_zero());
    // d and d·M⁻¹ for the integers M.
    let (d, inverse): (Exact, Vec<Vec<Exact>>) = if real {
        let mut m = vec![vec![BigInt::ZERO; n]; n];
        for (i, j, v) in &entries {
            m[*i][*j] = v.re.over(rows[*i] + columns[*j]);
        }
        let (d, inverse) = adjugate(&m)?;
        let exact = |z: BigInt| Exact { re: Dyadic::new(z, 0), im: Dyadic::default() };
        (exact(d), inverse.into_iter().map(|row| row.into_iter().map(exact).collect()).collect())
    } else {
        let zero = Gaussian { re: BigInt::ZERO, im: BigInt::ZERO };
        let mut m = vec![vec![zero; n]; n];
        for (i, j, v) in &entries {
            let scale = rows[*i] + columns[*j];
            m[*i][*j] = Gaussian { re: v.re.over(scale), im: v.im.over(scale) };
        }
        let (d, inverse) = adjugate(&m)?;
        let exact = |z: Gaussian| Exact { re: Dyadic::new(z.re, 0), im: Dyadic::new(z.im, 0) };
        (exact(d), inverse.into_iter().map(|row| row.into_iter().map(exact).collect()).collect())
    };

    let b: Vec<Exact> = system.b.iter().map(|&v| Exact::new(v)).collect();
    let numerators: Vec<Exact> = (0..n)
        .map(|i| {
            let terms = (0..n).map(|j| inverse[i][j].mul(&b[j]).shifted(-rows[j]));
            terms.fold(Exact::default(), |sum, term| sum.add(&term)).shifted(-columns[i])
        })
        .collect();
    let modulus = d.wide();
    let x: Vec<Wide> = numerators.iter().map(|v| v.wide() / modulus).collect();
    let inverse: Vec<Wide> =
        (0..n * n).map(|k| (inverse[k / n][k % n].wide() / modulus).shifted(-columns[k / n] - rows[k % n])).collect();

    let residual_bound = residual_bound(system, a, &x);
    let product: Vec<Wide> = multiply(n, &inverse, a);
    Some(Known {
        component: (0..n).map(|i| (0..n).map(|j| inverse[i * n + j] * residual_bound[j]).sum()).collect(),
        scaled_condition: spectral_radius(n, product).max(Wide::new(1.0)),
        rcond: Wide::new(1.0) / (norm1(n, a) * norm1(n, &inverse)),
        equilibrated_rcond: equilibrated_rcond(n, a, &inverse),
        numerators,
        denominator: d,
        x,
        bound: residual_bound,
    })
}

/// |A||x| + |b|.
pub(super) fn residual_bound(system: &System, a: &[Wide], x: &[Wide]) -> Vec<Wide> {
    let n = system.n;
    (0..n).map(|i| (0..n).map(|j| a[i * n + j] * x[j]).sum::<Wide>() + Exact::new(system.b[i]).wide()).collect()
}

fn norm1(n: usize, a: &[Wide]) -> Wide {
    (0..n).map(|j| (0..n).map(|i| a[i * n + j]).sum()).fold(Wide::ZERO, Wide::max)
}

fn multiply(n: usize, a: &[Wide], b: &[Wide]) -> Vec<Wide> {
    (0..n * n).map(|k| (0..n).map(|l| a[k / n * n + l] * b[l * n + k % n]).sum()).collect()
}

/// Ten sweeps over rows and columns in turn.
fn equilibrated_rcond(n: usize, a: &[Wide], inverse: &[Wide]) -> Wide {
    let (mut rows, mut columns) = (vec![0i64; n], vec![0i64; n]);
    for sweep in 0..20 {
        for k in 0..n {
            let line = (0..n).map(|l| if sweep % 2 == 0 { (k, l) } else { (l, k) });
            let largest = line.map(|(i, j)| a[i * n + j].shifted(rows[i] + columns[j])).fold(Wide::ZERO, Wide::max);
            let scale = if sweep % 2 == 0 { &mut rows } else { &mut columns };
            scale[k] -= largest.log2().floor() as i64;
        }
    }
    let scaled: Vec<Wide> = (0..n * n).map(|k| a[k].shifted(rows[k / n] + columns[k % n])).collect();
    let inverse: Vec<Wide> = (0..n * n).map(|k| inverse[k].shifted(-columns[k / n] - rows[k % n])).collect();
    Wide::new(1.0) / (norm1(n, &scaled) * norm1(n, &inverse))
}

/// tr(M^128)^(1/128) of M = |A⁻¹||A|: the spectral radius to a factor of n^(1/128), whatever the units. M ≥ I entry by entry, so
/// that no eigenvalue of the same modulus cancels it.
fn spectral_radius(n: usize, mut m: Vec<Wide>) -> Wide {
    const SQUARINGS: i32 = 7;
    for _ in 0..SQUARINGS {
        m = multiply(n, &m, &m);
    }
    let trace: Wide = (0..n).map(|i| m[i * n + i]).sum();
    if trace.is_zero() {
        return trace;
    }
    let log = trace.log2() / 2f64.powi(SQUARINGS);
    Wide::scaled((log - log.floor()).exp2(), log.floor() as i64)
}

/// By augmenting paths.
fn structural_rank(n: usize, a: &[Wide]) -> usize {
    fn augment(n: usize, a: &[Wide], i: usize, seen: &mut [bool], row_of: &mut [Option<usize>]) -> bool {
        for j in 0..n {
            if a[i * n + j].is_zero() || std::mem::replace(&mut seen[j], true) {
                continue;
            }
            if row_of[j].is_none_or(|other| augment(n, a, other, seen, row_of)) {
                row_of[j] = Some(i);
                return true;
            }
        }
        false
    }
    let mut row_of = vec![None; n];
    (0..n).filter(|&i| augment(n, a, i, &mut vec![false; n], &mut row_of)).count()
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    fn truth(n: usize, a: &[f64], b: &[f64]) -> Truth {
        Truth::of(&System::dense(n, a, b))
    }

    #[test]
    fn a_solution_in_thirds() {
        let known = truth(2, &[1.0, 2.0, 2.0, 1.0], &[1.0, 1.0]).solution.unwrap();
        assert!((known.x[0].to_f64() - 1.0 / 3.0).abs() < 1e-16);
        // fl(1/3) is off by 2⁻⁵⁴/3.
        assert!((known.error(0, [1.0 / 3.0, 0.0]).log2() - (-54.0 - 3f64.log2())).abs() < 1e-12);
        assert!(known.error(1, [1.0, 0.0]).to_f64() > 0.66);
        // A⁻¹ = [-1 2; 2 -1]/3
        assert!((known.rcond.to_f64() - 1.0 / 3.0).abs() < 1e-15);
        assert!((known.scaled_condition.to_f64() / 3.0 - 1.0).abs() < 0.02);
        assert!((known.component[0].to_f64() - 2.0).abs() < 1e-15);
    }

    #[test]
    fn units_do_not_change_the_scaled_condition() {
        let plain = truth(2, &[1.0, 2.0, 2.0, 1.0], &[1.0, 1.0]).solution.unwrap();
        let scaled = truth(2, &[1e200, 2e-100, 2e250, 1e-50], &[1.0, 1.0]).solution.unwrap();
        let ratio = scaled.scaled_condition / plain.scaled_condition;
        assert!((ratio.to_f64() - 1.0).abs() < 1e-9);
        assert!(scaled.rcond.to_f64() < 1e-200);
        assert!(scaled.equilibrated_rcond.to_f64() > 0.05);
        // A triangular matrix can be scaled towards a diagonal one.
        let triangular = truth(2, &[1.0, 1e9, 0.0, 1.0], &[1.0, 1.0]).solution.unwrap();
        assert!(triangular.scaled_condition.to_f64() < 1.3);
        // [1 -1 -1 …] has no entry to scale, and an inverse of 2ⁿ⁻².
        let n = 12;
        let wilkinson: Vec<f64> = (0..n * n)
            .map(|k| match (k / n).cmp(&(k % n)) {
                Ordering::Equal => 1.0,
                Ordering::Less => -1.0,
                Ordering::Greater => 0.0,
            })
            .collect();
        let known = truth(n, &wilkinson, &vec![1.0; n]).solution.unwrap();
        assert!(known.scaled_condition.to_f64() < 1.1);
        assert!(known.equilibrated_rcond.to_f64() < 1e-3);
    }

    #[test]
    fn the_ends_of_the_range() {
        let known = truth(2, &[5e-324, 0.0, 0.0, f64::MAX], &[5e-324, f64::MAX]).solution.unwrap();
        assert_eq!(known.x.iter().map(|x| x.to_f64()).collect::<Vec<_>>(), [1.0, 1.0]);
        assert!(known.error(1, [1.0, 0.0]).is_zero());
    }

    #[test]
    fn singular_by_values_and_by_pattern() {
        let t = truth(3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], &[1.0; 3]);
        assert!(t.solution.is_none());
        assert_eq!(t.structural_rank, 3);
        // Two rows that live in one column.
        let t = truth(3, &[1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0], &[1.0; 3]);
        assert!(t.solution.is_none());
        assert_eq!(t.structural_rank, 2);
    }
}
