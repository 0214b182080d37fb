#!/usr/bin/env bats
# vfm-clip shots: lists of shots in each format, a table on a terminal, thresholds, what it refuses.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is of run --separate-stderr
load ../clip/media

# shots.mp4: red, test picture, blue, cut at frames 18 and 36 of 54, 12 frames a second, 96x64.
setup_file() {
  media_folder
  make_video plain.mp4 2
  quiet_ffmpeg -i shots.mp4 -vf "select='not(eq(mod(n,5),2))'" -fps_mode vfr "${x264[@]}" vfr.mkv
  quiet_ffmpeg -i shots.mp4 -f lavfi -i sine=duration=4.5 -map 0 -map 1 -c:v copy -c:a aac sound.mp4
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=12 -frames:v 1 "${x264[@]}" one.mp4
  quiet_ffmpeg -i shots.mp4 -c copy -muxdelay 0 -output_ts_offset 10 late.ts
}

# on_terminal COMMAND...: what it writes to a terminal, which is its standard output and error.
on_terminal() {
  python3 -c 'import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' "$@" </dev/null | tr -d '\r'
}

@test "vfm-clip shots prints the cuts and writes nothing" {
  run --separate-stderr vfm-clip shots shots.mp4
  only_records
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [[ "$output" =~ ^'{"kind":"shots","path":"shots.mp4","frames":54,"cuts":[{"frame":18,"pts":18432,"time":1.5,"type":"cut","score":'[0-9.]+'},{"frame":36,"pts":36864,"time":3.0,"type":"cut","score":'[0-9.]+'}]}'$ ]]
  run --separate-stderr vfm-clip shots plain.mp4 one.mp4 -j2
  only_records
  [ "$output" = '{"kind":"shots","path":"plain.mp4","frames":24,"cuts":[]}
{"kind":"shots","path":"one.mp4","frames":1,"cuts":[]}' ]
  [ "$(find . -type f ! -name 'separate-stderr-*' | wc -l)" -eq 0 ]
}

@test "a fade and a dissolve are reported by their kind" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=24:duration=3 -f lavfi -i mandelbrot=size=96x64:rate=24 \
    -filter_complex "[1]trim=duration=3[b];[0]settb=1/24,format=yuv420p[a];[b]settb=1/24,format=yuv420p[c];[a][c]xfade=duration=0.5:offset=2.5" \
    -c:v libx264 -preset ultrafast dissolve.mp4
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=24:duration=2 -f lavfi -i smptebars=size=96x64:rate=24:duration=2 \
    -filter_complex "[0]format=yuv420p,fade=out:st=1.5:d=0.5[a];[1]format=yuv420p,fade=in:d=0.5[b];[a][b]concat" -c:v libx264 -preset ultrafast fade.mp4
  run --separate-stderr vfm-clip shots dissolve.mp4 fade.mp4
  [ "$(grep -o '"type":"[a-z]*"' <<<"$output" | tr '\n' ' ')" = '"type":"dissolve" "type":"fade" ' ]
  local frame
  frame=$(sed -n 's/.*"frame":\([0-9]*\),.*dissolve.*/\1/p' <<<"$output")
  [ "$frame" -ge 62 ] && [ "$frame" -le 70 ]
  frame=$(sed -n 's/.*"frame":\([0-9]*\),.*"fade".*/\1/p' <<<"$output")
  [ "$frame" -ge 47 ] && [ "$frame" -le 52 ]
  run --separate-stderr vfm-clip shots --no-gradual dissolve.mp4
  only_records
  [[ "$output" = *'"cuts":[]}' ]]
}

# shots_otio FILE: "path first-second length-in-seconds rate" of each clip, read by Python alone.
shots_otio() {
  python3 -c 'import json, sys, urllib.parse
def check(node, schema):
    assert node["OTIO_SCHEMA"] == schema, node["OTIO_SCHEMA"]
    return node
def seconds(time): return check(time, "RationalTime.1")["value"] / time["rate"]
timeline = check(json.load(open(sys.argv[1], encoding="utf-8")), "Timeline.1")
(track,) = check(timeline["tracks"], "Stack.1")["children"]
for clip in check(track, "Track.1")["children"]:
    media = check(check(clip, "Clip.1")["media_reference"], "ExternalReference.1")
    span = check(clip["source_range"], "TimeRange.1")
    whole = check(media["available_range"], "TimeRange.1")
    assert seconds(whole["start_time"]) == 0
    end = seconds(span["start_time"]) + seconds(span["duration"])
    assert end <= seconds(whole["duration"]) + 1e-9
    path = urllib.parse.unquote_to_bytes(media["target_url"])
    sys.stdout.buffer.write(path + " {:.6f} {:.6f} {:g}\n".format(
        seconds(span["start_time"]), seconds(span["duration"]), span["start_time"]["rate"]).encode())' "$1"
}

@test "shots as a timeline of OpenTimelineIO and as FFmpeg's chapters, of any name and rate" {
  local name=$'a,"=;#\\%41\xc3\xbf\n .mp4'
  cp shots.mp4 "$name"
  # vfr.mkv has the 1st, 2nd, 4th, ... of five frames, in milliseconds.
  vfm-clip shots --format otio "$name" vfr.mkv late.ts >list.otio
  shots_otio list.otio >got
  printf '%s %s\n' "$name" "0.000000 1.500000 12" "$name" "1.500000 1.500000 12" "$name" "3.000000 1.500000 12" >want
  printf 'vfr.mkv %s 1000\n' "0.000000 1.500000" "1.500000 1.500000" "3.000000 1.500000" >>want
  printf 'late.ts %s 12\n' "0.000000 1.500000" "1.500000 1.500000" "3.000000 1.500000" >>want
  diff want got
  # A list that ended early is none.
  run vfm-clip shots --format otio no.mp4 shots.mp4
  [ "$status" -eq 1 ]
  vfm-clip shots --format otio no.mp4 shots.mp4 >list.otio 2>/dev/null || true
  [ "$(shots_otio list.otio | wc -l)" -eq 3 ]
  vfm-clip shots --format chapters "$name" vfr.mkv >chapters.txt
  ffprobe -v error -show_chapters -of json chapters.txt |
    jq -r '.chapters[] | [.start_time, .end_time, .tags.title] | join(" ")' >got
  for start in 0 4.5; do
    for n in 1 2 3; do
      awk -v a="$start" -v n="$n" 'BEGIN { printf "%.6f %.6f ", a + (n - 1) * 1.5, a + n * 1.5 }'
      if [ $start = 0 ]; then printf 'a,"=;#\\%%41\xc3\xbf? .mp4 %d\n' $n; else echo "vfr.mkv $n"; fi
    done
  done >want
  diff want got
  # FFmpeg puts them into the video.
  quiet_ffmpeg -i shots.mp4 -i chapters.txt -map 0:v -map_chapters 1 -c copy with.mkv
  [ "$(ffprobe -v error -show_chapters -of json with.mkv | jq '.chapters[1].start')" = 1500000000 ]
}

# at_frames VIDEO: leaves its chapters in chapters.txt, and prints for each chapter of the file that FFmpeg makes of the
# two "at", where it begins within a millisecond of its frame (0, 18 and 36), else both times.
at_frames() {
  vfm-clip shots --format chapters "$1" >chapters.txt
  quiet_ffmpeg -y -i "$1" -i chapters.txt -map 0 -map_chapters 1 -c copy with.mkv
  paste <(ffprobe -v error -show_chapters -of json with.mkv | jq '.chapters[].start / 1e6') \
    <(ffprobe -v error -select_streams v -show_entries frame=best_effort_timestamp -of csv=p=0 with.mkv |
      grep -o '[0-9][0-9]*' | sed -n '1p;19p;37p') | awk '{ print ($1 - $2) ^ 2 <= 1 ? "at" : $0 }' | paste -sd ' '
}

# bats test_tags=night
@test "chapters begin with their frames, also where sound comes before the picture" {
  local video
  quiet_ffmpeg -itsoffset 0.25 -i shots.mp4 -f lavfi -i sine=duration=5 -map 0 -map 1 -c:v copy -c:a aac \
    -output_ts_offset 3 lead.mkv
  quiet_ffmpeg -i lead.mkv -c copy lead.ts
  quiet_ffmpeg -i lead.mkv -c copy lead.mp4
  quiet_ffmpeg -itsoffset 0.25 -i sound.mp4 -i sound.mp4 -map 1:v -map 0:a -c copy lag.mkv
  for video in lead.mkv lead.ts lead.mp4 lag.mkv late.ts; do
    [ "$(at_frames $video)" = "at at at" ]
    vfm-clip shots --format chapters --isolate $video | cmp - chapters.txt
  done
  # AAC's first packet comes 23 ms before its sound.
  [ "$(vfm-clip shots --format chapters lead.mkv | grep -m 1 START)" = START=273 ]
  [ "$(vfm-clip shots --format chapters lag.mkv | grep -m 1 START)" = START=0 ]
}

@test "an edit decision list of a variable frame rate is told to be no list of times" {
  run --separate-stderr vfm-clip shots --format edl shots.mp4 vfr.mkv late.ts
  [ "$status" -eq 0 ]
  [ "$(wc -l <<<"$stderr")" -eq 1 ]
  [[ "$stderr" == "vfm-clip: 'vfr.mkv' has no constant frame rate: the timecodes "*" count frames at "*" and are not its times"* ]]
}

# bats test_tags=night
@test "--thresholds: from one decoding what each --threshold finds" {
  make_video restless.mp4 2 "mandelbrot=size=96x64:rate=12"
  for list in 0.05:0.2:0.05 0.15,0.05,0.3; do
    local scores="0.05 0.1 0.15 0.2"
    [[ $list == *:* ]] || scores=${list//,/ }
    vfm-clip shots --thresholds $list restless.mp4 shots.mp4 -j2 | records >swept
    for video in restless.mp4 shots.mp4; do
      for score in $scores; do
        vfm-clip shots --threshold "$score" "$video" | records |
          jq -c --argjson t "$score" '{kind, path, threshold: $t, frames, cuts}'
      done
    done >single
    diff single <(jq -c . swept)
  done
  [ "$(jq -c '.cuts | length' swept | sort -u | wc -l)" -gt 1 ]
  local bad
  for bad in "" , 0 -1 nan inf 0.3,x 0.3,, 0.1:0.5 0.5:0.1:0.1 0.1:0.5:0 0.1:100:0.1 "0.1 0.2"; do
    fails 2 vfm-clip shots --thresholds "$bad" shots.mp4
    grep -q "thresholds" err
  done
  for bad in "--thresholds 0.3 --threshold 0.3" "--thresholds 0.3 --format csv"; do
    # shellcheck disable=SC2086
    fails 2 vfm-clip shots shots.mp4 $bad
  done
}

@test "on a terminal the list is a table for people, but not with --format json" {
  on_terminal vfm-clip shots -q shots.mp4 plain.mp4 >table
  [ "$(sed -E 's/ +[0-9]\.[0-9]+$//' table)" = 'shots.mp4: 2 changes of shot in 54 frames
          time     frame  kind        score
  00:00:01.500        18  cut
  00:00:03.000        36  cut
plain.mp4: 0 changes of shot in 24 frames' ]
  on_terminal vfm-clip shots -q --thresholds 0.3,1.3 shots.mp4 >table
  [ "$(grep -c '^shots.mp4, threshold ' table)" -eq 2 ]
  on_terminal vfm-clip shots -q --format json shots.mp4 | records | cmp - <(vfm-clip shots shots.mp4 | records)
}

@test "vfm-clip has the verbs shots and unique, each with its own options and help" {
  local verb
  for verb in '' shots unique; do
    # shellcheck disable=SC2086
    vfm-clip $verb --help >short
    # shellcheck disable=SC2086
    vfm-clip $verb --help-all >all
    [ "$(wc -l <short)" -le 50 ]
    [ "$(grep -cE '^  -' short)" -le 25 ]
    [ "$(grep -E '^  -' short | grep -cvxFf all)" -eq 0 ]
    [ -z "$verb" ] || vfm-clip help $verb | cmp - short
  done
  run --separate-stderr vfm-clip shots shots.mp4 --format srt
  [ "$status" -eq 2 ]
  [[ "$stderr" == "vfm-clip: --format: 'srt' must be one of json, csv, edl, otio, chapters"* ]]
  local args
  for args in 'shots -o out' 'shots --prune' 'shots --stride 1s' 'shots --force' 'unique --threshold 1' '--thresholds 0.3 -o out' \
    '--explain x.html -o out' '-o out shots'; do
    # shellcheck disable=SC2086
    fails 2 vfm-clip $args shots.mp4
  done
  touch shots
  fails 2 vfm-clip shots shots.mp4
  grep -q "'./shots' is the file" err
}

@test "the processor decodes nothing on a GPU: --device cpu is refused" {
  local verb
  for verb in shots 'unique -o out'; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-clip $verb --hwaccel auto --device cpu shots.mp4
    [ "$status" -eq 2 ]
    [ "$stderr" = "vfm-clip: --device cpu names no GPU to decode on: name GPUs, or leave out --hwaccel" ]
    [ -z "$output" ]
  done
}
