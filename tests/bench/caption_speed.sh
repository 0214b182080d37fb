#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Times the parts of captions by a Qwen2.5-VL and by a SmolVLM in vfm against transformers on the same cores, in turns,
# both reading the same folder: looking at a video, the prompt, writing alone, and eight texts together. Prints a table of tokens
# per second: of vfm with weights as they are stored, rounded to int8 and (Qwen2.5-VL) from a GGUF file with Q8_0, and of
# transformers; how many times as fast as that vfm is, and eight texts together are as one after the other.
#   tests/bench/caption_speed.sh [BUILD_DIR]      (default: build)
# Environment: TORCH_PYTHON, a Python with torch, transformers and gguf (default: a venv that this script makes in
# BUILD_DIR); STORED ("bf16": of the weights in the folder), DTYPES ("f32": of products; f32, bf16), ROUNDS (2),
# TOKENS (16), MODELS ("qwen smol"), OMP_NUM_THREADS. Each process does all twice, and the better one counts: a run
# captions many clips, so what is done once, such as reading a file for the first time, is not of a clip.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build}
rounds=${ROUNDS:-2}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE  # a forced core type would slow PyTorch down

ninja -C "$build" tests/bench/caption_speed >&2
python=$("$here/torch-python.sh" "$build" torch==2.15.0 transformers==5.24.0 gguf==0.19.0)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

ours() { "$build/tests/bench/caption_speed" "$folder/$1" "$2" 2 "${TOKENS:-16}" "$3"; }
theirs() { "$python" "$here/caption_speed_torch.py" "$@" 2>/dev/null; }
for model in ${MODELS:-qwen smol}; do
  case $model in
    qwen)
      theirs make "$folder/qwen" "${STORED:-bf16}"
      "$python" "$here/caption_speed_torch.py" gguf "$folder/qwen" "$folder/qwen-gguf"
      ;;
    smol) theirs make-smol "$folder/smol" "${STORED:-bf16}" ;;
    *) echo "caption_speed.sh: no model '$model': qwen, smol" >&2 && exit 2 ;;
  esac
done
for model in ${MODELS:-qwen smol}; do for dtype in ${DTYPES:-f32}; do
  lines=$(for ((round = 0; round < rounds; ++round)); do
    ours "$model" "$dtype" stored
    if [ "$dtype" = f32 ]; then ours "$model" int8 int8; fi
    if [ "$model" = qwen ]; then ours qwen-gguf "$dtype" Q8_0; fi
    theirs time "$folder/$model" "$dtype" 2 "${TOKENS:-16}"
  done)
  echo "$lines" | awk -v dtype="$dtype" -v model="$model" '
    { row = $1 == "torch" ? "torch" : $2; if (!(row in peak)) order[++rows] = row
      if ($NF > best[row, $3]) best[row, $3] = $NF; if ($(NF - 3) > peak[row]) peak[row] = $(NF - 3) }
    END {
      parts = split("vision prefill decode decode-8", part, " ")
      printf "%s, products in %s: tokens/s (times transformers)\n%-8s", model, dtype, ""
      for (i = 1; i <= parts; ++i) printf "%18s", part[i]
      printf "%10s%12s\n", "together", "peak MiB"
      for (r = 1; r <= rows; ++r) {
        printf "%-8s", order[r]
        for (i = 1; i <= parts; ++i)
          printf "%10.1f (%5.2f)", best[order[r], part[i]], best[order[r], part[i]] / best["torch", part[i]]
        printf "%10.2f%12d\n", best[order[r], "decode-8"] / best[order[r], "decode"], peak[order[r]]
      }
    }'
done; done
