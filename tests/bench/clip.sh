#!/bin/sh
# vfm-clip against a bare decode; a lone video to clips against ffmpeg's processor time; its memory on a short and a long
# video. On two processors or more, with nothing beside.
# Usage: tests/bench/clip.sh [BUILD_DIR [VIDEO...]]
# Without videos it draws two of a minute each, 720p and 360p. Takes about five minutes on two
# cores, and 200 MB in TMPDIR; LONG=SECONDS (default 3600) is the length of the long video.
# SPDX-License-Identifier: Apache-2.0
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}
[ $# -eq 0 ] || shift
ninja -C "$build" tools/vfm-clip >/dev/null
clip=$build/tools/vfm-clip
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# draw FILE SIZE SECONDS: shots of ten seconds with detail and motion.
draw() {
  ffmpeg -nostdin -loglevel error -y -f lavfi -i "testsrc2=size=$2:rate=24:duration=10" \
    -f lavfi -i "mandelbrot=size=$2:rate=24" -filter_complex \
    "[1]trim=duration=10,format=yuv420p[b];[0]format=yuv420p[a];[a][b]concat,noise=alls=6:allf=t" \
    -c:v libx264 -preset veryfast -g 48 "$scratch/piece.mp4"
  ffmpeg -nostdin -loglevel error -y -stream_loop -1 -i "$scratch/piece.mp4" -t "$3" -c copy "$1"
}

# timed COMMAND...: wall seconds, processor seconds, and resident memory at most in MiB.
timed() {
  /usr/bin/time -o "$scratch/time" -f '%e %U %S %M' "$@" >/dev/null
  awk '{print $1, $2 + $3, $4 / 1024}' "$scratch/time"
}

# ratio VIDEO: the best of five of each, taken in turns.
ratio() {
  : >"$scratch/decode" && : >"$scratch/shots"
  for _ in 1 2 3 4 5; do
    timed ffmpeg -nostdin -v error -i "$1" -f null - >>"$scratch/decode"
    timed "$clip" shots "$1" >>"$scratch/shots"
  done
  for column in 1 2; do
    for run in decode shots; do cut -d' ' -f$column "$scratch/$run" | sort -n | head -1; done
  done | paste -sd' ' | awk -v name="$(basename "$1")" '{
    printf "%-28s decode %6.2f s  shots %6.2f s  ratio %.2f   processor %6.2f s %6.2f s  ratio %.2f\n",
      name, $1, $2, $2 / $1, $3, $4, $4 / $3 }'
}

echo "vfm-clip shots against ffmpeg -f null"
if [ $# -eq 0 ]; then
  draw "$scratch/720p.mp4" 1280x720 60
  draw "$scratch/360p.mp4" 640x360 60
  set -- "$scratch/720p.mp4" "$scratch/360p.mp4"
fi
for video; do ratio "$video"; done

# lone VIDEO: -j1 and -j2 against one ffmpeg that decodes and encodes the whole file with the same settings: its processor
# seconds are the work there is. The best of three of each, taken in turns; -j2 must give the bytes of -j1.
lone() {
  : >"$scratch/whole" && : >"$scratch/j1" && : >"$scratch/j2"
  for _ in 1 2 3; do
    timed ffmpeg -nostdin -v error -y -i "$1" -map 0:V:0 -c:v libx264 -preset veryfast -crf 18 -bf 0 -threads 2 \
      "$scratch/whole.mp4" >>"$scratch/whole"
    for jobs in 1 2; do
      rm -rf "$scratch/clips$jobs"
      timed "$clip" -q -j "$jobs" --encoder libx264 -o "$scratch/clips$jobs" "$1" >>"$scratch/j$jobs"
    done
    diff -r "$scratch/clips1" "$scratch/clips2" >/dev/null || echo "-j2 gives other bytes than -j1"
  done
  for run in whole j1 j2; do
    for column in 1 2 3; do cut -d' ' -f$column "$scratch/$run" | sort -n | head -1; done
  done | paste -sd' ' | awk -v name="$(basename "$1")" '{
    printf "%-28s ffmpeg %6.2f s  processor %6.2f s   -j1 %6.2f s %6.2f s %4.0f MiB   -j2 %6.2f s %6.2f s %4.0f MiB   ",
      name, $1, $2, $4, $5, $6, $7, $8, $9
    printf "-j2 / processor of ffmpeg %.2f (0.55)  processor %.2f (1.10)\n", $7 / $2, $8 / $2 }'
}

echo "a lone video to clips against ffmpeg -c:v libx264 -preset veryfast -crf 18, both with two threads"
for video; do lone "$video"; done

echo "memory at most, MiB"
draw "$scratch/10s.mp4" 320x180 10
draw "$scratch/long.mp4" 320x180 "${LONG:-3600}"
for mode in shots "-j1 --output $scratch/out --encoder libx264:ultrafast --max-length 10s --shard-size 8MiB" \
  "-j2 --output $scratch/out2 --encoder libx264:ultrafast --max-length 10s --shard-size 8MiB"; do
  # shellcheck disable=SC2086
  for video in 10s long; do timed "$clip" $mode "$scratch/$video.mp4" | cut -d' ' -f3; done |
    paste -sd' ' | awk -v mode="${mode%% *}" -v long="${LONG:-3600}" '{
      printf "%-14s 10 s: %6.1f   %d s: %6.1f   ratio %.2f\n", mode, $1, long, $2, $2 / $1 }'
done
