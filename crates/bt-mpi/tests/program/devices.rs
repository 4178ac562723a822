//! A GPU for each rank, by the stand-in driver.

use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{code, command, end, error, grid, json, path, write};

/// The stand-in driver, which cargo builds beside this program, with so many devices.
fn on_stand_in(devices: usize, ranks: usize, args: &[&str]) -> Command {
    let program = std::env::current_exe().unwrap();
    let name = format!("{}bt_ptx_emulator{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let mut command = command(ranks, args);
    command.env("BLOCKTRI_CUDA_DRIVER", program.with_file_name(name));
    command.env("BLOCKTRI_EMULATOR_DEVICES", devices.to_string());
    command
}

fn with_devices(devices: usize, ranks: usize, args: &[&str]) -> Output {
    end(on_stand_in(devices, ranks, args).spawn().expect("mpirun starts"))
}

/// Every local solver of a GPU takes the steps of the processor's, one GPU for all ranks or two in turn.
#[test]
fn a_gpu_for_each_rank() {
    let folder = tempfile::tempdir().unwrap();
    let wind = write(&folder, "wind.mtx", &grid(6, 0.3));
    let poisson = write(&folder, "poisson.mtx", &grid(6, 0.0));
    let cases: [(&str, &[&str]); 9] = [
        (&wind, &["--method", "gmres", "--local", "ilu0"]),
        (&wind, &["--method", "bicgstab", "--precond", "ras", "--local", "ilu0", "--partition", "dse"]),
        (&poisson, &["--method", "cg", "--precond", "schwarz", "--local", "ic0"]),
        (&wind, &["--method", "fgmres", "--precond", "schur", "--local", "arms-rbt"]),
        (&wind, &["--method", "gmres", "--local", "ilut", "--fill", "5"]),
        (&wind, &["--method", "gmres", "--local", "blocks", "--blocks", "36"]),
        (&wind, &["--method", "hbisa-redblack", "--blocks", "36"]),
        // Of three ranks each has blocks of one colour only.
        (&wind, &["--method", "hbisa-sor", "--omega", "1.05", "--blocks", "72"]),
        // Of three ranks one has none.
        (&wind, &["--method", "hbisa", "--blocks", "108"]),
    ];
    for (file, options) in cases {
        for (devices, ranks) in [(1, 1), (1, 3), (2, 3)] {
            let args = [&[file], options].concat();
            let expected = json(ranks, 0, &args);
            let output = with_devices(devices, ranks, &[&args[..], &["--device", "gpu", "--json"]].concat());
            let told =
                format!("{options:?}, {ranks} ranks, {devices} GPUs: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(code(&output), 0, "{told}");
            let found: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!((&found["device"], &expected["device"]), (&"gpu".into(), &"cpu".into()), "{told}");
            let numbers: Vec<&str> =
                found["gpus"].as_array().unwrap().iter().map(|g| &g.as_str().unwrap()[..1]).collect();
            assert_eq!(numbers, (0..ranks).map(|r| ["0", "1"][r % devices]).collect::<Vec<_>>(), "{told}");
            let steps = |json: &Value| json["iterations"].as_i64().unwrap();
            // The search for the pattern of ILUT is another one there.
            let slack = if options.contains(&"ilut") { 3 } else { 0 };
            assert!(steps(&found).abs_diff(steps(&expected)) <= slack, "{told}: {found} {expected}");
            assert!(found["forward_error"].as_f64().unwrap() <= 1e-5, "{told}: {found}");
        }
    }
}

/// A launch that is refused loses nothing on the GPU, but the answer: it is an error of the device, and no breakdown of the method.
#[test]
fn a_launch_that_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(&folder, "a.mtx", &grid(6, 0.3));
    let cases: [(&[&str], &str, &str); 2] = [
        // Those of the factorization, and of two applications.
        (&["--method", "gmres", "--local", "ilu0"], "12", "ilu0_"),
        // Those of five sweeps.
        (&["--method", "hbisa", "--blocks", "36"], "5", "block_jacobi_"),
    ];
    for (options, launches, kernel) in cases {
        for ranks in [1, 3] {
            let args = [&[a.as_str(), "--device", "gpu"][..], options].concat();
            let mut command = on_stand_in(1, ranks, &args);
            let output = end(command.env("BLOCKTRI_EMULATOR_LAUNCHES", launches).spawn().expect("mpirun starts"));
            let err = String::from_utf8_lossy(&output.stderr);
            assert_eq!((code(&output), err.matches("error: ").count()), (5, 1), "{options:?}, {ranks} ranks: {err}");
            assert!(err.contains(&format!("the GPU did not start {kernel}")), "{err}");
        }
    }
}

/// What there is none of is told once, with the exit code of all ranks.
#[test]
fn gpus_that_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(&folder, "a.mtx", &grid(4, 0.3));
    for ranks in [1, 3] {
        for (bad, told) in [
            (&["--method", "cg", "--precond", "none"][..], "--precond none has none"),
            (&["--method", "spike"], "--method spike has none"),
            (&["--local", "direct"], "has no --local direct"),
        ] {
            let error = error(ranks, 2, &[&[a.as_str(), "--device", "gpu"], bad].concat());
            assert!(error.contains(told), "{error}");
        }
        let mut command = command(ranks, &[&a, "--device", "gpu"]);
        let output = end(command.env("BLOCKTRI_CUDA_DRIVER", path(&folder, "none.so")).spawn().unwrap());
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((code(&output), err.matches("error: ").count()), (5, 1), "{err}");
        assert!(err.contains("error: rank 0: no GPU: "), "{err}");
        assert!(err.contains("help: take --device cpu"), "{err}");
    }
    let complex = write(&folder, "c.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 2 1\n");
    for options in [&[][..], &["--method", "hbisa", "--blocks", "1"]] {
        let output = with_devices(1, 2, &[&[complex.as_str(), "--device", "gpu"], options].concat());
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(code(&output) == 2 && err.contains("real numbers only"), "{options:?}: {err}");
    }
}
