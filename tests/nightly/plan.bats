#!/usr/bin/env bats
# The whole page of layouts, which takes minutes.
# SPDX-License-Identifier: Apache-2.0

load ../cli/helpers
bats_require_minimum_version 1.5.0

setup() { setup_tools; }

@test "examples/LAYOUTS.md is what scripts/layouts prints" {
  "$VFM_ROOT/scripts/layouts" >page.md
  diff page.md "$VFM_ROOT/examples/LAYOUTS.md"
}
