// The sum of squares of many arrays: gradient norms.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace vfm::ops {

/// In double, in fixed chunks added in a fixed order: the same bits for any number of threads.
/// NaN or infinity in the arrays makes the sum NaN or infinite.
double sum_squares(std::span<const std::span<const float>> arrays);

}  // namespace vfm::ops
