#!/usr/bin/env bats
# A verb as the first argument: what is one, what is refused, help, completion.
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is of run --separate-stderr

bats_require_minimum_version 1.5.0

setup() {
  load helpers
  setup_tools
}

@test "help VERB, VERB --help and the verbs of each other's help agree" {
  vfm-embed help search >one
  vfm-embed search --help >two
  cmp one two
  grep -qx 'usage: vfm-embed search \[OPTION...\] QUERY \[SHARD...\]' one
  grep -q '^  vfm-embed index ' one
  vfm-embed --help | grep -q '^  vfm-embed search '
  grep -qF 'man vfm-embed-search' one
  vfm-embed help >one
  vfm-embed --help >two
  cmp one two
  refused 'help takes one verb: search, index' vfm-embed help nonsense
  refused 'help takes one verb' vfm-embed help search index
  touch help
  refused "'./help' is the file" vfm-embed help
}

@test "an option that a verb does not have is unknown there" {
  refused '--top' vfm-embed --top 3 a.tar
  refused "--crop: it takes no value, and 'no' is given" vfm-clip --crop=no -o out a.mp4
  refused '--video' vfm-embed search x --video none a.tar
  refused "Try 'vfm-embed index --help'" vfm-embed index i --hwaccel none a.tar
}

@test "a verb goes first, and a file of its name is named with its folder" {
  refused 'the verb '"'search'"' goes first: vfm-embed search' vfm-embed --text none search x
  touch search
  refused "'./search' is the file" vfm-embed search x
  refused "'./search' is the file" vfm-embed --text none search
  # Behind -- and with a folder it is a file; this one is no shard.
  run --separate-stderr vfm-embed --text none -- search
  [ "$status" -eq 1 ]
  [[ "$output" = *'"path":"search"'* ]]
  run --separate-stderr vfm-embed ./search
  [ "$status" -eq 1 ]
}

@test "where arguments are prompts, a verb behind -- or on standard input is a prompt, and its file does not matter" {
  touch decode cost
  refused 'the verb '"'decode'"' goes first: vfm-generate decode ...; behind -- it is text' vfm-generate -m none -o out decode
  refused "no such model folder: 'none'" vfm-generate -m none -o out -- decode
  run --separate-stderr vfm-generate -m none -o out <<<cost
  [[ "$stderr" = *"no such model folder: 'none'"* ]]
  refused "no such model folder: 'none'" vfm-generate cost -m none
  refused '--model is required' vfm-generate cost
  refused '--steps' vfm-generate decode -o out --steps 3
}

@test "--help is of everyday options, on two screens, and --help-all of all" {
  local program command count=0
  for program in clip caption embed shard pack train generate; do
    # Each program names its verbs.
    mapfile -t commands < <(echo "vfm-$program"; "vfm-$program" --help | grep -oE "^  vfm-$program [a-z]+  " | sed 's/^ *//; s/ *$//')
    for command in "${commands[@]}"; do two_screens "$command"; done
    count=$((count + ${#commands[@]}))
  done
  [ "$count" -eq 32 ]
}

# two_screens COMMAND: whether its help has everyday options on two screens, and --help-all all of them.
two_screens() {
  local command=$1
  echo "$command"
  $command --help >help
  $command --help-all >all
  [ "$(wc -l <help)" -le 50 ]
  [ "$(awk 'length > 80' help | grep -cvE '^  (vfm-|find |ls )')" -eq 0 ]
  [ "$(grep -cE '^  -' help)" -le 25 ]
  [ "$(grep -cE '^  -' all)" -le 45 ]
  # All that --help lists is in --help-all.
  [ "$(grep -E '^  -' help | grep -cvxFf all)" -eq 0 ]
}

@test "completion offers verbs first, and then the options of the verb" {
  vfm-embed --generate-completion bash >completion
  run bash -c '. ./completion
    complete_words() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _vfm_embed; echo "${COMPREPLY[*]}"; }
    complete_words vfm-embed sea
    complete_words vfm-embed search --to
    complete_words vfm-embed --to
    complete_words vfm-embed index x --vec'
  [ "$output" = "search
--top

--vectors" ]
}
