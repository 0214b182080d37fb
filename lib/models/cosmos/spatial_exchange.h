// What the parts of a picture exchange, so that a network over it computes the same on parts as on
// the whole: the rows next to a cut, statistics of a frame, and all rows where everything attends
// to everything. Exact, unlike tiles that overlap and are blended.
//
// A part is a band of rows; part 0 is the top one. All parts call the same functions in the same
// order. Each part is a thread of one process.
// Shape letters: T frames, H rows of this part, W columns, C channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::models {

class SpatialExchange {
 public:
  virtual ~SpatialExchange() = default;
  virtual int parts() const = 0;
  virtual int part() const = 0;
  bool first() const { return part() == 0; }
  bool last() const { return part() + 1 == parts(); }

  /// x [T, H, W, C] with the last row of the part above before its own, where that is wanted and
  /// there is one, and the first row of the part below behind.
  virtual Tensor with_neighbours(const Tensor& x, bool above) = 0;
  /// Moments [T, 2] (ops/norm/frame_norm.h) of the whole frames, from those of each part, which has
  /// `elements` elements a frame.
  virtual Tensor whole_moments(const Tensor& own, double elements) = 0;
  /// The parts of x [T, H, W, C], one under the other.
  virtual Tensor gather_rows(const Tensor& x) = 0;
};

/// n parts as threads of this process. Tensors are on the CPU.
class ThreadParts {
 public:
  explicit ThreadParts(int parts) : slots_(static_cast<std::size_t>(parts)) {}

  /// Runs `body` for each part at the same time. Rethrows the first exception, after all have
  /// ended.
  void run(const std::function<void(SpatialExchange&)>& body);

 private:
  class Part;
  /// What every part gives, in their order, to every part.
  std::vector<Tensor> share(std::size_t part, const Tensor& own, double number,
                            std::vector<double>& numbers);
  void wait_for_all();

  struct Slot {
    Tensor tensor;
    double number = 0;
  };
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::size_t waiting_ = 0, round_ = 0;
  std::exception_ptr failure_;
};

}  // namespace vfm::models
