// An encoder of texts that computes in workers: with the interface that it has here, and the same
// embeddings as on one device of their kind.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cards/service.h"
#include "cards/stage_models.h"
#include "text/encoder.h"

namespace vfm::cards {

/// What models::make_text_encoder() makes of the configuration; one that has no weights computes
/// here. `models` must outlive it. Throws what that throws.
std::unique_ptr<text::Encoder> texts_in_workers(StageModels& models,
                                                const text::EncoderConfig& config);

/// The service of a worker, "texts".
inline constexpr const char* kTexts = "texts";
std::unique_ptr<Service> open_texts(const Parcel& open, Device device);

}  // namespace vfm::cards
