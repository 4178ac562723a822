//! What each run must have done, judged against the exact answer.
//!
//! u is the unit roundoff of the scalar type, n the number of unknowns, κ = ρ(|A⁻¹||A|) the smallest condition number that
//! scaling can reach, d the error of x.
//!
//! | kind | finding |
//! |---|---|
//! | `panic` | anything that panics |
//! | `false-singular` | "singular" by any method with κ < 1/(n·u); "structurally" with a full structural rank |
//! | `false-success` | converged, and x not finite, or the exact backward error of a direct method above 64·n·u, or the exact relative residual of an iteration above its tolerance |
//! | `no-digit` | converged by a direct method without a warning, \|dᵢ\| > \|xᵢ\|/2 somewhere that the componentwise condition cannot excuse |
//! | `certificate` | a figure below half its exact value, or far above it |
//! | `rcond` | 100 times too large and above n·u |
//! | `warning` | "singular to working precision" with 1/κ above 100·n·u |
//! | `silence` | det(A) = 0, converged by a direct method, no warning |
//! | `unsolved` | `auto` without a converged answer with κ < 1/(n·u) and x inside the range of the type |
//! | `componentwise` | `auto` in mixed units: componentwise backward error above 32·n·u, and \|dᵢ\| beyond what it explains |
//! | `worse-than-zero` | an iteration that ends with a residual above that of x = 0 |
//! | `threads` | another kind of end on two threads (for iterations: of singularity) |
//! | `units` | another kind of end, or other iterations, for 2^α·A·y = 2^β·b |

use blocktri::{Blocks, Method, Outcome, Reorder, SingularKind, StopRule};

use crate::exact::{Known, Measures, Truth, Wide, measure};
use crate::family::Family;
use crate::run::{Answer, Class, End, Task, rtol};
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

    /// The facts of a system that is regular beyond doubt: κ < 1/(n·u).
    fn regular(&self) -> Option<&Known> {
        self.truth.solution.as_ref().filter(|known| known.scaled_condition.to_f64() * self.nu() < 1.0)
    }

    /// All that is wrong with one run.
    pub fn judge(&self, task: &Task, end: &End) -> Vec<Finding> {
        let mut findings = Vec::new();
        let auto = task.options.method == Method::Auto;
        match end {
            End::Panic(text) => findings.push(finding("panic", text.clone())),
            End::Singular(kind, text) => findings.extend(self.false_singular(*kind, text)),
            End::Answer(answer) => self.judge_answer(task, answer, &mut findings),
            End::Refused(text) | End::Failed(text) => {
                if let Some(known) = self.regular()
                    && (text.contains("matrix is singular") || text.contains("matrix is structurally singular"))
                {
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
            let bound = rtol(self.system.kind) * 1.05 + 4.0 * u;
            if task.options.stop_rule == StopRule::Residual && exact.relative_residual > bound {
                let detail = format!(
                    "relative residual {:.1e}, reported {:.1e}, after {} iterations",
                    exact.relative_residual, answer.certificate.relative_residual, answer.iterations
                );
                findings.push(finding("false-success", detail));
            }
            return;
        }
        if exact.backward_error > 64.0 * nu {
            let detail = format!(
                "backward error {:.1e}, reported {:.1e}, by {}",
                exact.backward_error, answer.certificate.backward_error, answer.method
            );
            findings.push(finding("false-success", detail));
        }
        let Some(known) = self.truth.solution.as_ref() else { return };
        let lost = |i: &usize| {
            let (error, x) = (known.error(*i, answer.x[*i]), known.x[*i]);
            error > x * Wide::new(0.5) && known.component[*i] * Wide::new(1e3 * nu) < x
        };
        // A component may be lost in one that is far larger: `auto` alone promises every component.
        let largest = known.x.iter().copied().fold(Wide::ZERO, Wide::max);
        let auto = task.options.method == Method::Auto;
        if answer.warnings.is_empty()
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
        let figures = [
            ("relative residual", c.relative_residual, exact.relative_residual, exact.resolution),
            ("backward error", c.backward_error, exact.backward_error, 1.0),
            ("componentwise backward error", c.componentwise_backward_error, exact.componentwise, 1.0),
        ];
        figures.into_iter().find_map(|(name, reported, exact, resolution)| {
            // Nobody needs a residual to the last digit of u.
            let low = exact > 2.0 * reported + 2.0 * nu;
            let high = !(reported <= 8.0 * exact + 8.0 * nu * resolution);
            (low || high).then(|| {
                let detail = format!("{name} reported as {reported:.1e} is {exact:.1e}");
                finding(if low { "certificate-low" } else { "certificate-high" }, detail)
            })
        })
    }

    fn judge_condition(&self, answer: &Answer) -> Option<Finding> {
        let nu = self.nu();
        let warned = answer.warnings.iter().any(|w| w.contains("singular to working precision"));
        let Some(known) = self.truth.solution.as_ref() else {
            let silent = answer.outcome == Outcome::Converged && answer.warnings.is_empty();
            return (silent && answer.rcond.is_none_or(|r| r > 10.0 * nu)).then(|| {
                let detail = format!("singular, solved by {} with rcond {:?}", answer.method, answer.rcond);
                finding("silence", detail)
            });
        };
        let scaled = Wide::new(1.0) / known.scaled_condition;
        if warned && scaled.to_f64() > 100.0 * nu {
            return Some(finding("warning", format!("{:?}; condition {}", answer.warnings, condition(known))));
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
    let shift = 2f64.powi((beta - alpha) / 2);
    let shifted = |v: f64| v * shift * shift;
    let differ = one.x.iter().flatten().zip(twin.x.iter().flatten()).any(|(x, y)| shifted(*x) != *y);
    differ.then(|| finding("units-digits", format!("{units}: x has other digits")))
}

/// Whether the twin is a fair one: nothing leaves the range.
pub fn has_twin(system: &System, truth: &Truth) -> bool {
    let Some(known) = &truth.solution else { return false };
    let reach = if is_single(system.kind) { 20.0 } else { 200.0 };
    let b = system.b.iter().map(|v| Wide::new(v[0]).max(Wide::new(v[1])));
    let small =
        [&truth.a, &known.x].into_iter().flatten().copied().chain(b).all(|v| v.is_zero() || v.log2().abs() < reach);
    small && known.scaled_condition.to_f64() * unit_roundoff(system.kind) * (system.n as f64) < 1.0
}

fn condition(known: &Known) -> String {
    format!("{:.1e} after scaling", known.scaled_condition.to_f64())
}
