#!/usr/bin/env bats
# Data, models and runs in a bucket: the bytes of the same work on disk.
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0

setup_file() {
  load ../helpers
  load storage
  setup_tools
  cd "$BATS_FILE_TMPDIR" || return 1
  bucket_start || return 1
  [ -z "${NO_BUCKET-}" ] || return 0
  mkdir raw
  make_shots raw/shots.mp4
  make_video raw/plain.mp4 2 'mandelbrot=size=96x64:rate=12'
  quiet_ffmpeg -f lavfi -i testsrc2=size=64x48:rate=1 -frames:v 1 raw/picture.png
  echo 'a picture of a test' >raw/picture.txt
  echo 'no video' >raw/none.mp4
  bucket media
  bucket_objects put raw media/raw
}
teardown_file() { load storage && bucket_stop; }
setup() {
  load ../helpers
  load storage
  setup_tools
  needs_bucket
}

# chain PLACE: the chain from videos in the bucket to a generated one, in folders that begin with PLACE. What each
# program printed is in the current folder.
chain() {
  local status=0
  printf 's3://media/raw/%s\n' shots.mp4 plain.mp4 picture.png none.mp4 |
    vfm-clip -v --min-length 1s -o "$1clips" >clips.jsonl 2>clips.err || status=$?
  [ $status -eq 1 ] || return 1 # of none.mp4
  vfm-caption <clips.jsonl 2>caption.err | vfm-embed 2>embed.err | vfm-shard --keep-duplicates -o "$1dataset" 2>shard.err |
    vfm-pack --size 64 --frames 17 -o "$1latents" --report "$1report.html" >latents.jsonl 2>pack.err || return 1
  vfm-train "$VFM_ROOT/examples/recipes/quickstart.yaml" train.steps=4 train.checkpoint_every=2 model.num_layers=1 \
    model.num_attention_heads=2 model.adaln_lora_dim=8 validation.every=2 --data "$1latents" -o "$1run" >run.jsonl 2>train.err || return 1
  vfm-generate --model "$1run" --steps 2 -o "$1videos" 'a red circle' >videos.jsonl 2>generate.err
}

@test "the chain of all programs from bucket to bucket: the bytes of the chain on disk, also when it is run again" {
  local sum
  mkdir -p disk bucket home
  (cd disk && chain '')
  (cd bucket && HOME=$BATS_TEST_TMPDIR/home chain s3://media/made/) || { tail bucket/*.err; return 1; }
  bucket_objects get media/made got
  mkdir whole && mv disk/{clips,dataset,latents,run,videos,report.html} whole/
  local places='\(clips\|dataset\|latents\|run\|videos\|report\)\b'
  settle got "s3://media/made/$places"
  settle whole "$places"
  settle got "$places"
  diff -r whole got
  [ "$(find got -type f | wc -l)" -gt 30 ]
  # Nothing lies on the disk but what grows.
  [ -z "$(find home -type f)" ]
  [ "$(find bucket -type f | sort | xargs)" = "$(cd bucket && printf 'bucket/%s\n' *.err *.jsonl | sort | xargs)" ]
  # Again, with nothing to do.
  sum=$(bucket_objects list media/made/ | sha256sum)
  proxy_start
  (cd bucket && chain s3://media/made/) || { tail bucket/*.err; return 1; }
  [ "$(bucket_objects list media/made/ | sha256sum)" = "$sum" ]
  asked 'map(select(.method == "PUT" or .method == "POST") | .path)'
  [ "$(asked 'map(select((.method == "PUT" or .method == "POST") and (.path | test("\\.(tar|mp4|safetensors)$")))) | length')" -eq 0 ]
}

@test "a video of the disk and the same in a bucket have the same keys and clips" {
  local tar
  cp -r ../raw raw 2>/dev/null || cp -r "$BATS_FILE_TMPDIR/raw" raw
  vfm-clip --min-length 1s -o disk raw/shots.mp4 raw/plain.mp4 >/dev/null
  vfm-clip --min-length 1s -o s3://media/same s3://media/raw/shots.mp4 s3://media/raw/plain.mp4 >/dev/null
  bucket_objects get media/same same
  [ "$(cd disk && ls)" = "$(cd same && ls)" ]
  mkdir a b
  for tar in disk/*.tar; do
    tar -C a -xf "$tar"
    tar -C b -xf "same/${tar##*/}"
  done
  sed -i 's#s3://media/##' b/*.json
  diff -r a b
  [ "$(find a -name '*.mp4' | wc -l)" -ge 3 ]
}

@test "a compressed list and compressed shards in a bucket give what plain ones on the disk give" {
  command -v zstd >/dev/null || skip "no zstd"
  printf '%s\n' "$BATS_FILE_TMPDIR"/raw/{shots,plain}.mp4 | vfm-clip --min-length 1s -o clips >clips.jsonl
  vfm-shard --keep-duplicates -o dataset clips.jsonl >/dev/null
  mkdir lists
  zstd -q clips.jsonl -o lists/clips.jsonl.zst
  bucket_objects put lists media/packed
  vfm-shard --keep-duplicates --compress zstd -o s3://media/packed/dataset s3://media/packed/clips.jsonl.zst >packed.jsonl
  jq -se 'map(.path | endswith(".tar.zst")) | all' <(records packed.jsonl) >/dev/null
  vfm-pack --size 64 --frames 17 -o near dataset >/dev/null
  vfm-pack --size 64 --frames 17 -o far s3://media/packed/dataset >/dev/null
  (cd near && find . -name '*.tar') | while read -r tar; do cmp "near/$tar" "far/$tar"; done
  vfm-train "$VFM_ROOT/examples/recipes/tokenizer-tiny.yaml" --data dataset -o own train.steps=2 >/dev/null
  vfm-train "$VFM_ROOT/examples/recipes/tokenizer-tiny.yaml" --data s3://media/packed/dataset -o other train.steps=2 >/dev/null
  cmp own/metrics.jsonl other/metrics.jsonl
}

@test "an object RUN/stop ends a run in a bucket with a checkpoint, and is removed" {
  "$BATS_TEST_DIRNAME/../make-latents" latents 24
  tiny_recipe <<<'data: {tokens: 16, packs: 3, window: 8}'
  mkdir asks
  echo please >asks/stop
  bucket_objects put asks media/stopped
  timeout 100 vfm-train tiny.yaml -j1 --data latents -o s3://media/stopped train.steps=1000000 train.checkpoint_every=1000000 \
    validation.every=0 >out
  jq -se 'map(select(.kind == "checkpoint")) | length == 1 and (.[0].final | not)' out
  [ -z "$(bucket_objects list media/stopped/ | grep '/stop$')" ]
}

# same COMMAND: with the place AT on the disk and in the bucket, it prints the same but for the names of places. What it
# writes at AT/PLACE/... is at s3://media/verbs/... then.
same() {
  local place words of=disk
  for place in . s3://media/verbs; do
    read -r -a words <<<"${1//AT/$place}"
    timeout 60 "${words[@]}" </dev/null >out-$of 2>err-$of || { echo "${words[*]}" && cat err-$of && return 1; }
    sed -Ei "s#(\./|s3://media/verbs/|$PWD/)##g; s#\"folder\":\"[^\"]*\"##" out-$of
    of=bucket
  done
  diff <(records out-disk) <(records out-bucket) || { echo "$1" && return 1; }
}

@test "the verbs read and write in a bucket, and print what they print for a disk" {
  printf '%s\n' "$BATS_FILE_TMPDIR"/raw/{shots,plain}.mp4 | vfm-clip --min-length 1s -o clips | vfm-caption | vfm-embed >embedded.jsonl
  vfm-shard --keep-duplicates -o dataset <embedded.jsonl >dataset.jsonl
  vfm-pack --size 64 --frames 17 -o latents dataset.jsonl >latents.jsonl
  quick_recipe run latents
  cp "$VFM_ROOT/examples/recipes/quickstart.yaml" recipe.yaml
  cp "$BATS_FILE_TMPDIR/raw/shots.mp4" .
  echo 'a blue square' >prompts.txt
  bucket_objects put "$PWD" media/verbs
  local command
  while read -r command; do same "$command"; done <<'END'
vfm-clip shots AT/shots.mp4
vfm-clip unique -o AT/signatures AT/shots.mp4
vfm-pack plan --tokens 1024 AT/latents
vfm-train export AT/run -o AT/exported
vfm-shard report -o AT/all.html AT/dataset
vfm-generate -m AT/run --steps 2 --latents-only -o AT/made @AT/prompts.txt
END
  vfm-train cost s3://media/verbs/recipe.yaml --data s3://media/verbs/latents >costs.json
  bucket_objects get media/verbs got
  sed -i '/^  "from":/d' exported/vfm-export.json got/exported/vfm-export.json
  diff -r exported got/exported
  [ -s got/all.html ]
  mapfile -t made < <(cd made && echo *.latents.json)
  vfm-generate decode -o s3://media/verbs/decoded "s3://media/verbs/made/${made[0]}" >/dev/null
  vfm-generate decode -o decoded "made/${made[0]}" >/dev/null
  bucket_objects get media/verbs/decoded got-decoded
  cmp decoded/*.mp4 got-decoded/*.mp4
  if vfm-embed --version | grep -q FAISS; then
    mapfile -t tars < <(cd dataset && find . -name '*.tar' | sed 's#^\./##')
    vfm-embed index s3://media/verbs/clips.index "${tars[@]/#/s3://media/verbs/dataset/}" >/dev/null
    vfm-embed index clips.index "${tars[@]/#/dataset/}" >/dev/null
    vfm-embed search shots.mp4 --top 2 --index s3://media/verbs/clips.index | records | jq -c '[.key, .score]' >found
    diff found <(vfm-embed search shots.mp4 --top 2 --index clips.index | records | jq -c '[.key, .score]')
    [ "$(wc -l <found)" -eq 2 ]
  fi
}

# bats test_tags=night
@test "a run in a bucket that is killed while it writes checkpoints ends with those of one on the disk" {
  load ../train/tiny_runs
  prepare
  local kills settings=(train.checkpoint_every=1 train.log_every=1 schedule.shape=constant)
  for kills in {1..8}; do
    "${TRAIN[@]}" s3://media/parts "${settings[@]}" train.steps=100000 >out 2>/dev/null 3>&- &
    pid=$!
    until grep -q '"kind":"checkpoint"' out; do kill -0 "$pid" && sleep 0.02; done
    sleep "0.$(printf %03d $((RANDOM % 1000)))"
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  step=$(bucket_objects list media/parts/checkpoints | sed -nE 's,.*step-0*([0-9]+)/COMPLETE$,\1,p' | sort -n | tail -n 1)
  train s3://media/parts "${settings[@]}" train.steps=$((step + 2)) >/dev/null 2>&1
  train whole "${settings[@]}" train.steps=$((step + 2)) >/dev/null
  bucket_objects get media/parts parts
  diff -r whole/checkpoints parts/checkpoints
  cmp whole/metrics.jsonl parts/metrics.jsonl
}
