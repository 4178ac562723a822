//! How much memory may still be taken, asked before it is taken.
//!
//! An allocation that fails ends a Rust program at once, and one that the system only seems to grant ends it later,
//! by a signal. Whoever is about to take memory in proportion to a problem therefore calls [`ask`] with an estimate.
//!
//! On Linux the room is the least of: `MemAvailable` of `/proc/meminfo`; the limits of the control groups of the
//! process and of the groups above it (version 1 and 2) less their use without inactive file pages; the limits of the
//! process on its address space and its data (`ulimit -v`, `-d`) less their use. Elsewhere it is unknown and only an
//! explicit limit counts.
//!
//! Cost: some ten small files of `/proc` and `/sys`, less than a millisecond; requests below 4 MiB are granted
//! without a look. Where the address space is limited 4 MiB must be left beside every request, since the many small things that nobody
//! asks for end the program there, too; requests of less than 1 MiB in all are granted between two looks.

use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock};

use crate::error::{Error, Result};
use crate::kernels;

/// How much may be taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A share of what is available when it is asked for, from 0 to 1.
    Share(f64),
    /// So many bytes for the whole process, what it holds already included, and never more than is available.
    Bytes(u64),
}

impl Limit {
    /// 80 % of what is available: estimates are rough, and other programs need memory too.
    pub const DEFAULT: Self = Self::Share(0.8);
}

/// `8G`, `512MiB`, `1.5g`, `1000000` (bytes; units are powers of 1024) or `80%`.
///
/// ```
/// use bt_formats::memory::Limit;
/// assert_eq!("8G".parse(), Ok(Limit::Bytes(8 << 30)));
/// assert_eq!("80%".parse(), Ok(Limit::Share(0.8)));
/// assert!("8 loaves".parse::<Limit>().is_err());
/// ```
impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a size like 8G, 500M or 2000000000, or a share like 80% is needed".to_owned();
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0);
        if let Some(share) = text.strip_suffix('%') {
            return number(share).filter(|s| *s <= 100.0).map(|s| Self::Share(s / 100.0)).ok_or_else(wrong);
        }
        let lower = text.to_ascii_lowercase();
        let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match &lower[digits.len()..] {
            "" | "b" => 1u64,
            "k" | "kb" | "kib" => 1 << 10,
            "m" | "mb" | "mib" => 1 << 20,
            "g" | "gb" | "gib" => 1 << 30,
            "t" | "tb" | "tib" => 1 << 40,
            _ => return Err(wrong()),
        };
        // Below 2⁵³ the product is exact, and nobody has more.
        number(digits).map(|x| Self::Bytes((x * unit as f64) as u64)).ok_or_else(wrong)
    }
}

static LIMIT: RwLock<Limit> = RwLock::new(Limit::DEFAULT);

/// Sets the limit of this process for all later requests.
pub fn set_limit(limit: Limit) {
    *LIMIT.write().unwrap_or_else(PoisonError::into_inner) = limit;
}

/// Bytes that the system would still give to this process; `None` where that cannot be known.
pub fn available() -> Option<u64> {
    room(&from_system)
}

/// Bytes of address space left to this process under its limits (`ulimit -v`, `-d`); `None` where it has none.
pub fn address_space() -> Option<u64> {
    under_limits(&from_system)
}

/// Bytes that may still be taken under the limit set; `None` where nothing is known and nothing was set. A program that keeps what it gave
/// back ([`HugePages::share_one_heap`](crate::HugePages::share_one_heap)) hands it to the system first where little is left.
pub fn allowed() -> Option<u64> {
    /// Far more than is kept.
    const PLENTY: u64 = 1 << 30;
    let limit = *LIMIT.read().unwrap_or_else(PoisonError::into_inner);
    let look = || under(limit, available(), || status(&from_system, "VmRSS:").unwrap_or(0));
    let found = look();
    if found.is_some_and(|bytes| bytes < PLENTY) && kernels::give_back() { look() } else { found }
}

fn under(limit: Limit, available: Option<u64>, held: impl FnOnce() -> u64) -> Option<u64> {
    match limit {
        Limit::Share(share) => available.map(|a| (a as f64 * share) as u64),
        Limit::Bytes(bytes) => {
            let left = bytes.saturating_sub(held());
            Some(available.map_or(left, |a| a.min(left)))
        }
    }
}

/// Whether the process had such a limit when this was first asked.
pub(crate) fn has_limited_addresses() -> bool {
    static LIMITED: OnceLock<bool> = OnceLock::new();
    *LIMITED.get_or_init(|| address_space().is_some())
}

/// Bytes that are granted without a look, and that must be left beside a request where the address space is limited.
pub const SMALL: u64 = 4 << 20;

/// Asks for `bytes` more for `what` ("the factors of sparse-lu"). Nothing is reserved: it is a judgement, to be asked
/// for before memory of that size is taken.
///
/// ```
/// use bt_formats::memory;
/// assert!(memory::ask(1 << 10, "a vector").is_ok());
/// assert!(memory::ask(u64::MAX, "everything").is_err() || memory::allowed().is_none());
/// ```
///
/// # Errors
/// [`Error::NotEnoughMemory`] when there is less.
pub fn ask(bytes: u64, what: &str) -> Result<()> {
    /// Bytes granted since room was seen; the first request looks.
    static GRANTED: AtomicU64 = AtomicU64::new(SMALL);
    let is_limited = has_limited_addresses();
    let is_small = if is_limited {
        let more = bytes.min(SMALL);
        GRANTED.fetch_add(more, Ordering::Relaxed) + more < SMALL / 4
    } else {
        bytes < SMALL
    };
    if is_small {
        return Ok(());
    }
    let needed = if is_limited { bytes.saturating_add(SMALL) } else { bytes };
    match allowed() {
        Some(available) if needed > available => {
            Err(Error::NotEnoughMemory { what: what.to_owned(), needed, available })
        }
        _ => {
            GRANTED.store(0, Ordering::Relaxed);
            Ok(())
        }
    }
}

/// Bytes with a unit: powers of 1024.
pub fn in_words(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// The text of a file of the system, by path.
type Files<'a> = &'a dyn Fn(&str) -> Option<String>;

fn from_system(path: &str) -> Option<String> {
    cfg!(target_os = "linux").then(|| std::fs::read_to_string(path).ok()).flatten()
}

fn room(files: Files<'_>) -> Option<u64> {
    let memory = files("/proc/meminfo").and_then(|text| kibibytes(&text, "MemAvailable:"));
    [memory, control_groups(files), under_limits(files)].into_iter().flatten().min()
}

fn under_limits(files: Files<'_>) -> Option<u64> {
    let limits = files("/proc/self/limits")?;
    let left = |limit: &str, used: &str| Some(soft_limit(&limits, limit)?.saturating_sub(status(files, used)?));
    [left("Max address space", "VmSize:"), left("Max data size", "VmData:")].into_iter().flatten().min()
}

/// A line `name   123 kB` in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn status(files: Files<'_>, name: &str) -> Option<u64> {
    kibibytes(&files("/proc/self/status")?, name)
}

/// The first number after the name in `/proc/self/limits`; `None` for `unlimited`.
fn soft_limit(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Bytes that no machine has.
const NO_LIMIT: u64 = 1 << 60;

/// The least room in the groups of this process and those above them.
fn control_groups(files: Files<'_>) -> Option<u64> {
    let groups = files("/proc/self/cgroup")?;
    let mut least = None;
    for line in groups.lines() {
        // number:controllers:path, without controllers in version 2.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, limit, used, inactive) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
            c if c.split(',').any(|c| c == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            }
            _ => continue,
        };
        // Inside a container the path may be that of the host, of which only the root is to be seen.
        for folder in Path::new(path.trim_start_matches('/')).ancestors() {
            let number = |name: &str| files(&file_in(root, folder, name))?.trim().parse::<u64>().ok();
            // Most groups have no limit: version 2 has no number then, version 1 the largest multiple of a page.
            let Some(limit) = number(limit).filter(|&limit| limit < NO_LIMIT) else { continue };
            let Some(used) = number(used) else { continue };
            let statistics = files(&file_in(root, folder, "memory.stat")).unwrap_or_default();
            let reclaimable = statistics.lines().find_map(|line| line.strip_prefix(inactive)?.trim().parse().ok());
            let left = limit.saturating_sub(used.saturating_sub(reclaimable.unwrap_or(0)));
            least = Some(least.map_or(left, |l: u64| l.min(left)));
        }
    }
    least
}

fn file_in(root: &str, folder: &Path, name: &str) -> String {
    Path::new(root).join(folder).join(name).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
        Max data size             unlimited            unlimited            bytes     \n\
        Max address space         819200000            unlimited            bytes     \n";

    fn files<'a>(all: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |path| all.iter().find(|(p, _)| *p == path).map(|(_, text)| (*text).to_owned())
    }

    #[test]
    fn the_least_of_all_limits_counts() {
        let mut all = vec![("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000000 kB\n")];
        assert_eq!(room(&files(&all)), Some(8_000_000 << 10));
        all.extend([("/proc/self/limits", LIMITS), ("/proc/self/status", "VmSize:   100000 kB\nVmData: 7 kB\n")]);
        assert_eq!(room(&files(&all)), Some(819_200_000 - (100_000 << 10)));
        // Version 2: the group's own limit is none, the one above it has 100 MB, of which 30 are used.
        all.extend([
            ("/proc/self/cgroup", "0::/a.slice/b.scope\n"),
            ("/sys/fs/cgroup/a.slice/b.scope/memory.max", "max\n"),
            ("/sys/fs/cgroup/a.slice/b.scope/memory.current", "1000\n"),
            ("/sys/fs/cgroup/a.slice/memory.max", "100000000\n"),
            ("/sys/fs/cgroup/a.slice/memory.current", "40000000\n"),
            ("/sys/fs/cgroup/a.slice/memory.stat", "anon 5\ninactive_file 10000000\n"),
        ]);
        assert_eq!(room(&files(&all)), Some(70_000_000));
        assert_eq!(room(&files(&[])), None);
    }

    #[test]
    fn version_1_in_a_container_shows_only_the_root() {
        let all = [
            ("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/0123\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "4000\n"),
            ("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n"),
        ];
        assert_eq!(room(&files(&all)), Some(1500));
        // A limit below the use leaves nothing.
        let full = [all[0], (all[1].0, "100\n"), all[2]];
        assert_eq!(room(&files(&full)), Some(0));
    }

    #[test]
    fn limits_bound_what_is_available() {
        assert_eq!(under(Limit::Share(0.5), Some(1000), || 9), Some(500));
        assert_eq!(under(Limit::Share(0.5), None, || 9), None);
        assert_eq!(under(Limit::Bytes(100), Some(1000), || 9), Some(91));
        assert_eq!(under(Limit::Bytes(100), Some(50), || 9), Some(50));
        assert_eq!(under(Limit::Bytes(100), None, || 900), Some(0));
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        for (text, limit) in [
            ("1.5k", Limit::Bytes(1536)),
            ("2GiB", Limit::Bytes(2 << 30)),
            ("3mb", Limit::Bytes(3 << 20)),
            ("4T", Limit::Bytes(4 << 40)),
            ("1000", Limit::Bytes(1000)),
            ("12.5%", Limit::Share(0.125)),
        ] {
            assert_eq!(text.parse(), Ok(limit), "{text}");
        }
        for text in ["", "G", "-1G", "0", "0%", "101%", "nan", "inf", "8 G b", "8P", "%"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
        assert_eq!([in_words(1023), in_words(1536), in_words(5 << 40)], ["1023 B", "1.5 KiB", "5.0 TiB"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_some_memory_and_not_all() {
        let available = available().unwrap();
        assert!((1 << 20..1 << 60).contains(&available), "{available}");
        let error = ask(1 << 62, "a test").unwrap_err();
        assert!(error.to_string().starts_with("not enough memory: a test needs about 4194304.0 TiB, "), "{error}");
        assert!(error.help().is_some());
    }
}
