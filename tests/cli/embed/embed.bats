#!/usr/bin/env bats
# vfm-embed: columns of vectors, resume, faults.
# SPDX-License-Identifier: Apache-2.0
load ../helpers
load clips
bats_require_minimum_version 1.5.0

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
  vfm-embed --help | grep -q -- '--windows SECONDS .*with --video DIR$'
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
  for n in $(seq 100 199); do specs+=("k$n=test=caption $n"); done
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
