#!/usr/bin/env bats
# What a file from outside may do to a decoder, and what then becomes of the run: --timeout, --max-work, the codes in
# errors.jsonl, and files that were damaged at random.
# SPDX-License-Identifier: Apache-2.0
load helpers
load misbehaving
bats_require_minimum_version 1.5.0

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

# bats test_tags=night
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

# bats test_tags=night
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

# bats test_tags=night
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

# bats test_tags=night
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
  damaged_media 0 150
  damaged_members 300 20
  whole_shards
  damaged_shards 0 20
  damaged_lists 0 20
}

# bats test_tags=night
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
