#!/usr/bin/env bats
# vfm-train: runs that end early, by a signal or by force, and what they go on with.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load tiny_runs

@test "killed at random moments and run again, it loads the newest complete checkpoint and ends with the bytes of an uninterrupted run" {
  prepare
  local kills=20 step
  ! at_night || kills=100
  # A checkpoint is being written at any time; what memory still has of the newest one is read from there.
  settings=(train.checkpoint_every=1 train.log_every=1 schedule.shape=constant)
  for ((; kills > 0; --kills)); do
    "${TRAIN[@]}" parts -v "${settings[@]}" train.steps=100000 >out 2>>words 3>&- &
    pid=$!
    ((kills % 4 == 0)) || until grep -q '"kind":"checkpoint"' out; do kill -0 "$pid" && sleep 0.02; done
    sleep "0.$(printf %03d $((RANDOM % 200)))"
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  grep -q "still has in memory of 'parts/checkpoints/step-.*' is read from there" words
  [ "$(grep -cE "damaged|usable" words)" -eq 0 ]
  step=$(find parts/checkpoints -name 'step-*' | sort | sed -n '$s/.*step-0*//p')
  train parts "${settings[@]}" train.steps=$((step + 2)) >/dev/null 2>&1
  train whole "${settings[@]}" train.steps=$((step + 2)) >/dev/null
  diff <(run_hash whole) <(run_hash parts)
  # Once more: there is nothing to do, and the last checkpoint is reported again.
  before=$(tree_hash parts)
  [ "$(train parts "${settings[@]}" train.steps=$((step + 2)) | records)" = "$(printf '{"kind":"checkpoint","path":"parts/checkpoints/step-%08d","step":%d,"steps":%d,"final":true}' \
    $((step + 2)) $((step + 2)) $((step + 2)))" ]
  [ "$(tree_hash parts)" = "$before" ]
}

# bats test_tags=night
@test "killed while it clears an earlier run, it goes on, to the same bytes" {
  prepare
  cc -shared -fPIC -o on-open.so "$BATS_TEST_DIRNAME/../on-open.c"
  train whole train.steps=2 >/dev/null
  cp -r whole begun
  for at in 1 2 3 4; do
    rm -rf parts && cp -r begun parts
    run env ON_UNLINK=parts/ ON_OPEN_AT=$at ON_OPEN_DO='kill -KILL $PPID' LD_PRELOAD="$PWD/on-open.so" \
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
  run env ON_UNLINK=step-00000001/COMPLETE ON_OPEN_AT=1 ON_OPEN_DO='kill -KILL $PPID' \
    LD_PRELOAD="$PWD/on-open.so" "${TRAIN[@]}" parts "${short[@]}"
  [ "$status" -eq 137 ]
  [ -e parts/checkpoints/step-00000001 ]
  train parts "${short[@]}" >/dev/null
  diff <(run_hash whole) <(run_hash parts)
}

# bats test_tags=night
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

# begin STEPS [SETTING...]: the run parts in the background, with its first record in the file out.
begin() {
  "${TRAIN[@]}" parts train.steps="$1" "${@:2}" >out 2>err 3>&- &
  pid=$!
  until [ -s out ]; do sleep 0.02; done
}

@test "SIGUSR1 saves and ends well; SIGTERM saves and ends with its number; both go on to the same bytes" {
  prepare
  train whole train.steps=300 >/dev/null
  begin 300
  kill -USR1 "$pid"
  wait "$pid"
  [ ! -s err ]
  [[ $(records out | tail -n 1) == *'"final":false}' ]]
  begin 300
  kill -TERM "$pid" 2>/dev/null || true
  status=0
  wait "$pid" || status=$?
  [ "$status" -eq 143 ] || [ "$status" -eq 0 ]
  train parts train.steps=300 >/dev/null
  diff <(run_hash whole) <(run_hash parts)
}

@test "SIGTERM saves and says where the same command goes on; RUN/stop is removed when it was obeyed" {
  prepare
  begin 100000 train.checkpoint_every=10
  kill -TERM "$pid"
  status=0
  wait "$pid" || status=$?
  cat err
  [ "$status" -eq 143 ]
  saved=$(records out | tail -n 1 | jq -r .path)
  [[ $saved == "$(printf '%s\n' parts/checkpoints/step-* | tail -n 1)" ]]
  grep -qE "ended after step [0-9]+ of 100000, saved; the same command goes on from '$saved'$" err
  begin 100000 train.checkpoint_every=10
  touch parts/stop
  wait "$pid"
  [ ! -e parts/stop ]
  [[ $(records out | tail -n 1) == *'"final":false}' ]]
  # One that is there at the beginning is meant for the run, too.
  touch parts/stop
  train parts train.steps=100000 -v >out 2>err
  [ ! -e parts/stop ]
  [[ $(records out | tail -n 1) == *'"final":false}' ]]
  grep -qE 'asked to end: saved after step [0-9]+ of 100000$' err
}

@test "spikes are skipped, and a run that goes on skips the same" {
  prepare
  spikes=(schedule.shape=constant train.log_every=1 train.skip_spikes=1.5 optimizer.max_skips=50)
  train whole train.steps=140 "${spikes[@]}" >/dev/null 2>err
  grep -qE "step [0-9]+: loss [0-9.e+-]+ and gradient norm [0-9.e+-]+ are a spike, the update is skipped \('train.skip_spikes' is 1.5\)" err
  [ "$(jq -s 'map(.skipped // 0) | add' whole/metrics.jsonl)" = "$(grep -c 'are a spike' err)" ]
  train parts train.steps=110 "${spikes[@]}" >/dev/null 2>&1
  train parts train.steps=140 "${spikes[@]}" >/dev/null 2>&1
  cmp whole/metrics.jsonl parts/metrics.jsonl
  diff <(run_hash whole | grep 140/) <(run_hash parts | grep 140/)
}

@test "a run that a signal ends says what is lost, and the same command where it goes on" {
  prepare
  # stop FILE [SETTING...]: it, once that file is there.
  stop() {
    "${TRAIN[@]}" run train.steps=100000 train.log_every=1 "${@:2}" >out 2>err 3>&- &
    pid=$!
    until compgen -G "$1" >/dev/null; do sleep 0.02; done
    kill -HUP "$pid"
    status=0
    wait "$pid" || status=$?
    cat err
    [ "$status" -eq 129 ]
  }
  stop run/metrics.jsonl train.checkpoint_every=100000
  grep -qE "ended after step [0-9]+ of 100000 without saving; the same command begins again: it has no checkpoint \(SIGTERM and SIGUSR1 save and end\)" err
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

@test "the learning rate may change when a run goes on" {
  prepare
  train run train.steps=10 schedule.shape=constant >/dev/null
  train run train.steps=20 schedule.shape=linear optimizer.lr=0.001 schedule.warmup=2 -v >/dev/null 2>words
  grep -q 'with optimizer.lr: 0.003 -> 0.001; schedule.warmup: 5 -> 2; schedule.shape: "constant" -> "linear"' words
  jq -se 'map(select(.step > 10 and .lr)) | .[0].lr < 0.001 and length > 0' run/metrics.jsonl
}
