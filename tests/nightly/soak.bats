#!/usr/bin/env bats
# Faults of ranks, hosts, disks and the link between two hosts, hundreds of them, in one training (scripts/soak): it ends with the
# bytes of an undisturbed run.
# VFM_NIGHTLY_SOAK: how many faults; default: 200. SEED: of all that is drawn.
# SPDX-License-Identifier: Apache-2.0

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
