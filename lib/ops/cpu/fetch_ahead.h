// Telling the processor what will be read, for CPU kernels that read much memory once, in several
// short pieces side by side: it sees by itself only where one long piece goes on. Without it such a
// kernel waits for memory at each new piece; with it Q8_0 weights came four times as fast.
// It changes no result. Include it in x_cpu.cc only (see ops/cpu/isa.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/cpu/simd.h"

namespace vfm::ops::VFM_ISA {

/// How far ahead: what a core reads while memory answers is a few KiB, and all of it must still be
/// in the first cache (32 KiB or more) when its turn comes.
constexpr std::int64_t kAheadBytes = 16384, kLineBytes = 64;

/// Fetches into the cache the `bytes` that are `ahead` behind p. They may be no memory at all, as
/// behind the end of a matrix: that is no fault, and fetches nothing.
VFM_INLINE void fetch_ahead(const void* p, std::int64_t bytes, std::int64_t ahead = kAheadBytes) {
  const std::uintptr_t from = reinterpret_cast<std::uintptr_t>(p);
  for (std::int64_t line = ahead; line < ahead + bytes; line += kLineBytes)
    __builtin_prefetch(reinterpret_cast<const void*>(from + static_cast<std::uintptr_t>(line)));
}

}  // namespace vfm::ops::VFM_ISA
