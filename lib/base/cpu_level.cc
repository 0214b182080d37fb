// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_level.h"

#include <algorithm>
#include <atomic>

namespace vfm {
namespace {

std::atomic<CpuLevel> g_limit = CpuLevel::avx512;

CpuLevel find_level() noexcept {
#if defined(VFM_HAVE_X86_LEVELS)
  __builtin_cpu_init();
  // The parts of x86-64-v3 and v4 that loops of floats and integers can use.
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  if (v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512cd"))
    return CpuLevel::avx512;
  if (v3) return CpuLevel::avx2;
#endif
  return CpuLevel::base;
}

}  // namespace

CpuLevel cpu_level() noexcept {
  static const CpuLevel level = find_level();
  return std::min(level, g_limit.load(std::memory_order_relaxed));
}

bool limit_cpu_level(std::string_view name) noexcept {
  if (name == "base")
    g_limit = CpuLevel::base;
  else if (name == "avx2")
    g_limit = CpuLevel::avx2;
  else if (name == "avx512")
    g_limit = CpuLevel::avx512;
  else
    return false;
  return true;
}

}  // namespace vfm
