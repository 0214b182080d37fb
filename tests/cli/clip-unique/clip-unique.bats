#!/usr/bin/env bats
# vfm-clip unique: sources that show the same, of which one goes on.
# SPDX-License-Identifier: Apache-2.0
load ../clip/media

x264=(-c:v libx264 -preset ultrafast -pix_fmt yuv420p)

# The filter draws colours at random, whatever its seed.
colours=c0=0x203050:c1=0xd08040:c2=0x40a060:c3=0xe0e0c0:c4=0x703080:c5=0x90c0f0

# walk FILE SECONDS A B: two boxes that walk about before a still view, as A and B say.
walk() {
  quiet_ffmpeg -f lavfi -i "gradients=s=160x96:rate=12:speed=0.00001:n=6:seed=7:$colours" -filter_complex \
    "color=white:s=24x40:r=12[w];color=black:s=30x24:r=12[b];
     [0][w]overlay=x='60+55*sin(0.9*t+$3)':y='30+25*sin(1.3*t+$4)':shortest=1[o];
     [o][b]overlay=x='60+50*sin(1.1*t+$4)':y='40+30*sin(0.7*t+2*$3)':shortest=1[out]" \
    -map '[out]' -t "$2" "${x264[@]}" "$1"
}

setup_file() {
  export MEDIA="$BATS_FILE_TMPDIR/media"
  mkdir "$MEDIA"
  cd "$MEDIA" || return 1
  walk a.mp4 10 0.5 2
  walk other-minute.mp4 10 3.7 0.4
  cp a.mp4 same.mp4
  quiet_ffmpeg -i a.mp4 -vf crop=132:84:20:4,drawbox=90:5:24:18:red:fill,scale=80:48,setsar=1,fps=10 \
    -c:v libx264 -crf 33 -pix_fmt yuv420p copy.mp4
  quiet_ffmpeg -ss 3.3 -i a.mp4 -t 5.5 "${x264[@]}" part.mp4
  quiet_ffmpeg -f lavfi -i "gradients=s=160x96:rate=12:speed=0.00001:seed=3:$colours" -t 8 "${x264[@]}" still.mp4
  quiet_ffmpeg -i still.mp4 -crf 30 still-again.mp4
  quiet_ffmpeg -i a.mp4 -frames:v 1 one.png
  cp one.png two.png
}

paths() { records | jq -r .path; }

@test "of sources that show the same one goes on" {
  run --separate-stderr bash -c "ls ./*.mp4 | vfm-clip unique -o looks"
  [ "$status" -eq 0 ]
  # shellcheck disable=SC2154
  [ -z "$stderr" ]
  [ "$(paths <<<"$output")" = "$(printf './%s.mp4\n' a other-minute still-again still)" ]
  [ ! -e looks/errors.jsonl ]
  of() { jq -c "select(.path == \"./$1.mp4\") | [.stays, .kind, .duplicate_of]" looks/sources.jsonl; }
  [ "$(of copy)" = '[false,"near","./a.mp4"]' ]
  [ "$(of part)" = '[false,"near","./a.mp4"]' ]
  [ "$(of same)" = '[false,"exact","./a.mp4"]' ]
  [ "$(of other-minute)" = '[true,null,null]' ]
  [ "$(jq -s 'map(select(.group == 0)) | length' looks/sources.jsonl)" -eq 4 ]
  grep -q '"kind":"exact","first":"./a.mp4","second":"./same.mp4"' looks/duplicates.jsonl
  # Where the part is, and how the copy is cropped: by 20 of 160 pixels at the left, 8 of 96 at the bottom.
  jq -se 'map(select(.second == "./part.mp4" and .first == "./a.mp4"))[0]
    | (.first_begin - .second_begin - 3.3 | fabs) < 0.3 and .score > 0.5' looks/duplicates.jsonl
  jq -se 'map(select(.second == "./copy.mp4" and .first == "./a.mp4"))[0].crop
    | (.[0] - 0.125 | fabs) < 0.04 and (.[3] - 0.917 | fabs) < 0.04' looks/duplicates.jsonl
  [ "$(jq -r .duplicate_of looks/sources.jsonl | grep -c other-minute)" -eq 0 ]
}

# bats test_tags=night
@test "a part is found in which hardly more than something small and far away moves" {
  far() { # FILE SECONDS WAY
    quiet_ffmpeg -f lavfi -i "gradients=s=320x192:rate=12:speed=0.00001:n=6:seed=7:$colours" -filter_complex \
      "color=white@0.3:s=8x6:r=12,format=rgba[w];[0][w]overlay=x='150+120*sin(0.9*t+$3)':y='90+60*sin(1.3*t+2*$3)':shortest=1[out]" \
      -map '[out]' -t "$2" "${x264[@]}" -crf 18 "$1"
  }
  far far.mp4 10 0
  far other.mp4 10 2
  quiet_ffmpeg -ss 2.7 -i far.mp4 -t 5.5 "${x264[@]}" -crf 18 far-part.mp4
  [ "$(vfm-clip unique -o looks far-part.mp4 other.mp4 far.mp4 | paths)" = "$(printf '%s\n' other.mp4 far.mp4)" ]
  jq -se 'map(select(.kind == "near")) | length == 1 and (.[0] | .first == "far-part.mp4" and .second == "far.mp4"
    and (.second_begin - .first_begin - 2.7 | fabs) < 0.3)' looks/duplicates.jsonl
}

@test "what goes on is cut, with the fields that it came with; other records and pictures pass" {
  printf '%s\n' '{"kind":"video","path":"part.mp4","licence":"mine"}' '{"kind":"video","path":"a.mp4","licence":"theirs"}' \
    '{"kind":"clip","path":"x"}' one.png two.png >in.jsonl
  vfm-clip unique -o looks in.jsonl >stay.jsonl
  [ "$(records <stay.jsonl)" = "$(printf '%s\n' '{"kind":"video","path":"a.mp4","licence":"theirs"}' \
    '{"kind":"clip","path":"x"}' '{"kind":"video","path":"one.png"}')" ]
  vfm-clip -o clips <stay.jsonl >clips.jsonl
  grep -q '"licence":"theirs"' clips.jsonl
}

@test "the same at any -j; a run that was killed goes on, and no video is decoded twice" {
  vfm-clip unique -o one -j1 a.mp4 copy.mp4 part.mp4 other-minute.mp4 same.mp4 >one.jsonl
  setsid vfm-clip unique -o four -j4 a.mp4 copy.mp4 part.mp4 other-minute.mp4 same.mp4 >/dev/null 2>&1 3>&- &
  local pid=$!
  sleep 0.06
  kill -KILL -- "-$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  vfm-clip unique -o four -j4 a.mp4 copy.mp4 part.mp4 other-minute.mp4 same.mp4 >four.jsonl
  [ "$(tree_hash one)" = "$(tree_hash four)" ]
  [ "$(records <one.jsonl)" = "$(records <four.jsonl)" ]
  [ "$(find four -name "*.signature" | wc -l)" -eq 4 ]
  touch -d '2001-01-01' four/*
  vfm-clip unique -o four a.mp4 copy.mp4 part.mp4 other-minute.mp4 same.mp4 >/dev/null
  [ -z "$(find four -type f -newermt 2002-01-01)" ]
  vfm-clip unique -o four --force a.mp4 >/dev/null
  [ -n "$(find four -name '*.signature' -newermt 2002-01-01)" ]
}

@test "a signature that is cut short, or of another stream, is made anew" {
  vfm-clip unique -o looks a.mp4 >/dev/null
  local there hash
  there=$(echo looks/*.signature)
  hash=$(sha256sum <"$there")
  truncate -s -1024 "$there"
  vfm-clip unique -o looks a.mp4 >/dev/null
  [ "$(sha256sum <"$there")" = "$hash" ]
  vfm-clip unique -o looks --stream 0 a.mp4 >/dev/null
  grep -q '"stream":0' "$there"
}

@test "how much of a source another one must show" {
  # Its last third is something else.
  quiet_ffmpeg -i a.mp4 -i other-minute.mp4 -filter_complex "[0]trim=0:8,setpts=PTS-STARTPTS[x];[1]trim=0:4[y];[x][y]concat" \
    "${x264[@]}" mixed.mp4
  [ "$(vfm-clip unique -o looks mixed.mp4 a.mp4 | paths)" = "$(printf '%s\n' mixed.mp4 a.mp4)" ]
  [ "$(vfm-clip unique -o looks mixed.mp4 a.mp4 --covered 0.7 | paths)" = mixed.mp4 ]
  [ "$(jq -r 'select(.path == "a.mp4").reason' looks/sources.jsonl | grep -c "'mixed.mp4' shows [78]")" -eq 1 ]
}

@test "options that do not go together are refused before any work" {
  fails 2 vfm-clip unique a.mp4
  grep -q 'name the output folder with -o DIR' err
  fails 2 vfm-clip unique -o x --stride 2s a.mp4
  fails 2 vfm-clip -o x --covered 0.5 a.mp4
  fails 2 vfm-clip unique -o x --covered 0 a.mp4
  fails 2 vfm-clip unique -o x --covered nan a.mp4
  [ ! -e x ]
}

@test "an input that broke off chooses nothing" {
  printf '%s\n' '{"kind":"begin","tool":"x","id":"1"}' '{"kind":"video","path":"a.mp4"}' >in.jsonl
  run --separate-stderr vfm-clip unique -o looks in.jsonl
  [ "$status" -eq 1 ]
  [ -z "$(records <<<"$output")" ]
}
