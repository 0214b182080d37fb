#!/usr/bin/env bats
# Stores that fail: each program ends with the bytes of an undisturbed run, or with an error that names the object.
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
  make_work || return 1
  bucket faults
  local program
  for program in "${programs[@]}"; do wanted "$program" || return 1; done
}
teardown_file() { load storage && bucket_stop; }
setup() {
  load ../helpers
  load storage
  setup_tools
  needs_bucket
  cd "$BATS_FILE_TMPDIR" || return 1
  [ -n "${PROXY-}" ] || proxy_start
}

# under RULES-FILE PROGRAM PLACE: the program's work with these faults, of which there must be some.
under() {
  faults <"$1"
  work_in "$2" s3://media "s3://$3" 2
  in_a_minute "${command[@]}" >out.txt 2>err || { echo "${command[*]}" && cat err && return 1; }
  [ "$(injected)" -gt 0 ] || { echo "no fault in $(asked length) requests" && return 1; }
  as_wanted "$3" "$2"
}
# all_under NAME: each program.
all_under() {
  local program begin=$SECONDS
  cat >"rules-$1"
  for program in "${programs[@]}"; do
    under "rules-$1" "$program" "faults/$1/$program" || { echo "$program"; return 1; }
  done
  echo "$1: $((SECONDS - begin)) s"
}

@test "each program, struck five times or more and killed once, ends with the bytes of an undisturbed run" {
  local program nth struck
  cat >mix <<'END'
error status=503 code=SlowDown nth=2
reset nth=4
lost method=PUT,POST nth=1
truncate method=GET nth=3
reset-body method=GET nth=5
END
  # A program, and the request that writes at which it is killed.
  while read -r program nth; do
    work_in "$program" s3://media "s3://faults/day/$program" 2
    faults < <(strike_at "$nth" && cat mix)
    victim "${command[@]}"
    [ "$(asked 'any(.fault == "run")')" = true ] || { echo "$program was not killed" && cat err && return 1; }
    struck=$(injected)
    faults <mix
    in_a_minute "${command[@]}" >out.txt 2>err || { echo "$program" && cat err && return 1; }
    struck=$((struck + $(injected)))
    [ "$struck" -ge 5 ] || { echo "$program: $struck faults" && return 1; }
    as_wanted "faults/day/$program" "$program" killed || { echo "$program"; return 1; }
    [ -z "$(bucket_objects uploads "faults/day/$program")" ]
  done <<'END'
clip 3
caption 2
embed 2
shard 7
pack 7
train 9
generate 2
END
}

# bats test_tags=night
@test "a store that is slow down, busy or broken now and then" {
  all_under busy <<'END'
error status=503 code=SlowDown chance=0.1
error status=429 code=TooManyRequests retry_after=0 chance=0.1
error status=500 code=InternalError nth=2
error status=409 code=ConditionalRequestConflict header=if-(none-)?match method=PUT,POST chance=0.1
END
}

# bats test_tags=night
@test "connections that are reset before an answer, and answers that are lost after the work was done" {
  all_under reset <<'END'
reset chance=0.1
lost chance=0.1
reset nth=3
END
}

# bats test_tags=night
@test "bodies that break off, by a reset and by an end" {
  all_under broken <<'END'
reset-body method=GET chance=0.15
truncate method=GET chance=0.15
truncate method=GET nth=2
END
}

# bats test_tags=night
@test "slow connections, and uploads with a wrong bit, which the server refuses" {
  all_under slow <<'END'
pace latency=0.01 rate=4000000
flip-up method=PUT chance=0.2
flip-up method=PUT nth=1
END
}

# bats test_tags=night
@test "killed at a request that writes, and run again" {
  local program nth begin=$SECONDS
  for program in "${programs[@]}"; do
    work_in "$program" s3://media "s3://faults/killed/$program" 2
    nth=$((RANDOM % 6 + 1))
    faults < <(strike_at "$nth")
    victim "${command[@]}"
    no_faults
    in_a_minute "${command[@]}" >out.txt 2>err || { echo "$program, killed at $nth" && cat err && return 1; }
    as_wanted "faults/killed/$program" "$program" killed || { echo "$program, killed at $nth"; return 1; }
    [ -z "$(bucket_objects uploads "faults/killed/$program")" ]
  done
  echo "$((SECONDS - begin)) s"
}

# bats test_tags=night
@test "a store that fails for ever ends each program within VFM_NET_SECONDS, and what was written before is whole" {
  local program begin
  for program in "${programs[@]}"; do
    work_in "$program" s3://media "s3://faults/ever/$program" 2
    faults <<<'error status=503 code=SlowDown method=PUT,POST skip=2'
    begin=$SECONDS
    run --separate-stderr env VFM_NET_SECONDS=1 timeout -k 1 60 "${command[@]}"
    echo "$program: $status, $((SECONDS - begin)) s, $stderr"
    [ "$status" -eq 1 ] && [[ $stderr == *"503 SlowDown"* && $stderr == *"s3://faults/ever/"* ]]
    [ $((SECONDS - begin)) -le 15 ]
    no_faults
  done
  in_a_minute "${command[@]}" >out.txt 2>err
  as_wanted faults/ever/generate generate
}

@test "an object that changes, or goes, under a read is an error with its name" {
  bucket_objects put media/tars/ faults/changing
  local name names
  mapfile -t names < <(cd media/tars && ls ./*.tar | sed "s#^\./##")
  name=${names[0]}
  head -c 50000 /dev/zero >other
  cat >change <<END
#!/bin/bash
VFM_ROOT=$VFM_ROOT source $VFM_ROOT/tests/support/bucket.bash
bucket_objects put other faults/changing/$name
END
  chmod +x change
  faults <<<"run program=$PWD/change method=GET path=changing/$name nth=1
pace rate=300000"
  run --separate-stderr in_a_minute vfm-embed -o s3://faults/changed "s3://faults/changing/$name"
  echo "$status $stderr"
  [ "$status" -eq 1 ] && [[ $stderr == *"changing/$name"* ]]
  [ "$(injected)" -eq 1 ]
  run bucket_objects list faults/changed/
  [[ $output != *".embed.tar"* ]]
}

@test "a wrong bit in a shard that is read is found by the hash of its record" {
  local record
  work_in shard s3://media s3://faults/flipped 2
  "${command[@]}" >shards.txt
  record=$(records shards.txt | head -1)
  faults <<<'flip method=GET path=\.tar$'
  run --separate-stderr in_a_minute vfm-embed -o s3://faults/flipped-columns <<<"$record"
  echo "$status $stderr"
  [ "$status" -eq 1 ] && [[ $stderr == *"s3://faults/flipped/"* ]]
  [ "$(injected)" -gt 0 ]
}

@test "Retry-After is heeded" {
  local begin
  faults <<<'error status=503 code=SlowDown retry_after=2 nth=1'
  begin=${EPOCHREALTIME/./}
  vfm-clip shots "s3://media/$(cd media && ls raw/*.mp4 | head -1)" >out.txt
  [ $((${EPOCHREALTIME/./} - begin)) -gt 1900000 ]
  [ "$(injected)" -eq 1 ]
}

# bats test_tags=night
@test "an upload that a killed run left is ended by the next run" {
  # A shard of more than one part of an upload.
  mkdir -p big
  head -c 40000000 /dev/urandom >big/k1.bin
  echo '{"caption":"x"}' >big/k1.json
  cp "$(ls raw/*.mp4 | head -1)" big/k1.mp4
  tar --format=ustar --sort=name -C big -cf big.tar .
  bucket_objects put big.tar faults/big.tar
  command=(vfm-shard --keep-duplicates -o s3://faults/large s3://faults/big.tar)
  faults < <(strike_at 2 query=partNumber=)
  victim "${command[@]}"
  no_faults
  [ "$(bucket_objects uploads faults | wc -l)" -eq 1 ]
  run bucket_objects list faults/large/
  echo "$output"
  [ "$(grep -c '\.tar$' <<<"$output")" -eq 0 ]
  "${command[@]}" >out.txt
  [ -z "$(bucket_objects uploads faults)" ]
  # In parts, and read twice: to be planned and to be copied. The killed run may have read a part of it after the log began.
  [ "$(asked 'map(select(.query | test("partNumber="))) | length')" -ge 2 ]
  [ "$(asked 'map(select(.path == "/faults/big.tar" and .method == "GET") | .down) | add')" -le 125000000 ]
  vfm-shard --keep-duplicates -o large s3://faults/big.tar >out.txt
  rm -rf got && bucket_objects get faults/large got
  settle got s3://faults/large
  settle large large
  diff -r large got
}

# read_once PROGRAM REQUESTS: whether it reads the bytes of each shard once, and asks for it and its columns so often at most.
read_once() {
  local size of_shards='map(select(.path | test("^/media/tars/")))'
  no_faults
  work_in "$1" s3://media "s3://faults/once/$1" 2
  "${command[@]}" >out.txt
  size=$(cat media/tars/*.tar | wc -c)
  echo "$1: $size, $(asked "$of_shards | map(select(.method == \"GET\") | .down) | add"), $(asked "$of_shards | length")"
  [ "$(asked "$of_shards | map(select(.method == \"GET\") | .down) | add")" -le $((size * 11 / 10)) ]
  [ "$(asked "$of_shards | length")" -le $(($(ls media/tars/*.tar | wc -l) * $2)) ]
}

@test "a shard that is hashed, looked through and used is read once; a run that goes on lists its checkpoints once" {
  read_once embed 15
  work_in train s3://media s3://faults/once/train 2
  "${command[@]}" train.steps=2 >out.txt
  no_faults
  "${command[@]}" >out.txt 2>err
  asked 'map(select(.query | test("list-type=")) | .query)'
  # Beside what killed programs may have left, and the records of a run that died.
  [ "$(asked 'map(select((.query | test("list-type=")) and (.query | test("%2F(\\.vfm-|flight)") | not))) | length')" -eq 1 ]
  [ "$(asked 'map(select((.query | test("list-type=")) and (.query | test("train%2Fcheckpoints%2F")))) | length')" -eq 1 ]
  bucket_objects list faults/once/train/checkpoints/
  [ "$(bucket_objects list faults/once/train/checkpoints/ | grep -c COMPLETE)" -eq 1 ]
}

# bats test_tags=night
@test "a shard is read once by vfm-caption and vfm-pack too" {
  read_once caption 15
  read_once pack 15
}
