//! Files of other kinds, recognised by their first bytes, and what to do with them.

/// Bytes that are enough to recognise any of them.
pub(crate) const HEAD: usize = 512;

/// What a file is that starts like this and is no text of numbers, and how to make a matrix of it.
pub(crate) fn describe(head: &[u8]) -> Option<String> {
    let (what, remedy) = kind(head)?;
    Some(format!("this is {what}, not a matrix: {remedy}"))
}

/// Files that begin with known bytes.
#[rustfmt::skip]
const MAGIC: [(&[u8], &str, &str); 12] = [
    (b"\xFD7zXZ\0", "xz data", "unpack it first (xz -dk FILE)"),
    (b"\x28\xB5\x2F\xFD", "zstd data", "unpack it first (zstd -d FILE)"),
    (b"\x04\x22\x4D\x18", "lz4 data", "unpack it first (lz4 -d FILE)"),
    (b"\x1F\x9D", "data of compress (.Z)", "unpack it first (gzip -d FILE)"),
    (b"7z\xBC\xAF\x27\x1C", "a 7z archive", "unpack it first (7z x FILE) and give the .mtx file in it"),
    (b"Rar!\x1A\x07", "a rar archive", "unpack it first (unrar x FILE) and give the .mtx file in it"),
    (b"PK\x05\x06", "an empty zip archive", "there is nothing in it"),
    (b"\x93NUMPY", "a NumPy array (.npy)", "write it as a text with scipy.io.mmwrite('A.mtx', numpy.load('FILE'))"),
    (b"MATLAB 7.3 MAT-file", "a MATLAB file of version 7.3 (HDF5)",
     "save it again with '-v7' and write it with scipy.io.mmwrite('A.mtx', scipy.io.loadmat('FILE')['A'])"),
    (b"MATLAB 5.0 MAT-file", "a MATLAB file (.mat)",
     "write the matrix in it with scipy.io.mmwrite('A.mtx', scipy.io.loadmat('FILE')['A']), or mmwrite in MATLAB"),
    (b"\x89HDF\r\n\x1A\n", "an HDF5 file", "write the matrix in it as Matrix Market, with h5py and scipy.io.mmwrite"),
    (b"\x50\x7B\x12\0", "a PETSc binary file in little-endian order", "PETSc itself writes big-endian files, which are read"),
];

fn kind(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if let Some((_, what, remedy)) = MAGIC.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return Some((what, remedy));
    }
    // "BZh", a level, and the first block or, without one, the end.
    let pi = |rest: &[u8]| rest.starts_with(b"1AY&SY") || rest.starts_with(b"\x17\x72\x45\x38\x50\x90");
    if head.starts_with(b"BZh") && head.get(4..).is_some_and(pi) {
        return Some(("bzip2 data", "unpack it first (bzip2 -dk FILE)"));
    }
    if head.starts_with(b"PK\x03\x04") {
        // The name of the first file in it has its length at byte 26 and starts at byte 30.
        let length = head.get(26..28).map_or(0, |b| usize::from(u16::from_le_bytes([b[0], b[1]])));
        let name = head.get(30..30 + length).unwrap_or_default();
        return Some(if name.ends_with(b".npy") {
            (
                "a NumPy archive (.npz)",
                "write it as a text with scipy.io.mmwrite('A.mtx', scipy.sparse.load_npz('FILE'))",
            )
        } else {
            ("a zip archive", "unpack it first (unzip FILE) and give the .mtx file in it")
        });
    }
    if is_tar(head) {
        let remedy = "unpack it first (tar -xf FILE) and give the .mtx file in it; SuiteSparse ships its matrices so";
        return Some(("a tar archive", remedy));
    }
    if head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF") {
        return Some(("a text in UTF-16", "convert it first (iconv -f UTF-16 -t UTF-8 FILE)"));
    }
    let text = head.trim_ascii_start().to_ascii_lowercase();
    if text.starts_with(b"<!doctype html") || text.starts_with(b"<html") {
        return Some(("a web page", "the download may have failed: look at it in a browser"));
    }
    None
}

/// A header of tar carries its own sum: the 512 bytes, with blanks in the place of the sum, which is octal at 148.
fn is_tar(head: &[u8]) -> bool {
    let Some(header) = head.first_chunk::<512>() else { return false };
    let digits = header[148..156].iter().skip_while(|c| **c == b' ').take_while(|c| (b'0'..=b'7').contains(c));
    let (count, declared) = digits.fold((0, 0), |(n, sum), c| (n + 1, 8 * sum + u32::from(c - b'0')));
    let sum = |range: std::ops::Range<usize>| header[range].iter().map(|b| u32::from(*b)).sum::<u32>();
    count > 0 && declared == sum(0..148) + 8 * u32::from(b' ') + sum(156..512)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tar_header(magic: &[u8]) -> [u8; 512] {
        let mut header = [0; 512];
        header[..5].copy_from_slice(b"a.mtx");
        header[257..257 + magic.len()].copy_from_slice(magic);
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        header
    }

    #[test]
    fn kinds_are_told_by_their_first_bytes() {
        let npz = [&b"PK\x03\x04"[..], &[0; 22], &[11, 0, 0, 0], b"indices.npy"].concat();
        let cases: [(&[u8], &str); 12] = [
            (b"\xFD7zXZ\0\0\x04", "xz"),
            (b"BZh91AY&SYab", "bzip2"),
            (b"\x28\xB5\x2F\xFD\x24", "zstd"),
            (&npz, ".npz"),
            (b"PK\x03\x04\x14\0", "zip"),
            (b"MATLAB 5.0 MAT-file, Platform: GLNXA64", "MATLAB file (.mat)"),
            (b"MATLAB 7.3 MAT-file, Platform: GLNXA64", "HDF5"),
            (b"\x89HDF\r\n\x1A\n\0", "HDF5"),
            (&tar_header(b"ustar\0"), "tar archive"),
            (&tar_header(b""), "tar archive"),
            (b"\xFF\xFE%\0%\0", "UTF-16"),
            (b"\n <!DOCTYPE HTML>\n<html>", "web page"),
        ];
        for (head, word) in cases {
            assert!(describe(head).is_some_and(|text| text.contains(word)), "{word}: {:?}", describe(head));
        }
    }

    #[test]
    fn matrices_are_none_of_them() {
        let long = [b"%%MatrixMarket matrix coordinate real general\n".as_slice(), &[b'%'; 600]].concat();
        for head in [&b""[..], b"%%MatrixMarket", b"BZh is a title of Harwell and Boeing", b"7z", &[0; 512], &long] {
            assert_eq!(describe(head), None);
        }
    }
}
