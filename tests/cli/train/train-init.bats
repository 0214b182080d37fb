#!/usr/bin/env bats
# vfm-train --init: a training that begins from a model.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load tiny_runs

@test "--init begins from a run, a checkpoint, a diffusers component or a pipeline" {
  prepare
  train first train.steps=20 train.checkpoint_every=20 >/dev/null
  local checkpoint=first/checkpoints/step-00000020
  mkdir -p component pipeline
  cp "$checkpoint"/model/* component/
  cp -r component pipeline/transformer
  echo '{"_class_name": "CosmosTextToWorldPipeline", "transformer": ["diffusers", "CosmosTransformer3DModel"]}' \
    >pipeline/model_index.json
  # Updates too small to change a float: what is there at the end is what it began from.
  local still=(train.steps=1 optimizer.lr=1e-30 optimizer.weight_decay=0 schedule.warmup=0 validation.every=0)
  for from in first "$checkpoint" component pipeline; do
    train "from-${from%%/*}" --force --init "$from" "${still[@]}" >/dev/null
    local model="from-${from%%/*}/checkpoints/step-00000001/model/diffusion_pytorch_model.safetensors"
    case $from in first*) cmp "$model" "$checkpoint/state/ema.safetensors" ;; *) cmp "$model" "$checkpoint/model/"*.safetensors ;; esac
  done
  python3 - <<'PY'
import json
init = json.load(open('from-pipeline/checkpoints/step-00000001/train.json'))['init']
assert init['path'].endswith('/pipeline') and len(init['hash']) == 32
begun = json.load(open('from-first/checkpoints/step-00000001/train.json'))['init']
assert begun['path'].endswith('/first/checkpoints/step-00000020'), begun
assert json.load(open('from-component/checkpoints/step-00000001/train.json'))['init']['hash'] == init['hash']
assert json.load(open('first/checkpoints/step-00000020/train.json'))['init'] is None
PY
}

@test "--init: going on does not need the folder, which may be gone, and ends with the same bytes" {
  prepare
  train first train.steps=10 >/dev/null
  train whole --init first schedule.shape=constant train.steps=30 >/dev/null
  train parts --init first schedule.shape=constant train.steps=10 >/dev/null
  mv first gone
  train parts --init first schedule.shape=constant train.steps=30 >/dev/null
  diff <(run_hash whole) <(run_hash parts)
  # By another name it is the same, though it trained on.
  mv gone first
  train first train.steps=20 >/dev/null
  ln -s first linked
  train parts --init ./linked/ schedule.shape=constant train.steps=30 >/dev/null
  mv first/checkpoints/step-00000020 .
  mv first gone
  # Or have moved; another model is refused.
  train parts --init gone schedule.shape=constant train.steps=31 >/dev/null
  for other in parts nowhere; do
    run train parts --init $other schedule.shape=constant train.steps=40
    [ "$status" -eq 2 ]
    [[ "$output" == *"was begun from '$PWD/first/checkpoints/step-00000010', not from '$other'"* ]]
  done
  run train parts model.in_channels=4 model.out_channels=4 model.text_embed_dim=8 schedule.shape=constant train.steps=40
  [ "$status" -eq 2 ]
  [[ "$output" == *"was begun from '$PWD/first/checkpoints/step-00000010', not from new weights"* ]]
}

# bats test_tags=night
@test "--init: a Cosmos model goes on with texts of 512 tokens, and is sampled as it was" {
  prepare
  train first train.steps=2 >/dev/null
  mkdir -p cosmos/scheduler
  cp -r first/checkpoints/step-00000002/model cosmos/transformer
  echo '{"_class_name": "CosmosTextToWorldPipeline", "transformer": ["diffusers", "CosmosTransformer3DModel"],
    "scheduler": ["diffusers", "EDMEulerScheduler"]}' >cosmos/model_index.json
  echo '{"_class_name": "EDMEulerScheduler", "sigma_max": 70, "final_sigmas_type": "sigma_min"}' \
    >cosmos/scheduler/scheduler_config.json
  train tuned --init cosmos train.steps=2 -v 2>log >/dev/null
  grep -q "texts are filled up to 512 tokens" log
  jq -e '.text_padding == 512 and .encode_empty == false and .recipe.diffusion.text_padding == 512
    and .sampling == {steps: 36, guidance: 7, sampler: "edm-euler", sigma_min: 0.002, sigma_max: 70}' \
    tuned/checkpoints/step-00000002/train.json
  # So does what begins from that, and what goes on when the folder is gone.
  train again --init tuned train.steps=2 >/dev/null
  train worded --init cosmos train.steps=1 diffusion.text_dropout=0 >/dev/null
  jq -e .encode_empty worded/checkpoints/step-00000001/train.json
  mv cosmos gone
  train tuned --init cosmos train.steps=3 >/dev/null
  jq -e '.text_padding == 512 and .encode_empty == false and .sampling.sigma_max == 70' \
    again/checkpoints/step-00000002/train.json
  jq -e '.text_padding == 512 and .sampling.sigma_max == 70' tuned/checkpoints/step-00000003/train.json
  mv gone cosmos
  train plain --init cosmos train.steps=1 diffusion.text_padding=0 >/dev/null
  jq -e '(has("text_padding") | not) and has("sampling")' plain/checkpoints/step-00000001/train.json
  echo '{"_class_name": "FlowMatchEulerDiscreteScheduler"}' >cosmos/scheduler/scheduler_config.json
  train flow --init cosmos train.steps=1 >/dev/null
  jq -e '.recipe.diffusion.process == "flow" and .recipe.diffusion.sigma_max == 1
    and .sampling == {steps: 36, guidance: 7, process: "flow", sampler: "flow"}' flow/checkpoints/step-00000001/train.json
  # What a folder says wrongly is reported with its file.
  wrong() {  # FILE TEXT OTHER MESSAGE
    cp -r gone bad
    sed -i "s/$2/$3/" "bad/$1"
    for mode in train train_cost; do
      run $mode wrong --init bad
      [ "$status" -eq 2 ]
      [[ "$output" == *"'bad/$1'"*"$4"* ]] || { echo "$output"; false; }
    done
    rm -r bad
  }
  cp -r cosmos gone
  echo '{"_class_name": "EDMEulerScheduler", "sigma_max": 70}' >gone/scheduler/scheduler_config.json
  wrong transformer/config.json '"num_layers": 2' '"num_layers": "two"' "'num_layers' is not an integer"
  wrong scheduler/scheduler_config.json 70 '"70"' "'sigma_max' is not a number"
  wrong scheduler/scheduler_config.json 70 0.001 "noise levels from 0.002 to 0.001: must be positive"
  # Video to world: with what Cosmos gave.
  "$BATS_TEST_DIRNAME/write-hollow-model" v2w 'patch_embed.proj.weight=[4096,72]'
  echo '{"_class_name": "CosmosTransformer3DModel", "in_channels": 17}' >v2w/config.json
  echo 'train: {steps: 1}' >short.yaml
  run vfm-train recipe short.yaml --init v2w
  [ "$status" -eq 0 ]
  [[ "$output" == *"condition_frames: [0,1,2]"* ]]
  run vfm-train cost short.yaml --init v2w --synthetic 2x4x4
  [ "$status" -eq 0 ]
}

@test "--init: what is no model, of another type, or does not fit, is reported before any work" {
  prepare
  refused() {  # MESSAGE ARGUMENT...
    run train run "${@:2}"
    [ "$status" -eq 2 ]
    [[ "$output" == *"$1"* ]] || { echo "$output"; false; }
    [ -z "$(ls run/checkpoints 2>/dev/null)" ]
  }
  refused "no such model folder: 'nowhere'" --init nowhere
  refused "'latents' holds no model: it is neither" --init latents
  mkdir vae
  echo '{"_class_name": "AutoencoderDC"}' >vae/config.json
  refused "of type AutoencoderDC; what works here: CosmosTransformer3DModel" --init vae
  train first train.steps=1 >/dev/null
  refused "model.num_layers: 2 -> 3; model.rope_scale: [2.0,1.0,1.0] -> [1.0,1.0,1.0]; leave these out" \
    --init first model.num_layers=3 model.rope_scale='[1,1,1]'
  refused "'model.type' is stdit, but the model to begin from is a dit" --init first model.type=stdit
  cp -r first/checkpoints/step-00000001/model other
  sed -i 's/"num_layers": 2/"num_layers": 1/; s/"adaln_lora_dim": 4/"adaln_lora_dim": 5/' other/config.json
  sed -i 's/num_layers: 2, adaln_lora_dim: 4, //' tiny.yaml
  refused "unexpected: 'transformer_blocks.1.attn1.norm_k.weight'" --init other
  [[ "$output" == *"of another shape: "*" is [4, 24], the model needs [5, 24]"* ]]
  # Its cost has the same words.
  only_records
  words=$output
  run train_cost run --init other
  [ "$status" -eq 2 ]
  [ "$output" = "$words" ]
  truncate -s -1 other/*.safetensors
  refused "is truncated" --init other
  rm other/*.safetensors
  refused "'other' has no weights" --init other
  [ ! -e run ]
  # Nothing is cleared for what cannot begin.
  run vfm-train tiny.yaml -j1 --data latents -o first --force --init other
  [ "$status" -eq 2 ]
  [ -e first/checkpoints/step-00000001/COMPLETE ]
}

# bats test_tags=night
@test "--init begins from the other networks too" {
  prepare
  sed -i 's/adaln_lora_dim: 4, //' tiny.yaml
  train first model.type=moviegen train.steps=2 >/dev/null
  # What the model is comes from it.
  train more --init first train.steps=4 >/dev/null
  grep -q '^  type: moviegen' more/recipe.yaml
}

# bats test_tags=night
@test "--init begins from an autoregressive run" {
  ffmpeg -v error -f lavfi -i testsrc=s=64x64:r=12:d=2 -c:v libx264 -pix_fmt yuv420p drawn.mp4
  vfm-clip drawn.mp4 --min-length 0.3s -o clips | vfm-caption | vfm-embed | vfm-shard -o dataset |
    vfm-pack --tokenizer builtin:fsq --size 32 --frames 5 --device cpu -o codes >packed.jsonl
  cat >ar.yaml <<'END'
model: {type: autoregressive, num_attention_heads: 2, num_key_value_heads: 1, attention_head_dim: 16, num_layers: 1}
data: {tokens: 512}
schedule: {warmup: 1}
validation: {every: 0}
train: {steps: 2}
END
  vfm-train ar.yaml --device cpu --data codes -o first >/dev/null
  # Nothing of the model need be said; updates too small to change a float leave what it began from.
  printf 'data: {tokens: 512}\noptimizer: {lr: 1e-30, weight_decay: 0}\nschedule: {warmup: 0}\nvalidation: {every: 0}\ntrain: {steps: 1}\n' >still.yaml
  vfm-train still.yaml --init first --device cpu --data codes -o second >/dev/null
  cmp first/checkpoints/*/state/ema.safetensors second/checkpoints/*/model/diffusion_pytorch_model.safetensors
  run vfm-train ar.yaml model.num_layers=2 --init first --device cpu --data codes -o third
  [ "$status" -eq 2 ]
  [[ $output == *"the recipe is not that of the model to begin from: model.num_layers: 1 -> 2; leave these out"* ]]
  run vfm-train still.yaml model.type=dit --init first --device cpu --data codes -o third
  [ "$status" -eq 2 ]
  [[ $output == *"'model.type' is dit, but the model to begin from is a autoregressive"* ]]
  vfm-train export first -o out 2>words >/dev/null
  grep -q "diffusers has no class AutoregressiveTransformer3DModel: 'out' is the network alone" words
}
