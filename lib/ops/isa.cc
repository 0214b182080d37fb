// SPDX-License-Identifier: Apache-2.0
#include "ops/isa.h"

#include <atomic>

namespace vfm::ops {
namespace {

Isa detect() noexcept {
#if defined(VFM_HAVE_X86_LEVELS)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  return avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::base;
#else
  return Isa::base;
#endif
}

std::atomic<Isa>& current() noexcept {
  static std::atomic<Isa> value{detect()};
  return value;
}

}  // namespace

Isa isa() noexcept {
  return current().load(std::memory_order_relaxed);
}

void limit_isa(Isa limit) noexcept {
  const Isa best = detect();
  current().store(limit < best ? limit : best, std::memory_order_relaxed);
}

}  // namespace vfm::ops
