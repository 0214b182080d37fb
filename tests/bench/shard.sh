#!/bin/sh
# Speed of shards: writing against cp of the same bytes, reading by index from the page cache.
# Usage: tests/bench/shard.sh [BUILD_DIR [SCRATCH_DIR]]
# SPDX-License-Identifier: Apache-2.0
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}
scratch=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/vfm-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
bench=$build/tests/bench/shard_bench
ninja -C "$build" tests/bench/shard_bench >/dev/null

now() { date +%s.%N; }

# write_and_copy NAME SAMPLES BYTES: the best of three of each, both until the bytes are on the disk.
write_and_copy() {
  tar=$scratch/$1.tar
  best_write=999 best_copy=999
  for _ in 1 2 3; do
    rm -f "$tar"
    sync
    seconds=$("$bench" write "$tar" "$2" "$3")
    best_write=$(echo "$seconds $best_write" | awk '{print ($1 < $2) ? $1 : $2}')
    sync
    begin=$(now)
    cp "$tar" "$scratch/copy"
    sync "$scratch/copy"
    best_copy=$(echo "$(now) $begin $best_copy" | awk '{t = $1 - $2; print (t < $3) ? t : $3}')
    rm -f "$scratch/copy"
  done
  bytes=$(stat -c %s "$tar")
  echo "$bytes $best_write $best_copy $2" | awk '{
    printf "  write %26.0f samples/s %8.2f GB/s\n", $4 / $2, $1 / $2 / 1e9
    printf "  cp %47.2f GB/s\n  write / cp %39.2f\n", $1 / $3 / 1e9, $3 / $2 }'
}

echo "40,000 samples of a 1 KB npy, json and txt"
write_and_copy small 40000 1024
"$bench" read "$scratch/small.tar"
echo "800 samples of a 1 MB mp4, json and txt"
write_and_copy large 800 1000000
"$bench" read "$scratch/large.tar"
