#!/usr/bin/env bats
# Several ranks of vfm-train: one that falls silent, a job that is suspended, and what they share.
# SPDX-License-Identifier: Apache-2.0

load helpers
bats_require_minimum_version 1.5.0

setup() {
  setup_tools
  vfm-train --version | grep -qi 'mpi: *yes' || skip "built without MPI"
  command -v mpirun >/dev/null || skip "no mpirun"
  "$BATS_TEST_DIRNAME/make-latents" latents 24
  cat >tiny.yaml <<'YAML'
model: {num_attention_heads: 2, attention_head_dim: 12, num_layers: 2, adaln_lora_dim: 4, max_size: [4, 8, 8]}
data: {tokens: 16, packs: 60, window: 8}
schedule: {warmup: 5}
validation: {every: 0}
train: {checkpoint_every: 100000, log_every: 1, step_limit: 2}
YAML
}

teardown() {
  # Nothing of a test that failed stays behind, least of all a process that is stopped.
  [ -z "${launcher-}" ] || pkill -KILL -P "$launcher" 2>/dev/null || true
  [ -z "${launcher-}" ] || kill -KILL "$launcher" 2>/dev/null || true
}

# start_ranks RANKS STEPS: trains in the background; returns when it is among the steps.
start_ranks() {
  mpirun -np "$1" vfm-train tiny.yaml -j1 --data latents --out run train.steps="$2" >out 2>err 3>&- &
  launcher=$!
  until [ -s run/metrics.jsonl ]; do
    kill -0 "$launcher"
    sleep 0.1
  done
}

# rank_pid RANK: its process.
rank_pid() {
  local pid
  for pid in $(pgrep -P "$launcher" vfm-train); do
    if tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1"; then echo "$pid"; fi
  done
}

@test "a rank that falls silent is named with its host, and the run ends with status 1" {
  start_ranks 3 10000000
  kill -STOP "$(rank_pid 1)"
  status=0
  wait "$launcher" || status=$?
  cat err
  [ "$status" -eq 1 ]
  # Stopped while it computes, which it does nearly always, it is named; in the middle of a collective those that wait
  # in it for the silent one are named too, or MPI cannot say.
  grep -qE "^vfm-train: (rank [0-9]+ on host [^ ]+, )*rank 1 on host $(hostname)(, rank [0-9]+ on host [^ ]+)* did not come to (all_reduce of F(32|64) elements \[[0-9]+\]|MPI_[A-Za-z]+) \([0-9]+ of ('world'|all ranks)\) during step, after [^,]+, within 2 s \('train.step_limit'\): stopped|another rank was lost in it" err
}

# groups CASE: the program of tests/unit/dist/mpi_groups.cc on four ranks.
groups() { run --separate-stderr timeout 60 mpirun -np 4 "${VFM_BUILD:?}/tests/unit/mpi_groups" "$1"; }

@test "groups of four ranks: every operation, every axis, sums in the order of the ranks" {
  groups operations
  echo "$stderr"
  [ "$status" -eq 0 ] && [ -z "$stderr" ]
}

@test "messages and sums of more than one piece" {
  groups large
  echo "$stderr"
  [ "$status" -eq 0 ] && [ -z "$stderr" ]
}

@test "a rank that falls silent in one group is named by those who wait for it by way of others" {
  groups silent
  echo "$stderr"
  [ "$status" -eq 1 ]
  [[ $stderr == *"mpi_groups: rank 3 on host $(hostname) did not come to all_reduce of F32 elements [1000] (3 of 'tp') during step, after "*"within 2 s ('train.step_limit')"* ]]
}

@test "a rank that leaves out a collective of one group: all are named with where they wait" {
  groups absent
  echo "$stderr"
  [ "$status" -eq 1 ]
  [[ $stderr == *"no rank is missing, but they wait for each other"*"rank 2 on host $(hostname) in all_reduce of F32 elements [1000] (3 of 'tp')"*" for 3; rank 3 on host "*" in "*" for "* ]]
}

@test "a message of another size is an error that names both ranks and the call" {
  groups longer
  echo "$stderr"
  [ "$status" -eq 1 ]
  [[ $stderr == *"all_reduce of F32 elements [2000] (3 of 'tp'), with rank 2 on host"*"sent 2000 bytes, and 4000 are awaited (rank 3)"* ||
    $stderr == *"all_reduce of F32 elements [1000] (3 of 'tp'), with rank 3 on host"*"truncated (rank 2)"* ]]
}

@test "a job that is suspended for longer than the limit goes on" {
  start_ranks 2 40
  first=$(rank_pid 0) second=$(rank_pid 1)
  kill -STOP "$first" "$second"
  sleep 4
  kill -CONT "$first" "$second"
  wait "$launcher"
  [ ! -s err ]
  [[ $(records out | tail -n 1) == *'"final":true}' ]]
}

@test "ranks share the memory of their machine, not of all machines" {
  usable() { env "$@" vfm-train tiny.yaml --data latents --dry-run --device cpu -q | jq .memory_bytes.usable; }
  alone=$(usable A=1)
  world=(OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0)
  two=$(usable "${world[@]}" OMPI_COMM_WORLD_LOCAL_SIZE=2)
  [ $((alone / 2 - two)) -le 1 ] && [ $((alone / 2 - two)) -ge -1 ]
}
