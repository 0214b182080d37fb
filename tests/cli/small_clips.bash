# Two clips, of 36 and 8 frames, and a picture, for models that see: made once a file of tests, in $CLIPS.
# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
make_small_clips() {
  export CLIPS="$BATS_FILE_TMPDIR/clips"
  mkdir "$CLIPS"
  small_clip c1 "testsrc2=size=64x48:rate=12" 3
  small_clip c2 "color=gray:size=40x64:rate=8,drawbox=x=8:y=8:w=24:h=24:color=red:t=fill" 1
  quiet_ffmpeg -f lavfi -i "mandelbrot=size=48x48" -frames:v 1 "$CLIPS/c3.png"
}

# small_clip NAME SOURCE SECONDS
small_clip() {
  quiet_ffmpeg -f lavfi -i "$2" -t "$3" -c:v libx264 -preset ultrafast -pix_fmt yuv420p "$CLIPS/$1.mp4"
}

# member TAR NAME; field TAR KEY FILTER: of the sample's json.
member() { tar -xOf "$1" "$2"; }
field() { member "$1" "$2.json" | jq -r "$3"; }

# refused_first MESSAGE COMMAND ARG...: the command, with a.tar, exits with 2 before any work.
refused_first() {
  run --separate-stderr "${@:2}" a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"$1"* ]]
  [ ! -e a.caption.tar ]
}

# pack_clips NAME: NAME.tar of what is in src-NAME.
pack_clips() {
  tar --format=ustar --sort=name --mtime=@0 --owner=0 --group=0 -C "src-$1" -cf "$1.tar" .
}

# clip_shard NAME KEY[=CAPTION]...: NAME.tar of those clips and pictures, with the captions of those that have one.
clip_shard() {
  local one key
  mkdir "src-$1"
  for one in "${@:2}"; do
    key=${one%%=*}
    cp "$CLIPS/$key".* "src-$1/"
    [ "$key" = "$one" ] || printf %s "${one#*=}" >"src-$1/$key.txt"
  done
  pack_clips "$1"
}
