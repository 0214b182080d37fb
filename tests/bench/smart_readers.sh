#!/bin/bash
# Clips of --smart-cut, of each codec and kind of groups of pictures, by the readers that people train with: PyAV,
# OpenCV, decord, torchcodec (PyPI's, some 3 GB, in a venv of BUILD_DIR, or those of TORCH_PYTHON). Fails if one of them
# gives another frame than the others, in order or after a seek.
# Usage: tests/bench/smart_readers.sh [BUILD_DIR]
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}")
python=${TORCH_PYTHON:-$build/readers-venv/bin/python}
if ! "$python" -c 'import av, cv2, decord, torchcodec' 2>/dev/null; then
  [ -z "${TORCH_PYTHON:-}" ] || { echo "$python lacks av, cv2, decord or torchcodec" >&2; exit 1; }
  python3 -m venv "$build/readers-venv"
  "$build/readers-venv/bin/pip" install --quiet numpy av opencv-python-headless decord torch torchcodec >&2
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export SVT_LOG=1
x264=keyint=10:min-keyint=10:scenecut=0 x265=keyint=10:min-keyint=10:scenecut=0:bframes=3:log-level=none
failed=0
while read -r name options; do
  # shellcheck disable=SC2086
  ffmpeg -nostdin -loglevel error -y -f lavfi -i testsrc2=size=128x96:rate=10 -t 6 -pix_fmt yuv420p $options "$name"
  for span in 0,2 1.5,3.3 2,4 2.3,5; do
    echo "{\"source\":\"$name\",\"begin\":${span%,*},\"end\":${span#*,}}"
  done >spans.jsonl
  rm -rf clips
  "$build/tools/vfm-clip" -q --smart-cut --verify --into files --spans spans.jsonl "$name" -o clips >clips.jsonl
  [ "$(cat clips/*.json | grep -o '"not_copied":null' | wc -l)" -eq 4 ] || { echo "$name: nothing was copied" && failed=1; }
  ffmpeg -nostdin -loglevel error -y -i "$name" -c copy "whole-${name%.*}.mp4"
  "$python" "$root/tests/bench/smart_readers.py" "whole-${name%.*}.mp4" clips/*.mp4 2>/dev/null || failed=1
done <<END
h264.mp4 -c:v libx264 -preset veryfast -x264-params $x264:bframes=3
h264.ts -c:v libx264 -preset veryfast -x264-params $x264
baseline.mkv -c:v libx264 -preset ultrafast -profile:v baseline -x264-params $x264
hevc.mp4 -c:v libx265 -preset ultrafast -x265-params $x265:open-gop=0
hevc-open.mkv -c:v libx265 -preset ultrafast -x265-params $x265:open-gop=1
hevc-open.ts -c:v libx265 -preset ultrafast -x265-params $x265:open-gop=1
vp9.webm -c:v libvpx-vp9 -deadline good -cpu-used 8 -g 10 -keyint_min 10
av1.mp4 -c:v libsvtav1 -preset 12 -g 10
END
exit $failed
