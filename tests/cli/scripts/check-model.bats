#!/usr/bin/env bats
# The judge of model folders: it passes what is right, and finds what is not. tests/golden/check_model has
# diffusers' numbers, made with `scripts/check-model cosmos --size 48x32 --frames 5 --steps 4 --write cosmos.npz`, and
# for wan with `--size 32x32 --frames 9`.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

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

# bats test_tags=night
@test "check-model: passes a folder of flow matching" {
  cp -r "$golden/wan_pipeline/t2v" wan
  cp -r "$golden/t5/umt5" wan/text_encoder
  cp -r "$golden/t5/v1_0/tokenizer" wan
  rm wan/text_encoder/spiece.model
  run check_model wan wan
  [ "$status" -eq 0 ]
  [ "$(grep -c '^pass  ' <<<"$output")" -eq 6 ]
}

# bats test_tags=night
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

# told TEXT COMMAND...: status 2, with one line on standard error that has the text, and no verdict.
told() {
  run --separate-stderr "${@:2}"
  echo "$status $output $stderr"
  [ "$status" -eq 2 ] && [ -z "$output" ] && [[ $stderr = "check-model: "*"$1"* ]] && [ "${#stderr_lines[@]}" -eq 1 ]
}

# bats test_tags=night
@test "check-model: a folder, file or option that cannot be used is status 2, before diffusers is asked" {
  local script=$VFM_ROOT/scripts/check-model
  told "'cosmos/vae' is no pipeline of diffusers: it has no model_index.json" check_model cosmos/vae
  mkdir flux
  echo '{"_class_name": "FluxPipeline"}' >flux/model_index.json
  told "is of FLUX (FluxPipeline), which is not supported" "$script" flux
  echo '{' >flux/model_index.json
  told "cannot read 'flux/model_index.json'" "$script" flux
  echo '[]' >flux/model_index.json
  told "'flux/model_index.json' is not an object" "$script" flux
  told "'nowhere.npz' has no numbers of --write" "$script" cosmos --reference nowhere.npz
  told "'cosmos/model_index.json' has no numbers of --write" "$script" cosmos --reference cosmos/model_index.json
  truncate -s 9000 cosmos/transformer/*.safetensors
  told "is truncated" check_model cosmos
  rm -r cosmos/text_encoder
  told "its folder 'text_encoder' is missing" check_model cosmos
  for wrong in --size=0x3 --size=3 --frames=0 --steps=-1; do
    run "$script" cosmos "$wrong"
    [ "$status" -eq 2 ]
    [[ ${lines[-1]} = *"argument ${wrong%=*}: invalid"* ]]
  done
}

@test "check-model: missing modules of Python are told by name" {
  # An isolated Python without its packages.
  told "has no numpy" env -i PATH="$PATH" /usr/bin/python3 -I -S "$VFM_ROOT/scripts/check-model" cosmos
  mkdir modules
  /usr/bin/python3 -c 'import numpy, pathlib; pathlib.Path("modules/numpy").symlink_to(pathlib.Path(numpy.__file__).parent)'
  told "this Python has no torch, diffusers, transformers: run it again with --install" \
    env -i PATH="$PATH" PYTHONPATH=modules /usr/bin/python3 -S "$VFM_ROOT/scripts/check-model" cosmos --size 48x32
}
