#!/bin/bash
# Eight GPUs that the programs of a pipe share. First in virtual time, by the rule alone, beside every static split of
# the GPUs (tests/bench/shared_gpus.cc). Then real processes with made GPUs, which sleep (tests/bench/made_stage.cc):
# three programs with one slot of the processor together, each of whose models has a GPU to itself and takes 2 s to
# load; records are of 1 KiB, as those of clips are, so a pipe has 64 of them. Few results wait (--few), or as many as there
# are; the bottleneck moves in the middle. A line each of the records a second:
# as many as the best static split has, what came before the move (from 20 s on), in the 7 s after it (5 s, and a load)
# and then, as shares of that split; the share of the time in which the GPUs of the bottleneck had an item, before and
# from 7 s after; loads; and the seconds of the whole, of those that all eight GPUs would need without a pause.
# Usage: tests/bench/shared_gpus.sh [BUILD_DIR]      SIMULATE=no, or RUN=no: not the one, or the other
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}")
ninja -C "$build" tests/bench/shared_gpus tests/bench/made_stage >/dev/null
[ "${SIMULATE:-yes}" = no ] || "$build/tests/bench/shared_gpus"
[ "${RUN:-yes}" != no ] || exit 0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export VFM_BUILD=$build VFM_SLOTS=1
# shellcheck source=/dev/null
. "$root/tests/cli/made_pipe.bash"
cd "$scratch"
GPUS=g0:10,g1:10,g2:10,g3:10,g4:10,g5:10,g6:10,g7:10

# With as many results as --few lets wait, or as there are, by `few`.
stage() {
  VFM_SHARE=share "$MADE" "${@:2}" -j1 ${few:+"$few"} --gpus $GPUS --stage "$1" --model 10 --load 2 --gpu-log "log.$1"
}

# best SECONDS...: records a second of the best way to give each of the eight GPUs to one of three stages.
best() {
  awk -v a="$1" -v b="$2" -v c="$3" 'BEGIN {
    for (i = 1; i < 7; ++i) for (j = 1; i + j < 8; ++j) {
      rate = i / a; if (j / b < rate) rate = j / b; if ((8 - i - j) / c < rate) rate = (8 - i - j) / c
      if (rate > most) most = rate
    }
    print most }'
}

# busy FROM STAGE LOG...: the share of the time of the stage's GPUs in which they had an item.
busy() { "$root/tests/cli/gpu-log" $GPUS --from "$1" --stage "$2" "${@:3}" | jq .busy; }

# padded: records of 1 KiB.
padded() { sed "s/^{/{\"pad\":\"$(printf '%0950d' 0)\",/"; }

# run NAME COUNT BEFORE AFTER BOTTLENECK NEXT: the first and the next bottleneck.
run() {
  local best_before best_after start moved
  # shellcheck disable=SC2086
  best_before=$(best $3) best_after=$(best $4)
  # shellcheck disable=SC2086
  { made_items "$2" $3; made_items "$2" $4 | sed 's/"item":/"item":1000/'; } | padded >items.jsonl
  rm -f log.* before.* share*
  stage one items.jsonl | stage two | stage three --stamp >out.jsonl
  start=$(sort -g log.* | awk 'NR == 1 { print $1 }')
  jq -r 'select(.kind == "made") | "\(.at - '"$start"') \(.item)"' out.jsonl >stamps
  moved=$(awk '$2 >= 10000 { print $1; exit }' stamps)
  awk -v name="$1" -v moved="$moved" -v before="$best_before" -v after="$best_after" '
    { if ($1 >= 20 && $1 < moved) ++old
      if ($1 >= moved && $1 < moved + 7) ++between
      if ($1 >= moved + 7) { ++new; last = $1 } }
    END { printf "| %s | %.1f, %.1f | %.2f | %.2f | %.2f |", name, before, after, old / (moved - 20) / before,
          between / 7 / after, new / (last - moved - 7) / after }' stamps
  for log in log.*; do awk -v start="$start" -v moved="$moved" '$1 < start + moved' "$log" >"before.$log"; done
  printf ' %.2f | %.2f | %d | %.0f, %.0f |\n' "$(busy 20 "$5" before.*)" \
    "$(busy "$(awk -v moved="$moved" 'BEGIN { print moved + 7 }')" "$6" log.*)" \
    "$("$root/tests/cli/gpu-log" $GPUS log.* | jq '[.loads[]] | add')" "$(tail -1 stamps | cut -d ' ' -f 1)" \
    "$(awk -v count="$2" -v all="$3 $4" 'BEGIN { n = split(all, each, " "); for (i in each) sum += each[i]; print count * sum / 8 }')"
}

for few in --few ''; do
  echo "| real processes, ${few:-results pile up} | best split | before | 7 s after the move | then | busy before | busy then | loads | seconds |"
  echo '|---|--:|--:|--:|--:|--:|--:|--:|--:|'
  run 'last to first' 900 '0.02 0.02 0.2' '0.2 0.02 0.02' three one
  run 'first to second' 900 '0.2 0.02 0.02' '0.02 0.2 0.02' one two
  run 'third to second' 1500 '0.02 0.02 0.06' '0.02 0.06 0.02' three two
done
