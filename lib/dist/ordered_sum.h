// Inside lib/dist only: sums whose bits depend on the order of the ranks alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "dist/group.h"

namespace vfm::dist {

/// to[i] = ((parts[0][i] + parts[1][i]) + parts[2][i]) + ..., `count` elements of the type of
/// `sum`; bf16 in f32, rounded once. `to` may be one of the parts, but not overlap one otherwise.
void sum_in_order(Sum sum, std::span<const std::byte* const> parts, std::byte* to,
                  std::size_t count);

}  // namespace vfm::dist
