#!/usr/bin/env bats
# Several ranks of vfm-train: one that falls silent, a job that is suspended, what they share, and their checkpoints.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load ranks
bats_require_minimum_version 1.5.0

setup() {
  setup_tools
  needs_mpi
  "$BATS_TEST_DIRNAME/../make-latents" latents 24
  tiny_recipe <<'YAML'
data: {tokens: 16, packs: 60, window: 8}
schedule: {warmup: 5}
validation: {every: 0}
train: {checkpoint_every: 100000, log_every: 1, step_limit: 2}
YAML
}

teardown() { end_ranks; }

@test "a rank that falls silent is named with its host, and the run ends with status 5" {
  start_ranks 3 10000000
  kill -STOP "$(rank_pid 1)"
  status=0
  wait "$launcher" || status=$?
  cat err
  [ "$status" -eq 5 ]
  # Stopped while it computes, which it does nearly always, it is named; in the middle of a collective those that wait
  # in it for the silent one are named too, or MPI cannot say.
  grep -qE "^vfm-train: (rank [0-9]+ on host [^ ]+, )*rank 1 on host $(hostname)(, rank [0-9]+ on host [^ ]+)* did not come to (all_reduce of F(32|64) elements \[[0-9]+\]|MPI_[A-Za-z]+( of [0-9]+ bytes)?) \([0-9]+ of ('[a-z+]+'|all ranks)\) during step, after [^,]+, within 2 s \('train.step_limit'\): stuck|another rank was lost in it" err
}

@test "SIGTERM to one rank saves on all and ends by it; start and resume say each line once" {
  start_ranks 2 10000000
  kill -TERM "$(rank_pid 1)"
  status=0
  wait "$launcher" || status=$?
  cat err
  [ "$status" -eq 143 ]
  [ "$(grep -cE "^vfm-train: ended after step [0-9]+ of 10000000, saved; the same command goes on from" err)" -eq 1 ]
  [ "$(jq -r 'select(.kind == "checkpoint") | .final' out)" = false ]
  touch run/stop
  mpirun -np 2 vfm-train tiny.yaml -v -j1 --data latents -o run train.steps=10000000 >out 2>err
  cat err
  [ ! -e run/stop ]
  [ -z "$(grep '^vfm-train: ' err | sort | uniq -d)" ]
  grep -q "^vfm-train: goes on after step" err
  grep -q "^vfm-train: asked to end: saved after step" err
  # The slowest rank and its host, also for TensorBoard.
  jq -se --arg host "$(hostname)" 'all(.[]; .busy_seconds.host == $host)' run/timing.jsonl
  "$BATS_TEST_DIRNAME/read-events" "$(printf '%s\n' run/events.* | tail -n 1)" |
    jq -se 'any(.[]; .tag == "timing/slowest_rank" and (.text | test("^rank [01] on host .*: busy ")))'
}

# bats test_tags=night
@test "a rank that cannot save, since another one is stopped, is killed by a second SIGTERM after five seconds" {
  start_ranks 2 10000000 train.step_limit=0 train.silent_limit=0
  local first second
  first=$(rank_pid 0) second=$(rank_pid 1)
  kill -STOP "$second"
  kill -TERM "$first"
  sleep 6
  kill -TERM "$first"
  status=0
  wait "$launcher" || status=$?
  [ "$status" -eq 143 ]
}

# groups CASE: the program of tests/unit/dist/mpi_groups.cc on four ranks.
groups() { run --separate-stderr timeout 60 mpirun -np 4 "${VFM_BUILD:?}/tests/unit/mpi_groups" "$1"; }

@test "groups of four ranks: every operation, every axis, sums in the order of the ranks" {
  groups operations
  echo "$stderr"
  [ "$status" -eq 0 ] && [ -z "$stderr" ]
}

# bats test_tags=night
@test "messages and sums of more than one piece" {
  groups large
  echo "$stderr"
  [ "$status" -eq 0 ] && [ -z "$stderr" ]
}

@test "messages and sums go on while the ranks compute" {
  groups beside
  echo "$stderr"
  [ "$status" -eq 0 ] && [ -z "$stderr" ]
}

# bats test_tags=night
@test "a rank that falls silent in one group is named by those who wait for it by way of others" {
  groups silent
  echo "$stderr"
  [ "$status" -eq 5 ]
  [[ $stderr == *"mpi_groups: rank 3 on host $(hostname) did not come to all_reduce of F32 elements [1000] (3 of 'tp') during step, after "*"within 2 s ('train.step_limit')"* ]]
}

# bats test_tags=night
@test "a rank that leaves out a collective of one group: all are named with where they wait" {
  groups absent
  echo "$stderr"
  [ "$status" -eq 5 ]
  [[ $stderr == *"no rank is missing, but they wait for each other"*"rank 2 on host $(hostname) in all_reduce of F32 elements [1000] (3 of 'tp')"*" for 3; rank 3 on host "*" in "*" for "* ]]
  vfm-train why . >told
  cat told
  grep -q "^rank 3 did not come to all_reduce of F32 elements \[1000\] (3 of 'tp'), where rank 2 waits$" told
  grep -q "^these ranks wait for each other: one has left out a collective" told
}

@test "a message of another size is an error that names both ranks and the call" {
  groups longer
  echo "$stderr"
  [ "$status" -eq 1 ]
  [[ $stderr == *"all_reduce of F32 elements [2000] (3 of 'tp'), with rank 2 on host"*"sent 2000 bytes, and 4000 are awaited (rank 3)"* ||
    $stderr == *"all_reduce of F32 elements [1000] (3 of 'tp'), with rank 3 on host"*"truncated (rank 2)"* ]]
}

@test "a layout that cannot be is refused before any work, once, with the nearest that can" {
  refused() {
    run --separate-stderr mpirun -np 3 vfm-train tiny.yaml -j1 --data latents -o run "$1"
    echo "$stderr"
    [ "$status" -eq 2 ] && [ ! -e run ]
    [ "$(grep -c '^vfm-train: ' <<<"$stderr")" -eq 1 ]
    [[ $stderr == *"$2"* ]]
  }
  refused parallel.tp=2 "needs a multiple of 2 ranks, not 3; on 3 ranks parallel.tp=1 can be"
  refused parallel.tp=3 "2 attention heads are not shared by 3 ranks; on 3 ranks parallel.tp=1 can be"
}

# bats test_tags=night
@test "what all ranks refuse one says, and they end in order" {
  refused() {
    run --separate-stderr mpirun -np 2 vfm-train "${@:2}" -j1
    echo "$stderr"
    [ "$status" -eq 2 ] && [ ! -e run ]
    [ "$(grep -c '^vfm-train: ' <<<"$stderr")" -eq 1 ]
    [[ $stderr == *"$1"* && $stderr != *MPI_ABORT* && $stderr != *"on host"* ]]
  }
  # Of options, of the recipe, of its data, of the folder.
  refused "--output is required" tiny.yaml --data latents
  refused "argument 'x' is not of the form" tiny.yaml x --data latents -o run
  refused "unknown key 'train.sead'" tiny.yaml train.sead=1 --data latents -o run
  refused "more than a pack holds" tiny.yaml data.tokens=1 --data latents -o run
  refused "nowhere" tiny.yaml --data nowhere -o run
  refused "cannot open 'absent.yaml'" absent.yaml --data latents -o run
  refused "unknown key 'train.sead'" check tiny.yaml train.sead=1 --data latents
  # What one rank alone cannot read is told with its host.
  run --separate-stderr mpirun -np 2 bash -c '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || set -- absent.yaml "${@:2}"; exec vfm-train "$@"' _ \
    tiny.yaml -j1 --data latents -o run
  echo "$stderr"
  [ "$status" -eq 2 ]
  [ "$(grep -c '^vfm-train: ' <<<"$stderr")" -eq 1 ]
  [[ $stderr == *"cannot open 'absent.yaml': No such file or directory (rank 1 on host $(hostname))"* && $stderr != *MPI_ABORT* ]]
}

# bats test_tags=night
@test "a job that is suspended for longer than the limit goes on" {
  start_ranks 2 40 train.step_limit=6
  first=$(rank_pid 0) second=$(rank_pid 1)
  kill -STOP "$first" "$second"
  sleep 12
  kill -CONT "$first" "$second"
  wait "$launcher" || { cat err && false; }
  cat err
  [ ! -s err ]
  [[ $(records out | tail -n 1) == *'"final":true}' ]]
}

@test "ranks share the memory of their machine, not of all machines" {
  usable() { env "$@" vfm-train cost tiny.yaml --data latents --device cpu -q | jq .memory_bytes.usable; }
  alone=$(usable A=1)
  world=(OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0)
  two=$(usable "${world[@]}" OMPI_COMM_WORLD_LOCAL_SIZE=2)
  [ $((alone / 2 - two)) -le 1 ] && [ $((alone / 2 - two)) -ge -1 ]
}

# bats test_tags=night
@test "the log of times names the slowest rank, and tells what ranks wait and send" {
  mpirun -np 2 vfm-train tiny.yaml -j1 --data latents -o run train.steps=3 >out
  jq -e -s 'length == 3 and all(.[];
    (.busy_seconds | .mean > 0 and .most >= .mean and (.rank == 0 or .rank == 1)) and
    (.data_seconds | .most >= .mean) and (.memory_ranks.most >= .memory_peak) and
    .wait_seconds.world >= 0 and .sent_bytes.world > 0)' run/timing.jsonl
  "$BATS_TEST_DIRNAME/read-events" run/events.out.tfevents.* | jq -e -s 'any(.tag == "timing/busy_seconds/most")'
  # One rank waits for nobody.
  vfm-train tiny.yaml -j1 --data latents -o alone train.steps=1 >out
  jq -e 'has("memory_peak") and (has("busy_seconds") | not)' alone/timing.jsonl
  # Of those who share samples, stages of a pipeline included, each reads its part of the bytes that one reads.
  mpirun -np 4 vfm-train tiny.yaml -j1 --data latents -o shared parallel.tp=2 parallel.pp=2 train.steps=1 >out
  jq -e '.read_bytes | .most <= 1.2 * .mean and .mean > 0' shared/timing.jsonl
  [ "$(jq .read_bytes shared/metrics.jsonl)" = "$(jq .read_bytes alone/metrics.jsonl)" ]
}

@test "a checkpoint that any number of ranks loads and saves again has the same bytes" {
  again=$VFM_BUILD/tests/bench/checkpoint
  # The last of them is gone on with below.
  kinds=("ema.mode=off")
  ! at_night || kinds=("" "model.compute=bf16 optimizer.moments=bf16" "${kinds[@]}")
  for settings in "${kinds[@]}"; do
    rm -rf run one two three
    # shellcheck disable=SC2086
    mpirun -np 2 vfm-train tiny.yaml -j1 --data latents -o run train.steps=3 $settings >/dev/null
    cp -r run/checkpoints/step-00000003 saved
    "$again" one --again run
    mpirun -np 2 "$again" two --again one
    mpirun -np 3 "$again" three --again two/checkpoints/step-00000003
    for ranks in one two three; do diff -r saved "$ranks/checkpoints/step-00000003"; done
    rm -r saved
  done
  # And a run that goes on from such a copy is that run.
  rm -r run/checkpoints && mv three/checkpoints run/
  mpirun -np 3 vfm-train tiny.yaml -j1 --data latents -o run train.steps=4 ema.mode=off >out
  [[ $(records out | tail -n 1) == *'"step":4,"steps":4,"final":true}' ]]
}

# bats test_tags=night
@test "a rank that cannot write ends the checkpoint on all: named with its host, and nothing is left of it" {
  mpirun -np 3 vfm-train tiny.yaml -j1 --data latents -o run train.steps=2 >/dev/null
  before=$(tree_hash run/checkpoints)
  # Files of rank 2 may have 2000 bytes, which its logs and messages do not reach.
  status=0
  mpirun -np 2 vfm-train tiny.yaml -j1 --data latents -o run train.steps=4 : \
    -np 1 bash -c 'trap "" XFSZ; ulimit -f 2; exec "$@"' _ vfm-train tiny.yaml -j1 --data latents -o run train.steps=4 \
    >out 2>err || status=$?
  cat err
  [ "$status" -eq 1 ]
  [ "$(grep -c ' (rank [0-9] on host ' err)" -eq 1 ]
  grep -qE "^vfm-train: cannot write 'run/checkpoints/.step-00000004.tmp/[a-z]+/[a-z_]+.safetensors': File too large \(rank 2 on host $(hostname)\)" err
  [ "$(tree_hash run/checkpoints)" = "$before" ]
  vfm-train why run >told
  cat told
  grep -qE "^the run ended at .*: rank 2 on host $(hostname) failed: cannot write .*File too large" told
  jq -e '.section == "checkpoint" and .error == ""' run/flight/rank-00001.json
  mpirun -np 3 vfm-train tiny.yaml -j1 --data latents -o run train.steps=4 >out
  [[ $(records out | tail -n 1) == *'"step":4,"steps":4,"final":true}' ]]
}

@test "a disk that is full for one rank is said once, with rank and host" {
  [ "$(id -u)" -eq 0 ] || skip "needs root to mount"
  mkdir small
  mount -t tmpfs -o size=900k tmpfs small || skip "cannot mount"
  status=0
  mpirun -np 3 vfm-train tiny.yaml -j1 --data latents -o small/run model.num_layers=6 train.steps=2 \
    train.checkpoint_every=1 >out 2>err || status=$?
  left=$(find small/run/checkpoints -mindepth 1 -maxdepth 1 | sort)
  complete=$(find small/run/checkpoints -name COMPLETE -printf '%h\n' | sort)
  umount small
  cat err
  [ "$status" -eq 1 ]
  [ "$(grep -c ' (rank [0-9] on host ' err)" -eq 1 ]
  grep -qE "^vfm-train: .*No space left on device \(rank [0-2] on host $(hostname)\)" err
  [ "$left" = "$complete" ]
}

# bats test_tags=night
@test "rows that travel in chunks along tp give the losses of rows as a whole, and are as many bytes" {
  local chunks keys=(--data latents -q parallel.tp=2 data.packs=2)
  for chunks in 1 2 5; do
    mpirun -np 2 vfm-train tiny.yaml -j1 "${keys[@]}" -o "in-$chunks" train.steps=3 parallel.tp_chunks=$chunks >/dev/null
    vfm-train cost tiny.yaml "${keys[@]}" --ranks 2 parallel.tp_chunks=$chunks >"cost-$chunks"
  done
  jq -s 'map(.loss)' in-1/metrics.jsonl >whole
  jq -e 'length == 3 and all(. > 0)' whole
  for chunks in 2 5; do
    jq -s 'map(.loss)' in-$chunks/metrics.jsonl | jq -es --slurpfile whole whole \
      '[.[0], $whole[0]] | transpose | length == 3 and all(.[0] / .[1] - 1 | fabs < 1e-5)'
    jq -e --slurpfile whole cost-1 --argjson chunks $chunks '.sent_bytes_per_step == $whole[0].sent_bytes_per_step
      and .layout.tp_chunks == $chunks and ($whole[0].layout | has("tp_chunks") | not)' cost-$chunks
  done
  # Left open it is what pays: nothing on a CPU, or of so few rows; chunks where a GPU has many.
  vfm-train cost tiny.yaml "${keys[@]}" --ranks 2 | jq -e '.layout | has("tp_chunks") | not'
  large=(model.num_attention_heads=32 model.attention_head_dim=128 model.max_size='[32,128,128]' data.tokens=65536 --synthetic 16x128x128)
  vfm-train cost tiny.yaml "${large[@]}" -q --ranks 2 parallel.tp=2 data.packs=2 --gpu h100 | jq -e '.layout.tp_chunks > 1'
  run --separate-stderr vfm-train cost tiny.yaml "${keys[@]}" --ranks 2 parallel.tp_chunks=-1
  [ "$status" -eq 2 ]
  [[ $stderr == *"'parallel.tp_chunks'"*"is '-1', must be a whole number of at least 0"* ]]
}

@test "a rank that is killed while it writes leaves the checkpoint before, and the same command goes on to the same bytes" {
  cc -shared -fPIC -o on-open.so "$BATS_TEST_DIRNAME/../on-open.c"
  hash_of() { (cd "$1/checkpoints" && find . -type f -exec sha256sum {} + | sort -k 2); }
  # One of the ranks, before it makes its first file of the second checkpoint, or its second; where each has a part of
  # the model, among the pieces that they send each other.
  places=("2 2") ranks=(1)
  ! at_night || places+=("1 1" "1 2") ranks+=(0)
  for tp_at in "${places[@]}"; do
    read -r tp at <<<"$tp_at"
    train=(vfm-train tiny.yaml -j1 --data latents train.steps=4 train.checkpoint_every=2 parallel.tp="$tp")
    rm -rf whole
    mpirun -np 2 "${train[@]}" -o whole >/dev/null
    for rank in "${ranks[@]}"; do
      rm -rf parts
      status=0
      ON_OPEN=.step-00000004.tmp/ ON_OPEN_AT=$at ON_OPEN_DO='kill -KILL $PPID' RANK=$rank \
        mpirun -np 2 bash -c '[ "$OMPI_COMM_WORLD_RANK" != "$RANK" ] || export LD_PRELOAD=$PWD/on-open.so; exec "$@"' _ \
        "${train[@]}" -o parts >/dev/null 2>&1 || status=$?
      [ "$status" -ne 0 ]
      [ "$(find parts/checkpoints -maxdepth 1 -name 'step-*')" = parts/checkpoints/step-00000002 ]
      mpirun -np 2 "${train[@]}" -o parts >/dev/null
      [ "$(hash_of parts)" = "$(hash_of whole)" ]
    done
  done
}

# bats test_tags=night
@test "ranks that begin from a model read the same as one, also where its run removes the checkpoint meanwhile" {
  cc -shared -fPIC -o on-open.so "$BATS_TEST_DIRNAME/../on-open.c"
  train=(vfm-train tiny.yaml -j1 --data latents train.keep=2)
  "${train[@]}" -o base train.steps=2 train.checkpoint_every=1 >/dev/null
  # Steps that change no weight show what they began from; the adapters of lora have none that are zero.
  still=(optimizer.lr=1e-30 optimizer.weight_decay=0 schedule.warmup=0 train.steps=1)
  "${train[@]}" --init base -o lora lora.rank=2 train.steps=2 >/dev/null
  weights=checkpoints/step-00000001/model/diffusion_pytorch_model.safetensors
  adapters=checkpoints/step-00000001/lora/pytorch_lora_weights.safetensors
  for ranks in 1 3; do
    mpirun -np $ranks "${train[@]}" --init base -o full$ranks "${still[@]}" >/dev/null
    mpirun -np $ranks "${train[@]}" --init lora -o merged$ranks "${still[@]}" >/dev/null
    mpirun -np $ranks "${train[@]}" --init lora -o more$ranks lora.rank=2 "${still[@]}" >/dev/null
  done
  cmp {full1,full3}/$weights
  cmp {merged1,merged3}/$weights
  cmp {more1,more3}/$adapters
  cmp base/checkpoints/step-00000002/state/ema.safetensors full3/$weights
  run cmp {full1,merged1}/$weights
  [ "$status" -eq 1 ]
  # The run under adapters goes on with ranks, each of which needs all of the model under them.
  mpirun -np 3 "${train[@]}" --init lora -o more3 lora.rank=2 "${still[@]}" train.steps=2 >out
  [[ $(records out | tail -n 1) == *'"step":2,"steps":2,"final":true}' ]]

  # Rank 1 finds that a file is gone, whichever, and all take the newest checkpoint.
  for ((at = 1; ; ++at)); do
    rm -rf going later made
    cp -r base going
    mv going/checkpoints/step-00000002 later
    ON_OPEN=going/checkpoints/step-00000001/ ON_OPEN_AT=$at \
      ON_OPEN_DO='mv later going/checkpoints/step-00000002 && rm -r going/checkpoints/step-00000001' \
      mpirun -np 2 bash -c '[ "$OMPI_COMM_WORLD_RANK" != 1 ] || export LD_PRELOAD=$PWD/on-open.so; exec "$@"' _ \
      "${train[@]}" --init going -o made "${still[@]}" >/dev/null
    [ ! -e later ] || break
  done
  [ "$at" -gt 2 ]
}

# most_of_ranks RANKS COMMAND...: kilobytes that the one of the ranks that has the most had at once.
most_of_ranks() {
  local ranks=$1
  shift
  rm -f took.*
  mpirun -np "$ranks" python3 -c 'import os, resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(took, file=open("took." + os.environ["OMPI_COMM_WORLD_RANK"], "w"))' "$@" 2>/dev/null
  sort -n took.* | tail -n 1
}

# near TOLD TOOK WHAT: kilobytes, within a twentieth.
near() {
  echo "$3: told $1 KiB, took $2" >&2
  [ $((100 * $1)) -ge $((95 * $2)) ] && [ $((100 * $1)) -le $((105 * $2)) ]
}

# bats test_tags=night
@test "what a rank takes while it begins, loads and trains is what its cost says of its layout" {
  wide_recipe wide.yaml 3 <<'YAML'
schedule: {warmup: 0}
validation: {every: 0}
train: {log_every: 1}
YAML
  made_up=(vfm-train wide.yaml --synthetic 4x16x32 data.tokens=512 --device cpu -j1 train.steps=2)
  small=(vfm-train wide.yaml --data latents data.tokens=16 --device cpu -j1 train.steps=1)
  layouts=("2 1 1 2")
  ! at_night || layouts+=("4 2 2 1" "2 2 1 1" "2 1 2 1")
  for layout in "${layouts[@]}"; do
    read -r ranks tp cp dp <<<"$layout"
    shared=(parallel.tp="$tp" parallel.cp="$cp" data.packs="$dp")
    rm -rf run
    told() { cost_of "${@:2}" "${shared[@]}" --ranks "$ranks" -q | jq ".memory_bytes | ($1) / 1024 | floor"; }
    step=$(told .total "${made_up[@]}")
    tensors=$(told '.total - .host' "${made_up[@]}")
    took=$(most_of_ranks "$ranks" "${made_up[@]}" "${shared[@]}" -o run)
    near "$step" "$took" "$layout, step"
    near "$tensors" "$(jq -s 'map(.memory_ranks.most) | max / 1024 | floor' run/timing.jsonl)" "$layout, tensors"
    rm -rf run
    mpirun -np "$ranks" "${small[@]}" "${shared[@]}" data.packs=2 -o run >/dev/null
    # At its end already, it begins, loads and has nothing to do.
    took=$(most_of_ranks "$ranks" "${small[@]}" "${shared[@]}" data.packs=2 -o run)
    near "$(told '[.construction, .load] | max' "${small[@]}" data.packs=2)" "$took" "$layout, load"
  done
}

# bats test_tags=night
@test "what a rank takes while it validates its average and saves is no more than its cost says of its layout" {
  wide_recipe deep.yaml 4 <<'YAML'
schedule: {warmup: 0}
validation: {every: 1, samples: 1}
train: {log_every: 1, checkpoint_every: 1, keep: 1, steps: 2}
YAML
  # Of short packs, so that what is kept from step to step is nearly all, and a copy of any of it would show.
  for layout in pp=2 shard=full; do
    train=(vfm-train deep.yaml --data latents data.tokens=16 data.packs=2 --device cpu -j1 parallel.$layout)
    told=$(cost_of "${train[@]}" --ranks 2 -q | jq .memory_bytes)
    rm -rf run
    took=$(most_of_ranks 2 "${train[@]}" -o run)
    [ -n "$(find run/checkpoints -name COMPLETE)" ] && grep -q val_loss run/metrics.jsonl
    near "$(jq '(.total - .host) / 1024 | floor' <<<"$told")" \
      "$(jq -s 'map(.memory_ranks.most) | max / 1024 | floor' run/timing.jsonl)" "$layout, tensors"
    [ $layout != shard=full ] || near "$(jq '(([.total, .save] | max) + 2 * .snapshot) / 1024 | floor' <<<"$told")" "$took" "$layout, all"
  done
}

# bats test_tags=night
@test "ranks that wait for an index that another program makes say so once, by the first of them" {
  # A list that is too long to be read without an index, of as many samples.
  python3 - latents/train/index.jsonl <<'PY'
import sys

with open(sys.argv[1]) as file:
    lines = file.read().splitlines()
pad = " " * ((17 << 20) // len(lines))
with open(sys.argv[1], "w") as file:
    file.write("".join(line[:-1] + pad + "}\n" for line in lines))
PY
  rm -f latents/train/index.bin
  other_program "$PWD/latents/train/index.bin"
  waits_for latents/train/index.bin mpirun -np 3 vfm-train tiny.yaml -v -j1 --data latents -o run train.steps=1
  sleep 1 # by then the others wait, too
  let_go
  wait "$waiting"
  cat waiting.err
  [ "$(grep -c 'another program is writing' waiting.err)" -eq 1 ]
  [ "$(head -c 8 latents/train/index.bin)" = VFMINDEX ]
}
