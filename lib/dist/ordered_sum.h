// Inside lib/dist only: sums whose bits depend on the order of the ranks alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dist/group.h"

namespace vfm::dist {

/// to[i] = ((parts[0][i] + parts[1][i]) + parts[2][i]) + ..., for `count` elements of the type of
/// `sum`. bf16 is added in f32 and rounded once. `to` may be one of the parts, but may not overlap
/// a part otherwise.
void sum_in_order(Sum sum, std::span<const std::byte* const> parts, std::byte* to,
                  std::size_t count);

/// The same sums of f32 and of bf16, the most frequent types. ordered_sum_cpu.cc is compiled once
/// for each of these instruction sets. All give the same bits.
#define VFM_ORDERED_SUMS(isa)                                                                  \
  namespace isa {                                                                              \
  void add_floats(const float* const* parts, std::size_t ranks, float* to, std::size_t count); \
  void add_bfloats(const std::uint16_t* const* parts, std::size_t ranks, std::uint16_t* to,    \
                   std::size_t count);                                                         \
  }
VFM_ORDERED_SUMS(base)
VFM_ORDERED_SUMS(avx2)
VFM_ORDERED_SUMS(avx512)
#undef VFM_ORDERED_SUMS

}  // namespace vfm::dist
