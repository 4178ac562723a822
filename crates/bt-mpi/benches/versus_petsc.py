"""blocktri-mpi beside PETSc over ranks: FGMRES(30) on the same systems, the two in turns, the least seconds of several rounds.

    apt install python3-petsc4py python3-scipy openmpi-bin
    cargo build --release -p bt-mpi --features mpi
    /usr/bin/python3 crates/bt-mpi/benches/versus_petsc.py [--rounds 5] [--ranks 1 2] [--sizes 64 100] [--json FILE] [A.mtx ...]

Both are asked for a residual of 1e-8 of the right-hand side b = A·x*, preconditioned from the right. Seconds are those of set-up and solve, as each
program tells them for its slowest rank; reading is not counted. Without files the systems are a seven-point convection-diffusion problem, coupled all
through, on grids of as many points a side.
"""

import argparse
import datetime
import glob
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

# Where Debian has petsc4py.
sys.path += glob.glob("/usr/lib/petscdir/petsc3*/x86_64-linux-gnu-real/lib/python3/dist-packages")

RTOL = 1e-8
RESTART = 30
# Options of blocktri-mpi, and those of PETSc for the same preconditioner.
PRECONDITIONERS = {
    "block Jacobi, ILU(0)": (["--precond", "block-jacobi"], ["-pc_type", "bjacobi", "-sub_pc_type", "ilu"]),
    "restricted Schwarz, overlap 1, ILU(0)": (
        ["--precond", "ras", "--overlap", "1"],
        ["-pc_type", "asm", "-pc_asm_overlap", "1", "-sub_pc_type", "ilu"],
    ),
}


def petsc(file, options):
    """Run by each rank: prints seconds, iterations and the residual that a product afterwards finds."""
    import petsc4py

    petsc4py.init([sys.argv[0], *options])
    from petsc4py import PETSc
    import numpy as np
    import scipy.sparse as sp

    comm = PETSc.COMM_WORLD
    p, rank = comm.getSize(), comm.getRank()
    a = sp.load_npz(file)
    n = a.shape[0]
    low, high = n * rank // p, n * (rank + 1) // p
    own = a[low:high]
    local = PETSc.Mat().createAIJ(
        ((high - low, n), (high - low, n)), csr=(own.indptr, own.indices, own.data), comm=comm
    )
    x, b = local.createVecs()
    b.setArray((own @ (1.0 + ((7 * np.arange(n)) % 11) / 11)))
    ksp = PETSc.KSP().create(comm)
    ksp.setOperators(local)
    ksp.setType("fgmres")
    ksp.setGMRESRestart(RESTART)
    ksp.setPCSide(PETSc.PC.Side.RIGHT)
    ksp.setTolerances(rtol=RTOL, atol=0, max_it=10_000)
    ksp.setFromOptions()
    comm.barrier()
    start = PETSc.Log.getTime()
    ksp.setUp()
    # Local factors are made in the first application otherwise.
    ksp.setUpOnBlocks()
    setup = PETSc.Log.getTime() - start
    ksp.solve(b, x)
    total = PETSc.Log.getTime() - start
    r = b.duplicate()
    local.mult(x, r)
    r.aypx(-1, b)
    residual = r.norm() / b.norm()
    slowest = []
    for seconds in (setup, total):
        one_a_rank = PETSc.Vec().createMPI((1, p), comm=comm)
        one_a_rank.setArray([seconds])
        slowest.append(one_a_rank.max()[1])
    if rank == 0:
        seconds = {"setup": slowest[0], "solve": slowest[1] - slowest[0]}
        found = {"seconds": seconds, "iterations": ksp.getIterationNumber(), "relative_residual": residual}
        print(json.dumps({**found, "version": ".".join(map(str, PETSc.Sys.getVersion()))}))


def grid(k):
    """Seven points on k³, with wind along the fastest index."""
    import scipy.sparse as sp

    one, step = sp.identity(k), sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], (k, k))
    wind = sp.diags([-0.3, 0.3], [-1, 1], (k, k))
    return (
        sp.kron(sp.kron(one, one), step + wind) + sp.kron(sp.kron(one, step), one) + sp.kron(sp.kron(step, one), one)
    ).tocsr()


def mpirun(ranks, command):
    line = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *command]
    done = subprocess.run(line, stdout=subprocess.PIPE, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return json.loads(done.stdout.decode().splitlines()[-1])


def compare(name, file, compressed, ranks, rounds, program):
    """A row for each preconditioner: the rounds in turns, the least of each."""
    for precond, (ours, theirs) in PRECONDITIONERS.items():
        solve = [program, "solve", str(file), "--method", "fgmres", "--local", "ilu0", "--rtol", str(RTOL), "--json"]
        peer = ["/usr/bin/python3", __file__, "--petsc", str(compressed), *theirs]
        found = [(mpirun(ranks, solve + ours), mpirun(ranks, peer)) for _ in range(rounds)]
        row = {"case": name, "precond": precond, "ranks": ranks, "rounds": rounds}
        for side, runs in zip(("blocktri", "petsc"), zip(*found)):
            best = min(runs, key=lambda run: run["seconds"]["setup"] + run["seconds"]["solve"])
            row[side] = {
                "setup": best["seconds"]["setup"],
                "solve": best["seconds"]["solve"],
                "iterations": best["iterations"],
                "relative_residual": best["relative_residual"],
            }
        seconds = lambda side: row[side]["setup"] + row[side]["solve"]
        row["ratio"] = seconds("petsc") / seconds("blocktri")
        row["petsc_version"] = found[0][1]["version"]
        print(
            f"{name:<24} {precond:<38} {ranks} ranks  "
            f"{seconds('blocktri'):.3f} s ({row['blocktri']['iterations']} its)  "
            f"PETSc {seconds('petsc'):.3f} s ({row['petsc']['iterations']} its)  ratio {row['ratio']:.2f}",
            flush=True,
        )
        yield row


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--petsc":
        return petsc(sys.argv[2], sys.argv[3:])
    import scipy.io
    import scipy.sparse as sp

    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("files", nargs="*", type=Path)
    args.add_argument("--rounds", type=int, default=5)
    args.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    args.add_argument("--sizes", type=int, nargs="+", default=[64, 100])
    args.add_argument("--program", default=os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "release/blocktri-mpi"))
    args.add_argument("--json", type=Path)
    args = args.parse_args()
    table = []
    with tempfile.TemporaryDirectory() as folder:
        systems = [(file.stem, file, sp.csr_matrix(scipy.io.mmread(file))) for file in args.files]
        if not systems:
            for k in args.sizes:
                file, a = Path(folder) / f"grid-{k}.mtx", grid(k)
                scipy.io.mmwrite(file, a)
                systems.append((f"convection-diffusion {k}³", file, a))
        for name, file, a in systems:
            compressed = Path(folder) / f"{file.stem}.npz"
            sp.save_npz(compressed, a, compressed=False)
            for ranks in args.ranks:
                table += compare(name, file, compressed, ranks, args.rounds, args.program)
    if args.json:
        about = {
            "date": datetime.date.today().isoformat(),
            "machine": platform.machine(),
            "processor": next(
                (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown"
            ),
            "cores": os.cpu_count(),
            "commit": subprocess.run(
                ["git", "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, check=False
            ).stdout.decode().strip(),
            "command": " ".join(["/usr/bin/python3", *sys.argv]),
        }
        args.json.write_text(json.dumps({"about": about, "table": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
