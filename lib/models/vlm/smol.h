// SmolVLM, SmolVLM2 or Idefics3 from a folder: pictures or a video and a prompt in, the tokens of
// an answer out (QwenAnswer).
//
// The position of a token in a prompt is its number, for words and pictures alike. Computes in f32
// or bf16. Thread-safety: const members from any thread, except look(): one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/encoder/encoder_folder.h"
#include "models/folder/hf_folder.h"
#include "models/vlm/smol_config.h"
#include "models/vlm/smol_vision.h"
#include "models/vlm/vision_language.h"

namespace vfm::models {

class Smol final : public VisionLanguageModel {
 public:
  /// `folder`, of type kSmolType or kIdefics3Type, must outlive this object. `int8`: the matrices
  /// of the language model and of the connector are rounded to 8 bits, those of the vision tower's
  /// layers are not. On Device::meta only the headers of the weights are read, and work is counted.
  /// Throws Error{usage} for a configuration that is not supported; Error that lists the tensors
  /// that do not fit.
  Smol(const HfComponent& folder, DType compute, bool int8 = false, Device device = Device::cpu);

  const SmolConfig& config() const { return config_; }
  const QwenText& text() const override { return text_; }
  /// Tiles are the frames of the grid.
  Tensor look(const QwenPicture& picture) const override;
  bool stands_for_sight(std::int32_t token) const override { return token == config_.image_token; }
  std::vector<QwenPlace> places(std::span<const std::int32_t> ids,
                                std::span<const QwenSight> sights) const override;

 private:
  SmolConfig config_;
  SelectedSet selected_;
  QwenWeights weights_;
  SmolVision vision_;
  QwenText text_;
};

}  // namespace vfm::models
