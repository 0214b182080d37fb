#!/usr/bin/env bats
# The compute core alone, as a GPU machine without our libraries builds it, and scripts/gpu-report.
# SPDX-License-Identifier: Apache-2.0

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  # Nothing is found by pkg-config; what is found otherwise shows in Meson's log.
  export PKG_CONFIG_LIBDIR=$PWD/missing
}

# Not optimized, and files of a layer together: this is about what is needed, not about speed.
configure() {
  meson setup core "${VFM_ROOT:?}" -Dtools=disabled --buildtype=plain -Doptimization=0 \
    --unity=on -Dunity_size=16 "$@" >setup.log
}

@test "with -Dtools=disabled a C++ compiler is enough" {
  configure -Dcuda=disabled
  found=$(sed -nE 's/.*([Dd]ependency|Library) ([^ ]+) found: YES.*/\L\2/p' core/meson-logs/meson-log.txt | sort -u)
  echo "found: $found"
  [ "$found" = $'openmp\nthreads' ]
  ninja -C core lib/models/libvfm_dit.a tests/bench/train_step tests/kernels/emulation/rmsnorm_emulated_test >build.log ||
    { tail -n 40 build.log; false; }
  # No header of a library, whatever is installed here.
  [ "$(ninja -C core -t deps | grep -c 'lib/base/format_plain.h')" -gt 5 ]
  run grep -nE '/(fmt|nlohmann|CLI|yaml-cpp|oneapi|catch2)/|xxhash|dnnl' <(ninja -C core -t deps)
  echo "$output"
  [ "$status" -eq 1 ]
  run core/tests/kernels/emulation/rmsnorm_emulated_test
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *" checks, 0 failed" ]]
  run core/tests/bench/train_step none
  [ "$status" -eq 1 ]
  [[ $output == *"there is no model 'none'; there are quick"* ]]
}

# All but the kernels, which nvcc compiles for long and in every build, and links.
@test "with CUDA, as gpu-report configures it, the host's code compiles without libraries" {
  PATH=$PATH:/usr/local/cuda/bin
  command -v nvcc >/dev/null || skip "there is no nvcc"
  configure -Dcuda=enabled -Dgpu_codes=sm_90a
  mapfile -t objects < <(ninja -C core -t targets all | sed -nE '/emulation/d
    s/^(lib\/(tensor|ops)\/libvfm_[^:]*cu(da|dnn)[^:]*\.o|tests\/(bench\/[^:]*|kernels\/(model|step|video|decoder)_test)[^:]*\.o): cpp_COMPILER$/\1/p')
  [ "${#objects[@]}" -gt 15 ]
  ninja -C core "${objects[@]}" >build.log || { tail -n 40 build.log; false; }
  run grep -nE '/(fmt|nlohmann|CLI|yaml-cpp|oneapi|catch2)/|xxhash|dnnl' <(ninja -C core -t deps)
  echo "$output"
  [ "$status" -eq 1 ]
}

@test "what belongs to the programs cannot be asked for without them" {
  run meson setup core "${VFM_ROOT:?}" -Dtools=disabled -Dmedia=enabled
  echo "$output"
  [ "$status" -ne 0 ]
  [[ $output == *"it needs the programs"* ]]
}

@test "gpu-report says when there is no GPU, and refuses unknown options" {
  if [ -e /dev/nvidia0 ]; then skip "there is a GPU"; fi
  run "${VFM_ROOT:?}/scripts/gpu-report" --build "$PWD/report"
  [ "$status" -eq 77 ]
  [[ $output == *"no NVIDIA GPU"* ]]
  [ ! -e report ]
  run "${VFM_ROOT:?}/scripts/gpu-report" --fast
  [ "$status" -eq 2 ]
  [[ $output == *"unknown option '--fast'"* ]]
}

@test "gpu-report names the header that is missing" {
  if [ -e /dev/nvidia0 ]; then skip "there is a GPU"; fi
  mkdir -p toolkit/bin
  printf '#!/bin/sh\necho "GPU 0: one that is not there"\n' >toolkit/bin/nvidia-smi
  for tool in nvcc meson ninja; do printf '#!/bin/sh\nexit 1\n' >toolkit/bin/$tool; done
  chmod +x toolkit/bin/*
  # No header is found but those of the toolkit, which has none.
  printf '#!/bin/sh\nexec /usr/bin/c++ -nostdinc "$@"\n' >cxx
  chmod +x cxx
  CXX=$PWD/cxx TORCH_PYTHON=$PWD/missing PATH=$PWD/toolkit/bin:$PATH \
    run "${VFM_ROOT:?}/scripts/gpu-report" --build "$PWD/report"
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"the header cublasLt.h is neither in '$PWD/toolkit/include' nor in PyTorch's packages"* ]]
  [ ! -e report ]
}

@test "the report's table has every target, measured or not" {
  cat >records.jsonl <<'JSON'
{"bench": "memory", "case": "copy", "impl": "vfm", "value": 4000, "unit": "GB/s"}
{"bench": "memory", "case": "gelu forward", "impl": "vfm", "value": 3600, "unit": "GB/s"}
{"bench": "memory", "case": "gelu backward", "impl": "vfm", "value": 2000, "unit": "GB/s"}
{"bench": "memory", "case": "gelu forward", "impl": "torch", "value": 3000, "unit": "GB/s"}
{"bench": "attention", "case": "forward 8192", "impl": "own", "value": 341.5, "unit": "TFLOP/s", "ms": 3.2}
{"bench": "attention", "case": "forward 8192", "impl": "cudnn", "error": "this build has none"}
{"bench": "gemm", "case": "average", "impl": "vfm", "value": 701, "unit": "TFLOP/s"}
{"bench": "train", "case": "7b none", "impl": "vfm", "error": "no memory"}
{"bench": "train", "case": "7b elementwise", "impl": "vfm", "value": 12000, "unit": "tokens/s", "ms": 683, "mfu": 0.62, "peak_tflops": 989.5, "memory_gib": 121}
{"bench": "train", "case": "7b elementwise graph", "impl": "vfm", "value": 12500, "unit": "tokens/s", "ms": 655, "mfu": 0.645, "peak_tflops": 989.5, "memory_gib": 122}
{"bench": "train", "case": "7b elementwise graph", "impl": "vfm", "error": "no memory for a second time"}
{"bench": "memory", "case": "copy beside kernels", "impl": "vfm", "value": 93.5, "unit": "%"}
{"bench": "train", "case": "7b", "impl": "torch", "value": 10000, "unit": "tokens/s", "ms": 820, "memory_gib": 110}
{"bench": "run", "case": "gpu_gemm x", "impl": "vfm", "error": "not finished in its time"}
JSON
  awk -v quick= -f "${VFM_ROOT:?}/tests/bench/gpu_table.awk" records.jsonl >table
  cat table
  grep -qF '| gelu forward | 90.0 | 75.0 | % of copy | 85 | yes | 3600 GB/s |' table
  grep -qF '| gelu backward | 50.0 | - | % of copy | 85 | **no** | 2000 GB/s |' table
  grep -qF '| attention forward, own kernel, 8192 | 342 | - | TFLOP/s | 330 | yes |  |' table
  grep -qF '| attention forward, cuDNN, 8192 | - | - | TFLOP/s | 650 | **no figure** | this build has none |' table
  grep -qF '| all twelve products | 701 | - | TFLOP/s | 680 | yes |  |' table
  grep -qF '| training step, 7B, 8,192 tokens, nothing recomputed | - | 10000 | tokens/s | - | - | no memory |' table
  grep -qF '| the same as a CUDA graph | 12500 | - | tokens/s | - | - | 64.5 % MFU, 122.0 GiB |' table
  grep -qF '| the best of these | 12500 | 10000 | tokens/s | 11500 | yes | 64.5 % MFU, 122.0 GiB |' table
  grep -qF '| of it hidden beside kernels | 93.5 | - | % | - | - |  |' table
  grep -qF '| the best of these over PyTorch | 1.25 | 1.00 | ratio | 1.15 | yes | PyTorch: 110.0 GiB |' table
  grep -qF '| MFU at 73,728 tokens | - | - | % | 45 | **no figure** | not measured |' table
  grep -qF 'Not whole: gpu_gemm x: not finished in its time' table
  [ "$(grep -c '^|' table)" -eq 57 ]
}
