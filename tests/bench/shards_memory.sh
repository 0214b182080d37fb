#!/usr/bin/env bash
# What ranks that share a state keep of it, for 1, 2, 4 and 8 of them: as a Markdown table the bytes a rank between
# steps that vfm-train cost tells, and beside them what the formulas give; and the most in a step, told and as the run's own
# allocator had it (memory_ranks of timing.jsonl), each rank a process of its own, on the CPU with one thread.
#
# f32, AdamW and an average: of each element of N ranks, P in all, a weight and a gradient of 4 bytes, two moments and
# the average of 4 each.
#   optimizer   8 P + 12 P/N
#   full        20 B/N + 8 (P - B) + 12 (P - B)/N,   B: elements of the matrices of blocks; P - B is the root group
# P and B are counted in a checkpoint that this makes.
# Usage: tests/bench/shards_memory.sh [TOOLS]      folder of the programs (default: build/tools)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tools=$(cd "${1:-$root/build/tools}" && pwd)
export PATH="$tools:$PATH" LC_ALL=C.UTF-8
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >wide.yaml <<'END'
model: {num_attention_heads: 8, attention_head_dim: 64, num_layers: 6, mlp_ratio: 4}
schedule: {warmup: 0}
validation: {every: 0}
train: {log_every: 1, steps: 4}
END
"$root/tests/cli/make-latents" latents 24
train=(vfm-train wide.yaml --data latents data.tokens=16 data.packs=8 --device cpu -j1)
mib() { awk -v bytes="$1" 'BEGIN { printf "%.1f", bytes / 1048576 }'; }

"${train[@]}" data.packs=1 train.steps=1 -o one >/dev/null 2>&1
read -r all blocks < <(python3 - one/checkpoints/step-*/model/*.safetensors <<'PY'
import json, math, struct, sys
every = blocks = 0
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    for name, tensor in header.items():
        if name != "__metadata__":
            every += math.prod(tensor["shape"])
            if name.startswith("transformer_blocks.") and len(tensor["shape"]) == 2:
                blocks += math.prod(tensor["shape"])
print(every, blocks)
PY
)
printf '%s elements, of which %s in matrices of blocks\n\n' "$all" "$blocks"
printf '| shared | ranks | between steps, MiB | by the formula | ratio | most in a step, MiB | by the allocator | ratio |\n'
printf '|---|---:|---:|---:|---:|---:|---:|---:|\n'
for shard in none optimizer full; do
  for ranks in 1 2 4 8; do
    if [ "$ranks" -eq 1 ] && [ $shard != none ]; then continue; fi
    command=("${train[@]}" "parallel.shard=$shard")
    cost=$("${command[0]}" cost "${command[@]:1}" -q --ranks "$ranks")
    kept=$(jq '.memory_bytes | .weights + .gradients + .moments + .average' <<<"$cost")
    told=$(jq '.memory_bytes | .total - .host' <<<"$cost")
    case $shard in
      none) formula=$((20 * all)) ;;
      optimizer) formula=$((8 * all + 12 * all / ranks)) ;;
      full) formula=$((20 * blocks / ranks + 8 * (all - blocks) + 12 * (all - blocks) / ranks)) ;;
    esac
    rm -rf run
    # One rank alone needs no launcher.
    start=(mpirun -np "$ranks")
    [ "$ranks" -gt 1 ] || start=()
    "${start[@]}" "${command[@]}" -o run >/dev/null 2>&1
    took=$(jq -s 'map(.memory_ranks.most // .memory_peak) | max' run/timing.jsonl)
    printf '| %s | %d | %s | %s | %.3f | %s | %s | %.3f |\n' $shard "$ranks" "$(mib "$kept")" "$(mib "$formula")" \
      "$(jq -n "$kept / $formula")" "$(mib "$told")" "$(mib "$took")" "$(jq -n "$told / $took")"
  done
done
