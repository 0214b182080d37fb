#!/usr/bin/env bats
# Memory and temporary disk of vfm-shard and vfm-clip do not grow with the number of samples and inputs.
# SPDX-License-Identifier: Apache-2.0

bats_require_minimum_version 1.5.0

setup() {
  load ../cli/helpers
  setup_tools
}

# grows_little A B: B is at most 1.1 times A.
grows_little() { awk -v a="$1" -v b="$2" 'BEGIN { print "memory, MiB:", a, b; exit b > 1.1 * a }'; }

@test "ten million records: memory as of one million, less than 300 bytes of disk each" {
  program=$VFM_BUILD/tests/bench/many_records
  [ -x "$program" ] || ninja -C "$VFM_BUILD" tests/bench/many_records >/dev/null
  export TMPDIR=$PWD
  local tool memory disk more
  for tool in shard clip; do
    read -r _ _ memory disk < <("$program" $tool 1000000)
    awk -v disk="$disk" 'BEGIN { exit disk > 300 }'
    read -r _ _ more disk < <("$program" $tool 10000000)
    awk -v disk="$disk" 'BEGIN { exit disk > 300 }'
    grows_little "$memory" "$more"
  done
}

@test "a million small samples in tars: memory as of a hundred thousand, and all are there" {
  mkdir few many
  "$VFM_ROOT/tests/nightly/make-small-samples" few 100 1000
  "$VFM_ROOT/tests/nightly/make-small-samples" many 1000 1000
  options=(--split train=0.9,val=0.1 --shard-size 20MB -j2 -q)
  few=$("$VFM_ROOT/tests/nightly/private-peak" vfm-shard few/*.tar -o a "${options[@]}")
  many=$("$VFM_ROOT/tests/nightly/private-peak" vfm-shard many/*.tar -o b "${options[@]}")
  [ "$(jq .samples a/dataset.json)" = 99000 ]
  [ "$(jq .samples b/dataset.json)" = 990000 ]
  [ "$(jq .duplicates.exact b/dataset.json)" = 10000 ]
  [ "$(wc -l <b/sources.jsonl)" = 100000 ]
  grows_little "$few" "$many"
}
