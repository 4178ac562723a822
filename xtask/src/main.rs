//! Chores of the workspace: `cargo xtask test`, `tidy`, `ci`, `docs`, `corpus`, `campaign`, `build-budget`, `outside`, `build-kernels`,
//! `pack-gpu`, `python`, `mpi`, `regret`, `performance`, `c`, `api`, `new-method`, `dist`.
//!
//! Each chore is one file (or folder) and one function that returns what is wrong as a [`Failure`]; only `main` turns
//! that into an exit code.

mod api;
mod budget;
mod c;
mod campaign;
mod ci;
mod corpus;
mod dist;
mod docs;
mod kernels;
mod mpi;
mod new_method;
mod outside;
mod pack;
mod performance;
mod process;
mod python;
mod regret;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use process::Failure;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the blocktri workspace")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run all tests and doctests, side by side where cargo-nextest is there
    Test(test::Options),
    /// Check what the compiler does not: floors, file headers, the code map, licences, the listings of public items
    Tidy,
    /// Run every check a change must pass, as `.ci/run` does
    Ci,
    /// Build the book into target/book and the API documentation into target/doc, or check the output that the pages show
    Docs(docs::Options),
    /// Solve every system of a folder with an index and judge the answers
    Corpus(corpus::Options),
    /// Solve random small systems by every method and judge the answers exactly
    Campaign(campaign::Options),
    /// Measure what building costs beside what it may cost: minutes
    BuildBudget(budget::Options),
    /// Build and run programs outside the workspace that depend on its crates
    Outside(outside::Options),
    /// Compile kernels/*.cu to kernels/ptx/*.ptx with clang-19, or check that they belong together
    BuildKernels(kernels::Options),
    /// Build the wheels of the Python packages, inspect them, run their tests
    Python(python::Options),
    /// Build bt-mpi and run its tests under mpirun, where there is an MPI
    Mpi,
    /// Check the C library's header and run its examples, or install it
    C(c::Options),
    /// Run every method that auto weighs, and set the time of auto against the fastest
    Regret(regret::Options),
    /// Write the tables of docs/performance.md from benches/results, check them, or collect results
    Performance(performance::Options),
    /// Compare docs/api, the listing of the public items of the crates, with the sources, or write it
    Api(api::Options),
    /// Make the skeleton of a direct method, and print what else belongs to one
    NewMethod(new_method::Options),
    /// Pack the command for this machine as the archive of a release
    Dist,
    /// Put the device tests into target/pack-gpu, to run on a machine with a GPU and no cargo
    PackGpu(pack::Options),
}

fn main() -> ExitCode {
    let done = match Args::parse().chore {
        Chore::Test(options) => test::run(&options),
        Chore::Tidy => tidy::run(),
        Chore::Ci => ci::run(),
        Chore::Docs(options) => docs::run(&options),
        Chore::Corpus(options) => corpus::run(&options),
        Chore::Campaign(options) => campaign::run(&options),
        Chore::BuildBudget(options) => budget::run(&options),
        Chore::Outside(options) => outside::run(options.source()),
        Chore::BuildKernels(options) => kernels::run(&options),
        Chore::Python(options) => python::run(options.build(), &mut test::Tally::default()),
        Chore::Mpi => mpi::run(&mut test::Tally::default()),
        Chore::C(options) => c::run(&options),
        Chore::Regret(options) => regret::run(&options),
        Chore::Performance(options) => performance::run(&options),
        Chore::Api(options) => api::run(&options),
        Chore::NewMethod(options) => new_method::run(&options),
        Chore::Dist => dist::run(),
        Chore::PackGpu(options) => pack::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(why)) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
