#!/usr/bin/env bash
# What a start of training, a first checkpoint and a resumed start take from the file system and from each rank, counted with
# ranks that are threads, in several layouts: a Markdown table each. There rank 0 sends what all get to each rank by itself; MPI
# does so as a tree. Files below /proc count as read, too.
# usage: tests/bench/start_cost.sh [RANKS...]      (default: 8 64; multiples of 4)
# Environment: BUILD ("build").
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${BUILD:-$root/build}")
ninja -C "$build" tests/bench/start_cost >/dev/null
export OMP_NUM_THREADS=1
ranks=("$@")
[ $# -gt 0 ] || ranks=(8 64)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for layout in 'tp: 1' 'shard: full' 'tp: 2, shard: optimizer' 'tp: 2, pp: 2, shard: full'; do
  rm -rf "${folder:?}"/*
  "$build/tests/bench/start_cost" "$folder" "$layout" "${ranks[@]}"
  echo
done
