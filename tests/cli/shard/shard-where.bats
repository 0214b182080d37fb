#!/usr/bin/env bats
# vfm-shard --where: what is kept, and expressions that are wrong or have no end.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load corpus
bats_require_minimum_version 1.5.0

# A condition that no machine computes to its end: a join of eight tables of 100 rows.
endless() {
  local numbers tables
  numbers="(VALUES $(seq -s, -f '(%g)' 100))"
  tables=$numbers$(printf ",$numbers%.0s" 1 2 3 4 5 6 7)
  echo "(SELECT count(*) FROM $tables) > 0"
}

@test "--where: an endless join ends at the first signal" {
  corpus
  where=$(endless)
  # A shell's background jobs ignore SIGINT; env puts that right.
  env --default-signal=INT vfm-shard --where "$where" -o d m.jsonl >out.txt 2>err 3>&- &
  pid=$!
  # In hundredths of a second: it needs three of them to begin, and a hundred for each sample.
  until [ "$(awk '{ print $14 + $15 }' "/proc/$pid/stat")" -ge 30 ]; do sleep 0.02; done
  kill -INT "$pid"
  (sleep 60 && kill -KILL "$pid") 3>&- &  # so that no fault makes this endless too
  watcher=$!
  status=0
  wait "$pid" || status=$?
  pkill -P "$watcher" || true
  cat err
  [ "$status" -eq 130 ]
  # Of the 60 samples next to none was looked at, none is called bad for the signal, and nothing was made.
  [ "$(wc -l <err)" -le 30 ]
  run ! grep -v 'does not come to an end' err
  [ ! -e d/dataset.json ]
  [ -z "$(records out.txt)" ]
}

@test "--where: an endless join ends at a limit, and the sample is left out and recorded" {
  make_shards in >m.jsonl <<<'{"shard":"s","key":"k","bytes":100,"json":{"width":64,"height":64,"seconds":1}}'
  fails 1 vfm-shard --where "$(endless)" -o d m.jsonl
  cat err
  grep -q 'the --where expression does not come to an end: given up after 50000000 steps' err
}

@test "--where keeps what it says" {
  corpus
  vfm-shard --where 'motion > 0.002 AND seconds >= 2' -o d <m.jsonl >/dev/null
  jq -r 'select(.json.motion > 0.002 and .json.seconds >= 2) | .key' samples.jsonl | sort >want
  keys d | diff - want
  jq -e '.filtered > 0 and .read == 60' d/dataset.json >/dev/null
  # A field that only some samples have is NULL for the others.
  echo '{"shard":"x","key":"x1","json":{"extra":1}}' | make_shards in >>m.jsonl
  vfm-shard --where 'extra IS NULL' -o e <m.jsonl >/dev/null
  [ "$(keys e | wc -l)" = 60 ]
}

# bats test_tags=night
@test "a bad expression ends with status 2 before any work" {
  corpus
  for bad in 'motion >' 'motion > 1; DROP TABLE x' 'count(*)' 'nofunction(motion)' 'random() > 0' ' ' '' \
    'motion > 0.5) or (1=1' 'motion > ?' 'motion > :x' 'motion > ?1' \
    'with recursive c(x) as (select 1 union all select x+1 from c) select 1'; do
    fails 2 vfm-shard --where "$bad" -o d m.jsonl
    grep -q -- "--where" err
    [ ! -e d ]
  done
  fails 2 vfm-shard --where 'moton > 1' -o d m.jsonl
  grep -q "no sample has a field 'moton'; did you mean: motion" err
  # What another tool makes is not there yet; a number compared with a text would keep all, or none.
  fails 2 vfm-shard --where 'aesthetic > 5' -o d m.jsonl
  grep -q "no sample has a field 'aesthetic', which vfm-embed --aesthetic FILE makes" err
  fails 2 vfm-shard --where 'caption_qualty > 0.5' -o d m.jsonl
  grep -q "no sample has a field 'caption_qualty'; did you mean caption_quality, which vfm-caption score .* makes" err
  # Only the input shows it, so the begin is there.
  vfm-shard --where 'motoin > 1' -o d m.jsonl 2>err | jq -se 'map(.kind) == ["begin"]'
  grep -q "no sample has a field 'motoin'; did you mean: motion" err
  fails 2 vfm-shard --where 'concept_watermark < 0.2' -o d m.jsonl
  grep -q "'concept_watermark', which vfm-embed --concept NAME=TEXT makes" err
  fails 2 vfm-shard --where "motion > '0.02' OR width = 640" -o d m.jsonl
  grep -q "'motion' is a number (true is 1, false 0) in all samples that have it, and is compared with the text '0.02'; leave out the quotes" err
  fails 2 vfm-shard --where "5 >= source_hash" -o d m.jsonl
  grep -q "'source_hash' is a text in all samples that have it, and is compared with the number 5; texts stand in single quotes" err
  fails 2 vfm-shard --where "date(seconds) > '2024'" -o d m.jsonl
  grep -q "no function is called 'date' .*; dates like 2024-05-31 compare as text" err
  fails 1 vfm-shard --where 'motion > 100' -o d m.jsonl
  grep -q "no sample is left: 60 read, 60 of them filtered out" err
}
