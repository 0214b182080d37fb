#!/usr/bin/env bats
# Where the output of a tool begins and ends: a tool that was killed is not taken for one that is done.
# SPDX-License-Identifier: Apache-2.0

bats_require_minimum_version 1.5.0

setup_file() { export BATS_NO_PARALLELIZE_WITHIN_FILE=true; }

setup() {
  load ../cli/helpers
  setup_tools
}

BROKEN="broke off in standard input (no end record)"
AGAIN="run the same command again"

# corpus DIR: three small videos with a caption each.
corpus() {
  mkdir -p "$1"
  local i=0 source
  for source in mandelbrot=size=96x64:rate=12 testsrc2=size=96x64:rate=12 smptebars=size=96x64:rate=12; do
    make_video "$1/v$i.mp4" 2 "$source"
    echo "caption of video $i" >"$1/v$i.txt"
    i=$((i + 1))
  done
}

# behind: what stands behind vfm-clip; its exit statuses are in the file statuses.
behind() {
  set +e
  vfm-caption 2>caption.err | vfm-embed 2>embed.err | vfm-shard -o dataset 2>shard.err |
    vfm-pack --size 64 --frames 17 -o latents 2>pack.err
  echo "${PIPESTATUS[@]}" >statuses
}

# kill_clip PATH COMMAND...: vfm-clip in front of COMMAND dies by SIGKILL when such a file is there, made of
# the first of three videos. Its names come by a FIFO, so it waits for the next one then.
kill_clip() {
  local glob=$1
  shift
  mkfifo names
  # shellcheck disable=SC2016  # the inner shell is to expand it
  { bash -c 'echo $$ >pid; exec vfm-clip -o clips - <names' || true; } | "$@" &
  local all=$!
  exec 5>names
  echo raw/v0.mp4 >&5
  until [ -n "$(find clips latents -path "$glob" 2>/dev/null)" ]; do sleep 0.02; done
  kill -KILL "$(<pid)"
  exec 5>&-
  wait "$all" || true
  rm names pid
}

@test "vfm-clip killed in the middle of a pipe: nothing is called complete, and the same command goes on" {
  corpus raw
  mkdir whole broken
  ln -s ../raw whole/raw
  ln -s ../raw broken/raw
  cd whole
  printf 'raw/v%d.mp4\n' 0 1 2 | vfm-clip -o clips - 2>clip.err | behind >manifest
  [ "$(<statuses)" = "0 0 0 0" ]
  cat ./*.err
  [ -z "$(cat ./*.err)" ]
  cd ../broken
  kill_clip 'clips/*.embed.json' behind >manifest
  [ "$(<statuses)" = "1 1 1 1" ]
  [ "$(<caption.err)" = "vfm-caption: the output of vfm-clip $BROKEN: the columns of what came are made and kept; $AGAIN" ]
  [ "$(<embed.err)" = "vfm-embed: the output of vfm-caption $BROKEN: the columns of what came are made and kept; $AGAIN" ]
  [ "$(<shard.err)" = "vfm-shard: the output of vfm-embed $BROKEN: no dataset is written; $AGAIN" ]
  [[ "$(<pack.err)" == "vfm-pack: the output of vfm-shard $BROKEN: latents.json is not written;"*"$AGAIN" ]]
  [ -n "$(find clips -name '*.embed.tar')" ]
  [ -z "$(find dataset latents -name 'dataset.json' -o -name plan.json -o -name .nv-meta -o -name '*.tar' -o -name latents.json)" ]
  grep -q '"kind":"begin"' manifest
  run ! grep '"kind":"end"' manifest
  # The same again, and then once more.
  for _ in 1 2; do
    printf 'raw/v%d.mp4\n' 0 1 2 | vfm-clip -o clips - 2>clip.err | behind >manifest
    [ "$(<statuses)" = "0 0 0 0" ]
    without_folder manifest ../whole/manifest
    [ "$(tree_hash .)" = "$(tree_hash ../whole)" ]
  done
}

@test "a run with a damaged video, and the same command when it is repaired: as if it had never been" {
  corpus raw
  mkdir whole repaired
  ln -s ../raw whole/raw
  curate() {
    vfm-clip raw/v0.mp4 raw/v1.mp4 raw/v2.mp4 -o clips 2>clip.err | behind >manifest
  }
  cd whole
  curate
  cd ../repaired
  cp -r ../raw .
  head -c 3000 ../raw/v1.mp4 >raw/v1.mp4
  make_video raw/v2.mp4 1 color=red:size=64x64:rate=12
  curate
  [ "$(<statuses)" = "0 0 0 0" ]
  [ -e clips/errors.jsonl ]
  [ -e latents/latents.json ]
  cp ../raw/* raw
  curate
  cat ./*.err
  [ "$(cat ./*.err)" = "vfm-pack: 'latents' held 1 shard that is not of this input, and now removed" ]
  [ "$(<statuses)" = "0 0 0 0" ]
  cmp <(records manifest) <(records ../whole/manifest)
  [ "$(tree_hash dataset)" = "$(tree_hash ../whole/dataset)" ]
  [ "$(tree_hash latents)" = "$(tree_hash ../whole/latents)" ]
}

# bats test_tags=night
@test "no input is an error in every tool: status 1, no end, and nothing that looks complete" {
  corpus raw
  vfm-clip raw/v0.mp4 -o clips | vfm-caption | vfm-embed | vfm-shard -o dataset |
    vfm-pack --size 64 --frames 17 --channels 16 -o latents >all.jsonl
  before=$(tree_hash dataset)$(tree_hash latents)
  cat >tiny.yaml <<'YAML'
model: {num_attention_heads: 2, attention_head_dim: 12, num_layers: 1, adaln_lora_dim: 4}
data: {tokens: 256}
train: {steps: 1}
YAML
  vfm-train tiny.yaml --device cpu --data latents -o run >/dev/null
  for new in new ""; do
    for tool in "vfm-clip -o ${new}clips" vfm-caption vfm-embed "vfm-embed search x" "vfm-shard -o ${new}dataset" \
      "vfm-pack --size 64 --frames 17 --channels 16 -o ${new}latents" \
      "vfm-generate --model run --device cpu -o ${new}videos" \
      "vfm-generate decode --device cpu -o ${new}videos"; do
      # Nothing at all; and a tool that had nothing to say, or died right after its begin.
      for said in "" '{"kind":"begin","tool":"vfm-x","id":"1"}' \
        $'{"kind":"begin","tool":"vfm-x","id":"1"}\n{"kind":"end","id":"1","records":0,"status":1}'; do
        echo "$tool: $said"
        # shellcheck disable=SC2086
        run --separate-stderr $tool - < <(printf %s "${said:+$said$'\n'}")
        [ "$status" -eq 1 ]
        [ "$(grep -c "^${tool%% *}: " <<<"$stderr")" -eq 1 ]
        [[ "$output" != *'"kind":"end"'* ]]
      done
    done
  done
  [ ! -e newdataset/dataset.json ]
  [ ! -e newlatents/latents.json ]
  [ -z "$(find new* -name '*.tar' -o -name '*.mp4')" ]
  [ "$(tree_hash dataset)$(tree_hash latents)" = "$before" ]
}

@test "what is wrong with options alone is refused before the begin" {
  echo 'train: {steps: 1}' >r.yaml
  refused() {
    run --separate-stderr "$@" </dev/null
    echo "$*: $output $stderr"
    [ "$status" -eq 2 ] && [ -z "$output" ]
  }
  refused vfm-clip -o out --encoder nonsense a.mp4
  refused vfm-clip -o out --encoder libx264:nonsense a.mp4
  refused vfm-clip -o out --keep-hdr --encoder mpeg4 a.mp4
  refused vfm-caption --from model:nowhere --also x a.tar
  refused vfm-caption --from model:nowhere --also 'A B=x' a.tar
  refused vfm-caption --from model:nowhere --schema x=y a.tar
  refused vfm-embed search '' a.tar
  refused vfm-shard -o out --where 'a >' a.tar
  refused vfm-shard -o out --where 'nosuch(a)' a.tar
  refused vfm-train r.yaml --data nowhere -o out train.steps
  refused vfm-train nowhere.yaml --data nowhere -o out
  refused vfm-train r.yaml --data nowhere -o out train.stops=1
  refused vfm-train r.yaml --data nowhere --init nowhere -o out
  refused vfm-train export nowhere -o out
  refused vfm-generate --model nowhere -o out x
  refused vfm-generate --model nowhere -o out --negative @nowhere x
  refused vfm-generate --model nowhere -o out --encoder nonsense x
  refused vfm-generate decode --model nowhere -o out
  refused vfm-clip -o out --stitch nowhere a.mp4
  refused vfm-clip shots --detector-model nowhere a.mp4
  refused vfm-caption --from model:nowhere a.tar
  refused vfm-caption --refine nowhere a.tar
  refused vfm-caption score --clip nowhere a.tar
  refused vfm-embed --video nowhere a.tar
  refused vfm-embed --text nowhere a.tar
  refused vfm-pack --tokenizer nowhere -o out a.tar
  # With no GPU here, what needs one.
  local CUDA_VISIBLE_DEVICES=""
  export CUDA_VISIBLE_DEVICES
  refused vfm-clip --stitch nowhere --device all -o out a.mp4
  refused vfm-clip --hwaccel cuda -o out a.mp4
  refused vfm-clip --encoder h264_nvenc -o out a.mp4
  refused vfm-caption --from model:nowhere --device cuda a.tar
  refused vfm-embed --video nowhere --device cuda a.tar
  refused vfm-pack --tokenizer nowhere --device cuda -o out a.tar
  refused vfm-pack --hwaccel cuda -o out a.tar
  refused vfm-train r.yaml --data nowhere --device cuda -o out
  refused vfm-generate --model nowhere --device cuda -o out x
  local tool
  for tool in "vfm-clip -o out" vfm-caption vfm-embed "vfm-shard -o out" "vfm-pack -o out" "vfm-generate --model x -o out"; do
    # shellcheck disable=SC2086
    VFM_SLOTS=x refused $tool -
    # shellcheck disable=SC2086
    VFM_CPU=x refused $tool -
  done
}

@test "the begin is written before input is waited for" {
  mkfifo fifo
  exec 8<>fifo
  local tool golden=$VFM_ROOT/tests/golden
  for tool in "vfm-clip -o out -" "vfm-clip shots -" "vfm-clip unique -o out -" vfm-caption vfm-embed \
    "vfm-embed search red" "vfm-embed index i" "vfm-shard -o out" "vfm-pack -o out" "vfm-generate decode -o out" \
    "vfm-caption --from model:$golden/smolvlm/smolvlm" "vfm-embed --text $golden/t5/v1_0 --device cpu"; do
    : >begun
    # shellcheck disable=SC2086
    $tool >begun 2>err 3>&- 8>&- <fifo &
    for _ in $(seq 300); do
      [ ! -s begun ] || break
      sleep 0.05
    done
    echo "$tool: $(<err)"
    [[ "$(head -n 1 begun)" == '{"kind":"begin","tool":"'"${tool%% *}"'"'* ]]
    kill $! 2>/dev/null || true
    wait $! || true
  done
}

# bats test_tags=night
@test "vfm-clip killed before vfm-pack: shards that came are packed and kept, the set is not called complete" {
  corpus raw
  mkdir whole broken
  ln -s ../raw whole/raw
  ln -s ../raw broken/raw
  pack() { vfm-pack --size 64 --frames 17 -o latents --report page.html 2>pack.err || echo $? >status; }
  cd whole
  printf 'raw/v%d.mp4\n' 0 1 2 | vfm-clip -o clips - | pack >manifest
  cd ../broken
  kill_clip 'latents/train/*.json' pack >manifest
  [ "$(<status)" -eq 1 ]
  rm status
  [ -n "$(find latents/train -name '*.tar')" ]
  [ ! -e latents/latents.json ]
  [ ! -e latents/train/index.jsonl ]
  grep -q "Not complete: .*the output of vfm-clip broke off in standard input" page.html
  [ "$(records manifest | wc -l)" -eq 1 ]
  printf 'raw/v%d.mp4\n' 0 1 2 | vfm-clip -o clips - | pack >manifest
  [ ! -e status ]
  cmp <(records manifest) <(records ../whole/manifest)
  [ "$(tree_hash latents)" = "$(tree_hash ../whole/latents)" ]
  run ! grep "Not complete" page.html
}

# Shards of two videos, each with its manifest.
two_manifests() {
  make_video a.mp4
  make_video b.mp4 2 mandelbrot=size=96x64:rate=12
  vfm-clip a.mp4 -o clips >a.jsonl
  vfm-clip b.mp4 -o clips >b.jsonl
}

# fails_with MESSAGE COMMAND...: status 1, no end record, and on stderr this alone.
fails_with() {
  local want=$1
  shift
  run --separate-stderr "$@"
  echo "$stderr"
  [ "$status" -eq 1 ]
  [ "$stderr" = "$want" ]
  [[ "$output" != *'"kind":"end"'* ]]
}

@test "manifests that follow one another: each begin needs its end" {
  two_manifests
  cat a.jsonl b.jsonl | vfm-caption >both.jsonl
  [ "$(records both.jsonl | wc -l)" -eq 2 ]
  vfm-caption a.jsonl b.jsonl | records | cmp - <(records both.jsonl)
  cat both.jsonl both.jsonl >twice.jsonl # the same id twice; each shard comes twice, which is an error of its own
  run --separate-stderr vfm-caption twice.jsonl
  [ "$status" -eq 1 ]
  [[ "$stderr" != *"broke off"* ]]
  head -n -1 a.jsonl >cut.jsonl
  local kept="(no end record): the columns of what came are made and kept; $AGAIN"
  fails_with "vfm-caption: the output of vfm-clip broke off in 'cut.jsonl' $kept" vfm-caption cut.jsonl b.jsonl
  [ "$(records <<<"$output" | wc -l)" -eq 2 ]
  fails_with "vfm-caption: the output of vfm-clip broke off in standard input $kept" vfm-caption < <(cat cut.jsonl b.jsonl)
  fails_with "vfm-caption: the outputs of vfm-clip in 'cut.jsonl', of vfm-clip in standard input broke off ${kept/record/records}" \
    vfm-caption cut.jsonl - < <(head -n 1 b.jsonl)
  # The end of a file that was cut off is glued to the begin of the next one: that one is whole.
  head -c -20 a.jsonl >torn.jsonl
  run --separate-stderr vfm-caption < <(cat torn.jsonl b.jsonl)
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"line 3 of standard input"*"vfm-caption: the output of vfm-clip broke off in standard input $kept" ]]
  [ "$(records <<<"$output" | wc -l)" -eq 2 ]
}

@test "filters between two tools take records without an error; with -v it is said" {
  two_manifests
  cat a.jsonl b.jsonl >both.jsonl
  [ -z "$(jq -c 'select(.kind != "shard" or .source == "a.mp4")' both.jsonl | vfm-caption 2>&1 >out)" ]
  [ "$(records out | wc -l)" -eq 1 ]
  jq -c 'select(.source == "a.mp4")' both.jsonl | vfm-caption >out # takes begin and end too
  [ "$(records out | wc -l)" -eq 1 ]
  grep a.mp4 both.jsonl | vfm-caption >out
  [ "$(records out | wc -l)" -eq 1 ]
  tail -n +2 a.jsonl | vfm-caption >out # takes the begin alone
  [ "$(records out | wc -l)" -eq 1 ]
  grep -v a.mp4 a.jsonl >none.jsonl
  vfm-caption -v none.jsonl b.jsonl 2>said >out
  grep -q "^vfm-caption: 1 of the 1 records of vfm-clip in 'none.jsonl' did not come: a filter took them$" said
  sed '1a clips/other.tar' none.jsonl | vfm-clip shots -v - b.mp4 2>said >out # one for the one that was taken
  run ! grep "did not come" said
  run --separate-stderr vfm-caption -q < <(head -n 2 both.jsonl)
  [ "$status" -eq 1 ]
  [[ "$stderr" == *"broke off"* ]]
}

@test "a tool that passed over something ends its output with status 1, and what is behind it is complete" {
  make_video a.mp4
  vfm-clip a.mp4 missing.mp4 -o clips 2>/dev/null >m.jsonl && false
  [ "$(tail -n 1 m.jsonl | jq -c '[.kind, .records, .status]')" = '["end",1,1]' ]
  vfm-shard -v -o dataset m.jsonl 2>said >out
  grep -q "^vfm-shard: vfm-clip ended with status 1 in 'm.jsonl': it skipped a part of its input$" said
  [ -e dataset/dataset.json ]
}

@test "a signal, an error and a folder of others write no end" {
  make_video a.mp4
  run vfm-clip missing.mp4 -o clips
  [ "$status" -eq 1 ]
  [[ "$output" != *'"kind":"end"'* ]]
  vfm-clip a.mp4 -o clips >m.jsonl
  vfm-pack --size 64 -o latents m.jsonl >/dev/null
  run --separate-stderr vfm-pack --size 32 -o latents m.jsonl
  [ "$status" -eq 2 ]
  [[ "$output" != *'"kind":"end"'* ]]
  # Nobody reads the output.
  { sleep 0.2; vfm-shard -o /proc/none <m.jsonl 2>err || echo $? >status; } | true
  [ "$(<status)" -eq 1 ]
  grep -q "'/proc/none'" err
  for signal in TERM KILL; do
    vfm-clip a.mp4 - -o clips >out < <(exec sleep 60 3>&-) 3>&- &
    until [ -s out ] && [ "$(wc -l <out)" -eq 2 ]; do sleep 0.02; done
    kill -$signal $!
    wait $! || true
    run ! grep '"kind":"end"' out
  done
}

# checked COMMAND...: its output is one stream, the same with -j1, -j4 and -v, and records none of another tool's.
checked() {
  "$@" -j1 >one 2>/dev/null || [ $? -eq 1 ]
  "$@" -j4 -v >four 2>/dev/null || [ $? -eq 1 ]
  cmp one four
  jq -es --arg tool "$1" 'first.kind == "begin" and first.tool == $tool and last.kind == "end" and first.id == last.id
    and last.records == length - 2 and ([.[1:-1][].kind] | any(. == "begin" or . == "end") | not)' one
}

@test "every tool writes one stream around its records, the same one with any -j" {
  corpus raw
  checked vfm-clip raw/v0.mp4 raw/v1.mp4 raw/v2.mp4 -o clips
  cp one clips.jsonl
  checked vfm-clip shots raw/v0.mp4 raw/v1.mp4
  checked vfm-caption clips.jsonl
  cp one captions.jsonl
  checked vfm-embed captions.jsonl
  cp one embedded.jsonl
  checked vfm-embed search caption embedded.jsonl
  checked vfm-shard embedded.jsonl -o dataset
  cp one dataset.jsonl
  checked vfm-pack dataset.jsonl --size 64 --frames 17 --channels 16 -o latents
  cat >tiny.yaml <<'YAML'
model: {num_attention_heads: 2, attention_head_dim: 12, num_layers: 1, adaln_lora_dim: 4}
data: {tokens: 256}
train: {steps: 2, checkpoint_every: 1}
YAML
  checked vfm-train tiny.yaml --device cpu --data latents -o run --force
  checked vfm-generate --model run --device cpu --steps 1 -o videos 'a red circle' 'a blue square'
  cp one videos.jsonl
  checked vfm-generate --model run --device cpu --steps 1 --latents-only -o made 'a red circle' 'a blue square'
  cp one made.jsonl
  checked vfm-generate decode --device cpu -o decoded made.jsonl
  # A record, given back, makes the clip again; its begin and end are no prompts.
  vfm-generate --model run --device cpu --steps 1 -o again - <videos.jsonl >again.jsonl
  cmp <(records videos.jsonl | jq .xxh3) <(records again.jsonl | jq .xxh3)
  run --separate-stderr vfm-generate --model run --device cpu --steps 1 -o again - < <(head -n -1 videos.jsonl)
  [ "$status" -eq 1 ]
  [ "$stderr" = "vfm-generate: the output of vfm-generate $BROKEN: the clips of what came are made and kept; $AGAIN" ]
  [ "$(vfm-pack plan latents | jq -r .kind | uniq | paste -sd' ')" = "begin pack end" ]
  # What is no manifest has no begin.
  [[ "$(vfm-train cost tiny.yaml --device cpu --data latents -q)" == '{"kind":"cost"'* ]]
  [[ "$(vfm-generate --model run --device cpu --steps 1 -o - 'a red circle' | head -n 1 | tr -d '\0')" == YUV4MPEG2* ]]
  if command -v mpirun >/dev/null; then
    mpirun -np 2 vfm-train tiny.yaml data.packs=2 --device cpu -j1 --data latents -o two >out
    [ "$(grep -c '"kind":"begin"' out)" -eq 1 ]
    [ "$(tail -n 1 out | jq -c '[.kind, .records, .status]')" = '["end",2,0]' ]
  fi
}

@test "-0 takes names as find -print0 writes them; a name that begins with a bracket is a path" {
  mkdir raw
  make_video raw/plain.mp4 1
  make_video $'raw/two\nlines.mp4' 1 mandelbrot=size=96x64:rate=12
  make_video '[x].mp4' 1 smptebars=size=96x64:rate=12
  make_video '{"x"}.mp4' 1 color=red:size=96x64:rate=12
  find raw -name '*.mp4' -print0 | sort -z | vfm-clip -0 -o clips >m.jsonl
  [ "$(records m.jsonl | jq -c .source | tr '\n' ' ')" = '"raw/plain.mp4" "raw/two\nlines.mp4" ' ]
  vfm-caption m.jsonl | records | jq -e '.columns.caption' >/dev/null
  echo '[x].mp4' | vfm-clip shots | records | jq -e '.path == "[x].mp4"'
  printf '%s\0' '{"x"}.mp4' ' ' | { vfm-clip shots -0 2>err || true; } | records | jq -e '.path == "{\"x\"}.mp4"'
  grep -q "cannot open ' '" err
  run --separate-stderr vfm-clip shots <<<'[1, 2]'
  [[ "$stderr" == *"line 1 of standard input is JSON but not an object"* ]]
  run vfm-clip shots -0 raw/plain.mp4
  [ "$status" -eq 2 ]
  [[ "$output" == *"-0 is for standard input"* ]]
}

@test "a line over 16 MiB is recorded, and the run goes on" {
  make_video a.mp4 1
  { head -c 17000000 /dev/zero | tr '\0' x; printf '\na.mp4\n'; } >names
  run --separate-stderr vfm-clip -o clips - <names
  [ "$status" -eq 1 ]
  only_records
  [ "${#lines[@]}" -eq 1 ]
  [ "$stderr" = "vfm-clip: line 1 of standard input is longer than 16 MiB" ]
  [ "$(jq -r .error clips/errors.jsonl)" = "line 1 of standard input is longer than 16 MiB" ]
}
