#!/usr/bin/env bats
# vfm-shard: samples that are the same, or nearly.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load corpus
bats_require_minimum_version 1.5.0

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

# bats test_tags=night
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

# bats test_tags=night
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

# bats test_tags=night
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
