#!/usr/bin/env bats
# vfm-generate: prompts, and what a line has in place of one or beside it: texts in files, embeddings, noise.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load generate_models
bats_require_minimum_version 1.5.0

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

@test "a prompt that is not UTF-8 is cleaned, and its record makes the same clip" {
  vfm-generate "${fast[@]}" -o first $'bad \xff' >manifest
  vfm-generate --model "$model" -o second <manifest >again
  cmp "$(jq -r .path <(records manifest))" "$(jq -r .path <(records again))"
}

# bats test_tags=night
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

# bats test_tags=night
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

@test "a caption of 100 kB is a prompt" {
  head -c 100000 /dev/zero | tr '\0' 'x' | vfm-generate "${fast[@]}" -o out >manifest
  [ "$(jq -r '.prompt | length' <(records manifest))" -eq 100000 ]
}

@test "no prompts at all is an error" {
  run vfm-generate "${fast[@]}" -o out - </dev/null
  [ "$status" -eq 1 ]
  [[ $output == *"no prompts"* ]]
}
