//! The ten cloud matrices: block-tridiagonal systems of an M/M/n+k queue with n levels of resources.
//!
//! The model is that of Yang, Li & Li, "A parallel solving method for block-tridiagonal equations on CPU–GPU
//! heterogeneous computing systems", J. Supercomput. 73 (2017) 1760–1781, doi:10.1007/s11227-016-1881-x. The paper
//! publishes sizes, non-zeros and iteration counts of ten matrices, not the matrices: these are **synthetic**, with the
//! same sizes and non-zeros and rates calibrated to the counts.
//!
//! Level j (resources on) has k states (j, r) with s_j + r tasks, r = 0..k. The window of tasks drifts by
//! s_j = ⌊j·S/(m−1)⌋, so that moves between levels shift r, and S is what makes the number of non-zeros right.
//! A = diag(out) − Rᵀ with the rates R below; moves out of the window count in `out` but lead nowhere (the leak).
//!
//! Cost: O(n), with at most five entries a row.

use bt_formats::{Coo, Csr, Error, Partition, Result};

/// Parameters of a cloud matrix.
///
/// ```
/// use bt_formats::Matrix;
/// use bt_queue::CloudCase;
/// let a = CloudCase::by_name("Cloud16-100")?.matrix()?;
/// assert_eq!((a.row_ptr().len() - 1, a.nnz()), (1600, 7231));
/// # Ok::<(), bt_formats::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CloudCase {
    name: String,
    parameters: CloudParameters,
}

/// The numbers behind a [`CloudCase`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CloudParameters {
    /// States in a level, k.
    pub block_size: usize,
    /// Levels, m.
    pub levels: usize,
    /// Non-zeros of the matrix.
    pub nnz: usize,
    /// Relative amplitude of the noise on the rates.
    pub noise: f64,
    /// Seed of the noise.
    pub seed: u64,
    /// Every `corner_step`-th level gets a modified first diagonal entry 5 − k/4; `None` leaves an M-matrix.
    pub corner_step: Option<usize>,
}

/// Variants of the ten matrices, of the same pattern.
///
/// There is none with the rates of the paper's Eq. (8). They depend on K and on λ, μ, η and ν, of which the paper gives none for
/// its matrices; and whatever those are, Eq. (8) has λ = ν = 0 above jK tasks and η = 0 elsewhere, at most four entries for each
/// state with the diagonal, where eight of the ten published matrices have more. [`crate::CloudModel`] has Eq. (8) itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CloudVariant {
    /// N: noise on the rates, a modified corner at every fifth level. The one that stands for the paper's.
    #[default]
    Noisy,
    /// S: the same without noise.
    Smooth,
    /// M: without noise and without the corners, a true M-matrix.
    MMatrix,
}

/// (k, m, non-zeros) of the published table.
const TABLE: [(usize, usize, usize); 10] = [
    (16, 100, 7231),
    (16, 500, 35431),
    (16, 800, 56331),
    (16, 1000, 70931),
    (16, 2000, 135931),
    (32, 100, 14196),
    (32, 500, 66196),
    (32, 1000, 136696),
    (64, 100, 25215),
    (64, 500, 127915),
];

const SEED: u64 = 2017;
const CORNER_STEP: usize = 5;

fn default_noise(k: usize, m: usize) -> f64 {
    // Beyond the table (k > 64) the amplitude stays below 1, so that rates stay positive.
    if m < 16 * k { 0.005 } else { 0.04 * (k as f64 / 16.0).powi(2).min(16.0) }
}

impl CloudCase {
    /// The ten cases in the order of the published table.
    pub fn all() -> Vec<Self> {
        TABLE
            .iter()
            .map(|&(k, m, nnz)| Self {
                name: format!("Cloud{k}-{m}"),
                parameters: CloudParameters {
                    block_size: k,
                    levels: m,
                    nnz,
                    noise: default_noise(k, m),
                    seed: SEED,
                    corner_step: Some(CORNER_STEP),
                },
            })
            .collect()
    }

    /// One of the ten by name, for example `Cloud16-100`; upper and lower case do not matter.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] listing the ten names.
    pub fn by_name(name: &str) -> Result<Self> {
        Self::all().into_iter().find(|c| c.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names: Vec<String> = Self::all().into_iter().map(|c| c.name).collect();
            Error::InvalidStructure { what: "cloud case", why: format!("'{name}' is none of {}", names.join(", ")) }
        })
    }

    /// The same case in a variant; its name ends in `-S` or `-M` for the other two.
    ///
    /// ```
    /// use bt_queue::{CloudCase, CloudVariant};
    /// let case = CloudCase::by_name("Cloud16-100")?.variant(CloudVariant::MMatrix);
    /// assert_eq!((case.name(), case.parameters().corner_step), ("Cloud16-100-M", None));
    /// # Ok::<(), bt_formats::Error>(())
    /// ```
    pub fn variant(mut self, variant: CloudVariant) -> Self {
        match variant {
            CloudVariant::Noisy => {}
            CloudVariant::Smooth => {
                self.name.push_str("-S");
                self.parameters.noise = 0.0;
            }
            CloudVariant::MMatrix => {
                self.name.push_str("-M");
                self.parameters.noise = 0.0;
                self.parameters.corner_step = None;
            }
        }
        self
    }

    /// A member of the same family with any block size and any number of levels: the window drifts by about
    /// 0.22·k tasks a level, as in Cloud16-500 and Cloud16-1000.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] when k < 4 or there are fewer than two levels; [`Error::TooLarge`] when n = k·m
    /// exceeds 32-bit indices.
    pub fn family(block_size: usize, levels: usize, seed: u64) -> Result<Self> {
        let drift = levels.saturating_sub(1).saturating_mul(block_size).saturating_mul(22) / 100;
        let full = full_nnz(block_size, levels)?;
        Self::new(
            format!("Cloud{block_size}-{levels}-seed{seed}"),
            CloudParameters {
                block_size,
                levels,
                nnz: full - 2 * drift,
                noise: default_noise(block_size, levels),
                seed,
                corner_step: Some(CORNER_STEP),
            },
        )
    }

    /// Any member of the family, checked.
    ///
    /// # Errors
    /// [`Error::InvalidStructure`] when the sizes do not make a matrix; [`Error::TooLarge`] beyond 32-bit indices.
    pub fn new(name: String, parameters: CloudParameters) -> Result<Self> {
        let CloudParameters { block_size: k, levels: m, nnz, noise, corner_step, .. } = parameters;
        let full = full_nnz(k, m)?;
        let invalid = |why: String| Err(Error::InvalidStructure { what: "cloud parameters", why });
        // Neighbouring windows must overlap: s_{j+1} − s_j ≤ ⌈S/(m−1)⌉ < k.
        let least = full.saturating_sub(2 * (m - 1) * (k - 1));
        if nnz > full || nnz < least {
            return invalid(format!("{m} levels of {k} states have between {least} and {full} non-zeros, not {nnz}"));
        }
        if !(0.0..1.0).contains(&noise) {
            return invalid(format!("the noise must lie in [0, 1), not {noise}"));
        }
        if corner_step == Some(0) {
            return invalid("the corner step must be at least 1".into());
        }
        Ok(Self { name, parameters })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The parameters.
    pub fn parameters(&self) -> &CloudParameters {
        &self.parameters
    }

    /// The partition into levels: m blocks of k.
    ///
    /// # Errors
    /// None in practice: the sizes were checked by the constructor.
    pub fn partition(&self) -> Result<Partition> {
        Partition::uniform(self.parameters.block_size * self.parameters.levels, self.parameters.block_size)
    }

    /// A = diag(out) − Rᵀ, n = k·m.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when 32-bit indices do not suffice.
    pub fn matrix(&self) -> Result<Csr<f64>> {
        let CloudParameters { block_size: k, levels: m, nnz, noise: eps, seed, corner_step } = self.parameters;
        let missing = full_nnz(k, m)? - nnz;
        let (total_shift, odd) = (missing / 2, missing % 2 == 1);
        let s = |j: usize| j * total_shift / (m - 1);
        let a = k as f64 / 4.0;
        let turn = |j: usize| k as f64 / (k - (s(j + 1) - s(j))) as f64;
        let noise = |kind: u64, j: usize, r: usize| 1.0 + eps * (2.0 * uniform(seed, kind, j as u64, r as u64) - 1.0);

        let n = k * m;
        // A list of entries, and the rows made of it.
        bt_formats::memory::ask(nnz as u64 * (16 + 12), "the matrix")?;
        let mut coo = Coo::new(n, n)?;
        for j in 0..m {
            for r in 0..k {
                let (from, i) = (j * k + r, s(j) + r);
                let mut out = 0.0;
                // A move at `rate` from this state: counted, and stored in A = diag(out) − Rᵀ if it stays inside.
                let mut leave = |to: Option<usize>, rate: f64| {
                    out += rate;
                    to.map_or(Ok(()), |to| coo.push(to, from, -rate))
                };
                // λ: one task more;  μ: one less
                leave((r + 1 < k).then_some(from + 1), a * noise(1, j, r))?;
                if i > 0 {
                    leave((r > 0).then(|| from - 1), a * noise(2, j, r))?;
                }
                // η: one resource more, the same tasks, if level j + 1 has that many in its window
                let deleted = odd && j == 0 && r == s(1);
                if j + 1 < m && i >= s(j + 1) && !deleted {
                    leave(Some((j + 1) * k + i - s(j + 1)), turn(j) * noise(3, j, r))?;
                }
                // ν: one resource less
                if j > 0 && i < s(j - 1) + k {
                    leave(Some((j - 1) * k + i - s(j - 1)), turn(j - 1) * noise(4, j, r))?;
                }
                if r == 0 && corner_step.is_some_and(|step| j % step == 0) {
                    out = 5.0 - a;
                }
                coo.push(from, from, out)?;
            }
        }
        coo.to_csr()
    }
}

/// (5k − 2)m − 2k: the entries when no window drifts.
fn full_nnz(k: usize, m: usize) -> Result<usize> {
    if k < 4 || m < 2 {
        return Err(Error::InvalidStructure {
            what: "cloud parameters",
            why: format!("at least 2 levels of at least 4 states are needed, not {m} of {k}"),
        });
    }
    let limit = u32::MAX as usize - 1;
    match k.checked_mul(5).and_then(|k5| k5.checked_mul(m)) {
        Some(bound) if bound <= limit => Ok((5 * k - 2) * m - 2 * k),
        _ => Err(Error::TooLarge {
            what: "a cloud matrix",
            needed: format!("about 5 · {k} · {m} entries"),
            limit: format!("the {limit} of 32-bit indices"),
        }),
    }
}

/// A number in [0, 1) keyed by (seed, kind, level, state): one step of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014,
/// doi:10.1145/2660193.2660195), so that an entry's noise does not depend on the order of generation.
pub fn uniform(seed: u64, kind: u64, j: u64, r: u64) -> f64 {
    const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut z = (seed.wrapping_mul(GAMMA) ^ (kind << 56) ^ (j << 16) ^ r).wrapping_add(GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    (z >> 11) as f64 * 2f64.powi(-53)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bt_formats::Matrix;

    #[test]
    fn noise_is_the_specified_one() {
        for (kind, j, r, u) in [
            (1, 0, 0, 0.491863864163237),
            (1, 0, 1, 0.9273997723584594),
            (2, 0, 1, 0.854881691758827),
            (3, 5, 7, 0.8912706891525997),
        ] {
            assert_eq!(uniform(2017, kind, j, r), u);
        }
    }

    #[test]
    fn non_zeros_are_the_published_ones() {
        for case in CloudCase::all() {
            assert_eq!(case.matrix().unwrap().nnz(), case.parameters().nnz, "{}", case.name());
        }
    }

    #[test]
    fn family_members_are_square_and_narrow() {
        for (k, m) in [(4, 2), (5, 7), (16, 30), (33, 3)] {
            let case = CloudCase::family(k, m, 1).unwrap();
            let a = case.matrix().unwrap();
            assert_eq!(a.nnz(), case.parameters().nnz);
            assert_eq!(case.partition().unwrap().n_blocks(), m);
        }
    }

    #[test]
    fn bad_parameters_are_named() {
        assert!(CloudCase::by_name("Cloud17-100").unwrap_err().to_string().contains("Cloud64-500"));
        assert!(CloudCase::family(2, 10, 0).is_err());
        assert!(CloudCase::family(1 << 20, 1 << 20, 0).is_err());
        let mut p = *CloudCase::by_name("Cloud16-100").unwrap().parameters();
        p.nnz = 10;
        assert!(CloudCase::new("x".into(), p).unwrap_err().to_string().contains("non-zeros"));
    }
}
