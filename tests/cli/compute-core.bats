#!/usr/bin/env bats
# The compute core alone, as a GPU machine without our libraries builds it.
# SPDX-License-Identifier: Apache-2.0

# bats file_tags=night

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
  ninja -C core lib/models/libvfm_dit.a tests/bench/train_step >build.log ||
    { tail -n 40 build.log; false; }
  # No header of a library, whatever is installed here.
  [ "$(ninja -C core -t deps | grep -c 'lib/base/format_plain.h')" -gt 5 ]
  run grep -nE '/(fmt|nlohmann|CLI|yaml-cpp|oneapi|catch2)/|xxhash|dnnl' <(ninja -C core -t deps)
  echo "$output"
  [ "$status" -eq 1 ]
  run core/tests/bench/train_step none
  [ "$status" -eq 2 ]
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

@test "a toolkit that is a Python package has its libraries in lib" {
  PATH=$PATH:/usr/local/cuda/bin
  nvcc=$(command -v nvcc) || skip "there is no nvcc"
  toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  mkdir -p cu13/bin
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$nvcc" >cu13/bin/nvcc
  chmod +x cu13/bin/nvcc
  ln -s "$toolkit/include" cu13/include
  ln -s "$toolkit/lib64" cu13/lib
  PATH=$PWD/cu13/bin:$PATH configure -Dcuda=enabled -Dgpu_codes=sm_90a
  grep -qF "VFM_CUDA_LIBRARIES=\\\"$PWD/cu13/lib\\\"" core/compile_commands.json
  grep -qF "$PWD/cu13/lib/libcudart_static.a" core/build.ninja
}

@test "what belongs to the programs cannot be asked for without them" {
  run meson setup core "${VFM_ROOT:?}" -Dtools=disabled -Dmedia=enabled
  echo "$output"
  [ "$status" -ne 0 ]
  [[ $output == *"it needs the programs"* ]]
}
