// Encodes a clip file to the latents of its windows: decodes, crops, scales, and runs the
// tokenizer. Latents are the same from this process and from workers on GPUs
// (workers/stage_models.h). Thread-safety: const members from any thread.
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
  data::ClipPixels clip;            ///< the window's place in the source; without pixels
  std::vector<float> latent;        ///< a continuous tokenizer's latent
  std::vector<std::int32_t> codes;  ///< a discrete tokenizer's codes
};

struct EncodedClip {
  std::vector<EncodedWindow> windows;
  data::FrameCount frames;
};

class LatentEncoder {
 public:
  virtual ~LatentEncoder() = default;
  /// Returns the latents of a clip's windows. `key` seeds random crops. Throws Error, which names
  /// `name` in quotes, if the clip cannot be decoded.
  virtual EncodedClip encode(std::string_view bytes, const std::string& name,
                             const std::string& key) const = 0;
};

/// Both functions convert counts to {"read":…,"latents":…,"rate":…,"windows":…,"remainder":…} and
/// back. They throw Error.
Json to_json(const data::FrameCount& frames);
data::FrameCount parse_frame_count(const Json& json);

/// Returns an encoder that decodes in this process. With `scales`, pictures are bytes on the device
/// of `scales`, for a tokenizer on that device or in workers. All arguments must outlive the
/// encoder.
std::unique_ptr<LatentEncoder> make_clip_encoder(const models::VideoTokenizer& tokenizer,
                                                 const data::PixelOptions& options,
                                                 CardScales* scales);

/// Opens a worker's service with a tokenizer. The service also decodes clips on its GPU if
/// "hwaccel" in Parcel::words of `open` says so (media::choose_hardware).
inline constexpr const char* kClips = "clips";
std::unique_ptr<workers::Service> open_clips(const workers::Parcel& open, Device device);

/// Returns true if workers with service `number`, of kind kClips, decode with video engines.
bool workers_decode(workers::StageModels& models, std::size_t number);
/// Returns an encoder that decodes in workers with service `number`, of kind kClips.
std::unique_ptr<LatentEncoder> make_clip_encoder(workers::StageModels& models, std::size_t number,
                                                 const data::PixelOptions& options);

}  // namespace vfm::pack
