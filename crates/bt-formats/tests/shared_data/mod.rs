//! Files of `../shared/data` for the tests of structure: a reader of just what those files hold.

use std::path::{Path, PathBuf};

use bt_formats::{Coo, Csr};

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
#[allow(dead_code)]
pub fn matrices(folder: &Path) -> Vec<(String, Csr<f64>)> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|e| Some(e.ok()?.file_name().to_str()?.strip_suffix(".mtx")?.to_owned()))
        .filter(|n| !["_b", "_xref", "_pi"].iter().any(|end| n.ends_with(end)))
        .collect();
    names.sort();
    names.into_iter().map(|n| (n.clone(), read(&folder.join(n).with_extension("mtx")))).collect()
}

/// A real coordinate matrix, general or symmetric.
pub fn read(file: &Path) -> Csr<f64> {
    let text = std::fs::read_to_string(file).unwrap();
    let symmetric = text.lines().next().unwrap().contains("symmetric");
    let mut lines = text.lines().filter(|l| !l.starts_with('%') && !l.trim().is_empty());
    let size: Vec<usize> = lines.next().unwrap().split_whitespace().map(|t| t.parse().unwrap()).collect();
    let mut a = Coo::new(size[0], size[1]).unwrap();
    for line in lines.take(size[2]) {
        let mut t = line.split_whitespace();
        let (i, j): (usize, usize) = (t.next().unwrap().parse().unwrap(), t.next().unwrap().parse().unwrap());
        let v: f64 = t.next().unwrap().parse().unwrap();
        a.push(i - 1, j - 1, v).unwrap();
        if symmetric && i != j {
            a.push(j - 1, i - 1, v).unwrap();
        }
    }
    a.to_csr().unwrap()
}
