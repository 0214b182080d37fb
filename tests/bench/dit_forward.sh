#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Times a forward pass of vfm's DiT against diffusers' module on the same cores, in turns, and prints
# the ratios of tokens per second.
#   tests/bench/dit_forward.sh [BUILD_DIR]      (default: build)
# Environment: TORCH_PYTHON, a Python with torch and diffusers (default: a venv that this script makes
# in BUILD_DIR); MODELS ("100m 7b-slice"), DTYPES ("f32 bf16"), ROUNDS (2), OMP_NUM_THREADS.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE  # a forced core type would slow PyTorch down

ninja -C "$build" tests/bench/dit_forward >&2
python=$("$here/torch-python.sh" "$build" torch==2.15.0 torchvision==0.29.2 diffusers==0.42.1)

for model in ${MODELS:-100m 7b-slice}; do
  for dtype in ${DTYPES:-f32 bf16}; do
    lines=$(for ((round = 0; round < ${ROUNDS:-2}; ++round)); do
      "$build/tests/bench/dit_forward" "$model" "$dtype"
      "$python" "$here/dit_forward_torch.py" "$model" "$dtype" 2>/dev/null
    done)
    echo "$lines"
    echo "$lines" | awk -v model="$model" -v dtype="$dtype" '
      { if ($NF > best[$1]) best[$1] = $NF }
      END { printf "ratio %s %s vfm/diffusers %.2f\n", model, dtype, best["vfm"] / best["diffusers"] }'
  done
done
