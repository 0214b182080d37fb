#!/usr/bin/env bats
# vfm-embed: scores of clips.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
load clips
bats_require_minimum_version 1.5.0

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

# bats test_tags=night
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
