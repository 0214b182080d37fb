// Opens the models that make a column, either in this process on one device, or in workers on
// several GPUs (workers/stage_models.h). Thread-safety: any thread. Open all models before any
// model is used (StageModels::add()).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "models/encoder/picture_encoder.h"
#include "models/text_encoder.h"
#include "models/vlm/caption_model.h"
#include "models/vlm/text_model.h"
#include "tensor/tensor.h"
#include "text/encoder.h"
#include "workers/captions.h"
#include "workers/pictures.h"
#include "workers/stage_models.h"
#include "workers/texts.h"

namespace vfm::columns {

struct ModelPlace {
  Device device = Device::cpu;  ///< Device of this process if `workers` is null.
  workers::StageModels* workers = nullptr;

  /// Starts the workers. Throws Error{usage} if the GPUs lack memory for them.
  void start() const {
    if (workers) workers->start();
  }
  /// Throws what models::make_picture_encoder() throws.
  std::unique_ptr<models::PictureEncoder> pictures(const std::string& folder, DType compute,
                                                   std::optional<int> frames = {}) const {
    return workers ? workers::pictures_in_workers(*workers, folder, compute, frames)
                   : models::make_picture_encoder(folder, device, compute, frames);
  }
  /// Throws what models::make_text_encoder() throws.
  std::unique_ptr<text::TextEncoder> texts(const text::EncoderConfig& config) const {
    return workers ? workers::texts_in_workers(*workers, config)
                   : models::make_text_encoder(config, {.device = device});
  }
  /// Throws what CaptionModel's constructor throws.
  std::unique_ptr<models::CaptionModel> captions(const std::string& folder, DType compute,
                                                 std::optional<int> frame_tokens, bool int8) const {
    return workers ? workers::captions_in_workers(*workers, folder, compute, frame_tokens, int8)
                   : std::make_unique<models::CaptionModel>(folder, compute, frame_tokens, int8,
                                                            device);
  }
  /// Throws what TextModel's constructor throws.
  models::TextModel rewriting(const std::string& folder, DType compute, bool int8) const {
    return models::TextModel(
        folder, compute, int8, device,
        workers ? workers::rewriting_in_workers(*workers, folder, compute, int8) : nullptr);
  }
};

}  // namespace vfm::columns
