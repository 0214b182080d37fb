#!/usr/bin/env bats
# Inputs that want more than they are given: playlists and scripts, tracks in other files, sizes, silent servers,
# names that forge lines, and a disk without room.
# SPDX-License-Identifier: Apache-2.0
load helpers
bats_require_minimum_version 1.5.0

# secret.*: what nobody named. hits: who came to the socket.
setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  make_video secret.mp4 1
  quiet_ffmpeg -i secret.mp4 -c copy secret.ts
  make_video plain.mp4 1 'testsrc=size=64x48:rate=12'
  quiet_ffmpeg -i secret.mp4 -c copy secret.mov
  "$BATS_TEST_DIRNAME/refer-outside" secret.mov outside.mov secret.mov
  : >hits
  "$BATS_TEST_DIRNAME/listen" "$PWD/hits" 3>&- &
  echo $! >listener
  while [ ! -e hits.ports ]; do sleep 0.05; done
  read -r tcp udp <hits.ports
  local url="http://127.0.0.1:$tcp" here=$BATS_FILE_TMPDIR
  mkdir bad
  printf '#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\n%s/seg.ts\n#EXT-X-ENDLIST\n' "$url" >bad/hls-http.m3u8
  printf '#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\n%s/secret.ts\n#EXT-X-ENDLIST\n' "$here" >bad/hls-file.m3u8
  mpd "$url/secret.mp4" >bad/dash-http.mpd
  mpd "$here/secret.mp4" >bad/dash-file.mpd
  printf "ffconcat version 1.0\nfile '%s/secret.mp4'\n" "$here" >bad/concat-file.ffconcat
  printf "ffconcat version 1.0\nfile '%s/secret.mp4'\n" "$url" >bad/concat-http.ffconcat
  printf 'v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video %s RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n' \
    "$((udp + 2))" >bad/session.sdp
  for extension in mp4 mkv webm avi mov m4v ts flv mpg gif jpg png webp; do
    cp bad/hls-file.m3u8 "bad/hls.$extension"
  done
  cp bad/hls-http.m3u8 bad/hls-http.mp4
  cp bad/dash-http.mpd bad/dash.mp4
  cp bad/concat-file.ffconcat bad/concat.mp4
  cp bad/session.sdp bad/session.mp4
  # The same contents would be skipped.
  for file in bad/*.{mp4,mkv,webm,avi,mov,m4v,ts,flv,mpg,gif,jpg,png,webp}; do printf '\n# %s\n' "$file" >>"$file"; done
}
teardown_file() { kill "$(cat "$BATS_FILE_TMPDIR/listener")"; }
mpd() {
  printf '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT1S" minBufferTime="PT1S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011"><Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="100" width="96" height="64" codecs="avc1"><BaseURL>%s</BaseURL><SegmentList><Initialization range="0-900"/><SegmentURL mediaRange="0-9000"/></SegmentList></Representation></AdaptationSet></Period></MPD>' "$1"
}
setup() {
  setup_tools
  ln -s "$BATS_FILE_TMPDIR"/{bad,plain.mp4,secret.*,outside.mov,hits.ports} .
}

# watched COMMAND...: runs it, and fails if it connects, binds, or opens a secret, however that ends.
watched() {
  local before after
  before=$(wc -l <"$BATS_FILE_TMPDIR/hits")
  if strace -o probe true 2>/dev/null; then
    run --separate-stderr strace -f -qq -o trace -e trace=openat,open,connect,bind "$@"
    run ! grep -E 'secret|(connect|bind)\(.*AF_INET' trace
    run --separate-stderr "$@"
  else
    run --separate-stderr "$@"
  fi
  after=$(wc -l <"$BATS_FILE_TMPDIR/hits")
  [ "$before" = "$after" ]
}

@test "playlists, scripts and sessions are refused under every name" {
  watched vfm-clip -j2 -o out bad/* plain.mp4
  [ "$status" -eq 1 ]
  [ "$(jq -s length out/errors.jsonl)" -eq "$(find bad/ -type f | wc -l)" ]
  [ "$(grep -c 'playlist\|manifest\|script\|session' out/errors.jsonl)" -eq "$(find bad/ -type f | wc -l)" ]
  grep -q "'bad/hls.mkv': it is an HLS playlist, which names other files.*--protocols hls" out/errors.jsonl
  [[ "$output" = *'"source":"plain.mp4"'* ]]
  watched vfm-clip shots bad/hls-http.mp4 bad/dash.mp4
  [ "$status" -eq 1 ]
}

@test "so are members of shards, in every tool that decodes them" {
  mkdir members
  local n=0 file
  for file in bad/*.mp4 bad/hls.webm bad/hls.mkv bad/hls.jpg; do
    n=$((n + 1))
    cp "$file" "members/s$n.${file##*.}"
    echo '{"caption":"x"}' >"members/s$n.json"
  done
  cp plain.mp4 members/t.mp4
  echo '{"caption":"x"}' >members/t.json
  tar --format=ustar --sort=name -C members -cf s.tar .
  watched vfm-embed -o embedded --force s.tar
  [ "$status" -eq 1 ]
  [ "$(grep -c 'playlist\|manifest\|script\|session' embedded/embed-errors.jsonl)" -eq "$n" ]
  watched vfm-pack --size 64 --force -o packed s.tar
  [ "$status" -eq 1 ]
  [ "$(grep -c 'playlist\|manifest\|script\|session' packed/errors.jsonl)" -eq "$n" ]
  watched vfm-caption --from builtin:measure --force -o captioned s.tar
  [ "$status" -eq 1 ]
  [ "$(grep -c 'playlist\|manifest\|script\|session' captioned/caption-errors.jsonl)" -eq "$n" ]
}

@test "--protocols allows by name what is refused otherwise" {
  vfm-clip --protocols hls,file -o out bad/hls-file.m3u8 >m
  [[ "$(cat m)" = *'"samples":1'* ]]
  # A playlist alone opens nothing.
  watched vfm-clip --protocols hls -o none bad/hls-file.m3u8 bad/hls-http.m3u8 plain.mp4
  [ "$status" -eq 1 ]
  grep -q "hls-file.m3u8': it names an address of the protocol 'file', which is not allowed; allow it with --protocols hls,file\"" none/errors.jsonl
  grep -q "hls-http.m3u8': it names an address of the protocol 'http', which .* --protocols hls,http\"" none/errors.jsonl
  [ "$(jq -s 'all(.code == "refused")' none/errors.jsonl)" = true ]
  run vfm-clip --protocols hls,gopherr -o never plain.mp4
  [ "$status" -eq 2 ]
  [[ "$output" = *"'gopherr' is not a protocol or playlist that can be allowed"* ]]
  [ ! -e never ]
}

@test "addresses: s3 and http(s) only, unless another is named" {
  read -r tcp udp <hits.ports
  printf '%s\n' "rtsp://127.0.0.1:$tcp/x" "rtp://127.0.0.1:$udp" "ftp://127.0.0.1:$tcp/x.mp4" \
    "concat://$PWD/secret.mp4" "data://text/plain,x" "nosuch://x" >list.jsonl
  watched vfm-clip -o out list.jsonl
  [ "$status" -eq 1 ]
  [ "$(grep -c 'only files, s3, http and https are opened; allow others with --protocols' out/errors.jsonl)" -eq 5 ]
  grep -q "'nosuch' is not a protocol" out/errors.jsonl
  # A path is no address, and file:// is a path.
  run ! vfm-clip -o out2 "concat:secret.mp4|secret.mp4"
  vfm-clip -o out3 "file://$PWD/plain.mp4"
}

@test "a QuickTime track that lies in another file is not looked for" {
  watched vfm-clip -o out outside.mov
  [ "$status" -eq 1 ]
  grep -q "the data of stream 0 lies in another file, which is not opened" out/errors.jsonl
  vfm-clip --protocols dref,file -o with outside.mov >m
  [[ "$(cat m)" = *'"samples":1'* ]]
}

@test "attachments and subtitles do no harm" {
  printf '1\n00:00:00,000 --> 00:00:01,000\nhello\n' >words.srt
  quiet_ffmpeg -i plain.mp4 -i words.srt -map 0 -map 1 -c copy -attach words.srt -metadata:s:t mimetype=text/plain full.mkv
  vfm-clip -o out full.mkv
  run vfm-clip -o none words.srt
  [ "$status" -eq 1 ]
  grep -q "has no video stream (only subtitles or data)" none/errors.jsonl
}

@test "a server that says nothing is given up after --timeout" {
  read -r tcp _ <hits.ports
  run --separate-stderr timeout 20 vfm-clip --timeout 500ms -o out "http://127.0.0.1:$tcp/x.mp4" plain.mp4
  [ "$status" -eq 1 ]
  grep -q "cannot open 'http://127.0.0.1:$tcp/x.mp4': timed out (.* tr[a-z]*); check the network" out/errors.jsonl
  [[ "$output" = *'"source":"plain.mp4"'* ]]
}

@test "a server that sends bytes without end, and no packet, is given up after ten times --timeout" {
  cat >endless.py <<'PY'
import os, socket
listener = socket.create_server(("127.0.0.1", 0))
with open("port.new", "w") as f:
    print(listener.getsockname()[1], file=f)
os.rename("port.new", "port")
while True:
    peer = listener.accept()[0]
    if os.fork() == 0:
        asked = peer.recv(4096)
        null = asked.startswith(b"GET /null.ts")
        size = b"" if asked.startswith(b"GET /unsized") else b"Content-Length: 1000000000000\r\n"
        peer.sendall(b"HTTP/1.1 200 OK\r\n" + size + b"\r\n")
        while True:
            peer.sendall(b"\x47\x1f\xff\x10" + bytes(184) if null else bytes(1 << 16))
PY
  python3 endless.py 2>/dev/null 3>&- &
  server=$!
  until [ -e port ]; do sleep 0.02; done
  url=http://127.0.0.1:$(cat port)
  run --separate-stderr timeout 50 vfm-clip shots -j3 --timeout 200ms "$url/zeros.mp4" "$url/null.ts" plain.mp4
  echo "$stderr"
  [ "$status" -eq 1 ]
  [ "$(grep -c "': bytes, but no picture or sound, came for 2.0s; --timeout waits longer$" <<<"$stderr")" -eq 2 ]
  [[ "$output" = *'"path":"plain.mp4"'* ]]
  # The name of clips is that of the contents, so that a size must be known.
  run --separate-stderr timeout 20 vfm-clip -o out "$url/unsized.mp4" plain.mp4
  kill "$server"
  [ "$status" -eq 1 ]
  grep -q "cannot read '$url/unsized.mp4': the server does not tell its size" out/errors.jsonl
  [[ "$output" = *'"source":"plain.mp4"'* ]]
}

@test "a picture above --max-pixels is refused from its header" {
  # A GIF of 16000 x 16000 in 40 bytes, and a PNG whose header says so.
  printf 'GIF89a\x80\x3e\x80\x3e\x80\x00\x00\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\x80\x3e\x80\x3e\x00\x02\x02D\x01\x00;' >huge.gif
  quiet_ffmpeg -f lavfi -i testsrc2=size=300x200 -frames:v 1 small.png
  (ulimit -v 1500000 && vfm-clip -j1 -o out huge.gif plain.mp4 >m) || [ $? -eq 1 ]
  grep -q "'huge.gif' has pictures of 16000x16000, more pixels than --max-pixels allows (67108864)" out/errors.jsonl
  [[ "$(cat m)" = *'"source":"plain.mp4"'* ]]
  run vfm-clip --max-pixels 200x200 -o out2 small.png plain.mp4
  [ "$status" -eq 1 ]
  grep -q "'small.png' has pictures of 300x200" out2/errors.jsonl
  for wrong in 0 x 5x -1 1.5 99999x99999; do
    run vfm-clip --max-pixels "$wrong" -o never plain.mp4
    [ "$status" -eq 2 ]
  done
}

@test "a picture of any format is refused from its header, whatever its data unpack to" {
  mkdir pictures
  "$BATS_TEST_DIRNAME/promise-pictures" pictures
  run --separate-stderr bash -c 'ulimit -v 1500000 && vfm-clip -j1 -o out pictures/* plain.mp4'
  echo "$stderr"
  [ "$status" -eq 1 ]
  [[ "$output" = *'"source":"plain.mp4"'* ]]
  [ "$(jq -r .code out/errors.jsonl | sort | uniq -c | tr -s ' ')" = " 7 limit" ]
  [ "$(grep -c "has pictures of 16000x16000, more pixels than --max-pixels allows" out/errors.jsonl)" -eq 7 ]
  # As members of a shard.
  tar --format=ustar -C pictures -cf shard.tar huge.png huge.jpg huge.tiff
  run --separate-stderr bash -c 'ulimit -v 1500000 && vfm-embed -j1 -o embedded shard.tar'
  [ "$status" -eq 1 ]
  [ "$(jq -r .code embedded/embed-errors.jsonl | sort -u)" = limit ]
}

@test "a picture that is too large for FFmpeg at any --max-pixels is refused as one above it" {
  mkdir pictures
  "$BATS_TEST_DIRNAME/promise-pictures" pictures 30000
  run --separate-stderr vfm-clip -j1 -o out pictures/*
  echo "$stderr"
  [ "$status" -eq 1 ]
  [ "$(jq -r .code out/errors.jsonl | sort | uniq -c | tr -s ' ')" = " 5 limit" ]
  [ "$(grep -c "has pictures of 30000x30000, more pixels than --max-pixels allows" out/errors.jsonl)" -eq 5 ]
  run --separate-stderr vfm-clip --max-pixels 1024M -j1 -o more pictures/huge.png
  [ "$status" -eq 1 ]
  [ "$(jq -r .code more/errors.jsonl)" = limit ]
  [[ "$stderr" = *"has pictures of 30000x30000, more pixels than FFmpeg decodes"* ]]
}

@test "a picture's file of more than 1 GiB is refused before it is read" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=64x48 -frames:v 1 small.png
  cp small.png long.png
  truncate -s 1200M long.png
  run --separate-stderr bash -c 'ulimit -v 1500000 && vfm-clip -j1 -o out long.png small.png'
  [ "$status" -eq 1 ]
  [[ "$output" = *'"samples":1,'* ]]
  [ "$(jq -r '[.code, .error] | join(" ")' out/errors.jsonl)" = "limit 'long.png' has 1.2 GiB, and at most 1.0 GiB are read" ]
}

@test "a picture that grows above --max-pixels in the middle is refused there" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=300x200 -frames:v 1 small.png
  quiet_ffmpeg -f lavfi -i testsrc2=size=64x48:rate=12 -t 1 -c:v libx264 -preset ultrafast -f h264 a.h264
  quiet_ffmpeg -f lavfi -i testsrc2=size=320x240:rate=12 -t 1 -c:v libx264 -preset ultrafast -f h264 b.h264
  quiet_ffmpeg -f lavfi -i testsrc2=size=1280x960:rate=12 -t 0.5 -c:v libx264 -preset ultrafast -f h264 c.h264
  cat a.h264 b.h264 >grows.h264
  cat a.h264 c.h264 >soars.h264
  run vfm-clip shots --max-pixels 10000 grows.h264
  [ "$status" -eq 1 ]
  [[ "$output" = *"has pictures of 320x240, more pixels than --max-pixels allows (10000)"* ]]
  run vfm-clip shots --max-pixels 10000 soars.h264
  [ "$status" -eq 1 ]
  [[ "$output" = *"has pictures of 1280x960, more pixels than --max-pixels allows (10000)"* ]]
  # Sizes that codecs round up are no larger for it.
  vfm-clip shots --max-pixels 300x200 small.png
  vfm-clip shots grows.h264
}

@test "a name forges no line" {
  cp plain.mp4 $'a\nvfm-clip: all is well\n.mp4'
  printf x >$'b\nvfm-clip: forged\r\xc2\x9b31m\xe2\x80\xae.mp4'
  run --separate-stderr vfm-clip -o out $'b\nvfm-clip: forged\r\xc2\x9b31m\xe2\x80\xae.mp4' $'no\nvfm-clip: such.mp4' plain.mp4 $'a\nvfm-clip: all is well\n.mp4'
  [ "$status" -eq 1 ]
  [ "$(printf '%s\n' "$stderr" | wc -l)" -eq 3 ]
  run ! grep -aE '^vfm-clip: (forged|such|all)' <<<"$stderr"
  run ! grep -aP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' <<<"$stderr"
  jq -e . out/errors.jsonl >jq.out
  run --separate-stderr vfm-clip $'--no\nvfm-clip: such-option' -o out plain.mp4
  [ "$status" -eq 2 ]
  [ "$(printf '%s\n' "$stderr" | wc -l)" -eq 2 ]
}

@test "a line that is no path, of megabytes, is one error, and the next line is worked on" {
  { head -c 5000000 /dev/zero | tr '\0' p; printf '\nplain.mp4\n'; } >list
  run -1 --separate-stderr vfm-clip -o clips <list
  only_records
  [ "${#lines[@]}" -eq 1 ]
  [ "${#stderr}" -lt 1000000 ]
  [ "$(wc -l <clips/errors.jsonl)" -eq 1 ]
  [ "$(jq -r '.input | length' clips/errors.jsonl)" -eq $((262144 + 3)) ]
  grep -q 'File name too long\|cannot open' clips/errors.jsonl
}

@test "a GIF, an animated WebP and PNG are videos; AVIF is read, and what is not is reported clearly" {
  for file in moves.gif moves.webp; do
    quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=5 -t 1 "$file"
  done
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=5 -t 1 -f apng moves.png
  run --separate-stderr vfm-clip -o out moves.gif moves.png moves.webp
  # FFmpeg 5 and 6 decode no animated WebP.
  if [ "$status" -ne 0 ]; then
    [ "$(wc -l <out/errors.jsonl)" -eq 1 ]
    grep -q "'moves.webp' is an animated WebP, which this FFmpeg does not decode; make a GIF" out/errors.jsonl
  fi
  [ "$(cat out/*.json | grep -c '"frames": 5')" -ge 2 ]
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64 -frames:v 1 -c:v libaom-av1 -cpu-used 8 still.avif || skip "no AVIF"
  vfm-clip -o avif still.avif >m
  [[ "$(cat m)" = *'"samples":1'* ]]
  # The same as HEIC: this FFmpeg reads none, later ones may.
  sed 's/av01/hvc1/g;s/ftypavif/ftypheic/' still.avif >still.heic
  run vfm-clip -o heic still.heic
  [ "$status" -eq 1 ]
  [[ "$output" = *"'still.heic'"* ]]
  if [[ "$(vfm-clip --version)" = *"FFmpeg 5."* ]]; then
    [[ "$output" = *"is a picture (HEIC or AVIF) of a kind that this FFmpeg does not read; make a JPEG or PNG"* ]]
  fi
}

@test "a full disk ends the run at once, in every tool, and the same command goes on" {
  for i in $(seq 9); do make_video "v$i.mp4" 1 "testsrc=size=64x48:rate=12,hue=h=$i*30"; done
  vfm-clip -o whole v?.mp4 >whole.jsonl
  mkdir small
  mount -t tmpfs -o size=24k tmpfs small 2>/dev/null || skip "cannot mount"
  run --separate-stderr vfm-clip -j1 -o small/out v?.mp4
  [ "$status" -eq 1 ]
  [ "$stderr" = "$(grep -o "vfm-clip: cannot .*small/out/.*: No space left on device; make room, then give the same command again" <<<"$stderr")" ]
  [ "$(wc -l <<<"$stderr")" -eq 1 ]
  mount -o remount,size=10m small
  run vfm-clip -j1 -o small/out v?.mp4
  first=$status
  one=$(tree_hash whole)
  two=$(tree_hash small/out)
  # The other tools, with four kilobytes left.
  local tool
  for tool in "vfm-caption -o small/captions" "vfm-embed -o small/embedded" "vfm-shard -o small/dataset" \
    "vfm-pack --size 64 -o small/latents" "vfm-clip -o small/clips --force v1.mp4 --report small/r.html"; do
    dd if=/dev/zero of=small/fill bs=4k status=none 2>/dev/null || true
    run --separate-stderr bash -c "$tool $([[ $tool = vfm-clip* ]] || echo '<whole.jsonl')"
    rm -f small/fill
    echo "$tool: $status $stderr"
    [ "$status" -eq 1 ] && [[ "$stderr" = *"No space left on device; make room, then give the same command again" ]] &&
      [ "$(wc -l <<<"$stderr")" -eq 1 ] || { umount small; false; }
  done
  umount small
  [ "$first" -eq 0 ]
  [ "$one" = "$two" ]
}

# bats test_tags=night
@test "4K video at -j1 stays under 1 GiB, with the same clips" {
  # Two shots of 60 frames: those that wait for their place do not all stay in memory.
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x54:rate=25:duration=2.4 -f lavfi -i testsrc=size=96x54:rate=25:duration=2.4 \
    -filter_complex '[0]format=yuv420p[a];[1]format=yuv420p[b];[a][b]concat=n=2:v=1,scale=3840:2160:flags=neighbor' \
    -c:v libx264 -preset ultrafast -pix_fmt yuv420p uhd.mp4
  /usr/bin/time -f %M -o peak true || skip "no time"
  /usr/bin/time -f %M -o peak vfm-clip -j1 --encoder libx264:ultrafast --verify -o out uhd.mp4 >m
  echo "peak $(cat peak) KiB"
  [ "$(cat peak)" -lt $((1 << 20)) ]
  [ "$(tar -xOf out/*.tar --wildcards '*.json' | jq -c '[.frames,.verified]' | tr -d '\n')" = "[60,true][60,true]" ]
}

@test "a header that promises a thousand million frames takes no memory for them" {
  "$BATS_TEST_DIRNAME/promise-frames" plain.mp4 promises.mp4 80000000
  /usr/bin/time -f %M -o peak true || skip "no time"
  run /usr/bin/time -f %M -o peak vfm-clip -j1 -o out promises.mp4
  [ "$status" -eq 1 ]
  [ "$(tail -n 1 peak)" -lt $((1 << 20)) ]
}

@test "a file whose index has the same bytes again and again gives no more pictures than it can hold" {
  quiet_ffmpeg -f lavfi -i testsrc=size=16x16:rate=25 -vf scale=2x2 -frames:v 128 -pix_fmt gray -c:v rawvideo plain.mov
  "$BATS_TEST_DIRNAME/promise-frames" plain.mov again.mov 127 4 200
  run --separate-stderr vfm-clip shots again.mov plain.mov
  echo "$stderr"
  [ "$status" -eq 1 ]
  [[ "$stderr" = *"'again.mov' gives more pictures than its $(stat -c %s again.mov) bytes can hold"* ]]
  [[ "$output" = *'"path":"plain.mov"'* ]]
}

@test "every codec's header is held against --max-pixels before a picture is decoded" {
  local codec
  for codec in libx264 libx265 libvpx-vp9 libsvtav1 mpeg4 mjpeg ffv1 png; do
    quiet_ffmpeg -f lavfi -i testsrc2=size=320x240:rate=5 -t 0.4 -c:v "$codec" -pix_fmt "$(pixels "$codec")" "$codec.mkv" 2>ff.log || continue
    run vfm-clip shots --max-pixels 319x240 "$codec.mkv"
    only_records
    echo "$codec: $output"
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" = "vfm-clip: '$codec.mkv' has pictures of 320x240, more pixels than --max-pixels allows (76560)"* ]]
    vfm-clip shots --max-pixels 320x240 "$codec.mkv"
  done
}
pixels() { case $1 in mjpeg) echo yuvj420p ;; png) echo rgb24 ;; *) echo yuv420p ;; esac; }

@test "a stream that comes late is held against --max-pixels too" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=1920x1088:rate=12 -t 0.5 -c:v libx264 -preset ultrafast -pix_fmt yuv420p late.flv
  quiet_ffmpeg -i late.flv -c:v mpeg2video -r 24 late.mpg
  for file in late.flv late.mpg; do
    run vfm-clip shots -vv --max-pixels 10000 "$file"
    [ "$status" -eq 1 ]
    [[ "$output" = *"'$file' has pictures of 1920x1088, more pixels than"* ]]
    vfm-clip shots "$file" >listed
    grep -q '"frames":[1-9]' listed
  done
}

@test "sound of absurd rates takes no memory" {
  quiet_ffmpeg -i plain.mp4 -f lavfi -i sine=duration=1:sample_rate=44100 -c:v copy -c:a pcm_s16le sound.avi
  # The rate of the sound's header: 2^31 - 1.
  python3 - <<'END'
data = open("sound.avi", "rb").read()
at = data.index(b"strf", data.index(b"strf") + 4) + 8 + 4
open("absurd.avi", "wb").write(data[:at] + b"\xff\xff\xff\x7f" + data[at + 4:])
END
  /usr/bin/time -f %M -o peak true || skip "no time"
  run /usr/bin/time -f %M -o peak vfm-clip -j1 --audio aac -o out absurd.avi
  echo "$output"
  [ "$status" -eq 1 ]
  grep -q "sound of 2147483647 Hz in 1 channels is not read here" out/errors.jsonl
  [ "$(tail -n 1 peak)" -lt 500000 ]
}
