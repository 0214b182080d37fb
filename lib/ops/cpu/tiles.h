// The tiles of AMX. Include only in x_cpu.cc (see ops/cpu/isa.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include "ops/cpu/simd.h"

namespace vfm::ops::VFM_ISA {

/// Eight tiles of 16 rows of 64 bytes. A thread calls open() before its first product and close()
/// after its last, as oneDNN's kernels configure tiles differently.
struct Tiles {
  static void open() {
    alignas(64) unsigned char config[64] = {1};  // palette 1
    for (int i = 0; i < 8; ++i) {
      config[16 + 2 * i] = 64;  // bytes of a row
      config[48 + i] = 16;      // rows
    }
    asm volatile("" ::: "memory");
    _tile_loadconfig(config);
  }
  static void close() { _tile_release(); }
};

}  // namespace vfm::ops::VFM_ISA
