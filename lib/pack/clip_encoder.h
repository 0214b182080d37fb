// The bytes of a clip to the latents of its windows: decoding, cutting out, scaling, and the
// tokenizer, here or in workers on cards (cards/stage_models.h), to the same latents.
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
#include "cards/service.h"
#include "cards/stage_models.h"
#include "data/clip_pixels.h"
#include "models/tokenizer.h"
#include "pack/card_canvas.h"

namespace vfm::pack {

struct EncodedWindow {
  data::ClipPixels clip;            ///< what it was made of; without pixels
  std::vector<float> latent;        ///< of a continuous tokenizer, else
  std::vector<std::int32_t> codes;  ///< these
};

struct EncodedClip {
  std::vector<EncodedWindow> windows;
  data::FrameCount frames;
};

class ClipEncoder {
 public:
  virtual ~ClipEncoder() = default;
  /// Throws Error, naming `name` in quotes, for a clip that cannot be decoded; `key` seeds random
  /// crops.
  virtual EncodedClip encode(std::string_view bytes, const std::string& name,
                             const std::string& key) const = 0;
};

/// {"read":…,"latents":…,"rate":…,"windows":…,"remainder":…} and back. Throws Error.
Json to_json(const data::FrameCount& frames);
data::FrameCount parse_frame_count(const Json& json);

/// Decodes here. With `scales` pictures are bytes on their device, as they are wanted where that is
/// the tokenizer's, or where they travel. All that is given must outlive it.
std::unique_ptr<ClipEncoder> make_clip_encoder(const models::VideoTokenizer& tokenizer,
                                               const data::ClipOptions& options,
                                               CardScales* scales);

/// The service of a worker that has a tokenizer and decodes clips on its card, too, where "hwaccel"
/// among the words that open it says so (media::choose_hardware).
inline constexpr const char* kClips = "clips";
std::unique_ptr<cards::Service> open_clips(const cards::Parcel& open, Device device);

/// Whether workers whose service of `number` is kClips decode by video engines.
bool workers_decode(cards::StageModels& models, std::size_t number);
/// Decodes in such workers.
std::unique_ptr<ClipEncoder> make_clip_encoder(cards::StageModels& models, std::size_t number,
                                               const data::ClipOptions& options);

}  // namespace vfm::pack
