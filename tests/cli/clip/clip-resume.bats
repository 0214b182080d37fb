#!/usr/bin/env bats
# vfm-clip: the same bytes again, after a kill or a full disk, and several programs in one folder.
# SPDX-License-Identifier: Apache-2.0
load media
load kinds

setup_file() {
  media_folder
  make_kinds plain.mp4 gop.mp4 short-gop.ts vfr.mkv odd.mp4 ten.mkv one.mp4 a.jpg b.png c.png truncated.mp4
}

@test "a finished video is not read again, other options make it again" {
  vfm-clip shots.mp4 -o out >first
  local before
  before=$(stat -c '%Y %i' out/*.tar)
  sleep 1.1
  vfm-clip shots.mp4 -o out >second
  cmp first second
  [ "$(stat -c '%Y %i' out/*.tar)" = "$before" ]
  vfm-clip shots.mp4 -o out --quality 40 >third
  run ! cmp -s first third
  vfm-clip shots.mp4 -o out --quality 40 --force >fourth
  cmp third fourth
  vfm-clip shots.mp4 -o out --shard-size 9000 >/dev/null
  vfm-clip shots.mp4 -o out >fifth
  cmp first fifth
  [ "$(find out -name '*.tar' | wc -l)" -eq 1 ]
}

@test "-j1 and -j4 give the same bytes" {
  local inputs=(shots.mp4 gop.mp4 truncated.mp4 vfr.mkv b.png c.png a.jpg odd.mp4 ten.mkv shots.mp4)
  run --separate-stderr vfm-clip "${inputs[@]}" -o out -j1
  [ "$status" -eq 1 ]
  local first=$output
  mv out one
  run --separate-stderr vfm-clip "${inputs[@]}" -o out -j4
  [ "$output" = "$first" ]
  [ "$(tree_hash out)" = "$(tree_hash one)" ]
}

@test "killed anywhere and run again: the same bytes" {
  local inputs=(shots.mp4 vfr.mkv odd.mp4 ten.mkv short-gop.ts b.png)
  vfm-clip "${inputs[@]}" -o whole --shard-size 9000 -j1 >whole.jsonl
  local sleeping
  for sleeping in 0.02 0.05 0.1 0.15 0.25; do
    setsid vfm-clip "${inputs[@]}" -o out --shard-size 9000 -j2 >/dev/null 2>&1 3>&- &
    local pid=$!
    sleep $sleeping
    kill -KILL -- "-$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  vfm-clip "${inputs[@]}" -o out --shard-size 9000 -j1 >out.jsonl
  [ "$(tree_hash out)" = "$(tree_hash whole)" ]
  diff <(records out.jsonl | sed 's/out\///g') <(records whole.jsonl | sed 's/whole\///g')
}

@test "what a run leaves that is killed as it ends is removed by the next one" {
  local name
  vfm-clip shots.mp4 -o shards
  vfm-clip shots.mp4 -o files --into files
  name=$(basename shards/*.json .json)
  cp -r shards whole-shards
  cp -r files whole-files
  # The last thing that a run does is to remove these.
  echo '{}' >"shards/.$name.settings"
  echo '{}' >"files/.$name.journal"
  vfm-clip shots.mp4 -o shards
  vfm-clip shots.mp4 -o files --into files
  [ "$(tree_hash shards)" = "$(tree_hash whole-shards)" ]
  [ "$(tree_hash files)" = "$(tree_hash whole-files)" ]
}

# note_settings DIR NAME: what a run with the settings of whole/NAME.json notes in DIR until it is done.
note_settings() {
  python3 - "whole/$2.json" "$1/.$2.settings" <<'END' || skip "no python3"
import json, sys
settings = json.load(open(sys.argv[1]))["settings"]
open(sys.argv[2], "w").write(json.dumps(settings, separators=(",", ":")) + "\n")
END
}

@test "whole shards of a killed run are kept" {
  vfm-clip shots.mp4 -o whole --shard-size 9000 >/dev/null
  cp -r whole out
  # As a kill after the second shard leaves it.
  local name
  name=$(basename out/*.json .json)
  note_settings out "$name"
  rm "out/$name.json" out/"$name"-00002*
  local before
  before=$(stat -c %i out/"$name"-00000.tar)
  vfm-clip shots.mp4 -o out --shard-size 9000 >/dev/null
  [ "$(stat -c %i out/"$name"-00000.tar)" = "$before" ]
  [ "$(tree_hash out)" = "$(tree_hash whole)" ]
}

# bats test_tags=night
@test "whole shards of a killed run that hold other clips are not kept" {
  vfm-clip shots.mp4 -o whole --shard-size 9000 >/dev/null
  local name stride
  name=$(basename whole/*.json .json)
  for stride in 0.6s 0.9s; do
    rm -rf out
    vfm-clip shots.mp4 -o out --shard-size 9000 --stride "$stride" >/dev/null
    note_settings out "$name"
    rm "out/$name.json"
    vfm-clip shots.mp4 -o out --shard-size 9000 >/dev/null
    [ "$(tree_hash out)" = "$(tree_hash whole)" ]
  done
}

@test "a full disk ends with an error and nothing half written" {
  mkdir small
  mount -t tmpfs -o size=24k tmpfs small 2>/dev/null || skip "cannot mount"
  run --separate-stderr vfm-clip shots.mp4 plain.mp4 -o small/out
  local files
  files=$(find small -name '*.tar' -o -name '*.tmp')
  umount small
  [ "$status" -eq 1 ]
  [[ "$stderr" = *"No space left on device"* ]]
  [[ "$files" != *.tmp ]]
}

@test "a closed pipe ends the run" {
  # shellcheck disable=SC2016
  run --separate-stderr bash -c 'vfm-clip shots.mp4 vfr.mkv odd.mp4 -o out -j1 | true; exit "${PIPESTATUS[0]}"'
  [ "$status" -ne 0 ]
  # What was being written when the pipe closed is taken up by the next run.
  vfm-clip shots.mp4 vfr.mkv odd.mp4 -o out -j1 >m.jsonl
  [ "$(records m.jsonl | wc -l)" -eq 3 ]
  [ -z "$(find out -name '.*.tmp')" ]
}

@test "two at once in one folder: each source is cut by one, both report all, and nothing is torn" {
  vfm-clip shots.mp4 gop.mp4 ten.mkv a.jpg -o whole >whole.out
  for _ in 1 2 3; do
    rm -rf both
    vfm-clip shots.mp4 gop.mp4 ten.mkv a.jpg -o both -j2 >one 2>one.err 3>&- &
    vfm-clip ten.mkv gop.mp4 shots.mp4 a.jpg -o both -j2 >two 2>two.err
    wait $!
    [ "$(tree_hash both)" = "$(tree_hash whole)" ]
    for said in one two; do
      diff <(records $said | sed 's/both/whole/g' | sort) <(records whole.out | sort)
      run ! grep -v "another program is writing .*; waiting for it" $said.err
    done
  done
}

# bats test_tags=night
@test "what another program makes is waited for and taken, or made if that one dies" {
  local format name
  for format in shards files; do
    vfm-clip --into $format shots.mp4 -o whole-$format >whole.out
    case $format in
      shards) name=$(basename whole-shards/*.json) ;;
      files) name=$(basename whole-files/*.files) ;;
    esac
    # It dies.
    other_program dies-$format/$name
    waits_for dies-$format/$name vfm-clip --into $format shots.mp4 -o dies-$format
    [ -z "$(find dies-$format -name '*.tar' -o -name '*.mp4')" ]
    let_go
    wait $waiting
    [ "$(tree_hash dies-$format)" = "$(tree_hash whole-$format)" ]
    # It comes to its end.
    other_program done-$format/$name
    waits_for done-$format/$name vfm-clip --into $format shots.mp4 -o done-$format
    cp -p whole-$format/* done-$format
    find done-$format -type f ! -name '.*' -printf '%p %i\n' | sort >before
    let_go
    wait $waiting
    find done-$format -type f -printf '%p %i\n' | sort | diff before -
    [ "$(tree_hash done-$format)" = "$(tree_hash whole-$format)" ]
    diff <(records waiting.out | sed "s/done-/whole-/g") <(records whole.out)
  done
}

@test "errors of a run that ends while another one works in the folder are not lost" {
  mkfifo names
  vfm-clip - -o out <names >first 2>/dev/null 3>&- &
  local first=$!
  exec 7>names
  echo one.mp4 >&7
  until [ -n "$(records first)" ]; do sleep 0.02; done
  run vfm-clip plain.mp4 missing.mp4 -o out
  [ "$status" -eq 1 ]
  echo gone.mp4 >&7
  exec 7>&-
  wait $first && false
  [ "$(jq -r .input out/errors.jsonl | sort | xargs)" = "gone.mp4 missing.mp4" ]
  # A run that begins later reports its own.
  vfm-clip one.mp4 -o out >/dev/null
  [ ! -e out/errors.jsonl ]
}
