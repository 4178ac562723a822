"""The device benchmarks beside cuSPARSE on the same GPU: the two in turns, the least seconds of several rounds.

    cargo xtask pack-gpu
    python3 target/pack-gpu/versus_cusparse.py [--rounds 3] [--cases REGEX] [--json FILE]

Needs CuPy and NVIDIA's libcusparse beside it; the folder that `pack-gpu` fills is all it needs of this project. Sizes are those of
`benches/device.rs`, all in f64. Seconds are those of one call with data on the device and its workspace there; the solvers of cuSPARSE that
overwrite their matrix are given a fresh one each time, outside of the time.
"""

import argparse
import ctypes
import datetime
import glob
import json
import os
import subprocess
import tempfile
from ctypes import byref, c_double, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path

import cupy as cp

R64F, INDEX_32, CALLS = 1, 2, 20


def library():
    """libcusparse: the loader's, or the one of NVIDIA's package for Python."""
    import nvidia

    names = ["libcusparse.so.12", "libcusparse.so"]
    for root in nvidia.__path__:
        names += sorted(glob.glob(f"{root}/**/libcusparse.so.*", recursive=True))
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise SystemExit(f"none of {names} can be loaded")


class CuSparse:
    """The calls timed here, by their names in cuSPARSE; a call that fails ends the program with its status."""

    def __init__(self):
        self.library = library()
        self.handle = c_void_p()
        self.call("cusparseCreate", byref(self.handle))
        self.workspace = None

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise SystemExit(f"{name}: status {status}")

    def reserve(self, name, *arguments):
        """A workspace as large as the query `name` says."""
        size = c_size_t()
        self.call(name, self.handle, *arguments, byref(size))
        self.workspace = cp.empty(max(size.value, 1), dtype=cp.uint8)
        return pointer(self.workspace)


def pointer(array):
    return c_void_p(array.data.ptr)


def seconds(call, before=lambda: None):
    """The least time of a call, by events of the device."""
    start, end = cp.cuda.Event(), cp.cuda.Event()
    least = float("inf")
    for _ in range(CALLS + 2):
        before()
        start.record()
        call()
        end.record()
        end.synchronize()
        least = min(least, cp.cuda.get_elapsed_time(start, end) / 1e3)
    return least


def copy(_):
    x = cp.ones(1 << 27)
    y = cp.empty_like(x)
    return {"cudaMemcpy": seconds(lambda: cp.cuda.runtime.memcpyAsync(y.data.ptr, x.data.ptr, x.nbytes, 3, 0))}


def product(cusparse, side=216):
    """y = A x for seven points on a cube, compressed rows with indices of 32 bits."""
    n = side**3
    i = cp.arange(n, dtype=cp.int64)
    at = [i // (side * side), i // side % side, i % side]
    columns, inside = [], []
    for axis, shift in ((0, -side * side), (1, -side), (2, -1), (None, 0), (2, 1), (1, side), (0, side * side)):
        columns.append(i + shift)
        if axis is None:
            inside.append(cp.ones(n, dtype=bool))
        else:
            inside.append(at[axis] > 0 if shift < 0 else at[axis] + 1 < side)
    columns, inside = cp.stack(columns, 1), cp.stack(inside, 1)
    rows = cp.concatenate([cp.zeros(1, cp.int64), cp.cumsum(inside.sum(1))]).astype(cp.int32)
    indices = columns[inside].astype(cp.int32)
    del columns, inside, at, i
    values = cp.ones(len(indices))
    x, y = cp.ones(n), cp.zeros(n)
    a, vx, vy = c_void_p(), c_void_p(), c_void_p()
    sizes = (c_int64(n), c_int64(n), c_int64(len(indices)))
    data = (pointer(rows), pointer(indices), pointer(values))
    cusparse.call("cusparseCreateCsr", byref(a), *sizes, *data, INDEX_32, INDEX_32, 0, R64F)
    cusparse.call("cusparseCreateDnVec", byref(vx), c_int64(n), pointer(x), R64F)
    cusparse.call("cusparseCreateDnVec", byref(vy), c_int64(n), pointer(y), R64F)
    one, zero = c_double(1), c_double(0)
    result = {}
    for algorithm, name in ((2, "SpMV, CSR_ALG1"), (3, "SpMV, CSR_ALG2")):
        words = (0, byref(one), a, vx, byref(zero), vy, R64F, algorithm)
        workspace = cusparse.reserve("cusparseSpMV_bufferSize", *words)
        cusparse.call("cusparseSpMV_preprocess", cusparse.handle, *words, workspace)
        result[name] = seconds(lambda: cusparse.call("cusparseSpMV", cusparse.handle, *words, workspace))
    return result


def single(cusparse, n=1 << 25):
    """One system; ours has random diagonals, these are dominant: either solver pivots by fixed rules, at the same cost."""
    lower, diagonal, upper = -cp.ones(n), cp.full(n, 2.5), -cp.ones(n)
    lower[0] = upper[-1] = 0
    b = cp.ones(n)
    x = b.copy()
    result = {}
    for name in ("gtsv2", "gtsv2_nopivot"):
        words = (n, 1, pointer(lower), pointer(diagonal), pointer(upper), pointer(x), n)
        workspace = cusparse.reserve(f"cusparseD{name}_bufferSizeExt", *words)
        solve = lambda: cusparse.call(f"cusparseD{name}", cusparse.handle, *words, workspace)
        result[name] = seconds(solve, before=lambda: cp.copyto(x, b))
    return result


def strided(cusparse, rows=512, systems=65536):
    n = rows * systems
    lower, diagonal, upper, x = -cp.ones(n), cp.full(n, 2.5), -cp.ones(n), cp.ones(n)
    lower[::rows] = 0
    upper[rows - 1 :: rows] = 0
    words = (rows, pointer(lower), pointer(diagonal), pointer(upper), pointer(x), systems, rows)
    workspace = cusparse.reserve("cusparseDgtsv2StridedBatch_bufferSizeExt", *words)
    solve = lambda: cusparse.call("cusparseDgtsv2StridedBatch", cusparse.handle, *words, workspace)
    return {"gtsv2StridedBatch": seconds(solve)}


def interleaved(cusparse, rows, systems):
    n = rows * systems
    fresh = [-cp.ones(n), cp.full(n, 2.5), -cp.ones(n), cp.ones(n)]
    fresh[0][:systems] = 0
    fresh[2][-systems:] = 0
    used = [array.copy() for array in fresh]

    def again():
        for to, array in zip(used, fresh):
            cp.copyto(to, array)

    result = {}
    for algorithm, name in ((0, "Thomas"), (1, "LU"), (2, "QR")):
        words = (algorithm, rows, *map(pointer, used), systems)
        workspace = cusparse.reserve("cusparseDgtsvInterleavedBatch_bufferSizeExt", *words)
        solve = lambda: cusparse.call("cusparseDgtsvInterleavedBatch", cusparse.handle, *words, workspace)
        result[f"gtsvInterleavedBatch, {name}"] = seconds(solve, before=again)
    return result


# What stands beside a case of the benchmarks, by criterion's name of it.
PEERS = {
    "floor/copy/134217728": copy,
    "product/csr/10077696": product,
    "direct/tridiagonal/33554432": single,
    "direct/interleaved/100000 x 64": lambda c: interleaved(c, 64, 100_000),
    "direct/interleaved/65536 x 512": lambda c: interleaved(c, 512, 65_536),
    "direct/strided/65536 x 512": strided,
}


def theirs():
    cusparse, result = CuSparse(), {}
    for case, peer in PEERS.items():
        result[case] = peer(cusparse)
        cp.get_default_memory_pool().free_all_blocks()
    return result


def ours(program, chosen):
    """The least time of every case of criterion that is chosen, a call each."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "REQUIRE_GPU": "1", "CRITERION_HOME": home}
        subprocess.run([program, "--bench", "--noplot", chosen], env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        result = {}
        for sample in Path(home).glob("**/new/sample.json"):
            case = json.loads((sample.parent / "benchmark.json").read_text())
            measured = json.loads(sample.read_text())
            least = min(t / i for t, i in zip(measured["times"], measured["iters"]))
            result[case["full_id"]] = {"blocktri": least / 1e9, "work": case["throughput"]}
        return result


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--cases", default="", help="a regular expression that criterion chooses by; those without a peer too")
    words.add_argument("--json")
    words.add_argument("--bench", default=str(Path(__file__).parent / "bench-device"), help="the program of benches/device.rs")
    options = words.parse_args()
    cases = {}
    for _ in range(options.rounds):
        for half in (theirs(), ours(options.bench, options.cases)):
            for case, values in half.items():
                row = cases.setdefault(case, {})
                for name, value in values.items():
                    row[name] = value if name == "work" else min(value, row.get(name, float("inf")))
    bandwidth = 2 * 8 * 2**27 / cases["floor/copy/134217728"]["cudaMemcpy"]
    print(f"cudaMemcpy {bandwidth / 1e12:.2f} TB/s\n| case | microseconds | of copy | cuSPARSE, microseconds | ratio |\n|---|---|---|---|---|")
    for case, row in cases.items():
        if "blocktri" not in row:
            continue
        peers = {name: value for name, value in row.items() if name not in ("blocktri", "work")}
        moved = row["work"]
        share = f"{moved['Bytes'] / row['blocktri'] / bandwidth:.2f}" if moved and "Bytes" in moved else ""
        beside = ", ".join(f"{name} {value * 1e6:.1f}" for name, value in peers.items())
        ratio = f"{min(peers.values()) / row['blocktri']:.2f}" if peers else ""
        print(f"| {case} | {row['blocktri'] * 1e6:.1f} | {share} | {beside} | {ratio} |")
    if options.json:
        properties = cp.cuda.runtime.getDeviceProperties(0)
        machine = {
            "gpu": properties["name"].decode(),
            "driver is for CUDA": cp.cuda.runtime.driverGetVersion(),
            "cusparse of CUDA": cp.cuda.runtime.runtimeGetVersion(),
        }
        date = datetime.date.today().isoformat()
        Path(options.json).write_text(json.dumps({"date": date, **machine, "rounds": options.rounds, "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()
