#!/usr/bin/env bash
# Searching many vectors of 768 halves with vfm-embed index: how long the index takes and how large it is, recall@10
# of 1,000 queries against --exact, how long a new process takes for one query when all is in the page cache and how
# much memory it has of its own, and how long it takes to add a shard, as a Markdown table. The vectors are made up, in
# clusters (tests/bench/many_vectors.cc): 3,584 bytes of shards each, so 36 GB for ten million.
# Usage: tests/bench/search_scale.sh [VECTORS [JOBS [BUILD_DIR]]]     (default: 1000000 2 build); shards in TMPDIR.
# With VFM_BUILT set nothing is built. The build needs FAISS.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
vectors=${1:-1000000} jobs=${2:-2} build=$(realpath "${3:-$root/build}")
[ -n "${VFM_BUILT:-}" ] || ninja -C "$build" tests/bench/many_vectors tools/vfm-embed >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 - "$root" "$build" "$vectors" "$jobs" <<'PY'
import collections, glob, json, os, subprocess, sys, time

root, build, vectors, jobs = *sys.argv[1:3], *map(int, sys.argv[3:])
embed = [f"{build}/tools/vfm-embed"]
index = ["index", "all.index", "-q", "-j", str(jobs)]
of_index = ["--index", "all.index", "-q", "-j", str(jobs)]

def timed(command, **more):
    begin, before = time.time(), os.times()
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True, **more).stdout
    used = os.times()
    return time.time() - begin, used[2] + used[3] - before[2] - before[3], out.decode().splitlines()

def make(folder, *rest):
    subprocess.run([f"{build}/tests/bench/many_vectors", folder, *map(str, rest)], check=True)
    return "\n".join(sorted(glob.glob(f"{folder}/*.tar"))).encode()

def matches(lines):
    keys = collections.defaultdict(list)
    for record in map(json.loads, lines):
        if record["kind"] == "match":
            keys[record["query"]].append((record["key"], record["score"]))
    return keys

shards = make("shards", vectors)
more = make("more", 10000, 768, 0, -(-vectors // 10000))
print(f"| {vectors:,} vectors of 768 halves, -j {jobs} | s | CPU s | |\n|---|---:|---:|---:|")
wall, cpu, _ = timed([*embed, *index, "-"], input=shards)
size = os.path.getsize("all.index")
print(f"| index made | {wall:.0f} | {cpu:.0f} | {size / vectors:.1f} bytes a vector |", flush=True)
queries = "shards/queries.npy"
wall, cpu, lines = timed([*embed, "search", queries, *of_index])
found = matches(lines)
print(f"| 1,000 queries | {wall:.1f} | {cpu:.1f} | |", flush=True)
wall, cpu, lines = timed([*embed, "search", queries, "--exact", *of_index])
exact = matches(lines)
hits = sum(len({key for key, _ in found[q]} & {key for key, _ in exact[q]}) for q in exact)
scores = dict(pair for q in exact for pair in [((q, key), score) for key, score in exact[q]])
assert len(exact) == 1000 and all(len(exact[q]) == 10 for q in exact)
assert all(scores.get((q, key), score) == score for q in found for key, score in found[q])
print(f"| the same, --exact | {wall:.1f} | {cpu:.1f} | recall@10 {hits / 10000:.4f} |", flush=True)

# One query: the first of them.
with open(queries, "rb") as file:
    data = file.read()
header = data[: data.index(b"\n") + 1].replace(b"(1000, 768)", b"(1, 768)   ")
with open("one.npy", "wb") as file:
    file.write(header + data[len(header) : len(header) + 1536])
one = [*embed, "search", "one.npy", *of_index]
timed(one)
times = [timed(one)[:2] for _ in range(5)]
print(f"| one query, a new process, in the page cache | {sorted(times)[2][0]:.2f} | {sorted(times)[2][1]:.2f} | ", end="")
memory = []
for _ in range(5):
    subprocess.run([f"{root}/tests/cli/own-memory", "memory", *one], check=True, stdout=subprocess.DEVNULL)
    with open("memory") as file:
        memory.append(int(file.read().split()[0]))
print(f"{max(memory) / 2**20:.0f} MiB of its own |", flush=True)
wall, cpu, lines = timed([*embed, *index, "-"], input=more)
record = next(record for record in map(json.loads, lines) if record["kind"] == "index")
assert record["added"] == 1 and record["vectors"] == vectors + 10000
print(f"| a shard of 10,000 added | {wall:.1f} | {cpu:.1f} | |")
PY
