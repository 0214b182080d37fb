// A picture encoder that computes in workers (workers/worker.h). It has the interface and the
// results of an encoder in this process on the same device.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "models/encoder/picture_encoder.h"
#include "tensor/tensor.h"
#include "workers/service.h"
#include "workers/stage_models.h"

namespace vfm::workers {

/// Makes the encoder, which prepares pictures in this process. `models` must outlive the result.
/// Throws what models::make_picture_encoder() throws.
std::unique_ptr<models::PictureEncoder> pictures_in_workers(StageModels& models,
                                                            const std::string& folder,
                                                            DType compute,
                                                            std::optional<int> frames = {});

/// Name of the service, and the function that opens it in a worker.
inline constexpr const char* kPictures = "pictures";
std::unique_ptr<Service> open_pictures(const Parcel& open, Device device);

}  // namespace vfm::workers
