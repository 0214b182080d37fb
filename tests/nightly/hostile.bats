#!/usr/bin/env bats
# Thousands of damaged files through each tool, of every container and codec that this FFmpeg writes. scripts/test runs it
# with tools that were built for the sanitizers.
# VFM_NIGHTLY_DAMAGED: how many files; default: 5000 through vfm-clip, as many shards and members through the others.
# SPDX-License-Identifier: Apache-2.0
load ../cli/helpers
bats_require_minimum_version 1.5.0

many=${VFM_NIGHTLY_DAMAGED:-5000}
hostile_seconds=1200

setup() {
  setup_tools
  load ../cli/hostile
}

# in_batches COUNT FUNCTION [OPTION...]: `many` files, so many at a time.
in_batches() {
  local batch=$1 first
  shift
  for ((first = 0; first < many; first += batch)); do "$1" "$first" "$batch" "${@:2}" || return 1; done
}

@test "very many damaged videos and pictures through vfm-clip" {
  "$here/media-seeds" seeds all
  find seeds -type f | wc -l >&3
  # Two that each FFmpeg has: of its codecs, and of its containers.
  ls seeds/codec-mpeg4.* seeds/in.mpegts
  in_batches 250 damaged_media
}

@test "the same, each in a process of its own" {
  # A sanitizer takes more addresses than such a process may have.
  PATH=$VFM_BUILD/tools:$PATH
  "$here/media-seeds" seeds all
  run vfm-clip --isolate -o probe seeds/h264.mp4
  [[ "$output" != *"was built without"* ]] || skip "built without libseccomp"
  [[ "$output" != *"--isolate does not work here"* ]] || skip "this system refuses: $output"
  [ "$status" -eq 0 ]
  in_batches 250 damaged_media --isolate
}

@test "very many damaged members, shards and manifests through the tools that read them" {
  "$here/media-seeds" seeds all
  in_batches 250 damaged_members
  whole_shards
  in_batches 250 damaged_shards
  in_batches 250 damaged_lists
}
