#!/usr/bin/env bats
# vfm-clip's ledger: sources that did not change are not read again.
# SPDX-License-Identifier: Apache-2.0
load media

setup_file() {
  media_folder
  make_video large.mp4 0.7
  make_video small.mp4 0.8
  # A box of nothing: enough bytes that remembering them pays.
  printf '\004\0\0\010free' >>large.mp4
  truncate -s +64MiB large.mp4
  sleep 2.1
  PATH="$VFM_BIN:$PATH" vfm-clip -o noted "$MEDIA/large.mp4" >noted.jsonl
  [ -e noted/.vfm-clip.ledger ]
}

# read_of SOURCE...: how many sources are read by a run, in the file said what it says.
read_of() {
  vfm-clip -v -o "$BATS_TEST_TMPDIR/clips" "$@" >"$BATS_TEST_TMPDIR/made.jsonl" 2>"$BATS_TEST_TMPDIR/said" || return
  sed -n "s/^vfm-clip: sources: \([0-9]*\) read, [0-9]* known by the ledger$/\1/p" "$BATS_TEST_TMPDIR/said"
}
# path_in MANIFEST: where the shard is, from its folder on.
path_in() { basename "$(records "$1" | jq -r .path)"; }

@test "a source that did not change is not read again" {
  cp -rL noted clips
  [ "$(read_of "$MEDIA/large.mp4")" -eq 0 ]
  diff -r -x .vfm-clip.ledger noted clips
  diff <(records noted.jsonl | sed "s|\"noted|\"$PWD/clips|g") <(records made.jsonl)
  # Named from another folder, and by another way.
  [ "$(cd "$MEDIA" && read_of large.mp4)" -eq 0 ]
  [ "$(read_of large.mp4)" -eq 1 ]
}

# bats test_tags=night
@test "a source that changed is read, though size and time of change are the same" {
  local before
  cp -rL noted clips
  cp "$MEDIA/large.mp4" mine.mp4
  sleep 2.1
  [ "$(read_of mine.mp4)" -eq 1 ]
  [ "$(read_of mine.mp4)" -eq 0 ]
  before=$(stat -c '%s %y' mine.mp4)
  touch -r mine.mp4 then
  printf x | dd of=mine.mp4 bs=1 seek=$(($(stat -c %s mine.mp4) - 1)) conv=notrunc status=none
  touch -r then mine.mp4
  [ "$(stat -c '%s %y' mine.mp4)" = "$before" ]
  [ "$(read_of mine.mp4)" -eq 1 ]
  [ "$(path_in made.jsonl)" != "$(path_in noted.jsonl)" ]
  # By renaming.
  cp "$MEDIA/large.mp4" other.mp4
  touch -r then other.mp4
  mv other.mp4 mine.mp4
  [ "$(read_of mine.mp4)" -eq 1 ]
  [ "$(path_in made.jsonl)" = "$(path_in noted.jsonl)" ]
}

@test "a damaged ledger is told of once, not believed and made anew" {
  cp -rL noted clips
  head -c 5000 /dev/urandom >clips/.vfm-clip.ledger
  [ "$(read_of "$MEDIA/large.mp4")" -eq 1 ]
  [ "$(grep -c "clips/.vfm-clip.ledger' is damaged" said)" -eq 1 ]
  [ "$(read_of "$MEDIA/large.mp4")" -eq 0 ]
  run ! grep damaged said
  # A folder of few small sources has none.
  rm -rf clips
  vfm-clip -o clips small.mp4 >/dev/null
  [ ! -e clips/.vfm-clip.ledger ]
}

@test "runs of one video each into one folder are told of what the others gave with -v alone" {
  local i
  for i in 1 2 3 4; do
    { cat small.mp4; printf '\0\0\0\014free000%s' $i; } >v$i.mp4
    vfm-clip -o clips v$i.mp4 2>>said >/dev/null
  done
  [ ! -s said ]
  vfm-clip -v -o clips v4.mp4 2>&1 >/dev/null | grep "'clips' holds the output of 3 sources that the input does not name$"
  # No index is opened for that: those of others may be anything.
  for i in clips/*.json; do echo >"$i"; done
  vfm-clip -v -o clips v1.mp4 2>&1 >/dev/null | grep -q "'clips' holds the output of 3 sources that the input does not name"
  run ! grep "that the input does not name" <(vfm-clip -v -o clips v?.mp4 2>&1 >/dev/null)
}
