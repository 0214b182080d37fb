#!/usr/bin/env bash
# Training on many samples: how long it is to the first step of examples/recipes/tiny.yaml, from the beginning, and
# resumed in the middle and at the end of an epoch, each with an index that is not in the page cache; and the most
# memory that a rank has of its own (anonymous pages and those that it wrote to), as a Markdown table. Each sample is
# read from a shard; all shards are one tar, under many names. 16 GB of disk for 10^9 samples.
# Usage: tests/bench/scale.sh [SAMPLES [RANKS [BUILD_DIR]]]     (default: 100000000 1 build)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
samples=${1:-100000000} ranks=${2:-1} build=$(realpath "${3:-$root/build}")
ninja -C "$build" tests/bench/many_samples tools/vfm-train >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SECONDS=0
"$build/tests/bench/many_samples" "$work/latents" "$samples"
printf '%s samples, made in %s s; index.bin has %s bytes a sample\n\n' "$samples" "$SECONDS" \
  "$(stat -c %s "$work/latents/train/index.bin" | awk -v n="$samples" '{ printf "%.2f", $1 / n }')"
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
python3 - "$root" "$build" "$work" "$samples" "$ranks" <<'PY'
import ctypes, glob, json, os, subprocess, sys, time

root, build, work, samples, ranks = *sys.argv[1:4], *map(int, sys.argv[4:])
blocks = -(-samples // 16384)

class Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]

def move_to(epoch, block, pack):
    """The newest checkpoint, as if it had been written there."""
    folder = sorted(glob.glob(f"{work}/run/checkpoints/step-*"))[-1]
    train = json.load(open(f"{folder}/train.json"))
    train["state"].update(epoch=epoch, block=block, pack=pack)
    text = json.dumps(train).encode()
    open(f"{folder}/train.json", "wb").write(text)
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_128bits.restype, library.XXH3_128bits.argtypes = Hash, [ctypes.c_char_p, ctypes.c_size_t]
    digest = library.XXH3_128bits(text, len(text))
    lines = [f"{digest.high:016x}{digest.low:016x}  train.json" if line.endswith("  train.json") else line
             for line in open(f"{folder}/COMPLETE").read().splitlines()]
    open(f"{folder}/COMPLETE", "w").write("\n".join(lines) + "\n")

def forget(path):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)

def own_memory(pid):
    try:
        lines = open(f"/proc/{pid}/smaps_rollup").read().splitlines()
        if "vfm-train" not in os.readlink(f"/proc/{pid}/exe"):
            return 0
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Dirty:", "Swap:")))

def run(steps):
    """Seconds to the first step that is logged, and the most memory of a rank."""
    forget(f"{work}/latents/train/index.bin")
    metrics = f"{work}/run/metrics.jsonl"
    before = os.path.getsize(metrics) if os.path.exists(metrics) else 0
    command = [f"{build}/tools/vfm-train", f"{root}/examples/recipes/tiny.yaml", "--data", f"{work}/latents", "-o",
               f"{work}/run", "--device", "cpu", f"train.steps={steps}", "train.log_every=1", "validation.every=0",
               "schedule.warmup=0", f"data.packs={4 * ranks}"]
    if ranks > 1:
        command = ["mpirun", "-n", str(ranks), *command]
    begin, first, most = time.time(), None, 0
    with open(f"{work}/err", "w") as err:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err)
        while process.poll() is None:
            if first is None and os.path.exists(metrics) and os.path.getsize(metrics) > before:
                first = time.time() - begin
            children = open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()
            most = max([most] + [own_memory(pid) for pid in [process.pid, *children]])
            time.sleep(0.02)
    if process.returncode:
        sys.exit(open(f"{work}/err").read())
    return first or time.time() - begin, most

print(f"| first step | seconds, {ranks} rank{'s' if ranks > 1 else ''} | a rank's own memory, MiB |\n|---|---:|---:|")
for name, place, steps in (("of the run", None, 4), ("in the middle of an epoch", (0, blocks // 2, 100), 8),
                           ("at the end of an epoch", (0, blocks - 1, 0), 12)):
    if place:
        move_to(*place)
    seconds, memory = run(steps)
    print(f"| {name} | {seconds:.2f} | {memory / 2**20:.0f} |", flush=True)
PY
