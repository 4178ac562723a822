//! Communicators: what arrives, what is counted, and that nobody waits for a rank that is gone.

use std::time::{Duration, Instant};

use bt_parallel::suite::{self, contract, methods};
use bt_parallel::{Comm, Error, Patience, Result, SelfComm, Tag, ThreadComm, Traffic, thread_comm};

const RANKS: [usize; 6] = [1, 2, 3, 4, 6, 7];

fn run<V: Send>(p: usize, work: impl Fn(&ThreadComm) -> Result<V> + Sync) -> Vec<Result<V>> {
    thread_comm::run_with(p, Patience::Limited(Duration::from_secs(20)), work)
}

#[test]
fn every_communicator_keeps_the_contract() {
    contract(&SelfComm).unwrap();
    for p in RANKS {
        for result in run(p, contract) {
            assert!(result.is_ok(), "{result:?}");
        }
    }
}

#[test]
fn messages_of_different_tags_may_be_received_in_any_order() {
    let heard = run(2, |comm| {
        let other = 1 - comm.rank();
        let none: &mut [(usize, &mut [u32])] = &mut [];
        comm.exchange(Tag(1), &[(other, &[1u32][..])], none, || {})?;
        comm.exchange(Tag(2), &[(other, &[2u32][..])], none, || {})?;
        let (mut first, mut second) = ([0u32], [0u32]);
        comm.exchange(Tag(2), &[], &mut [(other, &mut second[..])], || {})?;
        comm.exchange(Tag(1), &[], &mut [(other, &mut first[..])], || {})?;
        Ok((first, second))
    });
    assert_eq!(heard, [Ok(([1], [2])), Ok(([1], [2]))]);
}

#[test]
fn the_count_is_exact() {
    suite::count(&SelfComm).unwrap();
    for p in RANKS {
        for result in run(p, suite::count) {
            assert!(result.is_ok(), "{result:?}");
        }
    }
    // Nothing travels where there is nobody else.
    let alone = run(1, |comm| contract(comm).map(|_| comm.traffic()));
    assert_eq!(alone, [Ok(Traffic::default())]);
}

#[test]
fn methods_have_the_same_bits_in_every_run() {
    let alone = methods(&SelfComm).unwrap();
    for p in [1, 4] {
        let (first, second) = (run(p, methods), run(p, methods));
        assert_eq!(first, second);
        for own in first {
            let own = own.unwrap();
            assert_eq!(own.len(), alone.len());
            assert!(p > 1 || own == alone);
        }
    }
}

#[test]
fn a_rank_that_fails_ends_all_others() {
    let start = Instant::now();
    for p in [2, 3, 7] {
        let results = thread_comm::run(p, |comm| {
            if comm.rank() == 1 {
                return Err(Error::OutOfStep { rank: 1, message: "it gives up".into() });
            }
            // Rank 0 waits for rank 1, the others for rank 0.
            comm.all_sum(&mut [1.0])
        });
        for (rank, result) in results.into_iter().enumerate() {
            match (rank, result) {
                (1, Err(Error::OutOfStep { .. })) => {}
                (_, Err(Error::Lost { rank: 1, message })) => assert!(message.contains("it gives up"), "{message}"),
                (_, other) => panic!("rank {rank} of {p}: {other:?}"),
            }
        }
    }
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_panic_is_an_error_of_all() {
    let results = thread_comm::run(3, |comm| {
        assert!(comm.rank() != 2, "a broken contract");
        comm.barrier()
    });
    for result in results {
        assert!(
            matches!(&result, Err(Error::Lost { rank: 2, message }) if message == "a broken contract"),
            "{result:?}"
        );
    }
}

#[test]
fn nobody_waits_for_a_rank_that_has_returned() {
    let results = thread_comm::run(3, |comm| {
        if comm.rank() == 0 { Ok(()) } else { comm.exchange(Tag(0), &[], &mut [(0, &mut [0.0][..])], || {}) }
    });
    assert_eq!(results[0], Ok(()));
    assert!(results[1..].iter().all(|r| matches!(r, Err(Error::Lost { .. }))), "{results:?}");
}

#[test]
fn calls_that_do_not_match_are_found() {
    for p in [2, 3] {
        for which in 0..suite::N_MISTAKES {
            let results = run(p, |comm| suite::mistake(comm, which));
            assert!(results.iter().any(|r| matches!(r, Err(Error::OutOfStep { .. }))), "{which}: {results:?}");
            assert!(results.iter().all(Result::is_err), "{which}: {results:?}");
        }
    }
}

#[test]
fn patience_ends() {
    let results = thread_comm::run_with(2, Patience::Limited(Duration::from_millis(50)), |comm| {
        let other = 1 - comm.rank();
        comm.exchange(Tag(0), &[], &mut [(other, &mut [0.0][..])], || {})
    });
    assert!(results.iter().any(|r| matches!(r, Err(Error::TimedOut { milliseconds: 50, .. }))), "{results:?}");
    assert!(results.iter().all(Result::is_err));
}
