#!/usr/bin/env bats
# What others make of our datasets: webdataset from PyPI, Python's tarfile, a strict reader of Energon's
# metadata. Needs the network once: the packages are kept in the user's cache.
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0

setup() {
  load ../cli/helpers
  setup_tools
}

# python_with_webdataset: prints the python of a virtual environment that has webdataset, and makes it if needed.
python_with_webdataset() {
  local cache="${XDG_CACHE_HOME:-$HOME/.cache}/vfm" venv
  venv="$cache/webdataset-1.0.2"
  if ! "$venv/bin/python" -c 'import webdataset, yaml, braceexpand, numpy' 2>/dev/null; then
    mkdir -p "$cache"
    rm -rf "$venv"
    python3 -m venv "$venv" >&2 || return 1
    timeout 240 "$venv/bin/pip" install --quiet --disable-pip-version-check \
      webdataset==1.0.2 numpy pyyaml braceexpand >&2 || return 1
  fi
  echo "$venv/bin/python"
}

@test "webdataset, tarfile and Energon's metadata agree about a dataset of vfm-shard" {
  python=$(python_with_webdataset) || skip "webdataset cannot be installed from PyPI: no network?"
  make_shots a.mp4
  make_video b.mp4 3 "mandelbrot=size=96x64:rate=12"
  quiet_ffmpeg -f lavfi -i testsrc2=size=128x96 -frames:v 1 c.png
  echo "a caption" >a.txt
  vfm-clip a.mp4 b.mp4 c.png -o clips | vfm-caption | vfm-embed >embedded.jsonl
  vfm-shard embedded.jsonl -o dataset --split train=0.6,val=0.4 --shard-size 40KB >/dev/null
  "$python" "$(dirname "$BATS_TEST_FILENAME")/../data/read_shards.py" dataset >seen
  cat seen
  grep -q '^tarfile: ' seen
  grep -q '^webdataset 1.0.2: ' seen
  grep -q "'av': " seen && grep -q "'image': 1" seen
  # Compressed shards: webdataset by a pipe, and all of them after zstd -d.
  command -v zstd >/dev/null || return 0
  vfm-shard embedded.jsonl -o packed --split train=0.6,val=0.4 --shard-size 40KB --compress zstd >packed.jsonl
  mapfile -t tars < <(records packed.jsonl | jq -r .path)
  "$python" -c 'import sys, webdataset; print(len(list(webdataset.WebDataset(["pipe:zstd -dc " + tar for tar in sys.argv[1:]],
    shardshuffle=False))))' "${tars[@]}" | grep -qx "$(records packed.jsonl | jq -s 'map(.samples) | add')"
  find packed -name '*.zst' -exec zstd -qd --rm {} +
  "$python" "$(dirname "$BATS_TEST_FILENAME")/../data/read_shards.py" packed | cmp - seen
}

# bats test_tags=night
@test "a shard that webdataset wrote is read" {
  python=$(python_with_webdataset) || skip "webdataset cannot be installed from PyPI: no network?"
  "$python" - <<'EOF'
import numpy, webdataset
with webdataset.TarWriter("w.tar") as sink:
    for i in range(20):
        sink.write({"__key__": "set/%05d" % i, "mp4": b"video %d" % i, "json": {"n": i, "seconds": i + 1.5},
                    "emb.npy": numpy.full(4, i, numpy.float32)})
EOF
  vfm-shard w.tar --where 'n >= 5' -o d >manifest
  [ "$(jq -s 'map(.samples) | add' <(records manifest))" = 15 ]
  "$python" "$(dirname "$BATS_TEST_FILENAME")/../data/read_shards.py" d | grep -q 'webdataset 1.0.2: 15 samples'
}

# bats test_tags=night
@test "load_dataset() finds the shards of datasets and latents by their cards, and Energon its metadata" {
  python=$(python_with_webdataset) || skip "webdataset cannot be installed from PyPI: no network?"
  make_shots a.mp4
  quiet_ffmpeg -f lavfi -i "mandelbrot=size=96x64:rate=12" -f lavfi -i "sine=frequency=300:duration=3" -t 3 \
    -c:v libx264 -preset ultrafast -pix_fmt yuv420p b.mp4
  quiet_ffmpeg -f lavfi -i testsrc2=size=128x96 -frames:v 1 c.png
  # With sound and without, videos and a picture: types that differ between the samples.
  vfm-clip --audio aac a.mp4 b.mp4 c.png -o clips | vfm-caption | vfm-embed >embedded.jsonl
  vfm-shard embedded.jsonl -o dataset --split train=0.6,val=0.4 --shard-size 40KB >set.jsonl
  vfm-embed dataset >/dev/null # columns beside the shards are no shards of the dataset
  vfm-pack --size 32 -o latents dataset >lat.jsonl
  vfm-pack --size 32 --tokenizer builtin:fsq -o codes dataset >/dev/null
  for folder in dataset latents codes; do
    HF_HUB_OFFLINE=1 HF_HOME="$PWD/hf" "$python" "$(dirname "$BATS_TEST_FILENAME")/../data/read_card.py" $folder >$folder.seen
    cat $folder.seen
  done
  [ "$(grep -v '^load' dataset.seen | awk '{n += $3} END {print n}')" = "$(jq -s 'map(.samples) | add' set.jsonl)" ]
  [ "$(head -1 dataset.seen | cut -d' ' -f1)" = mp4 ]
  grep -q '^png ' dataset.seen
  [ "$(grep '^default val' latents.seen | cut -d' ' -f3)" = "$(jq .splits.val.samples latents/latents.json)" ]
  [ "$(jq '.shard_counts | add' latents/.nv-meta/.info.json)" = "$(wc -l <(cat latents/*/index.jsonl) | cut -d' ' -f1)" ]
  [ "$(sqlite3 latents/.nv-meta/index.sqlite 'select count(*) from samples' 2>/dev/null || echo skip)" != 0 ]
  # A README of one's own stays.
  echo "# mine" >latents/README.md
  rm latents/latents.json
  run --separate-stderr vfm-pack --size 32 -o latents dataset
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"'latents/README.md' is left as it is"* ]]
  [ "$(cat latents/README.md)" = "# mine" ]
}
