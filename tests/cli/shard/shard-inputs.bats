#!/usr/bin/env bats
# vfm-shard: inputs that are damaged, foreign, or contradict themselves.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load corpus
bats_require_minimum_version 1.5.0

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

# bats test_tags=night
@test "a shard that is not what its record says is an error, and so is a changed column" {
  corpus
  printf 'UUUUUUUU' | dd of="$(records m.jsonl | jq -r .path | head -n 1)" bs=1 seek=1600 conv=notrunc status=none
  jq -c --arg hash "$(printf '0%.0s' $(seq 32))" '.xxh3 = $hash' m.jsonl | head -n 1 >vouched.jsonl
  sed -n '2,$p' m.jsonl >>vouched.jsonl
  fails 1 vfm-shard vouched.jsonl -o out
  grep -q 'is not as it was written: its xxh3 is not' out/errors.jsonl
  [ "$(keys out | wc -l)" -eq 40 ]
}

# bats test_tags=night
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
