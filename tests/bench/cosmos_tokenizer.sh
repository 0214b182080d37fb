#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Times encoding and decoding by the Cosmos tokenizer of the published size (random weights) against
# diffusers' module in PyTorch on the same cores, in turns, and prints the ratios of speed and of
# peak memory.
#   tests/bench/cosmos_tokenizer.sh [BUILD_DIR]      (default: build)
# Environment: TORCH_PYTHON, a Python with torch and diffusers (default: a venv that this script makes
# in BUILD_DIR); SIZES ("17x256x256 9x480x640"), DTYPES ("f32 bf16"), ROUNDS (2), OMP_NUM_THREADS.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build}
sizes=${SIZES:-17x256x256 9x480x640}
dtypes=${DTYPES:-f32 bf16}
rounds=${ROUNDS:-2}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE  # a forced core type would slow PyTorch down

ninja -C "$build" tests/bench/cosmos_tokenizer >&2
python=$("$here/torch-python.sh" "$build" torch==2.15.0 diffusers==0.42.1)

for size in $sizes; do
  IFS=x read -r frames height width <<<"$size"
  for dtype in $dtypes; do
    lines=$(for ((round = 0; round < rounds; ++round)); do
      "$build/tests/bench/cosmos_tokenizer" "$frames" "$height" "$width" "$dtype" 1
      "$python" "$here/cosmos_tokenizer_torch.py" "$frames" "$height" "$width" "$dtype" 1 2>/dev/null
    done)
    echo "$lines"
    # Best speed of the rounds; least peak.
    echo "$lines" | awk -v size="$size" -v dtype="$dtype" '
      { if ($NF > best[$1]) best[$1] = $NF
        for (i = 1; i < NF; ++i)
          if ($i == "peak" && (!($1 in peak) || $(i + 1) < peak[$1])) peak[$1] = $(i + 1) }
      END {
        printf "ratio %s %s speed vfm/diffusers %.2f, memory %.2f\n", size, dtype,
               best["vfm"] / best["diffusers"], peak["vfm"] / peak["diffusers"]
      }'
  done
done
