#!/usr/bin/env bats
# Adapters of low rank: vfm-train trains them on a model that stays as it is, vfm-generate uses them.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

# A base of two blocks, whose gates are open after a few steps, and a run of adapters on it.
setup_file() {
  export OMP_NUM_THREADS=1
  draw_dataset 6
  vfm-pack --size 32 --frames 9 -o latents <shards.jsonl >latents.jsonl
  cat >common.yaml <<'END'
data: {tokens: 64, packs: 2}
optimizer: {lr: 0.02}
schedule: {warmup: 1}
ema: {decay: 0.5}
validation: {every: 0}
train: {steps: 8, checkpoint_every: 4, log_every: 1}
END
  vfm-train common.yaml model.num_attention_heads=2 model.attention_head_dim=16 model.num_layers=2 \
    model.adaln_lora_dim=8 -j1 --data latents -o base >base.jsonl
  vfm-train common.yaml lora.rank=3 lora.alpha=6 -j1 --init base --data latents -o run >run.jsonl
}

setup() {
  setup_tools
  export OMP_NUM_THREADS=1
  shared=$BATS_FILE_TMPDIR
  TRAIN=(vfm-train "$shared/common.yaml" -j1 --data "$shared/latents")
  latents=(--steps 2 --latents-only)
}

# All that does not depend on interruptions.
run_hash() {
  (cd "$1" && find . -type f ! -name 'timing.jsonl' ! -name 'events.*' | LC_ALL=C sort |
    while read -r f; do sha256sum "$f"; done)
}

@test "a run of adapters keeps these alone, under diffusers' names, in every block" {
  checkpoint=$shared/run/checkpoints/step-00000008
  (cd "$checkpoint" && find . -type f | sort) >files
  diff files - <<'END'
./COMPLETE
./lora/adapter_config.json
./lora/adapter_model.safetensors
./lora/pytorch_lora_weights.safetensors
./model/config.json
./state/adam_m.safetensors
./state/adam_v.safetensors
./state/ema.safetensors
./train.json
END
  python3 - "$checkpoint" <<'PY'
import json, struct, sys
def header(path):
    data = open(f"{sys.argv[1]}/{path}.safetensors", "rb").read()
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
lora, ema = header("lora/pytorch_lora_weights"), header("state/ema")
settings = json.loads(lora.pop("__metadata__")["lora_adapter_metadata"])
assert settings == {"transformer.peft_type": "LORA", "transformer.r": 3, "transformer.lora_alpha": 6,
                    "transformer.target_modules": ["to_q", "to_k", "to_v", "to_out.0"]}, settings
expected = {f"transformer.transformer_blocks.{block}.{attention}.{part}.lora_{side}.weight"
            for block in (0, 1) for attention in ("attn1", "attn2")
            for part in ("to_q", "to_k", "to_v", "to_out.0") for side in "AB"}
assert set(lora) == expected, set(lora) ^ expected
assert {"transformer." + name for name in ema if name != "__metadata__"} == expected
assert lora["transformer.transformer_blocks.1.attn2.to_k.lora_A.weight"]["shape"] == [3, 64]
init = json.load(open(f"{sys.argv[1]}/train.json"))["init"]
assert init["path"].endswith("/base/checkpoints/step-00000008") and len(init["hash"]) == 32, init
losses = [json.loads(line)["loss"] for line in open(f"{sys.argv[1]}/../../metrics.jsonl")]
assert len(losses) == 8 and len(set(losses)) == 8
PY
}

@test "killed and run again it ends with the same bytes, and with two ranks like with one" {
  train() { "${TRAIN[@]}" lora.rank=3 lora.alpha=6 --init "$shared/base" -o "$@"; }
  kill_at_random 3 "${TRAIN[@]}" lora.rank=3 lora.alpha=6 --init "$shared/base" -o parts
  train parts >/dev/null
  diff <(run_hash parts) <(run_hash "$shared/run")
  mpirun -np 2 "${TRAIN[@]}" lora.rank=3 lora.alpha=6 --init "$shared/base" -o two >/dev/null
  paste -d' ' <(jq .loss two/metrics.jsonl) <(jq .loss parts/metrics.jsonl) |
    awk '{ d = $1 - $2; if (d * d > 1e-8) { print; exit 1 } }'
  # The base is read again: it may have moved, not changed.
  cp -r "$shared/base" moved
  run "${TRAIN[@]}" lora.rank=3 lora.alpha=6 --init gone -o parts train.steps=9
  [ "$status" -eq 2 ]
  [[ $output == *"no such model folder: 'gone'"* ]]
  "${TRAIN[@]}" lora.rank=3 lora.alpha=6 --init moved -o parts train.steps=9 >/dev/null
  "${TRAIN[@]}" --init moved -o other train.steps=1 >/dev/null
  run "${TRAIN[@]}" lora.rank=3 lora.alpha=6 --init other -o parts train.steps=10
  [ "$status" -eq 2 ]
  [[ $output == *"'other' is not the model whose adapters this run trains"* ]]
}

# bats test_tags=night
@test "a base that trains on stays the base of its adapters, as long as it keeps that checkpoint" {
  cp -r "$shared/base" .
  train() { "${TRAIN[@]}" lora.rank=3 --init base -o "$@"; }
  train whole >/dev/null
  train parts train.steps=4 >/dev/null
  "${TRAIN[@]}" model.num_attention_heads=2 model.attention_head_dim=16 model.num_layers=2 \
    model.adaln_lora_dim=8 -o base train.steps=12 >/dev/null
  train parts >/dev/null
  diff -r {whole,parts}/checkpoints/step-00000008
  vfm-generate --model parts --steps 1 -o out 'a red circle' >/dev/null
  rm -r base/checkpoints/step-00000008
  run train parts train.steps=9
  [ "$status" -eq 2 ]
  [[ $output == *"'base' is not the model whose adapters this run trains, '$PWD/base/checkpoints/step-00000008'"* ]]
}

# bats test_tags=night
@test "what is computed again changes no bit, in bf16 too" {
  for mode in none elementwise block; do
    "${TRAIN[@]}" lora.rank=2 'lora.targets=[attn1.to_v, ff.net.0.proj, ff.net.2, norm3.linear_2]' \
      model.compute=bf16 model.recompute=$mode --init "$shared/base" -o $mode train.steps=3 >/dev/null
  done
  cmp none/metrics.jsonl elementwise/metrics.jsonl
  cmp none/metrics.jsonl block/metrics.jsonl
}

@test "recipes that cannot be are refused before any work" {
  run "${TRAIN[@]}" lora.rank=3 -o none
  [ "$status" -eq 2 ]
  [[ $output == *"'lora.rank' is 3: adapters need a model to adapt, give --init DIR"* ]]
  run "${TRAIN[@]}" lora.rank=3 'lora.targets=[to_x]' --init "$shared/base" -o none
  [ "$status" -eq 2 ]
  [[ $output == *"no matrix of the model is called 'to_x'; there are "*"to_q"* ]]
  for alone in lora.alpha=6 'lora.targets=[to_q]'; do
    run "${TRAIN[@]}" "$alone" --init "$shared/base" -o none
    [ "$status" -eq 2 ]
    [[ $output == *"'${alone%%=*}' is set, but 'lora.rank' is not: adapters need a rank"* ]]
  done
  run "${TRAIN[@]}" lora.rank=3 lora.alpha=1e40 --init "$shared/base" -o none
  [ "$status" -eq 2 ]
  [[ $output == *"'lora.alpha' in argument 'lora.alpha=1e40' is '1e40', must be a number"* ]]
  run "${TRAIN[@]}" model.type=tokenizer lora.rank=3 -o none
  [ "$status" -eq 2 ]
  [[ $output == *"'lora.rank' in argument 'lora.rank=3' is not for a 'model.type' of tokenizer"* ]]
  [ ! -e none/checkpoints ]
}

@test "cost reports what is trained and what is frozen" {
  cost_of "${TRAIN[@]}" lora.rank=3 --init "$shared/base" >lora 2>words
  cost_of "${TRAIN[@]}" --init "$shared/base" >full 2>/dev/null
  cat lora words
  grep -q '^  trained  *3456 (3.46k), adapters of rank 3; the others are frozen' words
  # In each of two blocks six matrices [32, 32], and two [32, 64] for keys and values of the text.
  jq -e '.trained == 3456 and .lora_rank == 3 and .memory_bytes.gradients == 4 * 3456
    and .memory_bytes.moments == 8 * 3456 and .memory_bytes.average == 4 * 3456
    and .memory_bytes.weights == 4 * (.parameters + 3456)' lora
  # The work is that of the full training without the gradients of the weights.
  jq -s -e '.[0].flops_per_step / .[1].flops_per_step | . > 0.6 and . < 0.8' lora full
}

@test "vfm-generate cost counts the adapters: merged their file, separate their numbers and work too" {
  for model in "base" "base --lora $shared/run" "run" "base --lora $shared/run --no-merge" \
    "base --lora $shared/run --lora $shared/run:0.5 --no-merge"; do
    # shellcheck disable=SC2086
    vfm-generate cost --model "$shared"/$model -q --device cpu >>costs
  done
  jq -s 'map(.network)' costs
  jq -s -e '[.[].network.file_bytes - .[0].network.file_bytes] == [0, 13824, 13824, 13824, 27648]' costs
  jq -s -e '[.[].network.parameters - .[0].network.parameters] == [0, 0, 0, 3456, 6912]' costs
  jq -s -e '[.[].flops - .[0].flops] | .[1] == 0 and .[2] == 0 and .[3] > 0 and .[4] == 2 * .[3]' costs
}

@test "a run of adapters generates by itself, and its base with --lora the same; 0 is the base" {
  cd "$shared"
  out=$BATS_TEST_TMPDIR
  vfm-generate --model run "${latents[@]}" -o "$out/run" 'a red circle' >"$out/run.jsonl"
  vfm-generate --model base --lora run "${latents[@]}" -o "$out/lora" 'a red circle' >"$out/lora.jsonl"
  vfm-generate --model base --lora run:0 "${latents[@]}" -o "$out/none" 'a red circle' >/dev/null
  vfm-generate --model base --lora run:0.5 "${latents[@]}" -o "$out/half" 'a red circle' >"$out/half.jsonl"
  vfm-generate --model base "${latents[@]}" -o "$out/base" 'a red circle' >/dev/null
  vfm-generate --model base --lora run --no-merge "${latents[@]}" -o "$out/apart" 'a red circle' >"$out/apart.jsonl"
  # Several are summed.
  for mode in merged separate; do
    how=()
    [ $mode = merged ] || how=(--no-merge)
    vfm-generate --model base --lora run:1.5 --lora run:-0.5 "${how[@]}" "${latents[@]}" -o "$out/sum-$mode" \
      'a red circle' >"$out/sum-$mode.jsonl"
  done
  vfm-generate --model base --lora run:1.5 --lora run:-0.5 "${latents[@]}" -o "$out/again" <"$out/sum-merged.jsonl" \
    >"$out/again.jsonl"
  run vfm-generate --model base --lora run:-0.5 --lora run:1.5 "${latents[@]}" -o "$out/other" <"$out/sum-merged.jsonl"
  [ "$status" -eq 1 ]
  [[ $output == *"the record was made with the adapters"* ]]
  cd "$out"
  jq -e '(.lora | map(.scale)) == [1.5, -0.5] and (.lora | map(.mode) | unique) == ["merged"]
    and (.lora_path | length) == 2 and .lora[0].hash == .lora[1].hash' <(records sum-merged.jsonl)
  [ "$(jq -r .xxh3 <(records again.jsonl))" = "$(jq -r .xxh3 <(records sum-merged.jsonl))" ]
  jq -e '.lora.mode == "merged" and .lora.scale == 1 and (.lora.hash | length == 32)' <(records run.jsonl)
  [ "$(jq -c .lora <(records run.jsonl))" = "$(jq -c .lora <(records lora.jsonl))" ]
  [ "$(jq -c '[.lora.scale, .lora.mode]' <(records half.jsonl))" = '[0.5,"merged"]' ]
  [ "$(jq -c .lora.mode <(records apart.jsonl))" = '"separate"' ]
  python3 - <<'PY'
import glob, json, struct
def latent(folder):
    data = open(glob.glob(f"{folder}/*.latents.safetensors")[0], "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    begin, end = json.loads(data[8:8 + size])["latent"]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
def apart(a, b):
    a, b = latent(a), latent(b)
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) / max(abs(y) for y in b)
assert latent("run") == latent("lora")
assert latent("none") == latent("base")
assert 1e-3 < apart("half", "base") < apart("run", "base"), (apart("half", "base"), apart("run", "base"))
for other in "apart", "sum-merged", "sum-separate":
    assert apart(other, "run") < 1e-4, (other, apart(other, "run"))
PY
}

@test "a record makes the same clip again, and is refused by other adapters, or none" {
  vfm-generate --model "$shared/base" --lora "$shared/run/checkpoints/step-00000004/lora" --steps 1 \
    -o one 'a red circle' >one.jsonl
  jq -e '.lora_path | endswith("step-00000004/lora/pytorch_lora_weights.safetensors")' <(records one.jsonl)
  vfm-generate --model "$shared/base" --lora "$shared/run/checkpoints/step-00000004/lora" \
    -o again <one.jsonl >again.jsonl
  cmp "$(jq -r .path <(records one.jsonl))" "$(jq -r .path <(records again.jsonl))"
  for other in "--lora $shared/run" "--lora $shared/run/checkpoints/step-00000004/lora:2" ""; do
    # shellcheck disable=SC2086
    run vfm-generate --model "$shared/base" $other -o other <one.jsonl
    [ "$status" -eq 1 ]
    [[ $output == *"the record was made with the adapters"* ]]
  done
}

# bats test_tags=night
@test "a base that has moved is asked for, another one refused, as are adapters that do not fit" {
  refused_once() {  # MESSAGE ARGUMENT...
    run vfm-generate "${@:2}" </dev/null
    [ "$status" -eq 2 ]
    [[ "$output" == *"$1"* ]] || { echo "$output"; false; }
    [ ! -e out ]
  }
  refused() {
    refused_once "$@" --steps 1 -o out 'a red circle'
    refused_once "$1" cost "${@:2}"
  }
  cp -r "$shared/base" base
  "${TRAIN[@]}" lora.rank=3 --init base -o run train.steps=1 >/dev/null
  mv base moved
  refused "has adapters of the model '$PWD/base/checkpoints/step-00000008', which is not there: move it back" --model run
  vfm-generate --model moved --lora run --steps 1 -o there 'a red circle' >/dev/null
  "${TRAIN[@]}" --init "$shared/base" -o other train.steps=1 >/dev/null
  refused "has no adapters: it is a model of its own" --model other --lora "$shared/base"
  refused "has adapters of its own" --model "$shared/run" --lora "$shared/run"
  refused "no such adapter: 'nowhere'" --model other --lora nowhere
  refused "no such adapter: 'org/lora'; if that is a name on a hub: nothing is downloaded" --model other --lora org/lora
  refused "no such adapter: 'nowhere'" --model "$shared/base" --lora "$shared/run" --lora nowhere
  refused "are not those of the model" --model other --lora "$VFM_ROOT/tests/golden/dit_lora"
}

# values FILE [PREFIX]: tensors as JSON, without the prefix, sorted.
values() {
  python3 - "$@" <<'PY'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
header.pop("__metadata__", None)
prefix = sys.argv[2] if len(sys.argv) > 2 else ""
out = {}
for name, tensor in header.items():
    begin, end = tensor["data_offsets"]
    assert name.startswith(prefix), name
    out[name[len(prefix):]] = [tensor["shape"], data[8 + size + begin:8 + size + end].hex()]
print(json.dumps(out, sort_keys=True))
PY
}

# bats test_tags=night
@test "export of a run of adapters: merged it is a model, separate what diffusers and peft open" {
  cd "$BATS_TEST_TMPDIR"
  run=$shared/run
  vfm-train export "$run" -o merged 2>words >record
  [ "$(jq -r '[.kind, .path, .weights, .adapters, .class, .step] | @tsv' <(records record))" = \
    "$(printf 'model\tmerged\tema\tmerged\tCosmosTransformer3DModel\t8')" ]
  grep -q "is the network alone, not a pipeline of diffusers: diffusers has no class for the tokenizer builtin:wavelet" words
  [ ! -e merged/model_index.json ]
  # W + 6/3 B A, of the averaged numbers of both.
  python3 - merged "$shared/base/checkpoints/step-00000008" "$run/checkpoints/step-00000008" <<'PY'
import json, struct, sys
def tensors(path):
    data = open(path + ".safetensors", "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (t["shape"], struct.unpack(f"<{(t['data_offsets'][1] - t['data_offsets'][0]) // 4}f",
                   data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]]))
            for name, t in header.items()}
merged, base, lora = (tensors(sys.argv[i] + "/" + name) for i, name in
                      ((1, "diffusion_pytorch_model"), (2, "state/ema"), (3, "state/ema")))
assert merged.keys() == base.keys()
moved = 0
for name, (shape, values) in base.items():
    module = name.removesuffix(".weight")
    if module + ".lora_A.weight" not in lora:
        assert merged[name] == (shape, values), name
        continue
    (rows, columns), (rank, _) = shape, lora[module + ".lora_A.weight"][0]
    a, b = lora[module + ".lora_A.weight"][1], lora[module + ".lora_B.weight"][1]
    for i in range(0, rows, 7):
        for j in range(0, columns, 5):
            want = values[i * columns + j] + 2 * sum(b[i * rank + r] * a[r * columns + j] for r in range(rank))
            assert abs(merged[name][1][i * columns + j] - want) < 1e-5, name
            moved = max(moved, abs(want - values[i * columns + j]))
assert moved > 1e-4, moved
PY
  vfm-train export "$run" -o separate --no-merge --no-ema 2>words >record
  [ ! -s words ]
  [ "$(jq -r '.weights + " " + .adapters' <(records record))" = "model separate" ]
  # The same numbers for both; and what a checkpoint of adapters has is the same.
  values separate/pytorch_lora_weights.safetensors transformer. >a
  values separate/adapter_model.safetensors base_model.model. >b
  values "$run/checkpoints/step-00000008/lora/adapter_model.safetensors" base_model.model. >c
  cmp a b
  cmp a c
  for config in separate "$run/checkpoints/step-00000008/lora"; do
    jq -e '.peft_type == "LORA" and .r == 3 and .lora_alpha == 6 and .target_modules == ["to_q", "to_k", "to_v", "to_out.0"]
      and (.base_model_name_or_path | endswith("/base/checkpoints/step-00000008"))' "$config/adapter_config.json"
  done
  run vfm-train export "$shared/base" -o other --no-merge
  [ "$status" -eq 2 ]
  [[ $output == *"has no adapters: leave out --no-merge"* ]]
}

# bats test_tags=night
@test "--init of a run of adapters: merged into the weights, or gone on with" {
  cd "$BATS_TEST_TMPDIR"
  # Updates too small to change a float: what is there at the end is what it began from.
  still=(train.steps=1 train.checkpoint_every=1 optimizer.lr=1e-30 optimizer.weight_decay=0 schedule.warmup=0)
  vfm-train export "$shared/run" -o merged >/dev/null 2>&1
  "${TRAIN[@]}" --init "$shared/run" "${still[@]}" -o full >/dev/null
  cmp full/checkpoints/step-00000001/model/diffusion_pytorch_model.safetensors merged/diffusion_pytorch_model.safetensors
  # With a rank the adapters go on: on the model that they are of, with the numbers that they had.
  "${TRAIN[@]}" --init "$shared/run" lora.rank=3 lora.alpha=6 "${still[@]}" -o more >/dev/null
  values more/checkpoints/step-00000001/lora/pytorch_lora_weights.safetensors transformer. >ours
  values "$shared/run/checkpoints/step-00000008/state/ema.safetensors" >theirs
  cmp ours theirs
  jq -e '.init | (.path | endswith("/base/checkpoints/step-00000008")) and (.adapters.path | endswith("/run/checkpoints/step-00000008"))' \
    more/checkpoints/step-00000001/train.json
  # The same command goes on, also where nothing of the settings is said again but how to begin.
  "${TRAIN[@]}" --init "$shared/run" --init-lora continue "${still[@]}" train.steps=2 -o more >second
  jq -e '.step == 2' <(records second)
  values more/checkpoints/step-00000002/lora/pytorch_lora_weights.safetensors transformer. >ours
  cmp ours theirs
  vfm-generate --model more --device cpu --steps 1 --latents-only -o made '' >/dev/null
  # New ones on the merged weights; they generate by themselves.
  "${TRAIN[@]}" --init "$shared/run" --init-lora merge lora.rank=2 "${still[@]}" -o upon >/dev/null
  jq -e '.init.adapters == null and (.init.path | endswith("/run/checkpoints/step-00000008"))' upon/checkpoints/*/train.json
  vfm-generate --model upon --device cpu --steps 1 --seed 3 --latents-only -o made '' >/dev/null
  vfm-train export upon -o upon-merged >/dev/null 2>&1
  cmp upon-merged/diffusion_pytorch_model.safetensors merged/diffusion_pytorch_model.safetensors
  run "${TRAIN[@]}" --init "$shared/run" lora.rank=4 -o never
  [ "$status" -eq 2 ]
  [[ $output == *"the adapters to continue have rank 3, alpha 6 and targets [], the recipe's have 4, 6 and []"* ]]
}
