#!/usr/bin/env bats
# A run on a layout of ranks that is killed at random moments ends with the bytes of one that was not; one that goes on
# with another layout each time, as near to it as another order of sums would be.
# SPDX-License-Identifier: Apache-2.0

load ../cli/helpers
bats_require_minimum_version 1.5.0

setup() {
  setup_tools
  needs_mpi
  "$BATS_TEST_DIRNAME/../cli/make-latents" latents 24
  tiny_recipe 2 4 <<'YAML'
data: {tokens: 16, packs: 12, window: 8}
schedule: {warmup: 5}
validation: {every: 0}
train: {steps: 120, checkpoint_every: 4, log_every: 1, step_limit: 20}
YAML
}

# kill_after STEPS RANKS KEYS...: trains until so many steps are done, and kills one of the ranks a little later.
kill_after() {
  local steps=$1 ranks=$2 pids
  shift 2
  mpirun -np "$ranks" vfm-train tiny.yaml -j1 --data latents -o run "$@" >/dev/null 2>&1 3>&- &
  launcher=$!
  until [ -s run/metrics.jsonl ] && (($(wc -l <run/metrics.jsonl) >= steps)); do
    kill -0 "$launcher" # it has not ended
    sleep 0.02
  done
  sleep "$(awk -v r="$RANDOM" 'BEGIN { printf "%.3f", 0.3 * r / 32768 }')"
  while mapfile -t pids < <(pgrep -P "$launcher" vfm-train) && ((${#pids[@]} == 0)); do
    kill -0 "$launcher" # it begins
    sleep 0.02
  done
  kill -KILL "${pids[RANDOM % ${#pids[@]}]}"
  # Now and then mpirun of Open MPI 4 waits for itself when all ranks have ended (in PMIx_server_finalize).
  local tenths
  for ((tenths = 0; tenths < 300; ++tenths)); do
    kill -0 "$launcher" 2>/dev/null || break
    sleep 0.1
  done
  if ((tenths == 300)); then
    [ -z "$(pgrep -r D,R,S,T -P "$launcher" vfm-train)" ]
    kill -KILL "$launcher"
  fi
  ! wait "$launcher"
}

# ten_kills RANKS KEYS...: the run goes on ten times with the same layout.
ten_kills() {
  local kill
  mpirun -np "$1" vfm-train tiny.yaml -j1 --data latents -o whole "${@:2}" >/dev/null
  for kill in {1..10}; do kill_after $((10 * kill)) "$@"; done
  mpirun -np "$1" vfm-train tiny.yaml -j1 --data latents -o run "${@:2}" >/dev/null
  diff -r whole/checkpoints run/checkpoints
  diff whole/metrics.jsonl run/metrics.jsonl
}

# apart RUN RUN: how far their losses are apart, as the root of the mean square.
apart() {
  paste <(jq .loss "$1/metrics.jsonl") <(jq .loss "$2/metrics.jsonl") |
    awk '{ sum += ($1 - $2) ^ 2 } END { if (NR != 120) exit 1; printf "%.6e", sqrt(sum / NR) }'
}

@test "ten kills of a rank: tp=2 cp=2, and two of each" { ten_kills 8 parallel.tp=2 parallel.cp=2; }
@test "ten kills of a rank: cp=4, tokens for heads" { ten_kills 4 parallel.cp=4 parallel.cp_kind=all_to_all; }
@test "ten kills of a rank: tp=2, two of each, in bf16" { ten_kills 4 parallel.tp=2 model.compute=bf16; }
@test "ten kills of a rank: pp=2 tp=2" { ten_kills 4 parallel.pp=2 parallel.tp=2; }
@test "ten kills of a rank: the state and the weights of two in parts" { ten_kills 2 parallel.shard=full; }
@test "ten kills of a rank: two stages whose ranks share their weights" { ten_kills 4 parallel.pp=2 parallel.shard=full; }

@test "ten kills, after each of which another layout goes on: its losses are as near as another order of sums" {
  local layouts=("4 parallel.pp=2 parallel.tp=2" "2 parallel.shard=full" "2 parallel.cp=2" "4 parallel.tp=2"
    "3 parallel.shard=optimizer" "4 parallel.pp=2 parallel.shard=full" "4 parallel.shard=full parallel.tp=2" "8 parallel.tp=2 parallel.cp=2"
    "4 parallel.pp=2 parallel.cp=2" "2 parallel.tp=2")
  local together floor=0 kill far
  for together in 0 1 3; do
    vfm-train tiny.yaml -j1 --data latents -o "one$together" data.micro_packs=$together >/dev/null
    floor=$(awk -v a="$floor" -v b="$(apart one0 "one$together")" 'BEGIN { print (a > b ? a : b) }')
  done
  for ((kill = 1; kill <= 10; ++kill)); do
    # shellcheck disable=SC2086 # several words
    kill_after $((10 * kill)) ${layouts[kill - 1]}
  done
  vfm-train tiny.yaml -j1 --data latents -o run >/dev/null
  far=$(apart one0 run)
  echo "$far apart; other orders of sums are $floor"
  awk -v far="$far" -v floor="$floor" 'BEGIN { exit !(floor > 0 && far < 3 * floor) }'
}

