# Small clips, shards of them and what tells their latents, for tests of vfm-pack.
# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

# Once: small clips, and the .npy of a text embedding of 2 tokens of width 4.
setup_file() {
  export CLIPS="$BATS_FILE_TMPDIR/clips"
  mkdir "$CLIPS"
  clip test "testsrc2=size=96x64:rate=12" 2
  clip red "color=red:size=64x64:rate=12" 2
  clip short "testsrc2=size=64x96:rate=12" 0.75
  clip tiny "testsrc2=size=64x64:rate=12" 0.25
  quiet_ffmpeg -f lavfi -i "testsrc2=size=100x50" -frames:v 1 "$CLIPS/pic.png"
  { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 4), }"
    printf '\x00\x3c%.0s' 1 2 3 4 5 6 7 8; } >"$CLIPS/text.npy"
}

clip() { make_video "$CLIPS/$1.mp4" "$3" "$2"; }

# make_shard NAME KEY=CLIP...: NAME.tar as vfm-shard writes it; a clip is a file of $CLIPS.
make_shard() {
  local name=$1 spec key clip
  shift
  mkdir -p "$name.d"
  for spec in "$@"; do
    IFS='=' read -r key clip <<<"$spec"
    cp "$CLIPS/$clip" "$name.d/$key.${clip##*.}"
    printf '{"key":"%s","source":"%s","caption":"the clip %s","text_encoder":{"name":"builtin:hash","dim":4}}' \
      "$key" "$clip" "$clip" >"$name.d/$key.json"
    cp "$CLIPS/text.npy" "$name.d/$key.text.npy"
  done
  tar --format=ustar --sort=name -C "$name.d" -cf "$name.tar" .
}
record() { printf '{"kind":"shard","path":"%s","split":"%s"}\n' "$1" "$2"; }
pack() { vfm-pack --size 64 "$@"; }

# npy FILE MEMBER: the header of an npy member.
npy() { tar -xOf "$1" "$2" | tr -d '\0' | head -1 | grep -ao '{.*}'; }

# field NAME: values of a JSON member, line by line.
field() { grep -o "\"$1\":[^,}]*" | cut -d: -f2; }
