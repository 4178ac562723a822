//! `solve --device gpu` through the stand-in driver: the answers and reports of the processor.

mod common;

use common::{Run, Sandbox};

/// The stand-in driver, which cargo builds beside this program.
fn run(sandbox: &Sandbox, line: &str) -> Run {
    run_with(sandbox, line, "BLOCKTRI_EMULATOR_SEED", "1")
}

/// With a setting of the stand-in driver: a seed, its memory in bytes, the operations a launch may take.
fn run_with(sandbox: &Sandbox, line: &str, setting: &str, value: &str) -> Run {
    let program = std::env::current_exe().expect("the path of this program");
    let name = format!("{}bt_ptx_emulator{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let library = program.with_file_name(name);
    let library = library.to_str().expect("a path in UTF-8");
    sandbox.run_with(line, &[("BLOCKTRI_CUDA_DRIVER", library), (setting, value)])
}

#[test]
fn the_gpu_solves_what_the_processor_solves() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 9 -o A.mtx").expect(0);
    for (method, precond) in [
        ("cg --precond none", "none"),
        ("cg", "jacobi"),
        ("bicgstab", "jacobi"),
        ("hbisa", "none"),
        ("hbisa-redblack --stop update", "none"),
    ] {
        let gpu = run(&sandbox, &format!("solve A.mtx --method {method} --device gpu --json")).expect(0).json();
        let cpu = sandbox.run(&format!("solve A.mtx --method {method} --json")).expect(0).json();
        assert_eq!((&gpu["device"], &gpu["precond"]), (&"gpu:0".into(), &precond.into()), "{method}");
        for field in ["method", "outcome", "blocks", "reorder", "n"] {
            assert_eq!(gpu[field], cpu[field], "{method}: {field}");
        }
        let number = |json: &serde_json::Value, field: &str| json[field].as_f64().expect("a number");
        assert!((number(&gpu, "iterations") - number(&cpu, "iterations")).abs() <= 2.0, "{method}: {gpu} {cpu}");
        assert!(number(&gpu, "forward_error") <= 1e-5, "{method}: {gpu}");
        assert!(number(&gpu, "backward_error") <= 1e-8, "{method}: {gpu}");
    }
}

#[test]
fn direct_methods_answer_as_on_the_processor() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 9 -o A.mtx").expect(0);
    sandbox.write("T.mtx", common::SMALL);
    for line in [
        "T.mtx --method tridiagonal-lu",
        "A.mtx --method block-lu",
        "A.mtx --method block-lu --blocks 27",
        "A.mtx --method band-lu --reorder rcm",
        "A.mtx --method spike --partitions 3",
        "A.mtx --method spike --partitions 2 --blocks 9",
    ] {
        let gpu = run(&sandbox, &format!("solve {line} --device gpu --json")).expect(0).json();
        let cpu = sandbox.run(&format!("solve {line} --json")).expect(0).json();
        assert_eq!(gpu["device"], "gpu:0", "{line}");
        for field in ["method", "outcome", "blocks", "reorder", "n"] {
            assert_eq!(gpu[field], cpu[field], "{line}: {field}");
        }
        for (field, bound) in [("forward_error", 1e-13), ("backward_error", 1e-15)] {
            assert!(gpu[field].as_f64().is_some_and(|v| v <= bound), "{line}: {gpu}");
        }
    }
}

#[test]
fn singular_matrices_and_wrong_structures_end_as_on_the_processor() {
    let sandbox = Sandbox::new();
    sandbox.write("S.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n3 3 2\n2 1 1\n");
    sandbox.run("generate poisson2d --nx 4 -o A.mtx").expect(0);
    for line in ["S.mtx --method tridiagonal-lu", "S.mtx --method band-lu", "A.mtx --method tridiagonal-lu"] {
        let gpu = run(&sandbox, &format!("solve {line} --device gpu"));
        let cpu = sandbox.run(&format!("solve {line}"));
        assert_eq!((gpu.code, &gpu.stderr), (cpu.code, &cpu.stderr), "{line}");
        assert_ne!(gpu.code, 0, "{line}");
    }
    let refused = run(&sandbox, "solve A.mtx --method band-lu --precision single --device gpu").expect(2);
    assert!(
        refused.stderr.contains("--precision single for direct methods is not on the GPU yet"),
        "{}",
        refused.stderr
    );
}

#[test]
fn what_is_not_on_the_gpu_is_bad_usage() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 4 -o A.mtx").expect(0);
    for (options, wanted) in [
        (
            "",
            "--method auto (there are cg, bicgstab, hbisa, hbisa-redblack, tridiagonal-lu, block-lu, band-lu, spike) is not on the GPU yet",
        ),
        ("--method cg --precond ilu0", "--precond ilu0 (there are none and jacobi) is not on the GPU yet"),
        ("--method cg --stop update", "cg stops on the residual only"),
        ("--method hbisa --blocks 8", "diagonal blocks are tridiagonal"),
    ] {
        let run = run(&sandbox, &format!("solve A.mtx --device gpu {options}")).expect(2);
        assert!(run.stderr.contains(wanted), "{options}: {}", run.stderr);
    }
    // The stand-in has one device.
    let run = run(&sandbox, "solve A.mtx --method cg --device gpu:7").expect(5);
    assert!(run.stderr.starts_with("error: no GPU 7: the driver sees "), "{}", run.stderr);
}

#[test]
fn faults_of_the_device_end_with_five_and_write_nothing() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 9 -o A.mtx").expect(0);
    sandbox.write("T.mtx", common::SMALL);
    for (setting, value, wanted) in [
        ("BLOCKTRI_EMULATOR_MEMORY", "64", "bytes are needed on the GPU, "),
        ("BLOCKTRI_EMULATOR_BUDGET", "1000", "the GPU was lost while "),
    ] {
        for (file, method) in
            [("A", "cg"), ("A", "block-lu"), ("A", "band-lu"), ("A", "spike"), ("T", "tridiagonal-lu")]
        {
            let line = format!("solve {file}.mtx --method {method} --device gpu -o x.mtx");
            let run = run_with(&sandbox, &line, setting, value).expect(5);
            let said = run.stderr.contains(wanted) && run.stderr.contains("help: use --device cpu");
            assert!(said, "{setting}, {method}: {}", run.stderr);
            assert_eq!(sandbox.names(), ["A.mtx", "T.mtx"]);
        }
    }
}
