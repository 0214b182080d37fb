// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/row_map.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace vfm::ops {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// How many runs a GPU works on at a time: kernels/modulate_backward.h cuts rows wider than 4,096
// into slabs, one block each; a thread has four columns, and 1,024 threads fill a multiprocessor.
std::int64_t runs_at_a_time(std::int64_t width) {
  constexpr std::int64_t kMultiprocessors = 132, kThreads = 1024;
  const std::int64_t slabs = divide_up(width, 4 * kThreads);
  const std::int64_t threads = 32 * divide_up(divide_up(width, 4 * slabs), 32);
  return kMultiprocessors * (kThreads / threads) / slabs;
}

}  // namespace

std::int64_t longest_run(std::span<const std::int64_t> lengths, std::int64_t width, Device device) {
  // What a run costs beside its tokens, in tokens: to begin, and the sums that it leaves.
  constexpr std::int64_t kMost = 64, kLeast = 8, kBeside = 4;
  if (device == Device::cpu) return kMost;
  const std::int64_t at_a_time = runs_at_a_time(width);
  std::int64_t best = kMost, best_time = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t longest = kMost; longest >= kLeast; --longest) {
    std::int64_t runs = 0;
    for (const std::int64_t length : lengths)
      runs += divide_up(length, longest);
    const std::int64_t time = divide_up(runs, at_a_time) * (longest + kBeside);
    if (time < best_time) best = longest, best_time = time;
  }
  return best;
}

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
