# shellcheck shell=bash
# Runs of a tiny model, for tests of vfm-train.
# SPDX-License-Identifier: Apache-2.0

# A model of some thousand parameters; 16 tokens a pack, 3 packs a step, 8 tokens a video.
write_recipe() {
  tiny_recipe <<'YAML'
data: {tokens: 16, packs: 3, window: 8}
optimizer: {lr: 0.003, weight_decay: 0.01}
schedule: {warmup: 5, shape: cosine, final: 0.1}
validation: {every: 10, samples: 3}
train: {steps: 40, checkpoint_every: 10, log_every: 5}
YAML
}

prepare() {
  write_recipe
  "$BATS_TEST_DIRNAME/../make-latents" latents "${1:-24}" "${@:2}"
}

# A command that goes to the background must be the program itself, not a function, or signals hit a shell.
TRAIN=(vfm-train tiny.yaml -j1 --data latents -o)
train() { "${TRAIN[@]}" "$@"; }
train_cost() { cost_of "${TRAIN[@]}" "$@"; }

# The bytes of a run that must not depend on interruptions: not the times, and TensorBoard's files.
run_hash() {
  (cd "$1" && find . -type f ! -name 'timing.jsonl' ! -name 'events.*' | LC_ALL=C sort |
    while read -r f; do sha256sum "$f"; done)
}
