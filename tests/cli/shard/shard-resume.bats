#!/usr/bin/env bats
# vfm-shard: the same command again, after a kill, a full disk or a changed input; one program at a time.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load corpus
bats_require_minimum_version 1.5.0

@test "the input was repaired or changed: the same command goes on, and nothing stale stays" {
  corpus 20000
  shard() { vfm-shard --shard-size 100KB "$@" -o d m.jsonl; }
  mv in/s1.tar whole.tar
  head -c 150000 whole.tar >in/s1.tar
  fails 1 shard
  [ "$(keys d | wc -l)" -lt 60 ]
  cp m.jsonl all.jsonl
  # Repaired: as a fresh one, and what was right was not written again.
  cp whole.tar in/s1.tar
  find d -name '*.tar' -printf '%i\n' | sort >before
  shard >/dev/null
  vfm-shard --shard-size 100KB -o good m.jsonl >good.jsonl
  [ "$(tree_hash d)" = "$(tree_hash good)" ]
  find d -name '*.tar' -printf '%i\n' | sort | comm -12 before - | grep -q .
  # Less of it, whatever a kill leaves on the way.
  head -n 2 all.jsonl >m.jsonl
  for delay in 0.02 0.05 0.08; do timeout --foreground -s KILL $delay vfm-shard --shard-size 100KB -o d m.jsonl >/dev/null || true; done
  shard >/dev/null
  vfm-shard --shard-size 100KB -o less m.jsonl >/dev/null
  [ "$(tree_hash d)" = "$(tree_hash less)" ]
  # All filtered out or unreadable: the dataset there stays.
  echo missing.tar >m.jsonl
  fails 1 shard
  rm d/errors.jsonl
  [ "$(tree_hash d)" = "$(tree_hash less)" ]
}

@test "killed at random and run again: the same bytes, finished shards untouched" {
  corpus 200000
  vfm-shard --shard-size 1MB --split train=0.8,val=0.2 -o good <m.jsonl >good.jsonl
  delays=(0.03 0.08)
  ! at_night || delays+=(0.01 0.05 0.12)
  for delay in "${delays[@]}"; do
    rm -rf bad
    timeout --foreground -s KILL $delay vfm-shard --shard-size 1MB --split train=0.8,val=0.2 -o bad m.jsonl >/dev/null || true
    timeout --foreground -s KILL $delay vfm-shard --shard-size 1MB --split train=0.8,val=0.2 -o bad m.jsonl >/dev/null || true
    find bad -name '*[0-9].json' -printf '%p %i\n' 2>/dev/null | sort >finished
    vfm-shard --shard-size 1MB --split train=0.8,val=0.2 -o bad m.jsonl >bad.jsonl
    [ "$(tree_hash bad)" = "$(tree_hash good)" ]
    records bad.jsonl | sed 's/bad/good/' | cmp - <(records good.jsonl)
    find bad -name '*[0-9].json' -printf '%p %i\n' | sort | comm -23 finished - | diff - /dev/null
  done
}

@test "a full disk is an error with the name of the file, and goes on when there is room" {
  [ "$(id -u)" = 0 ] || skip "needs root to mount a small file system"
  corpus 100000
  mkdir full
  mount -t tmpfs -o size=3m tmpfs full 2>/dev/null || skip "cannot mount a tmpfs here"
  status=0
  vfm-shard -o full/d m.jsonl >/dev/null 2>err || status=$?
  mount -o remount,size=50m full
  vfm-shard -o full/d m.jsonl >/dev/null
  vfm-shard -o good m.jsonl >/dev/null
  a=$(tree_hash full/d) b=$(tree_hash good)
  umount full
  [ "$status" = 1 ]
  grep -q "No space left on device" err
  [ "$a" = "$b" ]
}

@test "a closed pipe ends it; run again it is complete" {
  corpus
  vfm-shard --shard-size 20KB -o d m.jsonl | head -1 >/dev/null
  vfm-shard --shard-size 20KB -o d m.jsonl >/dev/null
  vfm-shard --shard-size 20KB -o good m.jsonl >/dev/null
  [ "$(tree_hash d)" = "$(tree_hash good)" ]
}

# bats test_tags=night
@test "one program at a time for a dataset: the second is refused, and disturbs nothing" {
  corpus
  vfm-shard -o d m.jsonl >/dev/null
  before=$(tree_hash d)
  exec 9<d
  flock 9
  fails 1 vfm-shard -o d m.jsonl 9>&-
  [ "$(cat err)" = "vfm-shard: 'd' is in use by another program that writes it; wait for it, or choose another folder" ]
  [ "$(tree_hash d)" = "$before" ]
  exec 9<&-
  vfm-shard -o d m.jsonl >/dev/null
}
