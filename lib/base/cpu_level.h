// The widest of the instruction sets that hot loops are compiled for (isa_args of lib/meson.build),
// which this machine has. Not those for products alone: ops/cpu/isa.h. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

enum class CpuLevel { base, avx2, avx512 };  ///< x86-64-v2 (or another architecture), v3 and v4

CpuLevel cpu_level() noexcept;

}  // namespace vfm
