// Multiplies rows of floats by tiles of sixteen columns. The sums have the same bits on every
// processor.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace vfm::curate {

inline constexpr std::size_t kTileColumns = 16;
inline constexpr std::size_t kTileRows = 4;

/// Writes out[r][j] = sum over d of rows[r][d] * tile[d][j] for kTileRows rows of `dim` numbers and
/// a tile of dim x kTileColumns. Each sum is added in the order of d, without fused multiply-add.
void tile_row_products(const float* const* rows, std::size_t dim, const float* tile,
                       float out[kTileRows][kTileColumns]);

}  // namespace vfm::curate
