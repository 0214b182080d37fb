#!/usr/bin/env bash
# Near duplicates among many vectors of 768 halves by vfm-shard --duplicate-method clusters: what it takes of the
# processors and of memory beside a run without, and with EXACT=1 also all pairs, and how many of their pairs clusters
# found, as a Markdown table. The vectors are made up, in clusters, one in ten with a cosine of 0.97 to 1 to another
# (tests/bench/many_vectors.cc). For ten million: 36 GB of shards, as much for datasets, and 15 GB for a while.
# With UNWRITTEN=1 clusters at 0.97 alone, and the run is stopped where its dataset's first shard is begun: duplicates
# are decided then, and the room of a dataset is not needed.
# Usage: [EXACT=1 | UNWRITTEN=1] tests/bench/duplicates_scale.sh [VECTORS [JOBS [BUILD_DIR]]]     (default: 200000 2 build); all in TMPDIR.
# With VFM_BUILT set nothing is built.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
vectors=${1:-200000} jobs=${2:-2} build=$(realpath "${3:-$root/build}")
[ -n "${VFM_BUILT:-}" ] || ninja -C "$build" tests/bench/many_vectors tools/vfm-shard >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 - "$root" "$build" "$vectors" "$jobs" "${EXACT:-}" "${UNWRITTEN:-}" <<'PY'
import glob, json, os, shutil, signal, subprocess, sys, time

root, build, vectors, jobs, exact, unwritten = *sys.argv[1:3], *map(int, sys.argv[3:5]), *sys.argv[5:7]
subprocess.run([f"{build}/tests/bench/many_vectors", "shards", str(vectors), "768", "0", "0", "0.1"], check=True)
shards = "\n".join(sorted(glob.glob("shards/*.tar"))).encode()

def until_written(command):
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as program:
        program.stdin.write(shards)
        program.stdin.close()
        while not glob.glob("set/train/*/.*.tar.tmp"):
            if program.poll() is not None:
                sys.exit("vfm-shard ended before it wrote a shard")
            time.sleep(0.1)
        program.send_signal(signal.SIGTERM)

def run(what, *options):
    begin, before = time.time(), os.times()
    command = [f"{root}/tests/cli/own-memory", "memory", f"{build}/tools/vfm-shard", "-q", "-j", str(jobs), *options]
    if unwritten:
        until_written([*command, "-o", "set"])
    else:
        subprocess.run([*command, "-o", "set"], input=shards, stdout=subprocess.DEVNULL, check=True)
    wall, used = time.time() - begin, os.times()
    cpu = used[2] + used[3] - before[2] - before[3]
    with open("memory") as file:
        memory, disk = map(int, file.read().split()[:2])
    summary = None
    if not unwritten:
        with open("set/dataset.json") as file:
            summary = json.load(file)
    pairs = {}
    if os.path.exists("set/duplicates.jsonl"):
        with open("set/duplicates.jsonl") as file:
            for record in map(json.loads, file):
                if record["kind"] == "near":
                    pairs[record["key"]] = (record["duplicate_of"], record["cosine"])
    shutil.rmtree("set")
    print(f"| {what} | {wall:.0f} | {cpu:.0f} | {memory / 2**20:.0f} | {disk / 2**20:.0f} | {len(pairs):,} |", flush=True)
    return pairs, summary

print(f"| {vectors:,} vectors of 768 halves, -j {jobs} | s | CPU s | memory of its own, MiB | temporary disk, MiB | pairs |")
print("|---|---:|---:|---:|---:|---:|")
if unwritten:
    run("0.97, clusters, until the dataset is written", "--duplicate-threshold", "0.97", "--duplicate-method", "clusters")
    sys.exit()
run("exact duplicates alone", "--keep-near-duplicates")
for threshold in "0.97", "0.99":
    near = ["--duplicate-threshold", threshold, "--duplicate-method"]
    found, summary = run(f"{threshold}, clusters", *near, "clusters")
    clusters = summary["near_duplicates"]["sets"][0]["clusters"]
    told = f"{clusters['count']} clusters, {clusters['looked_at'] / vectors:.1f} looked at by each vector; " \
           f"{clusters['cut'] / vectors:.4f} of them cut short; {clusters['decided']:,} pairs decided"
    if exact:
        want, _ = run(f"{threshold}, all pairs", *near, "exact")
        same = sum(found.get(key) == pair for key, pair in want.items())
        gone = sum(key in found for key in want)
        told += f"; of the exact pairs found {same / len(want):.4f}, dropped for another one {(gone - same) / len(want):.4f}"
        assert all(want[key][1] == found[key][1] for key in want if key in found and want[key][0] == found[key][0])
    print(f"| {told} | | | | | |", flush=True)
PY
