#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of a Python that has llama.cpp's C interface: LLAMA_PYTHON, or else that of a venv in BUILD_DIR, for
# which llama.cpp is built from the source of its binding on PyPI, for this machine's processor: with OpenMP, without
# BLAS. That takes many minutes, once. CMAKE_BUILD_PARALLEL_LEVEL: compilers at a time (default: one a processor).
#   tests/bench/llama-python.sh BUILD_DIR
set -euo pipefail
venv=$1/llama-venv
python=${LLAMA_PYTHON:-$venv/bin/python}
if ! said=$("$python" -c 'import llama_cpp.mtmd_cpp' 2>&1); then
  if [ -n "${LLAMA_PYTHON:-}" ]; then
    echo "$LLAMA_PYTHON has no llama_cpp with mtmd: ${said##*$'\n'}" >&2
    exit 1
  fi
  echo "building llama.cpp for $venv" >&2
  [ -x "$python" ] || python3 -m venv "$venv"
  CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)} \
    CMAKE_ARGS='-DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DGGML_OPENMP=ON -DGGML_BLAS=OFF -DGGML_CUDA=OFF' \
    nice -n 19 "$venv/bin/pip" install --quiet --no-binary llama-cpp-python llama-cpp-python==0.3.36 >&2
fi
echo "$python"
