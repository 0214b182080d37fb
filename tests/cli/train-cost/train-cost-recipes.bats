#!/usr/bin/env bats
# The recipes of published sizes (examples/recipes): each says what it is of, and a dry run counts the parameters that
# are published, or that follow from what is.
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

# RECIPE TYPE WIDTH LAYERS TOKENS PARAMETERS WITHIN: parameters in billions, as published or derived, and how far in
# parts of a thousand ours may be from them: the same architecture, but for small parts that nobody writes down.
# 7.235 and 14.27 are NVIDIA's (Cosmos-1.0), 27.0 that of 48 blocks of width 6144 with modulation of rank 256. An ST-DiT
# has 22 d² a block, 2048 d for the text's keys and values, 5120 d for modulation of rank 256 in five sub-layers, and 4 d²
# for noise levels. NeMo's 32 layers of 3072 are 7.185, and of 6144 four times as many. MovieGen's are 5 and 30 by name;
# 5.76 and 33.5 follow from the sizes in NeMo's code.
# Wan has 1.419 with texts of width 4096, and 1.414 with those of width 1024.
sizes() {
  cat <<'END'
2b dit 2048 28 8192 1.96 20
7b dit 4096 28 8192 7.235 1
7b-74k dit 4096 28 73728 7.235 1
14b dit 5120 36 8192 14.27 5
28b dit 6144 48 8192 27.0 5
28b-74k dit 6144 48 73728 27.0 5
stdit-7b-35k stdit 4096 18 35840 7.239 2
stdit-7b-74k stdit 4096 18 73728 7.239 2
stdit-12b-35k stdit 5120 20 35840 12.373 2
stdit-12b-74k stdit 5120 20 73728 12.373 2
moviegen-5b moviegen 3072 32 8192 5.76 5
moviegen-30b moviegen 6144 48 8192 33.5 5
nemo-7b dit 3072 32 8192 7.185 5
nemo-28b dit 6144 32 8192 28.74 15
wan-1.3b wan 1536 30 8192 1.414 5
END
}

# bats test_tags=night
@test "a dry run of each recipe of a published size has its parameters, widths and tokens" {
  while read -r name type width layers tokens billions within; do
    recipe=$VFM_ROOT/examples/recipes/$name.yaml
    vfm-train cost "$recipe" --device cpu -q model.in_channels=16 model.text_embed_dim=1024 >cost.json </dev/null
    vfm-train recipe "$recipe" </dev/null | sed 's/ *#.*//' >config.yaml
    echo "$name: $(jq .parameters cost.json)"
    jq -e --argjson b "$billions" --argjson within "$within" \
      '(.parameters / 1e9 / $b - 1) * 1000 | fabs <= $within' cost.json
    grep -q "^  type: $type$" config.yaml
    heads=$(sed -n 's/^  num_attention_heads: //p' config.yaml)
    [ "$heads" -eq $((width / 128)) ]
    grep -q '^  attention_head_dim: 128$' config.yaml
    grep -q "^  num_layers: $layers$" config.yaml
    grep -q "^  tokens: $tokens$" config.yaml
    # It says what it is of, and what is not published is marked.
    head -1 "$recipe" | grep -q '^# '
    case $name in stdit-* | nemo-28b) sed '/^model:/,$d' "$recipe" | grep -q 'Derived: ' ;; esac
  done < <(sizes)
}

@test "every recipe of billions of parameters is in the table of published sizes" {
  for recipe in "$VFM_ROOT"/examples/recipes/*[0-9]b*.yaml; do
    name=$(basename "$recipe" .yaml)
    case $name in lora-* | ar-*) continue ;; esac
    sizes | grep -q "^$name " || { echo "$name is not"; return 1; }
  done
}
