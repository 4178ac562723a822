//! Stationary distributions over ranks.

use std::fs;
use std::path::Path;

use crate::common::{RANKS, error, json, matrix, names, path, run, write};

/// A queue with room for n − 1: arrivals at rate 1, departures at rate 2; πᵢ = 2⁻ⁱ/(2 − 2¹⁻ⁿ).
fn queue(n: usize) -> Vec<(usize, usize, f64)> {
    let mut entries = Vec::new();
    for i in 0..n {
        let up = if i + 1 < n { 1.0 } else { 0.0 };
        let down = if i > 0 { 2.0 } else { 0.0 };
        entries.push((i, i, -up - down));
        if i + 1 < n {
            entries.push((i, i + 1, up));
        }
        if i > 0 {
            entries.push((i, i - 1, down));
        }
    }
    entries
}

#[test]
fn stationary_distributions_are_written_by_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let n = 1200;
    let q = write(&folder, "q.mtx", &matrix(n, &queue(n)));
    let (pi, table) = (path(&folder, "pi.mtx"), path(&folder, "pi.csv"));
    for ranks in RANKS {
        let found = json(ranks, 0, &["stationary", &q, "-o", &pi]);
        let told = format!("{ranks} ranks: {found}");
        assert_eq!(
            (found["outcome"].as_str(), found["certified"].as_bool()),
            (Some("converged"), Some(true)),
            "{told}"
        );
        assert_eq!((found["n"].as_u64(), found["recurrent"].as_u64()), (Some(1200), Some(1200)), "{told}");
        assert!(found["balance"].as_f64().unwrap() < 1e-14 && found["error_bound"].as_f64().unwrap() < 1e-10, "{told}");
        // 2⁻¹²⁰⁰, far below what doubles hold.
        assert!((found["log10_min"].as_f64().unwrap() + 1200.0 * 2f64.log10()).abs() < 1e-9, "{told}");
        assert_eq!(found["mode"]["state"].as_u64(), Some(0), "{told}");
        let x = bt_formats::matrix_market::read_dense::<f64>(&pi).unwrap();
        assert_eq!((x.nrows(), x.ncols()), (n, 1));
        assert!((0..1000).all(|i| (x[(i, 0)] * 2f64.powi(i as i32 + 1) - 1.0).abs() < 1e-12));
        assert_eq!(x[(n - 1, 0)], 0.0);
        json(ranks, 0, &["stationary", &q, "-o", &table]);
        let text = fs::read_to_string(&table).unwrap();
        assert_eq!((text.lines().next(), text.lines().count()), (Some("state,probability,log10"), n + 1));
        for (i, line) in text.lines().skip(1).enumerate() {
            let (front, log10) = line.rsplit_once(',').unwrap();
            assert_eq!(front, format!("{i},{:e}", x[(i, 0)]), "{ranks} ranks");
            // 2⁻ⁱ⁻¹, but for what is beyond the last state.
            let log10: f64 = log10.parse().unwrap();
            assert!((log10 + (i + 1) as f64 * 2f64.log10()).abs() < 1e-9, "{ranks} ranks: {line}");
        }
        fs::remove_file(&pi).unwrap();
        fs::remove_file(&table).unwrap();
    }
    // More reach than a rank has rows: the file is dealt out to fewer.
    let far = matrix(8, &(0..8).flat_map(|i| [(i, (i + 3) % 8, 1.0), (i, (i + 5) % 8, 1.0)]).collect::<Vec<_>>());
    let far = write(&folder, "far.mtx", &far);
    let found = json(4, 0, &["stationary", &far, "--diagonal", "missing"]);
    assert!((found["mode"]["probability"].as_f64().unwrap() - 0.125).abs() < 1e-15, "{found}");
    // Counts of transitions: from 0 to 1 one time in four, back every time.
    let counts = write(&folder, "counts.mtx", &matrix(2, &[(0, 0, 3.0), (0, 1, 1.0), (1, 0, 5.0)]));
    let found = json(2, 0, &["stationary", &counts, "--transitions", "--normalize"]);
    assert!((found["mode"]["probability"].as_f64().unwrap() - 0.8).abs() < 1e-15, "{found}");
    let text = String::from_utf8(run(2, &["stationary", &q]).stdout).unwrap();
    assert!(text.contains("1200 states, all recurrent") && text.contains("every probability to a relative"), "{text}");
    assert_eq!(names(&folder), ["counts.mtx", "far.mtx", "q.mtx"]);
}

/// One entry of the diagonal, on one rank, is enough for all of them; without any the entries are rates.
#[test]
fn the_diagonal_is_looked_for_by_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let n = 9;
    let keeping = |name: &str, kept: &dyn Fn(usize) -> Option<f64>| {
        let on_diagonal = |e: (usize, usize, f64)| if e.0 == e.1 { kept(e.0).map(|v| (e.0, e.1, v)) } else { Some(e) };
        write(&folder, name, &matrix(n, &queue(n).into_iter().filter_map(on_diagonal).collect::<Vec<_>>()))
    };
    let generator = write(&folder, "q.mtx", &matrix(n, &queue(n)));
    let rates = keeping("rates.mtx", &|_| None);
    let zeros = keeping("zeros.mtx", &|_| Some(0.0));
    let last = keeping("last.mtx", &|i| (i + 1 == n).then_some(-2.0));
    for ranks in [1, 3] {
        let notes = |file: &str, options: &[&str]| {
            let found = json(ranks, 0, &[&["stationary", file, "--diagonal", "auto"], options].concat());
            let expected = 0.5 / (1.0 - 0.5f64.powi(n as i32));
            assert!((found["mode"]["probability"].as_f64().unwrap() - expected).abs() < 1e-15, "{found}");
            found["notes"].clone()
        };
        let made = "the diagonal was made from the rates";
        assert_eq!(notes(&generator, &[]), serde_json::json!([]));
        assert_eq!(notes(&generator, &["--normalize"]), serde_json::json!([format!("--normalize: {made}")]));
        for file in [&rates, &zeros] {
            assert_eq!(notes(file, &[]), serde_json::json!([format!("{made}; none was read")]));
        }
        let told = error(ranks, 2, &["stationary", &last, "--diagonal", "auto"]);
        assert!(told.contains("row 0 (from 0) sums to 1, not to zero"), "{told}");
        // It is not looked for unasked.
        error(ranks, 2, &["stationary", &rates]);
    }
}

#[test]
fn chains_without_a_stationary_distribution() {
    let folder = tempfile::tempdir().unwrap();
    let pi = path(&folder, "pi.mtx");
    let file = |name: &str, n: usize, entries: &[(usize, usize, f64)]| write(&folder, name, &matrix(n, entries));
    // State 0 and state 5 are absorbing.
    let mut traps = queue(6);
    traps.retain(|e| e.0 != 0 && e.0 != 5);
    let traps = file("traps.mtx", 6, &traps);
    // State 0 alone is absorbing, and the last state is transient.
    let mut trap = queue(6);
    trap.retain(|e| e.0 != 0);
    let trap = file("trap.mtx", 6, &trap);
    let mut negative = queue(6);
    negative.iter_mut().filter(|e| e.0 + 1 == e.1 && e.0 == 3).for_each(|e| e.2 = -1.0);
    let negative = file("negative.mtx", 6, &negative);
    let no_generator = file("p.mtx", 2, &[(0, 1, 1.0), (1, 0, 1.0)]);
    let wide = write(&folder, "wide.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1.0\n");
    let complex = write(&folder, "c.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1.0 0.0\n");
    for ranks in [1, 3] {
        let told = error(ranks, 4, &["stationary", &traps, "-o", &pi]);
        assert!(told.contains("2 closed classes (that of state 0, that of state 5;"), "{told}");
        let found = json(ranks, 4, &["stationary", &traps]);
        assert_eq!(found["exit_code"], 4, "{found}");
        assert!(found["help"].as_str().unwrap().contains("restrict the generator to one class"), "{found}");
        let found = json(ranks, 0, &["stationary", &trap]);
        assert_eq!(
            (found["recurrent"].as_u64(), found["mode"]["probability"].as_f64()),
            (Some(1), Some(1.0)),
            "{found}"
        );
        assert!(found["notes"][0].as_str().unwrap().contains("5 of 6 states are transient"), "{found}");
        let told = error(ranks, 2, &["stationary", &negative, "-o", &pi]);
        assert!(told.contains("the rate from state 3 to state 4 (from 0) is -1"), "{told}");
        let told = error(ranks, 2, &["stationary", &no_generator]);
        assert!(told.contains("not a generator; the rows sum to 1"), "{told}");
        let told = error(ranks, 2, &["stationary", &wide]);
        assert!(told.contains("wide.mtx: ") && told.contains("2 × 3"), "{told}");
        let told = error(ranks, 2, &["stationary", &complex]);
        assert!(told.contains("c.mtx: rates are real numbers"), "{told}");
        let told = error(ranks, 2, &["stationary", &trap, "-o", &trap]);
        assert!(told.contains("the chain and --output name the same file"), "{told}");
    }
    assert!(!Path::new(&pi).exists());
    assert_eq!(names(&folder).len(), 6);
}
