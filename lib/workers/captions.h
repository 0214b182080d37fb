// Captioning and rewriting models that compute in workers (workers/worker.h). Such a model has the
// interface and the results of a model in this process on the same device.
//
// This process prepares frames and checks prompts. Questions that several threads ask at the same
// time form a batch (models/vlm/answer_batch.h).
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "models/vlm/caption_model.h"
#include "models/vlm/text_model.h"
#include "tensor/tensor.h"
#include "workers/service.h"
#include "workers/stage_models.h"

namespace vfm::workers {

/// `models` must outlive the result. Throws what the constructor of CaptionModel throws.
std::unique_ptr<models::CaptionModel> captions_in_workers(StageModels& models,
                                                          const std::string& folder, DType compute,
                                                          std::optional<int> frame_tokens,
                                                          bool int8);
/// Returns the last argument for TextModel's constructor. That constructor checks `folder`,
/// `compute` and `int8`.
std::unique_ptr<models::RewritingElsewhere> rewriting_in_workers(StageModels& models,
                                                                 const std::string& folder,
                                                                 DType compute, bool int8);

/// Names of two services, and the functions that open them in a worker. The services do not choose
/// matrix products by timing, so that texts are the same in every run.
inline constexpr const char* kCaptions = "captions";
std::unique_ptr<Service> open_captions(const Parcel& open, Device device);
inline constexpr const char* kRewriting = "rewriting";
std::unique_ptr<Service> open_rewriting(const Parcel& open, Device device);

}  // namespace vfm::workers
