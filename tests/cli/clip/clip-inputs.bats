#!/usr/bin/env bats
# vfm-clip: inputs that are damaged, come twice, are named oddly or are none.
# SPDX-License-Identifier: Apache-2.0
load media
load kinds

setup_file() {
  media_folder
  make_kinds plain.mp4 short-gop.ts one.mp4 audio.mp4 truncated.mp4 empty.mp4 corrupt.ts
}

@test "each bad input is reported and the good ones are used" {
  mkdir folder.mp4
  run --separate-stderr vfm-clip truncated.mp4 empty.mp4 shots.mp4 audio.mp4 folder.mp4 missing.mp4 corrupt.ts -o out
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 2 ]
  [[ "${lines[0]}" = *'"source":"shots.mp4"'* ]]
  [[ "${lines[1]}" = *'"source":"corrupt.ts"'* ]]
  [ "$(wc -l <out/errors.jsonl)" -eq 6 ]
  [ "$(sed 's/.*"input":"\([^"]*\)".*/\1/' out/errors.jsonl | tr '\n' ' ')" = "truncated.mp4 empty.mp4 audio.mp4 folder.mp4 missing.mp4 corrupt.ts " ]
  [[ "$stderr" = *"'empty.mp4' is empty"* ]]
  [[ "$stderr" = *"'audio.mp4' has no video stream"* ]]
  [[ "$stderr" = *"'folder.mp4' is a folder, not a video"* ]]
  [[ "$stderr" = *"cannot open 'missing.mp4': No such file or directory"* ]]
  # Its good parts are there, and how much was bad is said.
  grep -q '"corrupt": [1-9]' out/"$(sed 's/.*"path":"out\/\([0-9a-f]*\)-.*/\1/' <<<"${lines[1]}").json"
  # A second run reports the same, and does nothing.
  cp out/errors.jsonl first
  run --separate-stderr vfm-clip truncated.mp4 empty.mp4 shots.mp4 audio.mp4 folder.mp4 missing.mp4 corrupt.ts -o out
  [ "$status" -eq 1 ]
  cmp first out/errors.jsonl
}

@test "a list given as a video is told where it goes" {
  printf '%s\n' plain.mp4 one.mp4 >films.txt
  run --separate-stderr vfm-clip films.txt -o out
  [ "$status" -eq 1 ]
  [[ "$stderr" = *"cannot open 'films.txt': it is text, not a video; give a list of names on standard input"* ]]
  vfm-clip -o out <films.txt >/dev/null
}

@test "not one clip is an error" {
  run --separate-stderr vfm-clip audio.mp4 -o out
  [ "$status" -eq 1 ]
  only_records
  [ -z "$output" ]
  [[ "$stderr" = *"no clips"* ]]
  run --separate-stderr vfm-clip -o out - </dev/null
  [ "$status" -eq 1 ]
  run --separate-stderr vfm-clip shots audio.mp4
  [ "$status" -eq 1 ]
  only_records
  [ -z "$output" ]
}

@test "manifest lines: fields go on, other kinds pass, garbage is reported" {
  run --separate-stderr vfm-clip -o out - <<'END'
{"kind":"video","path":"plain.mp4","licence":"CC0"}
{"kind": "video", "path": 3}
{not json
{"kind":"checkpoint","path":"run/1","step":7}

one.mp4
END
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 3 ]
  [[ "${lines[0]}" = *'"source":"plain.mp4"'*'"licence":"CC0"}' ]]
  [ "${lines[1]}" = '{"kind":"checkpoint","path":"run/1","step":7}' ]
  [[ "${lines[2]}" = *'"source":"one.mp4"'* ]]
  [ "$(wc -l <out/errors.jsonl)" -eq 2 ]
}

# bats test_tags=night
@test "among five thousand inputs the same contents are used once, and no temporary file is left" {
  python3 - <<'PY'
import os, struct
os.mkdir("p")
for number in range(5000):  # the last ten are the first ten
    colour = struct.pack("<I", number % 4990)[:3]
    with open(f"p/{number:04}.bmp", "wb") as file:
        file.write(b"BM" + struct.pack("<IIIIiiHHIIiiII", 62, 0, 54, 40, 2, 1, 1, 24, 0, 8, 0, 0, 0, 0) + 2 * colour + bytes(2))
PY
  printf '%s\n' p/*.bmp | vfm-clip - -o out -q -j2 >manifest.jsonl
  vfm-clip -o again - < <(printf '%s\n' p/*.bmp) >/dev/null 2>err
  [ "$(jq -s 'map(.samples // 0) | add' manifest.jsonl)" -eq 4990 ]
  [ "$(grep -c "p/499[0-9].bmp' has the same contents as 'p/000[0-9].bmp'; skipped" err)" -eq 10 ]
  [ -z "$(find out again -name '.*' -type f ! -name .vfm-clip.ledger)" ]
}

@test "the same contents twice are used once" {
  cp shots.mp4 copy.mp4
  run --separate-stderr vfm-clip shots.mp4 copy.mp4 -o out -j2
  only_records
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 1 ]
  [[ "$output" = *'"source":"shots.mp4"'* ]]
  [ "$stderr" = "vfm-clip: 'copy.mp4' has the same contents as 'shots.mp4'; skipped" ]
}

@test "a name with a line end works, and a list that cannot be read costs itself only" {
  cp one.mp4 $'new\nline.mp4'
  run vfm-clip -o out nowhere.jsonl $'new\nline.mp4' shots.mp4
  [ "$status" -eq 1 ]
  [ "$(jq -s length out/errors.jsonl)" -eq 1 ]
  grep -q 'nowhere.jsonl' out/errors.jsonl
  [ "$(facts out source | tr -d '\n' | grep -o 'shots.mp4' | wc -l)" -eq 3 ]
}

@test "a pipe is refused at once" {
  mkfifo pipe
  run timeout 20 vfm-clip -o out pipe shots.mp4
  [ "$status" -eq 1 ]
  grep -q "'pipe' is a pipe or a device" out/errors.jsonl
}

@test "a truncated Matroska file says so" {
  quiet_ffmpeg -f lavfi -i testsrc2=size=160x120:rate=25 -t 6 -c:v libx264 -g 12 -preset ultrafast long.mkv
  head -c $(($(stat -c %s long.mkv) * 6 / 10)) long.mkv >cut.mkv
  run --separate-stderr vfm-clip shots cut.mkv
  [ "$status" -eq 1 ]
  [[ $stderr == *damaged* ]]
  vfm-clip shots long.mkv >whole 2>errors
  [ ! -s errors ]
}
