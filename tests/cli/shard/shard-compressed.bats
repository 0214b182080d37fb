#!/usr/bin/env bats
# zstd: lists that are read compressed (X.jsonl.zst), and datasets of compressed shards (vfm-shard --compress zstd).
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load corpus
bats_require_minimum_version 1.5.0

setup() {
  setup_tools
  command -v zstd >/dev/null || skip "no zstd to compare with"
}

@test "manifests and lists compressed by zstd are read by their names" {
  corpus
  printf 'k00\nk07\n' >without.txt
  vfm-shard -o plain --without without.txt m.jsonl >/dev/null
  [ "$(keys plain | wc -l)" = 58 ]
  zstd -q m.jsonl without.txt
  vfm-shard -o packed --without without.txt.zst m.jsonl.zst >/dev/null
  [ "$(tree_hash plain)" = "$(tree_hash packed)" ]
  head -c -3 m.jsonl.zst >cut.jsonl.zst
  fails 1 vfm-shard -o cut cut.jsonl.zst
  grep -q "'cut.jsonl.zst' is cut off" err
  head -c -3 without.txt.zst >cut.txt.zst
  refused "'cut.txt.zst' is cut off" vfm-shard -o cut --without cut.txt.zst m.jsonl
}

@test "compressed shards are the plain ones, after a kill too, and vfm reads them like those" {
  corpus 20000
  shard() { vfm-shard --shard-size 300KB "$@"; }
  packed() { shard --compress zstd "$@"; }
  shard -o plain m.jsonl >/dev/null
  packed -o packed m.jsonl >packed.jsonl
  jq -se 'map(.path | endswith(".tar.zst")) | all' <(records packed.jsonl) >/dev/null
  find packed -name '*.zst' -printf '%p %i %T@\n' | sort >before
  packed -o packed m.jsonl | cmp - packed.jsonl
  find packed -name '*.zst' -printf '%p %i %T@\n' | sort | cmp - before
  refused "compress is null there, and now \"zstd\"" packed -o plain m.jsonl
  timeout --foreground -s KILL 0.05 vfm-shard --shard-size 300KB --compress zstd -o killed m.jsonl >/dev/null || true
  packed -o killed m.jsonl >/dev/null
  [ "$(tree_hash killed)" = "$(tree_hash packed)" ]
  # Parts write the same shards.
  vfm-shard plan --shard-size 300KB --compress zstd -o parted m.jsonl >/dev/null
  for part in 0 1; do vfm-shard --plan parted/plan.bin --part $part/2 >/dev/null; done
  vfm-shard join parted >/dev/null
  for kind in zst idx json; do diff <(cd packed && find train -name "*.$kind" | sort | xargs md5sum) <(cd parted && find train -name "*.$kind" | sort | xargs md5sum); done
  # A dataset of the one has the bytes of a dataset of the other.
  shard -o from_plain plain >/dev/null
  shard -o from_packed packed >/dev/null
  [ "$(tree_hash from_plain)" = "$(tree_hash from_packed)" ]
  # A changed byte is an error with the name of the shard.
  one=$(find packed -name '*.zst' | sort | head -n 1)
  printf 'UUUU' | dd of="$one" bs=1 seek=5000 conv=notrunc status=none
  fails 1 shard -o changed packed
  grep -q "'$one' is not as it was written: its xxh3 is not" changed/errors.jsonl
}

@test "other programs unpack compressed shards to the plain ones" {
  corpus 20000
  vfm-shard --shard-size 300KB -o plain m.jsonl >/dev/null
  vfm-shard --shard-size 300KB --compress zstd -o packed m.jsonl >/dev/null
  for tar in $(cd plain && find . -name '*.tar'); do
    cmp <(tar --zstd -xOf "packed/$tar.zst") <(tar -xOf "plain/$tar")
    ! command -v bsdtar >/dev/null || cmp <(bsdtar -xOf "packed/$tar.zst") <(tar -xOf "plain/$tar")
  done
  find packed -name '*.zst' -exec zstd -qd --rm {} +
  # Shards, indexes, and what is for other readers.
  for kind in '*.tar' '*.idx' wids.json README.md .info.json split.yaml; do
    diff <(cd plain && find . -name "$kind" | sort | xargs md5sum) <(cd packed && find . -name "$kind" | sort | xargs md5sum)
  done
}
