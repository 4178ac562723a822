//! The suites of `bt-parallel` over MPI: `mpirun -n 4` on this program, as `cargo xtask mpi` does; by itself it is one rank.
//!
//! What the methods give, to the last bit, and what they send has to be what as many threads give and send.

use bt_mpi::MpiComm;
use bt_parallel::{Comm, Error, Result, suite, thread_comm};

fn main() {
    // Who asks what there is, as nextest does, is told of one test.
    let asked = |word: &str| std::env::args().any(|given| given == word);
    if asked("--list") {
        if !asked("--ignored") {
            println!("suite: test");
        }
        return;
    }
    let comm = MpiComm::start().unwrap_or_else(|error| panic!("{error}"));
    // A rank that panics ends the others, which would wait for it.
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| all(&comm)));
    match done {
        Ok(Ok(n)) if comm.rank() == 0 => println!("test result: ok. {n} passed; 0 failed; on {} ranks", comm.size()),
        Ok(Ok(_)) => {}
        Ok(Err(error)) => {
            eprintln!("error: {error}");
            comm.abort(1);
        }
        Err(_) => comm.abort(101),
    }
}

/// Everything; how many checks that were.
fn all(comm: &MpiComm) -> Result<usize> {
    let (rank, p) = (comm.rank(), comm.size());
    suite::contract(comm)?;
    suite::count(comm)?;
    let of_threads = thread_comm::run(p, suite::contract).swap_remove(rank)?;
    assert_eq!(suite::contract(comm)?, of_threads, "sums of rank {rank}");
    let (own, threads) = (suite::methods(comm)?, thread_comm::run(p, suite::methods).swap_remove(rank)?);
    assert_eq!(own.len(), threads.len());
    for (own, expected) in own.iter().zip(&threads) {
        assert!(own.bytes == expected.bytes, "rank {rank}: {} has other bits than among threads", own.name);
        assert_eq!(own, expected, "rank {rank}");
    }
    // And the same again in the next run: bits, iterations, messages.
    assert!(suite::methods(comm)? == own, "rank {rank}: two runs differ");
    let mut checks = 4 + own.len();
    // An error is final: each on a communicator of its own.
    for which in (0..suite::N_MISTAKES).filter(|_| p > 1) {
        let other = comm.split(0, 0)?;
        let found = suite::mistake(&other, which);
        assert!(matches!(found, Err(Error::OutOfStep { .. })), "rank {rank}, mistake {which}: {found:?}");
        assert_eq!(other.barrier(), Err(found.unwrap_err()), "rank {rank}, mistake {which}");
        comm.barrier()?;
        checks += 1;
    }
    Ok(checks)
}
