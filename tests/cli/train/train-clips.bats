#!/usr/bin/env bats
# vfm-train on the clips of a dataset, which it encodes itself: the same as on latents of vfm-pack, resumed, shared.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

# Once: drawn clips with captions, once with embeddings of them and once without, and their latents.
setup_file() {
  draw_dataset 16
  find raw -name '*.mp4' | sort | vfm-clip --min-length 1s -o bare | vfm-caption |
    vfm-shard --keep-duplicates -o spoken >spoken.jsonl
  vfm-pack --size 32 --frames 9 --device cpu -j2 -o latents dataset >packed.jsonl
  tiny_recipe <<'YAML'
data: {tokens: 24, packs: 3, window: 8, size: 32, frames: 9}
optimizer: {lr: 0.003}
schedule: {warmup: 1}
validation: {every: 4, samples: 3}
train: {steps: 8, checkpoint_every: 4, log_every: 1}
YAML
}
setup() {
  setup_tools
  ln -s "$BATS_FILE_TMPDIR"/{dataset,spoken,latents,tiny.yaml} .
}

BARE=(vfm-train tiny.yaml -j1 --device cpu)
TRAIN=("${BARE[@]}" --data dataset --tokenizer builtin:wavelet)
# near RUN RUN: the first loss of both, to the rounding of halves.
near() {
  python3 - "$1" "$2" <<'PY'
import json, sys
a, b = (json.loads(open(run + "/metrics.jsonl").readline())["loss"] for run in sys.argv[1:])
assert abs(a - b) <= 1e-3 * abs(a) and a != 0, (a, b)
PY
}

@test "clips that are encoded while training give the loss of latents that vfm-pack made" {
  vfm-train tiny.yaml -j1 --data latents -o packed train.steps=1 >out 2>err
  grep -q "these keys are for clips that are encoded while training (--tokenizer) and change nothing here: data.frames, data.size" err
  "${TRAIN[@]}" --latent-scale latents/latents.json -o encoded train.steps=1 data.crop=centre >out 2>err
  cat err
  [ ! -s err ]
  near packed encoded
  if vfm-train --version | grep -qi 'mpi: *yes'; then # said once, not by each rank
    mpirun -np 2 vfm-train tiny.yaml -j1 --data latents -o two train.steps=1 </dev/null >out 2>err
    [ "$(grep -c "change nothing here" err)" -eq 1 ]
  fi
  # Measured, it is nearly the same scale; and crops at random are other pixels.
  "${BARE[@]}" --data dataset --tokenizer latents/latents.json -o named train.steps=1 data.crop=centre >out
  cmp named/metrics.jsonl encoded/metrics.jsonl
  "${TRAIN[@]}" -o measured train.steps=1 data.crop=centre >out
  near packed measured
  "${TRAIN[@]}" -o random train.steps=1 >out
  run ! cmp random/metrics.jsonl measured/metrics.jsonl
}

# bats test_tags=night
@test "a run on clips goes on to the same bytes, without measuring again" {
  "${TRAIN[@]}" -v -o whole >out 2>err
  grep -q "mean and deviation of latents are measured of" err
  "${TRAIN[@]}" -o parts train.steps=4 >out
  "${TRAIN[@]}" -v -o parts >out 2>err
  grep -q "goes on after step" err
  run ! grep -q measured err
  cmp whole/metrics.jsonl parts/metrics.jsonl
  [ "$(grep -c val_loss whole/metrics.jsonl)" -eq 2 ]
  cmp whole/checkpoints/step-00000008/train.json parts/checkpoints/step-00000008/train.json
  cmp whole/checkpoints/step-00000008/COMPLETE parts/checkpoints/step-00000008/COMPLETE
  # Other crops, captions or data are another run.
  run --separate-stderr "${TRAIN[@]}" -o parts data.flip=0.5
  [ "$status" -eq 2 ]
  [[ $stderr == *"data.flip: 0.0 -> 0.5"* ]]
  run --separate-stderr "${BARE[@]}" --tokenizer builtin:wavelet --data spoken --text builtin:hash -o parts
  [ "$status" -eq 2 ]
  [[ $stderr == *"was begun with other data"* ]]
}

# bats test_tags=night
@test "ranks that share samples encode each clip once, and any number of them has one loss" {
  needs_mpi
  "${TRAIN[@]}" -o one train.steps=3 validation.every=0 >out
  for layout in parallel.tp=2 parallel.cp=1; do
    mpirun -np 2 "${TRAIN[@]}" -o "two-$layout" train.steps=3 validation.every=0 "$layout" </dev/null >out
    python3 - one "two-$layout" <<'PY'
import json, sys
one, two = ([json.loads(line) for line in open(run + "/metrics.jsonl")] for run in sys.argv[1:])
assert len(one) == len(two) == 3
for a, b in zip(one, two):
    assert abs(a["loss"] - b["loss"]) <= 2e-5 * abs(a["loss"]), (a, b)
    assert a["read_bytes"] == b["read_bytes"] > 0, (a, b)
PY
  done
}

# bats test_tags=night
@test "captions that have no embedding are encoded to what vfm-embed would have written" {
  "${TRAIN[@]}" -o embedded train.steps=2 >out
  "${BARE[@]}" --tokenizer builtin:wavelet --data spoken --text builtin:hash -o spoken-run train.steps=2 >out
  cut -d, -f1-3 embedded/metrics.jsonl >a
  cut -d, -f1-3 spoken-run/metrics.jsonl >b
  cmp a b
  grep -q '"name": *"builtin:hash"' spoken-run/checkpoints/step-00000002/train.json
  "${BARE[@]}" --tokenizer builtin:wavelet --data spoken -o silent train.steps=2 >out
  cut -d, -f1-3 silent/metrics.jsonl >b
  run ! cmp a b
}

# bats test_tags=night
@test "an autoregressive model trains on codes of clips" {
  cat >codes.yaml <<'YAML'
model: {type: autoregressive, num_attention_heads: 2, attention_head_dim: 16, num_key_value_heads: 1, num_layers: 1}
data: {tokens: 400, size: 32, frames: 5}
train: {steps: 2}
validation: {every: 2, samples: 2}
YAML
  vfm-train codes.yaml -j1 --device cpu --data dataset --tokenizer builtin:fsq -o run >out
  [ "$(records out | wc -l)" -eq 1 ]
}

# bats test_tags=night
@test "a clip with fewer frames than the index says is left out and recorded, by all that share it" {
  cp -rL dataset short
  long=(data.frames=33 'model.max_size=[8, 8, 8]' data.tokens=80 validation.every=0 data.windows=1)
  python3 - <<'PY'
import json, sqlite3
db = sqlite3.connect("short/.nv-meta/index.sqlite")
key, text = db.execute("SELECT entry_key, metadata_json FROM media_metadata WHERE entry_key IN"
                       " (SELECT sample_key || '.mp4' FROM samples WHERE tar_file_id = 0) LIMIT 1").fetchone()
facts = json.loads(text)
facts["video_num_frames"] += 100
db.execute("UPDATE media_metadata SET metadata_json = ? WHERE entry_key = ?", (json.dumps(facts), key))
db.commit()
open("key", "w").write(key.removesuffix(".mp4"))
PY
  run --separate-stderr "${BARE[@]}" --tokenizer builtin:wavelet --data short -o run "${long[@]}"
  echo "$stderr"
  [ "$status" -eq 1 ]
  grep -q "\"input\":\"$(cat key)\",\"error\":\"sample '$(cat key)' of '.*': '$(cat key).mp4' has [0-9]* frames, and by the dataset's index 1[0-9]*\"" run/errors.jsonl
  [ "$(wc -l <run/errors.jsonl)" -eq 1 ]
  has_mpi || return 0
  run --separate-stderr mpirun -np 2 "${BARE[@]}" --tokenizer builtin:wavelet --data short -o two "${long[@]}" \
    parallel.tp=2 </dev/null
  [ "$status" -eq 1 ]
  cmp run/errors.jsonl two/errors.jsonl
}

@test "a dry run counts what the encoders cost" {
  cost_of "${TRAIN[@]}" >cost.json 2>words
  python3 - <<'PY'
import json
cost = json.load(open("cost.json"))
(tokenizer,) = cost["encoders"]
assert tokenizer["part"] == "tokenizer" and tokenizer["name"] == "builtin:wavelet", cost
memory = cost["memory_bytes"]
parts = ("weights", "gradients", "moments", "average", "activations", "host", "encoders")
assert memory["encoders"] == tokenizer["weight_bytes"] + tokenizer["activation_bytes"] > 0, memory
assert abs(memory["total"] - sum(memory[part] for part in parts)) < 16, memory
PY
  grep -q "encoders of clips" words
  cp -r "$VFM_ROOT"/tests/golden/t5/v1_1 t5
  vfm-train cost tiny.yaml --data spoken --tokenizer builtin:wavelet --text t5 --gpu h100 -q >cost.json
  python3 - <<'PY'
import json
cost = json.load(open("cost.json"))
tokenizer, text = cost["encoders"]
assert text["part"] == "text encoder" and text["name"] == "t5" and text["flops_per_step"] > 0, text
assert "text encoder" in {line["name"] for line in cost["predicted"]["lines"]}
PY
}

# bats test_tags=night
@test "a run on clips goes on in a next stage, in its own scale and at its place" {
  settings=(schedule.warmup=0 validation.every=0 train.checkpoint_every=2)
  "${TRAIN[@]}" "${settings[@]}" -o whole train.steps=4 >out
  "${TRAIN[@]}" "${settings[@]}" -o first train.steps=2 >out
  clips=(-j1 --device cpu --data dataset --tokenizer builtin:wavelet)
  vfm-train --continue first "${clips[@]}" train.steps=2 -o second >out
  of() { jq -c "$2" "$1/checkpoints/step-0000000$3/train.json"; }
  [ "$(of second .state 4)" = "$(of whole .state 4)" ]
  [ "$(of second .latent_scale 4)" = "$(of first .latent_scale 2)" ]
  cmp {whole,second}/checkpoints/step-00000004/model/diffusion_pytorch_model.safetensors
  # In another scale the model knows nothing.
  of first .latent_scale 2 >same.json
  jq '.mean[0] += 1' same.json >other.json
  for begin in --continue --init; do
    run --separate-stderr "${TRAIN[@]}" $begin first -o third --latent-scale other.json
    echo "$stderr"
    [ "$status" -eq 2 ] && [ ! -e third ]
    [[ $stderr == *"has another mean and deviation of latents than 'other.json'"* ]]
  done
  vfm-train --continue first "${clips[@]}" train.steps=1 -o third --latent-scale same.json >out
}

# bats test_tags=night
@test "a tokenizer has a next stage; a dry run needs no GPU to know that of a run that was begun" {
  cosmos_folder
  vfm-train --continue cosmos -j1 --device cpu --data dataset train.steps=1 -o further >out
  [ "$(jq -r '"\(.step) \(.final)"' <(records out))" = "2 true" ]
  jq -e '.stages | length == 1' further/checkpoints/step-00000002/train.json
  run=(vfm-train tiny.yaml -j1 --data dataset --tokenizer cosmos data.size=32 data.frames=9 'model.max_size=[9, 32, 32]'
    data.tokens=2304 validation.every=0 train.steps=1 -o run)
  "${run[@]}" --device cpu >out
  cost_of "${run[@]}" --gpu h100 -q >cost.json
  jq -e '.encoders[0].part == "tokenizer"' cost.json
  # Another tokenizer in its place is seen.
  rm -r cosmos && mv further cosmos
  run --separate-stderr cost_of "${run[@]}" --gpu h100
  echo "$stderr"
  [ "$status" -eq 2 ]
  [[ $stderr == *"was begun with other data"* ]]
}

# bats test_tags=night
@test "what does not go together is refused before any work" {
  refused() {
    run --separate-stderr vfm-train tiny.yaml -j1 --device cpu -o run "${@:2}"
    echo "$stderr"
    [ "$status" -eq 2 ] && [ ! -e run ]
    [[ $stderr == *"$1"* ]]
  }
  refused "'dataset' is a dataset of clips, not of latents: --tokenizer encodes them while training" --data dataset
  refused "--text is for clips that are encoded while training" --data latents --text builtin:hash
  refused "--latent-scale is for clips" --data latents --latent-scale latents/latents.json
  refused "--tokenizer encodes the clips of --data" --synthetic 1x8x8 --tokenizer builtin:wavelet
  refused "--tokenizer encodes the clips of one folder, and 2 are given" --data dataset --data spoken \
    --tokenizer builtin:wavelet
  refused "the tokenizer is discrete" --data dataset --tokenizer builtin:fsq
  refused "'latents' is not a finished dataset of vfm-shard" --data latents --tokenizer builtin:wavelet
  refused "no such" --data dataset --tokenizer nowhere
  refused "model.max_size" --data dataset --tokenizer builtin:wavelet data.size=256
  refused "are of 24 channels, the tokenizer's latents have" --data dataset --latent-scale latents/latents.json \
    --tokenizer "$(cosmos_folder)"
}

# cosmos_folder: a tokenizer of a folder, with the weights of chance.
cosmos_folder() {
  vfm-train "$VFM_ROOT/examples/recipes/tokenizer-tiny.yaml" -j1 --device cpu --data dataset -o cosmos \
    train.steps=1 validation.every=0 data.size=16 data.frames=9 >cosmos.out 2>cosmos.err
  echo cosmos
}
