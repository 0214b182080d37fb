#!/usr/bin/env bats
# Each program of the pipe killed in turn, many times: what is behind it never calls anything complete, and the same
# command goes on to the bytes of an uninterrupted run.
# SPDX-License-Identifier: Apache-2.0

bats_require_minimum_version 1.5.0

setup() {
  load ../cli/helpers
  setup_tools
}

# killable NAME: the program, its process id in the file NAME.pid.
killable() { exec bash -c 'echo $$ >"$0.pid"; exec "$0" "$@"' "$@"; }

curate() {
  set +e
  (killable vfm-clip raw/*.mp4 -o clips -j1) | (killable vfm-caption -j1) | (killable vfm-embed -j1) |
    (killable vfm-shard -o dataset -j1) | (killable vfm-pack --size 64 --frames 17 -o latents -j1)
  echo "${PIPESTATUS[@]}" >statuses
  rm -f ./*.pid
}

@test "40 kills of one program in the pipe, then the same command: the same bytes" {
  mkdir -p raw whole
  local i program pid
  for i in 0 1 2 3 4 5; do make_video raw/v$i.mp4 2 "testsrc2=size=96x64:rate=$((12 + i))"; done
  ln -s ../raw whole/raw
  (cd whole && curate >manifest 2>/dev/null)
  [ "$(<whole/statuses)" = "0 0 0 0 0" ]
  for i in $(seq 8); do
    for program in vfm-clip vfm-caption vfm-embed vfm-shard vfm-pack; do
      rm -rf broken
      mkdir broken
      ln -s ../raw broken/raw
      cd broken
      curate >manifest 2>/dev/null 3>&- &
      sleep "0.$((RANDOM % 9))$((RANDOM % 9))"
      pid=$(cat $program.pid 2>/dev/null) && kill -KILL "$pid" 2>/dev/null || true
      wait $! || true
      echo "$program: $(<statuses)"
      if [[ "$(<statuses)" != *" 0" ]]; then
        run ! grep '"kind":"end"' manifest
        [ ! -e latents/latents.json ]
      fi
      curate >manifest 2>errors
      cat errors
      [ "$(<statuses)" = "0 0 0 0 0" ]
      [ ! -s errors ]
      without_folder manifest ../whole/manifest
      cmp manifest ../whole/manifest
      rm errors
      [ "$(tree_hash .)" = "$(tree_hash ../whole)" ]
      cd ..
    done
  done
}
