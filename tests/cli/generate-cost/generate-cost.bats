#!/usr/bin/env bats
# vfm-generate cost: what a clip takes.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load ../generate/generate_models
bats_require_minimum_version 1.5.0

@test "it reports what a clip costs, from any folder, without prompts or output" {
  run --separate-stderr vfm-generate cost --model "$model" --device cpu --sampler heun --steps 10
  [ "$status" -eq 0 ]
  jq -e '.kind == "cost" and .device == "cpu" and .frames == 17 and .width == 64 and .height == 64
    and .tokens == 48 and .sampling.passes == 19 and .sampling.samples == 2
    and .tokenizer.type == "builtin:wavelet" and .text_encoder.type == "builtin:hash"
    and .flops == .network.flops and .memory_bytes.peak == ([.memory_bytes[]] | max)' <<<"$output"
  grep -q '^clip  *17 frames of 64x64$' <<<"$stderr"
  grep -q '^passes  *19 of 2 samples$' <<<"$stderr"
  # The parameters are those of the file, which has 4 bytes for each and a header.
  bytes=$(stat -c %s "$model"/checkpoints/*/model/diffusion_pytorch_model.safetensors | tail -1)
  jq -e --argjson bytes "$bytes" '.network | .file_bytes == 4 * .parameters and .file_bytes < $bytes' <<<"$output"
  # Twice the frames and no guidance: more tokens, half the samples.
  run --separate-stderr vfm-generate cost --model "$model" -q --device cpu --frames 33 --guidance 0
  [ -z "$stderr" ]
  jq -e '.tokens == 80 and .sampling.passes == 16 and .sampling.samples == 1' <<<"$output"
  run vfm-generate cost --model nowhere
  [ "$status" -eq 2 ]
  [ -z "$(find . -name "*.mp4" -o -name "*.jsonl")" ]
}

@test "--gpu predicts a clip on a GPU that is not there" {
  vfm-generate cost --model "$model" --gpu h100 --steps 10 >ten 2>words
  vfm-generate cost --model "$model" -q --gpu h100 --steps 20 >twenty
  jq -e '.device == "NVIDIA H100" and (.predicted | .fits and .gpu == "H100" and .pass_seconds > 0
    and ([.lines[].name] | index("attention, forward") and index("text encoder") and index("tokenizer")))' ten
  # Twice the passes; text and tokenizer stay as they are.
  jq -es '(.[0].sampling.passes) as $few | (.[1].sampling.passes) as $many
    | (.[1].predicted.seconds - .[0].predicted.seconds) / (($many - $few) * .[0].predicted.pass_seconds)
    | . > 0.999 and . < 1.001' ten twenty
  grep -q '^predicted clip  *[0-9.e-]* s, a pass [0-9.e-]* s$' words
  grep -q '^  memory  *fits an H100: ' words
  vfm-generate cost --model "$model" -q --gpu H100 --steps 10 | cmp - ten
  for arguments in '--gpu h300' '--gpu h200 --device cpu' '--gpu h200 --device cuda'; do
    # shellcheck disable=SC2086
    run vfm-generate cost --model "$model" $arguments
    [ "$status" -eq 2 ]
    [[ $output == *--gpu* ]]
  done
}

@test "it refuses what a run would refuse" {
  refused() {  # MESSAGE ARGUMENT...
    run --separate-stderr vfm-generate cost --device cpu "${@:2}"
    echo "$stderr"
    [ "$status" -eq 2 ]
    [ -z "$output" ]
    [[ "$stderr" == *"$1"* ]]
  }
  refused "--size '20000x16': width and height must be 1 to 16384 pixels" --model "$model" --size 20000x16
  refused "a clip of 100000 frames of 16384x16384 is 12501 x 2048 x 2048 latents" --model "$model" \
    --size 16384x16384 --frames 100000
  refused "64 or 128, not 32" --model "$model" --fp8 all
  refused "is for models that compute in bf16" --model "$wide" --fp8 all --compute f32
  refused "it is not a video-to-world model" --model "$model" --condition nowhere.mp4
  # A tokenizer of other latents than the network's.
  cp -r "$model" run
  for train in run/checkpoints/*/train.json; do
    jq '.tokenizer.channels = 12' "$train" >changed
    mv changed "$train"
  done
  refused "tokenizer, statistics and model have 12, 24 and 24 channels" --model run
  vfm-generate cost -q --device cpu --model "$wide" --fp8 all --frames 1 --size 16384x16384
}

# bats test_tags=night
@test "the memory that it tells is what a run takes" {
  clip=(--model "$wide" --device cpu --frames 33 --steps 1 --guidance 0)
  told() { vfm-generate cost "${clip[@]}" --size "$1" -q | jq '.memory_bytes.peak / 1024 | floor'; }
  # What the program is besides does not depend on the size.
  took=$(($(most_memory vfm-generate "${clip[@]}" --size 1024x512 -o - 'a red circle') -
    $(most_memory vfm-generate "${clip[@]}" --size 64x64 -o - 'a red circle')))
  more=$(($(told 1024x512) - $(told 64x64)))
  echo "told $more, took $took"
  [ "$((2 * took))" -gt "$more" ]
  [ "$((2 * took))" -lt "$((3 * more))" ]
}

# bats test_tags=night
@test "the memory that it tells is 0.8 to 1.3 of the program's, of tiny models and of long clips" {
  tells_its_memory --model "$model" --steps 1
  tells_its_memory --model "$model" --steps 1 --size 256x256 --frames 33
  tells_its_memory --model "$wide" --steps 1 --size 256x256 --frames 33
  # The program is a part of it, and listed apart.
  vfm-generate cost --model "$model" --device cpu -q | jq -e '.memory_bytes | .program > 20e6 and .peak > .program'
}

@test "--quantize: the memory of the matrices, one block of width 64 and an MLP four times as wide, in f32" {
  small=(--model "$wide" --steps 2 --frames 9 --size 32x32)
  weights() { vfm-generate cost "${small[@]}" -q --device cpu "$@" | jq .network.weight_bytes; }
  matrices=$((14 * 64 * 64 + 2 * 64 * $(jq .text_embed_dim "$wide"/checkpoints/*/model/config.json | head -n 1)))
  saved=$(($(weights) - $(weights --quantize int8)))
  echo "$saved of $matrices"
  [ "$saved" -gt $((matrices * 5 / 2)) ]
  [ "$saved" -lt $((matrices * 3)) ]
  vfm-generate cost "${small[@]}" --quantize int8 2>&1 >/dev/null | grep -q '^model .*, weights as int8$'
}
