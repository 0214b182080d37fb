#!/usr/bin/env bats
# Training and generation whose data, models and runs are in a bucket: the bytes and losses of a disk, on ranks of all kinds,
# with adapters, blends, encoders and a cache; and how often a byte is read.
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0

setup_file() {
  load ../cli/helpers
  load ../cli/storage/storage
  setup_tools
  cd "$BATS_FILE_TMPDIR" || return 1
  bucket_start || return 1
  [ -z "${NO_BUCKET-}" ] || return 0
  export OMP_NUM_THREADS=1
  make_work || return 1
  "$VFM_ROOT/tests/cli/make-latents" media/images 24 || return 1
  "$VFM_ROOT/tests/cli/make-latents" media/videos 7 || return 1
  cp -r "$VFM_ROOT/tests/golden/t5/v1_1" media/t5
  # Clips whose captions have no embeddings, and latents with one sample in each shard.
  find raw -name '*.mp4' | sort | vfm-clip --min-length 1s -o spoken | vfm-caption >spoken.jsonl
  vfm-shard --keep-duplicates -o media/spoken <spoken.jsonl >shards.jsonl || return 1
  vfm-shard --keep-duplicates --shard-size 1KiB -o apart <spoken.jsonl | vfm-pack --size 64 --frames 17 -o media/single >single.jsonl 2>said || return 1
  [ "$(find media/single/train -name '*.tar' | wc -l)" -gt 6 ] || return 1
  bucket_objects put media media
  bucket made
  tiny_recipe 4 <<'YAML'
data: {tokens: 16, packs: 4}
schedule: {warmup: 1}
validation: {every: 2, samples: 2}
train: {steps: 4, checkpoint_every: 2, log_every: 1}
YAML
}
teardown_file() { load ../cli/storage/storage && bucket_stop; }
setup() {
  load ../cli/helpers
  load ../cli/storage/storage
  setup_tools
  needs_bucket
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR" || return 1
}

# both NAME COMMAND...: AT is where the data are, MADE where results are, the folder NAME of both. The same bytes in both
# places, and the same records, but for names of places, COMPLETE, which has hashes of files with such names, and the hashes in
# names of clips, which are of a model's train.json.
both() {
  local name=$1 place made=disk
  shift
  for place in media s3://media; do
    [ $place = media ] || made=s3://made
    local command=("${@//AT\//$place/}")
    timeout 120 "${command[@]//MADE/$made}" >"out-${made##*/}" 2>err </dev/null || { echo "${command[*]}" && cat err && return 1; }
  done
  rm -rf got want
  bucket_objects get "made/$name" got
  cp -r "disk/$name" want
  settle got "s3://\(made\|media\)/"
  settle want "\($PWD/\)\?\b\(disk\|media\)/"
  nameless want && nameless got && diff -r -x COMPLETE want got || return 1
  diff <(sed 's#\b\(disk\|media\)/#OUT#g' out-disk | records | unhash) <(sed 's#s3://\(made\|media\)/#OUT#g' out-made | records | unhash)
}

unhash() { sed -E 's/-[0-9a-f]{16}\b//g; s/"(model_hash|address)":"[0-9a-f]*"//g'; }
# nameless FOLDER: its clips and their notes without hashes in names.
nameless() {
  local file
  for file in "$1"/*-????????????????.*; do
    [ ! -e "$file" ] || mv "$file" "$(unhash <<<"$file")"
  done
  find "$1" -maxdepth 1 -name '*.json' -exec sed -Ei 's/-[0-9a-f]{16}\b//g; /"(model_hash|address)":/d' {} +
}

# train RANKS NAME SETTING...: such a run, of what --data names.
train() { both "$2" mpirun -np "$1" vfm-train tiny.yaml -j1 -o "MADE/$2" "${@:3}"; }

@test "ranks of each kind" {
  needs_mpi
  local kind
  for kind in tp=2 cp=2 pp=2 shard=full; do
    # shellcheck disable=SC2086 # settings
    train 2 "${kind//[ =.]/-}" --data AT/images parallel.$kind || { echo "$kind" && return 1; }
  done
  train 4 four --data AT/images parallel.tp=2 parallel.pp=2
}

@test "a run on other ranks goes on in the bucket" {
  needs_mpi
  train 2 on --data AT/images parallel.tp=2 train.steps=2
  train 1 on --data AT/images
  [ "$(jq -s 'map(select(.step == 4)) | length' got/metrics.jsonl)" -ge 1 ]
}

@test "adapters on a model, and what they generate" {
  both adapters vfm-train "$VFM_ROOT/examples/recipes/quickstart.yaml" -j1 --init AT/model --data AT/latents -o MADE/adapters \
    lora.rank=2 model.num_layers=1 model.num_attention_heads=2 model.adaln_lora_dim=8 schedule.warmup=1 validation.every=0 \
    train.steps=4 train.checkpoint_every=2
  both of-adapters vfm-generate -j1 --model MADE/adapters --steps 2 -o MADE/of-adapters 'a red circle'
  bucket_objects put disk/adapters media/adapters
  cp -r disk/adapters media/adapters
  both by-lora vfm-generate -j1 --model AT/model --lora AT/adapters --steps 2 -o MADE/by-lora 'a red circle'
  cmp disk/of-adapters/*.mp4 disk/by-lora/*.mp4
}

@test "a blend of two folders of a bucket, and of a bucket and the disk" {
  train 1 blend --data AT/images --data AT/videos 'data.weights=[3, 1]'
  vfm-train tiny.yaml -j1 -o mixed --data s3://media/images --data media/videos 'data.weights=[3, 1]' >mixed.jsonl
  cmp mixed/metrics.jsonl disk/blend/metrics.jsonl
  ! has_mpi || train 2 blend-cp --data AT/images --data AT/videos 'data.weights=[3, 1]' parallel.cp=2
}

@test "clips that are encoded while training, with T5 of the bucket" {
  both encoded vfm-train "$VFM_ROOT/examples/recipes/quickstart.yaml" -j1 --data AT/spoken --tokenizer builtin:wavelet --text AT/t5 \
    -o MADE/encoded model.num_layers=1 model.num_attention_heads=2 model.adaln_lora_dim=8 schedule.warmup=1 validation.every=0 \
    data.size=64 data.frames=17 train.steps=2
  both of-encoded vfm-generate -j1 --model MADE/encoded --text-encoder AT/t5 --steps 2 -o MADE/of-encoded 'a red circle'
}

@test "generation on ranks from a model in the bucket" {
  needs_mpi vfm-generate
  printf '%s\n' 'a red circle' 'a blue square' 'a green bar' >media/prompts
  bucket_objects put media/prompts media/prompts
  both ranks mpirun -np 2 vfm-generate -j1 --model AT/model --device cpu --steps 2 -o MADE/ranks @AT/prompts 'a red bar'
  both cfg mpirun -np 2 vfm-generate -j1 --model AT/model --device cpu --steps 2 --guidance 3 --parallel cfg=2 -o MADE/cfg 'a red bar'
  both cp mpirun -np 2 vfm-generate -j1 --model AT/model --device cpu --steps 2 --parallel cp=2 -o MADE/cp 'a red bar'
}

# sample_bytes RANKS SETTING...: bytes of samples that come out of the bucket in an epoch; without the ends of tars, by
# which a rank knows that an index is the tar's.
sample_bytes() {
  no_faults
  rm -rf run
  mpirun -np "$1" vfm-train "$VFM_ROOT/examples/recipes/quickstart.yaml" -j1 --data s3://media/single -o run model.num_layers=2 \
    model.num_attention_heads=2 model.adaln_lora_dim=8 validation.every=0 data.packs=2 data.tokens=160 train.steps=2 "${@:2}" >out 2>err </dev/null || { cat err >&2; return 1; }
  asked 'map(select(.method == "GET" and (.path | test("train/.*\\.tar$")) and .down > 1024) | .down) | add'
}

@test "the bytes of a step are read once by the ranks that share a model, and nothing is read twice with a cache" {
  needs_mpi
  local once settings
  proxy_start
  once=$(sample_bytes 1)
  [ "$once" -gt 10000 ]
  for settings in parallel.tp=2 parallel.cp=2 parallel.pp=2 ''; do
    # shellcheck disable=SC2086 # settings
    [ "$(sample_bytes 2 $settings)" -eq "$once" ] || { echo "$settings" && asked 'map([.range, .path, .down])' && return 1; }
  done
  export VFM_CACHE=$PWD/cache:1GB
  [ "$(sample_bytes 2 parallel.tp=2)" -gt 10000 ]
  [ "$(sample_bytes 2 parallel.tp=2)" = null ]
}

@test "the memory that is told of a run in the bucket is enough for it" {
  local told taken
  told=$(vfm-train cost tiny.yaml --data s3://media/images --device cpu -q | jq .memory_bytes)
  [ "$(jq .fetched <<<"$told")" -gt $((32 << 20)) ]
  [ "$(vfm-train cost tiny.yaml --data media/images --device cpu -q | jq .memory_bytes.fetched)" = null ]
  taken=$(own_memory vfm-train tiny.yaml -j1 --data s3://media/images -o s3://made/told)
  echo "told $(jq .total <<<"$told"), taken $taken" >&3
  [ "$taken" -le "$(jq .total <<<"$told")" ]
}
