#!/usr/bin/env bats
# vfm-train: checkpoints and the folder of a run: layout, damage, a full disk, other programs, foreign files.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load tiny_runs

@test "the checkpoint is laid out as diffusers and safetensors expect, and COMPLETE lists it" {
  prepare
  train run train.steps=2 >out
  python3 - <<'PY'
import json, os, struct
folder = "run/checkpoints/step-00000002/"
config = json.load(open(folder + "model/config.json"))
assert config["_class_name"] == "CosmosTransformer3DModel" and config["in_channels"] == 4, config
def header(path):
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + length]), len(data) - 8 - length
names = None
for path in ("model/diffusion_pytorch_model", "state/ema", "state/adam_m", "state/adam_v"):
    tensors, size = header(folder + path + ".safetensors")
    assert tensors.pop("__metadata__") == {"format": "pt"}
    assert max(t["data_offsets"][1] for t in tensors.values()) == size
    assert names in (None, {n: t["shape"] for n, t in tensors.items()})
    names = {n: t["shape"] for n, t in tensors.items()}
assert names["patch_embed.proj.weight"] == [24, 5 * 4] and names["proj_out.weight"] == [16, 24]
assert "transformer_blocks.1.attn2.to_out.0.weight" in names
train = json.load(open(folder + "train.json"))
assert train["step"] == 2 and train["trained"] == {"frames": 2, "height": 4, "width": 4, "fps": [8.0], "usual": {"frames": 2, "height": 4, "width": 4}}
assert train["latent_scale"]["std"] == [1.0] * 4
listed = [line.split("  ", 1)[1].rstrip() for line in open(folder + "COMPLETE")]
found = sorted(os.path.relpath(os.path.join(d, f), folder) for d, _, fs in os.walk(folder) for f in fs)
assert sorted(listed + ["COMPLETE"]) == found
PY
}

# bats test_tags=night
@test "a damaged checkpoint is named, and the one before it is used" {
  prepare
  train run >/dev/null
  expected=$(run_hash run)
  printf '\xff' | dd of=run/checkpoints/step-00000040/model/diffusion_pytorch_model.safetensors bs=1 seek=3000 conv=notrunc 2>/dev/null
  train run >out 2>err
  [[ $(cat err) == *"step-00000040' is damaged: 'model/diffusion_pytorch_model.safetensors' is not as it was written; going back"* ]]
  [ "$(run_hash run)" = "$expected" ]
  rm run/checkpoints/*/COMPLETE
  run train run
  [ "$status" -eq 1 ]
  [[ $output == *"--force starts over"* ]]
  train run --force >/dev/null
  [ "$(run_hash run)" = "$expected" ]
}

@test "two programs do not share a run" {
  prepare
  "${TRAIN[@]}" run train.steps=100000 >out 2>/dev/null 3>&- &
  pid=$!
  until [ -s out ]; do sleep 0.05; done
  run train run
  kill -KILL "$pid"
  wait "$pid" || true
  [ "$status" -eq 1 ]
  [[ $output == *"'run' is in use by another program that writes it"* ]]
}

@test "a closed standard output is an error, and the checkpoint is there" {
  prepare
  { train run train.steps=10 2>err || echo $? >status; } | head -n 1 >/dev/null
  [ "$(cat status)" -eq 1 ]
  grep -q 'cannot write standard output' err
  [ -f run/checkpoints/step-00000010/COMPLETE ]
}

@test "a full disk leaves whole checkpoints only" {
  [ "$(id -u)" -eq 0 ] || skip "needs root to mount"
  prepare
  mkdir small
  mount -t tmpfs -o size=900k tmpfs small || skip "cannot mount"
  run train small/run model.num_layers=6
  full=$status message=$output left=$(find small/run/checkpoints -maxdepth 1 -name 'step-*' | wc -l)
  complete=$(find small/run/checkpoints -path '*/step-*' -name COMPLETE | wc -l)
  umount small
  [ "$full" -eq 1 ]
  [[ $message == *"No space left on device"* ]]
  [ "$left" -eq "$complete" ]
}

@test "a disk that is full for a while costs checkpoints, not the run" {
  [ "$(id -u)" -eq 0 ] || skip "needs root to mount"
  prepare
  mkdir small
  mount -t tmpfs -o size=900k tmpfs small || skip "cannot mount"
  "${TRAIN[@]}" small/run model.num_layers=6 train.steps=1000000 train.checkpoint_every=5 train.log_every=1 \
    schedule.shape=constant validation.every=0 >out 2>err 3>&- &
  pid=$!
  # until_said WORDS FILE: while the run goes on.
  until_said() { until grep -qE "$1" "$2"; do kill -0 "$pid" && sleep 0.05; done; }
  until_said "no checkpoint of step [0-9]+: cannot (write|create) 'small/run/checkpoints/.*: No space left on device; the run goes on" err
  mount -o remount,size=40m small
  until_said '"kind":"checkpoint"' out
  kill -USR1 "$pid"
  status=0
  wait "$pid" || status=$?
  mv small/run run
  umount small
  [ "$status" -eq 0 ]
  jq -se 'map(.step) == [range(1; length + 1)]' run/metrics.jsonl
  train run model.num_layers=6 train.steps=1 schedule.shape=constant validation.every=0 2>words
  grep -q "there is nothing to do" words
}

# bats test_tags=night
@test "a mount that hangs under a checkpoint ends the run with the file's name, also where closing hangs" {
  prepare
  cc -shared -fPIC -o hang-write.so "$BATS_TEST_DIRNAME/hang-write.c"
  HANG=/run/ HANG_WHEN=$PWD/hangs LD_PRELOAD=$PWD/hang-write.so "${TRAIN[@]}" run train.steps=1000000 \
    train.checkpoint_every=20 train.checkpoint_limit=3 train.log_every=1000000 validation.every=0 >out 2>err 3>&- &
  pid=$!
  until grep -q '"kind":"checkpoint"' out; do kill -0 "$pid" && sleep 0.1; done
  touch hangs
  SECONDS=0 status=0
  timeout 60 tail --pid="$pid" -f /dev/null || kill -KILL "$pid"
  wait "$pid" || status=$?
  cat err
  [ "$status" -eq 1 ]
  [ "$SECONDS" -le 40 ]
  grep -qE "run/checkpoints/\.step-[0-9]+\.tmp" err
  grep -q "a disk does not answer; what waits for it ends here" err
  rm hangs
  newest=$(find run/checkpoints -name COMPLETE | sort | tail -n 1)
  train run train.steps=1 2>err
  grep -q "there is nothing to do" err
  [ "$(find run/checkpoints -name COMPLETE | sort | tail -n 1)" = "$newest" ]
}

@test "files in the folder that are not its own are never touched, and foreign logs refuse the folder" {
  prepare
  mkdir -p run/checkpoints/precious
  echo x >run/checkpoints/precious/weights.bin
  train run train.steps=10 >/dev/null
  train run train.steps=10 --force >/dev/null
  [ "$(cat run/checkpoints/precious/weights.bin)" = x ]
  # A copy under a name of the user's is not a checkpoint.
  cp -r run/checkpoints/step-00000010 run/checkpoints/step-best
  train run train.steps=20 >out
  [[ $(cat out) == *step-00000020* ]]
  [ -d run/checkpoints/step-best ]

  mkdir mine
  cp tiny.yaml mine/recipe.yaml
  run train mine --force
  [ "$status" -eq 2 ]
  [[ $output == *"'mine/recipe.yaml' is not from vfm-train"* ]]
  cmp tiny.yaml mine/recipe.yaml
  [ ! -e mine/checkpoints ]
}

# bats test_tags=night
@test "--force clears nothing before the data are known to be good" {
  prepare
  train run train.steps=10 >/dev/null
  : >latents/val/index.jsonl
  run train run train.steps=10 --force
  [ "$status" -eq 2 ]
  [ -d run/checkpoints/step-00000010 ]
  run train other train.steps=10
  [ "$status" -eq 2 ]
  [ ! -e other ]
}

@test "steps without a finite gradient make no checkpoint, and a run that ends among them fails" {
  prepare
  run train run train.steps=8 train.checkpoint_every=1 train.log_every=1 optimizer.lr=1e30 schedule.warmup=0 \
    optimizer.clip=0
  [ "$status" -eq 1 ]
  [[ $output == *"'optimizer.lr' is "*", start over with a lower one"* ]]
  [ "$(ls run/checkpoints)" = step-00000001 ]
  jq -e -s 'map(select(.loss | not) | has("grad_norm")) | any | not' run/metrics.jsonl
}

# bats test_tags=night
@test "a checkpoint that its run removes while it is read is no error: the newest one is taken" {
  cc -shared -fPIC -o on-open.so "$BATS_TEST_DIRNAME/../on-open.c"
  ffmpeg -v error -f lavfi -i testsrc=s=64x64:r=12:d=2 -c:v libx264 -pix_fmt yuv420p drawn.mp4
  vfm-clip drawn.mp4 --min-length 0.3s -o clips | vfm-caption | vfm-embed | vfm-shard -o dataset |
    vfm-pack --size 32 --frames 5 --device cpu -o latents >packed.jsonl
  write_recipe
  "${TRAIN[@]}" begun data.tokens=64 train.steps=2 train.checkpoint_every=1 train.keep=2 validation.every=0 >/dev/null
  "${TRAIN[@]}" adapters --init begun data.tokens=64 lora.rank=2 train.steps=2 train.checkpoint_every=1 train.keep=2 \
    validation.every=0 >/dev/null
  # gone RUN COMMAND...: while the command reads its first checkpoint the run removes it and has its second. At
  # whichever file that happens, one after the other until all have been opened.
  gone() {
    local at run=$1
    shift
    for ((at = 1; ; ++at)); do
      rm -rf run later made
      cp -r "$run" run
      mv run/checkpoints/step-00000002 later
      run env ON_OPEN=run/checkpoints/step-00000001/ ON_OPEN_AT="$at" LD_PRELOAD="$PWD/on-open.so" \
        ON_OPEN_DO='rm -r run/checkpoints/step-00000001 && mv later run/checkpoints/step-00000002' "$@"
      [ "$status" -eq 0 ] || { echo "at the opening of file $at by $*: $output"; return 1; }
      [ ! -e later ] || break
    done
    [ "$at" -gt 1 ]
  }
  generate=(vfm-generate --device cpu --steps 1)
  gone begun "${generate[@]}" --model run --latents-only -o made 'a'
  # What else reads checkpoints.
  at_night || return 0
  gone begun vfm-generate cost --device cpu --steps 1 --model run -q
  gone adapters "${generate[@]}" --model begun --lora run --latents-only -o made 'a'
  gone begun "${TRAIN[@]}" made --init run data.tokens=64 train.steps=1 validation.every=0
  gone adapters "${TRAIN[@]}" made --init run lora.rank=2 data.tokens=64 train.steps=1 validation.every=0
  gone begun vfm-train export run -o made
}

# bats test_tags=night
@test "two programs that write one folder: the second is refused" {
  prepare
  mkdir latents2 dataset
  for command in "vfm-pack -o latents2" "vfm-shard -o dataset"; do
    run flock "${command##* }" $command absent.tar
    [ "$status" -eq 1 ]
    [[ $output == *"is in use by another program that writes it"* ]] || { echo "$output"; false; }
  done
}
