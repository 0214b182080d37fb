#!/usr/bin/env bats
# The judge of model folders: it passes what is right, and finds what is not. tests/golden/check_model has
# diffusers' numbers, made with `scripts/check-model cosmos --size 48x32 --frames 5 --steps 4 --write cosmos.npz`, and
# for wan with `--size 32x32 --frames 9`.
# SPDX-License-Identifier: Apache-2.0

load ../helpers

setup() {
  setup_tools
  golden=$VFM_ROOT/tests/golden
  cp -r "$golden/cosmos_pipeline" cosmos
  cp -r "$golden/cosmos_vae" cosmos/vae
  cp -r "$golden/t5/v1_0/text_encoder" "$golden/t5/v1_0/tokenizer" cosmos
}

check_model() { "$VFM_ROOT/scripts/check-model" "$1" --device cpu --reference "$golden/check_model/${2-cosmos}.npz"; }

# change FILE TENSOR: the first numbers of the tensor become others.
change() {
  local header=$(($(od -An -N8 -td8 "$1"))) begin
  begin=$(tail -c +9 "$1" | head -c "$header" | jq ".[\"$2\"].data_offsets[0]")
  printf '\x3f\x3f\x3f\x3f\x3f\x3f\x3f\x3f' | dd of="$1" bs=1 seek=$((8 + header + begin)) conv=notrunc status=none
}

@test "check-model: passes a folder with which both compute the same" {
  run check_model cosmos
  [ "$status" -eq 0 ]
  [ "$(grep -c '^pass  network' <<<"$output")" -eq 4 ]
  grep -q '^pass  latents' <<<"$output"
  grep -q '^pass  frames' <<<"$output"
  [ "${lines[-1]}" = "pass: vfm-generate computes what diffusers computes with 'cosmos'" ]
}

@test "check-model: passes a folder of flow matching" {
  cp -r "$golden/wan_pipeline/t2v" wan
  cp -r "$golden/t5/umt5" wan/text_encoder
  cp -r "$golden/t5/v1_0/tokenizer" wan
  rm wan/text_encoder/spiece.model
  run check_model wan wan
  [ "$status" -eq 0 ]
  [ "$(grep -c '^pass  ' <<<"$output")" -eq 6 ]
}

@test "check-model: finds a changed network, and a changed tokenizer" {
  change cosmos/transformer/diffusion_pytorch_model.safetensors proj_out.weight
  run check_model cosmos
  [ "$status" -eq 1 ]
  grep -q '^FAIL  network' <<<"$output"
  cp "$golden/cosmos_pipeline/transformer/diffusion_pytorch_model.safetensors" cosmos/transformer/
  change cosmos/vae/diffusion_pytorch_model.safetensors decoder.conv_out.conv_s.weight
  run check_model cosmos
  [ "$status" -eq 1 ]
  grep -q '^pass  latents' <<<"$output"
  grep -q '^FAIL  frames' <<<"$output"
}

@test "check-model: what is no pipeline is status 2" {
  run check_model cosmos/vae
  [ "$status" -eq 2 ]
  [[ $output == "check-model: 'cosmos/vae' is no pipeline of diffusers: it has no model_index.json" ]]
}
