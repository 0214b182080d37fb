#!/usr/bin/env bats
# vfm-clip: shots become clips, with their frames, times, sound and pictures, in a report, too.
# SPDX-License-Identifier: Apache-2.0
load media
load kinds

setup_file() {
  media_folder
  make_kinds gop.mp4 short-gop.ts vfr.mkv rotated.mp4 odd.mp4 wide.mp4 ten.mkv cover.mp4 two.mkv sound.mkv one.mp4 a.jpg b.png c.png
}

@test "a cut to black, a wipe and an explosion are told apart" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=24:duration=2 -f lavfi -i color=black:size=96x64:rate=24:duration=0.75 \
    -f lavfi -i smptebars=size=96x64:rate=24:duration=2 \
    -filter_complex "[2]format=yuv420p,fade=in:d=0.5[b];[0][1][b]concat=n=3,format=yuv420p" -c:v libx264 -preset ultrafast black.mp4
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=24:duration=3 -f lavfi -i mandelbrot=size=96x64:rate=24 \
    -filter_complex "[1]trim=duration=3[b];[0]settb=1/24,format=yuv420p[a];[b]settb=1/24,format=yuv420p[c];[a][c]xfade=wipeleft:duration=0.75:offset=2" \
    -c:v libx264 -preset ultrafast wipe.mp4
  quiet_ffmpeg -f lavfi -i testsrc=size=96x64:rate=24:duration=4 -f lavfi -i "gradients=size=96x64:rate=24:duration=4:c0=0xfff0c0:c1=0xff9020:nb_colors=2:seed=3" \
    -filter_complex "[0]format=gbrp[a];[1]format=gbrp[b];[a][b]blend=all_expr='if(lt(N,48),A,A+(B-A)*0.95*pow(0.85,max(0,N-58)))',format=yuv420p" \
    -c:v libx264 -preset ultrafast blast.mp4
  run --separate-stderr vfm-clip shots black.mp4 wipe.mp4 blast.mp4
  [ "$(records <<<"$output" | jq -c '[.cuts[]|.type]' | tr '\n' ' ')" = '["cut","fade"] ["wipe"] [] ' ]
  [ "$(records <<<"$output" | jq -s -c '[.[0].cuts[].frame]|[.[0], .[1]>=66 and .[1]<=69]')" = '[48,true]' ]
  # The black frames between the two changes are in no clip.
  vfm-clip black.mp4 -o out --verify
  [ "$(frames_of out)" = "48 48 " ] || [ "$(frames_of out)" = "48 47 " ]
}

@test "pictures that slide, are squeezed, open or close are changes of shot, and their frames in no clip" {
  local way names=()
  for way in slideleft slideup squeezeh squeezev circleopen rectcrop wipetl vertopen; do
    names+=("$way.mp4")
    quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=24:duration=4 -f lavfi -i mandelbrot=size=96x64:rate=24 \
      -filter_complex "[1]trim=duration=4[b];[0]settb=1/24,format=yuv420p[a];[b]settb=1/24,format=yuv420p[c];[a][c]xfade=$way:duration=1:offset=2" \
      -c:v libx264 -preset ultrafast "$way.mp4"
  done
  run --separate-stderr vfm-clip shots "${names[@]}"
  [ "$(records <<<"$output" | jq -r '[.cuts[].type]|join(" ")' | sort | uniq -c | xargs)" = "8 transition" ]
  # Frames 49 to 71 show both.
  [ "$(records <<<"$output" | jq -c '[.cuts[].frame]|.[0]>49 and .[0]<72' | sort -u)" = true ]
  vfm-clip slideleft.mp4 --min-length 0 -o out --verify
  [ "$(frames_of out)" = "49 72 " ]
}

@test "clips have exactly their frames, and stdout names the shard" {
  run --separate-stderr vfm-clip shots.mp4 -o out --verify
  only_records
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "${#lines[@]}" -eq 1 ]
  local tar
  tar=$(echo out/*-00000.tar)
  [[ "$output" = '{"kind":"shard","path":"'"$tar"'","samples":3,"bytes":'*',"source":"shots.mp4","source_hash":"'*'","columns":{"clip":"'"$tar"'"}}' ]]
  [ "$(frames_of out)" = "18 18 18 " ]
  [ "$(facts out frames)" = "18 18 18 " ]
  [ "$(facts out begin)" = "0.0 1.5 3.0 " ]
  [ "$(facts out seconds)" = "1.5 1.5 1.5 " ]
  [ "$(facts out verified)" = "true true true " ]
  [ "$(facts out start_type)" = "start cut cut " ]
  [ "$(facts out end_type)" = "cut cut end " ]
  [ "$(facts out width)" = "96 96 96 " ]
  [ "$(facts out fps)" = "12.0 12.0 12.0 " ]
  [ "$(facts out source)" = "shots.mp4 shots.mp4 shots.mp4 " ]
  [ -f "${tar%.tar}.idx" ] && [ -f "$tar.idx" ]
  [ ! -e out/errors.jsonl ]
  # The middle clip's picture is the source's, not a neighbour's.
  tar -xOf "$tar" "$(tar -tf "$tar" | grep mp4 | sed -n 2p)" >clip.mp4
  quiet_ffmpeg -i clip.mp4 -i shots.mp4 -filter_complex "[1]trim=start_frame=18:end_frame=36,setpts=PTS-STARTPTS[s];[0][s]psnr=stats_file=psnr.log" -f null -
  [ "$(wc -l <psnr.log)" -eq 18 ]
  run ! grep -E 'psnr_y:([0-9]|[12][0-9])\.' psnr.log
}

@test "odd kinds of files give right clips" {
  local file
  for file in gop.mp4 short-gop.ts odd.mp4 ten.mkv cover.mp4 wide.mp4; do
    run --separate-stderr vfm-clip "$file" -o "out-$file" --verify
    [ "$status" -eq 0 ]
    [ "$(facts "out-$file" frames)" = "18 18 18 " ]
    [ "$(facts "out-$file" verified)" = "true true true " ]
  done
  [ "$(facts out-odd.mp4 width)" = "98 98 98 " ]
  [ "$(facts out-wide.mp4 width)" = "128 128 128 " ]
  [ "$(facts out-wide.mp4 sample_aspect)" = "4/3 4/3 4/3 " ]
  vfm-clip one.mp4 -o one --verify
  [ "$(facts one frames)" = "1 " ]
}

@test "rotated video comes out upright" {
  run --separate-stderr vfm-clip rotated.mp4 -o out --verify
  [ "$status" -eq 0 ]
  [ "$(facts out width)" = "64 64 64 " ]
  [ "$(facts out height)" = "96 96 96 " ]
  tar -xOf out/*.tar "$(tar -tf out/*.tar | grep -m1 mp4)" >clip.mp4
  [ "$(ffprobe -v error -show_entries stream=width,height:stream_side_data=rotation -of csv=p=0 clip.mp4)" = "64,96" ]
}

@test "variable frame rate keeps every time" {
  run --separate-stderr vfm-clip vfr.mkv -o out --verify
  [ "$status" -eq 0 ]
  [ "$(facts out begin)" = "0.0 1.5 3.0 " ]
  [ "$(facts out seconds)" = "1.5 1.5 1.5 " ]
  tar -xOf out/*.tar "$(tar -tf out/*.tar | grep mp4 | sed -n 2p)" >clip.mp4
  ffprobe -v error -show_entries frame=pts_time -of csv=p=0 clip.mp4 | tr -d ',' >have
  ffprobe -v error -show_entries frame=pts_time -of csv=p=0 vfr.mkv | tr -d ',' |
    awk '$1 > 1.499 && $1 < 2.999 { printf "%.6f\n", $1 - 1.5 }' >want
  diff have want
}

@test "two streams: the one a player shows, or --stream" {
  vfm-clip two.mkv -o best
  vfm-clip two.mkv -o second --stream 1
  [ "$(facts best stream)" != "" ]
  [ "$(facts second width)" = "128 " ]
  [ "$(facts second stream)" = "1 " ]
  run --separate-stderr vfm-clip two.mkv -o none --stream 7
  [ "$status" -eq 1 ]
}

@test "sound is dropped, copied or encoded" {
  vfm-clip sound.mkv -o drop
  vfm-clip sound.mkv -o aac --audio aac
  vfm-clip sound.mkv -o copy --audio copy
  [ "$(facts drop audio)" = "null null null " ]
  [ "$(facts aac audio)" = "aac aac aac " ]
  # mp4 does not hold PCM: encoded all the same.
  [ "$(facts copy audio)" = "aac aac aac " ]
  tar -xOf aac/*.tar "$(tar -tf aac/*.tar | grep -m1 mp4)" >clip.mp4
  [ "$(ffprobe -v error -select_streams a -show_entries stream=codec_name -of csv=p=0 clip.mp4)" = "aac" ]
}

@test "pictures pass unchanged, one format a shard" {
  run --separate-stderr vfm-clip b.png c.png a.jpg -o out
  only_records
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 2 ]
  [[ "${lines[0]}" = *'"samples":2,'* ]]
  local tar
  tar=$(grep -o 'out/[0-9a-f]*-00000.tar' <<<"${lines[0]}" | head -1)
  cmp <(tar -xOf "$tar" "$(tar -tf "$tar" | grep -m1 png)") b.png
  [[ "$(tar -xOf "$tar" "$(tar -tf "$tar" | grep -m1 json)")" = *'"media":"image","source":"b.png"'*'"width":50,"height":70,"frames":1'* ]]
}

@test "options that cannot be end before any work" {
  local args
  for args in "shots.mp4" "shots.mp4 -o out --spans " "shots.mp4 -o out --encoder nosuch" "shots.mp4 -o out --encoder libx264:nosuch" \
    "shots.mp4 -o out --quality 52" "shots.mp4 -o out --min-length 3 --max-length 2" "shots.mp4 -o out --min-length -1" \
    "shots.mp4 -o out --shard-size 0" "shots.mp4 -o out --shard-size many" "shots.mp4 -o out --audio mp3" "shots.mp4 -o out --format csv" \
    "shots.mp4 -o out --threshold 0" "shots.mp4 -o out --no-such-option" "shots.mp4 -o out --hwaccel vaapi"; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-clip $args
    [ "$status" -eq 2 ]
    only_records
    [ -z "$output" ]
    [ -n "$stderr" ]
    [ ! -e out ]
  done
  # A variable that is not set chooses nothing; and no message is longer than it must be.
  for args in "--scale " "--fps " "--threshold -1" "--stream -1"; do
    run --separate-stderr vfm-clip shots.mp4 -o out "${args% *}" "${args#* }"
    [ "$status" -eq 2 ]
    [ "${#stderr}" -lt 120 ]
    [ ! -e out ]
  done
}

@test "a video of one short shot is a clip, also behind a fade out of black" {
  ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=s=160x120:r=30:d=1,fade=in:18:10 -c:v libx264 late.mp4
  run --separate-stderr vfm-clip late.mp4 -o out
  [ "$status" -eq 0 ]
  tar -xOf out/*.tar --wildcards '*.json' | jq -e '.frames <= 12 and .pts_begin > 0' >/dev/null
}

# bats test_tags=night
@test "a video of one short shot is a clip before a fade out, however long, and none if another shot comes" {
  local source=testsrc2=s=160x120:r=30 name
  make_video early.mp4 1 "$source:d=1,fade=out:2:10"
  make_video long.mp4 8 "$source:d=8,fade=out:10:8"
  make_video both.mp4 1 "$source:d=1,fade=in:2:8,fade=out:18:6"
  quiet_ffmpeg -i long.mp4 -i shots.mp4 -filter_complex '[1]scale=160:120,setsar=1,fps=30[b];[0][b]concat' "${x264[@]}" two.mp4
  for name in early long both; do
    vfm-clip $name.mp4 -o $name --min-length 5s --verify -j1
    [ "$(facts $name end_type)" = "fade " ]
    vfm-clip $name.mp4 -o $name-4 --min-length 5s --verify -j4
    [ "$(tree_hash $name)" = "$(tree_hash $name-4)" ]
  done
  [ "$(facts early start_type)$(facts both start_type)" = "start fade " ]
  # Before a change it is as before.
  vfm-clip two.mp4 -o two --min-length 1s --stitch none
  [ "$(facts two start_type)" = "fade cut cut " ]
  [ "$(jq -c 'select(.left_out) | [.left_out[].reason]' two/*.json)" = '["short","fade"]' ]
}

@test "--hwaccel: no engine is an error by name, software otherwise, and nobody sees who decoded" {
  # To the driver this is a machine without a GPU.
  export CUDA_VISIBLE_DEVICES=
  local tool
  for tool in "vfm-clip -o out" "vfm-clip shots"; do
    # shellcheck disable=SC2086
    run --separate-stderr $tool --hwaccel cuda shots.mp4
    [ "$status" -eq 2 ]
    only_records
    [ -z "$output" ]
    [[ "$stderr" == "vfm-clip: --hwaccel cuda: this machine cannot decode video on a GPU: "* ]]
    [ ! -e out ]
  done
  run --separate-stderr vfm-clip -v -o auto --hwaccel auto shots.mp4 vfr.mkv
  [ "$status" -eq 0 ]
  [ "$(grep -c 'decoding video in software: ' <<<"$stderr")" -eq 1 ]
  run --separate-stderr vfm-clip -v -o none shots.mp4 vfr.mkv
  [[ "$stderr" != *"decoding video"* ]]
  [ "$(tree_hash auto)" = "$(tree_hash none)" ]
}

@test "a GPU decodes to the same clips" {
  make_video large.mp4 3 "testsrc2=size=320x240:rate=12"
  run --separate-stderr vfm-clip -v -o gpu --hwaccel cuda -j2 large.mp4 shots.mp4
  [[ "$stderr" == *"cannot decode video on a GPU"* ]] && skip "no GPU with NVDEC"
  [ "$status" -eq 0 ]
  [ "$(grep -c 'decoding video on the GPU' <<<"$stderr")" -eq 1 ]
  [ "$(grep -c "'shots.mp4' (h264) is decoded in software" <<<"$stderr")" -eq 1 ]
  vfm-clip -o none large.mp4 shots.mp4 >/dev/null
  [ "$(tree_hash gpu)" = "$(tree_hash none)" ]
}

@test "the report is one page with the clips" {
  run --separate-stderr vfm-clip shots.mp4 b.png -o out --report page.html
  [ "$status" -eq 0 ]
  [ "$(grep -o '<img' page.html | wc -l)" -eq 4 ]
  [[ "$(cat page.html)" = *"shots.mp4"* ]]
  run ! grep -E 'src="http|href="http' page.html
}

@test "the report's time line begins where the video does" {
  # A transport stream's time begins anywhere.
  quiet_ffmpeg -i shots.mp4 -c copy -output_ts_offset 100 late.ts
  for input in shots.mp4 late.ts; do
    vfm-clip -q --stitch none --into joined "$input" -o "of-$input" --report page.html >/dev/null
    grep -oE "<rect x='[0-9]+[0-9.]*' width='2' height='24'" page.html >"marks-$input"
  done
  # At a third and at two thirds of 1000.
  [ "$(grep -oE "x='[0-9]+" marks-shots.mp4 | tr -cd '0-9\n' | xargs)" = "333 666" ]
  diff marks-shots.mp4 marks-late.ts
}

# bats test_tags=night
@test "Theora's decoder gives the same pictures with any number of threads" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=320x240:rate=25 -t 3 -c:v libtheora -q:v 6 v.ogv || skip "no Theora encoder"
  for i in 1 2 3; do
    vfm-clip -j1 -o "one$i" v.ogv >/dev/null
    vfm-clip -j8 -o "eight$i" v.ogv >/dev/null
    [ "$(tree_hash one1)" = "$(tree_hash "one$i")" ]
    [ "$(tree_hash one1)" = "$(tree_hash "eight$i")" ]
  done
}

@test "--verify knows that an encoder was given limited range" {
  quiet_ffmpeg -i shots.mp4 -c:v mjpeg -q:v 3 full.avi
  vfm-clip --verify -o out --encoder ffv1 full.avi
  [ ! -e out/errors.jsonl ]
}

# bats test_tags=night
@test "a view over a plain sky is no fade" {
  quiet_ffmpeg -f lavfi -i color=0x88bbee:s=640x500:r=1 -f lavfi -i mandelbrot=s=640x360:r=1 \
    -filter_complex '[0][1]vstack' -frames:v 1 wall.png
  quiet_ffmpeg -loop 1 -framerate 25 -i wall.png -vf "crop=640:360:x=0:y='500*abs(cos(n*PI/150))'" -frames:v 150 \
    -c:v libx264 -pix_fmt yuv420p tilt.mp4
  [ "$(vfm-clip shots tilt.mp4 | records | jq -c .cuts)" = '[]' ]
}

@test "what cannot be is known before any work" {
  echo x >file
  for wrong in '--threshold nan' '--stitch builtin:look:nan' '--stitch builtin:look:1.1' '--report file/r.html' '--report .' '-o file'; do
    # shellcheck disable=SC2086
    run vfm-clip -o out $wrong shots.mp4
    echo "$wrong: $status $output"
    [ "$status" -eq 2 ]
    [ ! -e out ]
  done
}
