#!/usr/bin/env bats
# --isolate: decoders in processes of their own, which crash, hang, are killed, or may do nothing else.
# SPDX-License-Identifier: Apache-2.0
load helpers
load misbehaving
bats_require_minimum_version 1.5.0

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
  quiet_ffmpeg -f lavfi -i testsrc=size=96x64:rate=12:duration=3 -f lavfi -i anoisesrc=r=16000:c=pink:a=0.05:d=3:s=7 \
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
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x48:rate=8:duration=4 -f lavfi -i anoisesrc=a=0.9:d=4:s=7 \
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

# codes_of DIR: as codes, whatever the tool names the file; none where nothing was skipped.
codes_of() { cat "$1"/*errors.jsonl 2>/dev/null | jq -r '[.input, .code] | join(" ")' | sort; }

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

@test "--isolate: a decoder opens no file and no address, starts no process and sends no signal" {
  isolates
  bad vfm-clip -j1 -o plain curious.mp4
  [ "$status" -ne 0 ]
  bad vfm-clip -j1 --isolate -o out curious.mp4
  echo "$stderr"
  [ "$status" -eq 0 ]
}

@test "--isolate: the program reads objects for the process that decodes, and bad options are refused" {
  isolates
  python3 -m http.server --bind 127.0.0.1 0 >served 2>&1 3>&- &
  local server=$!
  until grep -q 'port [0-9]' served; do sleep 0.05; done
  local url
  url=http://127.0.0.1:$(sed -nE 's/.* port ([0-9]+) .*/\1/p' served)
  VFM_NET_SECONDS=1 run --separate-stderr vfm-clip --isolate -o out "$url/none.mp4" nothing.mp4 . "$url/wide.mp4"
  kill "$server"
  echo "$stderr"
  [ "$status" -eq 1 ]
  [ "$(codes out)" = ". open"$'\n'"$url/none.mp4 open"$'\n'"nothing.mp4 open" ]
  vfm-clip -o plain wide.mp4
  [ "$(cat out/*.tar | tar -xO --wildcards '*.mp4' | cksum)" = "$(cat plain/*.tar | tar -xO --wildcards '*.mp4' | cksum)" ]
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
