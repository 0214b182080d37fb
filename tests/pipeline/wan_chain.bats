#!/usr/bin/env bats
# From clips to clips with the parts of a Wan: packed by its VAE, trained by flow matching, generated, exported.
# SPDX-License-Identifier: Apache-2.0

# bats file_tags=night
bats_require_minimum_version 1.5.0

setup() {
  load ../cli/helpers
  setup_tools
  export OMP_NUM_THREADS=1  # small products
}

# frames CLIP...: hashes of their pixels.
frames() {
  local clip
  for clip in "$@"; do ffmpeg -v error -nostdin -i "$clip" -f rawvideo -pix_fmt rgb24 - | sha256sum; done
}

@test "Wan: clips become latents of its VAE, a model, clips, and the same clips of an export" {
  local golden=$VFM_ROOT/tests/golden
  cp -r "$golden/wan_pipeline/t2v" wan
  rm -r wan/transformer
  cp -r "$golden/t5/umt5" wan/text_encoder
  cp -r "$golden/t5/v1_0/tokenizer" wan
  rm wan/text_encoder/spiece.model
  make_video a.mp4 3 "testsrc2=size=64x64:rate=12"
  make_video b.mp4 3 "mandelbrot=size=64x64:rate=12"
  vfm-clip --max-length 1s a.mp4 b.mp4 -o clips | vfm-caption | vfm-embed --text wan | vfm-shard -o dataset |
    vfm-pack --tokenizer wan --size 32 --frames 9 -o latents >packed.jsonl
  cat >wan.yaml <<'END'
model: {type: wan, num_attention_heads: 2, attention_head_dim: 12, num_layers: 2, ffn_dim: 48, freq_dim: 32}
diffusion: {shift: 3, text_dropout: 0.1}
data: {tokens: 64, packs: 4}
optimizer: {lr: 0.004}
schedule: {warmup: 5, shape: constant}
validation: {every: 0}
train: {steps: 60, log_every: 20}
END
  vfm-train wan.yaml --data latents -o run >/dev/null
  jq -s -e 'map(.loss | values) | last < 0.9 * first' run/metrics.jsonl
  jq -e '.tokenizer.name == "AutoencoderKLWan" and .text_encoder.name == "umt5" and .sampling == {process: "flow", shift: 3}
    and .latent_scale.mean == [-0.3, 0.2, 0.05, 0.4]' run/checkpoints/step-00000060/train.json

  call=(--steps 3 --guidance 2 --size 32x32 --frames 9 --encoder ffv1)
  line='{"prompt": "a moving picture", "name": "clip"}'
  vfm-generate --model run "${call[@]}" -o out <<<"$line" >out.jsonl
  # Begun in another process, and decoded by another one.
  vfm-generate --model run "${call[@]}" --latents-only -o kept <<<"$line" >/dev/null
  vfm-generate decode --encoder ffv1 -o decoded kept/clip.latents.safetensors >/dev/null
  cmp out/clip.mp4 decoded/clip.mp4
  # The weights and the text matter.
  vfm-generate --model run --no-ema "${call[@]}" -o plain <<<"$line" >/dev/null
  vfm-generate --model run "${call[@]}" -o other <<<"${line/moving/still}" >/dev/null
  [ "$(frames out/clip.mp4 plain/clip.mp4 other/clip.mp4 | sort -u | wc -l)" -eq 3 ]

  vfm-train export run -o exported >/dev/null
  vfm-generate --model exported "${call[@]}" -o again <<<"$line" >again.jsonl
  diff <(records out.jsonl | jq .shift) <(records again.jsonl | jq .shift)
  [ "$(frames out/clip.mp4)" = "$(frames again/clip.mp4)" ]
}
