#!/usr/bin/env bats
# vfm-train --continue: a run trained further as the next stage of a training.
# SPDX-License-Identifier: Apache-2.0

load ../helpers

# Data that differ in one thing from those of a stage before, and that stage on each.
setup_file() {
  export LC_ALL=C.UTF-8 PATH="${VFM_BIN:?}:$PATH" OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR" || return 1
  for what in short images long small large; do
    "$BATS_TEST_DIRNAME/../make-latents" "$what" 24 $what
  done
  cat >tiny.yaml <<'YAML'
model: {num_attention_heads: 2, attention_head_dim: 12, num_layers: 2, adaln_lora_dim: 4, max_size: [8, 12, 12],
  learnable_positions: false}
data: {tokens: 32, packs: 3, window: 8}
optimizer: {lr: 0.01, weight_decay: 0.01}
schedule: {warmup: 5}
ema: {decay: 0.99}
validation: {every: 10, samples: 4}
train: {steps: 300, checkpoint_every: 300, log_every: 10, seed: 3}
YAML
  runs=(short images)
  ! at_night || runs+=(small)
  for data in "${runs[@]}"; do
    vfm-train tiny.yaml -j1 --data $data -o run-$data >$data.jsonl
  done
  ln -s run-short run
}

setup() {
  setup_tools
  export OMP_NUM_THREADS=1
  shared=$BATS_FILE_TMPDIR
}

run_hash() {
  (cd "$1" && find . -type f ! -name 'timing.jsonl' ! -name 'events.*' | LC_ALL=C sort |
    while read -r f; do sha256sum "$f"; done)
}

# next RUN DATA ARGUMENT...: the next stage of a run of this file on data of it.
next() { vfm-train --continue "$shared/$1" -j1 --data "$shared/$2" "${@:3}"; }
next_cost() { vfm-train cost --continue "$shared/$1" --data "$shared/$2" "${@:3}"; }

# no_worse EARLIER LATER SETTING... [-- SETTING...]: of a run on the earlier data, gone on with on the later ones at the
# same rate, the validation after 20 and 50 steps is not above that of a run with the same settings that begins from
# the weights alone, which moments of nothing throw about. What only a stage may change comes after --.
no_worse() {
  local run=run-$1 data=$2 both=(train.steps=50 train.checkpoint_every=300 schedule.warmup=0)
  shift 2
  while [ $# -gt 0 ] && [ "$1" != -- ]; do both+=("$1"); shift; done
  vfm-train "$shared/tiny.yaml" "${both[@]}" --init "$shared/$run" -j1 --data "$shared/$data" -o init >/dev/null
  next "$run" "$data" -o next "${both[@]}" "${@:2}" >/dev/null
  python3 - <<'PY'
import json
def curve(run):
    lines = map(json.loads, open(f"{run}/metrics.jsonl"))
    return {line["step"]: line["val_loss"] for line in lines if "val_loss" in line}
init, following = curve("init"), curve("next")
print(init, following)
assert list(following) == list(range(300, 351, 10)), following
for after in 20, 50:
    assert following[300 + after] <= init[after], (after, init, following)
PY
}

# bats test_tags=night
@test "long clips after short ones, with stretched positions: no worse than from the weights alone" {
  no_worse short long data.tokens=64 data.packs=2 -- 'model.rope_scale=[2.5, 1, 1]'
}

# bats test_tags=night
@test "videos after images: no worse than from the weights alone" {
  no_worse images short
}

# bats test_tags=night
@test "large frames after small ones: no worse than from the weights alone" {
  no_worse small large data.tokens=80
}

@test "without a recipe that of the run stands, and settings change it; it validates what it begins with" {
  next run short -o same train.steps=10 validation.every=50 >out
  [ "$(records out)" = '{"kind":"checkpoint","path":"same/checkpoints/step-00000310","step":310,"steps":310,"final":true}' ]
  # On the same data the first validation is the last one of the run.
  last() { jq -c 'select(.val_loss) | [.step, .val_loss, .val_sigmas]' "$@"; }
  [ "$(last same/metrics.jsonl | head -1)" = "$(last "$shared/run/metrics.jsonl" | tail -1)" ]
  diff <(sed 1d same/recipe.yaml) <(sed -e 1d -e 's/^  steps: 300$/  steps: 10/' -e '/^validation/,/^[p]/s/every: 10/every: 50/' \
    "$shared/run/recipe.yaml")
  vfm-train recipe --continue "$shared/run" optimizer.lr=0.5 >printed
  grep -qE "^  lr: 0.5 +# argument 'optimizer.lr=0.5'$" printed
  grep -qE "^  steps: 300 +# of '$shared/run'$" printed
}

@test "killed and given again it ends with the same bytes, also where the run is gone; nothing else resumes it" {
  arguments=(data.tokens=80 train.steps=40 train.checkpoint_every=10 optimizer.lr=0.001 -j1 --data "$shared/large")
  cp -rL "$shared/run" "$shared/run-images" .
  vfm-train --continue run "${arguments[@]}" -o whole >/dev/null
  kill_at_random 3 vfm-train --continue run "${arguments[@]}" -o parts
  vfm-train --continue run "${arguments[@]}" train.steps=20 -o parts >/dev/null
  run vfm-train --continue run-images "${arguments[@]}" -o parts
  [ "$status" -eq 2 ]
  [[ $output == *"'parts' continues '$PWD/run/checkpoints/step-00000300', not 'run-images'"* ]]
  run vfm-train "$shared/tiny.yaml" data.tokens=80 -j1 --data "$shared/large" -o parts
  [ "$status" -eq 2 ]
  rm -r run
  vfm-train --continue run "${arguments[@]}" -o parts >/dev/null
  diff <(run_hash whole) <(run_hash parts)
}

@test "what a stage may not change is refused before any work, all keys at once, by its cost too" {
  for mode in next next_cost; do
    run $mode run short -o next model.num_layers=3 optimizer.beta2=0.5 ema.mode=off 'model.max_size=[8, 12, 2]'
    [ "$status" -eq 2 ]
    [[ $output == *"cannot change model.num_layers: 2 -> 3; optimizer.beta2: 0.99 -> 0.5; ema.mode: \"decay\" -> \"off\"; model.max_size: [8,12,12] -> [8,12,2] (it may only grow); leave these out, or begin a new run from its weights alone with --init"* ]]
  done
  run next run short -o "$shared/run"
  [ "$status" -eq 2 ]
  [[ $output == *"needs a folder of its own"* ]]
  run next short short -o next
  [ "$status" -eq 2 ]
  run next run short -o next --init "$shared/run"
  [ "$status" -eq 2 ]
  run next run short -o next --init-lora merge
  echo "$output"
  [ "$status" -eq 2 ]
  [[ $output == *--init-lora* ]]
  run vfm-train check --continue "$shared/run" --data "$shared/short"
  [ "$status" -eq 2 ]
  [ ! -e next ]
  cp -rL "$shared/run" .
  printf x >>run/checkpoints/step-00000300/state/adam_m.safetensors
  run vfm-train --continue run -j1 --data "$shared/short" -o next
  [ "$status" -eq 1 ]
  [[ $output == *"state/adam_m.safetensors"*"'run/checkpoints/step-00000300' cannot be continued"* ]]
}

# bats test_tags=night
@test "a stage on several folders goes on at its place, and one on one folder needs no weights" {
  both=(--data "$shared/short" --data "$shared/images" train.checkpoint_every=300 schedule.warmup=0)
  vfm-train --continue "$shared/run" -j1 "${both[@]}" 'data.weights=[3, 1]' train.steps=6 -o whole >/dev/null
  vfm-train --continue "$shared/run" -j1 "${both[@]}" 'data.weights=[3, 1]' train.steps=4 -o four >/dev/null
  vfm-train --continue four -j1 "${both[@]}" train.steps=2 -o more >/dev/null
  state() { jq -c .state "$1"/checkpoints/step-00000306/train.json; }
  state whole
  [ "$(state whole)" = "$(state more)" ]
  cmp {whole,more}/checkpoints/step-00000306/model/diffusion_pytorch_model.safetensors
  next_one() { vfm-train --continue four -j1 --data "$shared/images" train.checkpoint_every=300 -o one "$@"; }
  next_one train.steps=1 >/dev/null
  next_one train.steps=2 >/dev/null
  grep -qx '  weights: \[\]' one/recipe.yaml
  jq -e '.stages[1].recipe.data.weights == [3, 1] and (.state | has("folder_samples") | not)' \
    one/checkpoints/step-00000306/train.json
}

@test "the stages are in the run, in its page and in its export" {
  next run large -o second data.tokens=80 train.steps=20 >/dev/null
  vfm-train --continue second optimizer.lr=0.001 train.steps=5 -j1 --data "$shared/large" -o third --report page.html >/dev/null
  jq -e '[.stages[] | [.first_step, .last_step]] == [[0, 300], [300, 320]]' third/checkpoints/step-00000325/train.json
  tr -d '\n' <page.html >page
  grep -qF 'data.tokens: 32 -&gt; 80' page
  grep -qF 'optimizer.lr: 0.01 -&gt; 0.001' page
  grep -qF '320 to 325' page
  grep -qF 'tokens/s' page
  vfm-train export third -o network >/dev/null 2>&1
  jq -e '[.stages[].last_step] == [300, 320, 325] and .stages[2].recipe.optimizer.lr == 0.001' network/vfm-export.json
}

# bats test_tags=night
@test "ranks continue what one rank made, on another layout, and one rank what they made" {
  needs_mpi
  settings=(data.tokens=80 train.steps=10 validation.every=5 schedule.warmup=0)
  next run large -o one "${settings[@]}" >/dev/null
  mpirun -np 2 vfm-train --continue "$shared/run" -j1 --data "$shared/large" -o two "${settings[@]}" parallel.shard=full \
    >/dev/null </dev/null
  vfm-train --continue two -j1 --data "$shared/large" -o three train.steps=1 >/dev/null
  python3 - <<'PY'
import json
one, two = ([json.loads(line) for line in open(f"{run}/metrics.jsonl")] for run in ("one", "two"))
assert len(one) == len(two) and one[0]["step"] == 300
for a, b in zip(one, two):
    for key in ("loss", "val_loss", "grad_norm"):
        if key in a:
            assert abs(a[key] - b[key]) < 1e-4 * max(1, abs(a[key])), (a, b)
first = json.loads(open("three/metrics.jsonl").readline())
assert abs(first["val_loss"] - two[-1]["val_loss"]) < 1e-5, (first, two[-1])
PY
}

# bats test_tags=night
@test "adapters are trained further as a next stage, on their own model" {
  cat >lora.yaml <<'YAML'
data: {tokens: 32, packs: 3}
lora: {rank: 2}
schedule: {warmup: 0}
validation: {every: 0}
YAML
  adapters=(vfm-train lora.yaml -j1 --data "$shared/short" --init "$shared/run")
  "${adapters[@]}" train.steps=4 -o adapters >/dev/null
  "${adapters[@]}" train.steps=7 -o whole >/dev/null
  cp -rL "$shared/run" base
  vfm-train --continue adapters train.steps=3 -j1 --data "$shared/short" -o more >/dev/null
  vfm-train --continue adapters train.steps=3 -j1 --data "$shared/short" -o moved --base base >/dev/null
  for part in lora/pytorch_lora_weights state/adam_m state/adam_v state/ema; do
    cmp {whole,more}/checkpoints/step-00000007/$part.safetensors
    cmp {whole,moved}/checkpoints/step-00000007/$part.safetensors
  done
  jq -e '.init.path | endswith("/run/checkpoints/step-00000300")' more/checkpoints/step-00000007/train.json
  run vfm-train --continue adapters lora.rank=0 -j1 --data "$shared/short" -o no
  [ "$status" -eq 2 ]
  [[ $output == *"cannot change lora.rank: 2 -> 0"* ]]
  # Rotary positions alone grow with adapters, too.
  vfm-train --continue adapters 'model.max_size=[9, 12, 12]' train.steps=1 -j1 --data "$shared/short" -o grown >/dev/null
  jq -e '.max_size[0] == 9' grown/checkpoints/step-00000005/model/config.json
}
