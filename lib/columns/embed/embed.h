// vfm-embed: writes vectors for every sample of a shard X.tar to the column X.embed.tar.
//
// KEY.video.npy is a unit vector of the clip, in fp16, by builtin:look or a picture encoder
// (columns/embed/clip_vector.h). KEY.windows.npy, on request, has a unit vector for each window,
// [windows, dim] in fp16 (columns/embed/clip_windows.h). KEY.text.npy has a vector for each token
// of the caption, [tokens, dim] in fp16. KEY.text.npy is missing in a shard without captions.
// KEY.json has the encoders' configs, {"video_encoder":{…},"text_encoder":{…}}, and on request
// scores (columns/embed/clip_scores.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "columns/embed/clip_scores.h"
#include "columns/embed/clip_vector.h"
#include "io/manifest.h"
#include "media/decode/hardware.h"
#include "shard/part_output.h"
#include "shard/reader.h"
#include "share/slots.h"
#include "tensor/tensor.h"
#include "text/encoder.h"
#include "workers/stage_models.h"

namespace vfm::columns {

struct EmbedOptions {
  std::vector<std::string> inputs;
  std::string directory;  ///< Folder of the columns, or empty for the folder of each shard.
  bool force = false;
  const shard::PartTask* parts = nullptr;  ///< Parts of the work, or null.
  shard::ReadLimits limits;
  bool video = true;                   ///< If true, clips are encoded.
  std::string picture_encoder;         ///< Folder of a picture encoder, or empty for builtin:look.
  DType picture_compute = DType::f32;  ///< f32 or bf16.
  int frames = 0;                      ///< As `asked` of clip_frames(), for picture_encoder.
  double window_seconds = 0;           ///< Length of a window in seconds, or 0 for no windows.
  ClipScoreOptions scores;             ///< Scores to compute with picture_encoder.
  bool text = true;                    ///< If true, captions are encoded.
  bool need_text = false;              ///< If true, a shard without captions is an error.
  text::EncoderConfig text_encoder = {.name = "builtin:hash", .dim = 64};
  Device device = Device::cpu;  ///< For encoders from folders. Ignored with `workers`.
  workers::StageModels* workers = nullptr;
  /// Hardware decoder, or null for decoding in software.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Writes the columns. Returns the number of errors recorded. If a video cannot be decoded, its
/// sample gets a vector of zeros, and an error is recorded. Throws Error and Stopped.
long embed(const EmbedOptions& options, share::Slots& slots, Progress& progress,
           io::ManifestWriter& manifest);

}  // namespace vfm::columns
