#!/usr/bin/env bats
# vfm-shard plan, vfm-shard --plan and vfm-shard join: a dataset by many commands has the bytes of one.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154 # the shell of the test kills its parent; stderr is of run --separate-stderr
load ../helpers
bats_require_minimum_version 1.5.0

# What all commands are given: every step of vfm-shard has something to do.
choices=(--where 'seconds >= 2' --without without --balance 'kind=0.5,video.npy=0.5' --split 'train=0.7,val=0.3'
  --duplicate-threshold 0.97 --max-member 20kB)
size=(--shard-size 40kB)

setup_file() {
  export LC_ALL=C.UTF-8 PATH="${VFM_BIN:?}:$PATH" DATA="$BATS_FILE_TMPDIR/data" VFM_LEASE_SECONDS=0.3
  mkdir "$DATA" && cd "$DATA" || return 1
  python3 - <<'PY' >samples.jsonl
import json, random
r = random.Random(1)
vectors = [[r.gauss(0, 1) for _ in range(32)] for _ in range(240)]
for i in range(240):
    # Every seventh is near one before it, every eleventh has the bytes of one before it.
    vector = [x + r.gauss(0, 0.02) for x in vectors[i // 2]] if i % 7 == 6 else vectors[i]
    sample = {"shard": "s%02d" % (i % 12), "key": "k%03d" % (i - 5 if i in (62, 63) else i), "bytes": 2000 + i,
              "json": {"source_hash": "src%d" % (i % 31), "source": "raw/%d.mp4" % (i % 31), "width": 1280 if i % 2 else 640,
                       "height": 720 if i % 2 else 640, "seconds": 1 + i % 12, "fps": 30, "frames": 30 * (1 + i % 12),
                       "kind": "abc"[i % 13 // 6], "camera": {"name": "x"}, "motion": i / 1000},
              "txt": "caption %d" % i, "video": vector}
    if i % 11 == 10: sample["bytes"] = "twins %d" % (i // 33)
    if i in (57, 62): sample["bytes"] = "a clip that comes twice"
    if i == 100: sample["bytes"] = 30000
    print(json.dumps(sample))
PY
  make_shards in <samples.jsonl >made.jsonl
  gzip in/s03.tar
  { sed 's|in/s03.tar"|in/s03.tar.gz"|g' made.jsonl | head -5; echo '{"kind":"video","path":"a.mp4"}'; echo '{"kind"'; } >input.jsonl
  sed 1,5d made.jsonl | sort -r >>input.jsonl
  printf 'src3\nk017\nnowhere\n' >without
  one one
}

# one DIR: the dataset DIR of one command.
one() {
  vfm-shard -o "$1" "${choices[@]}" "${size[@]}" input.jsonl >"$1.jsonl" 2>said || [ $? -eq 1 ] || { cat said && return 1; }
}
# scan DIR PART, plan DIR: the same options for a dataset in parts.
scan() { vfm-shard plan -o "$1" "${choices[@]}" --part "$2" input.jsonl >>scanned.jsonl 2>said; }
plan() {
  vfm-shard plan -o "$1" "${choices[@]}" "${size[@]}" input.jsonl >planned.jsonl 2>said || [ $? -eq 1 ] || { cat said && return 1; }
}
# whole DIR: name and hash of each file that is of the dataset.
whole() { (cd "$1" && find . \( -path ./parts -o -path ./plan.bin \) -prune -o -type f -print | sort | xargs sha256sum); }
# left DIR: what a finished work must not leave.
left() { find "$1" -name 'lease*' -o -name temporary -o -name failed.json -o -name '.*.tmp' -o -name unpacked -o -name .unpacked; }

setup() {
  setup_tools
  export VFM_LEASE_SECONDS=0.3
  ln -s "$DATA"/{in,input.jsonl,without,one,one.jsonl} .
}

@test "what one command makes has duplicates, splits, bins, balance and errors" {
  jq -e '.duplicates.exact > 3 and .duplicates.near > 3 and .duplicates.repeated == 1 and .left_out.balance > 3 and
    .left_out.without > 3 and .filtered > 3 and (.splits | length) == 2 and (.bins | length) > 3 and .shards > 10' one/dataset.json
  [ "$(jq -r .code one/errors.jsonl | sort | uniq -c | xargs)" = '1 duplicate 1 limit 1 line 1 other' ] || { cat one/errors.jsonl && return 1; }
}

@test "any number of parts of the scan and of the shards gives the bytes of one command" {
  local scans shards numbers=(3)
  ! at_night || numbers=(0 1 3 7)
  for scans in "${numbers[@]}"; do
    rm -rf many
    for ((i = scans - 1; i >= 0; --i)); do scan many "$i/$scans"; done
    plan many
    diff <(whole one | grep -E '(jsonl|plan.json)$') <(whole many)
    shards=$((scans == 7 ? 1 : 4))
    for ((i = shards - 1; i >= 0; --i)); do vfm-shard --plan many/plan.bin --part "$i/$shards" -j2 >part$i.jsonl; done
    vfm-shard join many >many.jsonl
    diff <(whole one) <(whole many)
    diff <(records one.jsonl | sed 's|"one/|"many/|') <(records many.jsonl)
    diff <(records part?.jsonl | sort) <(records many.jsonl | sort)
    rm part?.jsonl
    [ -z "$(left many)" ]
  done
}

# bats test_tags=night
@test "commands with --part auto share out the parts, also when one is killed" {
  scan auto auto/9 &
  vfm-shard plan -o auto "${choices[@]}" --part auto/9 input.jsonl >killed.jsonl 2>/dev/null &
  sleep 0.1
  kill -KILL $! || true
  wait
  [ "$(find auto/parts/plan -name done.json | wc -l)" -eq 9 ]
  plan auto
  # Killed when it opens the inputs of a shard.
  cc -shared -fPIC -o on-open.so "$BATS_TEST_DIRNAME/../on-open.c"
  ON_OPEN=in/ ON_OPEN_AT=9 ON_OPEN_DO='kill -KILL $PPID' LD_PRELOAD="$PWD/on-open.so" \
    vfm-shard --plan auto/plan.bin --part auto/6 -j1 >killed.jsonl 2>/dev/null || true
  [ "$(find auto/parts/shard -name done.json | wc -l)" -lt 6 ]
  vfm-shard --plan auto/plan.bin --part auto >a.jsonl &
  vfm-shard --plan auto/plan.bin --part auto >b.jsonl
  wait
  vfm-shard join auto >auto.jsonl
  diff <(whole one) <(whole auto)
  [ -z "$(left auto)" ]
}

@test "missing parts are named, and nothing is called complete; status tells of both works" {
  for i in 0 2 4; do scan gaps $i/5; done
  fails 1 vfm-shard plan -o gaps "${choices[@]}" "${size[@]}" input.jsonl
  grep -q "of vfm-shard plan --part, 2 of the 5 parts of 'gaps' are not complete: 1, 3; no plan is made" err
  [ ! -e gaps/plan.json ] && [ ! -e gaps/plan.bin ]
  [ "$(vfm-shard status gaps --missing)" = '1,3' ]
  fails 1 vfm-shard --plan gaps/plan.bin --part 0/2
  grep -q "there is no 'gaps/plan.bin'; vfm-shard plan makes it" err
  for i in 1 3; do scan gaps $i/5; done
  plan gaps
  [ "$(vfm-shard status gaps --missing)" = '' ]
  vfm-shard --plan gaps/plan.bin --part 1/3 >/dev/null
  fails 1 vfm-shard join gaps
  grep -q "of vfm-shard, 2 of the 3 parts of 'gaps' are not complete: 0, 2" err
  [ ! -e gaps/dataset.json ]
  [ "$(vfm-shard status gaps --missing)" = '0,2' ]
  [ "$(vfm-shard status gaps | jq -r 'select(.kind == "parts") | "\(.tool) \(.done)/\(.parts)"' | paste -sd,)" = \
    'vfm-shard plan 5/5,vfm-shard 1/3' ]
  for i in 0 2; do vfm-shard --plan gaps/plan.bin --part $i/3 >/dev/null; done
  vfm-shard join gaps >/dev/null
  diff <(whole one) <(whole gaps)
}

# bats test_tags=night
@test "another number of parts, other inputs and other options are refused or done again" {
  mkdir other && cp -rL in input.jsonl without other/ && cd other
  for i in 0 1; do scan d $i/2; done
  fails 3 vfm-shard plan -o d "${choices[@]}" --part 0/3 input.jsonl
  # Options that do not change what a scan finds.
  vfm-shard plan -o d "${choices[@]}" --seed 7 input.jsonl >/dev/null 2>said || [ $? -eq 1 ]
  fails 1 vfm-shard plan -o e "${choices[@]}" --seed 7 input.jsonl
  cmp d/plan.json e/plan.json
  for i in 0 1; do vfm-shard --plan d/plan.bin --part $i/2 >/dev/null; done
  fails 3 vfm-shard --plan d/plan.bin --part 0/5
  vfm-shard join d >/dev/null
  vfm-shard -o same "${choices[@]}" --seed 7 input.jsonl >/dev/null 2>said || [ $? -eq 1 ]
  diff <(whole same) <(whole d)
  # Another filter.
  fails 1 vfm-shard plan -o d --force "${choices[@]:2}" input.jsonl
  grep -q "part 0 was scanned with other inputs or options; give 'vfm-shard plan --part 0/2' again" err
  # Another input: its part is scanned again, and shards of the old plan are not those of the new one.
  touch -d '2020-01-01' in/s05.tar
  vfm-shard plan -o d "${choices[@]}" --seed 7 input.jsonl >/dev/null 2>err || [ $? -eq 1 ]
  grep -q 'was scanned with other inputs' err
  sed -i 2d input.jsonl
  for i in 0 1; do scan d $i/2 || true; done
  vfm-shard plan -o d "${choices[@]}" --seed 7 input.jsonl >/dev/null 2>said || [ $? -eq 1 ]
  [ -z "$(find d/parts/shard -name done.json -o -path '*/notes/*')" ]
  fails 1 vfm-shard join d
  grep -q "of vfm-shard, 2 of the 2 parts of 'd' are not complete: 0, 1" err
  [ ! -e d/dataset.json ]
  for i in 0 1; do vfm-shard --plan d/plan.bin --part $i/2 >/dev/null 2>said; done
  vfm-shard join d >/dev/null
  vfm-shard -o same "${choices[@]}" --seed 7 input.jsonl >/dev/null 2>said || [ $? -eq 1 ]
  diff <(whole same) <(whole d)
}

@test "parts run from another folder, and a join does nothing again" {
  mkdir -p moved/deep
  scan moved/d 0/1
  plan moved/d
  (cd moved/deep && vfm-shard --plan ../d/plan.bin --part 0/1 >/dev/null)
  vfm-shard join moved/d >first
  find moved/d -type f -printf '%p %i %T@\n' | sort >before
  vfm-shard join moved/d >again
  find moved/d -type f -printf '%p %i %T@\n' | sort | diff before -
  diff <(records first) <(records again)
  diff <(whole one) <(whole moved/d)
}

@test "options that make no sense are refused before any work" {
  refused '--plan writes parts of the shards' vfm-shard --plan x/plan.bin
  refused '--part writes shards of a plan' vfm-shard -o x --part 0/2 in/s00.tar
  refused '--plan FILE names the input' vfm-shard --plan x/plan.bin --part 0/2 in/s00.tar
  refused '--plan' vfm-shard --plan x/plan.bin --part 0/2 --seed 3
  refused '--output is required' vfm-shard in/s00.tar
  refused '--part does not do a complete part again' vfm-shard plan -o x --part 0/2 --force in/s00.tar
  refused 'not standard input' vfm-shard plan -o x --part 0/2 -
  refused 'nobody has said how many parts' vfm-shard plan -o x --part auto in/s00.tar
  refused "'x' has no parts of vfm-shard" vfm-shard status x
  [ ! -e x/plan.json ]
}
