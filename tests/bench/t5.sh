#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Times T5's encoder in vfm against transformers on the same cores, in turns, both reading the same
# folder, and prints the ratios of tokens per second, and both peak memories.
#   tests/bench/t5.sh [BUILD_DIR]      (default: build)
# Environment: TORCH_PYTHON, a Python with torch and transformers (default: a venv that this script
# makes in BUILD_DIR); SHAPES ("base large v1_1-base"), DTYPES ("f32 bf16"), LENGTHS ("512,512 512,40": a
# text each, batches apart by spaces), ROUNDS (2), OMP_NUM_THREADS.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build}
rounds=${ROUNDS:-2}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE  # a forced core type would slow PyTorch down

ninja -C "$build" tests/bench/t5 >&2
python=$("$here/torch-python.sh" "$build" torch==2.15.0 transformers==5.23.0)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Best median over the rounds, which alternate so that both meet the same noise.
for shape in ${SHAPES:-base large v1_1-base}; do
  for dtype in ${DTYPES:-f32 bf16}; do
    rm -rf "$folder/model"
    "$python" "$here/t5_torch.py" make "$folder/model" "$shape" "$dtype" 2>/dev/null
    for lengths in ${LENGTHS:-512,512 512,40}; do
      IFS=, read -ra each <<<"$lengths"
      lines=$(for ((round = 0; round < rounds; ++round)); do
        "$build/tests/bench/t5" "$folder/model" "$dtype" 5 "${each[@]}"
        "$python" "$here/t5_torch.py" time "$folder/model" "$dtype" 5 "${each[@]}" 2>/dev/null
      done)
      echo "$lines"
      echo "$lines" | awk -v name="$shape $dtype $lengths" '
        { if ($NF > best[$1]) best[$1] = $NF; if ($(NF - 3) > peak[$1]) peak[$1] = $(NF - 3) }
        END { printf "ratio %s %.2f peak %d / %d MiB\n", name, best["vfm"] / best["torch"], peak["vfm"], peak["torch"] }'
    done
  done
done
