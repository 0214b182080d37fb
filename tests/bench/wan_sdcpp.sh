#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Times a pass of a Wan of 1.3B's shape in vfm and in stable-diffusion.cpp, of the same GGUF file of random weights
# (matrices in Q8_0) and the same input of 1,950 tokens, on the same cores, in turns. Prints how far each output is from
# that of vfm in f32, and how many times as fast vfm is as the faster of theirs, with flash attention and without.
#   tests/bench/wan_sdcpp.sh [BUILD_DIR]      (default: build)
# stable-diffusion.cpp is built once, in BUILD_DIR/sdcpp, from the source of its binding on PyPI, for this machine's
# processor, with OpenMP and llamafile's kernels: many minutes. SDCPP=DIR: a folder with that source instead. What is
# missing for it is said in the last line on standard error; exit status 77 then.
# Environment: ROUNDS (1), RUNS that count in a round (1), OMP_NUM_THREADS, CMAKE_BUILD_PARALLEL_LEVEL; TORCH_PYTHON, a Python with numpy and
# gguf (default: a venv that this script makes in BUILD_DIR).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${1:-$here/../../build}")
threads=${OMP_NUM_THREADS:-$(nproc)} folder=$build/sdcpp
missing() { echo "wan_sdcpp.sh: $1" >&2 && exit 77; }
for tool in cmake g++; do
  command -v $tool >/dev/null || missing "$tool is not there: apt-get install cmake g++"
done
ninja -C "$build" tests/bench/wan_file >&2
python=$("$here/torch-python.sh" "$build" numpy gguf==0.19.0)

if [ ! -x "$folder/wan_file_sdcpp" ]; then
  mkdir -p "$folder"
  source=${SDCPP:-$folder/source/vendor/stable-diffusion.cpp}
  if [ ! -d "$source" ]; then
    "$python" -m pip download --quiet --no-deps --no-binary :all: --dest "$folder" stable-diffusion-cpp-python==0.4.7 >&2 ||
      missing "PyPI does not give the source of stable-diffusion-cpp-python 0.4.7: give SDCPP=DIR"
    mkdir -p "$folder/source"
    tar -xzf "$folder"/stable_diffusion_cpp_python-*.tar.gz --strip-components=1 -C "$folder/source"
  fi
  echo "building stable-diffusion.cpp in $folder" >&2
  cmake -S "$source" -B "$folder/build" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DGGML_OPENMP=ON \
    -DGGML_LLAMAFILE=ON -DSD_BUILD_EXAMPLES=OFF >&2
  nice -n 19 cmake --build "$folder/build" --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" --target ggml zip >&2
  mapfile -t libraries < <(find "$folder/build" -name '*.a' -o -name zip.c.o)
  nice -n 19 g++ -O3 -std=c++17 -fopenmp -w -DGGML_MAX_NAME=128 -I"$source"/{src,include,ggml/include,thirdparty} \
    "$here/wan_file_sdcpp.cc" "$source"/src/{model,name_conversion,util,ggml_graph_cut}.cpp "$source"/src/model_io/*.cpp \
    -Wl,--start-group "${libraries[@]}" -Wl,--end-group -lpthread -ldl -o "$folder/wan_file_sdcpp"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" "$here/wan_gguf.py" "$work/wan.gguf"
export OMP_NUM_THREADS=$threads
lines=$("$build/tests/bench/wan_file" "$work/wan.gguf" f32 0 "$work/f32"
  for ((round = 0; round < ${ROUNDS:-1}; ++round)); do
    "$build/tests/bench/wan_file" "$work/wan.gguf" bf16 "${RUNS:-1}" "$work/bf16"
    for flash in off on; do
      "$folder/wan_file_sdcpp" "$work/wan.gguf" "$flash" "$threads" "${RUNS:-1}" "$work/flash-$flash" 2>/dev/null |
        grep '^sdcpp'
    done
  done)
echo "$lines"
"$python" - "$work" <<'PY'
import pathlib, sys
import numpy as np
read = lambda name: np.fromfile(pathlib.Path(sys.argv[1]) / name, np.float32)
exact = read("f32")
for name in ("bf16", "flash-off", "flash-on"):
    print(f"{name}: {np.linalg.norm(read(name) - exact) / np.linalg.norm(exact):.2e} from f32")
PY
echo "$lines" | awk '$2 != "f32" && (!($1 in best) || $6 < best[$1]) { best[$1] = $6 }
  END { printf "ratio %.2f\n", best["sdcpp"] / best["vfm"] }'
