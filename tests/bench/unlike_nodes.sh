#!/usr/bin/env bash
# How near unlike nodes come to the best split of three stages (vfm-slurm(7), UNLIKE NODES): 8 nodes of kind A and 8 of B, each
# with examples/slurm/node.sh as it stands, on stages that sleep (made_part.cc). Then the same where captions become three times
# slower in the middle. Beside it the time of an array of jobs for each stage. As a Markdown table.
# Usage: tests/bench/unlike_nodes.sh [SCALE [PARTS [SLOWER...]]]
# SCALE 100 is how many times faster than unlike_nodes.h says, so that the start of processes is not what is measured: a part
# takes 2 s on average. 2000 PARTS take a quarter of an hour, and 23 minutes with slower captions.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${VFM_BUILD:-$root/build}")
scale=${1:-100} parts=${2:-2000}
shift $(($# < 2 ? $# : 2))
work=$(mktemp -d -p "${TMPDIR:-/dev/shm}")  # Each claim is synced to disk; here memory.
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir bin
for stage in clip caption embed; do ln -s "$build/tests/bench/made_part" bin/vfm-$stage; done

# measure SLOWER: prints a row.
measure() {
  local slower=$1 dir=out-$1 begin end kind node nodes=() best arrays
  seq -f '%.0f.mp4' "$parts" | "$build/tools/vfm-clip" list -o "$dir" -n "$parts" --shard-size 64KiB >listed.jsonl
  read -r best arrays < <("$build/tests/bench/made_part" plan "$parts" "$slower")
  begin=$EPOCHREALTIME
  for kind in A B; do
    for node in 1 2 3 4 5 6 7 8; do
      PATH=$work/bin:$PATH VFM_NODE_KIND=$kind VFM_LEASE_SECONDS=20 "$root/examples/slurm/node.sh" "$dir" \
        "vfm-clip $dir $scale $slower" "vfm-caption $dir $scale $slower" "vfm-embed $dir $scale $slower" 2>>"$dir.$kind$node.log" &
      nodes+=($!)
    done
  done
  for node in "${nodes[@]}"; do wait "$node"; done
  end=$EPOCHREALTIME
  awk -v s="$slower" -v best="$best" -v arrays="$arrays" -v scale="$scale" -v t="$(awk "BEGIN { print $end - $begin }")" \
    -v slow="$(find "$dir/parts/embed/notes" -name '*-A' | wc -l)" 'BEGIN {
      printf "| %s | %.1f s | %.1f s | %.1f %% | %.1f s | %.1f %% | %d |\n",
        s == 1 ? "as drawn" : "captions " s " times slower from the middle on", best / scale, t, 100 * best / scale / t,
        arrays / scale, 100 * best / arrays, slow }'
}

echo "| captions | best split | node.sh | of the best | arrays of jobs | of the best | embeddings by A |"
echo "|---|---|---|---|---|---|---|"
[ $# -gt 0 ] || set -- 1 3
for slower in "$@"; do measure "$slower"; done
