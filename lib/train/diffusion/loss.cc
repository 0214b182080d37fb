// SPDX-License-Identifier: Apache-2.0
#include "train/diffusion/loss.h"

#include "base/error.h"

namespace vfm::train {

LossSums Loss::sums(const NoisyBatch& batch) const {
  const std::vector<double> each = error.read_sums();
  LossSums sums;
  for (std::size_t s = 0; s < batch.parts.size(); ++s) {
    const bool image = batch.input.samples[s].frames == 1;
    sums.add(image, each[s], static_cast<double>(batch.parts[s].counted()));
  }
  return sums;
}

Loss diffusion_loss(const Tensor& output, const NoisyBatch& batch, double scale) {
  if (output.elements() != batch.target.elements())
    fail("the model gives {} values for a batch of {}", output.elements(), batch.target.elements());
  return {ops::squared_error(output, batch.target, batch.parts, scale)};
}

}  // namespace vfm::train
