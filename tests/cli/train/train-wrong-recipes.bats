#!/usr/bin/env bats
# vfm-train: recipes that cannot be, or that ask for more than there is.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load tiny_runs

@test "a recipe with a misspelt key, or a value that cannot be, fails before any work" {
  prepare
  printf 'train:\n  steps: 5\n  sead: 1\n' >wrong.yaml
  run vfm-train wrong.yaml --data latents -o run
  [ "$status" -eq 2 ]
  only_records
  [ "$output" = "vfm-train: unknown key 'train.sead' in line 3 of 'wrong.yaml'; did you mean 'train.seed'?" ]
  run vfm-train tiny.yaml optimizer.lr=fast --data latents -o run
  [ "$status" -eq 2 ]
  only_records
  [ "$output" = "vfm-train: 'optimizer.lr' in argument 'optimizer.lr=fast' is 'fast', must be a number above 0" ]
  run vfm-train tiny.yaml data.tokens=7 --data latents -o run
  [ "$status" -eq 2 ]
  [[ $output == *" has 8 tokens, more than a pack holds: 'data.tokens' is 7; data.tokens=8 takes all samples" ]]
  # The largest sample is told, whatever the first one is, and what is offered is enough.
  run vfm-train tiny.yaml data.tokens=1 --data latents -o run
  [ "$status" -eq 2 ]
  [[ $output == *"'data.tokens' is 1; data.tokens=8 takes all samples" ]]
  vfm-train cost tiny.yaml data.tokens=8 --data latents -q
  # All at once.
  printf 'model:\n  num_layer: 2\n  num_attention_heads: 0\noptimizer: {lr: fast}\n' >wrong.yaml
  run vfm-train wrong.yaml train.sead=1 --data latents -o run
  [ "$status" -eq 2 ]
  [[ $output == *"vfm-train: 4 settings are wrong: (1) "*"'model.num_layer'"*"; (2) "*"; (3) "*"; (4) "*"'train.sead'"* ]]
  run vfm-train tiny.yaml train.steps a=b=c =5 --data latents -o run
  [ "$status" -eq 2 ]
  [[ $output == *"vfm-train: 2 settings are wrong: (1) argument 'train.steps' is not of the form section.key=value; (2) "* ]]
  # Nobody trains billions of parameters because he forgot to say otherwise.
  for command in "vfm-train -o run" "vfm-train cost"; do
    # shellcheck disable=SC2086
    run $command /dev/null --data latents
    [ "$status" -eq 2 ]
    [[ $output == *"the recipe does not say how large the model is: 'model.num_layers' is "*" (default), "* ]]
  done
  vfm-train recipe /dev/null | grep -q '  num_layers: '
  run vfm-train absent.yaml --data latents -o run
  [ "$status" -eq 2 ]
  [[ $output == *"cannot open 'absent.yaml': No such file or directory"* ]]
  run vfm-train tiny.yaml -o run
  [ "$status" -eq 2 ]
  [[ $output == *"give --data DIR, the folder that vfm-pack wrote"* ]]
  run vfm-train tiny.yaml --data tiny.yaml -o run
  [ "$status" -eq 2 ]
  run vfm-train tiny.yaml --data absent -o run
  [ "$status" -eq 2 ]
  run vfm-train
  [ "$status" -eq 2 ]
  # An empty name is mostly a variable that is not set: not as if the option were not there.
  for option in --init --data --report --output; do
    run vfm-train tiny.yaml --data latents -o run "$option" ''
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "vfm-train: $option: the empty string names no file; name one, or leave it out" ]
  done
  run vfm-train '' --data latents -o run
  [ "$status" -eq 2 ]
  [ "${lines[0]}" = "vfm-train: RECIPE: the empty string names no file; name one, or leave it out" ]
  [ ! -e run ]
}

@test "model.offload: long packs fit a GPU that has not the memory for them; refused where it moves nothing" {
  seven=("$VFM_ROOT/examples/recipes/7b.yaml" --synthetic 32x96x96 data.tokens=73728)
  vfm-train cost "${seven[@]}" --gpu h200 -q | jq -e '.recompute == "block" and (.offload | not)
    and (.predicted.fits | not) and .memory_bytes.pinned == 0'
  vfm-train cost "${seven[@]}" --gpu h200 model.offload=true >out 2>words
  jq -e '.recompute == "block_but_attention" and .offload and .predicted.fits and .memory_bytes.pinned > 3e10
    and .predicted.offload.seconds > 1 and .predicted.offload.exposed == 0
    and ([.predicted.lines[].name] | index("offload, not hidden"))' out
  for word in '^  activations .*(recompute block_but_attention, offload)$' "^pinned memory per rank  *31.5 GiB of the host's" \
    '^  offload  *[0-9.]* GB over the link to the host, .* 100.0 % hidden$'; do
    grep -q "$word" words || { echo "no $word"; cat words; return 1; }
  done
  vfm-train cost "${seven[@]}" --gpu h200 2>words >/dev/null
  grep -q "about 135.* GiB of memory are needed even with 'model.recompute' block.*: set 'model.offload' true, lower 'data.tokens', " words
  refused() {  # MESSAGE ARGUMENT...
    run vfm-train "${@:2}"
    [ "$status" -eq 2 ]
    [[ $output == *"$1"* ]] || { echo "$output"; return 1; }
    [ ! -e run ]
  }
  prepare
  cpu="'model.offload' is true, and this run computes on the CPU"
  refused "$cpu" cost "${seven[@]}" --device cpu model.offload=true
  for recompute in auto block; do
    refused "$cpu" tiny.yaml --device cpu --data latents -o run model.offload=true model.recompute=$recompute
  done
  for recompute in none elementwise; do
    refused "'model.offload' is true, and 'model.recompute' is $recompute" \
      cost "${seven[@]}" --gpu h200 model.offload=true model.recompute=$recompute
  done
}

@test "a model whose weights alone are more than there is memory is refused before anything is made" {
  prepare
  run timeout 20 vfm-train tiny.yaml model.num_layers=400 model.num_attention_heads=512 model.attention_head_dim=120 \
    --device cpu --data latents -o run
  [ "$status" -eq 2 ]
  [[ "$output" == *"the optimizer's state need about "*"TiB of memory on each rank; there are "*": share the state among more ranks ('parallel.shard' full), set 'optimizer.moments' bf16 or 8bit, "*"train adapters ('lora.rank') or take a smaller model" ]]
  [ ! -e run ]
}

@test "keys of another type of model are reported all at once; each shipped recipe names its type's own" {
  write_recipe
  run vfm-train tiny.yaml model.type=autoregressive model.learnable_positions=false --synthetic 1x4x4 -o run
  [ "$status" -eq 2 ]
  [[ $output == *"'model.adaln_lora_dim' in line 1 of 'tiny.yaml', 'model.max_size' in line 1 of 'tiny.yaml', 'model.learnable_positions' in argument 'model.learnable_positions=false' are not for a 'model.type' of autoregressive: leave them out"* ]]
  printf 'model: {levels: [8, 8]}\n' >t.yaml
  run vfm-train t.yaml --synthetic 1x4x4 -o run
  [ "$status" -eq 2 ]
  [[ $output == *"'model.levels' in line 1 of 't.yaml' is not for a model of type dit, which it is where 'model.type' is not set: leave it out"* ]]
  vfm-train cost "$VFM_ROOT/examples/recipes/tiny.yaml" model.type=stdit --synthetic 1x4x4 >/dev/null 2>&1
}

# bats test_tags=night
@test "a message that names a key which nobody set says that it is the default" {
  prepare
  local tokenizer=$VFM_ROOT/examples/recipes/tokenizer-tiny.yaml
  says() {  # WORDS ARGUMENT...
    run vfm-train "${@:2}" --data latents -o run
    [ "$status" -eq 2 ]
    [[ $output == *"$1"* ]] || { echo "$output"; return 1; }
  }
  says "'diffusion.sigma_min' is 0.0002 (default) and 'diffusion.sigma_max' is 0.0001: the first must be at most the second" \
    tiny.yaml diffusion.sigma_max=0.0001
  says "'diffusion.sigma_min' is 100.0 and 'diffusion.sigma_max' is 80.0 (default)" tiny.yaml diffusion.sigma_min=100
  says "'tokenizer.l1' is 0.0 and 'tokenizer.l2' is 0.0 (default): set one of them above 0" \
    <(sed '/^  l[12]:/d; s/^tokenizer:/tokenizer: {l1: 0}/' "$tokenizer")
  echo 'model: {type: autoregressive, num_attention_heads: 12}' >decoder.yaml
  says "'num_key_value_heads' is 8, must be 0 or a divisor of 'num_attention_heads', 12; not set in the recipe: \
'model.num_key_value_heads' is 8 (default)" decoder.yaml
  says "'temporal_compression_ratio' 8 are 4 halvings in space and 1 in time, which do not fit 4 'encoder_block_out_channels'" \
    "$tokenizer" model.spatial_compression_ratio=64
  says "x 4 x 4 (frames, height, width of the latent), no multiple: 'model.patch_size' is [2,2,2]" \
    tiny.yaml 'model.patch_size=[2,2,2]'
  says "more than a pack holds: 'data.tokens' is 7" tiny.yaml data.tokens=7
  # What a run was begun with, and is set no longer.
  train run train.steps=1 optimizer.beta1=0.5 >/dev/null 2>&1
  says 'was begun with another recipe: optimizer.beta1: 0.5 -> 0.9 (default); restore it' tiny.yaml
}
