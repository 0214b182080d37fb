#!/usr/bin/env bats
# vfm-train on several folders at once: shares, ranks, resuming, what is refused and what is told.
# SPDX-License-Identifier: Apache-2.0

load ../helpers

setup() {
  setup_tools
  "$BATS_TEST_DIRNAME/../make-latents" images 24
  "$BATS_TEST_DIRNAME/../make-latents" videos 5
  tiny_recipe <<'YAML'
data: {tokens: 16, packs: 4, window: 8}
schedule: {warmup: 5}
validation: {every: 10, samples: 3}
train: {steps: 40, checkpoint_every: 10, log_every: 1}
YAML
}

blend=(vfm-train tiny.yaml -j1 --data images --data videos 'data.weights=[10, 1]')

@test "several folders are blended in their shares, and a run goes on in the middle to the same bytes" {
  "${blend[@]}" -o run >out 2>err
  [ ! -s err ]
  python3 - <<'PY'
import json
lines = [json.loads(line) for line in open("run/metrics.jsonl")]
for line in lines:
    if "loss" in line:
        seen = line["folder_samples"]
        assert list(seen) == ["images", "videos"] and sum(seen.values()) == line["samples"]
        # A pack has what fits of the next samples: those in the window are not all of a prefix.
        assert abs(seen["videos"] - line["samples"] / 11) < 8, line
assert lines[-1]["val_folders"].keys() == {"images", "videos"} and lines[-1]["val_samples"] == 6, lines[-1]
val = lines[-1]["val_folders"]
assert abs(lines[-1]["val_loss"] - (10 * val["images"] + val["videos"]) / 11) < 1e-6
PY
  "${blend[@]}" -o apart train.steps=20 >/dev/null 2>&1
  "${blend[@]}" -o apart >/dev/null 2>&1
  cmp run/metrics.jsonl apart/metrics.jsonl
  cmp run/checkpoints/step-00000040/model/*.safetensors apart/checkpoints/step-00000040/model/*.safetensors
}

# bats test_tags=night
@test "a sample that cannot be read is named by its folder, where both have one of its key" {
  rm -r images videos
  "$BATS_TEST_DIRNAME/../make-latents" images 24 broken
  "$BATS_TEST_DIRNAME/../make-latents" videos 5 broken
  run "${blend[@]}" -o run train.steps=12 validation.every=0 --report page.html
  echo "$output"
  [ "$status" -eq 1 ]
  [ "$(jq -r .input run/errors.jsonl | cut -d/ -f1 | sort | paste -sd' ')" = "images videos" ]
  [ "$(jq -r .input run/errors.jsonl | cut -d/ -f2 | sort -u | wc -l)" -eq 1 ]
  jq -e '.named_keys' run/checkpoints/step-00000012/train.json
  grep -q "images, videos" page.html
}

# bats test_tags=night
@test "a blend is the same from the recipe, on any number of ranks, and resumed on any" {
  "${blend[@]}" -o run validation.every=0 >/dev/null
  sed 's/data: {/data: {folders: [images, videos], weights: [10, 1], /' tiny.yaml >both.yaml
  vfm-train both.yaml -j1 -o named validation.every=0 >/dev/null
  cmp run/metrics.jsonl named/metrics.jsonl
  cmp run/recipe.yaml named/recipe.yaml
  grep -qx '  folders: \["images","videos"\]' run/recipe.yaml
  needs_mpi
  mpirun -np 2 "${blend[@]}" -o two validation.every=0 train.steps=20 >/dev/null 2>&1 </dev/null
  mpirun -np 4 "${blend[@]}" -o two validation.every=0 parallel.tp=2 >/dev/null 2>&1 </dev/null
  seen() { jq -c '[.step, .samples, .tokens, .epoch, .folder_samples]' "$1"/metrics.jsonl; }
  cmp <(seen run) <(seen two)
  jq -s -e 'all(.[]; (.[0] - .[1]) | fabs < 1e-3)' \
    <(paste -d, <(jq .loss run/metrics.jsonl) <(jq .loss two/metrics.jsonl) | sed 's/.*/[&]/')
}

@test "folders, weights and repeats that cannot be are refused before any work, with what to do" {
  refused() { # refused TEXT ARGUMENT...
    local text=$1
    shift
    run vfm-train tiny.yaml -o new "$@"
    echo "$output"
    [ "$status" -eq 2 ]
    [[ $output == *"$text"* ]]
    [ ! -e new ]
  }
  refused "'images' and 'images/../images/' are one folder" --data images --data images/../images/
  refused "'missing' is not a folder of latents" --data images --data missing
  refused "'data.weights' in argument 'data.weights=[1, 0]' is '[1, 0]', must be a number above 0" \
    --data images --data videos 'data.weights=[1, 0]'
  refused "'data.repeats' has 1 number, and there are 2 folders of data" --data images --data videos 'data.repeats=[2]'
  refused "'data.weights' is for several folders of data" --data images 'data.weights=[1]'
  refused "both set" --data images --data videos 'data.weights=[1, 2]' 'data.repeats=[1, 2]'
  sed -i 's/builtin:wavelet/other/; s/"channels": 4/"channels": 5/' videos/latents.json
  refused "tokenizer of 'images' is builtin:wavelet, of 'videos' other; channels of 'images' is 4, of 'videos' 5" \
    --data images --data videos
}

# bats test_tags=night
@test "what a blend is of may not change when a run goes on; where it lies may" {
  "${blend[@]}" -o run train.steps=10 >/dev/null 2>&1
  run "${blend[@]}" -o run 'data.weights=[11, 1]'
  [ "$status" -eq 2 ]
  [[ $output == *"data.weights: [10.0,1.0] -> [11.0,1.0]"* ]]
  run vfm-train tiny.yaml --data videos --data images 'data.weights=[10, 1]' -o run
  [ "$status" -eq 2 ]
  [[ $output == *"was begun with other data than 'videos', 'images'"* ]]
  mkdir moved
  mv images moved/
  vfm-train tiny.yaml -j1 --data moved/images --data videos 'data.weights=[10, 1]' -o run train.steps=12 >out
  [ "$(records out | wc -l)" -eq 1 ]
}

# bats test_tags=night
@test "a run whose folders are moved and renamed goes on with the names and the noise that it began with" {
  mkdir first second
  mv images first/latents
  mv videos second/latents
  train() { vfm-train tiny.yaml -j1 --data "$1" --data "$2" -o "$3" train.steps=12 train.checkpoint_every=6 >/dev/null; }
  train first/latents second/latents whole
  cp -r whole moved
  rm -r moved/checkpoints/step-00000012
  jq -e '.named_keys == ["first/latents", "second/latents"]' moved/checkpoints/step-00000006/train.json
  mv first/latents pictures
  train "$PWD/pictures" second/latents moved
  cmp {whole,moved}/checkpoints/step-00000012/model/diffusion_pytorch_model.safetensors
  without_places() { jq 'del(.recipe.data.folders)' "$1/checkpoints/step-00000012/train.json"; }
  cmp <(without_places whole) <(without_places moved)
  jq -s -e '[.[] | select(.val_folders) | .val_folders | keys] == [["first/latents", "second/latents"], ["first/latents", "second/latents"]]' moved/metrics.jsonl
}

# bats test_tags=night
@test "cost says what a run sees of each folder, and counts what is read ahead" {
  vfm-train cost tiny.yaml --data images --data videos 'data.repeats=[1, 2]' >cost.json 2>words
  jq -e '.folders[0] | .folder == "images" and .samples == 24 and (.share - 24 / 34 | fabs < 1e-9)' cost.json
  jq -e '.folders[1].epochs / .folders[0].epochs - 2 | fabs < 1e-9' cost.json
  jq -e '.folders[0].seen + .folders[1].seen - .samples_per_step * .steps | fabs < 1e-6' cost.json
  grep -q '  videos .*29.41 % of the samples: .* times its 5' words
  # Samples with texts of two megabytes; the program's own memory is told in whole MiB, which may differ.
  ahead() { vfm-train cost tiny.yaml data.tokens=64 --synthetic 4x8x8 --device cpu data.ahead="$1" 2>/dev/null; }
  ahead 0 >none
  ahead 67108864 >some
  jq -s -e '.[1].memory_bytes.host - .[0].memory_bytes.host - 67108864 | fabs < 4e6' none some
  jq -e '.folders == null' none
}
