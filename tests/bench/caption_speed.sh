#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Times the parts of captions by a Qwen2.5-VL in vfm against transformers on the same cores, in turns, both reading
# the same folder: looking at a video, the prompt, writing alone, and eight texts together. Prints the ratios of
# tokens per second, and how many times as fast eight texts are together as one after the other.
#   tests/bench/caption_speed.sh [BUILD_DIR]      (default: build)
# Environment: TORCH_PYTHON, a Python with torch and transformers (default: a venv that this script makes in
# BUILD_DIR); STORED ("bf16": of the weights in the folder), DTYPES ("f32 bf16": of products), ROUNDS (2),
# TOKENS (16), OMP_NUM_THREADS.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build}
rounds=${ROUNDS:-2}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE  # a forced core type would slow PyTorch down

ninja -C "$build" tests/bench/caption_speed >&2
python=$("$here/torch-python.sh" "$build" torch==2.15.0 transformers==5.24.0)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$python" "$here/caption_speed_torch.py" make "$folder/model" "${STORED:-bf16}" 2>/dev/null
for dtype in ${DTYPES:-f32 bf16}; do
  lines=$(for ((round = 0; round < rounds; ++round)); do
    "$build/tests/bench/caption_speed" "$folder/model" "$dtype" 2 "${TOKENS:-16}"
    "$python" "$here/caption_speed_torch.py" time "$folder/model" "$dtype" 2 "${TOKENS:-16}" 2>/dev/null
  done)
  echo "$lines"
  echo "$lines" | awk -v dtype="$dtype" '
    { if ($NF > best[$1, $3]) best[$1, $3] = $NF; if ($(NF - 3) > peak[$1]) peak[$1] = $(NF - 3) }
    END {
      for (i = split("vision prefill decode decode-8", parts, " "); i > 0; --i)
        printf "ratio %s %s %.2f\n", dtype, parts[i], best["vfm", parts[i]] / best["torch", parts[i]]
      printf "together %s vfm %.2f torch %.2f\n", dtype, best["vfm", "decode-8"] / best["vfm", "decode"],
             best["torch", "decode-8"] / best["torch", "decode"]
      printf "peak %s %d / %d MiB\n", dtype, peak["vfm"], peak["torch"]
    }'
done
