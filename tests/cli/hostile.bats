#!/usr/bin/env bats
# What a file from outside may do to a decoder, and what then becomes of the run: --timeout, --isolate, the codes in
# errors.jsonl, and files that were damaged at random.
# SPDX-License-Identifier: Apache-2.0
load helpers
bats_require_minimum_version 1.5.0

# wide.mp4 is decoded well; the others but loud.mp4 are what misbehave.c makes of other widths.
setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  make_video wide.mp4 1 'testsrc2=size=96x48:rate=8'
  local name width=98
  for name in asleep busy crash greedy curious lively; do
    make_video "$name.mp4" 1 "testsrc2=size=${width}x48:rate=8"
    width=$((width + 2))
  done
  make_video late.mp4 6 'testsrc2=size=110x48:rate=8'
  make_video liar.mp4 1 'testsrc2=size=112x48:rate=8'
  make_video endless.mp4 0.125 'color=size=114x48:rate=8'
  quiet_ffmpeg -i wide.mp4 -f lavfi -i sine=sample_rate=48000:duration=1 -c:v copy -c:a aac loud.mp4
  # The struct of the codec is FFmpeg's.
  # shellcheck disable=SC2046
  cc -shared -fPIC -o misbehave.so "$BATS_TEST_DIRNAME/misbehave.c" $(pkg-config --cflags libavcodec) || return 1
}
setup() {
  setup_tools
  ln -s "$BATS_FILE_TMPDIR"/*.mp4 "$BATS_FILE_TMPDIR/misbehave.so" .
}
# bad COMMAND...: with decoders that misbehave.
bad() { run --separate-stderr timeout 60 env LD_PRELOAD="$PWD/misbehave.so" "$@"; }
# codes DIR: "NAME CODE" of each record, sorted.
codes() { jq -r '[.input, .code] | join(" ")' "${1%/}/errors.jsonl" | sort; }
# shards FILE: the records of shards, wherever these lie.
shards() { jq -c 'select(.kind == "shard") | [.samples, .bytes, .xxh3]' "$1"; }
# copies OF COUNT: n1.mp4 and so on, each another file: it has a box more, at which no reader looks.
copies() {
  local i
  for ((i = 1; i <= $2; ++i)); do { cat "$1" && printf '\0\0\0\020free%08d' "$i"; } >"n$i.mp4"; done
}
# helper_at_work PID: what starts the decoders of the program; when there is one that has been there for a while.
helper_at_work() {
  local i helper children before=
  for ((i = 0; i < 200; ++i)); do
    sleep 0.1
    helper=$(pgrep -P "$1") || continue
    children=$(pgrep -P "$helper") || continue
    [ "$children" != "$before" ] || { echo "$helper" && return; }
    before=$children
  done
  return 1
}
# isolates: skips the test where --isolate is not there.
isolates() {
  run vfm-clip --isolate -o probe wide.mp4
  [[ "$output" != *"was built without"* ]] || skip "built without libseccomp"
  # A container may forbid it.
  [[ "$output" != *"--isolate does not work here"* ]] || skip "this system refuses: $output"
}

@test "a decoder that hangs is left behind: the file has an error, and the run goes on" {
  bad vfm-clip -j1 --timeout 1s -o out asleep.mp4 busy.mp4 wide.mp4
  echo "$stderr"
  [ "$status" -eq 1 ]
  [ "$(codes out)" = $'asleep.mp4 timeout\nbusy.mp4 timeout' ]
  grep -q "cannot decode 'busy.mp4': it got no further for 1.0s; --timeout waits longer" out/errors.jsonl
  [[ "$output" = *'"source":"wide.mp4"'*'"kind":"end"'* ]]
  [[ "$stderr" = *"2 decodings hang in FFmpeg and end with this program; --isolate ends each alone"* ]]
  # What was left behind is done by the same command, and what is there stays.
  vfm-clip -j1 -o out asleep.mp4 busy.mp4 wide.mp4 >m
  vfm-clip -j1 -o all asleep.mp4 busy.mp4 wide.mp4 >n
  [ ! -e out/errors.jsonl ]
  [ "$(tree_hash out)" = "$(tree_hash all)" ]
}

@test "sixteen decoders that hang are left behind; one more ends the run" {
  copies asleep.mp4 18
  bad vfm-clip shots -j16 --timeout 1s n?.mp4 n1[0-6].mp4 wide.mp4
  echo "$stderr"
  [ "$status" -eq 1 ]
  [[ "$output" = *'"path":"wide.mp4"'*'"kind":"end"'* ]]
  [[ "$stderr" = *"16 decodings hang in FFmpeg and end with this program"* ]]
  bad vfm-clip -j18 --timeout 1s -o out n*.mp4 wide.mp4
  echo "$stderr"
  [ "$status" -eq 1 ]
  [[ "$stderr" = *"more than 16 decodings hang, "*"with --isolate, in programs that have it, each ends alone"* ]]
  [[ "$output" != *'"kind":"end"'* ]]
  # It is a run that did not end: the same command goes on.
  vfm-clip -o out n*.mp4 wide.mp4 >m
  vfm-clip -o all n*.mp4 wide.mp4 >n
  [ ! -e out/errors.jsonl ]
  [ "$(tree_hash out)" = "$(tree_hash all)" ]
}

@test "a signal ends a run in which a decoder hangs" {
  local pid got=0
  env LD_PRELOAD="$PWD/misbehave.so" vfm-clip -vv -j1 --timeout 0 -o probe wide.mp4 >m
  env LD_PRELOAD="$PWD/misbehave.so" HANGS="$PWD/hangs" vfm-clip -j1 -o out asleep.mp4 >m 3>&- &
  pid=$!
  await test -e hangs
  kill -TERM $pid
  wait $pid || got=$?
  [ "$got" -eq 143 ]
}

@test "a sample that took too long is tried again with another --timeout" {
  local tool name
  tar --format=ustar -chf shard.tar asleep.mp4 wide.mp4
  for tool in "vfm-caption --from builtin:measure" vfm-embed "vfm-pack --size 32 --frames 5 --windows middle"; do
    name=${tool%% *}
    bad $tool -j1 --timeout 1s -o "$name" shard.tar
    [ "$status" -eq 1 ]
    [ "$(jq -r .code "$name"/*errors.jsonl)" = timeout ]
    # The same once more is what it was.
    run --separate-stderr $tool -j1 --timeout 1s -o "$name" shard.tar
    [ "$status" -eq 1 ]
    [[ "$stderr" = *"got no further for 1.0s"* ]]
    $tool -j1 --timeout 2s -o "$name" shard.tar >"$name.jsonl"
    [ "$(records "$name.jsonl" | jq .samples)" -eq 2 ]
  done
}

@test "--isolate: the same bytes, with sound and in every tool" {
  isolates
  local mode
  for mode in copy aac; do
    vfm-clip --audio $mode -o here-$mode loud.mp4 wide.mp4 >here
    vfm-clip --audio $mode --isolate -o apart-$mode loud.mp4 wide.mp4 >apart
    [ "$(tree_hash here-$mode)" = "$(tree_hash apart-$mode)" ]
    diff <(shards here) <(shards apart)
  done
  cmp <(vfm-clip shots wide.mp4) <(vfm-clip shots --isolate wide.mp4)
  quiet_ffmpeg -f lavfi -i testsrc=size=96x64:rate=12:duration=3 -f lavfi -i anoisesrc=r=16000:c=pink:a=0.05:d=3 \
    -vf "drawbox=enable='between(n,12,23)':color=black:t=fill" -c:v libx264 -preset ultrafast -pix_fmt yuv420p jump.mkv
  vfm-clip --stitch-sound -o here-joins jump.mkv >/dev/null
  vfm-clip --stitch-sound --isolate -o apart-joins jump.mkv >/dev/null
  [ "$(tree_hash here-joins)" = "$(tree_hash apart-joins)" ]
  jq -e '.cuts[0].sound > 0.9' apart-joins/*.json
  vfm-caption -o c1 <here | vfm-embed -o e1 | vfm-pack --size 64 -o p1 >/dev/null
  vfm-caption --isolate -o c2 <here | vfm-embed --isolate -o e2 | vfm-pack --isolate --size 64 -o p2 >/dev/null
  for mode in c e p; do
    cmp <(cd ${mode}1 && cat -- *.tar */*.tar 2>/dev/null) <(cd ${mode}2 && cat -- *.tar */*.tar 2>/dev/null)
  done
}

@test "--isolate: the sound of a clip may be larger than its pictures" {
  isolates
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x48:rate=8:duration=4 -f lavfi -i anoisesrc=a=0.9:d=4 \
    -c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a alac -ac 8 noisy.mkv
  vfm-clip --audio copy --max-pixels 96x48 -o here noisy.mkv >/dev/null
  vfm-clip --audio copy --max-pixels 96x48 --isolate -o apart noisy.mkv >/dev/null
  [ "$(tree_hash here)" = "$(tree_hash apart)" ]
  [ "$(stat -c %s apart/*-00000.tar)" -gt 1200000 ]
}

# piece NAME SIZE RATE [OPTION...]: a second of H.264 as part of a transport stream.
piece() {
  local name=$1 size=$2 rate=$3
  shift 3
  quiet_ffmpeg -f lavfi -i "testsrc2=size=$size:rate=$rate" -t 1 -c:v libx264 -preset ultrafast -pix_fmt yuv420p -bf 0 \
    "$@" -f mpegts "$name.piece"
}
# changing: streams that change in the middle, as *.ts.
changing() {
  piece small 96x64 12
  piece large 352x288 12
  piece wide 160x48 12
  piece quick 96x64 30
  piece full 96x64 12 -pix_fmt yuv444p
  piece deep 96x64 12 -pix_fmt yuv420p10le
  piece gray 160x96 12 -pix_fmt gray
  piece turned 96x64 12 -bsf:v h264_metadata=display_orientation=insert:rotate=90
  cat {small,large,wide}.piece >grows.ts
  cat {large,small,large}.piece >shrinks.ts
  cat {small,full,gray,deep,small}.piece >pixels.ts
  cat {small,quick,turned,large}.piece >turns.ts
}

@test "--isolate: pictures that change in the middle in size, pixels, rate and turn give the same clips" {
  isolates
  local how clips
  changing
  printf '{"path":"%s.ts","begin":0.5,"end":2.5}\n' grows shrinks pixels turns >spans.jsonl
  for how in "" "--stride 1.5" "--spans spans.jsonl" "--encoder ffv1" "--fps 10 --stride 3"; do
    for clips in here apart; do
      rm -rf "$clips"
      # Where two streams meet, packets count as missing: status 1.
      run --separate-stderr vfm-clip -q -j2 $how $([ $clips = here ] || echo --isolate) -o "$clips" ./*.ts
      echo "$how: $stderr"
      [ "$status" -le 1 ]
      records <(printf '%s\n' "$output") | jq -s 'map(.samples) | add' >"$clips.samples"
    done
    [ "$(tree_hash here)" = "$(tree_hash apart)" ]
    [ "$(cat here.samples)" -ge 4 ]
  done
  # As members of a shard, in the tools that decode those.
  local key tool
  mkdir members
  for key in grows shrinks pixels turns; do cp $key.ts members/ && echo '{"caption":"x"}' >members/$key.json; done
  tar --format=ustar --sort=name -C members -cf shard.tar .
  for tool in "vfm-caption --from builtin:measure" vfm-embed "vfm-pack --size 32 --frames 9"; do
    for clips in here apart; do
      rm -rf "$clips"
      run --separate-stderr $tool -j1 $([ $clips = here ] || echo --isolate) -o "$clips" shard.tar
      echo "$tool: $stderr"
      [ "$status" -le 1 ]
    done
    cmp <(cd here && cat -- *.tar */*.tar 2>/dev/null) <(cd apart && cat -- *.tar */*.tar 2>/dev/null)
    diff <(codes_of here) <(codes_of apart)
  done
}
# codes_of DIR: as codes, whatever the tool names the file; none where nothing was skipped.
codes_of() { cat "$1"/*errors.jsonl 2>/dev/null | jq -r '[.input, .code] | join(" ")' | sort; }

@test "--isolate: pictures whose data end too early are the same, whichever codec does not notice" {
  isolates
  local codec
  mkdir -p plain damaged
  for codec in libvpx:webm jpegls:mkv; do
    quiet_ffmpeg -f lavfi -i "testsrc2=size=176x144:rate=12,hue=h=60*t" -t 2 -c:v "${codec%:*}" -b:v 200k -g 12 -threads 1 \
      "plain/${codec%:*}.${codec#*:}"
  done
  python3 - <<'END'
import pathlib, random
for file in pathlib.Path("plain").iterdir():
    data = file.read_bytes()
    for n in range(12):
        draw, copy = random.Random(n), bytearray(data)
        for _ in range(1 + draw.randrange(8)):
            at, size = draw.randrange(700, len(copy) - 300), draw.randrange(1, 200)
            copy[at:at + size] = bytes([draw.randrange(256)]) * size
        pathlib.Path(f"damaged/{file.stem}-{n:02}{file.suffix}").write_bytes(copy)
END
  vfm-clip -q -j1 --stride 60 --encoder ffv1 -o here damaged/* >m 2>err || [ $? -eq 1 ]
  vfm-clip -q -j1 --stride 60 --encoder ffv1 --isolate -o apart damaged/* >n 2>err || [ $? -eq 1 ]
  [ "$(records m | wc -l)" -gt 12 ]
  [ "$(tree_hash here)" = "$(tree_hash apart)" ]
}

@test "--isolate: a crash, a greedy decoder and one that hangs end that file alone" {
  isolates
  bad vfm-clip -j2 --isolate --timeout 1s -o hang asleep.mp4 busy.mp4
  [ "$status" -eq 1 ]
  [ "$(codes hang)" = $'asleep.mp4 timeout\nbusy.mp4 timeout' ]
  [[ "$stderr" != *"hang in FFmpeg"* ]]
  bad vfm-clip -j2 --isolate=300MB -o out crash.mp4 greedy.mp4 wide.mp4
  echo "$stderr"
  [ "$status" -eq 1 ]
  [ "$(codes out)" = $'crash.mp4 crash\ngreedy.mp4 memory' ]
  grep -q "the process that decoded 'crash.mp4' has died of SIGSEGV" out/errors.jsonl
  [[ "$output" = *'"source":"wide.mp4"'*'"kind":"end"'* ]]
}

@test "--isolate: a decoder that hangs behind what is wanted changes nothing" {
  isolates
  # Of 48 frames the 20th to the 28th are taken; decoding hangs at the 31st, of which a process may come while it is asked
  # for several frames at once.
  local how
  tar --format=ustar -chf late.tar late.mp4
  for how in "" --isolate; do
    bad vfm-pack -j1 $how --timeout 1s --size 32 --frames 9 --windows middle -o "out$how" late.tar
    echo "$stderr"
    [ "$status" -eq 0 ]
  done
  cmp out/train/late.tar out--isolate/train/late.tar
}

@test "--isolate: when what starts decoders is killed, the file at hand has an error and the others are done" {
  isolates
  local pid got=0
  env LD_PRELOAD="$PWD/misbehave.so" vfm-clip -j1 --isolate -o out asleep.mp4 wide.mp4 >m 2>err 3>&- &
  pid=$!
  kill -KILL "$(helper_at_work $pid)"
  wait $pid || got=$?
  cat err
  [ "$got" -eq 1 ]
  [ "$(codes out)" = 'asleep.mp4 memory' ]
  grep -q "the process that decoded 'asleep.mp4' was killed, as when memory is short" out/errors.jsonl
  [[ "$(cat m)" = *'"source":"wide.mp4"'*'"kind":"end"'* ]]
}

@test "--isolate: what starts decoders is started again eight times" {
  isolates
  local pid got=0 i
  copies asleep.mp4 12
  env LD_PRELOAD="$PWD/misbehave.so" vfm-clip shots -j1 --isolate n?.mp4 n1?.mp4 >m 2>err 3>&- &
  pid=$!
  for ((i = 0; i < 9; ++i)); do kill -KILL "$(helper_at_work $pid)"; done
  wait $pid || got=$?
  cat err
  [ "$got" -eq 1 ]
  [ "$(grep -c 'was killed, as when memory is short' err)" -eq 9 ]
  grep -q "the process that starts decoders has died 9 times, killed; if memory is short, give the same command" err
  [[ "$(cat m)" != *'"kind":"end"'* ]]
}

@test "--isolate: as many processes decode as there are slots, and none outlives the program" {
  isolates
  local pid i
  copies asleep.mp4 3
  setsid env LD_PRELOAD="$PWD/misbehave.so" vfm-clip shots -j3 --isolate asleep.mp4 busy.mp4 n?.mp4 >m 2>err 3>&- &
  pid=$!
  helper_at_work $pid
  for ((i = 0; i < 5; ++i)); do
    [ "$(pgrep -c -s $pid)" -le 5 ]
    sleep 0.1
  done
  [ "$(pgrep -c -s $pid)" -eq 5 ]
  kill -KILL $pid
  for ((i = 0; i < 50; ++i)); do
    pgrep -s $pid || return 0
    sleep 0.1
  done
  false
}

@test "--isolate: one that says for ever that it gets on is ended, too" {
  isolates
  bad vfm-clip -j1 --isolate --timeout 0.3s -o out lively.mp4
  echo "$stderr"
  [ "$status" -eq 1 ]
  [ "$(codes out)" = 'lively.mp4 timeout' ]
}

@test "--isolate: an error of no known kind is a crash of that process" {
  isolates
  bad vfm-clip -j1 --isolate -o out liar.mp4 wide.mp4
  echo "$stderr"
  [ "$status" -eq 1 ]
  [ "$(codes out)" = 'liar.mp4 crash' ]
}

@test "a decoder that gives pictures without end is left at what its file can hold, also one that is apart" {
  local how
  for how in "" --isolate; do
    [ -z "$how" ] || isolates
    bad vfm-clip shots -j1 $how endless.mp4 wide.mp4
    echo "$stderr"
    [ "$status" -eq 1 ]
    [[ "$stderr" = *"'endless.mp4' gives more pictures than its $(stat -L -c %s endless.mp4) bytes can hold"* ]]
    [[ "$output" = *'"path":"wide.mp4"'* ]]
  done
}

# Pictures of 500 x 500 of which each changes a pixel: 23 bytes for a quarter of a million.
many_pictures() {
  python3 - "$1" "$2" <<'END'
import struct, sys
one = b"!\xf9\4\4\4\0\0\0," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\2\2\x44\1\0"
head = b"GIF89a" + struct.pack("<HHBBB", 500, 500, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
open(sys.argv[1], "wb").write(head + one * int(sys.argv[2]) + b";")
END
}

@test "a file of which decoding takes more than --max-work allows is left there, also one that is apart" {
  local how
  many_pictures bomb.gif 20000
  for how in "" --isolate; do
    [ -z "$how" ] || isolates
    # Of its 460 kB and 128 KiB: 72 million pixels, or 30 ms.
    run --separate-stderr timeout 30 vfm-clip -j1 $how --timeout 2s --max-work 128M,0 -o "pixels$how" bomb.gif wide.mp4
    echo "$stderr"
    [ "$status" -eq 1 ]
    [ "$(codes "pixels$how")" = 'bomb.gif limit' ]
    [[ "$stderr" = *"'bomb.gif' has more than "*" pixels in all its pictures, which is more than --max-work allows for 460020 bytes"* ]]
    [[ "$output" = *'"source":"wide.mp4"'*'"kind":"end"'* ]]
    run --separate-stderr timeout 30 vfm-clip shots -j1 $how --max-work 0,50ms bomb.gif
    echo "$stderr"
    [ "$status" -eq 1 ]
    [[ "$stderr" = *"'bomb.gif' takes a processor more than 0.0s to decode, which is more than --max-work allows"* ]]
  done
  for how in x 1G 0,-1s; do
    run vfm-clip --max-work "$how" -o never wide.mp4
    [ "$status" -eq 2 ]
  done
  [ ! -e never ]
}

@test "--max-work holds for members of shards, in each tool that decodes them" {
  local tool
  many_pictures bomb.gif 2000
  echo '{"caption":"x"}' >bomb.json
  tar --format=ustar -cf shard.tar bomb.gif bomb.json
  for tool in "vfm-caption --from builtin:measure" vfm-embed "vfm-pack --size 32 --frames 9"; do
    run --separate-stderr timeout 30 $tool -j1 --max-work 8M,0 -o "${tool%% *}" shard.tar
    echo "$tool: $stderr"
    [ "$status" -eq 1 ]
    [ "$(jq -r .code "${tool%% *}"/*errors.jsonl)" = limit ]
  done
}

@test "--isolate: a decoder opens no file and no address, starts no process and sends no signal" {
  isolates
  bad vfm-clip -j1 -o plain curious.mp4
  [ "$status" -ne 0 ]
  bad vfm-clip -j1 --isolate -o out curious.mp4
  echo "$stderr"
  [ "$status" -eq 0 ]
}

@test "--isolate: addresses are refused, and what cannot go with it is a bad option" {
  isolates
  run --separate-stderr vfm-clip --isolate -o out http://127.0.0.1:9/x.mp4 nothing.mp4 . wide.mp4
  [ "$status" -eq 1 ]
  codes out
  [ "$(codes out)" = $'. open\nhttp://127.0.0.1:9/x.mp4 refused\nnothing.mp4 open' ]
  run vfm-clip --isolate --protocols hls -o out wide.mp4
  [ "$status" -eq 2 ]
  run vfm-clip --isolate --hwaccel auto -o out wide.mp4
  [ "$status" -eq 2 ]
  run vfm-clip --isolate --smart-cut -o out wide.mp4
  [ "$status" -eq 2 ]
  [[ "$output" = *"--smart-cut takes packets from a file that --isolate keeps away"* ]]
}

@test "memory of --isolate below what a small video takes is refused, with that" {
  local tool size
  for tool in vfm-clip vfm-caption; do
    for size in 1KiB 16777215; do
      run --separate-stderr "$tool" --isolate="$size" -o out wide.mp4
      [ "$status" -eq 2 ]
      [[ "$stderr" = *"--isolate"*"must be 0 or from 16.0 MiB on"* ]]
    done
  done
  [ ! -e out ]
  isolates
  # The least is enough for one.
  vfm-clip --isolate=16MiB -j1 -o out wide.mp4 >m
  grep -q '"samples":1' m
}

@test "--isolate: a system that confines no process is a bad option, before any work" {
  isolates
  # As where a container forbids it.
  echo 'int seccomp_load(void* filter) { return filter ? -1 : 0; }' >refuses.c
  cc -shared -fPIC -o refuses.so refuses.c
  run --separate-stderr env LD_PRELOAD="$PWD/refuses.so" vfm-clip --isolate -o out wide.mp4
  [ "$status" -eq 2 ]
  [ "$stderr" = "vfm-clip: --isolate does not work here: the system does not confine a process that would decode" ]
  [ ! -e out ]
}

@test "--isolate: it shows that a system confines no process also where the end of children is ignored" {
  isolates
  echo 'int seccomp_load(void* filter) { return filter ? -1 : 0; }' >refuses.c
  cc -shared -fPIC -o refuses.so refuses.c
  run --separate-stderr env --ignore-signal=CHLD LD_PRELOAD="$PWD/refuses.so" vfm-clip --isolate -o out wide.mp4
  [ "$status" -eq 2 ]
  [ "$stderr" = "vfm-clip: --isolate does not work here: the system does not confine a process that would decode" ]
  # And what it starts is waited for.
  bad env --ignore-signal=CHLD vfm-clip -j1 --isolate -o out crash.mp4 wide.mp4
  [ "$status" -eq 1 ]
  grep -q "the process that decoded 'crash.mp4' has died of SIGSEGV" out/errors.jsonl
}

@test "--isolate: a limit of the shell below its own holds" {
  isolates
  (ulimit -v 2500000 && vfm-clip --isolate -j1 -o out wide.mp4 >m)
}

@test "--isolate: what starts decoders keeps none of the descriptors that the program has" {
  isolates
  local pid fd i
  # A socket on which nothing comes, as its channel.
  vfm-clip --serve-isolated 5 3>/dev/null 4>held 5<>/dev/udp/127.0.0.1/9 7>held &
  pid=$!
  for ((i = 0; i < 100; ++i)); do
    [ "$(readlink /proc/$pid/fd/2)" != /dev/null ] || break
    sleep 0.05
  done
  for fd in 0 1 2; do [ "$(readlink /proc/$pid/fd/$fd)" = /dev/null ]; done
  [ "$(cd /proc/$pid/fd && echo *)" = "0 1 2 5" ]
  kill -KILL $pid
}

@test "a picture that took too long is tried again, and the others of its batch are there" {
  local name
  for name in asleep wide; do quiet_ffmpeg -i $name.mp4 -frames:v 1 $name.png; done
  bad vfm-clip -j1 --timeout 1s -o out asleep.png wide.png
  echo "$stderr"
  [ "$status" -eq 1 ]
  [ "$(codes out)" = 'asleep.png timeout' ]
  vfm-clip -j1 -o out asleep.png wide.png >m
  vfm-clip -j1 -o all asleep.png wide.png >n
  [ ! -e out/errors.jsonl ]
  [ "$(tree_hash out)" = "$(tree_hash all)" ]
}

@test "every record has a code" {
  : >empty.mp4
  echo text >text.mp4
  printf '1\n00:00:00,000 --> 00:00:01,000\nhello\n' >words.srt
  mkdir folder.mp4
  make_video large.mp4 1 'testsrc2=size=320x240:rate=8'
  quiet_ffmpeg -f lavfi -i sine=duration=1 sound.wav
  printf '%s\n' empty.mp4 text.mp4 words.srt folder.mp4 large.mp4 sound.wav none.mp4 '{"kind":' wide.mp4 |
    { vfm-clip --max-pixels 300x200 -o out || [ $? -eq 1 ]; } >clips.jsonl
  codes out
  [ "$(codes out)" = "empty.mp4 format
folder.mp4 open
large.mp4 limit
line 8 of standard input line
none.mp4 open
sound.wav format
text.mp4 format
words.srt format" ]
  # Shards: one cut off, one whose sample is too large, one without media, and one that is no tar.
  local tar
  tar=$(echo out/*.tar)
  head -c 3000 "$tar" >cut.tar
  echo text >no.tar
  echo '{"caption":"x"}' >a.json
  tar --format=ustar -cf bare.tar a.json
  local tool
  for tool in "vfm-caption --from builtin:measure" vfm-embed "vfm-pack --size 64" vfm-shard; do
    run --separate-stderr $tool -o "in-${tool%% *}" --max-member 900 cut.tar no.tar bare.tar "$tar" gone.tar
    [ "$status" -eq 1 ]
    cat "in-${tool%% *}"/*errors.jsonl
    jq -se 'length >= 3 and all(.code | test("^(open|format|limit|missing|decode)$"))' "in-${tool%% *}"/*errors.jsonl
  done
}

@test "hundreds of damaged files: no crash, no hang, and each is cut or has a code" {
  load hostile
  "$BATS_TEST_DIRNAME/media-seeds" seeds
  damaged_media 0 300
  damaged_members 300 40
  whole_shards
  damaged_shards 0 40
  damaged_lists 0 20
}

@test "damaged files, each in a process of its own: the same clips and the same codes" {
  isolates
  load hostile
  "$BATS_TEST_DIRNAME/media-seeds" seeds
  damaged_media 1000 60
  mv clips here
  damaged_media 1000 60 --isolate
  # What lets a decoder crash in this process would end this test before.
  diff <(cd here && sha256sum -- *.tar *.json) <(cd clips && sha256sum -- *.tar *.json)
  diff <(codes here) <(codes clips)
}
