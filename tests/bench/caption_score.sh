#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What vfm-caption score tells of captions with one fault: draws clips of shapes, and captions that are true or
# false; trains a small Qwen2.5-VL and a small CLIP on others; scores all by vfm-caption; prints the AUC of each score
# for each fault, the same with another clip's frames, and what the texts alone tell. Fails if a target is missed.
#   tests/bench/caption_score.sh [BUILD_DIR] [PART...]      (default: build, and data train score fit table)
# Environment: TORCH_PYTHON, a Python with torch, transformers and numpy (default: a venv that this script makes in
# BUILD_DIR); WORK, where it all goes (BUILD_DIR/caption-score); CLIPS, of each fault and part (100).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build}
parts=("${@:2}")
[ ${#parts[@]} -gt 0 ] || parts=(data train score fit table)
work=${WORK:-$build/caption-score}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE  # a forced core type would slow PyTorch down
python=$("$here/torch-python.sh" "$build" torch==2.15.0 transformers==5.24.0)
mkdir -p "$work"

data() { "$python" "$here/caption_score/clips.py" "$work" "${CLIPS:-100}"; }

train() {
  "$python" "$here/caption_score/train.py" clip "$work/clip" >"$work/clip.log" 2>&1 &
  local clip=$! status=0
  "$python" "$here/caption_score/train.py" captioner "$work/captioner" >"$work/captioner.log" 2>&1 || status=1
  wait $clip || status=1
  tail -n 2 "$work/clip.log" "$work/captioner.log"
  return $status
}

score() {
  "$build/tools/vfm-caption" score --model "$work/captioner" --clip "$work/clip" --prompt Describe. \
    --frame-tokens 4 --force "$work"/{tuning,test,test-elsewhere}.tar >"$work/scored.jsonl"
}

fit() { "$python" "$here/caption_score/table.py" fit "$work"; }

table() { "$python" "$here/caption_score/table.py" show "$work"; }

for part in "${parts[@]}"; do
  case $part in
    data | train | score | fit | table) "$part" ;;
    *) echo "$0: no part '$part': data train score fit table" >&2; exit 2 ;;
  esac
done
