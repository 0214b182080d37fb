#!/usr/bin/env bats
# vfm-clip list: what is in the list, what a second call adds, and what is refused.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is of run --separate-stderr

bats_require_minimum_version 1.5.0

setup() {
  load ../helpers
  setup_tools
  # Without data on the disk: no video is opened.
  mkdir raw
  for i in {1..9}; do truncate -s "${i}00M" "raw/large$i.mp4"; truncate -s "${i}0k" "raw/small$i.mp4"; done
  truncate -s 30M raw/a.png
}

@test "a list has every video once, in parts of nearly equal size, and names its parts" {
  find raw -type f | sort | vfm-clip list -o clips -n 4 >out
  [ "$(records <out | jq -r .kind | uniq -c | xargs)" = '4 part' ]
  [ "$(records <out | jq -c '[.part, .path]' | xargs)" = '[0,clips/parts/list/00000.jsonl] [1,clips/parts/list/00001.jsonl] [2,clips/parts/list/00002.jsonl] [3,clips/parts/list/00003.jsonl]' ]
  [ "$(tail -n 1 out | jq -c '[.records, .status, .parts, .known]')" = '[4,0,4,0]' ]
  records <out | jq -se 'map(.bytes) | max - min < 2e8'
  cat clips/parts/list/0000*.jsonl | records | jq -r .path | sort >listed
  find raw -type f | sort | diff - listed
  cat clips/parts/list/0000*.jsonl | records | jq -se 'all((.path | test("large")) != has("bucket"))'
  [ "$(cat clips/parts/list/0000*.jsonl | records | jq .place | sort -n | xargs)" = "$(seq 0 18 | xargs)" ]
  # Each list is a manifest, in which files are named from where the command was started.
  mkdir elsewhere
  (cd elsewhere && vfm-clip list ../clips/parts/list/*.jsonl -o again -n 1 >/dev/null)
  records <elsewhere/again/parts/list/00000.jsonl | jq -r .path | sort | diff <(sed "s|^|$PWD/|" listed) -
}

@test "a second call adds parts, and changes nothing that is there" {
  vfm-clip list raw/large*.mp4 -o clips -n 3 >/dev/null
  cp -r clips before
  vfm-clip list raw/small1.mp4 raw/large3.mp4 ./raw/large4.mp4 -o clips -n 2 >out
  [ "$(tail -n 1 out | jq -c '[.parts, .known]')" = '[5,2]' ]
  [ "$(records <out | jq -c '[.part, .videos]' | xargs)" = '[3,1] [4,0]' ]
  for part in before/parts/list/*.jsonl; do cmp "$part" "clips/${part#before/}"; done
  # As large as the earlier ones: 4 GiB by a fifth of 4.5 GiB.
  truncate -s 2G raw/b.mp4 raw/c.mp4
  vfm-clip list raw/b.mp4 raw/c.mp4 -o clips >out
  [ "$(tail -n 1 out | jq .parts)" -eq 10 ]
  # Nothing new.
  vfm-clip list raw/b.mp4 -o clips >out
  [ "$(tail -n 1 out | jq -c '[.parts, .known, .records]')" = '[10,1,0]' ]
}

@test "what is no video is an error of the list, and a wrong option is refused before any work" {
  run --separate-stderr vfm-clip list raw/small1.mp4 x.tar gone.mp4 -o clips -n 1
  [ "$status" -eq 1 ]
  [[ $stderr = *"record of kind 'shard'"* ]]
  jq -e '.tool == "vfm-clip list" and .code == "line"' clips/parts/list/errors.jsonl
  [ "$(records <clips/parts/list/00000.jsonl | jq -r .path | xargs)" = 'raw/small1.mp4 gone.mp4' ]
  refused 'say how many parts' vfm-clip list raw/small1.mp4 -o new
  refused '--output is required' vfm-clip list raw/small1.mp4 -n 3
  refused 'leave out --shard-size' vfm-clip list raw/small2.mp4 -o clips -n 1 --shard-size 1M
  refused '--shard-size must be above 0' vfm-clip list raw/small2.mp4 -o clips -n 1 --shard-size 0
  refused '--parts' vfm-clip list raw/small2.mp4 -o clips -n 0
  [ ! -e new ]
}
