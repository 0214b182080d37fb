#!/usr/bin/env bats
# vfm-clip: that what is in a video is in its clips: sound of every codec, in time; every frame, or a word about it;
# the right picture.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
bats_require_minimum_version 1.5.0

# sounding FILE ARGS...: two shots of 1.5 s, a beep from 0.5 s to 0.7 s in each; ARGS encode the sound.
sounding() {
  local file=$1
  shift
  quiet_ffmpeg -f lavfi -i "color=red:size=96x64:rate=12:duration=1.5" \
    -f lavfi -i "testsrc2=size=96x64:rate=12:duration=1.5" \
    -f lavfi -i "aevalsrc=exprs=0.8*sin(2*PI*1000*t)*between(mod(t\,1.5)\,0.5\,0.7):s=48000:d=3" \
    -filter_complex "[0][1]concat=n=2:v=1[o]" -map '[o]' -map 2 -c:v libx264 -preset ultrafast -pix_fmt yuv420p -g 12 \
    -strict -2 "$@" "$file"
}

# beeps DIR: where in each clip the beep begins, in tenths of a second, by order of time; "-" for silence.
beeps() {
  local name at json
  rm -rf clips-of-beeps && mkdir clips-of-beeps
  for name in "$1"/*.tar; do tar -C clips-of-beeps -xf "$name"; done
  for json in clips-of-beeps/*.json; do
    at=$(ffmpeg -hide_banner -nostdin -i "${json%json}mp4" -map 0:a:0 \
      -af aresample=async=1:first_pts=0,silencedetect=noise=0.1:d=0.3 -f null - 2>&1 |
      sed -n 's/.*silence_end: \([0-9.]*\).*/\1/p' | head -1)
    echo "$(jq .begin "$json") $(awk -v t="${at:--}" 'BEGIN { print t == "-" ? t : int(10 * t + 0.4) }')"
  done | sort -n | awk '{ printf "%s ", $2 }'
}

# errors_of DIR: the errors of a run, one line each.
errors_of() { [ ! -e "$1/errors.jsonl" ] || jq -r .error "$1/errors.jsonl"; }

@test "every codec's sound is in the clips, copied or encoded, in time" {
  local made codec rate mode files=(libopus.mkv eac3.avi aac.ts)
  ! at_night || files+=(flac.mkv truehd.mkv tta.mkv wavpack.mkv dca.avi eac3.nut mp2.mpg libspeex.avi flac.asf)
  for made in "${files[@]}"; do
    codec=${made%.*}
    rate=48000
    [ $codec != libspeex ] || rate=16000
    sounding "$made" -c:a "$codec" -ac 2 -ar $rate
    for mode in copy aac; do
      rm -rf out
      vfm-clip -q --audio "$mode" "$made" -o out >/dev/null
      [ "$(beeps out)" = "5 5 " ] || { echo "$made $mode: $(beeps out)"; false; }
    done
  done
}

# bats test_tags=night
@test "a clip that begins in the middle of a packet of sound has it in time" {
  # The fifth frame before a beep, and the first.
  printf '{"begin":%s,"end":%s}\n' 0.083333 1 0.416667 1 1.583333 2.5 1.916667 2.5 >spans.jsonl
  local made clip
  for made in libvorbis.mkv libopus.mp4 aac.mp4 libmp3lame.mp4 ac3.ts; do
    sounding "$made" -c:a "${made%.*}" -ac 2 -muxdelay 0 -muxpreload 0
    rm -rf out
    vfm-clip -q --audio copy --into files --readable-names --spans spans.jsonl "$made" -o out >/dev/null
    for clip in out/*.mp4; do
      ffmpeg -hide_banner -nostdin -i "$clip" -map 0:a:0 -af silencedetect=noise=0.1:d=0.05 -f null - 2>&1 |
        sed -n 's/.*silence_end: \([0-9.]*\).*/\1/p' | head -1
    done >begins
    awk -v made="$made" '{ late = $1 - (NR % 2 ? 5 : 1) / 12 } late < -0.005 || late > 0.005 { print made, $1; wrong = 1 }
      END { exit wrong || NR != 4 }' begins
  done
}

@test "an AVI's sound is as late in all clips, though it counts in packets" {
  sounding b.avi -c:a libmp3lame -ac 2
  printf '{"begin":%s,"end":%s}\n' 0.166667 1 0.25 1 0.333333 1 0.416667 1 >spans.jsonl
  vfm-clip -q --audio copy --into files --readable-names --spans spans.jsonl b.avi -o out >/dev/null
  local clip
  for clip in out/*.mp4; do
    ffmpeg -hide_banner -nostdin -i "$clip" -map 0:a:0 -af silencedetect=noise=0.1:d=0.05 -f null - 2>&1 |
      sed -n 's/.*silence_end: \([0-9.]*\).*/\1/p' | head -1
  done >begins
  awk '{ late = $1 + NR / 12; if (NR == 1) first = late } late < first - 0.002 || late > first + 0.002 { print; wrong = 1 }
    END { exit wrong || NR != 4 }' begins
}

@test "sound that cannot be decoded costs no clip, and is reported once" {
  sounding wma.mov -c:a wmav2
  run --separate-stderr vfm-clip -q --audio aac wma.mov -o out
  [ "$status" -eq 1 ]
  [ "$(beeps out)" = "- - " ]
  [ "$(errors_of out | wc -l)" -eq 1 ]
  [[ "$(errors_of out)" = "clips are silent: cannot decode the sound of 'wma.mov'"* ]]
}

@test "a clip in which pictures become larger, or smaller, is proved" {
  local size
  for size in 96x64 352x288; do
    quiet_ffmpeg -f lavfi -i testsrc2=size=$size:rate=12 -t 1 -c:v libx264 -preset ultrafast -pix_fmt yuv420p -f mpegts $size.ts
  done
  cat {96x64,352x288}.ts >grows.ts
  cat {352x288,96x64}.ts >shrinks.ts
  # Where two streams meet, packets count as missing: status 1.
  vfm-clip -q --verify --stride 10 -o out grows.ts shrinks.ts >m || [ $? -eq 1 ]
  [ "$(records m | jq -s 'map(.samples) | add')" -eq 2 ]
  [[ "$(errors_of out)" != *"left out"* ]]
}

# bats test_tags=night
@test "sound of which the file does not say what it is costs no clip, and is reported once" {
  sounding named.mp4 -c:a aac
  # The box that says it, of the second track, has no name that is known.
  python3 - <<'END'
data = open("named.mp4", "rb").read()
at = data.index(b"stsd", data.index(b"stsd") + 4)
open("nameless.mp4", "wb").write(data[:at] + b"free" + data[at + 4:])
END
  local how
  for how in copy aac "copy --isolate"; do
    rm -rf out
    run --separate-stderr vfm-clip -q --audio $how nameless.mp4 -o out
    [[ "$stderr" != *"--isolate"* ]] || continue  # it does not work here
    [ "$status" -eq 1 ]
    [ "$(beeps out)" = "- - " ]
    [ "$(errors_of out)" = "clips are silent: cannot read the sound of 'nameless.mp4': the file does not say what it is" ]
  done
  vfm-clip -q nameless.mp4 -o without >/dev/null
}

# bats test_tags=night
@test "where time starts again, picture and sound go on together" {
  sounding a.ts -c:a aac -output_ts_offset 1000
  sounding b.ts -c:a aac
  cat a.ts b.ts b.ts >joined.ts
  for mode in copy aac; do
    # Where two streams meet, packets count as missing: status 1.
    vfm-clip -q --audio "$mode" joined.ts -o "$mode" || true
    [ "$(beeps "$mode")" = "5 5 5 5 5 5 " ]
  done
  [ "$(jq .seconds copy/*.json)" = 9 ]
}

# bats test_tags=night
@test "where the clock of a transport stream runs over, pictures and sound go on in time" {
  # It begins anew after 2^33 / 90000 = 95443.7 s: in the second shot, beside its beep, or between sound and picture.
  local offset mode
  for offset in 95440.1 95440.4 95442.19 95442.3; do
    sounding over.ts -c:a aac -bf 3 -output_ts_offset "$offset"
    for mode in copy 'aac --smart-cut'; do
      rm -rf out
      # shellcheck disable=SC2086
      vfm-clip -q --audio $mode --verify over.ts -o out >/dev/null
      [ "$(beeps out)" = "5 5 " ] || { echo "$offset $mode: $(beeps out)"; false; }
      tar -xOf out/*.tar --wildcards '*.json' | jq -se 'map([.frames, (1000 * (.end - .begin) | round)]) == [[18, 1500], [18, 1500]]'
    done
    # What is copied is behind the turn as well as before it.
    tar -xOf out/*.tar --wildcards '*.json' | jq -se 'map(.not_copied) == [null, null]'
  done
}

@test "pictures that the decoder drops without a word are counted" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=25 -t 4 -c:v libx264 -preset ultrafast -g 50 -bf 0 whole.ts
  # From the middle of a group of pictures on.
  tail -c "+$((188 * ($(stat -c %s whole.ts) / 188 / 5) + 1))" whole.ts >late.ts
  vfm-clip -q whole.ts -o whole
  [ "$(jq .corrupt whole/*.json)" = 0 ]
  run --separate-stderr vfm-clip -q late.ts -o late
  [ "$status" -eq 1 ]
  [ "$(jq .corrupt late/*.json)" -ge 10 ]
  [[ "$(errors_of late)" = *" packets or frames are damaged or missing; the rest is used" ]]
}

# bats test_tags=night
@test "a damaged VP8 gives the same clips with any number of threads" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=160x120:rate=25 -t 2 -c:v libvpx -b:v 300k -cpu-used 8 -deadline realtime v.ivf
  local size damage=0 threads
  size=$(stat -c %s v.ivf)
  for damage in 3 4 5 6 7; do
    cp v.ivf "bad$damage.ivf"
    for at in 2 5 9 14; do
      head -c 8 /dev/zero | tr '\0' "\\$((100 + damage))" |
        dd of="bad$damage.ivf" bs=1 seek=$((size * (at + damage) / 24)) conv=notrunc status=none
    done
    for threads in 1 2 4; do
      vfm-clip -q -j$threads "bad$damage.ivf" -o "out$damage-$threads" >/dev/null || true
    done
    [ "$(tree_hash "out$damage-1")" = "$(tree_hash "out$damage-2")" ]
    [ "$(tree_hash "out$damage-1")" = "$(tree_hash "out$damage-4")" ]
  done
}

# first_pixel FILE X Y: "R G B" of a pixel of the first frame.
first_pixel() {
  quiet_ffmpeg -i "$1" -frames:v 1 -vf "format=rgb24,crop=1:1:$2:$3:exact=1" -f rawvideo pixel
  od -An -tu1 pixel | xargs
}

# only_clip DIR: its mp4 as clip.mp4 and its json as clip.json.
only_clip() {
  tar -xOf "$1"/*.tar --wildcards '*.mp4' >clip.mp4
  tar -xOf "$1"/*.tar --wildcards '*.json' >clip.json
}

@test "HDR becomes SDR that looks right, and the json reports both" {
  # Code 570 is near 200 cd/m2 in PQ, white paper; in HLG 75 cd/m2, a light grey.
  local tags=(-color_trc smpte2084 -color_primaries bt2020 -colorspace bt2020nc -color_range tv)
  quiet_ffmpeg -f lavfi -i "color=black:size=64x64:rate=10:duration=1,format=yuv420p10le,geq=lum='if(lt(X,32),570,400)':cb=512:cr=512" \
    -c:v ffv1 "${tags[@]}" pq.mkv
  quiet_ffmpeg -i pq.mkv -c:v ffv1 -color_trc arib-std-b67 -color_primaries bt2020 -colorspace bt2020nc hlg.mkv
  for kind in pq hlg; do
    vfm-clip -q "$kind.mkv" -o "$kind" >/dev/null
    only_clip "$kind"
    [ "$(jq -r '.transfer + " " + .primaries + " \(.bit_depth)"' clip.json)" = "bt709 bt709 8" ]
    [ "$(jq .source_bit_depth clip.json)" = 10 ]
    local bright dark
    bright=$(first_pixel clip.mp4 16 32)
    dark=$(first_pixel clip.mp4 48 32)
    echo "$kind $bright, $dark"
    [ "${bright%% *}" -ge 160 ]
    [ "${bright%% *}" -le 250 ]
    [ "${dark%% *}" -ge 60 ]
    [ "${dark%% *}" -le 150 ]
  done
  [ "$(jq -r .source_transfer clip.json)" = arib-std-b67 ]
}

@test "interlaced video loses its combs, and keeps them with --no-deinterlace" {
  # A bar that moves 8 pixels from field to field.
  quiet_ffmpeg -f lavfi -i "color=black:size=128x64:rate=50:duration=2,format=yuv420p,geq=lum='if(between(X-8*mod(N,12),0,16),235,16)':cb=128:cr=128,interlace=lowpass=off" \
    -c:v mpeg2video -q:v 2 -flags +ildct+ilme -top 1 fields.mpg
  vfm-clip -q fields.mpg -o auto >/dev/null
  vfm-clip -q --no-deinterlace fields.mpg -o off >/dev/null
  # The mean difference of neighbouring lines.
  comb() {
    quiet_ffmpeg -i clip.mp4 -vf "format=gray,convolution=0m='0 -1 0 0 2 0 0 -1 0':0rdiv=0.5,signalstats,metadata=print:file=stats" -f null -
    sed -n 's/.*YAVG=//p' stats | awk '{ s += $1 } END { print int(10 * s / NR) }'
  }
  only_clip off
  [ "$(jq -r '"\(.source_interlaced) \(.deinterlaced)"' clip.json)" = "true false" ]
  local combed whole
  combed=$(comb)
  only_clip auto
  [ "$(jq -r '"\(.source_interlaced) \(.deinterlaced)"' clip.json)" = "true true" ]
  whole=$(comb)
  echo "$combed, $whole"
  [ $((4 * whole)) -lt "$combed" ]
  vfm-clip -q -j4 fields.mpg -o again >/dev/null
  [ "$(tree_hash auto)" = "$(tree_hash again)" ]
}

@test "EXIF turns PNG, WebP and TIFF; a clip's size in the json is the clip's" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=40x20 -frames:v 1 -pix_fmt rgb24 plain.png
  # A TIFF header, little endian, with one entry: 0x0112, orientation, 6: a quarter turn.
  local exif='II*\0\010\0\0\0\001\0\022\001\003\0\001\0\0\0\006\0\0\0\0\0\0\0'
  printf "$exif" >exif
  python3 - <<'PYTHON'
import struct, zlib
exif = open("exif", "rb").read()
png = open("plain.png", "rb").read()
chunk = struct.pack(">I", len(exif)) + b"eXIf" + exif
chunk += struct.pack(">I", zlib.crc32(b"eXIf" + exif))
open("turned.png", "wb").write(png[:33] + chunk + png[33:])
PYTHON
  vfm-clip -q turned.png -o pictures >/dev/null
  [ "$(tar -xOf pictures/*.tar --wildcards '*.json' | jq -r '"\(.width)x\(.height)"')" = 20x40 ]
  quiet_ffmpeg -f lavfi -i testsrc2=size=97x63:rate=10 -t 1 -c:v ffv1 odd.mkv
  vfm-clip -q odd.mkv -o odd >/dev/null
  only_clip odd
  [ "$(jq -r '"\(.width)x\(.height)"' clip.json)" = \
    "$(ffprobe -v error -select_streams v -show_entries stream=width,height -of csv=p=0:s=x clip.mp4)" ]
}

@test "transparent pixels are laid over black" {
  quiet_ffmpeg -f lavfi -i "color=white:size=64x64:rate=5:duration=1,format=rgba,geq=r=255:g=255:b=255:a='if(lt(X,32),255,0)'" \
    -c:v png clear.mov
  vfm-clip -q clear.mov -o out >/dev/null
  only_clip out
  [ "$(first_pixel clip.mp4 8 32 | cut -d' ' -f1)" -gt 250 ]
  [ "$(first_pixel clip.mp4 56 32 | cut -d' ' -f1)" -lt 5 ]
}

@test "a fragmented mp4 whose header has a wrong duration keeps its last clip" {
  make_shots shots.mp4
  quiet_ffmpeg -i shots.mp4 -c copy -movflags frag_keyframe+empty_moov fragments.mp4
  # mdhd: 24 bytes after its name stands the duration, after the time scale.
  python3 - <<'PYTHON'
data = bytearray(open("fragments.mp4", "rb").read())
at = data.index(b"mdhd")
scale = int.from_bytes(data[at + 16:at + 20], "big")
data[at + 20:at + 24] = (3600 * scale).to_bytes(4, "big")
open("lies.mp4", "wb").write(data)
PYTHON
  vfm-clip -q lies.mp4 -o out >/dev/null
  [ "$(tar -xOf out/*.tar --wildcards '*.json' | jq .seconds | xargs)" = "1.5 1.5 1.5" ]
}
