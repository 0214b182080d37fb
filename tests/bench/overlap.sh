#!/usr/bin/env bash
# Communication beside computing: what two ranks wait for each other where each message comes late, against the same
# with all operations waited for where they start. Of stages also how much of what lateness costs is hidden: they wait
# for each other while a pipeline fills and drains, too, which is measured without lateness. One thread a rank.
# usage: tests/bench/overlap.sh [BUILD]      (default: build)
# Environment: WAYS ("shard dp tp cp pp vpp ahead"), LATE (milliseconds: "10"), STEPS (3), BIND ("none"; "core" gives each rank
# one core, which its two threads share).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}")
cd "$root"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMP_WAIT_POLICY=passive
ninja -C "$build" tests/bench/overlap >/dev/null

overlap() {
  mpirun -np 2 --bind-to "${BIND:-none}" "$build/tests/bench/overlap" "$1" "${STEPS:-3}" "$size" "$settings"
}

for late in ${LATE:-10}; do
  for way in ${WAYS:-shard dp tp cp pp vpp ahead}; do
    size=4x16x16
    case $way in
      shard) axis=tp+cp+shard settings="parallel: {shard: full}" ;;
      dp) axis=tp+cp+dp settings="model: {num_layers: 16}" ;;
      # Long, so that a product takes longer than a message is late. Of two ranks two chunks are as many messages as none.
      tp)
        axis=tp size=8x32x32
        settings="{parallel: {tp: 2, tp_chunks: 2}, model: {num_attention_heads: 16, num_layers: 2}"
        settings+=", data: {tokens: 2048, packs: 1}}"
        ;;
      # Long, so that attention takes longer than a message is late.
      cp)
        axis=cp size=16x32x32
        settings="{parallel: {cp: 2, cp_kind: ring}, model: {num_attention_heads: 2, num_layers: 3}"
        settings+=", data: {tokens: 4096, packs: 2}}"
        ;;
      pp) axis=pp settings="{parallel: {pp: 2}, data: {packs: 8}}" ;;
      vpp) axis=pp settings="{parallel: {pp: 2, vpp: 2}, data: {packs: 8}}" ;;
      ahead) axis=pp settings="{parallel: {pp: 2, ahead: 1}, data: {packs: 8}}" ;;
      *) echo "overlap.sh: no such way: '$way'" >&2; exit 2 ;;
    esac
    still=null
    [ "$axis" = pp ] && still=$(overlap 0)
    overlap "$late" |
      jq -r --arg way "$way" --arg axis "$axis" --argjson still "$still" '
        def of: .by | to_entries | map(select(.key | startswith($axis + " ")).value) | add * 1000;
        def ms: round | tostring;
        (.beside | of) as $beside | (.at_once | of) as $at_once |
        "\($way), \(.late_ms) ms late: waits \($beside | ms) ms for \($axis) in a step of \(.beside.step * 1000 | ms), "
        + "at once \($at_once | ms) of \(.at_once.step * 1000 | ms): \(100 * (1 - $beside / $at_once) | ms) % less"
        + if $still == null then "" else ($still.beside | of) as $idle |
            "; of lateness \(100 * (1 - ($beside - $idle) / ($at_once - $idle)) | ms) % (\($idle | ms) ms without)" end'
  done
done
