// A language model that sees: what the models of lib/models/vlm have in common for whoever writes
// answers with them (models/vlm/qwen.h, QwenAnswer).
//
// What is seen becomes rows among those of words: a prompt has a token of its own for each, and
// places() says where each token is. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/vlm/qwen_text.h"

namespace vfm::models {

/// What is seen, and its patches as the model's tower takes them.
struct QwenPicture {
  QwenSight sight;
  Tensor patches;
};

class VisionLanguageModel {
 public:
  VisionLanguageModel() = default;
  VisionLanguageModel(const VisionLanguageModel&) = delete;
  virtual ~VisionLanguageModel() = default;

  virtual const QwenText& text() const = 0;
  /// The tokens of what is seen, [N, D] f32, for a QwenAnswer. Throws Error for patches that are
  /// not those of the grid; Stopped.
  virtual Tensor look(const QwenPicture& picture) const = 0;
  /// Whether a token of a prompt stands for a part of what is seen.
  virtual bool stands_for_sight(std::int32_t token) const = 0;
  /// Of each token of a prompt that has such a token for each part of `sights`, in their order.
  /// Throws Error unless it has.
  virtual std::vector<QwenPlace> places(std::span<const std::int32_t> ids,
                                        std::span<const QwenSight> sights) const = 0;
};

}  // namespace vfm::models
