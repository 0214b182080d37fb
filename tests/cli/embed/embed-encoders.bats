#!/usr/bin/env bats
# vfm-embed: encoders of texts and pictures from folders.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
load clips
bats_require_minimum_version 1.5.0

@test "T5 from a folder: a pipeline, a model, any -j, resumed" {
  make_shard a "k1=red=a red fox" "k2=blue=" "k3=test=A red fox crosses a snowy road in the morning light."
  cp a.tar b.tar
  cp a.caption.tar b.caption.tar
  cp -r "$VFM_ROOT/tests/golden/t5" t5
  run --separate-stderr vfm-embed --text t5/v1_0 --text-tokens 9 --device cpu -j1 a.tar b.tar
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  # </s> alone; cut after eight tokens and </s>.
  [ "$(npy a.embed.tar k2.text.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 16), }" ]
  [ "$(npy a.embed.tar k3.text.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (9, 16), }" ]
  [[ "$(tar -xOf a.embed.tar k1.json)" == *'"text_encoder":{"name":"t5","path":"'*'/t5/v1_0","hash":"'*'","dim":16,"max_tokens":9,"compute":"f32"}'*'}' ]]
  cmp a.embed.tar b.embed.tar
  first=$(stat -c %i:%Y a.embed.tar)
  vfm-embed --text t5/v1_0 --text-tokens 9 --device cpu a.tar b.tar
  [ "$(stat -c %i:%Y a.embed.tar)" = "$first" ]
  mkdir again
  vfm-embed --text t5/v1_0 --text-tokens 9 --device cpu -j2 -o again a.tar b.tar
  cmp a.embed.tar again/a.embed.tar
  cmp b.embed.tar again/b.embed.tar
  # Other settings, other columns.
  vfm-embed --video none --text t5/umt5 --compute bf16 a.tar
  [[ "$(tar -xOf a.embed.tar k1.json)" == '{"text_encoder":{"name":"umt5","path":"'*'"max_tokens":512,"compute":"bf16"}}' ]]
  # Wan cleans its texts, and so does its umT5 in a pipeline.
  cp -r "$VFM_ROOT/tests/golden/wan_pipeline/t2v" wan
  cp -r t5/umt5 wan/text_encoder
  cp -r t5/v1_0/tokenizer wan/tokenizer
  make_shard w "k1=red=a  red&amp;white fox" "k2=red=a red&white fox"
  vfm-embed --video none --text wan w.tar
  [[ "$(tar -xOf w.embed.tar k1.json)" == *'"compute":"f32","clean":true}}' ]]
  cmp <(tar -xOf w.embed.tar k1.text.npy) <(tar -xOf w.embed.tar k2.text.npy)
  run --separate-stderr vfm-embed search 'a red fox' --top 1 a.tar
  [ "$status" -eq 0 ]
  [[ "$output" == *'"key":"k1"'* ]]
}

@test "an encoder of pictures from a folder: any -j, resumed, searched by a file" {
  three a
  make_shard b bt=smaller=
  cp -r "$VFM_ROOT/tests/golden/picture_encoders/clip" model
  run --separate-stderr vfm-embed --video model --device cpu -j1 a.tar b.tar
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "$(npy a.embed.tar ar.video.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (12,), }" ]
  [[ "$(tar -xOf a.embed.tar ar.json)" == '{"video_encoder":{"name":"clip","path":"'*'/model","hash":"'*'","dim":12,"compute":"f32","input":{"shortest_edge":24,"resample":"bicubic",'*'},"frames":8,"pool":"mean"},"text_encoder":{"name":"builtin:hash"'*'"frames":8}' ]]
  tar -xOf a.embed.tar ar.video.npy | tail -c 24 | python3 -c '
import struct, sys
length = sum(v * v for v in struct.unpack("<12e", sys.stdin.buffer.read())) ** 0.5
assert abs(length - 1) < 1e-3, length'
  first=$(stat -c %i:%Y a.embed.tar)
  vfm-embed --video model --device cpu a.tar b.tar >embedded.jsonl
  [ "$(stat -c %i:%Y a.embed.tar)" = "$first" ]
  vfm-embed --video model --device cpu -j4 -o again a.tar b.tar
  cmp a.embed.tar again/a.embed.tar
  # A copy is found, and by what it was embedded with.
  [ "$(vfm-embed search "$CLIPS/test.mp4" --top 2 embedded.jsonl | records | keys)" = "at bt " ]
  vfm-embed search "$CLIPS/test.mp4" --top 1 embedded.jsonl | records | jq -e '.score > 0.999'
  # Other settings, other columns.
  vfm-embed --video model --video-frames 2 --compute bf16 --device cpu a.tar
  [[ "$(tar -xOf a.embed.tar ar.json)" == *'"compute":"bf16","input":'*'"frames":2,"pool":"mean"}'* ]]
}

@test "SigLIP 2 of any resolution: clips of all shapes, any -j, searched by a file" {
  three a
  make_shard b bt=smaller=
  cp -r "$VFM_ROOT/tests/golden/picture_encoders/siglip2" model
  run --separate-stderr vfm-embed --video model --text none --device cpu -j1 a.tar b.tar
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "$(npy a.embed.tar ar.video.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (16,), }" ]
  tar -xOf a.embed.tar ar.json | jq -e '.video_encoder | .name == "siglip2" and .input.patch == 8 and
    .input.most_patches == 20 and (.input | has("size") | not)'
  vfm-embed --video model --text none --device cpu -j4 -o again a.tar b.tar >embedded.jsonl
  cmp a.embed.tar again/a.embed.tar
  cmp b.embed.tar again/b.embed.tar
  vfm-embed search "$CLIPS/test.mp4" --top 1 embedded.jsonl | records | jq -e '.key == "at" and .score > 0.999'
  # Its tower for texts is that of one of a fixed resolution.
  cp -r "$VFM_ROOT/tests/golden/sentences/siglip2" text
  vfm-embed --video none --text text --device cpu -o fixed a.tar
  sed -i 's/siglip_text_model/siglip2_text_model/' text/config.json
  vfm-embed --video none --text text --device cpu -o any a.tar
  tar -xOf any/a.embed.tar ar.json | jq -e '.text_encoder.name == "sentence:siglip2"'
  cmp <(tar -xOf fixed/a.embed.tar ar.text.npy) <(tar -xOf any/a.embed.tar ar.text.npy)
}

# apart TAR KEY KEY: how far their clips' vectors are from each other; both have length 1.
apart() {
  python3 - "$@" <<'END'
import struct, sys, tarfile
def vector(key):
    data = tarfile.open(sys.argv[1]).extractfile(key + ".video.npy").read()
    return [v for (v,) in struct.iter_unpack("<e", data[data.index(b"\n") + 1:])]
print(sum((a - b) ** 2 for a, b in zip(vector(sys.argv[2]), vector(sys.argv[3]), strict=True)) ** 0.5)
END
}

@test "a video encoder tells a clip from the same frames backwards, means of frames do not" {
  local golden="$VFM_ROOT/tests/golden" lossless=(-c:v libx264 -qp 0 -pix_fmt yuv420p)
  quiet_ffmpeg -f lavfi -i testsrc2=size=96x64:rate=8 -t 1 "${lossless[@]}" "$CLIPS/there.mp4"
  quiet_ffmpeg -i "$CLIPS/there.mp4" -vf reverse "${lossless[@]}" "$CLIPS/back.mp4"
  quiet_ffmpeg -i "$CLIPS/there.mp4" -frames:v 3 "${lossless[@]}" "$CLIPS/short.mp4"
  make_shard a there=there= back=back= short=short=
  run --separate-stderr vfm-embed --video "$golden/video_encoders/vjepa2" --text none --device cpu -j1 a.tar
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "$(npy a.embed.tar there.video.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (32,), }" ]
  tar -xOf a.embed.tar there.json | jq -e '.video_encoder | .name == "vjepa2" and .frames == 8 and .pool == "tokens"'
  vfm-embed --video "$golden/picture_encoders/clip" --text none --device cpu -o means a.tar
  jq -ne "$(apart a.embed.tar there back) > 0.05 and $(apart means/a.embed.tar there back) < 0.002"
  vfm-embed search "$CLIPS/back.mp4" --top 1 a.tar | records | jq -e '.key == "back" and .score > 0.999'
  # Windows, and another number of frames, also in a worker.
  for device in cpu "cpu,"; do
    vfm-embed --video "$golden/video_encoders/vjepa2" --video-frames 4 --windows 0.5 --text none --device "$device" -o "$device" a.tar
  done
  cmp cpu/a.embed.tar cpu,/a.embed.tar
  [ "$(npy cpu/a.embed.tar back.windows.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 32), }" ]
  [ "$(npy cpu/a.embed.tar short.windows.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 32), }" ]
  tar -xOf cpu/a.embed.tar short.json | jq -e '.video_encoder.frames == 4'
  cmp <(tar -xOf cpu/a.embed.tar short.video.npy | tail -c 64) <(tar -xOf cpu/a.embed.tar short.windows.npy | tail -c 64)
  refused "a multiple of 2 frames, at most 64, and not 5" vfm-embed --video "$golden/video_encoders/vjepa2" --video-frames 5 a.tar
  refused "makes vectors of clips, not of pictures" vfm-clip "$CLIPS/red.mp4" --stitch "$golden/video_encoders/vjepa2" -o none
}

# refuses OPTION FOLDER WORDS: vfm-embed does, before any work.
refuses() {
  run --separate-stderr vfm-embed "$1" "$2" --device cpu a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == "vfm-embed: "*"$3"* ]]
  [ ! -e a.embed.tar ]
}

@test "folders that are no encoder of pictures are refused before any work" {
  three a
  cp -r "$VFM_ROOT/tests/golden/picture_encoders/siglip" model
  refused() { refuses --video "$@"; }
  refused nowhere "no such model folder: 'nowhere'"
  refused "$VFM_ROOT/tests/golden/t5/v1_1" "it has no preprocessor_config.json"
  mkdir cosmos
  for config in '{"model_type":"cosmos-embed1"}' '{"model_type":"x","architectures":["CosmosEmbed1"]}'; do
    echo "$config" >cosmos/config.json
    refused cosmos "is of Cosmos-Embed1 ("
  done
  sed -i 's/"do_resize"/"do_pad": true, "do_resize"/' model/preprocessor_config.json
  refused model '"do_pad" is true, which is not supported here'
  sed -i 's/"do_pad": true, //; s/27/28/g' model/preprocessor_config.json
  refused model "takes pictures of 27x27, its preprocessing makes them 28x28"
  sed -i 's/"model_type": "siglip"/"model_type": "siglip2"/' model/config.json
  refused model "NaFlex"
}

@test "sentence encoders from folders: one vector a caption, any -j, resumed, searched" {
  make_shard a "k1=red=a red fox" "k2=blue=" "k3=test=A red fox crosses a snowy road in the morning light."
  cp a.tar b.tar
  cp a.caption.tar b.caption.tar
  cp -r "$VFM_ROOT/tests/golden/sentences" .
  for model in bert siglip; do
    run --separate-stderr vfm-embed --video none --text sentences/$model --device cpu -j1 --force a.tar b.tar
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    cmp a.embed.tar b.embed.tar
    for key in k1 k2 k3; do
      [[ "$(npy a.embed.tar $key.text.npy)" == "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 1"[26]"), }" ]]
    done
  done
  [[ "$(tar -xOf a.embed.tar k1.json)" == '{"text_encoder":{"name":"sentence:siglip","path":"'*'/sentences/siglip","hash":"'*'","dim":12,"max_tokens":24,"compute":"f32","rule":"last of 24, normalised"}'*'}' ]]
  # Of length 1, as transformers has them.
  python3 - a.embed.tar "$VFM_ROOT/tests/golden/sentences/outputs.safetensors" <<'END'
import json, struct, sys, tarfile
def halves(key):
    data = tarfile.open(sys.argv[1]).extractfile(key + ".text.npy").read()
    return [v for (v,) in struct.iter_unpack("<e", data[-24:])]
data = open(sys.argv[2], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
begin, _ = json.loads(data[8:8 + size])["siglip.vectors"]["data_offsets"]
for key, text in (("k3", 0), ("k2", 2)):
    at = 8 + size + begin + 48 * text
    golden = struct.unpack("<12f", data[at:at + 48])
    assert max(abs(a - b) for a, b in zip(halves(key), golden, strict=True)) < 1e-3, key
    assert abs(sum(v * v for v in halves(key)) - 1) < 2e-3
END
  first=$(stat -c %i:%Y a.embed.tar)
  vfm-embed --video none --text sentences/siglip --device cpu a.tar b.tar
  [ "$(stat -c %i:%Y a.embed.tar)" = "$first" ]
  mkdir again
  vfm-embed --video none --text sentences/siglip --device cpu -j2 -o again a.tar b.tar
  cmp a.embed.tar again/a.embed.tar
  # The whole text counts, and the same one is all alike.
  run --separate-stderr vfm-embed search 'a red fox' --top 2 a.tar
  only_records
  [ "$status" -eq 0 ]
  [[ "${lines[0]}" == *'"score":'[01]*'"key":"k1"'* ]]
  python3 -c 'import json, sys; assert json.loads(sys.argv[1])["score"] > 0.999' "${lines[0]}"
  # Another rule is another encoder.
  sed -i 's/"pooling_mode_mean_tokens": true/"pooling_mode_mean_tokens": false/; s/"pooling_mode_cls_token": false/"pooling_mode_cls_token": true/' sentences/bert/1_Pooling/config.json
  vfm-embed --video none --text sentences/bert --text-tokens 9 --compute bf16 a.tar
  [[ "$(tar -xOf a.embed.tar k1.json)" == *'"name":"sentence:bert"'*'"max_tokens":9,"compute":"bf16","rule":"cls, normalised"}'* ]]
  sed -i 's/models.Normalize/models.Dense/' sentences/bert/modules.json
  run --separate-stderr vfm-embed --text sentences/bert -o none a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"modules.json': module 2 is 'Dense'; what works here is Transformer, Pooling, and Normalize or not"* ]]
  [ ! -e none ]
}

# bats test_tags=night
@test "prompts go before captions and queries as the folder or an option has them, and the json keeps them" {
  local plain="$VFM_ROOT/tests/golden/sentences/bert" in="--video none --device cpu"
  make_shard a "k1=red=a red fox" "k2=blue=an owl, at night"
  make_shard b "k1=red=passage: a red fox" "k2=blue=passage: an owl, at night"
  cp -r "$plain" e5
  echo '{"prompts":{"query":"query: ","passage":"passage: "},"default_prompt_name":null}' >e5/config_sentence_transformers.json
  vfm-embed $in --text e5 a.tar
  vfm-embed $in --text "$plain" b.tar
  tar -xOf a.embed.tar k1.json | jq -e '.text_encoder.prompt == "passage: " and .text_encoder.query_prompt == "query: "'
  tar -xOf b.embed.tar k1.json | jq -e '.text_encoder | has("prompt") or has("query_prompt") | not'
  for key in k1 k2; do cmp <(tar -xOf a.embed.tar $key.text.npy) <(tar -xOf b.embed.tar $key.text.npy); done
  scores() { records | jq -c '[.key, .score]'; }
  vfm-embed search 'query: a red fox' b.tar | scores >expected
  vfm-embed search 'a red fox' a.tar | scores | cmp expected
  vfm-embed index captions --vectors text a.tar
  vfm-embed search 'a red fox' --index captions | scores | cmp expected
  vfm-embed search 'a red fox' --index captions --query-prompt 'passage: ' | records | jq -se '.[0].key == "k1" and .[0].score > 0.999'
  vfm-embed search 'a red fox' --query-prompt 'passage: ' a.tar | records | jq -se '.[0].score > 0.999'
  # What a folder does not say an option does, and it is kept.
  vfm-embed $in --text "$plain" --text-prompt 'passage: ' --query-prompt 'query: ' a.tar
  vfm-embed search 'a red fox' a.tar | scores | cmp expected
  vfm-embed $in --text e5 --text-prompt '' --query-prompt '' a.tar
  vfm-embed search 'a red fox' a.tar | records | jq -se '.[0].score > 0.999'
  refused() {
    run --separate-stderr vfm-embed "${@:2}"
    [ "$status" -eq 2 ]
    [[ "$stderr" = *"$1"* ]] || { echo "$stderr"; false; }
  }
  refused "are about a model" --text-prompt x a.tar
  refused "are about a model" --text builtin:hash --query-prompt x a.tar
  refused "is not a sentence encoder" --text "$VFM_ROOT/tests/golden/t5/v1_1" --text-prompt x a.tar
  refused "not expected" search x --text-prompt x a.tar
  refused "goes before a text" search "$CLIPS/red.mp4" --query-prompt x a.tar
  refused "not expected" index more --query-prompt x a.tar
  # Words of a query are compared one by one.
  vfm-embed --force a.tar
  run --separate-stderr vfm-embed search 'a red fox' --query-prompt 'query: ' a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" = *"word by word by builtin:hash"*"leave out --query-prompt"* ]]
}

@test "a sentence encoder's column is a text of one token to vfm-shard and vfm-pack" {
  three a
  vfm-embed --text "$VFM_ROOT/tests/golden/sentences/clip" --device cpu a.tar | vfm-shard -o dataset |
    vfm-pack --size 32 --frames 1 -o latents >packed.jsonl
  python3 -c 'import json
encoder = json.load(open("latents/latents.json"))["text_encoder"]
assert encoder["name"] == "sentence:clip" and encoder["dim"] == 12 and encoder["rule"] == "end of text, normalised", encoder'
  shard=$(records packed.jsonl | sed -n 's/.*"path":"\([^"]*\)".*/\1/p' | head -n 1)
  key=$(tar -tf "$shard" | sed -n 's/\.text\.npy$//p' | head -n 1)
  [ "$(npy "$shard" "$key.text.npy")" = "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 12), }" ]
  [[ "$(tar -xOf "$shard" "$key.json")" == *'"text_tokens":1,'* ]]
  # So is a model that is trained on it, and its prompts.
  quick_recipe run latents --device cpu
  jq -e '.text_encoder.name == "sentence:clip"' run/checkpoints/step-00000001/train.json
  made=(vfm-generate --model run --device cpu --size 32x32 --frames 1 --steps 1 --guidance 0)
  [ "$(vfm-generate cost "${made[@]:1}" -q | jq .text_tokens)" -eq 1 ]
  for prompt in 'a red square' 'a blue square'; do
    "${made[@]}" --latents-only -o "$prompt" "$prompt" >/dev/null
  done
  run ! cmp 'a red square'/*.safetensors 'a blue square'/*.safetensors
}

@test "folders that are no text encoder are refused before any work" {
  three a
  cp -r "$VFM_ROOT/tests/golden/t5/v1_1" t5
  mkdir empty
  refused() { refuses --text "$@"; }
  refused nowhere "no such model folder: 'nowhere'"
  refused empty "'empty' is not a model folder: it has no config.json"
  sed -i 's/"model_type": "t5"/"model_type": "mpnet"/' t5/config.json
  refused t5 "holds a model of type mpnet; what works here: t5, umt5, bert"
  sed -i 's/"model_type": "mpnet"/"model_type": "t5"/; s/"gated-gelu"/"gated-silu"/' t5/config.json
  refused t5 "feed_forward_proj 'gated-silu' is not supported"
  sed -i 's/"gated-silu"/"gated-gelu"/; s/"d_ff": 40/"d_ff": 41/' t5/config.json
  refused t5 "/t5/model.safetensors' are not those of the model: 6 of another shape"
  sed -i 's/"d_ff": 41/"d_ff": 40/' t5/config.json
  printf '{"model":{"type":"Guess"}}' >t5/tokenizer.json
  refused t5 "/t5/tokenizer.json' has a model of the type 'Guess'"
  head -c 1000 "$VFM_ROOT/tests/golden/t5/v1_1/spiece.model" >t5/spiece.model
  rm t5/tokenizer.json
  refused t5 "/t5/spiece.model' is not a sentencepiece model"
  rm t5/spiece.model
  refused t5 "'t5' has no tokenizer"
  truncate -s 1T t5/config.json  # of holes alone
  refused t5 "'t5/config.json' has 1.0 TiB, and at most 64.0 MiB are read"
}

# bats test_tags=night
@test "headers and tokenizers of very many names are read in a moment" {
  three a
  cp -r "$VFM_ROOT/tests/golden/sentences/bert" many
  python3 - <<'PY'
import json, struct
names = ",".join('"n%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % i for i in range(150_000))
header = ("{" + names + "}").encode()
open("many/model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header)
PY
  fails 2 timeout 100 vfm-embed --video none --text many a.tar
  grep -F "are not those of the model" err
  cp "$VFM_ROOT/tests/golden/sentences/bert/model.safetensors" many
  python3 - <<'PY'
import json
with open("many/tokenizer.json") as f:
    tokenizer = json.load(f)
tokenizer["unknown"] = [{"n": i} for i in range(400_000)]
json.dump(tokenizer, open("many/tokenizer.json", "w"))
PY
  vfm-embed --video none --text "$VFM_ROOT/tests/golden/sentences/bert" -o plain a.tar >/dev/null
  timeout 100 vfm-embed --video none --text many -o more a.tar >/dev/null
  cmp <(tar -xOf plain/a.embed.tar --wildcards '*.text.npy') <(tar -xOf more/a.embed.tar --wildcards '*.text.npy')
}
