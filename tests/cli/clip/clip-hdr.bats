#!/usr/bin/env bats
# vfm-clip and HDR: --keep-hdr, and by what tone mapping goes.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
bats_require_minimum_version 1.5.0

# hevc FILE TRANSFER [X265-PARAMETERS]: standard input, raw yuv420p10, as HDR of 1024x64.
hevc() {
  quiet_ffmpeg -f rawvideo -pix_fmt yuv420p10le -s 1024x64 -r 10 -i - -c:v libx265 -preset ultrafast -crf 4 \
    -x265-params "log-level=none:info=0:bframes=0$3" -pix_fmt yuv420p10le -color_trc "$2" \
    -color_primaries bt2020 -colorspace bt2020nc -color_range tv "$1"
}

# ramp.yuv: luma rises from left to right over all codes of limited range. 12 frames. pq.mp4 has them in PQ, with what
# they say of their light in the stream alone.
setup_file() {
  export MEDIA="$BATS_FILE_TMPDIR/media"
  mkdir "$MEDIA"
  cd "$MEDIA" || return 1
  quiet_ffmpeg -f lavfi -i "color=black:size=1024x64:rate=10:duration=1.2,format=yuv420p10le,geq=lum='64+876*X/1023':cb='500+Y/2':cr=512" \
    -f rawvideo ramp.yuv
  hevc pq.mp4 smpte2084 ":master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(40000000,50):max-cll=3000,400" <ramp.yuv
  hevc hlg.mp4 arib-std-b67 <ramp.yuv
  make_shots sdr.mp4
}
setup() {
  setup_tools
  ln -s "$MEDIA"/* .
}

# only_clip DIR: its mp4 as clip.mp4 and its json as clip.json.
only_clip() {
  tar -xOf "$1"/*.tar --wildcards '*.mp4' >clip.mp4
  tar -xOf "$1"/*.tar --wildcards '*.json' >clip.json
}

# probe FILE FIELDS: what ffprobe says of its video.
probe() { ffprobe -v error -select_streams v -show_entries "stream=$2" -of csv=p=0 "$1" | sed 's/,*$//'; }

# stream FILE: pixel format, range, matrix, transfer, primaries.
stream() { probe "$1" pix_fmt,color_range,color_space,color_transfer,color_primaries; }

# boxes FILE: what the mp4's boxes colr, mdcv and clli say, as numbers.
boxes() {
  python3 - "$1" <<'PYTHON'
import struct, sys
data = open(sys.argv[1], "rb").read()
def box(name, form):
    at = data.find(name)
    return "none" if at < 0 else " ".join(str(v) for v in struct.unpack_from(form, data, at + len(name)))
print(box(b"colrnclx", ">HHHB"))
print(box(b"mdcv", ">8H2I"))
print(box(b"clli", ">2H"))
PYTHON
}

# depth FILE: of its first frame, the distinct levels of luma, and the PSNR of the luma of ramp.yuv's, in code values.
depth() {
  quiet_ffmpeg -i "$1" -frames:v 1 -pix_fmt yuv420p10le -f rawvideo frame.yuv
  python3 - <<'PYTHON'
import array, math
def luma(name):
    values = array.array("H")
    values.frombytes(open(name, "rb").read()[:2 * 1024 * 64])
    return values
a, b = luma("frame.yuv"), luma("ramp.yuv")
error = sum((x - y) ** 2 for x, y in zip(a, b)) / len(a)
print(len(set(a)), int(10 * math.log10(1023 ** 2 / max(error, 1e-9))))
PYTHON
}

@test "--keep-hdr: 10 bits, the source's numbers, its tags, and what it says of its light" {
  vfm-clip -q --keep-hdr pq.mp4 -o keep --verify >/dev/null
  only_clip keep
  [ "$(stream clip.mp4)" = "yuv420p10le,tv,bt2020nc,smpte2084,bt2020" ]
  [ "$(probe clip.mp4 codec_name,profile)" = "hevc,Main 10" ]
  [ "$(boxes clip.mp4)" = "9 16 9 0
13250 34500 7500 3000 34000 16000 15635 16450 40000000 50
3000 400" ]
  ffprobe -v error -show_frames -read_intervals '%+#1' clip.mp4 >first
  grep -q '^red_x=34000/50000' first
  grep -q '^max_luminance=40000000/10000' first
  grep -q '^min_luminance=50/10000' first
  grep -q '^max_content=3000' first
  grep -q '^max_average=400' first
  [ "$(jq -r '"\(.bit_depth) \(.transfer) \(.primaries) \(.codec) \(.encoder) \(.verified)"' clip.json)" = \
    "10 smpte2084 bt2020 hevc libx265 true" ]
  [ "$(jq -r '"\(.source_bit_depth) \(.source_transfer) \(.source_primaries)"' clip.json)" = "10 smpte2084 bt2020" ]
  local levels psnr
  read -r levels psnr <<<"$(depth clip.mp4)"
  echo "$levels levels, $psnr dB"
  [ "$levels" -gt 600 ]
  [ "$psnr" -ge 48 ]
  # HLG has no such metadata, and a source without them gets none.
  vfm-clip -q --keep-hdr hlg.mp4 -o hlg --into files >/dev/null
  [ "$(stream hlg/*.mp4)" = "yuv420p10le,tv,bt2020nc,arib-std-b67,bt2020" ]
  [ "$(boxes hlg/*.mp4)" = "9 18 9 0
none
none" ]
}

# bats test_tags=night
@test "--keep-hdr with each encoder of 10 bits, and with one that has none" {
  local encoder
  for encoder in libx264 libsvtav1 libvpx-vp9 ffv1; do
    rm -rf out
    vfm-clip -q --keep-hdr --encoder $encoder pq.mp4 -o out --verify >/dev/null
    only_clip out
    echo "$encoder $(stream clip.mp4) $(boxes clip.mp4)"
    # FFV1 has no place for the range, nor has its container, mov: that is limited then.
    [ "$(stream clip.mp4 | sed s/unknown/tv/)" = "yuv420p10le,tv,bt2020nc,smpte2084,bt2020" ]
    [ $encoder = ffv1 ] || [ "$(boxes clip.mp4 | head -1)" = "9 16 9 0" ]
    [ "$(boxes clip.mp4 | tail -2 | xargs)" = "13250 34500 7500 3000 34000 16000 15635 16450 40000000 50 3000 400" ]
    [ "$(jq -r '"\(.bit_depth) \(.encoder)"' clip.json)" = "10 $encoder" ]
    run ! grep -q 'x264 - core' clip.mp4
  done
  vfm-clip -q --keep-hdr --encoder libx264 pq.mp4 -o h264 >/dev/null
  only_clip h264
  ffmpeg -v trace -i clip.mp4 -c copy -bsf:v trace_headers -f null - 2>trace
  grep -q 'max_display_mastering_luminance .*= 40000000$' trace
  grep -q 'max_content_light_level .*= 3000$' trace
  run --separate-stderr vfm-clip --keep-hdr --encoder mpeg4 pq.mp4 -o none
  [ "$status" -eq 2 ]
  [[ "$stderr" = "vfm-clip: encoder 'mpeg4' does not take the 10 bits of HDR (those that do: libx265, libx264, "* ]]
  [ ! -e none ]
}

# bats test_tags=night
@test "--keep-hdr with --scale, --fps, --crop, --stride, interlaced video, RGB and other depths" {
  vfm-clip -q --keep-hdr pq.mp4 -o small --scale 512x-2 --fps 5 --verify >/dev/null
  only_clip small
  [ "$(jq -r '"\(.width)x\(.height) \(.fps) \(.frames) \(.bit_depth)"' clip.json)" = "512x32 5 6 10" ]
  quiet_ffmpeg -i clip.mp4 -frames:v 1 -pix_fmt yuv420p10le -f rawvideo frame.yuv
  [ "$(head -c $((2 * 512 * 32)) frame.yuv | od -An -v -tu2 -w2 | sort -u | wc -l)" -gt 400 ]

  # Bars in 10 bits, and a picture in two fields.
  local tags=(-color_trc smpte2084 -color_primaries bt2020 -colorspace bt2020nc -color_range tv)
  quiet_ffmpeg -f lavfi -i "color=black:size=256x64:rate=10:duration=1.2,format=yuv420p10le,geq=lum='if(between(Y,8,55),300+X,64)':cb=512:cr=512" \
    -c:v ffv1 "${tags[@]}" bars.mkv
  vfm-clip -q --keep-hdr bars.mkv -o bars --crop --stride 0.5s --verify >/dev/null
  [ "$(tar -xOf bars/*.tar --wildcards '*.json' | jq -r '"\(.crop) \(.bit_depth) \(.verified)"' | sort -u)" = "256x48+0+8 10 true" ]
  quiet_ffmpeg -f rawvideo -pix_fmt yuv420p10le -s 1024x64 -r 10 -i ramp.yuv \
    -vf setfield=tff -field_order tt -c:v ffv1 "${tags[@]}" fields.mkv
  vfm-clip -q --keep-hdr fields.mkv -o fields --verify >/dev/null
  only_clip fields
  [ "$(jq -r '"\(.deinterlaced) \(.bit_depth)"' clip.json)" = "true 10" ]
  [ "$(depth clip.mp4 | cut -d' ' -f2)" -ge 40 ]

  local format
  for format in yuv420p12le yuv422p10le yuv444p16le gbrp10le; do
    quiet_ffmpeg -f rawvideo -pix_fmt yuv420p10le -s 1024x64 -r 10 -colorspace bt2020nc -i ramp.yuv \
      -vf "scale=in_color_matrix=bt2020:in_range=tv,format=$format" -c:v ffv1 "${tags[@]}" "$format.mkv"
    vfm-clip -q --keep-hdr "$format.mkv" -o "$format" --verify >/dev/null
    only_clip "$format"
    [ "$(stream clip.mp4)" = "yuv420p10le,tv,bt2020nc,smpte2084,bt2020" ]
    echo "$format $(depth clip.mp4)"
    [ "$(depth clip.mp4 | cut -d' ' -f1)" -gt 600 ]
    [ "$(depth clip.mp4 | cut -d' ' -f2)" -ge 40 ]
  done
}

# bats test_tags=night
@test "--keep-hdr changes no byte of the clips of SDR, nor where shots begin" {
  vfm-clip -q sdr.mp4 -o without >without.jsonl
  vfm-clip -q --keep-hdr sdr.mp4 -o with >with.jsonl
  [ "$(cat without/*.tar | sha256sum)" = "$(cat with/*.tar | sha256sum)" ]
  [ "$(jq -c '.settings.recipe | [.hdr, .hdr_encoder]' with/*.json)" = '["keep","libx265"]' ]
  [ "$(jq -c '.settings.recipe | has("hdr")' without/*.json)" = false ]
  # Two shots in PQ.
  { cat ramp.yuv && head -c $((3 * 1024 * 64 * 12)) /dev/zero | tr '\0' '\1'; } | hevc two.mp4 smpte2084
  vfm-clip -q two.mp4 -o mapped >/dev/null
  vfm-clip -q --keep-hdr two.mp4 -o kept >/dev/null
  measured='[.pts_begin, .pts_end, .motion, .brightness, .sharpness, .color_1]'
  [ "$(tar -xOf mapped/*.tar --wildcards '*.json' | jq -c "$measured")" = "$(tar -xOf kept/*.tar --wildcards '*.json' | jq -c "$measured")" ]
  [ "$(tar -tf kept/*.tar | grep -c mp4)" -eq 2 ]
  [ "$(tar -tf kept/*.tar | sort)" != "$(tar -tf mapped/*.tar | sort)" ]
}

# bats test_tags=night
@test "with or without --keep-hdr the clips are made again, and the same once more is nothing; -j changes no byte" {
  vfm-clip -q pq.mp4 hlg.mp4 -o out >/dev/null
  vfm-clip -q pq.mp4 hlg.mp4 -o mapped >/dev/null
  vfm-clip -q --keep-hdr pq.mp4 hlg.mp4 -o out -j1 >/dev/null
  vfm-clip -q --keep-hdr pq.mp4 hlg.mp4 -o kept -j4 >/dev/null
  [ "$(tree_hash out)" = "$(tree_hash kept)" ]
  run --separate-stderr vfm-clip -v --keep-hdr pq.mp4 -o out
  [[ "$stderr" = *"there already"* ]]
  vfm-clip -q pq.mp4 hlg.mp4 -o out >/dev/null
  [ "$(tree_hash out)" = "$(tree_hash mapped)" ]
  only_clip_depth=$(tar -xOf "$(find out -name '*.tar' | head -1)" --wildcards '*.json' | jq .bit_depth)
  [ "$only_clip_depth" -eq 8 ]
}

# bats test_tags=night
@test "the tools behind tone-map kept clips as they do HDR sources" {
  vfm-clip -q --quality 4 pq.mp4 -o mapped --stride 0.6s | vfm-caption | vfm-embed >mapped.jsonl
  vfm-clip -q --quality 4 --keep-hdr pq.mp4 -o kept --stride 0.6s | vfm-caption | vfm-embed >kept.jsonl
  local name
  for name in mapped kept; do
    vfm-shard --keep-duplicates --report $name.html -o $name-set <$name.jsonl >$name-set.jsonl
    vfm-pack --size 64 -o $name-latents <$name-set.jsonl >/dev/null
    tar -tf $name-latents/train/*.tar | grep -m1 latent.npy >member
    tar -xOf $name-latents/train/*.tar "$(cat member)" >$name.npy
    [ -s $name.html ]
  done
  # Latents are half floats.
  python3 - <<'PYTHON'
import struct
def values(name):
    data = open(name, "rb").read()
    data = data[10 + struct.unpack_from("<H", data, 8)[0]:]
    return struct.unpack("<%de" % (len(data) // 2), data)
a, b = values("mapped.npy"), values("kept.npy")
assert len(a) == len(b) > 100
mean = sum(abs(x - y) for x, y in zip(a, b)) / len(a)
size = sum(abs(x) for x in a) / len(a)
print(mean, size)
assert mean < 0.03 * size
PYTHON
}

# bats test_tags=night
@test "the peak for tone mapping is the container's where the pictures say none" {
  # VP9 itself has no place for it.
  vfm-clip -q --keep-hdr --encoder libvpx-vp9 pq.mp4 -o vp9 >/dev/null
  only_clip vp9
  python3 - <<'PYTHON'
import struct
data = open("clip.mp4", "rb").read()
screen, light = data.index(b"mdcv") + 4, data.index(b"clli") + 4
def write(name, peak, most):
    copy = bytearray(data)
    struct.pack_into(">I", copy, screen + 16, 10000 * peak)
    struct.pack_into(">H", copy, light, most)
    open(name, "wb").write(copy)
write("screen600.mp4", 600, 0)
write("screen4000.mp4", 4000, 0)
write("light600.mp4", 4000, 600)
PYTHON
  local name
  declare -A bright
  for name in screen600 screen4000 light600; do
    vfm-clip -q $name.mp4 -o $name >/dev/null
    only_clip $name
    quiet_ffmpeg -i clip.mp4 -frames:v 1 -vf format=gray,crop=1:1:700:32:exact=1 -f rawvideo pixel
    bright[$name]=$(od -An -tu1 pixel | xargs)
    echo "$name ${bright[$name]}"
  done
  [ "${bright[screen600]}" -gt $((bright[screen4000] + 10)) ]
  [ "${bright[light600]}" -gt $((bright[screen4000] + 10)) ]
}

@test "SDR in BT.2020's colours becomes BT.709" {
  # BT.709's red, in BT.2020, as 10 bits.
  local tags=(-color_trc bt2020-10 -color_primaries bt2020 -colorspace bt2020nc -color_range tv)
  quiet_ffmpeg -f lavfi -i "color=black:size=64x64:rate=10:duration=1,format=yuv420p10le,geq=lum='if(lt(X,32),458,502)':cb='if(lt(X,16),384,512)':cr='if(lt(X,16),739,512)'" \
    -c:v ffv1 "${tags[@]}" wide.mkv
  vfm-clip -q wide.mkv -o out --quality 1 >/dev/null
  only_clip out
  [ "$(stream clip.mp4)" = "yuv420p,tv,bt709,bt709,bt709" ]
  [ "$(jq -r '"\(.transfer) \(.primaries) \(.source_transfer) \(.source_primaries)"' clip.json)" = "bt709 bt709 bt2020-10 bt2020" ]
  quiet_ffmpeg -i clip.mp4 -frames:v 1 -vf scale=in_color_matrix=bt709,format=rgb24 -f rawvideo pixels
  read -r red green blue <<<"$(tail -c +$((3 * (64 * 32 + 16) + 1)) pixels | head -c 3 | od -An -tu1 | xargs)"
  echo "$red $green $blue"
  [ "$red" -ge 245 ]
  [ "$green" -le 20 ]
  [ "$blue" -le 20 ]
  read -r red green blue <<<"$(tail -c +$((3 * (64 * 32 + 48) + 1)) pixels | head -c 3 | od -An -tu1 | xargs)"
  echo "$red $green $blue"
  for part in $red $green $blue; do [ "$part" -ge 125 ] && [ "$part" -le 131 ]; done
}

@test "a kept clip ends where the video changes between HDR and SDR" {
  hevc hdr.ts smpte2084 <ramp.yuv
  quiet_ffmpeg -f rawvideo -pix_fmt yuv420p10le -s 1024x64 -r 10 -i ramp.yuv -c:v libx265 -preset ultrafast \
    -x265-params log-level=none:info=0:bframes=0 -color_trc bt709 -color_primaries bt709 -colorspace bt709 sdr.ts
  cat hdr.ts sdr.ts >both.ts
  vfm-clip -q --keep-hdr both.ts -o out --max-length 0 >/dev/null || [ $? -eq 1 ]
  tar -xOf out/*.tar --wildcards '*.json' | jq -c '[.bit_depth, .transfer, .frames]' >facts
  cat facts
  [ "$(head -1 facts)" = '[10,"smpte2084",12]' ]
  [ "$(tail -1 facts | jq -c '.[:2]')" = '[8,"bt709"]' ]
}
