#!/usr/bin/env bats
# Tools joined: by pipes, by make, by manifests in files.
# SPDX-License-Identifier: Apache-2.0

bats_require_minimum_version 1.5.0

setup_file() { export BATS_NO_PARALLELIZE_WITHIN_FILE=true; }

setup() {
  load ../cli/helpers
  setup_tools
}

# corpus DIR: four small videos with sidecars.
corpus() {
  mkdir -p "$1"
  local i=0 size
  for size in "mandelbrot=size=96x64:rate=12" "testsrc2=size=96x64:rate=12" \
    "life=size=96x64:rate=12:seed=3:ratio=0.3:mold=10:life_color=#C83232:death_color=#3264C8" "smptebars=size=96x64:rate=12"; do
    make_video "$1/v$i.mp4" 3 "$size"
    echo "caption of video $i" >"$1/v$i.txt"
    i=$((i + 1))
  done
}

curate() {
  vfm-clip "$1"/*.mp4 -o "$2/clips" "${@:3}" | vfm-caption "${@:3}" | vfm-embed "${@:3}" |
    vfm-shard --split train=0.75,val=0.25 -o "$2/dataset" "${@:3}" |
    vfm-pack --size 64 --frames 17 -o "$2/latents" "${@:3}"
}

@test "the pipe runs from videos to latents, silent on stderr" {
  corpus raw
  curate raw out 2>stderr >latents.jsonl
  [ ! -s stderr ]
  [ -s latents.jsonl ]
  jq -e '.kind == "shard"' <(records latents.jsonl) >/dev/null
  [ -s out/latents/latents.json ]
}

# bats test_tags=night
@test "the whole pipe gives the same bytes with -j1 and -j4" {
  corpus raw
  (mkdir a && cd a && ln -s ../raw raw && curate raw out -j1 >manifest)
  (mkdir b && cd b && ln -s ../raw raw && curate raw out -j4 >manifest)
  cmp <(records a/manifest) <(records b/manifest)
  [ "$(tree_hash a/out)" = "$(tree_hash b/out)" ]
}

# bats test_tags=night
@test "the pipe killed at random and run again ends with the same bytes" {
  corpus raw
  mkdir good bad
  (cd good && ln -s ../raw raw && curate raw out >manifest)
  cd bad
  ln -s ../raw raw
  export -f curate
  kill_at_random 4 bash -c 'curate raw out'
  curate raw out >manifest
  cmp <(records manifest) <(records ../good/manifest)
  [ "$(tree_hash out)" = "$(tree_hash ../good/out)" ]
}

# bats test_tags=night
@test "a manifest is read in any folder, and what is made from there is as if it were made here" {
  corpus raw
  mkdir kept elsewhere
  vfm-clip raw/*.mp4 -o clips >kept/clips.jsonl
  (cd elsewhere && vfm-caption ../kept/clips.jsonl | vfm-embed >captions.jsonl)
  [ "$(jq -r .path <(records elsewhere/captions.jsonl) | head -n 1)" = "$(jq -r ".path" <(records kept/clips.jsonl) | head -n 1 | sed "s#^#$PWD/#")" ]
  # The captions beside the videos are found.
  [ "$(for tar in clips/*.caption.tar; do tar -xOf "$tar" --wildcards '*.txt'; done | grep -o 'caption of video' | wc -l)" -ge 4 ]
  vfm-shard -o dataset elsewhere/captions.jsonl | (cd kept && vfm-pack --size 64 -o ../latents >latents.jsonl)
  # As if it had been made here: nothing is done again, and no byte is another.
  : >err
  vfm-caption -v kept/clips.jsonl 2>>err | vfm-embed -v 2>>err >again.jsonl
  [ "$(grep -c 'is there already' err)" -eq $((2 * $(records kept/clips.jsonl | wc -l))) ]
  vfm-shard -o dataset2 again.jsonl | vfm-pack --size 64 -o latents2 >latents2.jsonl
  [ "$(tree_hash dataset)" = "$(tree_hash dataset2)" ]
  [ "$(cd latents && find . -name '*.tar' -exec sha256sum {} + | sort)" = "$(cd latents2 && find . -name '*.tar' -exec sha256sum {} + | sort)" ]
  # The same latents again, from another folder: they are of the same dataset.
  (cd elsewhere && vfm-pack --size 64 -o ../latents ../dataset >/dev/null)
}

@test "run again, the pipe does no work and says the same" {
  corpus raw
  curate raw out >first
  find out -type f -printf '%p %T@\n' | sort >before
  curate raw out >second
  cmp first second
  find out -type f -printf '%p %T@\n' | sort >after
  cmp before after
}

@test "make rebuilds the dataset once, and then does nothing" {
  corpus raw
  run make -s -f "$VFM_ROOT/examples/Makefile" -j2 RAW=raw OUT=out
  [ "$status" -eq 0 ]
  run make -q -f "$VFM_ROOT/examples/Makefile" -j2 RAW=raw OUT=out
  [ "$status" -eq 0 ]
}

# again FILE: make, and in FILE the tars that were made anew since the last time, or are gone.
again() {
  make -s -f "$VFM_ROOT/examples/Makefile" -j2 RAW=raw OUT=out
  find out -name '*.tar' -printf '%P %T@\n' | sort >after
  touch before
  comm -3 before after | awk '{ print $1 }' | sort -u >"$1"
  mv after before
}

# bats test_tags=night
@test "make does again what follows from a video that came, was touched, went or was renamed, and nothing else" {
  corpus raw
  again first
  cp out/dataset/sources.jsonl splits
  make_video raw/new.mp4 3 "cellauto=size=96x64:rate=12:rule=110"
  echo 'the new one' >raw/new.txt
  run make -q -f "$VFM_ROOT/examples/Makefile" RAW=raw OUT=out
  [ "$status" -eq 1 ]
  again added
  # Of the clips those of the new video alone.
  new=$(jq -r 'select(.source == "raw/new.mp4") | .path' out/clips.jsonl | sed 's/^out.//; s/[.]tar$//' | head -1)
  grep '^clips/' added | diff - <(printf '%s\n' "$new.caption.tar" "$new.embed.tar" "$new.tar")
  grep -q '^dataset/' added
  grep -q '^latents/' added
  # The others stay in their split.
  [ -z "$(comm -23 splits out/dataset/sources.jsonl)" ]
  touch raw/v1.mp4
  again touched
  [ ! -s touched ]
  jq -r '[.source, .path] | join(" ")' <(records out/clips.jsonl) >clips
  old=$(sed -n 's/^raw.v0.mp4 out.\(.*\)[.]tar$/\1/p' clips)
  rm raw/v0.mp4 raw/v0.txt
  run make -q -f "$VFM_ROOT/examples/Makefile" RAW=raw OUT=out
  [ "$status" -eq 1 ]
  again removed
  # Of the clips what is of that video alone goes, and all of it.
  grep '^clips/' removed | diff - <(printf '%s\n' "$old.caption.tar" "$old.embed.tar" "$old.tar")
  [ -z "$(find out/clips -name "*$(basename "${old%-*}")*")" ]
  for tar in $(find out/dataset out/latents -name '*.tar'); do
    run ! grep -q v0 <(tar xOf "$tar" --wildcards '*.json')
  done
  grep -q v2 <(find out/latents -name '*.tar' -exec tar xOf {} --wildcards '*.json' \;)
  # Its clips are known by their contents; the caption beside it has another path now.
  mv raw/v1.mp4 raw/w.mp4
  mv raw/v1.txt raw/w.txt
  again renamed
  run ! grep -q 'clips/.*-[0-9]*[.]tar' renamed
  run make -q -f "$VFM_ROOT/examples/Makefile" RAW=raw OUT=out
  [ "$status" -eq 0 ]
}

# bats test_tags=night
@test "make goes on without a video that cannot be used, tells it, and then does nothing" {
  corpus raw
  again first
  cp out/latents.jsonl before.jsonl
  echo 'no video' >raw/bad.mp4
  make -f "$VFM_ROOT/examples/Makefile" -j2 RAW=raw OUT=out >log 2>err
  [ ! -s log ]
  grep -F "vfm-clip: cannot open 'raw/bad.mp4'" err
  grep -F 'make: out/clips.jsonl is without what is told above' err
  [ "$(jq -r .input out/clips/errors.jsonl)" = raw/bad.mp4 ]
  cmp out/latents.jsonl before.jsonl
  run make -q -f "$VFM_ROOT/examples/Makefile" RAW=raw OUT=out
  [ "$status" -eq 0 ]
  # Another one is taken in while the bad one is there.
  make_video raw/new.mp4 3 "cellauto=size=96x64:rate=12:rule=110"
  again added
  jq -r .source out/clips.jsonl | grep -x raw/new.mp4
  grep -q '^latents/' added
  rm raw/bad.mp4
  run make -s -f "$VFM_ROOT/examples/Makefile" RAW=raw OUT=out
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  [ ! -e out/clips/errors.jsonl ]
}

# bats test_tags=night
@test "make ends where a tool fails or is killed, and keeps no list of it" {
  # Nothing at all can be used: no list for the tools behind.
  mkdir none bin
  echo 'no video' >none/bad.mp4
  run make -s -f "$VFM_ROOT/examples/Makefile" RAW=none OUT=nothing
  [ "$status" -eq 2 ]
  [[ "$output" == *"no clips"* ]]
  [ ! -e nothing/clips.jsonl ]
  corpus raw
  echo 'no video' >raw/bad.mp4
  # The real tool, after which its status, or its list, becomes another.
  printf '#!/bin/sh\n%s "$@" | { eval "$VFM_TEST_FILTER"; }\n%s\n' "$(command -v vfm-clip)" \
    'eval "$VFM_TEST_END"' >bin/vfm-clip
  chmod +x bin/vfm-clip
  export VFM_TEST_FILTER VFM_TEST_END
  while IFS='|' read -r VFM_TEST_FILTER VFM_TEST_END; do
    run env PATH="$PWD/bin:$PATH" make -s -f "$VFM_ROOT/examples/Makefile" RAW=raw OUT=out
    [ "$status" -eq 2 ]
    [ -z "$(find out -maxdepth 1 -name '*.jsonl')" ]
  done <<'END'
cat|exit 2
cat|kill -9 $$
sed '$d'|exit 1
head -c -5|exit 1
END
  VFM_TEST_FILTER=cat VFM_TEST_END='exit 1'
  PATH="$PWD/bin:$PATH" make -s -f "$VFM_ROOT/examples/Makefile" RAW=raw OUT=out
  [ -s out/latents.jsonl ]
}

# bats test_tags=night
@test "make takes videos of any name" {
  corpus raw
  local odd=$'raw/my holiday: #1; (a) \'b\' "c" $HOME %d\n=.mp4' text='a caption with a name of its own'
  mv raw/v0.mp4 "$odd"
  rm raw/v0.txt
  echo "$text" >"${odd%.mp4}.txt"
  again first
  jq -es --arg odd "$odd" 'any(.source == $odd)' out/clips.jsonl
  [ "$(find out/latents -name '*.tar' -exec tar xOf {} --wildcards '*.json' \; | grep -c "$text")" -ge 1 ]
  run make -q -f "$VFM_ROOT/examples/Makefile" RAW=raw OUT=out
  [ "$status" -eq 0 ]
  # Another size, at the same time.
  touch -r "$odd" time
  make_video "$odd" 2 "cellauto=size=96x64:rate=12:rule=110"
  touch -r time "$odd"
  again changed
  grep -q '^latents/' changed
  rm "$odd"
  again removed
  run ! grep -q holiday out/*.jsonl
}

# bats test_tags=night
@test "make that is killed with its tool goes on where it was" {
  corpus raw
  mkdir bin
  local tool
  for tool in clip caption embed shard pack; do
    # The real tool, killed with all around it when it has told of its first shard.
    printf '#!/bin/bash\n%s "$@" | { head -n 2; kill -9 0; }\n' "$(command -v vfm-$tool)" >bin/vfm-$tool
    chmod +x bin/vfm-$tool
    run env PATH="$PWD/bin:$PATH" setsid -w make -s -f "$VFM_ROOT/examples/Makefile" -j2 RAW=raw OUT=out
    [ "$status" -eq 137 ]
    [ -s out/*.jsonl.new ]
    rm bin/vfm-$tool
  done
  make -s -f "$VFM_ROOT/examples/Makefile" -j2 RAW=raw OUT=out
  run make -q -f "$VFM_ROOT/examples/Makefile" RAW=raw OUT=out
  [ "$status" -eq 0 ]
  mkdir fresh
  cp -rp raw fresh
  make -s -C fresh -f "$VFM_ROOT/examples/Makefile" -j2 RAW=raw OUT=out
  diff -r --exclude='*.state' --exclude='*.jsonl' out fresh/out
  (cd out && find . -name '*.jsonl') | while read -r list; do # the folder in which it was made is in a list
    cmp <(records "out/$list") <(records "fresh/out/$list")
  done
}

# bats test_tags=night
@test "what --without takes out of a dataset leaves its latents, and nothing before it is done again" {
  corpus raw
  vfm-clip raw/*.mp4 -o clips | vfm-caption | vfm-embed >m.jsonl
  made() { find "$1" -name '*.tar' -exec tar xOf {} --wildcards '*.json' \; | jq -r '[.key, .source] | join(" ")' | sort; }
  again() { vfm-shard m.jsonl --shard-size 30KB -o dataset "$@" | vfm-pack --size 64 --windows middle -o latents >latents.jsonl; }
  again
  made latents >before
  find clips -name '*.tar' -printf '%P %T@\n' | sort >clips.before
  key=$(sed -n 's/ raw.v0.mp4$//p' before | head -1)
  printf '%s\n' raw/v2.mp4 "$key" >gone.txt
  again --without gone.txt 2>err
  [ "$(sed -E 's/held [0-9]+ shards? that (is|are) /held N shards that are /' err)" = "vfm-pack: 'latents' held N shards that are not of this input, and now removed" ]
  grep -q ' raw/v2.mp4$' before
  grep -v -e ' raw/v2.mp4$' -e "^$key " before | diff - <(made latents)
  made dataset | diff - <(made latents)
  find clips -name '*.tar' -printf '%P %T@\n' | sort | diff clips.before -
  # It was no option of the dataset: without the file all is there again.
  again
  made latents | diff before -
}

@test "one bad video does not cost the others, and the pipe ends with status 1" {
  corpus raw
  head -c 2000 raw/v1.mp4 >raw/broken.mp4
  set -o pipefail
  run bash -o pipefail -c "$(declare -f curate); curate raw out"
  [ "$status" -eq 1 ]
  [ "$(jq -s length out/clips/errors.jsonl)" -eq 1 ]
  [ -s out/latents/latents.json ]
}

# bats test_tags=night
@test "a descriptor that the shell closed gets no file of a tool" {
  local status
  corpus raw
  head -c 2000 raw/v1.mp4 >raw/broken.mp4
  fails 1 vfm-clip -vv raw/*.mp4 -o want
  # Messages would be in whichever file has their number.
  status=0
  vfm-clip -vv raw/*.mp4 -o clips >clips.jsonl 2>&- || status=$?
  [ "$status" -eq 1 ]
  [ "$(tree_hash clips)" = "$(tree_hash want)" ]
  status=0
  vfm-caption clips/*-?????.tar >&- 2>err || status=$?
  [ "$status" -eq 1 ]
  grep -F 'cannot write standard output: Bad file descriptor' err
  fails 1 vfm-caption - <&-
  grep -F 'standard input' err
  vfm-caption clips/*-?????.tar <&- 2>&- >captions.jsonl
  vfm-caption --force -o again clips/*-?????.tar >again.jsonl
  cmp <(cat clips/*.caption.tar) <(cat again/*.caption.tar)
}

@test "videos without any text train a model that makes clips of an empty prompt, and of no other" {
  corpus raw
  tar cf videos.tar raw/*.mp4
  vfm-pack --size 32 --frames 9 -o latents videos.tar >latents.jsonl
  jq -e '.text_encoder == null' latents/latents.json
  vfm-train /dev/null --device cpu --data latents -o run model.num_layers=1 model.num_attention_heads=2 \
    model.attention_head_dim=16 model.adaln_lora_dim=8 train.steps=2 data.tokens=512 >run.jsonl
  run --separate-stderr vfm-generate --model run --steps 2 -o videos '' 'a red fox'
  only_records
  [ "$status" -eq 1 ]
  [ "$(jq -s 'length' <<<"$output")" -eq 1 ]
  [ -s "$(jq -r .path <<<"$output")" ]
  [[ "$stderr" == *"argument 'a red fox': the model was trained without text: its prompts must be empty"* ]]
  jq -e 'select(.kind == "cost") | .text_tokens == 1 and .sampling.samples == 1 and .text_encoder.type == "none"' \
    < <(vfm-generate cost --model run 2>/dev/null)
  run --separate-stderr vfm-generate --model run --text-encoder raw -o other ''
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"--text-encoder: the model was trained without text"* ]]
}
