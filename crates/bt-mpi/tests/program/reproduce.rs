//! `reproduce`: experiments over processes beside those over threads.

use std::fs;

use serde_json::Value;

use crate::common::{error, json, path, write};

/// Processes send and iterate as threads do; runs on other numbers of ranks add to the file, and no other file is touched.
#[test]
fn experiments_over_processes_are_those_over_threads() {
    use bt_reproduce::{Scale, Study, experiments, processor};
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder, "ranks.json");
    let ids = ["parms/edf-x1/1-ranks/block-jacobi/ilu0", "parms/box-32x32x32/2-ranks/block-jacobi/ilu0"];
    let run = |ranks, id: &str| json(ranks, 0, &["reproduce", "parms", "--quick", "--only", id, "-o", &file]);
    for (id, ranks) in ids.into_iter().zip([1, 2]) {
        assert_eq!((run(ranks, id)["ran"].as_u64(), run(ranks, id)["ran"].as_u64()), (Some(1), Some(0)));
    }
    let kept: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    for id in ids {
        let of_processes = &kept["experiments"][id];
        assert_eq!((&of_processes["transport"], &of_processes["processor"]), (&"mpi".into(), &processor().into()));
        let all = experiments(Study::Parms, Scale::Quick, None);
        let over_threads = all.iter().find(|e| e.id() == id).unwrap();
        let of_threads = over_threads.run(&bt_formats::CancelToken::new()).unwrap();
        for count in ["messages", "bytes", "collectives", "cut", "n", "ranks"] {
            assert_eq!(of_processes[count], of_threads[count], "{id}: {count}");
        }
        for number in ["iterations", "relative_residual", "outcome"] {
            assert_eq!(of_processes["solve"][number], of_threads["solve"][number], "{id}: {number}");
        }
    }
    let told = error(3, 2, &["reproduce", "parms", "--quick", "-o", &file]);
    assert!(told.contains("for 1, 2, 4 ranks, not for 3"), "{told}");
    let other = write(&folder, "other.json", "{}");
    let told = error(1, 2, &["reproduce", "parms", "--quick", "--only", ids[0], "-o", &other]);
    assert!(told.contains("other.json: its schema is missing, not 2; name another file, or remove it"), "{told}");
    assert_eq!(fs::read_to_string(&other).unwrap(), "{}");
    let told = error(1, 2, &["reproduce", "parms", "--only", "parms/edf-x16/1-ranks/ras", "-o", &file]);
    assert!(told.contains("ranks.json: its scale is \"quick\", not \"full\"; name another file"), "{told}");
}
