"""The Kalman smoother as one block-tridiagonal system, its covariances as a selected inverse.

A position is observed with noise of variance r; position and velocity move by F with noise of covariance Q. The smoothed path x solves
Λ x = Hᵀ y / r with a block-tridiagonal precision matrix Λ, and the diagonal of Λ⁻¹ holds the variances. The script checks the path
against a dense solve and the variances against a dense inverse.

    python kalman_smoother.py [picture.svg]
"""

from __future__ import annotations

import numpy as np
from support import picture

import blocktri as bt

STEPS, DT, R = 300, 0.1, 0.25


def main() -> None:
    rng = np.random.default_rng(1)
    f = np.array([[1.0, DT], [0.0, 1.0]])
    q = 0.5 * np.array([[DT**3 / 3, DT**2 / 2], [DT**2 / 2, DT]])
    h = np.array([[1.0, 0.0]])

    # A path, and what is seen of it.
    state, path = np.zeros(2), []
    for _ in range(STEPS):
        path.append(state[0])
        state = f @ state + rng.multivariate_normal([0, 0], q)
    truth = np.array(path)
    seen = truth + rng.normal(0, np.sqrt(R), STEPS)

    # Λ: what is seen, and both ends of every move.
    q_inverse = np.linalg.inv(q)
    diagonal = np.repeat((h.T @ h / R)[None], STEPS, axis=0)
    diagonal[1:] += q_inverse
    diagonal[:-1] += f.T @ q_inverse @ f
    diagonal[0] += np.eye(2)
    lower = np.repeat((-q_inverse @ f)[None], STEPS - 1, axis=0)
    precision = bt.BlockTridiagonal(lower, diagonal, lower.transpose(0, 2, 1))

    factors = bt.factorize(precision)
    x, report = factors.solve(np.kron(seen, h[0]) / R, return_report=True)
    deviation = np.sqrt(factors.selected_inverse().diagonal()[::2])
    print(f"{report.method}: backward error {report.backward_error:.1e}")
    print(f"root mean square error: seen {rms(seen - truth):.3f}, smoothed {rms(x[::2] - truth):.3f}")
    print(f"log-determinant of the precision: {factors.slogdet()[1]:.6f}")

    dense = precision.toarray()
    assert np.allclose(x, np.linalg.solve(dense, np.kron(seen, h[0]) / R))
    assert np.allclose(deviation**2, np.diag(np.linalg.inv(dense))[::2])
    assert rms(x[::2] - truth) < 0.6 * rms(seen - truth)

    t = DT * np.arange(STEPS)
    curves = {"seen": (t, seen), "smoothed": (t, x[::2]), "+ 2σ": (t, x[::2] + 2 * deviation), "− 2σ": (t, x[::2] - 2 * deviation)}
    picture("A smoothed path", "time", "position", curves)


def rms(values: np.typing.NDArray[np.float64]) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(values**2)))


if __name__ == "__main__":
    main()
