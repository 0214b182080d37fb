#!/usr/bin/env bats
# A Wan folder of diffusers: from a prompt, or from an image, to the frames that diffusers makes.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
bats_require_minimum_version 1.5.0

# assemble NAME VAE: tests/golden/wan_pipeline/NAME as a whole folder, wan, with the tokenizer of VAE.
assemble() {
  local golden=$VFM_ROOT/tests/golden
  rm -rf wan
  cp -r "$golden/wan_pipeline/$1" wan
  [ "$1" = "$2" ] || cp -r "$golden/wan_pipeline/$2/vae" wan/vae
  cp -r "$golden/t5/umt5" wan/text_encoder
  rm wan/text_encoder/spiece.model
  cp -r "$golden/t5/v1_0/tokenizer" wan/tokenizer
}

setup() {
  setup_tools
  clips=$VFM_ROOT/tests/golden/wan_pipeline
  # What scripts/golden/wan_pipeline.py asked of diffusers.
  call=(--model wan --as diffusers --negative blurry --size 32x32 --frames 9 --steps 6 --guidance 3 --device cpu)
  prompt=$(jq -nc --arg noise "$clips/noise.npy" \
    '{prompt: " a red fox &amp;amp; its  cubs\n", name: "fox", fps: 16, noise: $noise}')
}

# apart CLIP FRAMES: the largest difference to diffusers' frames, of 255.
apart() {
  ffmpeg -v error -nostdin -i "$1" -f rawvideo -pix_fmt rgb24 -y frames.rgb
  [ "$(stat -c %s frames.rgb)" -eq "$(stat -c %s "$2")" ]
  python3 -c 'import sys
a, b = (open(name, "rb").read() for name in sys.argv[1:])
print(max(abs(x - y) for x, y in zip(a, b)))' frames.rgb "$2"
}

@test "Wan: the frames of diffusers' pipeline, to one level of 255, alone and on ranks" {
  assemble t2v t2v
  vfm-generate "${call[@]}" --encoder ffv1 -o clips <<<"$prompt" >record.json 2>words
  [ ! -s words ]
  jq -e '.sampler == "unipc" and .as == "diffusers" and .shift == 3' <(records record.json)
  [ "$(apart clips/fox.mp4 "$clips/t2v.rgb")" -le 1 ]
  # Another prompt makes another clip.
  vfm-generate "${call[@]}" --encoder ffv1 -o other < <(jq -c '.prompt = "a blue boat"' <<<"$prompt") >/dev/null
  [ "$(apart other/fox.mp4 "$clips/t2v.rgb")" -gt 20 ]
  for parallel in cfg=2 tp=2; do
    mpirun -n 2 vfm-generate "${call[@]}" --encoder ffv1 --parallel "$parallel" -o "$parallel" <<<"$prompt" >/dev/null
    [ "$(apart "$parallel/fox.mp4" "$clips/t2v.rgb")" -le 1 ]
  done
  # A condition is for models that take one.
  refused "the model takes no condition" vfm-generate "${call[@]}" --condition "$clips/image.png" -o none x
}

# bats test_tags=night
@test "Wan from an image: by a latent behind a mask, and by the noise level of its frame" {
  local with_image
  with_image=$(jq -c --arg image "$clips/image.png" '.condition = $image' <<<"$prompt")
  assemble i2v t2v
  refused "the model only continues videos: give the frames that the clip begins with (--condition)" \
    vfm-generate cost "${call[@]:0:2}" --device cpu
  vfm-generate "${call[@]}" --encoder ffv1 -o i2v <<<"$with_image" >/dev/null
  [ "$(apart i2v/fox.mp4 "$clips/i2v.rgb")" -le 1 ]
  assemble ti2v ti2v
  with_image=${with_image/noise.npy/ti2v_noise.npy}
  vfm-generate "${call[@]}" --encoder ffv1 -o ti2v <<<"$with_image" >record.json
  jq -e '.condition_frames == 1 and .augment_sigma == 0' <(records record.json)
  [ "$(apart ti2v/fox.mp4 "$clips/ti2v.rgb")" -le 1 ]
  mpirun -n 2 vfm-generate "${call[@]}" --encoder ffv1 --parallel cp=2 -o ranks <<<"$with_image" >/dev/null
  [ "$(apart ranks/fox.mp4 "$clips/ti2v.rgb")" -le 1 ]
  # Without an image it makes a video from the prompt alone.
  vfm-generate "${call[@]}" -o text <<<"${prompt/noise.npy/ti2v_noise.npy}" >/dev/null
  # Noise is not for its picture.
  fails 1 vfm-generate "${call[@]}" -o noisy < <(jq -c '.augment_sigma = 0.1' <<<"$with_image")
  grep -q "augment_sigma 0.1: this model's condition has no noise" noisy/errors.jsonl
  # It begins with one picture, whatever a video has.
  refused "5 frames of the condition cannot be used: the model begins with 1" \
    vfm-generate "${call[@]}" --condition "$clips/image.png" --condition-frames 5 -o none x
}

@test "Wan: sizes and sampling are those of its authors' program, and a dry run tells the cost" {
  assemble t2v t2v
  vfm-generate cost --model wan --device cpu >cost.json 2>words
  jq -e '.frames == 81 and .width == 832 and .height == 480 and .latent == [21, 60, 104] and .tokens == 32760
    and .text_tokens == 512 and .sampling.sampler == "unipc" and .sampling.steps == 50 and .sampling.guidance == 5
    and .sampling.shift == 8 and .tokenizer.type == "AutoencoderKLWan" and .text_encoder.type == "umt5"' cost.json
  grep -q "the shift of noise levels is 8, as in the program of the model's authors; in diffusers it is 3" words
  vfm-generate cost --model wan --device cpu --as diffusers -q |
    jq -e '.sampling.shift == 3 and .sampling.steps == 50 and .sampling.guidance == 4'
  vfm-generate cost --model wan --gpu h100 --parallel cfg=2,cp=2 -q | jq -e '.ranks == 4 and .predicted.seconds > 0'
  tells_its_memory --model wan --size 32x32 --frames 9 --steps 2
  assemble ti2v ti2v
  vfm-generate cost --model wan --device cpu -q |
    jq -e '.frames == 121 and .width == 1280 and .height == 704 and .latent == [31, 44, 80] and .tokens == 27280'
}

@test "a Wan that does not work here, or lacks a part, is refused by its name" {
  assemble i2v t2v
  jq '.image_dim = 1280 | .added_kv_proj_dim = 12' wan/transformer/config.json >config.json
  cp config.json wan/transformer/
  refused "'wan/transformer' is of Wan 2.1 I2V ('image_dim'), which is not supported" vfm-generate "${call[@]}" -o out x
  assemble t2v t2v
  rm -r wan/text_encoder
  refused "the pipeline 'wan' is not complete: its folder 'text_encoder' is missing" vfm-generate "${call[@]}" -o out x
  assemble t2v t2v
  sed -i 's/AutoencoderKLWan/AutoencoderKLCosmos/' wan/vae/config.json
  refused "what works here: AutoencoderKLWan" vfm-generate "${call[@]}" -o out x
}
