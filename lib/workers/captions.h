// Captioning and rewriting models in workers. They have the interfaces of models in this process,
// and write the same texts as on one such device.
//
// Frames are prepared and prompts checked here. Questions that several threads ask at the same time
// go to one worker together, as far as it can batch them (models/vlm/answer_batch.h).
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

/// `models` must outlive it. Throws what CaptionModel's constructor throws.
std::unique_ptr<models::CaptionModel> captions_in_workers(StageModels& models,
                                                          const std::string& folder, DType compute,
                                                          std::optional<int> frame_tokens,
                                                          bool int8);
/// For TextModel's constructor, which checks what it is opened with.
std::unique_ptr<models::RewritingElsewhere> rewriting_in_workers(StageModels& models,
                                                                 const std::string& folder,
                                                                 DType compute, bool int8);

/// The services of a worker, "captions" and "rewriting". On a GPU matrix products are not chosen by
/// timing: a text must not depend on the run.
inline constexpr const char* kCaptions = "captions";
std::unique_ptr<Service> open_captions(const Parcel& open, Device device);
inline constexpr const char* kRewriting = "rewriting";
std::unique_ptr<Service> open_rewriting(const Parcel& open, Device device);

}  // namespace vfm::workers
