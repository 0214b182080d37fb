#!/usr/bin/env bats
# scripts/same-results: names what differs, asks each program for its verbs, and knows a record of other inputs.
# SPDX-License-Identifier: Apache-2.0

bats_require_minimum_version 1.5.0

setup_file() { export BATS_NO_PARALLELIZE_WITHIN_FILE=true; }

setup() {
  load ../cli/helpers
  setup_tools
  SAME=${VFM_ROOT:-$BATS_TEST_DIRNAME/../..}/scripts/same-results
}

# copied_tools FOLDER: links to the programs.
copied_tools() {
  mkdir "$1"
  ln -s "$VFM_BIN"/vfm-* "$1"
}

@test "same-results refuses what it is not for" {
  local arguments
  for arguments in '' one '--only dream a b' '--record' '--record a' '--against nowhere .' "--record a nowhere" 'a b c d'; do
    # shellcheck disable=SC2086
    run -2 "$SAME" $arguments
    [ -n "$output" ]
  done
}

# bats test_tags=night
@test "same-results knows programs with verbs from those with options" {
  copied_tools moved
  rm moved/vfm-clip
  cat >moved/vfm-clip <<END
#!/bin/sh
case \$1:\$2 in
  *:--help | --help:*) echo 'Options alone.' ;;
  --no-such-option:*) echo 'other words' >&2; exit 2 ;;
  *) exec '$VFM_BIN/vfm-clip' "\$@" ;;
esac
END
  chmod +x moved/vfm-clip
  run -0 "$SAME" --only texts "$VFM_BIN" moved
  [[ $output == *'vfm-clip has other verbs: its help'* && $output == *'files, all the same' ]]
  # Another text of a program that has the same verbs is found.
  rm moved/vfm-clip moved/vfm-pack
  ln -s "$VFM_BIN/vfm-clip" moved
  printf '#!/bin/sh\necho "help of $1"\n' >moved/vfm-pack
  chmod +x moved/vfm-pack
  run -1 "$SAME" --only texts "$VFM_BIN" moved
  [[ $output == *help-pack.out* && $output != *help-clip* ]]
}

# bats test_tags=night
@test "a record is kept to, and names what differs and other inputs" {
  grep -qw avx2 /proc/cpuinfo || skip "this processor has no AVX2"
  "$SAME" --only curate --record record "$VFM_BIN"
  grep -q '^# FFmpeg ' record
  sed -E -i 's/^[0-9a-f]{16}(  curate plan\.out)$/0000000000000000\1/; /curate search\.status/d' record
  run -1 "$SAME" --only curate --against record "$VFM_BIN"
  [[ $output == *plan.out*search.status*'2 of '*' files differ'* && $output != *clip.out* ]]
  sed -E -i 's/^[0-9a-f]{16}(  input words.txt)$/0000000000000000\1/' record
  run -3 "$SAME" --only curate --against record "$VFM_BIN"
  [[ $output == *words.txt*'inputs differ: the record is of another FFmpeg'* ]]
}
