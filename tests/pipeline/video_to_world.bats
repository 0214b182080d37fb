#!/usr/bin/env bats
# Training a video-to-world model, from drawn videos to one that goes on from what it is given.
# SPDX-License-Identifier: Apache-2.0

load ../cli/helpers
bats_require_minimum_version 1.5.0

setup_file() {
  draw_dataset 24
  vfm-pack --size 32 --frames 17 -o latents <shards.jsonl >latents.jsonl
  cat >tiny.yaml <<'END'
model:
  num_attention_heads: 4
  attention_head_dim: 16
  num_layers: 2
  mlp_ratio: 2
  adaln_lora_dim: 8
  max_size: [8, 16, 16]
diffusion:
  condition_frames: [0, 1, 2]
data:
  tokens: 256
optimizer:
  lr: 4e-3
schedule:
  warmup: 10
ema:
  decay: 0.9
validation:
  every: 60
  samples: 4
train:
  steps: 60
  checkpoint_every: 1000
  log_every: 10
END
  OMP_NUM_THREADS=1 vfm-train tiny.yaml --data latents -o run
  # A still picture in two halves, and its mirror image.
  for side in left right; do
    test $side = left && colours="red blue" || colours="blue red"
    set -- $colours
    ffmpeg -v error -f lavfi -i "color=$1:16x32:d=1" -f lavfi -i "color=$2:16x32:d=1" \
      -filter_complex hstack -frames:v 1 "$side.png"
  done
}

setup() {
  setup_tools
  export OMP_NUM_THREADS=1  # small products: more threads are no faster
  run=$BATS_FILE_TMPDIR/run
}

# first_frame FILE: its mean colours left and right, as six numbers.
first_frame() {
  ffmpeg -v error -nostdin -i "$1" -frames:v 1 -vf scale=2:1:flags=area -f rawvideo -pix_fmt rgb24 - | od -An -tu1
}

# apart FILE FILE: the largest difference of these numbers.
apart() {
  paste -d ' ' <(first_frame "$1") <(first_frame "$2") |
    awk '{ for (i = 1; i <= 6; ++i) { d = $i - $(i + 6); if (d < 0) d = -d; if (d > most) most = d } } END { print most + 0 }'
}

@test "a video-to-world model learns, and validates at every noise level" {
  jq -e '.in_channels == .out_channels + 1' "$run"/checkpoints/step-*/model/config.json
  jq -s 'map(.loss | values)' "$run/metrics.jsonl"
  jq -s -e 'map(.loss | values) | last < 0.8 * first' "$run/metrics.jsonl"
  jq -s -e 'map(.val_sigmas | values) | last | length == 5' "$run/metrics.jsonl"
}

# But for what the tokenizer makes of an edge between colours.
@test "what is given comes out as it is, and the clip goes on from it" {
  for side in left right; do
    vfm-generate --model "$run" --steps 4 --size 32x32 --frames 17 --encoder ffv1 \
      --condition "$BATS_FILE_TMPDIR/$side.png" -o $side 'a red circle' >$side.jsonl
    [ "$(apart "$(jq -r .path <(records $side.jsonl))" "$BATS_FILE_TMPDIR/$side.png")" -le 20 ]
  done
  [ "$(apart "$(jq -r .path <(records left.jsonl))" "$BATS_FILE_TMPDIR/right.png")" -gt 100 ]
  # Nine of its own frames: two latent ones.
  vfm-generate --model "$run" --steps 2 --size 32x32 --frames 17 --encoder ffv1 --condition-frames 9 \
    --condition "$(jq -r .path <(records left.jsonl))" -o on 'a red circle' >on.jsonl
  jq -e '.condition_frames == 9' <(records on.jsonl)
  # As many of a video as leave something to make.
  vfm-generate --model "$run" --steps 2 --size 32x32 --frames 9 --condition "$(jq -r .path <(records left.jsonl))" -o short 'a' >short.jsonl
  jq -e '.condition_frames == 1' <(records short.jsonl)
}

# bats test_tags=night
@test "what is given comes out as it is of a model of flow matching" {
  vfm-train "$BATS_FILE_TMPDIR/tiny.yaml" diffusion.process=flow --data "$BATS_FILE_TMPDIR/latents" -o flow
  jq -s -e 'map(.loss | values) | last < 0.8 * first' flow/metrics.jsonl
  vfm-generate --model flow --steps 4 --size 32x32 --frames 17 --encoder ffv1 \
    --condition "$BATS_FILE_TMPDIR/left.png" -o left 'a red circle' >left.jsonl
  [ "$(apart "$(jq -r .path <(records left.jsonl))" "$BATS_FILE_TMPDIR/left.png")" -le 20 ]
}

# bats test_tags=night
@test "a condition of another size is resized as diffusers' image processor does it" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=76x50 -frames:v 1 -pix_fmt rgb24 -f rawvideo large.rgb
  "$BATS_TEST_DIRNAME/pillow-lanczos" 76 50 32 32 <large.rgb >small.rgb
  quiet_ffmpeg -f rawvideo -pix_fmt rgb24 -s 76x50 -i large.rgb large.png
  quiet_ffmpeg -f rawvideo -pix_fmt rgb24 -s 32x32 -i small.rgb small.png
  local size
  for size in large small; do
    vfm-generate --model "$run" --steps 1 --size 32x32 --frames 9 --encoder ffv1 --condition $size.png -o $size 'a' >/dev/null
  done
  cmp large/*.mp4 small/*.mp4
}

# bats test_tags=night
@test "a playlist, or a picture of more than 64 M pixels, is not taken as a condition" {
  printf '#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\n%s/left.png\n#EXT-X-ENDLIST\n' "$BATS_FILE_TMPDIR" >given.mp4
  run vfm-generate --model "$run" --steps 2 --size 32x32 --frames 17 --condition given.mp4 -o out 'a red circle'
  [ "$status" -eq 2 ]
  [[ $output == *"cannot open 'given.mp4': it is an HLS playlist"* ]]
  quiet_ffmpeg -f lavfi -i color=s=8208x8192 -frames:v 1 -pix_fmt gray large.png
  run vfm-generate --model "$run" --steps 2 --size 32x32 --frames 17 --condition large.png -o out 'a red circle'
  [ "$status" -eq 2 ]
  [[ $output == *"has pictures of 8208x8192, more pixels than 67108864: make them smaller"* ]]
}

@test "a condition that cannot be used is a wrong option; of a line, a prompt that fails" {
  local left=$BATS_FILE_TMPDIR/left.png
  refused() {  # MESSAGE OPTION...
    run --separate-stderr vfm-generate --model "$run" --steps 1 --size 32x32 --frames 17 -o out "${@:2}" a
    echo "$stderr"
    [ "$status" -eq 2 ]
    [ "$stderr" = "vfm-generate: $1" ]
    [ ! -e out/errors.jsonl ]
  }
  refused "cannot open 'nowhere.png': No such file or directory" --condition nowhere.png
  refused "5 frames of the condition cannot be used: give 1, 9, 17, ..." --condition "$left" --condition-frames 5
  refused "17 frames of the condition leave nothing to make: the clip has 17 frames" --condition "$left" --condition-frames 17
  refused "'$left' has 1 frame: 9 of it cannot be used" --condition "$left" --condition-frames 9
  # A line may have another length, and frames of its own.
  vfm-generate --model "$run" --steps 1 --size 32x32 --frames 1 -o out --condition "$left" --condition-frames 1 \
    <<<'{"prompt":"a","frames":9}' >/dev/null
  run vfm-generate --model "$run" --steps 1 --size 32x32 --frames 17 -o out2 \
    <<<"{\"prompt\":\"a\",\"condition\":\"$left\",\"condition_frames\":5}"
  [ "$status" -eq 1 ]
  grep -q "5 frames of the condition cannot be used" out2/errors.jsonl
}

@test "text to world: the same model, given nothing" {
  vfm-generate --model "$run" --steps 2 -o out 'a red circle moves left' >clips.jsonl
  jq -e '.frames == 17 and (has("condition") | not)' <(records clips.jsonl)
  [ -s "$(jq -r .path <(records clips.jsonl))" ]
}

@test "a run that begins from it is given as many frames; going on changes nothing of that" {
  sed '/^diffusion:/,/condition_frames/d; /^model:/,/max_size/d' "$BATS_FILE_TMPDIR/tiny.yaml" >more.yaml
  vfm-train more.yaml --data "$BATS_FILE_TMPDIR/latents" --init "$run" -o more train.steps=2
  grep -q 'condition_frames: \[0,1,2\]' more/recipe.yaml
  vfm-train more.yaml --data "$BATS_FILE_TMPDIR/latents" --init "$run" -o more train.steps=3
  run vfm-train more.yaml --data "$BATS_FILE_TMPDIR/latents" --init "$run" -o more train.steps=4 \
    'diffusion.condition_frames=[1]'
  [ "$status" -eq 2 ]
  [[ $output == *"diffusion.condition_frames: [0,1,2] -> [1]"* ]]
}
