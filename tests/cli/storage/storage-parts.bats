#!/usr/bin/env bats
# --part in a bucket: the folder of one machine with a disk, whoever does the parts and whoever is killed.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is of run --separate-stderr
bats_require_minimum_version 1.5.0

setup_file() {
  load ../helpers
  load storage
  setup_tools
  cd "$BATS_FILE_TMPDIR" || return 1
  bucket_start || return 1
  [ -z "${NO_BUCKET-}" ] || return 0
  make_part_sources 24 media
  make_undisturbed
}
teardown_file() { load storage && bucket_stop; }
setup() {
  load ../helpers
  load storage
  setup_tools
  needs_bucket
  cd "$BATS_FILE_TMPDIR" || return 1
  export VFM_LEASE_SECONDS=3
}

@test "four processes, of which one is killed, do the parts of a list in a bucket; status and join tell what they tell of a disk" {
  local pids=() i
  list_parts s3://media/made 7
  [ "$(vfm-clip status s3://media/made --missing)" = 0-6 ]
  for i in 1 2 3 4; do
    setsid vfm-clip -j1 -o s3://media/made --part auto >"out$i" 2>"err$i" </dev/null 3>&- &
    pids+=($!)
  done
  sleep 0.4
  kill -KILL "${pids[2]}" 2>/dev/null || true
  wait "${pids[2]}" || true
  for i in 0 1 3; do wait "${pids[i]}" || { cat err*; return 1; }; done
  [ -z "$(vfm-clip status s3://media/made --missing)" ]
  vfm-clip status s3://media/made | records | jq -se '.[-1] | .kind == "parts" and .parts == 7 and .done == 7 and .missing == 0'
  vfm-caption -j2 --part auto/3 s3://media/made >captions
  vfm-shard join s3://media/made >made.jsonl
  same_as_undisturbed s3://media/made
}

@test "of one part that many claim at the same time, one process has the lease" {
  local pids=() i
  list_parts s3://media/claimed 1
  proxy_start
  for i in 1 2 3 4; do
    vfm-clip -j1 -o s3://media/claimed --part next >"out$i" 2>"err$i" </dev/null 3>&- &
    pids+=($!)
  done
  local statuses=()
  for i in "${pids[@]}"; do
    local status=0
    wait "$i" || status=$?
    statuses+=($status)
  done
  echo "${statuses[@]}"
  [ "$(printf '%s\n' "${statuses[@]}" | grep -c '^0$')" -ge 1 ]
  [ -z "$(printf '%s\n' "${statuses[@]}" | grep -v '^[04]$')" ]
  # Each shard was put once.
  asked 'map(select(.method == "PUT" and (.path | test("\\.tar$"))) | .path) | [length, (unique | length)]'
  [ "$(asked 'map(select(.method == "PUT" and (.path | test("\\.tar$"))) | .path) | length == (unique | length)')" = true ]
}

@test "a store that lets a second create pass is refused for parts, and named" {
  list_parts s3://media/unsafe 2
  proxy_start
  faults <<<'unconditional'
  run --separate-stderr in_a_minute vfm-clip -o s3://media/unsafe --part auto
  echo "$status $stderr"
  [ "$status" -eq 2 ] && [[ $stderr == *"$AWS_ENDPOINT_URL"* || $stderr == *"${AWS_ENDPOINT_URL#http://}"* ]] && [[ $stderr == *"If-None-Match"* ]]
  [ -z "$(bucket_objects list media/unsafe | grep '\.tar$')" ]
  # Without parts nobody needs it.
  vfm-clip --min-length 1s -o s3://media/alone s3://media/raw/large1.mp4 >alone.jsonl
  [ "$(records alone.jsonl | wc -l)" -ge 1 ]
}

@test "leases, markers and shards under faults and stale listings" {
  list_parts s3://media/faulty 4
  proxy_start 7
  faults <<'END'
stale seconds=2
lost method=PUT chance=0.1
error status=409 code=ConditionalRequestConflict header=if-(none-)?match method=PUT,POST chance=0.1
error status=503 code=SlowDown chance=0.05
reset chance=0.03
END
  local pids=() i
  for i in 1 2; do
    vfm-clip -j1 -o s3://media/faulty --part auto >"out$i" 2>"err$i" </dev/null 3>&- &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i" || { cat err*; return 1; }; done
  [ "$(injected)" -gt 3 ]
  no_faults
  [ -z "$(vfm-clip status s3://media/faulty --missing)" ]
  vfm-caption --part auto/3 s3://media/faulty >captions
  vfm-shard join s3://media/faulty >joined
  same_as_undisturbed s3://media/faulty
}

# bats test_tags=night
@test "a stage that follows vfm-clip in a bucket, and a dataset that is planned and written in parts there" {
  local follower i choices=(--keep-duplicates --split 'train=0.7,val=0.3')
  list_parts s3://media/followed 4
  vfm-caption -j1 --part auto/3 --follow 30s s3://media/followed >captions 2>caption.err 3>&- &
  follower=$!
  vfm-clip -j1 -o s3://media/followed --part auto >made 2>err
  wait $follower || { cat caption.err && return 1; }
  vfm-shard join s3://media/followed >joined
  same_as_undisturbed s3://media/followed
  vfm-shard -o s3://media/whole "${choices[@]}" --shard-size 64KiB s3://media/followed >whole.jsonl
  for i in 1 0; do vfm-shard plan -o s3://media/planned "${choices[@]}" --part $i/2 s3://media/followed >scanned; done
  vfm-shard plan -o s3://media/planned "${choices[@]}" --shard-size 64KiB s3://media/followed >planned.jsonl
  vfm-shard --plan s3://media/planned/plan.bin --part auto/3 >parts.jsonl &
  vfm-shard --plan s3://media/planned/plan.bin --part auto/3 >more.jsonl
  wait $!
  vfm-shard join s3://media/planned >planned.jsonl
  [ "$(records parts.jsonl more.jsonl | wc -l)" -eq "$(records planned.jsonl | wc -l)" ]
  rm -rf whole planned
  bucket_objects get media/whole whole
  bucket_objects get media/planned planned
  rm -r planned/parts planned/plan.bin
  settle whole s3://media/whole
  settle planned s3://media/planned
  diff -r whole planned
  [ "$(find whole -name '*.tar' | wc -l)" -gt 2 ]
}
