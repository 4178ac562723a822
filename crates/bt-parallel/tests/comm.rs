//! Communicators: what arrives, what is counted, and that nobody waits for a rank that is gone.

use std::time::{Duration, Instant};

use bt_parallel::{Comm, Error, Parts, Patience, Result, SelfComm, Tag, ThreadComm, Traffic, thread_comm};

const RANKS: [usize; 6] = [1, 2, 3, 4, 6, 7];

fn run<V: Send>(p: usize, work: impl Fn(&ThreadComm) -> Result<V> + Sync) -> Vec<Result<V>> {
    thread_comm::run_with(p, Patience::Limited(Duration::from_secs(20)), work)
}

/// What every communicator has to do; the sums of all ranks are returned.
fn contract(comm: &impl Comm) -> Result<Vec<u64>> {
    let (rank, p) = (comm.rank(), comm.size());
    // Sums are taken in the order of the ranks: 1 is lost beside 2⁵³ only if it is added first.
    let mut sum = [if rank == 0 { 2f64.powi(53) } else { 1.0 }, rank as f64];
    comm.all_sum(&mut sum)?;
    let mut expected = 2f64.powi(53);
    (1..p).for_each(|_| expected += 1.0);
    assert_eq!(sum, [expected, (p * (p - 1) / 2) as f64]);
    let mut max = [rank as f64, if rank == p / 2 { f64::NAN } else { 1.0 }];
    comm.all_max(&mut max)?;
    assert!(max[0] == (p - 1) as f64 && max[1].is_nan());

    let all = comm.all_gather(&vec![rank as u32; rank])?;
    assert!((0..p).all(|r| all.part(r) == vec![r as u32; r]));
    let at = comm.gather(p - 1, &[rank as u64])?;
    assert_eq!(at.map(|parts| parts.values().to_vec()), (rank == p - 1).then(|| (0..p as u64).collect()));
    let mut text = if rank == p / 2 { b"pivot".to_vec() } else { Vec::new() };
    comm.broadcast(p / 2, &mut text)?;
    assert_eq!(text, b"pivot");
    comm.barrier()?;

    // r copies of 10·r + j to rank j.
    let send = Parts::new((0..p).map(|j| vec![(10 * rank + j) as f64; rank]));
    let received = comm.all_to_all(&send)?;
    assert!((0..p).all(|r| received.part(r) == vec![(10 * r + rank) as f64; r]));

    // To the next and to the one before, and the same with the tags the other way round.
    let (next, before) = ((rank + 1) % p, (rank + p - 1) % p);
    let (mut a, mut b) = ([0u32], [0u32; 2]);
    let worked = comm.exchange(Tag(1), &[(next, &[rank as u32][..])], &mut [(before, &mut a[..])], || 7)?;
    comm.exchange(Tag(2), &[(before, &[rank as u32, 1][..])], &mut [(next, &mut b[..])], || {})?;
    assert_eq!((a, b, worked), ([before as u32], [next as u32, 1], 7));

    // Even and odd ranks by themselves, backwards.
    let half = comm.split((rank % 2) as u32, (p - rank) as u32)?;
    let members = half.all_gather(&[rank as u32])?;
    let mut wanted: Vec<u32> = (0..p as u32).filter(|r| *r as usize % 2 == rank % 2).collect();
    wanted.reverse();
    assert_eq!(members.values(), wanted);
    let mut sum = [1.0f32];
    half.all_sum(&mut sum)?;
    assert_eq!(sum[0] as usize, wanted.len());
    Ok(sum.map(|s| s.to_bits().into()).into_iter().chain([expected.to_bits()]).collect())
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
    let p = 4;
    let traffic = run(p, |comm| {
        let rank = comm.rank();
        comm.exchange(
            Tag(0),
            &[((rank + 1) % p, &[1.0f64; 3][..]), (rank, &[1.0f64][..])],
            &mut [((rank + p - 1) % p, &mut [0.0; 3][..]), (rank, &mut [0.0][..])],
            || {},
        )?;
        comm.all_sum(&mut [1.0f32, 2.0])?;
        comm.all_to_all_into(&Parts::new(vec![[1u32, 2]; p]), &mut Parts::zeros(vec![2; p]))?;
        comm.broadcast(1, &mut vec![1u8; 10])?;
        Ok(comm.traffic())
    });
    for (rank, traffic) in traffic.into_iter().enumerate() {
        let collective_bytes = 8 + 3 * 8 + if rank == 1 { 10 } else { 0 };
        assert_eq!(traffic, Ok(Traffic { messages: 1, bytes: 24, collectives: 3, collective_bytes }));
    }
    // Nothing travels where there is nobody else.
    let alone = run(1, |comm| contract(comm).map(|_| comm.traffic()));
    assert_eq!(alone, [Ok(Traffic::default())]);
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
    let results = thread_comm::run(2, |comm| if comm.rank() == 0 { comm.barrier() } else { comm.all_sum(&mut [1.0]) });
    assert!(results.iter().any(|r| matches!(r, Err(Error::OutOfStep { .. }))), "{results:?}");
    assert!(results.iter().all(Result::is_err));
    let lengths = thread_comm::run(2, |comm| comm.all_sum(&mut vec![1.0; 1 + comm.rank()]));
    assert!(lengths.iter().all(Result::is_err), "{lengths:?}");
    let types = thread_comm::run(2, |comm| {
        let other = 1 - comm.rank();
        if comm.rank() == 0 {
            comm.exchange(Tag(0), &[(other, &[1.0f32][..])], &mut [(other, &mut [0.0f32][..])], || {})
        } else {
            comm.exchange(Tag(0), &[(other, &[1.0f64][..])], &mut [(other, &mut [0.0f64][..])], || {})
        }
    });
    assert!(types.iter().all(Result::is_err), "{types:?}");
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
