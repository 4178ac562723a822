//! Output files that are complete or absent.
//!
//! A file is written beside its target under the name `.blocktri-….part` and renamed onto it. The run that writes it
//! holds a lock on it, which the system lets go when the run ends in whatever way: what a killed run left is therefore
//! told from what a living one writes, and removed by the next run that writes into that folder.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Writes a file so that a reader sees either the old content or all of the new one.
///
/// The text goes to a [`PartialFile`], which is flushed, synchronised and renamed over the target; on any error it is
/// removed and an existing target keeps its content. What is no regular file (a device, a pipe) cannot be replaced and
/// is written to directly.
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
    if fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        let mut out = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        write(&mut out)?;
        return out.flush();
    }
    let mut partial = PartialFile::create(path)?;
    let mut out = BufWriter::new(partial.file_mut());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    partial.persist()
}

/// A file on its way: written beside its target, which it replaces when complete. Dropped before, it leaves nothing.
#[derive(Debug)]
pub struct PartialFile {
    file: NamedTempFile,
    target: PathBuf,
}

const PREFIX: &str = ".blocktri-";
const SUFFIX: &str = ".part";

impl PartialFile {
    /// An empty file that [`PartialFile::persist`] renames to `name`. A symbolic link is followed, and an existing file
    /// keeps its permissions. Files that killed runs left in the same folder are removed.
    ///
    /// # Errors
    /// When `name` is a folder or a read-only file, and when no file can be created beside it.
    pub fn create(name: &Path) -> io::Result<Self> {
        let target = follow_links(name)?;
        let permissions = match fs::metadata(&target) {
            Ok(m) if m.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(m) if m.permissions().readonly() => return Err(io::ErrorKind::PermissionDenied.into()),
            Ok(m) => Some(m.permissions()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let folder = folder_of(&target);
        remove_left_over(folder);
        Ok(Self { file: create_locked(folder, permissions)?, target })
    }

    /// The file that a name stands for: the end of a chain of symbolic links, which need not exist.
    ///
    /// # Errors
    /// When a link cannot be read, or they go in a circle.
    pub fn target_of(name: &Path) -> io::Result<PathBuf> {
        follow_links(name)
    }

    /// The temporary name.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Where to write.
    pub fn file_mut(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Replaces the target.
    ///
    /// # Errors
    /// When the data cannot be brought to the disk (network and quota'd file systems report a full disk here at the
    /// latest) or the file cannot be renamed.
    pub fn persist(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.target).map_err(|e| e.error)?;
        // The rename lasts once the folder is on disk; not every system can synchronise a folder.
        if let Ok(folder) = File::open(folder_of(&self.target)) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A new temporary file with its lock held.
fn create_locked(folder: &Path, permissions: Option<Permissions>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    // A new file gets what the umask leaves of 0666, as one that was simply opened would.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    loop {
        let file = builder.tempfile_in(folder)?;
        let locked = match file.as_file().try_lock() {
            // Without locks in this file system nothing will be taken for left over.
            Ok(()) | Err(TryLockError::Error(_)) => true,
            Err(TryLockError::WouldBlock) => false,
        };
        // Between its creation and its lock another run may have taken it for left over.
        if locked && file.path().exists() {
            if let Some(permissions) = permissions {
                file.as_file().set_permissions(permissions)?;
            }
            return Ok(file);
        }
    }
}

/// Removes the temporary files in a folder that no running program holds. What cannot be removed stays.
fn remove_left_over(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if ours
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The file that a chain of symbolic links ends at, which need not exist.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    const LONGEST_CHAIN: usize = 40;
    let mut at = path.to_owned();
    for _ in 0..LONGEST_CHAIN {
        if !at.is_symlink() {
            return Ok(at);
        }
        let next = fs::read_link(&at)?;
        at = at.parent().map_or(next.clone(), |p| p.join(&next));
    }
    Err(io::Error::other("too many symbolic links"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        for name in [".blocktri-abc123.part", ".blocktri-abc123.other", "blocktri.part"] {
            fs::write(file(name), "x").unwrap();
        }
        let living = PartialFile::create(&file("first")).unwrap();
        let mut second = PartialFile::create(&file("second")).unwrap();
        assert!(!file(".blocktri-abc123.part").exists());
        assert!(living.path().exists(), "it is being written");
        second.file_mut().write_all(b"two").unwrap();
        second.persist().unwrap();
        assert_eq!(fs::read(file("second")).unwrap(), b"two");
        drop(living);
        assert_eq!(names(folder.path()), [".blocktri-abc123.other", "blocktri.part", "second"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        write_atomically(&link, |out| out.write_all(b"new")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
