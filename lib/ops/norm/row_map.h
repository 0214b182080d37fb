// The modulation row of each token of a pack. Made once for a pack and used by every layer.
// Shape letters: S tokens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::ops {

/// Consecutive tokens begin..end-1 with the same row: the unit of work and of summation in
/// backward.
struct RowRun {
  std::int64_t begin = 0, end = 0;
  std::int32_t row = 0;
};

/// Returns the best maximum length of runs for samples of these lengths, in tokens, and rows of
/// `width` numbers. On a GPU one block works on a run, so the number of runs should be the number
/// of blocks that fit at a time, or a multiple of it. The numbers of an H100 or H200 are used for
/// every GPU, so that sums have the same order and the same bits on all. `device` must not be meta.
std::int64_t longest_run(std::span<const std::int64_t> lengths, std::int64_t width, Device device);

class RowMap {
 public:
  RowMap() = default;
  /// rows[i] is the row of token i. Runs are split at `longest` tokens (see longest_run): short
  /// enough that workers share evenly, long enough that there are few partial sums. Throws Error
  /// for a negative row.
  RowMap(std::span<const std::int32_t> rows, Device device, std::int64_t longest = 64);

  std::int64_t tokens() const { return tokens_; }
  std::int32_t limit() const { return limit_; }  ///< one above the largest row
  Device device() const { return device_; }
  const std::int32_t* rows() const { return rows_.data<std::int32_t>(); }  ///< [S], on device()
  const RowRun* runs() const;                                              ///< on device()
  std::int64_t run_count() const { return run_count_; }

 private:
  Device device_ = Device::cpu;
  std::int64_t tokens_ = 0, run_count_ = 0;
  std::int32_t limit_ = 0;
  Tensor rows_, runs_;  // runs_ holds bytes
};

}  // namespace vfm::ops
