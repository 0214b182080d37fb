#!/usr/bin/env bats
# Folders that are given as models and are none that works here: every tool says what they are, before any work.
# SPDX-License-Identifier: Apache-2.0
load helpers
load small_clips
bats_require_minimum_version 1.5.0

setup_file() { make_small_clips; }
setup() {
  setup_tools
  golden=$VFM_ROOT/tests/golden
  clip_shard a "c1=A red square."
  echo 'train: {steps: 1}' >r.yaml
}

# every_tool MESSAGE FOLDER: refuses that folder as whatever it takes models for; as video model, tokenizer, and
# model of texts or pictures.
every_tool() {
  video_tools "$@"
  other_tools "$@"
}
video_tools() {
  refused "$1" vfm-generate --model "$2" -o out x
  refused "$1" vfm-generate cost --model "$2"
  refused "$1" vfm-train r.yaml --init "$2" --data nowhere -o out
  refused "$1" vfm-train cost r.yaml --init "$2" --data nowhere
  refused "$1" vfm-train plan r.yaml --init "$2" --data nowhere --gpus 2 --gpu h100
  if [ -e "$2" ]; then refused "$1" vfm-train export "$2" -o out; fi
  refused "$1" vfm-train r.yaml model.num_layers=2 --data nowhere --tokenizer "$2" -o out
  refused "$1" vfm-pack --tokenizer "$2" -o out a.tar
}
other_tools() {
  refused "$1" vfm-embed --video "$2" a.tar
  refused "$1" vfm-embed --text "$2" a.tar
  refused "$1" vfm-caption --from "model:$2" a.tar
  refused "$1" vfm-caption --refine "$2" a.tar
  refused "$1" vfm-caption score --clip "$2" a.tar
  refused "$1" vfm-clip --stitch "$2" -o out "$CLIPS/c1.mp4"
  refused "$1" vfm-clip shots --detector-model "$2" "$CLIPS/c1.mp4"
}

# pipeline FOLDER CLASS PART...
pipeline() {
  mkdir -p "$1"
  jq -n --arg class "$2" '{_class_name: $class} + ([$ARGS.positional[] | {(.): ["diffusers", "X"]}] | add)' \
    --args "${@:3}" >"$1/model_index.json"
}

# bats test_tags=night
@test "a model of a family that does not work here is refused by its name, and what works is said" {
  # A pipeline is refused by its class, whatever of it is there.
  pipeline predict2 Cosmos2VideoToWorldPipeline transformer vae scheduler
  every_tool "predict2' is of Cosmos-Predict2 (Cosmos2VideoToWorldPipeline), which is not supported: of video models Cosmos-1.0's and Wan's are" predict2
  pipeline cosmos3 Cosmos3OmniPipeline transformer vae
  every_tool "of Cosmos 3 (Cosmos3OmniPipeline)" cosmos3
  local one
  for one in "Cosmos2_5_PredictBasePipeline=Cosmos-Predict2.5" "Cosmos2_5_TransferPipeline=Cosmos-Transfer2.5" \
    "HunyuanVideo15Pipeline=HunyuanVideo-1.5" "HunyuanVideoPipeline=HunyuanVideo" \
    "LTXConditionPipeline=LTX-Video" "LTX2Pipeline=LTX-2" "MochiPipeline=Mochi" "CogVideoXImageToVideoPipeline=CogVideoX"; do
    pipeline other "${one%=*}" transformer vae
    refused "'other' is of ${one#*=} (${one%=*})," vfm-generate --model other -o out x
  done
  # Relatives that have a name of their own are called by it.
  for one in "WanAnimatePipeline=Wan 2.2 Animate" "WanVACEPipeline=Wan VACE" \
    "HunyuanVideoFramepackPipeline=FramePack, a HunyuanVideo" "Kandinsky5T2VPipeline=Kandinsky 5"; do
    pipeline other "${one%=*}" transformer vae
    refused "'other' is of ${one#*=} (${one%=*})," vfm-generate --model other -o out x
  done
  for one in "WanAnimateTransformer3DModel=Wan 2.2 Animate" "WanVACETransformer3DModel=Wan VACE" "WanModel_S2V=Wan 2.2 S2V"; do
    mkdir -p part
    echo "{\"_class_name\": \"${one%=*}\"}" >part/config.json
    video_tools "'part' is of ${one#*=} (${one%=*}), which is not supported: of video models Cosmos-1.0's and Wan's are" part
  done
  # Its part by itself is, too.
  for one in "AutoencoderKLHunyuanVideo15=HunyuanVideo-1.5" \
    "AutoencoderKLLTXVideo=LTX-Video" "AutoencoderKLMochi=Mochi" "AutoencoderKLCogVideoX=CogVideoX" "Cosmos3OmniTransformer=Cosmos 3"; do
    mkdir -p part
    echo "{\"_class_name\": \"${one%=*}\", \"model_type\": \"t2v\"}" >part/config.json
    video_tools "'part' is of ${one#*=} (${one%=*})," part
  done
  # So are the models of texts and pictures.
  echo '{"model_type": "qwen3_vl", "architectures": ["Qwen3VLForConditionalGeneration"]}' >part/config.json
  other_tools "part' is of Qwen3-VL (qwen3_vl), which is not supported: captions come from Qwen2.5-VL" part
}

# predict2_network SCALE: its config.json, with a Cosmos-1.0's class.
predict2_network() {
  echo '{"_class_name": "CosmosTransformer3DModel", "in_channels": 17, "out_channels": 16, "num_attention_heads": 2,
    "attention_head_dim": 16, "num_layers": 1, "text_embed_dim": 8, "adaln_lora_dim": 4, "max_size": [4, 8, 8],
    "patch_size": [1, 2, 2], "extra_pos_embed_type": null, "rope_scale": '"$1"'}'
}

# bats test_tags=night
@test "a network of Cosmos-Predict2 is not taken for one of Cosmos-1.0, whose class it has" {
  mkdir net
  for scale in '[1.0, 4.0, 4.0]' '[1, 3, 3]' '[0.8333333333333334, 2.0, 2.0]'; do
    predict2_network "$scale" >net/config.json
    video_tools "'net' is of Cosmos-Predict2 ('extra_pos_embed_type' null and 'rope_scale'" net
  done
  predict2_network '[1.0, 3.0, 3.0]' | jq '.use_crossattn_projection = true' >net/config.json
  video_tools "of Cosmos-Predict2.5 ('use_crossattn_projection')" net
  predict2_network '[2.0, 1.0, 1.0]' | jq '.controlnet_block_every_n = 7' >net/config.json
  video_tools "of Cosmos-Transfer2.5 ('controlnet_block_every_n')" net
  # In a pipeline's folder that one says what it is of.
  pipeline p Cosmos2TextToImagePipeline transformer vae
  mkdir p/transformer
  predict2_network '[2.0, 1.0, 1.0]' | jq '.extra_pos_embed_type = "learnable"' >p/transformer/config.json
  video_tools "'p/transformer' is of Cosmos-Predict2 (Cosmos2TextToImagePipeline)" p/transformer
  # A pipeline may say something else: its network is what it is.
  pipeline q CosmosTextToWorldPipeline transformer
  mkdir q/transformer
  predict2_network '[1.0, 3.0, 3.0]' >q/transformer/config.json
  refused "'q/transformer' is of Cosmos-Predict2 (" vfm-train r.yaml --init q --data nowhere -o out
  # What was trained here may have any positions: an export says that it was.
  predict2_network '[1.0, 3.0, 3.0]' >net/config.json
  echo '{}' >net/vfm-export.json
  run vfm-train r.yaml --init net --data nowhere -o out
  [[ "$output" == *"'net' has no weights"* ]]
}

# bats test_tags=night
@test "a relative of Wan is not taken for Wan, whose class it has" {
  # wan_network FIELDS: its config.json.
  wan_network() {
    echo '{"_class_name": "WanTransformer3DModel", "num_attention_heads": 1, "attention_head_dim": 12, "num_layers": 1}' |
      jq ". + {$1}" >"$2/config.json"
  }
  mkdir -p net wan/transformer
  wan_network 'in_channels: 36, image_dim: 1280, added_kv_proj_dim: 12' net
  video_tools "'net' is of Wan 2.1 I2V ('image_dim')" net
  wan_network 'in_channels: 36, image_dim: 1280, pos_embed_seq_len: 514' net
  video_tools "'net' is of Wan 2.1 FLF2V ('pos_embed_seq_len')" net
  wan_network 'in_channels: 48' net
  video_tools "'net' is of a Wan with inputs of its own, such as Wan Fun ('in_channels' 48, 'out_channels' 16)" net
  # A pipeline that makes something else is named with those that work.
  pipeline wan WanVideoToVideoPipeline transformer vae text_encoder tokenizer scheduler
  wan_network 'in_channels: 16' wan/transformer
  refused "'wan' is a WanVideoToVideoPipeline: only CosmosTextToWorldPipeline, CosmosVideoToWorldPipeline, WanPipeline and WanImageToVideoPipeline are supported" \
    vfm-generate --model wan -o out x
}

# bats test_tags=night
@test "a name on a hub is no folder: nothing is downloaded, and what to do is said" {
  every_tool "no such model folder: 'nvidia/Cosmos-1.0-Diffusion-7B-Text2World'; if that is a name on a hub: nothing is downloaded here" \
    nvidia/Cosmos-1.0-Diffusion-7B-Text2World
  # A folder that is meant is one that is missing.
  mkdir models
  run vfm-embed --video models/clip a.tar
  [ "$output" = "vfm-embed: no such model folder: 'models/clip'" ]
}

# pointer FILE: what Git LFS leaves in its place.
pointer() {
  printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 548105171\n' 7 >"$1"
}

@test "a Git LFS pointer in place of weights, a tokenizer, a picture, a video or a shard is called by that name" {
  local file
  lfs() { echo "$1' is a Git LFS pointer, not the file itself: git lfs pull"; }
  broken() { # FOLDER FILE: the folder copied, with a pointer there
    rm -rf model
    cp -r "$1" model
    pointer "model/$2"
  }
  broken "$golden/picture_encoders/siglip" model.safetensors
  refused "$(lfs model/model.safetensors)" vfm-embed --video model --device cpu a.tar
  broken "$golden/picture_encoders/siglip" preprocessor_config.json
  refused "$(lfs model/preprocessor_config.json)" vfm-embed --video model --device cpu a.tar
  broken "$golden/t5/umt5" spiece.model
  refused "$(lfs model/spiece.model)" vfm-embed --text model --device cpu a.tar
  broken "$golden/t5/umt5" model.safetensors
  refused "$(lfs model/model.safetensors)" vfm-embed --text model --device cpu a.tar
  for file in model.safetensors tokenizer.json; do
    broken "$golden/sentences/bert" "$file"
    refused "$(lfs "model/$file")" vfm-embed --text model --device cpu a.tar
  done
  for file in model.safetensors tokenizer.json; do
    broken "$golden/smolvlm/smolvlm" "$file"
    refused "$(lfs "model/$file")" vfm-caption --from model:model --device cpu a.tar
  done
  # What is an input is recorded, and the run goes on.
  for file in p.png v.mp4; do pointer $file; done
  run --separate-stderr vfm-clip p.png v.mp4 "$CLIPS/c2.mp4" --stride 1s --min-length 0.5s -o clips
  [ "$status" -eq 1 ]
  [ "$(jq -r .error clips/errors.jsonl)" = "'$(lfs p.png)
'$(lfs v.mp4)" ]
  [ "$(jq -r .code clips/errors.jsonl | sort -u)" = missing ]
  run --separate-stderr vfm-clip shots v.mp4
  [ "$status" -eq 1 ]
  [ "$stderr" = "vfm-clip: '$(lfs v.mp4)" ]
  pointer b.tar
  run --separate-stderr vfm-caption b.tar
  [ "$status" -eq 1 ]
  grep -qF "'$(lfs b.tar)" caption-errors.jsonl
  # And a member of a shard.
  mkdir src-m
  pointer src-m/k.png
  pack_clips m
  run --separate-stderr vfm-embed --video "$golden/picture_encoders/siglip" --device cpu m.tar
  [ "$status" -eq 1 ]
  grep -F "is a Git LFS pointer" embed-errors.jsonl
}

@test "mapped weights that are cut while they are used end the program with a message that names them" {
  cp -r "$golden/t5/umt5" model
  mkfifo list
  vfm-embed --video none --text model --device cpu - <list >out 2>err 3>&- &
  local embedding=$! status=0
  exec 7>list
  await test -s out # the model is open
  truncate -s 4096 model/model.safetensors
  echo a.tar >&7
  exec 7>&-
  wait $embedding || status=$?
  cat err
  [ "$status" -eq 1 ]
  [[ "$(<err)" == "vfm-embed: '"*"/model/model.safetensors' was cut while it was read: make it whole, and give the same command again" ]]
}

@test "an empty text is told as such, not as a file without a name" {
  refused "--prompt: the value is empty" vfm-caption --from model:x --prompt '' a.tar
  refused "--prompt: the value is empty" vfm-caption --from model:x --prompt ' ' a.tar
  refused "--refine-prompt: the value is empty" vfm-caption --refine x --refine-prompt '' a.tar
  refused "--also: the value is empty" vfm-caption --from model:x --also '' a.tar
  refused "--concept: the value is empty" vfm-embed --video x --concept '' a.tar
}
