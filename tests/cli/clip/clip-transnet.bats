#!/usr/bin/env bats
# vfm-clip --detector-model: shots by a network. The model is tests/golden/transnet's, small and of random weights;
# tests/unit compare it with the public module.
# SPDX-License-Identifier: Apache-2.0
load media

# shots.mp4 has 54 frames; long.mp4 has three windows, and its pictures change all the time.
setup_file() {
  media_folder
  quiet_ffmpeg -f lavfi -i "testsrc2=size=96x64:rate=12:duration=11" -vf "hue=h=30*floor(t)" "${x264[@]}" -g 24 long.mp4
  cp -r "$VFM_ROOT/tests/golden/transnet/model" model
}

# facts DIR FIELD: the field of each clip's json, in order.
facts() { for tar in "$1"/*.tar; do tar -xOf "$tar" --wildcards '*.json' | jq -r ".$2"; done | tr '\n' ' '; }
network() { vfm-clip --min-length 0 --stitch none "$@"; }

@test "shots by a network: the same at any -j, by lists and by clips, resumed, wherever the model lies" {
  # Between the answers for its frames, so that there are changes.
  local at=0.2
  network --detector-model model --threshold $at -j1 shots.mp4 long.mp4 -o one >/dev/null
  network --detector-model model --threshold $at -j2 shots.mp4 long.mp4 -o two >/dev/null
  [ "$(tree_hash one)" = "$(tree_hash two)" ]
  OMP_NUM_THREADS=1 network --detector-model model --threshold $at -j1 shots.mp4 long.mp4 -o alone >/dev/null
  [ "$(tree_hash one)" = "$(tree_hash alone)" ]
  vfm-clip shots --detector-model model --threshold $at long.mp4 | jq -c 'select(.kind == "shots").cuts' >listed
  cat listed
  jq -e 'length > 1 and all(.[]; (.type == "cut" or .type == "transition") and .score > 0.2 and .score <= 1)' listed
  jq -c 'select(.frames == 132).cuts' one/*.json | cmp - listed
  # Each frame is in one clip, or in a gap of a transition.
  jq -se 'map(select(.frames == 132))[0] as $v | ($v.left_out | map(.pts_end - .pts_begin) | add // 0) as $gaps
    | all($v.left_out[]; .reason == "transition") and $v.settings.recipe.detector == "transnetv2"
    and $v.settings.recipe.threshold == 0.2 and $v.settings.recipe.detector_model.name == "transnetv2"' one/*.json
  # The same model elsewhere is the same one; another threshold makes other clips.
  mv model moved
  before=$(stat -c '%Y %i' one/*.tar)
  network --detector-model moved --threshold $at shots.mp4 long.mp4 -o one >/dev/null
  [ "$(stat -c '%Y %i' one/*.tar)" = "$before" ]
  tar -xOf "$(echo one/*-00000.tar | cut -d' ' -f1)" --wildcards '*.json' |
    jq -e '.detector_model | .name == "transnetv2" and (.hash | length) == 32 and .threshold == 0.2'
  key=$(facts one key)
  network --detector-model moved --threshold 0.25 shots.mp4 long.mp4 -o one >/dev/null
  [ "$(facts one key)" != "$key" ]
  # A run that was killed in the middle goes on: the first video is there.
  network --detector-model moved --threshold $at shots.mp4 -o part >/dev/null
  network --detector-model moved --threshold $at shots.mp4 long.mp4 -o part >/dev/null
  [ "$(tree_hash part)" = "$(tree_hash two)" ]
  network --dry-run --detector-model moved shots.mp4
}

@test "a threshold that nothing is above gives one shot, and one that all is above gives none" {
  network --detector-model model --threshold 0.9999999 long.mp4 -o whole >/dev/null
  [ "$(facts whole frames)" = "132 " ]
  run --separate-stderr network --detector-model model --threshold 0.0000001 long.mp4 shots.mp4 -o none
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"no clip"* ]]
  vfm-clip shots --detector-model model --threshold 0.0000001 long.mp4 | jq -se 'any(.[]; .cuts == [] and .frames == 132)'
}

# bats test_tags=night
@test "--explain shows a network's probabilities; the list is as without it" {
  local args=(--detector-model model --threshold 0.2)
  vfm-clip shots "${args[@]}" shots.mp4 long.mp4 | records >plain
  vfm-clip shots "${args[@]}" --explain why.html -j1 shots.mp4 long.mp4 | records | diff plain -
  vfm-clip shots "${args[@]}" --explain again.html -j2 shots.mp4 long.mp4 | records | diff plain -
  same_pages why.html again.html
  [ "$(grep -c '<svg' why.html)" -eq 2 ]
  grep -q "probability that a frame is the last one of a shot" why.html
  # The pair of each change is that of its frames, with its score.
  local frame score
  read -r frame score < <(sed -n 2p plain | jq -r '.cuts[0] | "\(.frame) \(.score * 1000 | round / 1000)"')
  grep -qE "<figcaption dir=.auto.>[0-9.]+ s, frame $frame: (cut|transition), ${score}0*( of 1|<)" why.html
  grep -qE 'frame [0-9]+: 0[.][01][0-9]+, below the threshold<' why.html
}

@test "what is no TransNet V2, and options that do not go with it, are refused before any work" {
  refused() {
    run --separate-stderr vfm-clip shots.mp4 -o out "${@:2}"
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"$1"* ]]
    [ ! -e out ]
  }
  refused "no such model folder: 'nowhere'" --detector-model nowhere
  refused "has no weights" --detector-model "$MEDIA"
  refused "holds no TransNet V2" --detector-model "$VFM_ROOT/tests/golden/picture_encoders/clip"
  refused "leave out --no-gradual" --detector-model model --no-gradual
  refused "--threshold 1 is not below 1" --detector-model model --threshold 1
  run -2 --separate-stderr vfm-clip shots shots.mp4 --detector-model model --thresholds 0.5,1
  [[ "$stderr" == *"--thresholds 1 is not below 1"* ]]
  refused "--detector-model" --detector-model model --stride 1s
  mkdir damaged
  head -c 50000 model/model.safetensors >damaged/model.safetensors
  refused "model.safetensors" --detector-model damaged
  rm damaged/model.safetensors
  cp "$VFM_ROOT/tests/golden/transnet/model/model.safetensors" damaged
  "$BATS_TEST_DIRNAME/../fill-tensor" damaged/model.safetensors nan fc1.bias
  refused "fc1.bias has values that are not finite" --detector-model damaged
}
