#!/usr/bin/env bash
# What quickstart's model learns with other settings: each one trained with several seeds, 64 clips of each
# model judged by scripts/check-generation. Prints a table of the means over the seeds.
# Usage: tests/bench/quickstart_settings.sh DATASET OUT [SEEDS [THREADS]] <SETTINGS
#   DATASET   what scripts/quickstart left in quickstart/dataset
#   OUT       a folder for runs; what is finished there is kept, so the script may be stopped and run again
#   SEEDS     how many (default: 3)
#   THREADS   of a run (default: all processors)
#   SETTINGS  a line each: TIME_FACTOR CHANNELS KEY=VALUE..., on top of examples/recipes/quickstart.yaml
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export PATH="${VFM_BIN:-$root/build/tools}:$PATH"
[[ $# -ge 2 ]] || { sed -n '2,/^# SPDX/p' "$0" | sed '$d; s/^# //' >&2; exit 2; }
dataset=$1 out=$2 seeds=${3:-3} threads=${4:-$(nproc)}
mkdir -p "$out"

# run_one FOLDER LATENTS SEED KEY=VALUE...: trains, generates, judges; a line of figures in FOLDER/figures.
run_one() {
  local folder=$1 latents=$2 seed=$3
  shift 3
  mkdir -p "$folder"
  local begin=$SECONDS
  vfm-train "$root/examples/recipes/quickstart.yaml" "$@" train.seed="$seed" -j "$threads" --data "$latents" \
    -o "$folder/run" >/dev/null
  local seconds=$((SECONDS - begin))
  "$root/scripts/check-generation" "$folder" --generate-option=-j"$threads" >"$folder/table" || true
  # "all  64  64/64  64/64  32/64  0.867"
  awk -v seconds="$seconds" '$1 == "all" { split($3, c, "/"); split($4, d, "/"); split($5, s, "/")
    print c[1], d[1], s[1], $6, seconds }
    $1 == "square" { split($5, q, "/"); print q[1] }' "$folder/table" | paste -sd' ' >"$folder/figures.part"
  mv "$folder/figures.part" "$folder/figures"
}

printf '| setting | seeds | colour | direction | shape | squares | IoU | seconds |\n|---|---:|---:|---:|---:|---:|---:|---:|\n'
while read -r factor channels settings; do
  [[ -n $factor ]] || continue
  latents=$out/latents-$factor-$channels
  find "$dataset" -name '*.tar' | LC_ALL=C sort |
    vfm-pack --size 64 --frames 17 --windows middle --time-factor "$factor" --channels "$channels" -o "$latents" >/dev/null
  read -ra keys <<<"$settings"
  all=()
  for ((seed = 1; seed <= seeds; ++seed)); do
    folder=$out/$(echo "$factor $channels $settings $seed" | tr ' /' '_-')
    [[ -s $folder/figures ]] || run_one "$folder" "$latents" "$seed" "${keys[@]}" </dev/null
    all+=("$folder/figures")
  done
  cat "${all[@]}" | awk -v name="time factor $factor, $channels channels, $settings" '
    { for (i = 1; i <= NF; ++i) sum[i] += $i }
    END { printf "| %s | %d | %.1f | %.1f | %.1f | %.1f | %.3f | %.0f |\n", name, NR, sum[1] / NR, sum[2] / NR,
                 sum[3] / NR, sum[6] / NR, sum[4] / NR, sum[5] / NR }'
done
