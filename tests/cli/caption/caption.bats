#!/usr/bin/env bats
# vfm-caption: sources of captions, columns, resume, faults.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
bats_require_minimum_version 1.5.0

# Three clips of 1 s, made once: c1 (red square on grey), c2 (test picture), c3 (black).
setup_file() {
  export CLIPS="$BATS_FILE_TMPDIR/clips"
  mkdir "$CLIPS"
  clip c1 "color=gray:size=64x64:rate=8,drawbox=x=8:y=8:w=24:h=24:color=red:t=fill"
  clip c2 "testsrc2=size=64x48:rate=8"
  clip c3 "color=black:size=64x64:rate=8"
}
clip() {
  ffmpeg -nostdin -loglevel error -y -f lavfi -i "$2" -t 1 -c:v libx264 -preset ultrafast \
    -pix_fmt yuv420p "$CLIPS/$1.mp4"
}

# make_shard NAME [SOURCE]: NAME.tar with the three clips, seconds 0-1, 1-2, 2-3 of SOURCE.
make_shard() {
  local dir="src-$1" n=0 key
  mkdir "$dir"
  for key in c1 c2 c3; do
    cp "$CLIPS/$key.mp4" "$dir/$1$key.mp4"
    printf '{"key":"%s","media":"video","source":"%s","begin":%d,"end":%d,"seconds":1}' \
      "$1$key" "${2:-v.mp4}" "$n" "$((n + 1))" >"$dir/$1$key.json"
    n=$((n + 1))
  done
  tar --format=ustar --sort=name -C "$dir" -cf "$1.tar" .
}

member() { tar -xOf "$1" "$2"; }
source_of() { member "$1" "$2.json" | sed 's/.*"caption_source":"\([^"]*\)".*/\1/'; }

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

@test "stdout is one record with the column, and unknown keys pass" {
  make_shard a
  local bytes hash
  bytes=$(stat -c %s a.tar)
  hash=$(vfm-caption a.tar | records | sed 's/.*"xxh3":"\([0-9a-f]*\)".*/\1/')
  [ "${#hash}" -eq 32 ]
  run --separate-stderr vfm-caption a.tar
  only_records
  [ "$output" = '{"kind":"shard","path":"a.tar","samples":3,"bytes":'"$bytes"',"xxh3":"'"$hash"'","columns":{"clip":"a.tar","caption":"a.caption.tar"}}' ]
  run --separate-stderr vfm-caption - <<<'{"kind":"shard","path":"a.tar","mine":[1,2],"columns":{"clip":"a.tar"}}'
  only_records
  [ "$output" = '{"kind":"shard","path":"a.tar","mine":[1,2],"samples":3,"bytes":'"$bytes"',"xxh3":"'"$hash"'","columns":{"clip":"a.tar","caption":"a.caption.tar"}}' ]
}

@test "records of other kinds pass unchanged, in order" {
  make_shard a
  make_shard b
  printf '%s\n' '{"kind":"note","text":"x","n":1.50}' a.tar '{"kind":"video","path":"q.mp4"}' b.tar >list.jsonl
  run --separate-stderr vfm-caption -j4 list.jsonl
  only_records
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = '{"kind":"note","text":"x","n":1.5}' ]
  [[ "${lines[1]}" == *'"path":"a.tar"'* ]]
  [ "${lines[2]}" = '{"kind":"video","path":"q.mp4"}' ]
  [[ "${lines[3]}" == *'"path":"b.tar"'* ]]
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

@test "a field inside of others: names with dots, places in lists, lists of texts" {
  make_shard a
  record='{"kind":"shard","path":"a.tar","meta":{"caption":"nested","all":["","first","second"]},
    "meta.caption":"of that very name","deep":[{"say":["one","two"]}]}'
  from() { tr -d '\n' <<<"$record" | vfm-caption --force --from "$1,builtin:measure" >out.jsonl; member a.caption.tar ac2.txt; }
  [ "$(from field:meta.caption)" = "of that very name" ]
  record=${record/meta.caption/other}
  [ "$(from field:meta.caption)" = "nested" ]
  [ "$(source_of a.caption.tar ac2)" = "field:meta.caption" ]
  [ "$(from field:deep.0.say.1)" = "two" ]
  [ "$(from field:deep.0.say)" = "one" ]
  [ "$(from field:meta.all)" = "first" ]
  for none in field:deep.1.say field:deep.say field:meta.caption.x field:meta. field:deep.0.say.9; do
    from "$none" >none
    [ "$(source_of a.caption.tar ac2)" = "builtin:measure" ]
  done
  # What a field inside says decides the column: another one is made anew.
  tr -d '\n' <<<"$record" | vfm-caption --from field:meta.caption >out.jsonl
  tr -d '\n' <<<"${record/nested/changed}" | vfm-caption --from field:meta.caption >out.jsonl
  [ "$(member a.caption.tar ac2.txt)" = "changed" ]
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

@test "an empty caption is passed over, or kept with --keep-empty" {
  make_shard a
  : >v.txt
  vfm-caption --sidecars . a.tar
  [ "$(source_of a.caption.tar ac1)" = "builtin:measure" ]
  run --separate-stderr vfm-caption --sidecars . --keep-empty a.tar
  [ "$status" -eq 0 ]
  [ -z "$(member a.caption.tar ac1.txt)" ]
  [ "$(source_of a.caption.tar ac1)" = "existing:txt" ]
  rm v.txt
  run --separate-stderr vfm-caption --sidecars . --from existing --keep-empty a.tar
  [ "$status" -eq 0 ]
  [ "$(source_of a.caption.tar ac1)" = "none" ]
  run --separate-stderr vfm-caption --sidecars . --from existing a.tar
  [ "$status" -eq 1 ]
  [ "$(wc -l <caption-errors.jsonl)" -eq 3 ]
  [[ "$(head -1 caption-errors.jsonl)" == '{"tool":"vfm-caption","input":"ac1 of '"'a.tar'"'","error":"no source has a caption for it","code":"missing"}' ]]
}

@test "the same command again does nothing; what changed is remade" {
  make_shard a
  vfm-caption --sidecars . a.tar >one
  touch -d '2001-01-01' a.caption.tar
  vfm-caption --sidecars . a.tar >two
  cmp one two
  [ "$(stat -c %Y a.caption.tar)" = "$(date -d 2001-01-01 +%s)" ]
  printf '1\n00:00:00,000 --> 00:00:03,000\nnow there is one\n' >v.srt
  vfm-caption --sidecars . a.tar
  [ "$(member a.caption.tar ac1.txt)" = "now there is one" ]
  touch -d '2001-01-01' a.caption.tar
  vfm-caption --sidecars . --max-characters 3 a.tar
  [ "$(member a.caption.tar ac1.txt)" = "now" ]
  vfm-caption --sidecars . a.tar
  touch -d '2001-01-01' a.caption.tar
  vfm-caption --sidecars . --force a.tar
  [ "$(stat -c %Y a.caption.tar)" != "$(date -d 2001-01-01 +%s)" ]
}

@test "a column that loses captions of a source is told when it is replaced" {
  make_shard a
  printf '1\n00:00:00,000 --> 00:00:01,900\nred\n' >v.srt
  vfm-caption --sidecars . a.tar
  run --separate-stderr vfm-caption --from builtin:measure a.tar
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"'a.caption.tar' is replaced: 2 of its samples were made from existing:srt, and 0 are now"* ]]
  # Measured ones are no loss, and what is asked for is not told.
  run --separate-stderr vfm-caption --sidecars . a.tar
  [ -z "$stderr" ]
  run --separate-stderr vfm-caption --from builtin:measure --force a.tar
  [ -z "$stderr" ]
}

@test "bytes do not depend on -j" {
  for n in a b c d e; do make_shard "$n"; done
  vfm-caption -j1 -o one {a,b,c,d,e}.tar | records | sed 's/one/DIR/g' >one.jsonl
  vfm-caption -j4 -o four {a,b,c,d,e}.tar | records | sed 's/four/DIR/g' >four.jsonl
  cmp one.jsonl four.jsonl
  for f in one/*.tar; do cmp "$f" "four/${f#one/}"; done
}

@test "bytes do not depend on --hwaccel" {
  make_shard a
  vfm-caption --from builtin:measure -o out a.tar >/dev/null
  mv out none
  vfm-caption --from builtin:measure --hwaccel auto -o out a.tar >/dev/null
  [ "$(tree_hash none)" = "$(tree_hash out)" ]
}

@test "killed at any moment and run again, it ends with the same bytes" {
  mkdir s
  for n in $(seq 100 299); do
    cp "$CLIPS/c2.mp4" "s/k$n.mp4"
    echo '{"source":"v.mp4"}' >"s/k$n.json"
  done
  for n in 1 2 3; do tar --format=ustar --sort=name -C s -cf "$n.tar" .; done
  vfm-caption -o whole ./1.tar ./2.tar ./3.tar | records | sed 's/whole/DIR/g' >whole.jsonl
  kill_at_random 4 vfm-caption -o killed ./1.tar ./2.tar ./3.tar
  vfm-caption -o killed ./1.tar ./2.tar ./3.tar | records | sed 's/killed/DIR/g' >killed.jsonl
  cmp whole.jsonl killed.jsonl
  [ "$(tree_hash whole)" = "$(sed -i s/killed/whole/ killed/*.json && tree_hash killed)" ]
}

@test "bad shards and bad lines cost themselves only" {
  make_shard a
  make_shard t
  head -c 500 t.tar >truncated.tar
  printf '%s\n' 'not.tar' '{"kind":' a.tar '[1]' '{"nokind":1}' truncated.tar '{"kind":"shard"}' a.tar >in
  run --separate-stderr vfm-caption - <in
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 1 ]
  [[ "${lines[0]}" == *'"path":"a.tar"'* ]]
  [ "$(wc -l <caption-errors.jsonl)" -eq 7 ]
  grep -q "cannot open 'not.tar': No such file" caption-errors.jsonl
  grep -q '"input":"truncated.tar"' caption-errors.jsonl
  grep -q '"input":"a.tar","error":"is in the input twice"' caption-errors.jsonl
  [ ! -e truncated.caption.tar ]
  vfm-caption a.tar
  [ ! -e caption-errors.jsonl ]
}

@test "a clip that cannot be decoded gets the caption that its record gives, and an error" {
  make_shard a
  rm a.tar
  head -c 300 /dev/urandom >src-a/ac2.mp4
  echo 'not json' >src-a/ac3.json
  tar --format=ustar --sort=name -C src-a -cf a.tar .
  run --separate-stderr vfm-caption a.tar
  [ "$status" -eq 1 ]
  [ "$(wc -l <caption-errors.jsonl)" -eq 2 ]
  [ "$(member a.caption.tar ac2.txt)" = "A 1-second video." ]
  [ "$(tar -tf a.caption.tar | wc -l)" -eq 6 ]
  # Told again when nothing is left to do.
  run --separate-stderr vfm-caption a.tar
  [ "$status" -eq 1 ]
  [ "$(wc -l <caption-errors.jsonl)" -eq 2 ]
}

@test "a broken sidecar is an error, once, and the next source is asked" {
  make_shard a
  echo '{"caption":' >v.json
  printf '1\n00:00:00,000 --> never\nlost\n' >v.srt
  run --separate-stderr vfm-caption --sidecars . a.tar
  [ "$status" -eq 1 ]
  [ "$(wc -l <caption-errors.jsonl)" -eq 2 ]
  grep -q '"input":"v.srt","error":"the times of 1 of 1 cues cannot be read"' caption-errors.jsonl
  [ "$(source_of a.caption.tar ac1)" = "builtin:measure" ]
}

@test "columns of different shards never replace each other" {
  make_shard a
  mkdir other
  cp a.tar other/a.tar
  run --separate-stderr vfm-caption -o out a.tar other/a.tar
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 1 ]
  grep -q 'would replace' out/caption-errors.jsonl
}

@test "shards named by a glob do not bring their columns along" {
  make_shard a
  make_shard b
  vfm-caption ./*.tar >/dev/null
  run --separate-stderr vfm-caption ./*.tar
  only_records
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 2 ]
}

@test "exit status 2 before any work, 1 for nothing" {
  make_shard a
  export CUDA_VISIBLE_DEVICES=
  for bad in '--from existing:tex' '--from field:' '--max-characters 0' '-j 0' '--nonsense' '--hwaccel vaapi' '--hwaccel cuda'; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-caption $bad a.tar
    [ "$status" -eq 2 ]
    only_records
    [ -z "$output" ]
    [ ! -e a.caption.tar ]
  done
  run --separate-stderr vfm-caption - </dev/null
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"the input has no shard"* ]]
  mkdir d.tar
  run --separate-stderr vfm-caption d.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"'d.tar' is not a finished dataset"* ]]
  run vfm-caption --version
  [ "$status" -eq 0 ]
  [[ "$output" = *"FFmpeg "*"libavcodec "* ]]
}

@test "a closed pipe and a full disk" {
  make_shard a
  make_shard b
  run bash -c 'vfm-caption a.tar b.tar 2>err | true; echo ${PIPESTATUS[0]}'
  [ "$output" -ne 0 ]
  mkdir full
  mount -t tmpfs -o size=8k tmpfs full 2>/dev/null || skip "needs the right to mount"
  run --separate-stderr vfm-caption -o full a.tar
  ls -A full >left
  umount full
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"No space left on device"* ]]
  [ "$(grep -c 'a.caption.tar$' left)" -eq 0 ]
}

@test "a file beside a video that is too large for captions is recorded, and the next source is asked" {
  make_shard a
  truncate -s 65M v.txt
  run --separate-stderr vfm-caption --sidecars . --from existing:txt,builtin:measure a.tar
  [ "$status" -eq 1 ]
  [ "$(jq -r '[.input, .code] | join(" ")' caption-errors.jsonl)" = "v.txt limit" ]
  grep -q "'v.txt' has 65.0 MiB, and captions beside a video are read up to 64.0 MiB" caption-errors.jsonl
  [[ "$(member a.caption.tar ac1.txt)" = "A "* ]]
  # As long as the file is the same, the column stays.
  before=$(stat -c %Y.%i a.caption.tar)
  run vfm-caption --sidecars . --from existing:txt,builtin:measure a.tar
  [ "$status" -eq 1 ]
  [ "$(stat -c %Y.%i a.caption.tar)" = "$before" ]
  echo better >v.txt
  vfm-caption --sidecars . --from existing:txt,builtin:measure a.tar
  [ "$(member a.caption.tar ac1.txt)" = better ]
}

@test "--report shows clips and captions" {
  make_shard a
  printf '1\n00:00:00,000 --> 00:00:01,000\nx < y & z\n' >v.srt
  vfm-caption --sidecars . --report r.html a.tar
  grep -q 'x &lt; y &amp; z' r.html
  grep -q 'data:video/mp4;base64,' r.html
  grep -q 'builtin:measure' r.html
  vfm-caption --sidecars . --report again.html a.tar
  same_pages r.html again.html
}

@test "a column that another program makes is waited for and taken, or made if that one dies" {
  make_shard a
  make_shard b
  vfm-caption -o whole a.tar b.tar >whole.out
  other_program dies/a.caption.json
  waits_for dies/a.caption.json vfm-caption -o dies a.tar b.tar
  [ ! -e dies/a.caption.tar ]
  let_go
  wait $waiting
  [ "$(column_hashes dies)" = "$(column_hashes whole)" ]
  other_program done/a.caption.json
  waits_for done/a.caption.json vfm-caption -o done a.tar b.tar
  cp whole/a.* done
  stat -c %i done/a.caption.tar >before
  let_go
  wait $waiting
  stat -c %i done/a.caption.tar | cmp - before
  [ "$(column_hashes done)" = "$(column_hashes whole)" ]
  diff <(records waiting.out | sed 's/done/whole/g') <(records whole.out)
  # Two at once.
  for _ in 1 2 3; do
    rm -rf both
    vfm-caption -o both a.tar b.tar >/dev/null 2>&1 3>&- &
    vfm-caption -o both b.tar a.tar 2>/dev/null >/dev/null
    wait $!
    [ "$(column_hashes both)" = "$(column_hashes whole)" ]
  done
}
