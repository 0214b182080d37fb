#!/usr/bin/env bats
# Faults of ranks, hosts, disks and the link between two hosts, hundreds of them, in one training (scripts/soak): it ends with the
# bytes of an undisturbed run.
# VFM_NIGHTLY_SOAK: how many faults; default: 200. SEED: of all that is drawn.
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0

setup() {
  load ../cli/helpers
  setup_tools
  needs_mpi
  ip netns add "probe$$" 2>/dev/null || skip "no right to make network namespaces"
  ip netns del "probe$$"
}

@test "a training that 200 faults strike has the bytes of an undisturbed one" {
  run "$VFM_ROOT/scripts/soak" -n "${VFM_NIGHTLY_SOAK:-200}" -e 2 -s "${SEED:-$RANDOM}" soak
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "the seed draws the same kinds of faults, ranks and pauses" {
  local i
  for i in 1 2; do "$VFM_ROOT/scripts/soak" -n 3 -e 0.5 -s 7 -k kill,usr1,term $i >table; done
  cat table
  diff <(jq '[.fault, .rank, .pause]' 1/soak.jsonl) <(jq '[.fault, .rank, .pause]' 2/soak.jsonl)
  jq -es 'all(.found >= 0 and .launched > 0 and .loaded > 0 and .first_step > 0)' 1/soak.jsonl
  [ "$(sed -n 1p table)" = '| fault | times | found, s | launched, s | loaded, s | first step, s | steps lost |' ]
}

@test "a soak that is interrupted leaves no hosts and no processes" {
  local soak signal status
  # Only with job control do jobs in the background hear SIGINT.
  set -m
  for signal in INT TERM; do
    "$VFM_ROOT/scripts/soak" $signal >said 2>&1 3>&- &
    soak=$!
    await grep -q ' step [0-9]*  loss' $signal/log
    kill -$signal -- -$soak
    status=0
    wait $soak || status=$?
    cat said
    [ $status -eq "$([ $signal = INT ] && echo 130 || echo 143)" ]
    [ -z "$(ip netns list | grep "^soak$soak")$(ip -o link show | grep "soak$soak")" ]
    run ! grep -lzx "PWD=$PWD/$signal" /proc/[0-9]*/environ
  done
}
