#!/usr/bin/env bats
# Stages of a pipeline: vfm-train's parallel.pp, parallel.vpp and parallel.stages, on processes of their own.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

setup() {
  setup_tools
  needs_mpi
  "$BATS_TEST_DIRNAME/../make-latents" latents 24
  tiny_recipe 4 <<'YAML'
data: {tokens: 16, packs: 4, window: 8}
schedule: {warmup: 5}
validation: {every: 4, samples: 4}
train: {checkpoint_every: 100000, log_every: 1, step_limit: 20}
YAML
}

# train RANKS STEPS OUT ARGUMENTS...: on so many processes.
train() {
  local ranks=$1 steps=$2 out=$3
  shift 3
  run --separate-stderr timeout 100 mpirun -np "$ranks" vfm-train tiny.yaml -j1 --data latents -o "$out" train.steps="$steps" "$@"
  echo "${stderr-}"
}

# losses RUN: of steps and validations.
losses() { jq -c 'select(.loss or .val_loss) | [.step, .loss // .val_loss]' "$1/metrics.jsonl"; }

# near RUN OTHER: both have the same losses, but for rounding.
near() {
  jq -en --slurpfile a <(losses "$1") --slurpfile b <(losses "$2") \
    '($a | length) > 6 and ($a | length) == ($b | length)
     and all(range($a | length); $a[.][0] == $b[.][0] and (($a[.][1] - $b[.][1]) / $b[.][1] | fabs) < 2e-4)'
}

@test "stages train as one process does, and the run goes on with any other layout" {
  train 1 8 one
  [ "$status" -eq 0 ]
  train 2 8 two parallel.pp=2
  [ "$status" -eq 0 ]
  near one two
  if at_night; then
    train 4 8 four parallel.pp=2 parallel.vpp=2 parallel.tp=2
    [ "$status" -eq 0 ]
    near one four
  fi
  # What two stages have written one process goes on with, and then three stages.
  train 1 12 two
  [ "$status" -eq 0 ]
  train 3 16 two parallel.pp=3
  [ "$status" -eq 0 ]
  train 1 16 one
  [ "$status" -eq 0 ]
  near one two
  at_night || return 0
  train 2 16 chunks parallel.pp=2 parallel.vpp=2 "parallel.stages=[1,1,1,1]"
  [ "$status" -eq 0 ]
  near one chunks
}

# bats test_tags=night
@test "check proves stages, alone and with heads that ranks share" {
  layouts=("4 parallel.pp=2 parallel.tp=2 parallel.vpp=2")
  ! at_night || layouts+=("2 parallel.pp=2")
  for layout in "${layouts[@]}"; do
    read -r ranks layout <<<"$layout"
    # shellcheck disable=SC2086
    run --separate-stderr timeout 60 mpirun -np "$ranks" vfm-train check tiny.yaml -j1 --data latents $layout
    echo "$stderr"
    [ "$status" -eq 0 ]
    jq -e '(.layout | endswith(" pp=2")) and .passed and (.values | length > 60)' <<<"$output"
  done
}

# bats test_tags=night
@test "what a pipeline cannot do is refused before any work, and too few packs are warned of" {
  refused() {
    local says=$1
    shift
    train 2 4 run "$@"
    [ "$status" -eq 2 ] && [ ! -e run ]
    [[ $stderr == *"$says"* ]]
  }
  refused "4 blocks are not shared by 2 stages of a pipeline with 3 chunks each" parallel.pp=2 parallel.vpp=3
  refused "'parallel.stages' is [3,2], 5 blocks together" parallel.pp=2 "parallel.stages=[3,2]"
  refused "must be 4 numbers" parallel.pp=2 parallel.vpp=2 "parallel.stages=[2,2]"
  refused "'parallel.pp' is 1" parallel.vpp=2
  refused "needs a multiple of 3 ranks, not 2" parallel.pp=3
  refused "'model.offload' is true, and this run computes on the CPU" parallel.pp=2 model.offload=true
  refused "'parallel.ahead' is 1, and 'parallel.pp' is 1" parallel.ahead=1
  refused "'parallel.ahead' is 1, and 'parallel.vpp' is 2" parallel.pp=2 parallel.vpp=2 parallel.ahead=1
  train 2 2 run parallel.pp=2 data.packs=1
  [ "$status" -eq 0 ]
  [[ $stderr == *"1 microbatch a step is fewer than the 2 stages of the pipeline"*"'data.packs' is 1, should be at least 2"* ]]
}

@test "cost has the memory of each stage, and what passes between them" {
  vfm-train cost tiny.yaml --data latents --ranks 2 parallel.pp=2 "parallel.stages=[3,1]" >cost.json 2>words
  cat words
  grep -qE "^ranks +2 \(tp 1, cp 1, dp 1, pp 2\)$" words
  grep -qE "^  1 +[0-9.]+ [KMG]iB of 1 block$" words
  jq -e '.layout.pp == 2 and (.memory_bytes.stages | length == 2 and .[0].blocks == 3 and .[1].blocks == 1
         and .[0].weights > .[1].weights) and .memory_bytes.weights == .memory_bytes.stages[0].weights
         and .sent_bytes_per_step.pp == 4 * 16 * 24 * 4' cost.json
  # Of a GPU the host's memory keeps what blocks read, of the two packs under way on the first stage and the one on the
  # second; with one more ahead of three.
  away() {
    vfm-train cost tiny.yaml --data latents --gpu h100 --ranks 2 parallel.pp=2 model.recompute=block "$@" 2>/dev/null |
      jq -c '[.memory_bytes.stages[].pinned / (16 * 24 * 4) | round]'
  }
  [ "$(away)" = "[0,0]" ]
  read -r first second ahead < <(jq -rn --argjson usual "$(away model.offload=true)" \
    --argjson ahead "$(away model.offload=true parallel.ahead=1)" '"\($usual[0]) \($usual[1]) \($ahead[0])"')
  [ "$second" -ge 2 ] && [ "$first" -eq $((2 * second)) ] && [ "$ahead" -eq $((3 * second)) ]
}

# bats test_tags=night
@test "stages take the memory that their cost says" {
  wide_recipe wide.yaml 4 <<'YAML'
schedule: {warmup: 0}
validation: {every: 0}
train: {log_every: 1}
YAML
  made_up=(vfm-train wide.yaml --synthetic 4x16x32 data.tokens=512 data.packs=4 --device cpu -j1 -q)
  layouts=("parallel.pp=2 parallel.stages=[3,1]")
  ! at_night || layouts+=("parallel.pp=2 parallel.vpp=2" "parallel.pp=2")
  for layout in "${layouts[@]}"; do
    read -ra keys <<<"$layout"
    rm -rf run
    cost_of "${made_up[@]}" "${keys[@]}" --ranks 2 >cost.json
    mpirun -np 2 "${made_up[@]}" "${keys[@]}" train.steps=2 -o run >/dev/null
    jq -s '[(.[0].memory_bytes | .total - .host), (.[1:] | map(.memory_ranks.most) | max)]
           | debug | .[1] / .[0] | . > 0.95 and . < 1.05' cost.json run/timing.jsonl | grep -qx true
  done
}

# bats test_tags=night
@test "adapters go through stages, and are those of one process" {
  vfm-train tiny.yaml -j1 --data latents -o base train.steps=4 -q >/dev/null
  printf 'data: {tokens: 16, packs: 4, window: 8}\nschedule: {warmup: 0}\nvalidation: {every: 4, samples: 4}\ntrain: {log_every: 1}\n' >tiny.yaml
  train 1 8 one lora.rank=2 --init base
  [ "$status" -eq 0 ]
  train 2 8 two lora.rank=2 --init base parallel.pp=2 parallel.vpp=2
  [ "$status" -eq 0 ]
  near one two
  # And on one process, which finds all of them.
  train 1 12 two --init base lora.rank=2
  [ "$status" -eq 0 ]
}
