// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/isa.h"

#if defined(VFM_HAVE_X86_LEVELS)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <atomic>

#include "base/cpu_level.h"

namespace vfm::ops {
namespace {

#if defined(VFM_HAVE_X86_LEVELS)
// Beyond AVX-512: feature bits of CPUID leaf 7, and for tiles the kernel's leave to use them, which
// it gives a process that asks.
Isa detect_bf16() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return Isa::avx512;
  const bool tiles = (d >> 22 & 1u) && (d >> 24 & 1u);  // AMX-BF16, AMX-TILE
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a >> 5 & 1u)) return Isa::avx512;
  constexpr int kRequestPermission = 0x1023,
                kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  if (tiles && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0) return Isa::amx;
  return Isa::avx512_bf16;
}
#endif

Isa detect() noexcept {
#if defined(VFM_HAVE_X86_LEVELS)
  if (cpu_level() == CpuLevel::avx512) return detect_bf16();
#endif
  return cpu_level() == CpuLevel::avx2 ? Isa::avx2 : Isa::base;
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
  static const Isa best = detect();
  current().store(limit < best ? limit : best, std::memory_order_relaxed);
}

}  // namespace vfm::ops
