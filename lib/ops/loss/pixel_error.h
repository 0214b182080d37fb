// The loss of training a tokenizer: how far a reconstruction is from the picture.
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
  Tensor seed;  ///< scale * gradient of the loss, of output's shape; undefined for scale 0
  Tensor sums;  ///< two doubles, as bytes, where output is: see read()

  struct Sums {
    double absolute = 0, squares = 0;  ///< of e
  };
  /// On a GPU it waits for what was queued, so do it late.
  Sums read() const;
};

/// output and target [N] f32 on one device. Sums are taken in double, in a fixed order.
PixelError pixel_error(const Tensor& output, const Tensor& target, const PixelWeights& weights,
                       double scale);

}  // namespace vfm::ops
