// SPDX-License-Identifier: Apache-2.0
#include "ops/loss/cross_entropy.h"

#include <numeric>

#include "base/error.h"
#include "ops/loss/loss_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

std::vector<double> CrossEntropy::read_sums(std::span<const std::int64_t> lengths) const {
  const Tensor host = losses.to(Device::cpu);
  const std::span<const float> each = host.floats();
  std::vector<double> sums;
  std::size_t at = 0;
  for (const std::int64_t length : lengths) {
    double sum = 0;
    for (std::int64_t i = 0; i < length; ++i)
      sum += each[at++];
    sums.push_back(sum);
  }
  if (at != each.size()) fail("sums over {} of {} tokens", at, each.size());
  return sums;
}

CrossEntropy cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets,
                           double z_loss, double scale, const VocabularyShare& share) {
  if (logits.dims() != 2 || logits.dtype() != DType::f32 ||
      logits.size(0) != static_cast<std::int64_t>(targets.size()))
    fail("cross-entropy: logits {} {} for {} targets", dtype_name(logits.dtype()),
         to_string(logits.shape()), targets.size());
  const std::int64_t vocabulary = share.gather ? share.of : logits.size(1);
  if (share.first < 0 || share.first + logits.size(1) > vocabulary ||
      (share.gather && logits.size(1) == 0))
    fail("cross-entropy: columns {} to {} of a vocabulary of {}", share.first,
         share.first + logits.size(1), vocabulary);
  for (const std::int32_t target : targets)
    if (target < -1 || target >= vocabulary)
      fail("cross-entropy: target {} of {}", target, vocabulary);
  const Tensor list = Tensor::borrow(targets.data(), {logits.size(0)}, DType::i32, nullptr)
                          .clone()
                          .to(logits.device());
  CrossEntropy result;
  result.losses = Tensor({logits.size(0)}, DType::f32, logits.device());
  if (scale != 0) result.seed = logits;
  CrossEntropyArgs args;
  args.tokens = logits.size(0);
  args.vocabulary = logits.size(1);
  args.first = share.first;
  args.z_loss = static_cast<float>(z_loss);
  args.scale = static_cast<float>(scale);
  args.logits = logits.data<float>();
  args.targets = list.data<std::int32_t>();
  args.losses = result.losses.data<float>();
  Tensor parts;
  if (share.gather) {
    const Tensor part({logits.size(0), 2}, DType::f32, logits.device());
    args.part = part.data<float>();
    VFM_RUN(Touching(logits, list, part), cross_entropy_part, args);
    parts = share.gather.forward(part);
    args.parts = parts.data<float>();
    args.shares = args.tokens == 0 ? 1 : parts.size(0) / args.tokens;
  }
  VFM_RUN(Touching(logits, result.seed, list, result.losses, parts), cross_entropy, args);
  return result;
}

}  // namespace vfm::ops
