#!/usr/bin/env bash
# What vfm-pack keeps of very many samples: of 10^6 and more, in a folder whose shards are all finished
# (tests/bench/many_packed.cc), as a Markdown table the most memory that it has of its own while it goes through all of
# them and writes the files over all shards, and while it finds nothing to do; that of `vfm-pack plan`; seconds, and the bytes of
# temporary files a sample. About 1.2 kB of disk a sample.
# Usage: tests/bench/pack_scale.sh [SAMPLES [IN_SHARD [BUILD_DIR]]]     (default: 10000000 10000 build)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
samples=${1:-10000000} in_shard=${2:-10000} build=$(realpath "${3:-$root/build}")
ninja -C "$build" tests/bench/many_packed tools/vfm-pack >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
pack=("$build/tools/vfm-pack" -q --size 16)
mkdir one
ffmpeg -nostdin -loglevel error -f lavfi -i color=red:size=16x16 -frames:v 1 one/k.png
tar --format=ustar -C one -cf one.tar k.png
"${pack[@]}" -o first one.tar >/dev/null
"$build/tests/bench/many_packed" . "$samples" "$in_shard"
# Temporary files are seen where they are open and have no name; index.jsonl, which has one, stands twice for a moment.
measure() { # NAME COMMAND...
  local name=$1 begin=$EPOCHREALTIME
  shift
  "$root/tests/cli/own-memory" memory "$@" >/dev/null
  awk -v name="$name" -v memory="$(<memory)" -v begin="$begin" -v end="$EPOCHREALTIME" \
    -v samples="$samples" 'BEGIN {
      split(memory, most, " ")
      printf "| %s | %.0f | %.0f | %.1f |\n", name, most[1] / 1048576, most[2] / samples, end - begin
    }'
}
printf '| %s samples in shards of %s | own memory, MiB | temporary disk, bytes a sample | s |\n|---|---:|---:|---:|\n' "$samples" "$in_shard"
measure 'all shards are there, and the files over them are written' "${pack[@]}" -o out shards.jsonl
measure 'nothing to do' "${pack[@]}" -o out shards.jsonl
measure 'plan' "$build/tools/vfm-pack" plan out
