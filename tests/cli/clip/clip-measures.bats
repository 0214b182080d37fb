#!/usr/bin/env bats
# vfm-clip: measures in the json of clips, beside FFmpeg's filters where there is one of the kind.
# SPDX-License-Identifier: Apache-2.0
load media

# One clip each: a moving scene of 4 s, and the same with what is to be measured.
setup_file() {
  media_folder
  local scene x264=(-c:v libx264 -preset ultrafast -pix_fmt yuv420p)
  scene="mandelbrot=size=64x36:rate=24:start_scale=0.5:end_scale=0.004:end_pts=200,scale=640:360:flags=bicubic"
  quiet_ffmpeg -f lavfi -i "$scene" -t 4 "${x264[@]}" -crf 12 scene.mp4
  printf '1\n00:00:00,000 --> 00:01:00,000\nA line of words that is\nwritten over the scene.\n' >s.srt
  quiet_ffmpeg -i scene.mp4 -vf "subtitles=s.srt" "${x264[@]}" -crf 12 titled.mp4
  quiet_ffmpeg -i scene.mp4 -vf "drawtext=text=VFM:fontsize=48:fontcolor=white:x=500:y=24,pad=640:424:0:32" \
    "${x264[@]}" -crf 12 logo.mp4
  quiet_ffmpeg -i scene.mp4 -vf "fps=12,fps=24" "${x264[@]}" -crf 12 doubled.mp4
  quiet_ffmpeg -f lavfi -i testsrc2=size=640x360:rate=48 -t 4 -vf "tinterlace=interleave_top" "${x264[@]}" -crf 12 combed.mp4
  quiet_ffmpeg -i scene.mp4 -c:v mpeg4 -q:v 28 blocks.avi
  quiet_ffmpeg -i scene.mp4 -f lavfi -i "flite=text='The quick brown fox jumps over the lazy dog, and nobody minds.'" \
    -c:v copy -c:a pcm_s16le -shortest speech.mkv
  quiet_ffmpeg -i scene.mp4 -f lavfi -i "anoisesrc=amplitude=0.2:seed=1:duration=2,apad=whole_dur=4" -c:v copy -c:a pcm_s16le noise.mkv
}

# clips: the json of the only clip of each, by name.
clips() {
  vfm-clip --no-gradual --threshold 9 -o clips "$@" >clips.jsonl
  local tar
  for tar in clips/*.tar; do tar -xOf "$tar" --wildcards '*.json'; echo; done | grep . |
    jq -s 'map({(.source | sub("[.].*"; "")): .}) | add' >all.json
}
# holds CONDITION: of jq, about all.json.
holds() { jq -e "$1" all.json >/dev/null || { echo "not so: $1"; jq -c 'map_values(del(.source_hash))' all.json; return 1; }; }

# bats test_tags=night
@test "pictures: each fault is seen where it is, and not in the clean scene" {
  clips scene.mp4 titled.mp4 logo.mp4 doubled.mp4 combed.mp4 blocks.avi
  holds '.titled.text_area > 0.02 and .titled.text_area < 0.3 and .scene.text_area < 0.005'
  holds '.titled.text_area_most >= .titled.text_area'
  # The bars are FFmpeg's, and the logo lies where it was drawn, below the bar of 32 rows.
  ffmpeg -nostdin -i logo.mp4 -vf cropdetect=round=2 -f null - 2>&1 | grep -o 'crop=[0-9:]*' | tail -1 >crop.txt
  [ "$(cat crop.txt)" = crop=640:360:0:32 ]
  holds '(.logo.bars - 64 / 424 | fabs) < 0.01 and .scene.bars == 0'
  holds '.logo.logo_area > 0 and .scene.logo == null and .scene.proposed_crop == null'
  holds '.logo.logo | capture("(?<w>[0-9]+)x(?<h>[0-9]+)[+](?<x>[0-9]+)[+](?<y>[0-9]+)") | map_values(tonumber) |
    .x > 485 and .x < 510 and .y > 46 and .y < 76 and .w > 70 and .h > 20 and .h < 60'
  holds '.logo.proposed_crop | test("^640x[23][0-9][0-9][+]0[+][0-9]+$")'
  holds '.doubled.doubled > 0.4 and .scene.doubled < 0.05'
  # idet calls nearly all frames interlaced.
  ffmpeg -nostdin -i combed.mp4 -vf idet -f null - 2>&1 | grep -o 'Multi frame detection:.*' | tail -1 |
    awk '{exit !($5 + $7 > 60)}'
  holds '.combed.combing > 10 * .scene.combing and .combed.combing > 0.001'
  holds '.blocks.blockiness > 2 and .scene.blockiness < 1.3'
  holds '.titled.focus > 2 * .scene.focus'
  holds '[.scene.camera_motion, .scene.object_motion] | add > 0'
  # Silent videos have no measures of sound.
  holds '[.scene.loudness, .scene.silence, .scene.speech] == [null, null, null]'
}

# bats test_tags=night
@test "sound: loudness is that of FFmpeg's ebur128, silence and speech are told; the same bytes at any -j" {
  clips speech.mkv noise.mkv
  holds '.speech.speech > 2 * .noise.speech and .speech.speech > 0.3'
  holds '(.noise.silence - 0.5 | fabs) < 0.03 and .speech.silence < 0.4'
  if vfm-clip --version | grep -q ebur128; then
    for name in speech noise; do
      theirs=$(ffmpeg -nostdin -i $name.mkv -af ebur128 -f null - 2>&1 | sed -n 's/^ *I: *\(-[0-9.]*\) LUFS/\1/p' | tail -1)
      holds "(.$name.loudness - ($theirs) | fabs) < 0.25"
    done
  else
    holds '.speech.loudness == null'
  fi
  vfm-clip --no-gradual --threshold 9 -j1 -o one speech.mkv noise.mkv >/dev/null
  for tar in clips/*.tar; do cmp "$tar" "one/${tar#*/}"; done
}

@test "each clip has the sound of its own span" {
  vfm-clip -o seconds noise.mkv --max-length 1s >m.jsonl
  tar -xOf seconds/*.tar --wildcards '*.json' | jq -es 'sort_by(.begin) | map(.silence) | .[0] == 0 and .[-1] == 1' >/dev/null
}

@test "vfm-shard filters by the measures, and its report draws them" {
  vfm-clip --no-gradual --threshold 9 -o clips scene.mp4 titled.mp4 noise.mkv >clips.jsonl
  vfm-shard --where 'text_area < 0.01' --report page.html -o set clips.jsonl >set.jsonl
  jq -es 'map(.samples // 0) | add == 2' set.jsonl >/dev/null
  for name in text_area focus banding camera_motion loudness silence; do grep -q ">$name<\|$name" page.html; done
  vfm-shard --where 'silence < 0.9' -o loud clips.jsonl >loud.jsonl
  jq -es 'map(.samples // 0) | add == 1' loud.jsonl >/dev/null
}

@test "a picture has measures of pictures, and one too small has null" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=200x100 -frames:v 1 large.png
  quiet_ffmpeg -f lavfi -i testsrc2=size=24x24 -frames:v 1 tiny.png
  vfm-clip -o p large.png tiny.png >/dev/null
  tar -xOf p/*.tar --wildcards '*.json' | jq -es 'sort_by(.width) |
    (.[0] | has("text_area") and .text_area == null and .focus == null) and .[1].focus > 0 and .[1].loudness == null' >/dev/null
}
