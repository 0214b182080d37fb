#!/usr/bin/env bats
# The scores of vfm-caption score tell true captions from faulty ones, as RESULTS.md says. Two small models are trained
# for it in PyTorch, which takes some minutes.
# SPDX-License-Identifier: Apache-2.0

load ../cli/helpers
bats_require_minimum_version 1.5.0

setup() { setup_tools; }

@test "scores tell captions with a fault from true ones, and neither texts alone nor other clips do" {
  local bench=$VFM_ROOT/tests/bench
  export TORCH_PYTHON
  TORCH_PYTHON=$("$bench/torch-python.sh" "$VFM_BUILD" torch==2.15.0 transformers==5.24.0) ||
    skip "PyTorch and transformers cannot be had here"
  WORK=$PWD "$bench/caption_score.sh" "$VFM_BUILD"
}
