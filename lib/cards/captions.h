// Models that write captions, and that write texts anew, in workers: with the interfaces that they
// have here, and the same texts as on one device of their kind.
//
// Frames are prepared here, and prompts are checked. What several threads ask at the same time goes
// to one worker together, as far as it answers together (models/vlm/answer_batch.h).
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cards/service.h"
#include "cards/stage_models.h"
#include "models/vlm/caption_model.h"
#include "models/vlm/text_model.h"
#include "tensor/tensor.h"

namespace vfm::cards {

/// `models` must outlive it. Throws what CaptionModel's constructor throws.
std::unique_ptr<models::CaptionModel> captions_in_workers(StageModels& models,
                                                          const std::string& folder, DType compute,
                                                          std::optional<int> frame_tokens,
                                                          bool int8);
/// For TextModel's constructor, which checks what it is opened with.
std::unique_ptr<models::RewritingElsewhere> rewriting_in_workers(StageModels& models,
                                                                 const std::string& folder,
                                                                 DType compute, bool int8);

/// The services of a worker, "captions" and "rewriting". On a GPU products are neither timed nor
/// taken as is faster: a text must not depend on the run.
inline constexpr const char* kCaptions = "captions";
std::unique_ptr<Service> open_captions(const Parcel& open, Device device);
inline constexpr const char* kRewriting = "rewriting";
std::unique_ptr<Service> open_rewriting(const Parcel& open, Device device);

}  // namespace vfm::cards
