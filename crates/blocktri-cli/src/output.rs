//! Output files that appear whole or not at all: written beside their target and renamed onto it.
//!
//! A target is opened before the work starts, so that a missing folder costs nobody an hour of computing. Devices
//! and pipes (`/dev/full`, `/dev/stdout`) are written directly: they cannot be replaced. `-` is standard output; the
//! report then goes to stderr.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bt_formats::PartialFile;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::args::Global;
use crate::exit::{Failure, Result};

/// Temporary files that exist now; removed when a signal ends the program.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Whether an output is standard output.
static STDOUT_TAKEN: AtomicBool = AtomicBool::new(false);

fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of outputs that were not finished.
pub fn remove_temporary_files() {
    for path in temporary().drain(..) {
        // It may be gone already: finished or removed by its owner.
        let _ = fs::remove_file(path);
    }
}

/// Whether standard output holds an output file, so that nothing else may be written there.
pub fn stdout_is_taken() -> bool {
    STDOUT_TAKEN.load(Ordering::Relaxed)
}

/// Whether a name stands for standard input or output.
pub fn is_standard(name: &Path) -> bool {
    name.as_os_str() == "-"
}

/// What is written into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    MatrixMarket,
    Csv,
    Json,
}

impl Format {
    fn ending(self) -> &'static str {
        match self {
            Self::MatrixMarket => "mtx",
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }

    /// The format that a name asks for by its ending, before which `.gz` stands for packing: one of `known`, the first
    /// of them where the name has no ending (`-`, `/dev/null`).
    ///
    /// # Errors
    /// On any other ending.
    pub fn of(name: &Path, known: &[Self]) -> Result<Self> {
        let plain = if is_packed(name) { Path::new(name.file_stem().unwrap_or_default()) } else { name };
        let Some(ending) = plain.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()) else {
            return Ok(known[0]);
        };
        known.iter().copied().find(|format| format.ending() == ending).ok_or_else(|| {
            let list: Vec<_> = known.iter().map(|format| format!(".{}", format.ending())).collect();
            Failure::io(name, &format_args!("the ending .{ending} is none of the formats written here"))
                .help(format!("known endings: {}, each also followed by .gz", list.join(", ")))
        })
    }
}

fn is_packed(name: &Path) -> bool {
    name.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"))
}

/// What a name stands for: two names of one file are equal.
#[derive(PartialEq, Eq)]
enum Place {
    Standard,
    /// A file that exists, by its number in the file system where there are such.
    #[cfg(unix)]
    Numbered(u64, u64),
    /// A file by its path, all links followed.
    Named(PathBuf),
}

impl Place {
    /// `None` for devices and pipes, which any number of outputs may name.
    fn of(name: &Path) -> Option<Self> {
        if is_standard(name) {
            return Some(Self::Standard);
        }
        let Ok(metadata) = fs::metadata(name) else {
            // Not there yet, or the end of a link that leads nowhere.
            let target = PartialFile::target_of(name).unwrap_or_else(|_| name.to_owned());
            let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
            return Some(Self::Named(folder.join(target.file_name().unwrap_or_default())));
        };
        if !metadata.is_file() && !metadata.is_dir() {
            return None;
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Some(Self::Numbered(metadata.dev(), metadata.ino()))
        }
        #[cfg(not(unix))]
        Some(Self::Named(fs::canonicalize(name).unwrap_or_else(|_| name.to_owned())))
    }
}

/// Refuses an output that is an input or another output, by whatever path, before anything is read or written. Each
/// name comes with what the user calls it.
///
/// # Errors
/// Naming both; also when standard output is to hold both an output and the report of `--json`.
pub fn check_names(global: &Global, inputs: &[(&str, Option<&Path>)], outputs: &[(&str, Option<&Path>)]) -> Result<()> {
    let mut read: Vec<(&str, Place)> = Vec::new();
    for &(what, name) in inputs {
        let Some(name) = name else { continue };
        let place = Place::of(name);
        if place == Some(Place::Standard) && read.iter().any(|(_, other)| *other == Place::Standard) {
            return Err(Failure::usage("standard input can be read once only: two inputs are -"));
        }
        // Standard input may be a file, too.
        let file = is_standard(name).then(|| Place::of(Path::new("/dev/stdin"))).flatten();
        read.extend([place, file].into_iter().flatten().map(|place| (what, place)));
    }
    let mut written: Vec<(&str, Place)> = Vec::new();
    for &(what, name) in outputs {
        let Some(name) = name else { continue };
        let Some(place) = Place::of(name) else { continue };
        if place == Place::Standard && global.json {
            return Err(Failure::usage(format!("{what} and --json both take standard output"))
                .help("give the output a file, or leave --json out"));
        }
        let other = if place == Place::Standard { &written } else { &read };
        let clash = other.iter().chain(&written).find(|(_, other)| *other == place);
        if let Some((other, _)) = clash {
            return Err(Failure::io(name, &format_args!("{other} and {what} name the same file"))
                .help("nothing was read or written; give the output another name"));
        }
        written.push((what, place));
    }
    Ok(())
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
    Renamed(PartialFile),
    /// A device or pipe.
    Direct(File),
    /// Standard output.
    Standard,
}

impl Output {
    /// Prepares to write `name`. Nothing appears there before [`Output::finish`].
    ///
    /// # Errors
    /// When the folder is missing or cannot be written to, or the name is a folder or a read-only file.
    pub fn create(name: &Path) -> Result<Self> {
        let failed = |e: io::Error| Failure::io(name, &e);
        let sink = match fs::metadata(name) {
            _ if is_standard(name) => {
                STDOUT_TAKEN.store(true, Ordering::Relaxed);
                Sink::Standard
            }
            Ok(metadata) if metadata.is_dir() => return Err(Failure::io(name, &"it is a folder, not a file")),
            Ok(metadata) if !metadata.is_file() => {
                Sink::Direct(File::options().write(true).open(name).map_err(failed)?)
            }
            Ok(metadata) if metadata.permissions().readonly() => {
                return Err(Failure::io(name, &"the file exists and is read-only"));
            }
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
            _ => {
                let partial = PartialFile::create(name).map_err(|e| {
                    Failure::io(name, &format_args!("cannot create a file there: {}", reason(&e)))
                        .help("the folder must exist and be writable")
                })?;
                temporary().push(partial.path().to_owned());
                Sink::Renamed(partial)
            }
        };
        Ok(Self { name: name.to_owned(), sink })
    }

    /// As the user named it.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Writes the contents: `fill` is given a buffered writer, which packs when the name ends in `.gz`.
    ///
    /// # Errors
    /// With the system's reason, the disk being full for example. A reader of standard output that has seen enough is
    /// no error.
    pub fn write(&mut self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let packed = is_packed(&self.name);
        let standard = matches!(self.sink, Sink::Standard);
        let done = match &mut self.sink {
            Sink::Renamed(partial) => fill_buffered(partial.file_mut(), packed, fill),
            Sink::Direct(file) => fill_buffered(file, packed, fill),
            Sink::Standard => fill_buffered(&mut io::stdout().lock(), packed, fill),
        };
        match done {
            Err(e) if standard && e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(e) => Err(Failure::io(&label(&self.name), &reason(&e))),
            Ok(()) => Ok(()),
        }
    }

    /// Makes the file appear under its name.
    ///
    /// # Errors
    /// When the system cannot rename.
    pub fn finish(mut self) -> Result<()> {
        let name = std::mem::take(&mut self.name);
        match self.sink {
            Sink::Direct(mut file) => file.flush().map_err(|e| Failure::io(&name, &e)),
            Sink::Standard => Ok(()),
            Sink::Renamed(partial) => {
                let path = partial.path().to_owned();
                let result = partial.persist().map_err(|e| Failure::io(&name, &reason(&e)));
                temporary().retain(|p| *p != path);
                result
            }
        }
    }
}

/// A name as it is shown in messages on outputs.
fn label(name: &Path) -> PathBuf {
    if is_standard(name) { "standard output".into() } else { name.to_owned() }
}

fn fill_buffered(
    sink: &mut dyn Write,
    packed: bool,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 16, sink);
    if packed {
        let mut encoder = GzEncoder::new(&mut writer, Compression::default());
        fill(&mut encoder)?;
        encoder.finish()?;
    } else {
        fill(&mut writer)?;
    }
    writer.flush()
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
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn appears_whole_and_only_when_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.mtx");
        fs::write(&path, "old").unwrap();
        let mut output = Output::create(&path).unwrap();
        output.write(|w| w.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        output.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
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

    #[test]
    fn endings_decide_formats() {
        use Format::{Csv, Json, MatrixMarket};
        let of = |name: &str| Format::of(Path::new(name), &[MatrixMarket, Csv, Json]).ok();
        for (name, format) in [
            ("x.mtx", Some(MatrixMarket)),
            ("x.MTX.gz", Some(MatrixMarket)),
            ("a.b/x.csv", Some(Csv)),
            ("x.csv.gz", Some(Csv)),
            ("x.json", Some(Json)),
            ("-", Some(MatrixMarket)),
            ("/dev/null", Some(MatrixMarket)),
            ("a.b/x", Some(MatrixMarket)),
            ("x.txt", None),
            ("x.txt.gz", None),
            ("x.mtx.xz", None),
        ] {
            assert_eq!(of(name), format, "{name}");
        }
        let failure = Format::of(Path::new("x.txt"), &[Csv, Json]).unwrap_err();
        assert_eq!(failure.help.as_deref(), Some("known endings: .csv, .json, each also followed by .gz"));
    }

    fn checked(inputs: &[&Path], outputs: &[&Path]) -> Result<()> {
        let global = Global { threads: None, json: false, quiet: false, memory: None };
        fn named<'p>(names: [&'static str; 2], paths: &[&'p Path]) -> Vec<(&'static str, Option<&'p Path>)> {
            names.into_iter().zip(paths.iter().map(|p| Some(*p))).collect()
        }
        check_names(&global, &named(["the matrix", "--rhs"], inputs), &named(["--output", "--plot"], outputs))
    }

    #[test]
    fn one_file_by_two_names_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("sub")).unwrap();
        fs::write(path("a.mtx"), "").unwrap();
        let message = |inputs: &[&Path], outputs: &[&Path]| checked(inputs, outputs).map_err(|f| f.message);
        for same in ["a.mtx", "./a.mtx", "sub/../a.mtx"] {
            let told = message(&[&path("a.mtx")], &[&path(same)]).unwrap_err();
            assert!(told.ends_with("the matrix and --output name the same file"), "{told}");
        }
        // Neither is there yet.
        assert!(checked(&[], &[&path("new.csv"), &path("sub/.././new.csv")]).is_err());
        assert!(checked(&[], &[&path("new.csv"), &path("other.csv")]).is_ok());
        assert!(checked(&[&path("a.mtx"), &path("a.mtx")], &[&path("sub/a.mtx")]).is_ok());
        let standard = Path::new("-");
        assert!(checked(&[standard], &[standard]).is_ok());
        assert!(checked(&[standard, standard], &[]).is_err());
        assert!(checked(&[], &[standard, standard]).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_seen_and_devices_are_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.mtx"), "").unwrap();
        fs::hard_link(path("a.mtx"), path("hard.mtx")).unwrap();
        std::os::unix::fs::symlink("a.mtx", path("soft.mtx")).unwrap();
        std::os::unix::fs::symlink("new.mtx", path("ahead.mtx")).unwrap();
        for same in ["hard.mtx", "soft.mtx"] {
            assert!(checked(&[&path("a.mtx")], &[&path(same)]).is_err(), "{same}");
        }
        assert!(checked(&[], &[&path("ahead.mtx"), &path("new.mtx")]).is_err(), "a link to what is not there yet");
        let null = Path::new("/dev/null");
        assert!(checked(&[null, null], &[null, null]).is_ok());
    }
}
