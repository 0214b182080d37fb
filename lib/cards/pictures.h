// An encoder of pictures whose packs are computed in workers: with the interface that it has here,
// and the same vectors as on one device of their kind.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cards/service.h"
#include "cards/stage_models.h"
#include "models/encoder/picture_encoder.h"
#include "tensor/tensor.h"

namespace vfm::cards {

/// Pictures are prepared here; of the model nothing else is. `models` must outlive it. Throws what
/// models::make_picture_encoder() throws.
std::unique_ptr<models::PictureEncoder> pictures_in_workers(StageModels& models,
                                                            const std::string& folder,
                                                            DType compute);

/// The service of a worker, "pictures".
inline constexpr const char* kPictures = "pictures";
std::unique_ptr<Service> open_pictures(const Parcel& open, Device device);

}  // namespace vfm::cards
