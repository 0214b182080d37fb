#!/usr/bin/env bats
# vfm-generate at the command line, with a model that has seen next to nothing.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load generate_models
bats_require_minimum_version 1.5.0

@test "a prompt becomes a clip, its record, and a contact sheet; nothing on stderr" {
  vfm-generate "${fast[@]}" -o out 'a red circle moves left' >manifest 2>errors
  [ ! -s errors ]
  [ "$(records manifest | wc -l)" -eq 1 ]
  path=$(jq -r .path <(records manifest))
  [[ $path == out/a-red-circle-moves-left-????????????????.mp4 ]]
  run ffprobe -v error -select_streams v -count_frames -show_entries stream=width,height,r_frame_rate,nb_read_frames -of csv=p=0 "$path"
  [ "$output" = "64,64,12/1,17" ]
  jq -e '.kind == "clip" and .prompt == "a red circle moves left" and .seed == 0 and .sampler == "euler"
    and .steps == 2 and .frames == 17 and .width == 64 and .height == 64 and .fps == 12
    and .weights == "ema" and (.model_hash | length == 32)' <(records manifest)
  [ "$(jq .bytes <(records manifest))" -eq "$(stat -c %s "$path")" ]
  [ "$(file -b --mime-type out/contact-sheet.png 2>/dev/null || head -c 4 out/contact-sheet.png | tail -c 3)" != "" ]
  run ffprobe -v error -show_entries stream=codec_name -of csv=p=0 out/contact-sheet.png
  [ "$output" = png ]
  [ ! -e out/errors.jsonl ]
}

@test "a recipe says how its model is sampled; the command line goes before it" {
  quick_recipe run "$BATS_FILE_TMPDIR/latents" sampling.steps=3 sampling.guidance=0.5 sampling.sigma_min=0.4 sampling.sigma_max=20
  jq -e '.sampling == {"steps": 3, "guidance": 0.5, "sigma_min": 0.4, "sigma_max": 20}' run/checkpoints/*/train.json
  vfm-generate --model run -o out 'a red circle' >manifest
  jq -e '.steps == 3 and .guidance == 0.5 and .sigma_min == 0.4 and .sigma_max == 20' <(records manifest)
  vfm-generate --model run --steps 2 --guidance 0 -o out 'a red circle' >manifest
  jq -e '.steps == 2 and .guidance == 0 and .sigma_min == 0.4' <(records manifest)
  # A run that goes on from another one is sampled alike, and the recipe goes before that too.
  quick_recipe tuned "$BATS_FILE_TMPDIR/latents" --init run sampling.steps=5 sampling.guidance=-1 sampling.sigma_min=0
  jq -e '.sampling == {"steps": 5, "guidance": 0.5, "sigma_min": 0.4, "sigma_max": 20}' tuned/checkpoints/*/train.json
  run vfm-train cost "$VFM_ROOT/examples/recipes/quickstart.yaml" sampling.sigma_min=2 sampling.sigma_max=1 --synthetic 3x8x8
  [ "$status" -eq 2 ]
  [[ "$output" == *"'sampling.sigma_min' is 2.0 and 'sampling.sigma_max' is 1.0: the first must be below the second" ]]
}

@test "a manifest record, given back, makes the same bytes" {
  vfm-generate "${fast[@]}" -o first --seed 3 --sampler heun --guidance 1.5 --negative 'a square' 'a red circle' >manifest
  vfm-generate --model "$model" -o second <manifest >again
  cmp "$(jq -r .path <(records manifest))" "$(jq -r .path <(records again))"
  [ "$(jq -r .address <(records manifest))" = "$(jq -r .address <(records again))" ]
}

@test "a student's few steps: its noise levels, fresh noise that only seed, prompt and step decide" {
  few=(--model "$model" --frames 9 --sampler lcm --sigmas 40,5,0.5 --guidance 0)
  vfm-generate "${few[@]}" -o first 'a red circle' >first.jsonl
  jq -e '.sampler == "lcm" and .sigmas == [40, 5, 0.5] and .guidance == 0
    and ([has("steps", "sigma_min", "sigma_max")] | any | not)' <(records first.jsonl)
  # Among others, and as its record asks for it, whatever the command line says of levels.
  printf '%s\n' 'a blue square' 'a red circle' | vfm-generate "${few[@]}" -j2 -o second >/dev/null
  records first.jsonl | vfm-generate --model "$model" --steps 9 -o third >third.jsonl
  cmp first/*.mp4 second/a-red-*.mp4
  cmp first/*.mp4 third/*.mp4
  # Another seed, but the same first noise: so the noise on the way is another.
  { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (24, 2, 8, 8), }"
    head -c $((24 * 2 * 8 * 8 * 4)) /dev/zero; } >zeros.npy
  for seed in 0 1; do
    vfm-generate "${few[@]}" --seed $seed -o zeros$seed <<<'{"prompt":"a red circle","noise":"zeros.npy"}' >/dev/null
  done
  run ! cmp zeros0/*.mp4 zeros1/*.mp4
  vfm-generate cost "${few[@]}" -q |
    jq -e '.sampling == {"sampler": "lcm", "steps": 3, "guidance": 0, "passes": 3, "samples": 1, "sigmas": [40, 5, 0.5]}'
}

@test "a record carries encoder, quality and weights, and is refused by other weights or another model" {
  vfm-generate "${fast[@]}" -o first --quality 30 --no-ema 'a red circle' >manifest
  vfm-generate --model "$model" --no-ema -o second <manifest >again
  cmp "$(jq -r .path <(records manifest))" "$(jq -r .path <(records again))"
  run vfm-generate --model "$model" -o first <manifest
  [ "$status" -eq 1 ]
  grep -q 'give --no-ema' first/errors.jsonl
  cmp "$(jq -r .path <(records manifest))" "$(jq -r .path <(records again))"
  jq -c '.model_hash = "0"' <(records manifest) >other
  run vfm-generate --model "$model" --no-ema -o third <other
  [ "$status" -eq 1 ]
  grep -q 'made by another model' third/errors.jsonl
}

@test "--fp8: clips of their own, the same again, with the parts and the measured error in the record" {
  small=(--model "$wide" --steps 2 --frames 9 --size 32x32 --no-ema)
  vfm-generate "${small[@]}" -o plain 'a red circle' >plain.jsonl
  jq -e 'has("fp8") or has("fp8_error") | not' <(records plain.jsonl)
  for parts in linear all; do
    vfm-generate "${small[@]}" --fp8 $parts --tolerance 0.5 -o $parts 'a red circle' 'a blue square' >$parts.jsonl
    jq -e --arg parts $parts '.fp8 == $parts and .fp8_error > 0 and .fp8_error < 0.5' <(records $parts.jsonl)
    [ "$(jq -r .fp8_error <(records $parts.jsonl) | sort -u | wc -l)" -eq 1 ]
    vfm-generate "${small[@]}" --fp8 $parts --tolerance 0.5 -j1 -o again - <$parts.jsonl >again.jsonl
    cmp <(jq -r .xxh3 <(records $parts.jsonl)) <(jq -r .xxh3 <(records again.jsonl))
  done
  [ "$(jq -r .address <(records plain.jsonl linear.jsonl all.jsonl) | sort -u | wc -l)" -eq 5 ]
  run ! cmp plain/*.mp4 linear/a-red-circle-*.mp4
}

@test "--fp8: more error than allowed is refused with the number, before anything is made" {
  run vfm-generate --model "$wide" --steps 2 --no-ema --fp8 all --tolerance 0 -o out 'a red circle'
  [ "$status" -eq 1 ]
  [[ $output =~ "output by 0."[0-9]{4}" of its size, more than --tolerance 0 allows" ]]
  [ -z "$(find out -name '*.mp4')" ]
}

@test "--quantize: clips of their own, the same again, with the form and the measured error in the record" {
  small=(--model "$wide" --steps 2 --frames 9 --size 32x32 --no-ema)
  vfm-generate "${small[@]}" --latents-only -o plain 'a red circle' >plain.jsonl
  for form in int8 e4m3; do
    vfm-generate "${small[@]}" --quantize $form --latents-only -o $form 'a red circle' 'a blue square' >$form.jsonl
    jq -e --arg form $form '.quantize == $form and .quantize_error > 0.0005 and .quantize_error < 0.1' <(records $form.jsonl)
    [ "$(jq -r .quantize_error <(records $form.jsonl) | sort -u | wc -l)" -eq 1 ]
    vfm-generate "${small[@]}" --quantize $form -j1 --latents-only -o again - <$form.jsonl >again.jsonl
    cmp <(jq -r .xxh3 <(records $form.jsonl)) <(jq -r .xxh3 <(records again.jsonl))
  done
  [ "$(jq -r .xxh3 <(records plain.jsonl int8.jsonl e4m3.jsonl) | sort -u | wc -l)" -eq 5 ]
  run vfm-generate "${small[@]}" --latents-only -o other - <int8.jsonl
  [ "$status" -eq 1 ]
  grep -q "give --quantize int8" other/errors.jsonl
  run vfm-generate "${small[@]}" --quantize e4m3 --tolerance 0.0001 -o none 'a red circle'
  [ "$status" -eq 1 ]
  [[ "$output" == *"weights in 8 bits change the model's output by 0.0"*"more than --tolerance 0.0001 allows"* ]]
  [ -z "$(find none -name '*.mp4')" ]
}

@test "--compute bf16 makes clips of its own, named in the record, which another --compute refuses" {
  vfm-generate "${fast[@]}" -o plain 'a red circle' >plain.jsonl
  jq -e 'has("compute") or has("device") | not' <(records plain.jsonl)
  vfm-generate "${fast[@]}" --compute bf16 -o low 'a red circle' >low.jsonl
  jq -e '.compute == "bf16"' <(records low.jsonl)
  [ "$(jq -r .xxh3 <(records plain.jsonl))" != "$(jq -r .xxh3 <(records low.jsonl))" ]
  vfm-generate "${fast[@]}" --compute bf16 -o again - <low.jsonl >again.jsonl
  [ "$(jq -r .xxh3 <(records again.jsonl))" = "$(jq -r .xxh3 <(records low.jsonl))" ]
  run vfm-generate "${fast[@]}" -o other - <low.jsonl
  [ "$status" -eq 1 ]
  grep -q 'give --compute bf16' other/errors.jsonl
  run vfm-generate "${fast[@]}" --device cpu --attention own -o none 'a red circle'
  [ "$status" -eq 2 ]
  [[ $output == *"--attention own is for a GPU"* ]]
}

@test "--fp8: a record is refused by another precision, and a model that FP8 does not take by name" {
  small=(--model "$wide" --steps 2 --frames 9 --size 32x32)
  vfm-generate "${small[@]}" -o plain 'a red circle' >plain.jsonl
  vfm-generate "${small[@]}" --fp8 linear --tolerance 0.5 -o low 'a red circle' >low.jsonl
  run vfm-generate "${small[@]}" --fp8 linear --tolerance 0.5 -o other - <plain.jsonl
  [ "$status" -eq 1 ]
  grep -q 'leave out --fp8' other/errors.jsonl
  run vfm-generate "${small[@]}" -o other - <low.jsonl
  [ "$status" -eq 1 ]
  grep -q 'give --fp8 linear' other/errors.jsonl
  run vfm-generate "${fast[@]}" --fp8 all -o none 'a red circle'
  [ "$status" -eq 2 ]
  [[ $output == *"64 or 128, not 32"* ]]
  [ ! -e none ]
}

@test "an odd size is reported to be padded in the mp4, and exact on the stream" {
  run --separate-stderr vfm-generate "${fast[@]}" --size 63x65 --frames 2 -o out 'a red circle'
  only_records
  [ "$status" -eq 0 ]
  [[ $stderr == *"cannot hold 63x65"*"the mp4 is 64x66"* ]]
  jq -e '.width == 63 and .height == 65 and .coded_width == 64 and .coded_height == 66' <<<"$output"
  run ffprobe -v error -select_streams v -show_entries stream=width,height -of csv=p=0 out/*.mp4
  [ "$output" = "64,66" ]
  [[ $(vfm-generate "${fast[@]}" --size 63x65 --frames 2 -o - 'a red circle' | head -n 1 | tr -d '\0') == *"W63 H65"* ]]
}

@test "a frame rate that cannot be is refused for its line alone" {
  printf '%s\n' '{"prompt":"a","fps":1e300}' '{"prompt":"b","fps":1e-9}' '{"prompt":"c","fps":2000000}' '{"prompt":"d"}' |
    { run vfm-generate "${fast[@]}" -o out; [ "$status" -eq 1 ]; }
  [ "$(grep -c 'frames a second: must be between' out/errors.jsonl)" -eq 3 ]
  [ "$(ls out/*.mp4 | wc -l)" -eq 1 ]
}

@test "sizes beyond training are made, with a word about it" {
  run --separate-stderr vfm-generate "${fast[@]}" --size 96x80 --frames 25 -o out 'a red circle'
  [ "$status" -eq 0 ]
  [[ $stderr == *"96x80"*"trained on (17 of 64x64)"* ]]
  run ffprobe -v error -select_streams v -count_frames -show_entries stream=width,height,nb_read_frames -of csv=p=0 out/*.mp4
  [ "$output" = "96,80,25" ]
}

@test "a still image is one frame" {
  vfm-generate "${fast[@]}" --frames 1 -o out 'a red circle' >manifest
  run ffprobe -v error -select_streams v -count_frames -show_entries stream=nb_read_frames -of csv=p=0 "$(jq -r .path <(records manifest))"
  [ "$output" = 1 ]
}

@test "a request that no machine can meet is refused alone" {
  { for member in '"steps":2000000000' '"width":2147483647' '"frames":2147483647' '"width":16384,"height":16384,"frames":100000'
    do echo "{\"prompt\":\"a red circle\",$member}"; done
    echo 'a red circle'; } >lines
  run --separate-stderr vfm-generate "${fast[@]}" -o out <lines
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 1 ]
  [ "$(jq -s length out/errors.jsonl)" -eq 4 ]
}

# bats test_tags=night
@test "-v says a line a clip; progress shows the place inside of one" {
  run --separate-stderr vfm-generate "${fast[@]}" -v -o out 'a red circle'
  grep -q "'out/a-red-circle-[0-9a-f]*.mp4': 17 frames of 64x64, ready in " <<<"$stderr"
  run --separate-stderr vfm-generate "${fast[@]}" -v -o out 'a red circle'
  grep -q "'out/a-red-circle-[0-9a-f]*.mp4': 17 frames of 64x64, was there" <<<"$stderr"
  vfm-generate --model "$model" --steps 10000 --sampler heun --progress -o long --guidance 3 prompt >/dev/null 2>said &
  pid=$!
  for _ in $(seq 100); do grep -q 'step [0-9]* of 10000' said && break; sleep 0.1; done
  kill "$pid"
  grep -q "0/1 clips .*'prompt-[0-9a-f]*': step [0-9]* of 10000, [0-9.ms]* left" said
}

@test "--size names its limit; an option is named that was given, no other" {
  refused() {  # MESSAGE OPTION...
    run --separate-stderr vfm-generate "${fast[@]}" -o out "${@:2}" x
    echo "$stderr"
    [ "$status" -eq 2 ]
    [[ "$stderr" == "vfm-generate: $1"* ]]
  }
  refused "--size '1000000x16': width and height must be 1 to 16384 pixels" --size 1000000x16
  refused "--size '64x0': width and height must be 1 to 16384 pixels" --size 64x0
  refused "--condition-frames needs --condition" --condition-frames 9
  refused "--tolerance is about --fp8 or --quantize" --tolerance 1
  refused "guidance 1e+300: must be between -1000 and 1000" --guidance 1e300
  run --separate-stderr vfm-generate "${fast[@]}" -o out <<<'{"prompt":"x","sigma_max":0.01}'
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"sigma_max 0.01 does not go with the model's own sigma_min 0.02: give that too"* ]]
}

@test "--condition wants a video-to-world model" {
  run vfm-generate "${fast[@]}" --condition "$(find "$BATS_FILE_TMPDIR/raw" -name '*.mp4' | head -n 1)" -o out 'a red circle'
  [ "$status" -eq 2 ]
  [[ "$output" == *"not a video-to-world model, which is trained with diffusion.condition_frames" ]]
  [ ! -e out/errors.jsonl ]
  # A line that asks for it is a prompt that fails.
  run vfm-generate "${fast[@]}" -o out <<<'{"prompt":"x","condition":"nowhere.png"}'
  [ "$status" -eq 1 ]
  grep -q 'not a video-to-world model' out/errors.jsonl
}

@test "a prompt that is the name of a file of latents or prompts is told of" {
  told() {  # MESSAGE PROMPT
    vfm-generate "${fast[@]}" --latents-only -o out "$2" 2>err >/dev/null
    [ "$(<err)" = "vfm-generate: '$2' is a prompt, not the file of that name: $1" ]
  }
  mkdir old
  touch old/a.latents.json old/a.latents.safetensors prompts.txt
  told 'vfm-generate decode makes clips of latents' old/a.latents.json
  told 'vfm-generate decode makes clips of latents' old/a.latents.safetensors
  told '@FILE is a prompt from a file, and <FILE one a line' prompts.txt
  vfm-generate "${fast[@]}" --latents-only -o out nothing.txt 2>err >/dev/null
  [ ! -s err ]
}

@test "-o -: Y4M on stdout, several clips one after the other, readable by ffmpeg" {
  vfm-generate "${fast[@]}" -o - 'a red circle' 'a blue square' >out.y4m 2>errors
  [ ! -s errors ]
  [ "$(head -c 10 out.y4m)" = "YUV4MPEG2 " ]
  run ffprobe -v error -count_frames -show_entries stream=width,height,r_frame_rate,nb_read_frames -of csv=p=0 out.y4m
  [ "$output" = "64,64,12/1,34" ]
  [ -z "$(ls ./*.jsonl 2>/dev/null)" ]
}

@test "-o -: a clip of another size is refused, the others are not" {
  printf '%s\n' 'a red circle' '{"prompt":"b","width":32}' 'a blue square' |
    { run --separate-stderr bash -c "vfm-generate --model '$model' --steps 2 -o - >out.y4m"
      echo "$status" >status; echo "$stderr" >errors; }
  [ "$(cat status)" -eq 1 ]
  grep -q 'line 2 of standard input' errors
  run ffprobe -v error -count_frames -show_entries stream=nb_read_frames -of csv=p=0 out.y4m
  [ "$output" = 34 ]
}

@test "bad lines are recorded, the others made, exit status 1" {
  printf '%s\n' 'a red circle' '{"prompt":' '{"seed":1}' '{"prompt":"p","name":"a/b"}' '{"prompt":"p","steps":0}' \
    '{"prompt":"p","name":"n"}' '{"prompt":"q","name":"n"}' '{"prompt":"r","width":1000000}' >lines
  run --separate-stderr vfm-generate "${fast[@]}" -o out - <lines
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 2 ]
  [ "$(jq -s length out/errors.jsonl)" -eq 6 ]
  jq -e -s 'map(.input) == ["line 2 of standard input","line 3 of standard input","line 4 of standard input",
    "line 5 of standard input","line 7 of standard input","line 8 of standard input"]' out/errors.jsonl
  vfm-generate "${fast[@]}" -o out 'a red circle' >/dev/null
  [ ! -e out/errors.jsonl ]
}

@test "a line's sizes are at least 1, and what is for a condition needs one" {
  for wrong in '"frames":0' '"width":0' '"height":0' '"fps":0' '"condition_frames":1' '"augment_sigma":0'; do
    echo "{\"prompt\":\"a\",$wrong}"
  done >lines
  run vfm-generate "${fast[@]}" -o out <lines
  [ "$status" -eq 1 ]
  [ "$(jq -s length out/errors.jsonl)" -eq 6 ]
  [ "$(grep -c "which needs a 'condition'" out/errors.jsonl)" -eq 2 ]
}

@test "a model that is none: status 2, and what to do" {
  run vfm-generate --model nowhere -o out 'x'
  [ "$status" -eq 2 ]
  [[ $output == *"nowhere"* ]]
  vfm-train export "$model" -o merged >/dev/null 2>&1
  run vfm-generate --model merged -o out 'x'
  [ "$status" -eq 2 ]
  [[ $output == *"'merged' is a network alone, CosmosTransformer3DModel, "*"or the run or run of adapters that"* ]]
  mkdir empty
  run vfm-generate --model empty -o out 'x'
  [ "$status" -eq 2 ]
  [ ! -e out ]
}

@test "a checkpoint with a flipped byte or a missing file is refused by name" {
  cp -r "$model" run
  weights=$(find run -name '*.safetensors' | sort | tail -n 1)
  printf '\xff' | dd of="$weights" bs=1 seek=5000 conv=notrunc status=none
  run vfm-generate --model run -o out 'x'
  [ "$status" -eq 2 ]
  [[ $output == *"$(basename "$weights")"* ]]
  rm "$weights"
  run vfm-generate --model run -o out 'x'
  [ "$status" -eq 2 ]
  [ ! -e out ]
}

@test "wrong options are status 2" {
  for wrong in '--size 64' '--size 0x0' '--size 64x64x64' '--steps 0' '--sampler magic' '--guidance nan' '--quality 99' \
    '--frames -1' '--seed -1' '--seed 18446744073709551616' '--seed 1x' '--fps nan' '--dataset d' '--encoder magic' \
    '--sampler edm-euler --steps 1' '--sampler flow' '--as reference' '--as magic' '--sigmas 1,2' '--sigmas 1,0' '--sigmas 1,x' '--sigmas 2e6' '--sigmas 2,1 --steps 2' \
    '--save-every -1' '--latents-only --report x.html' '--latents-only -o -' '--report x.html -o -' '--no-merge' '--lora l:inf' \
    '--condition-frames 0' '--condition-frames 9' '--fp8 most' '--fp8 off' '--quantize int4' '--quantize int8 --fp8 linear' \
    '--tolerance 1' '--fp8 all --tolerance -1' '--fp8 all --tolerance nan' '--parallel shard'; do
    # shellcheck disable=SC2086
    out=(-o out)
    [[ $wrong != *'-o -' ]] || out=()
    # shellcheck disable=SC2086
    run vfm-generate --model "$model" "${out[@]}" $wrong 'x'
    echo "$wrong: $status $output"
    [ "$status" -eq 2 ]
  done
  run vfm-generate -o out 'x'
  [ "$status" -eq 2 ]
  # Found before the first record, not with the model.
  run --separate-stderr vfm-generate --model "$model" --encoder magic -o out 'x'
  [ "$status" -eq 2 ]
  [ -z "$output" ]
  run vfm-generate --model "$model" 'x'
  [ "$status" -eq 2 ]
}

@test "an empty name is not an option left out" {
  for option in --tokenizer --lora --text-encoder --condition --report --dataset; do
    run --separate-stderr vfm-generate --model "$model" -o out "$option" '' 'x'
    echo "$option: $status $stderr"
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"names no file"* ]]
  done
  run --separate-stderr vfm-generate --model "$model" -o out --lora ':0.8' 'x'
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"--lora ':0.8' names no file"* ]]
  [ ! -e out ]
}

@test "the report holds clips, curve and dataset, and nothing from elsewhere" {
  vfm-generate "${fast[@]}" -o out --report out/report.html --dataset "$BATS_FILE_TMPDIR/dataset" 'a <red> circle' >/dev/null
  grep -q 'data:video/mp4;base64' out/report.html
  grep -q 'a &lt;red&gt; circle' out/report.html
  grep -q 'loss by step' out/report.html
  grep -q 'seconds, histogram' out/report.html
  run grep -cE 'src="http|href="http|This part is missing' out/report.html
  [ "$output" = 0 ]
}
