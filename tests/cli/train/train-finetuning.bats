#!/usr/bin/env bats
# What can be fine-tuned: of each kind of model, from each kind of folder, all weights or adapters. The table of
# vfm-train(1), row by row: what works begins from the folder's weights, to the bit, and what does not is refused
# with its reason before any work.
# SPDX-License-Identifier: Apache-2.0

# bats file_tags=night

load ../helpers
bats_require_minimum_version 1.5.0

# FROM FAMILY TRAINED, and works; or the reason why not.
table() {
  cat <<'END'
run dit full works
run dit lora works
run stdit full works
run stdit lora works
run moviegen full works
run moviegen lora works
run autoregressive full works
run autoregressive lora works
run tokenizer full works
run tokenizer lora 'lora.rank' in argument 'lora.rank=2' is not for a 'model.type' of tokenizer
diffusers dit full works
diffusers dit lora works
diffusers tokenizer full works
diffusers tokenizer lora 'lora.rank' in argument 'lora.rank=2' is not for a 'model.type' of tokenizer
diffusers stdit full 'model.type' is stdit, but the model to begin from is a dit
diffusers stdit lora 'model.type' is stdit, but the model to begin from is a dit
diffusers moviegen full 'model.type' is moviegen, but the model to begin from is a dit
diffusers moviegen lora 'model.type' is moviegen, but the model to begin from is a dit
diffusers autoregressive full 'model.type' is autoregressive, but the model to begin from is a dit
diffusers autoregressive lora 'model.type' is autoregressive, but the model to begin from is a dit
published dit full works
published dit lora works
published autoregressive full works
published autoregressive lora works
published tokenizer full works
published tokenizer lora 'lora.rank' in argument 'lora.rank=2' is not for a 'model.type' of tokenizer
published stdit full 'model.type' is stdit, but the model to begin from is a dit
published stdit lora 'model.type' is stdit, but the model to begin from is a dit
published moviegen full 'model.type' is moviegen, but the model to begin from is a dit
published moviegen lora 'model.type' is moviegen, but the model to begin from is a dit
END
}

# A run of each family; the first and the last as a pipeline of diffusers, and as NVIDIA publishes them.
setup_file() {
  export OMP_NUM_THREADS=1
  draw_dataset 4
  vfm-pack --size 32 --frames 9 --device cpu -o latents <shards.jsonl >/dev/null
  vfm-pack --size 32 --frames 9 --tokenizer builtin:fsq --space-factor 8 --device cpu -o codes <shards.jsonl >/dev/null
  printf '%s\n' 'data: {tokens: 64, packs: 2}' 'optimizer: {lr: 0.02}' 'schedule: {warmup: 1}' 'ema: {mode: "off"}' \
    'validation: {every: 0}' 'train: {steps: 2, log_every: 1}' >base.yaml
  sed 's/lr: 0.02/lr: 1e-30, weight_decay: 0/' base.yaml >still.yaml
  small=(model.num_attention_heads=2 model.attention_head_dim=16 model.num_layers=2)
  begin() { vfm-train base.yaml -q -j1 --device cpu model.type="$1" -o "run-$1" "${@:2}" >/dev/null; }
  begin dit "${small[@]}" model.adaln_lora_dim=8 --data latents
  begin stdit "${small[@]}" model.adaln=full --data latents
  begin moviegen "${small[@]}" model.num_key_value_heads=1 model.qk_norm=true --data latents
  begin autoregressive "${small[@]}" model.num_key_value_heads=1 data.tokens=512 --data codes
  # Its fields are those that NVIDIA's have, but for the widths.
  begin tokenizer --data dataset 'model.encoder_block_out_channels=[8,8,12,12]' model.latent_channels=6 \
    'model.decode_block_out_channels=[8,12,12,12]' model.num_layers=1 model.patch_size=2 \
    model.spatial_compression_ratio=4 model.temporal_compression_ratio=4 "${clips[@]}"
  mkdir -p pipeline
  cp -r run-dit/checkpoints/step-*/model pipeline/transformer
  cp -r run-tokenizer/checkpoints/step-*/model pipeline/vae
  echo '{"_class_name": "CosmosTextToWorldPipeline", "transformer": ["diffusers", "CosmosTransformer3DModel"],
    "vae": ["diffusers", "AutoencoderKLCosmos"]}' >pipeline/model_index.json
  "$BATS_TEST_DIRNAME/publish-model" pipeline/transformer published-dit
  "$BATS_TEST_DIRNAME/publish-model" pipeline/vae published-tokenizer
  "$BATS_TEST_DIRNAME/write-published-decoder" published-autoregressive
}

clips=(data.frames=5 data.size=32 data.shorter_side=32 data.tokens=256 data.packs=1)

setup() {
  setup_tools
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR" || return 1
  out=$BATS_TEST_TMPDIR
}

# folder_of FROM FAMILY: what stands for such a folder; of a family that it cannot have, one that it has.
folder_of() {
  case $1-$2 in
    run-*) echo "run-$2" ;;
    diffusers-tokenizer) echo pipeline/vae ;;
    diffusers-*) echo pipeline/transformer ;;
    published-tokenizer) echo published-tokenizer ;;
    published-autoregressive) echo published-autoregressive ;;
    published-*) echo published-dit ;;
  esac
}

# tune FROM FAMILY TRAINED OPTION...: fine-tuning, with updates too small to change a float.
tune() {
  local data=latents more=()
  case $2 in
    autoregressive) data=codes more=(data.tokens=512) ;;
    tokenizer) data=dataset more=("${clips[@]}") ;;
  esac
  [ "$3" = full ] || more+=(lora.rank=2)
  vfm-train still.yaml -j1 --device cpu --init "$(folder_of "$1" "$2")" model.type="$2" --data "$data" \
    -o "$out/$1-$2-$3" "${more[@]}" "${@:4}"
}

# chosen works|refused: such rows.
chosen() {
  local row
  while read -r row; do
    case $row in *' works') [ "$1" = works ] || continue ;; *) [ "$1" = refused ] || continue ;; esac
    echo "$row"
  done < <(table)
}

# values FILE: what its tensors hold, whatever they are called.
values() {
  python3 - "$1" <<'PY'
import hashlib, json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
header.pop("__metadata__", None)
spans = [[8 + size + at for at in tensor["data_offsets"]] for tensor in header.values()]
print("\n".join(sorted(hashlib.sha256(data[begin:end]).hexdigest() for begin, end in spans)))
PY
}

@test "the table has every family, every kind of folder, and both ways: 17 rows work, 13 do not" {
  [ "$(table | wc -l)" -eq 30 ]
  [ "$(table | cut -d' ' -f1-3 | sort -u | wc -l)" -eq 30 ]
  [ "$(table | grep -c ' works$')" -eq 17 ]
}

@test "what works begins from the folder's weights: all of them are its own, or adapters alone are trained" {
  while read -r from family trained _; do
    tune "$from" "$family" "$trained" >"$out/words" 2>&1 </dev/null || { echo "$from $family $trained"; cat "$out/words"; return 1; }
    made=$out/$from-$family-$trained/checkpoints/step-00000002
    [ -e "$made/COMPLETE" ]
    if [ "$trained" = full ]; then
      began=run-$family/checkpoints/step-00000002/model/diffusion_pytorch_model.safetensors
      [ "$from-$family" != published-autoregressive ] || began=published-autoregressive/model.safetensors
      cmp <(values "$made/model/diffusion_pytorch_model.safetensors") <(values "$began")
    else
      [ -s "$made/lora/adapter_model.safetensors" ] && [ ! -e "$made/model/diffusion_pytorch_model.safetensors" ]
      # B is zero: the same losses as with all weights.
      cmp <(jq .loss "$out/$from-$family-full/metrics.jsonl") <(jq .loss "$out/$from-$family-lora/metrics.jsonl")
    fi
  done < <(chosen works)
  [ "$(find "$out" -name COMPLETE | wc -l)" -eq "$(chosen works | wc -l)" ]
}

@test "what does not is refused with its reason, exit status 2, before any work" {
  while read -r from family trained reason; do
    status=0
    tune "$from" "$family" "$trained" >"$out/words" 2>&1 </dev/null || status=$?
    echo "$from $family $trained: $(<"$out/words")"
    [ "$status" -eq 2 ]
    grep -qF "$reason" "$out/words"
    [ ! -e "$out/$from-$family-$trained" ]
  done < <(chosen refused)
  [ "$(chosen refused | wc -l)" -eq 13 ]
}

@test "adapters of a published model are trained, and generate on it" {
  vfm-train base.yaml -q -j1 --device cpu --init published-dit lora.rank=2 --data latents -o "$out/run" train.steps=3 >/dev/null
  vfm-generate --model "$out/run" --steps 1 --device cpu --latents-only -o "$out/clips" 'a red circle' >"$out/clips.jsonl"
  jq -e '.lora.mode == "merged"' <(records "$out/clips.jsonl")
  # Moved and changed it is another model, in another format the same.
  "$BATS_TEST_DIRNAME/publish-model" pipeline/transformer "$out/again" safetensors
  vfm-train base.yaml -q -j1 --device cpu --init "$out/again" lora.rank=2 --data latents -o "$out/run" train.steps=4 >/dev/null
}

@test "a folder of NVIDIA's is described as it is: sizes by names and shapes; what is none of them is refused" {
  vfm-train recipe still.yaml --init published-dit >"$out/config"
  for line in 'type: dit' 'num_attention_heads: 2' 'attention_head_dim: 16' 'num_layers: 2' 'adaln_lora_dim: 8' \
    'max_size: \[128,240,240\]' 'rope_scale: \[2.0,1.0,1.0\]' 'learnable_positions: true' 'concat_padding_mask: true'; do
    grep -q "^  $line *# " "$out/config" || { echo "no $line"; cat "$out/config"; return 1; }
  done
  vfm-train recipe still.yaml --init published-tokenizer model.type=tokenizer >"$out/config"
  for line in 'latent_channels: 6' 'encoder_block_out_channels: \[8,8,12,12\]' 'decode_block_out_channels: \[8,12,12,12\]' \
    'patch_size: 2' 'spatial_compression_ratio: 4' 'temporal_compression_ratio: 4' 'num_layers: 1'; do
    grep -q "^  $line *# " "$out/config" || { echo "no $line"; cat "$out/config"; return 1; }
  done
  # It packs, too.
  vfm-pack --tokenizer published-tokenizer --size 32 --frames 5 --device cpu -o "$out/latents" dataset >/dev/null
  jq -e '.channels == 6' "$out/latents/latents.json"
  # A tensor that is missing, and a checkpoint of something else.
  "$BATS_TEST_DIRNAME/publish-model" pipeline/transformer "$out/odd" safetensors
  sed -i 's/net.x_embedder.proj.1.weight/net.x_embedder.qroj.1.weight/' "$out/odd/model.safetensors"
  run vfm-train still.yaml --device cpu --init "$out/odd" --data latents -o "$out/none"
  [ "$status" -eq 2 ]
  [[ $output == *"has the names of a published network, but is none: it has no 'x_embedder.proj.1.weight'"* ]]
  mkdir "$out/other"
  cp "$VFM_ROOT/tests/golden/torch/state_dict.pt" "$out/other/model.pt"
  run vfm-train still.yaml --device cpu --init "$out/other" --data latents -o "$out/none"
  [ "$status" -eq 2 ]
  [[ $output == *"'$out/other' is not a model folder: it has no config.json"* ]]
}
