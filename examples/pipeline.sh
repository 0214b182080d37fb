#!/usr/bin/env bash
# The whole way, from a folder of videos to new videos, as one would type it.
# Usage: examples/pipeline.sh RAW OUT
# Run it again after a crash or with more videos: it continues where it was.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
raw=${1:?usage: pipeline.sh RAW OUT}
out=${2:?usage: pipeline.sh RAW OUT}
recipes=$(cd "$(dirname "$0")/recipes" && pwd)
mkdir -p "$out"

find "$raw" -type f \( -name '*.mp4' -o -name '*.webm' -o -name '*.mov' -o -name '*.mkv' \) | sort |
  vfm-clip -o "$out/clips" |
  vfm-caption |
  vfm-embed |
  vfm-shard --where 'motion > 0.0005 AND seconds >= 1' --split train=0.95,val=0.05 -o "$out/dataset" |
  vfm-pack --size 64 --frames 17 -o "$out/latents" >"$out/latents.jsonl"

vfm-train "$recipes/quickstart.yaml" --data "$out/latents" -o "$out/run" >"$out/run.jsonl"
echo 'a red circle moves left' | vfm-generate --model "$out/run" -o "$out/videos"
