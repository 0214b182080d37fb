#!/usr/bin/env bash
# gpu_decode.sh BUILD CODES: vfm-pack on a GPU with clips that software decodes, and with clips that the GPU's video
# engine (NVDEC) decodes, whose pictures then stay on the GPU: the latents must be the same bytes, and how many frames a
# second both ways make is printed as records for scripts/gpu-report. BUILD gets a build of vfm-pack with FFmpeg for the GPU
# codes CODES (as -Dgpu_codes has them), unless it has one.
# What is missing for that, and what installs it, is said in the last line on standard error; exit status 77 then.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: gpu_decode.sh BUILD CODES" >&2; exit 2; }
build=$(realpath -m "$1") codes=$2
cd "$(dirname "$0")/../.."
libraries=(libavformat libavcodec libavutil libswscale libswresample)
readonly kClips=8 kFrames=121

record() { printf '{"bench": "decode", "case": "720p to 256", "impl": "%s", %s}\n' "$1" "$2"; }
missing() {
  for way in software nvdec; do record "$way" "\"error\": \"${1%%:*}\""; done
  echo "gpu_decode.sh: $1" >&2
  exit 77
}

if ! pkg-config --exists "${libraries[@]}" 2>/dev/null || ! command -v ffmpeg >/dev/null; then
  missing "FFmpeg with its headers is not there: scripts/install-deps installs it, or apt-get install ffmpeg pkg-config \
${libraries[*]/%/-dev}"
fi
# Not piped: grep would end before ffmpeg has said all.
hwaccels=$(ffmpeg -hide_banner -hwaccels 2>/dev/null)
grep -qx cuda <<<"$hwaccels" ||
  missing "this FFmpeg has no NVDEC: Debian's and Ubuntu's packages have it (apt-get install ffmpeg); one of your own \
needs nv-codec-headers (ffnvcodec) and ./configure --enable-cuvid --enable-nvdec"
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 || true)
known=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p)
grep -q 'libnvcuvid\.so\.1 ' <<<"$known" ||
  missing "the NVIDIA driver lacks libnvcuvid.so.1: install the part of driver ${driver:--} for video, \
libnvidia-decode-${driver%%.*} (Ubuntu) or libnvcuvid1 (Debian); a container is to be started with \
NVIDIA_DRIVER_CAPABILITIES=compute,utility,video"

if [ ! -x "$build/tools/vfm-pack" ]; then
  {
    meson setup "$build" --buildtype=release -Dtests=disabled -Dman=disabled -Dmpi=disabled -Dcuda=enabled \
      -Dgpu_codes="$codes"
    ninja -C "$build" tools/vfm-pack
  } >&2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/clips"
for ((i = 0; i < kClips; ++i)); do
  ffmpeg -nostdin -v error -f lavfi -i "testsrc2=size=1280x720:rate=24,hue=h=$((i * 40)),noise=alls=12" -frames:v $kFrames \
    -c:v libx264 -preset veryfast -pix_fmt yuv420p "$work/clips/clip-$i.mp4" >&2
done
tar --format=ustar --sort=name -C "$work/clips" -cf "$work/clips.tar" .

pack() { # pack HWACCEL OUTPUT
  "$build/tools/vfm-pack" -v --device cuda --hwaccel "$1" --size 256 --frames $kFrames -j "$kClips" --force -o "$work/$2" \
    "$work/clips.tar" >"$work/records" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
}
# Once before: kernels and libraries are loaded, files are in the cache.
for way in none:software cuda:nvdec; do
  pack "${way%:*}" "${way#*:}"
  begin=$(date +%s%N)
  pack "${way%:*}" "${way#*:}"
  seconds=$(($(date +%s%N) - begin))
  record "${way#*:}" "\"value\": $((kClips * kFrames * 1000000000 / seconds)), \"unit\": \"frames/s\""
done
if grep -E 'on the CPU|in software' "$work/log" >&2; then
  echo "gpu_decode.sh: the GPU did not decode the clips or did not make their pictures" >&2
  exit 1
fi
diff -r "$work/software" "$work/nvdec" >&2 || { echo "gpu_decode.sh: the latents differ" >&2; exit 1; }
# What the GPU decodes for a tokenizer on the processor comes through the system's memory.
for way in none cuda; do
  "$build/tools/vfm-pack" --device cpu --hwaccel "$way" --size 256 --frames 9 --windows middle -o "$work/cpu-$way" "$work/clips.tar" \
    >/dev/null 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
done
diff -r "$work/cpu-none" "$work/cpu-cuda" >&2 || { echo "gpu_decode.sh: the processor's latents differ" >&2; exit 1; }
