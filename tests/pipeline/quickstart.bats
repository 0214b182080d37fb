#!/usr/bin/env bats
# The two commands of README's beginning, as far as a test can run them: scripts/quickstart with built tools and videos of
# one's own, and scripts/build.
# SPDX-License-Identifier: Apache-2.0

bats_require_minimum_version 1.5.0

setup() {
  root=${VFM_ROOT:?set VFM_ROOT to the repository}
  cd "$BATS_TEST_TMPDIR" || return 1
}

@test "quickstart with a video: says what it takes, ends in a page and clips, and goes on where it was" {
  for each in red blue; do
    ffmpeg -nostdin -loglevel error -f lavfi -i "color=$each:s=64x64:r=12:d=2" -f lavfi -i testsrc=s=24x24:r=12:d=2 \
      -filter_complex 'overlay=x=2*n' -c:v libx264 "$each.mp4"
    echo "a $each ground" >"$each.txt"
  done
  run --separate-stderr env VFM_BIN="$VFM_BIN" "$root/scripts/quickstart" red.mp4 blue.mp4 -o "a b" --steps 2
  [ "$status" -eq 0 ]
  [[ ${lines[0]} =~ ^'This takes about '[0-9]+' minutes on this machine ('[0-9]+' to train) and what your videos take, and '[0-9]+' MB of disk.'$ ]]
  [ -s "a b/report.html" ]
  grep -q 'a blue ground' "a b/prompts.txt"
  [ "$(find "a b/videos" -name '*.mp4' | wc -l)" -eq "$(wc -l <"a b/prompts.txt")" ]
  sum=$(find "a b" \( -name '*.mp4' -o -name '*.tar' \) -exec md5sum {} + | sort)
  rm "a b"/videos/*.mp4
  run --separate-stderr env VFM_BIN="$VFM_BIN" "$root/scripts/quickstart" red.mp4 blue.mp4 -o "a b" --steps 2
  [ "$status" -eq 0 ]
  [[ ${lines[0]} == 'This takes about 0 minutes on this machine and what your videos take'* ]]
  [ "$(find "a b" \( -name '*.mp4' -o -name '*.tar' \) -exec md5sum {} + | sort)" = "$sum" ]
}

@test "quickstart ends before all work where the disk is too small" {
  mkdir bin
  printf '#!/bin/sh\nprintf "Filesystem 1048576-blocks Used Available Capacity Mounted on\\nx 100 99 1 99%%%% /\\n"\n' >bin/df
  chmod +x bin/df
  touch a.mp4
  run --separate-stderr env PATH="$PWD/bin:$PATH" VFM_BIN="$VFM_BIN" "$root/scripts/quickstart" a.mp4 -o out
  [ "$status" -eq 1 ]
  [[ $stderr == "quickstart: it needs "*" MB of disk, and 1 MB are free for 'out'" ]]
  [ -z "$(ls out)" ]
}

@test "build: a wrong option is told" {
  run --separate-stderr "$root/scripts/build" --for speed
  [ "$status" -eq 2 ]
  [ "$stderr" = "build: --for needs run, kernels or sanitizers, not 'speed'" ]
}
