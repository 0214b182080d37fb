// The widest instruction set of this machine among those that hot loops are compiled for (isa_args
// of lib/meson.build). ops/cpu/isa.h has those for matrix products only. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace vfm {

enum class CpuLevel { base, avx2, avx512 };  ///< x86-64-v2 (or another architecture), v3 and v4

CpuLevel cpu_level() noexcept;
/// From now on cpu_level() is at most the level of this name. Functions that were chosen before
/// stay. Returns false if no level has this name.
bool limit_cpu_level(std::string_view name) noexcept;

/// The one for cpu_level() of three functions, or other objects, one for each level.
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
