#!/usr/bin/env bats
# vfm-pack: latents, windows, texts, the length index, splits.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
load clips
bats_require_minimum_version 1.5.0

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

# bats test_tags=night
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

# bats test_tags=night
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

# bats test_tags=night
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

# bats test_tags=night
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

# bats test_tags=night
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

@test "-v says a line a shard; other options are named, and none that was not given" {
  make_shard a a1=test.mp4 a2=red.mp4
  run --separate-stderr pack -v -o out a.tar
  [ "$status" -eq 0 ]
  grep -q "'out/train/a.tar': 2 samples, 0 errors" <<<"$stderr"
  run --separate-stderr vfm-pack --size 32 -o out a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"'out' holds latents of other options (size is 64 there, and now 32)"* ]]
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

@test "the report shows originals and decoded latents" {
  make_shard a a1=test.mp4 a2=red.mp4 a3=pic.png
  pack -o out --report page.html a.tar >/dev/null
  [ "$(grep -o 'data:image/png' page.html | wc -l)" -eq 3 ]
  grep -q 'PSNR' page.html
  run grep -E '(src|href)="http' page.html
  [ "$status" -eq 1 ]
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

# bats test_tags=night
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
