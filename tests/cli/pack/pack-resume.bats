#!/usr/bin/env bats
# vfm-pack: the same bytes again, after a kill, a fault, a full disk or with other options; one program at a time.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
load clips
bats_require_minimum_version 1.5.0

@test "bytes depend neither on -j nor on the order of the input" {
  make_shard a a1=test.mp4 a2=red.mp4 a3=short.mp4 a4=tiny.mp4
  make_shard b b1=test.mp4 b2=pic.png
  make_shard c c1=short.mp4
  pack -j1 -o one ./a.tar ./b.tar ./c.tar | records | sed 's/one/DIR/' >one.jsonl
  pack -j4 -o four ./a.tar ./b.tar ./c.tar | records | sed 's/four/DIR/' >four.jsonl
  cmp one.jsonl four.jsonl
  pack -j3 -o turned ./c.tar ./a.tar ./b.tar >/dev/null
  [ "$(tree_hash one)" = "$(tree_hash four)" ]
  [ "$(tree_hash one)" = "$(tree_hash turned)" ]
}

@test "killed at any moment and run again, it ends with the same bytes" {
  local specs=() n
  for n in $(seq 10 29); do specs+=("k$n=test.mp4"); done
  make_shard 1 "${specs[@]}"
  make_shard 2 "${specs[@]//k/m}"
  make_shard 3 "${specs[@]//k/n}"
  pack -o whole ./1.tar ./2.tar ./3.tar | records | sed 's/whole/DIR/' >whole.jsonl
  kill_at_random 5 vfm-pack --size 64 -o killed ./1.tar ./2.tar ./3.tar
  pack -o killed ./1.tar ./2.tar ./3.tar | records | sed 's/killed/DIR/' >killed.jsonl
  cmp whole.jsonl killed.jsonl
  [ "$(tree_hash whole)" = "$(tree_hash killed)" ]
}

@test "the same command again does nothing; a changed shard is remade" {
  make_shard a a1=test.mp4
  make_shard b b1=red.mp4
  pack -o out a.tar b.tar >one
  touch -d '2001-01-01' out/train/*.tar out/train/index.bin out/latents.json
  pack -o out a.tar b.tar >two
  cmp one two
  [ "$(stat -c %Y out/train/a.tar)" = "$(date -d 2001-01-01 +%s)" ]
  [ "$(stat -c %Y out/latents.json)" = "$(date -d 2001-01-01 +%s)" ]
  [ "$(stat -c %Y out/train/index.bin)" = "$(date -d 2001-01-01 +%s)" ]
  make_shard b b1=red.mp4 b2=short.mp4
  pack -o out a.tar b.tar >/dev/null
  [ "$(stat -c %Y out/train/a.tar)" = "$(date -d 2001-01-01 +%s)" ]
  [ "$(wc -l <out/train/index.jsonl)" -eq 3 ]
  [ "$(stat -c %Y out/train/index.bin)" != "$(date -d 2001-01-01 +%s)" ]
  run --separate-stderr pack -o out a.tar
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"'out' held 1 shard that is not of this input, and now removed"* ]]
  [ "$(wc -l <out/train/index.jsonl)" -eq 1 ]
  [ -z "$(find out -name 'b.*')" ]
  [ "$(stat -c %Y out/train/a.tar)" = "$(date -d 2001-01-01 +%s)" ]
  pack -o fresh a.tar >/dev/null
  [ "$(tree_hash out)" = "$(tree_hash fresh)" ]
}

# bats test_tags=night
@test "a folder of another set is not taken for the set before the input changed" {
  make_shard a a1=test.mp4
  pack -o out a.tar >/dev/null
  before=$(tree_hash out)
  mkdir elsewhere
  make_shard elsewhere/a b1=red.mp4
  run --separate-stderr pack -o out elsewhere/a.tar
  [ "$status" -eq 2 ]
  [ "$stderr" = "vfm-pack: 'out/train/a.tar' was made of 'a.tar', and now would be of 'elsewhere/a.tar'; choose another folder, or --force to replace all latents in this one" ]
  [ "$(tree_hash out)" = "$before" ]
  # The same contents from elsewhere are the same set.
  cp a.tar elsewhere/a.tar
  pack -o out elsewhere/a.tar >/dev/null
  [ "$(tree_hash out)" = "$before" ]
  # Latents of another set under other names are no part of this one, and stay.
  make_shard c c1=red.mp4
  run --separate-stderr pack -o out c.tar
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"'out' also holds 1 shard that is not of this input, and not in the index"* ]]
  [ -e out/train/a.tar ]
  pack --force -o out c.tar >/dev/null
  [ ! -e out/train/a.tar ]
}

@test "a folder of other options is refused, --force replaces it" {
  make_shard a a1=test.mp4
  make_shard b b1=test.mp4
  pack -o out a.tar b.tar >/dev/null
  before=$(tree_hash out)
  run --separate-stderr pack -o out --channels 12 a.tar
  [ "$status" -eq 2 ]
  only_records
  [ -z "$output" ]
  [[ "$stderr" == *"'out' holds latents of other options ("*" there, and now "*"--force"* ]]
  [ "$(tree_hash out)" = "$before" ]
  pack -o out --channels 12 --force a.tar >/dev/null
  pack -o fresh --channels 12 a.tar >/dev/null
  [ "$(tree_hash out)" = "$(tree_hash fresh)" ]
}

@test "bad lines, shards and clips cost themselves only, and are reported again on resume" {
  make_shard a a1=test.mp4 a2=red.mp4 a3=short.mp4
  head -c 300 /dev/urandom >a.d/a2.mp4
  echo nonsense >a.d/a3.text.npy
  tar --format=ustar --sort=name -C a.d -cf a.tar .
  make_shard b a1=red.mp4 b2=red.mp4
  make_shard t t1=red.mp4 t2=red.mp4
  head -c 7000 t.tar >cut.tar
  mkdir other
  cp b.tar other/b.tar
  printf '%s\n' nothere.tar '{"kind":' '{"kind":"video","path":"a.mp4"}' '{"kind":"shard","path":"a.tar","split":"../up"}' \
    a.tar b.tar cut.tar other/b.tar >in
  run --separate-stderr pack -o out - <in
  [ "$status" -eq 1 ]
  [ "$(field path <<<"$output" | tr '\n' ' ')" = '"out/train/a.tar" "out/train/b.tar" "out/train/cut.tar" ' ]
  grep -q "cannot open 'nothere.tar'" out/errors.jsonl
  grep -q '"input":"a.mp4","error":"is a video, not a shard' out/errors.jsonl
  grep -q "its split '../up' cannot name a folder" out/errors.jsonl
  grep -q "\"input\":\"a2 of 'a.tar'\"" out/errors.jsonl
  grep -q "\"input\":\"a3 of 'a.tar'\",\"error\":\"its 'text.npy'" out/errors.jsonl
  grep -q "\"input\":\"a1 of 'b.tar'\",\"error\":\"its key was there before\"" out/errors.jsonl
  grep -q '"input":"cut.tar"' out/errors.jsonl
  grep -q "its latents would replace those of 'b.tar'" out/errors.jsonl
  [ "$(wc -l <out/errors.jsonl)" -eq 9 ]
  [ "$(field key <out/train/index.jsonl | tr '\n' ' ')" = '"a1" "b2" "t1" ' ]
  before=$(tree_hash out)
  run --separate-stderr pack -o out - <in
  [ "$status" -eq 1 ]
  [ "$(tree_hash out)" = "$before" ]
}

@test "a shard of nothing but faults has no latents; nothing at all is an error" {
  make_shard a a1=test.mp4
  head -c 300 /dev/urandom >a.d/a1.mp4
  tar --format=ustar --sort=name -C a.d -cf a.tar .
  run --separate-stderr pack -o out a.tar
  [ "$status" -eq 1 ]
  only_records
  [ -z "$output" ]
  [[ "$stderr" == *"no sample could be packed"* ]]
  [[ "$stderr" == *"a1 of 'a.tar': "*"'a1.mp4'"* ]]
  [[ "$stderr" != *"''"* ]]
  [ ! -e out/train/a.tar ]
  [ ! -e out/latents.json ]
  run --separate-stderr pack -o none - </dev/null
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"the input has no shard"* ]]
}

# bats test_tags=night
@test "of finished shards little stays in memory, and the files over them are those of all samples" {
  local count begin end
  for count in 10000 100000; do
    many_packed $count 1000
    eval "memory_$count=$(own_memory vfm-pack -q -j2 --size 16 -o $count/out $count/shards.jsonl)"
    [ "$(wc -l <$count/out/train/index.jsonl)" -eq $count ]
    [ "$(jq .splits.train.samples $count/out/latents.json)" -eq $count ]
    # The index is that of the notes, shard by shard.
    for shard in 000000 000009; do
      jq -r '.entries[].key' $count/out/train/m-$shard.json >want
      grep "m-$shard.tar" $count/out/train/index.jsonl | jq -r .key | cmp - want
    done
  done
  # Less than 100 bytes for each of 90,000 more; its line of the index alone has 140.
  # shellcheck disable=SC2154
  echo "$memory_10000 $memory_100000"
  # shellcheck disable=SC2154
  [ "$memory_100000" -lt $((memory_10000 + 9000000)) ]
  # Nothing changes when all is there.
  before=$(tree_hash 10000/out)
  touch -d '2001-01-01' 10000/out/train/index.* 10000/out/latents.json
  vfm-pack -q --size 16 -o 10000/out 10000/shards.jsonl >/dev/null
  [ "$(tree_hash 10000/out)" = "$before" ]
  for file in train/index.jsonl train/index.bin latents.json; do
    [ "$(stat -c %Y 10000/out/$file)" = "$(date -d 2001-01-01 +%s)" ]
  done
}

@test "a full disk and a closed pipe end it, and it goes on from there" {
  make_shard a a1=test.mp4 a2=red.mp4
  pack -o whole a.tar >/dev/null
  run --separate-stderr bash -c 'vfm-pack --size 64 -o out a.tar >/dev/full'
  [ "$status" -eq 1 ]
  [ ! -e out/latents.json ]
  pack -o out a.tar >/dev/null
  [ "$(tree_hash whole)" = "$(tree_hash out)" ]
  mkdir small
  mount -t tmpfs -o size=16k tmpfs small 2>/dev/null || skip "cannot mount"
  run --separate-stderr pack -o small/out a.tar
  umount small
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"No space left"* ]]
}

# bats test_tags=night
@test "one program at a time for latents: the second is refused, and disturbs nothing" {
  make_shard a a1=test.mp4
  pack -o out a.tar >/dev/null
  before=$(tree_hash out)
  exec 9<out
  flock 9
  run --separate-stderr pack -o out a.tar 9>&-
  [ "$status" -eq 1 ]
  [ "$stderr" = "vfm-pack: 'out' is in use by another program that writes it; wait for it, or choose another folder" ]
  [ "$(tree_hash out)" = "$before" ]
}

@test "an error in the middle of a shard is told again by the next run" {
  make_shard a a1=test.mp4 a2=red.mp4 a3=short.mp4
  make_shard b b1=test.mp4
  # A caption column in another order than its shard.
  mkdir columns && cd columns
  for key in a1 a2 a3; do echo '{}' >$key.json; done
  tar --format=ustar -cf ../a.caption.tar a1.json a3.json a2.json
  cd ..
  fails 1 pack -o out a.tar b.tar
  grep -q "does not have the samples of 'a.tar' in the same order" out/errors.jsonl
  cp out/errors.jsonl first
  fails 1 pack -o out a.tar b.tar
  cmp first out/errors.jsonl
  [ "$(tar -tf out/train/a.tar | grep -c npy)" -ge 1 ]
}
