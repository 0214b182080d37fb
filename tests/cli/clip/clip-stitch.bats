#!/usr/bin/env bats
# vfm-clip --stitch: shots that are joined, by pictures, by sound and by a model.
# SPDX-License-Identifier: Apache-2.0
load media
load kinds

setup_file() {
  media_folder
  make_kinds wide.mp4
}

@test "stitching joins what looks the same" {
  quiet_ffmpeg -f lavfi -i testsrc=size=96x64:rate=12:duration=3 -vf "drawbox=enable='between(n,12,23)':color=black:t=fill" -c:v libx264 -preset ultrafast -pix_fmt yuv420p jump.mp4
  vfm-clip jump.mp4 -o apart --stitch none
  vfm-clip jump.mp4 -o joined
  [ "$(facts joined shots)" = "2 " ]
  [ "$(facts joined frames)" = "36 " ]
  [ "$(facts apart shots)" = "1 1 " ]
}

# bats test_tags=night
@test "stitching by sound: where it goes on shots are joined sooner, where it breaks they are not" {
  # A second of black between; sound 0 goes on, sound 1 is another one after the black's middle.
  quiet_ffmpeg -f lavfi -i testsrc=size=96x64:rate=12:duration=3 -f lavfi -i anoisesrc=r=16000:c=pink:a=0.05:d=3:seed=1 \
    -f lavfi -i anoisesrc=r=16000:c=white:a=0.05:d=3:seed=2 -filter_complex \
    "[0]drawbox=enable='between(n,12,23)':color=black:t=fill[v];[1]asplit[a][b];[b]atrim=end=1.5[b1];[2]atrim=start=1.5,asetpts=PTS-STARTPTS[c];[b1][c]concat=n=2:v=0:a=1[d]" \
    -map '[v]' -map '[a]' -map '[d]' -c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a pcm_s16le both.mkv
  quiet_ffmpeg -i both.mkv -map 0:0 -map 0:1 -c copy goes-on.mkv
  quiet_ffmpeg -i both.mkv -map 0:0 -map 0:2 -c copy breaks.mkv
  quiet_ffmpeg -i goes-on.mkv -an -c copy mute.mkv
  quiet_ffmpeg -i goes-on.mkv -vf "lutyuv=y=val+27:enable='gte(t,2)'" -c:a copy -c:v libx264 -preset ultrafast -pix_fmt yuv420p brighter.mkv
  # joined VIDEO OPTIONS...: shots of each clip, and what was measured at the change.
  joined() {
    rm -rf out
    vfm-clip "$1.mkv" -o out "${@:2}" >/dev/null
    echo "$(facts out shots)$(jq -c '.cuts[0] | [.sound, .threshold]' out/*.json)"
  }
  [ "$(joined goes-on)" = "2 [null,null]" ]
  [ "$(joined breaks)" = "2 [null,null]" ]
  [ "$(joined brighter)" = "1 1 [null,null]" ]
  [ "$(jq '.settings.recipe | has("stitch_sound")' out/*.json)" = false ]
  measured() { jq -e ".cuts[0] | $1" out/*.json; }
  [[ "$(joined goes-on --stitch-sound)" == "2 ["* ]]
  measured '.likeness > 0.9 and .sound > 0.9 and .threshold > 0.52 and .threshold < 0.53'
  [[ "$(joined breaks --stitch-sound)" == "1 1 ["* ]]
  measured '.likeness > 0.9 and .sound < 0.05 and .threshold > 0.95 and .threshold < 0.98'
  [[ "$(joined brighter --stitch-sound)" == "2 ["* ]]
  measured '.likeness < 0.6 and .likeness > 0.53'
  tar -xOf out/*.tar --wildcards '*.json' | jq -e '(.joins | length) == 1 and .joins[0].pts == 1000 and .joins[0].time == 1
    and .joins[0].likeness > 0.52 and .joins[0].likeness < 0.6 and .sound_at_joins == .joins[0].sound'
  # Nothing is known of no sound, and of two.
  [ "$(joined mute --stitch-sound)" = "2 [null,0.6]" ]
  [ "$(joined both --stitch-sound)" = "2 [null,0.6]" ]
  vfm-clip --stitch-sound goes-on.mkv breaks.mkv mute.mkv both.mkv brighter.mkv -o one -j1 >/dev/null
  vfm-clip --stitch-sound goes-on.mkv breaks.mkv mute.mkv both.mkv brighter.mkv -o four -j4 >/dev/null
  [ "$(tree_hash one)" = "$(tree_hash four)" ]
  vfm-clip shots --stitch-sound --explain why.html breaks.mkv brighter.mkv >/dev/null
  grep -q 'likeness 0.9[0-9]*, sound 0.0[0-9]*: not stitched (from 0.9' why.html
  grep -q 'likeness 0.5[0-9]*, sound 0.9[0-9]*: stitched (from 0.52' why.html
  run --separate-stderr vfm-clip breaks.mkv -o none --stitch none --stitch-sound
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"leave out --stitch-sound"* ]]
}

@test "stitching by a model: by the vectors of vfm-embed, any -j, resumed" {
  local model="$VFM_ROOT/tests/golden/picture_encoders/clip"
  cp -r "$model" model
  by_model() { vfm-clip --stitch model --device cpu --min-length 0 "$@" >/dev/null; }
  by_model shots.mp4 wide.mp4 -j1 -o one
  by_model shots.mp4 wide.mp4 -j4 -o four
  [ "$(tree_hash one)" = "$(tree_hash four)" ]
  # Frames 17 and 18 of the video, each as a clip of its own without loss.
  mkdir frames
  for n in 17 18; do
    quiet_ffmpeg -i shots.mp4 -vf "select=eq(n\,$n)" -frames:v 1 -c:v libx264 -qp 0 -pix_fmt yuv420p "frames/$n.mp4"
  done
  tar --format=ustar -C frames -cf frames.tar 17.mp4 18.mp4
  vfm-embed --video model --video-frames 1 --device cpu frames.tar
  by_model shots.mp4 -o shots
  python3 - "$(jq '.cuts[0].likeness' shots/*.json)" <<'END'
import struct, sys, tarfile
def halves(key):
    return struct.unpack("<12e", tarfile.open("frames.embed.tar").extractfile(f"{key}.video.npy").read()[-24:])
expected = sum(a * b for a, b in zip(halves(17), halves(18)))
assert abs(float(sys.argv[1]) - expected) < 2e-3, (sys.argv[1], expected)
END
  # The same model elsewhere is the same one; other options, or none, make other clips.
  mv model moved
  before=$(stat -c '%Y %i' shots/*.tar)
  vfm-clip --stitch moved --device cpu --min-length 0 shots.mp4 -o shots >/dev/null
  [ "$(stat -c '%Y %i' shots/*.tar)" = "$before" ]
  jq -e '.settings.recipe | .stitch == 0.82 and .stitch_model.name == "clip" and (.stitch_model | has("path") | not)
    and .stitch_model.rule == "cosine of the last and the first frame"' shots/*.json
  vfm-clip --stitch "$model/../dinov2" --device cpu --min-length 0 shots.mp4 -o shots >/dev/null
  tar -xOf "$(echo shots/*.tar)" --wildcards '*.json' | jq -e '.stitch_model.name == "dinov2"'
  vfm-clip --min-length 0 shots.mp4 -o shots >/dev/null
  vfm-clip --min-length 0 shots.mp4 -o look >/dev/null
  [ "$(facts shots key)" = "$(facts look key)" ]
}

@test "a model that is none is refused before any work, and one that gives no numbers stitches nothing" {
  cp -r "$VFM_ROOT/tests/golden/picture_encoders/dinov2" model
  refused() {
    run --separate-stderr vfm-clip shots.mp4 -o out "${@:2}"
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"$1"* ]]
    [ ! -e out ]
  }
  refused "no such model folder: 'nowhere'" --stitch nowhere
  refused "it has no preprocessor_config.json" --stitch "$VFM_ROOT/tests/golden/t5/v1_1"
  refused "leave out --stitch model" --stitch model --stride 1s
  "$BATS_TEST_DIRNAME/../fill-tensor" model/model.safetensors nan layernorm.weight
  run --separate-stderr vfm-clip --stitch model:0 --device cpu shots.mp4 -o out
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"shots are not stitched where --stitch gives vectors that are not numbers"* ]]
  [ "$(facts out shots)" = "1 1 1 " ]
  rm -r out
  head -c 9000 "$VFM_ROOT/tests/golden/picture_encoders/dinov2/model.safetensors" >model/model.safetensors
  refused "model.safetensors" --stitch model
}
