// Interface of the vision-language models in lib/models/vlm, for code that writes answers with them
// (models/vlm/qwen.h, QwenAnswer).
//
// Pictures and videos become tokens between those of words. A prompt has a placeholder token for
// each of them, and places() gives the positions of all tokens. Thread-safety: const members from
// any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/vlm/qwen_text.h"

namespace vfm::models {

/// A picture or video, and its patches as the model's vision tower takes them.
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
  /// The tokens of a picture or video, [N, D] f32, for a QwenAnswer. Throws Error for patches that
  /// do not fit the grid; Stopped.
  virtual Tensor look(const QwenPicture& picture) const = 0;
  /// Returns whether a token of a prompt is a placeholder for a token of a picture or video.
  virtual bool stands_for_sight(std::int32_t token) const = 0;
  /// The positions of the tokens of a prompt, which has a placeholder for each token of `sights`,
  /// in their order. Throws Error if it does not.
  virtual std::vector<QwenPlace> places(std::span<const std::int32_t> ids,
                                        std::span<const QwenSight> sights) const = 0;
};

}  // namespace vfm::models
