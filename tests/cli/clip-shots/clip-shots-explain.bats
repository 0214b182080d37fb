#!/usr/bin/env bats
# vfm-clip shots --explain: the page that shows why shots begin where they do.
# SPDX-License-Identifier: Apache-2.0
load ../clip/media

setup_file() {
  media_folder
  # One white frame, and fifty cuts.
  make_video flash.mp4 3 "testsrc2=size=96x64:rate=12,drawbox=c=white:t=fill:enable='eq(n,18)'"
  quiet_ffmpeg -f lavfi -i testsrc2=size=64x96:rate=12:duration=41 -f lavfi -i smptebars=size=64x96:rate=12 \
    -filter_complex "[0][1]overlay=enable='mod(floor(n/10),2)'" -t 41 "${x264[@]}" many.mp4
}

# pictures FILE: the size of each picture in it, by its JPEG header; FFmpeg reads the first one.
pictures() {
  python3 -c 'import base64, re, sys
for n, code in enumerate(re.findall(r"<img src=.data:image/jpeg;base64,([^\"]*)", open(sys.argv[1]).read())):
    jpeg = base64.b64decode(code, validate=True)
    if n == 0: open("picture.jpg", "wb").write(jpeg)
    assert jpeg[:2] == b"\xff\xd8" and jpeg[-2:] == b"\xff\xd9"
    at = jpeg.index(b"\xff\xc0")
    print(int.from_bytes(jpeg[at + 7:at + 9], "big"), int.from_bytes(jpeg[at + 5:at + 7], "big"), sep=",")' "$1"
  ffprobe -v error -show_entries stream=width,height -of csv=p=0 picture.jpg >&2
}

@test "--explain: scores, threshold and pairs of pictures in one page; the list is as without it" {
  local name='<b>&"x.mp4'
  cp shots.mp4 "$name"
  vfm-clip shots "$name" flash.mp4 many.mp4 | records >plain
  vfm-clip shots --explain why.html "$name" flash.mp4 many.mp4 -j1 | records | diff plain -
  vfm-clip shots --explain pages/again.html "$name" flash.mp4 many.mp4 -j3 2>err | records | diff plain -
  grep -q "made the folder 'pages' for the report" err
  same_pages why.html pages/again.html
  grep -q '<h2>&lt;b&gt;&amp;&quot;x.mp4</h2>' why.html
  run ! grep -qE '<b>|<script|(src|href)="[^d]' why.html
  [ "$(grep -c '<svg' why.html)" -eq 3 ]
  grep -qE '<figcaption dir="auto">1.500 s, frame 18: cut, [0-9.]+<' why.html
  grep -qE '<figcaption dir="auto">1.500 s, frame 18: [0-9.]+, interrupts a scene that is back within 8 frames<' why.html
  local cuts
  cuts=$(sed -n 3p plain | jq '.cuts | length')
  [ "$cuts" -gt 40 ]
  grep -q "Found: the 40 of $cuts that are the least certain." why.html
  # Two of the first video, none of the second, 40 of the third; of what was nearly found at most 12 each.
  pictures why.html >sizes
  [ "$(grep -c '^196,64$' sizes)" -ge 3 ]
  [ "$(grep -c '^132,96$' sizes)" -ge 40 ]
  [ "$(wc -l <sizes)" -le $((2 + 40 + 3 * 12)) ]
  # What is not found with a higher threshold is nearly found.
  vfm-clip shots --threshold 1.3 --no-gradual --explain high.html shots.mp4 >/dev/null
  grep -qE '<figcaption dir="auto">1.500 s, frame 18: [0-9.]+, below the threshold<' high.html
}

@test "--explain: what is found is not nearly found" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=12:duration=3 -f lavfi -i mandelbrot=size=96x64:rate=12 \
    -filter_complex "[0]fade=out:24:12[a];[1]trim=duration=3,fade=in:0:12[b];[a][b]concat" "${x264[@]}" fades.mp4
  vfm-clip shots --explain why.html fades.mp4 | records | jq -e '.cuts | length > 0'
  grep -qE '<figcaption dir="auto">[0-9.]+ s, frame [0-9]+: fade, ' why.html
  run ! grep -q 'part of the' why.html
  [ "$(grep -cE '<figcaption dir="auto">[0-9.]+ s, frame 3[5-9]: ' why.html)" -eq 1 ]
}

@test "--explain shows what there is, and is refused where there is nothing to explain" {
  fails 1 vfm-clip shots --explain why.html missing.mp4 shots.mp4
  grep -q '<h2>shots.mp4</h2>' why.html
  vfm-clip shots shots.mp4 | sed -n '1w list.jsonl'
  echo '{"kind":"video","path":"shots.mp4"}' >>list.jsonl
  fails 1 vfm-clip shots --explain part.html list.jsonl
  grep -q 'Not complete: ' part.html
  local args
  for args in "--explain x.html --thresholds 0.3" "--explain ." "--stitch-sound"; do
    # shellcheck disable=SC2086
    fails 2 vfm-clip shots shots.mp4 $args
    [ ! -e x.html ]
  done
}

@test "a page takes the place of no other file" {
  cp shots.mp4 mine.mp4
  chmod 444 mine.mp4
  echo '<!DOCTYPE html><p>of before' >why.html
  : >empty.html
  local option
  for option in "shots --explain" "-o out --report"; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-clip $option mine.mp4 flash.mp4
    echo "$stderr"
    [ "$status" -eq 2 ]
    [[ $stderr == *"'mine.mp4' is there, and no page; name another file, or remove it"* ]]
    cmp mine.mp4 shots.mp4
    [ ! -e out ]
  done
  vfm-clip shots --explain why.html flash.mp4 >/dev/null
  grep -q '<svg' why.html
  vfm-clip shots --explain empty.html flash.mp4 >/dev/null
  same_pages why.html empty.html
}
