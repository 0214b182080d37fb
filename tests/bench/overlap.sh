#!/usr/bin/env bash
# Communication beside computing: what two ranks wait for each other where each message comes late, against the same
# with all operations waited for where they start. One thread a rank.
# usage: tests/bench/overlap.sh [BUILD]      (default: build)
# Environment: WAYS ("shard dp cp pp vpp"), LATE (milliseconds: "0 30"), STEPS (3), BIND ("none"; "core" gives each rank
# one core, which its two threads share).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build}")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMP_WAIT_POLICY=passive
ninja -C "$build" tests/bench/overlap >/dev/null

for late in ${LATE:-0 30}; do
  for way in ${WAYS:-shard dp cp pp vpp}; do
    size=4x16x16
    case $way in
      shard) settings="parallel: {shard: full}" ;;
      dp) settings="{}" ;;
      # Long, so that attention takes longer than a message is late.
      cp)
        size=16x32x32
        settings="{parallel: {cp: 2, cp_kind: ring}, model: {num_attention_heads: 2, num_layers: 3}"
        settings+=", data: {tokens: 4096, packs: 2}}"
        ;;
      pp) settings="parallel: {pp: 2}" ;;
      vpp) settings="parallel: {pp: 2, vpp: 2}" ;;
      *) echo "overlap.sh: no such way: '$way'" >&2; exit 2 ;;
    esac
    mpirun -np 2 --bind-to "${BIND:-none}" "$build/tests/bench/overlap" "$late" "${STEPS:-3}" "$size" "$settings" |
      jq -r --arg way "$way" '"\($way), \(.late_ms) ms late: waited \(.beside.waited * 1000 | round) ms of a step of \(
        .beside.step * 1000 | round), at once \(.at_once.waited * 1000 | round) of \(.at_once.step * 1000 | round): \(
        100 * (1 - .beside.waited / .at_once.waited) | round) % less  \(.beside.by | map_values(. * 1000 | round))"'
  done
done
