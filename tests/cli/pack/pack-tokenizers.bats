#!/usr/bin/env bats
# vfm-pack: tokenizers, continuous and discrete, of the program and of folders.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
load clips
bats_require_minimum_version 1.5.0

@test "a discrete tokenizer writes codes, of which training a diffusion model says what they are" {
  make_shard a a1=test.mp4
  pack --tokenizer builtin:fsq -o out --report page.html a.tar >/dev/null
  [ "$(tar -tf out/train/a.tar | tr '\n' ' ')" = "a1.codes.npy a1.text.npy a1.json " ]
  # 17 frames, four in a code but for the first.
  [[ "$(npy out/train/a.tar a1.codes.npy)" == "{'descr': '<u2', 'fortran_order': False, 'shape': (5, "* ]]
  [[ "$(tr -d ' \n' <out/latents.json)" == '{"version":1,"tokenizer":{"name":"builtin:fsq","levels":[8,8,8,5,5,5],"time_factor":4,"space_factor":4},"text_encoder":{"name":"builtin:hash","dim":4},"channels":6,"vocabulary":64000,"splits":'* ]]
  grep -q "PSNR" page.html
  printf 'model: {num_layers: 1}\n' >recipe.yaml
  run --separate-stderr vfm-train recipe.yaml --data out -o run
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"these latents are discrete: set 'model.type' to autoregressive"* ]]
  run --separate-stderr pack --tokenizer builtin:fsq --channels 6 -o other a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"tokenizer 'builtin:fsq' has no option 'channels'"* ]]
}

@test "a tokenizer of a folder: statistics of its own, path and hash, the same bytes with -j1 and -j4" {
  cp -r "$VFM_ROOT/tests/golden/cosmos_vae" vae
  make_shard a a1=test.mp4 a2=red.mp4
  pack --tokenizer vae --report page.html -j1 -o out a.tar >/dev/null
  # 17 frames of 64 x 64: a quarter of each, the first frame alone.
  [ "$(npy out/train/a.tar a2.latent.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (3, 5, 16, 16), }" ]
  [[ "$(tr -d ' \n' <out/latents.json)" == '{"version":1,"tokenizer":{"name":"AutoencoderKLCosmos","path":"'"$PWD"'/vae","hash":"'*'"},"text_encoder":{"name":"builtin:hash","dim":4},"channels":3,"mean":[-0.3,-0.2,-0.1,0.0,0.1,0.2,0.3,0.4,0.5],"std":[0.5,0.6,0.7,0.8,0.9,1.0,1.1,1.2,1.3],"frames":3,"splits":'* ]]
  grep -q "PSNR" page.html
  pack --tokenizer vae -j4 -o again a.tar >/dev/null
  cmp out/train/a.tar again/train/a.tar
  # A second run finds all there; another configuration is another tokenizer.
  pack --tokenizer vae -o out a.tar >/dev/null
  cmp out/train/a.tar again/train/a.tar
  sed -i 's/"scaling_factor": 1.0/"scaling_factor": 1.5/' vae/config.json
  run --separate-stderr pack --tokenizer vae -o out a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"holds latents of other options"* ]]
}

@test "--tokenizer-memory: the same bytes; too little is refused with what is needed, before any work" {
  local vae=$VFM_ROOT/tests/golden/cosmos_vae
  make_shard a a1=test.mp4 a2=red.mp4
  pack --tokenizer "$vae" -o out a.tar >/dev/null
  run --separate-stderr pack --tokenizer "$vae" --tokenizer-memory 1KiB -o less a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" =~ "to encode 17 frames of 64x64 the tokenizer needs "[0-9.]+" KiB at least: --tokenizer-memory is 1.0 KiB" ]]
  [ ! -e less ]
  # All 17 frames at once would take more: as pixels alone they are 0.8 MiB.
  pack --tokenizer "$vae" --tokenizer-memory 1MiB -o less a.tar >/dev/null
  cmp out/train/a.tar less/train/a.tar
  run --separate-stderr pack --tokenizer-memory 1GiB -o other a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"--tokenizer-memory is for tokenizers from a folder: builtin:wavelet has no network"* ]]
}

# bats test_tags=night
@test "Wan's VAE packs clips, with statistics of its own, from its folder or from the authors' weights alone" {
  cp -r "$VFM_ROOT/tests/golden/wan_vae/2.2" vae
  make_shard a a1=test.mp4 a2=red.mp4
  pack --tokenizer vae --report page.html -j1 -o out a.tar >/dev/null
  # 17 frames of 64 x 64: an eighth of each side, the first frame alone.
  [ "$(npy out/train/a.tar a2.latent.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (3, 5, 8, 8), }" ]
  [[ "$(tr -d ' \n' <out/latents.json)" == '{"version":1,"tokenizer":{"name":"AutoencoderKLWan","path":"'"$PWD"'/vae","hash":"'*'"channels":3,"mean":[-0.3,-0.2,-0.1],"std":[0.5,0.6,0.7],"splits":'* ]]
  grep -q "PSNR" page.html
  pack --tokenizer vae -j4 --tokenizer-memory 1GiB -o again a.tar >/dev/null
  cmp out/train/a.tar again/train/a.tar
  run --separate-stderr pack --tokenizer vae --tokenizer-memory 1KiB -o small a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"the tokenizer needs "*" at least: --tokenizer-memory is 1.0 KiB"* ]]
  # Its weights alone say what they are; what their statistics are is measured.
  mkdir bare
  cp vae/diffusion_pytorch_model.safetensors bare
  pack --tokenizer bare -o other a.tar >/dev/null
  [[ "$(tr -d ' \n' <other/latents.json)" == '{"version":1,"tokenizer":{"name":"AutoencoderKLWan",'* ]]
  cmp <(tar -xOf out/train/a.tar a1.latent.npy) <(tar -xOf other/train/a.tar a1.latent.npy)
}

@test "a folder that holds no tokenizer is refused before any work" {
  make_shard a a1=test.mp4
  run --separate-stderr pack --tokenizer nowhere -o out a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"nowhere"* ]]
  mkdir other
  echo '{"_class_name":"AutoencoderDC"}' >other/config.json
  run --separate-stderr pack --tokenizer other -o out a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"AutoencoderDC"*"AutoencoderKLCosmos"* ]]
  cp -r "$VFM_ROOT/tests/golden/cosmos_vae" vae
  run --separate-stderr pack --tokenizer vae --channels 3 -o out a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"has no option 'channels'"* ]]
  [ ! -e out ]
}

# bats test_tags=night
@test "latents that are no numbers, or none of half precision, cost their samples" {
  make_shard a a1=red.mp4 a2=pic.png
  cp -r "$VFM_ROOT/tests/golden/cosmos_vae" vae
  "$BATS_TEST_DIRNAME/../fill-tensor" vae/diffusion_pytorch_model.safetensors 1e7 quant_conv.bias
  run --separate-stderr pack --tokenizer vae -o large a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"a1 of 'a.tar': its latent has the value "*", beyond the range of half precision (65504)"* ]]
  [ "$(wc -l <large/errors.jsonl)" -eq 2 ]
  [ ! -e large/latents.json ]
  "$BATS_TEST_DIRNAME/../fill-tensor" vae/diffusion_pytorch_model.safetensors nan quant_conv.bias
  run --separate-stderr pack --tokenizer vae -o nan a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"a2 of 'a.tar': the tokenizer '$PWD/vae' makes values that are not finite"* ]]
  [ ! -e nan/latents.json ]
  cp -r "$VFM_ROOT/tests/golden/cosmos_dv" dv
  "$BATS_TEST_DIRNAME/../fill-tensor" dv/diffusion_pytorch_model.safetensors nan quant_conv.bias
  run --separate-stderr pack --tokenizer dv -o codes a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"the tokenizer '$PWD/dv' makes values that are not finite"* ]]
}

@test "codes of a discrete tokenizer of a folder" {
  make_shard a a1=test.mp4
  pack --tokenizer "$VFM_ROOT/tests/golden/cosmos_dv" --compute bf16 -o out a.tar >/dev/null
  [[ "$(npy out/train/a.tar a1.codes.npy)" == "{'descr': '<u2', 'fortran_order': False, 'shape': (5, "* ]]
  grep -q '"vocabulary": 64000' out/latents.json
  grep -q '"compute": "bf16"' out/latents.json
}
