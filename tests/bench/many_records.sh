#!/usr/bin/env bash
# What vfm-shard keeps of its samples between reading and writing, and vfm-clip of its inputs, by their number: seconds,
# private memory and temporary disk, as a Markdown table, with the facts of samples that no tar holds.
# Usage: tests/bench/many_records.sh [COUNT...]     (default: 1000000 10000000 100000000; 30 GB of disk in TMPDIR)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${VFM_BUILD:-$root/build}
program=$build/tests/bench/many_records
ninja -C "$build" tests/bench/many_records >/dev/null
[ $# -gt 0 ] || set -- 1000000 10000000 100000000
printf '| tool | records | seconds | private memory, MiB | temporary disk, bytes a record |\n|---|---:|---:|---:|---:|\n'
for tool in shard clip; do
  for count; do
    read -r records seconds memory disk < <("$program" $tool "$count")
    printf '| vfm-%s | %s | %s | %s | %s |\n' $tool "$records" "$seconds" "$memory" "$disk"
  done
done
