#!/usr/bin/env bats
# GPUs that programs of a pipe share: made programs with made GPUs, which sleep. Long series: tests/nightly/gpus.bats.
# SPDX-License-Identifier: Apache-2.0
load helpers
load made_pipe
bats_require_minimum_version 1.5.0

GPUS=a:10,b:10,c:10,d:10

# gpus_pipe OPTION...: three stages, whose models have one GPU to themselves, or two of them have one.
gpus_pipe() {
  "$MADE" items.jsonl --gpus $GPUS --stage one --model 6 --load 0.1 --gpu-log log.1 "$@" |
    "$MADE" --gpus $GPUS --stage two --model 4 --load 0.1 --gpu-log log.2 "$@" |
    "$MADE" --gpus $GPUS --stage three --model 7 --load 0.1 --gpu-log log.3 "$@"
}

# Whether the logs tell of no GPU with two items, or with more models than memory.
kept() {
  "$VFM_ROOT/tests/cli/gpu-log" $GPUS "$@" | tee told.json
  jq -e '.over == 0 and .twice == 0' told.json
}

@test "stages of a pipe share GPUs: an item a GPU, models where memory is, the same bytes as alone" {
  made_items 30 0.01 0.02 0.03 >items.jsonl
  "$MADE" items.jsonl | "$MADE" | "$MADE" >alone.jsonl
  VFM_SLOTS=24 VFM_SHARE=share gpus_pipe -j8 >shared.jsonl
  cmp <(records <alone.jsonl) <(records <shared.jsonl)
  kept log.*
  jq -e '.items == {"one": 30, "two": 30, "three": 30}' told.json
}

@test "a stage that is killed takes no GPU with it, nor the memory of its models" {
  made_items 4 100 >long.jsonl
  made_items 8 0.05 >short.jsonl
  export VFM_SLOTS=16
  VFM_SHARE=share "$MADE" long.jsonl -j4 --gpus $GPUS --stage killed --model 10 --gpu-log log.1 >/dev/null 2>&1 3>&- &
  local killed=$!
  four_items() { [ "$(grep -c item log.1)" -eq 4 ]; }
  await four_items
  VFM_SHARE=share "$MADE" short.jsonl -j8 --gpus $GPUS --stage next --model 10 --gpu-log log.2 >out 3>&- &
  sleep 0.3
  [ ! -s log.2 ]
  kill -KILL "$killed"
  wait "$killed" || true
  echo "$(tail -n 1 log.1 | cut -d ' ' -f 1)1 killed 0 killed - 0" >>log.1
  wait "$!"
  [ "$(records <out | wc -l)" -eq 8 ]
  kept log.*
}

@test "one slot keeps all GPUs busy, and another program has it meanwhile; so under make without a token" {
  made_items 4 100 >long.jsonl
  made_items 3 0.02 >short.jsonl
  export VFM_SLOTS=1
  mkfifo tokens
  exec 8<>tokens
  local stage makeflags
  for makeflags in '' ' -j1 --jobserver-auth=8,8'; do
    export MAKEFLAGS=$makeflags
    VFM_SHARE=share "$MADE" long.jsonl --gpus $GPUS --gpu-log log >/dev/null 2>&1 3>&- &
    stage=$!
    four_items() { [ "$(grep -c item log)" -eq 4 ]; }
    await four_items
    VFM_SHARE=share timeout 20 "$MADE" short.jsonl >out
    [ "$(records <out | wc -l)" -eq 3 ]
    kill -KILL "$stage"
    wait "$stage" || true
    rm log share*
  done
  run ! read -r -t 0 <&8
}

@test "a model that no GPU holds is refused before any work; one that waits for memory is shown" {
  made_items 4 100 >long.jsonl
  run --separate-stderr "$MADE" long.jsonl --gpus a:10,b:12 --stage large --model 13
  [ "$status" -eq 2 ]
  # shellcheck disable=SC2154
  [[ $stderr == *"large needs 13 B of a device's memory for its models and their work, and the devices have 12 B at most; name"* ]]
  VFM_SHARE=share "$MADE" long.jsonl --gpus a:10 --model 6 --gpu-log log >/dev/null 2>&1 3>&- &
  local has=$!
  await grep -q item log
  VFM_SHARE=share "$MADE" long.jsonl --gpus a:10 --stage waits --model 5 --progress >/dev/null 2>said 3>&- &
  local waits=$!
  await grep -q ' waiting for memory' said
  kill -KILL "$has" "$waits"
  wait "$has" "$waits" || true
}

@test "a GPU that fails is left out by name, and its item is done on another one" {
  made_items 80 0.02 >items.jsonl
  "$MADE" items.jsonl >alone.jsonl
  # It is said with -q, too.
  "$MADE" items.jsonl -j8 -q --gpus $GPUS --gpu-log log --fails b:2 >out.jsonl 2>err
  cmp <(records <alone.jsonl) <(records <out.jsonl)
  grep -F "made_stage: device 'b' is left out for made_stage from now on: it was made to" err
  kept log
  jq -e '.items.made_stage == 81' told.json
  [ "$(grep -c 'item b 1' log)" -eq 2 ]
  # None is left: the run fails, and says why.
  run --separate-stderr "$MADE" items.jsonl -j2 --gpus a:10 --fails a:3
  [ "$status" -eq 1 ]
  # shellcheck disable=SC2154
  [[ $stderr == *"no device is left for made_stage: 'a': it was made to"* ]]
}

# bats test_tags=night
@test "--progress and VFM_SHARE_REPORT show the GPUs: how many are busy, and which is left out" {
  made_items 30 0.1 >items.jsonl
  VFM_SLOTS=8 VFM_SHARE=share VFM_SHARE_REPORT=page.html "$MADE" items.jsonl --gpus a:10,b:10 --model 6 --fails b:2 --progress \
    >out.jsonl 2>err
  cat err
  grep -E "^made_stage .* slots, .*; [0-9.]+ (of [12] )?GPUs.*, GPU 'b' left out" err
  grep -q 'GPUs: 2 that the programs share' page.html
  grep -q 'GPUs that each program kept busy' page.html
  # A file of something else is left as it is.
  echo mine >other.gpus
  VFM_SHARE=other run --separate-stderr "$MADE" items.jsonl --gpus a:10
  [ "$status" -eq 2 ]
  [[ $stderr == *"'other.gpus' is not empty, and not of VFM_SHARE"* ]]
  [ "$(cat other.gpus)" = mine ]
}
