#!/usr/bin/env bats
# vfm-caption: captions from files beside a video, from fields and from foreign shards.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
load three_clips
bats_require_minimum_version 1.5.0

@test "an srt counts from where a transport stream begins" {
  quiet_ffmpeg -f lavfi -i color=red:size=64x48:rate=10:duration=1 -f lavfi -i color=blue:size=64x48:rate=10:duration=1 \
    -filter_complex concat -c:v libx264 -preset ultrafast -pix_fmt yuv420p -output_ts_offset 1000 late.ts
  quiet_ffmpeg -i late.ts -c copy late.mp4
  printf '1\n00:00:00,100 --> 00:00:00,900\nred\n\n2\n00:00:01,100 --> 00:00:01,900\nblue\n' >late.srt
  printf '[{"start":1001,"end":1010,"caption":"by the clock"}]' >late.json
  local file
  for file in late.ts late.mp4; do
    vfm-clip -q "$file" -o "clips-$file" --stitch none >"$file.jsonl"
    vfm-caption -q --from existing:srt "$file.jsonl" >captions.jsonl
    [ "$(tar -xOf clips-$file/*.caption.tar --wildcards '*.txt')" = redblue ]
  done
  [ "$(tar -xOf clips-late.ts/*0.tar --wildcards '*.json' | jq -s 'all(.source_begin > 1000 and .source_begin < 1002)')" = true ]
  [ "$(tar -xOf clips-late.mp4/*0.tar --wildcards '*.json' | grep -c source_begin)" -eq 0 ]
  # A list of captions has the clip's own times.
  vfm-caption -q --from existing:json --force late.ts.jsonl >captions.jsonl
  [ "$(tar -xOf clips-late.ts/*.caption.tar --wildcards '*.txt' | sort -u)" = "by the clockby the clock" ]
}

@test "captions come from an srt beside the source, by span, else from measurements" {
  make_shard a
  printf '1\r\n00:00:00,000 --> 00:00:01,000\r\n<i>a red</i> square\r\n\r\n2\r\n00:00:01,100 --> 00:00:01,900\r\ntest\r\n' >v.srt
  run --separate-stderr vfm-caption --sidecars . a.tar
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "$(member a.caption.tar ac1.txt)" = "a red square" ]
  [ "$(member a.caption.tar ac1.json)" = '{"caption":"a red square","caption_source":"existing:srt"}' ]
  [ "$(member a.caption.tar ac2.txt)" = "test" ]
  [ "$(member a.caption.tar ac3.txt)" = "A very dark black-and-white 1-second video, without motion." ]
  [ "$(source_of a.caption.tar ac3)" = "builtin:measure" ]
  [ "$(tar -tf a.caption.tar | tr '\n' ' ')" = "ac1.txt ac1.json ac2.txt ac2.json ac3.txt ac3.json " ]
  [ ! -e caption-errors.jsonl ]
}

@test "txt and json beside the source; the order of sources; naming one" {
  make_shard a
  echo "whole video" >v.txt
  echo '[{"start":0,"end":1,"caption":"first"},{"start":1,"end":2,"caption":"second"}]' >v.json
  printf '1\n00:00:00,000 --> 00:00:03,000\nsub\n' >v.srt
  vfm-caption --sidecars . a.tar
  [ "$(member a.caption.tar ac2.txt)" = "whole video" ]
  [ "$(source_of a.caption.tar ac2)" = "existing:txt" ]
  vfm-caption --sidecars . --from existing:json,existing:srt a.tar
  [ "$(member a.caption.tar ac2.txt)" = "second" ]
  [ "$(member a.caption.tar ac3.txt)" = "sub" ]
  vfm-caption --from builtin:measure a.tar
  [ "$(source_of a.caption.tar ac2)" = "builtin:measure" ]
  [[ "$(member a.caption.tar ac1.txt)" == "A 1-second video, mostly grey with some red, without motion"* ]]
}

# captions MANIFEST: each clip's key, caption and where it is from.
captions() {
  local tar
  while read -r tar; do
    tar -xOf "$tar" --wildcards '*.json' | jq -c '[.caption, .caption_source]' | paste <(tar -tf "$tar" | grep json) -
  done < <(records <"$1" | jq -r .columns.caption) | sort
}

@test "a renamed video has the caption beside its new name, also where another has its old one" {
  local join clip="vfm-clip -q"
  for join in apart joined; do
    cp "$CLIPS/c1.mp4" a.mp4
    cp "$CLIPS/c2.mp4" b.mp4
    echo "a square" >a.txt
    echo "a test picture" >b.txt
    $clip --into $join -o clips a.mp4 b.mp4 | vfm-caption -q --force >first.jsonl
    captions first.jsonl >first
    [ "$(grep -c existing:txt first)" -eq 2 ]
    # c has what a was, and a what b was.
    mv a.mp4 c.mp4
    mv b.mp4 a.mp4
    echo "the square, renamed" >c.txt
    echo "the test picture, renamed" >a.txt
    rm b.txt
    $clip --into $join -o clips a.mp4 c.mp4 >clips.jsonl
    vfm-caption -q clips.jsonl >second.jsonl
    captions second.jsonl >second
    sed 's/"a \([a-z ]*\)"/"the \1, renamed"/' first | cmp second
    vfm-caption -q --force clips.jsonl >second.jsonl
    [ "$(captions second.jsonl | grep -c renamed)" -eq 2 ]
    rm -r clips
  done
}

@test "a field of the sample or of the record" {
  make_shard a
  echo '{"kind":"shard","path":"a.tar","title":"of the record","caption":"known"}' |
    vfm-caption --from field:title
  [ "$(member a.caption.tar ac2.txt)" = "of the record" ]
  [ "$(source_of a.caption.tar ac2)" = "field:title" ]
  echo '{"kind":"shard","path":"a.tar","caption":"known"}' | vfm-caption
  [ "$(source_of a.caption.tar ac2)" = "existing:field" ]
  vfm-caption --from field:source a.tar
  [ "$(member a.caption.tar ac2.txt)" = "v.mp4" ]
}

@test "a foreign WebDataset: gzip, directories in keys, txt members, no json" {
  mkdir -p f/train
  cp "$CLIPS/c1.mp4" f/train/0001.mp4
  cp "$CLIPS/c2.mp4" f/train/0002.mp4
  echo "théâtre" >f/train/0001.txt
  printf ' \n' >f/train/0002.txt
  tar --format=pax --sort=name -C f -czf x.tar.gz train/0001.mp4 train/0001.txt train/0002.mp4 train/0002.txt
  run --separate-stderr vfm-caption - <<<'{"kind":"shard","path":"x.tar.gz"}'
  only_records
  [ "$status" -eq 0 ]
  [[ "$output" == *'"caption":"x.caption.tar"'* ]]
  first=$(tar -tf x.caption.tar | head -1)
  [ "$(member x.caption.tar "$first")" = "théâtre" ]
  [ "$(tar -xOf x.caption.tar --wildcards '*.json' | grep -o 'existing:member\|builtin:measure' | tr '\n' ' ')" = "existing:member builtin:measure " ]
}

@test "captions in every script, in UTF-16, malformed, empty, and of 100 kB" {
  local n=0 key
  mkdir s
  : >expected
  for text in 'a red fox' 'красная лиса' 'ثعلب أحمر' 'שועל אדום' 'लाल लोमड़ी' 'สุนัขจิ้งจอกสีแดง' '赤い狐' \
    '붉은 여우' 'κόκκινη αλεπού' '👩‍🚀🦊 🇫🇷' 'mixed עברית and 中文'; do
    key=$(printf 'k%02d' "$n")
    cp "$CLIPS/c3.mp4" "s/$key.mp4"
    echo "{\"source\":\"$key.mp4\"}" >"s/$key.json"
    printf '%s\n' "$text" >"$key.txt"
    printf '%s\n' "$text" >>expected
    n=$((n + 1))
  done
  cp "$CLIPS/c3.mp4" s/m1.mp4 && echo '{"source":"m1.mp4"}' >s/m1.json
  printf '\377\376r\0e\0d\0\n\0' >m1.txt && echo red >>expected
  cp "$CLIPS/c3.mp4" s/m2.mp4 && echo '{"source":"m2.mp4"}' >s/m2.json
  printf 'bad \377\300 bytes' >m2.txt && echo 'bad �� bytes' >>expected
  cp "$CLIPS/c3.mp4" s/m3.mp4 && echo '{"source":"m3.mp4"}' >s/m3.json
  : >m3.txt && echo 'A very dark black-and-white 1-second video, without motion.' >>expected
  cp "$CLIPS/c3.mp4" s/m4.mp4 && echo '{"source":"m4.mp4"}' >s/m4.json
  long=$(printf 'wörter %.0s' {1..14000})
  printf '%s' "$long" >m4.txt && printf '%s\n' "${long% }" >>expected
  tar --format=ustar --sort=name -C s -cf a.tar .
  run --separate-stderr vfm-caption --sidecars . a.tar
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  for key in $(tar -tf a.caption.tar | grep txt); do member a.caption.tar "$key" && echo; done >got
  diff expected got
  vfm-caption --sidecars . --max-characters 19 a.tar
  [ "$(member a.caption.tar m4.txt)" = "wörter wörter" ]
}
