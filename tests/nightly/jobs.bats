#!/usr/bin/env bats
# The jobs of examples/slurm as they stand, on a real Slurm of two virtual nodes (tests/slurm/cluster): nodes die, time limits
# come, and the results have the bytes of one machine.
# SPDX-License-Identifier: Apache-2.0
bats_require_minimum_version 1.5.0

setup() {
  load ../cli/helpers
  setup_tools
  cluster=$VFM_ROOT/tests/slurm/cluster jobs=$VFM_ROOT/examples/slurm
  local lacks
  if lacks=$("$cluster" missing); then skip "$lacks"; fi
  unshare --pid --fork --mount-proc --uts true 2>/dev/null || skip "no right to give nodes processes of their own"
  needs_mpi
  # Open MPI leaves the loopback interface out, and takes nodes of one machine for two machines.
  export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1
  export OMP_NUM_THREADS=1 VFM_LEASE_SECONDS=0.5
  "$cluster" start slurm 3>&-
  export SLURM_CONF=$PWD/slurm/slurm.conf
}

teardown() {
  "$cluster" stop slurm
}

# videos SIZE SECONDS: eight with captions, named in the file "names"
videos() {
  local i
  mkdir raw
  for i in 1 2 3 4 5 6 7 8; do
    make_video "raw/v$i.mp4" "$2" "testsrc2=size=$1:rate=12,hue=h=$((40 * i))"
    echo "test picture $i" >"raw/v$i.txt"
  done
  find "$PWD/raw" -name '*.mp4' | LC_ALL=C sort >names
}

# Every video is a unit, so that all parts have some.
list() { vfm-clip list -o "$1" -n "$2" --shard-size 64KiB <names >listed.jsonl; }
whole() { (cd "$1" && find . -path ./parts -prune -o -type f -print | LC_ALL=C sort | xargs sha256sum); }
# curated DIR: by one process.
curated() {
  list "$1" 1
  vfm-clip -o "$1" --part 0/1 >/dev/null
  vfm-caption "$1" --part 0/1 >/dev/null
  vfm-shard join "$1" >/dev/null
}
# recipe STEPS: a small model.
recipe() {
  printf '%s\n' 'model: {num_attention_heads: 2, attention_head_dim: 12, num_layers: 1, adaln_lora_dim: 4, max_size: [16, 64, 64]}' \
    "train: {steps: $1, checkpoint_every: $1, log_every: 10}" >recipe.yaml
}
left() { find "$1" -name 'lease*' -o -name '.*.tmp' -o -name temporary -o -name 'unfinished*'; }

# submit OPTION...: submits a job whose output is in the file "log"
submit() { sbatch --parsable --open-mode=append -o "$PWD/log" "$@" 3>&-; }
# ended JOB: waits until the job ended well, however often it is queued again.
ended() { timeout 1800 sbatch --wait -Q -o /dev/null -d "afterok:$1" --kill-on-invalid-dep=yes --wrap true 3>&-; }

@test "a node that dies in the middle of an array loses nothing, and the other does its work" {
  videos 320x240 20
  curated one
  list out 8
  sbatch --parsable --array=0-5%4 -o /dev/null "$jobs/curate.sbatch" vfm-clip -o out >array
  some_done() { compgen -G 'out/parts/clip/*/done.json' && compgen -G 'out/parts/clip/*/lease*'; }
  await some_done
  local dead
  dead=$(cat out/parts/clip/*/lease* | jq -rs '.[0].host')
  "$cluster" down slurm "$dead"
  [ "$(find out -name done.json | wc -l)" -lt 6 ]
  ended "$(<array)"
  [[ $(sinfo -h -N -n "$dead" -p main -o %t) == down* ]]
  # Parts 6 and 7 are of nobody yet.
  [ "$(vfm-clip status out --missing)" = 6-7 ]
  VFM_PART_OFFSET=6 submit --wait --array=0-1 "$jobs/curate.sbatch" vfm-clip -o out
  submit --wait --array=0-5 "$jobs/curate.sbatch" vfm-caption out --part env/6
  submit --wait --wrap 'vfm-shard join out'
  jq -rs 'map(.host) | unique | join(" ")' out/parts/caption/*/done.json | grep -vx "$dead"
  diff <(whole one) <(whole out)
  [ -z "$(left out)" ]
}

@test "a training ends before its limit and queues again, goes on without a node, and has the bytes of an undisturbed one" {
  videos 96x64 6
  vfm-clip raw/*.mp4 -o clips | vfm-caption | vfm-embed | vfm-shard --keep-duplicates -o dataset |
    vfm-pack --size 64 --frames 17 -o latents >latents.jsonl
  # For a minute or more.
  sed -E 's/^( +steps:) 6500/\1 200/; s/^( +checkpoint_every:).*/\1 200/; s/^( +every:).*/\1 0/' \
    "$VFM_ROOT/examples/recipes/quickstart.yaml" >recipe.yaml
  local job at
  : >log
  job=$(submit --ntasks-per-node=1 "$jobs/train.sbatch" recipe.yaml latents run)
  saved() { grep '^{"kind":"checkpoint"' log; }
  # restarted N: waits until the job has been queued again N times.
  restarted() {
    until scontrol show job "$job" | grep -q " Restarts=$1 "; do
      [ -n "$(squeue -h -j "$job")" ] || return 1
      sleep 0.5
    done
  }
  until grep -q ': step 10 ' log; do sleep 0.5; done
  # USR1 comes 300 seconds before the limit: at once.
  scontrol update jobid="$job" timelimit=5
  restarted 1
  scontrol update jobid="$job" timelimit=24:00:00
  saved | jq -es 'length == 1 and (.[0].final | not)'
  at=$(saved | jq .step)
  [ -e run/checkpoints/step-"$(printf %08d "$at")" ]
  # It runs again, and a node dies.
  until grep -q "goes on after step $at " log && grep -q ": step $((at / 10 * 10 + 20)) " log; do sleep 0.5; done
  "$cluster" down slurm n2
  ended "$job"
  "$cluster" up slurm n2
  grep -e 'train.sbatch: ' -e ' all ranks end' log
  [ "$(grep -o ' on n[12].*' log | xargs)" = 'on n1:1,n2:1 on n1:1,n2:1 on n1:1' ]
  scontrol show job "$job" | grep -q ' Restarts=1 '
  saved | jq -es 'length == 2 and .[1].final'
  mpirun -np 2 vfm-train recipe.yaml --data latents -o undisturbed >undisturbed.jsonl
  diff -r undisturbed/checkpoints/step-00000200 run/checkpoints/step-00000200
}

# section NAME: the commands of that section of vfm-slurm(7)
section() { awk -v name="# $1" '/^# / { on = $0 == name } on && sub(/^\t/, "")' "$VFM_ROOT/man/vfm-slurm.7.scd"; }

@test "the chain of the manual makes a model of videos, and videos of the model" {
  videos 96x64 6
  recipe 20
  echo 'test picture 3' >prompts.txt
  curated out
  vfm-embed out --part 0/1 >/dev/null
  vfm-shard join out >/dev/null
  vfm-shard out -o dataset >dataset.jsonl
  vfm-pack dataset.jsonl --size 64 --frames 17 -o latents >latents.jsonl
  mkdir alone && mv out dataset* latents* alone
  list out 4
  section 'FROM VIDEOS TO A MODEL' | sed 's/-999 /-3 /; s/-99 /-3 /; s#env/100#env/4#' >chain
  [ "$(wc -l <chain)" -eq 8 ]
  # shellcheck disable=SC1091 # made above
  . ./chain >last
  ended "$(sed 's/.* //' last)"
  local made
  for made in out dataset latents; do diff <(whole "alone/$made") <(whole "$made"); done
  jq -es '.[-1].step == 20' run/metrics.jsonl
  ls videos/*.mp4
}

@test "make with SLURM does again the part of a video that changed or went, and makes parts of new ones" {
  videos 96x64 3
  # Every video is a unit.
  find raw -name '*.mp4' | LC_ALL=C sort | vfm-clip list -o out/clips -n 4 --shard-size 64KiB >/dev/null
  slurm_make() { make "$@" -s -f "$VFM_ROOT/examples/Makefile" SLURM=2 PARTS=4 RAW=raw OUT=out 3>&-; }
  # again: the parts that vfm-clip did since the last time, and how many captioners had to do.
  again() {
    slurm_make
    slurm_make -q
    find out/clips/parts -name done.json -printf '%P %T@\n' | sort >after
    comm -13 before after >new
    mv after before
    sed -nE 's#^clip/0*([0-9]+)/.*#\1#p' new | xargs
    grep -c '^caption' new
  }
  of() { jq -r --arg path "raw/$1.mp4" 'select(.path == $path) | input_filename | ltrimstr("out/clips/parts/list/0000")[:1]' \
    out/clips/parts/list/*; }
  sources() { records out/embeddings.jsonl | jq -r '.source // .sources[]' | sed 's#.*/##' | LC_ALL=C sort -u | xargs; }
  : >before
  [ "$(again)" = $'0 1 2 3\n4' ]
  [ "$(sources)" = 'v1.mp4 v2.mp4 v3.mp4 v4.mp4 v5.mp4 v6.mp4 v7.mp4 v8.mp4' ]
  make_video raw/v3.mp4 3 mandelbrot=size=96x64:rate=12
  again >did
  [ "$(head -n 1 did)" = "$(of v3)" ]
  [ "$(tail -n 1 did)" -le 2 ]
  rm raw/v5.*
  [ "$(again)" = "$(of v5)"$'\n1' ]
  make_video raw/v9.mp4 3 mandelbrot=size=96x64:rate=24
  [ "$(again)" = $'4\n1' ]
  [ "$(sources)" = 'v1.mp4 v2.mp4 v3.mp4 v4.mp4 v6.mp4 v7.mp4 v8.mp4 v9.mp4' ]
  [ -s out/latents.jsonl ]
}

@test "a job of two kinds of nodes captions while it clips" {
  videos 320x240 20
  curated one
  list out 8
  submit --wait "$jobs/two-kinds.sbatch" out
  [ -z "$(vfm-clip status out --missing)$(vfm-caption status out --missing)" ]
  vfm-shard join out >/dev/null
  diff <(whole one) <(whole out)
  [ -z "$(left out)" ]
  # Each on its kind, and the first captions before the last clips.
  [ "$(jq -r .host out/parts/clip/*/done.json | sort -u)" = n1 ]
  [ "$(jq -r .host out/parts/caption/*/done.json | sort -u)" = n2 ]
  jq -es '([.[] | select(.tool == "vfm-caption").ended] | min) < ([.[] | select(.tool == "vfm-clip").ended] | max)' \
    out/parts/{clip,caption}/*/done.json
}

@test "nodes of two kinds do what is most in need, queue again before their limit, and lose nothing with a node" {
  videos 320x240 20
  curated one
  vfm-embed one --part 0/1 >/dev/null
  vfm-shard join one >/dev/null
  list out 8
  local video gpu
  video=$(submit -p video --array=1-2 "$jobs/node.sh" out 'vfm-clip -o out' 'vfm-caption out')
  gpu=$(submit -p gpu --array=1-2 "$jobs/node.sh" out 'vfm-clip -o out' 'vfm-caption out' 'vfm-embed out')
  until compgen -G "out/parts/clip/*/done.json" >/dev/null; do sleep 0.2; done
  scancel --batch --signal=USR1 "${gpu}_1"
  "$cluster" down slurm n1
  until scontrol show job "${gpu}_1" | grep -q ' Restarts=1 '; do sleep 0.5; done
  "$cluster" up slurm n1
  ended "$video:$gpu"
  vfm-shard join out >/dev/null
  diff <(whole one) <(whole out)
  [ -z "$(left out)" ]
}
