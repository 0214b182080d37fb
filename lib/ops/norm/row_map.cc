// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/row_map.h"

#include <algorithm>

#include "base/error.h"

namespace vfm::ops {

RowMap::RowMap(std::span<const std::int32_t> rows, Device device, std::int64_t longest)
    : device_(device), tokens_(static_cast<std::int64_t>(rows.size())) {
  std::vector<RowRun> runs;
  for (std::int64_t i = 0; i < tokens_; ++i) {
    const std::int32_t row = rows[static_cast<std::size_t>(i)];
    if (row < 0) fail("token {} has modulation row {}", i, row);
    limit_ = std::max(limit_, row + 1);
    if (runs.empty() || runs.back().row != row || i - runs.back().begin >= longest)
      runs.push_back({i, i, row});
    runs.back().end = i + 1;
  }
  run_count_ = static_cast<std::int64_t>(runs.size());
  const auto put = [device](const void* data, std::int64_t count, DType dtype) {
    return Tensor::borrow(data, {count}, dtype, nullptr).clone().to(device);
  };
  rows_ = put(rows.data(), tokens_, DType::i32);
  runs_ = put(runs.data(), run_count_ * static_cast<std::int64_t>(sizeof(RowRun)), DType::u8);
}

const RowRun* RowMap::runs() const {
  return reinterpret_cast<const RowRun*>(runs_.data<std::byte>());
}

}  // namespace vfm::ops
