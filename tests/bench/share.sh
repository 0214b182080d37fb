#!/bin/bash
# Where VFM_SHARE pays and where it costs: three programs of a pipe on made processors (tests/bench/made_cores.h), each of
# whose first items becomes four. The ways take turns:
#   own     no VFM_SHARE: each program has as many slots as there are processors, and the system shares these out
#   third   no VFM_SHARE: each program has a third of the slots
#   shared  VFM_SHARE, as many slots as processors
# Prints a row for each load: seconds of "own" (median), and the times of the others as shares of it, median and lowest to
# highest; the most items at once of own and shared; and shared's time with two and three slots for each processor.
# Usage: tests/bench/share.sh [BUILD_DIR]
# Environment: PROCESSORS ("4 16"), ROUNDS (3), SECONDS_EACH (4: of the pipe's work on all processors), LOADS
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}")
rounds=${ROUNDS:-3} each=${SECONDS_EACH:-4}
ninja -C "$build" tests/bench/made_stage >/dev/null
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export VFM_BUILD=$build
unset MAKEFLAGS VFM_SHARE VFM_SLOTS
# shellcheck source=/dev/null
. "$root/tests/cli/made_pipe.bash"
cd "$scratch"

# NAME: threads of other programs, for each processor; which stage only waits ("-": none), and how; options of all; seconds.
declare -A loads=(
  [even]='0 - - - 0.32 0.08 0.08'
  [first]='0 - - - 0.8 0.02 0.02'
  [last]='0 - - - 0.08 0.02 0.2'
  [moves]='0 - - - 0.64 0.02 0.02'
  [unlike]='0 - - --unlike 0.32 0.08 0.08'
  [few]='0 - - --few 0.32 0.08 0.08'
  [short]='0 - - - 0.02 0.005 0.005'
  [busy]='1 - - - 0.32 0.08 0.08'
  [waits]='0 2 - - 0.32 0.32 0.08'
  [away]='0 2 --away - 0.32 0.32 0.08'
)
names=${LOADS:-even first last moves unlike few short busy waits away}

# stage NUMBER PROCESSORS OPTION...: a program of the load that is set.
stage() {
  local options=("${@:3}")
  if [ "$waiting" != "$1" ]; then
    options+=(--cores "cores:$2:$((others * $2))")
  elif [ "$how" != - ]; then
    options+=("$how")
  fi
  [ "$common" = - ] || options+=("$common")
  "$MADE" "-j${jobs[$1]}" --log "log.$1" "${options[@]}"
}

# pipe PROCESSORS: one run; its seconds and the most items at once, in seconds and most.
pipe() {
  rm -f log.* cores slots
  stage 1 "$1" --fan-out 4 items.jsonl | stage 2 "$1" | stage 3 "$1" >out
  seconds=$(awk '!first || $1 < first { first = $1 } $1 > last { last = $1 } END { print last - first }' log.*)
  most=$(most_at_once log.*)
}

# way NAME PROCESSORS: one run, into the file NAME; shared2 has two slots for each processor.
way() {
  local slots
  jobs=(0 "$2" "$2" "$2")
  case $1 in
    own) pipe "$2" ;;
    third) jobs=(0 $(($2 / 3)) $(($2 / 3)) $(($2 - 2 * ($2 / 3)))) && pipe "$2" ;;
    shared*)
      slots=$(($2 * ${1#shared}))
      jobs=(0 "$slots" "$slots" "$slots")
      VFM_SHARE=slots VFM_SLOTS=$slots pipe "$2"
      ;;
  esac
  echo "$seconds $most" >>"$1"
}

# ratios WAY: of its seconds to own's in the same round.
ratios() {
  paste "$1" own | awk '{ print $1 / $3 }' | sort -g | awk '
    { v[NR] = $1 } END { printf "%.2f (%.2f to %.2f)", v[int((NR + 1) / 2)], v[1], v[NR] }'
}
most_of() { awk '$2 > most { most = $2 } END { print most }' "$1"; }

for processors in ${PROCESSORS:-4 16}; do
  echo "| $processors processors: load | own, s | third | shared | most items at once, own, shared | 2 slots a processor | 3 |"
  echo '|---|--:|--:|--:|--:|--:|--:|'
  for name in $names; do
    read -r others waiting how common one two three <<<"${loads[$name]}"
    # As many items as take so many seconds of all processors; what only waits takes none of theirs.
    count=$(awk -v p="$processors" -v s="$each" -v w="$waiting" -v a="$one" -v b="$two" -v c="$three" 'BEGIN {
      print int(p * s / (a + (w == 2 ? 0 : 4 * b) + 4 * c)) + 1 }')
    made_items "$count" "$one" "$two" "$three" >items.jsonl
    [ "$name" != moves ] || made_items "$count" 0.08 0.02 0.16 >>items.jsonl
    rm -f own third shared?
    for ((round = 0; round < rounds; ++round)); do
      for each_way in own third shared1 shared2 shared3; do way $each_way "$processors"; done
    done
    echo "| $name | $(cut -d ' ' -f 1 own | sort -g | sed -n "$(((rounds + 1) / 2))p") | $(ratios third) | $(ratios shared1) |" \
      "$(most_of own), $(most_of shared1) | $(ratios shared2) | $(ratios shared3) |"
  done
done
