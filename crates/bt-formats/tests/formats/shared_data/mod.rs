//! Files of `../shared/data` for the tests of structure.

use std::path::{Path, PathBuf};

use bt_formats::Csr;

/// `../shared/data/<folder>`, or `None` with a line on stdout when the data are not there.
pub fn folder(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if !path.is_dir() {
        println!("skipped: ../shared is absent");
        return None;
    }
    Some(path)
}

/// Every coordinate file `NAME.mtx` of a folder that is a matrix (not `_b`, not `_xref`), sorted by name.
pub fn matrices(folder: &Path) -> Vec<(String, Csr<f64>)> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|e| Some(e.ok()?.file_name().to_str()?.strip_suffix(".mtx")?.to_owned()))
        .filter(|n| !["_b", "_xref", "_pi"].iter().any(|end| n.ends_with(end)))
        .collect();
    names.sort();
    names.into_iter().map(|n| (n.clone(), read(&folder.join(n).with_extension("mtx")))).collect()
}

/// A real matrix.
pub fn read(file: &Path) -> Csr<f64> {
    bt_formats::matrix_market::read_csr(file).unwrap()
}
