#!/bin/bash
# What a start of training, a first checkpoint and a resumed start take from the file system and from each rank, counted
# with ranks that are threads, in several layouts: a Markdown table each. Needs `ninja -C build tests/bench/start_cost`.
# Usage: tests/bench/start_cost.sh [RANKS...]       (8 64)
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1
ranks=("$@")
[ $# -gt 0 ] || ranks=(8 64)
for layout in 'tp: 1' 'shard: full' 'tp: 2, shard: optimizer' 'tp: 2, pp: 2, shard: full'; do
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  build/tests/bench/start_cost "$folder" "$layout" "${ranks[@]}"
  rm -rf "$folder"
  echo
done
