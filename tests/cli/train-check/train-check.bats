#!/usr/bin/env bats
# vfm-train check: a step on several processes against one rank's.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

setup() {
  setup_tools
  needs_mpi
  cat >tiny.yaml <<'YAML'
model: {num_attention_heads: 2, attention_head_dim: 12, num_layers: 1, adaln_lora_dim: 4, max_size: [5, 8, 8], in_channels: 2, text_embed_dim: 6}
data: {tokens: 40, packs: 2, window: 8}
YAML
}

# check RANKS ARGUMENTS...: the check on made-up latents.
check() {
  local ranks=$1
  shift
  run --separate-stderr timeout 60 mpirun -np "$ranks" vfm-train check tiny.yaml -j1 --synthetic 2x6x6,5x2x2 "$@"
}

@test "check proves layouts of two and four processes, and writes nothing" {
  check 2 parallel.tp=2
  echo "$stderr"
  [ "$status" -eq 0 ]
  jq -e '.kind == "parallel_check" and .one_rank_bytes > 1e6 and .layout == "tp=2 cp=1 dp=1 pp=1" and .passed
         and (.values | length > 20 and all(.passed and .difference <= .limit)
              and any(.name == "loss" and .limit == 1e-5)
              and any(.name == "gradient of transformer_blocks.0.attn1.to_q.weight" and .limit == 1e-4))' <<<"$output"
  [[ $stderr == *"one rank"*"gradient of transformer_blocks.0.attn1.to_q.weight"*"0 of "*"rank 0 made the step alone, with the whole model: about "* ]]
  [ "$(ls -I 'separate-stderr-*')" = tiny.yaml ]
  at_night || return 0
  check 4 parallel.tp=2 parallel.cp=2 model.compute=bf16 -q
  echo "$stderr"
  [ "$status" -eq 0 ] && [ -z "$stderr" ]
  jq -e '.layout == "tp=2 cp=2 dp=1 pp=1" and .compute == "bf16" and .passed and all(.values[]; .limit >= 0.02)' <<<"$output"
}

# bats test_tags=night
@test "check proves layouts for every optimizer" {
  for more in optimizer.kind=muon optimizer.moments=8bit "optimizer.kind=muon optimizer.moments=bf16 model.compute=bf16"; do
    check 4 parallel.tp=2 parallel.shard=full $more
    echo "$stderr"
    [ "$status" -eq 0 ]
    jq -e '.layout == "tp=2 cp=1 dp=2 pp=1 shard=2" and .passed' <<<"$output"
  done
}

# bats test_tags=night
@test "check proves an ST-DiT whose ranks have frames, and cost says what they send" {
  local stdit=(model.type=stdit parallel.cp=2 parallel.hybrid=true)
  for more in parallel.cp_kind=ring "parallel.cp_kind=gather model.compute=bf16"; do
    check 2 "${stdit[@]}" $more
    echo "$stderr"
    [ "$status" -eq 0 ]
    jq -e '.layout == "tp=1 cp=2 dp=1 pp=1" and .passed' <<<"$output"
  done
  check 4 "${stdit[@]}" parallel.tp=2
  echo "$stderr"
  [ "$status" -eq 0 ]
  # Two frames of 8 tokens of width 24: all-to-alls alone, 12 parts of 8/2 tokens or 6, forward and back.
  sent() {
    vfm-train cost tiny.yaml --synthetic 2x4x8 --ranks 2 -q model.type=stdit parallel.cp=2 parallel.cp_kind=all_to_all \
      model.recompute=none data.packs=1 data.tokens=16 "$@" | jq .sent_bytes_per_step.cp
  }
  [ "$(sent)" -eq $((2 * 12 * 8 / 2 * 24 * 4)) ]
  [ "$(sent parallel.hybrid=true)" -eq $((2 * 6 * 8 / 2 * 24 * 4)) ]
}

# bats test_tags=night
@test "check refuses before any work what a layout cannot do, and options that say otherwise" {
  check 2 parallel.cp=2 model.type=stdit parallel.cp_kind=gather
  [ "$status" -eq 2 ]
  [[ $stderr == *"; on 2 ranks parallel.cp_kind=auto can be"* ]]
  check 2 parallel.cp=2 parallel.hybrid=true
  [ "$status" -eq 2 ]
  [[ $stderr == *"parallel.hybrid is for model.type=stdit"* ]]
  check 2 data.packs=1
  [ "$status" -eq 0 ]
  [[ $stderr == *"1 of 2 ranks have no pack in a step, and wait for the others: 'data.packs' is 1, should be 2"* ]]
  check 2 -o run
  [ "$status" -eq 2 ]
  check 2 --gpu h100
  [ "$status" -eq 2 ]
  [ "$(ls -I 'separate-stderr-*')" = tiny.yaml ]
}

# bats test_tags=night
@test "check refuses a model that rank 0 alone has no memory for, where its ranks together have" {
  # lasting LAYERS: what weights, gradients and moments of so many take, and what is usable.
  lasting() {
    vfm-train cost tiny.yaml "${wide[@]}" model.num_layers="$1" -q |
      jq -r '.memory_bytes | "\(.weights + .gradients + .moments) \(.usable)"'
  }
  wide=(model.num_attention_heads=16 model.attention_head_dim=128 ema.mode=off)
  read -r one usable <<<"$(lasting 1)"
  read -r two usable <<<"$(lasting 2)"
  check 2 parallel.tp=2 "${wide[@]}" model.num_layers=$((usable * 7 / 10 / (two - one)))
  echo "$stderr"
  [ "$status" -eq 2 ]
  [[ $stderr == *"rank 0 first makes the step alone, with the whole model, which needs about "*"check the layout with fewer layers"* ]]
}

@test "check ends with status 1 where a difference is beyond its limit" {
  # In bf16 what gradients there are is rounded, and an overflow is the same on one rank: nothing that a user can set
  # makes a layout differ. A loss that is not finite proves nothing.
  check 2 parallel.tp=2 diffusion.loss_scale=1e38
  echo "$stderr"
  [ "$status" -eq 1 ]
  jq -e '.passed == false and (.values[0].fault != null)' <<<"$output"
}
