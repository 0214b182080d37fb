#!/bin/bash
# What each measure of vfm-clip costs beside the one decode, in processor time.
# Usage: tests/bench/measures.sh BUILD_DIR VIDEO...
# All seconds are user and system time of one thread or of -j1, so other work on the machine counts for little. "Of all" is of
# vfm-clip -j1 that cuts the video into clips. Prints Markdown.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
build=$1
shift
ninja -C "$build" tests/bench/measures >/dev/null
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
for video in "$@"; do
  rm -rf "$scratch/clips"
  /usr/bin/time -f '%U %S' -o "$scratch/time" "$build/tools/vfm-clip" -q -j1 -o "$scratch/clips" "$video" >/dev/null
  total=$(awk '{ print $1 + $2 }' "$scratch/time")
  echo "$(basename "$video"), cut in $total s of processor time:"
  echo
  "$build/tests/bench/measures" "$video" "$total"
  echo
done
