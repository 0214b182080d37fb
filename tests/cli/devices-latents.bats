#!/usr/bin/env bats
# Workers of vfm-pack and vfm-generate (--device with a list) encode clips and make them. The processor stands for the gpus.
# SPDX-License-Identifier: Apache-2.0

load helpers
load small_clips
load workers
bats_require_minimum_version 1.5.0

setup_file() {
  make_small_clips
  # A small pipeline, of which all parts are there.
  local golden=$VFM_ROOT/tests/golden
  cp -r "$golden/cosmos_pipeline" "$BATS_FILE_TMPDIR/model"
  cp -r "$golden/cosmos_vae" "$BATS_FILE_TMPDIR/model/vae"
  cp -r "$golden"/t5/v1_0/{text_encoder,tokenizer} "$BATS_FILE_TMPDIR/model"
}

setup() {
  setup_tools
  golden=$VFM_ROOT/tests/golden
  weights=(--size 32 --frames 9 --tokenizer "$golden/cosmos_vae")
  model=$BATS_FILE_TMPDIR/model
  small=(--model "$model" --size 32x32 --frames 9 --fps 12)
}

# make_shards NAME...: each of two clips and a picture; the last has one that does not decode as well.
make_shards() {
  local name key
  for name in "$@"; do
    mkdir "src-$name"
    for key in c1 c2 c3; do cp "$CLIPS/$key".* "src-$name/"; done
    for key in "src-$name"/*; do mv "$key" "src-$name/$name-$(basename "$key")"; done
    [ "$name" != "${*: -1}" ] || echo "no video" >"src-$name/$name-bad.mp4"
    tar --format=ustar --sort=name -C "src-$name" -cf "$name.tar" .
  done
}

# pack ARG...: by a tokenizer with weights.
pack() { vfm-pack "${weights[@]}" "$@"; }

@test "vfm-pack: latents and errors of one worker, of two, and of one device are the same bytes" {
  make_shards a b
  run --separate-stderr pack --device cpu -j1 -o here a.tar b.tar
  [ "$status" -eq 1 ]
  for devices in 'cpu,' cpu,cpu; do
    run --separate-stderr pack --device "$devices" -j3 -o "on-$devices" a.tar b.tar
    echo "$stderr"
    [ "$status" -eq 1 ]
    diff -r here "on-$devices"
  done
  # What one has made the other one keeps.
  run --separate-stderr pack --device cpu,cpu -v -o here a.tar b.tar
  [ "$status" -eq 1 ]
  [[ $stderr == *"'here/train/a.tar' is there already"* ]]
  diff -r here on-cpu,cpu
}

# bats test_tags=night
@test "vfm-pack: codes, and latents of the program itself" {
  make_shards a b
  for tokenizer in "$golden/cosmos_dv" builtin:fsq builtin:wavelet; do
    rm -rf here there
    vfm-pack --size 32 --frames 9 --crop random --seed 3 --tokenizer "$tokenizer" --device cpu -o here a.tar >/dev/null
    vfm-pack --size 32 --frames 9 --crop random --seed 3 --tokenizer "$tokenizer" --device cpu,cpu -o there a.tar >/dev/null
    diff -r here there
  done
}

# bats test_tags=night
@test "vfm-pack: a worker that dies costs its GPU, not the run" {
  make_shards a b d
  pack --device cpu -o here a.tar b.tar d.tar >/dev/null || [ $? -eq 1 ]
  mkfifo list
  vfm-pack "${weights[@]}" --device cpu,cpu -j2 -o there - <list >out.jsonl 2>err 3>&- 7>&- &
  packing=$!
  exec 7>list
  echo a.tar >&7
  kill -KILL "$(await_worker "$packing")"
  printf '%s\n' b.tar d.tar >&7
  exec 7>&-
  status=0
  wait "$packing" || status=$?
  cat err
  [ "$status" -eq 1 ]
  grep -q "cpu [01].*is left out" err
  diff -r here there
  # On the last gpu: one that dies as it begins ends the run, later another one is started. The same command goes on.
  rm -rf there
  fails 1 dies_at 1 vfm-pack "${weights[@]}" --device cpu, -o there a.tar b.tar
  grep -q "^vfm-pack: no device is left for vfm-pack: 'cpu 0': .*SIGKILL" err
  dies_at 6 vfm-pack "${weights[@]}" --device cpu, -o there a.tar b.tar >/dev/null 2>err
  grep -q "the worker on cpu 0 is started again" err
  pack --device cpu, -o there a.tar b.tar d.tar >/dev/null || [ $? -eq 1 ]
  diff -r here there
}

@test "vfm-pack: what --device cannot be is refused before any work" {
  make_shards a
  for wrong in "--device gpu" "--device cpu,0"; do
    # shellcheck disable=SC2086
    run --separate-stderr pack $wrong -o out a.tar
    echo "$wrong: $stderr"
    [ "$status" -eq 2 ]
    [ ! -e out ]
  done
  run --separate-stderr vfm-pack --device cpu, --tokenizer "$BATS_TEST_TMPDIR" -o out a.tar
  [ "$status" -eq 2 ]
  [ ! -e out ]
}

# prompts: of which the third asks for what the model cannot make, and the fourth is the first once more.
prompts() {
  printf '%s\n' 'a red circle' '{"prompt": "a blue square", "frames": 1}' '{"prompt": "x", "embedding": "none.npy"}' \
    'a red circle' '{"prompt": "a green bar", "name": "bar", "seed": 7, "label": "kept"}' \
    '{"prompt": "another", "name": "bar"}' '{broken'
}

# same_clips ONE OTHER: files, records in their order, and errors.
same_clips() {
  diff -r -x '*.json' -x errors.jsonl "$1" "$2"
  diff <(sed "s/\"$1\//\"$2\//g" "$1.jsonl" | records) <(records "$2.jsonl")
  diff <(jq -c '[.input, .message, .code]' "$1/errors.jsonl") <(jq -c '[.input, .message, .code]' "$2/errors.jsonl")
}

@test "vfm-generate: clips, records and errors of two workers are those of one device" {
  prompts | vfm-generate "${small[@]}" --steps 2 --device cpu -j1 -o one >one.jsonl || [ $? -eq 1 ]
  status=0
  prompts | vfm-generate "${small[@]}" --steps 2 --device cpu,cpu -o two --report two.html >two.jsonl 2>err || status=$?
  cat err
  [ "$status" -eq 1 ]
  same_clips one two
  grep -q 'a red circle' two.html
  # What is there is kept, whoever made it.
  before=$(stat -c %Y%n two/*.mp4)
  prompts | vfm-generate "${small[@]}" --steps 2 --device cpu, -qo two >again.jsonl 2>err || [ $? -eq 1 ]
  [ "$(stat -c %Y%n two/*.mp4)" = "$before" ]
  diff <(records two.jsonl) <(records again.jsonl)
}

# bats test_tags=night
@test "vfm-generate: a worker that dies in a clip leaves it to another one, which goes on" {
  slow=("${small[@]}" --steps 40 --save-every 0)
  printf '%s\n' 'a red circle' 'a blue square' 'a green bar' >lines
  vfm-generate "${slow[@]}" --device cpu -j1 -o one <lines >one.jsonl
  vfm-generate "${slow[@]}" --device cpu,cpu -o two <lines >two.jsonl 2>err 3>&- &
  generating=$!
  await compgen -G 'two/*.state*'
  kill -KILL "$(await_worker "$generating")"
  status=0
  wait "$generating" || status=$?
  cat err two/errors.jsonl || true
  [ "$status" -eq 0 ]
  grep -q "is left out" err
  diff -r -x '*.json' -x errors.jsonl one two
  diff <(sed 's/"one\//"two\//g' one.jsonl | records) <(records two.jsonl)
}

@test "vfm-generate: a full disk ends the run, and costs no GPU" {
  [ "$(id -u)" -eq 0 ] || skip 'needs root to mount a small disk'
  mkdir tiny
  mount -t tmpfs -o size=8k tmpfs tiny 2>/dev/null || skip 'cannot mount here'
  run --separate-stderr vfm-generate "${small[@]}" --steps 2 --device cpu,cpu -o tiny/out 'a red circle' 'a blue square'
  umount tiny
  echo "$stderr"
  [ "$status" -eq 1 ]
  [[ $stderr == *"No space left on device; make room, then give the same command again" ]]
  [[ $stderr != *"left out"* ]]
  [ "$(wc -l <<<"$stderr")" -eq 1 ]
}

@test "vfm-generate: what workers cannot do says what to do" {
  refuse() {
    run --separate-stderr "$@"
    echo "$stderr"
    [ "$status" -eq 2 ]
    [ ! -e out ]
  }
  for wrong in "-o -" "-o out --parallel cfg=2"; do
    # shellcheck disable=SC2086
    refuse vfm-generate --model "$model" --device cpu, $wrong 'a red circle'
  done
  refuse vfm-generate --model "$BATS_TEST_TMPDIR" --device cpu, -o out 'a red circle'
  needs_mpi vfm-generate
  run --separate-stderr mpirun -np 2 vfm-generate --model "$model" --device cpu, -o out 'a red circle'
  echo "$stderr"
  [ "$status" -eq 2 ]
  [[ $stderr == *"start vfm-generate without mpirun, or leave out --device"* ]]
}
