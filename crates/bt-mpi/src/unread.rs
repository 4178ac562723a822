//! Options of `solve` that were given and that nothing reads.

use crate::args::{Local, Method, Partition, Precond, SolveArgs, name_of};

/// A sentence for each, in the words of `blocktri solve`.
pub fn unread(args: &SolveArgs) -> Vec<String> {
    let given = args.given.iter().filter_map(|option| Some((option, ignored_by(args, option)?)));
    let sentence = |(option, by): (&String, String)| format!("--{} is not read by {by}", option.replace('_', "-"));
    given.map(sentence).collect()
}

/// What does not read an option, named as the fields of [`SolveArgs`] are.
fn ignored_by(args: &SolveArgs, option: &str) -> Option<String> {
    let method = || Some(format!("--method {}", name_of(args.method)));
    if args.model.is_some() {
        let always = ["matrix", "method", "model", "memory", "threads", "json", "quiet"];
        let read = always.contains(&option) || option == "restart" && args.method.has_restarts();
        return if read { None } else { Some("--model".into()) };
    }
    let (krylov, spike) = (args.method.is_krylov(), args.method.is_spike());
    let read_by_method = match option {
        "precond" | "local" | "overlap" | "levels" | "fill" | "drop_tol" | "seed" | "inner_steps" | "inner_rtol" => {
            krylov
        }
        "rtol" | "atol" | "max_iters" | "time_limit" => !spike,
        "restart" => args.method.has_restarts(),
        "refine" => spike,
        "omega" => args.method == Method::HbisaSor,
        _ => true,
    };
    if !read_by_method {
        return method();
    }
    // Domains take no notice of blocks.
    if option == "blocks" && args.partition == Partition::Dse {
        return Some("--partition dse".into());
    }
    let read_by_precond = match option {
        "overlap" => matches!(args.precond, Precond::Schwarz | Precond::Ras),
        "inner_steps" | "inner_rtol" => args.precond == Precond::Schur,
        "local" | "levels" | "fill" | "drop_tol" | "seed" => args.precond != Precond::None,
        _ => true,
    };
    if !read_by_precond {
        return Some(format!("--precond {}", name_of(args.precond)));
    }
    let arms = matches!(args.local, Local::Arms | Local::ArmsRbt);
    let read_by_local = match option {
        "levels" => arms || args.local == Local::Iluk,
        "fill" | "drop_tol" => arms || args.local == Local::Ilut,
        "seed" => args.local == Local::ArmsRbt,
        _ => true,
    };
    if read_by_local { None } else { Some(format!("--local {}", name_of(args.local))) }
}
