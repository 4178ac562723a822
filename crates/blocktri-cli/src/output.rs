//! Output files that appear whole or not at all: written beside their target and renamed onto it.
//!
//! A target is opened before the work starts, so that a missing folder costs nobody an hour of computing. Devices
//! and pipes (`/dev/full`, `/dev/stdout`) are written directly: they cannot be replaced.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

use crate::exit::{Failure, Result};

/// Temporary files that exist now; removed when a signal ends the program.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of outputs that were not finished.
pub fn remove_temporary_files() {
    for path in temporary().drain(..) {
        // It may be gone already: finished or removed by its owner.
        let _ = std::fs::remove_file(path);
    }
}

/// A file to be.
#[derive(Debug)]
pub struct Output {
    /// As the user named it.
    name: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    /// Renamed onto the target when complete.
    Renamed { file: NamedTempFile, target: PathBuf },
    /// A device or pipe.
    Direct(File),
}

impl Output {
    /// Prepares to write `name`. Nothing appears there before [`Output::finish`].
    ///
    /// # Errors
    /// When the folder is missing or cannot be written to, or the name is a folder or a read-only file.
    pub fn create(name: &Path) -> Result<Self> {
        let failed = |e: io::Error| Failure::io(name, &e);
        let existing = match std::fs::metadata(name) {
            Ok(metadata) => Some(metadata),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(failed(e)),
        };
        let sink = match existing {
            Some(metadata) if metadata.is_dir() => return Err(Failure::io(name, &"it is a folder, not a file")),
            Some(metadata) if !metadata.is_file() => {
                Sink::Direct(File::options().write(true).open(name).map_err(failed)?)
            }
            Some(metadata) if metadata.permissions().readonly() => {
                return Err(Failure::io(name, &"the file exists and is read-only"));
            }
            existing => {
                let target = follow_links(name).map_err(failed)?;
                let file = create_beside(&target, existing.map(|m| m.permissions())).map_err(|e| {
                    Failure::io(name, &format_args!("cannot create a file there: {}", reason(&e)))
                        .help("the folder must exist and be writable")
                })?;
                temporary().push(file.path().to_owned());
                Sink::Renamed { file, target }
            }
        };
        Ok(Self { name: name.to_owned(), sink })
    }

    /// As the user named it.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Writes the contents: `fill` is given a buffered writer.
    ///
    /// # Errors
    /// With the system's reason, the disk being full for example.
    pub fn write(&mut self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let file = match &mut self.sink {
            Sink::Renamed { file, .. } => file.as_file_mut(),
            Sink::Direct(file) => file,
        };
        let mut writer = BufWriter::with_capacity(1 << 16, file);
        let done = fill(&mut writer).and_then(|()| writer.flush());
        done.map_err(|e| Failure::io(&self.name, &reason(&e)))
    }

    /// Makes the file appear under its name.
    ///
    /// # Errors
    /// When the system cannot rename.
    pub fn finish(mut self) -> Result<()> {
        let name = std::mem::take(&mut self.name);
        match self.sink {
            Sink::Direct(mut file) => file.flush().map_err(|e| Failure::io(&name, &e)),
            Sink::Renamed { file, target } => {
                let path = file.path().to_owned();
                // Network and quota'd file systems report a full disk here at the latest.
                let result = file
                    .as_file()
                    .sync_data()
                    .and_then(|()| file.persist(&target).map(drop).map_err(|e| e.error))
                    .map_err(|e| Failure::io(&name, &reason(&e)));
                temporary().retain(|p| *p != path);
                result
            }
        }
    }
}

/// An empty temporary file in the folder of `target`, with the permissions a new file gets or the old one has.
fn create_beside(target: &Path, permissions: Option<std::fs::Permissions>) -> io::Result<NamedTempFile> {
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".blocktri-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The umask applies.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    Ok(file)
}

/// The file that a chain of symbolic links ends at, which need not exist: it is replaced and not the link.
fn follow_links(name: &Path) -> io::Result<PathBuf> {
    const LONGEST_CHAIN: usize = 40;
    let mut at = name.to_owned();
    for _ in 0..LONGEST_CHAIN {
        if !at.is_symlink() {
            return Ok(at);
        }
        let next = std::fs::read_link(&at)?;
        at = at.parent().map_or(next.clone(), |folder| folder.join(&next));
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The system's reason without the temporary name that `tempfile` adds.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn appears_whole_and_only_when_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.mtx");
        std::fs::write(&path, "old").unwrap();
        let mut output = Output::create(&path).unwrap();
        output.write(|w| w.write_all(b"new")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        output.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(entries(folder.path()), 1);
    }

    #[test]
    fn leaves_nothing_when_dropped_or_failed() {
        let folder = tempfile::tempdir().unwrap();
        let mut output = Output::create(&folder.path().join("x.mtx")).unwrap();
        let failure = output.write(|_| Err(io::Error::other("no more"))).unwrap_err();
        assert!(failure.message.ends_with("x.mtx: no more"), "{}", failure.message);
        drop(output);
        assert_eq!(entries(folder.path()), 0);
    }

    #[test]
    fn refuses_folders_and_missing_folders_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Output::create(folder.path()).unwrap_err().message.contains("folder"));
        let missing = folder.path().join("none/x.mtx");
        let failure = Output::create(&missing).unwrap_err();
        assert!(failure.message.contains("No such file"), "{}", failure.message);
        assert!(!failure.message.contains(".blocktri-"), "{}", failure.message);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_keeps_being_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut output = Output::create(&link).unwrap();
        output.write(|w| w.write_all(b"new")).unwrap();
        output.finish().unwrap();
        assert!(link.symlink_metadata().unwrap().file_type().is_symlink());
        assert_eq!(std::fs::read(&real).unwrap(), b"new");
    }
}
