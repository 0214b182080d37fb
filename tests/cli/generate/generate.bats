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

@test "T5 from a folder, in every stage; a folder that has moved is asked for, another one refused" {
  cp -r "$VFM_ROOT/tests/golden/t5/v1_1" t5
  cp -r "$BATS_FILE_TMPDIR/clips" .
  rm -f clips/*.embed.*
  vfm-embed --text t5 --device cpu clips/*.tar | vfm-shard --keep-duplicates -o dataset |
    vfm-pack --size 32 --frames 9 -o latents >latents.jsonl
  [ "$(jq -c '[.text_encoder.name, .text_encoder.dim]' latents/latents.json)" = '["t5",16]' ]
  quick_recipe run latents
  vfm-generate --model run --steps 1 -o first 'a red circle' >manifest
  mv t5 elsewhere
  run --separate-stderr vfm-generate --model run --steps 1 -o second 'a red circle'
  [ "$status" -eq 2 ]
  [[ "$stderr" == "vfm-generate: the text encoder's folder '"*"/t5' is not there; say with --text-encoder where it is" ]]
  vfm-generate --model run --text-encoder elsewhere --steps 1 -o second 'a red circle' >again
  cmp first/a-red-*.mp4 second/a-red-*.mp4
  run --separate-stderr vfm-generate --model run --text-encoder "$VFM_ROOT/tests/golden/t5/umt5" --steps 1 -o third x
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"is not the text encoder that the embeddings were made with" ]]
  [ ! -e third ]
}

@test "prompts as lines: any script, blank lines skipped, order kept, repeats get the next seed" {
  printf '%s\n' 'a blue square' '' '赤い丸が動く' 'دائرة حمراء' 'a blue square' | vfm-generate "${fast[@]}" -o out -j4 >manifest
  [ "$(records manifest | wc -l)" -eq 4 ]
  [ "$(jq -r '.prompt' <(records manifest) | sed -n 2p)" = '赤い丸が動く' ]
  [ "$(jq -c '[.prompt, .seed]' <(records manifest) | sed -n '1p;4p' | tr '\n' ' ')" = '["a blue square",0] ["a blue square",1] ' ]
  [ "$(jq -r .path <(records manifest) | sort -u | wc -l)" -eq 4 ]
}

@test "JSON lines choose name, seed, size and more; other keys pass through" {
  echo '{"prompt":"","name":"empty","seed":7,"width":48,"height":40,"frames":5,"fps":24,"guidance":0,"id":"x"}' |
    vfm-generate "${fast[@]}" -o out >manifest
  jq -e '.path == "out/empty.mp4" and .seed == 7 and .id == "x" and .guidance == 0' <(records manifest)
  run ffprobe -v error -select_streams v -count_frames -show_entries stream=width,height,r_frame_rate,nb_read_frames -of csv=p=0 out/empty.mp4
  [ "$output" = "48,40,24/1,5" ]
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

@test "a prompt that is not UTF-8 is cleaned, and its record makes the same clip" {
  vfm-generate "${fast[@]}" -o first $'bad \xff' >manifest
  vfm-generate --model "$model" -o second <manifest >again
  cmp "$(jq -r .path <(records manifest))" "$(jq -r .path <(records again))"
}

@test "a frame rate that cannot be is refused for its line alone" {
  printf '%s\n' '{"prompt":"a","fps":1e300}' '{"prompt":"b","fps":1e-9}' '{"prompt":"c","fps":2000000}' '{"prompt":"d"}' |
    { run vfm-generate "${fast[@]}" -o out; [ "$status" -eq 1 ]; }
  [ "$(grep -c 'frames a second: must be between' out/errors.jsonl)" -eq 3 ]
  [ "$(ls out/*.mp4 | wc -l)" -eq 1 ]
}

@test "SIGTERM ends it while it waits for prompts" {
  mkfifo prompts
  sleep 20 >prompts 3>&- &
  writer=$!
  vfm-generate "${fast[@]}" -o out - <prompts >/dev/null 2>err 3>&- &
  pid=$!
  until [ -d out ]; do sleep 0.05; done
  sleep 0.3
  kill -TERM "$pid"
  status=0
  wait "$pid" || status=$?
  kill -0 "$writer"  # it did not wait for the end of its input
  kill "$writer"
  [ "$status" -eq 143 ]
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

@test "the same bytes with -j1 and -j4, and alone as among others" {
  printf 'a red circle %s\n' 1 2 3 4 5 6 >prompts
  vfm-generate "${fast[@]}" -o one -j1 - <prompts >one.jsonl
  vfm-generate "${fast[@]}" -o four -j4 - <prompts >four.jsonl
  [ "$(cd one && sha256sum ./*.mp4 ./*.png)" = "$(cd four && sha256sum ./*.mp4 ./*.png)" ]
  cmp <(records one.jsonl | sed 's/one\///') <(records four.jsonl | sed 's/four\///')
  vfm-generate "${fast[@]}" -o alone 'a red circle 5' >/dev/null
  cmp alone/*.mp4 one/a-red-circle-5-*.mp4
}

@test "run again, clips are kept; a damaged one is remade; --force makes all again" {
  vfm-generate "${fast[@]}" -o out 'a red circle' 'a blue square' >first
  before=$(tree_hash out)
  stat -c '%n %Y %i' out/*.mp4 >stamps
  vfm-generate "${fast[@]}" -o out 'a red circle' 'a blue square' >second
  cmp first second
  cmp stamps <(stat -c '%n %Y %i' out/*.mp4)
  printf x >>"$(jq -r .path <(records first) | head -n 1)"
  rm "$(jq -r .path <(records first) | tail -n 1)"
  vfm-generate "${fast[@]}" -o out 'a red circle' 'a blue square' >third
  cmp first third
  [ "$(tree_hash out)" = "$before" ]
  stat -c '%n %i' out/*.mp4 >inodes
  vfm-generate "${fast[@]}" --force -o out 'a red circle' 'a blue square' >fourth
  cmp first fourth
  run cmp inodes <(stat -c '%n %i' out/*.mp4)
  [ "$status" -eq 1 ]
}

@test "killed at random moments and run again, the result is the undisturbed one" {
  seq -f 'a red circle %g' 8 >prompts
  slow=(--model "$model" --steps 150)
  vfm-generate "${slow[@]}" -o whole - <prompts >whole.jsonl
  kill_at_random 3 bash -c "vfm-generate --model '$model' --steps 150 -o broken - <prompts"
  vfm-generate "${slow[@]}" -o broken - <prompts >broken.jsonl
  [ "$(cd whole && sha256sum ./*.mp4 ./*.png)" = "$(cd broken && sha256sum ./*.mp4 ./*.png)" ]
  cmp <(records whole.jsonl | sed 's/whole\///') <(records broken.jsonl | sed 's/broken\///')
  [ -z "$(find broken -name '.*.tmp')" ]
}

@test "killed in the middle of a clip and run again, it goes on after the last kept step, to the same bytes" {
  for sampler in euler res lcm; do
    long=(--model "$model" --steps 300 --sampler $sampler --save-every 0)
    vfm-generate "${long[@]}" -o whole-$sampler 'a red circle' >whole.jsonl
    [ -z "$(find whole-$sampler -name '*.safetensors')" ]
    vfm-generate "${long[@]}" -o broken-$sampler 'a red circle' >/dev/null 3>&- &
    pid=$!
    until [ -n "$(find broken-$sampler -name '*.state.safetensors' 2>/dev/null)" ]; do sleep 0.02; done
    kill -KILL "$pid"
    wait "$pid" || true
    [ -z "$(find broken-$sampler -name '*.mp4')" ]
    vfm-generate "${long[@]}" -v -o broken-$sampler 'a red circle' >broken.jsonl 2>log
    grep -q 'resumes after step [1-9]' log
    cmp whole-$sampler/*.mp4 broken-$sampler/*.mp4
    cmp <(records whole.jsonl | sed 's/whole-//') <(records broken.jsonl | sed 's/broken-//')
    [ -z "$(find broken-$sampler -name '*.safetensors')" ]
  done
}

@test "a kept latent of another clip, or a damaged state, is not used" {
  vfm-generate "${fast[@]}" -o whole 'a red circle' >/dev/null
  vfm-generate "${fast[@]}" --latents-only -o other 'a blue square' >latents.jsonl
  mkdir out
  cp "$(jq -r .path <(records latents.jsonl))" out/one.latents.safetensors
  printf damaged >out/two.state.safetensors
  for name in one two; do
    echo "{\"prompt\":\"a red circle\",\"name\":\"$name\"}" | vfm-generate "${fast[@]}" -o out >/dev/null
    cmp whole/*.mp4 out/$name.mp4
  done
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

@test "noise of a line: the file decides the clip, the record names it, a changed file is refused" {
  python3 - <<'PY'
import struct
n = 24 * 3 * 8 * 8
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (24, 3, 8, 8), }"
header += " " * (63 - (10 + len(header)) % 64) + "\n"
with open("noise.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    f.write(struct.pack("<%df" % n, *[((i * 7919) % 1001) / 300 - 1.6 for i in range(n)]))
PY
  noise='{"prompt":"a red circle","noise":"noise.npy"}'
  vfm-generate "${fast[@]}" -o out <<<"$noise" >manifest
  jq -e '.noise == "noise.npy" and (.noise_xxh3 | length == 32)' <(records manifest)
  vfm-generate --model "$model" -o again <manifest >again.jsonl
  cmp out/*.mp4 again/*.mp4
  # The record, read in another folder, means the file of its own.
  mkdir elsewhere
  printf x >elsewhere/noise.npy
  (cd elsewhere && vfm-generate "${fast[@]}" -o out <../manifest >again)
  cmp "$(jq -r .path <(records manifest))" "elsewhere/$(jq -r .path <(records elsewhere/again))"
  vfm-generate "${fast[@]}" --seed 9 -o seed <<<"$noise" >/dev/null
  cmp out/*.mp4 seed/*.mp4
  run vfm-generate "${fast[@]}" --frames 1 -o third <<<"$noise"
  [ "$status" -eq 1 ]
  grep -q 'the noise has' third/errors.jsonl
  # Neither noise that is no numbers, nor what never ends.
  { head -c 128 noise.npy; printf '\0\0\300\177'; tail -c +133 noise.npy; } >nan.npy
  mkfifo pipe.npy
  for bad in nan.npy pipe.npy /dev/zero; do echo "{\"prompt\":\"a\",\"noise\":\"$bad\"}"; done |
    { run timeout 60 vfm-generate "${fast[@]}" -o bad; [ "$status" -eq 1 ]; }
  jq -r .error bad/errors.jsonl | paste -sd ' ' | grep "the noise 'nan.npy' has values that are not finite.*'pipe.npy' is a pipe.*'/dev/zero' is a pipe or a device, not a regular file"
  printf '\0\0\0\0' | dd of=noise.npy bs=1 seek=200 conv=notrunc status=none
  run vfm-generate --model "$model" -o third <manifest
  [ "$status" -eq 1 ]
  grep -q 'is not the file that the record was made from' third/errors.jsonl
}


@test "the embedding of a line: the file takes the place of the prompt, the record names it, a changed file is refused" {
  make_npy one.npy 5,64 1
  make_npy batch.npy 1,5,64 1
  make_npy two.npy 3,64 2
  vfm-generate "${fast[@]}" -o out <<<'{"embedding":"one.npy"}' >one.jsonl
  jq -e '.embedding == "one.npy" and (.embedding_xxh3 | length == 32) and .prompt == ""' <(records one.jsonl)
  vfm-generate --model "$model" -o again - <one.jsonl >again.jsonl
  [ "$(jq -r .xxh3 <(records again.jsonl))" = "$(jq -r .xxh3 <(records one.jsonl))" ]
  # Each of the others is a clip of its own; a leading 1 is the same embedding.
  printf '%s\n' '{"embedding":"batch.npy"}' '{"embedding":"two.npy"}' '{"embedding":"one.npy","negative_embedding":"two.npy"}' |
    vfm-generate "${fast[@]}" -o lines >lines.jsonl
  [ "$(records lines.jsonl | head -1 | jq -r .xxh3)" = "$(jq -r .xxh3 <(records one.jsonl))" ]
  [ "$(jq -r .xxh3 <(records lines.jsonl) | sort -u | wc -l)" -eq 3 ]
  jq -e -s '.[2].negative_embedding == "two.npy" and (.[2].negative_embedding_xxh3 | length == 32)' <(records lines.jsonl)
  # With a prompt that names the clip and chooses the noise; in two stages too.
  vfm-generate "${fast[@]}" --latents-only -o latents <<<'{"prompt":"a red circle","embedding":"one.npy"}' |
    vfm-generate decode -o named >named.jsonl
  jq -e '.prompt == "a red circle" and .embedding == "one.npy"' <(records named.jsonl)
  vfm-generate "${fast[@]}" -o text 'a red circle' >text.jsonl
  [ "$(jq -r .xxh3 <(records text.jsonl))" != "$(jq -r .xxh3 <(records named.jsonl))" ]
  printf '\0\0\0\0' | dd of=one.npy bs=1 seek=200 conv=notrunc status=none
  run vfm-generate --model "$model" -o third - <one.jsonl
  [ "$status" -eq 1 ]
  grep -q "'one.npy' is not the file that the record was made from" third/errors.jsonl
}

@test "the embedding of a line: the prompt's own embedding, given as a file, makes the prompt's clip" {
  cp -r "$BATS_FILE_TMPDIR/latents" .
  tar=$(ls latents/train/*.tar | head -1)
  key=$(tar -tf "$tar" | sed -n 's/[.]text[.]npy$//p' | head -1)
  tar -xf "$tar" "$key.text.npy" "$key.json"
  caption=$(jq -r .caption "$key.json")
  vfm-generate "${fast[@]}" -o - "$caption" >text.y4m
  jq -c --arg file "$key.text.npy" '{prompt: .caption, embedding: $file}' "$key.json" | vfm-generate "${fast[@]}" -o - >given.y4m
  # Halves against floats: a level here and there.
  python3 -c 'import sys
a, b = (open(name, "rb").read() for name in ("text.y4m", "given.y4m"))
sys.exit(not (len(a) == len(b) > 0 and max(abs(x - y) for x, y in zip(a, b)) <= 1))'
}

@test "a model trained on embeddings of another program takes embeddings, and no prompt alone" {
  cp -r "$BATS_FILE_TMPDIR/latents" .
  jq '.text_encoder = {"name": "unknown", "dim": 64}' latents/latents.json >changed
  mv changed latents/latents.json
  quick_recipe own latents
  make_npy one.npy 5,64 1
  vfm-generate --model own --steps 1 -o out <<<'{"embedding":"one.npy"}' >out.jsonl
  vfm-generate --model own --steps 1 -o out '' >none.jsonl
  [ "$(jq -r .xxh3 <(records out.jsonl))" != "$(jq -r .xxh3 <(records none.jsonl))" ]
  run vfm-generate --model own --steps 1 -o bad 'a red circle'
  [ "$status" -eq 1 ]
  grep -q "give the embedding of the text as 'embedding' of a JSON line" bad/errors.jsonl
  run vfm-generate --model own --steps 1 --negative rain -o worse <<<'{"embedding":"one.npy"}'
  [ "$status" -eq 1 ]
  grep -q "give the embedding of the text as 'negative_embedding' of a JSON line" worse/errors.jsonl
  vfm-generate cost --model own -q >/dev/null
  run --separate-stderr vfm-generate cost --model own --text-encoder "$VFM_ROOT/tests/golden/t5/v1_0"
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"--text-encoder: the model was trained on text embeddings that vfm-embed did not make"* ]]
}

@test "an embedding that cannot be read, or does not fit, is refused by name" {
  make_npy wide.npy 5,63 1
  make_npy flat.npy 64 1
  make_npy none.npy 0,64 1
  make_npy nan.npy 5,64 1
  printf '\0\0\300\177' | dd of=nan.npy bs=1 seek=200 conv=notrunc status=none
  cp wide.npy wide.txt
  for file in wide.npy flat.npy none.npy nan.npy wide.txt nowhere.npy; do
    echo "{\"negative_embedding\":\"$file\",\"prompt\":\"a\"}"
  done >lines
  run vfm-generate "${fast[@]}" -o out <lines
  [ "$status" -eq 1 ]
  jq -r .error out/errors.jsonl >errors
  [ "$(wc -l <errors)" -eq 6 ]
  grep -q "the embedding 'wide.npy' is 5 x 63: must be tokens x 64" errors
  grep -q "the embedding 'nan.npy' has values that are not finite" errors
}

@test "@FILE is the prompt in a file, newlines too; @@ begins a prompt with @" {
  printf 'a red circle\nmoves left\n' >prompt.txt
  vfm-generate "${fast[@]}" -o out @prompt.txt '@@home' >out.jsonl 2>said
  [ "$(cat said)" = "vfm-generate: 'prompt.txt' is one prompt of 2 lines; for a clip of each line give '<prompt.txt'" ]
  [ "$(jq -c .prompt <(records out.jsonl) | tr '\n' ' ')" = '"a red circle\nmoves left" "@home" ' ]
  for wrong in @nowhere.txt @; do
    run --separate-stderr vfm-generate "${fast[@]}" -o bad "$wrong"
    echo "$stderr"
    [ "$status" -eq 2 ]
    [ -z "$output" ]
  done
}

@test "--negative @FILE: the text stands in a file" {
  printf '\xef\xbb\xbfugly scenes, flicker\n\n' >words.txt
  vfm-generate "${fast[@]}" --negative @words.txt -o file 'a red circle' >file.jsonl
  vfm-generate "${fast[@]}" --negative 'ugly scenes, flicker' -o text 'a red circle' >text.jsonl
  jq -e '.negative_prompt == "ugly scenes, flicker"' <(records file.jsonl)
  cmp <(jq -r .xxh3 <(records file.jsonl)) <(jq -r .xxh3 <(records text.jsonl))
  : >empty.txt
  for file in empty.txt nowhere.txt; do
    run --separate-stderr vfm-generate "${fast[@]}" --negative "@$file" -o bad 'a red circle'
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"'$file'"* ]]
  done
  [ ! -e bad ]
}

@test "a prompt that the text encoder cuts is reported, once" {
  words=$(printf 'word%.0s ' $(seq 600))
  run --separate-stderr vfm-generate "${fast[@]}" -o out "$words" "$words" 'a red circle'
  [ "$status" -eq 0 ]
  [ "$(grep -c 'longer than the text encoder takes: its last 88 tokens are left out' <<<"$stderr")" -eq 1 ]
}

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
  run --separate-stderr vfm-generate "${fast[@]}" -o out <<<'{"prompt":"x","sigma_max":0.01}'
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"sigma_max 0.01 does not go with the model's own sigma_min 0.02: give that too"* ]]
}

@test "--condition wants a video-to-world model" {
  run vfm-generate "${fast[@]}" --condition "$(find "$BATS_FILE_TMPDIR/raw" -name '*.mp4' | head -n 1)" -o out 'a red circle'
  [ "$status" -eq 1 ]
  grep -q 'not a video-to-world model' out/errors.jsonl
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

@test "a closed pipe ends it" {
  set +o pipefail
  seq 50 | vfm-generate "${fast[@]}" -o - | head -c 100 >/dev/null
  [ "${PIPESTATUS[1]}" -ne 0 ]
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

@test "a caption of 100 kB is a prompt" {
  head -c 100000 /dev/zero | tr '\0' 'x' | vfm-generate "${fast[@]}" -o out >manifest
  [ "$(jq -r '.prompt | length' <(records manifest))" -eq 100000 ]
}

@test "no prompts at all is an error" {
  run vfm-generate "${fast[@]}" -o out - </dev/null
  [ "$status" -eq 1 ]
  [[ $output == *"no prompts"* ]]
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
    '--sampler edm-euler --steps 1' '--sigmas 1,2' '--sigmas 1,0' '--sigmas 1,x' '--sigmas 2e6' '--sigmas 2,1 --steps 2' \
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

@test "a full disk is an error, and leaves nothing half written" {
  [ "$(id -u)" -eq 0 ] || skip 'needs root to mount a small disk'
  mkdir small
  mount -t tmpfs -o size=16k tmpfs small 2>/dev/null || skip 'cannot mount here'
  run vfm-generate "${fast[@]}" -o small/out 'a red circle' 'a blue square' 'a green circle'
  files=$(find small/out -name '*.mp4')
  for file in $files; do ffprobe -v error "$file" || bad=1; done
  left=$(find small/out -name '.*.tmp')
  umount small
  [ "$status" -eq 1 ]
  [[ $output == *"No space left"* ]]
  [ -z "${bad-}" ]
  [ -z "$left" ]
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

# made DIR: hashes of the clips, and what else lies there by name; records name the folder, the sheet has an order.
made() { (cd "$1" && sha256sum ./*.mp4 && ls -A); }

@test "a clip that another program makes is waited for and taken, or made if that one dies" {
  vfm-generate "${fast[@]}" -o whole 'a red circle' 'a blue square' >whole.out
  name=$(basename whole/a-red-*.json)
  other_program dies/$name
  waits_for dies/$name vfm-generate "${fast[@]}" -o dies 'a red circle' 'a blue square'
  [ -z "$(find dies -name 'a-red-*.mp4')" ]
  let_go
  wait $waiting
  [ "$(made dies)" = "$(made whole)" ]
  other_program done/$name
  waits_for done/$name vfm-generate "${fast[@]}" -o done 'a red circle' 'a blue square'
  cp whole/a-red-* done
  stat -c %i done/a-red-*.mp4 >before
  let_go
  wait $waiting
  stat -c %i done/a-red-*.mp4 | cmp - before
  [ "$(made done)" = "$(made whole)" ]
  diff <(records waiting.out | sed 's/done/whole/g') <(records whole.out)
  # Two at once.
  for _ in 1 2; do
    rm -rf both
    vfm-generate "${fast[@]}" -o both 'a red circle' 'a blue square' >/dev/null 2>&1 3>&- &
    vfm-generate "${fast[@]}" -o both 'a blue square' 'a red circle' 2>/dev/null >/dev/null
    wait $!
    [ "$(made both)" = "$(made whole)" ]
  done
}
