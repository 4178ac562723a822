//! `cargo xtask build-kernels`: CUDA C++ of `kernels/` to the PTX that is committed in `kernels/ptx/`.
//!
//! A PTX file begins with a hash of what it was made from: its source, the header and the flags. Tidy compares that, so a change
//! of a kernel without its PTX is seen on machines without clang.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::process::{Context, Failure, Result, root};

/// The compiler. Its major version is pinned, since each prints PTX differently.
const CLANG: &str = "clang-19";
/// PTX 6.3 for compute capability 7.0: drivers from CUDA 10.0 on compile it for the chip they find. Contraction is the
/// compiler's alone, within expressions, so that no driver fuses what another does not.
const FLAGS: [&str; 13] = [
    "-x",
    "cuda",
    "--cuda-device-only",
    "-nocudainc",
    "-nocudalib",
    "--cuda-gpu-arch=sm_70",
    "--cuda-feature=+ptx63",
    "-O3",
    "-std=c++17",
    "-ffp-contract=on",
    "-Wall",
    "-Wextra",
    "-Werror",
];
/// Chips that `--ptxas` assembles for.
const CHIPS: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_120"];

/// Options of the chore.
#[derive(Args)]
pub struct Options {
    /// Write nothing: compile again and compare where clang-19 is installed, else compare the hashes
    #[arg(long)]
    check: bool,
    /// Assemble every file with NVIDIA's ptxas (PyPI: nvidia-cuda-nvcc), print what kernels take, and fail on register spills
    #[arg(long, value_name = "PATH")]
    ptxas: Option<PathBuf>,
}

/// A family of kernels: one source.
struct Family {
    source: PathBuf,
    ptx: PathBuf,
    /// First line of the PTX.
    stamp: String,
}

/// Builds or checks all families.
pub fn run(options: &Options) -> Result<()> {
    let families = families(&root())?;
    let clang = Command::new(CLANG).arg("--version").output().is_ok_and(|done| done.status.success());
    if !clang && !options.check {
        return Err(Failure(format!("{CLANG} is missing: on Debian, apt-get install clang-19")));
    }
    if options.check {
        fresh(&families)?;
    }
    for family in families.iter().filter(|_| clang) {
        let text = family.compile()?;
        if !options.check {
            fs::write(&family.ptx, text).context(family.ptx.display())?;
        } else if fs::read_to_string(&family.ptx).context(family.ptx.display())? != text {
            return Err(Failure(format!("{}: {CLANG} gives another text", family.ptx.display())));
        }
    }
    if let Some(ptxas) = &options.ptxas {
        println!("{:<18} {:<7} {:>7}  {:<38} most shared memory, bytes", "family", "chip", "kernels", "most registers");
        for family in &families {
            for chip in CHIPS {
                let entries = family.assemble(ptxas, chip)?;
                let most = |of: fn(&Entry) -> u32| {
                    let largest = entries.iter().max_by_key(|e| of(e));
                    largest.filter(|e| of(e) > 0).map_or(String::new(), |e| format!("{} ({})", of(e), e.name))
                };
                let (registers, shared) = (most(|e| e.registers), most(|e| e.shared));
                println!("{:<18} {chip:<7} {:>7}  {registers:<38} {shared}", family.name(), entries.len());
            }
        }
    }
    let how = match (clang, options.check) {
        (true, true) => "compiled again, the same",
        (true, false) => "written",
        (false, _) => "hashes agree; not compiled again, since clang-19 is missing",
    };
    println!("build-kernels: {} families, {how}", families.len());
    Ok(())
}

/// Fails when a PTX file was made from another text than its source is now. Needs no compiler.
pub fn check_fresh(root: &Path) -> Result<()> {
    fresh(&families(root)?)
}

fn fresh(families: &[Family]) -> Result<()> {
    for family in families {
        let text = fs::read_to_string(&family.ptx).context(family.ptx.display())?;
        if text.lines().next() != Some(&family.stamp) {
            let name = family.name();
            return Err(Failure(format!(
                "{name}.ptx is not of kernels/{name}.cu as it is now: run cargo xtask build-kernels"
            )));
        }
    }
    Ok(())
}

fn families(root: &Path) -> Result<Vec<Family>> {
    let folder = root.join("kernels");
    let header = fs::read(folder.join("device.h")).context("kernels/device.h")?;
    let mut families = Vec::new();
    for entry in fs::read_dir(&folder).context("kernels")? {
        let source = entry.context("kernels")?.path();
        if source.extension().is_some_and(|e| e == "cu") {
            let text = fs::read(&source).context(source.display())?;
            let hash = [&text, &header, FLAGS.join(" ").as_bytes()].into_iter().fold(FNV_BASIS, fnv1a);
            let name = source.file_stem().unwrap_or_default().to_string_lossy();
            let ptx = folder.join(format!("ptx/{name}.ptx"));
            let stamp = format!("// kernels/{name}.cu by {CLANG}, hash of source, header and flags: {hash:016x}");
            families.push(Family { source, ptx, stamp });
        }
    }
    families.sort_by(|a, b| a.source.cmp(&b.source));
    Ok(families)
}

impl Family {
    /// The stamp, then what the compiler prints.
    fn compile(&self) -> Result<String> {
        let mut command = Command::new(CLANG);
        command.args(FLAGS).arg(&self.source).args(["-S", "-o", "-"]);
        let done = command.output().context(CLANG)?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            return Err(Failure(format!("{}: {}\n{said}", self.source.display(), done.status)));
        }
        let text = String::from_utf8(done.stdout).context(self.source.display())?;
        Ok(format!("{}\n{text}", self.stamp))
    }

    fn name(&self) -> String {
        self.source.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// What each kernel takes of a chip; an error where one spills.
    fn assemble(&self, ptxas: &Path, chip: &str) -> Result<Vec<Entry>> {
        let mut command = Command::new(ptxas);
        command.args(["-v", "--warn-on-spills", "--warning-as-error", "-arch", chip, "-o", "/dev/null"]).arg(&self.ptx);
        let done = command.output().context(ptxas.display())?;
        let said = String::from_utf8_lossy(&done.stderr);
        if !done.status.success() {
            return Err(Failure(format!("{} for {chip}: {}\n{said}", self.ptx.display(), done.status)));
        }
        Ok(entries(&said))
    }
}

/// A kernel, and what one thread and one thread block of it take.
#[derive(Debug, PartialEq)]
struct Entry {
    name: String,
    registers: u32,
    /// Bytes known to the compiler.
    shared: u32,
}

/// From what `ptxas -v` prints: "Compiling entry function 'f' for 'sm_90'", then "Used 24 registers, …, 2048 bytes smem".
fn entries(said: &str) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut name = None;
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once("entry function '") {
            name = rest.split('\'').next().map(str::to_owned);
        }
        let Some((_, used)) = line.split_once("Used ") else { continue };
        let before = |what: &str| {
            let words: Vec<&str> = used.split([' ', ',']).filter(|word| !word.is_empty()).collect();
            let at = words.iter().position(|word| *word == what)?;
            words[..at].iter().rev().find_map(|word| word.parse().ok())
        };
        if let (Some(name), Some(registers)) = (name.take(), before("registers")) {
            found.push(Entry { name, registers, shared: before("smem").unwrap_or(0) });
        }
    }
    found
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// G. Fowler, L. C. Noll, K.-P. Vo, the 64-bit FNV-1a hash (RFC 9923). It guards against forgetting, not against malice.
fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    // The length separates one text from the next.
    let length = (bytes.len() as u64).to_le_bytes();
    bytes.iter().chain(&length).fold(hash, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_assembler_says_of_each_kernel() {
        let said = "ptxas info    : 0 bytes gmem\n\
            ptxas info    : Compiling entry function 'scan' for 'sm_90'\n\
            ptxas info    : Function properties for scan\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
            ptxas info    : Used 24 registers, used 1 barriers, 2048 bytes smem, 380 bytes cmem[0]\n\
            ptxas info    : Compiling entry function 'sum' for 'sm_90'\n\
            ptxas info    : Used 8 registers, used 0 barriers, 352 bytes cmem[0]\n";
        let entry = |name: &str, registers, shared| Entry { name: name.into(), registers, shared };
        assert_eq!(entries(said), [entry("scan", 24, 2048), entry("sum", 8, 0)]);
    }

    #[test]
    fn the_hash_tells_texts_and_their_borders_apart() {
        let of = |texts: &[&str]| texts.iter().fold(FNV_BASIS, |h, t| fnv1a(h, t.as_bytes()));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a"]), of(&["b"]));
        // FNV-1a of nothing is its basis; here eight zero bytes of length follow.
        assert_eq!(fnv1a(FNV_BASIS, b""), (0..8).fold(FNV_BASIS, |h, _| h.wrapping_mul(0x100_0000_01b3)));
    }
}
