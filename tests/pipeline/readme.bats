#!/usr/bin/env bats
# What README shows first, its recipes, and the jobs for Slurm, run as they stand.
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0

setup() {
  load ../cli/helpers
  setup_tools
  mkdir raw
  make_video raw/a.mp4 3 "mandelbrot=size=96x64:rate=12"
  make_video raw/b.mp4 3 "testsrc2=size=64x96:rate=12"
}

# make_small FILE: eight ranks on GPUs become two here, and the model of 100 million parameters a small one of as many tokens.
make_small() {
  local small='train.steps=2 schedule.warmup=1 validation.every=0 data.packs=2 model.compute=f32'
  small+=' model.num_layers=1 model.num_attention_heads=2 sampling.steps=4'
  sed -i "s/^mpirun -np 8 /mpirun -np 2 /; /^mpirun /s/\$/ $small/" "$1"
  grep -q 'train.steps=2' "$1"
  has_mpi || sed -i 's/^mpirun -np 2 //' "$1"
  ln -s "$VFM_ROOT/examples" examples
}

run_commands() {
  { echo 'set -euo pipefail' && cat "$1"; } >script
  run --separate-stderr bash script </dev/null
  echo "$stderr"
  [ "$status" -eq 0 ]
}

@test "README's first commands lead from videos to a generated clip" {
  awk '/^```/ { if (++fences == 2) exit; next } fences' "$VFM_ROOT/README.md" >commands
  [ "$(wc -l <commands)" -eq 3 ]
  grep -q '^find raw ' commands
  make_small commands
  run_commands commands
  [ "$(find videos -name '*.mp4' | wc -l)" -eq 1 ]
}

# bats test_tags=night
@test "README's recipes run in its order" {
  needs_mpi
  vfm-embed --version | grep -q FAISS || skip "built without FAISS"
  # Small models under the names of those that a user would have. CLIP stands in for SigLIP: its vectors of texts and
  # pictures have one width.
  cp -r "$VFM_ROOT/tests/golden/qwen/untied" Qwen2.5-VL-3B-Instruct
  cp -r "$VFM_ROOT/tests/golden/sentences/clip" siglip2-base
  sed 's/24/8/g' "$VFM_ROOT/tests/golden/picture_encoders/clip/preprocessor_config.json" >siglip2-base/preprocessor_config.json
  cp raw/a.mp4 raw/copy.mp4
  sed -n '/^## Recipes/,/^## Works with/p' "$VFM_ROOT/README.md" | sed '/^```/,/^```/!d; /^```/d' >commands
  local program
  for program in clip caption embed shard pack train generate; do grep -q "vfm-$program " commands; done
  make_small commands
  sed -i 's/^vfm-pack .*/& --size 64 --frames 17/' commands
  grep -q -- '--frames 17' commands
  run_commands commands
  # The copy was not cut.
  [ "$(jq -s 'map(select(.stays)) | length' signatures/sources.jsonl)" -eq 2 ]
  [ "$(records clips.jsonl | jq -s length)" -eq 2 ]
  [ -s look.html ] && [ -s videos.html ]
  [ "$(find videos -name '*.mp4' | wc -l)" -eq 2 ]
  [[ $output == *'"kind":"match"'* ]]
}

@test "a job of Slurm's array does its part of the list, and a video that cannot be used does not fail it" {
  echo 'no video' >raw/c.mp4
  printf '%s\n' raw/b.mp4 raw/a.mp4 raw/c.mp4 | vfm-clip list -o out -n 2 --shard-size 64KiB >list.jsonl
  job() { SLURM_ARRAY_TASK_ID=$1 SLURM_CPUS_PER_TASK=1 bash "$VFM_ROOT/examples/slurm/curate.sbatch" "${@:2}"; }
  for i in 0 1; do job $i vfm-clip -o out 2>>err; done
  grep -q "cannot open 'raw/c.mp4'\|raw/c.mp4" err
  for i in 0 1; do job $i vfm-caption out; done
  vfm-shard join out >joined.jsonl
  vfm-shard out -o dataset >dataset.jsonl
  [ "$(jq -s 'map(.samples // 0) | add' dataset.jsonl)" -eq 2 ]
  # A part is done once.
  job 0 vfm-clip -o out -v 2>again
  run ! grep 'cut, for' again
}

@test "jobs of Slurm ask for what they use" {
  for job in curate train; do
    grep -q '^#SBATCH --cpus-per-task=' "$VFM_ROOT/examples/slurm/$job.sbatch"
    grep -qE '^##?SBATCH --gpus-per-node=' "$VFM_ROOT/examples/slurm/$job.sbatch"
    grep -qE '^#SBATCH --ntasks(-per-node)?=' "$VFM_ROOT/examples/slurm/$job.sbatch"
  done
}
