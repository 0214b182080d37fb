#!/usr/bin/env bats
# vfm-train as its users meet it.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load tiny_runs

@test "training is silent, reports each checkpoint, and lowers the loss" {
  prepare
  train run train.steps=200 train.checkpoint_every=100 >out 2>err
  [ ! -s err ]
  [ "$(records out | wc -l)" -eq 2 ]
  [ "$(records out | sed -n 2p)" = '{"kind":"checkpoint","path":"run/checkpoints/step-00000200","step":200,"steps":200,"final":true}' ]
  python3 - <<'PY'
import json
lines = [json.loads(line) for line in open("run/metrics.jsonl")]
train = [line for line in lines if "loss" in line]
val = [line for line in lines if "val_loss" in line]
assert [line["step"] for line in train] == list(range(5, 201, 5))
assert [line["step"] for line in val] == list(range(10, 201, 10))
assert train[-1]["loss"] < 0.8 * train[0]["loss"], (train[0], train[-1])
assert 0 <= val[-1]["val_loss"] < 0.9 * val[0]["val_loss"], (val[0], val[-1])
assert val[0]["val_split"] == "val" and list(val[0]["val_sigmas"]) == ["0.1", "0.3", "1", "3", "10"]
assert train[-1]["samples"] > 0 and train[-1]["epoch"] > 1 and train[-1]["skipped"] == 0
assert {"loss_image", "loss_video", "grad_norm", "lr", "tokens"} <= set(train[0])
for line in open("run/timing.jsonl"):
    line = json.loads(line)
    assert {"data_wait", "memory_peak"} <= set(line)
    for rate in "tokens_per_second", "samples_per_second", "tflops":
        assert line[rate] == line[rate + "_per_rank"] > 0, line
PY
}

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

@test "a training whose messages go to a file says a line a minute: how far it is, loss, tokens a second" {
  prepare
  cc -shared -fPIC -o hasty-clock.so "$BATS_TEST_DIRNAME/hasty-clock.c"
  # minutes ARGUMENT...: a run in which seconds go by at each look at the clock.
  minutes() { LD_PRELOAD="$PWD/hasty-clock.so" vfm-train tiny.yaml --data latents -j1 validation.every=0 "$@" >out 2>err; }
  minutes -o run train.steps=200
  cat err
  line='^vfm-train  [0-9]+/200 steps  [^ ]+/s(  ETA [^ ]+)?  loss [0-9]+\.[0-9]{4}  [0-9.]+[kM]? tokens/s'
  [ "$(grep -cE "$line\$" err)" -ge 2 ]
  [ "$(grep -v '^vfm-train: ' err | grep -cvE "$line\$")" -eq 0 ]
  [ "$(wc -l <err)" -lt 60 ]
  # Of a run that goes on also which step of all it is.
  minutes -o run train.steps=400
  cat err
  grep -qE "$line  step [23][0-9]{2} of 400$" err
  # None with -q, and none in a run of less than a minute.
  minutes -o quiet train.steps=200 -q
  [ "$(grep -c ' steps ' err)" -eq 0 ]
  vfm-train tiny.yaml --data latents -j1 validation.every=0 -o short train.steps=20 >out 2>err
  [ ! -s err ]
}

@test "a recipe with a misspelt key, or a value that cannot be, fails before any work" {
  prepare
  printf 'train:\n  steps: 5\n  sead: 1\n' >wrong.yaml
  run vfm-train wrong.yaml --data latents -o run
  [ "$status" -eq 2 ]
  only_records
  [ "$output" = "vfm-train: unknown key 'train.sead' in line 3 of 'wrong.yaml'; did you mean 'train.seed'?" ]
  run vfm-train tiny.yaml optimizer.lr=fast --data latents -o run
  [ "$status" -eq 2 ]
  only_records
  [ "$output" = "vfm-train: 'optimizer.lr' in argument 'optimizer.lr=fast' is 'fast', must be a number above 0" ]
  run vfm-train tiny.yaml data.tokens=7 --data latents -o run
  [ "$status" -eq 2 ]
  [[ $output == *" has 8 tokens, more than a pack holds: 'data.tokens' is 7; data.tokens=8 takes all samples" ]]
  # The largest sample is told, whatever the first one is, and what is offered is enough.
  run vfm-train tiny.yaml data.tokens=1 --data latents -o run
  [ "$status" -eq 2 ]
  [[ $output == *"'data.tokens' is 1; data.tokens=8 takes all samples" ]]
  vfm-train cost tiny.yaml data.tokens=8 --data latents -q
  # All at once.
  printf 'model:\n  num_layer: 2\n  num_attention_heads: 0\noptimizer: {lr: fast}\n' >wrong.yaml
  run vfm-train wrong.yaml train.sead=1 --data latents -o run
  [ "$status" -eq 2 ]
  [[ $output == *"vfm-train: 4 settings are wrong: (1) "*"'model.num_layer'"*"; (2) "*"; (3) "*"; (4) "*"'train.sead'"* ]]
  run vfm-train tiny.yaml train.steps a=b=c =5 --data latents -o run
  [ "$status" -eq 2 ]
  [[ $output == *"vfm-train: 2 settings are wrong: (1) argument 'train.steps' is not of the form section.key=value; (2) "* ]]
  # Nobody trains billions of parameters because he forgot to say otherwise.
  for command in "vfm-train -o run" "vfm-train cost"; do
    # shellcheck disable=SC2086
    run $command /dev/null --data latents
    [ "$status" -eq 2 ]
    [[ $output == *"the recipe does not say how large the model is: 'model.num_layers' is "*" (default), "* ]]
  done
  vfm-train recipe /dev/null | grep -q '  num_layers: '
  run vfm-train absent.yaml --data latents -o run
  [ "$status" -eq 2 ]
  [[ $output == *"cannot open 'absent.yaml': No such file or directory"* ]]
  run vfm-train tiny.yaml -o run
  [ "$status" -eq 2 ]
  [[ $output == *"give --data DIR, the folder that vfm-pack wrote"* ]]
  run vfm-train tiny.yaml --data tiny.yaml -o run
  [ "$status" -eq 2 ]
  run vfm-train tiny.yaml --data absent -o run
  [ "$status" -eq 2 ]
  run vfm-train
  [ "$status" -eq 2 ]
  # An empty name is mostly a variable that is not set: not as if the option were not there.
  for option in --init --data --report --output; do
    run vfm-train tiny.yaml --data latents -o run "$option" ''
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "vfm-train: $option: the empty string names no file; name one, or leave it out" ]
  done
  run vfm-train '' --data latents -o run
  [ "$status" -eq 2 ]
  [ "${lines[0]}" = "vfm-train: RECIPE: the empty string names no file; name one, or leave it out" ]
  [ ! -e run ]
}

@test "model.offload: long packs fit a GPU that has not the memory for them; refused where it moves nothing" {
  seven=("$VFM_ROOT/examples/recipes/7b.yaml" --synthetic 32x96x96 data.tokens=73728)
  vfm-train cost "${seven[@]}" --gpu h200 -q | jq -e '.recompute == "block" and (.offload | not)
    and (.predicted.fits | not) and .memory_bytes.pinned == 0'
  vfm-train cost "${seven[@]}" --gpu h200 model.offload=true >out 2>words
  jq -e '.recompute == "block_but_attention" and .offload and .predicted.fits and .memory_bytes.pinned > 3e10
    and .predicted.offload.seconds > 1 and .predicted.offload.exposed == 0
    and ([.predicted.lines[].name] | index("offload, not hidden"))' out
  for word in '^  activations .*(recompute block_but_attention, offload)$' "^pinned memory per rank  *31.5 GiB of the host's" \
    '^  offload  *[0-9.]* GB over the link to the host, .* 100.0 % hidden$'; do
    grep -q "$word" words || { echo "no $word"; cat words; return 1; }
  done
  vfm-train cost "${seven[@]}" --gpu h200 2>words >/dev/null
  grep -q "about 135.* GiB of memory are needed even with 'model.recompute' block.*: set 'model.offload' true, lower 'data.tokens', " words
  refused() {  # MESSAGE ARGUMENT...
    run vfm-train "${@:2}"
    [ "$status" -eq 2 ]
    [[ $output == *"$1"* ]] || { echo "$output"; return 1; }
    [ ! -e run ]
  }
  prepare
  cpu="'model.offload' is true, and this run computes on the CPU"
  refused "$cpu" cost "${seven[@]}" --device cpu model.offload=true
  for recompute in auto block; do
    refused "$cpu" tiny.yaml --device cpu --data latents -o run model.offload=true model.recompute=$recompute
  done
  for recompute in none elementwise; do
    refused "'model.offload' is true, and 'model.recompute' is $recompute" \
      cost "${seven[@]}" --gpu h200 model.offload=true model.recompute=$recompute
  done
}

@test "a model whose weights alone are more than there is memory is refused before anything is made" {
  prepare
  run timeout 20 vfm-train tiny.yaml model.num_layers=400 model.num_attention_heads=512 model.attention_head_dim=120 \
    --device cpu --data latents -o run
  [ "$status" -eq 2 ]
  [[ "$output" == *"the optimizer's state need about "*"TiB of memory on each rank; there are "*": share the state among more ranks ('parallel.shard' full), set 'optimizer.moments' bf16, "*"train adapters ('lora.rank') or take a smaller model" ]]
  [ ! -e run ]
}

@test "killed at random moments and run again, it ends with the bytes of an uninterrupted run" {
  prepare
  train whole >/dev/null
  for _ in 1 2 3 4 5; do
    "${TRAIN[@]}" parts >/dev/null 2>&1 3>&- &
    pid=$!
    sleep "0.$((RANDOM % 4 + 1))"
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  train parts >/dev/null
  diff <(run_hash whole) <(run_hash parts)
  # Once more: there is nothing to do, and the last checkpoint is reported again.
  before=$(tree_hash parts)
  [ "$(train parts | records)" = '{"kind":"checkpoint","path":"parts/checkpoints/step-00000040","step":40,"steps":40,"final":true}' ]
  [ "$(tree_hash parts)" = "$before" ]
}

@test "killed while it clears an earlier run, it goes on, to the same bytes" {
  prepare
  cc -shared -fPIC -o on-open.so "$BATS_TEST_DIRNAME/../on-open.c"
  train whole train.steps=2 >/dev/null
  cp -r whole begun
  for at in 1 2 3 4; do
    rm -rf parts && cp -r begun parts
    run env ON_REMOVE=parts/ ON_OPEN_AT=$at ON_OPEN_DO='kill -KILL $PPID' LD_PRELOAD="$PWD/on-open.so" \
      "${TRAIN[@]}" parts train.steps=2 --force
    [ "$status" -eq 137 ]
    [ "$(find parts -maxdepth 1 -name '[^.]*' -type f | wc -l)" -eq $((5 - at)) ]
    rm -rf parts/checkpoints/*  # as a kill a moment later would leave it
    train parts train.steps=2 >/dev/null
    diff <(run_hash whole) <(run_hash parts)
  done
}

@test "killed while it removes the checkpoints that the last one makes needless, they go when it is run again" {
  prepare
  cc -shared -fPIC -o on-open.so "$BATS_TEST_DIRNAME/../on-open.c"
  short=(train.steps=2 train.checkpoint_every=1 train.keep=1)
  train whole "${short[@]}" >/dev/null
  run env ON_REMOVE=step-00000001/COMPLETE ON_OPEN_AT=1 ON_OPEN_DO='kill -KILL $PPID' \
    LD_PRELOAD="$PWD/on-open.so" "${TRAIN[@]}" parts "${short[@]}"
  [ "$status" -eq 137 ]
  [ -e parts/checkpoints/step-00000001 ]
  train parts "${short[@]}" >/dev/null
  diff <(run_hash whole) <(run_hash parts)
}

@test "killed between checkpoints, what it had logged since is written again, not twice" {
  prepare
  train whole train.steps=200 >/dev/null
  "${TRAIN[@]}" parts train.steps=200 >out 2>/dev/null 3>&- &
  pid=$!
  until [ -s out ]; do sleep 0.02; done
  sleep 0.1
  kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" || true
  train parts train.steps=200 >/dev/null
  diff <(run_hash whole) <(run_hash parts)
}

@test "SIGUSR1 saves and ends well; SIGTERM ends with its number; both go on to the same bytes" {
  prepare
  train whole train.steps=300 >/dev/null
  "${TRAIN[@]}" parts train.steps=300 >out 2>err 3>&- &
  pid=$!
  until [ -s out ]; do sleep 0.02; done
  kill -USR1 "$pid"
  wait "$pid"
  [ ! -s err ]
  [[ $(records out | tail -n 1) == *'"final":false}' ]]
  "${TRAIN[@]}" parts train.steps=300 >out 3>&- &
  pid=$!
  sleep 0.4
  kill -TERM "$pid" 2>/dev/null || true
  status=0
  wait "$pid" || status=$?
  [ "$status" -eq 143 ] || [ "$status" -eq 0 ]
  train parts train.steps=300 >/dev/null
  diff <(run_hash whole) <(run_hash parts)
}

@test "a run that a signal ends says what is lost, and the same command where it goes on" {
  prepare
  # stop FILE [SETTING...]: it, once that file is there.
  stop() {
    "${TRAIN[@]}" run train.steps=100000 train.log_every=1 "${@:2}" >out 2>err 3>&- &
    pid=$!
    until compgen -G "$1" >/dev/null; do sleep 0.02; done
    kill -TERM "$pid"
    status=0
    wait "$pid" || status=$?
    cat err
    [ "$status" -eq 143 ]
  }
  stop run/metrics.jsonl train.checkpoint_every=100000
  grep -qE "ended after step [0-9]+ of 100000 without saving; the same command begins again: it has no checkpoint \(SIGUSR1 saves and ends\)" err
  stop "run/checkpoints/step-*"
  grep -q "the earlier run in 'run' left no checkpoint: it begins again" err
  grep -qE "ended after step [0-9]+ of 100000 without saving; the same command goes on from 'run/checkpoints/step-[0-9]+'" err
  step=$(find run/checkpoints -name 'step-*' | sort | sed -n '$s/.*step-0*//p')
  train run train.steps=$((step + 2)) 2>err >/dev/null
  grep -qF "goes on after step $step of $((step + 2)), from 'run/checkpoints/step-" err
  grep -qF "; train.steps: 100000 -> $((step + 2)): the schedule of the learning rate now ends there" err
  train run train.steps=$((step - 1)) 2>err >/dev/null
  grep -qE "is of step $((step + 2)), and the run ends at $((step - 1)) \('train.steps' is $((step - 1))\): there is nothing to do" err
  train run train.steps=$((step + 2)) 2>err >/dev/null
  [ ! -s err ]
}

@test "--version reports what GPU there is" {
  for tool in vfm-train vfm-generate vfm-pack; do
    $tool --version | grep -qE '^CUDA: (built without CUDA|runtime [0-9]+\.[0-9]+; .+)'
  done
}

@test "two ranks train like one" {
  needs_mpi
  prepare
  train one >/dev/null
  mpirun -np 2 vfm-train tiny.yaml -j1 --data latents -o two >out 2>err
  [ ! -s err ]
  [ "$(records out | wc -l)" -eq 4 ]
  python3 - <<'PY'
import json
one, two = ([json.loads(line) for line in open(f"{run}/metrics.jsonl")] for run in ("one", "two"))
assert len(one) == len(two)
for a, b in zip(one, two):
    for key in ("loss", "val_loss", "grad_norm"):
        if key in a:
            assert abs(a[key] - b[key]) < 1e-4 * max(1, abs(a[key])), (a, b)
    assert a["step"] == b["step"] and a.get("samples") == b.get("samples")
PY
  # A run of one rank goes on with two.
  train mixed train.steps=40 schedule.shape=constant >/dev/null
  mpirun -np 2 vfm-train tiny.yaml -j1 --data latents -o mixed train.steps=50 schedule.shape=constant >/dev/null
  # More ranks than packs: said once, with the value that fits; one of them has nothing to compute.
  mpirun -np 4 vfm-train tiny.yaml -j1 --data latents -o four >/dev/null 2>err
  [ "$(cat err)" = "vfm-train: 1 of 4 ranks have no pack in a step, and wait for the others: 'data.packs' is 3, should be 4, or a multiple of it" ]
  vfm-train cost tiny.yaml --data latents --ranks 4 2>&1 >/dev/null | grep -q "'data.packs' is 3, should be 4"
  python3 - <<'PY'
import json
one, four = ([json.loads(line) for line in open(f"{run}/metrics.jsonl")] for run in ("one", "four"))
assert len(one) == len(four)
for a, b in zip(one, four):
    for key in ("loss", "val_loss", "grad_norm"):
        if key in a:
            assert abs(a[key] - b[key]) < 1e-4 * max(1, abs(a[key])), (a, b)
for line in map(json.loads, open("four/timing.jsonl")):
    for rate in "tokens_per_second", "samples_per_second", "tflops":
        assert abs(line[rate + "_per_rank"] * 4 / line[rate] - 1) < 1e-9, line
PY
}

@test "the number of threads changes no byte" {
  prepare
  train one train.steps=10 >/dev/null
  vfm-train tiny.yaml -j4 --data latents -o four train.steps=10 >/dev/null
  diff <(run_hash one) <(run_hash four)
}

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

@test "another recipe or other data are refused, with what differs" {
  prepare
  train run train.steps=10 >/dev/null
  run train run train.steps=10 optimizer.lr=0.1 optimizer.beta1=0.5 model.num_layers=1
  [ "$status" -eq 2 ]
  [[ $output == *"model.num_layers: 2 -> 1; optimizer.beta1: 0.9 -> 0.5; restore it"* ]]
  mv latents old && "$BATS_TEST_DIRNAME/../make-latents" latents 23
  run train run train.steps=20
  [ "$status" -eq 2 ]
  [[ $output == *"other data"* ]]
  train run train.steps=20 --force >/dev/null
  [ -d run/checkpoints/step-00000020 ]
}

@test "a run whose packs this version cannot make is refused" {
  prepare
  # with_packing RUN VALUE|null: the newest checkpoint as a version wrote it that packs so; null: it does not say.
  with_packing() {
    python3 - "$(printf '%s\n' "$1"/checkpoints/step-* | tail -n 1)" "$2" <<'PY'
import ctypes, json, sys
folder, packing = sys.argv[1], json.loads(sys.argv[2])
train = json.load(open(f"{folder}/train.json"))
train["packing"] = packing
if packing is None:
    del train["packing"]
text = json.dumps(train).encode()
open(f"{folder}/train.json", "wb").write(text)
class Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]
library = ctypes.CDLL("libxxhash.so.0")
library.XXH3_128bits.restype, library.XXH3_128bits.argtypes = Hash, [ctypes.c_char_p, ctypes.c_size_t]
digest = library.XXH3_128bits(text, len(text))
lines = open(f"{folder}/COMPLETE").read().splitlines()
lines = [f"{digest.high:016x}{digest.low:016x}  train.json" if x.endswith("  train.json") else x for x in lines]
open(f"{folder}/COMPLETE", "w").write("\n".join(lines) + "\n")
PY
  }
  train run train.steps=5 >/dev/null
  jq -e '.packing == 3 and .state.block == 0' run/checkpoints/step-00000005/train.json
  for packing in 4 1 null; do
    with_packing run $packing
    for mode in train train_cost; do
      run $mode run train.steps=9
      [ "$status" -eq 2 ]
      [[ $output == *"'run' was begun with packs (\"packing\": $packing) that this version cannot make: continue with"* ]]
    done
  done
}

# bats test_tags=night
@test "more samples than a block: a run resumed at its end has the same steps, and so have ranks" {
  "$VFM_BUILD/tests/bench/many_samples" latents 20000 1000
  cat >small.yaml <<'END'
model: {num_attention_heads: 1, attention_head_dim: 12, num_layers: 1, adaln_lora_dim: 4, max_size: [16, 8, 8]}
data: {tokens: 32768}
schedule: {warmup: 0, shape: constant}
validation: {every: 1, samples: 4, sigmas: [1]}
train: {log_every: 1, checkpoint_every: 1000}
END
  local train=(vfm-train small.yaml --data latents --device cpu -j1)
  # Of the 16,384 samples of the first block the last is in the pack before this one.
  local packs
  packs=$(vfm-pack plan --tokens 32768 latents | jq 'select(.samples) | .pack as $pack | .samples[] | $pack' | sed -n 16385p)
  [ "$packs" -gt 8 ]
  "${train[@]}" -o straight train.steps=16 >/dev/null 2>&1
  jq -e '.state | .epoch == 1 and .block == 0 and .pack > 0' straight/checkpoints/step-00000016/train.json
  "${train[@]}" -o apart train.steps="$packs" >/dev/null 2>&1
  jq -e --argjson packs "$packs" '.state | .epoch == 0 and .block == 0 and .pack == $packs and .samples == 16384' \
    apart/checkpoints/step-*/train.json
  "${train[@]}" -o apart train.steps=16 >/dev/null 2>&1
  cmp straight/metrics.jsonl apart/metrics.jsonl
  mpirun -np 2 "${train[@]}" -o ranks data.packs=2 train.steps=8 >/dev/null 2>&1
  counts() { jq -c 'select(.loss) | [.samples, .tokens, .epoch]' "$1"/metrics.jsonl; }
  cmp <(counts ranks) <(counts straight | sed -n 'n;p')
}

@test "a sample that cannot be used is reported, recorded, and costs only itself" {
  prepare 24 broken
  run train run train.steps=20
  [ "$status" -eq 1 ]
  [[ $output == *"left out: sample "*"not finite"* ]]
  [ "$(wc -l <run/errors.jsonl)" -eq 1 ]
  grep -q '"tool":"vfm-train"' run/errors.jsonl
  [ -d run/checkpoints/step-00000020 ]
  # Interrupted or not, the record is there.
  run train run train.steps=30
  [ "$status" -eq 1 ]
  [ "$(wc -l <run/errors.jsonl)" -eq 1 ]
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

@test "TensorBoard's files parse, hold the metrics, and a resumed run says where it begins" {
  prepare
  train run train.steps=10 schedule.shape=constant >/dev/null
  "$BATS_TEST_DIRNAME/read-events" run/events.out.tfevents.* >first
  mkdir old
  mv run/events.out.tfevents.* old
  train run train.steps=20 schedule.shape=constant >/dev/null
  "$BATS_TEST_DIRNAME/read-events" run/events.out.tfevents.* >second
  python3 - <<'PY'
import json
first, second = ([json.loads(line) for line in open(name)] for name in ("first", "second"))
metrics = [json.loads(line) for line in open("run/metrics.jsonl")]
for events, steps in ((first, range(1, 11)), (second, range(11, 21))):
    for line in metrics:
        if line["step"] in steps:
            flat = dict(line, **{"val_sigmas/" + k: v for k, v in line.get("val_sigmas", {}).items()})
            for key, tag in (("loss", "train/loss"), ("lr", "train/lr"), ("val_loss", "val/loss"),
                             ("val_sigmas/0.1", "val/sigmas/0.1"), ("val_sigmas/10", "val/sigmas/10")):
                if key in flat:
                    found = [e["value"] for e in events if e.get("tag") == tag and e["step"] == line["step"]]
                    assert len(found) == 1 and abs(found[0] - flat[key]) < 1e-6 * max(1, flat[key])
assert second[0] == {"step": 11, "session": 1}, second[0]
assert any(e.get("tag") == "timing/tokens_per_second" for e in first)
PY
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

@test "--report writes a page with the curves of any run" {
  prepare
  train run train.steps=10 --report page.html >/dev/null
  grep -q 'Loss by step' page.html
  grep -q 'Gradient norm by step' page.html
  run grep -cE 'src="http|href="http|data:image' page.html
  [ "$output" -eq 0 ]
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

@test "samples of the validation split that cannot be read are reported, recorded, and not counted" {
  prepare
  sed -i '2s/"text_tokens": 2/"text_tokens": 7/' latents/val/index.jsonl
  sed -i 's/samples: 3/samples: 4/' tiny.yaml
  run train run train.steps=10
  [ "$status" -eq 1 ]
  [[ $output == *"left out of validation: sample "* ]]
  [ "$(wc -l <run/errors.jsonl)" -eq 1 ]
  [ "$(jq -s 'map(select(.val_samples)) | last.val_samples' run/metrics.jsonl)" -eq 3 ]
}

@test "a step whose samples are all unreadable fails, and says which they were" {
  prepare
  rm latents/train/*.tar
  run train run train.steps=10
  [ "$status" -eq 1 ]
  [[ $output == *"none of the samples of step 1 could be read"* ]]
  [ "$(wc -l <run/errors.jsonl)" -gt 0 ]
}

@test "--synthetic trains any recipe on made-up latents, and keeps no checkpoint" {
  write_recipe
  run vfm-train tiny.yaml --synthetic 1x4x4,2x4x8 -o run -q model.compute=bf16 optimizer.moments=bf16
  [ "$status" -eq 0 ]
  [ "$(grep -c '"loss"' run/metrics.jsonl)" -eq 8 ]
  grep -q '"loss_image"' run/metrics.jsonl
  grep -q '"loss_video"' run/metrics.jsonl
  [ -z "$(find run -name '*.safetensors')" ]
  grep -q '"tokens_per_second"' run/timing.jsonl
  run vfm-train tiny.yaml --synthetic 2x4 -o run
  [ "$status" -eq 2 ]
  [[ $output == *"'2x4' is not a list of sizes: write FRAMESxHEIGHTxWIDTH"* ]]
  run vfm-train tiny.yaml --synthetic 1x4x4 --data latents -o run
  [ "$status" -eq 2 ]
}

@test "what is recomputed, and where the average lies, change no bit; bf16 moments resume exactly" {
  prepare
  train a train.steps=20 model.recompute=none
  train b train.steps=20 model.recompute=elementwise
  train c train.steps=20 model.recompute=block ema.place=host
  for folder in b c; do
    cmp a/metrics.jsonl $folder/metrics.jsonl
    for file in model/diffusion_pytorch_model state/ema state/adam_v; do
      cmp {a,$folder}/checkpoints/step-00000020/$file.safetensors
    done
  done
  train d train.steps=20 model.compute=bf16 optimizer.moments=bf16 ema.every=4
  train e train.steps=10 model.compute=bf16 optimizer.moments=bf16 ema.every=4 schedule.shape=constant
  train f train.steps=10 model.compute=bf16 optimizer.moments=bf16 ema.every=4 schedule.shape=constant train.checkpoint_every=5 train.steps=5
  train f train.steps=10 model.compute=bf16 optimizer.moments=bf16 ema.every=4 schedule.shape=constant train.checkpoint_every=5
  for file in model/diffusion_pytorch_model state/ema state/adam_m; do
    cmp {e,f}/checkpoints/step-00000010/$file.safetensors
  done
}

@test "--init begins from a run, a checkpoint, a diffusers component or a pipeline" {
  prepare
  train first train.steps=20 train.checkpoint_every=20 >/dev/null
  local checkpoint=first/checkpoints/step-00000020
  mkdir -p component pipeline
  cp "$checkpoint"/model/* component/
  cp -r component pipeline/transformer
  echo '{"_class_name": "CosmosTextToWorldPipeline", "transformer": ["diffusers", "CosmosTransformer3DModel"]}' \
    >pipeline/model_index.json
  # Updates too small to change a float: what is there at the end is what it began from.
  local still=(train.steps=1 optimizer.lr=1e-30 optimizer.weight_decay=0 schedule.warmup=0 validation.every=0)
  for from in first "$checkpoint" component pipeline; do
    train "from-${from%%/*}" --force --init "$from" "${still[@]}" >/dev/null
    local model="from-${from%%/*}/checkpoints/step-00000001/model/diffusion_pytorch_model.safetensors"
    case $from in first*) cmp "$model" "$checkpoint/state/ema.safetensors" ;; *) cmp "$model" "$checkpoint/model/"*.safetensors ;; esac
  done
  python3 - <<'PY'
import json
init = json.load(open('from-pipeline/checkpoints/step-00000001/train.json'))['init']
assert init['path'].endswith('/pipeline') and len(init['hash']) == 32
begun = json.load(open('from-first/checkpoints/step-00000001/train.json'))['init']
assert begun['path'].endswith('/first/checkpoints/step-00000020'), begun
assert json.load(open('from-component/checkpoints/step-00000001/train.json'))['init']['hash'] == init['hash']
assert json.load(open('first/checkpoints/step-00000020/train.json'))['init'] is None
PY
}

@test "--init: going on does not need the folder, which may be gone, and ends with the same bytes" {
  prepare
  train first train.steps=10 >/dev/null
  train whole --init first schedule.shape=constant train.steps=30 >/dev/null
  train parts --init first schedule.shape=constant train.steps=10 >/dev/null
  mv first gone
  train parts --init first schedule.shape=constant train.steps=30 >/dev/null
  diff <(run_hash whole) <(run_hash parts)
  # By another name it is the same, though it trained on.
  mv gone first
  train first train.steps=20 >/dev/null
  ln -s first linked
  train parts --init ./linked/ schedule.shape=constant train.steps=30 >/dev/null
  mv first/checkpoints/step-00000020 .
  mv first gone
  # Or have moved; another model is refused.
  train parts --init gone schedule.shape=constant train.steps=31 >/dev/null
  for other in parts nowhere; do
    run train parts --init $other schedule.shape=constant train.steps=40
    [ "$status" -eq 2 ]
    [[ "$output" == *"was begun from '$PWD/first/checkpoints/step-00000010', not from '$other'"* ]]
  done
  run train parts model.in_channels=4 model.out_channels=4 model.text_embed_dim=8 schedule.shape=constant train.steps=40
  [ "$status" -eq 2 ]
  [[ "$output" == *"was begun from '$PWD/first/checkpoints/step-00000010', not from new weights"* ]]
}

@test "--init: a Cosmos model goes on with texts of 512 tokens, and is sampled as it was" {
  prepare
  train first train.steps=2 >/dev/null
  mkdir -p cosmos/scheduler
  cp -r first/checkpoints/step-00000002/model cosmos/transformer
  echo '{"_class_name": "CosmosTextToWorldPipeline", "transformer": ["diffusers", "CosmosTransformer3DModel"],
    "scheduler": ["diffusers", "EDMEulerScheduler"]}' >cosmos/model_index.json
  echo '{"_class_name": "EDMEulerScheduler", "sigma_max": 70, "final_sigmas_type": "sigma_min"}' \
    >cosmos/scheduler/scheduler_config.json
  train tuned --init cosmos train.steps=2 -v 2>log >/dev/null
  grep -q "texts are filled up to 512 tokens" log
  jq -e '.text_padding == 512 and .encode_empty == false and .recipe.diffusion.text_padding == 512
    and .sampling == {steps: 36, guidance: 7, sampler: "edm-euler", sigma_min: 0.002, sigma_max: 70}' \
    tuned/checkpoints/step-00000002/train.json
  # So does what begins from that, and what goes on when the folder is gone.
  train again --init tuned train.steps=2 >/dev/null
  train worded --init cosmos train.steps=1 diffusion.text_dropout=0 >/dev/null
  jq -e .encode_empty worded/checkpoints/step-00000001/train.json
  mv cosmos gone
  train tuned --init cosmos train.steps=3 >/dev/null
  jq -e '.text_padding == 512 and .encode_empty == false and .sampling.sigma_max == 70' \
    again/checkpoints/step-00000002/train.json
  jq -e '.text_padding == 512 and .sampling.sigma_max == 70' tuned/checkpoints/step-00000003/train.json
  mv gone cosmos
  train plain --init cosmos train.steps=1 diffusion.text_padding=0 >/dev/null
  jq -e '(has("text_padding") | not) and has("sampling")' plain/checkpoints/step-00000001/train.json
  echo '{"_class_name": "FlowMatchEulerDiscreteScheduler"}' >cosmos/scheduler/scheduler_config.json
  run train flow --init cosmos
  [ "$status" -eq 2 ]
  [[ "$output" == *"'cosmos' is a model of flow matching"* ]]
  # What a folder says wrongly is reported with its file.
  wrong() {  # FILE TEXT OTHER MESSAGE
    cp -r gone bad
    sed -i "s/$2/$3/" "bad/$1"
    for mode in train train_cost; do
      run $mode wrong --init bad
      [ "$status" -eq 2 ]
      [[ "$output" == *"'bad/$1'"*"$4"* ]] || { echo "$output"; false; }
    done
    rm -r bad
  }
  cp -r cosmos gone
  echo '{"_class_name": "EDMEulerScheduler", "sigma_max": 70}' >gone/scheduler/scheduler_config.json
  wrong transformer/config.json '"num_layers": 2' '"num_layers": "two"' "'num_layers' is not an integer"
  wrong scheduler/scheduler_config.json 70 '"70"' "'sigma_max' is not a number"
  wrong scheduler/scheduler_config.json 70 0.001 "noise levels from 0.002 to 0.001: must be positive"
  # Video to world: with what Cosmos gave.
  "$BATS_TEST_DIRNAME/write-hollow-model" v2w 'patch_embed.proj.weight=[4096,72]'
  echo '{"_class_name": "CosmosTransformer3DModel", "in_channels": 17}' >v2w/config.json
  echo 'train: {steps: 1}' >short.yaml
  run vfm-train recipe short.yaml --init v2w
  [ "$status" -eq 0 ]
  [[ "$output" == *"condition_frames: [0,1,2]"* ]]
  run vfm-train cost short.yaml --init v2w --synthetic 2x4x4
  [ "$status" -eq 0 ]
}

@test "--init: what is no model, of another type, or does not fit, is reported before any work" {
  prepare
  refused() {  # MESSAGE ARGUMENT...
    run train run "${@:2}"
    [ "$status" -eq 2 ]
    [[ "$output" == *"$1"* ]] || { echo "$output"; false; }
    [ -z "$(ls run/checkpoints 2>/dev/null)" ]
  }
  refused "no such model folder: 'nowhere'" --init nowhere
  refused "'latents' holds no model: it is neither" --init latents
  mkdir vae
  echo '{"_class_name": "AutoencoderDC"}' >vae/config.json
  refused "of type AutoencoderDC; what works here: CosmosTransformer3DModel" --init vae
  train first train.steps=1 >/dev/null
  refused "model.num_layers: 2 -> 3; model.rope_scale: [2.0,1.0,1.0] -> [1.0,1.0,1.0]; leave these out" \
    --init first model.num_layers=3 model.rope_scale='[1,1,1]'
  refused "'model.type' is stdit, but the model to begin from is a dit" --init first model.type=stdit
  cp -r first/checkpoints/step-00000001/model other
  sed -i 's/"num_layers": 2/"num_layers": 1/; s/"adaln_lora_dim": 4/"adaln_lora_dim": 5/' other/config.json
  sed -i 's/num_layers: 2, adaln_lora_dim: 4, //' tiny.yaml
  refused "unexpected: 'transformer_blocks.1.attn1.norm_k.weight'" --init other
  [[ "$output" == *"of another shape: "*" is [4, 24], the model needs [5, 24]"* ]]
  # Its cost has the same words.
  only_records
  words=$output
  run train_cost run --init other
  [ "$status" -eq 2 ]
  [ "$output" = "$words" ]
  truncate -s -1 other/*.safetensors
  refused "is truncated" --init other
  rm other/*.safetensors
  refused "'other' has no weights" --init other
  [ ! -e run ]
  # Nothing is cleared for what cannot begin.
  run vfm-train tiny.yaml -j1 --data latents -o first --force --init other
  [ "$status" -eq 2 ]
  [ -e first/checkpoints/step-00000001/COMPLETE ]
}

@test "--init begins from the other networks too" {
  prepare
  sed -i 's/adaln_lora_dim: 4, //' tiny.yaml
  train first model.type=moviegen train.steps=2 >/dev/null
  # What the model is comes from it.
  train more --init first train.steps=4 >/dev/null
  grep -q '^  type: moviegen' more/recipe.yaml
}

@test "--device and --attention are what is asked for, or an error" {
  write_recipe
  for wrong in all 0 cpu,cpu tpu; do
    run vfm-train tiny.yaml --synthetic 1x4x4 -o run --device $wrong
    [ "$status" -eq 2 ]
    [[ $output == *"--device: '$wrong' is not auto, cpu or cuda; to use several GPUs start a rank on each with 'mpirun -np N'"* ]]
  done
  run vfm-train calibrate here.json --device all
  [ "$status" -eq 2 ]
  [[ $output == *"mpirun -np N"* ]]
  run vfm-train tiny.yaml --synthetic 1x4x4 -o run --device cpu --attention cudnn
  [ "$status" -eq 2 ]
  [[ $output == *"--attention cudnn is for a GPU"* ]]
  run vfm-train tiny.yaml --synthetic 1x4x4 -o run --device cuda train.steps=2
  if [ "$status" -ne 0 ]; then
    [ "$status" -eq 2 ]
    [[ $output == *"there is no usable GPU: "* ]]
    [ ! -e run/metrics.jsonl ]
  fi
}

@test "changed bytes inside a tar of latents are found, reported, recorded, and cost only their sample" {
  ffmpeg -v error -f lavfi -i testsrc=s=64x64:r=12:d=2 -c:v libx264 -pix_fmt yuv420p drawn.mp4
  vfm-clip drawn.mp4 --min-length 0.3s --max-length 0.5s -o clips | vfm-caption | vfm-embed | vfm-shard --keep-duplicates -o dataset |
    vfm-pack --size 32 --frames 5 --device cpu -o latents >packed.jsonl
  local tar
  tar=$(ls latents/train/*.tar)
  write_recipe
  local train=(vfm-train tiny.yaml model.adaln_lora_dim=4 model.max_size='[4,8,8]' data.tokens=64 validation.every=0 -j1 --device cpu --data latents)
  "${train[@]}" train.steps=4 -o whole >/dev/null
  [ ! -e whole/errors.jsonl ]
  # A number in the middle of a latent: the tar, its headers and sizes are as they were.
  python3 - "$tar" <<'PY'
import sys, tarfile
with tarfile.open(sys.argv[1]) as tar:
    member = [m for m in tar if m.name.endswith(".latent.npy")][1]
with open(sys.argv[1], "r+b") as file:
    file.seek(member.offset_data + member.size - 8)
    old = file.read(1)
    file.seek(-1, 1)
    file.write(bytes([old[0] ^ 1]))
open("key", "w").write(member.name.split(".")[0])
PY
  for ranks in 1 2; do
    run mpirun -np $ranks "${train[@]}" data.packs=2 train.steps=6 -o run$ranks
    [ "$status" -eq 1 ]
    [[ $output == *"left out: sample '$(cat key)' of "*": its bytes are not those that were packed"* ]]
    jq -se --arg key "$(cat key)" 'length == 1 and .[0].input == $key' run$ranks/errors.jsonl
  done
  # An index from before it had hashes: the tar's own is compared, and all of the shard left out.
  sed -i 's/,"xxh3":"[0-9a-f]*"//' latents/train/index.jsonl
  run "${train[@]}" train.steps=4 -o old
  [ "$status" -eq 1 ]
  [[ $output == *"the shard is not as it was packed (its hash is "* ]]
  [[ $output == *"none of the samples of step 1 could be read"* ]]
}

@test "--init begins from an autoregressive run" {
  ffmpeg -v error -f lavfi -i testsrc=s=64x64:r=12:d=2 -c:v libx264 -pix_fmt yuv420p drawn.mp4
  vfm-clip drawn.mp4 --min-length 0.3s -o clips | vfm-caption | vfm-embed | vfm-shard -o dataset |
    vfm-pack --tokenizer builtin:fsq --size 32 --frames 5 --device cpu -o codes >packed.jsonl
  cat >ar.yaml <<'END'
model: {type: autoregressive, num_attention_heads: 2, num_key_value_heads: 1, attention_head_dim: 16, num_layers: 1}
data: {tokens: 512}
schedule: {warmup: 1}
validation: {every: 0}
train: {steps: 2}
END
  vfm-train ar.yaml --device cpu --data codes -o first >/dev/null
  # Nothing of the model need be said; updates too small to change a float leave what it began from.
  printf 'data: {tokens: 512}\noptimizer: {lr: 1e-30, weight_decay: 0}\nschedule: {warmup: 0}\nvalidation: {every: 0}\ntrain: {steps: 1}\n' >still.yaml
  vfm-train still.yaml --init first --device cpu --data codes -o second >/dev/null
  cmp first/checkpoints/*/state/ema.safetensors second/checkpoints/*/model/diffusion_pytorch_model.safetensors
  run vfm-train ar.yaml model.num_layers=2 --init first --device cpu --data codes -o third
  [ "$status" -eq 2 ]
  [[ $output == *"the recipe is not that of the model to begin from: model.num_layers: 1 -> 2; leave these out"* ]]
  run vfm-train still.yaml model.type=dit --init first --device cpu --data codes -o third
  [ "$status" -eq 2 ]
  [[ $output == *"'model.type' is dit, but the model to begin from is a autoregressive"* ]]
  vfm-train export first -o out 2>words >/dev/null
  grep -q "diffusers has no class AutoregressiveTransformer3DModel: 'out' is the network alone" words
}

@test "the learning rate may change when a run goes on" {
  prepare
  train run train.steps=10 schedule.shape=constant >/dev/null
  train run train.steps=20 schedule.shape=linear optimizer.lr=0.001 schedule.warmup=2 -v >/dev/null 2>words
  grep -q 'with optimizer.lr: 0.003 -> 0.001; schedule.warmup: 5 -> 2; schedule.shape: "constant" -> "linear"' words
  jq -se 'map(select(.step > 10 and .lr)) | .[0].lr < 0.001 and length > 0' run/metrics.jsonl
}

@test "keys of another type of model are reported all at once; each shipped recipe names its type's own" {
  write_recipe
  run vfm-train tiny.yaml model.type=autoregressive model.learnable_positions=false --synthetic 1x4x4 -o run
  [ "$status" -eq 2 ]
  [[ $output == *"'model.adaln_lora_dim' in line 1 of 'tiny.yaml', 'model.max_size' in line 1 of 'tiny.yaml', 'model.learnable_positions' in argument 'model.learnable_positions=false' are not for a 'model.type' of autoregressive: leave them out"* ]]
  printf 'model: {levels: [8, 8]}\n' >t.yaml
  run vfm-train t.yaml --synthetic 1x4x4 -o run
  [ "$status" -eq 2 ]
  [[ $output == *"'model.levels' in line 1 of 't.yaml' is not for a model of type dit, which it is where 'model.type' is not set: leave it out"* ]]
  vfm-train cost "$VFM_ROOT/examples/recipes/tiny.yaml" model.type=stdit --synthetic 1x4x4 >/dev/null 2>&1
}

@test "-v reports validations, and a run that ends in its warm-up is warned of" {
  prepare
  train run train.steps=10 -v >/dev/null 2>words
  grep -Eq "step 10  validation loss [0-9.]+ \(3 samples of 'val'\)" words
  train short train.steps=3 >/dev/null 2>words
  [ "$(cat words)" = "vfm-train: the run ends in the warm-up: 'schedule.warmup' is 5 and 'train.steps' is 3, so the learning rate reaches 0.0018 of its 0.003" ]
}

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

@test "a message that names a key which nobody set says that it is the default" {
  prepare
  local tokenizer=$VFM_ROOT/examples/recipes/tokenizer-tiny.yaml
  says() {  # WORDS ARGUMENT...
    run vfm-train "${@:2}" --data latents -o run
    [ "$status" -eq 2 ]
    [[ $output == *"$1"* ]] || { echo "$output"; return 1; }
  }
  says "'diffusion.sigma_min' is 0.0002 (default) and 'diffusion.sigma_max' is 0.0001: the first must be at most the second" \
    tiny.yaml diffusion.sigma_max=0.0001
  says "'diffusion.sigma_min' is 100.0 and 'diffusion.sigma_max' is 80.0 (default)" tiny.yaml diffusion.sigma_min=100
  says "'tokenizer.l1' is 0.0 and 'tokenizer.l2' is 0.0 (default): set one of them above 0" \
    <(sed '/^  l[12]:/d; s/^tokenizer:/tokenizer: {l1: 0}/' "$tokenizer")
  echo 'model: {type: autoregressive, num_attention_heads: 12}' >decoder.yaml
  says "'num_key_value_heads' is 8, must be 0 or a divisor of 'num_attention_heads', 12; not set in the recipe: \
'model.num_key_value_heads' is 8 (default)" decoder.yaml
  says "'temporal_compression_ratio' 8 are 4 halvings in space and 1 in time, which do not fit 4 'encoder_block_out_channels'" \
    "$tokenizer" model.spatial_compression_ratio=64
  says "x 4 x 4 (frames, height, width of the latent), no multiple: 'model.patch_size' is [2,2,2]" \
    tiny.yaml 'model.patch_size=[2,2,2]'
  says "more than a pack holds: 'data.tokens' is 7" tiny.yaml data.tokens=7
  # What a run was begun with, and is set no longer.
  train run train.steps=1 optimizer.beta1=0.5 >/dev/null 2>&1
  says 'was begun with another recipe: optimizer.beta1: 0.5 -> 0.9 (default); restore it' tiny.yaml
}

@test "two programs that write one folder: the second is refused" {
  prepare
  mkdir latents2 dataset
  for command in "vfm-pack -o latents2" "vfm-shard -o dataset"; do
    run flock "${command##* }" $command absent.tar
    [ "$status" -eq 1 ]
    [[ $output == *"is in use by another program that writes it"* ]] || { echo "$output"; false; }
  done
}

