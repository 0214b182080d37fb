#!/usr/bin/env bash
# The step of networks whose modulation has one matrix (model.adaln=full) over that of two of low rank, at equal width and
# at equal parameters, as Markdown tables. Predicted: the 7B model on eight H100s that share the state, packs of 8,192 and
# 73,728 tokens, several of them a step; no GPU is needed. Measured: small networks on the CPU, in turns, the fastest step.
# The paper (NVIDIA, "Training video foundation models with NeMo", 2025) has up to 1.2 x of 7B at 8k.
# Usage: tests/bench/adaln.sh [BUILD]      (default: build)
# On a CPU that does not multiply in bf16 set DTYPE=f32; PARTS=predicted alone takes seconds.
# Environment: DTYPE (bf16), PARTS ("predicted measured"), ROUNDS (3) and STEPS (3, after one that does not count) of what is measured.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}")
parts=${PARTS:-predicted measured} rounds=${ROUNDS:-3} steps=${STEPS:-3}
unset OPENBLAS_CORETYPE
ninja -C "$build" tools/vfm-train >/dev/null
train=$build/tools/vfm-train
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# row WHAT DIGITS LORA FULL...: files with parameters, seconds and tflops of a step, these with so many digits; of the
# other two over the first.
row() {
  jq -r -s --arg what "$1" --argjson digits "$2" 'def r(n): . * pow(10; n) | round / pow(10; n);
    def cells($one): "\(.parameters / 1e9 | r(2)) | \(.seconds | r(3)) | \(.seconds / $one.seconds | r(2)) | \(.tflops | r($digits))";
    .[0] as $one | "| \($what) | \($one.parameters / 1e9 | r(2)) | \($one.seconds | r(3)) | \($one.tflops | r($digits)) | " +
      (.[1:] | map(cells($one)) | join(" | ")) + " | \($one.tflops / .[-1].tflops | r(2)) |"' "${@:3}"
}

table_head() {
  cat <<MD
| $1 | lora, G parameters | step, s | TFLOP/s | full, same width: G parameters | step, s | / lora | TFLOP/s | full, same parameters: G | step, s | / lora | TFLOP/s | lora's TFLOP/s / that |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
MD
}

predict() {
  local tokens=$1 size=$2 packs=$3
  local layout=("${@:4}")
  one() {
    "$train" cost "$root/examples/recipes/$1.yaml" -q --gpu h100 --ranks 8 --synthetic "$size" ema.mode=off \
      model.recompute=block_but_attention parallel.shard=full "${layout[@]}" data.tokens="$tokens" data.packs="$packs" "${@:2}" |
      jq '.predicted.seconds as $s | {parameters, seconds: $s, tflops: (.flops_per_step / $s / 8 / 1e12)}'
  }
  one 7b >"$folder/lora"
  one 7b model.adaln=full model.adaln_lora_dim=0 >"$folder/wide"
  one nemo-7b >"$folder/narrow"
  row "$tokens, $packs" 1 "$folder/lora" "$folder/wide" "$folder/narrow"
}

if [[ $parts == *predicted* ]]; then
  table_head "tokens of a pack, packs a step"
  for packs in 8 16 32 64; do predict 8192 8x64x64 $packs; done
  for packs in 1 2 4 8; do predict 73728 32x96x96 $packs "parallel.cp=8"; done
fi

# measure NAME TOKENS SETTING...: the fastest step so far of a small network.
measure() {
  local name=$1 tokens=$2 size
  size=$([ "$tokens" = 2048 ] && echo 8x32x32 || echo 2x32x32)
  "$train" "$folder/recipe.yaml" --synthetic "$size" -o "$folder/run" --force -q --device cpu train.steps=$((steps + 1)) \
    data.tokens="$tokens" model.compute="${DTYPE:-bf16}" "${@:3}" >/dev/null
  local parameters
  parameters=$("$train" cost "$folder/recipe.yaml" --synthetic "$size" -q --device cpu data.tokens="$tokens" "${@:3}" | jq .parameters)
  tail -n +2 "$folder/run/timing.jsonl" | jq -c --argjson p "$parameters" \
    '{parameters: $p, seconds: .seconds_per_step, tflops}' >>"$folder/$name"
  jq -s -c 'min_by(.seconds)' "$folder/$name" >"$folder/best" && mv "$folder/best" "$folder/$name"
}

if [[ $parts == *measured* ]]; then
  echo
  table_head "tokens of a pack, on the CPU"
  cat >"$folder/recipe.yaml" <<'YAML'
model: {in_channels: 16, text_embed_dim: 64, attention_head_dim: 64, num_layers: 7, max_size: [16, 64, 64]}
data: {packs: 1, micro_packs: 1}
validation: {every: 0}
train: {checkpoint_every: 100000, log_every: 1}
ema: {mode: "off"}
YAML
  # As 7B: a rank of 1/16 of the width; 3/4 of the width and 8/7 of the layers have as many parameters.
  for tokens in 512 2048; do
    rm -f "$folder"/{lora,wide,narrow}
    for ((round = 0; round < rounds; ++round)); do
      measure lora $tokens model.num_attention_heads=8 model.adaln_lora_dim=32
      measure wide $tokens model.num_attention_heads=8 model.adaln=full
      measure narrow $tokens model.num_attention_heads=6 model.num_layers=8 model.adaln=full
    done
    row "$tokens" 3 "$folder/lora" "$folder/wide" "$folder/narrow"
  done
fi
