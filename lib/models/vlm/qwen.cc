// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace vfm::models {
namespace {

QwenConfig qwen_config_of(const HfComponent& folder) {
  folder.need_type({kQwenType});
  return QwenConfig::from_json(folder.config(), folder.config_path());
}

}  // namespace

Qwen::Qwen(const HfComponent& folder, DType compute)
    : config_(qwen_config_of(folder)),
      selected_(folder.weights(),
                [&](const std::string& name) {
                  std::string own = qwen_name(name);
                  // Of a tied model it is the table a second time.
                  if (config_.text.tied && own == "lm_head.weight") own.clear();
                  return own;
                }),
      weights_((check_tensors(selected_, config_.tensors()), selected_), compute),
      vision_(config_.vision, weights_),
      text_(config_.text, selected_, weights_) {}

QwenAnswer::QwenAnswer(const Qwen& model, std::span<const std::int32_t> ids,
                       std::span<const QwenPicture> pictures, std::int64_t most)
    : model_(model), memory_(model.text_.memory(static_cast<std::int64_t>(ids.size()) + most)) {
  if (ids.empty()) fail("a prompt without tokens has no answer");
  const QwenConfig& config = model.config_;
  std::vector<QwenSight> sights;
  for (const QwenPicture& picture : pictures)
    sights.push_back(picture.sight);
  const std::vector<QwenPlace> places = qwen_places(ids, sights, config);
  const Tensor x = model.text_.embed(ids);
  std::size_t at = 0;
  for (const QwenPicture& picture : pictures) {
    while (ids[at] != config.image_token && ids[at] != config.video_token)
      ++at;
    const Tensor seen = model.vision_.forward(picture.patches, picture.sight.grid);
    const auto begin = static_cast<std::int64_t>(at);
    copy(seen, x.rows(begin, begin + seen.size(0)));
    at += static_cast<std::size_t>(seen.size(0));
  }
  for (const QwenPlace& place : places)
    next_ = std::max(next_, *std::ranges::max_element(place) + 1);
  hidden_ = model.text_.forward(x, places, memory_);
}

Tensor QwenAnswer::logits() const {
  const std::int64_t count = hidden_.size(0);
  return model_.text_.logits(hidden_.rows(count - 1, count))
      .reshape({model_.config_.text.vocabulary});
}

Tensor QwenAnswer::all_logits() const {
  return model_.text_.logits(hidden_);
}

Tensor QwenAnswer::logits_of(std::int64_t begin, std::int64_t end) const {
  return model_.text_.logits(hidden_.rows(begin, end));
}

void QwenAnswer::write(std::int32_t token) {
  const std::int32_t ids[] = {token};
  const QwenPlace places[] = {{next_, next_, next_}};
  hidden_ = model_.text_.forward(model_.text_.embed(ids), places, memory_);
  ++next_;
}

}  // namespace vfm::models
