#!/usr/bin/env bats
# Threads of vfm on a machine where others compute too.
# SPDX-License-Identifier: Apache-2.0

load helpers
bats_require_minimum_version 1.5.0

teardown() {
  # shellcheck disable=SC2086
  [ -z "${busy-}" ] || kill $busy
}

# train_step THREADS: milliseconds of the median step.
train_step() {
  rm -rf run
  vfm-train "$VFM_ROOT/examples/recipes/quickstart.yaml" "-j$1" --device cpu --synthetic 3x8x8 -o run train.steps=8 \
    train.log_every=1 validation.every=0 model.in_channels=24 model.text_embed_dim=64 model.num_layers=2 >/dev/null
  jq -s '[.[1:][].seconds_per_step] | sort | .[length / 2 | floor] * 1000 | floor' run/timing.jsonl
}

@test "oneDNN computes with the program's own threads" {
  ! vfm-train --version | grep -q 'polite waiting no' || skip "libgomp could not be linked into the program"
  LD_DEBUG=bindings train_step 2 2>&1 >/dev/null | grep -E 'libdnnl.* to .*vfm-train .*GOMP_parallel'
}

# bats test_tags=night
@test "beside programs that compute for ever, two threads are not much slower than one" {
  ! vfm-train --version | grep -q 'polite waiting no' || skip "libgomp could not be linked into the program"
  busy=
  for _ in $(seq "$(nproc)"); do
    bash -c 'while :; do :; done' 3>&- &
    busy+=" $!"
  done
  # Threads that look for work without end need ten times as long, each time; what else the machine does comes and goes.
  for _ in 1 2 3 4 5; do
    one=$(train_step 1)
    two=$(train_step 2)
    echo "$one ms on one thread, $two ms on two"
    [ "$two" -gt $((5 * one / 2)) ] || return 0
  done
  return 1
}
