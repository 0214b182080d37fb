// The loss of diffusion training.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/loss/squared_error.h"
#include "train/diffusion/batch.h"
#include "train/step/loss_sums.h"

namespace vfm::train {

/// The loss lambda(sigma) (D - x0)^2 = (F - target)^2 of a batch. Given frames neither add to it
/// nor count among its elements, so that its mean does not depend on how many there are.
struct Loss {
  ops::SquaredError error;  ///< its seed: scale * gradient of the *sum* by F; undefined for scale 0

  /// On a GPU it waits for the batch, so do it after what follows is queued. `batch` is the same.
  LossSums sums(const NoisyBatch& batch) const;
};

/// `output` is the network's F, on the batch's device. Divide by the step's number of elements
/// after all ranks have added theirs: then every element of the step weighs the same, however
/// samples are packed and dealt.
Loss diffusion_loss(const Tensor& output, const NoisyBatch& batch, double scale);

}  // namespace vfm::train
