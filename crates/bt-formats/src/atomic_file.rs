//! Output files that are complete or absent.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Writes a file so that a reader sees either the old content or all of the new one.
///
/// The text goes to a temporary file in the same folder, which is flushed, synchronised and renamed over the
/// target; on any error it is removed and an existing target keeps its content. A symbolic link is followed, and
/// an existing file keeps its permissions. What is no regular file (a device, a pipe) cannot be replaced and is
/// written to directly.
///
/// ```
/// use std::io::Write;
/// let path = std::env::temp_dir().join("bt-formats-doc-example.txt");
/// bt_formats::write_atomically(&path, |out| out.write_all(b"x\n"))?;
/// assert_eq!(std::fs::read(&path)?, b"x\n");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Io`] naming `path`, whether creating, writing, flushing or renaming failed.
pub fn write_atomically(path: impl AsRef<Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let path = path.as_ref();
    try_write(path, write).map_err(|source| Error::Io { file: path.to_owned(), source })
}

fn try_write(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let target = follow_links(path)?;
    let existing = match fs::metadata(&target) {
        Ok(m) if m.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(m) if !m.is_file() => return write_directly(&target, write),
        Ok(m) => Some(m.permissions()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    if existing.as_ref().is_some_and(fs::Permissions::readonly) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let folder = match target.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".blocktri-").suffix(".partial");
    // A new file gets what the umask leaves of 0666, as one that was simply opened would.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let temporary = builder.tempfile_in(folder)?;
    let mut out = BufWriter::new(temporary.as_file());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    if let Some(permissions) = existing {
        temporary.as_file().set_permissions(permissions)?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|e| e.error)?;
    // The rename lasts once the folder is on disk; not every system can synchronise a folder.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn write_directly(target: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(target)?;
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.flush()
}

/// The file that a chain of symbolic links ends at, which need not exist.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..40 {
        match fs::symlink_metadata(&at) {
            Ok(m) if m.is_symlink() => {
                // Links of /proc (/dev/stdout) may name what has no path: they are opened as they stand.
                if fs::metadata(&at).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
                    return Ok(at);
                }
                let next = fs::read_link(&at)?;
                at = at.parent().map_or(next.clone(), |p| p.join(&next));
            }
            _ => return Ok(at),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}
