//! The extension module `blocktri._blocktri`: arrays in, arrays out, and no numerics. What users call is Python around it
//! (`python/src/blocktri`), which checks arguments and gives them the types and shapes that the functions here take.

mod arrays;
mod banded;
mod blocks;
mod errors;
mod files;
mod iterate;
mod matrix;
mod options;
mod queue;
mod report;
mod run;
mod slot;
mod solver;

use bt_formats::HugePages;
use pyo3::prelude::*;

#[global_allocator]
static MEMORY: HugePages = HugePages;

/// The compiled part of blocktri.
#[pymodule(gil_used = false)]
mod _blocktri {
    #[pymodule_export]
    use super::banded::{solve_band, solve_hermitian_band, solve_periodic};
    #[pymodule_export]
    use super::blocks::solve_blocks;
    #[pymodule_export]
    use super::files::{read, write_columns, write_matrix};
    #[pymodule_export]
    use super::iterate::{Preconditioner, iterate};
    #[pymodule_export]
    use super::matrix::Matrix;
    #[pymodule_export]
    use super::options::{method_names, preconditioner_names};
    #[pymodule_export]
    use super::queue::{plan, stationary};
    #[pymodule_export]
    use super::report::Report;
    #[pymodule_export]
    use super::run::forked;
    #[pymodule_export]
    use super::solver::{Solver, solve};

    use super::PyModuleMethods;

    #[pymodule_init]
    fn init(module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
