#!/usr/bin/env bash
# Seconds, private memory and temporary disk by the number of records, as a Markdown table: what vfm-shard keeps of its
# samples between reading and writing, and vfm-clip of its inputs (tools "shard" and "clip"); sharing out names of videos to
# a thousand parts ("list"); joining the shards of a thousand parts of vfm-clip and vfm-caption ("join"); and telling how far
# such parts are ("status"; the number is that of parts then, with a hundred shards each).
# Usage: TOOLS="shard clip list join status" tests/bench/many_records.sh [COUNT...]
#        (default: 1000000 10000000 100000000; 30 GB of disk in TMPDIR)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${VFM_BUILD:-$root/build}
program=$build/tests/bench/many_records
ninja -C "$build" tests/bench/many_records tools/vfm-clip tools/vfm-shard >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
[ $# -gt 0 ] || set -- 1000000 10000000 100000000

# own COUNT COMMAND...: count, seconds, memory in MiB, and disk in bytes a record.
own() {
  local count=$1 begin=$EPOCHREALTIME memory disk
  "$root/tests/cli/own-memory" "$work/memory" "${@:2}" >"$work/out"
  read -r memory disk <"$work/memory"
  awk -v n="$count" -v s="$(bc <<<"$EPOCHREALTIME - $begin")" -v m="$memory" -v d="$disk" \
    'BEGIN { printf "%d %.1f %.1f %.1f\n", n, s, m / 2 ^ 20, d / n }'
}
measure() {
  local count=$2
  case $1 in
    list) "$program" names "$work/raw" "$count" | own "$count" "$build/tools/vfm-clip" list -q -o "$work/clips" -n 1000 - ;;
    join) "$program" parts "$work/clips" "$count" 1000 && own "$count" "$build/tools/vfm-shard" join -q "$work/clips" ;;
    status)
      "$program" parts "$work/clips" $((100 * count)) "$count"
      own "$count" "$build/tools/vfm-clip" status -q --report "$work/page.html" "$work/clips"
      ;;
    *) "$program" "$@" ;;
  esac
  rm -rf "${work:?}"/*
}

printf '| tool | records | seconds | private memory, MiB | temporary disk, bytes a record |\n|---|---:|---:|---:|---:|\n'
for tool in ${TOOLS:-shard clip list join}; do
  for count; do
    read -r records seconds memory disk < <(measure "$tool" "$count")
    printf '| %s | %s | %s | %s | %s |\n' "$tool" "$records" "$seconds" "$memory" "$disk"
  done
done
