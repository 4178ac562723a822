//! What `auto` chooses where it matters, and that the answer is as good as any.

use std::time::Duration;

use crate::common::csr;
use blocktri::faer::Mat;
use blocktri::{
    Accuracy, Candidate, Coo, Csr, Direct, Error, Kernel, Machine, Method, Note, Outcome, Reorder, Solution,
    SolveOptions, Work, explain, solve,
};
use bt_formats::{Matrix, Op, Par, one, zero};

/// −Δ by central differences on a cube, with a flow `w` along the first axis.
fn cube(side: usize, w: f64) -> Csr<f64> {
    let n = side.pow(3);
    csr(
        n,
        (0..n).flat_map(move |i| {
            let mut row = vec![(i, i, 6.0)];
            for stride in [1, side, side * side] {
                let x = i / stride % side;
                let flow = if stride == 1 { w } else { 0.0 };
                row.extend((x > 0).then(|| (i, i - stride, -1.0 - flow)));
                row.extend((x + 1 < side).then(|| (i, i + stride, -1.0 + flow)));
            }
            row
        }),
    )
}

/// b = A·x for x of small numbers, solved with `options`, and the largest error of x.
fn solved(a: &Csr<f64>, options: &SolveOptions) -> (Solution<f64>, f64) {
    let n = a.row_ptr().len() - 1;
    let x = Mat::from_fn(n, 1, |i, _| 1.0 + (i % 7) as f64);
    let mut b = Mat::zeros(n, 1);
    a.apply_many(Op::Identity, one(), x.as_ref(), zero(), b.as_mut(), Par::Seq);
    let s = solve(a, b.as_ref(), options, &mut ()).unwrap_or_else(|e| panic!("{e}"));
    let error = (&s.x - &x).norm_max();
    (s, error)
}

#[test]
fn a_cube_is_iterated_on_to_rounding_level() {
    for (w, method) in [(0.0, "cg"), (0.3, "bicgstab")] {
        let (s, error) = solved(&cube(24, w), &SolveOptions::default());
        assert_eq!((s.report.method, s.report.outcome), (method, Outcome::Converged), "{:?}", s.report.notes);
        let c = s.report.certificate;
        // As of a direct method: 32u normwise, n·u row by row.
        assert!(c.backward_error <= 16.0 * f64::EPSILON, "{c:?}");
        assert!(c.componentwise_backward_error <= 24f64.powi(3) * f64::EPSILON / 2.0, "{c:?}");
        assert!(error < 1e-10, "{error:e}");
        let told = |what: fn(&Note) -> bool| s.report.notes.iter().any(what);
        let chose = told(|note| matches!(note, Note::AutoChose { .. }));
        assert!(chose && told(|note| matches!(note, Note::RefinedAround { .. })), "{:?}", s.report.notes);
        assert!(s.candidates.iter().any(|c| c.direct().is_some()), "the direct ones are weighed too");
    }
}

/// Full blocks of these sizes in turn, whose diagonals decide nothing.
fn full_blocks(sizes: &[usize], m: usize) -> Csr<f64> {
    let ends: Vec<usize> =
        sizes.iter().cycle().take(m).scan(0, |end, k| Some(std::mem::replace(end, *end + k) + k)).collect();
    let start = |j: usize| if j == 0 { 0 } else { ends[j - 1] };
    let value = |i: usize, j: usize| if i == j { 2.5 } else { 1.0 / (1 + (7 * i + 3 * j) % 11) as f64 };
    let entries = (0..m).flat_map(|j| {
        let columns = start(j.saturating_sub(1))..ends[(j + 1).min(m - 1)];
        (start(j)..ends[j]).flat_map(move |i| columns.clone().map(move |c| (i, c, value(i, c)))).collect::<Vec<_>>()
    });
    csr(ends[m - 1], entries)
}

#[test]
fn equal_blocks_that_stand_in_registers_are_told_from_others() {
    let in_registers = ["avx512", "avx2"].contains(&Machine::instruction_set());
    for (sizes, kernel) in [
        (&[4][..], if in_registers { Kernel::EqualBlocks } else { Kernel::Blocks }),
        (&[4, 5][..], Kernel::Blocks),
        (&[20][..], Kernel::Blocks),
    ] {
        let (s, error) = solved(&full_blocks(sizes, 2000), &SolveOptions::default());
        assert!(error < 1e-8, "{error:e}");
        let blocks = s.candidates.iter().find(|c| c.method == Direct::BlockLu.into()).expect("weighed");
        assert_eq!(blocks.work.kernel, kernel, "{sizes:?}");
    }
}

#[test]
fn less_accuracy_takes_fewer_steps() {
    let a = cube(24, 0.0);
    let (full, _) = solved(&a, &SolveOptions::default());
    let loose = SolveOptions::by(Method::default().with_accuracy(Accuracy::Residual(1e-6)).unwrap());
    let (s, _) = solved(&a, &loose);
    assert_eq!(s.report.outcome, Outcome::Converged);
    assert!(s.report.certificate.relative_residual <= 1e-6 && s.report.iterations < full.report.iterations / 2 + 5);
}

#[test]
fn an_iteration_that_does_not_converge_is_given_up() {
    // −Δ − 2.5·I with alternating signs is far from what incomplete factors know.
    let a = cube(16, 0.0);
    let mut shifted = a.clone();
    let n = a.row_ptr().len() - 1;
    for i in 0..n {
        let (cols, values) = shifted.row_mut(i);
        let at = cols.iter().position(|j| *j as usize == i).unwrap();
        values[at] = if i % 2 == 0 { 3.1 } else { 2.9 };
    }
    let (s, error) = solved(&shifted, &SolveOptions::default());
    assert_eq!(s.report.outcome, Outcome::Converged, "{:?}", s.report);
    assert!(s.report.certificate.backward_error <= 16.0 * f64::EPSILON && error < 1e-8, "{error:e}");
}

#[test]
fn simple_structures_are_seen() {
    let n = 400;
    let mixed = |i: usize| 149 * i % n;
    let entry = |i: usize, j: usize| 1.0 + ((3 * i + 5 * j) % 7) as f64;
    let diagonal = csr(n, (0..n).map(|i| (i, i, entry(i, i))));
    let lower = |i: usize| [(i, i, 9.0), (i, i / 2, 1.0), (i, i.saturating_sub(3), 2.0)];
    let triangular = csr(n, (0..n).flat_map(lower));
    let permuted = csr(n, (0..n).flat_map(lower).map(|(i, j, v)| (mixed(i), mixed(j + 7), v)));
    let periodic = csr(n, (0..n).flat_map(|i| [(i, i, 4.0), (i, (i + 1) % n, -1.0), ((i + 1) % n, i, -1.5)]));
    for (a, method) in
        [(diagonal, "diagonal"), (triangular, "triangular"), (permuted, "triangular"), (periodic, "periodic-lu")]
    {
        let (s, error) = solved(&a, &SolveOptions::default());
        assert_eq!((s.report.method, s.report.outcome), (method, Outcome::Converged), "{:?}", s.report.notes);
        assert!(error < 1e-11, "{method}: {error:e}");
    }
}

#[test]
fn saddle_points_are_factored_with_pivots_of_order_two() {
    // [ H Gᵀ ]  H tridiagonal, G with three entries a row far apart.
    // [ G 0  ]
    let (n, q) = (1500, 500);
    let mut entries = Vec::new();
    for i in 0..n {
        entries.push((i, i, 2.5));
        if i > 0 {
            entries.extend([(i, i - 1, -1.0), (i - 1, i, -1.0)]);
        }
    }
    for k in 0..q {
        for (m, v) in [1.0, -2.0, 1.0].into_iter().enumerate() {
            let place = (k * 3 + m * 317 * (1 + k % 5)) % n;
            entries.extend([(n + k, place, v), (place, n + k, v)]);
        }
    }
    let (s, error) = solved(&csr(n + q, entries), &SolveOptions::default());
    assert_eq!((s.report.method, s.report.outcome), ("sparse-ldl", Outcome::Converged), "{:?}", s.report.notes);
    assert!(error < 1e-9, "{error:e}");
    // Its symbolic phase, pairs included, is what it was weighed by, and what it was factored with.
    assert_eq!(s.candidates[0].bytes, s.report.bytes.factors as u64);
    assert!(s.candidates[0].work.paired > 0.0, "{:?}", s.candidates[0]);
}

#[test]
fn a_time_limit_ends_with_what_there_is() {
    let options = SolveOptions { time_limit: Some(Duration::ZERO), ..SolveOptions::default() };
    let (s, _) = solved(&cube(24, 0.0), &options);
    assert_eq!(s.report.outcome, Outcome::TimeLimit);
    assert!(
        s.report.notes.iter().any(|note| matches!(note, Note::TimeLimit { seconds: 0.0, .. })),
        "{:?}",
        s.report.notes
    );
    assert!(s.report.certificate.relative_residual <= 1.0);
    let generous = SolveOptions { time_limit: Some(Duration::MAX), ..SolveOptions::default() };
    assert_eq!(solved(&cube(6, 0.0), &generous).0.report.outcome, Outcome::Converged);
}

#[test]
fn the_choice_is_a_function_of_the_matrix() {
    let a = cube(12, 0.0);
    let weigh = || explain(&a, &SolveOptions::default()).unwrap().candidates;
    let (first, second) = (weigh(), weigh());
    assert!(first.len() >= 3, "{first:?}");
    for (c, d) in first.iter().zip(&second) {
        assert_eq!((&c.method, c.reorder, c.seconds, c.bytes), (&d.method, d.reorder, d.seconds, d.bytes));
    }
    let left: Vec<f64> = first.iter().map(Candidate::seconds_after_order).collect();
    assert!(left.is_sorted(), "what has least to do comes first: {left:?}");
    for c in &first {
        let has_order = c.reorder == Reorder::Rcm || c.method.name().starts_with("sparse-");
        assert_eq!(c.seconds_after_order() < c.seconds, has_order, "{c:?}");
    }
    // In a given order other candidates are weighed.
    let given = explain(&a, &SolveOptions { reorder: Reorder::Rcm, ..SolveOptions::default() }).unwrap().candidates;
    assert!(given.iter().all(|c| c.reorder == Reorder::Rcm) && !given.is_empty());
}

#[test]
fn sparse_factors_are_counted_with_their_analysis() {
    // A binary tree, which does not fill.
    let beside = |i: usize, j: usize| [(i, j, -1.0), (j, i, -0.5)];
    let tree = csr(2000, (0..2000).map(|i| (i, i, 4.0)).chain((1..2000).flat_map(|i| beside(i, (i - 1) / 2))));
    // By columns up to twelve operations an entry of the factors, by supernodes beyond.
    for (a, kernel) in [(tree, Kernel::SparseColumns), (cube(16, 0.3), Kernel::Sparse)] {
        let candidates = explain(&a, &SolveOptions::default()).unwrap().candidates;
        let c = candidates.iter().find(|c| c.method.name() == "sparse-lu").unwrap();
        assert_eq!((c.work.kernel, c.work.analysed), (kernel, (a.row_ptr().len() - 1 + a.values().len()) as f64));
        assert_eq!(c.work.paired, 0.0, "its pattern is symmetric");
        let without = Work { analysed: 0.0, ..c.work };
        let [own, less] = [c.work, without].map(|work| Machine::here().seconds::<f64>(a.values().len(), &work));
        let analysis = Machine::here().rate(kernel).analysis * c.work.analysed;
        assert!(own == c.seconds && analysis > 0.0 && (own - less - analysis).abs() < 1e-12, "{own:e} {less:e}");
    }
}

#[test]
fn a_pattern_without_symmetry_is_counted_with_its_matching() {
    // Three entries a row, far from each other, and zeros on the diagonal.
    let n = 3000;
    let mut coo = Coo::new(n, n).unwrap();
    for i in 0..n {
        for (k, v) in [(1, 1.0), (7, 0.3), (i * i % n + 2, 0.2)] {
            coo.push(i, (i + k) % n, v).unwrap();
        }
    }
    let a = coo.to_csr().unwrap();
    let candidates = explain(&a, &SolveOptions::default()).unwrap().candidates;
    let c = candidates.iter().find(|c| c.method.name() == "sparse-lu").unwrap();
    assert!(c.work.paired > (n + a.nnz()) as f64);
    let [own, less] =
        [c.work, Work { paired: 0.0, ..c.work }].map(|work| Machine::here().seconds::<f64>(a.nnz(), &work));
    assert!(own == c.seconds && (own - less - Machine::here().pairing * c.work.paired).abs() < 1e-12);
}

#[test]
fn constants_out_of_range_are_refused() {
    let constants = Machine::here().constants();
    assert_eq!(Machine::with_constants(&constants).unwrap(), *Machine::here());
    let message = |given: &[(String, f64)]| match Machine::with_constants(given).and_then(Machine::set) {
        Err(Error::Usage { message }) => message,
        other => panic!("{other:?}"),
    };
    let mut wrong = constants.clone();
    wrong[0].1 = -1.0;
    assert!(message(&wrong).contains("'call' of the machine is -1"), "{}", message(&wrong));
    assert!(message(&constants[1..]).contains("'call' of the machine is missing"));
    // A file of before sparse factors had a constant for their analysis.
    let older: Vec<_> = constants.iter().filter(|(name, _)| name != "sparse-ldl.analysis").cloned().collect();
    assert!(message(&older).contains("'sparse-ldl.analysis' of the machine is missing"), "{}", message(&older));
    wrong[0] = ("speed".into(), 1.0);
    wrong.push(constants[0].clone());
    assert!(message(&wrong).contains("'speed' is not a constant"));
}

#[test]
fn a_full_first_row_and_column_are_not_iterated_on() {
    // Incomplete factors on its pattern take n² products, sparse ones n.
    let n = 4000;
    let arrow = (0..n).flat_map(|i| {
        let beside = (i > 0).then_some([(0, i, 1.0), (i, 0, 1.0)]);
        beside.into_iter().flatten().chain([(i, i, if i == 0 { 2.0 * n as f64 } else { 4.0 })])
    });
    let (s, error) = solved(&csr(n, arrow), &SolveOptions::default());
    assert!(s.report.method.starts_with("sparse"), "{} {:?}", s.report.method, s.report.notes);
    assert!(error < 1e-10);
}

#[test]
fn an_iteration_waits_for_orders_and_is_not_begun_again() {
    // The smaller one is eliminated at once. Which way is faster on the larger one is the machine's to say, but what was given up does not
    // come back.
    for side in [60, 300] {
        let at = |i: usize, j: usize| i * side + j;
        let grid = (0..side).flat_map(|i| (0..side).map(move |j| (i, j)));
        let entries = grid.flat_map(|(i, j)| {
            let right = (j + 1 < side).then_some((at(i, j), at(i, j + 1)));
            let below = (i + 1 < side).then_some((at(i, j), at(i + 1, j)));
            let pairs = [right, below].into_iter().flatten().flat_map(|(p, q)| [(p, q, -1.0), (q, p, -1.0)]);
            pairs.chain([(at(i, j), at(i, j), 4.0)]).collect::<Vec<_>>()
        });
        let (s, error) = solved(&csr(side * side, entries), &SolveOptions::default());
        let given_up = s.report.notes.iter().any(|note| matches!(note, Note::IterationGivenUp { .. }));
        let begun = side == 300;
        assert_eq!(given_up, begun && s.report.method != "cg", "{} {:?}", s.report.method, s.report.notes);
        let is_weighed = s.candidates.iter().any(|c| c.method == Direct::SparseCholesky.into());
        assert!(is_weighed || !begun, "{:?}", s.candidates);
        assert!(error < 1e-9, "{error:e}");
    }
}

/// A band of 2 sub- and 2 super-diagonals with a diagonal that decides nothing, its rows and columns dealt in strides.
fn dealt_band(n: usize) -> Csr<f64> {
    // 7919 is prime, and n no multiple of it.
    let place = |i: usize| i * 7919 % n;
    let value = |i: usize, j: usize| if i == j { 0.3 - (i % 3) as f64 * 0.3 } else { 1.0 / (1 + i % 3 + j % 2) as f64 };
    let entries = (0..n).flat_map(move |i| (i.saturating_sub(2)..(i + 3).min(n)).map(move |j| (i, j)));
    csr(n, entries.map(|(i, j)| (place(i), place(j), value(i, j))))
}

#[test]
fn an_order_that_finds_a_narrow_band_comes_before_iterations() {
    let (s, error) = solved(&dealt_band(20_000), &SolveOptions::default());
    assert_eq!((s.report.outcome, s.reorder), (Outcome::Converged, Reorder::Rcm), "{:?}", s.report.notes);
    assert!(["band-lu", "block-lu"].contains(&s.report.method), "{}", s.report.method);
    assert!(!s.report.notes.iter().any(|note| matches!(note, Note::IterationGivenUp { .. })), "{:?}", s.report.notes);
    assert!(error < 1e-6, "{error:e}");
}

/// Of an arrowhead nothing but sparse factors is possible, and of a square grid a band is as wide as the grid: the reverse Cuthill–McKee order is
/// made of neither.
#[test]
fn an_order_for_a_band_is_not_made_where_sparse_factors_are_far_ahead() {
    let n = 60_000;
    let beside = (1..n).flat_map(|i| [(i, i, 4.0), (0, i, 1.0), (i, 0, 1.5)]);
    let arrowhead = csr(n, std::iter::once((0, 0, 9e4)).chain(beside));
    let side = 250;
    let grid = csr(
        side * side,
        (0..side * side).flat_map(|i| {
            let (x, y) = (i % side, i / side);
            let near = [(x > 0, 1), (y > 0, side)].map(|(inside, stride)| inside.then(|| (i - stride, -1.0)));
            let far =
                [(x + 1 < side, 1), (y + 1 < side, side)].map(|(inside, stride)| inside.then(|| (i + stride, -1.0)));
            near.into_iter()
                .chain([Some((i, 4.0))])
                .chain(far)
                .flatten()
                .map(move |(j, v)| (i, j, v))
                .collect::<Vec<_>>()
        }),
    );
    for a in [arrowhead, grid] {
        let candidates = explain(&a, &SolveOptions::default()).unwrap().candidates;
        let first = candidates.iter().find_map(Candidate::direct);
        assert!(matches!(first, Some(Direct::SparseLu | Direct::SparseCholesky)), "{first:?}");
        assert!(candidates.iter().all(|c| c.reorder == Reorder::None), "{candidates:?}");
    }
}

#[test]
fn hermitian_matrices_with_zeros_on_the_diagonal_are_not_given_to_lu() {
    // [K Bᵀ; B 0]: K a grid, B one row for every fourth unknown.
    let (side, mut entries) = (40, Vec::new());
    let n = side * side;
    for i in 0..n {
        entries.push((i, i, 4.0));
        for j in [(i % side + 1 < side).then_some(i + 1), (i + side < n).then_some(i + side)].into_iter().flatten() {
            entries.extend([(i, j, -1.0), (j, i, -1.0)]);
        }
    }
    for k in 0..n / 4 {
        entries.extend([(n + k, 4 * k, 1.0), (4 * k, n + k, 1.0)]);
    }
    let a = csr(n + n / 4, entries);
    let candidates = explain(&a, &SolveOptions::default()).unwrap().candidates;
    let has = |name: &str| candidates.iter().any(|c| c.method.name() == name);
    assert!(has("sparse-ldl") && !has("sparse-lu"), "{candidates:#?}");
}

/// 30 diagonals of −1 on either side of `diagonal(row, their number)`.
fn wide_band(n: usize, diagonal: impl Fn(usize, f64) -> f64) -> Csr<f64> {
    let near = |i: usize| i.saturating_sub(30)..n.min(i + 31);
    csr(
        n,
        (0..n).flat_map(|i| {
            let beside = (near(i).len() - 1) as f64;
            let own = diagonal(i, beside);
            near(i).map(move |j| (i, j, if i == j { own } else { -1.0 - (i % 3) as f64 * f64::from(j > i) / 64.0 }))
        }),
    )
}

#[test]
fn a_dominant_band_is_eliminated_without_interchanges() {
    let on_one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let fastest = |a: &Csr<f64>| explain(a, &SolveOptions::default()).unwrap().candidates[0].method.name().to_owned();
    let dominant = wide_band(4000, |_, beside| 2.0 * beside);
    on_one_thread.install(|| {
        assert_eq!(fastest(&dominant), "band-lu-nopivot");
        let (s, error) = solved(&dominant, &SolveOptions::default());
        assert_eq!((s.report.method, s.report.outcome), ("band-lu-nopivot", Outcome::Converged));
        assert!(error < 1e-13, "{error:e}");
        // One row is not dominant.
        let weak = wide_band(4000, |i, beside| if i == 70 { 0.5 } else { 2.0 * beside });
        assert_eq!(fastest(&weak), "band-lu");
        let plan = explain(&weak, &SolveOptions::default()).unwrap().candidates;
        assert!(plan.iter().all(|c| c.method.name() != "band-lu-nopivot"), "{plan:?}");
    });
}

#[test]
fn a_dominant_band_that_is_singular_is_not_solved_quietly() {
    // A graph's Laplacian: dominant, and ones are its kernel.
    let n = 600;
    let near = |i: usize| i.saturating_sub(30)..n.min(i + 31);
    let entries = (0..n).flat_map(|i| {
        let beside = (near(i).len() - 1) as f64;
        near(i).map(move |j| (i, j, if i == j { beside } else { -1.0 }))
    });
    let a = csr(n, entries);
    let b = Mat::from_fn(n, 1, |i, _| (i % 5) as f64);
    let on_one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let options = SolveOptions::by(Direct::BandLuNoPivot);
    for options in [SolveOptions::default(), options] {
        let doubts = |note: &Note| {
            matches!(note, Note::SingularToPrecision { .. } | Note::SingularButExact { .. } | Note::SumsToZero { .. })
        };
        match on_one_thread.install(|| solve(&a, b.as_ref(), &options, &mut ())) {
            Ok(s) => assert!(s.report.notes.iter().any(doubts), "{:?}", s.report.notes),
            Err(e) => {
                let told = e.to_string();
                assert!(told.contains("singular") || told.contains("pivot"), "{told}");
            }
        }
    }
}

/// The order is not a matter of predicted time, which threads change, where the method can do without it not at all.
#[test]
fn a_method_for_three_diagonals_has_the_order_it_needs_on_any_number_of_threads() {
    for n in [6, 20, 22] {
        // A chain from every second row, then the others, the other way round.
        let place = |i: usize| if i.is_multiple_of(2) { i / 2 } else { n - 1 - i / 2 };
        let mut dense = Mat::zeros(n, n);
        for i in 0..n {
            dense[(place(i), place(i))] = 3.0;
            if i > 0 {
                (dense[(place(i), place(i - 1))], dense[(place(i - 1), place(i))]) = (-1.0, 1.5);
            }
        }
        let (a, b) = (Csr::from_dense(dense.as_ref()).unwrap(), Mat::from_fn(n, 1, |i, _| 1.0 + i as f64));
        for threads in [1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for method in [Direct::TridiagonalLu, Direct::DiagonalPivoting] {
                let answer = pool.install(|| solve(&a, b.as_ref(), &SolveOptions::by(method), &mut ()));
                assert_eq!(answer.unwrap().report.outcome, Outcome::Converged, "{method}, n = {n}, {threads} threads");
            }
        }
    }
}
