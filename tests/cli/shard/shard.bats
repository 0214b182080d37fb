#!/usr/bin/env bats
# vfm-shard on shards made by hand (tests/data/make_shards.py).
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

make_shards() { "$BATS_TEST_DIRNAME/../../data/make_shards.py" "$@"; }

# corpus [BYTES]: 60 samples of 9 sources in three shards with captions and embeddings; manifest m.jsonl.
corpus() {
  python3 - "${1:-0}" <<'EOF' >samples.jsonl
import json, random, sys
r = random.Random(1)
for i in range(60):
    print(json.dumps({
        "shard": "s%d" % (i % 3), "key": "k%02d" % i, "bytes": int(sys.argv[1]) or 2000 + i,
        "json": {"source_hash": "src%d" % (i % 9), "width": 1280 if i % 2 else 640,
                 "height": 720 if i % 2 else 640, "seconds": 1 + i % 12, "motion": i / 1000,
                 "fps": 30, "frames": 30 * (1 + i % 12)},
        "txt": "caption %d" % i, "video": [r.gauss(0, 1) for _ in range(32)]}))
EOF
  make_shards in <samples.jsonl >m.jsonl
}

# members DIR NAME: the contents of all members NAME (a glob) of all shards below DIR, one a line.
members() {
  find "$1" -name '*.tar' | LC_ALL=C sort | while read -r tar; do
    tar xf "$tar" --to-command='cat; echo' --wildcards "$2"
  done
}

keys() { members "$1" '*.json' | jq -r .key | sort; }

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

@test "exact duplicates: one stays, and it is said why" {
  cat >s.jsonl <<'EOF'
{"shard":"a","key":"k1","bytes":"same","json":{"width":640,"height":360,"source":"a"}}
{"shard":"a","key":"k2","bytes":"same","json":{"width":640,"height":360,"source":"b"}}
{"shard":"b","key":"k3","bytes":"other","json":{"width":640,"height":360,"source":"c"}}
{"shard":"b","key":"k0","bytes":"same","json":{"width":640,"height":360,"source":"d"}}
EOF
  make_shards in <s.jsonl >m.jsonl
  vfm-shard -o d <m.jsonl >/dev/null
  [ "$(keys d | paste -sd' ')" = "k0 k3" ]
  [ "$(jq -r '[.key, .duplicate_of, .kind] | join(" ")' d/duplicates.jsonl | paste -sd,)" = \
    "k1 k0 exact,k2 k0 exact" ]
  jq -e '.duplicates.exact == 2' d/dataset.json >/dev/null
  vfm-shard --keep-duplicates -o e <m.jsonl >/dev/null
  [ "$(keys e | wc -l)" = 4 ]
  [ ! -e e/duplicates.jsonl ]
}

@test "near duplicates: the better one stays, a dropped one drops no other" {
  # big ~ small ~ tail, but big is not like tail; small loses to big, so tail stays. An image is no
  # duplicate of a video.
  cat >s.jsonl <<'EOF'
{"shard":"a","key":"small","bytes":"1","json":{"width":64,"height":64},"video":[1.0,0.10]}
{"shard":"a","key":"big","bytes":"22","json":{"width":640,"height":360},"video":[1.0,0.0]}
{"shard":"a","key":"tail","bytes":"333","json":{"width":32,"height":32},"video":[1.0,0.22]}
{"shard":"a","key":"more","bytes":"4444","json":{"width":640,"height":360},"video":[0.0,1.0]}
{"shard":"a","key":"less","bytes":"55","json":{"width":640,"height":360},"video":[0.0,2.0]}
{"shard":"a","key":"still","media":"jpg","bytes":"66","json":{"width":64,"height":64},"video":[1.0,0.0]}
EOF
  make_shards in <s.jsonl >m.jsonl
  vfm-shard -o d <m.jsonl >/dev/null
  [ "$(keys d | paste -sd' ')" = "big more still tail" ]
  jq -se '.[0] | .key == "less" and .duplicate_of == "more" and .kind == "near" and .cosine == 1 and
    (.reason | test("more bytes"))' d/duplicates.jsonl >/dev/null
  jq -se '.[1] | .key == "small" and .duplicate_of == "big" and .cosine > 0.99 and .cosine < 1 and
    (.reason | test("640x360 against 64x64"))' d/duplicates.jsonl >/dev/null
  vfm-shard --keep-near-duplicates -o e <m.jsonl >/dev/null
  [ "$(keys e | wc -l)" = 6 ]
  vfm-shard --duplicate-threshold 0.9999 -o f <m.jsonl >/dev/null
  [ "$(keys f | wc -l)" = 5 ]
}

@test "--duplicate-method: what was done is said; clusters find what all pairs give, and the same at any -j" {
  "$VFM_BUILD/tests/bench/many_vectors" made 3000 96 0 0 0.1
  ls made/*.tar >m.jsonl
  vfm-shard --duplicate-threshold 0.97 -o a <m.jsonl >/dev/null 2>err
  [ ! -s err ]
  jq -e '.near_duplicates.method == "exact" and (.near_duplicates.sets[0] | has("clusters") | not) and
    .duplicates.near > 200 and (.options | has("duplicate_method") | not)' a/dataset.json >/dev/null
  [ "$(jq -r .method a/duplicates.jsonl | sort -u)" = exact ]
  vfm-shard --duplicate-threshold 0.97 --duplicate-method clusters -j1 -v -o b --report b.html <m.jsonl >/dev/null 2>err
  grep -q "3000 samples with an embedding: near duplicates are searched in clusters" err
  vfm-shard --duplicate-threshold 0.97 --duplicate-method clusters -j3 -o c --report c.html <m.jsonl >/dev/null
  diff -r b c && same_pages b.html c.html
  jq -e '.near_duplicates.method == "clusters" and .options.duplicate_method == "clusters" and
    (.near_duplicates.sets[0].clusters | .count == 109 and .margin == 0.5 and .most == 64 and .numbers == 128 and
    .looked_at >= 3000 and .decided >= 200)' b/dataset.json >/dev/null
  [ "$(jq -r .method b/duplicates.jsonl | sort -u)" = "clusters=109 margin=0.5 most=64 numbers=128" ]
  grep -q "Near duplicates of 3000 videos: among 109 clusters" b.html
  # At most one in fifty is missed, and each that is found is as all pairs have it.
  jq -c 'del(.method)' a/duplicates.jsonl | sort >exact
  jq -c 'del(.method)' b/duplicates.jsonl | sort >clusters
  [ $(($(comm -23 exact clusters | wc -l) * 50)) -le "$(wc -l <exact)" ]
  [ $(($(comm -13 exact clusters | wc -l) * 50)) -le "$(wc -l <exact)" ]
  # It is an option of the dataset.
  fails 2 vfm-shard --duplicate-threshold 0.97 -o b m.jsonl
  grep -q 'duplicate_method' err
  fails 2 vfm-shard --duplicate-method some -o z m.jsonl
  fails 2 vfm-shard --duplicate-method clusters --keep-near-duplicates -o z m.jsonl
  grep -q "near duplicates are kept, so nothing is compared: leave out .*--duplicate-method" err
  fails 2 vfm-shard --duplicate-method clusters --keep-duplicates -o z m.jsonl
  [ ! -e z ]
}

@test "near duplicates: one encoder in two folders is one, of another model or without a hash it is not" {
  cat >s.jsonl <<'EOF'
{"shard":"a","key":"a","bytes":"1","json":{"video_encoder":{"name":"clip","path":"/a","hash":"1"}},"video":[1.0,0.1]}
{"shard":"b","key":"b","bytes":"22","json":{"video_encoder":{"name":"clip","path":"/b","hash":"1"}},"video":[1.0,0.1]}
{"shard":"c","key":"c","bytes":"333","json":{"video_encoder":{"name":"clip","path":"/a","hash":"2"}},"video":[1.0,0.1]}
{"shard":"d","key":"d","bytes":"4444","json":{"video_encoder":{"name":"own","path":"/a"}},"video":[1.0,0.1]}
{"shard":"e","key":"e","bytes":"55555","json":{"video_encoder":{"name":"own","path":"/b"}},"video":[1.0,0.1]}
EOF
  make_shards in <s.jsonl >m.jsonl
  vfm-shard -o d <m.jsonl >/dev/null
  [ "$(keys d | paste -sd' ')" = "b c d e" ]
  jq -e '.key == "a" and .duplicate_of == "b" and .kind == "near"' d/duplicates.jsonl >/dev/null
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

@test "samples that lack a member have shards of their own" {
  cat >s.jsonl <<'EOF'
{"shard":"a","key":"k1","txt":"one","json":{}}
{"shard":"b","key":"k2","json":{}}
EOF
  make_shards in <s.jsonl >m.jsonl
  vfm-shard -o d <m.jsonl | records | jq -r .bin | sort >bins
  [ "$(paste -sd' ' bins)" = "unsized_untimed unsized_untimed_without_txt" ]
}

@test "one bad sample, line or shard is recorded and does not cost the rest" {
  corpus
  {
    echo 'not json {'
    echo '{"kind":"video","path":"a.mp4"}'
    echo '{"kind":"shard","path":"missing.tar"}'
    cat m.jsonl
    echo '{"kind":"shard"'
    echo '["list"]'
  } >bad.jsonl
  echo '{"shard":"bad","key":"list","json":[1]}' | make_shards in >>bad.jsonl
  head -c 3000 /dev/urandom >noise.tar
  echo noise.tar >>bad.jsonl
  status=0
  vfm-shard -o d <bad.jsonl >manifest 2>err || status=$?
  [ "$status" = 1 ]
  [ "$(keys d | wc -l)" = 60 ]
  [ "$(wc -l <d/errors.jsonl)" = 7 ]
  [ "$(grep -c '^vfm-shard: ' err)" -ge 7 ]
  jq -e '.tool == "vfm-shard" and .input != null and .error != null' d/errors.jsonl >/dev/null
  grep -q 'missing.tar' err && grep -q 'noise.tar' err && grep -q 'not a shard' err
}

@test "a key missing in a column skips its sample" {
  corpus
  grep -v '"k07"' samples.jsonl | make_shards short >/dev/null
  cp short/s1.caption.tar in/s1.caption.tar
  status=0
  vfm-shard -o d <m.jsonl >/dev/null 2>err || status=$?
  [ "$status" = 1 ]
  [ "$(keys d | wc -l)" = 59 ]
  grep -q "s1.caption.tar' has no sample 'k07'" d/errors.jsonl
}

@test "keys that come twice: the same sample is dropped, another one is an error, --rekey keeps it" {
  echo '{"shard":"a","key":"k","bytes":"one","json":{}}' | make_shards in >m.jsonl
  echo '{"shard":"b","key":"k","bytes":"two","json":{}}' | make_shards in >>m.jsonl
  cp in/a.tar in/c.tar
  echo '{"kind":"shard","path":"in/c.tar"}' >>m.jsonl
  status=0
  vfm-shard -o d <m.jsonl >/dev/null 2>err || status=$?
  [ "$status" = 1 ]
  grep -q "key 'k' comes twice" err
  [ "$(keys d)" = k ]
  jq -e '.kind == "repeated"' d/duplicates.jsonl >/dev/null
  vfm-shard --rekey -o e <m.jsonl >/dev/null
  [ "$(keys e | wc -l)" = 2 ]
  members e '*.json' | jq -e '.original_key == "k"' >/dev/null
}

@test "one video under two names, cut in two parts, is in the dataset once, and no error" {
  make_video one.mp4
  cp one.mp4 two.mp4
  echo "what it shows" >two.txt
  for part in one two; do
    vfm-clip $part.mp4 -o clips-$part | vfm-caption | vfm-embed >$part.jsonl
  done
  cat one.jsonl two.jsonl | vfm-shard -v -o d >d.jsonl 2>err
  [ "$(keys d | wc -l)" = 1 ]
  [ "$(jq -r .kind d/duplicates.jsonl)" = repeated ]
  [ ! -e d/errors.jsonl ]
  [ "$(members d '*.json' | jq -r .source)" = one.mp4 ] # the first one
  cat one.jsonl two.jsonl | vfm-shard --rekey -o e >e.jsonl
  [ "$(keys e | wc -l)" = 1 ]
}

@test "two columns that disagree skip the sample; a column replaces what the sample had itself" {
  echo '{"shard":"a","key":"k","json":{"caption":"old"},"txt":"t"}' | make_shards in >m.jsonl
  mkdir more
  echo '{"caption":"new"}' >k.json
  tar cf more/one.tar k.json
  echo '{"caption":"newer"}' >k.json
  tar cf more/two.tar k.json
  jq -c '.columns.one = "more/one.tar"' m.jsonl | vfm-shard -o d >/dev/null
  [ "$(members d '*.json' | jq -r .caption)" = new ]
  fails 1 vfm-shard -o e <(jq -c '.columns += {one: "more/one.tar", two: "more/two.tar"}' m.jsonl)
  fails 1 bash -c 'jq -c ".columns += {one: \"more/one.tar\", two: \"more/two.tar\"}" m.jsonl | vfm-shard -o e'
  grep -q "different values of 'caption'" err
}

@test "foreign shards: PAX names, folders, capital letters, NeMo's double dots, no json, an image" {
  quiet_ffmpeg -f lavfi -i color=red:size=322x200 -frames:v 1 red.png
  python3 - <<'EOF'
import io, tarfile
t = tarfile.open("foreign.tar", "w")
for name, data in [("train/0001.MP4", b"a"), ("train/0001.Txt", b"one"), ("n" * 110 + "..mp4", b"b"),
                   ("\u00e4 b.png", open("red.png", "rb").read()), ("README", b"no sample")]:
    i = tarfile.TarInfo(name)
    i.mtime, i.size = 1.5, len(data)
    t.addfile(i, io.BytesIO(data))
t.close()
EOF
  vfm-shard -o d foreign.tar >manifest
  [ "$(keys d | wc -l)" = 3 ]
  [ "$(keys d | grep -cE '^[0-9a-f]{32}$')" = 3 ]
  [ "$(members d '*.png' | wc -c)" -gt 100 ]
  jq -se 'any(.bin | startswith("under256p_16x9_png"))' <(records manifest) >/dev/null
  for packer in gzip zstd; do
    command -v $packer >/dev/null || continue
    $packer -kq foreign.tar
    vfm-shard -o $packer foreign.tar.* >/dev/null
    [ "$(tree_hash d)" = "$(tree_hash $packer)" ]
    rm foreign.tar.*
  done
}

@test "its own dataset can be sharded again" {
  corpus
  vfm-shard --split train=0.7,val=0.3 -o d <m.jsonl >manifest
  vfm-shard --shard-size 20KB -o e <manifest >/dev/null
  [ "$(keys d)" = "$(keys e)" ]
  members e '*.json' | jq -e '.split == "train"' >/dev/null
}

@test "run again, nothing is written again and the manifest is the same" {
  corpus
  vfm-shard --split train=0.8,val=0.2 -o d <m.jsonl >one
  find d -type f -printf '%p %T@ %i\n' | sort >before
  vfm-shard --split train=0.8,val=0.2 -o d <m.jsonl >two
  find d -type f -printf '%p %T@ %i\n' | sort | diff before -
  cmp one two
}

@test "another plan in the folder is refused, and replaced with --force" {
  corpus
  vfm-shard -o d <m.jsonl >/dev/null
  fails 2 vfm-shard --shard-size 20KB --seed 4 -o d m.jsonl
  grep -q -- "--force" err
  vfm-shard --shard-size 20KB --seed 4 --force -o d m.jsonl >/dev/null
  vfm-shard --shard-size 20KB --seed 4 -o fresh m.jsonl >/dev/null
  [ "$(tree_hash d)" = "$(tree_hash fresh)" ]
}

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

# splits DIR: each source with its split.
splits() { members "$1" '*.json' | jq -r '[.source, .split] | join(" ")' | sort -u; }

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

@test "another dataset by mistake: other options and other sources are refused, and nothing is touched" {
  corpus
  vfm-shard -o d m.jsonl >/dev/null
  before=$(tree_hash d)
  fails 2 vfm-shard --split train=0.5,val=0.5 --rekey -o d m.jsonl
  grep -qF "vfm-shard: 'd' holds a dataset of other options (rekey is false there, and now true; split is {\"train\":1.0} there, and now {\"train\":0.5,\"val\":0.5}); choose another folder, or --force to replace it" err
  jq -c '.json.source_hash += "x"' samples.jsonl | make_shards other >other.jsonl
  fails 2 vfm-shard -o d other.jsonl
  grep -qF "vfm-shard: 'd' holds a dataset of other sources; choose another folder, or --force to replace it" err
  # Keys that count from 0 say nothing.
  for name in one two; do echo '{"shard":"'$name'","key":"000000","bytes":"'$name'","json":{}}' | make_shards foreign; done >foreign.jsonl
  vfm-shard -o f foreign/one.tar >/dev/null
  fails 2 vfm-shard -o f foreign/two.tar
  vfm-shard --force -o f foreign/two.tar >/dev/null
  # What is read is not removed.
  tar=$(find d -name '*.tar' | head -n 1)
  fails 2 vfm-shard -o d "$tar"
  grep -qF "vfm-shard: '$tar' is an input and a part of the dataset that would be replaced; choose another folder" err
  fails 2 vfm-shard --force -o d "$tar"
  [ "$(tree_hash d)" = "$before" ]
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

@test "a damaged or missing shard is written again" {
  corpus
  vfm-shard -o d <m.jsonl >manifest
  want=$(tree_hash d)
  tar=$(jq -r .path <(records manifest) | head -1)
  truncate -s 1000 "$tar"
  rm "$(jq -r .path <(records manifest) | sed -n 2p)"
  vfm-shard -o d <m.jsonl >/dev/null
  [ "$(tree_hash d)" = "$want" ]
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

@test "--report writes a page" {
  corpus
  vfm-shard --split train=0.8,val=0.2 --report r.html -o d <m.jsonl >/dev/null
  grep -q '<svg' r.html
  grep -q '720p_16x9_5s' r.html
}

# tar_of FILE NAME=TEXT...: a tar with these members, as Python writes it.
tar_of() {
  python3 - "$@" <<'EOF'
import io, sys, tarfile
with tarfile.open(sys.argv[1], "w:gz" if sys.argv[1].endswith("gz") else "w") as tar:
    for word in sys.argv[2:]:
        name, text = word.split("=", 1)
        info = tarfile.TarInfo(name)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text.encode()))
EOF
}

@test "samples without media, and members whose names are alike, have shards of their own" {
  tar_of in.tar a.mp4=x a.txt=t b.txt=u c.mp4=v c.cap-en=w d.mp4=y d.cap.en=z
  vfm-shard in.tar -o out >manifest
  [ "$(keys out | tr '\n' ' ')" = "a b c d " ]
  [ "$(jq -s 'map(.bin) | unique | length' <(records manifest))" -eq 4 ]
}

@test "many different members make no name too long for a folder" {
  words=()
  for i in $(seq 60); do words+=("k$i.mp4=$i" "k$i.member$i=x"); done
  tar_of in.tar "${words[@]}"
  vfm-shard in.tar -o out >manifest
  [ "$(jq -s 'map(.samples) | add' <(records manifest))" -eq 60 ]
}

@test "a shard that is not what its record says is an error, and so is a changed column" {
  corpus
  printf 'UUUUUUUU' | dd of="$(records m.jsonl | jq -r .path | head -n 1)" bs=1 seek=1600 conv=notrunc status=none
  jq -c --arg hash "$(printf '0%.0s' $(seq 32))" '.xxh3 = $hash' m.jsonl | head -n 1 >vouched.jsonl
  sed -n '2,$p' m.jsonl >>vouched.jsonl
  fails 1 vfm-shard vouched.jsonl -o out
  grep -q 'is not as it was written: its xxh3 is not' out/errors.jsonl
  [ "$(keys out | wc -l)" -eq 40 ]
}

@test "a bare path of a damaged shard, of a dataset or of clips, is an error by the json beside it" {
  corpus
  vfm-shard in/*.tar -o d --shard-size 10GiB >manifest
  tar=$(records manifest | jq -r .path | head -n 1)
  mkdir clips
  cp "$tar" clips/ab-00000.tar
  jq -c '{clips: .samples, shards: [{name: "ab-00000.tar", samples, bytes, xxh3}]}' "${tar%.tar}.json" >clips/ab.json
  vfm-shard "$tar" -o first >/dev/null
  vfm-shard clips/*.tar -o second >/dev/null
  for file in "$tar" clips/ab-00000.tar; do
    printf 'UUUUUUUU' | dd of="$file" bs=1 seek=1600 conv=notrunc status=none
    fails 1 vfm-shard "$file" -o bad
    grep -q "'$file' is not as it was written: its xxh3 is not .*\.json' says" bad/errors.jsonl
  done
  mv clips/ab-00000.tar clips/other.tar
  vfm-shard clips/other.tar -o third >/dev/null
}

@test "a tar with a damaged header, and a gzip file with a wrong check sum, are errors" {
  tar_of whole.tar a.mp4=x b.mp4=y c.mp4=z
  cp whole.tar broken.tar
  printf '\xff' | dd of=broken.tar bs=1 seek=$((1024 + 150)) conv=notrunc status=none
  fails 1 vfm-shard broken.tar -o first
  grep -q 'not a readable tar' first/errors.jsonl
  tar_of zipped.tar.gz a.mp4=x b.mp4=y
  size=$(stat -c %s zipped.tar.gz)
  printf '\x00\x00\x00\x00' | dd of=zipped.tar.gz bs=1 seek=$((size - 8)) conv=notrunc status=none
  fails 1 vfm-shard zipped.tar.gz -o second
  grep -q 'is damaged: gzip says' second/errors.jsonl
}

@test "--keep-duplicates does not put the same bytes into two splits" {
  for i in 1 2 3 4 5 6 7 8; do
    tar_of "s$i.tar" "a$i.mp4=same" "a$i.json={\"source\":\"A$i\"}" "b$i.mp4=own$i" "b$i.json={\"source\":\"B$i\"}"
  done
  vfm-shard s?.tar --keep-duplicates --split train=0.5,val=0.5 -o out >manifest
  [ "$(keys out | wc -l)" -eq 16 ]
  val=$(find out/val -name '*.tar' -exec tar tf {} \; | grep -c '^a.*mp4$' || true)
  [ "$val" -eq 0 ] || [ "$val" -eq 8 ]
}

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

# counts DIR: how many samples of each kind are there.
counts() { members "$1" '*.json' | jq -r '.kind // "none"' | sort | uniq -c | awk '{ printf "%s%s ", $2, $1 }'; }

@test "--balance by a field: each value at most its fair share, and it is said what is left out and why" {
  kinds
  # 60 samples, four values: 15 of each.
  vfm-shard --balance kind -o d <m.jsonl >/dev/null 2>err
  [ ! -s err ]
  [ "$(counts d)" = "a15 b15 c4 none1 " ]
  [ "$(wc -l <d/left_out.jsonl)" = 25 ]
  jq -se 'all(.[]; .reason == "balance" and .by == "kind" and .value == "a" and .samples == 40 and .most == 15)' \
    d/left_out.jsonl >/dev/null
  cat <(jq -r .key d/left_out.jsonl) <(keys d) | sort | diff - <(jq -r .key samples.jsonl | sort)
  jq -e '.samples == 35 and .left_out == {balance: 25, without: 0} and .options.balance == {kind: 1} and
    (.balance[0] | .by == "kind" and .values == 4 and .samples == 60 and .left_out == 25 and
      .largest[0] == {value: "a", samples: 40, most: 15, stay: 15} and .largest[3].value == null)' d/dataset.json >/dev/null
  # The square root of how many there are: 60 * sqrt(40) / (sqrt(40) + sqrt(15) + sqrt(4) + 1) = 28.8.
  vfm-shard --balance kind=0.5 -o e <m.jsonl >/dev/null
  [ "$(counts e)" = "a29 b15 c4 none1 " ]
  # What the lower strength leaves out the higher one does, too.
  [ -z "$(comm -13 <(jq -r .key d/left_out.jsonl | sort) <(jq -r .key e/left_out.jsonl | sort))" ]
  # Balanced already: nothing is left out.
  vfm-shard --where "kind = 'a' OR kind = 'b'" --balance source -o f <m.jsonl >/dev/null
  [ ! -e f/left_out.jsonl ]
}

@test "--balance: 30 and 30.0 are one value, and the text 30 is another one" {
  for i in 0 1 2 3 4 5 6 7; do
    printf '{"shard":"s","key":"k%d","bytes":"%d","json":{"rate":%s}}\n' $i $i "$([ $i = 7 ] && echo '"30"' || echo "30$([ $i -lt 3 ] && echo .0)")"
  done | make_shards in >m.jsonl
  vfm-shard --balance rate -o d m.jsonl >/dev/null
  jq -e '[.balance[0].largest[] | [.value, .samples, .most, .stay]] == [[30, 7, 4, 4], ["30", 1, 1, 1]]' d/dataset.json >/dev/null
  # Sources of which nothing stays have no split.
  jq -se 'length == 5 and all(.[]; .split == "train")' d/sources.jsonl
}

@test "--balance is the same with -j1 and -j4, in any order of the input, and when it is run again" {
  kinds
  rules=(--balance "kind=0.5,text.npy" --balance-clusters 3 --keep-near-duplicates)
  vfm-shard "${rules[@]}" -j1 -o a <m.jsonl >/dev/null
  tac m.jsonl | vfm-shard "${rules[@]}" -j4 -o b >/dev/null
  vfm-shard --balance "text.npy,kind=0.5" --balance-clusters 3 --keep-near-duplicates -o c <m.jsonl >/dev/null
  [ "$(tree_hash a)" = "$(tree_hash b)" ]
  [ "$(keys a)" = "$(keys c)" ]
  vfm-shard "${rules[@]}" -o a <m.jsonl >again
  [ "$(tree_hash a)" = "$(tree_hash b)" ]
  vfm-shard --seed 1 "${rules[@]}" -o e <m.jsonl >/dev/null
  [ "$(keys a)" != "$(keys e)" ]
  # Another balance is another dataset, and none is another one, too.
  fails 2 vfm-shard --balance kind --keep-near-duplicates -o a m.jsonl
  grep -q 'holds a dataset of other options (balance is ' err
  fails 2 vfm-shard --keep-near-duplicates -o a m.jsonl
  grep -q 'holds a dataset of other options (balance is .* there, and now null' err
}

@test "--balance by clusters of embeddings finds the heaps, and names the sample in their middle" {
  kinds
  vfm-shard --balance text.npy --balance-clusters 3 --keep-near-duplicates -o d <m.jsonl >/dev/null
  # Three heaps of 40, 15 and 5: 20 of each.
  [ "$(counts d)" = "a20 b15 c4 none1 " ]
  jq -e '.balance[0] | .by == "text.npy" and .encoder.hash == "1" and .values == 3 and
    [.largest[].samples] == [40, 15, 5] and (.largest[0] | .most == 20 and .stay == 20 and (.nearest | test("^k[0-3]")))' \
    d/dataset.json >/dev/null
  vfm-shard --balance text.npy --keep-near-duplicates -o e --report r.html <m.jsonl >/dev/null
  jq -e '.balance[0].values <= 8' e/dataset.json >/dev/null
  grep -q 'next to its centre' r.html
  # Vectors of two encoders have no clusters in common.
  echo '{"shard":"z","key":"z","json":{"text_encoder":{"name":"own","hash":"2"}},"vectors":{"text":[1,0,0]}}' |
    make_shards in >z.jsonl
  fails 2 vfm-shard --balance text.npy --keep-near-duplicates -o g m.jsonl z.jsonl
  grep -q 'are of other encoders than those of others' err
}

@test "--balance and --duplicate-vector: bad rules and names that no sample has end with status 2" {
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

@test "--duplicate-vector: captions of one encoder that say the same, whatever the videos look like" {
  cat >s.jsonl <<'EOT'
{"shard":"a","key":"a","bytes":"1","json":{"text_encoder":{"name":"own","hash":"1"}},"video":[1,0],"vectors":{"text":[[1,0],[0,1]]}}
{"shard":"a","key":"b","bytes":"22","json":{"text_encoder":{"name":"own","hash":"1"}},"video":[0,1],"vectors":{"text":[[0,3],[2,0]]}}
{"shard":"b","key":"c","bytes":"333","json":{"text_encoder":{"name":"own","hash":"1"}},"video":[0,1],"vectors":{"text":[[1,0],[1,0]]}}
{"shard":"c","key":"d","bytes":"4444","json":{"text_encoder":{"name":"own","hash":"2"}},"video":[-1,0],"vectors":{"text":[[1,0],[0,1]]}}
EOT
  make_shards in <s.jsonl >m.jsonl
  vfm-shard --duplicate-vector text.npy -o d <m.jsonl >/dev/null 2>err
  [ "$(keys d | paste -sd' ')" = "b c d" ]
  jq -e '.key == "a" and .duplicate_of == "b" and .kind == "near" and .cosine == 1' d/duplicates.jsonl >/dev/null
  grep -q "the 'text.npy' of the samples are of 2 encoders" err
  jq -e '.near_duplicates | .by == "text.npy" and .method == "exact" and
    ([.sets[] | [.encoder.hash, .samples]] | sort) == [["1", 3], ["2", 1]]' d/dataset.json >/dev/null
  # A caption without tokens has no vector.
  echo '{"shard":"z","key":"z","json":{},"video":[1,1],"vectors":{"text":[[],[]]}}' | make_shards in >z.jsonl
  timeout -s KILL 30 vfm-shard --duplicate-vector text.npy --balance text.npy --where "key = 'z'" -o z z.jsonl >/dev/null
  [ "$(keys z)" = z ]
  vfm-shard -o e <m.jsonl >/dev/null
  jq -e '.near_duplicates.by == "video.npy"' e/dataset.json >/dev/null
  [ "$(keys e | paste -sd' ')" = "a c d" ]
  fails 2 vfm-shard --duplicate-vector text.npy -o e m.jsonl
  grep -q 'near_duplicates is null there, and now "text.npy"' err
}

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
