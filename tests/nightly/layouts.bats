#!/usr/bin/env bats
# A run on a layout of ranks that is killed at random moments ends with the bytes of one that was not.
# SPDX-License-Identifier: Apache-2.0

load ../cli/helpers
bats_require_minimum_version 1.5.0

setup() {
  setup_tools
  vfm-train --version | grep -qi 'mpi: *yes' || skip "built without MPI"
  command -v mpirun >/dev/null || skip "no mpirun"
  "$BATS_TEST_DIRNAME/../cli/make-latents" latents 24
  cat >tiny.yaml <<'YAML'
model: {num_attention_heads: 4, attention_head_dim: 12, num_layers: 2, adaln_lora_dim: 4, max_size: [4, 8, 8]}
data: {tokens: 16, packs: 12, window: 8}
schedule: {warmup: 5}
validation: {every: 0}
train: {steps: 60, checkpoint_every: 4, log_every: 1, step_limit: 20}
YAML
}

# killed RANKS KEYS...: kills one rank of many at random until the run has ended, and compares.
killed() {
  local ranks=$1 kills=0
  shift
  mpirun -np "$ranks" vfm-train tiny.yaml -j1 --data latents --out whole "$@" >/dev/null
  while ((kills < 50)); do
    mpirun -np "$ranks" vfm-train tiny.yaml -j1 --data latents --out run "$@" >/dev/null 2>&1 3>&- &
    launcher=$!
    sleep "$(awk -v r="$RANDOM" 'BEGIN { printf "%.3f", 0.5 + 3 * r / 32768 }')"
    mapfile -t pids < <(pgrep -P "$launcher" vfm-train)
    if ((${#pids[@]} > 0)); then kill -KILL "${pids[RANDOM % ${#pids[@]}]}" 2>/dev/null || true; fi
    wait "$launcher" && break
    kills=$((kills + 1))
  done
  echo "$kills kills"
  mpirun -np "$ranks" vfm-train tiny.yaml -j1 --data latents --out run "$@" >/dev/null
  diff -r whole/checkpoints run/checkpoints
  diff whole/metrics.jsonl run/metrics.jsonl
}

@test "kills of a rank: tp=2 cp=2, and two of each" { killed 8 parallel.tp=2 parallel.cp=2; }
@test "kills of a rank: cp=4, tokens for heads" { killed 4 parallel.cp=4 parallel.cp_kind=all_to_all; }
@test "kills of a rank: tp=2, two of each, in bf16" { killed 4 parallel.tp=2 model.compute=bf16; }
@test "kills of a rank: two stages whose ranks share their weights" { killed 4 parallel.pp=2 parallel.shard=full; }
