#!/usr/bin/env bats
# vfm-generate of autoregressive models on several ranks: files, names and records of one rank.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

setup_file() {
  export OMP_NUM_THREADS=1
  draw_dataset 6
  vfm-pack --tokenizer builtin:fsq --size 32 --frames 9 --space-factor 8 -o codes <shards.jsonl >packed.jsonl
  cat >recipe.yaml <<'END'
model: {type: autoregressive, num_attention_heads: 4, num_key_value_heads: 2, attention_head_dim: 12, num_layers: 3}
data: {tokens: 128, packs: 2}
optimizer: {lr: 0.02}
schedule: {warmup: 1}
validation: {every: 0}
train: {steps: 3}
END
  vfm-train recipe.yaml --data codes -o run >run.jsonl
}

setup() {
  setup_tools
  needs_mpi vfm-generate
  export OMP_NUM_THREADS=1
  fast=(--model "$BATS_FILE_TMPDIR/run" --device cpu --encoder ffv1)
}

# prompts: drawn at random, the likeliest codes, and clips of other lengths; the third is impossible.
prompts() {
  printf '%s\n' 'a red circle' '{"prompt": "a blue square", "temperature": 0}' '{"prompt": "x", "embedding": "none.npy"}' \
    '{"prompt": "a green bar", "frames": 1, "label": "kept"}' '{"prompt": "a bar", "frames": 5, "top_p": 1}'
}

# shared RANKS PARALLEL [OPTION...]: ranks that share clips make files, names, records and errors of one rank.
shared() {
  prompts | vfm-generate "${fast[@]}" "${@:3}" -o one >one.jsonl || [ $? -eq 1 ]
  status=0
  prompts | mpirun -np "$1" vfm-generate "${fast[@]}" "${@:3}" --parallel "$2" -o many >many.jsonl 2>errors || status=$?
  cat errors
  [ "$status" -eq 1 ]
  [ "$(records one.jsonl | wc -l)" -eq 4 ]
  diff <(sed 's/"one/"many/g' one.jsonl | records) <(records many.jsonl)
  diff -r -x '*.json' -x errors.jsonl one many
  diff <(jq -c '[.input, .message]' one/errors.jsonl) <(jq -c '[.input, .message]' many/errors.jsonl)
  rm -r one many
}

@test "ranks that share heads and vocabulary, or layers, make the files of one rank" {
  shared 2 tp=2
  shared 2 pp=2
}

# bats test_tags=night
@test "codes of any layout are those of one rank, in bf16 too, and of clips dealt to groups of ranks" {
  shared 4 tp=2,pp=2 --compute bf16
  shared 4 tp=2 --latents-only
  shared 3 pp=3 --compute bf16
  shared 4 pp=2 -j1
}

# bats test_tags=night
@test "clips that are there, and their latents, are not written again by ranks" {
  prompts | sed /none.npy/d >lines
  head -n 1 lines | vfm-generate "${fast[@]}" -o many >first.jsonl
  sed -n 2p lines | vfm-generate "${fast[@]}" --latents-only -o many >second.jsonl
  mpirun -np 2 vfm-generate "${fast[@]}" --parallel pp=2 -v -o many <lines >many.jsonl 2>said
  vfm-generate "${fast[@]}" -o one <lines >one.jsonl
  diff <(sed 's/"one/"many/g' one.jsonl | records) <(records many.jsonl)
  vfm-generate "${fast[@]}" -o - <lines >one.y4m
  mpirun -np 2 vfm-generate "${fast[@]}" --parallel tp=2 -o - <lines >many.y4m
  cmp one.y4m many.y4m
}

@test "the cost of a rank is told: less memory with tp and pp, and what travels" {
  cost() { vfm-generate cost --model "$BATS_FILE_TMPDIR/run" -q --compute bf16 --gpu h100 "$@"; }
  cost >one.json
  cost --parallel tp=2 >tp.json
  cost --parallel pp=3 >pp.json
  jq -es '.[0].network as $one | .[1].network as $tp | .[2].network as $pp |
    $tp.flops < 0.51 * $one.flops and $tp.weight_bytes < 0.52 * $one.weight_bytes and
    $pp.flops < $one.flops and $pp.weight_bytes < 0.55 * $one.weight_bytes and
    .[1].ranks == 2 and .[2].parallel == "pp=3" and ([.[1].predicted.lines[].name] | index("tp") != null) and
    .[0].sampling.passes == .[0].tokens and .[0].predicted.pass_seconds * .[0].tokens < 1.001 * .[0].predicted.seconds' \
    one.json tp.json pp.json
  for wrong in 'cp=2 one code is computed at a time' 'cfg=2 codes are drawn without guidance' \
    'tp=2,shard all matrices would be gathered for each code' 'pp=4 the model has 3 layers' 'auto=2 give tp and pp' \
    'tp=4 2 heads of keys and values are not shared by 4 ranks'; do
    run cost --parallel "${wrong%% *}"
    echo "$output"
    [ "$status" -eq 2 ]
    [[ $output == *"${wrong#* }"* ]]
  done
}
