#!/usr/bin/env bats
# vfm-clip --into joined: small videos that share shards.
# SPDX-License-Identifier: Apache-2.0
load media

setup_file() {
  media_folder
  local i
  make_video plain.mp4 0.7
  # Nine sources that differ in a box that no reader looks at, and one with three shots among them.
  for i in 1 2 3 4 5 6 7 8 9; do
    { cat plain.mp4; printf '\0\0\0\014free000%s' $i; } >v$i.mp4
  done
  mv shots.mp4 v5.mp4
  rm plain.mp4
  cc -shared -fPIC -o on-open.so "$BATS_TEST_DIRNAME/../on-open.c"
  PATH="$VFM_BIN:$PATH" vfm-clip --into joined -o fresh v?.mp4 >fresh.jsonl
}

# samples DIR: name and hash of each file that the shards hold, in order of names.
samples() {
  local tar
  for tar in "$1"/*.tar; do
    tar -xf "$tar" --to-command='echo "$TAR_FILENAME $(sha256sum)"'
  done | LC_ALL=C sort
}
# join OPTION...: of all sources into clips; what it says with -v in the file said.
join() { vfm-clip --into joined -v -o clips "$@" >made.jsonl 2>said; }

@test "small videos share shards, with the samples that they have in shards of their own" {
  vfm-clip --into apart -o own v?.mp4 >own.jsonl
  [ "$(ls own/*.tar | wc -l)" -eq 9 ]
  [ "$(ls fresh/*.tar | wc -l)" -eq 1 ]
  diff <(samples own) <(samples fresh)
  # In the order of the input.
  tar -xOf fresh/joined-*-00000.tar --wildcards '*.json' | jq -r .source | uniq | diff <(ls v?.mp4) -
  records fresh.jsonl | jq -e '.samples == 11 and .path == .columns.clip and .sources[4] == "v5.mp4"' >/dev/null
  jq -e '.kind == "joined" and .clips == 11 and .sources[4].clips == 3 and (.sources[4].cuts | length) == 2' fresh/joined-*.json
  [ "$(find fresh/ -type f | wc -l)" -eq 4 ]
  # What is not many has shards of its own.
  vfm-clip -o clips v?.mp4 >made.jsonl
  diff -r own clips
  # The others take what the manifest says.
  echo 'a caption of its own' >v3.txt
  cp -rL fresh mine
  sed 's/"fresh/"mine/g' fresh.jsonl >mine.jsonl
  without_folder mine.jsonl
  vfm-caption mine.jsonl | vfm-embed | vfm-shard -o dataset --keep-duplicates >dataset.jsonl
  [ "$(records dataset.jsonl | jq -s 'map(.samples) | add')" -eq 11 ]
  find dataset -name '*.tar' -exec tar -xOf {} --wildcards '*.txt' \; | grep -q 'a caption of its own'
}

@test "joined shards have the same bytes at any -j, and a second run changes nothing" {
  local j before
  for j in 1 4; do
    rm -rf clips
    join -j$j v?.mp4
    diff -r fresh clips
    sed 's/"clips/"fresh/g' made.jsonl | diff <(records fresh.jsonl) <(records -)
  done
  before=$(find clips -type f -printf '%p %i %T@\n' | sort)
  cp made.jsonl first.jsonl
  join v?.mp4
  [ "$before" = "$(find clips -type f -printf '%p %i %T@\n' | sort)" ]
  diff <(records first.jsonl) <(records made.jsonl)
  run ! grep -e 'cut, for' -e 'copied into' said
  # Two programs at once.
  rm -rf clips
  vfm-clip --into joined -o clips v?.mp4 >other.jsonl 3>&- &
  join v?.mp4
  wait $!
  diff -r fresh clips
  diff <(records other.jsonl) <(records made.jsonl)
}

# bats test_tags=night
@test "the shards of a batch are bounded, and their bytes are those of any -j" {
  local options=(--shard-size 180KiB --scale 192x-2 --quality 0)
  vfm-clip "${options[@]}" --into joined -j1 -o one v?.mp4 >/dev/null
  vfm-clip "${options[@]}" --into joined -j3 -o three v?.mp4 >/dev/null
  diff -r one three
  [ "$(ls one/joined-*.tar | wc -l)" -gt "$(ls one/joined-*.json | wc -l)" ]
  [ -z "$(find one -name '*.tar' -size +180k)" ]
  vfm-clip "${options[@]}" --into apart -o own v?.mp4 >/dev/null
  diff <(samples own) <(samples one)
}

@test "killed at any moment, it goes on with what was cut, and ends with the same bytes" {
  local at moments=(6 14 30 40 44)
  ! at_night || mapfile -t moments < <(seq 1 60)
  for at in "${moments[@]}"; do
    rm -rf clips
    ON_OPEN=clips ON_OPEN_AT=$at ON_OPEN_DO='kill -KILL $PPID' LD_PRELOAD="$PWD/on-open.so" \
      vfm-clip --into joined -j1 -o clips v?.mp4 >killed.jsonl 2>/dev/null || true
    join v?.mp4
    diff -r fresh clips
  done
  # Killed by the source that it reads: five were cut by then.
  rm -rf clips
  ON_OPEN=v6.mp4 ON_OPEN_AT=2 ON_OPEN_DO='kill -KILL $PPID' LD_PRELOAD="$PWD/on-open.so" \
    vfm-clip --into joined -j1 -o clips v?.mp4 >killed.jsonl 2>/dev/null || true
  [ -z "$(records killed.jsonl)" ]
  [ -e clips/.joined-*.parts ]
  join v?.mp4
  [ "$(grep -c 'cut, for' said)" -eq 4 ]
  diff -r fresh clips
  # It is of nobody's input, and goes.
  rm -rf clips
  ON_OPEN=v6.mp4 ON_OPEN_AT=2 ON_OPEN_DO='kill -KILL $PPID' LD_PRELOAD="$PWD/on-open.so" \
    vfm-clip --into joined -j1 -o clips v?.mp4 >killed.jsonl 2>/dev/null || true
  join --prune v1.mp4
  [ -z "$(find clips -name '.*' -type f)" ]
}

@test "a video comes or goes: the others are copied, and --prune removes what was" {
  local rest
  rest=$(ls v?.mp4 | grep -v v4)
  # shellcheck disable=SC2086
  vfm-clip --into joined -o less $rest >/dev/null
  cp -rL fresh clips
  vfm-caption clips/*.tar | vfm-embed >/dev/null
  # shellcheck disable=SC2086
  join --prune $rest
  [ "$(grep -c 'copied into' said)" -eq 8 ]
  run ! grep 'cut, for' said
  grep -q "the output of 1 source that the input does not name" said
  diff -r less clips
  join --prune v?.mp4
  [ "$(grep -c 'copied into' said)" -eq 8 ]
  [ "$(grep -c 'cut, for' said)" -eq 1 ]
  diff -r fresh clips
  # From shards of their own.
  rm -rf clips
  vfm-clip --into apart -o clips v?.mp4 >/dev/null
  join --prune v?.mp4
  [ "$(grep -c 'copied into' said)" -eq 9 ]
  diff -r fresh clips
  # Not what is damaged, nor what was made otherwise.
  printf x | dd of=$(ls clips/joined-*.tar) bs=1 seek=2000 conv=notrunc status=none
  # shellcheck disable=SC2086
  join --prune $rest
  [ "$(grep -c 'cut, for' said)" -eq 8 ]
  diff -r less clips
  join --prune --quality 30 v1.mp4 v2.mp4
  [ "$(grep -c 'cut, for' said)" -eq 2 ]
}

@test "a video that cannot be used costs itself alone, and is tried again" {
  local before
  rm v4.mp4
  head -c 700 v5.mp4 >v4.mp4
  fails 1 vfm-clip --into joined -o clips v?.mp4
  grep -q 'v4.mp4' clips/errors.jsonl
  [ "$(wc -l <clips/errors.jsonl)" -eq 1 ]
  [ "$(records out.txt | jq .samples)" -eq 10 ]
  before=$(find clips -name 'joined*' -printf '%p %i %T@\n' | sort)
  cp clips/errors.jsonl first
  fails 1 vfm-clip --into joined -o clips v?.mp4
  [ "$before" = "$(find clips -name 'joined*' -printf '%p %i %T@\n' | sort)" ]
  [ -z "$(find clips -name '.*' -type f)" ]
  cmp first clips/errors.jsonl
  # One that was not to be read for a moment.
  rm -rf clips v4.mp4
  cp "$MEDIA/v4.mp4" there.mp4
  cp there.mp4 v4.mp4
  ON_OPEN=v4.mp4 ON_OPEN_AT=2 ON_OPEN_DO='rm v4.mp4' LD_PRELOAD="$PWD/on-open.so" \
    fails 1 vfm-clip --into joined -j1 -o clips v?.mp4
  grep -q 'v4.mp4.*No such file' clips/errors.jsonl
  cp there.mp4 v4.mp4
  join v?.mp4
  [ "$(grep -c 'cut, for' said)" -eq 1 ]
  diff -r fresh clips
}

@test "joined: spans, readable names, a report; and what cannot be" {
  printf 'source,begin,end\nv1.mp4,0,0.3\nv5.mp4,1,2\nv5.mp4,2,3\n' >spans.csv
  vfm-clip --into apart -o own --readable-names --spans spans.csv v1.mp4 v5.mp4 >/dev/null
  vfm-clip --into joined -o clips --readable-names --spans spans.csv v1.mp4 v5.mp4 --report page.html >/dev/null
  [ "$(samples clips | wc -l)" -eq 6 ]
  diff <(samples own) <(samples clips)
  grep -q 'v1.mp4' page.html
  grep -q 'v5.mp4' page.html
  # Other spans of one of them: the other one is copied.
  sed -i 's/,0.3/,0.4/' spans.csv
  join --readable-names --spans spans.csv v1.mp4 v5.mp4
  [ "$(samples clips | wc -l)" -eq 6 ]
  [ ! -e files ]
}
