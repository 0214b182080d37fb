#!/usr/bin/env bats
# vfm-shard --balance: fair shares by fields and by clusters.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load corpus
bats_require_minimum_version 1.5.0

# kinds: 60 samples, 40 of kind "a", 15 of "b", 4 of "c" and one without; their captions' vectors say so, too.
kinds() {
  python3 - <<'PY' >samples.jsonl
import json, random
r = random.Random(2)
way = {"a": [1, 0, 0], "b": [0, 1, 0], "c": [0, 0, 1]}
for i in range(60):
    kind = "a" if i < 40 else "b" if i < 55 else "c" if i < 59 else None
    facts = {"source": "v%d" % (i % 7), "text_encoder": {"name": "own", "hash": "1"}, "motion": i / 100}
    sample = {"shard": "s%d" % (i % 3), "key": "k%02d" % i, "bytes": 1000 + i, "json": facts}
    if kind:
        facts["kind"] = kind
    towards = [x + r.uniform(-0.2, 0.2) for x in way[kind or "c"]]
    sample["vectors"] = {"text": [towards, [2 * x for x in towards]]}
    print(json.dumps(sample))
PY
  make_shards in <samples.jsonl >m.jsonl
}

@test "--balance is the same with -j1 and -j4, in any order of the input, and when it is run again" {
  kinds
  rules=(--balance "kind=0.5,text.npy" --balance-clusters 3 --keep-near-duplicates)
  vfm-shard "${rules[@]}" -j1 -o a <m.jsonl >/dev/null
  tac m.jsonl | vfm-shard "${rules[@]}" -j4 -o b >/dev/null
  [ "$(tree_hash a)" = "$(tree_hash b)" ]
  vfm-shard "${rules[@]}" -o a <m.jsonl >again
  [ "$(tree_hash a)" = "$(tree_hash b)" ]
  at_night || return 0
  vfm-shard --balance "text.npy,kind=0.5" --balance-clusters 3 --keep-near-duplicates -o c <m.jsonl >/dev/null
  [ "$(keys a)" = "$(keys c)" ]
  vfm-shard --seed 1 "${rules[@]}" -o e <m.jsonl >/dev/null
  [ "$(keys a)" != "$(keys e)" ]
  # Another balance is another dataset, and none is another one, too.
  fails 2 vfm-shard --balance kind --keep-near-duplicates -o a m.jsonl
  grep -q 'holds a dataset of other options (balance is ' err
  fails 2 vfm-shard --keep-near-duplicates -o a m.jsonl
  grep -q 'holds a dataset of other options (balance is .* there, and now null' err
}

# bats test_tags=night
@test "--balance, --where and --duplicate-vector: bad rules and names that no sample has end with status 2" {
  kinds
  for bad in "--balance kind=2" "--balance kind=0" "--balance kind=x" "--balance =1" "--balance kind,kind" \
    "--balance kind," "--balance .npy" "--balance-clusters 3" "--balance kind --balance-clusters 3" \
    "--balance text.npy --balance-clusters 0" "--duplicate-vector video" "--duplicate-vector text.npy --keep-duplicates" \
    "--duplicate-vector text.npy --keep-near-duplicates" "--duplicate-threshold 0.9 --keep-duplicates" \
    "--without none.txt"; do
    # shellcheck disable=SC2086
    fails 2 vfm-shard $bad -o d m.jsonl
    [ ! -e d ]
  done
  fails 2 vfm-shard --balance kinds -o d m.jsonl
  grep -q -- "--balance: no sample has a field 'kinds'; did you mean: kind" err
  fails 2 vfm-shard --balance text_encoder.name -o d m.jsonl
  grep -q -- "--balance: 'name' is a member of the object 'text_encoder', and only whole fields are balanced" err
  fails 2 vfm-shard --where "text_encoder.name = 'own'" -o d m.jsonl
  grep -q -- "--where: no such column: text_encoder.name; write text_encoder ->> 'name', in" err
  fails 2 vfm-shard --where "hash = '1'" -o d m.jsonl
  grep -q -- "--where: no sample has a field 'hash'; did you mean text_encoder ->> 'hash'" err
  vfm-shard --where "text_encoder ->> 'hash' = '1'" --keep-duplicates -o e m.jsonl >/dev/null
  rm -r e
  fails 2 vfm-shard --duplicate-vector txt.npy -o d m.jsonl
  grep -q -- "--duplicate-vector: no sample has a member 'txt.npy'; did you mean: text.npy" err
  # Hardly two samples have the same: said, and nothing is lost.
  vfm-shard --balance motion --keep-near-duplicates -o e <m.jsonl >/dev/null 2>err
  grep -q "'motion' has 60 values in 60 samples" err
  [ ! -e e/left_out.jsonl ]
  run --separate-stderr vfm-shard --balance kind --keep-near-duplicates --dry-run -o g m.jsonl
  [ "$status" -eq 0 ]
  jq -e '.samples | .read == 60 and .balanced == 25 and .stay == 35' <<<"$output" >/dev/null
  [[ "$stderr" == *"of the 60 samples looked at 35 would stay"* ]]
}
