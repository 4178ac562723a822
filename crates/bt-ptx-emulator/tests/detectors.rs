//! Kernels that are wrong, each in one way, and the fault that names it; and their right twins, which run.

use bt_ptx_emulator::{Device, DeviceError, Fault, FaultKind, LaunchError, Races, Residency, Settings, Shape};

const HEAD: &str = ".version 6.3\n.target sm_70\n.address_size 64\n";
const REGISTERS: &str = ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f64 %fd<9>;";

/// A kernel with a buffer of 1 KiB as its parameter: `%rd1` is its address, `%r1` the thread's number in its block.
fn kernel(body: &str) -> String {
    format!(
        "{HEAD}.visible .entry k(.param .u64 buffer) {{ {REGISTERS}
         .shared .align 8 .b8 s[1024]; .local .align 8 .b8 l[64];
         ld.param.u64 %rd1, [buffer]; mov.u32 %r1, %tid.x;\n{body}\nret; }}"
    )
}

fn launch(body: &str, blocks: u32, threads: u32, residency: Residency, settings: Settings) -> Result<(), Fault> {
    let mut device = Device::new(settings);
    let module = device.load(&kernel(body)).unwrap_or_else(|error| panic!("{body}: {error}"));
    let buffer = device.allocate(1024).unwrap();
    device.write(buffer, &[0; 1024]).unwrap();
    let shape = Shape { grid: [blocks, 1, 1], block: [threads, 1, 1], dynamic_shared: 0, residency };
    match device.launch(device.kernel(module, "k").unwrap(), shape, &buffer.to_le_bytes()) {
        Ok(()) => Ok(()),
        Err(LaunchError::Fault(fault)) => Err(fault),
        Err(LaunchError::Refused(error)) => panic!("{body}: {error}"),
    }
}

/// Runs in several orders.
fn run(body: &str, blocks: u32, threads: u32) -> Vec<Result<(), Fault>> {
    let seeded = |seed| launch(body, blocks, threads, Residency::Ordinary, Settings { seed, ..Settings::default() });
    (0..4).map(seeded).collect()
}

/// The fault of every order, whose message names the line of the body and holds the text.
fn faults(body: &str, blocks: u32, threads: u32, kind: FaultKind, holds: &str) {
    for result in run(body, blocks, threads) {
        let fault = result.expect_err(body);
        assert_eq!(fault.kind, kind, "{body}: {fault}");
        assert!(fault.message.contains(holds) && fault.message.contains("kernel k, PTX line "), "{body}: {fault}");
    }
}

fn runs(body: &str, blocks: u32, threads: u32) {
    for result in run(body, blocks, threads) {
        assert_eq!(result, Ok(()), "{body}");
    }
}

#[test]
fn a_fault_names_its_place() {
    let body = "setp.ne.u32 %p1, %r1, 37; mov.u32 %r2, %ctaid.x; setp.ne.or.u32 %p1, %r2, 1, %p1;\n\n@!%p1 trap;";
    faults(body, 2, 64, FaultKind::Trap, "PTX line 9, block (1, 0, 0), thread (37, 0, 0): a trap");
}

#[test]
fn bounds_and_alignment() {
    use FaultKind::{IllegalAddress, Misaligned, ReadOnly};
    runs("st.global.u32 [%rd1+1020], %r1;", 1, 1);
    faults("st.global.u32 [%rd1+1024], %r1;", 1, 1, IllegalAddress, "offset 1024 of an allocation of 1024");
    faults("ld.global.u32 %r2, [%rd1+-4];", 1, 1, IllegalAddress, "offset -4");
    faults("ld.global.f64 %fd1, [%rd1+1020];", 1, 1, IllegalAddress, "a read of 8 bytes");
    faults("ld.global.u32 %r2, [%rd2];", 1, 1, IllegalAddress, "in no allocation");
    faults("mov.u64 %rd2, 0; atom.global.add.u32 %r2, [%rd2], 1;", 1, 1, IllegalAddress, "in no allocation");
    faults("ld.global.f64 %fd1, [%rd1+4];", 1, 1, Misaligned, "8 bytes");
    faults("ld.global.v2.f64 {%fd1, %fd2}, [%rd1+8];", 1, 1, Misaligned, "a vector of 16 bytes");
    runs("st.shared.u32 [s+1020], %r1;", 1, 1);
    faults("st.shared.u32 [s+1024], %r1;", 1, 1, IllegalAddress, "shared memory");
    faults("ld.shared.u32 %r2, [s+-4];", 1, 1, IllegalAddress, "shared memory");
    faults("ld.shared.u32 %r2, [s+2];", 1, 1, Misaligned, "shared memory");
    faults(
        "mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; st.u32 [%rd2+1024], 0;",
        1,
        1,
        IllegalAddress,
        "shared memory",
    );
    faults("cvta.to.shared.u64 %rd2, %rd1; ld.shared.u32 %r2, [%rd2];", 1, 1, IllegalAddress, "shared memory");
    runs("st.local.u32 [l+60], %r1;", 1, 1);
    faults("st.local.u32 [l+64], %r1;", 1, 1, IllegalAddress, "local memory");
    faults(
        "mov.u64 %rd2, l; cvta.local.u64 %rd2, %rd2; atom.add.u32 %r2, [%rd2], 1;",
        1,
        1,
        IllegalAddress,
        "own memory",
    );
    let text = format!(
        "{HEAD}.const .align 4 .u32 c = 7; .entry k() {{ {REGISTERS} mov.u64 %rd1, c; st.u32 [%rd1], 8; ret; }}"
    );
    let mut device = Device::new(Settings::default());
    let module = device.load(&text).unwrap();
    let shape = Shape { grid: [1; 3], block: [1; 3], dynamic_shared: 0, residency: Residency::Ordinary };
    let result = device.launch(device.kernel(module, "k").unwrap(), shape, &[]);
    assert!(matches!(result, Err(LaunchError::Fault(Fault { kind: ReadOnly, .. }))), "{result:?}");
}

#[test]
fn what_was_never_written_is_nan_and_far_out_of_bounds() {
    // NaN of a register, of shared and of local memory; the sum is stored and is NaN.
    for source in ["mov.f64 %fd1, %fd5", "ld.shared.f64 %fd1, [s+8]", "ld.local.f64 %fd1, [l+16]"] {
        let body = format!("{source}; setp.num.f64 %p1, %fd1, %fd1; @%p1 trap;");
        runs(&body, 1, 1);
    }
    faults(
        "mul.wide.u32 %rd2, %r5, 4; add.s64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], 0;",
        1,
        1,
        FaultKind::IllegalAddress,
        "",
    );
    faults("@%p5 bra L; L:", 1, 1, FaultKind::Undefined, "never set");
    faults("@!%p5 add.u32 %r2, %r1, 1;", 1, 1, FaultKind::Undefined, "never set");
    faults("mov.u32 %r2, 0; div.u32 %r2, %r1, %r2;", 1, 1, FaultKind::Undefined, "zero");
    faults("mov.u64 %rd2, 0; rem.s64 %rd2, %rd1, %rd2;", 1, 1, FaultKind::Undefined, "zero");
    // Every launch and block starts anew.
    runs("ld.shared.f64 %fd1, [s]; setp.num.f64 %p1, %fd1, %fd1; @%p1 trap; st.shared.u64 [s], 0;", 5, 1);
}

#[test]
fn memory_that_was_freed() {
    let mut device = Device::new(Settings { memory: 4096, ..Settings::default() });
    let module = device.load(&kernel("ld.global.u32 %r2, [%rd1];")).unwrap();
    let kernel = device.kernel(module, "k").unwrap();
    let shape = Shape { grid: [1; 3], block: [1; 3], dynamic_shared: 0, residency: Residency::Ordinary };
    let buffer = device.allocate(1024).unwrap();
    assert_eq!(device.launch(kernel, shape, &buffer.to_le_bytes()), Ok(()));
    device.free(buffer).unwrap();
    let again = device.allocate(1024).unwrap();
    let Err(LaunchError::Fault(fault)) = device.launch(kernel, shape, &buffer.to_le_bytes()) else { panic!() };
    assert!(fault.message.contains("a freed allocation of 1024 bytes"), "{fault}");
    assert_eq!(device.allocate(3073), Err(DeviceError::OutOfMemory));
    assert_eq!(device.memory_info(), (3072, 4096));
    device.reset();
    assert_eq!(device.read(again, 4), Err(DeviceError::InvalidValue));
    assert_eq!(
        device.launch(kernel, shape, &again.to_le_bytes()),
        Err(LaunchError::Refused(DeviceError::InvalidHandle))
    );
}

/// `%rd2`: address of this thread's word in s, `%rd3`: of its neighbour's, one further and around.
fn neighbours(threads: u32) -> String {
    format!(
        "mul.wide.u32 %rd2, %r1, 4; mov.u64 %rd4, s; add.s64 %rd2, %rd4, %rd2;
         add.u32 %r2, %r1, 1; rem.u32 %r2, %r2, {threads}; mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %rd4, %rd3;\n"
    )
}

#[test]
fn races_in_shared_memory() {
    for threads in [2, 32, 33, 256] {
        let exchange = |between: &str| {
            format!("{}st.shared.u32 [%rd2], %r1; {between} ld.shared.u32 %r3, [%rd3];\n", neighbours(threads))
        };
        faults(&exchange(""), 1, threads, FaultKind::Race, "without a barrier between");
        faults(&exchange("membar.cta;"), 1, threads, FaultKind::Race, "without a barrier between");
        runs(&exchange("bar.sync 0;"), 1, threads);
        // A second write needs a second barrier.
        let twice = |between: &str| format!("{}{between} st.shared.u32 [%rd2], 7;", exchange("bar.sync 0;"));
        faults(&twice(""), 1, threads, FaultKind::Race, "");
        runs(&twice("bar.sync 0;"), 1, threads);
        // Within a warp, bar.warp.sync orders; a shuffle does not.
        if threads == 32 {
            runs(&exchange("bar.warp.sync -1;"), 1, threads);
            faults(&exchange("shfl.sync.idx.b32 %r4, %r1, 0, 31, -1;"), 1, threads, FaultKind::Race, "");
        }
        if threads == 256 {
            faults(&exchange("bar.warp.sync -1;"), 1, threads, FaultKind::Race, "");
        }
    }
    faults("st.shared.u32 [s], 7;", 1, 2, FaultKind::Race, "writes shared byte 0");
    runs("ld.shared.u32 %r2, [s];", 1, 64);
    runs("atom.shared.add.u32 %r2, [s], 1;", 1, 64);
    faults("atom.shared.add.u32 %r2, [s], 1; ld.shared.u32 %r2, [s];", 1, 64, FaultKind::Race, "atomically");
    runs("atom.shared.add.u32 %r2, [s], 1; ld.volatile.shared.u32 %r2, [s];", 1, 64);
    runs("atom.shared.add.u32 %r2, [s], 1; bar.sync 0; ld.shared.u32 %r2, [s];", 1, 64);
    // Bytes side by side are not one place.
    runs("mov.u64 %rd4, s; cvt.u64.u32 %rd2, %r1; add.s64 %rd2, %rd4, %rd2; st.shared.u8 [%rd2], %r1;", 1, 64);
    // Through generic addresses as well.
    let generic = "mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; st.u32 [%rd2], %r1;";
    faults(generic, 1, 2, FaultKind::Race, "");
}

#[test]
fn barriers_that_not_all_threads_reach() {
    let kind = FaultKind::DivergentBarrier;
    faults("setp.lt.u32 %p1, %r1, 16; @%p1 bra L; bar.sync 0; L:", 1, 64, kind, "16 exited");
    faults(
        "setp.lt.u32 %p1, %r1, 16; @%p1 bra L; bar.sync 0; bra E;\nL: bar.sync 0; E:",
        1,
        64,
        kind,
        "it waits at the barrier",
    );
    faults("and.b32 %r2, %r1, 1; bar.sync %r2;", 1, 64, kind, "numbers");
    faults("bar.sync 16;", 1, 64, kind, "above 15");
    // One thread turns once more in the loop.
    let turns = |last: &str| {
        format!(
            "mov.u32 %r2, 0; setp.eq.u32 %p1, %r1, 5; selp.u32 %r3, {last}, 3, %p1;
        L: bar.sync 0; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r3; @%p1 bra L;"
        )
    };
    faults(&turns("4"), 1, 64, kind, "exited");
    runs(&turns("3"), 1, 64);
}

#[test]
fn warp_operations_that_not_all_named_lanes_reach() {
    let kind = FaultKind::DivergentWarp;
    let shuffle = "shfl.sync.down.b32 %r2, %r1, 1, 31, -1;";
    runs(shuffle, 1, 64);
    faults(shuffle, 1, 48, kind, "lane 16, which is not there");
    faults(&format!("setp.eq.u32 %p1, %r1, 40; @%p1 exit; {shuffle}"), 1, 64, kind, "");
    faults(&format!("setp.eq.u32 %p1, %r1, 40; @%p1 bra L; {shuffle} L: bar.sync 0;"), 1, 64, kind, "wait");
    faults("shfl.sync.down.b32 %r2, %r1, 1, 31, 2;", 1, 1, kind, "does not name the lane itself");
    // Half a warp each, in code of its own.
    let halves = |mask: &str| {
        format!(
            "setp.lt.u32 %p1, %r1, 16; @%p1 bra L; bar.warp.sync 0xffff0000; bra E;
        L: bar.warp.sync {mask}; E: bar.sync 0;"
        )
    };
    runs(&halves("0xffff"), 1, 32);
    faults(&halves("0x1ffff"), 1, 32, kind, "");
    faults("mov.u32 %r2, -1; setp.eq.u32 %p1, %r1, 3; @%p1 mov.u32 %r2, 0xff; bar.warp.sync %r2;", 1, 32, kind, "");
}

#[test]
fn shuffles_of_segments() {
    // (operation, b, c, lane it reads of lane 5 and of lane 15, its predicate)
    for (operation, b, c, [five, fifteen], [p, q]) in [
        ("up", 1, 0, [4, 14], [1, 1]),
        ("up", 6, 0, [5, 9], [0, 1]),
        ("up", 8, 0x1000, [5, 7], [0, 1]),
        ("up", 8, 0x1800, [5, 15], [0, 0]),
        ("down", 1, 31, [6, 16], [1, 1]),
        ("down", 1, 0x100f, [6, 15], [1, 0]),
        ("down", 27, 31, [5, 15], [0, 0]),
        ("bfly", 1, 31, [4, 14], [1, 1]),
        ("bfly", 16, 0x100f, [5, 15], [0, 0]),
        ("idx", 3, 31, [3, 3], [1, 1]),
        ("idx", 3, 0x181f, [3, 11], [1, 1]),
        ("idx", 12, 0x1807, [4, 12], [1, 1]),
        ("idx", 12, 0x1803, [5, 15], [0, 0]),
    ] {
        let check = |lane: u32, source: u32, p: u32| {
            format!(
                "setp.eq.u32 %p3, %r1, {lane}; setp.ne.and.u32 %p4, %r2, {}, %p3; @%p4 trap;
                 setp.ne.and.u32 %p4, %r3, {p}, %p3; @%p4 trap;",
                100 + source
            )
        };
        let body = format!(
            "add.u32 %r2, %r1, 100; shfl.sync.{operation}.b32 %r2|%p1, %r2, {b}, {c}, -1; selp.u32 %r3, 1, 0, %p1; {} {}",
            check(5, five, p),
            check(15, fifteen, q)
        );
        runs(&body, 1, 32);
    }
}

#[test]
fn launches_that_do_not_end() {
    let budget = Settings { budget: 100_000, ..Settings::default() };
    for body in
        ["L: add.u32 %r2, %r2, 1; bra L;", "L: shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; bra L;", "L: bar.sync 0; bra L;"]
    {
        let fault = launch(body, 1, 32, Residency::Ordinary, budget).expect_err(body);
        assert_eq!(fault.kind, FaultKind::Budget, "{body}: {fault}");
    }
    // Everyone waits for a number that nobody writes.
    let wait = "L: ld.volatile.global.u32 %r2, [%rd1]; setp.eq.u32 %p1, %r2, 0; @%p1 bra L;";
    let fault = launch(wait, 2, 32, Residency::Ordinary, Settings::default()).expect_err(wait);
    assert_eq!(fault.kind, FaultKind::Deadlock, "{fault}");
    let locked = "L: atom.global.cas.b32 %r2, [%rd1], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;";
    let fault = launch(locked, 1, 2, Residency::Ordinary, Settings::default()).expect_err(locked);
    assert_eq!(fault.kind, FaultKind::Deadlock, "{fault}");
    let unlocked = format!(
        "{locked} ld.global.u32 %r3, [%rd1+4]; add.u32 %r3, %r3, 1; st.global.u32 [%rd1+4], %r3;
        membar.gl; atom.global.exch.b32 %r2, [%rd1], 0;"
    );
    runs(&unlocked, 3, 70);
}

#[test]
fn blocks_wait_for_each_other_in_cooperative_launches_only() {
    let body = "setp.ne.u32 %p1, %r1, 0; @%p1 bra E; atom.global.add.u32 %r2, [%rd1], 1;
        L: ld.volatile.global.u32 %r2, [%rd1]; setp.lt.u32 %p1, %r2, 30; @%p1 bra L; E: bar.sync 0;";
    for seed in 0..4 {
        let settings = Settings { seed, ..Settings::default() };
        assert_eq!(launch(body, 30, 64, Residency::Cooperative, settings), Ok(()));
        let fault = launch(body, 30, 64, Residency::Ordinary, settings).expect_err(body);
        assert_eq!(fault.kind, FaultKind::Deadlock, "{fault}");
    }
}

#[test]
fn orders_differ_by_seed_and_repeat() {
    // The order in which threads and blocks come.
    let body = "mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 8, %r1; atom.global.add.u32 %r4, [%rd1], 1;
        mul.wide.u32 %rd2, %r4, 4; add.s64 %rd2, %rd1, %rd2; st.global.u32 [%rd2+4], %r3;";
    let order = |seed| {
        let mut device = Device::new(Settings { seed, ..Settings::default() });
        let module = device.load(&kernel(body)).unwrap();
        let buffer = device.allocate(1024).unwrap();
        device.write(buffer, &[0; 1024]).unwrap();
        let shape = Shape { grid: [10, 1, 1], block: [8, 1, 1], dynamic_shared: 0, residency: Residency::Ordinary };
        device.launch(device.kernel(module, "k").unwrap(), shape, &buffer.to_le_bytes()).unwrap();
        device.read(buffer + 4, 320).unwrap().chunks_exact(4).map(|c| c[0]).collect::<Vec<_>>()
    };
    assert_eq!(order(0), (0..80).collect::<Vec<_>>());
    for seed in 1..5 {
        let mut found = order(seed);
        assert_eq!(found, order(seed));
        assert_ne!(found, order(seed + 1));
        found.sort_unstable();
        assert_eq!(found, (0..80).collect::<Vec<_>>(), "every block and thread once");
    }
}

#[test]
fn faults_in_functions_that_are_called() {
    let text = |body: &str| {
        format!(
            "{HEAD}.func (.param .b32 result) f(.param .b32 n, .param .b64 at) {{ {REGISTERS} .local .align 4 .b8 l[16];
             ld.param.u32 %r1, [n]; ld.param.u64 %rd1, [at]; mov.u32 %r4, %tid.x; st.local.u32 [l+8], %r1;\n{body}
             ld.local.u32 %r1, [l+8]; st.param.b32 [result], %r1; ret; }}
             .entry k(.param .u64 buffer) {{ {REGISTERS} ld.param.u64 %rd1, [buffer];
             {{ .param .b32 p0; .param .b64 p1; .param .b32 r0; st.param.b32 [p0], 40; st.param.b64 [p1], %rd1;
             call.uni (r0), f, (p0, p1); ld.param.b32 %r1, [r0]; }} st.global.u32 [%rd1], %r1; ret; }}"
        )
    };
    let run = |body: &str| {
        let mut device = Device::new(Settings::default());
        let module = device.load(&text(body)).unwrap_or_else(|error| panic!("{body}: {error}"));
        let buffer = device.allocate(4).unwrap();
        let shape = Shape { grid: [1; 3], block: [1; 3], dynamic_shared: 0, residency: Residency::Ordinary };
        let result = device.launch(device.kernel(module, "k").unwrap(), shape, &buffer.to_le_bytes());
        (result, device.read(buffer, 4).unwrap()[0])
    };
    assert_eq!(run(""), (Ok(()), 40));
    let (Err(LaunchError::Fault(fault)), _) = run("\nst.global.u32 [%rd1+4], 0;") else { panic!() };
    assert!(fault.message.contains("kernel k, PTX line 7,"), "{fault}");
    // n + f(n − 1) down to 0, each frame with memory of its own; and without an end.
    let recursion = |ends: &str| {
        format!(
            "setp.eq.u32 %p1, %r1, 0; {ends} sub.u32 %r1, %r1, 1;
             {{ .param .b32 p0; .param .b64 p1; .param .b32 r0; st.param.b32 [p0], %r1; st.param.b64 [p1], %rd1;
             call.uni (r0), f, (p0, p1); ld.param.b32 %r2, [r0]; }}
             ld.local.u32 %r1, [l+8]; add.u32 %r1, %r1, %r2; st.local.u32 [l+8], %r1; L:"
        )
    };
    assert_eq!(run(&recursion("@%p1 bra L;")), (Ok(()), (820 % 256) as u8));
    let (Err(LaunchError::Fault(fault)), _) = run(&recursion("")) else { panic!() };
    assert!(fault.kind == FaultKind::Trap && fault.message.contains("deep"), "{fault}");
}

#[test]
fn what_no_device_has_room_for_is_refused() {
    for (text, what) in [
        (".entry k() { .shared .b8 s[49153]; ret; }", "shared"),
        (".shared .b8 s[49153]; .entry k() { .reg .b64 %rd<2>; mov.u64 %rd1, s; ret; }", "shared"),
        (".entry k() { .local .b8 l[4294967295]; ret; }", "local"),
        (".entry k() { .param .b8 p[4294967295]; ret; }", "call parameters"),
        (".entry k(.param .b8 p[5000]) { ret; }", "parameters"),
        (".global .b8 g[4294967295]; .entry k() { ret; }", "out of device memory"),
    ] {
        let error = Device::new(Settings::default()).load(&format!("{HEAD}{text}")).expect_err(text);
        assert!(error.message.contains(what), "{text}: {error}");
    }
}

#[test]
fn launches_that_no_device_runs() {
    let mut device = Device::new(Settings::default());
    let text = format!(
        "{HEAD}.extern .shared .align 16 .b8 dyn[];
         .entry a(.param .u64 x) {{ {REGISTERS} ret; }} .entry b() .maxntid 64 {{ ret; }}
         .entry c() {{ {REGISTERS} .shared .b8 s[20]; mov.u64 %rd1, s; mov.u64 %rd2, dyn; sub.s64 %rd1, %rd2, %rd1;
         st.shared.u8 [dyn+99], 1; st.shared.u8 [dyn+-1], 1; setp.ne.u64 %p1, %rd1, 32; @%p1 trap; ret; }}"
    );
    let module = device.load(&text).unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|name| device.kernel(module, name).unwrap());
    let shape = |grid, block, dynamic_shared, residency| Shape { grid, block, dynamic_shared, residency };
    let mut refused = |kernel, shape: Shape, parameters: &[u8]| match device.launch(kernel, shape, parameters) {
        Ok(()) => None,
        Err(LaunchError::Refused(error)) => Some(error),
        Err(LaunchError::Fault(fault)) => panic!("{fault}"),
    };
    use DeviceError::{CooperativeTooLarge, InvalidValue, OutOfResources};
    let (one, ordinary, cooperative) = ([1; 3], Residency::Ordinary, Residency::Cooperative);
    assert_eq!(refused(a, shape(one, one, 0, ordinary), &[0; 8]), None);
    assert_eq!(refused(a, shape(one, one, 0, ordinary), &[0; 7]), Some(InvalidValue));
    assert_eq!(refused(b, shape([0, 1, 1], one, 0, ordinary), &[]), Some(InvalidValue));
    assert_eq!(refused(b, shape(one, [1, 0, 1], 0, ordinary), &[]), Some(InvalidValue));
    assert_eq!(refused(b, shape(one, [1025, 1, 1], 0, ordinary), &[]), Some(InvalidValue));
    assert_eq!(refused(b, shape(one, [65, 1, 1], 0, ordinary), &[]), Some(OutOfResources));
    assert_eq!(refused(b, shape([1, 65536, 1], one, 0, ordinary), &[]), Some(InvalidValue));
    assert_eq!(refused(b, shape([256, 1, 1], [64, 1, 1], 0, cooperative), &[]), None);
    assert_eq!(refused(b, shape([257, 1, 1], [64, 1, 1], 0, cooperative), &[]), Some(CooperativeTooLarge));
    assert_eq!(refused(c, shape(one, one, 100, ordinary), &[]), None);
    assert_eq!(refused(c, shape(one, one, 49 << 10, ordinary), &[]), Some(InvalidValue));
    device.set_max_dynamic_shared(c, 90 << 10).unwrap();
    assert_eq!(device.launch(c, shape(one, one, 90 << 10, ordinary), &[]), Ok(()));
    assert_eq!(device.occupancy(c, 32, 90 << 10), Ok(1));
    assert_eq!(device.occupancy(c, 32, 0), Ok(32));
    assert_eq!(device.set_max_dynamic_shared(c, 96 << 10), Err(InvalidValue));
    assert_eq!(device.unload(module), Ok(()));
    assert_eq!(device.info(c), Err(DeviceError::InvalidHandle));
}

/// Runs cooperatively in several orders, with all detectors of races.
fn races(body: &str, blocks: u32, threads: u32) -> Vec<Option<String>> {
    let watched = |seed| {
        let settings = Settings { seed, races: Races::Everywhere, ..Settings::default() };
        match launch(body, blocks, threads, Residency::Cooperative, settings) {
            Ok(()) => None,
            Err(Fault { kind: FaultKind::Race, message }) => Some(message),
            Err(other) => panic!("{body}: {other}"),
        }
    };
    (0..4).map(watched).collect()
}

fn has_race(body: &str, blocks: u32, threads: u32) {
    assert!(races(body, blocks, threads).iter().all(Option::is_some), "{body}");
    // They are looked for only where that is asked for.
    runs(body, blocks, threads);
}

fn has_none(body: &str, blocks: u32, threads: u32) {
    assert_eq!(races(body, blocks, threads), [const { None }; 4], "{body}");
}

#[test]
fn races_in_global_memory() {
    has_race("st.global.u32 [%rd1], %r1;", 2, 1);
    has_race("st.global.u32 [%rd1], %r1;", 1, 2);
    has_none("st.global.u32 [%rd1], %r1; ld.global.u32 %r2, [%rd1];", 1, 1);
    has_none("ld.global.u32 %r2, [%rd1];", 3, 40);
    has_none("atom.global.add.u32 %r2, [%rd1], 1; ld.volatile.global.u32 %r3, [%rd1];", 3, 40);
    has_race("atom.global.add.u32 %r2, [%rd1], 1; ld.global.u32 %r3, [%rd1];", 3, 40);
    has_none("cvt.u64.u32 %rd2, %r1; add.s64 %rd2, %rd1, %rd2; st.global.u8 [%rd2], %r1;", 1, 40);
    // Threads of a block read what their neighbours wrote.
    let exchange = |threads: u32, between: &str| {
        format!(
            "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2; add.u32 %r2, %r1, 1; rem.u32 %r2, %r2, {threads};
             mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %rd1, %rd3; st.global.u32 [%rd2], 1; {between}
             ld.global.u32 %r3, [%rd3];"
        )
    };
    has_race(&exchange(64, ""), 1, 64);
    has_race(&exchange(64, "membar.gl;"), 1, 64);
    has_none(&exchange(64, "bar.sync 0;"), 1, 64);
    has_none(&exchange(32, "bar.warp.sync -1;"), 1, 32);
    has_race(&exchange(64, "bar.warp.sync -1;"), 1, 64);
    // Written and then read as if it were constant.
    let constant = "st.global.u32 [%rd1], 1; membar.gl; ld.global.nc.u32 %r2, [%rd1];";
    has_race(constant, 1, 1);
    has_none(&constant.replace(".nc", ""), 1, 1);
}

#[test]
fn fences_order_blocks() {
    // Block 0 writes and sets a flag; the others wait for it and read.
    let pass = |write: &str, after: &str| {
        format!(
            "mov.u32 %r2, %ctaid.x; setp.ne.u32 %p1, %r2, 0; @%p1 bra L; st.global.f64 [%rd1+64], 0d3FF0000000000000;
             {write} bra.uni E;
             L: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p1, %r3, 0; @%p1 bra L; {after}
             ld.global.f64 %fd1, [%rd1+64]; E:"
        )
    };
    let fenced = "membar.gl; st.volatile.global.u32 [%rd1], 1;";
    has_none(&pass(fenced, "membar.gl;"), 3, 1);
    has_none(&pass("membar.gl; atom.global.exch.b32 %r3, [%rd1], 1;", "fence.acq_rel.gpu;"), 3, 1);
    has_none(&pass("st.release.gpu.global.u32 [%rd1], 1;", "ld.acquire.gpu.global.u32 %r3, [%rd1];"), 3, 1);
    has_none(&pass("red.release.gpu.global.add.u32 [%rd1], 1;", "membar.sys;"), 3, 1);
    let missing = |write: &str, after: &str| {
        let found = races(&pass(write, after), 3, 1);
        assert!(found.iter().all(Option::is_some), "{write} {after}");
    };
    missing("st.volatile.global.u32 [%rd1], 1;", "membar.gl;");
    missing(fenced, "");
    missing("membar.cta; st.volatile.global.u32 [%rd1], 1;", "membar.gl;");
    missing(fenced, "membar.cta;");
    // A barrier of the grid in which one thread of each block takes part for all.
    let grid = |before: &str, after: &str| {
        format!(
            "mov.u32 %r4, %ctaid.x; mad.lo.u32 %r5, %r4, 32, %r1; mul.wide.u32 %rd2, %r5, 4; add.s64 %rd2, %rd1, %rd2;
             xor.b32 %r5, %r5, 32; mul.wide.u32 %rd3, %r5, 4; add.s64 %rd3, %rd1, %rd3; st.global.u32 [%rd2+64], %r1;
             bar.sync 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra E; {before} atom.global.add.u32 %r2, [%rd1], 1;
             L: ld.volatile.global.u32 %r2, [%rd1]; setp.lt.u32 %p1, %r2, 4; @%p1 bra L; {after} E: bar.sync 0;
             ld.global.u32 %r2, [%rd3+64];"
        )
    };
    has_none(&grid("membar.gl;", "membar.gl;"), 4, 32);
    for (before, after) in [("", "membar.gl;"), ("membar.gl;", "")] {
        assert!(races(&grid(before, after), 4, 32).iter().all(Option::is_some), "{before} {after}");
    }
}
