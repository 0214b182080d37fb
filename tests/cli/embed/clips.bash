# Clips, shards of them and what tells their vectors, for tests of vfm-embed and its verbs.
# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

# Once: clips of 1 s, and the same with other size, rate and quality.
setup_file() {
  export CLIPS="$BATS_FILE_TMPDIR/clips"
  mkdir "$CLIPS"
  clip red "color=gray:size=96x96:rate=8,drawbox=x=8:y=8:w=30:h=30:color=red:t=fill"
  clip blue "color=gray:size=96x96:rate=8,drawbox=x=50:y=50:w=30:h=30:color=blue:t=fill"
  clip test "testsrc2=size=96x64:rate=8"
  quiet_ffmpeg -i "$CLIPS/test.mp4" -vf "scale=48:32" -c:v libx264 -crf 30 -preset ultrafast "$CLIPS/smaller.mp4"
}

clip() { make_video "$CLIPS/$1.mp4" 1 "$2"; }

# make_shard NAME [KEY=CLIP=CAPTION...]: NAME.tar and, if there are captions, NAME.caption.tar.
make_shard() {
  local name=$1 key clip text
  shift
  mkdir -p "$name.d/clip" "$name.d/caption"
  for spec in "$@"; do
    IFS='=' read -r key clip text <<<"$spec"
    cp "$CLIPS/$clip.mp4" "$name.d/clip/$key.mp4"
    printf '{"key":"%s","source":"%s.mp4"}' "$key" "$clip" >"$name.d/clip/$key.json"
    printf '%s' "$text" >"$name.d/caption/$key.txt"
    printf '{"caption":"%s"}' "$text" >"$name.d/caption/$key.json"
  done
  tar --format=ustar --sort=name -C "$name.d/clip" -cf "$name.tar" .
  tar --format=ustar --sort=name -C "$name.d/caption" -cf "$name.caption.tar" .
}
three() { make_shard "$1" "$1r=red=a red square" "$1s=blue=a blue square" "$1t=test=a test picture"; }

# npy FILE MEMBER: the header of an npy member.
npy() { tar -xOf "$1" "$2" | tr -d '\0' | head -1 | grep -ao '{.*}'; }
keys() { sed 's/.*"key":"\([^"]*\)".*/\1/' | tr '\n' ' '; }
