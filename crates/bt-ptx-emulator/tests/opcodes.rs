//! Single instructions with known answers, each form that is supported; and forms that must be refused.

use bt_ptx_emulator::{Device, Flops, LaunchError, Residency, Settings, Shape};

const ONE: Shape = Shape { grid: [1; 3], block: [1; 3], dynamic_shared: 0, residency: Residency::Ordinary };

/// A kernel of one thread: registers 1, 2, 3 of each type hold the bits of the three parameters (predicates: whether they
/// are not zero); after the instructions `%rd0` is stored.
fn kernel(body: &str) -> String {
    let moves = (1..=3).map(|k| {
        format!(
            "ld.param.u64 %rd{k}, [p{k}]; cvt.u32.u64 %r{k}, %rd{k}; cvt.u16.u64 %rs{k}, %rd{k};
             mov.b32 %f{k}, %r{k}; mov.b64 %fd{k}, %rd{k}; setp.ne.u64 %p{k}, %rd{k}, 0;\n"
        )
    });
    let moves: String = moves.collect();
    format!(
        ".version 6.3\n.target sm_70\n.address_size 64\n
         .visible .entry k(.param .u64 out, .param .u64 p1, .param .u64 p2, .param .u64 p3) {{
         .reg .pred %p<8>; .reg .b16 %rs<8>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .f64 %fd<8>;
         {moves} {body}
         ld.param.u64 %rd7, [out]; st.global.u64 [%rd7], %rd0; ret; }}"
    )
}

/// How register 0 of the instruction's type gets to `%rd0`.
fn collect(instruction: &str) -> &'static str {
    let first = instruction.split_whitespace().nth(1).unwrap_or_default();
    match first.trim_end_matches(',').split('|').find(|register| register.ends_with('0')) {
        Some("%rd0") => "",
        Some("%r0") => "cvt.u64.u32 %rd0, %r0;",
        Some("%rs0") => "cvt.u64.u16 %rd0, %rs0;",
        Some("%f0") => "mov.b32 %r0, %f0; cvt.u64.u32 %rd0, %r0;",
        Some("%fd0") => "mov.b64 %rd0, %fd0;",
        Some("%p0") => "selp.u64 %rd0, 1, 0, %p0;",
        _ => panic!("{instruction} writes no register 0"),
    }
}

fn run(body: &str, inputs: [u64; 3]) -> Result<u64, LaunchError> {
    let mut device = Device::new(Settings::default());
    let module = device.load(&kernel(body)).unwrap_or_else(|error| panic!("{body}: {error}"));
    let out = device.allocate(8).unwrap();
    let parameters: Vec<u8> = [out].into_iter().chain(inputs).flat_map(u64::to_le_bytes).collect();
    device.launch(device.kernel(module, "k").unwrap(), ONE, &parameters)?;
    Ok(u64::from_le_bytes(device.read(out, 8).unwrap().try_into().unwrap()))
}

fn check(instruction: &str, inputs: [u64; 3], expected: u64) {
    let found = run(&format!("{instruction}; {}", collect(instruction)), inputs).unwrap();
    assert_eq!(found, expected, "{instruction} of {inputs:#x?}: {found:#x} and not {expected:#x}");
}

/// (instruction, a, b, c, result).
type Row = (&'static str, u64, u64, u64, u64);

fn check_all(rows: &[Row]) {
    for &(instruction, a, b, c, expected) in rows {
        check(instruction, [a, b, c], expected);
    }
}

/// The 32 bits of a negative number.
const fn minus(n: u32) -> u64 {
    n.wrapping_neg() as u64
}

const M1: u64 = u64::MAX;

#[test]
fn integer_arithmetic() {
    check_all(&[
        ("add.s16 %rs0, %rs1, %rs2", 0xffff, 3, 0, 2),
        ("add.u32 %r0, %r1, %r2", 0xffff_ffff, 3, 0, 2),
        ("add.s32 %r0, %r1, -5", 3, 0, 0, minus(2)),
        ("add.s64 %rd0, %rd1, %rd2", M1, 3, 0, 2),
        ("sub.u16 %rs0, %rs1, %rs2", 1, 2, 0, 0xffff),
        ("sub.s32 %r0, %r1, %r2", 1, 2, 0, minus(1)),
        ("sub.u64 %rd0, %rd1, %rd2", 1, 2, 0, M1),
        ("mul.lo.s16 %rs0, %rs1, %rs2", 0x101, 0x101, 0, 0x201),
        ("mul.lo.s32 %r0, %r1, %r2", 0x1_0001, 0x1_0001, 0, 0x2_0001),
        ("mul.lo.u64 %rd0, %rd1, %rd2", M1, M1, 0, 1),
        ("mul.hi.u16 %rs0, %rs1, %rs2", 0xffff, 0xffff, 0, 0xfffe),
        ("mul.hi.s16 %rs0, %rs1, %rs2", 0xffff, 2, 0, 0xffff),
        ("mul.hi.u32 %r0, %r1, %r2", 0xffff_ffff, 0xffff_ffff, 0, 0xffff_fffe),
        ("mul.hi.s32 %r0, %r1, %r2", minus(1), 5, 0, minus(1)),
        ("mul.hi.u64 %rd0, %rd1, %rd2", M1, M1, 0, M1 - 1),
        ("mul.hi.u64 %rd0, %rd1, %rd2", 1 << 63, 6, 0, 3),
        ("mul.hi.s64 %rd0, %rd1, %rd2", M1, 5, 0, M1),
        ("mul.wide.u16 %r0, %rs1, %rs2", 0xffff, 0xffff, 0, 0xfffe_0001),
        ("mul.wide.s16 %r0, %rs1, %rs2", 0xffff, 7, 0, minus(7)),
        ("mul.wide.u32 %rd0, %r1, %r2", 0xffff_ffff, 8, 0, 0x7_ffff_fff8),
        ("mul.wide.u32 %rd0, %r1, %r2", 0xffff_ffff, 0xffff_ffff, 0, 0xffff_fffe_0000_0001),
        ("mul.wide.s32 %rd0, %r1, %r2", minus(1), 8, 0, 8u64.wrapping_neg()),
        ("mad.lo.s32 %r0, %r1, %r2, %r3", minus(2), 3, 10, 4),
        ("mad.lo.s16 %rs0, %rs1, %rs2, %rs3", 300, 300, 1, 24465),
        ("mad.lo.u64 %rd0, %rd1, %rd2, %rd3", 1 << 40, 1 << 30, 7, 7),
        ("mad.hi.u32 %r0, %r1, %r2, %r3", 1 << 31, 6, 5, 8),
        ("mad.hi.s64 %rd0, %rd1, %rd2, %rd3", M1, 5, 3, 2),
        ("mad.wide.u16 %r0, %rs1, %rs2, %r3", 0xffff, 2, 1, 0x1_ffff),
        ("mad.wide.s16 %r0, %rs1, %rs2, %r3", 0xffff, 2, 1, minus(1)),
        ("mad.wide.u32 %rd0, %r1, %r2, %rd3", 0xffff_ffff, 4, 4, 0x4_0000_0000),
        ("mad.wide.s32 %rd0, %r1, %r2, %rd3", minus(3), 4, 13, 1),
        ("sad.u32 %r0, %r1, %r2, %r3", 3, 10, 100, 107),
        ("sad.s32 %r0, %r1, %r2, %r3", minus(3), 10, 100, 113),
        ("div.u16 %rs0, %rs1, %rs2", 0xffff, 2, 0, 0x7fff),
        ("div.s16 %rs0, %rs1, %rs2", 0xfff9, 2, 0, 0xfffd),
        ("div.u32 %r0, %r1, %r2", minus(7), 2, 0, 0x7fff_fffc),
        ("div.s32 %r0, %r1, %r2", minus(7), 2, 0, minus(3)),
        ("div.s32 %r0, %r1, %r2", 1 << 31, minus(1), 0, 1 << 31),
        ("div.u64 %rd0, %rd1, %rd2", M1, 2, 0, M1 / 2),
        ("div.s64 %rd0, %rd1, %rd2", 7u64.wrapping_neg(), 2, 0, 3u64.wrapping_neg()),
        ("rem.u16 %rs0, %rs1, %rs2", 0xffff, 16, 0, 15),
        ("rem.s16 %rs0, %rs1, %rs2", 0xfff9, 4, 0, 0xfffd),
        ("rem.u32 %r0, %r1, %r2", minus(7), 4, 0, 1),
        ("rem.s32 %r0, %r1, %r2", minus(7), 4, 0, minus(3)),
        ("rem.u64 %rd0, %rd1, %rd2", 1 << 40, 1000, 0, 776),
        ("rem.s64 %rd0, %rd1, %rd2", 7u64.wrapping_neg(), 4, 0, 3u64.wrapping_neg()),
        ("abs.s16 %rs0, %rs1", 0xfff9, 0, 0, 7),
        ("abs.s32 %r0, %r1", minus(7), 0, 0, 7),
        ("abs.s64 %rd0, %rd1", 7u64.wrapping_neg(), 0, 0, 7),
        ("neg.s16 %rs0, %rs1", 7, 0, 0, 0xfff9),
        ("neg.s32 %r0, %r1", 7, 0, 0, minus(7)),
        ("neg.s64 %rd0, %rd1", 1 << 63, 0, 0, 1 << 63),
        ("min.u16 %rs0, %rs1, %rs2", 0xffff, 1, 0, 1),
        ("min.s16 %rs0, %rs1, %rs2", 0xffff, 1, 0, 0xffff),
        ("min.u32 %r0, %r1, %r2", minus(1), 1, 0, 1),
        ("min.s32 %r0, %r1, %r2", minus(1), 1, 0, minus(1)),
        ("min.u64 %rd0, %rd1, %rd2", M1, 1, 0, 1),
        ("min.s64 %rd0, %rd1, %rd2", M1, 1, 0, M1),
        ("max.u32 %r0, %r1, %r2", minus(1), 1, 0, minus(1)),
        ("max.s32 %r0, %r1, %r2", minus(1), 1, 0, 1),
        ("max.u64 %rd0, %rd1, %rd2", M1, 1, 0, M1),
        ("max.s64 %rd0, %rd1, %rd2", M1, 1, 0, 1),
    ]);
}

#[test]
fn carries() {
    // 128 bits from two words each: (a, 1) ± (b, 2), the high word.
    for (a, b, sum, difference) in [(M1, 1, 4, M1), (5, 5, 3, M1), (4, 5, 3, M1 - 1), (M1, M1, 4, M1)] {
        let wide = |low: &str, high: &str| format!("{low}.s64 %rd4, %rd1, %rd2; {high}.s64 %rd0, 1, 2;");
        assert_eq!(run(&wide("add.cc", "addc"), [a, b, 0]), Ok(sum), "{a} + {b}");
        assert_eq!(run(&wide("add.cc", "addc.cc"), [a, b, 0]), Ok(sum), "{a} + {b}");
        assert_eq!(run(&wide("sub.cc", "subc"), [a, b, 0]), Ok(difference), "{a} - {b}");
        let narrow =
            |low: &str, high: &str| format!("{low}.u32 %r1, %r1, %r2; {high}.u32 %r0, 1, 2; cvt.u64.u32 %rd0, %r0;");
        assert_eq!(run(&narrow("add.cc", "addc"), [a, b, 0]), Ok(sum), "{a} + {b}");
        assert_eq!(run(&narrow("sub.cc", "subc.cc"), [a, b, 0]), Ok(difference & 0xffff_ffff), "{a} - {b}");
    }
    // Through three words: the carry of the second comes from the first.
    let chain = "add.cc.u64 %rd4, %rd1, %rd2; addc.cc.u64 %rd5, %rd1, 0; addc.u64 %rd0, %rd3, 0;";
    assert_eq!(run(chain, [M1, 1, 6]), Ok(7));
    assert_eq!(run(chain, [M1, 0, 6]), Ok(6));
    let chain = chain.replace("add", "sub");
    assert_eq!(run(&chain, [0, 1, 6]), Ok(5));
    assert_eq!(run(&chain, [0, 0, 6]), Ok(6));
}

#[test]
fn bits() {
    check_all(&[
        ("and.b16 %rs0, %rs1, %rs2", 0xff, 0xf0f, 0, 0xf),
        ("and.b32 %r0, %r1, %r2", 0xff00, 0xf0f0, 0, 0xf000),
        ("and.b64 %rd0, %rd1, -4294967296", M1, 0, 0, 0xffff_ffff_0000_0000),
        ("and.pred %p0, %p1, %p2", 1, 0, 0, 0),
        ("or.b16 %rs0, %rs1, %rs2", 1, 2, 0, 3),
        ("or.b32 %r0, %r1, %r2", 1, 2, 0, 3),
        ("or.b64 %rd0, %rd1, %rd2", 1, 1 << 40, 0, 1 << 40 | 1),
        ("or.pred %p0, %p1, %p2", 1, 0, 0, 1),
        ("xor.b32 %r0, %r1, %r2", 5, 3, 0, 6),
        ("xor.b64 %rd0, %rd1, %rd2", M1, 1, 0, M1 - 1),
        ("xor.pred %p0, %p1, %p2", 1, 1, 0, 0),
        ("not.b16 %rs0, %rs1", 1, 0, 0, 0xfffe),
        ("not.b32 %r0, %r1", 1, 0, 0, 0xffff_fffe),
        ("not.b64 %rd0, %rd1", 1, 0, 0, M1 - 1),
        ("not.pred %p0, %p1", 0, 0, 0, 1),
        ("cnot.b32 %r0, %r1", 0, 0, 0, 1),
        ("cnot.b32 %r0, %r1", 9, 0, 0, 0),
        ("shl.b16 %rs0, %rs1, %r2", 0x8001, 1, 0, 2),
        ("shl.b32 %r0, %r1, %r2", 0x8000_0001, 1, 0, 2),
        ("shl.b32 %r0, %r1, %r2", 1, 32, 0, 0),
        ("shl.b64 %rd0, %rd1, 63", 3, 0, 0, 1 << 63),
        ("shl.b64 %rd0, %rd1, %r2", 3, minus(1), 0, 0),
        ("shr.u16 %rs0, %rs1, %r2", 0x8000, 15, 0, 1),
        ("shr.s16 %rs0, %rs1, %r2", 0x8000, 99, 0, 0xffff),
        ("shr.u32 %r0, %r1, %r2", 0x8000_0000, 31, 0, 1),
        ("shr.u32 %r0, %r1, %r2", 0x8000_0000, 32, 0, 0),
        ("shr.s32 %r0, %r1, %r2", 0x8000_0000, 31, 0, minus(1)),
        ("shr.s32 %r0, %r1, %r2", 0x8000_0000, 99, 0, minus(1)),
        ("shr.b64 %rd0, %rd1, %r2", 1 << 63, 63, 0, 1),
        ("shr.s64 %rd0, %rd1, %r2", 1 << 63, 63, 0, M1),
        ("shf.l.wrap.b32 %r0, %r1, %r2, %r3", 0xf000_0000, 1, 36, 0x1f),
        ("shf.l.clamp.b32 %r0, %r1, %r2, %r3", 0xf000_0000, 1, 36, 0xf000_0000),
        ("shf.r.wrap.b32 %r0, %r1, %r2, %r3", 0x10, 0xabc, 36, 0xc000_0001),
        ("shf.r.clamp.b32 %r0, %r1, %r2, %r3", 0x10, 0xabc, 36, 0xabc),
        ("prmt.b32 %r0, %r1, %r2, 291", 0x1234_5678, 0, 0, 0x7856_3412),
        ("prmt.b32 %r0, %r1, %r2, %r3", 0x0403_0201, 0x8807_0605, 0x7f41, 0x88ff_0502),
        ("popc.b32 %r0, %r1", 0xf0f, 0, 0, 8),
        ("popc.b64 %r0, %rd1", M1, 0, 0, 64),
        ("clz.b32 %r0, %r1", 1, 0, 0, 31),
        ("clz.b32 %r0, %r1", 0, 0, 0, 32),
        ("clz.b64 %r0, %rd1", 1, 0, 0, 63),
        ("brev.b32 %r0, %r1", 1, 0, 0, 1 << 31),
        ("brev.b64 %rd0, %rd1", 1, 0, 0, 1 << 63),
        ("bfind.u32 %r0, %r1", 0x100, 0, 0, 8),
        ("bfind.u32 %r0, %r1", 0, 0, 0, 0xffff_ffff),
        ("bfind.s32 %r0, %r1", minus(1), 0, 0, 0xffff_ffff),
        ("bfind.s32 %r0, %r1", minus(5), 0, 0, 2),
        ("bfind.u64 %r0, %rd1", 1 << 40, 0, 0, 40),
        ("bfind.s64 %r0, %rd1", 5, 0, 0, 2),
        ("bfind.shiftamt.u32 %r0, %r1", 0x100, 0, 0, 23),
        ("bfe.u32 %r0, %r1, %r2, %r3", 0xabcd, 4, 8, 0xbc),
        ("bfe.u32 %r0, %r1, %r2, %r3", 0xabcd, 4, 40, 0xabc),
        ("bfe.s32 %r0, %r1, %r2, %r3", 0xabcd, 4, 8, minus(0x44)),
        ("bfe.s32 %r0, %r1, %r2, %r3", 0x8000_0000, 40, 8, minus(1)),
        ("bfe.s32 %r0, %r1, %r2, 0", 0x8000_0000, 31, 0, 0),
        ("bfe.u64 %rd0, %rd1, %r2, %r3", 0xab << 40, 44, 20, 0xa),
        ("bfe.s64 %rd0, %rd1, %r2, %r3", 0xab << 40, 40, 8, 0xab_u64.wrapping_sub(0x100)),
        ("bfi.b32 %r0, %r1, %r2, 8, 4", 0xab, 0xffff_ffff, 0, 0xffff_fbff),
        ("bfi.b32 %r0, %r1, %r2, 28, 8", 0xab, 0, 0, 0xb000_0000),
        ("bfi.b64 %rd0, %rd1, %rd2, 40, 8", 0xab, M1, 0, 0xffff_abff_ffff_ffff),
        ("lop3.b32 %r0, %r1, %r2, %r3, 0x96", 0b1111_0000, 0b1100_1100, 0b1010_1010, 0b1001_0110),
        ("lop3.b32 %r0, %r1, %r2, %r3, 0xEA", 0b1111_0000, 0b1100_1100, 0b1010_1010, 0b1110_1010),
    ]);
}

const fn d(x: f64) -> u64 {
    x.to_bits()
}

const fn s(x: f32) -> u64 {
    x.to_bits() as u64
}

#[test]
fn floating_point() {
    let (nan, snan) = (d(f64::NAN), s(f32::NAN));
    check_all(&[
        ("add.rn.f64 %fd0, %fd1, %fd2", d(1.), d(f64::EPSILON / 2.), 0, d(1.)),
        ("add.f64 %fd0, %fd1, 0d4000000000000000", d(1.), 0, 0, d(3.)),
        ("add.rn.f32 %f0, %f1, %f2", s(1.), s(f32::EPSILON), 0, s(1. + f32::EPSILON)),
        ("sub.rn.f64 %fd0, %fd1, %fd2", d(1.), d(3.), 0, d(-2.)),
        ("sub.f32 %f0, %f1, 0f3F800000", s(1.), 0, 0, s(0.)),
        ("mul.rn.f64 %fd0, %fd1, %fd2", d(1e200), d(1e200), 0, d(f64::INFINITY)),
        ("mul.f32 %f0, %f1, %f2", s(3.), s(0.5), 0, s(1.5)),
        ("div.rn.f64 %fd0, %fd1, %fd2", d(1.), d(3.), 0, d(1. / 3.)),
        ("div.rn.f32 %f0, %f1, %f2", s(1.), s(0.), 0, s(f32::INFINITY)),
        // (1 + ε)² − (1 + 2ε) = ε², lost without fusing.
        (
            "fma.rn.f64 %fd0, %fd1, %fd2, %fd3",
            d(1. + f64::EPSILON),
            d(1. + f64::EPSILON),
            d(-1. - 2. * f64::EPSILON),
            d(f64::EPSILON * f64::EPSILON),
        ),
        (
            "fma.rn.f32 %f0, %f1, %f2, %f3",
            s(1. + f32::EPSILON),
            s(1. + f32::EPSILON),
            s(-1. - 2. * f32::EPSILON),
            s(f32::EPSILON * f32::EPSILON),
        ),
        ("sqrt.rn.f64 %fd0, %fd1", d(2.), 0, 0, d(std::f64::consts::SQRT_2)),
        ("sqrt.rn.f32 %f0, %f1", s(9.), 0, 0, s(3.)),
        ("rcp.rn.f64 %fd0, %fd1", d(3.), 0, 0, d(1. / 3.)),
        ("rcp.rn.f32 %f0, %f1", s(-4.), 0, 0, s(-0.25)),
        ("neg.f64 %fd0, %fd1", d(0.), 0, 0, d(-0.)),
        ("neg.f32 %f0, %f1", s(1.), 0, 0, s(-1.)),
        ("abs.f64 %fd0, %fd1", d(-2.), 0, 0, d(2.)),
        ("abs.f32 %f0, %f1", s(-2.), 0, 0, s(2.)),
        ("min.f64 %fd0, %fd1, %fd2", nan, d(1.), 0, d(1.)),
        ("min.f64 %fd0, %fd1, %fd2", d(1.), nan, 0, d(1.)),
        ("min.f64 %fd0, %fd1, %fd2", d(0.), d(-0.), 0, d(-0.)),
        ("min.f64 %fd0, %fd1, %fd2", d(-0.), d(0.), 0, d(-0.)),
        ("max.f64 %fd0, %fd1, %fd2", d(-0.), d(0.), 0, d(0.)),
        ("max.f64 %fd0, %fd1, %fd2", d(0.), d(-0.), 0, d(0.)),
        ("max.f64 %fd0, %fd1, %fd2", nan, d(1.), 0, d(1.)),
        ("min.f32 %f0, %f1, %f2", s(2.), s(1.), 0, s(1.)),
        ("max.f32 %f0, %f1, %f2", snan, s(1.), 0, s(1.)),
        // The sign of the first operand.
        ("copysign.f64 %fd0, %fd1, %fd2", d(-1.), d(5.), 0, d(-5.)),
        ("copysign.f32 %f0, %f1, %f2", s(1.), s(-5.), 0, s(5.)),
        ("testp.finite.f64 %p0, %fd1", d(f64::INFINITY), 0, 0, 0),
        ("testp.infinite.f32 %p0, %f1", s(f32::NEG_INFINITY), 0, 0, 1),
        ("testp.number.f64 %p0, %fd1", d(f64::INFINITY), 0, 0, 1),
        ("testp.notanumber.f64 %p0, %fd1", nan, 0, 0, 1),
        ("testp.normal.f64 %p0, %fd1", 1, 0, 0, 0),
        ("testp.subnormal.f64 %p0, %fd1", 1, 0, 0, 1),
    ]);
}

#[test]
fn conversions() {
    check_all(&[
        ("cvt.u64.u32 %rd0, %r1", minus(1), 0, 0, 0xffff_ffff),
        ("cvt.s64.s32 %rd0, %r1", minus(1), 0, 0, M1),
        ("cvt.u32.u64 %r0, %rd1", 0x1_2345_6789, 0, 0, 0x2345_6789),
        ("cvt.s32.s16 %r0, %rs1", 0xffff, 0, 0, minus(1)),
        ("cvt.u32.u16 %r0, %rs1", 0xffff, 0, 0, 0xffff),
        ("cvt.s32.s8 %r0, %r1", 0x80, 0, 0, minus(128)),
        ("cvt.s16.s8 %rs0, %rs1", 0x80, 0, 0, 0xff80),
        ("cvt.u16.u8 %rs0, %rs1", 0x180, 0, 0, 0x80),
        ("cvt.s64.s8 %rd0, %rd1", 0x1ff, 0, 0, M1),
        ("cvt.u8.u32 %rs0, %r1", 0x1ff, 0, 0, 0xff),
        ("cvt.u16.u32 %rs0, %r1", 0x1_2345, 0, 0, 0x2345),
        ("cvt.f64.f32 %fd0, %f1", s(0.1), 0, 0, d(0.1f32 as f64)),
        ("cvt.rn.f32.f64 %f0, %fd1", d(0.1), 0, 0, s(0.1)),
        ("cvt.rn.f32.f64 %f0, %fd1", d(1e300), 0, 0, s(f32::INFINITY)),
        ("cvt.rn.f64.u32 %fd0, %r1", minus(1), 0, 0, d(4294967295.)),
        ("cvt.rn.f64.s32 %fd0, %r1", minus(1), 0, 0, d(-1.)),
        ("cvt.rn.f64.s64 %fd0, %rd1", (1 << 53) + 1, 0, 0, d(9007199254740992.)),
        ("cvt.rn.f64.u64 %fd0, %rd1", M1, 0, 0, d(18446744073709551616.)),
        ("cvt.rn.f32.s32 %f0, %r1", (1 << 24) + 1, 0, 0, s(16777216.)),
        ("cvt.rn.f32.u64 %f0, %rd1", 3, 0, 0, s(3.)),
        ("cvt.rn.f64.u16 %fd0, %rs1", 0xffff, 0, 0, d(65535.)),
        ("cvt.rni.f64.f64 %fd0, %fd1", d(2.5), 0, 0, d(2.)),
        ("cvt.rzi.f64.f64 %fd0, %fd1", d(-2.5), 0, 0, d(-2.)),
        ("cvt.rmi.f64.f64 %fd0, %fd1", d(-2.5), 0, 0, d(-3.)),
        ("cvt.rpi.f64.f64 %fd0, %fd1", d(-2.5), 0, 0, d(-2.)),
        ("cvt.rni.f32.f32 %f0, %f1", s(3.5), 0, 0, s(4.)),
        ("cvt.rmi.f32.f32 %f0, %f1", s(-0.5), 0, 0, s(-1.)),
        ("cvt.rzi.s32.f64 %r0, %fd1", d(-2.9), 0, 0, minus(2)),
        ("cvt.rzi.s32.f64 %r0, %fd1", d(1e300), 0, 0, i32::MAX as u64),
        ("cvt.rzi.s32.f32 %r0, %f1", s(f32::NAN), 0, 0, 0),
        ("cvt.rzi.u32.f64 %r0, %fd1", d(-1.), 0, 0, 0),
        ("cvt.rzi.u64.f64 %rd0, %fd1", d(1e19), 0, 0, 10_000_000_000_000_000_000),
        ("cvt.rzi.s64.f32 %rd0, %f1", s(-3.9), 0, 0, 3u64.wrapping_neg()),
        ("cvt.rni.s32.f64 %r0, %fd1", d(2.5), 0, 0, 2),
        ("cvt.rni.s64.f64 %rd0, %fd1", d(3.5), 0, 0, 4),
        ("cvt.rmi.s32.f32 %r0, %f1", s(-0.5), 0, 0, minus(1)),
        ("cvt.rpi.s32.f64 %r0, %fd1", d(0.5), 0, 0, 1),
    ]);
}

#[test]
fn comparisons() {
    let nan = d(f64::NAN);
    // (relation, of 1 and 2, of 2 and 2, of 2 and 1, of NaN and 1)
    for (relation, [less, equal, greater, unordered]) in [
        ("eq", [0, 1, 0, 0]),
        ("ne", [1, 0, 1, 0]),
        ("lt", [1, 0, 0, 0]),
        ("le", [1, 1, 0, 0]),
        ("gt", [0, 0, 1, 0]),
        ("ge", [0, 1, 1, 0]),
        ("equ", [0, 1, 0, 1]),
        ("neu", [1, 0, 1, 1]),
        ("ltu", [1, 0, 0, 1]),
        ("leu", [1, 1, 0, 1]),
        ("gtu", [0, 0, 1, 1]),
        ("geu", [0, 1, 1, 1]),
        ("num", [1, 1, 1, 0]),
        ("nan", [0, 0, 0, 1]),
    ] {
        for (a, b, expected) in [(1., 2., less), (2., 2., equal), (2., 1., greater)] {
            let instruction = format!("setp.{relation}.f64 %p0, %fd1, %fd2");
            check(&instruction, [d(a), d(b), 0], expected);
            let instruction = format!("setp.{relation}.f32 %p0, %f1, %f2");
            check(&instruction, [s(a as f32), s(b as f32), 0], expected);
            if relation.len() == 2 {
                let instruction = format!("setp.{relation}.u64 %p0, %rd1, %rd2");
                check(&instruction, [a as u64, b as u64, 0], expected);
            }
        }
        // The order of negative numbers is the other way round.
        if relation.len() == 2 {
            for (a, b, expected) in [(1, 2, greater), (2, 2, equal), (2, 1, less)] {
                check(&format!("setp.{relation}.s32 %p0, %r1, %r2"), [minus(a), minus(b), 0], expected);
            }
        }
        check(&format!("setp.{relation}.f64 %p0, %fd1, %fd2"), [nan, d(1.), 0], unordered);
        check(&format!("setp.{relation}.f64 %p0, %fd1, %fd2"), [d(1.), nan, 0], unordered);
    }
    check_all(&[
        ("setp.lo.u32 %p0, %r1, %r2", minus(1), 1, 0, 0),
        ("setp.ls.u32 %p0, %r1, %r2", 1, 1, 0, 1),
        ("setp.hi.u64 %p0, %rd1, %rd2", M1, 1, 0, 1),
        ("setp.hs.u16 %p0, %rs1, %rs2", 1, 2, 0, 0),
        ("setp.eq.b32 %p0, %r1, 1", 1, 0, 0, 1),
        ("setp.ne.b64 %p0, %rd1, %rd2", 1 << 40, 0, 0, 1),
        ("setp.lt.s16 %p0, %rs1, %rs2", 0xffff, 0, 0, 1),
        ("setp.eq.and.s32 %p0, %r1, %r2, %p3", 1, 1, 0, 0),
        ("setp.eq.or.s32 %p0, %r1, %r2, %p3", 1, 2, 1, 1),
        ("setp.eq.xor.s32 %p0, %r1, %r2, %p3", 1, 1, 1, 0),
        ("setp.eq.and.s32 %p0, %r1, %r2, !%p3", 1, 1, 0, 1),
        ("setp.lt.and.s32 %p4|%p0, %r1, %r2, %p3", 2, 1, 1, 1),
        ("setp.lt.and.s32 %p0|%p4, %r1, %r2, %p3", 1, 2, 1, 1),
        ("setp.lt.s32 %p4|%p0, %r1, %r2", 1, 2, 0, 0),
        ("set.eq.u32.s32 %r0, %r1, %r2", 1, 1, 0, 0xffff_ffff),
        ("set.lt.f32.f64 %f0, %fd1, %fd2", d(1.), d(2.), 0, s(1.)),
        ("selp.b32 %r0, %r1, %r2, %p3", 1, 2, 1, 1),
        ("selp.f64 %fd0, %fd1, 0d0000000000000000, %p3", d(3.), 2, 0, d(0.)),
        ("selp.b64 %rd0, %rd1, %rd2, %p3", 1, 2, 0, 2),
        ("slct.s32.s32 %r0, %r1, %r2, %r3", 1, 2, 0, 1),
        ("slct.u32.s32 %r0, %r1, %r2, %r3", 1, 2, minus(1), 2),
        ("slct.f32.f32 %f0, %f1, %f2, %f3", s(1.), s(2.), s(-0.), s(1.)),
        ("slct.f32.f32 %f0, %f1, %f2, %f3", s(1.), s(2.), s(f32::NAN), s(2.)),
    ]);
}

#[test]
fn moves() {
    check_all(&[
        ("mov.u32 %r0, %r1", 7, 0, 0, 7),
        ("mov.b16 %rs0, -1", 0, 0, 0, 0xffff),
        ("mov.u64 %rd0, 64", 0, 0, 0, 64),
        ("mov.f32 %f0, 0f40490FDB", 0, 0, 0, 0x4049_0fdb),
        ("mov.f64 %fd0, 0d400921FB54442D18", 0, 0, 0, 0x4009_21fb_5444_2d18),
        ("mov.pred %p0, %p1", 1, 0, 0, 1),
        ("mov.pred %p0, 0", 1, 0, 0, 0),
        ("mov.b64 %rd0, {%r1, %r2}", 1, 2, 0, 2 << 32 | 1),
        ("mov.b32 %r0, {%rs1, %rs2}", 1, 2, 0, 2 << 16 | 1),
        ("mov.b64 %rd0, {%rs1, %rs2, %rs3, %rs1}", 1, 2, 3, 1 << 48 | 3 << 32 | 2 << 16 | 1),
        ("mov.u32 %r0, %laneid", 0, 0, 0, 0),
        ("mov.u32 %r0, %ntid.y", 0, 0, 0, 1),
        ("mov.u32 %r0, %nctaid.z", 0, 0, 0, 1),
        ("mov.u32 %r0, WARP_SZ", 0, 0, 0, 32),
        ("mov.u32 %r0, %lanemask_eq", 0, 0, 0, 1),
        ("mov.u32 %r0, %lanemask_ge", 0, 0, 0, 0xffff_ffff),
        ("mov.u32 %r0, %lanemask_gt", 0, 0, 0, 0xffff_fffe),
        ("mov.u32 %r0, %lanemask_le", 0, 0, 0, 1),
        ("mov.u32 %r0, %lanemask_lt", 0, 0, 0, 0),
    ]);
    let unpacked = "{ .reg .b32 t; mov.b64 {t, %r0}, %rd1; } cvt.u64.u32 %rd0, %r0;";
    assert_eq!(run(unpacked, [7 << 32, 0, 0]), Ok(7));
    let dropped = "mov.b64 {_, %r0}, %rd1; cvt.u64.u32 %rd0, %r0;";
    assert_eq!(run(dropped, [7 << 32, 0, 0]), Ok(7));
    let quarters = "mov.b64 {%rs4, %rs5, %rs6, %rs7}, %rd1; cvt.u64.u16 %rd0, %rs6;";
    assert_eq!(run(quarters, [0x1111_2222_3333_4444, 0, 0]), Ok(0x2222));
    let later = "mov.u64 %rd4, %clock64; mov.u64 %rd5, %clock64; sub.u64 %rd0, %rd5, %rd4;";
    assert!((1..10).contains(&run(later, [0; 3]).unwrap()));
}

#[test]
fn loads_and_stores() {
    // A round trip through local memory by each type: what a load makes of the bytes that a store left.
    for (store, load, value, expected) in [
        ("st.local.u8 [%rd6], %r1", "ld.local.u8 %rd0, [%rd6]", 0x1ff, 0xff),
        ("st.local.u8 [%rd6], %r1", "ld.local.s8 %rd0, [%rd6]", 0x80, 0x80u64.wrapping_sub(0x100)),
        ("st.local.u16 [%rd6], %r1", "ld.local.s16 %rd0, [%rd6]", 0xffff, M1),
        ("st.local.b32 [%rd6], %r1", "ld.local.s32 %rd0, [%rd6]", minus(2), 2u64.wrapping_neg()),
        ("st.local.b32 [%rd6], %r1", "ld.local.u32 %rd0, [%rd6]", minus(2), minus(2)),
        ("st.local.f64 [%rd6], %fd1", "ld.local.f64 %fd0, [%rd6]; mov.b64 %rd0, %fd0", d(2.5), d(2.5)),
        ("st.volatile.local.u64 [%rd6+8], %rd1", "ld.volatile.local.u64 %rd0, [%rd6+8]", 9, 9),
        ("st.local.v2.u32 [%rd6], {%r1, %r2}", "ld.local.u64 %rd0, [%rd6]", 9, 9),
        ("st.local.v4.u32 [%rd6], {%r1, %r2, %r2, %r1}", "ld.local.v2.u64 {%rd4, %rd0}, [%rd6]", 9, 9 << 32),
        ("st.local.v2.f64 [%rd6], {%fd2, %fd1}", "ld.local.u64 %rd0, [%rd6+8]", 9, 9),
        ("cvta.local.u64 %rd5, %rd6; st.u32 [%rd5+4], %r1", "ld.local.u32 %rd0, [%rd6+4]", 9, 9),
        (
            "cvta.local.u64 %rd5, %rd6; cvta.to.local.u64 %rd5, %rd5; st.local.u32 [%rd5], %r1",
            "ld.local.u32 %rd0, [depot]",
            9,
            9,
        ),
        ("st.local.u32 [depot+16], %r1", "ld.local.u32 %rd0, [%rd6+16]", 9, 9),
    ] {
        let body = format!(".local .align 16 .b8 depot[32]; mov.u64 %rd6, depot; {store}; {load};");
        assert_eq!(run(&body, [value, 0, 0]), Ok(expected), "{store}; {load}");
    }
    // The same through global memory; p1 holds nothing of use.
    for (store, load) in [
        ("st.global.u64 [%rd6], %rd1", "ld.global.nc.u64 %rd0, [%rd6]"),
        ("st.volatile.global.u64 [%rd6], %rd1", "ld.volatile.global.u64 %rd0, [%rd6]"),
        ("st.relaxed.gpu.global.u64 [%rd6], %rd1", "ld.acquire.gpu.global.u64 %rd0, [%rd6]"),
        ("st.release.gpu.u64 [%rd6], %rd1", "ld.relaxed.sys.u64 %rd0, [%rd6]"),
        ("st.global.wb.u64 [%rd6], %rd1", "ld.global.cg.u64 %rd0, [%rd6]"),
        ("st.u64 [%rd6], %rd1", "ldu.global.u64 %rd0, [%rd6]"),
        ("{ cvta.global.u64 %rd6, %rd6; } st.u64 [%rd6], %rd1", "ld.u64 %rd0, [%rd6]"),
    ] {
        assert_eq!(run(&format!("ld.param.u64 %rd6, [out]; {store}; {load};"), [77, 0, 0]), Ok(77), "{store}; {load}");
    }
    let spaces = ".shared .align 8 .b8 s[8]; mov.u64 %rd4, s; cvta.shared.u64 %rd4, %rd4; ld.param.u64 %rd5, [out];
        isspacep.shared %p4, %rd4; isspacep.shared %p5, %rd5; isspacep.global %p6, %rd5;
        selp.u32 %r4, 1, 0, %p4; selp.u32 %r5, 2, %r4, %p5; selp.u32 %r6, 4, 0, %p6; add.u32 %r6, %r6, %r5; cvt.u64.u32 %rd0, %r6;";
    assert_eq!(run(spaces, [0; 3]), Ok(5));
}

#[test]
fn atomics() {
    // (operation, old value, b, c, new value)
    for (operation, old, b, c, new) in [
        ("add.u32", 5, 3, 0, 8),
        ("add.s32", 5, minus(6), 0, minus(1)),
        ("add.u64", M1, 2, 0, 1),
        ("add.f32", s(1.), s(2.), 0, s(3.)),
        ("add.f64", d(1.), d(2.), 0, d(3.)),
        ("min.u32", minus(1), 3, 0, 3),
        ("min.s32", minus(1), 3, 0, minus(1)),
        ("max.u32", minus(1), 3, 0, minus(1)),
        ("max.s32", minus(1), 3, 0, 3),
        ("min.s64", M1, 3, 0, M1),
        ("max.s64", M1, 3, 0, 3),
        ("min.u64", M1, 3, 0, 3),
        ("max.u64", M1, 3, 0, M1),
        ("and.b32", 6, 3, 0, 2),
        ("or.b32", 6, 3, 0, 7),
        ("xor.b64", 6, 3, 0, 5),
        ("exch.b32", 6, 3, 0, 3),
        ("exch.b64", 6, 1 << 40, 0, 1 << 40),
        ("inc.u32", 6, 7, 0, 7),
        ("inc.u32", 7, 7, 0, 0),
        ("dec.u32", 0, 7, 0, 7),
        ("dec.u32", 9, 7, 0, 7),
        ("dec.u32", 3, 7, 0, 2),
        ("cas.b32", 6, 6, 9, 9),
        ("cas.b32", 5, 6, 9, 5),
        ("cas.b64", 1 << 40, 1 << 40, 9, 9),
    ] {
        let wide = operation.ends_with("64");
        let (register, bits) = match operation.rsplit_once('.').unwrap().1 {
            "f64" => ("%fd", "b64"),
            "f32" => ("%f", "b32"),
            _ if wide => ("%rd", "b64"),
            _ => ("%r", "b32"),
        };
        let third = if operation.starts_with("cas") { format!(", {register}3") } else { String::new() };
        for (space, base) in [("global", "out"), ("shared", "s"), ("", "out")] {
            let dot = if space.is_empty() { "" } else { "." };
            let address = if space == "shared" { "mov.u64 %rd6, s;" } else { "ld.param.u64 %rd6, [out];" };
            let (old_register, at) =
                (if wide { "%rd1" } else { "%r1" }, if space == "shared" { "shared" } else { "global" });
            let head = format!(
                ".shared .align 8 .b8 s[8]; {address} st.{at}.u64 [%rd6], 0; st.{at}.{bits} [%rd6], {old_register};"
            );
            for order in ["", ".relaxed.gpu", ".acq_rel.sys"] {
                let atom = format!("atom{order}{dot}{space}.{operation} {register}0, [%rd6], {register}2{third};");
                let found = run(&format!("{head} {atom} ld.{at}.u64 %rd0, [%rd6];"), [old, b, c]);
                assert_eq!(found, Ok(new), "{atom} in {base}");
                let returned = format!(
                    "{head} {atom} st.{at}.u64 [%rd6], 0; st.{at}.{bits} [%rd6], {register}0; ld.{at}.u64 %rd0, [%rd6];"
                );
                assert_eq!(run(&returned, [old, b, c]), Ok(old), "what {atom} returns");
            }
            if !operation.starts_with("cas") && !operation.starts_with("exch") {
                let red = format!("red{dot}{space}.{operation} [%rd6], {register}2;");
                assert_eq!(run(&format!("{head} {red} ld.{at}.u64 %rd0, [%rd6];"), [old, b, c]), Ok(new), "{red}");
            }
        }
    }
}

#[test]
fn control() {
    let counted = "mov.u64 %rd0, 0; L: add.u64 %rd0, %rd0, 3; sub.u64 %rd1, %rd1, 1; setp.ne.u64 %p4, %rd1, 0;
        @%p4 bra L;";
    assert_eq!(run(counted, [7, 0, 0]), Ok(21));
    let negated = "mov.u64 %rd0, 1; @!%p1 bra L; mov.u64 %rd0, 2; L:";
    assert_eq!(run(negated, [0; 3]), Ok(1));
    assert_eq!(run(negated, [1, 0, 0]), Ok(2));
    // A guard skips all operations of one instruction.
    let guarded = "mov.u64 %rd0, 1; @%p1 mov.b64 %rd0, {%r2, %r3}; @!%p1 add.u64 %rd0, %rd0, 1;";
    assert_eq!(run(guarded, [1, 5, 6]), Ok(6 << 32 | 5));
    assert_eq!(run(guarded, [0, 5, 6]), Ok(2));
    let table = "mov.u64 %rd0, 9; brx.idx %r1, T; A: mov.u64 %rd0, 1; B: mov.u64 %rd0, 2; bra.uni E;
        C: mov.u64 %rd0, 3; E: T: .branchtargets A, B, C;";
    assert!(Device::new(Settings::default()).load(&kernel(table)).is_ok());
    for (k, expected) in [2, 2, 3].into_iter().enumerate() {
        assert_eq!(run(table, [k as u64, 0, 0]), Ok(expected));
    }
    assert!(run(table, [3, 0, 0]).is_err());
    assert!(run("trap;", [0; 3]).is_err());
    assert!(run("exit; trap;", [0; 3]).is_ok());
    for nothing in [
        "membar.gl",
        "membar.cta",
        "membar.sys",
        "fence.acq_rel.gpu",
        "fence.sc.sys",
        "nanosleep.u32 20",
        "bar.sync 0",
        "barrier.sync 0",
        "prefetch.global.L2 [%rd1]",
    ] {
        assert_eq!(run(&format!("mov.u64 %rd0, 4; {nothing};"), [0; 3]), Ok(4), "{nothing}");
    }
    assert_eq!(run("activemask.b32 %r0; cvt.u64.u32 %rd0, %r0;", [0; 3]), Ok(1));
}

#[test]
fn what_is_not_supported_is_refused_with_its_line() {
    for instruction in [
        "add.ftz.f32 %f0, %f1, %f2",
        "add.rz.f64 %fd0, %fd1, %fd2",
        "add.sat.s32 %r0, %r1, %r2",
        "sin.approx.f32 %f0, %f1",
        "cvt.rz.f32.f64 %f0, %fd1",
        "cvt.sat.u8.s32 %r0, %r1",
        "cvt.f64.u32 %fd0, %r1",
        "cvt.u32.f64 %r0, %fd1",
        "mul.s32 %r0, %r1, %r2",
        "setp.ltu.s32 %p0, %r1, %r2",
        "setp.lt.b32 %p0, %r1, %r2",
        "ld.global.v4.f64 {%fd0, %fd1, %fd2, %fd3}, [%rd1]",
        "ld.global.L2::128B.u32 %r0, [%rd1]",
        "atom.global.add.s64 %rd0, [%rd1], %rd2",
        "atom.global.add.noftz.f16 %rs0, [%rd1], %rs2",
        "shfl.down.b32 %r0, %r1, 1, 31",
        "bar.sync 0, 64",
        "bar.arrive 0, 64",
        "vprintf %r0",
        "add.s32 %r0, %r1",
        "add.s32 %r0, %r1, %r9",
        "add.s32 %r0, %r1, nowhere",
        "add.s32 7, %r1, %r2",
        "bra nowhere",
        "selp.b32 %r0, %r1, %r2, %r3",
        "add.f32 %f0, %f1, 1",
        "ld.global.u32 %rs0, [%rd1]",
        "ld.param.u64 %rd0, [p1+1]",
        "call nowhere",
        "mov.b64 {%rd1, %r0}, %rd1",
    ] {
        let text = kernel(&format!("\n\n{instruction};"));
        let line = text.lines().position(|l| l.contains(instruction)).unwrap() as u32 + 1;
        let error = Device::new(Settings::default()).load(&text).expect_err(instruction);
        assert_eq!(error.line, line, "{instruction}: {error}");
    }
}

/// (instruction, operations in single precision, in double).
#[test]
fn arithmetic_is_counted_and_what_only_moves_numbers_is_not() {
    for (instruction, single, double) in [
        ("add.f32 %f0, %f1, %f2", 1, 0),
        ("sub.rn.f64 %fd0, %fd1, %fd2", 0, 1),
        ("mul.f64 %fd0, %fd1, %fd2", 0, 1),
        ("fma.rn.f64 %fd0, %fd1, %fd2, %fd3", 0, 2),
        ("fma.rn.f32 %f0, %f1, %f2, %f3", 2, 0),
        ("div.rn.f32 %f0, %f1, %f2", 1, 0),
        ("rcp.rn.f64 %fd0, %fd1", 0, 1),
        ("sqrt.rn.f64 %fd0, %fd1", 0, 1),
        ("neg.f64 %fd0, %fd1", 0, 0),
        ("abs.f32 %f0, %f1", 0, 0),
        ("min.f64 %fd0, %fd1, %fd2", 0, 0),
        ("copysign.f32 %f0, %f1, %f2", 0, 0),
        ("setp.lt.f64 %p0, %fd1, %fd2", 0, 0),
        ("selp.f64 %fd0, %fd1, %fd2, %p1", 0, 0),
        ("cvt.rn.f32.f64 %f0, %fd1", 0, 0),
        ("mul.lo.u32 %r0, %r1, %r2", 0, 0),
        ("mad.lo.u32 %r0, %r1, %r2, %r3", 0, 0),
        ("@!%p1 add.f32 %f0, %f1, %f2", 0, 0),
    ] {
        let mut device = Device::new(Settings::default());
        let module = device.load(&kernel(&format!("mov.u64 %rd0, 0; {instruction};"))).unwrap();
        let out = device.allocate(8).unwrap();
        let parameters: Vec<u8> = [out, 1, 1, 1].into_iter().flat_map(u64::to_le_bytes).collect();
        device.launch(device.kernel(module, "k").unwrap(), ONE, &parameters).unwrap();
        assert_eq!(device.flops(), Flops { single, double }, "{instruction}");
    }
}
