#!/usr/bin/env bats
# Buckets with many faults and kills: each program, training, and the parts of eight processes. By day a few stand for them
# (tests/cli/storage).
# VFM_NIGHTLY_FAULTS: rounds of each program; default: 50. SEED: of all that is drawn.
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0

setup_file() {
  load ../cli/helpers
  load ../cli/storage/storage
  setup_tools
  cd "$BATS_FILE_TMPDIR" || return 1
  bucket_start || return 1
  [ -z "${NO_BUCKET-}" ] || return 0
  make_work || return 1
  bucket faults
}
teardown_file() { load ../cli/storage/storage && bucket_stop; }
setup() {
  load ../cli/helpers
  load ../cli/storage/storage
  setup_tools
  needs_bucket
  cd "$BATS_FILE_TMPDIR" || return 1
  rounds=${VFM_NIGHTLY_FAULTS:-50}
  RANDOM=${SEED:=$(date +%s)}
  echo "SEED=$SEED"
}

# some_rules: three kinds of faults, drawn, of which some strike each tenth request.
some_rules() {
  shuf -n 3 --random-source=<(yes $RANDOM) <<'END'
error status=503 code=SlowDown chance=0.1
error status=503 code=SlowDown retry_after=1 times=2 chance=0.2
error status=429 code=TooManyRequests chance=0.1
error status=500 code=InternalError chance=0.1
error status=409 code=ConditionalRequestConflict header=if-(none-)?match method=PUT,POST chance=0.2
reset chance=0.1
lost chance=0.1
lost method=POST chance=0.3
reset-body method=GET chance=0.1
truncate method=GET chance=0.1
flip-up method=PUT chance=0.2
pace latency=0.02
pace rate=500000
stale seconds=2
END
}

# many_faults PROGRAM: rounds, each with faults and with up to two kills at a request that writes, and then the bytes of an
# undisturbed run.
many_faults() {
  local program=$1 round kills total=0 place
  wanted "$program"
  proxy_start "$SEED"
  for ((round = 0; round < rounds; ++round)); do
    place=faults/$program-$round
    work_in "$program" s3://media "s3://$place" 2
    some_rules >rules
    for ((kills = RANDOM % 3; kills > 0; --kills)); do
      faults < <(cat rules && strike_at $((RANDOM % 8 + 1)))
      victim "${command[@]}"
      total=$((total + $(injected)))
    done
    faults <rules
    timeout -k 1 120 "${command[@]}" >out.txt 2>err || { echo "round $round" && cat rules err && return 1; }
    total=$((total + $(injected)))
    as_wanted "$place" "$program" killed || { echo "round $round" && cat rules && return 1; }
    [ -z "$(bucket_objects uploads "$place")" ] || { echo "round $round: an upload is left" && return 1; }
    bucket_objects remove "$place"
  done
  echo "$program: $rounds rounds, $total faults, $SECONDS s" >&3
  [ "$total" -ge "$rounds" ]
}

@test "vfm-clip" { many_faults clip; }
@test "vfm-caption" { many_faults caption; }
@test "vfm-embed" { many_faults embed; }
@test "vfm-shard" { many_faults shard; }
@test "vfm-pack" { many_faults pack; }
@test "vfm-train" { many_faults train; }
@test "vfm-generate" { many_faults generate; }

@test "eight processes with random kills, faults and stale listings do the parts of four programs" {
  local pids=() kills=$rounds i
  mkdir -p parts && cd parts
  export VFM_LEASE_SECONDS=3
  make_part_sources 60 parts
  make_undisturbed
  list_parts s3://parts/made 16
  proxy_start "$SEED"
  faults <<'END'
stale seconds=1
lost method=PUT chance=0.03
error status=409 code=ConditionalRequestConflict header=if-(none-)?match method=PUT,POST chance=0.05
error status=503 code=SlowDown chance=0.03
reset chance=0.02
truncate method=GET chance=0.02
END
  cat >node <<'NODE'
again() { until "$@" </dev/null; do [ $? -ne 2 ] || exit 2; done; }
again vfm-clip -j1 -o s3://parts/made --part auto
again vfm-caption -j1 --part auto/3 s3://parts/made
NODE
  start() {
    setsid bash node >>"out$1" 2>>"err$1" </dev/null 3>&- &
    pids[$1]=$!
  }
  for i in {0..7}; do start "$i"; done
  while :; do
    sleep "0.$((RANDOM % 5 + 1))"
    if [ "$kills" -gt 0 ]; then
      kill -KILL -- "-${pids[RANDOM % 8]}" 2>/dev/null && kills=$((kills - 1))
    fi
    local alive=0
    for i in {0..7}; do
      if kill -0 "${pids[i]}" 2>/dev/null; then alive=$((alive + 1)); continue; fi
      wait "${pids[i]}" || { [ $? -ne 2 ] || { tail "err$i"; return 1; }; start "$i"; alive=$((alive + 1)); }
    done
    [ $alive -gt 0 ] || break
    [ $SECONDS -lt 3000 ]
  done
  no_faults
  [ -z "$(vfm-clip status s3://parts/made --missing)" ]
  vfm-shard join s3://parts/made >joined
  same_as_undisturbed s3://parts/made
}

@test "memory is bounded: a gigabyte is read and written with that of a disk, and what uploads and read-ahead need" {
  local i disk bucket
  mkdir -p large
  for i in 1 2 3 4; do
    mkdir -p source
    head -c 250000000 /dev/urandom >source/k$i.bin
    echo '{"caption":"x"}' >source/k$i.json
    cp "$(ls raw/*.mp4 | head -1)" source/k$i.mp4
    tar --format=ustar --sort=name -C source -cf large/$i.tar .
    rm -r source
  done
  bucket_objects put large media/large
  disk=$(own_memory vfm-shard -j2 --keep-duplicates -o here large/*.tar)
  bucket=$(own_memory vfm-shard -j2 --keep-duplicates -o s3://faults/here s3://media/large/{1,2,3,4}.tar)
  echo "disk $disk, bucket $bucket" >&3
  [ "$bucket" -le $((disk + (400 << 20))) ]
}
