//! Systems whose scalar is known at run time only: what a caller from another language, or of a file, has in hand.
//!
//! This is the one place where the four types become one. [`AnyMatrix`], [`AnyColumns`] and [`AnySolver`] are enums over them with the same
//! methods as the typed values; [`AnyScalar`] leads from a typed value to the enum and back. The variants of f32, c32 and c64 exist with the
//! features of these names, so that a program compiles the methods of the scalars that it has and no others.

use bt_direct::{Given, Inertia, LogDet, SelectedInverse};
use bt_formats::{Csr, Monitor, Note, Op, Scalar, ScalarKind, SolveReport};
use bt_iter::Preconditioner;
use faer::{Mat, MatRef};

use crate::analyze::{Analysis, Explanation, analyze, explain};
use crate::candidate::Candidate;
use crate::direct::Direct;
use crate::error::Error;
use crate::method::Krylov;
use crate::options::SolveOptions;
use crate::precondition::precondition;
use crate::solution::{Answer, Solution};
use crate::solve::solve;
use crate::solver::Solver;
use crate::stored::StoredMatrix;

#[cfg(feature = "c32")]
use bt_formats::c32;
#[cfg(feature = "c64")]
use bt_formats::c64;

/// One enum over the scalars.
macro_rules! over_scalars {
    ($(#[$about:meta])* $name:ident, $of:ident) => {
        $(#[$about])*
        #[non_exhaustive]
        pub enum $name {
            /// Of f64.
            F64($of<f64>),
            /// Of f32.
            #[cfg(feature = "f32")]
            F32($of<f32>),
            /// Of complex f32.
            #[cfg(feature = "c32")]
            C32($of<c32>),
            /// Of complex f64.
            #[cfg(feature = "c64")]
            C64($of<c64>),
        }
    };
}

/// The same expression for the value of every variant.
macro_rules! each {
    ($any:expr, $name:ident($value:pat) => $body:expr) => {
        match $any {
            $name::F64($value) => $body,
            #[cfg(feature = "f32")]
            $name::F32($value) => $body,
            #[cfg(feature = "c32")]
            $name::C32($value) => $body,
            #[cfg(feature = "c64")]
            $name::C64($value) => $body,
        }
    };
}

over_scalars! {
    /// A matrix of any scalar, in the format that it was given in; see [`StoredMatrix`].
    ///
    /// ```
    /// use blocktri::faer::mat;
    /// use blocktri::{AnyColumns, AnyMatrix, AnySolver, Op, ScalarKind, SolveOptions};
    /// // [ 2 1   ]
    /// // [ 1 2 1 ]
    /// // [   1 2 ]
    /// let a = AnyMatrix::from_diagonals(&[1.0, 1.0], &[2.0, 2.0, 2.0], &[1.0, 1.0])?;
    /// assert_eq!((a.kind(), a.nrows(), a.nnz()), (ScalarKind::F64, 3, 7));
    /// // The same in LAPACK's band storage.
    /// let band = mat![[0.0, 1.0, 1.0], [2.0, 2.0, 2.0], [1.0, 1.0, 0.0]];
    /// assert_eq!(AnyMatrix::from_band(1, 1, band.as_ref())?.nnz(), 7);
    ///
    /// let solver = AnySolver::new(&a, &SolveOptions::default(), &mut ())?;
    /// let b = AnyColumns::F64(mat![[3.0], [4.0], [3.0]]);
    /// let answer = solver.solve(Op::Identity, &b)?;
    /// assert_eq!(answer.x, AnyColumns::F64(mat![[1.0], [1.0], [1.0]]));
    /// assert!(answer.report.certificate.backward_error < 1e-15);
    /// # Ok::<(), blocktri::Error>(())
    /// ```
    #[derive(Clone, Debug)]
    AnyMatrix, StoredMatrix
}

over_scalars! {
    /// Columns of any scalar: right-hand sides and solutions.
    #[derive(Clone, Debug, PartialEq)]
    AnyColumns, Mat
}

over_scalars! {
    /// A factored system of any scalar; see [`Solver`].
    AnySolver, Solver
}

over_scalars! {
    /// The blocks of A⁻¹ on and beside the diagonal, of any scalar; see [`SelectedInverse`].
    AnySelectedInverse, SelectedInverse
}

/// A preconditioner on the heap, which owns all that it reads.
type Boxed<T> = Box<dyn Preconditioner<T>>;

over_scalars! {
    /// A preconditioner of any scalar; see [`Preconditioner`].
    AnyPreconditioner, Boxed
}

/// A scalar with a variant in the enums of this module, for which this crate has been compiled: a program that calls these functions
/// need not compile the generic ones again.
pub trait AnyScalar: Scalar {
    /// See [`solve`].
    ///
    /// # Errors
    /// As [`solve`].
    fn solve(
        a: Given<'_, Self>,
        b: MatRef<'_, Self>,
        options: &SolveOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<Solution<Self>, Error>;
    /// See [`explain`].
    ///
    /// # Errors
    /// As [`explain`].
    fn explain(a: &Csr<Self>, options: &SolveOptions) -> Result<Explanation, Error>;
    /// See [`analyze`].
    ///
    /// # Errors
    /// As [`analyze`].
    fn analyze(a: &Csr<Self>) -> Result<Analysis, Error>;
    /// The variant of a matrix.
    fn matrix(a: StoredMatrix<Self>) -> AnyMatrix;
    /// The matrix, where it is of this scalar.
    fn of_matrix(a: &AnyMatrix) -> Option<&StoredMatrix<Self>>;
    /// The variant of columns.
    fn columns(x: Mat<Self>) -> AnyColumns;
    /// The columns, where they are of this scalar.
    fn of_columns(x: &AnyColumns) -> Option<&Mat<Self>>;
    /// The columns, where they are of this scalar, for writing.
    fn of_columns_mut(x: &mut AnyColumns) -> Option<&mut Mat<Self>>;
    /// The solver, where it is of this scalar.
    fn of_solver(solver: &AnySolver) -> Option<&Solver<Self>>;
    /// The preconditioner, where it is of this scalar.
    fn of_preconditioner(m: &mut AnyPreconditioner) -> Option<&mut Box<dyn Preconditioner<Self>>>;
}

macro_rules! any_scalar {
    ($scalar:ty, $variant:ident) => {
        // Where f64 is the only scalar every pattern matches.
        #[allow(unreachable_patterns, clippy::unnecessary_wraps)]
        impl AnyScalar for $scalar {
            fn solve(
                a: Given<'_, Self>,
                b: MatRef<'_, Self>,
                options: &SolveOptions,
                monitor: &mut dyn Monitor,
            ) -> Result<Solution<Self>, Error> {
                solve(a, b, options, monitor)
            }
            fn explain(a: &Csr<Self>, options: &SolveOptions) -> Result<Explanation, Error> {
                explain(a, options)
            }
            fn analyze(a: &Csr<Self>) -> Result<Analysis, Error> {
                analyze(a)
            }
            fn matrix(a: StoredMatrix<Self>) -> AnyMatrix {
                AnyMatrix::$variant(a)
            }
            fn of_matrix(a: &AnyMatrix) -> Option<&StoredMatrix<Self>> {
                match a {
                    AnyMatrix::$variant(a) => Some(a),
                    _ => None,
                }
            }
            fn columns(x: Mat<Self>) -> AnyColumns {
                AnyColumns::$variant(x)
            }
            fn of_columns(x: &AnyColumns) -> Option<&Mat<Self>> {
                match x {
                    AnyColumns::$variant(x) => Some(x),
                    _ => None,
                }
            }
            fn of_columns_mut(x: &mut AnyColumns) -> Option<&mut Mat<Self>> {
                match x {
                    AnyColumns::$variant(x) => Some(x),
                    _ => None,
                }
            }
            fn of_solver(solver: &AnySolver) -> Option<&Solver<Self>> {
                match solver {
                    AnySolver::$variant(solver) => Some(solver),
                    _ => None,
                }
            }
            fn of_preconditioner(m: &mut AnyPreconditioner) -> Option<&mut Box<dyn Preconditioner<Self>>> {
                match m {
                    AnyPreconditioner::$variant(m) => Some(m),
                    _ => None,
                }
            }
        }
    };
}

any_scalar!(f64, F64);
#[cfg(feature = "f32")]
any_scalar!(f32, F32);
#[cfg(feature = "c32")]
any_scalar!(c32, C32);
#[cfg(feature = "c64")]
any_scalar!(c64, C64);

/// Two values that must be of one scalar are not.
fn of_another_scalar(what: &str, expected: ScalarKind, found: ScalarKind) -> Error {
    Error::Usage { message: format!("{what} is of {found}, the matrix of {expected}") }
}

impl AnyMatrix {
    /// See [`StoredMatrix::from_diagonals`].
    ///
    /// # Errors
    /// As there.
    pub fn from_diagonals<T: AnyScalar>(lower: &[T], diag: &[T], upper: &[T]) -> Result<Self, Error> {
        StoredMatrix::from_diagonals(lower, diag, upper).map(T::matrix)
    }

    /// See [`StoredMatrix::from_band`].
    ///
    /// # Errors
    /// As there.
    pub fn from_band<T: AnyScalar>(kl: usize, ku: usize, ab: MatRef<'_, T>) -> Result<Self, Error> {
        StoredMatrix::from_band(kl, ku, ab).map(T::matrix)
    }

    /// See [`StoredMatrix::from_blocks`].
    ///
    /// # Errors
    /// As there.
    pub fn from_blocks<T: AnyScalar>(
        lower: &[MatRef<'_, T>],
        diag: &[MatRef<'_, T>],
        upper: &[MatRef<'_, T>],
    ) -> Result<Self, Error> {
        StoredMatrix::from_blocks(lower, diag, upper).map(T::matrix)
    }

    /// The scalar.
    pub fn kind(&self) -> ScalarKind {
        fn kind<T: Scalar>(_: &StoredMatrix<T>) -> ScalarKind {
            T::KIND
        }
        each!(self, AnyMatrix(a) => kind(a))
    }
    /// Rows.
    pub fn nrows(&self) -> usize {
        each!(self, AnyMatrix(a) => a.given().shape().0)
    }
    /// Columns.
    pub fn ncols(&self) -> usize {
        each!(self, AnyMatrix(a) => a.given().shape().1)
    }
    /// See [`StoredMatrix::nnz`].
    pub fn nnz(&self) -> usize {
        each!(self, AnyMatrix(a) => a.nnz())
    }
    /// Structure, orders, candidates; see [`analyze`].
    ///
    /// # Errors
    /// As [`analyze`], and [`StoredMatrix::rows`].
    pub fn analyze(&self) -> Result<Analysis, Error> {
        each!(self, AnyMatrix(a) => analyze(a.rows()?))
    }
    /// Solves A·X = B in one go; see [`solve`].
    ///
    /// # Errors
    /// As [`solve`], and [`Error::Usage`] when `b` is of another scalar.
    pub fn solve(
        &self,
        b: &AnyColumns,
        options: &SolveOptions,
        monitor: &mut dyn Monitor,
    ) -> Result<AnySolution, Error> {
        fn typed<T: AnyScalar>(
            a: &StoredMatrix<T>,
            b: &AnyColumns,
            options: &SolveOptions,
            monitor: &mut dyn Monitor,
        ) -> Result<AnySolution, Error> {
            let b = T::of_columns(b).ok_or_else(|| of_another_scalar("the right-hand side", T::KIND, b.kind()))?;
            // Iterations work on rows, which are made once.
            let a = if options.method.factoring().is_some() { a.given() } else { a.rows()?.into() };
            Ok(solve(a, b.as_ref(), options, monitor)?.map(T::columns))
        }
        each!(self, AnyMatrix(a) => typed(a, b, options, monitor))
    }
}

impl AnyColumns {
    /// The scalar.
    pub fn kind(&self) -> ScalarKind {
        match self {
            Self::F64(_) => ScalarKind::F64,
            #[cfg(feature = "f32")]
            Self::F32(_) => ScalarKind::F32,
            #[cfg(feature = "c32")]
            Self::C32(_) => ScalarKind::C32,
            #[cfg(feature = "c64")]
            Self::C64(_) => ScalarKind::C64,
        }
    }
}

/// [`Solution`] of any scalar.
pub type AnySolution = Answer<AnyColumns>;

/// det A = `sign`·exp(`log_abs`) of any scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnyLogDet {
    /// Real and imaginary part of the sign, or phase.
    pub sign: (f64, f64),
    /// log|det A|.
    pub log_abs: f64,
}

impl AnyLogDet {
    fn of<T: Scalar>(log_det: LogDet<T>) -> Self {
        use bt_formats::RealScalar;
        Self { sign: (log_det.sign.re().to_f64(), log_det.sign.im().to_f64()), log_abs: log_det.log_abs }
    }
}

impl AnySolver {
    /// Chooses and factors; see [`Solver::new`].
    ///
    /// # Errors
    /// As [`Solver::new`].
    pub fn new(a: &AnyMatrix, options: &SolveOptions, monitor: &mut dyn Monitor) -> Result<Self, Error> {
        Ok(match a {
            AnyMatrix::F64(a) => Self::F64(Solver::new(a.given(), options, monitor)?),
            #[cfg(feature = "f32")]
            AnyMatrix::F32(a) => Self::F32(Solver::new(a.given(), options, monitor)?),
            #[cfg(feature = "c32")]
            AnyMatrix::C32(a) => Self::C32(Solver::new(a.given(), options, monitor)?),
            #[cfg(feature = "c64")]
            AnyMatrix::C64(a) => Self::C64(Solver::new(a.given(), options, monitor)?),
        })
    }

    /// The scalar.
    pub fn kind(&self) -> ScalarKind {
        fn kind<T: Scalar>(_: &Solver<T>) -> ScalarKind {
            T::KIND
        }
        each!(self, AnySolver(solver) => kind(solver))
    }

    /// Rows of A.
    pub fn n(&self) -> usize {
        each!(self, AnySolver(solver) => solver.factors().n())
    }

    /// Solves op(A)·X = B; see [`Solver::solve_op`].
    ///
    /// # Errors
    /// As [`Solver::solve_op`], and [`Error::Usage`] when `b` is of another scalar.
    pub fn solve(&self, op: Op, b: &AnyColumns) -> Result<AnySolution, Error> {
        fn typed<T: AnyScalar>(solver: &Solver<T>, op: Op, b: &AnyColumns) -> Result<AnySolution, Error> {
            let found = T::of_columns(b).ok_or_else(|| of_another_scalar("the right-hand side", T::KIND, b.kind()))?;
            Ok(solver.solve_op(op, found.as_ref())?.map(T::columns))
        }
        each!(self, AnySolver(solver) => typed(solver, op, b))
    }

    /// Solves A·X = B into `x`; see [`Solver::solve_into`].
    ///
    /// # Errors
    /// As [`Solver::solve_into`], and [`Error::Usage`] when `b` or `x` is of another scalar.
    pub fn solve_into(&self, b: &AnyColumns, x: &mut AnyColumns) -> Result<SolveReport, Error> {
        fn typed<T: AnyScalar>(solver: &Solver<T>, b: &AnyColumns, x: &mut AnyColumns) -> Result<SolveReport, Error> {
            let given = T::of_columns(b).ok_or_else(|| of_another_scalar("the right-hand side", T::KIND, b.kind()))?;
            let kind = x.kind();
            let x = T::of_columns_mut(x).ok_or_else(|| of_another_scalar("the solution", T::KIND, kind))?;
            solver.solve_into(given.as_ref(), x.as_mut())
        }
        each!(self, AnySolver(solver) => typed(solver, b, x))
    }

    /// Factors new values; see [`Solver::refactor`].
    ///
    /// # Errors
    /// As [`Solver::refactor`], and [`Error::Usage`] when `a` is of another scalar.
    pub fn refactor(&mut self, a: &AnyMatrix, monitor: &mut dyn Monitor) -> Result<(), Error> {
        fn typed<T: AnyScalar>(solver: &mut Solver<T>, a: &AnyMatrix, monitor: &mut dyn Monitor) -> Result<(), Error> {
            let found = T::of_matrix(a).ok_or_else(|| of_another_scalar("the new matrix", T::KIND, a.kind()))?;
            solver.refactor(found.given(), monitor)
        }
        each!(self, AnySolver(solver) => typed(solver, a, monitor))
    }

    /// log|det A| and the sign.
    pub fn log_det(&self) -> AnyLogDet {
        each!(self, AnySolver(solver) => AnyLogDet::of(solver.log_det()))
    }

    /// See [`Solver::rcond`].
    pub fn rcond(&self) -> Option<f64> {
        each!(self, AnySolver(solver) => solver.rcond())
    }

    /// See [`Solver::inertia`].
    ///
    /// # Errors
    /// As [`Solver::inertia`].
    pub fn inertia(&self) -> Result<Inertia, Error> {
        each!(self, AnySolver(solver) => solver.inertia())
    }

    /// See [`Solver::selected_inverse`].
    ///
    /// # Errors
    /// As [`Solver::selected_inverse`].
    pub fn selected_inverse(&self) -> Result<AnySelectedInverse, Error> {
        Ok(match self {
            Self::F64(solver) => AnySelectedInverse::F64(solver.selected_inverse()?),
            #[cfg(feature = "f32")]
            Self::F32(solver) => AnySelectedInverse::F32(solver.selected_inverse()?),
            #[cfg(feature = "c32")]
            Self::C32(solver) => AnySelectedInverse::C32(solver.selected_inverse()?),
            #[cfg(feature = "c64")]
            Self::C64(solver) => AnySelectedInverse::C64(solver.selected_inverse()?),
        })
    }

    /// The method that factored A.
    pub fn method(&self) -> Direct {
        each!(self, AnySolver(solver) => solver.method())
    }

    /// What `auto` counted; see [`Solver::explain`].
    pub fn explain(&self) -> &[Candidate] {
        each!(self, AnySolver(solver) => solver.explain())
    }

    /// Entries of the factors and their bytes.
    pub fn size(&self) -> (usize, usize) {
        let stats = each!(self, AnySolver(solver) => solver.factors().stats());
        (stats.nnz, stats.bytes)
    }
}

impl AnyPreconditioner {
    /// The preconditioner of a Krylov method made from A as it stands, with the sentences on what was made; see [`precondition`].
    ///
    /// # Errors
    /// As [`precondition`].
    pub fn new(a: &AnyMatrix, given: &Krylov, options: &SolveOptions) -> Result<(Self, Vec<Note>), Error> {
        Ok(match a {
            AnyMatrix::F64(a) => precondition(a.rows()?, given, options).map(|(m, notes)| (Self::F64(m), notes))?,
            #[cfg(feature = "f32")]
            AnyMatrix::F32(a) => precondition(a.rows()?, given, options).map(|(m, notes)| (Self::F32(m), notes))?,
            #[cfg(feature = "c32")]
            AnyMatrix::C32(a) => precondition(a.rows()?, given, options).map(|(m, notes)| (Self::C32(m), notes))?,
            #[cfg(feature = "c64")]
            AnyMatrix::C64(a) => precondition(a.rows()?, given, options).map(|(m, notes)| (Self::C64(m), notes))?,
        })
    }

    /// Size n.
    pub fn n(&self) -> usize {
        each!(self, AnyPreconditioner(m) => m.n())
    }
    /// Stored values, and bytes.
    pub fn size(&self) -> (usize, usize) {
        each!(self, AnyPreconditioner(m) => (m.nnz(), m.bytes()))
    }
    /// Name, as the command spells it.
    pub fn name(&self) -> &'static str {
        each!(self, AnyPreconditioner(m) => m.name())
    }
}

impl<T: AnyScalar> From<Csr<T>> for AnyMatrix {
    fn from(a: Csr<T>) -> Self {
        T::matrix(a.into())
    }
}

#[cfg(test)]
mod tests {
    use faer::mat;

    use super::*;

    #[test]
    fn a_band_reads_no_corner() {
        let nan = f64::NAN;
        let a = AnyMatrix::from_band(
            1,
            2,
            mat![[nan, nan, 5.0], [nan, 3.0, 4.0], [1.0, 1.0, 1.0], [2.0, 2.0, nan]].as_ref(),
        );
        let a = f64::of_matrix(a.as_ref().unwrap()).unwrap();
        assert_eq!(a.rows().unwrap().to_dense(), mat![[1.0, 3.0, 5.0], [2.0, 1.0, 4.0], [0.0, 2.0, 1.0]]);
    }

    #[test]
    fn an_erased_solver_answers_as_the_typed_one() {
        let typed = Csr::from_dense(mat![[4.0, 1.0, 0.0], [2.0, 5.0, 1.0], [0.0, 1.0, 3.0]].as_ref()).unwrap();
        let b = mat![[1.0], [2.0], [3.0]];
        let options = SolveOptions::default();
        let plain = Solver::new(&typed, &options, &mut ()).unwrap();
        let mut erased = AnySolver::new(&typed.clone().into(), &options, &mut ()).unwrap();
        for op in [Op::Identity, Op::Transpose, Op::Adjoint] {
            let expected = plain.solve_op(op, b.as_ref()).unwrap().x;
            assert_eq!(erased.solve(op, &AnyColumns::F64(b.clone())).unwrap().x, AnyColumns::F64(expected));
        }
        let mut x = AnyColumns::F64(Mat::zeros(3, 1));
        erased.solve_into(&AnyColumns::F64(b.clone()), &mut x).unwrap();
        assert_eq!(x, AnyColumns::F64(plain.solve(b.as_ref()).unwrap().x));
        assert_eq!(erased.rcond(), plain.rcond());
        assert_eq!(erased.log_det().log_abs, plain.log_det().log_abs);
        assert_eq!(erased.inertia().is_err(), plain.inertia().is_err());
        let identity = AnyMatrix::from_diagonals(&[0.0; 2], &[1.0; 3], &[0.0; 2]).unwrap();
        erased.refactor(&identity, &mut ()).unwrap();
        assert_eq!(erased.log_det(), AnyLogDet { sign: (1.0, 0.0), log_abs: 0.0 });
    }

    #[cfg(feature = "f32")]
    #[test]
    fn scalars_are_not_mixed() {
        let a = AnyMatrix::from_diagonals::<f64>(&[], &[1.0], &[]).unwrap();
        let b = AnyColumns::F32(mat![[1.0f32]]);
        let wrong = a.solve(&b, &SolveOptions::default(), &mut ()).unwrap_err();
        assert!(wrong.to_string().contains("the right-hand side is of"), "{wrong}");
    }
}
