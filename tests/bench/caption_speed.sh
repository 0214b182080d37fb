#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Times the parts of captions by a Qwen2.5-VL and by a SmolVLM in vfm against transformers and llama.cpp on the same
# cores, in turns, all reading the same weights: looking at a video, the prompt, writing alone, and eight texts together.
# Prints a table of tokens per second: of vfm with weights as they are stored, rounded to int8 and (Qwen2.5-VL) from GGUF
# files with Q8_0, and of the others; how many times as fast as transformers each is, and eight texts together as one
# after the other; then how many times as fast as llama.cpp vfm is with the same GGUF files.
#   tests/bench/caption_speed.sh [BUILD_DIR]      (default: build)
# Environment: AGAINST ("torch": transformers; "torch llama", "llama"); TORCH_PYTHON, a Python with torch, transformers
# and gguf (default: a venv that this script makes in BUILD_DIR); LLAMA_PYTHON, one with llama_cpp (default: a venv for
# which llama-python.sh builds it); STORED ("bf16": of the weights in the folder), DTYPES ("f32": of products; f32,
# bf16), ROUNDS (2), TOKENS (16), MODELS ("qwen smol"), OMP_NUM_THREADS, CLOCK ("wall"; "processor": the time of one
# thread's processor, for a machine that is busy). Each process does all twice, and the better one counts: a run
# captions many clips, so what is done once, such as reading a file for the first time, is not of a clip.
# llama.cpp looks at 8 pairs of frames of 224 x 224 too, one after the other, and gets a prompt of as many tokens at
# once; it keeps keys and values as f16 (vfm: f32), with flash attention and without, of which the better counts.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build}
rounds=${ROUNDS:-2} against=${AGAINST:-torch} clock=${CLOCK:-wall} tokens=${TOKENS:-16}
for name in $against; do
  case $name in torch | llama) ;; *) echo "caption_speed.sh: nothing called '$name' to compare with: torch, llama" >&2 && exit 2 ;; esac
done
case $clock in
  wall) ;;
  processor) export OMP_NUM_THREADS=1 ;;
  *) echo "caption_speed.sh: no clock '$clock': wall, processor" >&2 && exit 2 ;;
esac
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE  # a forced core type would slow PyTorch down

ninja -C "$build" tests/bench/caption_speed >&2
python=$("$here/torch-python.sh" "$build" torch==2.15.0 transformers==5.24.0 gguf==0.19.0)
llama_python=
[[ $against != *llama* ]] || llama_python=$("$here/llama-python.sh" "$build")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

ours() { "$build/tests/bench/caption_speed" "$folder/$1" "$2" 2 "$tokens" "$3" "$clock"; }
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
    if [ "$model" = qwen ]; then
      ours qwen-gguf "$dtype" Q8_0
      if [ -n "$llama_python" ]; then
        for flash in on off; do
          "$llama_python" "$here/caption_speed_llama.py" "$folder/qwen-gguf" 2 "$tokens" "$clock" "$flash"
        done
      fi
    fi
    if [[ $against == *torch* ]]; then theirs time "$folder/$model" "$dtype" 2 "$tokens" "$clock"; fi
  done)
  echo "$lines" | awk -v dtype="$dtype" -v model="$model" -v clock="$clock" '
    { row = $1 == "torch" ? "torch" : $2; if (!(row in peak)) order[++rows] = row
      if ($NF > best[row, $3]) best[row, $3] = $NF; if ($(NF - 3) > peak[row]) peak[row] = $(NF - 3) }
    END {
      parts = split("vision prefill decode decode-8", part, " ")
      printf "%s, products in %s: tokens/s (times transformers)%s\n%-10s", model, dtype,
        clock == "wall" ? "" : ", by processor time of one thread", ""
      for (i = 1; i <= parts; ++i) printf "%18s", part[i]
      printf "%10s%12s\n", "together", "peak MiB"
      for (r = 1; r <= rows; ++r) {
        printf "%-10s", order[r]
        for (i = 1; i <= parts; ++i)
          if ("torch" in peak) printf "%10.1f (%5.2f)", best[order[r], part[i]], best[order[r], part[i]] / best["torch", part[i]]
          else printf "%18.1f", best[order[r], part[i]]
        printf "%10.2f%12d\n", best[order[r], "decode-8"] / best[order[r], "decode"], peak[order[r]]
      }
      if ("llama.cpp" in peak) {
        printf "%-10s", "ratio"
        for (i = 1; i <= parts; ++i) printf "%18.2f", best["Q8_0", part[i]] / best["llama.cpp", part[i]]
        printf "      Q8_0 / llama.cpp\n"
      }
    }'
done; done
