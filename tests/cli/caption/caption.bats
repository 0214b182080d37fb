#!/usr/bin/env bats
# vfm-caption: columns, resume, faults.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
load three_clips
bats_require_minimum_version 1.5.0

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
  for n in $(seq 100 199); do
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
