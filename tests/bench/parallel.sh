#!/usr/bin/env bash
# The step of two ranks that share a model in each way, over the step of one rank with as many threads: 100
# million parameters, 2,048 tokens a pack, 8 packs a step, no checkpoints. And where the time goes: what a rank
# waits for the other by axis, and sends.
# usage: tests/bench/parallel.sh [BUILD]      (default: build)
# Environment: WAYS ("tp cp-gather cp-all_to_all cp-ring dp"; also pp, shard-optimizer, shard-full; hybrid-gather and so on
# with an ST-DiT, SETTINGS="model.type=stdit model.num_layers=16"), DTYPES ("f32 bf16"), STEPS (1, after one that
# does not count), ROUNDS (1: one rank and each way in turns), SETTINGS (more of the recipe's, to try it quickly).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}")
cd "$root"
ways=${WAYS:-tp cp-gather cp-all_to_all cp-ring dp} dtypes=${DTYPES:-f32 bf16} steps=${STEPS:-1} rounds=${ROUNDS:-1}
unset OPENBLAS_CORETYPE
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive
ninja -C "$build" tools/vfm-train >/dev/null
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/recipe.yaml" <<'YAML'
model: {in_channels: 16, text_embed_dim: 64, num_attention_heads: 8, attention_head_dim: 64, num_layers: 24, adaln_lora_dim: 64, max_size: [16, 64, 64], patch_size: [1, 2, 2]}
data: {tokens: 2048, packs: 8, micro_packs: 1}
validation: {every: 0}
train: {checkpoint_every: 100000, log_every: 1}
ema: {mode: "off"}
YAML

# train NAME LAUNCHER... : the fastest step after the first, and what that step waited and sent.
train() {
  local name=$1
  shift
  # shellcheck disable=SC2086
  "$@" "$folder/recipe.yaml" --synthetic 8x32x32 -o "$folder/run" --force -q --device cpu \
    train.steps=$((steps + 1)) model.compute="$dtype" ${SETTINGS-} >/dev/null
  tail -n +2 "$folder/run/timing.jsonl" | jq -s -c --arg name "$name" --arg dtype "$dtype" \
    'min_by(.seconds_per_step) | {name: $name, dtype: $dtype, seconds: .seconds_per_step, wait: .wait_seconds, sent: .sent_bytes}'
}

for dtype in $dtypes; do
  for ((round = 0; round < rounds; ++round)); do
    train one "$build/tools/vfm-train" -j2
    for way in $ways; do
      case $way in
        dp) keys="" ;;
        tp) keys="parallel.tp=2" ;;
        pp) keys="parallel.pp=2" ;;
        shard-*) keys="parallel.shard=${way#shard-}" ;;
        hybrid-*) keys="parallel.cp=2 parallel.hybrid=true parallel.cp_kind=${way#hybrid-}" ;;
        cp-*) keys="parallel.cp=2 parallel.cp_kind=${way#cp-}" ;;
        *) echo "parallel.sh: no such way: '$way'" >&2; exit 2 ;;
      esac
      # shellcheck disable=SC2086
      SETTINGS="$keys ${SETTINGS-}" train "$way" mpirun -np 2 --bind-to none "$build/tools/vfm-train" -j1
    done
  done
done | tee "$folder/lines"
jq -s -r 'group_by(.dtype)[] | (map(select(.name == "one").seconds) | min) as $one |
  group_by(.name)[] | min_by(.seconds) |
  "\(.dtype) \(.name): \(.seconds * 100 | round / 100) s, \(.seconds / $one * 1000 | round / 1000) of one rank"' "$folder/lines"
