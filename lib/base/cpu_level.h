// The widest instruction set that this machine has and for which hot loops are compiled (isa_args
// in lib/meson.build). ops/cpu/isa.h has the sets for matrix products only. Thread-safety: any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace vfm {

enum class CpuLevel { base, avx2, avx512 };  ///< x86-64-v2 (or another architecture), v3 and v4

CpuLevel cpu_level() noexcept;
/// From now on cpu_level() is at most the level of this name. Functions already chosen stay.
/// Returns false if no level has this name.
bool limit_cpu_level(std::string_view name) noexcept;

/// Chooses one of three functions or objects by cpu_level().
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
