// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace vfm::models {
namespace {

QwenConfig qwen_config_of(const HfComponent& folder) {
  folder.need_type({kQwenType, kQwenTextType});
  if (folder.type() == kQwenTextType)
    return QwenConfig::text_from_json(folder.config(), folder.config_path());
  return QwenConfig::from_json(folder.config(), folder.config_path());
}

std::vector<QwenSight> sights_of(std::span<const QwenPicture> pictures) {
  std::vector<QwenSight> sights;
  for (const QwenPicture& picture : pictures)
    sights.push_back(picture.sight);
  return sights;
}

std::vector<Tensor> looked_at(const VisionLanguageModel& model,
                              std::span<const QwenPicture> pictures) {
  std::vector<Tensor> seen;
  for (const QwenPicture& picture : pictures)
    seen.push_back(model.look(picture));
  return seen;
}

}  // namespace

Qwen::Qwen(const HfComponent& folder, DType compute, bool int8, Device device)
    : config_(qwen_config_of(folder)),
      selected_(folder.weights(),
                [&](const std::string& name) {
                  std::string own = qwen_name(name);
                  // Of a tied model it is the table a second time.
                  if (config_.text.tied && own == "lm_head.weight") own.clear();
                  return own;
                }),
      weights_((check_tensors(selected_, config_.tensors()), selected_), compute, int8, device),
      text_(config_.text, weights_) {
  if (config_.sees) vision_.emplace(config_.vision, weights_);
}

Tensor Qwen::look(const QwenPicture& picture) const {
  if (!vision_) fail("a language model sees nothing");
  return vision_->forward(picture.patches, picture.sight.grid);
}

QwenAnswer::QwenAnswer(const VisionLanguageModel& model, std::span<const std::int32_t> ids,
                       std::span<const QwenPicture> pictures, std::int64_t most)
    : QwenAnswer(model, ids, sights_of(pictures), looked_at(model, pictures), most) {}

QwenAnswer::QwenAnswer(const VisionLanguageModel& model, std::span<const std::int32_t> ids,
                       std::span<const QwenSight> sights, std::span<const Tensor> seen,
                       std::int64_t most)
    : model_(model), memory_(model.text().memory(static_cast<std::int64_t>(ids.size()) + most)) {
  if (ids.empty()) fail("a prompt without tokens has no answer");
  const std::vector<QwenPlace> places = model.places(ids, sights);
  const Tensor x = model.text().embed(ids);
  std::size_t at = 0;
  for (const Tensor& tokens : seen)
    for (std::int64_t row = 0; row < tokens.size(0);) {
      while (!model.stands_for_sight(ids[at]))
        ++at;
      const std::size_t begin = at;
      const std::int64_t first = row;
      while (row < tokens.size(0) && at < ids.size() && model.stands_for_sight(ids[at]))
        ++at, ++row;
      copy(tokens.rows(first, row),
           x.rows(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(at)));
    }
  for (const QwenPlace& place : places)
    next_ = std::max(next_, *std::ranges::max_element(place) + 1);
  hidden_ = model.text().forward(x, places, memory_);
}

QwenAnswer::QwenAnswer(const QwenAnswer& head, std::int64_t more)
    : model_(head.model_),
      memory_(model_.text().memory(head.memory_.seen + more)),
      next_(head.next_) {
  memory_.seen = head.memory_.seen;
  for (std::size_t i = 0; i < memory_.layers.size(); ++i)
    copy(head.memory_.layers[i].rows(0, memory_.seen), memory_.layers[i].rows(0, memory_.seen));
}

void QwenAnswer::read(std::span<const std::int32_t> ids) {
  std::vector<QwenPlace> places;
  for (std::size_t i = 0; i < ids.size(); ++i, ++next_)
    places.push_back({next_, next_, next_});
  hidden_ = model_.text().forward(model_.text().embed(ids), places, memory_);
}

std::size_t qwen_head(std::span<const std::int32_t> ids, const VisionLanguageModel& model) {
  std::size_t end = ids.size();
  while (end > 0 && !model.stands_for_sight(ids[end - 1]))
    --end;
  return end;
}

std::size_t QwenAnswer::memory_bytes() const {
  std::size_t bytes = 0;
  for (const Tensor& layer : memory_.layers)
    bytes += layer.bytes();
  return bytes;
}

Tensor QwenAnswer::logits_of(std::int64_t begin, std::int64_t end) const {
  return model_.text().logits(hidden_.rows(begin, end));
}

void QwenAnswer::write_together(std::span<QwenAnswer* const> answers,
                                std::span<const std::int32_t> tokens) {
  if (answers.empty() || answers.size() != tokens.size())
    fail("{} tokens for {} answers", tokens.size(), answers.size());
  const VisionLanguageModel& model = answers.front()->model_;
  std::vector<QwenPlace> places;
  std::vector<QwenMemory*> memories;
  for (QwenAnswer* const answer : answers) {
    if (&answer->model_ != &model) fail("answers of two models are not written together");
    places.push_back({answer->next_, answer->next_, answer->next_});
    memories.push_back(&answer->memory_);
  }
  const Tensor hidden = model.text().step(model.text().embed(tokens), places, memories);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    answers[i]->hidden_ = hidden.rows(row, row + 1);
    ++answers[i]->next_;
  }
}

Tensor QwenAnswer::logits_together(std::span<QwenAnswer* const> answers) {
  if (answers.empty()) fail("no answers have no logits");
  const VisionLanguageModel& model = answers.front()->model_;
  const auto count = static_cast<std::int64_t>(answers.size());
  const Tensor& first = answers.front()->hidden_;
  const Tensor hidden({count, first.size(1)}, DType::f32, first.device());
  for (std::int64_t i = 0; i < count; ++i) {
    const Tensor& own = answers[static_cast<std::size_t>(i)]->hidden_;
    copy(own.rows(own.size(0) - 1, own.size(0)), hidden.rows(i, i + 1));
  }
  return model.text().logits(hidden);
}

}  // namespace vfm::models
