#!/usr/bin/env bats
# The law of parts on three thousand inputs: whatever the number of parts and whoever does them, the joined folder has the same
# bytes. By day a few inputs stand for them (tests/cli/clip/clip-part.bats, tests/cli/parts).
# SPDX-License-Identifier: Apache-2.0
load ../cli/helpers
bats_require_minimum_version 1.5.0

setup_file() {
  export LC_ALL=C.UTF-8 PATH="${VFM_BIN:?}:$PATH"
  mkdir "$BATS_FILE_TMPDIR/media" && cd "$BATS_FILE_TMPDIR/media" || return 1
  make_shots shots.mp4
  make_video plain.mp4 0.7
  quiet_ffmpeg -f lavfi -i testsrc2=size=32x24:rate=1 -frames:v 1 picture.bmp
  # All sources are few files with small changes: boxes that no reader looks at, a pixel, an end that is missing.
  python3 - <<'PY'
import os, random, struct
draw = random.Random(7)
plain, shots, picture = (open(name, "rb").read() for name in ("plain.mp4", "shots.mp4", "picture.bmp"))
box = lambda text, size: struct.pack(">I4s", 8 + size, b"free") + text.encode().ljust(size, b"x")
made = {}
for i in range(2050):
    made[f"{i % 7}/small{i}.mp4"] = plain + box(f"small{i}", 16)
for i in range(100):
    made[f"{i % 7}/large{i}.mp4"] = shots + box(f"large{i}", 1 << 16)
for i in range(600):
    pixels = bytearray(picture)
    pixels[200:203] = i.to_bytes(3, "little")
    made[f"{i % 5}/picture{i}.bmp"] = bytes(pixels)
first = sorted(made)
for i, name in enumerate(draw.sample(first, 150)):
    made[f"{i % 7}/twin{i}{os.path.splitext(name)[1]}"] = made[name]
for i in range(100):
    whole = (plain, shots, picture)[i % 3]
    damaged = bytearray(whole[: draw.randrange(30, len(whole))])
    for _ in range(3):
        damaged[draw.randrange(len(damaged))] = draw.randrange(256)
    made[f"{i % 7}/damaged{i}" + (".mp4", ".mp4", ".bmp")[i % 3]] = bytes(damaged)
for name, contents in made.items():
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "wb") as file:
        file.write(contents)
PY
  rm plain.mp4 shots.mp4 picture.bmp
  find "$PWD" -type f | LC_ALL=C sort >../names
  [ "$(wc -l <../names)" -eq 3000 ]
}

setup() {
  setup_tools
  export VFM_LEASE_SECONDS=2 # so that who waits for the last part looks often
  cd "$BATS_FILE_TMPDIR" || return 1
}

# chain N AUTO: what a chain makes in the folder N-AUTO, with N parts each, which are named, or which two commands claim.
chain() {
  mkdir "$1-$2" && cd "$1-$2" || return 1
  vfm-clip list --shard-size 256KiB -o clips -n "$1" <"$BATS_FILE_TMPDIR/names" >/dev/null
  each "$1" "$2" vfm-clip -o clips || return 1
  each "$1" "$2" vfm-caption clips || return 1
  each "$1" "$2" vfm-embed clips || return 1
  vfm-shard join clips >clips.jsonl
  each "$1" "$2" vfm-pack --size 32 -o latents clips || return 1
  vfm-shard join latents >latents.jsonl
  [ "$(find . -name done.json | wc -l)" -eq $((4 * $1)) ] || return 1
  [ -z "$(find . -name 'lease*' -o -name temporary -o -name 'unfinished*' -o -name failed.json -o -name '.*.tmp')" ] || return 1
  cd ..
}
# each N AUTO COMMAND...
each() {
  local part first
  if [ "$2" = auto ]; then
    "${@:3}" -j1 --part "auto/$1" >>first.jsonl 2>>said 3>&- &
    first=$!
    "${@:3}" -j1 --part "auto/$1" >>second.jsonl 2>>said || return 1
    wait $first
  else
    for part in $(seq $(($1 - 1)) -1 0); do "${@:3}" -j2 --part "$part/$1" >>all.jsonl 2>>said || return 1; done
  fi
}
# whole DIR: name and hash of each file that does not tell who did what.
whole() { (cd "$1" && find . -path ./parts -prune -o -type f -print | LC_ALL=C sort | xargs sha256sum); }

@test "three thousand inputs in 1, 4 and 7 parts, named and claimed" {
  local made one=$PWD/1-list
  for made in '1 list' '4 list' '7 list' '4 auto' '7 auto'; do
    # shellcheck disable=SC2086
    chain $made
    made=${made/ /-}
    echo "$made: $SECONDS s" >&3
    [ "$made" != 1-list ] || continue
    for folder in clips latents; do diff <(whole "$one/$folder") <(whole "$made/$folder"); done
    for folder in clips latents; do diff <(records "$one/$folder.jsonl") <(records "$made/$folder.jsonl"); done
    rm -r "$made"
  done
  [ "$(jq -s 'length' "$one/clips/duplicates.jsonl")" -gt 100 ]
  [ "$(jq -s 'length' "$one/clips/errors.jsonl")" -gt 50 ]
  [ "$(records "$one/clips.jsonl" | jq -s 'map(.samples // 0) | add')" -gt 2500 ]
}
