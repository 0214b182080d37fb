// The loss for training a tokenizer: the distance of a reconstruction from the picture.
//
//   loss = sum over values of  l1 |e| + l2 e^2,   e = output - target
//
// Shape letters: N values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::ops {

struct PixelWeights {
  double l1 = 1, l2 = 0;
};

struct PixelError {
  Tensor seed;  ///< scale * gradient of the loss, in output's shape; undefined if scale is 0
  Tensor sums;  ///< two doubles, as bytes, on output's device; see read()

  struct Sums {
    double absolute = 0, squares = 0;  ///< of e
  };
  /// On a GPU this waits for all queued work, so call it late.
  Sums read() const;
};

/// output and target are [N] f32 on one device. Sums are in double, in a fixed order.
PixelError pixel_error(const Tensor& output, const Tensor& target, const PixelWeights& weights,
                       double scale);

}  // namespace vfm::ops
