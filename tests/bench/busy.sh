#!/bin/bash
# Two threads alone, and beside one process that computes for ever: a step of quickstart's model and of one of 100
# million parameters (vfm-train on made-up latents), and the Cosmos tokenizer both ways. Each with waiting as it is
# (lib/cli/waiting.h), and as libgomp waits by itself: GOMP_SPINCOUNT=300000, its default. In turns; the medians.
# Prints for each: ms alone before and now, their ratio (target: at least 0.97), ms beside the busy process before and
# now, and the speed there by half of the speed alone before (target: at least 0.9).
# Usage: tests/bench/busy.sh [BUILD_DIR]      ROUNDS: how many turns (3)
# On a machine with more processors: taskset -c 0,1 tests/bench/busy.sh
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}")
rounds=${ROUNDS:-3}
ninja -C "$build" tools/vfm-train tests/bench/cosmos_tokenizer >/dev/null
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")
busy=
trap 'kill $busy 2>/dev/null; rm -rf "$scratch"' EXIT
export OMP_NUM_THREADS=2

# train RECIPE SIZES STEPS SETTINGS...: the median step, in ms.
train() {
  rm -rf "$scratch/run"
  "$build/tools/vfm-train" "$1" -j2 --device cpu --synthetic "$2" -o "$scratch/run" train.steps="$3" \
    train.log_every=1 validation.every=0 "${@:4}" >"$scratch/out" 2>&1
  jq -s '[.[2:][].seconds_per_step] | sort | .[length / 2 | floor] * 1000' "$scratch/run/timing.jsonl"
}
quick() {
  train "$root/examples/recipes/quickstart.yaml" 3x8x8 22 model.in_channels=24 model.text_embed_dim=64
}
large() {
  train "$root/examples/recipes/100m.yaml" 8x32x32 5 model.in_channels=16 model.text_embed_dim=1024 \
    data.tokens=2048 data.packs=1
}
tokenizer() {
  "$build/tests/bench/cosmos_tokenizer" 9 128 128 f32 2 |
    awk '{ for (i = 1; i < NF; ++i) if ($i == "encode" || $i == "decode") sum += $(i + 1); print sum }'
}

median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

for what in quick tokenizer large; do
  for ((round = 0; round < rounds; ++round)); do
    GOMP_SPINCOUNT=300000 $what >>"$scratch/$what.alone.before"
    $what >>"$scratch/$what.alone.now"
    bash -c 'while :; do :; done' &
    busy=$!
    GOMP_SPINCOUNT=300000 $what >>"$scratch/$what.busy.before"
    $what >>"$scratch/$what.busy.now"
    kill $busy
    wait $busy 2>/dev/null || true
  done
  echo "$what $(for setting in alone.before alone.now busy.before busy.now; do
    median "$scratch/$what.$setting"
  done | tr '\n' ' ')" | awk '{
    printf "%-10s alone %.0f ms before, %.0f now (%.2f); beside a busy process %.0f before, %.0f now (%.2f of half its speed)\n",
      $1, $2, $3, $2 / $3, $4, $5, $2 * 2 / $5 }'
done
