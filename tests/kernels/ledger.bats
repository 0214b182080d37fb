#!/usr/bin/env bats
# What the kernels' machine code says is what tests/kernels/ledger.d keeps, and the ledger notices what gets worse.
# SPDX-License-Identifier: Apache-2.0

setup() {
  cd "${VFM_ROOT:?set VFM_ROOT to the repository}" || return 1
  bats_require_minimum_version 1.5.0
  ledger=tests/kernels/ledger
  kept=$BATS_TEST_TMPDIR/kept page=$BATS_TEST_TMPDIR/KERNELS.md
  object=$VFM_BUILD/kernels/libvfm_kernels.a.p/rows.cu.o
}

# need_disassembler: skips the test where there is none; its folder is $tools.
need_disassembler() {
  [ -e "$object" ] || skip "the build has no CUDA kernels"
  run "$ledger" --tools
  [ "$status" -ne 77 ] || skip "${output#ledger: }"
  [ "$status" -eq 0 ]
  tools=$output
}

# keep LINES: as the only ledger, of release 1.0, with its page.
keep() {
  rm -rf "$kept"
  "$ledger" --write --lines "$1" --release 1.0 --kept "$kept" --page "$page"
}

# check LINES [RELEASE]: against the kept ledger.
check() {
  run "$ledger" --check --lines "$1" --release "${2:-1.0}" --kept "$kept" --page "$page" "$BATS_TEST_TMPDIR/build"
  echo "$output"
}

@test "the build's kernels are as the ledger says" {
  [ -e "$object" ] || skip "the build has no CUDA kernels"
  run "$ledger" --check "$VFM_BUILD"
  echo "$output"
  [ "$status" -ne 77 ] || skip "${output#ledger: }"
  [ "$status" -eq 0 ]
}

@test "a spill, a generic or narrower access and lost occupancy are found in the machine code, and named" {
  need_disassembler
  "$ledger" --print "$object" >"$BATS_TEST_TMPDIR/true"
  keep "$BATS_TEST_TMPDIR/true"
  check "$BATS_TEST_TMPDIR/true"
  [ "$status" -eq 0 ]
  # A disassembler that changes what the real one says of gather_kernel<uint4>.
  mkdir "$BATS_TEST_TMPDIR/tools"
  ln -s "$tools/cuobjdump" "$BATS_TEST_TMPDIR/tools/"
  while IFS='|' read -r change reason; do
    printf '#!/bin/bash\n"%s" "$@" | sed -E "%s"\n' "$tools/nvdisasm" "$change" >"$BATS_TEST_TMPDIR/tools/nvdisasm"
    chmod +x "$BATS_TEST_TMPDIR/tools/nvdisasm"
    VFM_DISASSEMBLER=$BATS_TEST_TMPDIR/tools "$ledger" --print "$object" >"$BATS_TEST_TMPDIR/now"
    check "$BATS_TEST_TMPDIR/now"
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == "rows/"*" for sm_"*": $reason"* ]]
    [[ $output == *"rows/gather_kernel<uint4> for sm_90a: $reason"* ]]
    [[ $output == *"tests/kernels/ledger --write"* ]]
  done <<'END'
s/^( .* )STG\.E\.128 .*/\1STL.128 [R1], R4 ;/|spills: 160/0 bytes stored/loaded, 0/0 before
s/^( .* )LDG\.E\.128(\.CONSTANT)? /\1LDL.128 /|spills: 0/80 bytes stored/loaded, 0/0 before
s/^( .* )LDG\.E\.128(\.CONSTANT)? /\1LD.E.128 /|generic accesses: 5, 0 before
s/^( .* )LDG\.E\.128(\.CONSTANT)? /\1LDG.E.64 /|narrower loads: 5 of 64 bits, 1 of 32 bits; before: 5 of 128 bits, 1 of 32 bits
s/^( .* )STG\.E\.128 /\1STG.E /|narrower stores: 10 of 32 bits; before: 10 of 128 bits
/EIATTR_REGCOUNT/,/^$/s/0x0000002[0-9a-f]$/0x00000080/|lost occupancy: 4 blocks of 128 threads a multiprocessor, 16 of 128 before
END
}

@test "what got worse is told first, then every other difference" {
  cat >"$BATS_TEST_TMPDIR/before" <<'END'
a/first_kernel sm_90a regs=32 threads=256 blocks=8 loads=32x1 stores=32x1 region=loop issue=20 global=2 bytes=8 flight=4
a/gone_kernel sm_90a regs=32 threads=256 blocks=8 region=straight issue=20
z/last_kernel sm_90a regs=32 threads=256 blocks=8 loads=128x4 region=loop issue=20 global=4 bytes=64 flight=64
END
  sed -e 's/issue=20/issue=21/; s/gone/new/' -e '/z/s/128x4/128x2,32x8/' "$BATS_TEST_TMPDIR/before" >"$BATS_TEST_TMPDIR/now"
  keep "$BATS_TEST_TMPDIR/before"
  check "$BATS_TEST_TMPDIR/now"
  [ "$status" -eq 1 ]
  [ "${lines[0]}" = 'z/last_kernel for sm_90a: narrower loads: 2 of 128 bits, 8 of 32 bits; before: 4 of 128 bits' ]
  [ "${lines[1]}" = 'a/first_kernel for sm_90a: issue 20 -> 21' ]
  [ "${lines[2]}" = 'a/gone_kernel for sm_90a: is gone' ]
  [ "${lines[3]}" = 'a/new_kernel for sm_90a: is new' ]
  [[ ${lines[4]} == 'ledger: 1 got worse, 3 changed otherwise.'* ]]
  # A new kernel may not spill either.
  { cat "$BATS_TEST_TMPDIR/before"; echo 'b/new_kernel sm_90a regs=255 spill=8/4 threads=128 blocks=2 region=loop issue=9'; } \
    >"$BATS_TEST_TMPDIR/now"
  check "$BATS_TEST_TMPDIR/now"
  [ "$status" -eq 1 ]
  [ "${lines[0]}" = 'b/new_kernel for sm_90a: spills: 8/4 bytes stored/loaded' ]
  # What became better is a difference as well, and wider accesses beside fewer narrow ones are better.
  sed 's/128x4/128x5/; s/regs=32/regs=30/' "$BATS_TEST_TMPDIR/before" >"$BATS_TEST_TMPDIR/now"
  check "$BATS_TEST_TMPDIR/now"
  [ "$status" -eq 1 ]
  [[ $output == *'ledger: 0 got worse, 3 changed otherwise.'* ]]
}

@test "a release of nvcc without a ledger gets its lines beside the build, and fails for new spills alone" {
  cat >"$BATS_TEST_TMPDIR/before" <<'END'
a/a_kernel sm_90a regs=255 spill=32/60 threads=128 blocks=2 loads=128x4 region=loop issue=20 global=4 bytes=64
a/b_kernel sm_90a regs=32 threads=128 blocks=16 loads=128x4 region=loop issue=20 global=4 bytes=64
a/c_kernel sm_90a regs=32 threads=128 blocks=16 region=loop issue=20
END
  keep "$BATS_TEST_TMPDIR/before"
  sed 's/issue=20/issue=30/; s/128x4/32x16/; s/32\/60/16\/16/' "$BATS_TEST_TMPDIR/before" >"$BATS_TEST_TMPDIR/now"
  check "$BATS_TEST_TMPDIR/now" 2.0
  [ "$status" -eq 0 ]
  [[ $output == *'no ledger is kept for nvcc 2.0: only spills were checked, against nvcc 1.0'* ]]
  grep -q '^a/b_kernel sm_90a .*32x16' "$BATS_TEST_TMPDIR/build/ledger/nvcc-2.0.txt"
  [ "$(ls "$kept")" = nvcc-1.0.txt ]
  sed -i '/b_kernel/s/regs=32/regs=32 spill=4\/4/' "$BATS_TEST_TMPDIR/now"
  check "$BATS_TEST_TMPDIR/now" 2.0
  [ "$status" -eq 1 ]
  [[ $output == *'a/b_kernel for sm_90a: spills: 4/4 bytes stored/loaded, 0/0 before'* ]]
  [[ $output != *a_kernel* ]]
}

@test "the page is what the ledger gives" {
  echo 'a/a_kernel sm_90a regs=32 threads=128 blocks=16 loads=128x4 region=loop issue=20 global=4 bytes=64 flight=64' \
    >"$BATS_TEST_TMPDIR/lines"
  keep "$BATS_TEST_TMPDIR/lines"
  grep -q 'Nothing here was measured' "$page"
  grep -q '^| .a_kernel. | 32 | 16 x 128 |' "$page"
  check "$BATS_TEST_TMPDIR/lines"
  [ "$status" -eq 0 ]
  sed -i 's/100 %/99 %/' "$page"
  check "$BATS_TEST_TMPDIR/lines"
  [ "$status" -eq 1 ]
  [[ $output == *'KERNELS.md is not what the ledger gives'* ]]
}

@test "blocks of a multiprocessor are what NVIDIA's own calculation says" {
  nvcc=$(readlink -f "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")
  include=${nvcc%/bin/nvcc}/include
  [ -e "$include/cuda_occupancy.h" ] || skip "there is no CUDA toolkit with cuda_occupancy.h"
  c++ -std=c++20 -isystem "$include" tests/kernels/ledger_occupancy.cc -o "$BATS_TEST_TMPDIR/occupancy"
  for each in tests/kernels/ledger.d/*.txt; do
    awk '!/^#/ {
      delete f
      for (i = 3; i <= NF; i++) { split($i, p, "="); f[p[1]] = p[2] }
      print $1, $2, f["regs"], f["threads"], f["static"] + 0, f["dynamic"] + 0, f["blocks"]
    }' "$each" >"$BATS_TEST_TMPDIR/kernels"
    run "$BATS_TEST_TMPDIR/occupancy" <"$BATS_TEST_TMPDIR/kernels"
    echo "$each: $output"
    [ "$output" = "$(wc -l <"$BATS_TEST_TMPDIR/kernels") agree" ]
    # And it can tell a wrong one.
    run "$BATS_TEST_TMPDIR/occupancy" <<<'a sm_90a 254 128 0 65536 3'
    [ "${lines[0]}" = 'a for sm_90a: 3 blocks, 2 by NVIDIA (error 0)' ]
  done
}
