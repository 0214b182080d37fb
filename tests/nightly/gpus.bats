#!/usr/bin/env bats
# Eight made GPUs that the stages of a pipe share, real processes which sleep: the bottleneck's GPUs are busy, it is
# followed when it moves, a killed stage and a failing GPU cost nothing more. The rule alone, in virtual time, beside all
# static splits: tests/unit/base/gpu_rule_test.cc.
# SPDX-License-Identifier: Apache-2.0

bats_require_minimum_version 1.5.0

setup() {
  load ../cli/helpers
  load ../cli/made_pipe
  setup_tools
  export VFM_SLOTS=64
}

GPUS=g0:10,g1:10,g2:10,g3:10,g4:10,g5:10,g6:10,g7:10

# stage NAME [OPTION...]: one that shares the GPUs: a model takes 2 s to load.
stage() {
  VFM_SHARE=share "$MADE" "${@:2}" -j16 --gpus "${GPUS_OF:-$GPUS}" --stage "$1" --load 2 --gpu-log "log.$1"
}

# told GPUS OPTION... LOG...: what the logs tell; no GPU had two items, or more models than memory.
told() {
  "$VFM_ROOT/tests/cli/gpu-log" "$@" | tee told.json
  jq -e '.over == 0 and .twice == 0' told.json
}

# moving COUNT BEFORE AFTER: items whose work changes after COUNT of them.
moving() {
  # shellcheck disable=SC2086
  { made_items "$1" $2; made_items "$1" $3 | sed 's/"item":/"item":1000/'; } >items.jsonl
}

# begun STAGE: seconds from the first line of all logs until the last stage was given its first item of the second kind.
begun() {
  records <out.jsonl | jq -s --argjson start "$(sort -g log.* | head -n 1 | cut -d ' ' -f 1)" \
    '[.[] | select(.item >= 10000) | .at] | min - $start'
}

@test "the bottleneck's GPUs are busy 95 % of the time, and again 5 s and a load after it moves" {
  # Six of eight GPUs for the last stage, then for the first. Of records of 2 kB few wait in a pipe or, with --few, in a
  # stage: else the first stages would have done most of their work for the second kind before the last one begins it, and
  # no bottleneck would move.
  moving 1000 "0.02 0.02 0.2" "0.2 0.02 0.02"
  sed -i "s/}\$/,\"more\":\"$(printf '%2000s' | tr ' ' x)\"}/" items.jsonl
  stage one items.jsonl --model 10 --few | stage two --model 10 --few | stage three --model 10 --few --stamp >out.jsonl
  [ "$(records <out.jsonl | wc -l)" -eq 2000 ]
  # From 20 s on: until then all are loaded for the first time.
  local moved
  moved=$(begun)
  awk -v moved="$moved" 'BEGIN { exit !(moved > 30) }'
  for log in log.*; do awk -v start="$(sort -g log.* | head -n 1 | cut -d ' ' -f 1)" -v moved="$moved" '$1 < start + moved' "$log" >"before.$log"; done
  told "$GPUS" --from 20 --stage three before.*
  jq -e '.busy >= 0.95' told.json
  told "$GPUS" --from "$(awk -v moved="$moved" 'BEGIN { print moved + 7 }')" --stage one log.*
  jq -e '.busy >= 0.95' told.json
  # Nothing goes to and fro.
  jq -e '[.loads[]] | add <= 48' told.json
}

@test "unlike GPUs, and models of which two fit on some: what memory holds, and all items" {
  export GPUS_OF=g0:10:1,g1:10:1,g2:10:1,g3:10:1,g4:20:2,g5:20:2,g6:20:2,g7:20:2
  moving 400 "0.05 0.2 0.01" "0.01 0.05 0.2"
  stage one items.jsonl --model 10 | stage two --model 6 | stage three --model 4 >out.jsonl
  "$MADE" items.jsonl | "$MADE" | "$MADE" >alone.jsonl
  cmp <(records <alone.jsonl) <(records <out.jsonl)
  told "$GPUS_OF" log.*
}

@test "a stage that is killed leaves its GPUs to the others, which go on with all of them" {
  made_items 4000 0.1 >long.jsonl
  # 160 s of work on one GPU. Where the stage has seven when the other is killed, a load of 2 s for an eighth of them more
  # is worth it when the models have lain so for 14 s.
  made_items 1600 0.1 >items.jsonl
  VFM_SHARE=share "$MADE" long.jsonl -j16 --gpus "$GPUS" --stage killed --model 10 --load 2 --gpu-log log.killed \
    >/dev/null 2>&1 3>&- &
  local killed=$!
  until [ -e log.killed ] && [ "$(grep -c ready log.killed)" -ge 8 ]; do sleep 0.1; done
  stage next items.jsonl --model 10 >out.jsonl 3>&- &
  sleep 6
  kill -KILL "$killed"
  wait "$killed" || true
  echo "$(tail -n 1 log.killed | cut -d ' ' -f 1)1 killed 0 killed - 0" >>log.killed
  wait "$!"
  [ "$(records <out.jsonl | wc -l)" -eq 1600 ]
  told "$GPUS" log.*
  [ "$(cut -d ' ' -f 5 log.next | sort -u | wc -l)" -eq 8 ]
}

@test "a GPU that fails is left out by name, its item is done again, and the other stages keep it" {
  made_items 300 0.05 0.05 >items.jsonl
  "$MADE" items.jsonl | "$MADE" >alone.jsonl
  { stage one items.jsonl --model 5 --fails g3:5 2>err.1 | stage two --model 5 2>err.2; } >out.jsonl
  cmp <(records <alone.jsonl) <(records <out.jsonl)
  [ "$(grep -c "device 'g3' is left out for one from now on: it was made to" err.1)" -eq 1 ]
  [ ! -s err.2 ]
  told "$GPUS" log.*
  jq -e '.items.one == 301 and .items.two == 300' told.json
}
