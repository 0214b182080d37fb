#!/usr/bin/env bats
# The memory of vfm-clip with 4K video of every codec: the figures that vfm-clips(7) reports.
# SPDX-License-Identifier: Apache-2.0
load ../cli/helpers
bats_require_minimum_version 1.5.0

# peak CODEC OPTIONS...: the peak, in MiB, of cutting 120 frames of 3840x2160 in that codec.
peak() {
  local codec=$1
  shift
  quiet_ffmpeg -f lavfi -i testsrc2=size=3840x2160:rate=25 -t 4.8 -c:v "$codec" "$@" -pix_fmt yuv420p "$codec.mkv"
  /usr/bin/time -f %M -o peak vfm-clip -j1 --audio drop -o "$codec" "$codec.mkv" >m
  echo "$codec: $(($(cat peak) / 1024)) MiB" >&3
  [ "$(cat peak)" -lt $((1 << 20)) ]
}

@test "h264 in 4K takes less than 1 GiB at -j1" { peak libx264 -preset ultrafast; }
@test "hevc in 4K takes less than 1 GiB at -j1" { peak libx265 -preset ultrafast -x265-params log-level=none; }
@test "vp9 in 4K takes less than 1 GiB at -j1" { peak libvpx-vp9 -deadline realtime -cpu-used 8 -b:v 8M; }
@test "av1 in 4K takes less than 1 GiB at -j1" { SVT_LOG=1 peak libsvtav1 -preset 12; }
