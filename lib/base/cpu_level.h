// Finds the widest instruction set that this machine has and that hot loops are compiled for
// (isa_args in lib/meson.build). ops/cpu/isa.h has the instruction sets for matrix products.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace vfm {

/// `avx2` is x86-64-v3, and `avx512` is x86-64-v4. `base` is any other processor.
enum class CpuLevel { base, avx2, avx512 };

CpuLevel cpu_level() noexcept;
/// Limits cpu_level() to the level of this name. Functions that best_of() chose before do not
/// change. Returns false if no level has this name.
bool limit_cpu_level(std::string_view name) noexcept;

/// Returns one of three functions or objects, chosen by cpu_level().
template <class T>
T* best_of(T* base, T* avx2, T* avx512) noexcept {
  switch (cpu_level()) {
    case CpuLevel::avx512:
      return avx512;
    case CpuLevel::avx2:
      return avx2;
    case CpuLevel::base:
      break;
  }
  return base;
}

}  // namespace vfm
