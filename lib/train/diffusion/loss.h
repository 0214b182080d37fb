// The loss of diffusion training.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/loss/squared_error.h"
#include "train/diffusion/batch.h"
#include "train/step/loss_sums.h"

namespace vfm::train {

/// The loss (F - target)^2 of a batch (models/process/process.h). Given frames neither add to it
/// nor count among its elements, so the mean does not depend on their number.
struct Loss {
  /// The seed of `error` is scale * gradient of the *sum* by F; undefined for scale 0.
  ops::SquaredError error;

  /// The sums of the loss; `batch` is the one of diffusion_loss(). On a GPU it waits for the batch,
  /// so queue what follows before the call.
  LossSums sums(const NoisyBatch& batch) const;
};

/// Computes the loss of the network's output F, on the batch's device. To get a mean, divide by the
/// step's number of elements, summed over all ranks: then every element of the step has the same
/// weight, however samples are packed and distributed.
Loss diffusion_loss(const Tensor& output, const NoisyBatch& batch, double scale);

}  // namespace vfm::train
