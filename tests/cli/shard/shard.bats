#!/usr/bin/env bats
# vfm-shard: the dataset that it writes, its shards and its columns.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load corpus
bats_require_minimum_version 1.5.0

@test "shards become a dataset: joined, one record a shard, silent on stderr" {
  corpus
  vfm-shard -o d <m.jsonl >manifest 2>err
  [ ! -s err ]
  [ "$(keys d | wc -l)" = 60 ]
  [ "$(jq -s 'map(.samples) | add' <(records manifest))" = 60 ]
  jq -e '.kind == "shard" and .split == "train" and (.bin | length > 3)' <(records manifest) >/dev/null
  # What stdout says is what lies there.
  jq -r '[.bytes, .path] | join(" ")' <(records manifest) >sizes
  cut -d' ' -f2 sizes | xargs stat -c '%s %n' | diff sizes -
  # Members of a sample: fixed order, all columns there.
  tar=$(jq -r .path <(records manifest) | head -1)
  [ "$(tar tf "$tar" | head -4 | sed 's/^[^.]*//' | paste -sd' ')" = ".mp4 .json .txt .video.npy" ]
  key=$(tar tf "$tar" | head -1 | cut -d. -f1)
  [ "$(tar xOf "$tar" "$key.txt")" = "caption $((10#${key#k}))" ]
  tar xOf "$tar" "$key.json" | jq -e --arg bin "$(basename "$(dirname "$tar")")" \
    '.bin == $bin and .split == "train" and .motion != null' >/dev/null
  [ ! -e d/errors.jsonl ] && [ ! -e d/duplicates.jsonl ]
  jq -e '.samples == 60 and .splits.train.samples == 60' d/dataset.json >/dev/null
  vfm-shard -v --force -o d <m.jsonl 2>&1 >/dev/null | tee said
  grep -q '60 samples in ' said
  fails 1 grep ' 0 B' said
}

@test "bare paths bring the columns beside them, and a glob does not read columns twice" {
  corpus
  vfm-shard -o a <m.jsonl >a.jsonl
  vfm-shard -o b in/s*.tar >b.jsonl
  [ "$(tree_hash a)" = "$(tree_hash b)" ]
}

@test "the same bytes with -j1 and -j4, and in any order of the input" {
  corpus
  vfm-shard --split train=0.8,val=0.2 --shard-size 30KB -j1 -o a <m.jsonl >/dev/null
  vfm-shard --split train=0.8,val=0.2 --shard-size 30KB -j4 -o b <m.jsonl >/dev/null
  tac m.jsonl | vfm-shard --split train=0.8,val=0.2 --shard-size 30KB -j2 -o c >/dev/null
  [ "$(tree_hash a)" = "$(tree_hash b)" ]
  [ "$(tree_hash a)" = "$(tree_hash c)" ]
  vfm-shard --seed 1 --split train=0.8,val=0.2 --shard-size 30KB -o e <m.jsonl >/dev/null
  [ "$(tree_hash a)" != "$(tree_hash e)" ]
  [ "$(keys a)" = "$(keys e)" ]
}

@test "shards keep to their size" {
  corpus
  vfm-shard --shard-size 20KB -o d <m.jsonl >manifest
  jq -e '.bytes <= 20000' <(records manifest) >/dev/null
  [ "$(records manifest | wc -l)" -gt 15 ]
  [ "$(keys d | uniq -d)" = "" ]
  # One sample a shard where none is small enough.
  vfm-shard --shard-size 1KB -o e <m.jsonl | records | jq -e '.samples == 1' >/dev/null
}

@test "bad options end with status 2" {
  corpus
  for bad in "--split train=0.5" "--split train=0.5,val=x" "--duplicate-threshold 2" \
    "--duplicate-threshold much" "--resolution-edges 5,4" "--shard-size none" "--nonsense"; do
    # shellcheck disable=SC2086
    fails 2 vfm-shard $bad -o d m.jsonl
    [ ! -e d ]
  done
  fails 2 vfm-shard m.jsonl
  fails 2 vfm-shard --split "" -o d m.jsonl
}

@test "bins have no gaps, and edges of one's own" {
  python3 - <<'EOF' >s.jsonl
import json
for i, (w, h, s) in enumerate([(1, 1, 0.04), (64, 64, 1.99), (1920, 1080, 2), (1080, 1920, 4.99), (7680, 4320, 86400),
                               (10000, 10, 5), (10, 10000, 30), (480, 480, 29.97)]):
    print(json.dumps({"shard": "a", "key": "k%d" % i, "json": {"width": w, "height": h, "seconds": s}}))
print(json.dumps({"shard": "a", "key": "nothing", "json": {}}))
print(json.dumps({"shard": "a", "key": "image", "media": "png", "json": {"width": 500, "height": 500}}))
EOF
  make_shards in <s.jsonl >m.jsonl
  vfm-shard -o d <m.jsonl >/dev/null
  [ "$(keys d | wc -l)" = 10 ]
  members d '*.json' | jq -r '[.key, .bin] | join(" ")' | sort >bins
  diff bins - <<'EOF'
image 480p_1x1_png
k0 under256p_1x1_under2s
k1 under256p_1x1_under2s
k2 1080p_16x9_2s
k3 1080p_9x16_2s
k4 2160p_16x9_30s
k5 under256p_16x9_5s
k6 under256p_9x16_30s
k7 480p_1x1_10s
nothing unsized_untimed
EOF
  vfm-shard --resolution-edges 100 --aspect-edges none --duration-edges 2.5 -o e <m.jsonl >/dev/null
  [ "$(members e 'k2.json' | jq -r .bin)" = 100p_anyaspect_under2_5s ]
}

# bats test_tags=night
@test "its own dataset can be sharded again" {
  corpus
  vfm-shard --split train=0.7,val=0.3 -o d <m.jsonl >manifest
  vfm-shard --shard-size 20KB -o e <manifest >/dev/null
  [ "$(keys d)" = "$(keys e)" ]
  members e '*.json' | jq -e '.split == "train"' >/dev/null
}

# bats test_tags=night
@test "--without takes sources and keys out of a dataset that is there, and forgets them" {
  corpus
  vfm-shard --split train=0.7,val=0.3 --shard-size 20KB -o d <m.jsonl >/dev/null
  members d/val '*.json' | jq -r .source_hash | sort -u >before
  printf 'src3\r\nk05\n\nsrc3\nno<b>body\n' >gone.txt
  vfm-shard --split train=0.7,val=0.3 --shard-size 20KB --without gone.txt --report r.html -o d <m.jsonl >/dev/null 2>err
  grep -q -- "--without: 1 of 3 lines name nothing that is in the input; 'no<b>body' is the one" err
  jq -r 'select(.json.source_hash != "src3" and .key != "k05") | .key' samples.jsonl | sort | diff - <(keys d)
  [ "$(jq -r 'select(.reason == "without" and .by == "source" and .line == "src3") | .key' d/left_out.jsonl | wc -l)" = 7 ]
  [ "$(jq -r 'select(.by == "key") | .key' d/left_out.jsonl)" = k05 ]
  jq -e '.left_out.without == 8' d/dataset.json >/dev/null
  run ! grep -q src3 d/sources.jsonl
  # The others stay where they are.
  members d/val '*.json' | jq -r .source_hash | sort -u | diff - <(grep -v src3 before)
  # The page has the lines, as text, and its numbers come to what was read.
  grep -q '52 samples in .* Read: 60; filtered out: 0; duplicates dropped: 0; left out by --without: 8[.]' r.html
  grep -q 'no&lt;b&gt;body' r.html
  run ! grep -q '<b>' r.html
  # All that is left is what a new dataset without them has.
  grep -v -e '"src3"' -e '"k05"' samples.jsonl >rest.jsonl
  make_shards rest <rest.jsonl >rest.m
  vfm-shard --shard-size 20KB -o new <rest.m >/dev/null
  [ "$(keys d)" = "$(keys new)" ]
  vfm-shard --split train=0.7,val=0.3 --shard-size 20KB -o d <m.jsonl >/dev/null
  [ "$(keys d | wc -l)" = 60 ]
  [ ! -e d/left_out.jsonl ]
  printf 'src%d\n' 0 1 2 3 4 5 6 7 8 >all.txt
  fails 1 vfm-shard --without all.txt -o d2 m.jsonl
  grep -q 'no sample is left: 60 read, 0 of them filtered out, 60 taken out' err
}
