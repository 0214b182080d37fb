#!/usr/bin/env bats
# The examples of the manual are commands that run, in the order of the page, in a folder with two videos.
# SPDX-License-Identifier: Apache-2.0

load ../cli/helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  make_shots a.mp4
  make_video b.mp4 3 "mandelbrot=size=96x64:rate=12"
}

setup() {
  setup_tools
  cp "$BATS_FILE_TMPDIR"/[ab].mp4 .
  echo "a caption" >a.txt
  cp "$VFM_ROOT"/examples/recipes/*.yaml .
  cp -r "$VFM_ROOT/tests/golden/t5/v1_0" t5-11b
  # CLIP stands in for SigLIP: of the small models it has vectors of one width for texts and pictures.
  cp -r "$VFM_ROOT/tests/golden/sentences/clip" siglip-base-patch16-224
  sed 's/24/8/g' "$VFM_ROOT/tests/golden/picture_encoders/clip/preprocessor_config.json" \
    >siglip-base-patch16-224/preprocessor_config.json
  cp -r "$VFM_ROOT/tests/golden/sentences/bert" all-MiniLM-L6-v2
  cp -r "$VFM_ROOT/tests/golden/sentences/bert" e5-small-v2
  cp -r siglip-base-patch16-224 clip-l14
  cp "$VFM_ROOT/tests/golden/aesthetic_heads/mlp.pth" l14.pth
  cp -r "$VFM_ROOT/tests/golden/picture_encoders/dinov2" dinov2-base
  cp -r "$VFM_ROOT/tests/golden/video_encoders/vjepa2" vjepa2-vitl-fpc64-256
  cp -r "$VFM_ROOT/tests/golden/transnet/model" transnetv2
  cp -r "$VFM_ROOT/tests/golden/qwen/untied" Qwen2.5-VL-3B-Instruct
  cp -r "$VFM_ROOT/tests/golden/smolvlm/smolvlm" SmolVLM2-500M-Video-Instruct
  cp -r "$VFM_ROOT/tests/golden/qwen_text/untied" Qwen2.5-7B-Instruct
}

has_faiss() { vfm-embed --version | grep -q FAISS; }

# examples PAGE: the indented lines of its EXAMPLES section, scdoc escapes undone.
examples() {
  sed -n '/^# EXAMPLES/,/^# SEE ALSO/p' "$VFM_ROOT/man/$1.scd" | sed -nE 's/^\t//p' | sed -E 's/\\(.)/\1/g'
}

run_page() {
  examples "$1" >script
  [ -s script ]
  run bash -euo pipefail script
  echo "$output"
  [ "$status" -eq 0 ]
}

# A small model for the pages that need one.
prepare() {
  vfm-clip a.mp4 b.mp4 -o clips | vfm-caption | vfm-embed >embedded.jsonl
  vfm-shard embedded.jsonl -o dataset >dataset.jsonl
  vfm-pack dataset.jsonl --size 64 --frames 17 -o latents >latents.jsonl
}

@test "vfm-clip(1)" { run_page vfm-clip.1; }
@test "vfm-clip-shots(1)" { run_page vfm-clip-shots.1; }
@test "vfm-clip-unique(1)" { run_page vfm-clip-unique.1; }
@test "vfm-caption(1)" { run_page vfm-caption.1; }
@test "vfm-caption-score(1)" { run_page vfm-caption-score.1; }
@test "vfm-embed(1)" { run_page vfm-embed.1; }
@test "vfm-embed-search(1)" {
  has_faiss || skip "built without FAISS"
  run_page vfm-embed-search.1
}
@test "vfm-embed-index(1)" {
  has_faiss || skip "built without FAISS"
  run_page vfm-embed-index.1
}
@test "vfm-shard(1)" { run_page vfm-shard.1; }
@test "vfm-shard-report(1)" { run_page vfm-shard-report.1; }
# bats test_tags=night
@test "vfm-pack(1)" {
  mkdir Cosmos-1.0-Diffusion-7B-Text2World
  cp -r "$VFM_ROOT/tests/golden/cosmos_vae" Cosmos-1.0-Diffusion-7B-Text2World/vae
  echo '{"_class_name":"CosmosTextToWorldPipeline","vae":["diffusers","AutoencoderKLCosmos"]}' \
    >Cosmos-1.0-Diffusion-7B-Text2World/model_index.json
  run_page vfm-pack.1
}
@test "vfm-pack-plan(1)" { run_page vfm-pack-plan.1; }
# bats test_tags=night
@test "vfm-train(1), vfm-train-export(1), vfm-train-recipe(1) and vfm-train-why(1)" {
  run_page vfm-train.1
  run_page vfm-train-export.1
  run_page vfm-train-recipe.1
  run_page vfm-train-why.1
}
# bats test_tags=night
@test "vfm-train-check(1)" {
  needs_mpi
  run_page vfm-train-check.1
}
@test "vfm-train-cost(1)" { run_page vfm-train-cost.1; }
# bats test_tags=night
@test "vfm-train-plan(1)" { run_page vfm-train-plan.1; }
# bats test_tags=night
@test "vfm-train-calibrate(1)" {
  needs_mpi
  run_page vfm-train-calibrate.1
}
# bats test_tags=night
@test "vfm-generate(1), vfm-generate-decode(1) and vfm-generate-cost(1)" {
  prepare
  vfm-train quickstart.yaml train.steps=2 --data latents -o run >/dev/null
  run_page vfm-generate.1
  rm -r latents videos
  run_page vfm-generate-decode.1
  run_page vfm-generate-cost.1
}
