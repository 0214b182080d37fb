#!/usr/bin/env bats
# vfm-clip --smart-cut: what is copied is the source's to the bit, what is encoded is no more than must be, and what
# cannot be copied is encoded in full, with the reason.
# SPDX-License-Identifier: Apache-2.0
load media

setup_file() {
  export MEDIA="$BATS_FILE_TMPDIR/media"
  mkdir "$MEDIA"
  cd "$MEDIA" || return 1
  # 6 s, 10 frames a second, a key frame every second, B-frames, sound with a beep in each second.
  quiet_ffmpeg -f lavfi -i testsrc2=size=128x72:rate=10 -f lavfi \
    -i "aevalsrc=exprs=0.8*sin(2*PI*1000*t)*between(mod(t\,1)\,0.5\,0.7):s=48000" -t 6 \
    -c:v libx264 -preset veryfast -pix_fmt yuv420p -x264-params keyint=10:min-keyint=10:scenecut=0:bframes=3 -c:a aac b.mp4
}

# start_of FILE: the time of its first frame.
start_of() { ffprobe -v error -select_streams v -show_entries stream=start_time -of csv=p=0 "$1" | head -1; }

# spans FILE BEGIN:END...: of which the source is FILE, in seconds behind its first frame.
spans() {
  local file=$1
  shift
  printf '%s\n' "$@" | awk -F: -v file="$file" -v start="$(start_of "$file")" \
    '{ printf "{\"source\":\"%s\",\"begin\":%.3f,\"end\":%.3f}\n", file, $1 + start, $2 + start }' >spans.jsonl
}

# smart FILE ARGS...: cuts the spans, proved, into files in out.
smart() {
  rm -rf out
  vfm-clip -q --smart-cut --verify --into files --spans spans.jsonl "$@" -o out >/dev/null
}

# clips DIR: the files of json of its clips.
clips() { ls "$1"/????????????????????????????????.json; }

# leave DIR N: in the folder left what a killed run leaves of it, its first N shards and no receipt.
leave() {
  local name shard
  name=$(basename "$1"/*.json .json)
  mkdir left
  for ((shard = 0; shard < $2; ++shard)); do cp "$1/$name-$(printf %05d "$shard")".* left; done
  # (jq writes 1 for 1.0.)
  python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["settings"], separators=(",", ":")))' \
    <"$1/$name.json" >"left/.$name.settings"
  touch -d 2001-01-01 left/*
}

# facts FILTER: of the clips in out, in their order, each on a line.
facts() { clips out | xargs jq -s -r "sort_by(.pts_begin, .pts_end)[] | $1"; }

# hashes FILE: of its frames.
hashes() { ffmpeg -nostdin -loglevel error -i "$1" -map 0:v:0 -f framemd5 - | grep -v '^#' | awk '{ print $NF }'; }

# check_copies FILE RATE: of each clip in out as many frames as it says are the source's to the bit, and they follow each
# other.
check_copies() {
  local json first
  hashes "$1" >of-source
  for json in $(clips out); do
    hashes "${json%json}mp4" >of-clip
    [ "$(wc -l <of-clip)" = "$(jq .frames "$json")" ]
    [ "$(jq '.frames_encoded + .frames_copied' "$json")" = "$(jq .frames "$json")" ]
    first=$(jq "(.begin - $(start_of "$1")) * $2 | round + 1" "$json")
    tail -n "+$first" of-source | head -n "$(wc -l <of-clip)" | paste -d ' ' of-clip - |
      awk '{ print $1 == $2 ? "same" : "other" }' >alike
    [ "$(grep -c same alike)" = "$(jq .frames_copied "$json")" ] || { jq -c . "$json"; uniq -c alike; false; }
    [ "$(uniq alike | grep -c same)" -le 1 ]
  done
}

@test "from the first key frame on a clip is the source's packets" {
  # On key frames; between them; behind a P-frame and behind a B-frame; without one.
  spans b.mp4 0:2 2.3:5 1.5:3.1 3.5:4.3 4.1:4.8 5:5.1
  smart b.mp4
  check_copies b.mp4 10
  [ "$(facts '.verified' | uniq)" = true ]
  [ "$(facts '"\(.begin) \(.frames_encoded) \(.frames_copied) \(.not_copied)"' | head -1)" = "0 0 20 null" ]
  [ "$(facts 'select(.begin == 0) | .encoder')" = null ]
  [ "$(facts 'select(.begin == 2.3) | "\(.frames_encoded) \(.encoder) \(.codec)"')" = "7 libx264 h264" ]
  # At most the head, and what needs a frame behind the end.
  [ "$(facts 'select(.begin == 1.5) | .frames_encoded')" -eq 5 ]
  [ "$(facts 'select(.begin == 3.5) | .frames_encoded')" -le 7 ]
  [ "$(facts 'select(.begin == 4.1) | "\(.frames_copied) \(.not_copied)"')" = "0 no key frame to copy from is in it" ]
  # Full encoding counts nothing of the kind, and its clips have other keys.
  vfm-clip -q --into files --spans spans.jsonl b.mp4 -o full >/dev/null
  [ "$(clips full | xargs jq -s 'map(has("frames_copied")) | any')" = false ]
  [ "$(clips out | wc -l)" = 6 ]
  [ "$({ clips out; clips full; } | xargs -n1 basename | sort -u | wc -l)" = 12 ]
}

@test "a clip is a file as any: one kind of header, times from zero, found at any place" {
  spans b.mp4 1.5:4.6
  smart b.mp4 --audio copy
  mp4=$(echo out/*.mp4)
  [ "$(ffprobe -v error -select_streams v -show_entries stream=codec_tag_string,nb_frames,start_time,duration \
    -of csv=p=0 "$mp4")" = "avc1,0.000000,3.100000,31" ]
  # Each frame alone, by its place: the encoded ones, too.
  hashes "$mp4" >all
  for place in 0 4 5 15 27 30; do
    [ "$(ffmpeg -nostdin -loglevel error -ss "$(awk -v n=$place 'BEGIN { print n / 10 }')" -i "$mp4" -map 0:v -frames:v 1 \
      -f framemd5 - | awk 'END { print $NF }')" = "$(sed -n "$((place + 1))p" all)" ]
  done
  # The beeps of 1.5, 2.5, 3.5 and 4.5 s.
  [ "$(ffmpeg -hide_banner -nostdin -i "$mp4" -map 0:a -af silencedetect=noise=0.1:d=0.3 -f null - 2>&1 |
    sed -n 's/.*silence_end: \([0-9.]*\).*/\1/p' | awk '{ printf "%d ", 10 * $1 + 0.5 }')" = "10 20 30 " ]
}

@test "the bytes do not depend on -j, nor on a run that was broken off" {
  for how in j1 j4; do
    vfm-clip -q --smart-cut --stride 0.7s -$how --shard-size 20KiB b.mp4 -o $how >/dev/null
  done
  [ "$(tree_hash j1)" = "$(tree_hash j4)" ]
  [ "$(ls j1/*.tar | wc -l)" -ge 3 ]
  leave j1 2
  vfm-clip -q --smart-cut --stride 0.7s --shard-size 20KiB b.mp4 -o left >/dev/null
  [ "$(tree_hash j1)" = "$(tree_hash left)" ]
  [ "$(find left -name '*.tar' -not -newermt 2002-01-01 | wc -l)" -eq 2 ]
}

# bats test_tags=night
@test "other parameter sets are copied around, in a run that was broken off, too" {
  # In seconds 20 to 40; behind them a run that goes on seeks.
  for colors in bt709 smpte170m; do
    quiet_ffmpeg -f lavfi -i testsrc2=size=64x48:rate=2 -t 20 -c:v libx264 -preset superfast -pix_fmt yuv420p -bf 0 -g 4 \
      -color_primaries $colors $colors.mp4
  done
  "$BATS_TEST_DIRNAME"/join-tracks tracks.mp4 bt709.mp4 smpte170m.mp4 bt709.mp4 bt709.mp4
  vfm-clip -q --smart-cut --stride 5s --shard-size 10KiB tracks.mp4 -o whole >/dev/null
  [ "$(ls whole/*.tar | wc -l)" -eq 16 ]
  [ "$(for shard in whole/*.tar; do tar -xOf "$shard" --wildcards '*.json'; done |
    jq -rs 'map("\(.begin) \(.frames_copied > 0) \(.not_copied)")[]' | sed -n '4,5p;8,9p')" = "15 true null
20 false the source changes its parameter sets
35 false the source changes its parameter sets
40 true null" ]
  leave whole 13
  vfm-clip -q --smart-cut --stride 5s --shard-size 10KiB tracks.mp4 -o left >/dev/null
  [ "$(find left -name '*.tar' -not -newermt 2002-01-01 | wc -l)" -eq 13 ]
  [ "$(tree_hash whole)" = "$(tree_hash left)" ]
}

# bats test_tags=night
@test "HEVC, VP9 and AV1 are copied, too, and open groups of pictures" {
  x265=keyint=10:min-keyint=10:scenecut=0:bframes=3:log-level=none
  by_time >sources <<END
hevc.mkv -c:v libx265 -preset ultrafast -x265-params $x265:open-gop=1
night hevc.mp4 -c:v libx265 -preset ultrafast -x265-params $x265:open-gop=0
night hevc.ts -c:v libx265 -preset ultrafast -x265-params $x265:open-gop=1
vp9.webm -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 10 -keyint_min 10
av1.mp4 -c:v libsvtav1 -preset 12 -g 10
night av1.mkv -c:v libsvtav1 -preset 12 -g 10
night h264.ts -c:v libx264 -preset veryfast -x264-params keyint=10:min-keyint=10:scenecut=0
night h264.mkv -c:v libx264 -preset ultrafast -profile:v baseline -x264-params keyint=10:min-keyint=10:scenecut=0
END
  while read -r name options; do
    # shellcheck disable=SC2086
    SVT_LOG=1 quiet_ffmpeg -i b.mp4 -an -pix_fmt yuv420p $options "$name"
    spans "$name" 0:2 1.5:3.3 2:4
    smart "$name"
    check_copies "$name" 10
    [ "$(facts '"\(.verified) \(.not_copied)"' | uniq)" = "true null" ] || { facts .not_copied; false; }
    # Of the second clip half a second is before a key frame.
    [ "$(facts .frames_encoded | sed -n 2p)" -ge 5 ]
    [ "$(facts .frames_encoded | sed -n 2p)" -le 8 ]
  done <sources
}

@test "only what begins afresh is listed as a key frame" {
  # Open groups of pictures; the first key frame alone is an IDR picture.
  quiet_ffmpeg -i b.mp4 -an -c:v libx264 -preset veryfast \
    -x264-params keyint=10:min-keyint=10:scenecut=0:bframes=3:open-gop=1 open.mp4
  [ "$(ffprobe -v error -fflags noparse -show_entries packet=flags -of csv=p=0 open.mp4 | grep -c K)" -ge 5 ]
  spans open.mp4 0:5
  smart open.mp4
  [ "$(facts .frames_copied)" -ge 45 ]
  # Its end is encoded, and begins with the other one.
  [ "$(ffprobe -v error -fflags noparse -show_entries packet=flags -of csv=p=0 out/*.mp4 | grep -c K)" -le 2 ]
}

@test "a clip whose last frames stand longer than its first is as long as they are" {
  quiet_ffmpeg -i b.mp4 -an -vf "setpts='if(lt(N,30),N*0.02,0.6+(N-30)*0.3)/TB'" -vsync passthrough -enc_time_base 1/1000 \
    -c:v libx264 -preset veryfast -x264-params keyint=10:min-keyint=10:scenecut=0:bframes=3 slower.mkv
  spans slower.mkv 0.2:3.6
  smart slower.mkv
  [ "$(facts '"\(.seconds) \(.frames_copied > 20)"')" = "3.4 true" ]
  [ "$(ffprobe -v error -select_streams v -show_entries stream=duration -of csv=p=0 out/*.mp4)" = 3.400000 ]
}

@test "variable frame rates keep their times" {
  quiet_ffmpeg -i b.mp4 -an -vf "select=not(eq(mod(n\,7)\,3)),setpts=PTS+0.02/TB*mod(N\,3)" -vsync vfr -c:v libx264 \
    -preset veryfast -x264-params keyint=10:min-keyint=10:scenecut=0 vfr.mkv
  spans vfr.mkv 0.4:3.3 2.9:5.5
  smart vfr.mkv
  [ "$(facts '"\(.verified) \(.not_copied) \(.frames_copied > 10)"' | uniq)" = "true null true" ]
}

# bats test_tags=night
@test "what cannot be copied is encoded in full, and says why" {
  quiet_ffmpeg -i b.mp4 -an -c:v libx264 -preset ultrafast -pix_fmt yuv444p yuv444.mp4
  quiet_ffmpeg -i b.mp4 -an -c:v mpeg4 -g 10 mpeg4.mp4
  turn b.mp4 turned.mp4 -an
  quiet_ffmpeg -i b.mp4 -an -c:v libx264 -preset ultrafast -flags +ildct+ilme -x264-params tff=1:keyint=10 fields.mp4
  quiet_ffmpeg -i b.mp4 -an -c:v libx264 -preset ultrafast -x264-params keyint=100:scenecut=0 rare.mp4
  quiet_ffmpeg -i b.mp4 -an -c copy timeless.avi
  for preset in ultrafast superfast; do
    quiet_ffmpeg -i b.mp4 -an -t 3 -c:v libx264 -preset $preset -bf 0 -g 10 -bsf:v h264_mp4toannexb -f h264 - ;
  done | quiet_ffmpeg -f h264 -framerate 10 -i - -c copy joined.mkv
  quiet_ffmpeg -i b.mp4 -an -c copy whole.ts
  head -c 30000 whole.ts | cat - <(tail -c +34000 whole.ts) >holed.ts
  while read -r name reason; do
    spans "$name" 1.5:4.5
    [ "$name" != holed.ts ] || spans "$name" 0:2.9
    smart "$name" || [ "$name" = holed.ts ]
    [ "$(facts '"\(.frames_copied) \(.not_copied)"')" = "0 $reason" ] || { facts .; false; }
    # As without the option.
    vfm-clip -q --into files --spans spans.jsonl "$name" -o "full-$name" >/dev/null || [ "$name" = holed.ts ]
    [ "$name" = rare.mp4 ] || cmp out/*.mp4 "full-$name"/*.mp4
  done <<'END'
yuv444.mp4 the source's pixels (yuv444p) are converted
mpeg4.mp4 no encoder makes frames that can stand beside copied ones of mpeg4
turned.mp4 the source is shown turned or mirrored
fields.mp4 the source is interlaced
rare.mp4 no key frame to copy from is in it
joined.mkv the source changes its parameter sets
holed.ts the source is damaged there
timeless.avi its container does not tell the times of its frames
END
  # Another encoder was asked for.
  spans b.mp4 1.5:4.5
  smart --encoder libx265 b.mp4
  [ "$(facts '"\(.frames_copied) \(.codec) \(.not_copied)"')" = "0 hevc encoder 'libx265' makes no h264" ]
}

@test "options that change every frame are refused" {
  while read -r args; do
    # shellcheck disable=SC2086
    fails 2 vfm-clip --smart-cut $args b.mp4 -o out
    [[ "$(cat err)" = "vfm-clip: --smart-cut copies the source's frames, which cannot be changed; leave out ${args%% [0-9]*}"* ]] ||
      { cat err; false; }
  done <<'END'
--scale 64x-2
--fps 5
--crop
END
  fails 2 vfm-clip --smart-cut --isolate b.mp4 -o out
  [[ "$(cat err)" = "vfm-clip: --smart-cut takes packets from a file that --isolate keeps away from this program"* ]]
  fails 2 vfm-clip --smart-cut --encoder mpeg4 b.mp4 -o out
  [[ "$(cat err)" = "vfm-clip: --smart-cut cannot join frames of encoder 'mpeg4' to copied ones"* ]]
  [ ! -e out ]
}
