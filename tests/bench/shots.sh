#!/bin/bash
# Changes of shot found by vfm-clip and by PySceneDetect's detectors, against a truth that is known.
# Usage: tests/bench/shots.sh [BUILD_DIR [PHOTO_OR_CLIP...]]
# It makes 320x180 videos with more than 500 changes and 400 events that are none (shots_make.py) from
# FFmpeg's sources and from what it is given: photographs (.jpg .png .webp; Debian's mate-backgrounds and
# plasma-workspace-wallpapers have some), without which no pans and zooms are made, and clips
# FILE:BEGIN-END whose frames BEGIN to END are one shot. SEED (report-1) makes other videos; thresholds were
# chosen on the seed tune-1. SHARE (1) of the videos of each class are made, or of CLASS alone. KEEP=DIR keeps all
# in DIR. TRANSNET=DIR also asks vfm-clip shots --detector-model with these weights, which takes long.
# PySceneDetect is SCENEDETECT_PYTHON's, or is installed into a venv in BUILD_DIR, with OpenCV. Takes a
# quarter of an hour on two cores, and 300 MB in TMPDIR. Prints Markdown.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build}
[ $# -eq 0 ] || shift
scratch=${KEEP:-$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")}
[ -n "${KEEP:-}" ] || trap 'rm -rf "$scratch"' EXIT

python=${SCENEDETECT_PYTHON:-$build/scenedetect-venv/bin/python}
if ! "$python" -c 'import scenedetect, cv2' 2>/dev/null; then
  [ -z "${SCENEDETECT_PYTHON:-}" ] || { echo "$python lacks scenedetect or OpenCV" >&2; exit 1; }
  echo "installing scenedetect into $build/scenedetect-venv" >&2
  python3 -m venv "$build/scenedetect-venv"
  "$python" -m pip install --quiet scenedetect==0.7.2 >&2
fi

material=()
for given in "$@"; do
  case $given in
    *:*-*) material+=(--clip "$given") ;;
    *) material+=(--photo "$given") ;;
  esac
done
videos=$scratch/videos
[ -f "$videos/truth.json" ] ||
  python3 "$here/shots_make.py" --seed "${SEED:-report-1}" --share "${SHARE:-1}" --out "$videos" \
    ${CLASS:+--class "$CLASS"} "${material[@]}"
"$build/tools/vfm-clip" shots "$videos"/*.mkv >"$scratch/vfm.jsonl"
network=()
if [ -n "${TRANSNET:-}" ]; then
  "$build/tools/vfm-clip" shots --detector-model "$TRANSNET" "$videos"/*.mkv \
    >"$scratch/transnet.jsonl"
  network=("TransNet V2=$scratch/transnet.jsonl")
fi
"$python" "$here/shots_scenedetect.py" "$scratch" "$videos"/*.mkv 2>"$scratch/scenedetect.log" ||
  { tail "$scratch/scenedetect.log" >&2 && exit 1; }
python3 "$here/shots_score.py" "$videos" vfm-clip="$scratch/vfm.jsonl" \
  content="$scratch/content.jsonl" adaptive="$scratch/adaptive.jsonl" hash="$scratch/hash.jsonl" \
  histogram="$scratch/histogram.jsonl" "${network[@]}"
