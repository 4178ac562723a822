//! The peers' problem files: one folder a case, `meta.json` and raw little-endian arrays.

use std::path::{Path, PathBuf};

use bt_formats::{Csr, Scalar, ask_for_huge_pages};
use serde_json::Value;

use crate::Result;

/// One case: `meta.json`, and arrays by name.
pub struct Problem {
    /// Name of the folder.
    pub case: String,
    folder: PathBuf,
    meta: Value,
}

impl Problem {
    /// Opens the folder `case` under `data`.
    pub fn open(data: &Path, case: &str) -> Result<Self> {
        let folder = data.join(case);
        let file = folder.join("meta.json");
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(Self { case: case.into(), folder, meta: serde_json::from_str(&text)? })
    }

    /// `tridiag`, `band`, `blocktri`, `csr` or `dense`.
    pub fn kind(&self) -> &str {
        self.meta["kind"].as_str().unwrap_or_default()
    }

    /// A size of `meta.json`.
    pub fn size(&self, name: &str) -> Result<usize> {
        Ok(self.meta[name].as_u64().ok_or_else(|| format!("meta.json has no size {name}"))? as usize)
    }

    /// The array `name.f64`.
    pub fn reals(&self, name: &str) -> Result<Vec<f64>> {
        self.array(name, "f64", f64::from_le_bytes)
    }

    /// The array `name.f64` as a right-hand side in another scalar.
    pub fn numbers<T: Scalar>(&self, name: &str) -> Result<Vec<T>> {
        Ok(self.reals(name)?.into_iter().map(|x| number(x, 0.0, 0.0)).collect())
    }

    /// Numbers of N bytes each from `name.extension`.
    fn array<T, const N: usize>(&self, name: &str, extension: &str, from: fn([u8; N]) -> T) -> Result<Vec<T>> {
        let file = self.folder.join(format!("{name}.{extension}"));
        let bytes = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let (numbers, rest) = bytes.as_chunks::<N>();
        if !rest.is_empty() {
            return Err(format!("{}: not a whole number of {N}-byte numbers", file.display()).into());
        }
        // As NumPy does for the peers.
        let mut out = Vec::with_capacity(numbers.len());
        ask_for_huge_pages(&out);
        out.extend(numbers.iter().map(|&b| from(b)));
        Ok(out)
    }

    /// The matrix of a case of kind csr.
    pub fn csr(&self) -> Result<Csr<f64>> {
        let n = self.size("n")?;
        let row_ptr = self.array("indptr", "i32", u32::from_le_bytes)?;
        let col_idx = self.array("indices", "i32", u32::from_le_bytes)?;
        Ok(Csr::new(n, n, row_ptr, col_idx, self.reals("data")?)?)
    }
}

/// x in row i and column j as a scalar: x·e^{(i − j)√−1} where T is complex, by which moduli and singular values stay, and what is Hermitian.
pub fn number<T: Scalar>(x: f64, i: f64, j: f64) -> T {
    if T::IS_REAL { T::rounded(x, 0.0) } else { T::rounded(x * (i - j).cos(), x * (i - j).sin()) }
}
