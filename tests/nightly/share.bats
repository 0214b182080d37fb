#!/usr/bin/env bats
# Slots that three stages share, beside every way to split sixteen of them: made programs, which sleep, so that two
# processors can show what sixteen slots do. The rule alone, in virtual time: tests/unit/share/slot_rule_test.cc.
# SPDX-License-Identifier: Apache-2.0

bats_require_minimum_version 1.5.0

setup() {
  load ../cli/helpers
  load ../cli/made_pipe
  setup_tools
}

# pipe ITEMS OUT A B C OPTION...: three stages with so many jobs, each item of the first becomes four. OUT has when
# each record came.
pipe() {
  "$MADE" "$1" -j"$3" --fan-out 4 "${@:6}" | "$MADE" -j"$4" "${@:6}" | "$MADE" -j"$5" --stamp "${@:6}" >"$2"
}

# rate OUT [FIRST]: records a second, from the first record on; of items from FIRST on, from 5 s after the first of them.
rate() {
  records <"$1" | jq -s --argjson first "${2:-0}" '[.[] | select(.item >= $first) | .at] | sort |
    (.[0] + if $first > 0 then 5 else 0 end) as $from | [.[] | select(. >= $from)] |
    (length - 1) / (.[-1] - .[0])'
}

# best ITEMS OPTION...: the greatest rate of all splits, sixteen of them at a time: they sleep.
best() {
  local a b running=0
  mkdir splits
  for a in $(seq 14); do
    for b in $(seq $((15 - a))); do
      pipe "$1" "splits/$a-$b" "$a" "$b" $((16 - a - b)) "${@:2}" &
      [ $((++running % 16)) -ne 0 ] || wait
    done
  done
  wait
  for a in splits/*; do echo "$(rate "$a") $a"; done | sort -g | tail -n 1
  rm -r splits
}

# at_least RATE SHARE BEST...: whether it is.
at_least() {
  echo "shared: $1 a second, of the best split $3 ($4)"
  awk -v rate="$1" -v share="$2" -v best="$3" 'BEGIN { exit !(rate >= share * best) }'
}

# compare COUNT SECONDS BEFORE AFTER OPTION...: the shared slots with each load, and with one that moves from the first to
# the second.
compare() {
  local count=$1 before=$2 after=$3 shared each
  # shellcheck disable=SC2086
  made_items "$count" $before >before.jsonl
  # shellcheck disable=SC2086
  made_items "$count" $after >after.jsonl
  # shellcheck disable=SC2086
  { cat before.jsonl; made_items $((5 * count)) $after | sed 's/"item":/"item":1000/'; } >moves.jsonl
  for each in before after; do
    read -ra best < <(best $each.jsonl "${@:4}")
    for shared in share make; do
      run_shared $shared $each.jsonl "${@:4}"
      at_least "$(rate out)" 0.95 "${best[@]}"
    done
  done
  # The best of the load after the move, within 5 s of it.
  for shared in share make; do
    run_shared $shared moves.jsonl "${@:4}"
    at_least "$(rate out 1000)" 0.95 "${best[@]}"
  done
}

# run_shared share|make ITEMS OPTION...: sixteen slots, by VFM_SHARE or of a jobserver: each program has one of its own.
run_shared() {
  if [ "$1" = share ]; then
    VFM_SLOTS=16 VFM_SHARE=slots pipe "$2" out 16 16 16 "${@:3}"
  else
    rm -f tokens
    mkfifo tokens
    exec 8<>tokens
    printf '%.0s+' {1..13} >&8
    MAKEFLAGS=" -j16 --jobserver-auth=fifo:$PWD/tokens" pipe "$2" out 16 16 16 "${@:3}"
    exec 8>&-
  fi
}

@test "shared slots reach 95 % of the best of all static splits, and again after the bottleneck moves" {
  compare 60 "0.16 0.04 0.12" "0.16 0.12 0.04"
}

# busy SLOTS LOG...: the share of so many slots that items had, from the first to the last.
busy() {
  cat "${@:2}" | awk -v slots="$1" '
    $2 > 0 { sum -= $1; if (!first || $1 < first) first = $1 }
    $2 < 0 { sum += $1; if ($1 > last) last = $1 }
    END { print sum / (slots * (last - first)) }'
}

@test "where one item of twenty takes twenty times as long, 95 % of the slots are busy" {
  local few
  made_items 4000 0.05 >items.jsonl
  for few in --few ""; do
    rm -f log
    # shellcheck disable=SC2086
    VFM_SLOTS=16 "$MADE" items.jsonl --unlike $few --log log >out
    echo "${few:-many}: $(busy 16 log)"
  done
  awk -v busy="$(busy 16 log)" 'BEGIN { exit !(busy >= 0.95) }'
}

@test "shared slots reach 95 % of the best split where items differ by 20 times" {
  compare 80 "0.16 0.04 0.12" "0.16 0.12 0.04" --unlike
}
