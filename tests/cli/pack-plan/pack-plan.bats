#!/usr/bin/env bats
# vfm-pack plan: the packs as records and as a table, which are those of training; and what it takes.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is of run --separate-stderr
load ../helpers
bats_require_minimum_version 1.5.0

setup() { setup_tools; }

# packs FILE: pack, key, shard, offset and tokens of each sample, separated by tabs.
packs() { jq -r 'select(.kind == "pack") | .pack as $pack | .samples[] | [$pack, .key, .shard, .offset, .tokens] | @tsv' "$1"; }
# latents COUNT: a folder of so many samples in one shard or two.
latents() { "$BATS_TEST_DIRNAME/../make-latents" latents "$1"; }

@test "a record for each pack, and the totals in the end record" {
  latents 100
  vfm-pack plan --tokens 100 latents >plan.jsonl 2>err
  [ ! -s err ]
  [ "$(jq -r .kind plan.jsonl | uniq | paste -sd' ')" = "begin pack end" ]
  packs plan.jsonl >list
  [ "$(cut -f 2 list | sort -u | wc -l)" -eq 100 ]
  # No pack is over-full, and each says how full it is.
  jq -es 'map(select(.kind == "pack")) | all(.tokens <= 100 and .tokens == ([.samples[].tokens] | add)) and
    [.[].pack] == [range(length)]' plan.jsonl >/dev/null
  jq -es '(map(select(.kind == "pack")) | length) as $n | last | .records == $n and .plan.packs == $n and
    .plan.samples == 100 and .status == 0' plan.jsonl >/dev/null
  # The offset is that of the sample in its tar.
  while read -r _ key shard offset _; do
    [[ "$(tail -c +$((offset + 1)) "latents/$shard" | head -c 100 | tr -d '\0')" == "$key".* ]]
  done < <(sed -n '1p;40p;100p' list)
  vfm-pack plan --tokens 100 latents | cmp - plan.jsonl
  vfm-pack plan --tokens 100 --seed 1 latents >other
  [ "$(packs other | sort -k 2 | cut -f 2-)" = "$(sort -k 2 list | cut -f 2-)" ]
  [ "$(packs other)" != "$(cat list)" ]
  [ "$(packs <(vfm-pack plan --tokens 100 --epoch 1 latents))" != "$(cat list)" ]
  vfm-pack plan --tokens 100 latents | head -1 >/dev/null
}

@test "a table on a terminal" {
  latents 100
  vfm-pack plan --tokens 100 latents >plan.jsonl
  script -qec 'vfm-pack plan --tokens 100 latents' /dev/null </dev/null | tr -d '\r' >table
  grep -qE '^ +pack +samples +tokens +full +longest$' table
  # The first packs are those of the records.
  diff <(awk 'NR > 1 && $1 ~ /^[0-9]+$/ && NF == 6 { print $1, $2, $3 }' table) \
    <(jq -r 'select(.kind == "pack") | "\(.pack) \(.samples | length) \(.tokens)"' plan.jsonl | head -n 20)
  grep -qE '^100 samples in [0-9]+ packs\. Packs are 9[0-9]\.[0-9] % full\. ' table
  [ "$(grep -c '"kind"' table)" -eq 0 ]
}

@test "packs are full and of like work, where lengths allow it" {
  latents 1000
  for epoch in 0 1; do
    vfm-pack plan --tokens 48 --epoch "$epoch" latents >plan.jsonl
    packs plan.jsonl | awk '
      { tokens[$1] += $5; squares[$1] += $5 * $5 }
      END {
        for (p in tokens) { n++; used += tokens[p]; sum += squares[p]; twice += squares[p] ^ 2 }
        printf "%.4f %.4f\n", used / n / 48, sqrt(twice / n - (sum / n) ^ 2) / (sum / n)
      }' >counted
    jq -r 'select(.kind == "end").plan | "\(.fill) \(.square_spread)"' plan.jsonl >said
    awk '{ getline other <"said"; split(other, o, " ")
      exit !($1 == o[1] && $2 == o[2] && $1 > 0.98 && $2 < 0.05) }' counted
  done
  # One token or two: packs of 2 are even only by leaving room, so they are full instead.
  vfm-pack plan --patch 1,4,4 --tokens 2 latents | jq -es 'last.plan | .fill == 1 and (.square_spread | . >= 0.2 and . < 0.3)' >/dev/null
}

# bats test_tags=night
@test "a plan of two blocks: each sample once, packs in order, in shards that are not all open at once" {
  many_packed 20000 100
  vfm-pack -q --size 16 -o 20000/out 20000/shards.jsonl >/dev/null
  [ "$(jq .splits.train.shards 20000/out/latents.json)" -eq 200 ]
  vfm-pack plan --tokens 500 20000/out >plan.jsonl
  packs plan.jsonl | awk -F '\t' '
    { if (seen[$2]++ || $1 < last || $1 > last + 1) exit 1; last = $1; n++; used += $5 }
    END { printf "%d %d %.4f\n", n, last + 1, used / (last + 1) / 500 }' >counted
  read -r n packs fill <counted
  [ "$n" -eq 20000 ]
  jq -es --argjson fill "$fill" --argjson packs "$packs" 'last.plan | .fill == $fill and .packs == $packs and
    .samples == 20000 and .square_spread < 0.3' plan.jsonl >/dev/null
  # Places in the tars are those of their indexes.
  packs plan.jsonl | sed -n '1~997p' | while read -r _ key shard offset _; do
    row=$(jq --arg key "$key" 'select(.key == $key).row' 20000/out/train/index.jsonl)
    [ "$offset" = "$(od -An -t u8 -j $((8 * row)) -N 8 "20000/out/$shard.idx" | tr -d ' ')" ]
  done
}

@test "the tars are not opened; an index that is cut short is named" {
  latents 100
  vfm-pack plan --tokens 100 latents >plan.jsonl
  rm latents/train/*.tar
  vfm-pack plan --tokens 100 latents | cmp - plan.jsonl
  for index in latents/train/*.tar.idx; do truncate -s 16 "$index"; done
  run --separate-stderr vfm-pack plan --tokens 100 latents
  [ "$status" -eq 1 ]
  [[ "$stderr" == "vfm-pack: 'latents/train/"*".tar.idx' has no sample "*", it has 1"* ]]
}

# bats test_tags=night
@test "wrong use ends with status 2, and prints nothing" {
  latents 100
  # refused TEXT ARGUMENT...
  refused() {
    local text=$1
    shift
    run --separate-stderr vfm-pack "$@" </dev/null
    echo "$*: $status $stderr"
    [ "$status" -eq 2 ]
    [ -z "$output" ]
    [[ "$stderr" == *"$text"* ]]
  }
  refused "more than a pack's 1: give more --tokens" plan --tokens 1 --patch 1,1,1 latents
  refused 'is smaller than one token: give a smaller --patch' plan --patch 1,99,99 latents
  refused "'1,2' is not a patch; write frames,height,width as in 1,2,2" plan --patch 1,2 latents
  refused "has no split 'none'" plan --split none latents
  refused "'.' is not a folder of latents" plan .
  refused 'LATENTS is required' plan
  refused 'The following argument was not expected: two' plan latents two
  refused '--report' plan --report x.html latents
  refused '--dry-run' plan --dry-run latents
  refused "the verb 'plan' goes first: vfm-pack plan" -o out plan latents
  refused '--tokens' --tokens 10 -o out latents
}
