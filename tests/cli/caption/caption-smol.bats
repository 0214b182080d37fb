#!/usr/bin/env bats
# vfm-caption --from model:DIR with SmolVLM and Idefics3: what is theirs beside caption-model.bats.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
load ../small_clips
bats_require_minimum_version 1.5.0

setup_file() { make_small_clips; }
setup() {
  setup_tools
  cp -r "$VFM_ROOT/tests/golden/smolvlm/smolvlm" model
  clip_shard a c1 c2 c3
}
ask() { vfm-caption --from "model:${MODEL:-model}" --max-tokens 6 "$@"; }

@test "SmolVLM2 captions clips and pictures, the same with any -j and alone, and a second run keeps them" {
  cp a.tar b.tar
  ask -j1 -o one a.tar b.tar >one.jsonl
  ask -j2 -o two b.tar a.tar >two.jsonl
  cmp one/a.caption.tar two/a.caption.tar
  cmp one/b.caption.tar two/b.caption.tar
  for key in c1 c2 c3; do
    [ -n "$(field one/a.caption.tar "$key" .caption)" ]
    [ "$(field one/a.caption.tar "$key" .caption_model.name)" = smolvlm ]
  done
  [ "$(field one/a.caption.tar c1 .caption)" != "$(field one/a.caption.tar c2 .caption)" ]
  # Frames a second, and how they are seen, are the folder's.
  [ "$(field one/a.caption.tar c1 '.caption_model | [.fps, .input.tile, .input.video.frames] | join(" ")')" = "1 16 6" ]
  run --separate-stderr ask -v -o one a.tar
  [[ "$stderr" == *"'one/a.caption.tar' is there already"* ]]
  clip_shard c c2
  ask --fps 1 c.tar >/dev/null
  [ "$(field c.caption.tar c2 .caption)" = "$(field one/a.caption.tar c2 .caption)" ]
  ask --fps 4 -o more c.tar >/dev/null
  [ "$(field more/c.caption.tar c2 .caption_model.fps)" = 4 ]
  [ "$(field more/c.caption.tar c2 .caption)" != "$(field c.caption.tar c2 .caption)" ]
}

# bats test_tags=night
@test "windows, further questions, schemas, drawing, bf16 and int8 are there with SmolVLM2, too" {
  echo '{"type":"object"}' >schema.json
  run --separate-stderr ask --window 16 --fps 3 --also short="In ten words." --also facts="Which?" --schema facts=schema.json a.tar
  [ "$status" -eq 1 ]
  [ "$(grep -c "no answer 'facts'" caption-errors.jsonl)" -eq 4 ]
  [ "$(field a.caption.tar c1 '.caption_windows | length')" -eq 2 ]
  [ "$(field a.caption.tar c1 '[.caption_windows[].caption] | join(" ")')" = "$(field a.caption.tar c1 .caption)" ]
  [ -n "$(field a.caption.tar c1 '.caption_windows[1].caption_short')" ]
  local out
  for out in first again; do ask --temperature 1.5 --seed 3 -o "$out" a.tar >/dev/null; done
  cmp first/a.caption.tar again/a.caption.tar
  ask --temperature 1.5 --seed 4 -o other a.tar >/dev/null
  [ "$(field first/a.caption.tar c1 .caption)" != "$(field other/a.caption.tar c1 .caption)" ]
  ask --compute bf16 --quantize int8 -o low a.tar >/dev/null
  [ "$(field low/a.caption.tar c1 '.caption_model | .compute + .weights')" = bf16int8 ]
}

@test "a folder's template without videos is not asked for them: SmolVLM's own message is" {
  ask -o own a.tar >/dev/null
  sed -i "s/{% elif line\['type'\] == 'video' %}{{ '<video>' }}//" model/chat_template.json
  run ! grep -q '<video>' model/chat_template.json
  ask -o other a.tar >/dev/null
  [ "$(field own/a.caption.tar c1 .caption)" = "$(field other/a.caption.tar c1 .caption)" ]
  [ "$(field own/a.caption.tar c1 .caption_model.words)" != "$(field other/a.caption.tar c1 .caption_model.words)" ]
}

@test "Idefics3 is shown the frames of a clip as pictures" {
  MODEL="$VFM_ROOT/tests/golden/smolvlm/idefics3" ask a.tar >/dev/null
  for key in c1 c2 c3; do
    [ -n "$(field a.caption.tar "$key" .caption)" ]
    [ "$(field a.caption.tar "$key" .caption_model.name)" = idefics3 ]
  done
}

@test "captions are scored by SmolVLM2" {
  local key
  for key in c1 c2 c3; do printf 'A red square.' >"src-a/$key.txt"; done
  pack_clips a
  vfm-caption --from existing:member a.tar >/dev/null
  vfm-caption score --model model a.tar >/dev/null
  tar -xOf a.score.tar c2.json | jq -e '.caption_tokens > 3 and .caption_gain != 0 and .caption_logprob < 0
    and .caption_scored_by.captioner.fps == 1'
}

@test "a clip that SmolVLM2 cannot be asked about costs itself" {
  head -c 600 "$CLIPS/c2.mp4" >src-a/c2.mp4
  pack_clips a
  run --separate-stderr ask a.tar
  [ "$status" -eq 1 ]
  [ "$(wc -l <caption-errors.jsonl)" -eq 1 ]
  [ -n "$(field a.caption.tar c1 .caption)" ]
  sed -i 's/"max_position_embeddings": 2048/"max_position_embeddings": 84/' model/config.json
  run --separate-stderr ask -o short a.tar
  # Its picture has 10 tiles, its clip 3 frames.
  grep -q "c3.*more than the 84 that the model takes" short/caption-errors.jsonl
}

# refused MESSAGE ARG...: before any work; the next time with a folder as it was.
refused() {
  refused_first "$1" ask "${@:2}"
  rm -rf model
  cp -r "$VFM_ROOT/tests/golden/smolvlm/smolvlm" model
}

@test "folders of SmolVLM that are not whole, and options that it has no use for, are refused before any work" {
  refused "always have 4 tokens: leave out --frame-tokens" --frame-tokens 9
  refused "has not 1 of <video>" --prompt "What is <video>?"
  head -c 20000 model/model.safetensors >cut
  mv cut model/model.safetensors
  refused "model.safetensors"
  sed -i 's/"intermediate_size": 40/"intermediate_size": 44/' model/config.json
  refused "layers.0.mlp.gate_proj.weight"
  sed -i 's/"hidden_size": 24/"hidden_size": 99999999/' model/config.json
  refused '"hidden_size" is 99999999'
  sed -i 's/"scale_factor": 2/"scale_factor": 3/' model/config.json
  refused "connector.modality_projection.proj.weight"
  sed -i 's/"model_type": "llama"/"model_type": "mistral"/' model/config.json
  refused "its language model is a mistral"
  echo '{"image_seq_len": 169}' >model/processor_config.json
  refused '"image_seq_len" is 169, and a tile has 4 tokens'
  sed -i 's/"longest_edge": 16/"longest_edge": 20/' model/preprocessor_config.json
  refused "do not have a multiple of 2 patches"
  sed -i 's/"<image>"/"<picture>"/' model/tokenizer.json
  refused "tokens of number 344"
  rm model/preprocessor_config.json
  refused "has no preprocessor_config.json"
  rm model/chat_template.json
  refused "has no chat template"
}
