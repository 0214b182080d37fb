#!/usr/bin/env bats
# vfm-embed search: by texts, by files, in columns and in joined shards.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
load ../embed/clips
bats_require_minimum_version 1.5.0

@test "vectors of two encoders of clips are not compared" {
  three a
  three b
  cp -r "$VFM_ROOT/tests/golden/picture_encoders/dinov2" model
  vfm-embed a.tar >embedded.jsonl
  vfm-embed --video model --device cpu b.tar >>embedded.jsonl
  run --separate-stderr vfm-embed search "$CLIPS/red.mp4" embedded.jsonl
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 3 ]
  [[ "$stderr" == *"b.tar: 3 samples were embedded by"*"search them apart"* ]]
  [ "$(vfm-embed search "$CLIPS/red.mp4" --top 1 b.tar | records | keys)" = "br " ]
  # The folder holds another model now.
  rm -r model
  cp -r "$VFM_ROOT/tests/golden/picture_encoders/dinov2_own" model
  run --separate-stderr vfm-embed search "$CLIPS/red.mp4" b.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"br was embedded by"*"which is not what"* ]]
}

@test "a text finds clips without captions, by a model of texts and pictures" {
  three a
  rm a.caption.tar
  make_shard b "br=red=a red fox"
  clip_model model
  vfm-embed --video model --device cpu a.tar >embedded.jsonl
  vfm-embed --video model --text model --device cpu b.tar
  run --separate-stderr vfm-embed search 'a red fox' embedded.jsonl
  only_records
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "${#lines[@]}" -eq 3 ]
  # The cosine of what the two towers give.
  python3 - "$output" <<'END'
import json, struct, sys, tarfile
def halves(name):
    data = tarfile.open("b.embed.tar").extractfile(name).read()
    return [v for (v,) in struct.iter_unpack("<e", data[-24:])]
expected = sum(a * b for a, b in zip(halves("br.video.npy"), halves("br.text.npy"), strict=True))
scores = {line["key"]: line["score"] for line in map(json.loads, sys.argv[1].splitlines())}
assert abs(scores["ar"] - expected) < 2e-3, (scores, expected)
assert len(set(scores.values())) == 3
END
  rm model/tokenizer.json
  run --separate-stderr vfm-embed search 'a red fox' embedded.jsonl
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"tokenizer"* ]]
  cp "$VFM_ROOT"/tests/golden/picture_encoders/clip/*.{json,safetensors} model
  run --separate-stderr vfm-embed search 'a red fox' embedded.jsonl
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"holds another model now"* ]]
}

@test "search by text: words, misspelled words, any script" {
  three a
  make_shard b "b1=test=a red fox crosses a snowy road" "b2=test=рыжая лиса" "b3=blue="
  vfm-embed a.tar b.tar >embedded.jsonl
  run --separate-stderr vfm-embed search 'red square' --top 2 embedded.jsonl
  only_records
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "${#lines[@]}" -eq 2 ]
  [[ "${lines[0]}" == '{"kind":"match","rank":1,"score":'*',"key":"ar","path":"a.tar","caption":"a red square"'* ]]
  [ "$(vfm-embed search 'snowi raod' --top 1 embedded.jsonl | records | keys)" = "b1 " ]
  [ "$(vfm-embed search 'ЛИСА' --top 1 ./*.tar | records | keys)" = "b2 " ]
  [ "$(vfm-embed search 'blue' --top 1 embedded.jsonl | records | keys)" = "as " ]
  [ "$(vfm-embed search 'square' embedded.jsonl | records | wc -l)" -eq 6 ]
}

@test "search by text: one encoder in two folders is one" {
  three a
  three b
  for shard in a b; do
    cp -r "$VFM_ROOT/tests/golden/t5/v1_1" t5-$shard
    vfm-embed --text t5-$shard --device cpu $shard.tar >>embedded.jsonl
  done
  run --separate-stderr vfm-embed search 'red square' embedded.jsonl
  only_records
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "${#lines[@]}" -eq 6 ]
  [ "$(head -n 2 <<<"$output" | keys)" = "ar br " ]
}

@test "search by a video finds its copies first" {
  three a
  make_shard b bt=smaller=
  vfm-embed a.tar b.tar >embedded.jsonl
  [ "$(vfm-embed search "$CLIPS/test.mp4" --top 2 embedded.jsonl | records | keys)" = "at bt " ]
  score=$(vfm-embed search "$CLIPS/test.mp4" --top 2 embedded.jsonl | records | sed -n '2s/.*"score":\([0-9.]*\).*/\1/p')
  awk -v s="$score" 'BEGIN { exit !(s > 0.98) }'
  score=$(vfm-embed search "$CLIPS/red.mp4" --top 2 embedded.jsonl | records | sed -n '2s/.*"score":\([0-9.]*\).*/\1/p')
  awk -v s="$score" 'BEGIN { exit !(s < 0.9) }'
  quiet_ffmpeg -i "$CLIPS/blue.mp4" -frames:v 1 picture.png
  [ "$(vfm-embed search picture.png --top 1 embedded.jsonl | records | keys)" = "as " ]
}

@test "search in one joined shard, with text and vectors inside" {
  three a
  vfm-embed a.tar
  mkdir j
  tar -xf a.tar -C j --exclude '*.json'
  tar -xf a.caption.tar -C j --exclude '*.json'
  tar -xf a.embed.tar -C j
  mkdir dataset
  tar --format=ustar --sort=name -C j -cf dataset/000000.tar .
  run --separate-stderr vfm-embed search 'test picture' --top 1 dataset/000000.tar
  only_records
  [ "$status" -eq 0 ]
  [[ "$output" == *'"key":"at","path":"dataset/000000.tar","caption":"a test picture"}' ]]
}

@test "search says what is missing" {
  three a
  run --separate-stderr vfm-embed search red a.tar
  [ "$status" -eq 1 ]
  only_records
  [ -z "$output" ]
  [[ "$stderr" == *"a.tar: has no text embeddings; run vfm-caption, then vfm-embed on it first"* ]]
  run --separate-stderr vfm-embed search nothere.mp4 a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"cannot open 'nothere.mp4'"* ]]
  for text in '' ' ... '; do
    run --separate-stderr vfm-embed search "$text" a.tar
    [ "$status" -eq 2 ]
  done
  run --separate-stderr vfm-embed search red - </dev/null
  [ "$status" -eq 1 ]
  # Quotes forgotten.
  vfm-caption a.tar | vfm-embed >embedded.jsonl
  run --separate-stderr vfm-embed search a red circle embedded.jsonl
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"argument 'red' is a 'video', not a shard; a text of several words to search for stands in quotes"* ]]
  [[ "$stderr" == *"argument 'circle' is a 'video', not a shard"* ]]
  [ -n "$(records <<<"$output")" ]
}
