#!/usr/bin/env bats
# A Wan in single files beside each other makes the frames of a diffusers folder with the same weights.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
bats_require_minimum_version 1.5.0

setup() {
  local golden=$VFM_ROOT/tests/golden
  setup_tools
  rm -rf wan files
  cp -r "$golden/wan_pipeline/t2v" wan
  cp -r "$golden/t5/umt5" wan/text_encoder
  rm wan/text_encoder/spiece.model
  cp -r "$golden/t5/v1_0/tokenizer" wan/tokenizer
  python3 "$VFM_ROOT/tests/cli/generate/wan_single_files.py" wan files
  call=(--negative blurry --size 32x32 --frames 9 --steps 4 --seed 3 --encoder ffv1 --device cpu -q)
}

# frames_of FOLDER: a hash of the only clip's frames.
frames_of() { ffmpeg -v error -nostdin -i "$1"/*.mp4 -f rawvideo -pix_fmt rgb24 - | sha256sum; }

# bats test_tags=night
@test "files of a Wan beside each other make the frames of the folder with the same weights" {
  vfm-generate --model wan "${call[@]}" -o one "a red fox" >/dev/null
  vfm-generate --model files "${call[@]}" -o two "a red fox" >record.json
  jq -e '.sampler == "unipc" and .shift == 8' <(records record.json)
  [ "$(frames_of one)" = "$(frames_of two)" ]
  # diffusers' shift is that of the scheduler, which files do not have.
  vfm-generate --model wan --as diffusers "${call[@]}" -o diffused "a red fox" >/dev/null
  vfm-generate --model files --as diffusers "${call[@]}" -o diffused-files "a red fox" >record.json
  jq -e '.shift == 3' <(records record.json)
  [ "$(frames_of diffused)" = "$(frames_of diffused-files)" ]
  # The prompt and the weights matter, so that equal frames say something.
  vfm-generate --model files "${call[@]}" -o three "a blue boat" >/dev/null
  [ "$(frames_of two)" != "$(frames_of three)" ]
  for model in wan files; do
    mpirun -n 2 vfm-generate --model "$model" "${call[@]}" --parallel cfg=2 -o "$model-ranks" "a red fox" >/dev/null
  done
  [ "$(frames_of wan-ranks)" = "$(frames_of files-ranks)" ]
}

@test "files of a Wan that lack a part, or have one twice, are refused before any work" {
  cp files/wan_2.1_vae.safetensors files/other_vae.safetensors
  refused "has two files of the VAE of Wan, 'other_vae.safetensors' and 'wan_2.1_vae.safetensors': leave one" \
    vfm-generate --model files "${call[@]}" -o none x
  rm files/*vae.safetensors
  refused "'files' lacks the VAE (such as wan_2.1_vae.safetensors) of a Wan" vfm-generate --model files "${call[@]}" -o none x
  # A file that is cut off is told as such, not as a file of something else.
  head -c 100000 files/wan2.1_t2v.safetensors >cut
  mv cut files/wan2.1_t2v.safetensors
  refused "a file cannot be used: 'files/wan2.1_t2v.safetensors'" vfm-generate --model files "${call[@]}" -o none x
  [ ! -e none ]
}
