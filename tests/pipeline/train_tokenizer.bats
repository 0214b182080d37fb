#!/usr/bin/env bats
# A tokenizer of one's own: trained on clips, then latents and pixels through it.
# SPDX-License-Identifier: Apache-2.0

load ../cli/helpers
bats_require_minimum_version 1.5.0

setup_file() {
  draw_dataset 10
}

setup() {
  setup_tools
  export OMP_NUM_THREADS=1  # small convolutions: more threads are no faster
  cat >recipe.yaml <<'END'
model:
  type: tokenizer
  latent_channels: 6
  encoder_block_out_channels: [8, 8, 12, 12]
  decode_block_out_channels: [8, 8, 12, 12]
  num_layers: 1
  patch_size: 2
  spatial_compression_ratio: 4
  temporal_compression_ratio: 4
data: {frames: 5, size: 32, shorter_side: 32, tokens: 256}
optimizer: {lr: 6e-3, weight_decay: 0}
schedule: {warmup: 5}
ema: {decay: 0.9}
validation: {every: 10, samples: 4}
train: {steps: 60, checkpoint_every: 30, log_every: 10}
END
}

train() { vfm-train recipe.yaml --device cpu --data "$BATS_FILE_TMPDIR/dataset" "$@"; }

# The first and the last PSNR of validation.
psnr() { jq -s "map(.val_psnr | values) | $2" "$1/metrics.jsonl"; }

# bats test_tags=night
@test "a tokenizer learns its clips, packs them, and shows them again" {
  train -o run --report run.html
  psnr run .
  # The page: curves, and clips both ways; written again for a run that is at its end, it is the same.
  for word in 'PSNR of the clips' 'Structural similarity' 'Original above, decoded below' 'tokenizer.l1'; do
    grep -q "$word" run.html
  done
  [ "$(grep -o 'data:image/png' run.html | wc -l)" -eq 4 ]
  train -o run --report again.html
  same_pages run.html again.html
  [ "$(jq -n "$(psnr run last) > $(psnr run first) + 2")" = true ]
  jq -es 'map(.val_ssim | values) | last > first and last > 0 and last < 1' run/metrics.jsonl
  jq -e '._class_name == "AutoencoderKLCosmos" and .latents_mean == null' run/checkpoints/step-00000060/model/config.json
  # Of what vfm-generate would ask there is nothing, and it says why.
  jq -e '[has("latent_scale", "trained", "tokenizer", "text_encoder")] | any | not' run/checkpoints/step-00000060/train.json
  run --separate-stderr vfm-generate --model run -o none hello
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"/train.json' has no 'tokenizer': the checkpoint cannot generate"* ]]
  # Its latents have statistics of their own, and the page reports what it keeps.
  vfm-pack --tokenizer run --size 32 --frames 5 -o latents --report page.html "$BATS_FILE_TMPDIR/dataset" >latents.jsonl
  jq -e '.channels == 6 and (.std | length) == 6 and (.std[0] > 0)
    and (.tokenizer.path | endswith("checkpoints/step-00000060"))' latents/latents.json
  [ -s page.html ]
  # A model of these latents draws with it.
  cat >dit.yaml <<'END'
model: {num_layers: 1, num_attention_heads: 2, attention_head_dim: 16, adaln_lora_dim: 8}
train: {steps: 2}
data: {tokens: 512}
END
  vfm-train dit.yaml --data latents -o dit >/dev/null
  vfm-generate --model dit --steps 2 -o out hello >clip.jsonl
  [ -s "$(jq -r .path <(records clip.jsonl))" ]
}

# bats test_tags=night
@test "a discrete one makes codes; and fine-tuning begins from a tokenizer that is there" {
  train 'model.levels=[8,8,5]' train.steps=20 -o run
  [ "$(jq -n "$(psnr run last) > $(psnr run first)")" = true ]
  vfm-pack --tokenizer run --size 32 --frames 5 -o codes "$BATS_FILE_TMPDIR/dataset" >codes.jsonl
  jq -e '.vocabulary == 320' codes/latents.json
  # Of a folder: diffusers' layout, or a run.
  printf '%s\n' 'data: {frames: 5, size: 32, shorter_side: 32, tokens: 256}' 'optimizer: {lr: 1e-4}' \
    'schedule: {warmup: 1}' 'validation: {every: 1, samples: 4}' 'train: {steps: 2}' >tune.yaml
  vfm-train tune.yaml --init run/checkpoints/step-00000020/model --data "$BATS_FILE_TMPDIR/dataset" -o tuned
  grep -q '"levels": \[' tuned/checkpoints/step-00000002/model/config.json
  # It goes on where the other was, not at the beginning.
  [ "$(jq -n "$(psnr tuned first) > $(psnr run first)")" = true ]
  vfm-train tune.yaml --init "$VFM_ROOT/tests/golden/cosmos_vae" --data "$BATS_FILE_TMPDIR/dataset" -o vae
  jq -e '.latent_channels == 3 and .latents_mean == null' vae/checkpoints/step-00000002/model/config.json
}

@test "killed and started again, and with clips that cannot be read, a tokenizer is the same" {
  cp -r "$BATS_FILE_TMPDIR/dataset" damaged
  # One clip is damaged: the bytes of its picture, not the tar.
  tar=$(find damaged -name '*.tar' | head -1)
  yes 'no clip' | head -c 1024 | dd of="$tar" bs=512 seek=1 conv=notrunc 2>/dev/null
  run --separate-stderr vfm-train recipe.yaml train.steps=4 train.checkpoint_every=2 train.keep=9 train.log_every=1 validation.every=3 --data damaged -o whole
  [ "$status" -eq 1 ]
  [ "$(wc -l <whole/errors.jsonl)" -eq 1 ]
  part() { vfm-train recipe.yaml "$@" train.checkpoint_every=2 train.keep=9 train.log_every=1 validation.every=3 -o parts || [ $? -eq 1 ]; }
  part train.steps=2 --data damaged
  # The same data by another name.
  ln -s damaged link
  part train.steps=4 --data ./link/
  for file in model/diffusion_pytorch_model.safetensors state/ema.safetensors state/adam_v.safetensors; do
    cmp "whole/checkpoints/step-00000004/$file" "parts/checkpoints/step-00000004/$file"
  done
  cmp <(jq -c 'select(.step > 2)' whole/metrics.jsonl) <(jq -c 'select(.step > 2)' parts/metrics.jsonl)
}

# bats test_tags=night
@test "two processes train the tokenizer that one trains" {
  command -v mpirun >/dev/null || skip "no mpirun"
  train train.steps=4 data.packs=2 train.log_every=1 validation.every=0 -o one
  mpirun -np 2 vfm-train recipe.yaml train.steps=4 data.packs=2 train.log_every=1 validation.every=0 \
    --device cpu --data "$BATS_FILE_TMPDIR/dataset" -o two
  jq -s '[.[].loss]' one/metrics.jsonl two/metrics.jsonl
  jq -es '(length / 2) as $n | [range($n) as $i | (.[$i].loss - .[$i + $n].loss) | fabs] | max < 1e-5' \
    one/metrics.jsonl two/metrics.jsonl
}

# bats test_tags=night
@test "--synthetic trains a tokenizer on made-up clips, as large as is asked for, and keeps no checkpoint" {
  vfm-train recipe.yaml --device cpu --synthetic 5x24x24,1x16x16 -o run train.steps=4 train.log_every=1 validation.every=4 -q
  jq -es 'map(.loss | values) | length == 4' run/metrics.jsonl
  # A pack holds 2 x 6 x 6 latent pixels of a clip and 4 x 4 of a picture.
  jq -es 'map(.tokens | values) | first > 150' run/metrics.jsonl
  jq -es 'map(.tokens_per_second | values) | length == 4' run/timing.jsonl
  grep -q '^  size: 24' run/recipe.yaml
  [ -z "$(find run -name '*.safetensors')" ]
  activations() { vfm-train cost recipe.yaml --device cpu "$@" -q | jq .memory_bytes.activations; }
  # Without data a pack is taken to be one large clip.
  local clips=$(activations --synthetic 5x24x24) full=$(activations data.frames=5 data.size=24)
  echo "$clips of clips, $full of a full pack"
  [ $((10 * clips)) -gt $((9 * full)) ] && [ $((10 * clips)) -lt $((12 * full)) ]
}

# bats test_tags=night
@test "what a tokenizer costs is reported, and what does not fit is refused" {
  run --separate-stderr vfm-train cost "$VFM_ROOT/examples/recipes/tokenizer-cv8x8x8.yaml" --device cpu
  [ "$status" -eq 0 ]
  [[ "$output" == *"parameters"*"(106M)"* ]] || [[ "$output" == *"105"* ]]
  [[ "$output" == *"activations"* ]]
  run --separate-stderr vfm-train recipe.yaml --data "$BATS_FILE_TMPDIR/clips" -o run
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"is not a finished dataset of vfm-shard"* ]]
  run --separate-stderr vfm-train recipe.yaml -o run
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"give --data DIR, the folder that vfm-shard wrote"* ]]
  run --separate-stderr vfm-train recipe.yaml --synthetic 5x32x30 -o run
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"made-up clips of 5x32x30: this tokenizer trains on 1 + k * 4 frames of squares"*" multiples of 4"* ]]
  run --separate-stderr vfm-train cost recipe.yaml model.temporal_compression_ratio=1
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"a tokenizer of pictures (CI, DI)"* ]]
}

# bats test_tags=night
@test "a clip whose bytes were changed since vfm-shard is named, recorded and left out" {
  cp -r "$BATS_FILE_TMPDIR/dataset" dataset
  # A byte in the middle of a video: it decodes as before, to other pixels.
  python3 - dataset/train/*/*.tar >key <<'PY'
import sys, tarfile
with tarfile.open(sys.argv[1]) as tar:
    member = next(m for m in tar if m.name.endswith(".mp4"))
with open(sys.argv[1], "r+b") as file:
    file.seek(member.offset_data + member.size // 2)
    old = file.read(1)
    file.seek(-1, 1)
    file.write(bytes([old[0] ^ 1]))
print(member.name.split(".")[0])
PY
  run vfm-train recipe.yaml --device cpu --data dataset -o run train.steps=8 validation.every=0
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"left out: sample '$(cat key)' of "*": its bytes are not those that vfm-shard wrote"* ]]
  jq -se --arg key "$(cat key)" 'length == 1 and .[0].input == $key' run/errors.jsonl
}

# bats test_tags=night
@test "a tokenizer's next stage goes on as the run would have, and may take other clips of them" {
  common=(schedule.warmup=0 validation.every=0 train.checkpoint_every=10)
  train "${common[@]}" train.steps=3 -o three >/dev/null
  train "${common[@]}" train.steps=5 -o five >/dev/null
  vfm-train --continue three --device cpu --data "$BATS_FILE_TMPDIR/dataset" train.steps=2 -o next >/dev/null
  for part in model/diffusion_pytorch_model state/adam_m state/adam_v state/ema; do
    cmp {five,next}/checkpoints/step-00000005/$part.safetensors
  done
  vfm-train --continue three --device cpu --data "$BATS_FILE_TMPDIR/dataset" data.size=16 data.frames=1 train.steps=2 \
    validation.every=1 -o small >/dev/null
  jq -es 'map(.val_psnr | values) | length == 3' small/metrics.jsonl
  run vfm-train --continue three --device cpu --data "$BATS_FILE_TMPDIR/dataset" model.latent_channels=4 -o no
  [ "$status" -eq 2 ]
  [[ $output == *"cannot change model.latent_channels: 6 -> 4"* ]]
}
