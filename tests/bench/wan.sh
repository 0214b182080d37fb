#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Times vfm's Wan against diffusers' modules on the same cores, in turns: a forward pass of some of
# the transformer's layers, and both directions of the video autoencoders, with random weights of
# the published widths. Prints the ratios of speed (of the best times, and of processor seconds) and
# of peak memory.
#   tests/bench/wan.sh [BUILD_DIR]      (default: build)
# Environment: TORCH_PYTHON, a Python with torch and diffusers (default: a venv that this script makes
# in BUILD_DIR); MODELS ("wan-1.3b-slice wan-14b-slice"), VAES ("2.1 2.2"), SIZES of the
# autoencoders' video ("9x128x128 9x256x256"), DTYPES ("f32 bf16"), ROUNDS (2), RUNS that count in a
# round (2), OMP_NUM_THREADS. An empty MODELS or VAES leaves that part out.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build}
runs=${RUNS:-2}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE  # a forced core type would slow PyTorch down

ninja -C "$build" tests/bench/dit_forward tests/bench/wan_vae >&2
python=$("$here/torch-python.sh" "$build" torch==2.15.0 torchvision==0.29.2 diffusers==0.42.1)

# compare PROGRAM NAME ARGUMENT...: tests/bench/PROGRAM and PROGRAM_torch.py in turns.
compare() {
  local program=$1 name=$2 lines round
  shift 2
  lines=$(for ((round = 0; round < ${ROUNDS:-2}; ++round)); do
    "$build/tests/bench/$program" "$@" "$runs"
    "$python" "$here/${program}_torch.py" "$@" "$runs" 2>/dev/null
  done)
  echo "$lines"
  # The least of the rounds.
  echo "$lines" | awk -v name="$name" '
    function least(what, value) { if (!(($1, what) in of) || value < of[$1, what]) of[$1, what] = value }
    function ratio(what, above, below) { return of[above, what] / of[below, what] }
    { time = 0
      for (i = 2; i < NF; ++i) {
        if ($i == "best" || $i == "encode" || $i == "decode") time += $(i + 1)
        if ($i == "cpu" || $i == "peak") least($i, $(i + 1))
      }
      least("time", time) }
    END {
      printf "ratio %s speed vfm/diffusers %.2f, by processor seconds %.2f, memory %.2f\n", name,
             ratio("time", "diffusers", "vfm"), ratio("cpu", "diffusers", "vfm"),
             ratio("peak", "vfm", "diffusers")
    }'
}

for dtype in ${DTYPES-f32 bf16}; do
  for model in ${MODELS-wan-1.3b-slice wan-14b-slice}; do
    compare dit_forward "$model $dtype" "$model" "$dtype"
  done
  for vae in ${VAES-2.1 2.2}; do
    for size in ${SIZES:-9x128x128 9x256x256}; do
      IFS=x read -r frames height width <<<"$size"
      compare wan_vae "vae $vae $size $dtype" "$vae" "$frames" "$height" "$width" "$dtype"
    done
  done
done
