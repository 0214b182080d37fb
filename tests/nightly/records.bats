#!/usr/bin/env bats
# Memory and temporary disk of vfm-shard and vfm-clip do not grow with the number of samples and inputs.
# VFM_NIGHTLY_SAMPLES: how many; default: ten million, and a tenth and a fifth of them in tars. With few the bounds do not
# hold, since buffers are not full: a million samples fill them. A hundred thousand show that the script works.
# SPDX-License-Identifier: Apache-2.0
load ../cli/helpers
bats_require_minimum_version 1.5.0

many=${VFM_NIGHTLY_SAMPLES:-10000000}

# grows_little A B: B is at most 1.1 times A, in bytes.
grows_little() { awk -v a="$1" -v b="$2" 'BEGIN { print "memory, MiB:", a / 2 ^ 20, b / 2 ^ 20; exit b > 1.1 * a }'; }

@test "very many records: memory as of a tenth, less than 300 bytes of disk each" {
  program=$VFM_BUILD/tests/bench/many_records
  [ -x "$program" ] || ninja -C "$VFM_BUILD" tests/bench/many_records >/dev/null
  export TMPDIR=$PWD
  local tool count memory disk before
  for tool in shard clip; do
    before=
    for count in $((many / 10)) "$many"; do
      read -r _ seconds memory disk < <("$program" $tool "$count")
      echo "vfm-$tool, $count: $seconds s, $memory MiB, $disk bytes of disk each" >&3
      awk -v disk="$disk" 'BEGIN { exit disk > 300 }'
      [ -z "$before" ] || awk -v a="$before" -v b="$memory" 'BEGIN { exit b > 1.1 * a }'
      before=$memory
    done
  done
}

@test "very many small samples in tars: memory as of half, and all are there" {
  local small=$((many / 10000)) shards
  shards=$((2 * small))
  mkdir few many
  "$VFM_ROOT/tests/nightly/make-small-samples" few $small 1000
  "$VFM_ROOT/tests/nightly/make-small-samples" many $shards 1000
  options=(--split train=0.9,val=0.1 --shard-size 20MB -j2 -q)
  few=$(own_memory vfm-shard few/*.tar -o a "${options[@]}")
  many=$(own_memory vfm-shard many/*.tar -o b "${options[@]}")
  [ "$(jq .samples a/dataset.json)" = $((990 * small)) ]
  [ "$(jq .samples b/dataset.json)" = $((990 * shards)) ]
  [ "$(jq .duplicates.exact b/dataset.json)" = $((10 * shards)) ]
  [ "$(wc -l <b/sources.jsonl)" = $((100 * shards)) ]
  grows_little "$few" "$many"
}
