#!/usr/bin/env bats
# vfm-train of Wan by flow matching: resumed, on ranks, begun from a pipeline of diffusers, exported.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load tiny_runs
bats_require_minimum_version 1.5.0

# The recipe of tiny runs without the fields that Wan does not have.
write_wan() {
  local sizes="num_attention_heads: 2, attention_head_dim: 12, num_layers: 2, ffn_dim: 40, freq_dim: 32"
  write_recipe
  sed -i "s/^model:.*/model: {type: wan, $sizes}/" tiny.yaml
}

@test "a run of Wan resumes to the same bytes, and its export begins the next" {
  write_wan
  "$BATS_TEST_DIRNAME/../make-latents" latents 24
  train whole schedule.shape=constant train.steps=30 >/dev/null
  train parts schedule.shape=constant train.steps=10 >/dev/null
  train parts schedule.shape=constant train.steps=30 >/dev/null
  diff <(run_hash whole) <(run_hash parts)
  jq -e '.sampling == {process: "flow"}' whole/checkpoints/step-00000030/train.json
  vfm-train export whole -o alone --parts none >/dev/null
  jq -e '._class_name == "WanTransformer3DModel" and .text_padding == 0' alone/config.json
  train again --init alone train.steps=1 >/dev/null
  train adapted --init alone train.steps=1 lora.rank=2 >/dev/null
  vfm-train recipe tiny.yaml >printed
  grep -q '^  ffn_dim: 40 ' printed
}

@test "a run from a Wan pipeline is sampled as that is, and has its texts of 512 tokens" {
  write_wan
  sed -i '/^model:/d' tiny.yaml
  sed 's/^CHANNELS, WIDTH = 4, 8/CHANNELS, WIDTH = 4, 16/' "$BATS_TEST_DIRNAME/../make-latents" >make-wider
  python3 make-wider latents 24
  cp -r "$VFM_ROOT/tests/golden/wan_pipeline/t2v" wan
  cp -r "$VFM_ROOT/tests/golden/t5/umt5" wan/text_encoder
  cp -r "$VFM_ROOT/tests/golden/t5/v1_0/tokenizer" wan/tokenizer
  for more in "" lora.rank=2; do
    train run --force --init wan train.steps=1 $more >/dev/null
    jq -e '.sampling.sampler == "unipc" and .sampling.shift == 8 and .sampling.process == "flow"
      and .text_padding == 512 and .recipe.diffusion.shift == 3' run/checkpoints/step-00000001/train.json
  done
  # With the shift of its scheduler it is sampled with both shifts of its pipeline (--as).
  jq -e '.sampling.diffusers == {steps: 50, guidance: 4, shift: 3}' run/checkpoints/step-00000001/train.json
  for shift in sampling diffusion; do
    train run --force --init wan train.steps=1 "$shift.shift=6" >/dev/null
    jq -e '.sampling.shift == 6 and (.sampling | has("diffusers") | not)' run/checkpoints/step-00000001/train.json
    # It resumes with the shift that it was trained with, whatever it is sampled with.
    train run --init wan train.steps=2 "$shift.shift=6" >/dev/null
    jq -e --arg shift "$shift" '.sampling.shift == 6 and .recipe.diffusion.shift
      == if $shift == "sampling" then 3 else 6 end' run/checkpoints/step-00000002/train.json
  done
}

@test "given frames that no channel marks are refused before any work" {
  write_wan
  "$BATS_TEST_DIRNAME/../make-latents" latents 4
  refused "training with given frames works for networks that mark them" \
    train none 'diffusion.condition_frames=[0,1]'
  refused "choose a model with as many channels in as out" train none model.in_channels=12 model.out_channels=4
  [ ! -e none ]
}

# bats test_tags=night
@test "check proves layouts of a Wan, and hybrid is refused" {
  needs_mpi
  cat >tiny.yaml <<'YAML'
model: {type: wan, num_attention_heads: 2, attention_head_dim: 12, num_layers: 2, ffn_dim: 40, freq_dim: 32,
  in_channels: 2, text_embed_dim: 6}
diffusion: {shift: 3}
data: {tokens: 40, packs: 2, window: 8}
YAML
  while read -r layout; do
    run --separate-stderr timeout 60 mpirun -np 2 vfm-train check tiny.yaml -j1 --synthetic 2x6x6,5x2x2 $layout
    echo "$layout: $stderr"
    [ "$status" -eq 0 ]
    jq -e .passed <<<"$output"
  done < <(by_time <<'END'
parallel.tp=2
parallel.cp=2
night parallel.cp=2 parallel.cp_kind=ring
parallel.pp=2 model.recompute=block_but_attention
parallel.shard=full model.recompute=block
END
  )
  refused "a wan has no attention in frames and pixels" vfm-train cost tiny.yaml --ranks 2 --synthetic 2x6x6 \
    parallel.cp=2 parallel.hybrid=true
}
