# Three clips and shards of them, for tests of vfm-caption with what is beside a clip.
# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

# Three clips of 1 s, made once: c1 (red square on grey), c2 (test picture), c3 (black).
setup_file() {
  export CLIPS="$BATS_FILE_TMPDIR/clips"
  mkdir "$CLIPS"
  clip c1 "color=gray:size=64x64:rate=8,drawbox=x=8:y=8:w=24:h=24:color=red:t=fill"
  clip c2 "testsrc2=size=64x48:rate=8"
  clip c3 "color=black:size=64x64:rate=8"
}

clip() { make_video "$CLIPS/$1.mp4" 1 "$2"; }

# make_shard NAME [SOURCE]: NAME.tar with the three clips, seconds 0-1, 1-2, 2-3 of SOURCE.
make_shard() {
  local dir="src-$1" n=0 key
  mkdir "$dir"
  for key in c1 c2 c3; do
    cp "$CLIPS/$key.mp4" "$dir/$1$key.mp4"
    printf '{"key":"%s","media":"video","source":"%s","begin":%d,"end":%d,"seconds":1}' \
      "$1$key" "${2:-v.mp4}" "$n" "$((n + 1))" >"$dir/$1$key.json"
    n=$((n + 1))
  done
  tar --format=ustar --sort=name -C "$dir" -cf "$1.tar" .
}
member() { tar -xOf "$1" "$2"; }
source_of() { member "$1" "$2.json" | sed 's/.*"caption_source":"\([^"]*\)".*/\1/'; }
