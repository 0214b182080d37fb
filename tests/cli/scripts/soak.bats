#!/usr/bin/env bats
# scripts/soak: its options. tests/nightly/soak.bats lets it strike.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
bats_require_minimum_version 1.5.0

@test "soak -h tells its options, and it refuses what it does not know before any work" {
  local soak=$VFM_ROOT/scripts/soak
  run "$soak" -h
  [ "$status" -eq 0 ]
  [[ $output == 'Usage: scripts/soak '* ]]
  refused 'unknown option -z; -h lists the options' "$soak" -z
  refused '-n needs a value' "$soak" -n
  refused "-n is 'many'" "$soak" -n many
  refused "-n is '0'" "$soak" -n 0
  refused "-e is '-1'" "$soak" -e -1
  refused "-s is 'x'" "$soak" -s x
  refused "-k names 'fire', which is no kind; the kinds are kill,stop,link,host,term,usr1,disk" "$soak" -k kill,fire
  refused "unexpected argument 'b'" "$soak" a b
  [ ! -e a ]
}
