#!/usr/bin/env bats
# examples/slurm/node.sh as it stands: unlike nodes share out the stages of a work. How near they come to the best split is in
# tests/unit/parts/stages_test.cc and tests/bench/unlike_nodes.sh.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154,SC2016 # stderr is of run --separate-stderr; texts of programs
load ../helpers
bats_require_minimum_version 1.5.0

setup() {
  setup_tools
  export VFM_LEASE_SECONDS=0.3
  unset VFM_NODE_KIND SLURM_JOB_PARTITION SLURM_JOB_ID SLURM_CPUS_PER_TASK
  node=$VFM_ROOT/examples/slurm/node.sh
}

# list PARTS: eight videos.
list() {
  local i
  mkdir raw
  make_video raw/v1.mp4 0.5
  for i in 2 3 4 5 6 7 8; do { cat raw/v1.mp4; printf '\0\0\0\011free%s' $i; } >raw/v$i.mp4; done
  vfm-clip list raw/*.mp4 -o out -n "$1" --shard-size 16KiB >listed.jsonl
}
# made_program NAME <TEXT: a program in the place of a real one. vfm-clip still tells the status.
made_program() {
  mkdir -p made
  { echo '#!/bin/bash' && echo "[ \"\$1\" != status ] || exec $VFM_BIN/vfm-clip \"\$@\"" && cat; } >"made/$1"
  chmod +x "made/$1"
  PATH=$PWD/made:$PATH
}

# bats test_tags=night
@test "nodes of two kinds do all parts of three stages, with the bytes of one machine" {
  list 4
  local kind i
  for kind in gpu cpu; do
    VFM_NODE_KIND=$kind "$node" out "$VFM_BIN/vfm-clip -o out -j1" 'vfm-caption out -j1' "vfm-embed out -j1 --text 'builtin:hash'" \
      2>$kind.log 3>&- &
    nodes[${#nodes[@]}]=$!
  done
  for i in "${nodes[@]}"; do wait "$i" || { cat ./*.log && return 1; }; done
  for i in clip caption embed; do
    [ "$(find out/parts/$i -name done.json | wc -l)" = 4 ]
    [ "$(find out/parts/$i/notes -type f | wc -l)" = 4 ]
    run ! grep -vE '"node_kind":"(gpu|cpu)"' out/parts/$i/*/done.json
  done
  [ -z "$(find out -name 'lease*' -o -name temporary -o -name '.*.tmp')" ]
  vfm-shard join out >out.jsonl
  vfm-clip list raw/*.mp4 -o one -n 1 --shard-size 16KiB >listed.jsonl
  for i in 'clip -o one' 'caption one' 'embed one --text builtin:hash'; do eval "vfm-$i --part 0/1" >/dev/null; done
  vfm-shard join one >one.jsonl
  diff <(cd out && find . -path ./parts -prune -o -type f -print | sort | xargs sha256sum) \
    <(cd one && find . -path ./parts -prune -o -type f -print | sort | xargs sha256sum)
  # All is done, so nothing is chosen and nothing is free.
  [ -z "$(vfm-clip status out --next clip,caption,embed)" ]
  run --separate-stderr vfm-caption out --part next
  [ "$status" = 4 ]
  [[ $stderr = *"vfm-caption has no part to do in 'out'"* ]]
  # A marker that was removed by hand is seen, although its note is there.
  rm out/parts/caption/00002/done.json
  [ "$(vfm-embed status out --next clip,caption,embed)" = caption ]
  "$node" out 'vfm-clip -o out' 'vfm-caption out'
  jq -e '.node_kind == ""' out/parts/caption/00002/done.json
}

# bats test_tags=night
@test "status --next names the stage of which a part waits, in order of the work" {
  list 2
  [ "$(vfm-caption status out --next clip,caption)" = clip ]
  vfm-clip -o out --part next >/dev/null
  [ "$(find out -name done.json | wc -l)" = 1 ]
  # As many clips as captions: the first of them.
  [ "$(vfm-clip status out --next caption)" = caption ]
  vfm-caption out --part next >/dev/null
  [ "$(vfm-clip status out --next clip,caption,embed)" = clip ]
  [ "$(vfm-clip status out --next caption,embed)" = embed ]
  # Without the part of vfm-clip nothing is free for captions.
  run -4 vfm-caption out --part next
  refused "'film' is not clip" vfm-clip status out --next clip,film
  # Its parts are in the folder of latents, so that the wait for it would never end.
  refused "'pack' is not clip" vfm-clip status out --next pack
  refused '--next' vfm-clip status out --next clip --missing
  refused "'raw' has no list of parts" vfm-clip status raw --next clip
  VFM_NODE_KIND='a b' refused "VFM_NODE_KIND is 'a b'" vfm-clip status out --next clip
}

@test "the script hands signals to the program, ends with its errors, and gives up after three failures" {
  list 3
  made_program vfm-clip <<<'echo "$@" >>said; trap "touch got; sleep 0.2; exit 0" USR1; trap "touch stopped; exit 143" TERM
touch began; while sleep 0.05; do :; done'
  "$node" out 'vfm-clip -o "out x"' 3>&- & pid=$!
  while [ ! -e began ]; do sleep 0.05; done
  kill -USR1 $pid
  wait $pid
  [ -e got ]
  [ "$(cat said)" = '-o out x --part next' ]
  rm began
  "$node" out 'vfm-clip -o out' 3>&- & pid=$!
  while [ ! -e began ]; do sleep 0.05; done
  kill $pid
  local got=0
  wait $pid || got=$?
  [ $got = 143 ]
  [ -e stopped ]

  made_program vfm-clip <<<'echo >>tries; exit 1'
  run -1 "$node" out 'vfm-clip -o out'
  [ "$(wc -l <tries)" = 3 ]
  made_program vfm-clip <<<'exit 3'
  run -3 "$node" out 'vfm-clip -o out'
  run -2 "$node" out 'film out'
  refused 'usage: node.sh DIR COMMAND...' "$node" out
  refused 'usage: curate.sbatch COMMAND OPTIONS...' bash "$VFM_ROOT/examples/slurm/curate.sbatch"
  refused 'usage: two-kinds.sbatch DIR OPTIONS...' bash "$VFM_ROOT/examples/slurm/two-kinds.sbatch"
  # A program that other nodes leave no part is no failure.
  made_program vfm-clip <<<'echo >>more; [ $(wc -l <more) = 2 ] && exit 2; exit 4'
  run -2 "$node" out 'vfm-clip -o out'
}
