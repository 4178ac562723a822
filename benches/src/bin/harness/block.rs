//! Cases of kind blocktri: dense blocks, one right-hand side, and 64 of them. Contestant `blocktri-block-lu`.

use bt_direct::BlockLu;
use bt_formats::{BlockTridiagonal, Partition, Scalar, ask_for_huge_pages, c32, c64};

use crate::factored::{System, contestant};
use crate::measure::{Contestant, Floor, race};
use crate::problem::{Problem, number};
use crate::{Args, Number, Result, facade};

/// Right-hand sides of the phase `+solve64`.
const MANY: usize = 64;

/// The matrix, in dense blocks.
fn matrix<T: Scalar>(problem: &Problem) -> Result<BlockTridiagonal<T>> {
    let (n, k) = (problem.size("n")?, problem.size("k")?);
    let (m, square) = (n / k, k * k);
    // Block i of an array is in row i + `row` and column i + `column` of blocks.
    let blocks = |name, row, column| -> Result<Vec<T>> {
        let values = problem.reals(name)?.into_iter().enumerate();
        Ok(values
            .map(|(e, x)| {
                let (i, e) = (e / square, e % square);
                number(x, ((i + row) * k + e % k) as f64, ((i + column) * k + e / k) as f64)
            })
            .collect())
    };
    let (lower, upper) = (blocks("lower", 1, 0)?, blocks("upper", 0, 1)?);
    let mut couplings = Vec::with_capacity(lower.len() + upper.len());
    // As NumPy does for the peers.
    ask_for_huge_pages(&couplings);
    for j in 0..m {
        if j > 0 {
            couplings.extend_from_slice(&lower[(j - 1) * square..j * square]);
        }
        if j + 1 < m {
            couplings.extend_from_slice(&upper[j * square..(j + 1) * square]);
        }
    }
    Ok(BlockTridiagonal::from_dense_blocks(Partition::uniform(n, k)?, blocks("diag", 0, 0)?, couplings)?)
}

/// Races the block methods.
pub fn run(problem: &Problem, args: &Args) -> Result<()> {
    match args.scalar {
        Number::F64 => with_calls::<f64>(problem, args),
        Number::C64 => with_calls::<c64>(problem, args),
        Number::F32 => race_with::<f32>(problem, args, &matrix(problem)?, &right_hand_sides(problem)?, Vec::new()),
        Number::C32 => race_with::<c32>(problem, args, &matrix(problem)?, &right_hand_sides(problem)?, Vec::new()),
    }
}

fn with_calls<T: Scalar>(problem: &Problem, args: &Args) -> Result<()> {
    let (a, rhs) = (matrix::<T>(problem)?, right_hand_sides(problem)?);
    let rows = a.to_csr()?;
    let calls = facade::contestants(&rows, (&a).into(), &rhs[..problem.size("n")?]);
    race_with(problem, args, &a, &rhs, Vec::from(calls))
}

/// b, b + 1, b + 2 …
fn right_hand_sides<T: Scalar>(problem: &Problem) -> Result<Vec<T>> {
    let rhs = problem.reals("rhs")?;
    let rhs = rhs.get(..problem.size("n")?).ok_or("rhs is shorter than n")?;
    Ok((0..MANY).flat_map(|j| rhs.iter().map(move |&b| number(b + j as f64, 0.0, 0.0))).collect())
}

fn race_with<'a, T: Scalar>(
    problem: &Problem,
    args: &Args,
    a: &'a BlockTridiagonal<T>,
    rhs: &'a [T],
    others: Vec<Box<dyn Contestant + 'a>>,
) -> Result<()> {
    let (n, k) = (problem.size("n")?, problem.size("k")? as f64);
    let system = System { given: a.into(), matrix: a, sparse: None, rhs };
    let mut contestants = vec![contestant("blocktri-block-lu", Box::new(BlockLu::new(a)?), system)];
    contestants.extend(others);
    let values = n as f64 * k;
    let floor = Floor { flops: values * (14.0 / 3.0 * k + 6.0), bytes: 48.0 * values };
    race(&problem.case, n, floor.of::<T>(), args, contestants)
}
