// Looks up rows of a table: the first layer of a model of discrete tokens.
// Shape letters: N tokens, V rows of the table, D width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "ops/tape.h"

namespace vfm::ops {

/// Returns [N, D] in the table's dtype, on its device. `table` is [V, D], f32 or bf16. `numbers`
/// are below V, or -1 for a row of zeros, if the row is in another rank's part of the table.
/// Deterministic: the gradients of a row are added in the order of the tokens. Throws Error for a
/// number that is not below V.
Tensor embedding(Tape& tape, const Tensor& table, std::span<const std::int32_t> numbers);

}  // namespace vfm::ops
