// vfm-embed: vectors for every sample of every shard, as the column X.embed.tar.
//
// KEY.video.npy is the look of the clip, or the vector of its frames by a picture encoder
// (columns/embed/clip_vector.h), fp16, length 1; KEY.windows.npy, if asked for, has one for each
// window (columns/embed/clip_windows.h), fp16, windows x dim; KEY.text.npy has the tokens of its
// caption (fp16, tokens x dim, unpadded, absent if the shard has no captions); KEY.json the
// encoders' configs:
// {"video_encoder":{…},"text_encoder":{…}}, and numbers for filters, if asked for
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
  std::string directory;  ///< of the columns; empty: beside their shards
  bool force = false;
  shard::ReadLimits limits;
  bool video = true;                   ///< builtin:look, or:
  std::string picture_encoder;         ///< a folder (models/encoder/picture_encoder.h)
  DType picture_compute = DType::f32;  ///< f32 or bf16
  int frames = kClipFrames;            ///< frames of a clip that it sees
  double window_seconds = 0;           ///< with picture_encoder: vectors of windows, too; 0: none
  ClipScoreOptions scores;             ///< with picture_encoder
  bool text = true;                    ///< the encoder of text_encoder, where there are captions
  bool need_text = false;              ///< a shard without captions is an error
  text::EncoderConfig text_encoder = {.name = "builtin:hash", .dim = 64};
  Device device = Device::cpu;  ///< of encoders from folders; or, if not null, in workers:
  workers::StageModels* workers = nullptr;
  /// Decodes the clips, with the same result; null: software.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Returns the number of errors recorded. A sample whose video cannot be decoded is one, and gets a
/// vector of zeros. Throws Error; Stopped.
long embed(const EmbedOptions& options, share::Slots& slots, Progress& progress,
           io::ManifestWriter& manifest);

}  // namespace vfm::columns
