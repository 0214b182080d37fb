#!/usr/bin/env bash
# The metadata of a dataset in parts: what `vfm-shard plan --part`, the plan of all parts and `vfm-shard --plan` keep of very
# many samples that no tar holds, beside one process: seconds, private memory, and bytes a record, as a Markdown table.
# Usage: tests/bench/many_parts.sh [COUNT [PARTS]]     (default: 1000000 8; 100000000 takes 60 GB of disk in TMPDIR)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${VFM_BUILD:-$root/build} count=${1:-1000000} parts=${2:-8}
[ -n "${VFM_BUILT:-}" ] || ninja -C "$build" tests/bench/many_records >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
row() {
  local name=$1
  shift
  read -r _ seconds memory disk < <("$build/tests/bench/many_records" "$@")
  printf '| %s | %s | %s | %s |\n' "$name" "$seconds" "$memory" "$disk"
}
printf '| %s records | seconds | private memory, MiB | bytes a record |\n|---|---:|---:|---:|\n' "$count"
row 'one process, facts and plan; temporary files' shard "$count"
for ((part = 0; part < parts; ++part)); do row "facts of part $part of $parts; its file" scan "$count" "$work" $part "$parts"; done
row "plan of $parts parts; temporary files" plan "$count" "$work" 0 "$parts"
row "a writer of $parts reads its samples; plan.bin" read "$count" "$work" 0 "$parts"
row 'the join reads all samples; plan.bin' read "$count" "$work" 0 1
du -sh --apparent-size "$work" | awk '{print "All files of the folder: " $1}'
