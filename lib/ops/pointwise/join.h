// Matrices put beside each other or below each other, and taken apart: the skip connections of a
// U-ViT, whose later blocks read the result of an earlier one beside the stream.
//
// All matrices of a call have one dtype, f32 or bf16, and one device. Values are copied, so results
// and gradients are exact.
// Shape letters: S rows, A and B columns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/tape.h"

namespace vfm::ops {

/// [S, A], [S, B], ... to [S, A + B + ...]. Throws Error for no matrix, and for those that do not
/// fit together.
Tensor join_columns(Tape& tape, const std::vector<Tensor>& parts);
/// The inverse: the next widths[i] columns of x are part i. A part without a gradient counts as
/// zeros. Throws Error unless the widths add up to x's.
std::vector<Tensor> split_columns(Tape& tape, const Tensor& x,
                                  const std::vector<std::int64_t>& widths);
/// [A, S], [B, S], ... to [A + B + ..., S]. Its inverse is take_ranges() of
/// ops/pointwise/row_ranges.h. Throws Error as join_columns().
Tensor join_rows(Tape& tape, const std::vector<Tensor>& parts);

/// Copies `count` columns of x from column `at` to y from column `to`. x and y have the same number
/// of rows. Not recorded.
void copy_columns(const Tensor& x, std::int64_t at, const Tensor& y, std::int64_t to,
                  std::int64_t count);

}  // namespace vfm::ops
