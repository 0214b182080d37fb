#!/bin/bash
# Copies of videos found by vfm-clip unique, among others that only look alike: precision and recall by kind of copy.
# Usage: tests/bench/source_duplicates.sh [BUILD_DIR [VIDEO...]]
# Originals are parts of 10 s, at 320x180: up to five of each video that is given (other minutes of a fixed camera, other
# shots of a scene), of FFmpeg's own sources, and of two views of a fixed camera that it draws, in which other things
# move in each part. Of each there are ten copies of seven kinds (source_duplicates.py says what each is). SEED (report-4)
# makes others; thresholds were chosen on other seeds. KEEP=DIR keeps all in DIR. Takes some four
# minutes of a processor, and 60 MB in TMPDIR. Prints Markdown.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build}
[ $# -eq 0 ] || shift
scratch=${KEEP:-$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")}
[ -n "${KEEP:-}" ] || trap 'rm -rf "$scratch"' EXIT

videos=$scratch/videos
[ -f "$videos/truth.json" ] || python3 "$here/source_duplicates.py" make --seed "${SEED:-report-4}" --out "$videos" "$@"
TIMEFORMAT='%U %S'
{ time find "$videos" -name '*.mp4' | sort |
  "$build/tools/vfm-clip" unique -o "$scratch/signatures" >"$scratch/unique.jsonl"; } 2>"$scratch/time"
python3 "$here/source_duplicates.py" score --videos "$videos" --found "$scratch/signatures" --time "$scratch/time"
