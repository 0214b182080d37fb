#!/bin/sh
# vfm-clip --smart-cut against full encoding: processor seconds of both, beyond those of decoding and measuring, on a
# drawn 1080p video with a key frame a second, in clips that begin between two key frames.
# Usage: tests/bench/smart.sh [BUILD_DIR [SECONDS [CLIP_SECONDS]]]
# SECONDS (default 600) is the length of the video, CLIP_SECONDS (default 20) that of a clip: of shorter ones more is
# encoded, so that what this costs is a larger difference of two runs. With the default about twenty-five minutes on two cores, and 2 GB in
# TMPDIR. Processor seconds, so what runs beside it changes little.
# SPDX-License-Identifier: Apache-2.0
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}")
seconds=${2:-600}
length=${3:-20}
clip=$build/tools/vfm-clip
[ -x "$clip" ] || { echo "there is no $clip: build it first" >&2; exit 1; }
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# Twenty seconds with detail and motion, again and again.
ffmpeg -nostdin -loglevel error -y -f lavfi -i "testsrc2=size=1920x1080:rate=30:duration=20" \
  -vf "noise=alls=6:allf=t,format=yuv420p" -c:v libx264 -preset veryfast -bf 3 -x264-params \
  keyint=30:min-keyint=30:scenecut=0 piece.mp4
ffmpeg -nostdin -loglevel error -y -stream_loop -1 -i piece.mp4 -t "$seconds" -c copy video.mp4

# spans FROM: of a clip's length each, the first from FROM on.
spans() {
  awk -v from="$1" -v most="$seconds" -v n="$length" \
    'BEGIN { for (t = from; t + n <= most; t += n) printf "{\"begin\":%s,\"end\":%s}\n", t, t + n }' >"spans-$1.jsonl"
}
spans 0 && spans 0.5

# timed NAME ARGS...: processor seconds of cutting with these arguments into the folder NAME.
timed() {
  name=$1
  shift
  /usr/bin/time -o time -f '%U %S' "$clip" -q -j1 video.mp4 --into files -o "$name" "$@" >/dev/null
  awk '{ printf "%.1f\n", $1 + $2 }' time
}
# share NAME: of frames that were encoded, in percent.
share() { cat "$1"/????????????????????????????????.json | grep -o '"frames_[a-z]*":[0-9]*' | tr -d '"' |
  awk -F: '{ n[$1] += $2 } END { printf "%.2f\n", 100 * n["frames_encoded"] / (n["frames_encoded"] + n["frames_copied"]) }'; }

# The same span of the same frames is decoded and measured each time. What is beyond that: full and smart less base, which
# begins on key frames, so encodes but tails, and copies.
full=$(timed full --spans spans-0.5.jsonl)
smart=$(timed smart --spans spans-0.5.jsonl --smart-cut)
base=$(timed base --spans spans-0.jsonl --smart-cut)
/usr/bin/time -o time -f '%U %S' ffmpeg -nostdin -loglevel error -i video.mp4 -map 0:v -c copy -f null - >/dev/null
copy=$(awk '{ print $1 + $2 }' time)
echo "$seconds s of 1080p, 30 frames a second, a key frame a second; clips of $length s, -j1; processor seconds"
echo "$full $smart $base $copy $(share smart) $(share base)" | awk '{
  printf "full encoding                   %8.1f\n", $1
  printf "smart, between key frames       %8.1f   %s %% of the frames encoded\n", $2, $5
  printf "smart, on key frames            %8.1f   %s %%\n", $3, $6
  printf "reading packets alone (ffmpeg)  %8.1f\n", $4
  # Of base the little that it encodes is taken off, by share.
  base = ($3 - $1 * $6 / 100) / (1 - $6 / 100)
  f = $1 - base; s = $2 - base
  printf "beyond decoding and measuring   %8.1f full  %.2f smart: %.1f times, %.2f of the encoded share\n",
    f, s, f / s, s / f / ($5 / 100) }'
