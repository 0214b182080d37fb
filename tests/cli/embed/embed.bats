#!/usr/bin/env bats
# vfm-embed: columns of vectors, search, resume, faults.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
bats_require_minimum_version 1.5.0

# Once: clips of 1 s, and the same with other size, rate and quality.
setup_file() {
  export CLIPS="$BATS_FILE_TMPDIR/clips"
  mkdir "$CLIPS"
  clip red "color=gray:size=96x96:rate=8,drawbox=x=8:y=8:w=30:h=30:color=red:t=fill"
  clip blue "color=gray:size=96x96:rate=8,drawbox=x=50:y=50:w=30:h=30:color=blue:t=fill"
  clip test "testsrc2=size=96x64:rate=8"
  ffmpeg -nostdin -loglevel error -y -i "$CLIPS/test.mp4" -vf "scale=48:32" -c:v libx264 -crf 30 \
    -preset ultrafast "$CLIPS/smaller.mp4"
}
clip() {
  ffmpeg -nostdin -loglevel error -y -f lavfi -i "$2" -t 1 -c:v libx264 -preset ultrafast \
    -pix_fmt yuv420p "$CLIPS/$1.mp4"
}

# make_shard NAME [KEY=CLIP=CAPTION...]: NAME.tar and, if there are captions, NAME.caption.tar.
make_shard() {
  local name=$1 key clip text
  shift
  mkdir -p "$name.d/clip" "$name.d/caption"
  for spec in "$@"; do
    IFS='=' read -r key clip text <<<"$spec"
    cp "$CLIPS/$clip.mp4" "$name.d/clip/$key.mp4"
    printf '{"key":"%s","source":"%s.mp4"}' "$key" "$clip" >"$name.d/clip/$key.json"
    printf '%s' "$text" >"$name.d/caption/$key.txt"
    printf '{"caption":"%s"}' "$text" >"$name.d/caption/$key.json"
  done
  tar --format=ustar --sort=name -C "$name.d/clip" -cf "$name.tar" .
  tar --format=ustar --sort=name -C "$name.d/caption" -cf "$name.caption.tar" .
}
three() { make_shard "$1" "$1r=red=a red square" "$1s=blue=a blue square" "$1t=test=a test picture"; }

# npy FILE MEMBER: the header of an npy member.
npy() { tar -xOf "$1" "$2" | tr -d '\0' | head -1 | grep -ao '{.*}'; }
keys() { sed 's/.*"key":"\([^"]*\)".*/\1/' | tr '\n' ' '; }

@test "video and text vectors, in the order of the shard" {
  three a
  run --separate-stderr vfm-embed a.tar
  only_records
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [[ "$output" == '{"kind":"shard","path":"a.tar","samples":3,"bytes":'*',"columns":{"clip":"a.tar","caption":"a.caption.tar","embed":"a.embed.tar"}}' ]]
  [ "$(tar -tf a.embed.tar | tr '\n' ' ')" = "ar.video.npy ar.text.npy ar.json as.video.npy as.text.npy as.json at.video.npy at.text.npy at.json " ]
  [ "$(npy a.embed.tar ar.video.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (234,), }" ]
  [ "$(npy a.embed.tar ar.text.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (3, 64), }" ]
  [[ "$(tar -xOf a.embed.tar ar.json)" == '{"video_encoder":{"name":"builtin:look","dim":234,"version":1},"text_encoder":{"name":"builtin:hash","dim":64,"max_tokens":512,"version":1},"width":'*'}' ]]
}

@test "captions of windows have embeddings of their own, which go with the windows that become latents" {
  ffmpeg -nostdin -loglevel error -y -f lavfi -i "testsrc2=size=64x64:rate=8" -t 5 -c:v libx264 -preset ultrafast \
    -pix_fmt yuv420p "$CLIPS/long.mp4"
  make_shard a "ar=red=a red square" "al=long=one two then three"
  echo '{"caption":"one two then three","caption_windows":[{"start":0,"end":2.5,"caption":"one two"},{"start":2.5,"end":5,"caption":"then three words"}]}' >a.d/caption/al.json
  tar --format=ustar --sort=name -C a.d/caption -cf a.caption.tar .
  vfm-embed a.tar >a.jsonl
  [ "$(tar -tf a.embed.tar | grep -c '[.]text[.]windows[.]npy')" -eq 2 ]
  [ "$(npy a.embed.tar al.text.windows.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (5, 64), }" ]
  [ "$(npy a.embed.tar ar.text.windows.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (0, 64), }" ]
  [ "$(tar -xOf a.embed.tar al.json ar.json | jq -c .text_windows | paste -sd' ')" = "[2,3] []" ]
  vfm-shard -o dataset a.jsonl | vfm-pack --size 32 --frames 17 -o latents >/dev/null
  [ "$(jq -r '[.key, .text_tokens] | join("=")' latents/train/index.jsonl | sort | paste -sd' ')" = "al-w000=2 al-w001=3 ar=3" ]
  for tar in latents/train/*.tar; do tar -xOf "$tar" --wildcards 'al*.json'; done 2>/dev/null | jq -r .caption | sort | paste -sd, >captions
  [ "$(cat captions)" = "one two,then three words" ]
}

@test "without captions there is only video; asked for, their absence is an error" {
  three a
  rm a.caption.tar
  run --separate-stderr vfm-embed a.tar
  [ "$status" -eq 0 ]
  [ "$(tar -tf a.embed.tar | tr '\n' ' ')" = "ar.video.npy ar.json as.video.npy as.json at.video.npy at.json " ]
  run --separate-stderr vfm-embed --text builtin:hash --force a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"a.tar: has no captions; run vfm-caption on it first"* ]]
}

@test "text alone, of another width; an empty caption has no tokens" {
  make_shard a k1=red= "k2=blue=שועל אדום"
  vfm-embed --video none --text-dim 16 a.tar
  [ "$(npy a.embed.tar k1.text.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (0, 16), }" ]
  [ "$(npy a.embed.tar k2.text.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 16), }" ]
  [ "$(tar -tf a.embed.tar | tr '\n' ' ')" = "k1.text.npy k1.json k2.text.npy k2.json " ]
}

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

@test "windows of clips have vectors of their own, and the clip's stays" {
  ffmpeg -nostdin -loglevel error -y -f lavfi -i "testsrc2=size=64x48:rate=8" -t 5 -c:v libx264 -preset ultrafast \
    -pix_fmt yuv420p long.mp4
  mkdir d
  mv long.mp4 d/b.mp4
  cp "$CLIPS/red.mp4" d/a.mp4
  head -c 200 /dev/urandom >d/c.mp4
  tar --format=ustar --sort=name -C d -cf w.tar .
  cp w.tar v.tar
  cp -r "$VFM_ROOT/tests/golden/picture_encoders/clip" model
  windowed=(vfm-embed --video model --video-frames 2 --windows 2 --device cpu)
  run --separate-stderr "${windowed[@]}" -j1 -o one w.tar v.tar
  [ "$status" -eq 1 ] # c
  [ "$(tar -tf one/w.embed.tar | tr '\n' ' ')" = "a.video.npy a.windows.npy a.json b.video.npy b.windows.npy b.json c.video.npy c.windows.npy c.json " ]
  for spec in a=1 b=3 c=0; do
    [ "$(npy one/w.embed.tar "${spec%=*}.windows.npy")" = "{'descr': '<f2', 'fortran_order': False, 'shape': (${spec#*=}, 12), }" ]
  done
  tar -xOf one/w.embed.tar b.json | jq -e '.video_windows == {"seconds": 2, "frames": 2, "begin": [0, 1.625, 3.25]}'
  tar -xOf one/w.embed.tar c.json | jq -e '.video_windows.begin == []'
  run "${windowed[@]}" -j3 -o three w.tar v.tar
  cmp one/w.embed.tar three/w.embed.tar
  cmp one/v.embed.tar three/v.embed.tar
  # The clip's own vector is the one without windows; a clip of one window has that of the clip.
  run vfm-embed --video model --video-frames 2 --device cpu -o plain w.tar
  for key in a b; do
    cmp <(tar -xOf plain/w.embed.tar $key.video.npy) <(tar -xOf one/w.embed.tar $key.video.npy)
  done
  cmp <(tar -xOf one/w.embed.tar a.video.npy | tail -c 24) <(tar -xOf one/w.embed.tar a.windows.npy | tail -c 24)
  # A window's is that of a clip of its frames, 13 to 25 of 40.
  ffmpeg -nostdin -loglevel error -y -i d/b.mp4 -vf "select='between(n,13,25)',setpts=N/8/TB" -c:v libx264 -qp 0 \
    -preset ultrafast part.mp4
  mkdir p
  mv part.mp4 p/part.mp4
  tar --format=ustar -C p -cf part.tar part.mp4
  vfm-embed --video model --video-frames 2 --device cpu part.tar >/dev/null
  python3 - <<'END'
import struct, tarfile
def halves(tar, name):
    data = tarfile.open(tar).extractfile(name).read()
    return [v for (v,) in struct.iter_unpack("<e", data[128:])]
rows = halves("one/w.embed.tar", "b.windows.npy")
part = halves("part.embed.tar", "part.video.npy")
near = [sum(x * y for x, y in zip(rows[i:i + 12], part, strict=True)) for i in (0, 12, 24)]
assert near[1] > 0.9999 and max(near[0], near[2]) < near[1], near
END
  # A search names the window that is nearest: the middle one for its own frames, the last one's end is not told.
  vfm-embed search p/part.mp4 one/w.embed.tar w.tar >found.jsonl 2>/dev/null || [ $? -eq 1 ]
  jq -se 'map(select(.key == "b")) | .[0].window | .number == 1 and .begin == 1.625 and .end == 3.25 and .score > 0.999' found.jsonl
  jq -se 'map(select(.key == "a")) | .[0].window.number == 0' found.jsonl
  for bad in '--windows 2' '--windows 2 --video none' '--windows 0 --video model'; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-embed $bad w.tar
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"--windows"* ]]
  done
}

@test "vectors of two encoders of clips are not compared" {
  three a
  three b
  cp -r "$VFM_ROOT/tests/golden/picture_encoders/dinov2" model
  vfm-embed a.tar >embedded.jsonl
  vfm-embed --video model --device cpu b.tar >>embedded.jsonl
  run --separate-stderr vfm-embed search "$CLIPS/red.mp4" embedded.jsonl
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 3 ]
  [[ "$stderr" == *"b.tar: 3 samples were embedded by"*"search them apart"* ]]
  [ "$(vfm-embed search "$CLIPS/red.mp4" --top 1 b.tar | records | keys)" = "br " ]
  # The folder holds another model now.
  rm -r model
  cp -r "$VFM_ROOT/tests/golden/picture_encoders/dinov2_own" model
  run --separate-stderr vfm-embed search "$CLIPS/red.mp4" b.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"br was embedded by"*"which is not what"* ]]
}

@test "a text finds clips without captions, by a model of texts and pictures" {
  three a
  rm a.caption.tar
  make_shard b "br=red=a red fox"
  clip_model model
  vfm-embed --video model --device cpu a.tar >embedded.jsonl
  vfm-embed --video model --text model --device cpu b.tar
  run --separate-stderr vfm-embed search 'a red fox' embedded.jsonl
  only_records
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "${#lines[@]}" -eq 3 ]
  # The cosine of what the two towers give.
  python3 - "$output" <<'END'
import json, struct, sys, tarfile
def halves(name):
    data = tarfile.open("b.embed.tar").extractfile(name).read()
    return [v for (v,) in struct.iter_unpack("<e", data[-24:])]
expected = sum(a * b for a, b in zip(halves("br.video.npy"), halves("br.text.npy"), strict=True))
scores = {line["key"]: line["score"] for line in map(json.loads, sys.argv[1].splitlines())}
assert abs(scores["ar"] - expected) < 2e-3, (scores, expected)
assert len(set(scores.values())) == 3
END
  rm model/tokenizer.json
  run --separate-stderr vfm-embed search 'a red fox' embedded.jsonl
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"tokenizer"* ]]
  cp "$VFM_ROOT"/tests/golden/picture_encoders/clip/*.{json,safetensors} model
  run --separate-stderr vfm-embed search 'a red fox' embedded.jsonl
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"holds another model now"* ]]
}

@test "clips are scored by a head, by their captions and by prompts, and filtered by the scores" {
  three a
  three b
  clip_model model
  heads="$VFM_ROOT/tests/golden/aesthetic_heads"
  scored=(vfm-embed --video model --video-frames 1 --text model --device cpu --text-image
    --concept fox='a red fox' --concept same_as_r='a red square' --aesthetic)
  run --separate-stderr "${scored[@]}" "$heads/mlp.pth" -j1 a.tar b.tar
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  # What the vectors in the column say, and what PyTorch's layers make of the clip's: one frame, so that is the frame's.
  python3 - "$heads/mlp.pth" <<'END'
import json, struct, sys, tarfile, zipfile
column = tarfile.open("a.embed.tar")
read = lambda name: column.extractfile(name).read()
halves = lambda name: [v for (v,) in struct.iter_unpack("<e", read(name)[-24:])]
dot = lambda a, b: sum(x * y for x, y in zip(a, b, strict=True))
archive = zipfile.ZipFile(sys.argv[1])
number = lambda name: int(name.rsplit("/", 1)[1])
storages = sorted((n for n in archive.namelist() if "/data/" in n), key=number)
floats = [[v for (v,) in struct.iter_unpack("<f", archive.read(n))] for n in storages]
for key in ("ar", "as", "at"):
    facts, clip, text = json.loads(read(key + ".json")), halves(key + ".video.npy"), halves(key + ".text.npy")
    assert abs(facts["text_image"] - dot(clip, text)) < 2e-3, facts
    values = clip
    for weight, bias in zip(floats[::2], floats[1::2]):
        rows = [weight[i * len(values):(i + 1) * len(values)] for i in range(len(bias))]
        values = [dot(row, values) + b for row, b in zip(rows, bias)]
    assert abs(facts["aesthetic"] - values[0]) < 5e-2, (facts["aesthetic"], values)
    assert list(facts)[-5:] == ["aesthetic", "concept_fox", "concept_same_as_r", "text_image", "scored_by"], list(facts)
    by = facts["scored_by"]
    assert by["aesthetic"]["head"] == "mlp" and len(by["aesthetic"]["hash"]) == 32 and "path" not in by["texts"]
    assert by["texts"]["name"] == "sentence:clip" and by["concepts"] == {"fox": "a red fox", "same_as_r": "a red square"}
    # A caption that is the prompt fits as the prompt does.
    assert (abs(facts["text_image"] - facts["concept_same_as_r"]) < 1e-5) == (key == "ar"), facts
END
  # Any -j; kept, wherever the head lies; made anew by another one or for another question.
  "${scored[@]}" "$heads/mlp.pth" -j4 -o again a.tar b.tar >embedded.jsonl
  cmp a.embed.tar again/a.embed.tar
  cmp b.embed.tar again/b.embed.tar
  before=$(stat -c %i:%Y again/a.embed.tar)
  cp "$heads/mlp.pth" moved.pth
  "${scored[@]}" moved.pth -o again a.tar b.tar >/dev/null
  [ "$(stat -c %i:%Y again/a.embed.tar)" = "$before" ]
  "${scored[@]}" "$heads/linear.pth" -o other a.tar >/dev/null
  tar -xOf other/a.embed.tar ar.json | jq -e '.scored_by.aesthetic.head == "linear"'
  # The vectors are the ones that there are without scores.
  vfm-embed --video model --video-frames 1 --text model --device cpu -o plain a.tar >/dev/null
  [ "$(tar -xOf plain/a.embed.tar ar.video.npy | sha256sum)" = "$(tar -xOf a.embed.tar ar.video.npy | sha256sum)" ]
  # Filters know the fields.
  value=$(tar -xOf again/a.embed.tar ar.json | jq .aesthetic)
  vfm-shard --where "abs(aesthetic - ($value)) < 1e-5 and abs(text_image - concept_same_as_r) < 1e-5 and scored_by ->> '$.aesthetic.head' = 'mlp'" \
    --keep-duplicates -o dataset embedded.jsonl >/dev/null
  [ "$(find dataset -name '*.tar' -exec tar -tf {} \; | grep -c mp4)" -eq 2 ]
}

@test "scores that cannot be are refused before any work; one bad sample costs its own" {
  three a
  clip_model model
  heads="$VFM_ROOT/tests/golden/aesthetic_heads"
  refused() {
    run --separate-stderr vfm-embed "${@:2}" --device cpu a.tar
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"$1"* ]]
    [ ! -e a.embed.tar ]
  }
  refused "name its folder with --video DIR" --concept fox=fox
  refused "is not NAME=TEXT" --video model --concept fox
  forty=$(printf 'x%.0s' {1..40})
  for name in 'Fox!' '' "x$forty"; do
    refused "a name has 1 to 40" --video model --concept "$name=a fox"
  done
  refused "is given twice" --video model --concept fox=a --concept fox=b
  refused "has no part for texts" --video "$VFM_ROOT/tests/golden/picture_encoders/dinov2" --text-image
  refused "scores the vectors of a CLIP" --video "$VFM_ROOT/tests/golden/picture_encoders/dinov2" --aesthetic "$heads/mlp.pth"
  refused "scores vectors of 12 numbers, and the encoder's have 10" --video "$VFM_ROOT/tests/golden/picture_encoders/clip_vision" \
    --aesthetic "$heads/mlp.pth"
  refused "no-head.pth" --video model --aesthetic no-head.pth
  head -c 2000 "$heads/mlp.pth" >truncated.pth
  refused "truncated.pth" --video model --aesthetic truncated.pth
  # No caption, no clip.
  head -c 200 /dev/urandom >a.d/clip/as.mp4
  tar --format=ustar --sort=name -C a.d/clip -cf a.tar .
  rm a.d/caption/ar.txt
  tar --format=ustar --sort=name -C a.d/caption -cf a.caption.tar .
  run --separate-stderr vfm-embed --video model --text none --text-image --concept fox=fox \
    --concept "$forty=$(printf 'fox %.0s' {1..30})" --device cpu a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"--concept $forty: the model does not see the last 12 tokens of the prompt"* ]]
  [[ "$stderr" == *"ar of 'a.tar': has no caption"* ]]
  tar -xOf a.embed.tar ar.json | jq -e 'has("concept_fox") and (has("text_image") | not)'
  tar -xOf a.embed.tar as.json | jq -e '(has("concept_fox") or has("text_image") or has("scored_by")) | not'
  tar -xOf a.embed.tar at.json | jq -e 'has("concept_fox") and has("text_image") and (has("text_encoder") | not)'
  rm a.caption.tar a.embed.*
  run --separate-stderr vfm-embed --video model --text-image --device cpu a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"has no captions; run vfm-caption on it first, or leave --text-image out"* ]]
}

@test "a clip that cannot be decoded, and vectors that are no numbers, cost their samples" {
  three a
  cp -r "$VFM_ROOT/tests/golden/picture_encoders/dinov2" model
  head -c 200 /dev/urandom >a.d/clip/as.mp4
  tar --format=ustar --sort=name -C a.d/clip -cf a.tar .
  run --separate-stderr vfm-embed --video model --device cpu a.tar
  [ "$status" -eq 1 ]
  [ "$(tar -tf a.embed.tar | grep -c video.npy)" -eq 3 ]
  [ "$(tar -xOf a.embed.tar as.video.npy | tail -c 32 | tr -d '\0' | wc -c)" -eq 0 ]
  [ "$(tar -xOf a.embed.tar at.video.npy | tail -c 32 | tr -d '\0' | wc -c)" -gt 16 ]
  "$BATS_TEST_DIRNAME/../fill-tensor" model/model.safetensors nan layernorm.weight
  run --separate-stderr vfm-embed --video model --device cpu --force a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"ar of 'a.tar': its vector by dinov2 has values that are not finite"* ]]
}

@test "texts whose vectors are no numbers are errors: a query, a prompt, captions" {
  three a
  clip_model model
  "$BATS_TEST_DIRNAME/../fill-tensor" model/model.safetensors nan text_model.final_layer_norm.weight
  vfm-embed --video model --text none --device cpu a.tar >/dev/null
  run --separate-stderr vfm-embed search 'a red square' a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"the query's vector by '$PWD/model' has values that are not finite"* ]]
  [[ "$output" != *'"kind":"match"'* ]]
  run --separate-stderr vfm-embed --video model --text none --concept fox=fox --device cpu -o scored a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"--concept fox: the vector that 'model' makes of the prompt is not finite"* ]]
  run --separate-stderr vfm-embed --video model --text none --text-image --device cpu -o scored a.tar
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"ar of 'a.tar': its caption's vector has values that are not finite: no text_image"* ]]
  tar -xOf scored/a.embed.tar ar.json | jq -e 'has("scored_by") and (has("text_image") | not)'
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

@test "text embeddings that are no numbers, or none of half precision, cost their samples" {
  make_shard a "k1=red=a red fox" "k2=blue=a blue boat"
  cp -r "$VFM_ROOT/tests/golden/t5/v1_1" t5
  damaged() {
    "$BATS_TEST_DIRNAME/../fill-tensor" t5/model.safetensors "$1" encoder.final_layer_norm.weight
    run --separate-stderr vfm-embed --text t5 --force -o out a.tar
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"k1 of 'a.tar': its text embedding of t5 $2"*"k2 of 'a.tar': its text embedding"* ]]
    [ "$(npy out/a.embed.tar k2.text.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (0, 16), }" ]
  }
  damaged nan "has values that are not finite"
  damaged 1e6 "has the value "
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

@test "search by text: words, misspelled words, any script" {
  three a
  make_shard b "b1=test=a red fox crosses a snowy road" "b2=test=рыжая лиса" "b3=blue="
  vfm-embed a.tar b.tar >embedded.jsonl
  run --separate-stderr vfm-embed search 'red square' --top 2 embedded.jsonl
  only_records
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "${#lines[@]}" -eq 2 ]
  [[ "${lines[0]}" == '{"kind":"match","rank":1,"score":'*',"key":"ar","path":"a.tar","caption":"a red square"'* ]]
  [ "$(vfm-embed search 'snowi raod' --top 1 embedded.jsonl | records | keys)" = "b1 " ]
  [ "$(vfm-embed search 'ЛИСА' --top 1 ./*.tar | records | keys)" = "b2 " ]
  [ "$(vfm-embed search 'blue' --top 1 embedded.jsonl | records | keys)" = "as " ]
  [ "$(vfm-embed search 'square' embedded.jsonl | records | wc -l)" -eq 6 ]
}

@test "search by text: shards of another encoder are not weighed with the first ones" {
  three a
  three b
  vfm-embed a.tar >embedded.jsonl
  vfm-embed --text "$VFM_ROOT/tests/golden/t5/v1_1" --device cpu b.tar >>embedded.jsonl
  run --separate-stderr vfm-embed search 'red square' embedded.jsonl
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 3 ]
  [[ "$stderr" == *"b.tar: 3 samples were embedded by"*"search them apart"* ]]
  vfm-embed search 'red square' --top 1 b.tar | records | jq -e '.score > 0'
}

@test "search by text: one encoder in two folders is one" {
  three a
  three b
  for shard in a b; do
    cp -r "$VFM_ROOT/tests/golden/t5/v1_1" t5-$shard
    vfm-embed --text t5-$shard --device cpu $shard.tar >>embedded.jsonl
  done
  run --separate-stderr vfm-embed search 'red square' embedded.jsonl
  only_records
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "${#lines[@]}" -eq 6 ]
  [ "$(head -n 2 <<<"$output" | keys)" = "ar br " ]
}

@test "search by a video finds its copies first" {
  three a
  make_shard b bt=smaller=
  vfm-embed a.tar b.tar >embedded.jsonl
  [ "$(vfm-embed search "$CLIPS/test.mp4" --top 2 embedded.jsonl | records | keys)" = "at bt " ]
  score=$(vfm-embed search "$CLIPS/test.mp4" --top 2 embedded.jsonl | records | sed -n '2s/.*"score":\([0-9.]*\).*/\1/p')
  awk -v s="$score" 'BEGIN { exit !(s > 0.98) }'
  score=$(vfm-embed search "$CLIPS/red.mp4" --top 2 embedded.jsonl | records | sed -n '2s/.*"score":\([0-9.]*\).*/\1/p')
  awk -v s="$score" 'BEGIN { exit !(s < 0.9) }'
  quiet_ffmpeg -i "$CLIPS/blue.mp4" -frames:v 1 picture.png
  [ "$(vfm-embed search picture.png --top 1 embedded.jsonl | records | keys)" = "as " ]
}

@test "search in one joined shard, with text and vectors inside" {
  three a
  vfm-embed a.tar
  mkdir j
  tar -xf a.tar -C j --exclude '*.json'
  tar -xf a.caption.tar -C j --exclude '*.json'
  tar -xf a.embed.tar -C j
  mkdir dataset
  tar --format=ustar --sort=name -C j -cf dataset/000000.tar .
  run --separate-stderr vfm-embed search 'test picture' --top 1 dataset/000000.tar
  only_records
  [ "$status" -eq 0 ]
  [[ "$output" == *'"key":"at","path":"dataset/000000.tar","caption":"a test picture"}' ]]
}

@test "search says what is missing" {
  three a
  run --separate-stderr vfm-embed search red a.tar
  [ "$status" -eq 1 ]
  only_records
  [ -z "$output" ]
  [[ "$stderr" == *"a.tar: has no text embeddings; run vfm-caption, then vfm-embed on it first"* ]]
  run --separate-stderr vfm-embed search nothere.mp4 a.tar
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"cannot open 'nothere.mp4'"* ]]
  for text in '' ' ... '; do
    run --separate-stderr vfm-embed search "$text" a.tar
    [ "$status" -eq 2 ]
  done
  run --separate-stderr vfm-embed search red - </dev/null
  [ "$status" -eq 1 ]
  # Quotes forgotten.
  vfm-caption a.tar | vfm-embed >embedded.jsonl
  run --separate-stderr vfm-embed search a red circle embedded.jsonl
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"argument 'red' is a 'video', not a shard; a text of several words to search for stands in quotes"* ]]
  [[ "$stderr" == *"argument 'circle' is a 'video', not a shard"* ]]
  [ -n "$(records <<<"$output")" ]
}

@test "the same command again does nothing; new captions are embedded" {
  three a
  vfm-embed a.tar >one
  touch -d '2001-01-01' a.embed.tar
  vfm-embed a.tar >two
  cmp one two
  [ "$(stat -c %Y a.embed.tar)" = "$(date -d 2001-01-01 +%s)" ]
  echo 'quite another caption' >a.d/caption/ar.txt
  tar --format=ustar --sort=name -C a.d/caption -cf a.caption.tar .
  vfm-embed a.tar
  [ "$(npy a.embed.tar ar.text.npy)" = "{'descr': '<f2', 'fortran_order': False, 'shape': (3, 64), }" ]
  [ "$(stat -c %Y a.embed.tar)" != "$(date -d 2001-01-01 +%s)" ]
}

@test "bytes do not depend on -j" {
  for n in a b c d; do three "$n"; done
  vfm-embed -j1 -o one {a,b,c,d}.tar | records | sed 's/one/DIR/g' >one.jsonl
  vfm-embed -j4 -o four {a,b,c,d}.tar | records | sed 's/four/DIR/g' >four.jsonl
  cmp one.jsonl four.jsonl
  for f in one/*.tar; do cmp "$f" "four/${f#one/}"; done
}

@test "bytes do not depend on --hwaccel" {
  three a
  vfm-embed -o out a.tar >/dev/null
  mv out none
  vfm-embed --hwaccel auto -o out a.tar >/dev/null
  [ "$(tree_hash none)" = "$(tree_hash out)" ]
}

@test "killed at any moment and run again, it ends with the same bytes" {
  local specs=()
  for n in $(seq 100 299); do specs+=("k$n=test=caption $n"); done
  make_shard 1 "${specs[@]}"
  for n in 2 3; do cp 1.tar $n.tar && cp 1.caption.tar $n.caption.tar; done
  vfm-embed -o whole ./1.tar ./2.tar ./3.tar | records | sed 's/whole/DIR/g' >whole.jsonl
  kill_at_random 4 vfm-embed -o killed ./1.tar ./2.tar ./3.tar
  vfm-embed -o killed ./1.tar ./2.tar ./3.tar | records | sed 's/killed/DIR/g' >killed.jsonl
  cmp whole.jsonl killed.jsonl
  [ "$(tree_hash whole)" = "$(sed -i s/killed/whole/ killed/*.json && tree_hash killed)" ]
}

@test "bad shards, bad lines and bad clips cost themselves only" {
  three a
  three t
  rm t.caption.tar
  head -c 500 t.tar >truncated.tar
  head -c 200 /dev/urandom >a.d/clip/as.mp4
  tar --format=ustar --sort=name -C a.d/clip -cf a.tar .
  three o
  tar --format=ustar -C o.d/caption -cf o.caption.tar os.txt os.json or.txt or.json ot.txt ot.json
  printf '%s\n' not.tar '{"kind":' a.tar truncated.tar o.tar >in
  run --separate-stderr vfm-embed - <in
  only_records
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 1 ]
  [ "$(wc -l <embed-errors.jsonl)" -eq 5 ]
  grep -q "cannot open 'not.tar': No such file" embed-errors.jsonl
  grep -q '"input":"truncated.tar"' embed-errors.jsonl
  grep -q "\"input\":\"as of 'a.tar'\"" embed-errors.jsonl
  grep -q "'o.caption.tar' does not have the samples of 'o.tar' in the same order" embed-errors.jsonl
  # The clip that cannot be decoded has zeros, so that the column stays complete.
  [ "$(tar -tf a.embed.tar | grep -c video.npy)" -eq 3 ]
  [ "$(tar -xOf a.embed.tar as.video.npy | tail -c 468 | tr -d '\0' | wc -c)" -eq 0 ]
}

@test "exit status 2 before any work" {
  three a
  export CUDA_VISIBLE_DEVICES=
  for bad in '--video clip' '--video-frames 0' '--text t5' '--text-dim 4' '--video none --text none' '--top 3' 'search x --top 0' 'search x --top 1.5' '-j x' '--hwaccel vaapi' '--hwaccel cuda'; do
    # shellcheck disable=SC2086
    run --separate-stderr vfm-embed $bad a.tar
    [ "$status" -eq 2 ]
    only_records
    [ -z "$output" ]
    [ ! -e a.embed.tar ]
  done
  for option in --text --video; do
    run --separate-stderr vfm-embed "$option" '' a.tar
    [ "$status" -eq 2 ]
  done
}

@test "one caption anywhere in a shard is enough, and a repeated key costs itself only" {
  python3 - <<'EOF'
import io, os, tarfile
def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))
clips = [open(os.environ["CLIPS"] + "/" + n + ".mp4", "rb").read() for n in ("red", "blue", "test")]
with tarfile.open("late.tar", "w") as tar:
    add(tar, "a.mp4", clips[0])
    add(tar, "b.mp4", clips[1])
    add(tar, "b.txt", b"some words")
with tarfile.open("twice.tar", "w") as tar:
    for key, clip in zip("aba", clips):
        add(tar, key + ".mp4", clip)
EOF
  run vfm-embed late.tar -o out
  [ "$status" -eq 1 ]
  [ "$(tar tf out/late.embed.tar | grep -c text.npy)" -eq 2 ]
  grep -q 'a of .*has no caption' out/embed-errors.jsonl
  run vfm-caption twice.tar -o out
  [ "$status" -eq 1 ]
  [ "$(tar tf out/twice.caption.tar | grep -c txt)" -eq 2 ]
  grep -q 'the key comes twice' out/caption-errors.jsonl
  printf '{"kind":"shard","path":"twice.tar","columns":{"clip":"twice.tar","caption":"out/twice.caption.tar"}}\n' |
    { run vfm-embed -o out; [ "$status" -eq 1 ]; }
  [ "$(tar tf out/twice.embed.tar | grep -c video.npy)" -eq 2 ]
}

@test "an empty output folder is refused, and a perfect match scores 1" {
  make_shard s a=red=words
  run vfm-embed s.tar -o ''
  [ "$status" -eq 2 ]
  vfm-embed s.tar -o out >m
  [ "$(vfm-embed search "$CLIPS/red.mp4" m | records | jq .score)" != 1.0001 ]
  vfm-embed search "$CLIPS/red.mp4" m | records | jq -e '.score <= 1 and .score > 0.999'
}

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

@test "two at once: a column is made by one and taken by the other" {
  three a
  three b
  vfm-embed -o whole a.tar b.tar >whole.out
  other_program both/a.embed.json
  waits_for both/a.embed.json vfm-embed -o both a.tar b.tar
  [ ! -e both/a.embed.tar ]
  let_go
  vfm-embed -o both b.tar a.tar >two 2>/dev/null
  wait $waiting
  [ "$(column_hashes both)" = "$(column_hashes whole)" ]
  diff <(records waiting.out | sed 's/both/whole/g') <(records whole.out)
}
