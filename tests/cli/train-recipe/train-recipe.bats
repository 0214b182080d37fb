#!/usr/bin/env bats
# vfm-train recipe: the effective recipe, and where each value comes from.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
load ../train/tiny_runs

@test "recipe prints a recipe that means the same, where each value comes from, and the manual names every field" {
  write_recipe
  vfm-train recipe tiny.yaml optimizer.lr=2e-3 >printed.yaml
  vfm-train recipe printed.yaml >again.yaml
  cmp <(sed 's/ *#.*//' printed.yaml) <(sed 's/ *#.*//' again.yaml)
  grep -qE "^  lr: 0.002 +# argument 'optimizer.lr=2e-3'$" printed.yaml
  grep -qE "^  warmup: 5 +# line [0-9]+ of 'tiny.yaml'$" printed.yaml
  grep -qE '^  beta1: 0.9 +# default$' printed.yaml
  grep -qE '^  in_channels: 0 +# default: as in the data$' printed.yaml
  grep -qE '^  size: 256 +# default, only with --tokenizer$' printed.yaml
  vfm-train recipe model.type=tokenizer | grep -qE '^  size: [0-9]+ +# default$'
  vfm-train recipe model.type=stdit | grep -qE "^  type: stdit +# argument 'model.type=stdit'$"
  echo @RECIPE@ >page
  vfm-train recipe --generate-manual page | tr -d '\\' >keys
  awk '/^[a-z]/ { section = $1; sub(":", "", section) } /^  / { sub(":", "", $1); print section "." $1 }' printed.yaml |
    while read -r key; do
      grep -qF "*$key*" keys || { echo "not in the manual: $key"; return 1; }
    done
  # Each section once, and a key that one type has beside its like.
  [ -z "$(sed -n 's/^\*\([a-z]*\)\..*/\1/p' keys | uniq | sort | uniq -d)" ]
  grep -A4 '^\*data.size\*' keys | grep -q '^\*data.shorter_side\*'
}

@test "a recipe is one YAML document, and ranks print it once" {
  write_recipe
  printf '%s\n' '---' 'trian: {steps: 4}' >>tiny.yaml
  run vfm-train recipe tiny.yaml
  [ "$status" -eq 2 ]
  [[ $output == *"has text after the end of its YAML document"* ]]
  write_recipe
  command -v mpirun >/dev/null || skip "no mpirun"
  mpirun -np 2 vfm-train recipe tiny.yaml >printed.yaml
  [ "$(grep -c '^model:' printed.yaml)" -eq 1 ]
  cmp <(vfm-train recipe printed.yaml | sed 's/ *#.*//') <(sed 's/ *#.*//' printed.yaml)
}
