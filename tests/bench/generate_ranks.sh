#!/usr/bin/env bash
# The sampling of a clip by two ranks that share it in each way, over half of what one rank takes: a clip has one thread
# on each rank, and two threads of one rank could take no less than half. A network of random weights, 30 million
# parameters. Target: at most 1.15. The tokenizer is no part of it.
# usage: tests/bench/generate_ranks.sh [BUILD]      (default: build)
# Environment: WAYS ("cfg=2 tp=2 cp=2,cp_kind=gather cp=2,cp_kind=all_to_all cp=2,cp_kind=ring"), DTYPES ("f32 bf16"),
# FP8 (or linear, all), SHARD (or ",shard"), SIZE (384x384), FRAMES (33), STEPS (4), LAYERS (8), ROUNDS (3: one rank and each way in
# turns, of which the fastest count).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}")
ways=${WAYS:-cfg=2 tp=2 cp=2,cp_kind=gather cp=2,cp_kind=all_to_all cp=2,cp_kind=ring}
dtypes=${DTYPES:-f32 bf16} rounds=${ROUNDS:-3}
unset OPENBLAS_CORETYPE
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive PATH="$build/tools:$PATH"
ninja -C "$build" tools/vfm-{clip,caption,embed,shard,pack,train,generate} >/dev/null
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$root/scripts/draw-corpus" raw --shots 12 >/dev/null
find raw -name '*.mp4' | sort | vfm-clip --min-length 1s -o clips | vfm-caption | vfm-embed |
  vfm-shard --keep-duplicates -o dataset >shards.jsonl
vfm-pack --size 64 --frames 17 --device cpu -o latents <shards.jsonl >/dev/null
vfm-train "$root/examples/recipes/quickstart.yaml" --data latents -o run -q --device cpu train.steps=1 validation.every=0 \
  model.num_layers="${LAYERS:-8}" model.num_attention_heads=8 model.attention_head_dim=64 >/dev/null

# sample NAME LAUNCHER...: the seconds of one clip, as vfm-generate says them.
sample() {
  local name=$1
  shift
  "$@" --model run --device cpu --compute "$dtype" ${FP8:+--fp8 "$FP8" --tolerance 1000} --size "${SIZE:-384x384}" \
    --frames "${FRAMES:-33}" --steps "${STEPS:-4}" --guidance 3 --latents-only --force -v -o latent 'a red circle' \
    2>messages >/dev/null || { cat messages >&2; exit 1; }
  # Of two ranks one says it; a minute and more is written as minutes and seconds.
  jq -n -c --arg name "$name" --arg dtype "$dtype" \
    --arg seconds "$(sed -nE 's/.*ready in (([0-9]+)m)?([0-9.]+)s$/\2 \3/p' messages |
      awk '{ print NF == 2 ? 60 * $1 + $2 : $1 }')" \
    '{name: $name, dtype: $dtype, seconds: ($seconds | tonumber)}'
}

for dtype in $dtypes; do
  for ((round = 0; round < rounds; ++round)); do
    OMP_NUM_THREADS=1 sample one vfm-generate -j1
    for way in $ways; do
      # shellcheck disable=SC2086
      OMP_NUM_THREADS=1 sample "$way" mpirun -np 2 --bind-to none vfm-generate -j1 --parallel "$way${SHARD-}"
    done
  done
done | tee lines
jq -s -r 'group_by(.dtype)[] | (map(select(.name == "one").seconds) | min) as $one |
  group_by(.name)[] | min_by(.seconds) |
  "\(.dtype) \(.name): \(.seconds) s, \(2 * .seconds / $one * 1000 | round / 1000) of half of one rank"' lines
