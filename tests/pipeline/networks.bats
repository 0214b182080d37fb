#!/usr/bin/env bats
# Each other kind of model, from drawn videos to generated ones: a few hundred steps, in which the loss
# must fall as far as it does for a model that learns, and a clip from what was learnt.
# SPDX-License-Identifier: Apache-2.0

load ../cli/helpers
bats_require_minimum_version 1.5.0

setup_file() {
  draw_dataset 24
  vfm-pack --size 32 --frames 9 --windows middle -o latents <shards.jsonl >latents.jsonl
  vfm-pack --size 32 --frames 9 --windows middle --tokenizer builtin:fsq --space-factor 8 -o codes <shards.jsonl >codes.jsonl
}

setup() {
  setup_tools
  export OMP_NUM_THREADS=1  # small products: more threads are no faster
  cat >common.yaml <<'END'
model:
  num_attention_heads: 4
  attention_head_dim: 16
  num_layers: 2
  mlp_ratio: 2
  max_size: [8, 16, 16]
data:
  tokens: 256
optimizer:
  lr: 4e-3
schedule:
  warmup: 10
ema:
  decay: 0.9
validation:
  every: 0
train:
  steps: 240
  checkpoint_every: 1000
  log_every: 20
END
}

# The last of the losses of metrics.jsonl as a part of the first.
fall() {
  jq -s 'map(.loss) | last / first' "$1/metrics.jsonl"
}

# bats test_tags=night
@test "a spatial and temporal transformer learns, and draws a clip" {
  vfm-train common.yaml model.type=stdit model.adaln_lora_dim=8 \
    --data "$BATS_FILE_TMPDIR/latents" -o run
  jq -e '._class_name == "SpaceTimeTransformer3DModel"' run/checkpoints/step-*/model/config.json
  fall run
  [ "$(jq -n "$(fall run) < 0.6")" = true ]
  vfm-generate --model run --steps 4 -o out 'a red circle moves left' >clips.jsonl
  [ "$(jq '.frames' <(records clips.jsonl))" -eq 9 ]
  [ -s "$(jq -r .path <(records clips.jsonl))" ]
  tells_its_memory --model run --steps 1 --size 256x256
}

# bats test_tags=night
@test "by flow matching each of them learns, and draws a clip" {
  while read -r type more; do
    vfm-train common.yaml model.type="$type" $more diffusion.process=flow diffusion.shift=2 train.steps=120 \
      --data "$BATS_FILE_TMPDIR/latents" -o "$type"
    fall "$type"
    [ "$(jq -n "$(fall "$type") < 0.75")" = true ]
    # Its clips are sampled by it, as the cost says before.
    vfm-generate cost --model "$type" -q --device cpu | jq -e '.sampling.sampler == "flow"'
    vfm-generate --model "$type" --steps 2 -o "$type-out" 'a red circle moves left' >clips.jsonl
    jq -e '.sampler == "flow" and .shift == 2 and .steps == 2' <(records clips.jsonl)
    [ -s "$(jq -r .path <(records clips.jsonl))" ]
    run ! vfm-generate --model "$type" --sampler heun -o none 'a red circle'
  done <<'END'
dit model.adaln_lora_dim=8
stdit model.adaln_lora_dim=8
moviegen model.num_key_value_heads=2
END
}

@test "MovieGen-Llama learns, and draws a clip" {
  vfm-train common.yaml model.type=moviegen model.num_key_value_heads=2 \
    --data "$BATS_FILE_TMPDIR/latents" -o run
  jq -e '._class_name == "MovieGenTransformer3DModel" and .num_key_value_heads == 2' \
    run/checkpoints/step-*/model/config.json
  fall run
  [ "$(jq -n "$(fall run) < 0.6")" = true ]
  vfm-generate cost --model run -q --device cpu | jq -e '.network.file_bytes == 4 * .network.parameters'
  vfm-generate --model run --steps 4 -o out 'a red circle moves left' >clips.jsonl
  [ -s "$(jq -r .path <(records clips.jsonl))" ]
  # Larger than it was trained: positions between two rows of the tables.
  vfm-generate --model run --steps 1 --size 48x48 --frames 17 -o large 'a red circle' >large.jsonl
  [ -s "$(jq -r .path <(records large.jsonl))" ]
  tells_its_memory --model run --steps 1 --size 256x256
}

# bats test_tags=night
@test "an autoregressive decoder learns, and writes a clip, code after code" {
  cat >decoder.yaml <<'END'
model:
  type: autoregressive
  num_attention_heads: 4
  attention_head_dim: 16
  num_key_value_heads: 2
  num_layers: 2
  mlp_ratio: 2
data:
  tokens: 96
optimizer:
  lr: 6e-3
schedule:
  warmup: 5
ema:
  decay: 0.9
validation:
  every: 60
  samples: 4
train:
  steps: 60
  checkpoint_every: 1000
  log_every: 10
END
  vfm-train decoder.yaml --data "$BATS_FILE_TMPDIR/codes" -o run
  jq -e '._class_name == "AutoregressiveTransformer3DModel" and .vocabulary == 64000' \
    run/checkpoints/step-*/model/config.json
  # From the logarithm of the vocabulary, 11.1.
  jq -s 'map(.loss | values)' run/metrics.jsonl
  jq -s -e 'map(.loss | values) | first > 8 and last < 0.7 * first' run/metrics.jsonl
  jq -s -e 'last | (.val_loss > 0) and (has("val_sigmas") | not)' run/metrics.jsonl
  vfm-generate --model run -o out --report page.html <<<'{"prompt":"a red circle moves left","top_p":0.8}' >clips.jsonl
  grep -q 'codes drawn at temperature 1.0 from the likeliest 0.8' page.html
  jq -e '.frames == 9 and .top_p == 0.8 and .temperature == 1 and (has("steps") | not)' <(records clips.jsonl)
  path=$(jq -r .path <(records clips.jsonl))
  [ -s "$path" ]
  # A dry run: a pass for each code, and all parameters of the file.
  vfm-generate cost --model run -q --device cpu | jq -e '(.latent | .[0] * .[1] * .[2]) == .tokens
    and .sampling.passes == .tokens and .network.file_bytes == 4 * .network.parameters'
  tells_its_memory --model run
  for wrong in '--fp8 linear' '--negative x' '--lora run' '--guidance 2'; do
    # shellcheck disable=SC2086
    run vfm-generate cost --model run $wrong
    echo "$wrong: $output"
    [ "$status" -eq 2 ]
  done
  # The record makes the same clip; a video goes on.
  vfm-generate --model run -o again <clips.jsonl >again.jsonl
  cmp "$path" "$(jq -r .path <(records again.jsonl))"
  vfm-generate --model run --frames 17 --condition "$path" --condition-frames 9 -o on 'a red circle' >on.jsonl
  jq -e '.frames == 17 and .condition_frames == 9' <(records on.jsonl)
  run vfm-generate --model run --steps 4 -o out 'a red circle'
  [ "$status" -eq 2 ]
  [[ $output == *"'steps' is for diffusion models"* ]]
}

@test "latents and model must be of one kind" {
  run vfm-train common.yaml --data "$BATS_FILE_TMPDIR/codes" -o run
  [ "$status" -eq 2 ]
  [[ $output == *"these latents are discrete: set 'model.type' to autoregressive"* ]]
  printf 'model:\n  type: autoregressive\n  num_layers: 16\n' >decoder.yaml
  run vfm-train decoder.yaml --data "$BATS_FILE_TMPDIR/latents" -o run
  [ "$status" -eq 2 ]
  [[ $output == *"needs discrete latents"* ]]
  run vfm-train cost decoder.yaml
  [ "$status" -eq 2 ]
  [[ $output == *"'model.vocabulary' comes from the data"* ]]
  run vfm-train cost decoder.yaml model.vocabulary=64000
  [ "$status" -eq 0 ]
  [[ $output == *"parameters"* ]]
}

@test "a key of another type of model is refused, by name" {
  run vfm-train common.yaml model.type=moviegen model.adaln_lora_dim=8 --synthetic 1x4x4 -o run
  [ "$status" -eq 2 ]
  [[ $output == *"'model.adaln_lora_dim' in argument 'model.adaln_lora_dim=8' is not for a 'model.type' of moviegen"* ]]
  run vfm-train common.yaml model.type=unet --synthetic 1x4x4 -o run
  [ "$status" -eq 2 ]
  [[ $output == *"must be one of dit, stdit, moviegen, wan, autoregressive"* ]]
}
