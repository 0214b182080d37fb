#!/usr/bin/env bats
# The commands of vfm-paper(7) do what the page says, in its order; and the experiments that it names.
# SPDX-License-Identifier: Apache-2.0

load helpers
bats_require_minimum_version 1.5.0

setup() {
  setup_tools
  vfm-train --version | grep -qi 'mpi: *yes' || skip "built without MPI"
  command -v mpirun >/dev/null || skip "no mpirun"
}

# commands_of PAGE: the lines that begin with "$ ".
commands_of() { sed -n 's/^\$ //p' "$1"; }

@test "each command of the page runs, in the page's order" {
  mkdir raw
  local i colour
  for i in 1 2 3 4 5 6; do
    colour=$(sed -n "${i}p" <<<$'red\nblue\ngreen\nwhite\nyellow\ngray')
    ffmpeg -hide_banner -loglevel error -f lavfi -i "color=$colour:s=96x96:r=12:d=2,noise=alls=40:allf=t" \
      -c:v libx264 -pix_fmt yuv420p "raw/$i.mp4" </dev/null
  done
  mapfile -t commands < <(commands_of "$VFM_ROOT/man/vfm-paper.7.scd")
  [ ${#commands[@]} -ge 15 ]
  local command
  for command in "${commands[@]}"; do
    command=${command//EXAMPLES/$VFM_ROOT/examples}
    command=${command//SCRIPTS/$VFM_ROOT/scripts}
    echo "$command"
    bash -o pipefail -c "$command" </dev/null >>out 2>err || { cat err && return 1; }
  done
  [ -s latents.jsonl ] && [ -s plan.json ] && [ -s videos.jsonl ]
  jq -e '.kind == "clip"' <(grep '"kind":"clip"' videos.jsonl)
}

@test "an experiment's table has a row for each layout, and says measured or predicted" {
  STEPS=4 run --separate-stderr "$VFM_ROOT/scripts/experiments" --small fsdp
  [ "$status" -eq 0 ]
  [ "$(grep -c '| measured |' <<<"$output")" -eq 3 ]
  CARDS=0 run --separate-stderr "$VFM_ROOT/scripts/experiments" table1
  [ "$status" -eq 0 ]
  [ "$(grep -c '| predicted, H100 |' <<<"$output")" -eq 5 ]
  # The first row does not fit; the published rate of the second stands beside ours.
  grep 'baseline.*memory: does not fit' <<<"$output"
  grep 'CP2.*| 457, 8969 |' <<<"$output"
  run --separate-stderr "$VFM_ROOT/scripts/experiments" tabel
  [ "$status" -eq 2 ]
  [[ $stderr == *"no experiment 'tabel'"* ]]
}
