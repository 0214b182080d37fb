// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/answer_cost.h"

#include <vector>

#include "models/vlm/qwen.h"
#include "tensor/meta.h"

namespace vfm::models {
namespace {

constexpr std::int32_t kAnyToken = 0;

/// FLOPs of choosing a token and reading it.
double token_flops(const MetaAccount& account, QwenAnswer& answer) {
  const double before = account.work().flops;
  QwenAnswer* const one[] = {&answer};
  QwenAnswer::logits_together(one);
  QwenAnswer::write_together(one, std::span(&kAnyToken, 1));
  return account.work().flops - before;
}

/// What is seen, looked at where nothing is computed.
struct HollowSight {
  std::vector<QwenSight> sights;
  std::vector<Tensor> seen;

  HollowSight(const VisionLanguageModel& model, const QwenPicture* picture) {
    if (picture == nullptr) return;
    sights.push_back(picture->sight);
    seen.push_back(
        model.look({picture->sight, Tensor(picture->patches.shape(), DType::f32, Device::meta)}));
  }
};

}  // namespace

AnswerCost answer_cost(const VisionLanguageModel& model, std::span<const std::int32_t> ids,
                       const QwenPicture* picture, std::int64_t most, std::int64_t written,
                       Device as) {
  const MetaAccount account(as);
  AnswerCost cost;
  cost.prompt_tokens = static_cast<std::int64_t>(ids.size());
  const HollowSight hollow(model, picture);
  cost.looked = account.work().flops;
  const std::size_t behind = picture != nullptr ? qwen_head(ids, model) : ids.size();
  const std::span<const std::int32_t> words = ids.subspan(behind);
  QwenAnswer answer(model, ids.first(behind), hollow.sights, hollow.seen,
                    static_cast<std::int64_t>(words.size()) + most);
  if (picture != nullptr) cost.head = account.work().flops - cost.looked;
  if (!words.empty()) answer.read(words);
  cost.read = account.work().flops - cost.looked;
  cost.keys_values = answer.memory_bytes();
  cost.working = account.memory().peak - cost.keys_values;
  if (written < 1) return cost;
  // Each token is read beside one more than that before it: the costs are in a line.
  const auto count = static_cast<double>(written);
  const double first = token_flops(account, answer);
  cost.written = count * first;
  if (written > 1) cost.written += count * (count - 1) / 2 * (token_flops(account, answer) - first);
  return cost;
}

double pass_flops(const VisionLanguageModel& model, std::span<const std::int32_t> ids,
                  const QwenPicture* picture, std::size_t said) {
  if (said == 0) return 0;
  const MetaAccount account(Device::cpu);
  const HollowSight hollow(model, picture);
  std::vector<std::int32_t> all(ids.begin(), ids.end());
  all.resize(ids.size() + said, kAnyToken);
  const QwenAnswer pass(model, all, hollow.sights, hollow.seen, 0);
  const auto end = static_cast<std::int64_t>(all.size()) - 1;
  pass.logits_of(end - static_cast<std::int64_t>(said), end);
  return account.work().flops;
}

}  // namespace vfm::models
