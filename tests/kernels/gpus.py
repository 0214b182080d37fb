# SPDX-License-Identifier: Apache-2.0
"""GPUs by their published figures: how many blocks of a kernel fit, and how fast its code can be at most.

Nothing here is measured by us. Sources: CUDA C++ Programming Guide, "Technical specifications per compute capability" and
"Throughput of native arithmetic instructions"; NVIDIA's data sheets of A100 80 GB SXM, H100 SXM and H200 SXM; arXiv
2402.13499 for Hopper's mma.sync and for the latency of memory.

The model. One trip of a warp through its region (sass.py) keeps each part of a multiprocessor busy for so many clocks:

    issue    instructions / 4                    four schedulers, an instruction a clock each
    fp32     (fp32 + imad) / 4, at least imad / 2    64 lanes on sm_80: / 2
    alu      alu / 2                             64 lanes: integers, logic, comparisons
    special  2 * special                         16 lanes: MUFU and conversions
    fp64     fp64 / 2                            32 lanes on sm_80: / 1
    shared   shared_bytes / 128 + global         the load/store unit: 128 bytes or one access a clock
    memory   32 * bytes / (bytes a clock)        its share of the memory's rate; each access counts as one of memory
    tensor   HMMA * (2 on sm_80, 1 on sm_90), as mma.sync: / 0.629 on sm_90

A kernel without tensor instructions reaches at most memory / max(all of them) of the memory's rate, and no more than it
keeps under way: (threads resident) * flight / (2 * latency) bytes a clock. Twice the latency, since that of a memory under
load is about so much more than that of an idle one: judged, not published.
A kernel with them reaches of the tensor cores' peak at most tensor / max(all of them), as mma.sync ("overlapped"), and if a
scheduler's warps never overlap, tensor / (tensor as mma.sync + issue of all other instructions) ("in turns"). The truth lies
between; with two warps a scheduler it is near the second. Memory is left out: tiles that blocks share come from the cache.
Not in it: the tail of a grid, bank conflicts, barriers, the cache. What is read again from the cache counts as memory's.
"""
import pathlib
import re
from dataclasses import dataclass

from sass import RESERVED


@dataclass
class Gpu:
    name: str
    architecture: str
    processors: int
    clock: float  # Hz, the one that the peak is given for
    memory: float  # bytes a second
    tensor: float  # FLOP/s, bf16, dense
    latency: int  # clocks, of an idle memory

    @property
    def bytes_a_clock(self):
        return self.memory / self.processors / self.clock


TABLE = pathlib.Path(__file__).resolve().parents[2] / "lib/models/gpu.cc"
PEAKS = {name: round(float(peak)) * 1e12 for name, peak in re.findall(r'\{"([^"]+)", ([0-9.]+)\}', TABLE.read_text())}
GPUS = [
    Gpu("A100", "sm_80", 108, 1.41e9, 2.039e12, PEAKS["A100"], 466),
    Gpu("H100", "sm_90a", 132, 1.83e9, 3.35e12, PEAKS["H100"], 479),
    Gpu("H200", "sm_90a", 132, 1.83e9, 4.8e12, PEAKS["H200"], 479),
]
SHARED = {"sm_80": 164 << 10, "sm_90a": 228 << 10}  # bytes of a multiprocessor
REGISTERS, WARPS, BLOCKS = 65536, 64, 32  # of a multiprocessor, on both
MMA_SYNC = {"sm_80": 1.0, "sm_90a": 0.629}  # of the tensor cores' peak


def blocks_resident(architecture, threads, registers, shared):
    """Blocks of a multiprocessor at once. Registers are handed out to warps 256 at a time, warps four at a time."""
    warps = -(-threads // 32)
    by_registers = REGISTERS // (-(-registers * 32 // 256) * 256) // 4 * 4 // warps
    by_shared = SHARED[architecture] // (-(-(shared + RESERVED) // 128) * 128)
    return min(by_registers, by_shared, WARPS // warps, BLOCKS)


def clocks(f, architecture, bytes_a_clock):
    """{part: clocks that it is busy for a warp's trip}; f: a kernel's figures."""
    hopper = architecture != "sm_80"
    return {
        "issue": f["issue"] / 4,
        "fp32": max((f["fp32"] + f["imad"]) / (4 if hopper else 2), f["imad"] / 2),
        "alu": f["alu"] / 2,
        "special": 2 * f["special"],
        "fp64": f["fp64"] / (2 if hopper else 1),
        "shared": f["shared_bytes"] / 128 + f["global"],
        "memory": 32 * f["bytes"] / bytes_a_clock,
        "tensor": f["hmma"] * (1 if hopper else 2) / MMA_SYNC[architecture],
    }


@dataclass
class Prediction:
    least: float  # of the limit
    most: float
    limit: str  # "tensor" or "memory"
    by: str  # what is busy longest


def predict(f, gpu):
    """None for a kernel that neither multiplies on tensor cores nor touches memory in its region."""
    busy = clocks(f, gpu.architecture, gpu.bytes_a_clock)
    slowest = max(busy, key=busy.get)
    if f["hmma"]:
        del busy["memory"]
        slowest = max(busy, key=busy.get)
        peak = busy["tensor"] * MMA_SYNC[gpu.architecture]
        turns = busy["tensor"] + (f["issue"] - f["hmma"]) / 4
        return Prediction(peak / turns, peak / busy[slowest], "tensor", slowest)
    if not f["bytes"]:
        return None
    most, by = busy["memory"] / busy[slowest], slowest
    under_way = f["threads"] * f["blocks"] * f["flight"] / (2 * gpu.latency) / gpu.bytes_a_clock
    if f["flight"] and under_way < most:
        most, by = under_way, "latency"
    return Prediction(most, most, "memory", by)
