#!/usr/bin/env bats
# The habits of the house, checked: who includes whom, headers that compile alone, sizes, documents that
# tell the truth, shell scripts without traps.
# SPDX-License-Identifier: Apache-2.0

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

@test "every header compiles alone" {
  run tests/lint/headers-alone
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "files keep to the house sizes" {
  run tests/lint/file-sizes
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "--help and the manual name the same options" {
  for tool in "${tools[@]}"; do
    run tests/lint/help-matches-man "$tool" "$VFM_BIN/$tool" "man/$tool.1.scd"
    echo "$output"
    [ "$status" -eq 0 ]
  done
}

@test "manual pages convert without a word" {
  for page in man/*.scd; do
    run scdoc <"$page"
    [ "$status" -eq 0 ]
  done
}

@test "every source file names its licence" {
  run git ls-files '*.cc' '*.h' '*.cu' '*.cuh' 'scripts/*' '*.bats'
  [ "$status" -eq 0 ] || skip "not a git checkout"
  bad=
  while read -r file; do
    [ -f "$file" ] || continue
    case $file in *.md | *.json | *.npz | *.safetensors) continue ;; esac
    grep -qxE '(//|#) SPDX-License-Identifier: Apache-2.0' "$file" || bad+="$file "
  done <<<"$output"
  echo "without licence: $bad"
  [ -z "$bad" ]
}

@test "shell scripts pass shellcheck" {
  scripts=$(git ls-files scripts tests examples .ci | while read -r f; do
    if [ -f "$f" ] && head -n 1 "$f" | grep -qE '^#!.*(bash|/sh)'; then echo "$f"; fi
  done)
  # shellcheck disable=SC2086
  run shellcheck $scripts
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "the library never prints, exits, or reads arguments and environment outside cli/" {
  run grep -nE '\b(printf|puts|fputs|putchar|getenv|secure_getenv|abort|_?exit|sigaction|std::signal|::signal)\(|std::(cout|cerr|clog)\b' \
    --include='*.cc' --include='*.h' -r lib --exclude-dir=cli
  output=$(echo "$output" | grep -vE 'snprintf|MPI_Abort|^lib/[^:]*:[0-9]+: *(//|///)' || true)
  echo "$output"
  [ -z "$output" ]
}

@test "the code that README tells readers to walk is there" {
  grep -q 'class Decoder' lib/media/decoder.h
  grep -q 'bool next(Frame& frame)' lib/media/decoder.h
  grep -q 'class ShotDetector' lib/curate/shot_detector.h
  grep -q 'class Writer' lib/shard/writer.h
  grep -qE '\brun\(' lib/train/run.h
  grep -q 'diffusion_loss' lib/train/diffusion/loss.h
  grep -q 'Tensor forward' lib/models/dit/dit.h
}
