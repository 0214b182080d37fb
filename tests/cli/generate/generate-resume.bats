#!/usr/bin/env bats
# vfm-generate: the same bytes again, runs that end early, a full disk, two programs in one folder, and parts.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load generate_models
bats_require_minimum_version 1.5.0

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
  samplers=(unipc)
  ! at_night || samplers=(euler res unipc lcm)
  for sampler in "${samplers[@]}"; do
    long=(--model "$model" --steps 200 --sampler $sampler --save-every 0)
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

@test "a closed pipe ends it" {
  set +o pipefail
  seq 50 | vfm-generate "${fast[@]}" -o - | head -c 100 >/dev/null
  [ "${PIPESTATUS[1]}" -ne 0 ]
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

# listed: prompts of which some have the same text or name, and some cannot be made.
listed() {
  printf '%s\n' 'a red circle' 'a blue square' '{"prompt":"a red circle","seed":1}' 'a red circle' '赤い丸' \
    '{"prompt":"a bar","name":"bar","label":"kept"}' '{"prompt":"another","name":"bar"}' '{"prompt":"x","noise":"none.npy"}' \
    'a green bar' '{'
}
# in_folder NAME COMMAND...: the command there, since records name the folder of the clips.
in_folder() { mkdir -p "$1" && (cd "$1" && "${@:2}"); }
# same_clips FOLDER: what join made there of parts is what one command made in the folder whole.
same_clips() {
  diff -r -x parts -x errors.jsonl whole/out "$1/out" || return 1
  diff <(sort whole/out/errors.jsonl) "$1/out/errors.jsonl" || return 1
  diff <(records whole/out.jsonl) <(records "$1/joined.jsonl") || return 1
  diff <(records whole/out.jsonl | sort) <(records "$1"/part*.jsonl | sort) || return 1
  [ -z "$(find "$1" -name 'lease*' -o -name temporary -o -name '.*.tmp' -o -name '*.safetensors' -o -name failed.json)" ]
}
made_in() { vfm-generate "${fast[@]}" -o out <../prompts >"$1" 2>>said "${@:2}"; }
joined_in() { vfm-shard join out >joined.jsonl; }

# bats test_tags=night
@test "parts of any number, also by workers or by several commands, give what one command makes" {
  listed >prompts
  in_folder whole made_in out.jsonl || [ $? -eq 1 ]
  [ "$(records whole/out.jsonl | wc -l)" -eq 7 ]
  for part in 2 0 1; do in_folder three made_in part$part.jsonl --part $part/3 -j$((part + 1)); done
  (cd three && fails 2 vfm-shard join --prune out && joined_in)
  same_clips three
  [ "$(vfm-generate status three/out | records | jq -r .state | xargs)" = 'done done done null' ]
  in_folder workers made_in part.jsonl --part auto/5 --device cpu,
  in_folder workers joined_in
  same_clips workers
  export VFM_LEASE_SECONDS=2
  in_folder both made_in part1.jsonl --part auto/4 3>&- &
  in_folder both made_in part2.jsonl --part auto/4
  wait $!
  in_folder both joined_in
  same_clips both
  # What is done is not done again, and its records are printed.
  find three/out -type f -printf '%p %i %T@\n' | sort >before
  for part in 0 1 2; do in_folder three made_in again$part.jsonl --part $part/3; done
  in_folder three joined_in
  find three/out -type f -printf '%p %i %T@\n' | sort | diff before -
  diff <(records three/part*.jsonl) <(records three/again*.jsonl)
  # Other options are another work, and so are other prompts.
  in_folder three made_in other.jsonl --part 1/3 --quality 20
  [ "$(find three/out -name done.json -newer before | wc -l)" -eq 1 ]
  echo 'a yellow star' >>prompts
  in_folder both made_in more.jsonl --part auto
  [ "$(find both/out -name done.json -newer before | wc -l)" -eq 1 ]
  [ "$(records both/more.jsonl | jq -r .prompt | grep -c 'a yellow star')" -eq 1 ]
}

# bats test_tags=night
@test "a killed part is continued by the next command, in the middle of a clip" {
  export VFM_LEASE_SECONDS=2
  seq -f 'a red circle %g' 4 >prompts
  fast=(--model "$model" --steps 150 --save-every 0)
  in_folder whole made_in out.jsonl
  touch whole/out/errors.jsonl # of no errors: so same_clips can compare
  mkdir killed
  for _ in 1 2 3; do
    (cd killed && exec vfm-generate "${fast[@]}" --part auto/2 -o out <../prompts >/dev/null 2>&1) 3>&- &
    pid=$!
    await sh -c "find killed/out -name '*.state.safetensors' -newer prompts | grep -q ."
    sleep "0.$((RANDOM % 4 + 1))"
    kill -KILL $pid
    wait $pid || true
  done
  in_folder killed made_in part.jsonl -v --part auto
  in_folder killed joined_in
  touch killed/out/errors.jsonl
  cp killed/joined.jsonl killed/part.jsonl # a part that was done before is not printed
  same_clips killed
}

@test "what is not of a part, prompts that come once, and one name in two parts are refused" {
  echo 'a red circle' >prompts
  fast+=(-o out --part)
  run --separate-stderr bash -c "echo a | vfm-generate ${fast[*]} 0/2"
  [ "$status" -eq 2 ]
  [[ $stderr == *'--part reads the prompts more than once: give <FILE'* ]]
  refused '--force is for a work without parts' vfm-generate "${fast[@]}" 0/2 --force x
  refused 'leave out --part' vfm-generate "${fast[@]}" 0/2 --report page.html x
  refused 'name one by -o' vfm-generate --model "$model" -o - --part 0/2 x
  refused 'nobody has said how many parts' vfm-generate "${fast[@]}" auto x
  fails 1 vfm-generate "${fast[@]}" 0/2 </dev/null
  vfm-generate "${fast[@]}" auto/2 'a red circle' >one.jsonl
  fails 3 vfm-generate "${fast[@]}" 1/3 'a red circle'
  # The name that vfm gives to another text.
  name=$(records one.jsonl | jq -r .name)
  { echo 'a red circle' && jq -nc --arg name "$name" '{prompt: "a red circle!", name: $name}'; } >prompts
  vfm-generate --model "$model" --steps 2 -o twice --part auto/2 <prompts >two.jsonl
  [ "$(records two.jsonl | wc -l)" -eq 2 ]
  fails 1 vfm-shard join twice
  grep -q "two parts made 'twice/$name.mp4'" err
}
