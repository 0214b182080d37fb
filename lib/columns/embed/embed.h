// vfm-embed: writes vectors for every sample of a shard X.tar to the column X.embed.tar.
//
// KEY.video.npy: the clip's look (builtin:look), or its vector by a picture encoder
// (columns/embed/clip_vector.h); fp16, length 1. KEY.windows.npy, on request: a vector for each
// window (columns/embed/clip_windows.h); fp16, windows x dim. KEY.text.npy: the caption's tokens;
// fp16, tokens x dim, unpadded; absent if the shard has no captions. KEY.json: the encoders'
// configs {"video_encoder":{…},"text_encoder":{…}}, and on request scores for filters
// (columns/embed/clip_scores.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "columns/embed/clip_scores.h"
#include "columns/embed/clip_vector.h"
#include "io/manifest.h"
#include "media/decode/hardware.h"
#include "shard/reader.h"
#include "share/slots.h"
#include "tensor/tensor.h"
#include "text/encoder.h"
#include "workers/stage_models.h"

namespace vfm::columns {

struct EmbedOptions {
  std::vector<std::string> inputs;
  std::string directory;  ///< the columns' folder; empty: each shard's folder
  bool force = false;
  shard::ReadLimits limits;
  bool video = true;                   ///< encode clips: builtin:look, or picture_encoder
  std::string picture_encoder;         ///< folder (models/encoder/picture_encoder.h)
  DType picture_compute = DType::f32;  ///< f32 or bf16
  int frames = kClipFrames;            ///< frames of a clip that picture_encoder sees
  double window_seconds = 0;           ///< with picture_encoder: length of windows; 0: none
  ClipScoreOptions scores;             ///< used with picture_encoder
  bool text = true;                    ///< encode captions, if there are any
  bool need_text = false;              ///< make a shard without captions an error
  text::EncoderConfig text_encoder = {.name = "builtin:hash", .dim = 64};
  Device device = Device::cpu;  ///< device for encoders from folders, without `workers`
  workers::StageModels* workers = nullptr;
  /// If null, software decodes, with the same result.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Returns the number of errors recorded. A video that cannot be decoded is an error; its sample
/// gets a vector of zeros. Throws Error and Stopped.
long embed(const EmbedOptions& options, share::Slots& slots, Progress& progress,
           io::ManifestWriter& manifest);

}  // namespace vfm::columns
