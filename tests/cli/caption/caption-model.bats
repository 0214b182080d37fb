#!/usr/bin/env bats
# vfm-caption --from model:DIR: captions by a model, their columns, resume, faults.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
load ../small_clips
bats_require_minimum_version 1.5.0

setup_file() { make_small_clips; }
setup() {
  setup_tools
  cp -r "$VFM_ROOT/tests/golden/qwen/untied" model
}
# ask ARG...: with small frames and short texts.
ask() { vfm-caption --from "${FROM:-model:model}" --frame-tokens 4 --max-tokens "${MOST:-6}" "$@"; }

@test "a model captions clips and pictures, and the json says which model it was" {
  clip_shard a c1 c2 c3
  run --separate-stderr ask a.tar
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  local key
  for key in c1 c2 c3; do
    [ -n "$(member a.caption.tar "$key.txt")" ]
    [ "$(member a.caption.tar "$key.txt")" = "$(field a.caption.tar "$key" .caption)" ]
    [ "$(field a.caption.tar "$key" .caption_source)" = model ]
    [ "$(field a.caption.tar "$key" '.caption_model.hash | length')" -eq 32 ]
    [ "$(field a.caption.tar "$key" .caption_windows)" = null ]
  done
  [ "$(field a.caption.tar c1 .caption_model.name)" = qwen2_5_vl ]
  [ "$(field a.caption.tar c1 .caption_model.path)" = "$PWD/model" ]
  [ "$(field a.caption.tar c1 .caption_cut)" = true ]
  [ "$(field a.caption.tar c1 .frames)" -eq 36 ]
  [ "$(field a.caption.tar c1 .caption)" != "$(field a.caption.tar c2 .caption)" ]
  # A longer text begins with the shorter one's.
  MOST=2 ask -o short a.tar >/dev/null
  [[ "$(field a.caption.tar c1 .caption)" == "$(field short/a.caption.tar c1 .caption | tr -d '\357\277\275')"* ]]
  # Another question, another model, another answer.
  ask --prompt "Where?" -o other a.tar >/dev/null
  [ "$(field a.caption.tar c1 .caption)" != "$(field other/a.caption.tar c1 .caption)" ]
  [ "$(field other/a.caption.tar c1 .caption_model.prompt)" = "Where?" ]
  vfm-caption --from "model:$VFM_ROOT/tests/golden/qwen/tied" --frame-tokens 4 --max-tokens 6 -o tied a.tar >/dev/null
  [ "$(field a.caption.tar c1 .caption)" != "$(field tied/a.caption.tar c1 .caption)" ]
  [ "$(field a.caption.tar c1 .caption_model.hash)" != "$(field tied/a.caption.tar c1 .caption_model.hash)" ]
  ask --compute bf16 -o low a.tar >/dev/null
  [ "$(field low/a.caption.tar c1 .caption_model.compute)" = bf16 ]
  [ "$(field low/a.caption.tar c1 .caption_model.weights)" = null ]
  ask --quantize int8 -o coded a.tar >/dev/null
  [ "$(field coded/a.caption.tar c1 .caption_model.weights)" = int8 ]
  [ -n "$(field coded/a.caption.tar c1 .caption)" ]
}

# bats test_tags=night
@test "llama.cpp's files beside those of Hugging Face are a model, and its captions those of their numbers" {
  local golden=$VFM_ROOT/tests/golden/gguf
  clip_shard a c1 c2 c3
  rm model/*.safetensors model/model.safetensors.index.json
  cp "$golden"/model/* model/
  ask -j1 a.tar >/dev/null
  [ "$(field a.caption.tar c1 .caption_model.weights)" = "Q4_K Q6_K Q8_0" ]
  [ -n "$(field a.caption.tar c1 .caption)" ]
  ask -j2 -o two a.tar >/dev/null
  cmp a.caption.tar two/a.caption.tar
  # A dry run counts the work, of weights that lie in few bits and are not copied.
  ask --dry-run -o counted a.tar >counted.json
  jq -e --argjson files "$(cat model/*.gguf | wc -c)" '.model | .weights < $files and .weights > 0.8 * $files
    and .own_weights < 0.1 * $files and .flops.vision > 0 and .flops.prompt > .flops.text and .flops.text > 0' counted.json
  # Other bits, another model.
  printf '\001' | dd of=model/text-Q4_K_M-00002-of-00002.gguf bs=1 seek=51000 conv=notrunc status=none
  ask -o other a.tar >/dev/null
  [ "$(field a.caption.tar c1 .caption_model.hash)" != "$(field other/a.caption.tar c1 .caption_model.hash)" ]
  refused() {
    run --separate-stderr ask "${@:2}" -o never a.tar
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"$1"* ]] || { echo "$stderr"; false; }
    [ ! -e never ]
  }
  refused "is Q8_0: what is stored in few bits is not rounded again" --quantize int8
  cp model/mmproj-F16.gguf model/mmproj-again.gguf
  refused "several GGUF files of the tower that sees"
  truncate -s 40000 model/mmproj-again.gguf
  refused "/model/mmproj-again.gguf' lies beyond its end: it is cut off"
  rm model/mmproj-*.gguf
  refused "has no GGUF file of the tower that sees (mmproj)"
  cp "$golden/blocks.gguf" model/mmproj.gguf
  refused "mmproj.gguf' is of the architecture 'none': here qwen2vl works"
  cp "$golden/model/mmproj-F16.gguf" model/mmproj.gguf
  cp "$VFM_ROOT/tests/golden/qwen/tied/model.safetensors" model/
  refused "has weights twice, as GGUF files and as others"
  rm model/model.safetensors
  sed -i 's/"intermediate_size": 256/"intermediate_size": 512/' model/config.json
  refused "the model needs [512, 32]"
}

@test "captions do not depend on -j or on what else is captioned, and are kept by a second run" {
  clip_shard a c1 c2 c3
  clip_shard b c2
  clip_shard c c3 c1
  ask -j1 -o one a.tar b.tar c.tar >one.jsonl
  ask -j2 -o two c.tar b.tar a.tar >two.jsonl
  for shard in a b c; do cmp "one/$shard.caption.tar" "two/$shard.caption.tar"; done
  [ "$(field one/a.caption.tar c2 .caption)" = "$(field one/b.caption.tar c2 .caption)" ]
  cp -p one/a.caption.tar before.tar
  run --separate-stderr ask -v -o one a.tar
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"'one/a.caption.tar' is there already"* ]]
  # So they are where the folder is named otherwise, or was moved.
  mkdir below
  mv model below/model
  for folder in below/model "$PWD/below/model"; do
    FROM=model:$folder run --separate-stderr ask -v -o one a.tar
    [[ "$stderr" == *"'one/a.caption.tar' is there already"* ]]
  done
  mv below/model model
  # Another way to ask, or another model at the same place, is asked anew.
  MOST=5 ask -o one a.tar >/dev/null
  ! cmp -s one/a.caption.tar before.tar
  sed -i 's/helpful/useful/' model/tokenizer_config.json
  ask -o one a.tar >/dev/null
  [ "$(field one/a.caption.tar c1 .caption_model.words)" != "$(field two/a.caption.tar c1 .caption_model.words)" ]
}

@test "further questions are answered beside the caption, of each window, and change nothing of it" {
  clip_shard a c1 c2
  ask --window 16 -o alone a.tar >/dev/null
  ask --window 16 --also short="Say it in ten words." a.tar >out.jsonl
  [ "$(field a.caption.tar c1 .caption)" = "$(field alone/a.caption.tar c1 .caption)" ]
  [ "$(field a.caption.tar c1 '[.caption_windows[].caption_short] | join(" ")')" = "$(field a.caption.tar c1 .caption_short)" ]
  [ "$(field a.caption.tar c1 '.caption_windows[0].also_cut[0]')" = short ]
  [ "$(field a.caption.tar c2 '.caption_also_cut[0]')" = short ]
  [ "$(field a.caption.tar c2 .caption_short)" != "$(field a.caption.tar c2 .caption)" ]
  [ "$(field a.caption.tar c1 .caption_model.also.short.prompt)" = "Say it in ten words." ]
  [ "$(records <out.jsonl | jq .caption_cut)" -eq 6 ]
  # It is the answer to that prompt.
  ask --prompt "Say it in ten words." -o short a.tar >/dev/null
  [ "$(field a.caption.tar c2 .caption_short)" = "$(field short/a.caption.tar c2 .caption)" ]
  # Another question is another column.
  run --separate-stderr ask --window 16 --also short="Say it in nine words." -v a.tar
  [[ "$stderr" != *"is there already"* ]] || false
}

@test "an answer that does not fit its schema costs its field, and is drawn again with other numbers" {
  clip_shard a c1 c2
  echo '{"type":"object"}' >schema.json
  run --separate-stderr ask --also facts="Which colours?" --schema facts=schema.json a.tar
  [ "$status" -eq 1 ]
  [ "$(wc -l <caption-errors.jsonl)" -eq 2 ]
  grep -q "c1 of 'a.tar'.*no answer 'facts': the answer" caption-errors.jsonl
  [ "$(jq -r .code caption-errors.jsonl | sort -u)" = answer ]
  [ "$(field a.caption.tar c1 '.caption_source + (.caption_facts | tostring)')" = modelnull ]
  run --separate-stderr ask --also facts="Which colours?" --schema facts=schema.json --temperature 1 a.tar
  grep -q "c2 of 'a.tar'.*no answer 'facts', asked 3 times" caption-errors.jsonl
}

# bats test_tags=night
@test "what is drawn is drawn again by the same seed alone" {
  clip_shard a c1
  for out in first again; do ask --temperature 1.5 --top-p 0.95 --seed 3 -o "$out" a.tar >/dev/null; done
  cmp first/a.caption.tar again/a.caption.tar
  ask --temperature 1.5 --top-p 0.95 --seed 4 -o other a.tar >/dev/null
  [ "$(field first/a.caption.tar c1 .caption)" != "$(field other/a.caption.tar c1 .caption)" ]
  [ "$(field first/a.caption.tar c1 .caption_model.seed)" -eq 3 ]
}

@test "a dry run tells what the model needs and does for a clip" {
  clip_shard a c1
  run --separate-stderr ask --dry-run a.tar
  [ "$status" -eq 0 ]
  jq -e '.model | .clips == 1 and .together == 8 and .text_tokens == 6
    and .keys_values == (.prompt_tokens + 6) * 2 * 2 * 2 * 6 * 4 and .weights > 70000 and .own_weights < .weights
    and .program > 10000000 and .memory == .own_weights + .working + 8 * (.keys_values + .frames) + .program
    and .flops.vision > 0 and .flops.prompt > .flops.text and .flops.text > 0' <<<"$output"
  [[ "$stderr" == *"a clip of the sample costs it"* ]]
  [ ! -e a.caption.tar ]
  # Of a further question the words are read, and an answer written; the clip is looked at and read once.
  jq .model <<<"$output" >alone
  run --separate-stderr ask --also short="Say it in ten words." --quantize int8 --dry-run a.tar
  jq -e --slurpfile alone alone '.model | .flops.vision == $alone[0].flops.vision
    and .flops.text > 1.5 * $alone[0].flops.text
    and .flops.prompt > $alone[0].flops.prompt and .flops.prompt < 1.5 * $alone[0].flops.prompt
    and .own_weights > $alone[0].own_weights + 20000' <<<"$output"
  vfm-caption --dry-run a.tar | jq -e 'has("model") | not'
}

@test "a clip that cannot be asked about costs itself, and the next source is asked" {
  clip_shard good c1 c2 c3
  ask good.tar >/dev/null
  head -c 600 "$CLIPS/c2.mp4" >src-good/c2.mp4
  quiet_ffmpeg -f lavfi -i "color=red:size=8x2000" -frames:v 1 src-good/c4.png
  tar --format=ustar --sort=name -C src-good -cf a.tar .
  FROM=model:model,builtin:measure run --separate-stderr ask a.tar
  [ "$status" -eq 1 ]
  for key in c1 c3; do
    [ "$(field a.caption.tar "$key" .caption)" = "$(field good.caption.tar "$key" .caption)" ]
  done
  [ "$(field a.caption.tar c4 .caption_source)" = builtin:measure ]
  [ "$(field a.caption.tar c4 .caption_model)" = null ]
  grep -q "c2 of" caption-errors.jsonl
  grep -q "c4 of.*over 200 times as long as wide" caption-errors.jsonl
  [ "$(wc -l <caption-errors.jsonl)" -eq 2 ]
}

@test "a prompt and a text that the model has no room for are an error of the clip" {
  clip_shard a c1
  sed -i 's/"max_position_embeddings": 32768/"max_position_embeddings": 60/' model/config.json
  run --separate-stderr ask a.tar
  [ "$status" -eq 1 ]
  grep -q "more than the 60 that the model takes" caption-errors.jsonl
  [ "$(field a.caption.tar c1 .caption_source)" = none ]
}

# refused MESSAGE ARG...: before any work; the next time with a folder as it was.
refused() {
  refused_first "$1" ask "${@:2}"
  rm -rf model
  cp -r "$VFM_ROOT/tests/golden/qwen/untied" model
}

@test "folders that are no such model are refused before any work" {
  clip_shard a c2
  FROM=model:nowhere refused "no such model folder: 'nowhere'"
  FROM="model:$VFM_ROOT/tests/golden/picture_encoders/clip" refused "holds a model of type clip"
  FROM=model:model,model:other refused "names two models"
  rm model/tokenizer.json
  refused "there is no"
  rm model/tokenizer_config.json
  refused "has no chat template"
  rm model/preprocessor_config.json
  refused "preprocessor_config.json"
  head -c 20000 model/model-00002-of-00002.safetensors >cut
  mv cut model/model-00002-of-00002.safetensors
  refused "model-00002-of-00002.safetensors"
  sed -i 's/"intermediate_size": 40/"intermediate_size": 44/' model/config.json
  refused "layers.0.mlp.gate_proj.weight"
  sed -i 's/"hidden_size": 24/"hidden_size": 99999999/' model/config.json
  refused '"hidden_size" is 99999999'
  sed -i 's/<|video_pad|>/seen/' model/tokenizer_config.json
  refused "has not one place for the video"
  refused "has not one place for the video" --prompt "What is <|video_pad|>?"
}

@test "options of models without a model, and values that cannot be, are refused" {
  clip_shard a c2
  run --separate-stderr vfm-caption --prompt x a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"--prompt is about a model; name one with --from model:DIR or --endpoint"* ]]
  for option in "--fps 2" "--window 64" "--frame-tokens 9" "--max-tokens 9" "--temperature 1" "--top-p 0.5" \
    "--repetition-penalty 1" "--seed 1" "--compute f32" "--quantize int8"; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-caption $option a.tar
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"${option% *} is about a model; name its folder with --from model:DIR"* ]]
  done
  for option in "--fps 0" "--window 3" "--frame-tokens 0" "--max-tokens 0" "--temperature -1" "--top-p 0" "--compute f16" "--quantize e4m3" \
    "--seed -1"; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-caption --from model:model $option a.tar
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"${option% *}: "* ]]
  done
}

@test "a GPU that is asked for and not there is an error before any work, and --device is about a model" {
  clip_shard a c1
  if vfm-train --version | grep -q 'no usable GPU\|without CUDA'; then
    run --separate-stderr ask --device cuda a.tar
    [ "$status" -eq 2 ]
    [[ $stderr == "vfm-caption: --device cuda: there is no usable GPU: "*"; compute on the CPU with --device cpu" ]]
    run --separate-stderr vfm-caption score --model model --device cuda a.tar
    [ "$status" -eq 2 ]
    [[ $stderr == *'no usable GPU'* ]]
  fi
  run --separate-stderr vfm-caption --device cpu --from builtin:measure a.tar
  [ "$status" -eq 2 ]
  [[ $stderr == *'--device is about a model; name its folder with --from model:DIR or --refine'* ]]
  run --separate-stderr vfm-caption score --device cpu a.tar
  [ "$status" -eq 2 ]
  [[ $stderr == *'--device is about a model; name its folder with --model or --clip'* ]]
  [ ! -e a.caption.tar ]
  # What the CPU writes says nothing of a device.
  ask --device cpu a.tar >/dev/null
  [ "$(field a.caption.tar c1 .caption_model.device)" = null ]
  [ "$(field a.caption.tar c1 .caption_model.compute)" = f32 ]
}
