#!/usr/bin/env bats
# vfm-train calibrate: this machine's rates, and steps predicted with them. How good they are, tests/bench/calibrate.sh
# measures.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

setup() {
  setup_tools
  cat >small.yaml <<'YAML'
model: {num_attention_heads: 2, attention_head_dim: 32, num_layers: 2, adaln_lora_dim: 16}
data: {tokens: 512, packs: 8, micro_packs: 1}
YAML
}

# predict ARGUMENTS...: a dry run of the small recipe with here.json.
predict() { vfm-train cost small.yaml --synthetic 4x16x16 --gpu ./here.json "$@" 2>words; }

@test "a file of this machine, with which steps are predicted" {
  vfm-train calibrate here.json --time 1s --device cpu -j1 >out 2>words
  [ ! -s out ]
  grep -Eq '^  element-wise +[0-9.]+ [kMGTP]?B/s$' words
  grep -Eq '^  products, bf16 +[0-9.]+ [kMGTP]?FLOP/s$' words
  jq -e '.device == "cpu" and .memory > 0 and .peak > 0 and .peak_f32 > 0 and .products > 0 and .bandwidth > 0 and .gap > 0
    and (.kernels | length > 20 and all(.seconds >= 0 and .of_flop >= 0 and .of_byte >= 0))
    and ([.kernels[] | select(.name == "gemm") | .type] | sort == ["BF16", "F32"])
    and (.measured | .threads == 1 and .ranks == 1 and .steps >= 6 and .spread >= 0 and .disturbed >= 1 and (.processor | length > 0))' here.json
  predict >cost.json
  grep -q 'predicted step' words
  jq -e '.device != "cpu" and .predicted.seconds > 0 and .predicted.fits and (.predicted.verdict | test("other programs"))' cost.json
  # Twice the packs take longer, and bf16 is predicted too.
  predict data.packs=16 | jq -e --slurpfile one cost.json '.predicted.seconds > 1.5 * $one[0].predicted.seconds'
  predict model.compute=bf16 | jq -e '.predicted.seconds > 0'
  # Of two ranks, term by term.
  predict --ranks 2 | jq -e '.ranks == 2 and .predicted.seconds > 0 and ([.predicted.lines[].name] | contains(["products", "optimizer"]))'
  vfm-train plan small.yaml --gpus 2 --synthetic 4x16x16 --gpu ./here.json 2>words | jq -e '.best | length > 0 and all(.seconds > 0)'
}

# bats test_tags=night
@test "ranks measure together, and what they send each other" {
  mpirun -np 2 --bind-to none vfm-train calibrate here.json --time 1s --device cpu -j1 2>words
  grep -q 'a message' words
  jq -e '.measured.ranks == 2 and .inside.bandwidth > 0 and .inside.bandwidth < 1e12 and .inside.latency >= 0
    and ([.measured.links[].operation] | unique == ["all_gather", "all_reduce", "all_to_all", "exchange", "reduce_scatter"])' here.json
  predict --ranks 2 parallel.tp=2 | jq -e '[.predicted.lines[] | select(.name == "tp").seconds] | length == 1 and .[0] > 0'
}

@test "what does not go together is refused, and nothing is written" {
  refused() {
    run --separate-stderr vfm-train "${@:2}"
    echo "$stderr"
    [ "$status" -eq 2 ]
    [[ $stderr == *"$1"* ]]
  }
  refused "small.yaml" calibrate here.json small.yaml
  refused "FILE is required" calibrate
  [ -e /dev/nvidia0 ] || refused "there is no usable GPU" calibrate here.json --device cuda
  refused "give a recipe" cost
  [ ! -e here.json ]
  echo mine >here.json
  refused "--force replaces it" calibrate here.json
  [ "$(cat here.json)" = mine ]
  echo '{"device": "cpu", "kernels": [{"name": "gemm"}]}' >here.json
  refused "each of 'kernels' needs a name, and a type" cost small.yaml --gpu ./here.json
  echo '{"device": "tpu"}' >here.json
  refused "'device' is tpu" cost small.yaml --gpu ./here.json
  echo '{"device": "cpu"}' >here.json
  refused "excludes" cost small.yaml --gpu ./here.json --device cuda
}
