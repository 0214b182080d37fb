#!/usr/bin/env bash
# Seconds to save and to resume a state of 1.5 GiB, by all ranks and by rank 0 alone; and how long a step waits for a
# checkpoint, with a disk that is held to 150 MB/s.
# usage: tests/bench/checkpoint.sh [BUILD [FOLDER]]
# SPDX-License-Identifier: Apache-2.0
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}") folder=${2:-$(mktemp -d)}
ninja -C "$build" tests/bench/checkpoint >/dev/null
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
for ranks in 1 2; do
  mpirun -np "$ranks" "$build/tests/bench/checkpoint" "$folder/run" 384
done
cc -O2 -shared -fPIC -o "$folder/slow_disk.so" "$root/tests/bench/slow_disk.c"
for ranks in 1 2; do
  mpirun -np "$ranks" env SLOW_DISK=$((150000000 / ranks)) LD_PRELOAD="$folder/slow_disk.so" \
    "$build/tests/bench/checkpoint" "$folder/run" 384 --wait
done
