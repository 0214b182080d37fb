#!/usr/bin/env bats
# Autoregressive models: the published sizes, made-up codes, beginning from a model as NVIDIA publishes it,
# adapters, and several samples of one prompt.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

setup_file() {
  export OMP_NUM_THREADS=1
  draw_dataset 6
  vfm-pack --tokenizer builtin:fsq --size 32 --frames 9 --space-factor 8 -o codes <shards.jsonl >packed.jsonl
  # The same without captions, for models without text.
  find raw -name '*.mp4' | sort | vfm-clip --min-length 1s -o plain |
    vfm-pack --tokenizer builtin:fsq --size 32 --frames 9 --space-factor 8 -o mute >mute.jsonl
  cat >common.yaml <<'END'
data: {tokens: 128, packs: 2}
optimizer: {lr: 0.02}
schedule: {warmup: 1}
ema: {decay: 0.5}
validation: {every: 0}
train: {steps: 4, checkpoint_every: 2, log_every: 1}
END
  "$BATS_TEST_DIRNAME/write-published-decoder" published
  "$BATS_TEST_DIRNAME/write-published-decoder" published-text text
  own=(model.type=autoregressive model.num_attention_heads=2 model.num_key_value_heads=1
    model.attention_head_dim=12 model.num_layers=2 model.width=20 model.mlp_ratio=1.4)
  vfm-train common.yaml "${own[@]}" --data codes -o base >base.jsonl
  vfm-train common.yaml lora.rank=3 lora.alpha=6 --init base --data codes -o run >run.jsonl
}

setup() {
  setup_tools
  export OMP_NUM_THREADS=1
  shared=$BATS_FILE_TMPDIR
  TRAIN=(vfm-train "$shared/common.yaml" -j1 --data "$shared/codes")
}

# The codes of a latent file.
codes_of() {
  python3 - "$1" <<'PY'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
begin, end = next(v for k, v in header.items() if k != "__metadata__")["data_offsets"]
print(data[8 + size + begin:8 + size + end].hex())
PY
}

# Numbers of Cosmos-1.0's configurations: layers, width, and whether there is text.
# bats test_tags=night
@test "the recipes of the published sizes have as many parameters as the published configurations" {
  while read -r size layers width text head; do
    # Heads 32 x 128 of queries and 8 x 128 of keys, an MLP of 14,336, norms.
    attention=$((width * 4096 * 2 + 2 * 1024 * width + width + 256))
    mlp=$((3 * width * 14336 + width))
    cross=$((text * (width * 4096 * 2 + 2 * 1024 * 1024 + width + 256)))
    # A token for the start, where there is text: the other 63 rows of the published table are never read.
    expected=$((layers * (attention + mlp + cross) + 2 * 64000 * width + text * width + width))
    vfm-train cost "$VFM_ROOT/examples/recipes/ar-$size.yaml" --device cpu 2>words >cost.json
    echo "$size: $expected $(jq -c '[.model.parameters, .parameters]' cost.json)"
    [ "$(jq '.parameters' cost.json)" -eq "$expected" ]
    [[ $expected == "$head"* ]]
  done <<'END'
4b 16 4096 0 401
5b 16 4096 1 458
12b 40 5120 0 1156
13b 40 5120 1 1332
END
}

@test "--synthetic: made-up codes to measure with, of the recipe's vocabulary" {
  printf 'data: {tokens: 64}\nschedule: {warmup: 1}\nvalidation: {every: 2, samples: 2}\ntrain: {steps: 4, log_every: 1}\n' >small.yaml
  "${TRAIN[@]:0:1}" small.yaml model.type=autoregressive model.vocabulary=16 model.num_attention_heads=2 \
    model.num_key_value_heads=1 model.attention_head_dim=12 model.num_layers=1 model.text_embed_dim=8 \
    optimizer.lr=0.03 --device cpu --synthetic 3x2x4,1x4x4 -o run
  # Nearly as if all were alike probable, 2.8.
  jq -s -e 'map(.loss | values) | length == 4 and all(. > 2 and . < 6)' run/metrics.jsonl
  [ ! -e run/checkpoints ] || [ -z "$(ls run/checkpoints)" ]
  run vfm-train small.yaml model.type=autoregressive model.vocabulary=16 model.num_layers=1 model.start_token=false \
    model.read_positions=true --device cpu --synthetic 1x1x1 -o never
  [ "$status" -eq 2 ]
  [[ $output == *"is one code, and the first one is given: 'model.start_token' is false"* ]]
}

@test "--init of a published folder: the model is what it says, in .pt and .safetensors" {
  cost() { vfm-train cost "$shared/common.yaml" --device cpu --synthetic 3x2x3 -q --init "$@"; }
  cosmos=$VFM_ROOT/tests/golden/cosmos_ar
  [ "$(cost "$cosmos/base" | jq .parameters)" -eq "$(cost "$cosmos/base_te" | jq .parameters)" ]
  # 2 layers of width 20, 4 heads of 12, text of width 6, 16 codes and a start.
  attention=$((20 * 48 * 2 + 2 * 24 * 20 + 24)) cross=$((20 * 48 * 2 + 2 * 24 * 6 + 24))
  expected=$((2 * (attention + cross + 3 * 20 * 28 + 60) + 17 * 20 + 16 * 20 + 20))
  [ "$(cost "$cosmos/video2world" | jq .parameters)" -eq "$expected" ]
  vfm-train "$shared/common.yaml" --device cpu --synthetic 3x2x3 --init "$cosmos/base" -o run
  jq -s -e 'map(.loss) | length == 4 and last < first' run/metrics.jsonl
  cp -r "$cosmos/base" cut
  head -c 9000 "$cosmos/base/model.pt" >cut/model.pt
  run vfm-train "$shared/common.yaml" --device cpu --synthetic 3x2x3 --init cut -o never
  [ "$status" -eq 2 ]
  [[ $output == *"cut/model.pt"* ]]
  run vfm-train "$shared/common.yaml" model.width=24 --device cpu --synthetic 3x2x3 --init "$cosmos/base" -o never
  [ "$status" -eq 2 ]
  [[ $output == *"model.width: 20 -> 24; leave these out"* ]]
}

# bats test_tags=night
@test "a model from a published folder trains, whole and with adapters, and goes on with given frames" {
  "${TRAIN[@]:0:3}" --data "$shared/mute" --init "$shared/published" -o run >run.jsonl
  jq -e '.width == 20 and .start_token == false and .read_positions and (has("absolute_positions") | not)' \
    run/checkpoints/step-00000004/model/config.json
  # With updates too small to change a float the weights are those of the file, under our names.
  "${TRAIN[@]}" --init "$shared/published-text" optimizer.lr=1e-30 optimizer.weight_decay=0 schedule.warmup=0 \
    train.steps=1 -v -o still 2>words >/dev/null
  grep -q "texts are filled up to 512 tokens ('autoregressive.text_padding')" words
  python3 - still/checkpoints/step-00000001/model "$shared/published-text/model.safetensors" <<'PY'
import json, struct, sys
def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {k: data[8 + size:][slice(*v["data_offsets"])] for k, v in header.items()}
ours, theirs = tensors(sys.argv[1] + "/diffusion_pytorch_model.safetensors"), tensors(sys.argv[2])
assert len(ours) == len(theirs)
assert ours["embed_tokens.weight"] == theirs["model.tok_embeddings.weight"][:64001 * 20 * 4]
for a, b in (("lm_head", "output"), ("layers.1.self_attn.k_proj", "layers.1.attention.wk"),
             ("layers.0.cross_attn.q_norm", "layers.0.cross_attention.q_norm"),
             ("layers.1.cross_attn_layernorm", "layers.1.cross_attention_norm"),
             ("layers.0.mlp.up_proj", "layers.0.feed_forward.w3"),
             ("layers.1.post_attention_layernorm", "layers.1.ffn_norm")):
    assert ours[a + ".weight"] == theirs["model." + b + ".weight"], a
PY
  jq -e '.text_padding == 512' still/checkpoints/step-00000001/train.json
  "${TRAIN[@]}" --init "$shared/published-text" lora.rank=2 train.steps=2 -o adapted >adapted.jsonl
  vfm-generate --model adapted --device cpu --latents-only -o out 'a red circle' >clip.jsonl
  jq -e '.lora.mode == "merged"' <(records clip.jsonl)
  # Nothing stands before the first code of the other.
  for work in "-o never" cost; do
    # shellcheck disable=SC2086
    run vfm-generate $work --model run <<<'{"prompt":""}'
    [ "$status" -ne 0 ]
    [[ $output == *"the model only continues videos"* ]]
  done
  ffmpeg -v error -f lavfi -i testsrc=s=32x32:r=8:d=1 -frames:v 1 first.png
  vfm-generate --model run --device cpu --condition first.png --latents-only -o out '' >on.jsonl
  jq -e '.condition_frames == 1' <(records on.jsonl)
}

# bats test_tags=night
@test "to a model without text that of the data is left aside, and the run says so" {
  run --separate-stderr "${TRAIN[@]}" --init "$shared/published" train.steps=2 -o run
  echo "$stderr"
  [ "$status" -eq 0 ]
  [ "$(grep -c "has no text, so the text of '$shared/codes' is left aside" <<<"$stderr")" -eq 1 ]
  train=run/checkpoints/step-00000002/train.json
  jq -e '.text_encoder == null and .tokenizer.name == "builtin:fsq"' $train
  # They are the same data, so a run that was begun with their texts at hand goes on.
  [ "$(jq .data_fingerprint $train)" = "$(jq .data_fingerprint "$shared"/base/checkpoints/step-00000004/train.json)" ]
  run --separate-stderr cost_of "${TRAIN[@]}" --init "$shared/published"
  [[ $stderr == *"is left aside"* ]]
  run --separate-stderr cost_of "${TRAIN[@]}" --init "$shared/published-text"
  [[ $stderr != *"is left aside"* ]]
  run "${TRAIN[@]:0:3}" --init "$shared/published" --data clips --tokenizer builtin:fsq --text builtin:hash -o none
  [ "$status" -eq 2 ]
  [[ $output == *"the model to begin from has no text: leave it out"* ]]
}

# bats test_tags=night
@test "adapters of a decoder: these alone are kept, stopped the bytes are the same, on two ranks the losses" {
  checkpoint=$shared/run/checkpoints/step-00000004
  jq -e '.r == 3 and .target_modules == ["q_proj", "k_proj", "v_proj", "o_proj"]' "$checkpoint/lora/adapter_config.json"
  [ ! -e "$checkpoint/model/diffusion_pytorch_model.safetensors" ]
  hashes() { (cd "$1" && find checkpoints/step-00000004 -type f | LC_ALL=C sort | xargs sha256sum); }
  again() { "${TRAIN[@]}" lora.rank=3 lora.alpha=6 --init "$shared/base" -o parts "$@"; }
  again train.steps=2 >/dev/null
  again >/dev/null
  diff <(hashes parts) <(hashes "$shared/run")
  if command -v mpirun >/dev/null; then
    mpirun -np 2 "${TRAIN[@]}" lora.rank=3 lora.alpha=6 --init "$shared/base" -o two parallel.tp=1 </dev/null >/dev/null
    jq -n -e --slurpfile a two/metrics.jsonl --slurpfile b "$shared/run/metrics.jsonl" \
      '($a | length) == 4 and all(range(4); ($a[.].loss / $b[.].loss - 1 | fabs) < 1e-4)'
  fi
  run "${TRAIN[@]}" lora.rank=3 'lora.targets=[to_q]' --init "$shared/base" -o none
  [ "$status" -eq 2 ]
  [[ $output == *"no matrix of the model is called 'to_q'; there are down_proj, gate_proj, k_proj"* ]]
}

# bats test_tags=night
@test "adapters of a decoder generate by themselves, with --lora, separate, and merged by export" {
  cd "$shared"
  out=$BATS_TEST_TMPDIR
  # Few codes are likely so: among 64,000 that are about as likely, the last bit would decide.
  take() {
    vfm-generate --device cpu --compute f32 --temperature 0.1 --latents-only --seed 3 -o "$out/$1" "${@:2}" 'a red circle' >"$out/$1.jsonl"
  }
  take run --model run
  take lora --model base --lora run
  take apart --model base --lora run --no-merge
  take none --model base --lora run:0
  take base --model base
  vfm-train export run -o "$out/merged" >/dev/null 2>&1
  vfm-train common.yaml --init "$out/merged" optimizer.lr=1e-30 optimizer.weight_decay=0 schedule.warmup=0 train.steps=1 \
    --data codes -o "$out/still" >/dev/null
  take still --model "$out/still"
  cd "$out"
  for kind in run lora apart none base still; do codes_of $kind/*.latents.safetensors >$kind.codes; done
  cmp run.codes lora.codes
  cmp run.codes still.codes
  cmp none.codes base.codes
  run ! cmp -s run.codes base.codes
  # Nearly the same numbers: the same codes, as long as no two are about as likely. What follows another code differs.
  python3 - run.codes apart.codes <<'PY'
import sys
a, b = (bytes.fromhex(open(f).read().strip()) for f in sys.argv[1:])
assert len(a) == len(b) and sum(a[i:i + 4] == b[i:i + 4] for i in range(0, len(a), 4)) > len(a) // 8, (a, b)
PY
  vfm-generate cost --model "$shared/base" --lora "$shared/run" --no-merge -q --device cpu >apart.cost
  vfm-generate cost --model "$shared/base" -q --device cpu >plain.cost
  # Rank 3 on q, k, v and o of two layers of width 20, with heads 24 and keys 12 wide, and on those across text of 64.
  jq -s -e '.[0].network.parameters - .[1].network.parameters == 2 * 3 * (4 * (20 + 24) + 2 * (20 + 12) + 2 * (64 + 12)) and .[0].flops > .[1].flops' apart.cost plain.cost
}

@test "several samples: a prompt again is another clip, with the seeds that follow" {
  vfm-generate --model "$shared/base" --device cpu --latents-only --seed 5 -o out x x x >clips.jsonl
  [ "$(jq -s -c 'map(.seed)' <(records clips.jsonl))" = '[5,6,7]' ]
  [ "$(for f in out/*.latents.safetensors; do codes_of "$f"; done | sort -u | wc -l)" -eq 3 ]
  vfm-generate --model "$shared/base" --device cpu --latents-only --seed 6 -o one x >one.jsonl
  [ "$(jq -r .address <(records one.jsonl))" = "$(jq -s -r '.[1].address' <(records clips.jsonl))" ]
}
