#!/usr/bin/env bats
# vfm-clip with fewer videos than -j: several clips of one video are encoded at once, and all is as with -j1.
# SPDX-License-Identifier: Apache-2.0
load media

# Six shots of 1.25 s, two of them alike, under bars, with sound.
setup_file() {
  media_folder
  quiet_ffmpeg -f lavfi -i "testsrc2=size=96x48:rate=12:duration=1.25" -f lavfi -i "color=red:size=96x48:rate=12:duration=1.25" \
    -f lavfi -i "mandelbrot=size=96x48:rate=12" -f lavfi -i "testsrc=size=96x48:rate=12:duration=1.25" \
    -f lavfi -i "smptebars=size=96x48:rate=12:duration=0.34" -f lavfi -i "color=blue:size=96x48:rate=12:duration=1.25" \
    -f lavfi -i "sine=duration=7" -filter_complex \
    "[2]trim=duration=1.25,setsar=1[m];[0][1][m][3][4][5]concat=n=6,pad=96:64:0:8,noise=alls=3:allf=t[o]" \
    -map '[o]' -map 6 -c:v ffv1 -c:a pcm_s16le whole.mkv
  quiet_ffmpeg -i whole.mkv -c:v libx264 -preset veryfast -pix_fmt yuv420p -bf 3 -g 10 -x264-params open-gop=1 -c:a aac open.mp4
  quiet_ffmpeg -i whole.mkv -an "${x264[@]}" -g 9999 -sc_threshold 0 one-key.mp4
  quiet_ffmpeg -i whole.mkv -an -vf "select='not(eq(mod(n,5),2))'" -fps_mode vfr "${x264[@]}" vfr.mkv
  quiet_ffmpeg -i whole.mkv "${x264[@]}" -g 6 -c:a mp2 part.ts
  cat part.ts part.ts >joined.ts
  cp part.ts damaged.ts
  head -c 3000 /dev/zero | tr '\0' 'x' | dd of=damaged.ts bs=1 seek=$(($(stat -c %s part.ts) / 2)) conv=notrunc status=none
  quiet_ffmpeg -i whole.mkv -an -c:v libx264 -preset ultrafast -pix_fmt yuv420p10le -color_primaries bt2020 \
    -color_trc smpte2084 -colorspace bt2020nc hdr.mp4
  head -c $(($(stat -c %s open.mp4) * 2 / 3)) open.mp4 >short.mp4
  quiet_ffmpeg -i open.mp4 -c copy -movflags +faststart fast.mp4
  head -c $(($(stat -c %s fast.mp4) * 2 / 3)) fast.mp4 >cut-off.mp4
  printf '%s\n' '{"path":"open.mp4","begin":0.5,"end":3}' '{"path":"open.mp4","begin":3,"end":4.5}' \
    '{"path":"open.mp4","begin":1,"end":6.5}' '{"path":"open.mp4","begin":6,"end":90}' >spans.jsonl
}

# same VIDEO OPTION...: with -j1, and with more slots, the same files, records and status.
same() {
  local how
  run --separate-stderr vfm-clip "$@" -o out -j1
  # shellcheck disable=SC2154
  local first status_one=$status hash_one
  first=$(records <<<"$output")
  [ -s "$(find out -name '*.mp4' -o -name '*.tar' | head -n 1)" ]
  hash_one=$(tree_hash out)
  for how in -j2 -j4; do
    rm -rf out
    # shellcheck disable=SC2086
    run --separate-stderr vfm-clip "$@" -o out $how
    [ "$status" -eq "$status_one" ]
    [ "$(records <<<"$output")" = "$first" ]
    [ "$(tree_hash out)" = "$hash_one" ]
  done
  rm -rf out
}

@test "a lone video: the same bytes at any -j, of open GOPs, one key frame, VFR, HDR" {
  same open.mp4
  same vfr.mkv --into files --stitch none --min-length 0.6s
  at_night || return 0
  same one-key.mp4 --verify --crop
  same hdr.mp4 --keep-hdr
}

# bats test_tags=night
@test "a lone video: the same sound, where times restart too" {
  same open.mp4 --audio copy --shard-size 9kB
  same joined.ts --audio aac --verify
}

# bats test_tags=night
@test "a lone video: the same with lengths, rates, strides and spans" {
  same open.mp4 --max-length 0.5s --min-length 0.4s --fps 10
  same one-key.mp4 --stride 0.7s
  same open.mp4 --spans spans.jsonl
}

# bats test_tags=night
@test "a lone video: what is wrong with it is the same" {
  same damaged.ts
  same cut-off.mp4
  run vfm-clip -o out -j4 short.mp4
  [ "$status" -eq 1 ]
  grep -q short.mp4 out/errors.jsonl
}

@test "a lone video, killed anywhere and run again: the same bytes" {
  vfm-clip open.mp4 -o whole --shard-size 9kB -j1 >whole.jsonl
  local sleeping
  for sleeping in 0.03 0.06 0.1; do
    setsid vfm-clip open.mp4 -o out --shard-size 9kB -j4 >/dev/null 2>&1 3>&- &
    local pid=$!
    sleep $sleeping
    kill -KILL -- "-$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  vfm-clip open.mp4 -o out --shard-size 9kB -j4 >out.jsonl
  [ "$(tree_hash out)" = "$(tree_hash whole)" ]
}

@test "a lone video of a make takes no slot that others have" {
  # A jobserver without a token: one slot, which is the program's own.
  mkfifo tokens
  exec 8<>tokens
  vfm-clip open.mp4 -o whole -j1 >/dev/null
  MAKEFLAGS="-j4 --jobserver-auth=8,8" timeout 60 vfm-clip open.mp4 -o out -j4 >/dev/null
  [ "$(tree_hash out)" = "$(tree_hash whole)" ]
  printf '++' >&8
  MAKEFLAGS="-j4 --jobserver-auth=8,8" timeout 60 vfm-clip open.mp4 -o two -j4 >/dev/null
  [ "$(tree_hash two)" = "$(tree_hash whole)" ]
  [ "$(timeout 5 head -c 2 <&8)" = "++" ]
  exec 8>&-
}
