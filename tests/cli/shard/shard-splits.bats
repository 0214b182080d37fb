#!/usr/bin/env bats
# vfm-shard --split: no source in two splits, whatever changes.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load corpus
bats_require_minimum_version 1.5.0

# bats test_tags=night
@test "no source stands in both splits, and both get their share" {
  corpus
  vfm-shard --split train=0.75,val=0.25 -o d <m.jsonl >/dev/null
  members d/train '*.json' | jq -r .source_hash | sort -u >in_train
  members d/val '*.json' | jq -r .source_hash | sort -u >in_val
  [ -s in_val ]
  [ "$(comm -12 in_train in_val)" = "" ]
  [ "$(keys d/val | wc -l)" -ge 9 ] && [ "$(keys d/val | wc -l)" -le 21 ]
  members d/val '*.json' | jq -e '.split == "val"' >/dev/null
}

@test "sources that share a duplicate stay in one split" {
  for i in 0 1 2 3 4 5 6 7; do
    echo '{"shard":"a","key":"own'$i'","json":{"source":"v'$i'"}}'
    # Each pair of sources has one clip in common.
    echo '{"shard":"a","key":"same'$i'","bytes":"shared'$((i / 2))'","json":{"source":"v'$i'"}}'
  done >s.jsonl
  make_shards in <s.jsonl >m.jsonl
  vfm-shard --split a=0.5,b=0.5 -o d <m.jsonl >/dev/null
  [ "$(wc -l <d/duplicates.jsonl)" = 4 ]
  for split in a b; do
    members d/$split '*.json' | jq -r .source | sort -u | sed 's/v//' |
      while read -r i; do echo $((i / 2)); done | uniq -c | while read -r n _; do [ "$n" = 2 ]; done
  done
  # A split that no source is left for is said, not hidden.
  echo '{"shard":"z","key":"k","json":{"source":"one"}}' | make_shards in >z.jsonl
  vfm-shard --split a=0.5,b=0.5 -o z <z.jsonl 2>err >/dev/null
  [ "$(cat err)" = "vfm-shard: split 'b' is empty: there is only 1 source to assign" ]
  # So is that some count as one, and, in the next run, that none was left to assign.
  for i in 0 1 2; do
    echo '{"shard":"y","key":"own'$i'","json":{"source":"v'$i'"}}'
    echo '{"shard":"y","key":"same'$i'","bytes":"shared","json":{"source":"v'$i'"}}'
  done | make_shards in >y.jsonl
  vfm-shard --split a=0.5,b=0.5 -o y <y.jsonl 2>err >y.first
  [ "$(cat err)" = "vfm-shard: split 'b' is empty: there is only 1 source to assign; sources that hold duplicates of one another count as one" ]
  vfm-shard --split a=0.5,b=0.5 -o y <y.jsonl 2>err >y.again
  [ "$(cat err)" = "vfm-shard: split 'b' is empty: an earlier run assigned all sources, and they stay; --force assigns all sources again" ]
  cmp y.first y.again
  # A new source goes where one is wanted; where two splits are empty, one stays so.
  echo '{"shard":"x","key":"k","json":{"source":"new"}}' | make_shards in >x.jsonl
  cat y.jsonl x.jsonl | vfm-shard --split a=0.5,b=0.5 -o y 2>err >/dev/null
  [ ! -s err ]
  vfm-shard --split a=0.4,b=0.3,c=0.3 -o w <y.jsonl 2>/dev/null >/dev/null
  cat y.jsonl x.jsonl | vfm-shard --split a=0.4,b=0.3,c=0.3 -o w 2>err >/dev/null
  grep -E "^vfm-shard: split '[bc]' is empty: there is only 1 source to assign; an earlier run assigned the others$" err
}

# bats test_tags=night
@test "the input changed: no source moves from one split to another" {
  corpus
  jq -c '.json.source = "raw/" + .json.source_hash' samples.jsonl >s.jsonl
  share() { vfm-shard --split train=0.6,val=0.4 -o d "$@" >/dev/null; }
  jq -c 'select(.json.source_hash < "src5")' s.jsonl | make_shards some >some.jsonl
  share some.jsonl
  splits d >before
  [ "$(wc -l <before)" -eq 5 ]
  # More of them. Shared out again some of these would move.
  make_shards in <s.jsonl >m.jsonl
  vfm-shard --split train=0.6,val=0.4 -o fresh m.jsonl >/dev/null
  [ -n "$(splits fresh | comm -23 before -)" ]
  share m.jsonl
  [ "$(splits d | wc -l)" -eq 9 ]
  [ -z "$(splits d | comm -23 before -)" ]
  [ "$(keys d/val | wc -l)" -ge 12 ]
  splits d >all
  # A video that was repaired has another hash, and one that is missing comes again.
  jq -c '.json.source_hash += "repaired"' s.jsonl | make_shards repaired >repaired.jsonl
  share repaired.jsonl
  splits d | cmp - all
  share some.jsonl
  splits d | cmp - before
  share m.jsonl
  splits d | cmp - all
  jq -e '.source and .path and .split' d/sources.jsonl >/dev/null
  # Without it nobody knows.
  rm d/sources.jsonl
  fails 2 vfm-shard --split train=0.6,val=0.4 -o d some.jsonl
  grep -q "sources.jsonl.*it says in which split each source is" err
  share --force some.jsonl
}

@test "a new source with clips of train and of val: those stay, it is reported, and train gets nothing of val" {
  for i in 0 1; do echo '{"shard":"a","key":"k'$i'","bytes":"b'$i'","json":{"source":"v'$i'"}}'; done >s.jsonl
  make_shards in <s.jsonl >m.jsonl
  share() { vfm-shard --split train=0.5,val=0.5 -o d m.jsonl; }
  share >/dev/null
  splits d >before
  for i in 0 1; do echo '{"shard":"b","key":"n'$i'","bytes":"b'$i'","json":{"source":"new"}}'; done >>s.jsonl
  echo '{"shard":"b","key":"n2","bytes":"b2","json":{"source":"new"}}' >>s.jsonl
  make_shards in <s.jsonl >m.jsonl
  share >/dev/null 2>err
  grep -q "vfm-shard: 2 sources hold duplicates of sources of another split, 'v[01]' is one;.*new sources with the same contents go to 'val'; --force" err
  [ "$(splits d)" = "$({ cat before; echo new val; } | sort)" ]
}

# bats test_tags=night
@test "--keep-duplicates does not put the same bytes into two splits" {
  for i in 1 2 3 4 5 6 7 8; do
    tar_of "s$i.tar" "a$i.mp4=same" "a$i.json={\"source\":\"A$i\"}" "b$i.mp4=own$i" "b$i.json={\"source\":\"B$i\"}"
  done
  vfm-shard s?.tar --keep-duplicates --split train=0.5,val=0.5 -o out >manifest
  [ "$(keys out | wc -l)" -eq 16 ]
  val=$(find out/val -name '*.tar' -exec tar tf {} \; | grep -c '^a.*mp4$' || true)
  [ "$val" -eq 0 ] || [ "$val" -eq 8 ]
}
