#!/usr/bin/env bats
# From clips to clips through a Cosmos tokenizer of a folder: packed, trained on, generated.
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0

setup() {
  load ../cli/helpers
  setup_tools
}

@test "latents of a folder's tokenizer train a model that finds it again, or says that it was moved" {
  cp -r "$VFM_ROOT/tests/golden/cosmos_vae" vae
  make_video a.mp4 2 "testsrc2=size=64x64:rate=12"
  vfm-clip a.mp4 -o clips | vfm-caption | vfm-embed | vfm-shard -o dataset |
    vfm-pack --tokenizer vae --size 32 --frames 9 -o latents >/dev/null
  printf '%s\n' 'model: {num_layers: 1, num_attention_heads: 2, attention_head_dim: 16, adaln_lora_dim: 8}' \
    'train: {steps: 2}' 'data: {tokens: 512}' >recipe.yaml
  vfm-train recipe.yaml --data latents -o run >/dev/null
  # The scale of the latents is the tokenizer's own, for each of its three latent frames.
  tr -d ' \n' <run/checkpoints/step-00000002/train.json |
    grep -q '"mean":\[-0.3,-0.2,-0.1,0.0,0.1,0.2,0.3,0.4,0.5\],"std":\[0.5,0.6,0.7,0.8,0.9,1.0,1.1,1.2,1.3\],"frames":3'
  vfm-generate --model run --steps 2 -o out hello >/dev/null
  mv vae elsewhere
  run --separate-stderr vfm-generate --model run --steps 2 -o other hello
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"the tokenizer is not in '$PWD/vae' any more; give its folder with --tokenizer DIR"* ]]
  vfm-generate --model run --tokenizer elsewhere --steps 2 -o other hello >/dev/null
  cmp out/*.mp4 other/*.mp4
  # In two stages, and with another tokenizer than the latents are of.
  vfm-generate --model run --tokenizer elsewhere --latents-only --steps 2 -o kept hello >/dev/null
  vfm-generate decode --model run --tokenizer elsewhere -o third kept/*.latents.safetensors >/dev/null
  cmp out/*.mp4 third/*.mp4
  run --separate-stderr vfm-generate --model run --tokenizer "$VFM_ROOT/tests/golden/cosmos_dv" -o no hello
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"holds a tokenizer of type CausalDiscreteVideoTokenizer"* ]]
}
