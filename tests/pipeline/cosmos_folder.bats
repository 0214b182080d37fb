#!/usr/bin/env bats
# A whole Cosmos-1.0 pipeline folder of diffusers: from a prompt to the frames that diffusers makes.
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0

# assemble NAME: tests/golden/NAME as a whole folder, cosmos.
assemble() {
  local golden=$VFM_ROOT/tests/golden
  rm -rf cosmos
  cp -r "$golden/$1" cosmos
  cp -r "$golden/cosmos_vae" cosmos/vae
  cp -r "$golden/t5/v1_0/text_encoder" "$golden/t5/v1_0/tokenizer" cosmos
}

setup() {
  load ../cli/helpers
  setup_tools
  assemble cosmos_pipeline
  # What scripts/golden/cosmos_pipeline.py asked of diffusers.
  call=(--negative blurry --size 48x32 --frames 5 --steps 5 --guidance 3 --device cpu)
  prompt='{"prompt":"a red fox crosses a snowy road","name":"fox","fps":30,"noise":"cosmos/noise.npy"}'
}

# apart CLIP: the largest difference to diffusers' frames, of 255.
apart() {
  ffmpeg -v error -nostdin -i "$1" -f rawvideo -pix_fmt rgb24 -y frames.rgb
  cmp -l frames.rgb cosmos/frames.rgb | awk '
    function octal(s,  v, i) { v = 0; for (i = 1; i <= length(s); ++i) v = v * 8 + substr(s, i, 1); return v }
    { d = octal($2) - octal($3); if (d < 0) d = -d; if (d > most) most = d } END { print most + 0 }'
}

@test "the library's products and ours share two threads" {
  # Products of the tokenizer's attention that oneDNN splits over threads, with barriers between.
  vfm-generate --model cosmos --device cpu --size 192x128 --frames 9 --steps 2 -j1 -q -o - a >one.mp4
  vfm-generate --model cosmos --device cpu --size 192x128 --frames 9 --steps 2 -j2 -q -o - a >two.mp4
  cmp one.mp4 two.mp4
}

@test "the frames of diffusers' pipeline, to one level of 255" {
  vfm-generate --model cosmos "${call[@]}" --encoder ffv1 -o clips <<<"$prompt" >record.json
  [ "$(jq -r .sampler <(records record.json))" = edm-euler ]
  # diffusers cuts to 8 bits on the way, vfm rounds.
  [ "$(apart clips/fox.mp4)" -le 1 ]
  [ "$(stat -c %s frames.rgb)" -eq "$(stat -c %s cosmos/frames.rgb)" ]
  # Another prompt makes another clip, so the text is not without effect.
  vfm-generate --model cosmos "${call[@]}" --encoder ffv1 -o clips \
    <<<'{"prompt":"a blue boat","name":"boat","fps":30,"noise":"cosmos/noise.npy"}' >/dev/null
  [ "$(apart clips/boat.mp4)" -gt 20 ]
}

@test "video to world: the frames of diffusers' pipeline, which goes on from given ones" {
  ffmpeg -v error -f rawvideo -pix_fmt rgb24 -s 48x32 -r 30 -i cosmos/frames.rgb -c:v ffv1 -pix_fmt bgr0 given.mkv
  assemble cosmos_v2w
  local prompt='{"prompt":"a red fox crosses a snowy road","name":"fox","fps":30,"noise":"cosmos/noise.npy",
    "frames":9,"condition":"given.mkv","condition_frames":5,"augment_sigma":0}'
  vfm-generate --model cosmos "${call[@]}" --encoder ffv1 -o clips < <(tr -d '\n' <<<"$prompt") >record.json
  jq -e '.condition_frames == 5 and .sampler == "edm-euler"' <(records record.json)
  [ "$(apart clips/fox.mp4)" -le 1 ]
  [ "$(stat -c %s frames.rgb)" -eq "$(stat -c %s cosmos/frames.rgb)" ]
  # Given other frames it goes on otherwise.
  ffmpeg -v error -i given.mkv -vf negate -c:v ffv1 -pix_fmt bgr0 negative.mkv
  vfm-generate --model cosmos "${call[@]}" --encoder ffv1 -o other < <(tr -d '\n' <<<"${prompt/given/negative}") >/dev/null
  [ "$(apart other/fox.mp4)" -gt 20 ]
}

@test "fine-tuning: a run that has learnt nothing yet makes the clips of what it began from" {
  ffmpeg -v error -f rawvideo -pix_fmt rgb24 -s 48x32 -r 30 -i cosmos/frames.rgb -c:v ffv1 -pix_fmt bgr0 given.mkv
  assemble cosmos_v2w
  ffmpeg -v error -f lavfi -i testsrc=s=96x64:r=30:d=1 -c:v libx264 -pix_fmt yuv420p drawn.mp4
  vfm-clip drawn.mp4 --min-length 0.3s -o clips | vfm-caption | vfm-embed --text cosmos --device cpu |
    vfm-shard -o dataset | vfm-pack --size 39 --frames 9 --tokenizer cosmos --device cpu -o latents >latents.jsonl
  # Updates too small to change a float.
  cat >still.yaml <<'END'
optimizer: {lr: 1e-30, weight_decay: 0}
schedule: {warmup: 0}
ema: {mode: "off"}
validation: {every: 0}
train: {steps: 2}
END
  local prompt
  prompt=$(tr -d '\n' <<<'{"prompt":"a red fox crosses a snowy road","name":"fox","fps":30,"noise":"cosmos/noise.npy",
    "frames":9,"condition":"given.mkv","condition_frames":5}')
  vfm-generate --model cosmos "${call[@]}" -o folder <<<"$prompt" >/dev/null
  vfm-train still.yaml --init cosmos --data latents -o run --device cpu
  vfm-generate --model run "${call[@]}" -o tuned <<<"$prompt" >/dev/null
  cmp folder/fox.mp4 tuned/fox.mp4
  # No longer are clips than those of the fine-tuning, for the positions.
  jq -se '.[0].max_size == (.[1].trained | [.frames, .height, .width])' cosmos/transformer/config.json \
    run/checkpoints/*/train.json
  # The zeros after a text are part of that.
  vfm-train still.yaml --init cosmos --data latents -o bare --device cpu diffusion.text_padding=0
  vfm-generate --model bare "${call[@]}" -o bare <<<"$prompt" >/dev/null
  run cmp folder/fox.mp4 bare/fox.mp4
  [ "$status" -eq 1 ]
}

# bats test_tags=night
@test "fine-tuning: the same without statistics of latents, without a negative prompt, and of longer clips" {
  tr -d '\n' <cosmos/vae/config.json | sed 's/"latents_\(mean\|std\)": *\[[^]]*\]/"latents_\1": null/g' >config.json
  mv config.json cosmos/vae/
  jq -e '.latents_mean == null and .latents_std == null' cosmos/vae/config.json
  ffmpeg -v error -f lavfi -i testsrc=s=96x64:r=30:d=1 -c:v libx264 -pix_fmt yuv420p drawn.mp4
  vfm-clip drawn.mp4 --min-length 0.3s -o clips | vfm-caption | vfm-embed --text cosmos --device cpu |
    vfm-shard -o dataset | vfm-pack --size 39 --frames 5 --tokenizer cosmos --device cpu -o latents >latents.jsonl
  cat >still.yaml <<'END'
optimizer: {lr: 1e-30, weight_decay: 0}
diffusion: {text_dropout: 0}
schedule: {warmup: 0}
ema: {mode: "off"}
validation: {every: 0}
train: {steps: 2}
END
  local prompt='{"prompt":"a red fox crosses a snowy road","name":"fox"}'
  local larger=(--size 48x48 --frames 9 --fps 30 --steps 3 --guidance 3 --device cpu)
  vfm-generate --model cosmos "${larger[@]}" -o folder <<<"$prompt" >/dev/null
  for how in full lora.rank=2; do
    vfm-train still.yaml ${how#full} --init cosmos --data latents -o $how --device cpu >/dev/null 2>said
    [ ! -s said ]
    vfm-generate --model $how "${larger[@]}" -o tuned-$how <<<"$prompt" >/dev/null 2>said
    [ ! -s said ]
    cmp folder/fox.mp4 tuned-$how/fox.mp4
  done
  # The scale is the model's, and goes on to what begins from the run.
  jq -e '.mean[0] != 0' latents/latents.json
  vfm-train still.yaml --init full --data latents -o again --device cpu >/dev/null
  jq -e '.latent_scale | (.mean | unique) == [0] and (.std | unique) == [1]' again/checkpoints/*/train.json
  run --separate-stderr vfm-train still.yaml diffusion.whitening=0.5 --init full --data latents -o white
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"'diffusion.whitening' is 0.5, but the model to begin from sees latents in a scale of its own"* ]]
  # Latents and texts of other parts are reported, by the dry run too; of a transformer alone nothing is known.
  cp -r cosmos other
  printf '\1' | dd of=other/vae/diffusion_pytorch_model.safetensors bs=1 seek=80000 conv=notrunc status=none
  vfm-train still.yaml --init other --data latents -o moved --device cpu >/dev/null 2>said
  grep -q "the latents are of another tokenizer, AutoencoderKLCosmos, than those of 'other'.*'vfm-pack --tokenizer other'" said
  [ "$(wc -l <said)" -eq 1 ]
  vfm-train cost still.yaml --init other --data latents --device cpu 2>&1 >/dev/null | grep -qFf said
  printf '\1' | dd of=cosmos/text_encoder/model.safetensors bs=1 seek=20000 conv=notrunc status=none
  vfm-train still.yaml --init cosmos --data latents -o worded --device cpu >/dev/null 2>said
  grep -q "the texts are of another encoder, t5, than those of 'cosmos', t5: .*'vfm-embed --text cosmos'" said
  [ "$(wc -l <said)" -eq 1 ]
  vfm-train still.yaml --init cosmos/transformer --data latents -o alone --device cpu >/dev/null 2>said
  [ ! -s said ]
}

# bats test_tags=night
@test "a run's export is a pipeline that makes the clips of the run" {
  ffmpeg -v error -f lavfi -i testsrc=s=96x64:r=30:d=1 -c:v libx264 -pix_fmt yuv420p drawn.mp4
  vfm-clip drawn.mp4 --min-length 0.3s -o clips | vfm-caption | vfm-embed --text cosmos --device cpu |
    vfm-shard -o dataset | vfm-pack --size 39 --frames 5 --tokenizer cosmos --device cpu -o latents >latents.jsonl
  printf 'optimizer: {lr: 0.001}\nschedule: {warmup: 1}\nvalidation: {every: 0}\ntrain: {steps: 4}\n' >tune.yaml
  vfm-train tune.yaml --init cosmos --data latents -o run --device cpu >/dev/null
  vfm-generate --model run "${call[@]}" -o of-run <<<"$prompt" >/dev/null
  for parts in link copy; do
    vfm-train export run -o $parts --parts $parts >record 2>words
    [ ! -s words ]
    [ "$(jq -r .pipeline <(records record))" = CosmosTextToWorldPipeline ]
    vfm-generate --model $parts "${call[@]}" -o of-$parts <<<"$prompt" >/dev/null
    cmp of-run/fox.mp4 of-$parts/fox.mp4
  done
  [ "$(find link -type l | wc -l)" -gt 0 ]
  [ "$(find copy -type l | wc -l)" -eq 0 ]
  jq -e 'del(._diffusers_version) == input' cosmos/scheduler/scheduler_config.json copy/scheduler/scheduler_config.json
  # Trained with texts that are not filled up it is so, too; diffusers would fill them up, which is said.
  vfm-train tune.yaml --init cosmos --data latents -o short --device cpu diffusion.text_padding=0 >/dev/null
  vfm-train export short -o short-link --parts link >record 2>words
  grep -q "this model was trained without such: its clips will not be those of vfm-generate" words
  jq -e '.text_padding == 0 and .encode_empty == false' short-link/transformer/config.json
  vfm-generate --model short "${call[@]}" -o of-short <<<"$prompt" >/dev/null
  vfm-generate --model short-link "${call[@]}" -o of-short-link <<<"$prompt" >/dev/null
  cmp of-short/fox.mp4 of-short-link/fox.mp4
  run ! cmp -s of-short/fox.mp4 of-run/fox.mp4
  # The parts are those of the run, wherever they are now.
  mv cosmos moved
  run vfm-train export run -o lost
  [ "$status" -eq 2 ]
  [[ "$output" == *"give its folder with --tokenizer DIR, or write the network alone with --parts none"* ]]
  vfm-train export run -o found --tokenizer moved --text-encoder moved >/dev/null
  printf '\1' | dd of=moved/vae/diffusion_pytorch_model.safetensors bs=1 seek=80000 conv=notrunc status=none
  run vfm-train export run -o other --tokenizer moved --text-encoder moved
  [ "$status" -eq 2 ]
  [[ "$output" == *"holds another tokenizer"* ]]
  [ ! -e lost ]
  [ ! -e other ]
}

# bats test_tags=night
@test "a pipeline of flow matching is trained on, and so is its export" {
  ffmpeg -v error -f lavfi -i testsrc=s=96x64:r=30:d=1 -c:v libx264 -pix_fmt yuv420p drawn.mp4
  vfm-clip drawn.mp4 --min-length 0.3s -o clips | vfm-caption | vfm-embed --text cosmos --device cpu |
    vfm-shard -o dataset | vfm-pack --size 39 --frames 5 --tokenizer cosmos --device cpu -o latents >latents.jsonl
  printf 'optimizer: {lr: 0.001}\nschedule: {warmup: 1}\nvalidation: {every: 0}\ntrain: {steps: 4}\n' >tune.yaml
  echo '{"_class_name": "FlowMatchEulerDiscreteScheduler", "num_train_timesteps": 1000, "shift": 3.0}' \
    >cosmos/scheduler/scheduler_config.json
  vfm-train tune.yaml --init cosmos --data latents -o run --device cpu >/dev/null
  jq -e '.sampling == {steps: 36, guidance: 7, process: "flow", sampler: "flow", shift: 3}
    and .recipe.diffusion.process == "flow" and .recipe.diffusion.shift == 3' run/checkpoints/*/train.json
  vfm-generate --model run "${call[@]}" -o of-run <<<"$prompt" >/dev/null
  vfm-train export run -o copy --parts copy 2>words >/dev/null
  grep -q "CosmosTextToWorldPipeline samples models of 'edm', and this one is of 'flow'" words
  cmp <(jq -S . cosmos/scheduler/scheduler_config.json) <(jq -S . copy/scheduler/scheduler_config.json)
  vfm-generate --model copy "${call[@]}" -o of-copy <<<"$prompt" >/dev/null
  cmp of-run/fox.mp4 of-copy/fox.mp4
  # The export has the weights that are sampled with: a step of nothing leaves them as they are.
  vfm-train tune.yaml --init copy --data latents -o more --device cpu train.steps=1 optimizer.lr=1e-30 \
    optimizer.weight_decay=0 >/dev/null
  cmp more/checkpoints/*/model/diffusion_pytorch_model.safetensors copy/transformer/diffusion_pytorch_model.safetensors
  local first='.latent_scale | [.mean[0], .std[0]]'
  cmp <(jq -c "$first" run/checkpoints/*/train.json) <(jq -c "$first" more/checkpoints/*/train.json)
  jq -e '.sampling.process == "flow" and .sampling.shift == 3' more/checkpoints/*/train.json
}

@test "denoising and decoding as two stages of a pipe give the same bytes" {
  vfm-generate --model cosmos "${call[@]}" -o whole <<<"$prompt" >/dev/null
  vfm-generate --model cosmos "${call[@]}" --latents-only -o latents <<<"$prompt" |
    vfm-generate decode --model cosmos --device cpu -o clips >/dev/null
  cmp whole/fox.mp4 clips/fox.mp4
}

# bats test_tags=night
@test "--compute reaches the tokenizer, in one stage and in two, and the record tells it" {
  of() { jq -c '[.compute, .decoded_in]' <(records "$1"); }
  vfm-generate --model cosmos "${call[@]}" -o whole <<<"$prompt" >whole.jsonl
  [ "$(of whole.jsonl)" = '[null,null]' ]
  vfm-generate --model cosmos "${call[@]}" --compute bf16 -o low <<<"$prompt" >low.jsonl
  [ "$(of low.jsonl)" = '["bf16","bf16"]' ]
  vfm-generate --model cosmos "${call[@]}" --compute bf16 --latents-only -o latents <<<"$prompt" >latents.jsonl
  vfm-generate decode --model cosmos --device cpu --compute bf16 -o clips <latents.jsonl >clips.jsonl
  cmp low/fox.mp4 clips/fox.mp4
  [ "$(jq .address <(records low.jsonl))" = "$(jq .address <(records clips.jsonl))" ]
  vfm-generate decode --model cosmos --device cpu -o others <latents.jsonl >others.jsonl
  [ "$(of others.jsonl)" = '["bf16",null]' ]
  run ! cmp -s low/fox.mp4 others/fox.mp4
  [ "$(jq .address <(records low.jsonl))" != "$(jq .address <(records others.jsonl))" ]
  # A record of bf16 asks for the same clip.
  vfm-generate --model cosmos "${call[@]}" --compute bf16 -o again - <low.jsonl >again.jsonl
  [ "$(jq .address <(records low.jsonl))" = "$(jq .address <(records again.jsonl))" ]
}

# bats test_tags=night
@test "a dry run reports the memory of text encoder, network and tokenizer" {
  tells_its_memory --model cosmos --size 48x32 --frames 5 --steps 2
  tells_its_memory --model cosmos --size 96x64 --frames 9 --steps 2
}

# bats test_tags=night
@test "--tokenizer-memory: the same clip in two stages and in one, as the dry run tells; too little is refused" {
  clip=(--model cosmos --device cpu --size 48x32 --frames 17 --steps 2)
  local prompt='{"prompt":"a red fox crosses a snowy road","name":"fox"}'
  vfm-generate "${clip[@]}" -o whole <<<"$prompt" >/dev/null
  run --separate-stderr vfm-generate "${clip[@]}" --tokenizer-memory 1KiB -o less <<<"$prompt"
  [ "$status" -eq 2 ]
  [[ "$stderr" =~ "to decode 17 frames of 48x32 the tokenizer needs "([0-9.]+)" KiB at least: --tokenizer-memory is 1.0 KiB" ]]
  [ ! -e less ]
  told=$stderr
  enough=$(awk -v kib="${BASH_REMATCH[1]}" 'BEGIN { printf "%d", (kib + 0.1) * 1024 }')
  run --separate-stderr vfm-generate cost "${clip[@]}" --tokenizer-memory 1KiB
  [ "$status" -eq 2 ]
  [ "$stderr" = "$told" ]
  vfm-generate "${clip[@]}" --tokenizer-memory "$enough" -o less <<<"$prompt" >/dev/null
  cmp whole/fox.mp4 less/fox.mp4
  vfm-generate "${clip[@]}" --latents-only --tokenizer-memory 1KiB -o latents <<<"$prompt" >latents.jsonl
  vfm-generate decode --device cpu --tokenizer-memory "$enough" -o clips <latents.jsonl >/dev/null
  cmp whole/fox.mp4 clips/fox.mp4
  run --separate-stderr vfm-generate decode --device cpu --tokenizer-memory 1KiB -o none <latents.jsonl
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"to decode 17 frames of 48x32 the tokenizer needs"* ]]
  # A line's own size costs that line.
  run --separate-stderr vfm-generate "${clip[@]}" --tokenizer-memory "$enough" -o less <<<'{"prompt":"a","width":96}'$'\n'"$prompt"
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"to decode 17 frames of 96x32 the tokenizer needs"* ]]
  [ ! -e less/a.mp4 ]
  bytes=$(vfm-generate cost "${clip[@]}" -q | jq .tokenizer.activation_bytes)
  vfm-generate cost "${clip[@]}" --tokenizer-memory "$enough" -q |
    jq -e --argjson all "$bytes" --argjson most "$enough" '.tokenizer.activation_bytes | . < $all and . <= $most'
}

@test "a guidance that diffusers takes as none is reported, others are not" {
  run --separate-stderr vfm-generate --model cosmos "${call[@]}" -o one <<<"${prompt/'{'/'{"guidance":1,'}"
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"guidance 1: pipelines of diffusers guide only above 1, vfm at any value except 0"* ]]
  for guidance in 0 1.5; do
    run --separate-stderr vfm-generate --model cosmos "${call[@]}" -o other <<<"${prompt/'{'/"{\"guidance\":$guidance,"}"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
  done
}

@test "a part that has moved is taken, another one in its place refused" {
  cp -r cosmos/vae vae
  vfm-generate --model cosmos "${call[@]}" --tokenizer vae --text-encoder "$VFM_ROOT/tests/golden/t5/v1_0" -o clips <<<"$prompt"
  printf '\1' | dd of=vae/diffusion_pytorch_model.safetensors bs=1 seek=80000 conv=notrunc status=none
  for other in "--tokenizer vae" "--text-encoder $VFM_ROOT/tests/golden/t5/umt5"; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-generate --model cosmos "${call[@]}" $other -o others <<<"$prompt"
    [ "$status" -eq 2 ]
    told=$stderr
    # shellcheck disable=SC2086
    run --separate-stderr vfm-generate cost --model cosmos "${call[@]}" $other
    [ "$status" -eq 2 ]
    [ "$stderr" = "$told" ]
  done
}

# bats test_tags=night
@test "a part whose weights are no numbers is named" {
  damaged() {  # FILE TENSOR MESSAGE
    cp "$1" whole
    "$VFM_ROOT/tests/cli/fill-tensor" "$1" nan "$2"
    run vfm-generate --model cosmos "${call[@]}" -o "$BATS_TEST_TMPDIR/out" --force <<<"$prompt"
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "$output" == *"$3 makes values that are not finite"* ]]
    cp whole "$1"
  }
  damaged cosmos/text_encoder/model.safetensors encoder.final_layer_norm.weight "the text encoder 'cosmos/text_encoder'"
  damaged cosmos/vae/diffusion_pytorch_model.safetensors post_quant_conv.bias "the tokenizer 'cosmos/vae'"
  damaged cosmos/transformer/diffusion_pytorch_model.safetensors time_embed.norm.weight "the model 'cosmos'"
}

@test "a field of the wrong type is reported with its file, by a dry run too" {
  wrong() {  # FILE FIELD
    jq ".$2 = \"one\"" "cosmos/$1" >changed
    cp "cosmos/$1" whole
    cp changed "cosmos/$1"
    for work in cost "-o clips"; do
      # shellcheck disable=SC2086
      run --separate-stderr vfm-generate $work --model cosmos <<<"$prompt"
      [ "$status" -eq 2 ]
      [[ "$stderr" == *"'cosmos/$1': '$2' is not "* ]]
    done
    cp whole "cosmos/$1"
  }
  wrong transformer/config.json num_attention_heads
  wrong scheduler/scheduler_config.json sigma_max
}

@test "a folder that lacks a tensor, or is of another pipeline, is refused before any work" {
  cp -r "$VFM_ROOT/tests/golden/cosmos_vae/diffusion_pytorch_model.safetensors" cosmos/transformer/
  run --separate-stderr vfm-generate --model cosmos "${call[@]}" -o clips <<<"$prompt"
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"patch_embed.proj.weight"* ]]
  [ ! -e clips ]
  sed -i 's/CosmosTextToWorldPipeline/MyOwnPipeline/' cosmos/model_index.json
  run --separate-stderr vfm-generate --model cosmos "${call[@]}" -o clips <<<"$prompt"
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"MyOwnPipeline"*"CosmosTextToWorldPipeline"* ]]
}

@test "a tokenizer begins from the folder's own" {
  echo 'data: {size: 32, frames: 9, tokens: 1000}' >recipe.yaml
  vfm-train cost recipe.yaml --init cosmos model.type=tokenizer train.steps=1 --device cpu --synthetic 9x32x32 >cost.json
  jq -e '.parameters == 14639' cost.json
}

@test "vfm-generate cost counts every part of the folder, and lists all that does not fit" {
  run --separate-stderr vfm-generate cost --model cosmos --device cpu --frames 9 --size 48x32
  [ "$status" -eq 0 ]
  jq -e '.network.parameters * 4 == .network.file_bytes and .tokenizer.parameters == 14639
    and .text_encoder.flops > 0 and .tokenizer.flops > 0 and .text_encoder.type == "t5"
    and ((.network.flops + .text_encoder.flops + .tokenizer.flops - .flops) | fabs) < 1
    and .latent == [3, 8, 12]' <<<"$output"
  # Half the frames, less to decode; the network's parameters stay.
  less=$(vfm-generate cost --model cosmos --device cpu -q --frames 5 --size 48x32 | jq .tokenizer.flops)
  jq -e --argjson less "$less" '.tokenizer.flops > $less' <<<"$output"
  # A transformer of other shapes, and a tokenizer that is cut off: one list.
  sed -i 's/"num_layers": [0-9]*/"num_layers": 9/' cosmos/transformer/config.json
  truncate -s -1 cosmos/vae/diffusion_pytorch_model.safetensors
  run --separate-stderr vfm-generate cost --model cosmos --device cpu
  [ "$status" -eq 2 ]
  [ -z "$output" ]
  [[ "$stderr" == *"2 parts of the model do not fit"*"cosmos/transformer"*" missing: "*"and "*" more"*"cosmos/vae"*"truncated"* ]]
}

@test "links that lead nowhere, and names that are too long, are errors of whoever gave them" {
  rm -r cosmos/vae
  ln -s vae cosmos/vae
  run --separate-stderr vfm-generate cost --model cosmos
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"its folder 'vae' is missing: Too many levels of symbolic links"* ]]
  ln -s loop loop
  local out
  for out in loop/run "$(printf 'a%.0s' {1..300})"; do
    run --separate-stderr vfm-train "$VFM_ROOT/examples/recipes/tiny.yaml" --device cpu --synthetic 1x4x4 -o "$out"
    [ "$status" -eq 1 ]
    [[ "$stderr" == "vfm-train: cannot read directory '$out': "* ]]
  done
}
