#!/usr/bin/env bats
# vfm-clip where sources were taken away: what is left over in the folder is told, and --prune removes it.
# SPDX-License-Identifier: Apache-2.0
load media

setup_file() {
  media_folder
  make_video plain.mp4 1
  quiet_ffmpeg -f lavfi -i testsrc2=size=50x70 -frames:v 1 b.png
  quiet_ffmpeg -f lavfi -i testsrc2=size=60x70 -frames:v 1 c.png
  cc -shared -fPIC -o on-open.so "$BATS_TEST_DIRNAME/../on-open.c"
  export PATH="$VFM_BIN:$PATH"
  local format
  for format in shards files; do
    mkdir -p $format/fresh $format/long
    ln -s ../b.png ../c.png ../plain.mp4 ../shots.mp4 $format
    (cd $format/fresh && cut $format ../b.png ../plain.mp4)
    (cd $format/long && cut $format ../b.png ../plain.mp4 ../shots.mp4 ../c.png)
    run ! diff -r $format/fresh/clips $format/long/clips
  done
}

# cut FORMAT SOURCE...: clips in the current folder's clips, with their columns.
cut() {
  local format=$1
  shift
  vfm-clip --into "$format" --shard-size 9000 -o clips "$@" | vfm-caption | vfm-embed >manifest
}
# prune FORMAT SOURCE...: the same without columns, with what it says in the file said.
prune() {
  local format=$1
  shift
  vfm-clip --into "$format" --shard-size 9000 -o clips --prune "$@" >manifest 2>said
}
# two_folders FORMAT: clips of the same name in two folders: in fresh of b.png and plain.mp4 alone, in long also of what
# goes, shots.mp4 and c.png.
two_folders() {
  rm -rf fresh long
  cp -r "$MEDIA/$1/fresh" "$MEDIA/$1/long" .
}

@test "what is of sources that are gone is told, and --prune removes it with its columns" {
  local format
  for format in shards files; do
    two_folders $format
    cd long
    cp -r clips before
    # Renamed is not gone.
    cp ../plain.mp4 renamed.mp4
    prune $format ../b.png renamed.mp4 ../shots.mp4 ../c.png
    [ ! -s said ]
    diff -r before clips
    run --separate-stderr vfm-clip -v --into $format --shard-size 9000 -o clips ../b.png ../plain.mp4
    [ "$status" -eq 0 ]
    grep "^vfm-clip: 'clips' holds the output of 2 sources that the input does not name$" <<<"$stderr"
    diff -r before clips
    # Somebody's own files, of such names too, stay.
    mkdir clips/more.tar
    echo '{"a":1}' | tee clips/0123456789abcdef.json clips/.0123456789abcdef.settings clips/notes.txt >clips/more.tar/x.json
    prune $format ../b.png ../plain.mp4 -v
    grep -q "^vfm-clip: removed from 'clips' the output of 2 sources that the input does not name$" said
    [ "$(grep -c 'is not of this input: [.][.]/shots.mp4$' said)" -eq 1 ]
    [ "$(grep -c 'is not of this input: pictures$' said)" -eq 1 ]
    cmp <(echo '{"a":1}') clips/.0123456789abcdef.settings
    rm -r clips/more.tar clips/notes.txt clips/0123456789abcdef.json clips/.0123456789abcdef.settings
    diff -r ../fresh/clips clips
    prune $format ../b.png ../plain.mp4
    [ ! -s said ]
    cd ..
  done
}

# bats test_tags=night
@test "--prune leaves a picture that is in another batch now, and what the input names itself" {
  local names
  for names in "" --readable-names; do
    rm -rf clips fresh
    vfm-clip --into files $names -o fresh b.png >/dev/null
    vfm-clip --into files $names -o clips b.png c.png >made.jsonl
    fails 1 vfm-clip --into files $names -o clips --prune made.jsonl plain.mp4
    grep -q -- "--prune removed nothing: 'clips/.*[.]files' is in the input, and not its source" err
    (cd clips && jq -r '.samples[] | .key + "." + .files[].extension' "$(basename "$(records ../made.jsonl | jq -r .path)")" | xargs ls >/dev/null)
    vfm-clip --into files $names -o clips --prune b.png >/dev/null
    rm -f clips/errors.jsonl
    diff -r fresh clips
  done
}

@test "--prune killed before any of its removals goes on, and no list names what is gone" {
  local format at status list moments=(3 20 1000)
  ! at_night || moments=(1 2 3 20 40 1000)
  for format in shards files; do
    two_folders $format
    cd long
    for at in "${moments[@]}"; do
      status=0
      ON_UNLINK=clips/ ON_OPEN_AT=$at ON_OPEN_DO='kill -KILL $PPID' LD_PRELOAD="$PWD/../on-open.so" \
        prune $format ../b.png ../plain.mp4 || status=$?
      for list in clips/????????????????.json; do
        [ ! -e "$list" ] || jq -r '.shards[].name' "$list" | (cd clips && xargs -r ls >/dev/null)
      done
      for list in clips/????????????????.files; do
        [ ! -e "$list" ] || jq -r '.samples[] | .key + "." + .files[].extension' "$list" | (cd clips && xargs -r ls >/dev/null)
      done
      # Half removed, a source that comes back is whole again.
      if [ $at = 20 ]; then
        cp -r clips half
        vfm-clip --into $format --shard-size 9000 -o half ../b.png ../plain.mp4 ../shots.mp4 ../c.png >/dev/null
        for list in $(cd "$MEDIA/$format/long/clips" && ls | grep -v -e caption -e embed); do
          cmp "$MEDIA/$format/long/clips/$list" "half/$list"
        done
      fi
      [ "$status" = $((at == 1000 ? 0 : 137)) ]
    done
    diff -r ../fresh/clips clips
    cd ..
  done
}

@test "--prune also removes what killed runs left of sources that are gone" {
  local format what
  for format in shards files; do
    two_folders $format
    cd long
    # Killed as it writes the second shard, or the second clip.
    case $format in
      shards) what=-00001.tar ;;
      files) what=.$(jq -r 'select(.source == "../shots.mp4") | .samples[1].key' clips/*.files).mp4 ;;
    esac
    ON_OPEN=$what ON_OPEN_AT=1 ON_OPEN_DO='kill -KILL $PPID' LD_PRELOAD="$PWD/../on-open.so" \
      vfm-clip --into $format --shard-size 9000 -o clips --force ../shots.mp4 2>/dev/null >killed || true
    [ -z "$(records killed)" ]
    [ "$(find clips -name '.*' -type f | wc -l)" -gt 1 ]
    prune $format ../b.png ../plain.mp4
    diff -r ../fresh/clips clips
    cd ..
  done
}

@test "--prune removes nothing where the input is not whole, and nothing that is not as it was written" {
  two_folders files
  cd long
  cp "$MEDIA/files/long/manifest" .
  refused() { # MESSAGE SOURCE...: all is as it was, but the list of errors
    local message=$1 before
    shift
    before=$(find clips -type f ! -name errors.jsonl -printf '%p %s %T@\n' | sort)
    fails 1 vfm-clip --into files --shard-size 9000 -o clips --prune "$@"
    cat err
    grep -qF -- "$message" err
    diff <(echo "$before") <(find clips -type f ! -name errors.jsonl -printf "%p %s %T@\n" | sort)
  }
  refused "--prune removed nothing: '../missing.mp4' was not read" ../b.png ../plain.mp4 ../missing.mp4
  refused "--prune removed nothing: 'missing.jsonl'" ../b.png ../plain.mp4 missing.jsonl
  cp manifest none.jsonl
  refused "the input names no source" none.jsonl
  refused "no videos in the input" - </dev/null
  head -n 1 manifest >partly.jsonl
  echo '{"kind":"video","path":"../plain.mp4"}' >>partly.jsonl
  refused "--prune removed nothing" partly.jsonl
  printf '../plain.mp4,0,1\n' >spans.csv
  cp -r clips spans
  fails 1 vfm-clip --into files -o spans --prune ../plain.mp4 ../shots.mp4 --spans spans.csv
  grep -q "spans: --prune removed nothing: '../shots.mp4' was not read" err
  [ -e "spans/$(basename "$(grep -l shots.mp4 clips/*.files)")" ]
  # Another program is making these clips.
  local list
  list=$(grep -l shots.mp4 clips/*.files)
  exec 8>"clips/.${list#clips/}.tmp"
  flock 8
  fails 1 vfm-clip --into files --shard-size 9000 -o clips --prune ../b.png ../plain.mp4 ../c.png
  grep -q "is left: .*is being written by another program" err
  exec 8>&-
  rm "clips/.${list#clips/}.tmp"
  [ -e "$list" ]
  # Somebody has changed a clip, or put a link there.
  local clip
  clip=$(jq -r '.samples[1].key + ".mp4"' "$list")
  cp "clips/$clip" keep
  echo more >>"clips/$clip"
  refused "is not the file that vfm-clip wrote there" ../b.png ../plain.mp4 ../c.png
  ln -sf ../keep "clips/$clip"
  refused "is not the file that vfm-clip wrote there" ../b.png ../plain.mp4 ../c.png
  mv keep "clips/$clip"
  vfm-clip --into files --shard-size 9000 -o clips --prune ../b.png ../plain.mp4 >/dev/null
  diff -r ../fresh/clips clips
}
