#!/bin/bash
# Training-ready batches of latents (read, decoded, scaled, checked, stacked; then with noise too): vfm's data path
# against webdataset's, and Energon's where the Python has it (pip install megatron-energon, which is large), on the
# same tars, one process and one thread each, in turns. Tells the medians of the rounds' ratios.
# Usage: tests/bench/latents_reader.sh [BUILD_DIR]       ROUNDS=9 SECONDS_EACH=2 BATCH=32 SAMPLES=4096 TORCH_PYTHON=
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build}
python=$("$here/torch-python.sh" "$build" numpy webdataset)
ninja -C "$build" tests/bench/latents_reader >/dev/null
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vfm-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
readers=(webdataset)
if "$python" -c 'import megatron.energon' 2>/dev/null; then readers+=(energon); fi
"$python" "$here/latents_reader.py" make "$scratch/latents" "${SAMPLES:-4096}"
call=("$scratch/latents" "${BATCH:-32}" "${SECONDS_EACH:-2}")
for work in clean noise; do
  for _ in $(seq "${ROUNDS:-9}"); do
    ours=$("$build/tests/bench/latents_reader" "${call[@]}" $work 2>/dev/null)
    for reader in "${readers[@]}"; do
      theirs=$("$python" "$here/latents_reader.py" "$reader" "${call[@]}" $work 2>/dev/null | tail -n 1)
      echo "$reader $ours $theirs"
    done
  done >"$scratch/rounds"
  for reader in "${readers[@]}"; do
    awk -v reader="$reader" '$1 == reader { print $2, $3, $2 / $3 }' "$scratch/rounds" | sort -k3,3n |
      awk -v name="$work, against $reader" '{ ours[NR] = $1; theirs[NR] = $2; ratio[NR] = $3 }
        END { m = int((NR + 1) / 2)
          printf "%-28s %6d and %6d samples/s in the median round, ratio %.1f (%.1f to %.1f)\n",
            name ":", ours[m], theirs[m], ratio[m], ratio[1], ratio[NR] }'
  done
done
