#!/usr/bin/env bats
# The habits of the house, checked: who includes whom, headers that compile alone, sizes, documents that
# tell the truth, shell scripts without traps.
# SPDX-License-Identifier: Apache-2.0

bats_require_minimum_version 1.5.0

setup() {
  cd "${VFM_ROOT:?set VFM_ROOT to the repository}" || return 1
  tools=(vfm-clip vfm-caption vfm-embed vfm-shard vfm-pack vfm-train vfm-generate)
}

@test "the top level holds exactly what belongs there" {
  run git ls-tree --name-only HEAD
  [ "$status" -eq 0 ] || skip "not a git checkout"
  expected='.ci .clang-format .gitignore LICENSE README.md examples kernels lib man meson.build meson_options.txt scripts tests tools'
  [ "$(echo "$output" | LC_ALL=C sort | tr '\n' ' ')" = "$(echo "$expected" | tr ' ' '\n' | LC_ALL=C sort | tr '\n' ' ')" ]
}

@test "a layer includes only what stands below it" {
  run tests/lint/include-direction
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "a class has one name in all rooms, and a second one is found" {
  run tests/lint/same-names
  echo "$output"
  [ "$status" -eq 0 ]
  mkdir -p "$BATS_TEST_TMPDIR/lib/io" "$BATS_TEST_TMPDIR/lib/clip"
  echo 'struct Piece {' >"$BATS_TEST_TMPDIR/lib/io/a.h"
  echo 'class Piece : public Whole {' >"$BATS_TEST_TMPDIR/lib/clip/b.h"
  run tests/lint/same-names "$BATS_TEST_TMPDIR/lib"
  [ "$status" -eq 1 ] && [ "$output" = "Piece: in clip and io" ]
}

@test "every header compiles alone" {
  # By day those that changed lately; scripts/nightly sets VFM_NIGHT.
  changed=--changed
  [ -z "${VFM_NIGHT-}" ] || changed=
  # shellcheck disable=SC2086
  run tests/lint/headers-alone $changed
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "headers are light, and a heavy one is found" {
  run tests/lint/light-headers
  echo "$output"
  [ "$status" -eq 0 ]
  cp -r lib "$BATS_TEST_TMPDIR/"
  cd "$BATS_TEST_TMPDIR/lib"
  echo '#include <CLI/CLI.hpp>' >>cli/options.h
  echo '#include "base/json.h"' >>io/manifest.h
  echo '#include "media/container/mux.h"' >>clip/clip.cc
  echo '// fmt::format' >>nn/weight.cc
  sed -i 's#only `base/json.h`, #&`base/rational.h`, #' README.md
  run "$VFM_ROOT/tests/lint/light-headers" .
  echo "$output"
  [ "$status" -eq 1 ] && [ "${#lines[@]}" -gt 3 ]
  [[ $output == *'cli/options.h:'*'does not belong into a header'* ]]
  [[ $output == *'io/manifest.h:'*'brings a library'* ]]
  [[ $output == *'clip/clip.cc:'*'is for lib/media only'* ]]
  [[ $output == *'nn/weight.cc: uses {fmt} without its header'* ]]
  [[ $output == *'README.md: base/rational.h brings no library'* ]]
}

@test "files keep to the house sizes" {
  run tests/lint/file-sizes
  echo "$output"
  [ "$status" -eq 0 ]
}

# bats test_tags=night
@test "--help-all and the manual name the same options" {
  for page in man/*.1.scd; do
    name=$(basename "$page" .1.scd)
    # vfm-embed-search is the page of vfm-embed search.
    read -r -a command <<<"$(sed -E 's/^(vfm-[a-z]+)-/\1 /' <<<"$name")"
    command[0]=$VFM_BIN/${command[0]}
    if grep -qx '@OPTIONS@' "$page"; then
      "${command[@]}" --generate-manual "$page" >"$BATS_TEST_TMPDIR/$name.scd"
      page=$BATS_TEST_TMPDIR/$name.scd
      run scdoc <"$page"
      [ "$status" -eq 0 ]
    fi
    run tests/lint/help-matches-man "$page" "${command[@]}"
    echo "$output"
    [ "$status" -eq 0 ]
  done
}

@test "manual pages convert without a word" {
  for page in man/*.scd; do
    run scdoc <"$page"
    [ "$status" -eq 0 ]
  done
  # Lines of one paragraph are filled, so two commands there would run together.
  run awk '{ command = /^\t(vfm-|mpirun |srun )/ } command && before { print FILENAME ": " FNR } { before = command }' man/*.scd
  [ -z "$output" ]
}

@test "every source file names its licence" {
  run git ls-files '*.cc' '*.h' '*.cu' '*.cuh' 'scripts/*' '*.bats'
  [ "$status" -eq 0 ] || skip "not a git checkout"
  mapfile -t files < <(while read -r file; do
    case $file in *.md | *.json | *.npz | *.safetensors) continue ;; esac
    if [ -f "$file" ]; then echo "$file"; fi
  done <<<"$output")
  [ "${#files[@]}" -gt 500 ]
  bad=$(grep -LxE '(//|#) SPDX-License-Identifier: Apache-2.0' "${files[@]}") || true
  echo "without licence: $bad"
  [ -z "$bad" ]
}

@test "shell scripts pass shellcheck" {
  # By day those that changed lately.
  [ -z "${VFM_NIGHT-}" ] && files=$(tests/lint/lately scripts tests examples .ci) || files=$(git ls-files scripts tests examples .ci)
  scripts=$(while read -r f; do
    if [ -f "$f" ] && head -n 1 "$f" | grep -qE '^#!.*(bash|/sh)'; then echo "$f"; fi
  done <<<"$files")
  run xargs -r shellcheck <<<"$scripts"
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "the library never prints, exits, or reads arguments and environment outside cli/" {
  run grep -nE '\b(printf|puts|fputs|putchar|getenv|secure_getenv|abort|_?exit|sigaction|std::signal|::signal)\(|std::(cout|cerr|clog)\b' \
    --include='*.cc' --include='*.h' -r lib --exclude-dir=cli
  output=$(echo "$output" | grep -vE 'snprintf|MPI_Abort|^lib/io/remote/environment\.cc:|^lib/[^:]*:[0-9]+: *(//|///)' || true)
  echo "$output"
  [ -z "$output" ]
}

@test "the walks in lib/README.md are the calls in the source, and a wrong name is found" {
  run tests/lint/walks
  echo "$output"
  [ "$status" -eq 0 ]
  # Every name after an arrow, spelled wrong, one at a time.
  names=$(tr '\n' ' ' <lib/README.md | grep -oE '→ .[A-Za-z_:]+' | sed 's/^→ .//' | sort -u)
  [ "$(wc -l <<<"$names")" -ge 10 ]
  # By day three of them.
  [ -n "${VFM_NIGHT-}" ] || names=$(head -n 3 <<<"$names")
  for name in $names; do
    sed "s/$name\b/${name}x/g" lib/README.md >"$BATS_TEST_TMPDIR/wrong.md"
    run tests/lint/walks "$BATS_TEST_TMPDIR/wrong.md"
    echo "$name: $output"
    [ "$status" -ne 0 ]
  done
  # Each walk with one call more than it may have.
  sed 's/→ `cli::run`/→ `cli::run` → `cli::run`/' lib/README.md >"$BATS_TEST_TMPDIR/long.md"
  run tests/lint/walks "$BATS_TEST_TMPDIR/long.md"
  echo "$output"
  for tool in clip:11 train:6 generate:9; do
    grep -q "^tools/vfm-${tool%:*}.cc: $((${tool#*:} + 1)) calls, more than ${tool#*:}$" <<<"$output"
  done
}

@test "every figure of README stands in RESULTS.md, and a wrong one is found" {
  run tests/lint/figures
  echo "$output"
  [ "$status" -eq 0 ]
  for change in 's/8\.9 times/8.8 times/' 's/0\.86 to 0\.97/0.86 to 0.98/' 's/1,568 s/1,569 s/' 's/\[40 kills\]/[41 kills]/' \
    's/#the-long-tests)/#long-tests)/' 's/ on two CPU cores\.$/ on 9 CPU cores./'; do
    sed "$change" README.md >"$BATS_TEST_TMPDIR/wrong.md"
    run ! cmp -s README.md "$BATS_TEST_TMPDIR/wrong.md"
    run tests/lint/figures "$BATS_TEST_TMPDIR/wrong.md"
    echo "$change: $output"
    [ "$status" -ne 0 ]
  done
}

@test "README is short: at most 1,000 words" {
  [ "$(wc -w <README.md)" -le 1000 ]
}

@test "each page of the manual that README, a page or a program names is there" {
  local page missing=''
  # shellcheck disable=SC2013 # a page is a word
  for page in $(grep -rhoE '\bvfm(-[a-z]+)*\*?\([157]\)' README.md lib/README.md man lib tools scripts examples | tr '(' . | tr -d '*)' | sort -u); do
    [ -f "man/$page.scd" ] || missing+="$page "
  done
  echo "missing: $missing"
  [ -z "$missing" ]
}

@test "what vfm-paper(7) says was measured or predicted stands in RESULTS.md, and a wrong figure is found" {
  run tests/lint/figures man/vfm-paper.7.scd
  echo "$output"
  [ "$status" -eq 0 ]
  for change in 's/0\.86 to 0\.97/0.86 to 0.98/' 's/ 10,128/ 10,129/' 's/ -13\.3 %/ -13.4 %/' 's/figures: #shards$/figures: #shard/' \
    's/^; figures: #many-samples$/; more/' 's/ 94\.7 %/ 94.8 %/' 's/ 0\.948 of/ 0.949 of/'; do
    sed "$change" man/vfm-paper.7.scd >"$BATS_TEST_TMPDIR/wrong.scd"
    run ! cmp -s man/vfm-paper.7.scd "$BATS_TEST_TMPDIR/wrong.scd"
    run tests/lint/figures "$BATS_TEST_TMPDIR/wrong.scd"
    echo "$change: $output"
    [ "$status" -ne 0 ]
  done
}

@test "each test runs by day or at night, each program is compiled, and what would not be is found" {
  run tests/lint/all-tests-run "${VFM_BUILD:?set VFM_BUILD to the build}"
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$(tail -n 1 scripts/nightly)" = 'exec "$(dirname "$0")/test" unit kernels sanitize nightly' ]
  # Of a copy each of these is told.
  copy=$BATS_TEST_TMPDIR
  mkdir "$copy/build" "$copy/tests"
  cp meson.build "$copy/"
  cp -r tests/{unit,fuzz,kernels,bench,cli,pipeline,lint,nightly} "$copy/tests/"
  cp tests/cli/signals.bats "$copy/tests/unit/"
  cp tests/cli/signals.bats "$copy/tests/cli/clip/"
  echo '# bats test_tags=nigth' >>"$copy/tests/cli/signals.bats"
  echo '# bats test_tags=night' >>"$copy/tests/nightly/signals.bats"
  cp tests/unit/base/text_test.cc "$copy/tests/unit/base/forgotten_test.cc"
  sed '/^build unit-daily: /s# tests/unit/unit_cli##; /^build bench: /s# tests/bench/noise##' "$VFM_BUILD/build.ninja" \
    >"$copy/build/build.ninja"
  run tests/lint/all-tests-run "$copy/build" "$copy/tests"
  echo "$output"
  [ "$status" -eq 1 ] && [ "${#lines[@]}" -eq 7 ]
  [[ $output == *"unit/signals.bats: no suite of scripts/test runs it"* ]]
  [[ $output == *"signals.bats: several files have this name, and one log"* ]]
  [[ $output == *"cli/signals.bats: '# bats test_tags=nigth' is no tag that scripts/test knows"* ]]
  [[ $output == *"nightly/signals.bats: only tests of lint, cli and pipeline run again at night"* ]]
  [[ $output == *"unit/base/forgotten_test.cc: in no meson.build"* ]]
  [[ $output == *"tests/unit/unit_cli: in no list of a day"* ]]
  [[ $output == *"tests/bench/noise: scripts/nightly does not build it"* ]]
}

@test "a benchmark finds the build that it is given, wherever it goes" {
  local script before after wrong=0
  for script in $(grep -lE '^cd ' tests/bench/*.sh); do
    before=$(sed '/^cd /q' "$script" | grep -E '(^|[ ])(build|bin|tools)=' | grep -vE 'realpath|cd "\$' || true)
    after=$(sed '1,/^cd /d' "$script" | grep -E '(^|[ ])(build|bin|tools)=' || true)
    [ -z "$before$after" ] || { echo "$script: relative to another folder: $before$after" && wrong=1; }
  done
  [ $wrong -eq 0 ]
}
