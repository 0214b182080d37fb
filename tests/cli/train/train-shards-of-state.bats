#!/usr/bin/env bats
# vfm-train on ranks that keep the state of the training together: parallel.shard.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

setup() {
  setup_tools
  needs_mpi
  "$BATS_TEST_DIRNAME/../make-latents" latents 12
  tiny_recipe 3 <<'YAML'
data: {tokens: 16, packs: 4, window: 8}
schedule: {warmup: 2}
optimizer: {clip: 0}
validation: {every: 2, samples: 3}
train: {checkpoint_every: 2, log_every: 1, steps: 4}
YAML
}

# train RANKS RUN ARGUMENTS...
train() {
  local ranks=$1 out=$2
  shift 2
  run --separate-stderr timeout 60 mpirun -np "$ranks" vfm-train tiny.yaml -j1 --data latents -o "$out" "$@"
  echo "$stderr"
}

# tensors RUN STEP: hashes of the files of its checkpoint that are tensors.
tensors() { (cd "$1/checkpoints/step-0000000$2" && sha256sum model/*.safetensors state/*.safetensors); }

# refused WORDS ARGUMENTS...: by two ranks, before any work.
refused() {
  local words=$1
  shift
  train 2 refused "$@"
  [ "$status" -eq 2 ] && [ ! -e refused ]
  [[ $stderr == *"$words"* ]]
}

@test "a state that two processes keep together: the bits of one that both have, saved, and continued on other layouts" {
  local compute shard computes=(f32) shards=(full)
  ! at_night || computes+=(bf16) shards+=(optimizer)
  for compute in "${computes[@]}"; do
    train 2 "plain-$compute" model.compute=$compute
    [ "$status" -eq 0 ]
    for shard in "${shards[@]}"; do
      train 2 "$shard-$compute" model.compute=$compute parallel.shard=$shard
      [ "$status" -eq 0 ]
      diff <(tensors "plain-$compute" 4) <(tensors "$shard-$compute" 4)
      diff <(jq -S 'del(.grad_norm)' "plain-$compute/metrics.jsonl") <(jq -S 'del(.grad_norm)' "$shard-$compute/metrics.jsonl")
    done
  done
  # The first half on two processes, each with its part of the weights; the second with the state alone in parts.
  train 2 mixed parallel.shard=full train.steps=2
  [ "$status" -eq 0 ]
  train 2 mixed parallel.shard=optimizer
  [ "$status" -eq 0 ]
  diff <(tensors plain-f32 4) <(tensors mixed 4)
  # A run of two processes goes on as one of four, which share heads, and as one.
  train 4 mixed parallel.shard=full parallel.tp=2 train.steps=5
  [ "$status" -eq 0 ]
  train 1 mixed train.steps=6
  [ "$status" -eq 0 ]
  at_night || return 0
  # And as one of two stages.
  train 4 mixed parallel.shard=full parallel.pp=2 train.steps=7
  [ "$status" -eq 0 ]
  jq -se 'map(select((.step == 6 or .step == 7) and has("loss"))) | length == 2' mixed/metrics.jsonl
}

# bats test_tags=night
@test "check proves layouts with parts of the state and of the weights" {
  local settings
  while read -r settings; do
    # shellcheck disable=SC2086 # several words
    run --separate-stderr timeout 60 mpirun -np 2 vfm-train check tiny.yaml -j1 --synthetic 2x4x4,3x2x2 $settings </dev/null
    echo "$stderr"
    [ "$status" -eq 0 ]
    jq -e '.passed and (.values | length > 20)' <<<"$output"
  done < <(by_time <<'SETTINGS'
night parallel.shard=optimizer model.compute=bf16
parallel.shard=full parallel.cp=2 model.recompute=block
night parallel.shard=full parallel.reduce=bf16 model.type=stdit
SETTINGS
  )
}

# bats test_tags=night
@test "cost tells the memory of parts, and a run has it" {
  local shard predicted peak
  wide=(model.num_attention_heads=8 model.attention_head_dim=64 model.num_layers=6 train.steps=2 data.packs=2 parallel.shard=none)
  for shard in none optimizer full; do
    wide[-1]=parallel.shard=$shard
    vfm-train cost tiny.yaml "${wide[@]}" -q --ranks 2 --synthetic 2x4x4 >"$shard.json"
    predicted=$(jq '.memory_bytes | .weights + .gradients + .moments + .average + .activations' "$shard.json")
    peak=0
    # How many messages are under way at a time depends on what else the machine does: the most of three runs.
    for _ in 1 2 3; do
      run --separate-stderr timeout 60 mpirun -np 2 vfm-train tiny.yaml "${wide[@]}" -j1 --synthetic 2x4x4 -o "run-$shard" --force
      echo "$stderr"
      [ "$status" -eq 0 ]
      peak=$(jq -s "map(.memory_peak) | max | [., $peak] | max" "run-$shard/timing.jsonl")
      echo "$shard: $predicted predicted, $peak measured"
      if awk "BEGIN { exit !($peak > 0.95 * $predicted) }"; then break; fi
    done
    awk "BEGIN { exit !($peak > 0.95 * $predicted && $peak < 1.05 * $predicted) }"
  done
  # Of stages with all their blocks for a step, the one that needs most.
  wide[-1]=parallel.shard=full
  wide+=(parallel.pp=2 data.packs=4)
  vfm-train cost tiny.yaml "${wide[@]}" -q --ranks 4 --synthetic 2x4x4 >staged.json
  run --separate-stderr timeout 60 mpirun -np 4 vfm-train tiny.yaml "${wide[@]}" -j1 --synthetic 2x4x4 -o run-staged
  echo "$stderr"
  [ "$status" -eq 0 ]
  predicted=$(jq '.memory_bytes | .weights + .gradients + .moments + .average + .activations' staged.json)
  peak=$(jq -s 'map(.memory_ranks.most) | max' run-staged/timing.jsonl)
  echo "stages: $predicted predicted, $peak measured"
  awk "BEGIN { exit !($peak > 0.95 * $predicted && $peak < 1.05 * $predicted) }"
  half() { jq -se "(.[1].memory_bytes.$1 / .[0].memory_bytes.$1) as \$part | \$part > 0.499 and \$part < $3" none.json "$2.json"; }
  half moments optimizer 0.501
  half average optimizer 0.501
  half moments full 0.501
  half weights full 0.53   # with what is not of blocks
  half gradients full 0.53
  jq -se '.[0].memory_bytes.weights == .[1].memory_bytes.weights' none.json optimizer.json
}

# bats test_tags=night
@test "parts of the state are refused where they cannot be, before any work" {
  refused "'parallel.replicate' is 2, and 'parallel.shard' is none" parallel.replicate=2
  refused "'parallel.reshard' is false, and 'parallel.shard' is optimizer" parallel.reshard=false parallel.shard=optimizer
  refused "'parallel.reshard' is true, and 'parallel.pp' is 2: the ranks that gather" parallel.pp=2 parallel.shard=full parallel.reshard=true
  refused "'parallel.replicate' is 3, and does not divide the 2 ranks" parallel.replicate=3 parallel.shard=full
  run --separate-stderr mpirun -np 2 vfm-train "$VFM_ROOT/examples/recipes/tokenizer-tiny.yaml" --synthetic 9x32x32 -o refused parallel.shard=optimizer
  [ "$status" -eq 2 ]
  [[ $stderr == *"the state of a tokenizer is not shared by ranks"* ]]
}
