#!/usr/bin/env bats
# What vfm-pack keeps in memory of ten times as many samples: a tenth more, and the table of keys that came before, at
# most. VFM_NIGHTLY_SAMPLES: how many; default: ten million. With fewer samples than some shards hold the bounds
# do not hold: twenty thousand show that the script works.
# SPDX-License-Identifier: Apache-2.0
load ../cli/helpers
bats_require_minimum_version 1.5.0

many=${VFM_NIGHTLY_SAMPLES:-10000000}
fewer=$((many / 10))
# A table of keys is in memory up to so much (lib/io/first_names.h).
names=$((16 << 20))

@test "very many samples in finished shards, and their plan" {
  [ -x "${VFM_BUILD:?}/tests/bench/many_packed" ] || ninja -C "$VFM_BUILD" tests/bench/many_packed >/dev/null
  first_folder
  for count in "$fewer" "$many"; do
    mkdir "$count"
    cp -r first "$count/first"
    "$VFM_BUILD/tests/bench/many_packed" "$count" "$count"
    own_memory vfm-pack -q --size 16 -o "$count/out" "$count/shards.jsonl" >"pack.$count"
    own_memory vfm-pack plan "$count/out" >"plan.$count"
    [ "$(jq .splits.train.samples "$count/out/latents.json")" -eq "$count" ]
    echo "$count samples: $(($(<"pack.$count") >> 20)) MiB, plan $(($(<"plan.$count") >> 20)) MiB" >&3
    rm -rf "$count"
  done
  [ "$(<"pack.$many")" -lt $(($(<"pack.$fewer") * 11 / 10 + names)) ]
  [ "$(<"plan.$many")" -lt $(($(<"plan.$fewer") * 11 / 10)) ]
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

@test "a hundredth as many pictures, encoded" {
  first_folder
  for count in $((fewer / 100)) $((many / 100)); do
    pictures $count
    own_memory vfm-pack -q --size 16 -o out.$count $count/*.tar >memory.$count
    [ "$(wc -l <out.$count/train/index.jsonl)" -eq $count ]
    echo "$count pictures: $(($(<memory.$count) >> 20)) MiB" >&3
  done
  [ "$(<memory.$((many / 100)))" -lt $(($(<memory.$((fewer / 100))) * 11 / 10 + names)) ]
}
