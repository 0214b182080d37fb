// Takes frames of a clip for a captioner and for a CLIP model. The clip is decoded once.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "columns/caption/model_caption.h"
#include "media/decode/hardware.h"
#include "models/encoder/picture_encoder.h"
#include "shard/sample.h"

namespace vfm::columns {

struct ScoreEyes {
  const models::CaptionModel* captioner = nullptr;
  const models::PictureEncoder* pictures = nullptr;
  double fps = 2;  ///< Frames a second for the captioner.
  /// Length of a window in frames (columns/score/score.h).
  int window = 256;
};

struct ScoreFrames {
  models::SeenFrames seen;                 ///< Frames for the captioner.
  std::vector<std::vector<float>> frames;  ///< Results of PictureEncoder::prepare().
};

/// Takes the frames of a sample's member. Throws Error, which names `where`, if the clip does not
/// decode to its end.
ScoreFrames take_score_frames(const shard::Member& member, const std::string& where,
                              const ScoreEyes& eyes, const media::HardwareDecoder* hardware);

}  // namespace vfm::columns
