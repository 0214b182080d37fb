#!/usr/bin/env bats
# vfm-clip: shots, clips, resume, every kind of bad input.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
bats_require_minimum_version 1.5.0

# Media are made once. shots.mp4: red, test picture, blue, cut at frames 18 and 36 of 54.
setup_file() {
  media_folder
  make_video plain.mp4 2
  local three=(-f lavfi -i "color=red:size=96x64:rate=12:duration=1.5"
    -f lavfi -i "testsrc2=size=96x64:rate=12:duration=1.5"
    -f lavfi -i "color=blue:size=96x64:rate=12:duration=1.5")
  local joined="[0][1][2]concat=n=3:v=1"
  quiet_ffmpeg "${three[@]}" -filter_complex "$joined" "${x264[@]}" -g 96 gop.mp4
  quiet_ffmpeg "${three[@]}" -filter_complex "$joined" "${x264[@]}" -g 6 short-gop.ts
  quiet_ffmpeg "${three[@]}" -filter_complex "${joined}[a];[a]select='not(eq(mod(n,5),2))'[o]" -map '[o]' \
    -fps_mode vfr "${x264[@]}" vfr.mkv
  turn shots.mp4 rotated.mp4
  quiet_ffmpeg "${three[@]}" -filter_complex "${joined},scale=97:63,setsar=1" -c:v libx264 -preset ultrafast -pix_fmt yuv444p odd.mp4
  quiet_ffmpeg "${three[@]}" -filter_complex "${joined},setsar=4/3" "${x264[@]}" wide.mp4
  quiet_ffmpeg "${three[@]}" -filter_complex "$joined" -c:v libx264 -preset ultrafast -pix_fmt yuv420p10le ten.mkv
  quiet_ffmpeg "${three[@]}" -f lavfi -i testsrc=size=200x200:duration=0.04 -filter_complex "${joined}[o]" -map '[o]' -map 3:v \
    -c:v:0 libx264 -preset ultrafast -pix_fmt:v:0 yuv420p -c:v:1 png -disposition:v:1 attached_pic cover.mp4
  quiet_ffmpeg -f lavfi -i testsrc=size=64x48:duration=1:rate=10 -f lavfi -i testsrc2=size=128x96:duration=1:rate=15 \
    -map 0 -map 1 "${x264[@]}" two.mkv
  quiet_ffmpeg "${three[@]}" -f lavfi -i sine=duration=4.5 -filter_complex "${joined}[o]" -map '[o]' -map 3 "${x264[@]}" -c:a pcm_s16le sound.mkv
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=12 -frames:v 1 "${x264[@]}" one.mp4
  quiet_ffmpeg -f lavfi -i sine -t 1 audio.mp4
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64 -frames:v 1 a.jpg
  quiet_ffmpeg -f lavfi -i testsrc=size=50x70 -frames:v 1 b.png
  quiet_ffmpeg -f lavfi -i testsrc=size=60x70 -frames:v 1 c.png
  head -c 2000 shots.mp4 >truncated.mp4
  : >empty.mp4
  local half
  half=$(($(stat -c %s short-gop.ts) / 2))
  cp short-gop.ts corrupt.ts
  head -c 2000 /dev/urandom | dd of=corrupt.ts bs=1 seek=$half conv=notrunc status=none
}
setup() { setup_media; }

# facts DIR FIELD: the field of each clip's json, in order, one line.
facts() {
  local tar
  for tar in "$1"/*.tar; do tar -xOf "$tar" --wildcards '*.json' | sed 's/}{/}\n{/g'; echo; done |
    grep . | sed "s/.*\"$2\":\(\"[^\"]*\"\|[^,}]*\).*/\1/" | tr -d '"' | tr '\n' ' '
}
# frames_of DIR: decoded frames of each clip, in order.
frames_of() {
  local tar name
  for tar in "$1"/*.tar; do
    for name in $(tar -tf "$tar" | grep mp4); do
      tar -xOf "$tar" "$name" >clip.mp4
      ffprobe -v error -count_frames -show_entries stream=nb_read_frames -of csv=p=0 clip.mp4
    done
  done | tr '\n' ' '
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

@test "each bad input is reported and the good ones are used" {
  mkdir folder.mp4
  run --separate-stderr vfm-clip truncated.mp4 empty.mp4 shots.mp4 audio.mp4 folder.mp4 missing.mp4 corrupt.ts -o out
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 2 ]
  [[ "${lines[0]}" = *'"source":"shots.mp4"'* ]]
  [[ "${lines[1]}" = *'"source":"corrupt.ts"'* ]]
  [ "$(wc -l <out/errors.jsonl)" -eq 6 ]
  [ "$(sed 's/.*"input":"\([^"]*\)".*/\1/' out/errors.jsonl | tr '\n' ' ')" = "truncated.mp4 empty.mp4 audio.mp4 folder.mp4 missing.mp4 corrupt.ts " ]
  [[ "$stderr" = *"'empty.mp4' is empty"* ]]
  [[ "$stderr" = *"'audio.mp4' has no video stream"* ]]
  [[ "$stderr" = *"'folder.mp4' is a folder, not a video"* ]]
  [[ "$stderr" = *"cannot open 'missing.mp4': No such file or directory"* ]]
  # Its good parts are there, and how much was bad is said.
  grep -q '"corrupt": [1-9]' out/"$(sed 's/.*"path":"out\/\([0-9a-f]*\)-.*/\1/' <<<"${lines[1]}").json"
  # A second run reports the same, and does nothing.
  cp out/errors.jsonl first
  run --separate-stderr vfm-clip truncated.mp4 empty.mp4 shots.mp4 audio.mp4 folder.mp4 missing.mp4 corrupt.ts -o out
  [ "$status" -eq 1 ]
  cmp first out/errors.jsonl
}

@test "not one clip is an error" {
  run --separate-stderr vfm-clip audio.mp4 -o out
  [ "$status" -eq 1 ]
  only_records
  [ -z "$output" ]
  [[ "$stderr" = *"no clips"* ]]
  run --separate-stderr vfm-clip -o out - </dev/null
  [ "$status" -eq 1 ]
  run --separate-stderr vfm-clip shots audio.mp4
  [ "$status" -eq 1 ]
  only_records
  [ -z "$output" ]
}

@test "manifest lines: fields go on, other kinds pass, garbage is reported" {
  run --separate-stderr vfm-clip -o out - <<'END'
{"kind":"video","path":"plain.mp4","licence":"CC0"}
{"kind": "video", "path": 3}
{not json
{"kind":"checkpoint","path":"run/1","step":7}

one.mp4
END
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 3 ]
  [[ "${lines[0]}" = *'"source":"plain.mp4"'*'"licence":"CC0"}' ]]
  [ "${lines[1]}" = '{"kind":"checkpoint","path":"run/1","step":7}' ]
  [[ "${lines[2]}" = *'"source":"one.mp4"'* ]]
  [ "$(wc -l <out/errors.jsonl)" -eq 2 ]
}

@test "among five thousand inputs the same contents are used once, and no temporary file is left" {
  python3 - <<'PY'
import os, struct
os.mkdir("p")
for number in range(5000):  # the last ten are the first ten
    colour = struct.pack("<I", number % 4990)[:3]
    with open(f"p/{number:04}.bmp", "wb") as file:
        file.write(b"BM" + struct.pack("<IIIIiiHHIIiiII", 62, 0, 54, 40, 2, 1, 1, 24, 0, 8, 0, 0, 0, 0) + 2 * colour + bytes(2))
PY
  printf '%s\n' p/*.bmp | vfm-clip - -o out -q -j2 >manifest.jsonl
  vfm-clip -o again - < <(printf '%s\n' p/*.bmp) >/dev/null 2>err
  [ "$(jq -s 'map(.samples // 0) | add' manifest.jsonl)" -eq 4990 ]
  [ "$(grep -c "p/499[0-9].bmp' has the same contents as 'p/000[0-9].bmp'; skipped" err)" -eq 10 ]
  [ -z "$(find out again -name '.*' -type f ! -name .vfm-clip.ledger)" ]
}

@test "the same contents twice are used once" {
  cp shots.mp4 copy.mp4
  run --separate-stderr vfm-clip shots.mp4 copy.mp4 -o out -j2
  only_records
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 1 ]
  [[ "$output" = *'"source":"shots.mp4"'* ]]
  [ "$stderr" = "vfm-clip: 'copy.mp4' has the same contents as 'shots.mp4'; skipped" ]
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

@test "lengths: short shots are left out, long ones split, and both are reported" {
  vfm-clip shots.mp4 -o split --max-length 1s
  [ "$(facts split frames)" = "12 6 12 6 12 6 " ]
  [ "$(facts split start_type)" = "start split cut split cut split " ]
  vfm-clip shots.mp4 -o short --max-length 1s --min-length 600ms
  [ "$(facts short frames)" = "12 12 12 " ]
  [ "$(grep -c '"reason": "short"' short/*.json)" -eq 3 ]
  # A video of one shot is a clip however short.
  vfm-clip one.mp4 -o one --min-length 10s
  [ "$(facts one frames)" = "1 " ]
}

@test "a video of one short shot is a clip, also behind a fade out of black" {
  ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=s=160x120:r=30:d=1,fade=in:18:10 -c:v libx264 late.mp4
  run --separate-stderr vfm-clip late.mp4 -o out
  [ "$status" -eq 0 ]
  tar -xOf out/*.tar --wildcards '*.json' | jq -e '.frames <= 12 and .pts_begin > 0' >/dev/null
}

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

@test "stitching joins what looks the same" {
  quiet_ffmpeg -f lavfi -i testsrc=size=96x64:rate=12:duration=3 -vf "drawbox=enable='between(n,12,23)':color=black:t=fill" -c:v libx264 -preset ultrafast -pix_fmt yuv420p jump.mp4
  vfm-clip jump.mp4 -o apart --stitch none
  vfm-clip jump.mp4 -o joined
  [ "$(facts joined shots)" = "2 " ]
  [ "$(facts joined frames)" = "36 " ]
  [ "$(facts apart shots)" = "1 1 " ]
}

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

@test "shards end before they grow over --shard-size" {
  vfm-clip shots.mp4 -o one >one.jsonl
  run --separate-stderr vfm-clip shots.mp4 -o many --shard-size 9000
  only_records
  [ "${#lines[@]}" -gt 1 ]
  [ "$(facts many key)" = "$(facts one key)" ]
}

@test "a finished video is not read again, other options make it again" {
  vfm-clip shots.mp4 -o out >first
  local before
  before=$(stat -c '%Y %i' out/*.tar)
  sleep 1.1
  vfm-clip shots.mp4 -o out >second
  cmp first second
  [ "$(stat -c '%Y %i' out/*.tar)" = "$before" ]
  vfm-clip shots.mp4 -o out --quality 40 >third
  run ! cmp -s first third
  vfm-clip shots.mp4 -o out --quality 40 --force >fourth
  cmp third fourth
  vfm-clip shots.mp4 -o out --shard-size 9000 >/dev/null
  vfm-clip shots.mp4 -o out >fifth
  cmp first fifth
  [ "$(find out -name '*.tar' | wc -l)" -eq 1 ]
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

@test "-j1 and -j4 give the same bytes" {
  local inputs=(shots.mp4 gop.mp4 truncated.mp4 vfr.mkv b.png c.png a.jpg odd.mp4 ten.mkv shots.mp4)
  run --separate-stderr vfm-clip "${inputs[@]}" -o out -j1
  [ "$status" -eq 1 ]
  local first=$output
  mv out one
  run --separate-stderr vfm-clip "${inputs[@]}" -o out -j4
  [ "$output" = "$first" ]
  [ "$(tree_hash out)" = "$(tree_hash one)" ]
}

@test "killed anywhere and run again: the same bytes" {
  local inputs=(shots.mp4 vfr.mkv odd.mp4 ten.mkv short-gop.ts b.png)
  vfm-clip "${inputs[@]}" -o whole --shard-size 9000 -j1 >whole.jsonl
  local sleeping
  for sleeping in 0.02 0.05 0.1 0.15 0.25; do
    setsid vfm-clip "${inputs[@]}" -o out --shard-size 9000 -j2 >/dev/null 2>&1 3>&- &
    local pid=$!
    sleep $sleeping
    kill -KILL -- "-$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  vfm-clip "${inputs[@]}" -o out --shard-size 9000 -j1 >out.jsonl
  [ "$(tree_hash out)" = "$(tree_hash whole)" ]
  diff <(records out.jsonl | sed 's/out\///g') <(records whole.jsonl | sed 's/whole\///g')
}

@test "what a run leaves that is killed as it ends is removed by the next one" {
  local name
  vfm-clip shots.mp4 -o shards
  vfm-clip shots.mp4 -o files --into files
  name=$(basename shards/*.json .json)
  cp -r shards whole-shards
  cp -r files whole-files
  # The last thing that a run does is to remove these.
  echo '{}' >"shards/.$name.settings"
  echo '{}' >"files/.$name.journal"
  vfm-clip shots.mp4 -o shards
  vfm-clip shots.mp4 -o files --into files
  [ "$(tree_hash shards)" = "$(tree_hash whole-shards)" ]
  [ "$(tree_hash files)" = "$(tree_hash whole-files)" ]
}

@test "a video whose shard has lost an index is done again" {
  vfm-clip shots.mp4 -o whole >/dev/null
  cp -r whole out
  rm out/*-00000.tar.idx
  vfm-clip shots.mp4 -o out >/dev/null
  [ "$(tree_hash out)" = "$(tree_hash whole)" ]
}

# note_settings DIR NAME: what a run with the settings of whole/NAME.json notes in DIR until it is done.
note_settings() {
  python3 - "whole/$2.json" "$1/.$2.settings" <<'END' || skip "no python3"
import json, sys
settings = json.load(open(sys.argv[1]))["settings"]
open(sys.argv[2], "w").write(json.dumps(settings, separators=(",", ":")) + "\n")
END
}

@test "whole shards of a killed run are kept" {
  vfm-clip shots.mp4 -o whole --shard-size 9000 >/dev/null
  cp -r whole out
  # As a kill after the second shard leaves it.
  local name
  name=$(basename out/*.json .json)
  note_settings out "$name"
  rm "out/$name.json" out/"$name"-00002*
  local before
  before=$(stat -c %i out/"$name"-00000.tar)
  vfm-clip shots.mp4 -o out --shard-size 9000 >/dev/null
  [ "$(stat -c %i out/"$name"-00000.tar)" = "$before" ]
  [ "$(tree_hash out)" = "$(tree_hash whole)" ]
}

@test "whole shards of a killed run that hold other clips are not kept" {
  vfm-clip shots.mp4 -o whole --shard-size 9000 >/dev/null
  local name stride
  name=$(basename whole/*.json .json)
  for stride in 0.6s 0.9s; do
    rm -rf out
    vfm-clip shots.mp4 -o out --shard-size 9000 --stride "$stride" >/dev/null
    note_settings out "$name"
    rm "out/$name.json"
    vfm-clip shots.mp4 -o out --shard-size 9000 >/dev/null
    [ "$(tree_hash out)" = "$(tree_hash whole)" ]
  done
}

@test "a full disk ends with an error and nothing half written" {
  mkdir small
  mount -t tmpfs -o size=24k tmpfs small 2>/dev/null || skip "cannot mount"
  run --separate-stderr vfm-clip shots.mp4 plain.mp4 -o small/out
  local files
  files=$(find small -name '*.tar' -o -name '*.tmp')
  umount small
  [ "$status" -eq 1 ]
  [[ "$stderr" = *"No space left on device"* ]]
  [[ "$files" != *.tmp ]]
}

@test "a closed pipe ends the run" {
  # shellcheck disable=SC2016
  run --separate-stderr bash -c 'vfm-clip shots.mp4 vfr.mkv odd.mp4 -o out -j1 | true; exit "${PIPESTATUS[0]}"'
  [ "$status" -ne 0 ]
  # What was being written when the pipe closed is taken up by the next run.
  vfm-clip shots.mp4 vfr.mkv odd.mp4 -o out -j1 >m.jsonl
  [ "$(records m.jsonl | wc -l)" -eq 3 ]
  [ -z "$(find out -name '.*.tmp')" ]
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

@test "a damaged picture, or a video under a picture's name, is an error" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=320x240 -frames:v 1 whole.jpg
  head -c $(($(stat -c %s whole.jpg) / 2)) whole.jpg >half.jpg
  cp shots.mp4 video.jpg
  run vfm-clip whole.jpg half.jpg video.jpg -o out
  [ "$status" -eq 1 ]
  grep -q "'half.jpg' is a damaged picture" out/errors.jsonl
  grep -q "'video.jpg' has the name of a picture, but is a video" out/errors.jsonl
  [ "$(tar tf out/*.tar | grep -c jpg)" -eq 1 ]
}

@test "a name with a line end works, and a list that cannot be read costs itself only" {
  cp one.mp4 $'new\nline.mp4'
  run vfm-clip -o out nowhere.jsonl $'new\nline.mp4' shots.mp4
  [ "$status" -eq 1 ]
  [ "$(jq -s length out/errors.jsonl)" -eq 1 ]
  grep -q 'nowhere.jsonl' out/errors.jsonl
  [ "$(facts out source | tr -d '\n' | grep -o 'shots.mp4' | wc -l)" -eq 3 ]
}

@test "a pipe is refused at once" {
  mkfifo pipe
  run timeout 20 vfm-clip -o out pipe shots.mp4
  [ "$status" -eq 1 ]
  grep -q "'pipe' is a pipe or a device" out/errors.jsonl
}

@test "a truncated Matroska file says so" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=160x120:rate=25 -t 6 -c:v libx264 -g 12 -preset ultrafast long.mkv
  head -c $(($(stat -c %s long.mkv) * 6 / 10)) long.mkv >cut.mkv
  run --separate-stderr vfm-clip shots cut.mkv
  [ "$status" -eq 1 ]
  [[ $stderr == *damaged* ]]
  vfm-clip shots long.mkv >whole 2>errors
  [ ! -s errors ]
}

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

@test "two at once in one folder: each source is cut by one, both report all, and nothing is torn" {
  vfm-clip shots.mp4 gop.mp4 ten.mkv a.jpg -o whole >whole.out
  for _ in 1 2 3; do
    rm -rf both
    vfm-clip shots.mp4 gop.mp4 ten.mkv a.jpg -o both -j2 >one 2>one.err 3>&- &
    vfm-clip ten.mkv gop.mp4 shots.mp4 a.jpg -o both -j2 >two 2>two.err
    wait $!
    [ "$(tree_hash both)" = "$(tree_hash whole)" ]
    for said in one two; do
      diff <(records $said | sed 's/both/whole/g' | sort) <(records whole.out | sort)
      run ! grep -v "another program is writing .*; waiting for it" $said.err
    done
  done
}

@test "what another program makes is waited for and taken, or made if that one dies" {
  local format name
  for format in shards files; do
    vfm-clip --into $format shots.mp4 -o whole-$format >whole.out
    case $format in
      shards) name=$(basename whole-shards/*.json) ;;
      files) name=$(basename whole-files/*.files) ;;
    esac
    # It dies.
    other_program dies-$format/$name
    waits_for dies-$format/$name vfm-clip --into $format shots.mp4 -o dies-$format
    [ -z "$(find dies-$format -name '*.tar' -o -name '*.mp4')" ]
    let_go
    wait $waiting
    [ "$(tree_hash dies-$format)" = "$(tree_hash whole-$format)" ]
    # It comes to its end.
    other_program done-$format/$name
    waits_for done-$format/$name vfm-clip --into $format shots.mp4 -o done-$format
    cp -p whole-$format/* done-$format
    find done-$format -type f ! -name '.*' -printf '%p %i\n' | sort >before
    let_go
    wait $waiting
    find done-$format -type f -printf '%p %i\n' | sort | diff before -
    [ "$(tree_hash done-$format)" = "$(tree_hash whole-$format)" ]
    diff <(records waiting.out | sed "s/done-/whole-/g") <(records whole.out)
  done
}

@test "errors of a run that ends while another one works in the folder are not lost" {
  mkfifo names
  vfm-clip - -o out <names >first 2>/dev/null 3>&- &
  local first=$!
  exec 7>names
  echo one.mp4 >&7
  until [ -n "$(records first)" ]; do sleep 0.02; done
  run vfm-clip plain.mp4 missing.mp4 -o out
  [ "$status" -eq 1 ]
  echo gone.mp4 >&7
  exec 7>&-
  wait $first && false
  [ "$(jq -r .input out/errors.jsonl | sort | xargs)" = "gone.mp4 missing.mp4" ]
  # A run that begins later reports its own.
  vfm-clip one.mp4 -o out >/dev/null
  [ ! -e out/errors.jsonl ]
}
