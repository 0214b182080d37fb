#!/usr/bin/env bats
# All experiments that vfm-paper(7) names, in full: what is not measured is predicted by vfm-train itself.
# SPDX-License-Identifier: Apache-2.0

load ../cli/helpers
bats_require_minimum_version 1.5.0

@test "each experiment of the page makes its table" {
  needs_mpi
  export CARDS=0
  mapfile -t commands < <(paper_commands | grep "^$VFM_ROOT/scripts/experiments ")
  [ ${#commands[@]} -ge 4 ]
  local command
  for command in "${commands[@]}"; do
    echo "$command"
    bash -o pipefail -c "$command" </dev/null >>tables
  done
  for title in '7B at 8k tokens, FSDP alone' '7B at 74k tokens' 'Adaptive norms' 'other cards' 'Table 1' 'Table 2' 'Figure 10' \
    'Batch size' 'Unlike sources'; do
    grep -q "^## .*$title" tables
  done
  # The first row of Table 1 does not fit; the published rate of the second stands beside ours.
  grep -q 'baseline.*memory: does not fit' tables
  grep -q 'CP2.*| 457, 8969 |' tables
  [ "$(grep -cE '\| predicted, (A100|L40S|H100|H200) \|' tables)" -eq 67 ]
}

@test "small networks are measured in all experiments" {
  needs_mpi
  STEPS=4 "$VFM_ROOT/scripts/experiments" --small all >tables
  cat tables
  [ "$(grep -c '| measured, processor |' tables)" -eq 39 ]
  run ! grep 'does not fit' tables
}
