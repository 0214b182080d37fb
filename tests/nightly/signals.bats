#!/usr/bin/env bats
# Two hundred signals at random moments, a program.
# SPDX-License-Identifier: Apache-2.0

load ../cli/helpers
load ../cli/programs_at_work
bats_require_minimum_version 1.5.0

setup_file() { prepare_work; }

many_signals() {
  work_of "$1" "$2"
  run "$BATS_TEST_DIRNAME/../cli/signal-at-random" 200 "$BATS_FILE_TMPDIR/work" "${command[@]}"
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "200 signals: vfm-clip" { many_signals clip 2; }
@test "200 signals: vfm-caption" { many_signals caption 2; }
@test "200 signals: vfm-embed" { many_signals embed 2; }
@test "200 signals: vfm-shard" { many_signals shard 2; }
@test "200 signals: vfm-pack" { many_signals pack 2; }
@test "200 signals: vfm-train" { many_signals train 1; }
@test "200 signals: vfm-train on two threads" { many_signals train 2; }
@test "200 signals: vfm-generate" { many_signals generate 1; }
