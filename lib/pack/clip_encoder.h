// Decodes, crops and scales the windows of a clip file, and encodes the windows to latents. Latents
// from this process and from workers on GPUs (workers/stage_models.h) are the same. Thread-safety:
// const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "data/clip_pixels.h"
#include "models/tokenizer.h"
#include "pack/gpu_canvas.h"
#include "workers/service.h"
#include "workers/stage_models.h"

namespace vfm::pack {

struct EncodedWindow {
  data::ClipPixels clip;            ///< Place of the window in the source, without pixels.
  std::vector<float> latent;        ///< Latent, if the tokenizer is continuous.
  std::vector<std::int32_t> codes;  ///< Codes, if the tokenizer is discrete.
};

struct EncodedClip {
  std::vector<EncodedWindow> windows;
  data::FrameCount frames;
};

class LatentEncoder {
 public:
  virtual ~LatentEncoder() = default;
  /// Returns the latents of a clip's windows. `key` is the seed of random crops. If the clip cannot
  /// be decoded, throws Error with `name` in quotes.
  virtual EncodedClip encode(std::string_view bytes, const std::string& name,
                             const std::string& key) const = 0;
};

/// Returns an encoder that decodes in this process. If `scales` is not null, pictures are made on
/// scales->device(), where the tokenizer or the tokenizer's worker runs. All arguments must outlive
/// the encoder.
std::unique_ptr<LatentEncoder> make_clip_encoder(const models::VideoTokenizer& tokenizer,
                                                 const data::PixelOptions& options,
                                                 GpuScales* scales);

/// Opens the service of a worker that runs a tokenizer. If "hwaccel" of open.words asks for
/// hardware (media::choose_hardware), the service also decodes clips.
inline constexpr const char* kClips = "clips";
std::unique_ptr<workers::Service> open_clips(const workers::Parcel& open, Device device);

/// Returns true if workers of service `number`, which must be of kind kClips, decode with video
/// engines.
bool workers_decode(workers::StageModels& models, std::size_t number);
/// Returns an encoder that decodes in workers of service `number`, which must be of kind kClips.
std::unique_ptr<LatentEncoder> make_clip_encoder(workers::StageModels& models, std::size_t number,
                                                 const data::PixelOptions& options);

}  // namespace vfm::pack
