//! `info`, `generate`, `completions` and `man` from the outside.

mod common;

use common::{SMALL, Sandbox, shared};

#[test]
fn info_of_a_small_matrix() {
    let sandbox = Sandbox::new();
    sandbox.write("A.mtx", SMALL);
    let json = sandbox.run("info A.mtx --json").expect(0).json();
    assert_eq!((&json["schema"], &json["n"], &json["nnz"]), (&1.into(), &4.into(), &10.into()));
    assert_eq!((&json["bandwidth"]["kl"], &json["bandwidth"]["ku"]), (&1.into(), &1.into()));
    assert_eq!(json["symmetry"], "symmetric");
    assert_eq!(json["definiteness"]["guess"], "positive definite");
    assert_eq!(json["blocks_finest"]["sizes"], serde_json::json!([1, 1, 1, 1]));
    assert_eq!(json["auto"]["method"], "thomas");
    // Blocks of one: a band of width zero.
    assert_eq!((&json["hybrid"]["diagonal"], json["hybrid"]["couplings"].is_string()), (&"band".into(), true));
    assert_eq!(json["bytes"]["dense"], 128);
    let text = sandbox.run("info A.mtx").expect(0).stdout;
    for word in ["symmetric", "positive definite", "bandwidths", "after RCM", "blocks", "bytes", "auto"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn info_of_shapes_without_a_system() {
    let sandbox = Sandbox::new();
    let header = "%%MatrixMarket matrix coordinate real general\n";
    sandbox.write("wide.mtx", format!("{header}2 3 1\n1 3 1\n"));
    sandbox.write("none.mtx", format!("{header}0 0 0\n"));
    sandbox.write("zero.mtx", format!("{header}3 3 0\n"));
    for name in ["wide", "none", "zero"] {
        sandbox.run(&format!("info {name}.mtx --json --spy {name}.svg")).expect(0).json();
        assert!(sandbox.read(&format!("{name}.svg")).ends_with("</svg>\n"));
    }
}

#[test]
fn spy_plots_in_both_formats() {
    let sandbox = Sandbox::new();
    sandbox.run("generate block-random --n 30 --blocks 6 -o A.mtx").expect(0);
    sandbox.run("generate poisson2d --nx 40 -o B.mtx").expect(0);
    for name in ["A", "B"] {
        sandbox.run(&format!("info {name}.mtx --spy {name}.svg")).expect(0);
        sandbox.run(&format!("info {name}.mtx --spy {name}.png")).expect(0);
        let svg = sandbox.read(&format!("{name}.svg"));
        assert!(svg.contains(&format!("{name}.mtx")) && svg.contains("column (from 0)"));
        assert_eq!(&std::fs::read(sandbox.path(&format!("{name}.png"))).unwrap()[1..4], b"PNG");
    }
    assert!(sandbox.read("B.svg").contains("entries in"));
    let run = sandbox.run("info A.mtx --spy A.gif").expect(2);
    assert!(run.stderr.contains(".svg or .png"), "{}", run.stderr);
}

#[test]
fn every_kind_is_written_and_read_back() {
    let sandbox = Sandbox::new();
    sandbox.write("blocks.txt", "2\n3\n1\n");
    for (line, n, nnz) in [
        ("cloud --case Cloud16-100", 1600, None),
        ("cloud --case Cloud16-100 --variant m", 1600, Some(7231)),
        ("edf", 16_384, Some(110_592)),
        ("cloud --block-size 8 --levels 20 --seed 3", 160, None),
        ("queue --resources 3 --threshold 2 --lambda 1.5", 15, None),
        ("queue --resources 3 --threshold 2 --lambda 1.5 --order tasks --form literal", 15, None),
        ("tridiagonal --n 7", 7, Some(19)),
        ("tridiagonal --n 7 --seed 5 --dominance 1", 7, Some(19)),
        ("tridiagonal --n 1", 1, Some(1)),
        ("band-random --n 6 --kl 2 --ku 1", 6, Some(20)),
        ("band-random --n 3 --kl 9 --ku 9", 3, Some(9)),
        ("block-random --n 7 --blocks 3 --seed 2", 7, Some(43)),
        ("block-random --blocks blocks.txt", 6, Some(32)),
        ("poisson2d --nx 4 --ny 3", 12, Some(12 + 2 * (3 * 3 + 4 * 2))),
        ("poisson3d --nx 2", 8, Some(8 + 24)),
        ("poisson-disk --n 60", 60, None),
        ("elasticity-disk --n 60", 60, None),
        ("elasticity-disk --n 60 --plane stress --nu -0.25", 60, None),
        ("convection-diffusion --nx 3 --peclet 4 --angle 30", 9, Some(9 + 24)),
    ] {
        let made = sandbox.run(&format!("generate {line} -o A.mtx --json")).expect(0).json();
        let read = sandbox.run("info A.mtx --json").expect(0).json();
        assert_eq!((&made["n"], &read["n"]), (&n.into(), &n.into()), "{line}");
        assert_eq!(made["nnz"], read["nnz"], "{line}");
        if let Some(nnz) = nnz {
            assert_eq!(made["nnz"], nnz, "{line}");
        }
        // The comment repeats the command, so that the file can be made again.
        let text = sandbox.read("A.mtx");
        let comment = text.lines().nth(1).unwrap();
        let again = comment.split_once(" generate ").unwrap().1;
        sandbox.run(&format!("generate {again} -o B.mtx")).expect(0);
        assert_eq!(text, sandbox.read("B.mtx"), "{line}");
    }
}

#[test]
fn seeds_differ_and_gzip_packs() {
    let sandbox = Sandbox::new();
    let line = "generate band-random --n 50 --kl 3 --ku 3";
    sandbox.run(&format!("{line} --seed 1 -o A.mtx")).expect(0);
    sandbox.run(&format!("{line} --seed 2 -o B.mtx")).expect(0);
    sandbox.run(&format!("{line} --seed 1 -o A.mtx.gz")).expect(0);
    assert_ne!(sandbox.read("A.mtx"), sandbox.read("B.mtx"));
    assert_eq!(std::fs::read(sandbox.path("A.mtx.gz")).unwrap()[..2], [0x1f, 0x8b]);
    let [plain, packed] = ["A.mtx", "A.mtx.gz"].map(|f| sandbox.run(&format!("solve {f} --json")).expect(0).json());
    assert_eq!(plain["backward_error"], packed["backward_error"]);
}

#[test]
fn completions_name_the_options() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = sandbox.run(&format!("completions {shell}")).expect(0).stdout;
        assert!(script.contains("max-iters") && script.contains("convection-diffusion"), "{shell}");
    }
}

#[test]
fn man_pages_come_from_the_same_definitions() {
    let sandbox = Sandbox::new();
    let page = sandbox.run("man").expect(0).stdout;
    assert!(page.contains(".TH blocktri 1") && page.contains("Exit codes"), "{page}");
    sandbox.run("man --dir man1").expect(0);
    let page = sandbox.read("man1/blocktri-solve.1");
    assert!(page.contains("block\\-lu") && page.contains("refine"), "{page}");
    sandbox.run("man --dir man1/blocktri.1").expect(2);
}

/// Each partition that the collection was made with is found, or one with blocks no larger.
#[test]
fn the_block_collection_is_recognised() {
    let Some(folder) = shared("block") else { return };
    let sandbox = Sandbox::new();
    for row in csv::Reader::from_path(folder.join("index.csv")).unwrap().records() {
        let name = row.unwrap()[0].trim_end_matches(".mtx").to_owned();
        let sizes: Vec<u64> = std::fs::read_to_string(folder.join(format!("{name}.blocks")))
            .unwrap()
            .lines()
            .map(|line| line.trim().parse().unwrap())
            .collect();
        let file = folder.join(format!("{name}.mtx"));
        let json = sandbox.run(&format!("info {} --json", file.display())).expect(0).json();
        let finest = json["blocks_finest"]["count"].as_u64().unwrap();
        assert!(finest >= sizes.len() as u64, "{name}: {finest} blocks, made with {}", sizes.len());
        let largest = sizes.iter().max().copied();
        println!("{name}: made with {} blocks of at most {largest:?}, found {}", sizes.len(), json["blocks"]);
    }
}
