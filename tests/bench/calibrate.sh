#!/usr/bin/env bash
# Predictions checked against measured steps: this machine is calibrated (vfm-train calibrate) with two threads,
# with one, and with two ranks of one thread; then steps of networks that were not calibrated with are measured and
# predicted (vfm-train cost --gpu). Printed as Markdown: the error of each, the median and the worst, how much measured
# steps differ when they are measured again, and of how many pairs that differ by more the order was predicted.
# usage: tests/bench/calibrate.sh FOLDER [BUILD]      (default: build)
# What is done stays in FOLDER, and the same command goes on. Environment: LIMIT (seconds; then it ends with status 3,
# to be called again), ROUNDS (2: measurements of each case, of which the shortest counts), CASES (a regular expression
# of names), CALIBRATE_TIME (60s).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
folder=$(realpath -m "${1:?usage: calibrate.sh FOLDER [BUILD]}")
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${2:-$root/build}")
cd "$root"
rounds=${ROUNDS:-2} limit=${LIMIT:-100000} cases=${CASES:-.}
unset OPENBLAS_CORETYPE
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive
mkdir -p "$folder"
touch "$folder/measured.jsonl"
cat >"$folder/recipe.yaml" <<'YAML'
model: {in_channels: 16, text_embed_dim: 64, adaln_lora_dim: 64, max_size: [16, 64, 64]}
data: {micro_packs: 1}
validation: {every: 0}
train: {checkpoint_every: 100000, log_every: 1}
ema: {mode: "off"}
YAML

# enough: ends when the time is over.
enough() { if ((SECONDS > limit)); then exit 3; fi; }

# launch TABLE ARGUMENTS...: vfm-train as the table is of.
launch() {
  local table=$1
  shift
  case $table in
    threads2) "$build/tools/vfm-train" "$@" -j2 ;;
    threads1) "$build/tools/vfm-train" "$@" -j1 ;;
    ranks2) mpirun -np 2 --bind-to none "$build/tools/vfm-train" "$@" -j1 ;;
  esac
}

for table in threads2 threads1 ranks2; do
  [ -e "$folder/$table.json" ] && continue
  launch $table calibrate "$folder/$table.json" --time "${CALIBRATE_TIME:-60s}" >&2
  enough
done

# NAME TABLE SIZES SETTINGS: widths, lengths and numbers of blocks lie between and beside those of the calibration.
list() {
  local small="model.num_attention_heads=3 model.attention_head_dim=64 model.num_layers=4"
  local middle="model.num_attention_heads=6 model.attention_head_dim=64 model.num_layers=6"
  local wide="model.num_attention_heads=5 model.attention_head_dim=128 model.num_layers=4"
  local long="data.tokens=2048 data.packs=1" short="data.tokens=512 data.packs=8" usual="data.tokens=1024 data.packs=4"
  local bf16="model.compute=bf16" even="model.num_attention_heads=6 model.attention_head_dim=64 model.num_layers=6"
  cat <<LIST
small-short threads2 4x16x16 $small $short
small-short-bf16 threads2 4x16x16 $small $short $bf16
middle threads2 4x32x32 $middle $usual
middle-bf16 threads2 4x32x32 $middle $usual $bf16
middle-together threads2 4x16x16,1x32x32 $middle $short data.micro_packs=4
middle-long threads2 8x32x32 $middle $long
middle-long-bf16 threads2 8x32x32 $middle $long $bf16
middle-elementwise threads2 4x32x32 $middle $usual model.recompute=elementwise
middle-block-bf16 threads2 4x32x32 $middle $usual $bf16 model.recompute=block
wide threads2 4x32x32 $wide data.tokens=1024 data.packs=2
wide-bf16 threads2 4x32x32 $wide $usual $bf16
wide-long-block-bf16 threads2 8x32x32 $wide $long $bf16 model.recompute=block
stdit-bf16 threads2 4x32x32 $middle $usual $bf16 model.type=stdit
small-short-1 threads1 4x16x16 $small $short
middle-1 threads1 4x32x32 $middle data.tokens=1024 data.packs=2
middle-long-bf16-1 threads1 8x32x32 $middle $long $bf16
middle-elementwise-bf16-1 threads1 4x32x32 $middle $usual $bf16 model.recompute=elementwise
wide-bf16-1 threads1 4x32x32 $wide $usual $bf16
dp ranks2 4x32x32 $even $usual
dp-short ranks2 4x16x16 $even $short
dp-bf16 ranks2 4x32x32 $even $usual $bf16
tp ranks2 4x32x32 $even $usual parallel.tp=2
tp-bf16 ranks2 8x32x32 $even data.tokens=2048 data.packs=2 $bf16 parallel.tp=2
cp-gather ranks2 4x32x32 $even $usual parallel.cp=2 parallel.cp_kind=gather
cp-all_to_all-bf16 ranks2 8x32x32 $even data.tokens=2048 data.packs=2 $bf16 parallel.cp=2 parallel.cp_kind=all_to_all
cp-ring ranks2 8x32x32 $even $long parallel.cp=2 parallel.cp_kind=ring
pp ranks2 4x32x32 $even $usual parallel.pp=2
pp-bf16 ranks2 4x32x32 $even $short data.tokens=1024 $bf16 parallel.pp=2
optimizer-bf16 ranks2 4x32x32 $even $usual $bf16 parallel.shard=optimizer
full ranks2 4x32x32 $even $usual parallel.shard=full
LIST
}

# measure NAME TABLE SIZES SETTINGS...: the fastest step after the first.
measure() {
  local name=$1 table=$2 sizes=$3
  shift 3
  launch "$table" "$folder/recipe.yaml" --synthetic "$sizes" -o "$folder/run" --force -q --device cpu \
    train.steps=4 "$@" >/dev/null
  tail -n +2 "$folder/run/timing.jsonl" | jq -s -c --arg name "$name" \
    '{name: $name, seconds: (map(.seconds_per_step) | min)}' >>"$folder/measured.jsonl"
}

for ((round = 1; round <= rounds; ++round)); do
  while read -r name rest; do
    [[ $name =~ $cases ]] || continue
    (($(jq -s --arg name "$name" 'map(select(.name == $name)) | length' "$folder/measured.jsonl") >= round)) && continue
    # shellcheck disable=SC2086
    measure "$name" $rest </dev/null
    enough
  done < <(list)
done

: >"$folder/predicted.jsonl"
while read -r name table sizes settings; do
  [[ $name =~ $cases ]] || continue
  ranks=1
  [ "$table" = ranks2 ] && ranks=2
  # shellcheck disable=SC2086
  "$build/tools/vfm-train" cost "$folder/recipe.yaml" --synthetic "$sizes" --ranks $ranks \
    --gpu "$folder/$table.json" $settings 2>/dev/null |
    jq -c --arg name "$name" --arg table "$table" '{name: $name, table: $table, seconds: .predicted.seconds,
      lines: (.predicted.lines | map({(.name): .seconds}) | add)}' >>"$folder/predicted.jsonl"
done < <(list)

jq -r -n --slurpfile measured "$folder/measured.jsonl" --slurpfile predicted "$folder/predicted.jsonl" '
  def median: sort | .[length / 2 | floor];
  def percent: . * 1000 | round / 10;
  def milliseconds: . * 1000 | round;
  ($measured | group_by(.name) | map({key: .[0].name,
     value: {least: (map(.seconds) | min), spread: ((map(.seconds) | max) / (map(.seconds) | min) - 1)}}) | from_entries) as $m |
  [$predicted[] | select($m[.name]) | . + {measured: $m[.name].least, spread: $m[.name].spread} |
     . + {error: (.seconds / .measured - 1)}] as $all |
  ($all | map(.spread) | median) as $spread |
  [range($all | length) as $i | range($i) as $j | {a: $all[$i], b: $all[$j]} |
     select(([.a.measured, .b.measured] | max / min) > 1 + $spread)] as $pairs |
  ($all | map(.error | fabs)) as $errors |
  "| case | of | measured, ms | predicted, ms | error, % | measured again, % |", "|---|---|---|---|---|---|",
  ($all[] | "| \(.name) | \(.table) | \(.measured | milliseconds) | \(.seconds | milliseconds) | \(.error | percent) | \(.spread | percent) |"),
  "",
  "Of \($all | length) cases the median error is \($errors | median | percent) %, the worst \($errors | max | percent) %; " +
  "measured again they differ by \($spread | percent) % in the middle, \($all | map(.spread) | max | percent) % at most; of \($pairs | length) pairs " +
  "that differ by more than the middle, \([$pairs[] | select((.a.measured < .b.measured) == (.a.seconds < .b.seconds))] | length / ($pairs | length) | percent) % are in the right order."'
