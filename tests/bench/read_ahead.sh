#!/usr/bin/env bash
# How much of its time a training waits for a store that stands still two seconds of each twenty, with so many seconds' use
# read ahead of the step ('data.ahead').
# usage: tests/bench/read_ahead.sh [BUILD]      (default: build)
# Environment: AHEAD (seconds: "3 1 0"), SCALE (of all times: 1), RUN (seconds of each: 120).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}")
cd "$root"
ninja -C "$build" tests/bench/read_ahead >/dev/null
times=$(awk -v scale="${SCALE:-1}" -v run="${RUN:-120}" -v ahead="${AHEAD:-3 1 0}" 'BEGIN {
  printf "%g %g %g", 2 * scale, 20 * scale, run * scale
  count = split(ahead, each, " ")
  for (i = 1; i <= count; ++i) printf " %g", each[i] * scale
}')
# shellcheck disable=SC2086
OMP_WAIT_POLICY=passive "$build/tests/bench/read_ahead" $times |
  jq -r 'if .step_seconds then
      "a step takes \(.step_seconds * 1000 | round) ms and uses \(.bytes_per_second / 1e6 | round) MB a second; without stalls "
      + "\(.waited * 10000 | round / 100) % are waited"
    else "\(.ahead_seconds) s ahead, \(.ahead_bytes / 1e6 * 10 | round / 10) MB: \(.waited * 10000 | round / 100) % are waited" end'
