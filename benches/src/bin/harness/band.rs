//! Cases of kind band: factor, solve, and all right-hand sides at once; sparse ones in their own order, with the copy into the
//! band as `+setup`. Contestants `blocktri-band-lu`; where elimination without interchanges keeps its digits, `blocktri-band-lu-nopivot`;
//! of Hermitian positive definite matrices `blocktri-band-cholesky`, and the block methods on blocks as large as the band is wide,
//! `blocktri-block-lu` and `blocktri-block-cholesky`.

use bt_direct::{BandCholesky, BandLu, BandLuNoPivot, BlockCholesky, BlockLu};
use bt_formats::{Band, BlockTridiagonal, Partition, Scalar, c32, c64};

use crate::factored::{System, contestant};
use crate::measure::{Contestant, Floor, race};
use crate::problem::{Problem, number};
use crate::{Args, Number, Result, facade};

/// The matrix of a case of kind band, from LAPACK's layout without room for fill.
fn matrix<T: Scalar>(problem: &Problem) -> Result<Band<T>> {
    let (n, kl, ku) = (problem.size("n")?, problem.size("kl")?, problem.size("ku")?);
    let values = problem.reals("ab")?;
    let mut a = Band::zeros(n, kl, ku)?;
    if values.len() != n * (kl + ku + 1) {
        return Err("ab has not kl + ku + 1 values a column".into());
    }
    let ldab = a.ldab();
    for (j, (to, from)) in a.values_mut().chunks_exact_mut(ldab).zip(values.chunks_exact(kl + ku + 1)).enumerate() {
        for (d, (to, &from)) in to[kl..].iter_mut().zip(from).enumerate() {
            *to = number(from, (j + d) as f64 - ku as f64, j as f64);
        }
    }
    Ok(a)
}

/// Band LU with and, where that keeps its digits, without pivoting; Cholesky where it factors.
pub fn contestants<'a, T: Scalar>(
    case: &str,
    a: &Band<T>,
    system: System<'a, T>,
) -> Result<Vec<Box<dyn Contestant + 'a>>> {
    let mut contestants = vec![contestant("blocktri-band-lu", Box::new(BandLu::new(a)?), system)];
    match BandLuNoPivot::new(a) {
        Ok(lu) => contestants.push(contestant("blocktri-band-lu-nopivot", Box::new(lu), system)),
        Err(why) => eprintln!("{case}: {why}"),
    }
    if let Ok(cholesky) = BandCholesky::new(a) {
        contestants.push(contestant("blocktri-band-cholesky", Box::new(cholesky), system));
    }
    Ok(contestants)
}

/// Races the factorizations.
pub fn run(problem: &Problem, args: &Args) -> Result<()> {
    match args.scalar {
        Number::F64 => {
            let (a, rhs) = (matrix::<f64>(problem)?, problem.numbers("rhs")?);
            let rows = a.to_csr()?;
            let spikes = crate::spike::contestants(&problem.case, &a);
            let mut others: Vec<_> =
                spikes.into_iter().map(|(name, spike)| contestant(name, spike, system(&a, &rhs))).collect();
            others.extend(facade::contestants(&rows, (&a).into(), &rhs[..a.n()]));
            race_with(problem, args, &a, &rhs, others)
        }
        Number::C64 => {
            let (a, rhs) = (matrix::<c64>(problem)?, problem.numbers("rhs")?);
            let rows = a.to_csr()?;
            let calls = facade::contestants(&rows, (&a).into(), &rhs[..a.n()]);
            race_with(problem, args, &a, &rhs, Vec::from(calls))
        }
        Number::F32 => race_with::<f32>(problem, args, &matrix(problem)?, &problem.numbers("rhs")?, Vec::new()),
        Number::C32 => race_with::<c32>(problem, args, &matrix(problem)?, &problem.numbers("rhs")?, Vec::new()),
    }
}

fn system<'a, T: Scalar>(a: &'a Band<T>, rhs: &'a [T]) -> System<'a, T> {
    System { given: a.into(), matrix: a, sparse: None, rhs }
}

fn race_with<'a, T: Scalar>(
    problem: &Problem,
    args: &Args,
    a: &'a Band<T>,
    rhs: &'a [T],
    others: Vec<Box<dyn Contestant + 'a>>,
) -> Result<()> {
    let (n, b) = (a.n(), a.kl() as f64);
    let partition = Partition::uniform(n, a.kl().max(1))?;
    let blocks = BlockTridiagonal::from_csr(&a.to_csr()?, partition.clone(), BlockLu::<T>::layout(&partition))?;
    let mut contestants = contestants(&problem.case, a, system(a, rhs))?;
    // Definite matrices in blocks, too.
    if let Ok(cholesky) = BlockCholesky::new(&blocks) {
        let system = System { given: (&blocks).into(), ..system(a, rhs) };
        contestants.push(contestant("blocktri-block-lu", Box::new(BlockLu::new(&blocks)?), system));
        contestants.push(contestant("blocktri-block-cholesky", Box::new(cholesky), system));
    }
    contestants.extend(others);
    let rows = n as f64;
    let floor = Floor {
        flops: 4.0 * rows * b * b + 6.0 * rows * b,
        bytes: 8.0 * rows * (2.0 * b + 1.0) + 16.0 * rows * (3.0 * b + 1.0),
    };
    race(&problem.case, n, floor.of::<T>(), args, contestants)
}
