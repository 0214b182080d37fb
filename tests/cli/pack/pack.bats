#!/usr/bin/env bats
# vfm-pack: latents, the length index, resume, faults.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
bats_require_minimum_version 1.5.0

# Once: small clips, and the .npy of a text embedding of 2 tokens of width 4.
setup_file() {
  export CLIPS="$BATS_FILE_TMPDIR/clips"
  mkdir "$CLIPS"
  clip test "testsrc2=size=96x64:rate=12" 2
  clip red "color=red:size=64x64:rate=12" 2
  clip short "testsrc2=size=64x96:rate=12" 0.75
  clip tiny "testsrc2=size=64x64:rate=12" 0.25
  ffmpeg -nostdin -loglevel error -y -f lavfi -i "testsrc2=size=100x50" -frames:v 1 "$CLIPS/pic.png"
  { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 4), }"
    printf '\x00\x3c%.0s' 1 2 3 4 5 6 7 8; } >"$CLIPS/text.npy"
}
clip() {
  ffmpeg -nostdin -loglevel error -y -f lavfi -i "$2" -t "$3" -c:v libx264 -preset ultrafast \
    -pix_fmt yuv420p "$CLIPS/$1.mp4"
}

# make_shard NAME KEY=CLIP...: NAME.tar as vfm-shard writes it; a clip is a file of $CLIPS.
make_shard() {
  local name=$1 spec key clip
  shift
  mkdir -p "$name.d"
  for spec in "$@"; do
    IFS='=' read -r key clip <<<"$spec"
    cp "$CLIPS/$clip" "$name.d/$key.${clip##*.}"
    printf '{"key":"%s","source":"%s","caption":"the clip %s","text_encoder":{"name":"builtin:hash","dim":4}}' \
      "$key" "$clip" "$clip" >"$name.d/$key.json"
    cp "$CLIPS/text.npy" "$name.d/$key.text.npy"
  done
  tar --format=ustar --sort=name -C "$name.d" -cf "$name.tar" .
}
record() { printf '{"kind":"shard","path":"%s","split":"%s"}\n' "$1" "$2"; }
pack() { vfm-pack --size 64 "$@"; }
# npy FILE MEMBER: the header of an npy member.
npy() { tar -xOf "$1" "$2" | tr -d '\0' | head -1 | grep -ao '{.*}'; }
# field NAME: values of a JSON member, line by line.
field() { grep -o "\"$1\":[^,}]*" | cut -d: -f2; }

@test "latents, text, facts, index and statistics" {
  make_shard a a1=test.mp4 a2=red.mp4
  make_shard b b1=test.mp4
  { record a.tar train; record b.tar val; } >in.jsonl
  run --separate-stderr pack -o out - <in.jsonl
  only_records
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "${#lines[@]}" -eq 2 ]
  [[ "${lines[0]}" == '{"kind":"shard","path":"out/train/a.tar","split":"train","samples":2,"bytes":'*',"xxh3":"'* ]]
  [[ "${lines[1]}" == '{"kind":"shard","path":"out/val/b.tar","split":"val","samples":1,'* ]]
  [ "$(tar -tf out/train/a.tar | tr '\n' ' ')" = "a1.latent.npy a1.text.npy a1.json a2.latent.npy a2.text.npy a2.json " ]
  # 96 x 64 pixels become about 64 x 64, in their shape: 80 x 48.
  [ "$(npy out/train/a.tar a1.latent.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (24, 3, 6, 10), }" ]
  [ "$(npy out/train/a.tar a2.latent.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (24, 3, 8, 8), }" ]
  tar -xOf out/train/a.tar a1.text.npy | cmp - "$CLIPS/text.npy"
  [ "$(tar -xOf out/train/a.tar a2.json)" = '{"key":"a2","clip":"a2","media":"video","frames":3,"height":8,"width":8,"fps":12.0,"text_tokens":2,"pixels":[17,64,64],"crop":[0,0,64,64],"first_frame":3,"window":0,"windows":1,"clip_begin":0.25,"clip_end":1.666667,"caption":"the clip red.mp4","source":"red.mp4"}' ]
  grep -qE '"xxh3":"[0-9a-f]{16}"}$' out/train/index.jsonl
  [ "$(sed -E 's/,"xxh3":"[0-9a-f]+"//' out/train/index.jsonl)" = '{"key":"a1","shard":"a.tar","row":0,"frames":3,"height":6,"width":10,"fps":12.0,"text_tokens":2}
{"key":"a2","shard":"a.tar","row":1,"frames":3,"height":8,"width":8,"fps":12.0,"text_tokens":2}' ]
  [ "$(wc -l <out/val/index.jsonl)" -eq 1 ]
  # Two samples: three parts of 8, 16 and 8 bytes, a place, two forms, a run, the end of one name, and the name.
  [ "$(head -c 8 out/train/index.bin)" = VFMINDEX ]
  [ "$(stat -c %s out/train/index.bin)" -eq $((4096 + 8 + 16 + 8 + 8 + 2 * 40 + 24 + 8 + 5)) ]
  [ "$(tr -d ' \n' <out/latents.json | field samples | tr '\n' ' ')" = "2 1 " ]
  [[ "$(tr -d ' \n' <out/latents.json)" == '{"version":1,"tokenizer":{"name":"builtin:wavelet","channels":24,"time_factor":8,"space_factor":8},"text_encoder":{"name":"builtin:hash","dim":4},"channels":24,"mean":['* ]]
  [ ! -e out/errors.jsonl ]
}

@test "the statistics are those of the colours: red is Cr" {
  make_shard a a1=red.mp4
  pack --channels 3 -o out a.tar >/dev/null
  tr -d ' \n' <out/latents.json | sed 's/.*"mean":\[\([^]]*\)\],"std":\[\([^]]*\)\].*/\1,\2/' | tr ',' ' ' >numbers
  # Y' = -0.40, Cb = -0.34, Cr = 1; nothing varies, so the standard deviations are 1.
  awk '{ exit !($1 > -.45 && $1 < -.35 && $2 > -.39 && $2 < -.29 && $3 > .93 && $3 < 1.02) }' numbers
  [ "$(cut -d' ' -f4-6 numbers)" = "1.0 1.0 1.0" ]
}

@test "a discrete tokenizer writes codes, of which training a diffusion model says what they are" {
  make_shard a a1=test.mp4
  pack --tokenizer builtin:fsq -o out --report page.html a.tar >/dev/null
  [ "$(tar -tf out/train/a.tar | tr '\n' ' ')" = "a1.codes.npy a1.text.npy a1.json " ]
  # 17 frames, four in a code but for the first.
  [[ "$(npy out/train/a.tar a1.codes.npy)" == "{'descr': '<u2', 'fortran_order': False, 'shape': (5, "* ]]
  [[ "$(tr -d ' \n' <out/latents.json)" == '{"version":1,"tokenizer":{"name":"builtin:fsq","levels":[8,8,8,5,5,5],"time_factor":4,"space_factor":4},"text_encoder":{"name":"builtin:hash","dim":4},"channels":6,"vocabulary":64000,"splits":'* ]]
  grep -q "PSNR" page.html
  printf 'model: {num_layers: 1}\n' >recipe.yaml
  run --separate-stderr vfm-train recipe.yaml --data out -o run
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"these latents are discrete: set 'model.type' to autoregressive"* ]]
  run --separate-stderr pack --tokenizer builtin:fsq --channels 6 -o other a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"tokenizer 'builtin:fsq' has no option 'channels'"* ]]
}

@test "a tokenizer of a folder: statistics of its own, path and hash, the same bytes with -j1 and -j4" {
  cp -r "$VFM_ROOT/tests/golden/cosmos_vae" vae
  make_shard a a1=test.mp4 a2=red.mp4
  pack --tokenizer vae --report page.html -j1 -o out a.tar >/dev/null
  # 17 frames of 64 x 64: a quarter of each, the first frame alone.
  [ "$(npy out/train/a.tar a2.latent.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (3, 5, 16, 16), }" ]
  [[ "$(tr -d ' \n' <out/latents.json)" == '{"version":1,"tokenizer":{"name":"AutoencoderKLCosmos","path":"'"$PWD"'/vae","hash":"'*'"},"text_encoder":{"name":"builtin:hash","dim":4},"channels":3,"mean":[-0.3,-0.2,-0.1,0.0,0.1,0.2,0.3,0.4,0.5],"std":[0.5,0.6,0.7,0.8,0.9,1.0,1.1,1.2,1.3],"frames":3,"splits":'* ]]
  grep -q "PSNR" page.html
  pack --tokenizer vae -j4 -o again a.tar >/dev/null
  cmp out/train/a.tar again/train/a.tar
  # A second run finds all there; another configuration is another tokenizer.
  pack --tokenizer vae -o out a.tar >/dev/null
  cmp out/train/a.tar again/train/a.tar
  sed -i 's/"scaling_factor": 1.0/"scaling_factor": 1.5/' vae/config.json
  run --separate-stderr pack --tokenizer vae -o out a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"holds latents of other options"* ]]
}

@test "--tokenizer-memory: the same bytes; too little is refused with what is needed, before any work" {
  local vae=$VFM_ROOT/tests/golden/cosmos_vae
  make_shard a a1=test.mp4 a2=red.mp4
  pack --tokenizer "$vae" -o out a.tar >/dev/null
  run --separate-stderr pack --tokenizer "$vae" --tokenizer-memory 1KiB -o less a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" =~ "to encode 17 frames of 64x64 the tokenizer needs "[0-9.]+" KiB at least: --tokenizer-memory is 1.0 KiB" ]]
  [ ! -e less ]
  # All 17 frames at once would take more: as pixels alone they are 0.8 MiB.
  pack --tokenizer "$vae" --tokenizer-memory 1MiB -o less a.tar >/dev/null
  cmp out/train/a.tar less/train/a.tar
  run --separate-stderr pack --tokenizer-memory 1GiB -o other a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"--tokenizer-memory is for tokenizers from a folder: builtin:wavelet has no network"* ]]
}

@test "a folder that holds no tokenizer is refused before any work" {
  make_shard a a1=test.mp4
  run --separate-stderr pack --tokenizer nowhere -o out a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"nowhere"* ]]
  mkdir other
  echo '{"_class_name":"AutoencoderDC"}' >other/config.json
  run --separate-stderr pack --tokenizer other -o out a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"AutoencoderDC"*"AutoencoderKLCosmos"* ]]
  cp -r "$VFM_ROOT/tests/golden/cosmos_vae" vae
  run --separate-stderr pack --tokenizer vae --channels 3 -o out a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"has no option 'channels'"* ]]
  [ ! -e out ]
}

@test "latents that are no numbers, or none of half precision, cost their samples" {
  make_shard a a1=red.mp4 a2=pic.png
  cp -r "$VFM_ROOT/tests/golden/cosmos_vae" vae
  "$BATS_TEST_DIRNAME/../fill-tensor" vae/diffusion_pytorch_model.safetensors 1e7 quant_conv.bias
  run --separate-stderr pack --tokenizer vae -o large a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"a1 of 'a.tar': its latent has the value "*", beyond the range of half precision (65504)"* ]]
  [ "$(wc -l <large/errors.jsonl)" -eq 2 ]
  [ ! -e large/latents.json ]
  "$BATS_TEST_DIRNAME/../fill-tensor" vae/diffusion_pytorch_model.safetensors nan quant_conv.bias
  run --separate-stderr pack --tokenizer vae -o nan a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"a2 of 'a.tar': the tokenizer '$PWD/vae' makes values that are not finite"* ]]
  [ ! -e nan/latents.json ]
  cp -r "$VFM_ROOT/tests/golden/cosmos_dv" dv
  "$BATS_TEST_DIRNAME/../fill-tensor" dv/diffusion_pytorch_model.safetensors nan quant_conv.bias
  run --separate-stderr pack --tokenizer dv -o codes a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"the tokenizer '$PWD/dv' makes values that are not finite"* ]]
}

@test "pipes are read where lines are wanted, and refused where a model's file is" {
  make_shard a a1=pic.png
  mkfifo list.jsonl
  record a.tar train >list.jsonl &
  vfm-pack --size 64 -o out list.jsonl >/dev/null
  [ -s out/latents.json ]
  for file in config.json diffusion_pytorch_model.safetensors; do
    cp -r "$VFM_ROOT/tests/golden/cosmos_vae" "fifo-$file"
    rm "fifo-$file/$file"
    mkfifo "fifo-$file/$file"
    run --separate-stderr timeout 60 vfm-pack --tokenizer "fifo-$file" -o other a.tar
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"/$file' is a pipe or a device, not a regular file"* ]]
  done
}

@test "codes of a discrete tokenizer of a folder" {
  make_shard a a1=test.mp4
  pack --tokenizer "$VFM_ROOT/tests/golden/cosmos_dv" --compute bf16 -o out a.tar >/dev/null
  [[ "$(npy out/train/a.tar a1.codes.npy)" == "{'descr': '<u2', 'fortran_order': False, 'shape': (5, "* ]]
  grep -q '"vocabulary": 64000' out/latents.json
  grep -q '"compute": "bf16"' out/latents.json
}

@test "pictures are one frame, short clips the most that fits, rates are exact" {
  make_shard a a1=short.mp4 a2=tiny.mp4 a3=test.mp4
  make_shard p p1=pic.png
  pack -o out a.tar p.tar >/dev/null
  [ "$(field frames <out/train/index.jsonl | tr '\n' ' ')" = "2 1 3 1 " ]
  [ "$(field fps <out/train/index.jsonl | tr '\n' ' ')" = "12.0 0.0 12.0 0.0 " ]
  [[ "$(tail -1 out/train/index.jsonl)" == '{"key":"p1","shard":"p.tar","row":0,"frames":1,"height":6,"width":12,"fps":0.0,"text_tokens":2,'* ]]
  pack -o slow --fps 6 --frames 9 a.tar >/dev/null
  [ "$(field frames <slow/train/index.jsonl | tr '\n' ' ')" = "1 1 2 " ]
  [ "$(field fps <slow/train/index.jsonl | tr '\n' ' ')" = "0.0 0.0 6.0 " ]
  # Frames are never repeated to fill up a rate.
  pack -o fast --fps 60000/1001 a.tar >/dev/null
  [ "$(field fps <fast/train/index.jsonl | tr '\n' ' ')" = "12.0 0.0 12.0 " ]
  vfm-pack -o other --time-factor 4 --space-factor 4 --channels 144 --frames 100 --size 32 a.tar >/dev/null
  [ "$(npy other/train/a.tar a3.latent.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (144, 6, 6, 10), }" ]
}

@test "windows follow one another over the whole clip, and each frame is counted" {
  ffmpeg -nostdin -loglevel error -y -f lavfi -i "testsrc2=size=64x64:rate=12" -t 5 -c:v libx264 -preset ultrafast \
    -pix_fmt yuv420p "$CLIPS/long.mp4"
  make_shard a a1=long.mp4 a2=test.mp4 a3=pic.png
  # As vfm-clip has it: the clip begins 100 s after its source.
  sed -i 's/^{/{"begin":100.0,"end":105.0,"caption_windows":[{"start":0,"end":2.5,"caption":"at first"},{"start":2.5,"end":5,"caption":"then"}],/' a.d/a1.json
  tar --format=ustar --sort=name -C a.d -cf a.tar .
  run --separate-stderr pack -v --report page.html -o all a.tar
  [ "$status" -eq 0 ]
  # 60 frames are three windows of 17, and nine frames; of 24 seven are no window.
  [ "$(jq -r '[.key, .frames] | join("=")' all/train/index.jsonl | paste -sd' ')" = "a1-w000=3 a1-w001=3 a1-w002=3 a1-w003=2 a2=3 a3=1" ]
  tar -xOf all/train/a.tar a1-w001.json a1-w003.json | jq -c '[.clip, .window, .windows, .first_frame, .clip_begin, .clip_end, .begin, .end]' >times
  [ "$(cat times)" = '["a1",1,4,17,1.416667,2.833333,101.416667,102.833333]
["a1",3,4,51,4.25,5,104.25,105]' ]
  # Captions that were written for parts of the clip stay with these.
  tar -xOf all/train/a.tar a1-w000.json a1-w001.json a1-w002.json a2.json | jq -r .window_caption | paste -sd, >captions
  [ "$(cat captions)" = "at first,at first,then,null" ]
  [[ "${lines[-1]}" == '{"kind":"end",'*',"frames":{"read":85,"latents":78,"rate":0,"windows":0,"remainder":7},"status":0}' ]]
  [ "$(jq -c .clip_frames all/latents.json)" = '{"read":85,"latents":78,"rate":0,"windows":0,"remainder":7}' ]
  [[ "$stderr" == *"of 85 frames 78 became latents; 7 are left at the ends of clips, too few for a window"* ]]
  [ "$(grep -o 'data:image/png' page.html | wc -l)" -eq 6 ]
  # The second time nothing is made, and the same is said.
  pack -o all a.tar | cmp - <(printf '%s\n' "${lines[@]}")
  pack -o middle --windows middle a.tar >middle.jsonl
  [ "$(jq -r .key middle/train/index.jsonl | paste -sd' ')" = "a1 a2 a3" ]
  [ "$(tar -xOf middle/train/a.tar a1.json | jq .first_frame)" -eq 21 ]
  [ "$(jq -c .frames middle.jsonl | tail -1)" = '{"read":85,"latents":35,"rate":0,"windows":43,"remainder":7}' ]
  pack -o two --windows 2 --fps 6 a.tar >two.jsonl
  [ "$(tar -xOf two/train/a.tar a1.json | jq .first_frame)" -eq 12 ] # of 30 frames one window, from the seventh on
  pack -o shared --overlap 9 --jobs 4 a.tar >/dev/null
  [ "$(jq -r 'select(.key | startswith("a1")).key' shared/train/index.jsonl | wc -l)" -eq 6 ]
  for bad in '--windows 0' '--windows some' '--overlap 17' '--overlap -1'; do
    # shellcheck disable=SC2086
    run --separate-stderr pack -o bad $bad a.tar
    [ "$status" -eq 2 ]
    [ ! -e bad ]
  done
}

@test "random crops depend on seed and key alone" {
  make_shard a a1=test.mp4 a2=test.mp4
  pack -o one --crop random --seed 1 a.tar >/dev/null
  pack -o two --crop random --seed 2 a.tar >/dev/null
  [ "$(tar -xOf one/train/a.tar a1.json | field first_frame)" != "$(tar -xOf one/train/a.tar a2.json | field first_frame)" ]
  [ "$(tar -xOf one/train/a.tar a1.json)" != "$(tar -xOf two/train/a.tar a1.json)" ]
  make_shard b a1=test.mp4
  pack -o three --crop random --seed 1 b.tar >/dev/null
  [ "$(tar -xOf one/train/a.tar a1.json)" = "$(tar -xOf three/train/b.tar a1.json)" ]
}

@test "the folder of a dataset is its manifest" {
  make_video a.mp4
  make_shots b.mp4
  vfm-clip -o clips a.mp4 b.mp4 | vfm-caption --from builtin:measure | vfm-embed | vfm-shard -o dataset >dataset.jsonl
  pack -o one - <dataset.jsonl | records | sed 's/one/DIR/' >one.jsonl
  run --separate-stderr pack -o two dataset
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  only_records
  [ "${output//two/DIR}" = "$(cat one.jsonl)" ]
  [ "$(tree_hash one)" = "$(tree_hash two)" ]
  rm dataset/dataset.json
  run --separate-stderr pack -o three dataset
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"'dataset' is not a finished dataset of vfm-shard"* ]]
}

@test "bytes depend neither on -j nor on the order of the input" {
  make_shard a a1=test.mp4 a2=red.mp4 a3=short.mp4 a4=tiny.mp4
  make_shard b b1=test.mp4 b2=pic.png
  make_shard c c1=short.mp4
  pack -j1 -o one ./a.tar ./b.tar ./c.tar | records | sed 's/one/DIR/' >one.jsonl
  pack -j4 -o four ./a.tar ./b.tar ./c.tar | records | sed 's/four/DIR/' >four.jsonl
  cmp one.jsonl four.jsonl
  pack -j3 -o turned ./c.tar ./a.tar ./b.tar >/dev/null
  [ "$(tree_hash one)" = "$(tree_hash four)" ]
  [ "$(tree_hash one)" = "$(tree_hash turned)" ]
}

@test "the device is chosen once, and a GPU that is not there is no CPU" {
  make_shard a a1=test.mp4 a2=pic.png
  # To the driver this is a machine without a GPU.
  export CUDA_VISIBLE_DEVICES=
  run --separate-stderr pack --device cuda -o out a.tar
  [ "$status" -eq 2 ]
  only_records
  [ -z "$output" ]
  [ ! -e out ]
  [[ "$stderr" == *"--device cuda: there is no usable GPU: "* ]]
  run --separate-stderr pack -v -o auto a.tar
  [ "$status" -eq 0 ]
  [ "$(grep -c 'computing on the CPU: ' <<<"$stderr")" -eq 1 ]
  pack --device cpu -o cpu a.tar >/dev/null
  [ "$(tree_hash auto)" = "$(tree_hash cpu)" ]
}

@test "clips may be decoded by a GPU, with the same bytes" {
  make_shard a a1=test.mp4 a2=pic.png
  pack -o none a.tar >/dev/null
  pack --hwaccel auto -o auto a.tar >/dev/null
  [ "$(tree_hash auto)" = "$(tree_hash none)" ]
  CUDA_VISIBLE_DEVICES='' run --separate-stderr pack --hwaccel cuda -o out a.tar
  [ "$status" -eq 2 ]
  [ ! -e out ]
  [[ "$stderr" == *"--hwaccel cuda: this machine cannot decode video on a GPU: "* ]]
}

@test "bytes do not depend on the device" {
  make_shard a a1=test.mp4 a2=red.mp4 a3=short.mp4 a4=pic.png
  run --separate-stderr pack -v -j3 --device cuda -o gpu --report gpu.html a.tar
  [[ "$stderr" == *"there is no usable GPU"* ]] && skip "no GPU"
  [ "$status" -eq 0 ]
  pack -j1 --device cpu -o cpu a.tar >/dev/null
  [ "$(tree_hash gpu)" = "$(tree_hash cpu)" ]
}

@test "killed at any moment and run again, it ends with the same bytes" {
  local specs=() n
  for n in $(seq 10 29); do specs+=("k$n=test.mp4"); done
  make_shard 1 "${specs[@]}"
  make_shard 2 "${specs[@]//k/m}"
  make_shard 3 "${specs[@]//k/n}"
  pack -o whole ./1.tar ./2.tar ./3.tar | records | sed 's/whole/DIR/' >whole.jsonl
  kill_at_random 5 vfm-pack --size 64 -o killed ./1.tar ./2.tar ./3.tar
  pack -o killed ./1.tar ./2.tar ./3.tar | records | sed 's/killed/DIR/' >killed.jsonl
  cmp whole.jsonl killed.jsonl
  [ "$(tree_hash whole)" = "$(tree_hash killed)" ]
}

@test "the same command again does nothing; a changed shard is remade" {
  make_shard a a1=test.mp4
  make_shard b b1=red.mp4
  pack -o out a.tar b.tar >one
  touch -d '2001-01-01' out/train/*.tar out/train/index.bin out/latents.json
  pack -o out a.tar b.tar >two
  cmp one two
  [ "$(stat -c %Y out/train/a.tar)" = "$(date -d 2001-01-01 +%s)" ]
  [ "$(stat -c %Y out/latents.json)" = "$(date -d 2001-01-01 +%s)" ]
  [ "$(stat -c %Y out/train/index.bin)" = "$(date -d 2001-01-01 +%s)" ]
  make_shard b b1=red.mp4 b2=short.mp4
  pack -o out a.tar b.tar >/dev/null
  [ "$(stat -c %Y out/train/a.tar)" = "$(date -d 2001-01-01 +%s)" ]
  [ "$(wc -l <out/train/index.jsonl)" -eq 3 ]
  [ "$(stat -c %Y out/train/index.bin)" != "$(date -d 2001-01-01 +%s)" ]
  run --separate-stderr pack -o out a.tar
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"'out' held 1 shard that is not of this input, and now removed"* ]]
  [ "$(wc -l <out/train/index.jsonl)" -eq 1 ]
  [ -z "$(find out -name 'b.*')" ]
  [ "$(stat -c %Y out/train/a.tar)" = "$(date -d 2001-01-01 +%s)" ]
  pack -o fresh a.tar >/dev/null
  [ "$(tree_hash out)" = "$(tree_hash fresh)" ]
}

@test "a folder of another set is not taken for the set before the input changed" {
  make_shard a a1=test.mp4
  pack -o out a.tar >/dev/null
  before=$(tree_hash out)
  mkdir elsewhere
  make_shard elsewhere/a b1=red.mp4
  run --separate-stderr pack -o out elsewhere/a.tar
  [ "$status" -eq 2 ]
  [ "$stderr" = "vfm-pack: 'out/train/a.tar' was made of 'a.tar', and now would be of 'elsewhere/a.tar'; choose another folder, or --force to replace all latents in this one" ]
  [ "$(tree_hash out)" = "$before" ]
  # The same contents from elsewhere are the same set.
  cp a.tar elsewhere/a.tar
  pack -o out elsewhere/a.tar >/dev/null
  [ "$(tree_hash out)" = "$before" ]
  # Latents of another set under other names are no part of this one, and stay.
  make_shard c c1=red.mp4
  run --separate-stderr pack -o out c.tar
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"'out' also holds 1 shard that is not of this input, and not in the index"* ]]
  [ -e out/train/a.tar ]
  pack --force -o out c.tar >/dev/null
  [ ! -e out/train/a.tar ]
}

@test "-v says a line a shard; other options are named, and none that was not given" {
  make_shard a a1=test.mp4 a2=red.mp4
  run --separate-stderr pack -v -o out a.tar
  [ "$status" -eq 0 ]
  grep -q "'out/train/a.tar': 2 samples, 0 errors" <<<"$stderr"
  run --separate-stderr vfm-pack --size 32 -o out a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"'out' holds latents of other options (size is 64 there, and now 32)"* ]]
}

@test "a folder of other options is refused, --force replaces it" {
  make_shard a a1=test.mp4
  make_shard b b1=test.mp4
  pack -o out a.tar b.tar >/dev/null
  before=$(tree_hash out)
  run --separate-stderr pack -o out --channels 12 a.tar
  [ "$status" -eq 2 ]
  only_records
  [ -z "$output" ]
  [[ "$stderr" == *"'out' holds latents of other options ("*" there, and now "*"--force"* ]]
  [ "$(tree_hash out)" = "$before" ]
  pack -o out --channels 12 --force a.tar >/dev/null
  pack -o fresh --channels 12 a.tar >/dev/null
  [ "$(tree_hash out)" = "$(tree_hash fresh)" ]
}

@test "bad lines, shards and clips cost themselves only, and are reported again on resume" {
  make_shard a a1=test.mp4 a2=red.mp4 a3=short.mp4
  head -c 300 /dev/urandom >a.d/a2.mp4
  echo nonsense >a.d/a3.text.npy
  tar --format=ustar --sort=name -C a.d -cf a.tar .
  make_shard b a1=red.mp4 b2=red.mp4
  make_shard t t1=red.mp4 t2=red.mp4
  head -c 7000 t.tar >cut.tar
  mkdir other
  cp b.tar other/b.tar
  printf '%s\n' nothere.tar '{"kind":' '{"kind":"video","path":"a.mp4"}' '{"kind":"shard","path":"a.tar","split":"../up"}' \
    a.tar b.tar cut.tar other/b.tar >in
  run --separate-stderr pack -o out - <in
  [ "$status" -eq 1 ]
  [ "$(field path <<<"$output" | tr '\n' ' ')" = '"out/train/a.tar" "out/train/b.tar" "out/train/cut.tar" ' ]
  grep -q "cannot open 'nothere.tar'" out/errors.jsonl
  grep -q '"input":"a.mp4","error":"is a video, not a shard' out/errors.jsonl
  grep -q "its split '../up' cannot name a folder" out/errors.jsonl
  grep -q "\"input\":\"a2 of 'a.tar'\"" out/errors.jsonl
  grep -q "\"input\":\"a3 of 'a.tar'\",\"error\":\"its 'text.npy'" out/errors.jsonl
  grep -q "\"input\":\"a1 of 'b.tar'\",\"error\":\"its key was there before\"" out/errors.jsonl
  grep -q '"input":"cut.tar"' out/errors.jsonl
  grep -q "its latents would replace those of 'b.tar'" out/errors.jsonl
  [ "$(wc -l <out/errors.jsonl)" -eq 9 ]
  [ "$(field key <out/train/index.jsonl | tr '\n' ' ')" = '"a1" "b2" "t1" ' ]
  before=$(tree_hash out)
  run --separate-stderr pack -o out - <in
  [ "$status" -eq 1 ]
  [ "$(tree_hash out)" = "$before" ]
}

@test "a shard of nothing but faults has no latents; nothing at all is an error" {
  make_shard a a1=test.mp4
  head -c 300 /dev/urandom >a.d/a1.mp4
  tar --format=ustar --sort=name -C a.d -cf a.tar .
  run --separate-stderr pack -o out a.tar
  [ "$status" -eq 1 ]
  only_records
  [ -z "$output" ]
  [[ "$stderr" == *"no sample could be packed"* ]]
  [[ "$stderr" == *"a1 of 'a.tar': "*"'a1.mp4'"* ]]
  [[ "$stderr" != *"''"* ]]
  [ ! -e out/train/a.tar ]
  [ ! -e out/latents.json ]
  run --separate-stderr pack -o none - </dev/null
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"no shard in the input"* ]]
}

@test "without text embeddings it says so once" {
  make_shard a a1=test.mp4 a2=red.mp4
  rm a.d/*.text.npy
  tar --format=ustar --sort=name -C a.d -cf a.tar .
  run --separate-stderr pack -o out a.tar
  [ "$status" -eq 0 ]
  [ "$(wc -l <<<"$stderr")" -eq 1 ]
  [[ "$stderr" == *"2 samples will be trained without text"* ]]
  [ "$(field text_tokens <out/train/index.jsonl | tr '\n' ' ')" = "0 0 " ]
  [[ "$(tr -d ' \n' <out/latents.json)" == *'"text_encoder":null'* ]]
}

@test "text of another encoder does not mix in" {
  make_shard a a1=test.mp4 a2=red.mp4
  sed -i 's/builtin:hash/other/' a.d/a2.json
  tar --format=ustar --sort=name -C a.d -cf a.tar .
  run --separate-stderr pack -o out a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"a2 of 'a.tar': its text encoder"*"is not that of the samples before"* ]]
}

@test "text of the same encoder in another folder is text of the same encoder" {
  make_shard a a1=test.mp4 a2=red.mp4
  sed -i 's/"name" *: *"builtin:hash"/"name":"t5","path":"\/there","hash":"ab"/' a.d/a1.json
  sed -i 's/"name" *: *"builtin:hash"/"name":"t5","path":"\/elsewhere","hash":"ab"/' a.d/a2.json
  tar --format=ustar --sort=name -C a.d -cf a.tar .
  pack -o out a.tar
  [ "$(jq -c '.text_encoder | [.name, .path, .hash]' out/latents.json)" = '["t5","/there","ab"]' ]
  sed -i 's/"hash":"ab"/"hash":"cd"/' a.d/a2.json
  tar --format=ustar --sort=name -C a.d -cf a.tar .
  run --separate-stderr pack -o other a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"its text encoder"*"is not that of the samples before"* ]]
}

@test "of finished shards little stays in memory, and the files over them are those of all samples" {
  local count begin end
  for count in 10000 100000; do
    many_packed $count 1000
    eval "memory_$count=$(own_memory vfm-pack -q -j2 --size 16 -o $count/out $count/shards.jsonl)"
    [ "$(wc -l <$count/out/train/index.jsonl)" -eq $count ]
    [ "$(jq .splits.train.samples $count/out/latents.json)" -eq $count ]
    # The index is that of the notes, shard by shard.
    for shard in 000000 000009; do
      jq -r '.entries[].key' $count/out/train/m-$shard.json >want
      grep "m-$shard.tar" $count/out/train/index.jsonl | jq -r .key | cmp - want
    done
  done
  # Less than 100 bytes for each of 90,000 more; its line of the index alone has 140.
  # shellcheck disable=SC2154
  echo "$memory_10000 $memory_100000"
  # shellcheck disable=SC2154
  [ "$memory_100000" -lt $((memory_10000 + 9000000)) ]
  # Nothing changes when all is there.
  before=$(tree_hash 10000/out)
  touch -d '2001-01-01' 10000/out/train/index.* 10000/out/latents.json
  vfm-pack -q --size 16 -o 10000/out 10000/shards.jsonl >/dev/null
  [ "$(tree_hash 10000/out)" = "$before" ]
  for file in train/index.jsonl train/index.bin latents.json; do
    [ "$(stat -c %Y 10000/out/$file)" = "$(date -d 2001-01-01 +%s)" ]
  done
}

@test "the report shows originals and decoded latents" {
  make_shard a a1=test.mp4 a2=red.mp4 a3=pic.png
  pack -o out --report page.html a.tar >/dev/null
  [ "$(grep -o 'data:image/png' page.html | wc -l)" -eq 3 ]
  grep -q 'PSNR' page.html
  run grep -E '(src|href)="http' page.html
  [ "$status" -eq 1 ]
}

@test "a full disk and a closed pipe end it, and it goes on from there" {
  make_shard a a1=test.mp4 a2=red.mp4
  pack -o whole a.tar >/dev/null
  run --separate-stderr bash -c 'vfm-pack --size 64 -o out a.tar >/dev/full'
  [ "$status" -eq 1 ]
  [ ! -e out/latents.json ]
  pack -o out a.tar >/dev/null
  [ "$(tree_hash whole)" = "$(tree_hash out)" ]
  mkdir small
  mount -t tmpfs -o size=16k tmpfs small 2>/dev/null || skip "cannot mount"
  run --separate-stderr pack -o small/out a.tar
  umount small
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"No space left"* ]]
}

@test "exit status 2 before any work" {
  make_shard a a1=test.mp4
  for bad in '--size 4' '--frames 0' '--fps 0' '--fps 1/0' '--fps ten' '--crop left' '--tokenizer vae' '--channels 0' \
    '--channels 1537' '--tokenizer-memory 0' '--tokenizer-memory much' '--device tpu' '--hwaccel vaapi' '--time-factor 3' '--space-factor 5' '--tokens 10' '-j x' '--overlap 17' '--nonsense'; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-pack -o out $bad a.tar
    [ "$status" -eq 2 ] || { echo "$bad: $status"; false; }
    [ -z "$output" ]
    [ ! -e out ]
  done
  run --separate-stderr vfm-pack -o out --tokenizer '' a.tar
  [ "$status" -eq 2 ]
  run --separate-stderr vfm-pack a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"no output folder"* ]]
  run --separate-stderr vfm-pack -o a.tar a.tar
  [ "$status" -ne 0 ]
}

@test "text that is not finite costs its sample; a damaged shard with a hash costs itself" {
  make_shard in a=test.mp4 b=red.mp4
  python3 - <<'EOF'
import tarfile, io
src = tarfile.open("in.tar")
with tarfile.open("bad.tar", "w", format=tarfile.USTAR_FORMAT) as out:
    for info in src:
        if not info.isfile():
            continue
        data = bytearray(src.extractfile(info).read())
        if info.name.endswith("b.text.npy"):
            data[-2:] = b"\x00\x7c"  # infinity
        out.addfile(info, io.BytesIO(bytes(data)))
EOF
  run vfm-pack bad.tar -o out --size 64
  [ "$status" -eq 1 ]
  grep -q "'text.npy' has values that are not finite" out/errors.jsonl
  [ "$(wc -l <out/train/index.jsonl)" -eq 1 ]
  printf '{"kind":"shard","path":"in.tar","xxh3":"00000000000000000000000000000000"}\n' |
    { run vfm-pack -o other --size 64; [ "$status" -eq 1 ]; }
  grep -q 'not as it was written' other/errors.jsonl
}

@test "each sample's own split counts: a validation sample cannot slip into train" {
  make_video a.mp4 2
  make_video b.mp4 2 "mandelbrot=size=96x64:rate=12"
  make_video c.mp4 2 "color=red:size=96x64:rate=12"
  vfm-clip a.mp4 b.mp4 c.mp4 -o clips | vfm-shard -o dataset --keep-duplicates --split train=0.5,val=0.5 >set.jsonl
  splits_of() { for tar in $(jq -r "select(.split == \"$1\") | .path" "$2"); do tar -tf "$tar" | sed 's/\..*//'; done | sort -u; }
  splits_of val set.jsonl >val
  splits_of train set.jsonl >train
  [ -s val ] && [ -s train ]
  # By their paths alone, and embedded again: the record says nothing, the samples do.
  pack -o bare $(jq -r '.path // empty' set.jsonl) >bare.jsonl
  # The same again does nothing.
  touch -d '2001-01-01' bare/latents.json
  pack -o bare $(jq -r '.path // empty' set.jsonl) >twice.jsonl
  cmp <(jq .path bare.jsonl) <(jq .path twice.jsonl)
  [ "$(stat -c %Y bare/latents.json)" = "$(date -d 2001-01-01 +%s)" ]
  jq -r '.path // empty' set.jsonl | vfm-embed 2>/dev/null | jq -c 'select(.kind == "shard") | del(.split)' | pack -o again - >again.jsonl
  for out in bare again; do
    cmp <(splits_of val $out.jsonl) val
    cmp <(splits_of train $out.jsonl) train
    [ "$(jq .splits.val.samples $out/latents.json)" = "$(wc -l <val)" ]
  done
}

@test "one tar with samples of several splits becomes a tar of each; record and sample must agree" {
  make_shard a a1=test.mp4 a2=red.mp4 a3=short.mp4 a4=tiny.mp4
  sed -i 's/}}$/},"split":"val"}/' a.d/a2.json
  sed -i 's/}}$/},"split":"test"}/' a.d/a3.json
  sed -i 's/}}$/},"split":"..\/up"}/' a.d/a4.json
  tar --format=ustar --sort=name -C a.d -cf a.tar .
  for jobs in 1 4; do
    run --separate-stderr pack -j$jobs -o out$jobs a.tar
    [ "$status" -eq 1 ]
    [ "$(jq -r '.path // empty' <<<"$output" | sed "s/out$jobs/out/" | tr '\n' ' ')" = "out/test/a.tar out/train/a.tar out/val/a.tar " ]
  done
  [ "$(tree_hash out1)" = "$(tree_hash out4)" ]
  [ "$(jq -r .key out1/*/index.jsonl | tr '\n' ' ')" = "a3 a1 a2 " ]
  [ "$(jq -r .error out1/errors.jsonl)" = "its split '../up' cannot name a folder" ]
  before=$(tree_hash out1)
  run --separate-stderr pack -o out1 a.tar
  [ "$status" -eq 1 ]
  [ "$(tree_hash out1)" = "$before" ]
  # A part that is gone is remade, and with it the others.
  rm out1/val/a.tar
  run --separate-stderr pack -o out1 a.tar
  [ "$(tree_hash out1)" = "$before" ]
  # The record says train: what says val itself is neither.
  record a.tar train | { run --separate-stderr pack -o strict -; [ "$status" -eq 1 ]; }
  grep -q "its json says split 'val', the record of its shard 'train'" strict/errors.jsonl
  [ ! -e strict/val ]
  [ "$(jq -r .key strict/train/index.jsonl)" = a1 ]
}

@test "one program at a time for latents: the second is refused, and disturbs nothing" {
  make_shard a a1=test.mp4
  pack -o out a.tar >/dev/null
  before=$(tree_hash out)
  exec 9<out
  flock 9
  run --separate-stderr pack -o out a.tar 9>&-
  [ "$status" -eq 1 ]
  [ "$stderr" = "vfm-pack: 'out' is in use by another program that writes it; wait for it, or choose another folder" ]
  [ "$(tree_hash out)" = "$before" ]
}
