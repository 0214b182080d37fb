#!/usr/bin/env bats
# vfm-train export: a trained model for other programs.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load ../train/tiny_runs

@test "export writes the weights that are sampled with, as diffusers loads them" {
  prepare
  train run train.steps=10 >/dev/null
  local checkpoint=run/checkpoints/step-00000010
  vfm-train export run -o out >record 2>words
  cmp out/diffusion_pytorch_model.safetensors "$checkpoint/state/ema.safetensors"
  jq -e '._class_name == "CosmosTransformer3DModel"' out/config.json
  jq -e '.kind == "model" and .path == "out" and .weights == "ema" and .step == 10 and .pipeline == null' <(records record)
  grep -q "'out' is the network alone, not a pipeline of diffusers: diffusers has no class for the tokenizer builtin:wavelet, and diffusers has no class for the text encoder builtin:hash" words
  # The same again stays; something else is refused, or replaces it.
  touch -d 2001-01-01 out/config.json
  vfm-train export run -o out >again 2>words
  cmp <(records record) <(records again)
  [ "$(stat -c %Y out/config.json)" -eq "$(date -d 2001-01-01 +%s)" ]
  run vfm-train export run -o out --no-ema
  [ "$status" -eq 2 ]
  [[ $output == *"'out' is an export of something else"* ]]
  vfm-train export run -o out --no-ema --force --parts none >record 2>words
  [ ! -s words ]
  cmp out/diffusion_pytorch_model.safetensors "$checkpoint/model/diffusion_pytorch_model.safetensors"
  [ "$(jq -r .weights <(records record))" = model ]
  # It is a model to begin from.
  jq -e '.text_padding == 0 and .encode_empty == false' out/config.json
  train more --init out train.steps=1 >/dev/null
  # Its texts are not filled up, as those of a published one would be.
  jq -e 'has("text_padding") | not' more/checkpoints/step-00000001/train.json
  train padded diffusion.text_padding=512 diffusion.text_dropout=0 train.steps=1 >/dev/null
  vfm-train export padded -o as-published --parts none >/dev/null
  jq -e '(has("text_padding") or has("encode_empty")) | not' as-published/config.json
  # What is not ours is not touched; what is no run, and options that do not go together, are reported.
  mkdir mine
  touch mine/file
  run vfm-train export run -o mine --force
  [ "$status" -eq 2 ]
  [ -e mine/file ]
  run vfm-train export tiny.yaml -o other
  [ "$status" -eq 2 ]
  [[ $output == *"'tiny.yaml' is not a folder; give a run of vfm-train, or one of its checkpoints"* ]]
  run vfm-train export run -o other --data latents
  [ "$status" -eq 2 ]
  run vfm-train tiny.yaml --data latents -o run --no-ema
  [ "$status" -eq 2 ]
  [ ! -e other ]
}
