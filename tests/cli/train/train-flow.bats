#!/usr/bin/env bats
# vfm-train by flow matching: diffusion.process, and what checkpoints, stages and layouts make of it.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load tiny_runs
bats_require_minimum_version 1.5.0

flow=(diffusion.process=flow diffusion.shift=3)

@test "a run by flow matching resumes to the same bytes, and its checkpoint says so" {
  prepare
  train whole "${flow[@]}" schedule.shape=constant train.steps=30 >/dev/null
  train parts "${flow[@]}" schedule.shape=constant train.steps=10 >/dev/null
  train parts "${flow[@]}" schedule.shape=constant train.steps=30 >/dev/null
  diff <(run_hash whole) <(run_hash parts)
  jq -e '.sampling == {process: "flow", shift: 3} and .recipe.diffusion.process == "flow"
    and .recipe.diffusion.sigma_max == 1' whole/checkpoints/step-00000030/train.json
  jq -s -e 'map(.val_sigmas | values) | last | keys == ["0.1", "0.3", "0.5", "0.7", "0.9"]' whole/metrics.jsonl
  # The process is the run's for good.
  run train whole schedule.shape=constant train.steps=40
  [ "$status" -eq 2 ]
  [[ $output == *'begun with another recipe: diffusion.process: "flow" -> "edm"'* ]]
}

@test "a recipe of EDM is written as before there were two processes" {
  prepare
  train run train.steps=1 >/dev/null
  jq -e '(has("sampling") | not) and (.recipe.diffusion | (has("process") or has("shift")) | not)
    and (.recipe.sampling | has("shift") | not)' run/checkpoints/step-00000001/train.json
  run ! grep -E 'process|shift' run/recipe.yaml
}

# bats test_tags=night
@test "what begins from a model, and its next stage, have the model's process" {
  prepare
  train edm train.steps=2 >/dev/null
  train first "${flow[@]}" train.steps=2 >/dev/null
  train tuned --init first train.steps=1 sampling.shift=5 >/dev/null
  jq -e '.sampling == {process: "flow", shift: 5} and .recipe.diffusion.shift == 3' tuned/checkpoints/step-00000001/train.json
  train adapted --init first train.steps=1 lora.rank=2 >/dev/null
  jq -e '.sampling.process == "flow"' adapted/checkpoints/step-00000001/train.json
  train later --continue first train.steps=1 diffusion.shift=2 >/dev/null
  jq -e '.sampling == {process: "flow", shift: 2} and .recipe.diffusion.sigma_max == 1' later/checkpoints/step-*/train.json
  for mode in train train_cost; do
    run $mode none --init first diffusion.process=edm
    [ "$status" -eq 2 ]
    [[ $output == *"'diffusion.process' is edm, but the model to begin from was trained with flow: set it to that, or leave it out"* ]]
    run $mode none --init edm diffusion.process=flow
    [ "$status" -eq 2 ]
    [[ $output == *"is flow, but the model to begin from was trained with edm"* ]]
    run $mode none --continue first diffusion.process=edm
    [ "$status" -eq 2 ]
    [[ $output == *"cannot change diffusion.process"* ]]
  done
  [ ! -e none ]
  # A network alone says it too.
  vfm-train export first -o alone --parts none >/dev/null
  jq -e '.process == "flow"' alone/config.json
  vfm-train export edm -o plain --parts none >/dev/null
  jq -e 'has("process") | not' plain/config.json
  train again --init alone train.steps=1 >/dev/null
  jq -e '.recipe.diffusion.process == "flow"' again/checkpoints/step-00000001/train.json
}

@test "the recipe's process is printed with its defaults, and wrong levels are refused" {
  write_recipe
  vfm-train recipe tiny.yaml "${flow[@]}" >printed
  grep -q '^  process: flow ' printed
  grep -q '^  sigma_max: 1.0 .*# default' printed
  grep -qF '  sigmas: [0.1,0.3,0.5,0.7,0.9] ' printed
  run vfm-train recipe tiny.yaml diffusion.process=flow diffusion.sigma_max=80
  [ "$status" -eq 2 ]
  [[ $output == *"'diffusion.sigma_max' is 80.0, and 'diffusion.process' is flow: its highest noise level is 1"* ]]
  run vfm-train recipe tiny.yaml diffusion.shift=3
  [ "$status" -eq 2 ]
  [[ $output == *"only flow matching has it"* ]]
}

# bats test_tags=night
@test "check proves layouts of networks that are trained by flow matching" {
  needs_mpi
  cat >tiny.yaml <<'YAML'
model: {num_attention_heads: 2, attention_head_dim: 12, num_layers: 2, max_size: [5, 8, 8], in_channels: 2, text_embed_dim: 6}
diffusion: {process: flow, shift: 3}
data: {tokens: 40, packs: 2, window: 8}
YAML
  while read -r ranks type layout; do
    run --separate-stderr timeout 60 mpirun -np "$ranks" vfm-train check tiny.yaml -j1 --synthetic 2x6x6,5x2x2 \
      model.type="$type" $layout
    echo "$type $layout: $stderr"
    [ "$status" -eq 0 ]
    jq -e .passed <<<"$output"
  done < <(by_time <<'END'
2 dit parallel.tp=2
2 dit parallel.cp=2
2 dit parallel.pp=2
2 dit parallel.shard=full
night 4 dit parallel.tp=2 parallel.cp=2
2 stdit parallel.cp=2 parallel.hybrid=true
night 2 stdit parallel.pp=2
2 moviegen parallel.tp=2
night 2 moviegen parallel.pp=2
night 2 moviegen parallel.shard=full
END
  )
}
