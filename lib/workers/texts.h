// A text encoder that computes in workers (workers/worker.h). It has the interface and the results
// of an encoder in this process on the same device.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "text/encoder.h"
#include "workers/service.h"
#include "workers/stage_models.h"

namespace vfm::workers {

/// Returns the encoder of the configuration. An encoder without weights computes in this process.
/// `models` must outlive the result. Throws what models::make_text_encoder() throws.
std::unique_ptr<text::TextEncoder> texts_in_workers(StageModels& models,
                                                    const text::EncoderConfig& config);

/// Name of the service, and the function that opens it in a worker.
inline constexpr const char* kTexts = "texts";
std::unique_ptr<Service> open_texts(const Parcel& open, Device device);

}  // namespace vfm::workers
