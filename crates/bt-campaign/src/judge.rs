//! What each run must have done, judged against the exact answer.
//!
//! u is the unit roundoff of the scalar type, n the number of unknowns, κ = ρ(|A⁻¹||A|) the smallest condition number that
//! scaling can reach, d the error of x.
//!
//! | kind | finding |
//! |---|---|
//! | `panic` | anything that panics |
//! | `false-singular` | "singular" by any method with κ < 1/(n·u); "structurally" with a full structural rank |
//! | `false-success` | converged, and x not finite, or the exact backward error of a direct method above 64·n·u, or the exact relative residual of an iteration above its tolerance; near the bottom of the range also what the smallest number of the type is worth |
//! | `no-digit` | converged by a direct method without a warning, \|dᵢ\| > \|xᵢ\|/2 somewhere that the componentwise condition cannot excuse |
//! | `certificate` | a figure below half its exact value, or far above it |
//! | `rcond` | 100 times too large and above n·u |
//! | `warning` | "singular to working precision" with an rcond above 100·n·u once rows and columns are of one size |
//! | `silence` | det(A) = 0, converged by a direct method, no warning |
//! | `unsolved` | `auto` without a converged answer with κ < 1/(n·u) and x inside the range of the type |
//! | `componentwise` | `auto` in mixed units: componentwise backward error above 32·n·u, and \|dᵢ\| beyond what it explains |
//! | `worse-than-zero` | an iteration that ends with a residual above that of x = 0 |
//! | `threads` | another kind of end on two threads (for iterations: of singularity) |
//! | `units` | another kind of end, or other iterations, for 2^α·A·y = 2^β·b |

use blocktri::{Blocks, Note, Outcome, Reorder, SingularKind};
use bt_formats::ScalarKind;

use crate::exact::{Known, Measures, Truth, Wide, measure};
use crate::family::Family;
use crate::run::{Answer, Class, End, Task, by_updates, rtol};
use crate::system::{System, is_single, unit_roundoff};

/// What is wrong with a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Kind, from the table above.
    pub kind: &'static str,
    /// Sentence with figures.
    pub detail: String,
}

fn finding(kind: &'static str, detail: String) -> Finding {
    Finding { kind, detail }
}

/// A system and what is true of it.
pub struct Case<'a> {
    /// The system.
    pub system: &'a System,
    /// Its facts.
    pub truth: &'a Truth,
}

impl Case<'_> {
    /// n·u.
    fn nu(&self) -> f64 {
        self.system.n as f64 * unit_roundoff(self.system.kind)
    }

    /// The facts of a system that is regular beyond doubt: κ < 1/(n·u), and A⁻¹ not beyond the range of the type once the rows
    /// and columns of A are of one size (a chain of tiny pivots has κ = 1, and a determinant that underflows).
    fn regular(&self) -> Option<&Known> {
        let bottom = if is_single(self.system.kind) { -100.0 } else { -960.0 };
        let known = self.truth.solution.as_ref()?;
        let inside = known.equilibrated_rcond.log2() > bottom;
        (inside && known.scaled_condition.to_f64() * self.nu() < 1.0).then_some(known)
    }

    /// All that is wrong with one run.
    pub fn judge(&self, task: &Task, end: &End) -> Vec<Finding> {
        let mut findings = Vec::new();
        let auto = task.options.method.is_auto();
        match end {
            End::Panic(text) => findings.push(finding("panic", text.clone())),
            End::Singular(kind, text) => findings.extend(self.false_singular(*kind, text)),
            End::Answer(answer) => self.judge_answer(task, answer, &mut findings),
            End::Refused(text) | End::Failed(text) => {
                // "Singular or close to it" proves nothing, and does not say so.
                let proved = ["matrix is singular", "matrix is structurally singular"]
                    .iter()
                    .any(|claim| text.contains(claim) && !text.contains("singular or"));
                if let Some(known) = self.regular().filter(|_| proved) {
                    findings.push(finding("false-singular", format!("{text}; condition {}", condition(known))));
                }
            }
        }
        // Given blocks may not hold the matrix, a given order may not exist.
        let plain = task.options.blocks == Blocks::Detect && task.options.reorder == Reorder::Auto;
        if auto
            && end.class() != Class::Solved
            && !matches!(end, End::Panic(_))
            && (plain || !matches!(end, End::Refused(_)))
            && let Some(known) = self.regular()
            && self.in_range(known)
        {
            findings.push(finding("unsolved", format!("{}; condition {}", end.text(), condition(known))));
        }
        findings
    }

    fn false_singular(&self, kind: SingularKind, text: &str) -> Option<Finding> {
        if kind == SingularKind::Structural && self.truth.structural_rank == self.system.n {
            return Some(finding("false-singular", format!("{text}; the structural rank is full")));
        }
        let known = self.regular()?;
        Some(finding("false-singular", format!("{text}; condition {}", condition(known))))
    }

    /// Whether every xᵢ is zero or well inside the range of the type.
    fn in_range(&self, known: &Known) -> bool {
        let (low, high) = if is_single(self.system.kind) { (-100.0, 126.0) } else { (-960.0, 1022.0) };
        known.x.iter().all(|x| x.is_zero() || (x.log2() > low && x.log2() < high))
    }

    fn judge_answer(&self, task: &Task, answer: &Answer, findings: &mut Vec<Finding>) {
        let iterative = task.options.method.is_iterative();
        let converged = answer.outcome == Outcome::Converged;
        if let (Outcome::Breakdown(reason), Some(known)) = (answer.outcome, self.regular())
            && reason.to_string().contains("matrix is singular")
        {
            findings.push(finding("false-singular", format!("{reason}; condition {}", condition(known))));
        }
        if answer.x.iter().flatten().any(|v| !v.is_finite()) {
            if converged {
                findings.push(finding("false-success", "x is not finite".into()));
            }
            return;
        }
        let exact = measure(self.system, self.truth, &answer.x);
        if converged {
            self.judge_success(task, answer, &exact, findings);
        } else if iterative && exact.relative_residual > 1.0 + 1e-3 {
            let detail = format!("{}: relative residual {:.1e}", answer.outcome.name(), exact.relative_residual);
            findings.push(finding("worse-than-zero", detail));
        }
        findings.extend(self.judge_certificate(answer, &exact));
        if !iterative {
            findings.extend(self.judge_condition(answer));
        }
    }

    fn judge_success(&self, task: &Task, answer: &Answer, exact: &Measures, findings: &mut Vec<Finding>) {
        let u = unit_roundoff(self.system.kind);
        let nu = self.nu();
        if task.options.method.is_iterative() {
            let bound = rtol(self.system.kind) * 1.05 + 4.0 * u + 2.0 * exact.grain[0];
            if !by_updates(&task.options.method) && exact.relative_residual > bound {
                let detail = format!(
                    "relative residual {:.1e}, reported {:.1e}, after {} iterations",
                    exact.relative_residual, answer.certificate.relative_residual, answer.iterations
                );
                findings.push(finding("false-success", detail));
            }
            return;
        }
        if exact.backward_error > 64.0 * nu + 2.0 * exact.grain[1] {
            let detail = format!(
                "backward error {:.1e}, reported {:.1e}, by {}",
                exact.backward_error, answer.certificate.backward_error, answer.method
            );
            findings.push(finding("false-success", detail));
        }
        // Digits of numbers below the range are lost to everybody.
        let Some(known) = self.truth.solution.as_ref().filter(|known| self.in_range(known)) else { return };
        let lost = |i: &usize| {
            let (error, x) = (known.error(*i, answer.x[*i]), known.x[*i]);
            error > x * Wide::new(0.5) && known.component[*i] * Wide::new(1e3 * nu) < x
        };
        // Where a small change of A moves x so far that |A||x| grows, all digits may go with it.
        let n = self.system.n;
        let moved = |i: usize| {
            let change: Wide = (0..n).map(|j| self.truth.a[i * n + j] * known.component[j]).sum();
            change * Wide::new(1e3 * nu) > known.bound[i]
        };
        let steady = !(0..n).any(moved);
        // A component may be lost in one that is far larger: `auto` alone promises every component.
        let largest = known.x.iter().copied().fold(Wide::ZERO, Wide::max);
        let auto = task.options.method.is_auto();
        if answer.warnings.is_empty()
            && steady
            && let Some(i) = (0..self.system.n).filter(|&i| auto || known.x[i] == largest).find(lost)
        {
            let detail = format!(
                "x[{i}] = {:?} by {}, relative error {:.1e}, condition {:.1e}, componentwise backward error {:.1e}",
                answer.x[i],
                answer.method,
                (known.error(i, answer.x[i]) / known.x[i]).to_f64(),
                (known.component[i] / known.x[i]).to_f64(),
                exact.componentwise
            );
            findings.push(finding("no-digit", detail));
        }
        // Where nothing but zeros determines xᵢ, any rounding before it is a componentwise backward error of 1.
        let far = |i: &usize| {
            let component = known.component[*i];
            !component.is_zero() && known.error(*i, answer.x[*i]) > component * Wide::new(32.0 * nu)
        };
        if auto
            && self.system.family == Family::Units
            && self.regular().is_some()
            && exact.componentwise > 32.0 * nu
            && let Some(i) = (0..self.system.n).find(far)
        {
            let detail = format!(
                "componentwise backward error {:.1e} by {}; error of x[{i}] / (|A⁻¹|(|A||x| + |b|)) {:.1e}",
                exact.componentwise,
                answer.method,
                (known.error(i, answer.x[i]) / known.component[i]).to_f64()
            );
            findings.push(finding("componentwise", detail));
        }
    }

    /// Reported figures against exact ones.
    fn judge_certificate(&self, answer: &Answer, exact: &Measures) -> Option<Finding> {
        let nu = self.nu() + 4.0 * unit_roundoff(self.system.kind);
        let c = &answer.certificate;
        let largest = |v: &[[f64; 2]]| v.iter().flatten().fold(0.0f64, |m, v| m.max(v.abs()));
        let bottom = if is_single(self.system.kind) { -100f64 } else { -960f64 }.exp2();
        let tiny = [&self.system.b, &answer.x].iter().any(|v| largest(v) > 0.0 && largest(v) < bottom);
        let figures = [
            ("relative residual", c.relative_residual, exact.relative_residual, exact.resolution),
            ("backward error", c.backward_error, exact.backward_error, 1.0),
            ("componentwise backward error", c.componentwise_backward_error, exact.componentwise, 1.0),
        ];
        figures.into_iter().find_map(|(name, reported, exact, resolution)| {
            // Nobody needs a residual to the last digit of u, nor one of numbers below the range.
            let low = exact > 2.0 * reported + 2.0 * nu;
            let excused = reported <= 8.0 * exact + 8.0 * nu * resolution || (tiny && reported.is_finite());
            let high = !excused;
            (low || high).then(|| {
                let detail = format!("{name} reported as {reported:.1e} is {exact:.1e}");
                finding(if low { "certificate-low" } else { "certificate-high" }, detail)
            })
        })
    }

    fn judge_condition(&self, answer: &Answer) -> Option<Finding> {
        let nu = self.nu();
        let warned = answer.warnings.iter().any(|warning| {
            matches!(
                warning,
                Note::SingularToPrecision { .. } | Note::SingularButExact { .. } | Note::SumsToZero { .. }
            )
        });
        let Some(known) = self.truth.solution.as_ref() else {
            let silent = answer.outcome == Outcome::Converged && answer.warnings.is_empty();
            return (silent && answer.rcond.is_none_or(|r| r > 10.0 * nu)).then(|| {
                let detail = format!("singular, solved by {} with rcond {:?}", answer.method, answer.rcond);
                finding("silence", detail)
            });
        };
        let scaled = Wide::new(1.0) / known.scaled_condition;
        if warned && known.equilibrated_rcond.to_f64() > 100.0 * nu {
            let detail =
                format!("{:?}; rcond {:.1e} after scaling", answer.warnings, known.equilibrated_rcond.to_f64());
            return Some(finding("warning", detail));
        }
        let bound = 100.0 * known.rcond.max(scaled).to_f64().max(nu);
        let reported = answer.rcond.filter(|r| !(*r <= bound))?;
        let detail = format!("rcond {:.1e} reported as {reported:.1e} by {}", known.rcond.to_f64(), answer.method);
        Some(finding("rcond", detail))
    }
}

/// One and two threads.
pub fn judge_threads(task: &Task, one: &End, two: &End) -> Option<Finding> {
    let (a, b) = (one.class(), two.class());
    let differ =
        if task.options.method.is_iterative() { (a == Class::Singular) != (b == Class::Singular) } else { a != b };
    differ.then(|| finding("threads", format!("one thread: {}; two: {}", one.text(), two.text())))
}

/// A system and its twin in other units.
pub fn judge_twins((alpha, beta): (i32, i32), one: &End, twin: &End) -> Option<Finding> {
    let units = format!("A times 2^{alpha}, b times 2^{beta}");
    if one.class() != twin.class() {
        return Some(finding("units", format!("{}; {units}: {}", one.text(), twin.text())));
    }
    let (End::Answer(one), End::Answer(twin)) = (one, twin) else { return None };
    if one.outcome != Outcome::Converged {
        return None;
    }
    if one.iterations != twin.iterations {
        let detail = format!("{} iterations; {units}: {}", one.iterations, twin.iterations);
        return Some(finding("units-iterations", detail));
    }
    let shift = beta - alpha;
    let shifted = |v: f64| v * 2f64.powi(shift / 2) * 2f64.powi(shift - shift / 2);
    let differ = one.x.iter().flatten().zip(twin.x.iter().flatten()).any(|(x, y)| shifted(*x) != *y);
    differ.then(|| finding("units-digits", format!("{units}: x has other digits")))
}

/// Whether a twin is a fair one: nothing leaves the range, squares of residuals included, and no row of zeros alone is refined
/// towards a residual that underflows to zero sooner in one unit than in another.
pub fn has_twin(system: &System, truth: &Truth) -> bool {
    let Some(known) = &truth.solution else { return false };
    let reach = if is_single(system.kind) { 8.0 } else { 100.0 };
    let b = system.b.iter().flatten().map(|&v| Wide::new(v));
    let moderate = |v: Wide| v.is_zero() || v.log2().abs() < reach;
    truth.a.iter().chain(&known.x).copied().chain(b).all(moderate)
        && known.bound.iter().all(|v| !v.is_zero())
        && known.scaled_condition.to_f64() * unit_roundoff(system.kind) * (system.n as f64) < 1.0
}

/// Exponent of the units of twins, see [`has_twin`].
pub fn twin_shift(kind: ScalarKind) -> i32 {
    if is_single(kind) { 16 } else { 60 }
}

fn condition(known: &Known) -> String {
    format!("{:.1e} after scaling", known.scaled_condition.to_f64())
}

#[cfg(test)]
mod tests {
    use blocktri::{Breakdown, Certificate, Method, SolveOptions};

    use super::*;

    fn task(method: &str) -> Task {
        let options = SolveOptions::by(method.parse::<Method>().unwrap());
        Task { label: method.into(), options, on_two_threads: false, twin: None }
    }

    fn answer(x: &[f64]) -> Answer {
        Answer {
            x: x.iter().map(|&v| [v, 0.0]).collect(),
            outcome: Outcome::Converged,
            method: "band-lu",
            iterations: 1,
            certificate: Certificate::default(),
            rcond: None,
            warnings: Vec::new(),
        }
    }

    fn kinds(system: &System, method: &str, end: &End) -> Vec<&'static str> {
        let truth = Truth::of(system);
        let case = Case { system, truth: &truth };
        case.judge(&task(method), end).iter().map(|f| f.kind).collect()
    }

    fn rotation() -> System {
        System::dense(2, &[1.0, 1.0, 1.0, -1.0], &[3.0, 1.0])
    }

    fn singular() -> System {
        System::dense(2, &[1.0, 1.0, 1.0, 1.0], &[2.0, 2.0])
    }

    #[test]
    fn a_right_answer_has_no_finding() {
        for method in ["auto", "band-lu", "gmres"] {
            assert_eq!(kinds(&rotation(), method, &End::Answer(answer(&[2.0, 1.0]))), [""; 0]);
        }
        assert_eq!(kinds(&rotation(), "band-lu", &End::Refused("no band".into())), [""; 0]);
    }

    #[test]
    fn singular_is_said_of_singular_matrices_only() {
        let end = |kind| End::Singular(kind, "the matrix is singular".into());
        let numerical = end(SingularKind::Numerical);
        assert_eq!(kinds(&rotation(), "band-lu", &numerical), ["false-singular"]);
        assert_eq!(kinds(&rotation(), "auto", &numerical), ["false-singular", "unsolved"]);
        assert_eq!(kinds(&singular(), "auto", &numerical), [""; 0]);
        assert_eq!(kinds(&singular(), "auto", &end(SingularKind::Structural)), ["false-singular"]);
        // 1 + 2⁻⁵² is regular, but no double-precision elimination has to see it.
        let near = System::dense(2, &[1.0, 1.0, 1.0, 1.0 + f64::EPSILON], &[2.0, 2.0]);
        assert_eq!(kinds(&near, "auto", &numerical), [""; 0]);
        let mut exhausted = answer(&[0.0, 0.0]);
        exhausted.outcome = Outcome::Breakdown(Breakdown::SingularOperator);
        exhausted.certificate = certificate(1.0, 1.0, 1.0);
        let said = Breakdown::SingularOperator.to_string().contains("matrix is singular");
        let expected: &[&str] = if said { &["false-singular"] } else { &[] };
        assert_eq!(kinds(&rotation(), "gmres", &End::Answer(exhausted)), expected);
    }

    fn certificate(relative_residual: f64, backward_error: f64, componentwise_backward_error: f64) -> Certificate {
        Certificate { relative_residual, backward_error, componentwise_backward_error }
    }

    #[test]
    fn chains_of_tiny_pivots_are_beyond_the_range() {
        // aᵢᵢ = 10⁻⁴⁰ under ones: A⁻¹ reaches 10^(40 n).
        let chain = |n: usize| {
            let entry = |k: usize| {
                if k / n == k % n {
                    1e-40
                } else if k / n + 1 == k % n {
                    1.0
                } else {
                    0.0
                }
            };
            System::dense(n, &(0..n * n).map(entry).collect::<Vec<_>>(), &vec![1.0; n])
        };
        let end = End::Singular(SingularKind::Numerical, "the matrix is singular".into());
        assert_eq!(kinds(&chain(4), "band-lu", &end), ["false-singular"]);
        assert_eq!(kinds(&chain(12), "band-lu", &end), [""; 0]);
    }

    #[test]
    fn success_needs_a_small_residual() {
        // x₁ is off by 10⁻⁶: residuals (1, 1)·10⁻⁶.
        let mut off = answer(&[2.0 + 1e-6, 1.0]);
        off.certificate = certificate(5e-7, 2e-7, 5e-7);
        assert_eq!(kinds(&rotation(), "band-lu", &End::Answer(off.clone())), ["false-success"]);
        assert_eq!(kinds(&rotation(), "gmres", &End::Answer(off.clone())), ["false-success"]);
        off.outcome = Outcome::Inaccurate;
        assert_eq!(kinds(&rotation(), "band-lu", &End::Answer(off.clone())), [""; 0]);
        assert_eq!(kinds(&rotation(), "auto", &End::Answer(off)), ["unsolved"]);
        assert_eq!(kinds(&rotation(), "gmres", &End::Answer(answer(&[f64::NAN, 0.0]))), ["false-success"]);
        let mut zero = answer(&[0.0, 0.0]);
        zero.certificate = certificate(f64::INFINITY, 1.0, 1.0);
        assert_eq!(kinds(&rotation(), "cg", &End::Answer(zero)), ["false-success", "certificate-high"]);
    }

    #[test]
    fn certificates_are_neither_low_nor_high() {
        let mut lying = answer(&[2.5, 1.0]);
        lying.outcome = Outcome::Inaccurate;
        lying.certificate = certificate(1e-3, 0.1, 0.15);
        assert_eq!(kinds(&rotation(), "band-lu", &End::Answer(lying)), ["certificate-low"]);
        let mut modest = answer(&[2.0, 1.0]);
        modest.certificate = certificate(1e-16, f64::INFINITY, 1e-16);
        assert_eq!(kinds(&rotation(), "band-lu", &End::Answer(modest.clone())), ["certificate-high"]);
        modest.certificate = certificate(1e-16, 2e-16, 3e-16);
        assert_eq!(kinds(&rotation(), "band-lu", &End::Answer(modest)), [""; 0]);
    }

    #[test]
    fn digits_are_lost_only_where_the_condition_says_so() {
        // Row 2 is in units of its own: a normwise backward error does not see it.
        let mut units = System::dense(2, &[1.0, 1.0, 1e-20, -1e-20], &[3.0, 1e-20]);
        units.family = Family::Units;
        let mut lost = answer(&[3.0, 0.0]);
        lost.certificate = certificate(1e-20, 1e-20, 1.0);
        assert_eq!(kinds(&units, "band-lu", &End::Answer(lost.clone())), [""; 0]);
        assert_eq!(kinds(&units, "auto", &End::Answer(lost.clone())), ["no-digit", "componentwise"]);
        lost.x = vec![[-5.0, 0.0], [8.0, 0.0]];
        assert_eq!(kinds(&units, "band-lu", &End::Answer(lost)), ["no-digit"]);
    }

    #[test]
    fn digits_may_go_with_those_of_a_larger_unknown() {
        // x₀ + 10⁴⁰ x₃ = 10⁴⁰ leaves x₀ open; x₁ = (x₀ + x₁ + x₂) − (x₀ + x₂) goes with it, although its own condition is small.
        let a = [1.0, 0.0, 0.0, 1e40, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        let system = System::dense(4, &a, &[1e40, 2.0, 1.0, 1.0]);
        let mut gone = answer(&[1e24, 1e8, -1e24, 1.0]);
        gone.certificate = certificate(1e-16, 1e-16, 1e-16);
        assert_eq!(kinds(&system, "auto", &End::Answer(gone)), [""; 0]);
    }

    #[test]
    fn conditions_and_warnings() {
        let warned = |x: &[f64]| {
            let mut answer = answer(x);
            answer.warnings = vec![Note::SingularToPrecision { rcond: 1e-17 }];
            End::Answer(answer)
        };
        assert_eq!(kinds(&rotation(), "band-lu", &warned(&[2.0, 1.0])), ["warning"]);
        assert_eq!(kinds(&singular(), "band-lu", &warned(&[1.0, 1.0])), [""; 0]);
        let mut silent = answer(&[1.0, 1.0]);
        silent.rcond = Some(1e-9);
        assert_eq!(kinds(&singular(), "band-lu", &End::Answer(silent.clone())), ["silence"]);
        silent.rcond = Some(1e-17);
        assert_eq!(kinds(&singular(), "band-lu", &End::Answer(silent.clone())), [""; 0]);
        let near = System::dense(2, &[1.0, 1.0, 1.0, 1.0 + f64::EPSILON], &[2.0, 2.0]);
        silent.rcond = Some(1e-9);
        silent.x = vec![[2.0, 0.0], [0.0, 0.0]];
        assert_eq!(kinds(&near, "band-lu", &End::Answer(silent)), ["rcond"]);
    }

    #[test]
    fn iterations_end_no_worse_than_they_began() {
        let mut worse = answer(&[2.0, 9.0]);
        worse.outcome = Outcome::IterationLimit;
        worse.certificate = certificate(3.6, 0.4, 0.7);
        assert_eq!(kinds(&rotation(), "gmres", &End::Answer(worse.clone())), ["worse-than-zero"]);
        assert_eq!(kinds(&rotation(), "band-lu", &End::Answer(worse)), [""; 0]);
    }

    #[test]
    fn overflowing_solutions_are_not_asked_of_auto() {
        let beyond = System::dense(1, &[1e-300], &[1e300]);
        let end = End::Failed("overflow".into());
        assert_eq!(kinds(&beyond, "auto", &end), [""; 0]);
        assert_eq!(kinds(&System::dense(1, &[1e-300], &[1.0]), "auto", &end), ["unsolved"]);
        assert_eq!(kinds(&beyond, "auto", &End::Panic("index".into())), ["panic"]);
    }

    #[test]
    fn twins_and_threads() {
        let end = |x: &[f64]| End::Answer(answer(x));
        let broken = End::Failed("breakdown".into());
        assert_eq!(judge_threads(&task("spike"), &end(&[1.0]), &end(&[1.0])), None);
        assert!(judge_threads(&task("spike"), &end(&[1.0]), &broken).is_some());
        assert_eq!(judge_threads(&task("gmres"), &end(&[1.0]), &broken), None);
        let kind = |one: &End, twin: &End| judge_twins((60, 0), one, twin).map(|f| f.kind);
        assert_eq!(kind(&end(&[3.0, 5.0]), &end(&[3.0 * (-60f64).exp2(), 5.0 * (-60f64).exp2()])), None);
        assert_eq!(kind(&end(&[3.0]), &end(&[3.0])), Some("units-digits"));
        assert_eq!(kind(&end(&[3.0]), &broken), Some("units"));
        let mut longer = answer(&[3.0 * (-60f64).exp2()]);
        longer.iterations = 2;
        assert_eq!(kind(&end(&[3.0]), &End::Answer(longer)), Some("units-iterations"));
        let odd = judge_twins((0, 61), &end(&[3.0]), &end(&[3.0 * 61f64.exp2()]));
        assert_eq!(odd, None);
    }
}
