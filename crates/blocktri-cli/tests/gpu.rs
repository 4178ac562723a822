//! `solve` and `reproduce` with `--device gpu` through the stand-in driver: the answers and reports of the processor.

mod common;

use common::{Run, Sandbox, numbers};

/// The stand-in driver, which cargo builds beside this program.
fn run(sandbox: &Sandbox, line: &str) -> Run {
    run_with(sandbox, line, "BLOCKTRI_EMULATOR_SEED", "1")
}

/// With a setting of the stand-in driver: a seed, its memory in bytes, the operations a launch may take.
fn run_with(sandbox: &Sandbox, line: &str, setting: &str, value: &str) -> Run {
    sandbox.run_with(line, &[("BLOCKTRI_CUDA_DRIVER", &stand_in()), (setting, value)])
}

fn stand_in() -> String {
    let program = std::env::current_exe().expect("the path of this program");
    let name = format!("{}bt_ptx_emulator{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    program.with_file_name(name).into_os_string().into_string().expect("a path in UTF-8")
}

#[test]
fn the_gpu_solves_what_the_processor_solves() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 9 -o A.mtx").expect(0);
    for (method, precond) in [
        ("cg --precond none", "none"),
        ("cg", "jacobi"),
        ("bicgstab", "jacobi"),
        ("gmres", "jacobi"),
        ("fgmres --restart 7 --precond none", "none"),
        ("hbisa", "none"),
        ("hbisa-redblack --stop update", "none"),
        ("hbisa-redblack --blocks 27", "none"),
        ("rbt", "none"),
        ("rbt --precision single", "none"),
        ("gmres --precond arms-rbt", "arms-rbt"),
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
fn krylov_methods_say_when_many_iterations_are_one_launch() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 9 -o A.mtx").expect(0);
    for method in ["cg", "bicgstab", "gmres", "fgmres"] {
        let gpu = run(&sandbox, &format!("solve A.mtx --method {method} --device gpu --json")).expect(0).json();
        let notes = gpu["notes"].as_array().expect("notes");
        let note = "all rows fit on the GPU at once: 32 iterations are one launch";
        assert!(notes.iter().any(|n| n == note), "{method}: {notes:?}");
    }
}

#[test]
fn several_right_hand_sides_end_each_for_itself() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 9 -o A.mtx").expect(0);
    let values: Vec<_> = (0..3 * 81).map(|i| (f64::from((i * i) % 17) * 10f64.powi(i / 81)).to_string()).collect();
    sandbox.write("B.mtx", format!("%%MatrixMarket matrix array real general\n81 3\n{}\n", values.join("\n")));
    let methods = [
        "hbisa --reorder rcm",
        "hbisa-redblack --blocks 9",
        "gmres --reorder rcm",
        "fgmres --precond ilu0 --restart 5",
    ];
    for method in methods {
        let line = format!("solve A.mtx -b B.mtx --method {method} --rtol 1e-10 --max-iters 1000 --json");
        let gpu = run(&sandbox, &format!("{line} --device gpu -o X.mtx")).expect(0).json();
        let cpu = sandbox.run(&format!("{line} -o Y.mtx")).expect(0).json();
        assert_eq!((&gpu["nrhs"], &gpu["outcome"]), (&3.into(), &cpu["outcome"]), "{method}");
        let (x, y) = (numbers(&sandbox.read("X.mtx")), numbers(&sandbox.read("Y.mtx")));
        for (x, y) in x.chunks(81).zip(y.chunks(81)) {
            let size = y.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            assert!(x.iter().zip(y).all(|(x, y)| (x - y).abs() <= 1e-8 * size), "{method}");
        }
        let note = "3 right-hand sides, 3 at a time: the launches of a step are for all of them";
        let told = gpu["notes"].as_array().expect("notes").iter().any(|n| n == note);
        assert_eq!(told, method.contains("gmres"), "{method}: {}", gpu["notes"]);
    }
}

#[test]
fn preconditioners_have_the_names_notes_and_iterations_of_the_processor() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 9 -o A.mtx").expect(0);
    for (options, note) in [
        ("cg --precond ilu0", "preconditioner: ilu0 with 369 entries"),
        ("cg --precond ic0", "preconditioner: ic0 with 369 entries"),
        ("cg --precond ic0 --sweeps 2", "2 Jacobi sweeps in place of triangular solves on 17 and 17 levels"),
        ("cg --precond ssor-ai --omega 1.2", ""),
        ("cg --precond ssor-ai-free", ""),
        ("cg --precond ssor-ai2", ""),
        ("cg --precond ssor-ai-masked", ""),
        ("cg --precond block-ssor-ai2 --blocks 3", "preconditioner: block-ssor-ai2 on 27 blocks of 3 rows"),
        ("cg --precond ip", ""),
        ("cg --precond block-jacobi", "preconditioner: block-jacobi on 9 blocks of 9 to 9 rows"),
        ("bicgstab --precond ilu0", "preconditioner: ilu0 with 369 entries"),
        ("gmres --precond ilu0", "preconditioner: ilu0 with 369 entries"),
        ("gmres --restart 4 --precond block-jacobi", "preconditioner: block-jacobi on 9 blocks of 9 to 9 rows"),
        ("fgmres --restart 4 --precond ssor-ai-masked", ""),
        ("fgmres --precond ic0 --sweeps 2", "2 Jacobi sweeps in place of triangular solves on 17 and 17 levels"),
        ("bicgstab --precond block-jacobi --blocks 27", "preconditioner: block-jacobi on 3 blocks of 27 to 27 rows"),
    ] {
        let gpu = run(&sandbox, &format!("solve A.mtx --method {options} --device gpu --json")).expect(0).json();
        let cpu = sandbox.run(&format!("solve A.mtx --method {options} --json")).expect(0).json();
        for field in ["method", "outcome", "precond"] {
            assert_eq!(gpu[field], cpu[field], "{options}: {field}");
        }
        let number = |json: &serde_json::Value, field: &str| json[field].as_f64().expect("a number");
        assert!((number(&gpu, "iterations") - number(&cpu, "iterations")).abs() <= 1.0, "{options}: {gpu} {cpu}");
        for json in [&gpu, &cpu] {
            let notes = json["notes"].as_array().expect("notes");
            assert!(note.is_empty() || notes.iter().any(|n| n == note), "{options}: {notes:?}");
        }
    }
}

#[test]
fn products_by_blocks_of_nodes_are_on_both() {
    let sandbox = Sandbox::new();
    sandbox.run("generate elasticity-disk --n 266 -o A.mtx --rhs b.mtx").expect(0);
    for method in ["cg", "bicgstab", "gmres --restart 10", "fgmres --restart 10"] {
        let line = format!("solve A.mtx -b b.mtx --method {method} --precond block-ssor-ai2 --rtol 1e-8 --json");
        let gpu = run(&sandbox, &format!("{line} --device gpu")).expect(0).json();
        let cpu = sandbox.run(&line).expect(0).json();
        let steps = |json: &serde_json::Value| json["iterations"].as_f64().expect("a number");
        assert!((steps(&gpu) - steps(&cpu)).abs() <= 1.0, "{method}: {gpu} {cpu}");
        for json in [&gpu, &cpu] {
            let notes = json["notes"].as_array().expect("notes");
            assert!(notes.iter().any(|n| n == "products with the matrix by blocks of 2 rows"), "{method}: {notes:?}");
        }
    }
}

#[test]
fn ilut_says_how_its_pattern_was_found() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 9 -o A.mtx").expect(0);
    let solve = |options: &str| {
        let gpu = run(&sandbox, &format!("solve A.mtx --method {options} --device gpu --json")).expect(0).json();
        let cpu = sandbox.run(&format!("solve A.mtx --method {options} --json")).expect(0).json();
        assert_eq!((&gpu["precond"], &gpu["outcome"]), (&"ilut".into(), &"converged".into()), "{options}");
        let steps = |json: &serde_json::Value| json["iterations"].as_f64().expect("a number");
        assert!(steps(&gpu) <= 1.3 * steps(&cpu) + 1.0, "{options}: {gpu} {cpu}");
        gpu["notes"].to_string()
    };
    let notes = solve("bicgstab --precond ilut --fill 4 --drop-tol 1e-3");
    assert!(notes.contains("steps found its pattern") && !notes.contains("symmetric form"), "{notes}");
    let notes = solve("cg --precond ilut --fill 4 --drop-tol 1e-3");
    assert!(notes.contains("steps found its pattern") && notes.contains("symmetric form"), "{notes}");
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
    assert!(refused.stderr.contains("a direct method in single precision is not on the GPU yet"), "{}", refused.stderr);
}

/// A sweep of 9 plans; the last ones are of larger models.
const SWEEP: &str = "queue --resources 6 --threshold 3 --lambda 2 --eta 0.5 --cost-resource 1 --sweep";

#[test]
fn sweeps_of_plans_are_those_of_the_processor() {
    let sandbox = Sandbox::new();
    for sweep in ["lambda=0.5:4.5:0.5", "resources=2:10:1"] {
        let line = format!("{SWEEP} {sweep} -o plans.csv --json");
        let cpu = sandbox.run(&line).expect(0).json();
        let cpu_table = sandbox.read("plans.csv");
        let ran = run(&sandbox, &format!("{line} --device gpu")).expect(0);
        let gpu = ran.json();
        assert_eq!((&cpu["device"], &gpu["device"]), (&"cpu".into(), &"gpu:0".into()));
        assert_eq!(gpu["notes"], serde_json::json!(["gth: a thread block of GPU 0 for each chain"]));
        assert_eq!(gpu["model"], cpu["model"]);
        let (ours, theirs) = (gpu["plans"].as_array().expect("plans"), cpu["plans"].as_array().expect("plans"));
        assert_eq!((ours.len(), theirs.len()), (9, 9), "{sweep}");
        for (ours, theirs) in ours.iter().zip(theirs) {
            for field in ["in_advance", "on_95"] {
                assert_eq!(ours[field], theirs[field], "{sweep}: {field}");
            }
            for field in ["mean_on", "utilisation", "waiting", "loss", "log10_loss", "throughput", "turn_on_rate"] {
                let [a, b] = [ours, theirs].map(|plan| plan[field].as_f64().expect("a number"));
                assert!((a - b).abs() <= 1e-12 * b.abs(), "{sweep}: {field} is {a}, not {b}");
            }
        }
        let rows = |table: &str| table.lines().map(|row| row.split(',').count()).collect::<Vec<_>>();
        assert_eq!(rows(&sandbox.read("plans.csv")), rows(&cpu_table), "{sweep}");
        // As many chains at a time as there is memory for, with the same bits.
        let small = run_with(&sandbox, &format!("{line} --device gpu"), "BLOCKTRI_EMULATOR_MEMORY", "12000").expect(0);
        assert_eq!(small.json()["plans"], gpu["plans"], "{sweep}");
    }
}

#[test]
fn chains_that_the_gpu_does_not_take_are_the_processors_and_said_to_be() {
    let sandbox = Sandbox::new();
    // Without arrivals one state is recurrent.
    let line = "queue --resources 6 --threshold 3 --sweep lambda=0:2:1 --json";
    let ran = run(&sandbox, &format!("{line} --device gpu")).expect(0);
    let wanted = "the processor eliminated 1 chain, the first at lambda = 0: it has transient states";
    assert!(ran.stderr.contains(wanted), "{}", ran.stderr);
    let (gpu, cpu) = (ran.json(), sandbox.run(line).expect(0).json());
    assert_eq!((&gpu["notes"][1], &gpu["plans"][0]), (&wanted.into(), &cpu["plans"][0]));

    let rare = "queue --resources 6 --threshold 3 --sweep lambda=1e-300:2e-300:1e-300 --json";
    let ran = run(&sandbox, &format!("{rare} --device gpu")).expect(0);
    let wanted =
        "the processor eliminated 2 chains, the first at lambda = 1.000e-300: on the GPU a rate is below 1e-280";
    assert!(ran.stderr.contains(wanted), "{}", ran.stderr);
    assert_eq!(ran.json()["plans"], sandbox.run(rare).expect(0).json()["plans"]);
}

#[test]
fn sweeps_of_plans_need_the_gpu_that_is_asked_for() {
    let sandbox = Sandbox::new();
    let line = format!("{SWEEP} lambda=1:2:1 --json --device");
    let auto = run(&sandbox, &format!("{line} auto")).expect(0).json();
    let why =
        "device auto: the processor, since a state takes about 8 flops, fewer than the bytes of its copies to a GPU";
    assert_eq!((&auto["device"], &auto["notes"]), (&"cpu".into(), &serde_json::json!([why])));
    // The stand-in has one device.
    let none = run(&sandbox, &format!("{line} gpu:7")).expect(5);
    assert!(none.stderr.contains("no GPU 7: the driver sees "), "{}", none.stderr);
    let refused = run_with(&sandbox, &format!("{line} gpu"), "BLOCKTRI_EMULATOR_MEMORY", "64").expect(5);
    assert!(refused.stderr.contains(" bytes are needed on the GPU, "), "{}", refused.stderr);
    let lost = run_with(&sandbox, &format!("{line} gpu"), "BLOCKTRI_EMULATOR_BUDGET", "1000").expect(5);
    assert!(lost.stderr.contains("the GPU was lost while "), "{}", lost.stderr);
    // A chain alone is the processor's.
    run(&sandbox, "queue --resources 6 --threshold 3 --lambda 2 --device gpu").expect(2);
}

#[test]
fn auto_says_why_it_stays_on_the_processor() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 9 -o A.mtx").expect(0);
    for (method, why) in [
        ("cg", "the matrix has 4 KB, which its caches hold"),
        ("band-lu", "a GPU has band-lu too, but it reads A once, as the copy to it does"),
        ("rbt", "the matrix has fewer than 2048 rows"),
    ] {
        let json = run(&sandbox, &format!("solve A.mtx --method {method} --device auto --json")).expect(0).json();
        assert_eq!(json["device"], "cpu", "{method}");
        assert_eq!(json["notes"][0], format!("device auto: the processor, since {why}"), "{method}");
    }
}

/// The command in a cache folder that has the constants of a processor 10⁴ times slower than this one.
fn on_a_slow_processor(sandbox: &Sandbox, line: &str, setting: &str, value: &str) -> Run {
    let shown = sandbox.run("calibrate --show --json").expect(0).json();
    let mut constants = shown["constants"].as_object().expect("constants by name").clone();
    for (name, value) in &mut constants {
        let is_rate = matches!(name.rsplit('.').next(), Some("flops" | "bandwidth"));
        let number = value.as_f64().expect("a number");
        *value = if is_rate { number / 1e4 } else { number * 1e4 }.into();
    }
    let machine = shown["machine"].as_str().expect("a name");
    let measured = serde_json::json!({ "schema": 2, "measured": { machine: constants } });
    std::fs::create_dir_all(sandbox.path("cache/blocktri")).expect("a folder in the sandbox");
    sandbox.write("cache/blocktri/machine.json", measured.to_string());
    let (driver, cache) = (stand_in(), sandbox.path("cache").display().to_string());
    sandbox.run_with(line, &[("BLOCKTRI_CUDA_DRIVER", &driver), ("XDG_CACHE_HOME", &cache), (setting, value)])
}

#[test]
fn auto_weighs_iterations_on_the_gpu_beside_the_processor() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson3d --nx 14 -o A.mtx").expect(0);
    sandbox.run("generate convection-diffusion --nx 48 -o B.mtx").expect(0);
    let run = |line: &str| on_a_slow_processor(&sandbox, line, "BLOCKTRI_EMULATOR_SEED", "1").expect(0).json();
    for (file, method) in [("A.mtx", "cg"), ("B.mtx", "bicgstab")] {
        let weighed = run(&format!("explain {file} --device auto --json"));
        let first = &weighed["candidates"][0];
        let facts = ["method", "precond", "device", "bound"].map(|field| first[field].as_str().expect("a word"));
        assert_eq!(facts, [method, "jacobi", "gpu:0", "at least"], "{weighed}");
        let why = format!("device auto: gpu:0, since {method} takes at least ");
        let told = |json: &serde_json::Value| json["notes"][0].as_str().is_some_and(|note| note.starts_with(&why));
        assert!(told(&weighed), "{weighed}");
        let gpu = run(&format!("solve {file} --device auto --explain --json"));
        assert_eq!(
            (&gpu["device"], &gpu["method"], &gpu["precond"]),
            (&first["device"], &first["method"], &first["precond"])
        );
        assert!(told(&gpu) && gpu["outcome"] == "converged", "{gpu}");
        assert!(gpu["componentwise_backward_error"].as_f64().is_some_and(|error| error < 1e-14), "{gpu}");
        let notes = gpu["notes"].as_array().expect("notes");
        assert!(notes.iter().any(|n| n.as_str().is_some_and(|n| n.contains("PTX emulator"))), "{gpu}");
    }
    let text = on_a_slow_processor(&sandbox, "solve A.mtx --device auto --explain", "BLOCKTRI_EMULATOR_SEED", "2");
    let text = text.expect(0).stdout;
    let row = text.lines().find(|line| line.trim_start().starts_with("cg + jacobi")).expect("a row of the table");
    assert!(row.contains("on GPU 0, copied in") && text.contains("cg: at least "), "{text}");
}

#[test]
fn auto_on_the_gpu_knows_no_units() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson3d --nx 14 -o A.mtx").expect(0);
    let given = sandbox.read("A.mtx");
    let (head, entries) = given.lines().partition::<Vec<_>, _>(|line| line.starts_with('%'));
    let solved = |power: i32| {
        let in_units = |entry: &&str| {
            let (place, value) = entry.rsplit_once(' ').expect("row, column and value");
            let value: f64 = value.parse().expect("a number");
            format!("{place} {:e}", value * 2f64.powi(power))
        };
        let lines: Vec<String> = entries[1..].iter().map(in_units).collect();
        sandbox.write("U.mtx", format!("{}\n{}\n{}\n", head.join("\n"), entries[0], lines.join("\n")));
        let line = "solve U.mtx --device auto --json -o x.mtx";
        let json = on_a_slow_processor(&sandbox, line, "BLOCKTRI_EMULATOR_SEED", "1").expect(0).json();
        (["device", "method", "precond", "iterations"].map(|field| json[field].clone()), sandbox.read("x.mtx"))
    };
    let as_given = solved(0);
    assert_eq!((&as_given.0[0], &as_given.0[1]), (&"gpu:0".into(), &"cg".into()));
    for power in [40, -40] {
        assert_eq!(solved(power), as_given, "in units of 2^{power}");
    }
}

#[test]
fn auto_goes_on_without_a_gpu_that_fails_it() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson3d --nx 14 -o A.mtx").expect(0);
    for (setting, value, told) in [
        ("BLOCKTRI_EMULATOR_BUDGET", "1000", "the GPU was lost while "),
        ("BLOCKTRI_EMULATOR_MEMORY", "200000", "KiB: GPU 0 has 195.3 KiB free"),
        ("BLOCKTRI_CUDA_DRIVER", "there-is-no-such-driver.so", "device auto: the processor, since no GPU: "),
    ] {
        let run = on_a_slow_processor(&sandbox, "solve A.mtx --device auto --json", setting, value).expect(0).json();
        assert_eq!((&run["device"], &run["outcome"]), (&"cpu".into(), &"converged".into()), "{run}");
        let notes = run["notes"].as_array().expect("notes");
        let with = |words: &str| notes.iter().filter(|n| n.as_str().is_some_and(|n| n.contains(words))).count();
        assert_eq!((with(told), with("device auto: the processor, since ")), (1, 1), "{told}: {run}");
    }
    for (kind, told) in
        [("poisson3d --nx 16", "and to open a GPU longer"), ("poisson2d --nx 9", "no iteration is a candidate, and")]
    {
        sandbox.run(&format!("generate {kind} -o A.mtx")).expect(0);
        let json = run(&sandbox, "explain A.mtx --device auto --json").expect(0).json();
        assert!(json["notes"][0].as_str().is_some_and(|note| note.contains(told)), "{told}: {json}");
    }
    run(&sandbox, "explain A.mtx --device gpu").expect(2);
}

#[test]
fn what_is_not_on_the_gpu_is_bad_usage() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 4 -o A.mtx").expect(0);
    for (options, wanted) in [
        (
            "",
            "the method auto (there are cg, bicgstab, gmres, fgmres, hbisa, hbisa-redblack, tridiagonal-lu, block-lu, band-lu, spike, rbt) is not on the GPU yet",
        ),
        (
            "--method cg --precond arms",
            "the preconditioner arms (there are auto, none, jacobi, block-jacobi, ssor-ai, ",
        ),
        ("--method fcg", "the method fcg (there are cg, bicgstab, gmres, "),
        ("--method gmres --basis single", "a basis in single precision is not on the GPU yet"),
        ("--method hbisa --blocks 2", "blocks couple to their neighbours only"),
    ] {
        let run = run(&sandbox, &format!("solve A.mtx --device gpu {options}")).expect(2);
        assert!(run.stderr.contains(wanted), "{options}: {}", run.stderr);
    }
    // The stand-in has one device.
    let run = run(&sandbox, "solve A.mtx --method cg --device gpu:7").expect(5);
    assert!(run.stderr.starts_with("error: no GPU 7: the driver sees "), "{}", run.stderr);
}

#[test]
fn the_processor_sweeps_the_blocks_it_is_asked_to() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 9 -o A.mtx").expect(0);
    for method in ["hbisa", "hbisa-redblack"] {
        let cpu = sandbox.run(&format!("solve A.mtx --method {method} --json")).expect(0).json();
        for (share, note) in
            [("3", "blocks of each place: gpu:0 6, cpu 3"), ("measured", "blocks of each place: gpu:0 ")]
        {
            let line = format!("solve A.mtx --method {method} --device gpu --host-blocks {share} --json");
            let gpu = run(&sandbox, &line).expect(0).json();
            let notes = gpu["notes"].as_array().expect("notes");
            assert!(notes.iter().any(|n| n.as_str().is_some_and(|n| n.contains(note))), "{line}: {notes:?}");
            let iterations = |json: &serde_json::Value| json["iterations"].as_f64().expect("a number");
            assert!((iterations(&gpu) - iterations(&cpu)).abs() <= 2.0, "{line}: {gpu} {cpu}");
            assert_eq!((&gpu["device"], &gpu["outcome"]), (&"gpu:0".into(), &"converged".into()), "{line}");
        }
    }
    let refused = run(&sandbox, "solve A.mtx --method hbisa --device gpu --host-blocks 10").expect(2);
    assert!(refused.stderr.contains("10 blocks for the last place, but there are 9"), "{}", refused.stderr);
}

#[test]
fn several_gpus_share_rows_and_blocks() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 20 -o A.mtx").expect(0);
    let run = |line: &str| run_with(&sandbox, line, "BLOCKTRI_EMULATOR_DEVICES", "3");
    for (options, note) in [
        ("--method cg", "rows of each place: gpu:0 256, gpu:2 144"),
        ("--method cg --precond none", "rows of each place: gpu:0 256, gpu:2 144"),
        ("--method hbisa", "blocks of each place: gpu:0 10, gpu:2 10"),
        ("--method hbisa-redblack --host-blocks 4", "blocks of each place: gpu:0 8, gpu:2 8, cpu 4"),
        ("--method hbisa --host-blocks measured", "blocks of each place: gpu:0 "),
    ] {
        let json = |device: &str, options: &str| {
            run(&format!("solve A.mtx {options} --device {device} --json")).expect(0).json()
        };
        let several = json("gpu:0,2", options);
        let one = json("gpu", options.split(" --host").next().expect("a method"));
        let notes = several["notes"].as_array().expect("notes");
        assert!(notes.iter().any(|n| n.as_str().is_some_and(|n| n.contains(note))), "{options}: {notes:?}");
        assert_eq!((&several["device"], &several["outcome"]), (&"gpu:0,2".into(), &"converged".into()), "{options}");
        let iterations = |json: &serde_json::Value| json["iterations"].as_f64().expect("a number");
        assert!((iterations(&several) - iterations(&one)).abs() <= 1.0, "{options}: {several} {one}");
    }
    for (options, code, wanted) in [
        ("--method cg --device gpu:0,7", 5, "no GPU 7: the driver sees 3"),
        (
            "--method bicgstab --device gpu:0,1",
            2,
            "the method bicgstab (there are cg, hbisa, hbisa-redblack) is not on several GPUs; use one",
        ),
        (
            "--method cg --precond ilu0 --device gpu:0,1",
            2,
            "the preconditioner ilu0 (there are none and jacobi) is not on several",
        ),
        ("--method rbt --device gpu:0,1", 2, "the method rbt (there are cg, hbisa"),
        ("--method band-lu --device gpu:1,0", 2, "the method band-lu (there are cg, hbisa"),
        ("--method cg --device gpu:1,1", 2, "several GPUs have different numbers"),
    ] {
        let run = run(&format!("solve A.mtx {options}")).expect(code);
        assert!(run.stderr.contains(wanted), "{options}: {}", run.stderr);
    }
}

#[test]
fn blocks_are_shared_by_two_methods_on_the_gpu_only() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 4 -o A.mtx").expect(0);
    for (options, wrong) in [
        ("--method hbisa", "--device cpu"),
        ("--method hbisa-redblack --device auto", "--device auto"),
        ("--method cg --device gpu", "--method cg"),
        ("--method hbisa-gs", "--method hbisa-gs"),
        ("", "--method auto"),
    ] {
        let run = run(&sandbox, &format!("solve A.mtx {options} --host-blocks 2")).expect(2);
        let wanted = format!("--host-blocks is for hbisa and hbisa-redblack with --device gpu, not for {wrong}");
        assert!(run.stderr.contains(&wanted), "{options}: {}", run.stderr);
    }
    run(&sandbox, "solve A.mtx --method hbisa --device gpu --host-blocks some").expect(2);
    run(&sandbox, "solve A.mtx --method hbisa --host-blocks none").expect(0);
}

/// The smallest experiment: the 9 × 9 matrix.
const REPRODUCE: &str = "reproduce hbisa --quick --only hbisa/B -o r --json";

#[test]
fn chains_elasticity_and_gmres_are_reproduced_there() {
    let sandbox = Sandbox::new();
    for (study, only, ran, claims) in [
        ("hbisa", "hbisa/rates", 1, &["plans over a grid of arrival rates"][..]),
        ("ssor-ai", "ssor-ai/elastic-602", 4, &["as many iterations on the GPU", "by blocks of nodes"]),
        ("parms", "parms/box-6x6x6", 4, &["GMRES(30) with ILU(0)", "GMRES(30) with ILUT"]),
    ] {
        let line = format!("reproduce {study} --quick --only {only} --device gpu -o {study} --json");
        let json = run(&sandbox, &line).expect(0).json();
        assert_eq!((&json["ran"], &json["failed"]), (&ran.into(), &serde_json::json!([])), "{only}: {json}");
        for words in claims {
            let mut all = json["claims"].as_array().expect("claims").iter();
            let claim = all.find(|c| c["what"].as_str().is_some_and(|what| what.contains(words)));
            assert_eq!(claim.expect("a claim of the device")["verdict"], "reproduced", "{words}: {claim:?}");
        }
        let markdown = sandbox.read(&format!("{study}/report.md"));
        assert!(!markdown.contains("refused: "), "{markdown}");
    }
}

#[test]
fn published_experiments_run_there_too() {
    let sandbox = Sandbox::new();
    // What the processor alone gave is not taken for a run with the device, nor the other way round.
    assert_eq!(sandbox.run(REPRODUCE).expect(0).json()["ran"], 1);
    let line = format!("{REPRODUCE} --device gpu");
    let first = run(&sandbox, &line).expect(0);
    assert!(first.stderr.contains("not taken over, made with other device"), "{}", first.stderr);
    let json = first.json();
    assert_eq!((&json["ran"], &json["finished"], &json["of"]), (&2.into(), &2.into(), &24.into()));
    let device = json["setting"]["device"].as_str().expect("a name");
    assert!(device.starts_with("GPU 0, ") && device.ends_with(" multiprocessors"), "{device}");

    let kept: serde_json::Value = serde_json::from_str(&sandbox.read("r/results.json")).expect("whole JSON");
    let (cpu, gpu) = (&kept["experiments"]["hbisa/B"], &kept["experiments"]["hbisa/B/gpu"]);
    for (there, here) in [("hbisa", "hbisa"), ("redblack", "redblack"), ("split", "hbisa")] {
        let count = |json: &serde_json::Value| json["iterations"].as_i64().expect("a number");
        assert_eq!(gpu[there]["outcome"], "converged", "{there}: {gpu}");
        assert!((count(&gpu[there]) - count(&cpu[here])).abs() <= 1, "{there}: {gpu} {cpu}");
        for time in ["seconds", "copies_seconds", "setup_seconds"] {
            assert!(gpu[there][time].is_number(), "{there}: {gpu}");
        }
    }
    let claim = json["claims"].as_array().expect("claims").iter().find(|c| {
        c["what"].as_str().is_some_and(|what| what.contains("as many iterations on the GPU as on the processor"))
    });
    let claim = claim.expect("a claim of the device");
    assert_eq!((&claim["verdict"], &claim["ours"]), (&"reproduced".into(), &"3 of 3".into()));
    let markdown = sandbox.read("r/report.md");
    assert!(
        markdown.contains(&format!("Computed on {device}")) && markdown.contains("| B | red–black | "),
        "{markdown}"
    );

    assert_eq!(run(&sandbox, &line).expect(0).json()["ran"], 0);
    let back = sandbox.run(REPRODUCE).expect(0);
    assert!(back.stderr.contains("made with other device") && back.json()["ran"] == 1, "{}", back.stderr);
}

#[test]
fn what_the_device_refuses_is_a_row_and_what_it_loses_is_not_kept() {
    let sandbox = Sandbox::new();
    let line = "reproduce hbisa --quick --only hbisa/B/gpu -o r --json --device gpu";
    let refused = run_with(&sandbox, line, "BLOCKTRI_EMULATOR_MEMORY", "64").expect(0).json();
    assert_eq!((&refused["ran"], &refused["failed"]), (&1.into(), &serde_json::Value::Array(Vec::new())));
    let markdown = sandbox.read("r/report.md");
    assert!(markdown.contains("refused: ") && markdown.contains(" bytes are needed on the GPU, "), "{markdown}");

    let lost = run_with(&sandbox, &format!("{line} --fresh"), "BLOCKTRI_EMULATOR_BUDGET", "1000").expect(3);
    assert!(lost.stderr.contains("hbisa/B/gpu: the GPU was lost while "), "{}", lost.stderr);
    assert_eq!(lost.json()["failed"], serde_json::json!(["hbisa/B/gpu"]));

    // The stand-in has one device.
    let none = run(&sandbox, "reproduce hbisa --quick --only hbisa/B -o other --device gpu:7").expect(5);
    assert!(none.stderr.starts_with("error: no GPU 7: the driver sees "), "{}", none.stderr);
    assert_eq!(sandbox.names(), ["r"]);
    run(&sandbox, "reproduce hbisa --device auto").expect(2);
}

#[test]
fn faults_of_the_device_end_with_five_and_write_nothing() {
    let sandbox = Sandbox::new();
    sandbox.run("generate poisson2d --nx 9 -o A.mtx").expect(0);
    sandbox.write("T.mtx", common::SMALL);
    let few = |precond: &str| format!("A.mtx --method cg --precond {precond}");
    let basis = "A.mtx --method fgmres --precond ilu0 --restart 81".to_owned();
    let memory = "bytes are needed on the GPU, ";
    let lost = "the GPU was lost while ";
    let mut cases = vec![
        // Enough for A, not for its factors.
        ("BLOCKTRI_EMULATOR_MEMORY", "12288", few("ilu0"), memory),
        ("BLOCKTRI_EMULATOR_MEMORY", "64", few("none"), memory),
        ("BLOCKTRI_EMULATOR_BUDGET", "1000", few("none"), lost),
        // Enough for A and its factors, not for the basis.
        ("BLOCKTRI_EMULATOR_MEMORY", "80000", basis, memory),
    ];
    for method in [
        "A.mtx --method rbt",
        "A.mtx --method gmres --precond arms-rbt",
        "A.mtx --method block-lu",
        "A.mtx --method band-lu",
        "A.mtx --method spike",
        "T.mtx --method tridiagonal-lu",
    ] {
        cases.push(("BLOCKTRI_EMULATOR_MEMORY", "64", method.into(), memory));
        cases.push(("BLOCKTRI_EMULATOR_BUDGET", "1000", method.into(), lost));
    }
    for (setting, value, what, wanted) in cases {
        let run = run_with(&sandbox, &format!("solve {what} --device gpu -o x.mtx"), setting, value).expect(5);
        let said = run.stderr.contains(wanted) && run.stderr.contains("help: use --device cpu");
        assert!(said, "{setting}, {what}: {}", run.stderr);
        assert_eq!(sandbox.names(), ["A.mtx", "T.mtx"]);
    }
}
