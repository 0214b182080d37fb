// The frames that a caption is compared with, for a captioner and for a CLIP, taken in one
// decoding. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "columns/caption/model_caption.h"
#include "media/decode/hardware.h"
#include "models/encoder/picture_encoder.h"
#include "shard/sample.h"

namespace vfm::columns {

/// The models that see the frames; may be null.
struct ScoreEyes {
  const models::CaptionModel* captioner = nullptr;
  const models::PictureEncoder* pictures = nullptr;
  double fps = 2;    ///< frames a second for the captioner
  int window = 256;  ///< frames of a clip; of a longer clip it sees no more frames than of one this
                     ///< long
};

struct ScoreFrames {
  models::SeenFrames seen;                 ///< the captioner's
  std::vector<std::vector<float>> frames;  ///< as PictureEncoder::prepare() makes them
};

/// Takes the frames of a sample's member. Throws Error, naming `where`, for a clip that does not
/// decode to its end.
ScoreFrames take_score_frames(const shard::Member& member, const std::string& where,
                              const ScoreEyes& eyes, const media::HardwareDecoder* hardware);

}  // namespace vfm::columns
