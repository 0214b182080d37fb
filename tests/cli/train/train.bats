#!/usr/bin/env bats
# vfm-train: what a training says, writes and computes, on one rank and on two.
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

# bats test_tags=night
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
  # With more ranks than packs: the packs stay, and what may change is named.
  mpirun -np 4 vfm-train tiny.yaml -j1 --data latents -o mixed train.steps=51 schedule.shape=constant >/dev/null 2>err
  cat err
  grep -q "for the others: 'data.packs' is 3, as the run was begun; share each pack by parallel.tp or parallel.cp, or set 4, or a multiple of it in a next stage (--continue)$" err
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

@test "--report writes a page with the curves of any run" {
  prepare
  train run train.steps=10 --report page.html >/dev/null
  grep -q 'Loss by step' page.html
  grep -q 'Gradient norm by step' page.html
  run grep -cE 'src="http|href="http|data:image' page.html
  [ "$output" -eq 0 ]
}

# bats test_tags=night
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

@test "each optimizer resumes exactly, and keeps what the manual says" {
  prepare
  while read -r name files settings; do
    read -ra settings <<<"$settings"
    train "whole-$name" "${settings[@]}" train.steps=8 train.checkpoint_every=4 schedule.shape=constant
    train "parts-$name" "${settings[@]}" train.steps=4 train.checkpoint_every=4 schedule.shape=constant
    train "parts-$name" "${settings[@]}" train.steps=8 train.checkpoint_every=4 schedule.shape=constant
    state=whole-$name/checkpoints/step-00000008/state
    [ "$(cd "$state" && echo *.safetensors)" = "${files//,/ }" ]
    diff -r {whole,parts}-"$name"/checkpoints/step-00000008
    # It learns.
    jq -e -s '.[-1].loss < .[0].loss' "whole-$name/metrics.jsonl"
  done <<'KINDS'
muon adam_m.safetensors,adam_v.safetensors,ema.safetensors,muon_m.safetensors optimizer.kind=muon
low adam_m.safetensors,adam_v.safetensors,ema.safetensors,muon_m.safetensors optimizer.kind=muon optimizer.moments=bf16 model.compute=bf16
8bit adam_m.safetensors,adam_m_codes.safetensors,adam_m_scales.safetensors,adam_v.safetensors,adam_v_codes.safetensors,adam_v_scales.safetensors,ema.safetensors optimizer.moments=8bit
KINDS
  # Only matrices of blocks have Muon's momentum, and AdamW's moments are of the others.
  tensors() { python3 -c '
import json, struct, sys
data = open(sys.argv[1], "rb").read()
print(*sorted(set(json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])) - {"__metadata__"}), sep="\n")' "$1"; }
  state=whole-muon/checkpoints/step-00000008
  tensors $state/state/muon_m.safetensors >momentum
  tensors $state/state/adam_m.safetensors >moments
  tensors $state/model/diffusion_pytorch_model.safetensors >weights
  grep -q 'attn1.to_q.weight' momentum
  run ! grep -vE '^transformer_blocks\.[0-9]+\.(attn[12]\.to_(q|k|v|out\.0)|ff\.net\.(0\.proj|2))\.weight$' momentum
  diff <(sort momentum moments) weights
  run vfm-train tiny.yaml --data latents -o whole-muon train.steps=9
  [ "$status" -eq 2 ]
  [[ $output == *'optimizer.kind: "muon" -> "adamw"'* ]]
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

@test "-v reports validations, and a run that ends in its warm-up is warned of" {
  prepare
  train run train.steps=10 -v >/dev/null 2>words
  grep -Eq "step 10  validation loss [0-9.]+ \(3 samples of 'val'\)" words
  train short train.steps=3 >/dev/null 2>words
  [ "$(cat words)" = "vfm-train: the run ends in the warm-up: 'schedule.warmup' is 5 and 'train.steps' is 3, so the learning rate reaches 0.0018 of its 0.003" ]
}
