#!/usr/bin/env bats
# What vfm-pack keeps in memory of ten times as many samples: a tenth more, at most.
# SPDX-License-Identifier: Apache-2.0
load ../cli/helpers
bats_require_minimum_version 1.5.0

# own_memory COMMAND...: the most bytes that it had of its own.
own_memory() { "$BATS_TEST_DIRNAME/../cli/own-memory" memory "$@" >/dev/null && cut -d' ' -f1 memory; }

# first_folder: what tests/bench/many_packed copies the options from.
first_folder() {
  mkdir one
  quiet_ffmpeg -f lavfi -i color=red:size=16x16 -frames:v 1 one/k.png
  tar --format=ustar -C one -cf one.tar k.png
  vfm-pack --size 16 -o first one.tar >/dev/null
}

@test "ten million samples in finished shards, and their plan" {
  first_folder
  for count in 1000000 10000000; do
    mkdir $count
    cp -r first $count/first
    "${VFM_BUILD:?}/tests/bench/many_packed" $count $count
    own_memory vfm-pack -q --size 16 -o $count/out $count/shards.jsonl >pack.$count
    own_memory vfm-pack --plan $count/out >plan.$count
    [ "$(jq .splits.train.samples $count/out/latents.json)" -eq $count ]
    echo "$count samples: $(($(<pack.$count) >> 20)) MiB, --plan $(($(<plan.$count) >> 20)) MiB" >&3
    rm -rf $count
  done
  [ "$(<pack.10000000)" -lt $(($(<pack.1000000) * 11 / 10)) ]
  [ "$(<plan.10000000)" -lt $(($(<plan.1000000) * 11 / 10)) ]
}

# pictures COUNT: shards of 1,000 samples of one picture each in the folder COUNT.
pictures() {
  mkdir "$1"
  python3 - "$1" one/k.png <<'PY'
import io, sys, tarfile
count, picture = int(sys.argv[1]), open(sys.argv[2], "rb").read()
for first in range(0, count, 1000):
    with tarfile.open(f"{count}/m-{first // 1000:06}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for i in range(first, min(count, first + 1000)):
            member = tarfile.TarInfo(f"key-{i:09}.png")
            member.size = len(picture)
            tar.addfile(member, io.BytesIO(picture))
PY
}

@test "a hundred thousand pictures, encoded" {
  first_folder
  for count in 10000 100000; do
    pictures $count
    own_memory vfm-pack -q --size 16 -o out.$count $count/*.tar >memory.$count
    [ "$(wc -l <out.$count/train/index.jsonl)" -eq $count ]
    echo "$count pictures: $(($(<memory.$count) >> 20)) MiB" >&3
  done
  # The table of the latest names is not full yet: 32 bytes each.
  [ "$(<memory.100000)" -lt $(($(<memory.10000) * 11 / 10 + 32 * 90000)) ]
}
