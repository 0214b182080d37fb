// Access to split weights (ops/optim/split_master.h) for CPU kernels that read and write them.
// Include only in x_cpu.cc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cpu/simd.h"

namespace vfm::ops::VFM_ISA {

struct SplitWeights {
  bf16 *high, *low;  // `low` is signed
  float get(std::int64_t i) const {
    return bits_to_float((std::uint32_t{high[i]} << 16) +
                         static_cast<std::uint32_t>(static_cast<std::int16_t>(low[i])));
  }
  void set(std::int64_t i, float v) const {
    std::uint32_t bits = float_to_bits(v);
    bits = (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits;  // or a NaN may overflow
    high[i] = static_cast<bf16>((bits + 0x8000u) >> 16);
    low[i] = static_cast<bf16>(bits);
  }
};

}  // namespace vfm::ops::VFM_ISA
