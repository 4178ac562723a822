//! Methods on a GPU: what of them there is, and the same answers and reports as on the processor.
//!
//! | file | case |
//! |---|---|
//! | `with_cuda.rs` | which methods are on the device, and the way to their files |
//! | `without_cuda.rs` | the same in a build without CUDA: there is no device |
//! | `direct.rs`, `hbisa.rs`, `krylov.rs` | the methods there: direct ones, HBISA, Krylov methods with their preconditioners |
//! | `rbt.rs` | dense factors by random butterflies, for methods of the processor |
//! | `device.rs` | names, errors and reports of a device, for these |
//! | `open.rs` | a GPU held open between solves; many small chains at once on it |
//! | `card.rs` | what an iteration with M = diag(A) takes there, for the plans of `auto` |

use bt_formats::{Csr, LinearOperator, Matrix, Note, Scalar, seconds_in_words};
use bt_iter::{ArmsOptions, LastSolver};
use card::Card;

use crate::candidate::{Candidate, GAIN, Known};
use crate::direct::Direct;
use crate::gpu::card::Gpu;
use crate::gpu::open::OpenDevice;
use crate::method::{KrylovMethod, Method};
use crate::options::{DeviceChoice, SolveOptions};
use crate::plan::Plan;
use crate::preconditioners::Precond;

pub(crate) mod card;
#[cfg(feature = "cuda")]
mod device;
#[cfg(feature = "cuda")]
mod direct;
#[cfg(feature = "cuda")]
mod hbisa;
#[cfg(feature = "cuda")]
mod krylov;
pub(crate) mod open;
pub(crate) mod rbt;
#[cfg(feature = "cuda")]
mod with_cuda;
#[cfg(not(feature = "cuda"))]
mod without_cuda;

#[cfg(feature = "cuda")]
pub(crate) use with_cuda::{check, probed, solve};
#[cfg(feature = "cuda")]
use with_cuda::{facts, fits};
#[cfg(not(feature = "cuda"))]
pub(crate) use without_cuda::{check, probed, solve};
#[cfg(not(feature = "cuda"))]
use without_cuda::{facts, fits};

/// Whether the method is the processor's, with dense factors on the device: rbt, or the last level of arms-rbt.
pub(crate) fn helps_processor(options: &SolveOptions) -> bool {
    match &options.method {
        Method::Direct(direct, _) => matches!(direct, Direct::Rbt { .. }),
        Method::Krylov(krylov) => is_arms_rbt(krylov.precond),
        _ => false,
    }
}

/// Whether the last level of ARMS is by butterflies.
fn is_arms_rbt(precond: Precond) -> bool {
    matches!(precond, Precond::Arms(ArmsOptions { last: LastSolver::Butterflies(_), .. }))
}

/// Bytes of A from which on iterations are the device's: the caches of a processor hold less.
const LARGE: usize = 32 << 20;
/// Rows from which on a dense matrix is factored there: below, copies take as long as the flops.
const MANY: usize = 2048;

/// Seconds that opening a GPU takes, about: reasoned, not measured.
const OPENING: f64 = 0.3;

/// Adds to the candidates of a plan for A its iteration on GPU 0, where [`DeviceChoice::Auto`] asks for that and it may be worth to open one.
/// `known` are the seconds of iterations that were tried.
pub(crate) fn weigh<T: Scalar>(a: &Csr<T>, device: DeviceChoice, plan: &mut Plan, known: &Known) {
    if device != DeviceChoice::Auto {
        return;
    }
    let iteration = plan.candidates.iter().find_map(|c| match &c.method {
        Method::Krylov(krylov) => Some(krylov.method),
        _ => None,
    });
    let Some(iteration) = iteration else {
        let why = "no iteration is a candidate, and other methods read the matrix once, as the copy to a GPU does";
        plan.gpu = Gpu::NotWorth(why.into());
        return;
    };
    let of_it =
        |c: &Candidate| known.iter().filter(|(device, _)| *device == c.device).map(|(_, s)| *s).reduce(f64::max);
    // An iteration takes some times its least steps.
    let seconds = |c: &Candidate| match c.method {
        Method::Krylov(_) => of_it(c).unwrap_or(GAIN * c.seconds),
        _ => c.seconds,
    };
    let least = plan.possible().map(seconds).fold(f64::INFINITY, f64::min);
    plan.gpu = match std::mem::replace(&mut plan.gpu, Gpu::NotAsked) {
        Gpu::Absent(why) => Gpu::Absent(why),
        Gpu::NotAsked | Gpu::NotWorth(_) if least < OPENING => {
            Gpu::NotWorth(format!("a method takes some {}, and to open a GPU longer", seconds_in_words(least)))
        }
        Gpu::NotAsked | Gpu::NotWorth(_) if !T::IS_REAL => Gpu::Absent("on a GPU there is real arithmetic only".into()),
        Gpu::NotAsked | Gpu::NotWorth(_) => match OpenDevice::open(0).and_then(|open| Ok((facts(&open)?, open))) {
            Ok((facts, open)) => with_candidate(a, Card { facts, open }, iteration, plan),
            Err(error) => Gpu::Absent(error.to_string()),
        },
        Gpu::Open(card, _) => with_candidate(a, card, iteration, plan),
    };
}

fn with_candidate<T: Scalar>(a: &Csr<T>, card: Card, iteration: KrylovMethod, plan: &mut Plan) -> Gpu {
    let candidate = card.facts.candidate(a, iteration);
    plan.add(candidate.clone());
    Gpu::Open(card, Box::new(candidate))
}

/// Where `DeviceChoice::Auto` solves by a method asked for by name, and why. A GPU is held open until the solve has it.
pub(crate) fn choose<T: Scalar>(a: &Csr<T>, options: &SolveOptions) -> (DeviceChoice, Note, Option<OpenDevice>) {
    let why = match worthwhile(a, options) {
        Err(why) => why,
        Ok(why) => match fits(a, options) {
            Ok((place, open)) => return (DeviceChoice::Gpu(0), Note::DeviceChosen { place, why }, Some(open)),
            Err(error) => error.to_string(),
        },
    };
    (DeviceChoice::Cpu, Note::DeviceChosen { place: "the processor".to_owned(), why }, None)
}

/// Whether the work outweighs the copies to a device.
fn worthwhile<T: Scalar>(a: &Csr<T>, options: &SolveOptions) -> Result<String, String> {
    let (bytes, n) = (a.bytes(), a.nrows());
    match &options.method {
        Method::Direct(Direct::Rbt { .. }, _) if n >= MANY => Ok(format!("a dense matrix of {n} rows is factored")),
        Method::Direct(Direct::Rbt { .. }, _) => Err(format!("the matrix has fewer than {MANY} rows")),
        method if !method.is_iterative() => {
            Err(format!("a GPU has {method} too, but it reads A once, as the copy to it does"))
        }
        Method::Krylov(krylov) if is_arms_rbt(krylov.precond) => {
            Err("only the last level of arms-rbt would be the GPU's".into())
        }
        _ if bytes >= LARGE => Ok(format!("the matrix has {} MB", bytes >> 20)),
        _ => Err(format!("the matrix has {} KB, which its caches hold", bytes >> 10)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::{Krylov, KrylovMethod};

    fn of(n: usize, method: impl Into<Method>) -> Result<String, String> {
        let ptr = (0..=n as u32).collect();
        let a = Csr::<f64>::new(n, n, ptr, (0..n as u32).collect(), vec![1.0; n]).expect("a diagonal matrix");
        worthwhile(&a, &SolveOptions::by(method))
    }

    #[test]
    fn the_work_has_to_outweigh_the_copies() {
        // 16 bytes a row with one entry
        assert_eq!(of(LARGE / 16, KrylovMethod::Cg), Ok("the matrix has 32 MB".into()));
        assert_eq!(of(64, KrylovMethod::Cg), Err("the matrix has 1 KB, which its caches hold".into()));
        assert!(of(LARGE / 16, Direct::BandLu).is_err_and(|why| why.contains("reads A once")));
        let gmres = "gmres".parse::<Method>().unwrap();
        let Method::Krylov(gmres) = gmres else { panic!("a Krylov method") };
        assert!(of(LARGE / 16, Krylov { precond: "arms-rbt".parse().unwrap(), ..gmres }).is_err());
        assert!(of(MANY, Direct::Rbt { seed: 1 }).is_ok());
        assert!(of(MANY - 1, Direct::Rbt { seed: 1 }).is_err());
    }
}
