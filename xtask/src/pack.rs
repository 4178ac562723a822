//! `cargo xtask pack-gpu`: the device tests and benchmarks as one folder that runs on a machine with a driver and no cargo.
//!
//! The programs of bt-kernels carry their PTX and read no files. `run.sh` starts each test on the GPU, under the program that
//! `SANITIZER` names where it is set (`SANITIZER="compute-sanitizer --error-exitcode 9"`); `bench.sh` starts the benchmarks,
//! `versus_cusparse.py` has them beside cuSPARSE.

use std::fs;

use clap::Args;

use crate::process::{Context, Result, cargo, programs, root};

/// Options of the chore.
#[derive(Args)]
pub struct Options {
    /// Unoptimized programs, as `cargo test` builds them
    #[arg(long)]
    dev: bool,
}

const RUN: &str = "\
#!/bin/sh
# Every device test on the GPU of this machine. SANITIZER=\"compute-sanitizer --error-exitcode 9\" runs each under it.
cd \"$(dirname \"$0\")\" || exit 1
export REQUIRE_GPU=1
failed=
for test in ./test-*; do
    $SANITIZER \"$test\" --test-threads=1 || failed=\"$failed $test\"
done
if [ -n \"$failed\" ]; then
    echo \"failed:$failed\"
    exit 1
fi
echo \"all passed\"
";

const BENCH: &str = "\
#!/bin/sh
# The benchmarks on the GPU of this machine; words are handed on to criterion.
cd \"$(dirname \"$0\")\" || exit 1
export REQUIRE_GPU=1
for bench in ./bench-*; do
    \"$bench\" --bench \"$@\" || exit 1
done
";

/// The benchmarks in turns with cuSPARSE.
const VERSUS: &str = "versus_cusparse.py";

/// Builds the programs and fills target/pack-gpu.
pub fn run(options: &Options) -> Result<()> {
    let folder = root().join("target/pack-gpu");
    if folder.exists() {
        fs::remove_dir_all(&folder).context(folder.display())?;
    }
    fs::create_dir_all(&folder).context(folder.display())?;
    let mut command = cargo(["test", "--package", "bt-kernels", "--tests", "--benches", "--no-run"]);
    if !options.dev {
        command.arg("--release");
    }
    let mut names = Vec::new();
    for (target, program) in programs(&mut command)? {
        let kind = if target.is_bench() { "bench" } else { "test" };
        let to = folder.join(format!("{kind}-{}", target.name));
        fs::copy(&program, &to).context(to.display())?;
        names.push(target.name);
    }
    for (name, script) in [("run.sh", RUN), ("bench.sh", BENCH)] {
        let path = folder.join(name);
        fs::write(&path, script).context(path.display())?;
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).context(path.display())?;
    }
    let beside = folder.join(VERSUS);
    fs::copy(root().join("crates/bt-kernels/benches").join(VERSUS), &beside).context(beside.display())?;
    println!("target/pack-gpu: run.sh, bench.sh, {VERSUS} and {} programs: {}", names.len(), names.join(", "));
    Ok(())
}
