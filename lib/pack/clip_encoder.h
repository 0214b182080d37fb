// Encodes the bytes of a clip to the latents of its windows: decodes, crops, scales and runs the
// tokenizer, here or in workers on cards (workers/stage_models.h), with the same latents.
// Thread-safety: const members from any thread.
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
#include "pack/card_canvas.h"
#include "workers/service.h"
#include "workers/stage_models.h"

namespace vfm::pack {

struct EncodedWindow {
  data::ClipPixels clip;            ///< its source; without pixels
  std::vector<float> latent;        ///< of a continuous tokenizer, else
  std::vector<std::int32_t> codes;  ///< these
};

struct EncodedClip {
  std::vector<EncodedWindow> windows;
  data::FrameCount frames;
};

class LatentEncoder {
 public:
  virtual ~LatentEncoder() = default;
  /// Throws Error, naming `name` in quotes, for a clip that cannot be decoded; `key` seeds random
  /// crops.
  virtual EncodedClip encode(std::string_view bytes, const std::string& name,
                             const std::string& key) const = 0;
};

/// {"read":…,"latents":…,"rate":…,"windows":…,"remainder":…} and back. Throws Error.
Json to_json(const data::FrameCount& frames);
data::FrameCount parse_frame_count(const Json& json);

/// Decodes in this process. With `scales` pictures are bytes on that device, as needed if it is the
/// tokenizer's, or if they are sent to workers. All arguments must outlive it.
std::unique_ptr<LatentEncoder> make_clip_encoder(const models::VideoTokenizer& tokenizer,
                                                 const data::PixelOptions& options,
                                                 CardScales* scales);

/// The service of a worker that has a tokenizer and also decodes clips on its card if "hwaccel" in
/// its opening words says so (media::choose_hardware).
inline constexpr const char* kClips = "clips";
std::unique_ptr<workers::Service> open_clips(const workers::Parcel& open, Device device);

/// True if workers with service `number`, a kClips, decode by video engines.
bool workers_decode(workers::StageModels& models, std::size_t number);
/// Decodes in such workers.
std::unique_ptr<LatentEncoder> make_clip_encoder(workers::StageModels& models, std::size_t number,
                                                 const data::PixelOptions& options);

}  // namespace vfm::pack
