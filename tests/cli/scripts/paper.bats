#!/usr/bin/env bats
# The commands of vfm-paper(7) do what the page says, in its order; and scripts/experiments, which it names, makes the
# tables that it says. All experiments in full: tests/nightly/paper.bats.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

experiments() { run --separate-stderr "$VFM_ROOT/scripts/experiments" "$@"; }

# stand_in NAME <SCRIPT: a program before all others in PATH.
stand_in() {
  mkdir -p stand-ins
  { echo '#!/bin/bash' && cat; } >"stand-ins/$1"
  chmod +x "stand-ins/$1"
  [[ $PATH == "$PWD/stand-ins:"* ]] || PATH="$PWD/stand-ins:$PATH"
}

# quick_programs: a vfm-train that takes no time, with its arguments in calls; eight H200; and a launcher of ranks. A run
# fails with the message in the file "fails", if there is one.
quick_programs() {
  export here=$PWD
  stand_in vfm-train <<'END'
echo "$*" >>"$here/calls"
while [ $# -gt 0 ]; do
  case $1 in -o) out=$2 ;; --gpu) gpu=${2^^} ;; --ranks) ranks=$2 ;; cost) dry=yes ;; esac
  shift
done
[ -z "$dry" ] || exec jq -n --arg gpu "$gpu" --argjson ranks "$ranks" '{$ranks, flops_per_step: 1e15,
  memory_bytes: {total: 1e10}, predicted: {lines: [{name: "products", seconds: 1}], seconds: 2, tokens_per_second: 80,
  mfu: 0.5, fits: true, $gpu}, sent_bytes_per_step: {cp: 2e9}}'
if [ -e "$here/fails" ]; then cat "$here/fails" >&2 && exit 1; fi
mkdir -p "$out"
for step in 1 2 3 4 5 6 7 8; do
  [ $step -lt 4 ] && tokens=1 || tokens=800
  echo "{\"seconds_per_step\": 1, \"data_wait\": 0, \"tflops\": 80, \"tokens_per_second\": $tokens, \"memory_peak\": 1e9}"
done >"$out/timing.jsonl"
END
  stand_in launch <<'END'
shift && exec "$@"
END
  stand_in nvidia-smi <<'END'
case $* in
  -L) for card in 0 1 2 3 4 5 6 7; do echo "GPU $card"; done ;;
  *--query-gpu=name*) for card in 0 1 2 3 4 5 6 7; do echo "NVIDIA H200"; done ;;
esac
END
  export LAUNCH=launch
}

# bats test_tags=night
@test "each command of the page runs, in the page's order" {
  needs_mpi
  mkdir raw
  local i colour
  for i in 1 2 3 4 5 6; do
    colour=$(sed -n "${i}p" <<<$'red\nblue\ngreen\nwhite\nyellow\ngray')
    make_video raw/$i.mp4 2 "color=$colour:s=96x96:r=12,noise=alls=40:allf=t"
  done
  # Its experiments are below, and at night.
  mapfile -t commands < <(paper_commands | grep -v "^$VFM_ROOT/scripts/experiments ")
  [ ${#commands[@]} -ge 20 ]
  local command
  for command in "${commands[@]}"; do
    echo "$command"
    bash -o pipefail -c "$command" </dev/null >>out 2>err || { cat err && return 1; }
  done
  [ "$(grep -c '"kind":"clip"' videos.jsonl)" -eq 1 ]
  grep -q '"kind":"clip"' <(records videos.jsonl)
  [ "$(jq .step <(records run.jsonl) | tail -n 1)" -eq 30 ]
  jq -e '.signs | length > 0' signs.json
  jq -e '.tokens > 0 or .seconds > 0' estimate.jsonl
}

# bats test_tags=night
@test "an experiment's table has a row for each layout, and says measured or predicted" {
  needs_mpi
  STEPS=4 experiments --small fsdp
  [ "$status" -eq 0 ]
  [ "$(grep -c '| measured, processor |' <<<"$output")" -eq 3 ]
  CARDS=0 experiments fsdp
  [ "$status" -eq 0 ]
  [ "$(grep -c '| predicted, H100 |' <<<"$output")" -eq 3 ]
}

# bats test_tags=night
@test "unlike sources are cut at their scenes" {
  experiments --small sources
  [ "$status" -eq 0 ]
  [ "$(grep -cE '^\| (H.264, 320x180, 24 frames/s|HEVC) \| 3 \| [0-9.]+ \| none \|$' <<<"$output")" -eq 2 ]
  # Each program of a pipe over them: its slots, two shares of the time, and threads.
  local cell='[0-9.]+, [0-9]+ %, [0-9]+ %, [0-9.]+ \|'
  [ "$(grep -cE "^\| (H.264|HEVC|all of these) \| (own|shared) \| [0-9.]+ \|( $cell){4}\$" <<<"$output")" -eq 6 ]
}

# bats test_tags=night
@test "only rows of the card that is there are measured, and no experiment changes another's card" {
  quick_programs
  experiments cards fsdp
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$(grep -c '^| h200 | 8 | 10 | 100 |.*| measured, NVIDIA H200 |' <<<"$output")" -eq 1 ]
  [ "$(grep -cE '^\| (a100|l40s|h100|h200) \|.*\| predicted, (A100|L40S|H100|H200) \|' <<<"$output")" -eq 11 ]
  [ "$(grep -c '^| FSDP, .*| measured, NVIDIA H200 |' <<<"$output")" -eq 3 ]
  CARDS=0 experiments cards fsdp
  [ "$(grep -c '^| FSDP, .*| predicted, H100 |' <<<"$output")" -eq 3 ]
  run ! grep measured, <<<"$output"
}

@test "the paper's layouts are compared with and without the hybrid, and clips on 1 to 32 GPUs in bf16 and FP8" {
  quick_programs
  # Two GPUs take half as long, and FP8 half of that.
  stand_in vfm-generate <<'END'
parts=1
while [ $# -gt 0 ]; do
  case $1 in --gpu) gpu=${2^^} ;; --fp8) parts=$((2 * parts)) ;; cfg=2*) parts=$((2 * parts)) ;; esac
  [[ $1 != *cp=* ]] || { cp=${1#*cp=} && parts=$((parts * ${cp%%,*})); }
  shift
done
jq -n --arg gpu "$gpu" --argjson parts $parts '{predicted: {$gpu, pass_seconds: (32 / $parts), seconds: 100}}'
END
  CARDS=0 experiments table2 figure10
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$(grep -c 'parallel.hybrid=true' calls)" -eq $((10 + 6)) ]
  grep -qF '| 12B 74k, TP2 SP PP4 CP8, hybrid with a ring | 512 |' <<<"$output"
  [ "$(grep -c '^| 8 | 2 | 2 | 2 |$' <<<"$output")" -eq 1 ]
  for layout in cp=32 cfg=2,cp=16; do
    grep -qxF "| 32 | $layout | 1.000 | 100.0 | 100.0 | +100 | +100 | predicted, H100 |" <<<"$output"
  done
  [ "$(grep -c '| predicted, H100 |$' <<<"$output")" -eq 11 ]
}

@test "context parallelism is compared at the same tokens a step, and the small network has a small rank" {
  quick_programs
  CARDS=0 experiments cp
  [ "$status" -eq 0 ]
  [ "$(grep -o 'data.packs=[0-9]*' calls)" = "$(yes data.packs=64 | head -n 4)" ]
  rm calls
  experiments --small adaln
  [ "$status" -eq 0 ]
  [ "$(grep -o 'adaln_lora_dim=[0-9]*' calls | tr '\n' ' ')" = "adaln_lora_dim=32 adaln_lora_dim=32 adaln_lora_dim=0 " ]
}

@test "a run that lacks memory is a row, any other failure ends the script, and settings without sense are refused" {
  quick_programs
  echo 'vfm-train: out of memory; see MEMORY in vfm(7)' >fails
  experiments fsdp
  [ "$status" -eq 0 ]
  [ "$(grep -c '| memory: does not fit | measured, NVIDIA H200 |' <<<"$output")" -eq 3 ]
  echo 'a process could not map shared memory' >fails
  experiments fsdp
  [ "$status" -eq 1 ]
  [[ $stderr == *"could not map shared memory"*"the run for the row 'FSDP, recompute none' ended with status 1: vfm-train "* ]]
  STEPS=3 experiments fsdp
  [ "$status" -eq 2 ]
  [ "$stderr" = "experiments: STEPS is '3': 4 or more, as the first three do not count" ]
  CARDS=all experiments fsdp
  [ "$status" -eq 2 ]
  experiments tabel
  [ "$status" -eq 2 ]
  [[ $stderr == *"no experiment 'tabel'"* ]]
}
