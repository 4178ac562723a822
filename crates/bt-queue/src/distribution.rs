//! Distributions of a whole number: tasks pending, resources on.

/// Probabilities of `first`, `first` + 1, …
///
/// ```
/// use bt_queue::Distribution;
/// let d = Distribution::new(1, vec![0.5, 0.3, 0.2]);
/// assert_eq!((d.mode(), d.quantile(0.5), d.quantile(0.95)), (1, 1, 3));
/// assert!((d.mean() - 1.7).abs() < 1e-15 && (d.beyond(1) - 0.5).abs() < 1e-15);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    first: usize,
    probabilities: Vec<f64>,
}

impl Distribution {
    /// From the probabilities of consecutive numbers, which sum to 1.
    pub fn new(first: usize, probabilities: Vec<f64>) -> Self {
        Self { first, probabilities }
    }

    /// The numbers and their probabilities.
    pub fn iter(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        (self.first..).zip(self.probabilities.iter().copied())
    }

    /// P(X = k).
    pub fn probability(&self, k: usize) -> f64 {
        k.checked_sub(self.first).and_then(|i| self.probabilities.get(i)).copied().unwrap_or(0.0)
    }

    /// The most probable number, the smallest of several; probabilities that differ by rounding are the same.
    pub fn mode(&self) -> usize {
        const SAME: f64 = 1.0 - 1e-13;
        let most = self.probabilities.iter().copied().fold(0.0, f64::max);
        self.iter().find(|e| e.1 >= SAME * most).map_or(self.first, |e| e.0)
    }

    /// E X.
    pub fn mean(&self) -> f64 {
        self.iter().map(|(k, p)| k as f64 * p).sum()
    }

    /// E (X − E X)².
    pub fn variance(&self) -> f64 {
        let mean = self.mean();
        self.iter().map(|(k, p)| (k as f64 - mean).powi(2) * p).sum()
    }

    /// The smallest k with P(X ≤ k) ≥ `level`.
    ///
    /// The nearer tail is what is summed, from its small end: levels close to 0 and to 1 are as exact as any.
    pub fn quantile(&self, level: f64) -> usize {
        if level < 0.5 {
            let mut below = 0.0;
            let reaches = |e: &(usize, f64)| {
                below += e.1;
                below >= level
            };
            return self.iter().find(reaches).map_or(self.first, |e| e.0);
        }
        let (mut tail, mut k) = (0.0, self.first + self.probabilities.len().saturating_sub(1));
        // P(X ≤ k−1) ≥ level  ⟺  P(X ≥ k) ≤ 1 − level
        for &p in self.probabilities.iter().skip(1).rev() {
            tail += p;
            if tail > 1.0 - level {
                break;
            }
            k -= 1;
        }
        k
    }

    /// P(X > k), summed from the far end.
    pub fn beyond(&self, k: usize) -> f64 {
        let skip = k.saturating_add(1).saturating_sub(self.first).min(self.probabilities.len());
        self.probabilities[skip..].iter().rev().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_definition() {
        let d = Distribution::new(2, vec![0.25, 0.25, 0.0, 0.5]);
        for level in [0.0, 0.1, 0.25, 0.3, 0.49, 0.5, 0.51, 0.99, 1.0] {
            let exact = (2..=5).find(|&k| 1.0 - d.beyond(k) >= level).unwrap();
            assert_eq!(d.quantile(level), exact, "{level}");
        }
        assert_eq!(Distribution::new(7, vec![1.0]).quantile(0.5), 7);
        assert_eq!((d.beyond(0), d.beyond(5), d.probability(1), d.probability(9)), (1.0, 0.0, 0.0, 0.0));
        assert_eq!(d.beyond(usize::MAX), 0.0);
        // A tie but for rounding.
        assert_eq!(Distribution::new(3, vec![0.1, 0.45 - 1e-16, 0.45]).mode(), 4);
        // Far down as far up: 1 − 1e-20 is 1 in doubles.
        let far = Distribution::new(0, vec![1e-30, 1e-15, 1.0 - 2e-15, 1e-15]);
        assert_eq!([1e-31, 1e-20, 1e-3, 1.0].map(|level| far.quantile(level)), [0, 1, 2, 3]);
        // E X = 3.75, E X² = 15.75
        assert!((d.variance() - (15.75 - 3.75 * 3.75)).abs() < 1e-14);
    }
}
