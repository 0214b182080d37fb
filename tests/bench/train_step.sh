#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Times a training step of vfm against the same model in PyTorch on the same cores, in turns, and
# prints the ratios of tokens per second. Of the 100m model also diffusers' own module.
#   tests/bench/train_step.sh [BUILD_DIR]      (default: build)
# Environment: TORCH_PYTHON, a Python with torch (default: a venv that this script makes in
# BUILD_DIR); MODELS ("quick 100m"), DTYPES ("f32 bf16"), MODES ("eager compile diffusers"), ROUNDS (2), OMP_NUM_THREADS.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build}
models=${MODELS:-quick 100m}
dtypes=${DTYPES:-f32 bf16}
modes=${MODES:-eager compile diffusers}
rounds=${ROUNDS:-2}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE  # a forced core type would slow PyTorch down

ninja -C "$build" tests/bench/train_step >&2
python=$("$here/torch-python.sh" "$build" torch==2.15.0 torchvision==0.29.2 diffusers==0.42.1)

# Best median over the rounds, which alternate so that both meet the same noise.
for model in $models; do
  steps=10
  [[ $model == 100m ]] && steps=3
  for dtype in $dtypes; do
    lines=$(for ((round = 0; round < rounds; ++round)); do
      "$build/tests/bench/train_step" "$model" "$dtype" "$steps"
      for mode in $modes; do
        if [ "$mode" = diffusers ] && [ "$model" != 100m ]; then continue; fi
        "$python" "$here/train_step_torch.py" "$model" "$dtype" "$mode" "$steps" 2>/dev/null ||
          echo "torch-$mode $model $dtype does not run" >&2
      done
    done)
    echo "$lines"
    echo "$lines" | awk -v model="$model" -v dtype="$dtype" '
      { if ($NF > best[$1]) best[$1] = $NF }
      END {
        for (name in best)
          if (name != "vfm")
            printf "ratio %s %s vfm/%s %.2f\n", model, dtype, name, best["vfm"] / best[name]
      }'
  done
done
