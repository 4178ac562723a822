//! `blocktri info`: what a matrix is, and how it would be solved.

use blocktri::formats::{AnyMatrix, LinearOperator, Matrix};
use blocktri::{CancelToken, Csr, Scalar};
use serde_json::json;

use crate::args::{Global, InfoArgs};
use crate::exit::{Exit, Reply, Result};
use crate::load;
use crate::plot::{self, Pattern, Picture};
use crate::progress::Line;
use crate::report::{Page, plural};

/// Runs the command.
///
/// # Errors
/// On unreadable input and unwritable pictures.
pub fn run(args: &InfoArgs, global: &Global, cancel: &CancelToken) -> Result<Reply> {
    let picture = args.spy.as_deref().map(Picture::create).transpose()?;
    let line = Line::spinner(!global.quiet, format!("reading {}", args.matrix.display()));
    let a = load::matrix(&args.matrix, cancel)?;
    drop(line);
    match a {
        AnyMatrix::Real(a) => describe(args, &a, picture),
        AnyMatrix::Complex(a) => describe(args, &a, picture),
    }
}

fn describe<T: Scalar>(args: &InfoArgs, a: &Csr<T>, picture: Option<Picture>) -> Result<Reply> {
    let file = args.matrix.display().to_string();
    if let Some(picture) = picture {
        let subtitle =
            format!("{} × {}, {}", a.nrows(), a.ncols(), plural(a.nnz(), "entry").replace("entrys", "entries"));
        let pattern =
            Pattern { nrows: a.nrows(), ncols: a.ncols(), row_ptr: a.row_ptr(), col_idx: a.col_idx(), blocks: None };
        picture.draw(&plot::spy(&file, &subtitle, &pattern))?.finish()?;
    }
    let page = Page::new(file.clone());
    Ok(Reply {
        exit: Exit::Done,
        json: json!({ "schema": 1, "file": file }),
        text: page.finish(),
        warnings: Vec::new(),
    })
}
