#!/usr/bin/env bats
# vfm-train: samples that cannot be read or used.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load tiny_runs

@test "a sample that cannot be used is reported, recorded, and costs only itself" {
  prepare 24 broken
  run train run train.steps=20
  [ "$status" -eq 1 ]
  [[ $output == *"left out: sample "*"not finite"* ]]
  [ "$(wc -l <run/errors.jsonl)" -eq 1 ]
  grep -q '"tool":"vfm-train"' run/errors.jsonl
  [ -d run/checkpoints/step-00000020 ]
  # Interrupted or not, the record is there.
  run train run train.steps=30
  [ "$status" -eq 1 ]
  [ "$(wc -l <run/errors.jsonl)" -eq 1 ]
}

@test "--skip-samples leaves out what the records of errors name, to the same weights, and goes on so" {
  prepare 24 broken
  run train run train.steps=20
  [ "$status" -eq 1 ]
  cp run/errors.jsonl skip
  key=$(jq -r .input skip)
  weights() { (cd "$1/checkpoints/$2" && find . -name '*.safetensors' -exec sha256sum {} + | sort); }
  train skipped train.steps=20 --skip-samples skip >/dev/null
  [ ! -e skipped/errors.jsonl ]
  diff <(weights run step-00000020) <(weights skipped step-00000020)
  jq -e --arg key "$key" '.skipped_samples == [$key]' skipped/checkpoints/step-00000020/train.json
  # Resumed without the option it has the same list; another one is told.
  train skipped train.steps=30 2>err >/dev/null
  [ ! -e skipped/errors.jsonl ]
  run train skipped train.steps=40 --skip-samples /dev/null
  [ "$status" -eq 1 ]
  [[ $output == *"--skip-samples names 0 samples, and 'skipped' has left out 1 up to here: others are trained on now"* ]]
  [[ $output == *"left out: sample '$key'"* ]]
  echo no-such-sample >skip
  run train other --skip-samples skip
  [ "$status" -eq 2 ]
  [[ $output == *"'skip' has 1 key, and none is that of a sample of the data, such as '"* ]]
}

@test "train.skip_spikes skips the steps of a sample far larger than all others, the same on any number of ranks" {
  prepare 24 loud
  rule=(train.steps=139 train.log_every=1 validation.every=0 train.checkpoint_every=139 train.skip_spikes=10 optimizer.max_skips=1)
  skipped() { jq 'select(.skipped > 0) | .step' "$1/metrics.jsonl"; }
  train alone "${rule[@]}" 2>err >/dev/null
  cat err
  # It comes once in three or four steps; the first hundred say what is usual.
  skipped alone >steps
  [ "$(wc -l <steps)" -ge 8 ] && [ "$(wc -l <steps)" -le 16 ]
  [ "$(head -n 1 steps)" -gt 100 ]
  [ "$(grep -c "are a spike, the update is skipped ('train.skip_spikes' is 10" err)" -eq "$(wc -l <steps)" ]
  # Without the sample no step is one.
  sed -n '5s/.*"key": "\([0-9a-f]*\)".*/\1/p' latents/train/index.jsonl >skip
  train clean "${rule[@]}" --skip-samples skip >/dev/null
  [ -z "$(skipped clean)" ]
  needs_mpi
  mpirun -np 3 "${TRAIN[@]}" shared "${rule[@]}" 2>err >/dev/null
  diff steps <(skipped shared)
  [ "$(grep -c "are a spike" err)" -eq "$(wc -l <steps)" ]
}

@test "samples of the validation split that cannot be read are reported, recorded, and not counted" {
  prepare
  sed -i '2s/"text_tokens": 2/"text_tokens": 7/' latents/val/index.jsonl
  sed -i 's/samples: 3/samples: 4/' tiny.yaml
  run train run train.steps=10
  [ "$status" -eq 1 ]
  [[ $output == *"left out of validation: sample "* ]]
  [ "$(wc -l <run/errors.jsonl)" -eq 1 ]
  [ "$(jq -s 'map(select(.val_samples)) | last.val_samples' run/metrics.jsonl)" -eq 3 ]
}

@test "a step whose samples are all unreadable fails, and says which they were" {
  prepare
  rm latents/train/*.tar
  run train run train.steps=10
  [ "$status" -eq 1 ]
  [[ $output == *"none of the samples of step 1 could be read"* ]]
  [ "$(wc -l <run/errors.jsonl)" -gt 0 ]
}

# bats test_tags=night
@test "changed bytes inside a tar of latents are found, reported, recorded, and cost only their sample" {
  ffmpeg -v error -f lavfi -i testsrc=s=64x64:r=12:d=2 -c:v libx264 -pix_fmt yuv420p drawn.mp4
  vfm-clip drawn.mp4 --min-length 0.3s --max-length 0.5s -o clips | vfm-caption | vfm-embed | vfm-shard --keep-duplicates -o dataset |
    vfm-pack --size 32 --frames 5 --device cpu -o latents >packed.jsonl
  local tar
  tar=$(ls latents/train/*.tar)
  write_recipe
  local train=(vfm-train tiny.yaml model.adaln_lora_dim=4 model.max_size='[4,8,8]' data.tokens=64 validation.every=0 -j1 --device cpu --data latents)
  "${train[@]}" train.steps=4 -o whole >/dev/null
  [ ! -e whole/errors.jsonl ]
  # A number in the middle of a latent: the tar, its headers and sizes are as they were.
  python3 - "$tar" <<'PY'
import sys, tarfile
with tarfile.open(sys.argv[1]) as tar:
    member = [m for m in tar if m.name.endswith(".latent.npy")][1]
with open(sys.argv[1], "r+b") as file:
    file.seek(member.offset_data + member.size - 8)
    old = file.read(1)
    file.seek(-1, 1)
    file.write(bytes([old[0] ^ 1]))
open("key", "w").write(member.name.split(".")[0])
PY
  for ranks in 1 2; do
    run mpirun -np $ranks "${train[@]}" data.packs=2 train.steps=6 -o run$ranks
    [ "$status" -eq 1 ]
    [[ $output == *"left out: sample '$(cat key)' of "*": its bytes are not those that were packed"* ]]
    jq -se --arg key "$(cat key)" 'length == 1 and .[0].input == $key' run$ranks/errors.jsonl
  done
  # An index from before it had hashes: the tar's own is compared, and all of the shard left out.
  sed -i 's/,"xxh3":"[0-9a-f]*"//' latents/train/index.jsonl
  run "${train[@]}" train.steps=4 -o old
  [ "$status" -eq 1 ]
  [[ $output == *"the shard is not as it was packed (its hash is "* ]]
  [[ $output == *"none of the samples of step 1 could be read"* ]]
}
