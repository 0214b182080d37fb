#!/usr/bin/env bash
# How well examples/recipes/tokenizer-tiny.yaml learns, and in which time: PSNR and SSIM over whole
# clips of 64 x 64 pixels of scripts/draw-corpus that it never saw.
# Usage: tests/bench/tokenizer_tiny.sh [TOOLS [DATASET]]
#   TOOLS    folder of the programs (default: build/tools)
#   DATASET  what vfm-shard wrote, with a split val (default: one that is drawn, as scripts/quickstart does)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tools=$(cd "${1:-$root/build/tools}" && pwd)
export PATH="$tools:$PATH"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dataset=${2-}
if [[ -z $dataset ]]; then
  dataset=$work/dataset
  "$root/scripts/draw-corpus" "$work/raw" >/dev/null
  find "$work/raw" -name '*.mp4' | LC_ALL=C sort | vfm-clip --min-length 1.4s -o "$work/clips" | vfm-caption |
    vfm-shard --keep-duplicates --split train=0.95,val=0.05 -o "$dataset" >/dev/null
fi
recipe=$root/examples/recipes/tokenizer-tiny.yaml
begin=$EPOCHREALTIME
vfm-train "$recipe" --data "$dataset" -o "$work/run" >/dev/null
end=$EPOCHREALTIME
# One step at no rate, for its validation on whole clips.
vfm-train "$recipe" --data "$dataset" --init "$work/run" -o "$work/judged" data.size=64 data.tokens=384 schedule.warmup=0 \
  optimizer.lr=1e-12 train.steps=1 validation.every=1 validation.samples=64 >/dev/null
seconds=$((${end/./} / 1000000 - ${begin/./} / 1000000))
jq -r --argjson seconds "$seconds" 'select(.val_psnr) |
  "\(.val_samples) held-out clips: \(.val_psnr * 10 | round / 10) dB, SSIM \(.val_ssim * 1000 | round / 1000), after \($seconds) s of training"' \
  "$work/judged/metrics.jsonl"
