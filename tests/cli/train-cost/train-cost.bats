#!/usr/bin/env bats
# vfm-train cost: what a training takes, before it runs.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load ../train/tiny_runs
bats_require_minimum_version 1.5.0

@test "cost reports costs and writes nothing" {
  prepare
  vfm-train cost tiny.yaml --data latents >out 2>err
  [ ! -e run ]
  for word in 'device .*the CPU' parameters 'tokens per step' 'FLOPs per step' 'memory per rank' activations; do grep -q "$word" err; done
  jq -e '.kind == "cost" and .device == "cpu" and .tokens_per_step > 0 and .flops_per_step > 0
    and (.memory_bytes | .total == .weights + .gradients + .moments + .average + .activations + .host)' out
  # The work by kernel adds up to that by kind.
  jq -e '.kernels as $kernels | .work_per_step | to_entries | map(.key as $kind | .value.bytes
    == ($kernels | map(select(.kind == $kind).bytes) | add)) | all and length == 4' out
  grep -Eq '^  products +[0-9.]+ [kMGT]?FLOPs, .* of memory read and written' err
  grep -Eq '^FLOPs of the run +[0-9.]+ [kMGTPE]?FLOPs$' err
  grep -q '^  optimizer  *[0-9.]* [KMG]iB of memory read and written' err
  # What the program itself takes, and what is usable, change from moment to moment.
  vfm-train cost tiny.yaml --data latents -q >quiet 2>&1
  lasting() { jq -S 'del(.memory_bytes | .host, .total, .usable, .construction, .load, .save)' "$1"; }
  diff <(lasting quiet) <(lasting out)
  # Of ranks that are not there, and a layout of theirs.
  vfm-train cost tiny.yaml --data latents -q --ranks 4 parallel.tp=2 data.packs=2 >four
  jq -e '.ranks == 4 and .layout == {"tp": 2, "cp": 1, "dp": 2} and (.sent_bytes_per_step.tp > 0)
    and (.memory_bytes | .construction <= .total and .load > 0 and .save > 0)' four
  jq -se '.[0].memory_bytes.weights < .[1].memory_bytes.weights and .[0].checkpoint_bytes == .[1].checkpoint_bytes' four out
  # Four files, for one rank or four.
  jq -se '.[0].memory_bytes.snapshot * 4 == .[1].memory_bytes.snapshot and .[1].memory_bytes.snapshot == .[1].checkpoint_bytes' four out
  grep -Eq '^snapshot per rank +[0-9.]+ [KM]iB of the host' err
  train run train.steps=1 >/dev/null
  bytes=$(stat -c %s run/checkpoints/step-00000001/model/diffusion_pytorch_model.safetensors)
  parameters=$(jq .parameters out)
  [ "$((bytes / 4))" -ge "$parameters" ]
  [ "$((bytes / 4 - parameters))" -lt 4000 ]
  run vfm-train cost tiny.yaml
  [ "$status" -eq 2 ]
  [[ $output == *"'model.in_channels' comes from the data"* ]]
  vfm-train cost tiny.yaml model.in_channels=16 model.text_embed_dim=1024 | jq -e '.parameters > 0'
}

@test "cost --gpu predicts a step on a GPU that is not there" {
  seven=("$VFM_ROOT/examples/recipes/7b.yaml" --synthetic 8x64x64)
  vfm-train cost "${seven[@]}" --gpu h200 >out 2>words
  jq -e '.device == "NVIDIA H200" and .recompute == "elementwise" and (.predicted
    | .gpu == "H200" and .fits and .mfu > 0.5 and .mfu < 0.7 and (.seconds - (.lines | map(.seconds) | add) | fabs) < 1e-9
    and ([.lines[].name] | index("products") == 0 and index("attention, backward") and index("AdamW") and .[-1] == "gaps"))' out
  for word in '^predicted step  *[0-9.]* s$' '^  H200 .* % MFU; not measured$' '^  norm of gradients .* ms, ' \
    '^  memory  *fits an H200: [0-9.]* of 140.4 GiB'; do
    grep -q "$word" words || { echo "no $word"; cat words; return 1; }
  done
  # Long times are in seconds, without an exponent.
  vfm-train cost "${seven[@]}" --gpu l40s data.packs=64 2>words >out
  grep -qE '^  products +[0-9]+\.[0-9]{2} s, ' words
  run ! grep -E '[0-9]e\+' words
  vfm-train cost "${seven[@]}" --gpu h100 >out 2>words
  jq -e '.predicted.fits == false' out
  grep -q '^  memory  *does not fit an H100: [0-9.]* of 79.6 GiB' words
  vfm-train cost "$VFM_ROOT/examples/recipes/tokenizer-tiny.yaml" --synthetic 9x32x32 --gpu b200 -q |
    jq -e '[.predicted.lines[].name] | index("convolutions") and index("copies to the GPU")'
  refused() {  # MESSAGE ARGUMENT...
    run vfm-train cost "${seven[@]}" "${@:2}"
    [ "$status" -eq 2 ]
    [[ $output == *"$1"* ]] || { echo "$output"; return 1; }
  }
  refused "unknown GPU 'h300'; choose one of a100, h100, h200, b200, gb200, l40s, or a file (.json)" --gpu h300
  refused '--gpu excludes --device' --gpu h200 --device cpu
  refused "unknown GPU ''" --gpu ''
  [ ! -e run ]
}

# bats test_tags=night
@test "cost refuses what a run refuses, with the same words" {
  prepare
  train begun train.steps=1 >/dev/null
  mkdir foreign
  echo mine >foreign/metrics.jsonl
  touch file
  refused() {  # MESSAGE ARGUMENT...
    run vfm-train tiny.yaml -j1 --device cpu --data latents "${@:2}"
    [ "$status" -eq 2 ]
    [[ "$output" == *"$1"* ]] || { echo "$output"; false; }
    only_records  # a run has begun its stream when it finds this, its cost has none
    words=$output
    run vfm-train cost tiny.yaml -j1 --device cpu --data latents "${@:2}"
    [ "$status" -eq 2 ]
    [ "${output%%$'\n'Try *}" = "${words%%$'\n'Try *}" ]
  }
  refused "--attention cudnn is for a GPU" -o run --attention cudnn
  refused "'file' is a file, not a folder" -o file
  refused "'foreign/metrics.jsonl' is not from vfm-train" -o foreign
  refused "was begun with another recipe: train.seed: 0 -> 1" -o begun train.seed=1
  for mode in -q cost; do
    run mpirun -np 2 vfm-train $mode tiny.yaml parallel.tp=3 --device cpu --data latents -o run </dev/null
    [ "$status" -eq 2 ]
    [[ "$output" == *"tp=3 cp=1 pp=1 needs a multiple of 3 ranks, not 2"* ]]
  done
  [ ! -e run ]
}

@test "a recipe for a machine's memory: cost of the large ones" {
  recipes=$VFM_ROOT/examples/recipes
  run vfm-train cost "$recipes/7b.yaml" --synthetic 8x64x64
  [ "$status" -eq 0 ]
  [[ $output == *"7236192256 (7.24G)"* ]]
  run vfm-train cost "$recipes/28b.yaml" --synthetic 8x64x64
  [ "$status" -eq 0 ]
  [[ $output == *"(27G)"* ]]
}

# bats test_tags=night
@test "cost --init reads configuration and headers, no weights" {
  # The published 7B, its values a hole in a file.
  "$BATS_TEST_DIRNAME/../train/write-hollow-model" model
  echo 'model: {compute: bf16}' >r.yaml
  vfm-train cost r.yaml --init model >out 2>words
  grep -q '^begins from  *model$' words
  grep -q '^parameters  *7236192256 (7.24G)$' words
  jq -e '.parameters == 7236192256 and .init == "model"' out
  # One list of all that does not fit.
  "$BATS_TEST_DIRNAME/../train/write-hollow-model" model proj_out.weight= 'strange.weight=[3]' \
    'transformer_blocks.5.attn2.to_k.weight=[4096,4096]'
  run vfm-train cost r.yaml --init model
  [ "$status" -eq 2 ]
  [[ $output == *"1 missing: 'proj_out.weight'"* ]]
  [[ $output == *"1 unexpected: 'strange.weight'"* ]]
  [[ $output == *"'transformer_blocks.5.attn2.to_k.weight' is [4096, 4096], the model needs [4096, 1024]"* ]]
  "$BATS_TEST_DIRNAME/../train/write-hollow-model" model
  truncate -s -1 model/diffusion_pytorch_model.safetensors
  run vfm-train cost r.yaml --init model
  [ "$status" -eq 2 ]
  [[ $output == *"is truncated"* ]]
}

# bats test_tags=night
@test "cost reports the memory of tiny models too, of every type" {
  write_recipe
  local recipes=$VFM_ROOT/examples/recipes args took told
  sed '/adaln_lora_dim/d' "$recipes/tiny.yaml" >moviegen.yaml
  while read -r -a args; do
    rm -rf run
    vfm-train cost "${args[@]}" train.steps=3 --device cpu >cost.json 2>/dev/null
    took=$(most_memory vfm-train "${args[@]}" --device cpu -j1 train.steps=3 train.log_every=1 validation.every=0 \
      schedule.warmup=0 -o run)
    # Of tensors what their allocator hands out, which is the same on every machine; of all, what is resident.
    jq -se --argjson told "$(jq '.memory_bytes | .total - .host' cost.json)" \
      'map(.memory_peak) | max as $taken | $told / $taken | . > 0.8 and . < 1.25' run/timing.jsonl ||
      { echo "${args[*]}: $(jq -c .memory_bytes cost.json) told"; tail -n 1 run/timing.jsonl; false; }
    told=$(jq '.memory_bytes.total / 1024 | floor' cost.json)
    [ $((10 * told)) -ge $((8 * took)) ] && [ $((10 * told)) -le $((13 * took)) ] ||
      { echo "${args[*]}: told $told KiB, took $took"; false; }
  done < <(by_time <<END
$recipes/tiny.yaml --synthetic 4x16x16 model.recompute=none
night $recipes/tiny.yaml --synthetic 4x16x16 model.recompute=block model.compute=bf16
$recipes/tiny.yaml --synthetic 4x16x16 model.type=stdit
night $recipes/tiny.yaml --synthetic 2x8x8
night $recipes/tiny.yaml --synthetic 4x16x16 data.packs=4 data.micro_packs=1
moviegen.yaml --synthetic 4x16x16 model.type=moviegen
night $recipes/tiny.yaml --synthetic 4x16x16 model.attention_head_dim=64 model.num_layers=4 data.tokens=1024
$recipes/tokenizer-tiny.yaml --synthetic 9x32x32
night $recipes/tokenizer-tiny.yaml --synthetic 17x64x64 data.tokens=384 model.recompute=block
END
  )
}
