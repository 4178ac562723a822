"""Two ranks of blocktri-mpi beside one, method by method: seconds of set-up and solve, and how much of them is communication.

    cargo build --release && cargo build --release -p bt-mpi --features mpi --benches
    python3 crates/bt-mpi/benches/two_ranks.py [--rounds 5] [--ranks 1 2] [--only TEXT] [--json FILE]

A rank has one thread. Of each method the least of several rounds, all numbers of ranks in turns; seconds are those of the slowest rank, communication is
that of the rank with most of it, and includes waiting for the other. Reading is not counted.
"""

import argparse
import datetime
import glob
import json
import os
import platform
import subprocess
import tempfile
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release"
# What `blocktri generate` is asked for.
SYSTEMS = {
    "box": ["poisson3d", "--nx", "80"],
    "band": ["band-random", "--n", "400000", "--kl", "8", "--ku", "8", "--dominance", "0.6"],
    "blocks": ["block-random", "--n", "65536", "--blocks", "16", "--dominance", "1.5"],
}
# Name, system, options.
METHODS = [
    ("CG", "box", ["--method", "cg", "--precond", "none"]),
    ("CG, block Jacobi, IC(0)", "box", ["--method", "cg", "--local", "ic0"]),
    ("GMRES(30), block Jacobi, ILU(0)", "box", ["--method", "gmres", "--restart", "30", "--local", "ilu0"]),
    ("GMRES(30), restricted Schwarz, ILU(0)", "box", ["--method", "gmres", "--precond", "ras", "--overlap", "1", "--local", "ilu0"]),
    ("FGMRES(30), Schur, ILU(0)", "box", ["--method", "fgmres", "--precond", "schur", "--local", "ilu0"]),
    ("FGMRES(30), Schur, ARMS", "box", ["--method", "fgmres", "--precond", "schur", "--local", "arms"]),
    ("SPIKE, band", "band", ["--method", "spike"]),
    ("SPIKE, truncated, band", "band", ["--method", "spike-truncated"]),
    ("SPIKE, blocks", "blocks", ["--method", "spike", "--blocks", "16"]),
    ("HBISA, red-black", "blocks", ["--method", "hbisa-redblack", "--blocks", "16"]),
]


def mpirun(ranks, command):
    line = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *command]
    done = subprocess.run(line, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.decode().splitlines()[-1])


def seconds(run):
    return run["seconds"]["setup"] + run["seconds"]["solve"]


def commands(folder, only):
    """Name and command of each method; systems are made when they are needed."""
    for name, system, options in METHODS:
        if only not in name:
            continue
        file = Path(folder) / f"{system}.mtx"
        if not file.exists():
            subprocess.run([TARGET / "blocktri", "generate", *SYSTEMS[system], "-o", file, "--quiet"], check=True)
        yield name, [TARGET / "blocktri-mpi", "solve", file, *options, "--json"]
    lines = [path for path in glob.glob(str(TARGET / "deps" / "lines-*")) if os.access(path, os.X_OK)]
    if lines and only in "Lines":
        yield "Lines, 1024 of 2048 unknowns", [max(lines, key=os.path.getmtime)]


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--rounds", type=int, default=5)
    args.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    args.add_argument("--only", default="")
    args.add_argument("--json", type=Path)
    args = args.parse_args()
    table = []
    with tempfile.TemporaryDirectory() as folder:
        for name, command in commands(folder, args.only):
            found = [[mpirun(p, [str(word) for word in command]) for p in args.ranks] for _ in range(args.rounds)]
            best = [min(runs, key=seconds) for runs in zip(*found)]
            row = {"method": name, "rounds": args.rounds, "runs": []}
            for p, run in zip(args.ranks, best):
                row["runs"].append(
                    {
                        "ranks": p,
                        "iterations": run["iterations"],
                        **{step: run["seconds"][step] for step in ("setup", "solve")},
                        "communication": run["per_rank"]["communication"]["most"],
                    }
                )
            cells = [f"{seconds(run):.3f} ({run['per_rank']['communication']['most']:.3f})" for run in best]
            steps = ", ".join(str(run["iterations"]) for run in best if run["iterations"] is not None) or "–"
            print(f"| {name} | {steps} | {' | '.join(cells)} | {seconds(best[0]) / seconds(best[-1]):.2f} |", flush=True)
            table.append(row)
    if args.json:
        processor = (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, check=False)
        about = {
            "date": datetime.date.today().isoformat(),
            "machine": platform.machine(),
            "processor": next(processor, "unknown"),
            "cores": os.cpu_count(),
            "commit": commit.stdout.decode().strip(),
        }
        args.json.write_text(json.dumps({"about": about, "table": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
