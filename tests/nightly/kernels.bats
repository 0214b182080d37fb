#!/usr/bin/env bats
# All that a GPU runs is compiled, for each architecture; scripts/test compiles the kernels for one, and no programs that
# need a GPU. What comes of it is what tests/kernels/ledger.d keeps.
# SPDX-License-Identifier: Apache-2.0

bats_require_minimum_version 1.5.0

# As scripts/gpu-report builds it, with the files of a layer together.
setup_file() {
  PATH=$PATH:/usr/local/cuda/bin
  nvcc=$(command -v nvcc) || return 0
  export nvcc build=$BATS_FILE_TMPDIR/build
  meson setup "$build" "${VFM_ROOT:?set VFM_ROOT to the repository}" --buildtype=release -Dtools=disabled -Dcuda=enabled \
    --unity=on -Dunity_size=32 >"$BATS_FILE_TMPDIR/setup.log" || { cat "$BATS_FILE_TMPDIR/setup.log"; return 1; }
  ninja -C "$build" gpu >"$BATS_FILE_TMPDIR/build.log" || { tail -n 40 "$BATS_FILE_TMPDIR/build.log"; return 1; }
}
setup() {
  [ -n "${nvcc-}" ] || skip "there is no nvcc"
  cd "$BATS_TEST_TMPDIR" || return 1
}

# need_tools: skips the test where there is no disassembler; its folder is $tools.
need_tools() {
  run "$VFM_ROOT/tests/kernels/ledger" --tools
  [ "$status" -ne 77 ] || skip "${output#ledger: }"
  [ "$status" -eq 0 ]
  tools=$output
}

@test "programs that need a GPU are there, and without one they say so" {
  mapfile -t programs < <(ninja -C "$build" -t query gpu | sed -nE 's#^ +(\| )?(tests/kernels/[^ ]+_test)$#\2#p')
  [ "${#programs[@]}" -gt 30 ]
  for program in "${programs[@]}"; do
    [ -x "$build/$program" ]
    [ -e /dev/nvidia0 ] || run -77 "$build/$program"
  done
}

@test "the kernels' machine code is as the ledger says, for every architecture of it" {
  need_tools
  run "$VFM_ROOT/tests/kernels/ledger" --check "$build"
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output != *"not checked"* ]]
}

@test "a GPU that comes later can run every kernel" {
  need_tools
  cd "$BATS_TEST_TMPDIR"
  for each in "$build"/kernels/libvfm_kernels.a.p/*.cu.o; do
    "$tools/cuobjdump" -xptx all "$each" >/dev/null
    # Of no architecture with a letter: that PTX runs on no other.
    name=$(basename "$each" .o)
    run grep -hE '^\.target' "$name".*.ptx
    echo "$each: $output"
    [[ $output =~ ^\.target\ sm_[0-9]+$ ]]
  done
  # And Blackwell's assembler takes those with instructions of tensor cores, if this nvcc has it.
  "$nvcc" --list-gpu-code | grep -qx sm_100 || skip "this nvcc knows no Blackwell"
  for name in attention_forward attention_backward conv_tensor quantize; do
    run ! grep -q 'trap;' $name.cu.*.ptx
    "${nvcc%/*}/ptxas" -arch=sm_100 $name.cu.*.ptx -o $name.cubin
    "$tools/nvdisasm" -c $name.cubin >$name.sass
  done
  grep -q 'HMMA.16816.F32.BF16' attention_forward.sass
}
