#!/usr/bin/env bats
# A rank that is killed, stopped or stuck: how soon it is named, what is left to read, and what is no alarm.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is of run --separate-stderr

load ../helpers
load ranks
bats_require_minimum_version 1.5.0

setup() {
  setup_tools
  needs_mpi
  host=$(hostname)
}

latents() {
  "$BATS_TEST_DIRNAME/../make-latents" latents 24
  tiny_recipe <<'YAML'
data: {tokens: 16, packs: 60, window: 8}
schedule: {warmup: 5}
validation: {every: 0}
train: {checkpoint_every: 100000, log_every: 1}
YAML
}

teardown() {
  end_ranks
  [ -z "${hosts-}" ] || "$hosts" down
}

# ends_within SECONDS STATUS...: the run ends in that time with one of these.
ends_within() {
  local begin=$SECONDS status=0
  wait "$launcher" || status=$?
  echo "status $status after $((SECONDS - begin)) s"
  cat err
  [ $((SECONDS - begin)) -le "$1" ]
  [[ " ${*:2} " == *" $status "* ]]
}

@test "a rank that is killed is named at once, and the others leave what they did" {
  latents
  start_ranks 4 10000000
  sleep 2.5 # a rank says once a second where it is
  pid=$(rank_pid 2)
  kill -KILL "$pid"
  # mpirun has a status of its own for a rank that was killed.
  ends_within 5 137 5
  [ "$(grep -c '^vfm-train: ' err)" -eq 1 ]
  grep -qE "^vfm-train: rank 2 on host $host \(pid $pid\) has ended without a word: it was killed, or it crashed; rank 2 was last seen in 'step', .*(in|after) .* \([0-9]+ of '[a-z+ ]+'\).*; all ranks end, and the same command continues from the newest checkpoint; 'vfm-train why run' tells" err
  [ "$(cd run/flight && echo ./*)" = "./rank-00000.json ./rank-00001.json ./rank-00003.json ./run.json" ]
  jq -e '.rank == 3 and .section == "step" and (.collectives | length > 10 and length <= 1000)
    and all(.collectives[]; .begun > 0 and (.what | length > 0))' run/flight/rank-00003.json
  jq -e '.kind == "ended" and .rank == 2 and .status == 5 and (.all | length == 4) and
    (.all[1].beat.section == "step")' run/flight/run.json
  vfm-train why run >told
  cat told
  grep -q "^the run ended at .* UTC: rank 2 on host $host (pid $pid) has ended without a word" told
  grep -q "^rank 2 did not come to .*, where rank" told
  grep -q "^no record of rank 2: " told
  vfm-train why run --json | jq -e '.died and .reason == "ended" and .lost == [2] and .without_record == [2]'
  # What is cut is left out, and the others tell.
  truncate -s 100 run/flight/rank-00003.json
  vfm-train why run >told
  cat told
  grep -q "^'run/flight/rank-00003.json' is left out: " told
  grep -q "^rank 2 did not come to .*, where rank" told
  # The next start removes them.
  vfm-train tiny.yaml -j1 --data latents -o run train.steps=1 >/dev/null
  [ "$(vfm-train why run)" = "no record: the run did not die, or not since it was last started" ]
}

@test "a rank that is stopped is named within the limit, with status 5" {
  latents
  limit=5
  ! at_night || limit=10
  # The default is 10.
  settings=(train.silent_limit=$limit)
  ! at_night || settings=()
  start_ranks 4 10000000 "${settings[@]}"
  sleep 2.5
  pid=$(rank_pid 1)
  kill -STOP "$pid"
  begin=$(date +%s.%N)
  until grep -q "^vfm-train: rank 1 on host" err; do
    kill -0 "$launcher"
    sleep 0.05
  done
  jq -en --argjson begin "$begin" --argjson now "$(date +%s.%N)" --argjson limit "$limit" '$now - $begin | debug | . <= $limit'
  ends_within 10 5
  [ "$(grep -c '^vfm-train: ' err)" -eq 1 ]
  grep -qE "^vfm-train: rank 1 on host $host \(pid $pid\) is silent: no sign of life for [0-9]+ s, while its host answers: the process is stopped or hangs; rank 1 was last seen in 'step', " err
  vfm-train why run --json | jq -e '.reason == "silent" and .lost == [1]'
}

@test "a rank that lives but does not come on is named after three times the usual step" {
  SECONDS=0
  run --separate-stderr timeout 60 mpirun -np 4 "${VFM_BUILD:?}/tests/unit/mpi_groups" stuck
  echo "$stderr"
  [ "$status" -eq 5 ]
  [ "$SECONDS" -le 30 ]
  [ "$(grep -c '^mpi_groups: ' <<<"$stderr")" -eq 1 ]
  [[ $stderr == *"mpi_groups: rank 3 on host $host did not come to all_reduce of F32 elements [1000] (12 of 'cp') during step, after "*", within 3 s (three times the usual 'step', at least 'train.silent_limit'): stuck, stopped, lost, or too slow; rank 3 was last seen in 'step', "*"after all_reduce of F32 elements [1000] (12 of 'tp'), after all_reduce of F32 elements [1000] (11 of 'cp')"* ]]
  vfm-train why . >told
  cat told
  grep -q "^rank 3 did not come to all_reduce of F32 elements \[1000\] (12 of 'cp'), where rank 1 waits$" told
  grep -q "^rank 3 waits for no rank: it is in 'step' after all_reduce of F32 elements \[1000\] (12 of 'tp')$" told
}

@test "a rank that hangs in a write of the metrics is named after three times the usual step" {
  latents
  cc -shared -fPIC -o hang-write.so "$BATS_TEST_DIRNAME/hang-write.c"
  HANG=/run/metrics.jsonl HANG_WHEN=$PWD/hangs LD_PRELOAD=$PWD/hang-write.so start_ranks 3 10000000 train.silent_limit=5
  until [ "$(wc -l <run/metrics.jsonl)" -ge 10 ]; do kill -0 "$launcher" && sleep 0.1; done
  touch hangs
  ends_within 20 5
  [ "$(grep -c '^vfm-train: ' err)" -eq 1 ]
  grep -qE "^vfm-train: rank 0 on host $host did not come to .* during step, after .*, within [0-9.]+ s \(three times the usual 'step', at least 'train.silent_limit'\): stuck, stopped, lost, or too slow; rank 0 was last seen in 'step', " err
}

# bats test_tags=night
@test "a disk that stands still while a checkpoint is written is no alarm" {
  latents
  cc -shared -fPIC -o hang-write.so "$BATS_TEST_DIRNAME/hang-write.c"
  touch slow
  HANG=/checkpoints/ HANG_WHEN=$PWD/slow HANG_TOO=/run/metrics.jsonl HANG_TOO_WHEN=$PWD/stalls LD_PRELOAD=$PWD/hang-write.so \
    start_ranks 2 10000000 train.silent_limit=5 train.checkpoint_every=300
  until [ "$(wc -l <run/metrics.jsonl)" -ge 310 ]; do kill -0 "$launcher" && sleep 0.05; done
  touch stalls
  sleep 9
  kill -0 "$launcher"
  [ "$(wc -l <run/metrics.jsonl)" -lt 600 ] # else the ranks waited for the checkpoint, and in no step
  rm stalls slow
  until [ "$(wc -l <run/metrics.jsonl)" -ge 700 ]; do kill -0 "$launcher" && sleep 0.1; done
  cat err
  [ "$(grep -c '^vfm-train: rank' err)" -eq 0 ]
  [ -e run/checkpoints/step-00000300/COMPLETE ]
}

@test "a rank whose memory has changed is named by the comparison with the others, and nothing of it is saved" {
  latents
  # Steps that change no weight: what a checkpoint has is what ranks have in memory.
  still=(optimizer.lr=1e-30 optimizer.weight_decay=0 schedule.warmup=0)
  vfm-train tiny.yaml -j1 --data latents -o first train.steps=1 "${still[@]}" >/dev/null
  start_ranks 3 10000000 "${still[@]}" train.compare_every=20
  python3 - "$(rank_pid 1)" first/checkpoints/step-00000001/model/diffusion_pytorch_model.safetensors <<'PY' || skip "cannot write to the memory of a process"
import json, struct, sys

pid, path = sys.argv[1:]
data = open(path, "rb").read()
length = struct.unpack("<Q", data[:8])[0]
begin = 8 + length + json.loads(data[8:8 + length])["patch_embed.proj.weight"]["data_offsets"][0]
wanted = data[begin:begin + 256]
with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
    for line in open(f"/proc/{pid}/maps"):
        place, rights = line.split()[:2]
        if not rights.startswith("rw"):
            continue
        first, last = (int(number, 16) for number in place.split("-"))
        try:
            memory.seek(first)
            found = memory.read(last - first).find(wanted)
        except OSError:
            continue
        if found >= 0:
            memory.seek(first + found)
            memory.write(bytes([wanted[0] ^ 1]))
            print(f"changed {first + found:x}")
PY
  ends_within 20 1
  grep -qE "^vfm-train: rank 1 on host $host has another 'patch_embed.proj.weight' than rank 0 on host $host that should have the same: it computes wrongly, or its memory was changed\. Leave that host out, .* \(rank 1 on host $host\)" err
  [ "$(grep -c '^vfm-train: ' err)" -eq 1 ]
  [ -z "$(ls run/checkpoints)" ]
  vfm-train why run >told
  cat told
  grep -q "^the run ended at .*: rank 1 on host $host failed: rank 1 on host $host has another 'patch_embed.proj.weight'" told
}

# bats test_tags=night
@test "where the disk has no room for the records, that is said, and why tells what it has" {
  latents
  cc -shared -fPIC -o hang-write.so "$BATS_TEST_DIRNAME/hang-write.c"
  FULL=/flight/ LD_PRELOAD=$PWD/hang-write.so start_ranks 2 10000000
  kill -KILL "$(rank_pid 1)"
  ends_within 10 137 5
  grep -q "^vfm-train: rank 1 on host $host .* has ended without a word" err
  grep -q "^vfm-train: no flight record of rank 0: .*run.json': No space left on device" err
  [[ $(vfm-train why run) == "no record: the run did not die"* ]]
}

# bats test_tags=night
@test "a signal to all ranks, or to one alone, ends the run without an alarm" {
  latents
  start_ranks 3 10000000
  kill -TERM "$launcher"
  ends_within 10 143 0 1
  [ "$(grep -c '^vfm-train: .*rank' err)" -eq 0 ]
  rm -r run
  start_ranks 3 10000000
  kill -TERM "$(rank_pid 1)"
  ends_within 20 1 143
  [ "$(grep -c '^vfm-train: .*rank' err)" -eq 0 ]
}

# two_hosts: a launcher for mpirun on two hosts that are network namespaces, ranks 0 and 1 on vfma, 2 and 3 on vfmb.
two_hosts() {
  hosts=$VFM_ROOT/tests/support/two-hosts
  "$hosts" up || { hosts=""; skip "cannot make network namespaces here"; }
  latents
}

start_on_hosts() {
  "$hosts" mpirun -np 4 "$@" >out 2>err 3>&- &
  launcher=$!
}

# bats test_tags=night
@test "a link that is down between two hosts is named within 10 s" {
  two_hosts
  start_on_hosts vfm-train tiny.yaml -v -j1 --data latents -o run train.steps=10000000
  until [ -s run/metrics.jsonl ]; do
    kill -0 "$launcher"
    sleep 0.1
  done
  grep -q "^vfm-train: rank 2 on host vfmb (pid [0-9]*) beats over 10\.213\.7\.2$" err
  grep -q "^vfm-train: MPI takes the interfaces vfmnet (OMPI_MCA_btl_tcp_if_include), and NCCL takes the interfaces that it chooses (NCCL_SOCKET_IFNAME is not set)$" err
  sleep 2.5 # a rank says once a second where it is
  "$hosts" cut
  begin=$(date +%s.%N)
  until grep -q "^vfm-train: rank 2 on host vfmb .* is silent" err; do sleep 0.05; done
  jq -en --argjson begin "$begin" --argjson now "$(date +%s.%N)" '$now - $begin | debug | . <= 10'
  cat err
  grep -q "^vfm-train: rank 2 on host vfmb (pid [0-9]*) is silent: no sign of life for [0-9]* s, and its host does not answer: the host or its link is down (with rank 3); rank 2 was last seen in 'step', " err
  # No rank is left, on either side, and each has its record. Both sides tell; that of rank 0 stays.
  for _ in $(seq 200); do
    [ -n "$("$hosts" ranks vfm-train)" ] || break
    sleep 0.1
  done
  [ -z "$("$hosts" ranks vfm-train)" ]
  [ "$(cd run/flight && echo ./rank*)" = "./rank-00000.json ./rank-00001.json ./rank-00002.json ./rank-00003.json" ]
  jq -e '.kind == "silent" and .rank == 2' run/flight/run.json
  [ "$(grep -c "another program" err)" -eq 0 ]
}

# bats test_tags=night
@test "where MPI's data does not travel between hosts, the start says so and does not hang" {
  two_hosts
  "$hosts" mislead
  start_on_hosts vfm-train tiny.yaml -j1 --data latents -o run train.steps=10
  ends_within 60 5
  grep -q "^vfm-train: the ranks have started, but their first exchange over MPI has not come within 30 s (rank 0 on host vfma): MPI takes the interfaces vfmdata (OMPI_MCA_btl_tcp_if_include)" err
}
