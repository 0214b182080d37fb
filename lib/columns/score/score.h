// vfm-caption score: measures the quality of captions, and writes the column X.score.tar. KEY.json
// has the fields of columns/score/caption_quality.h. "caption_scored_by" in KEY.json has the models
// and the caption's hash.
//
// A caption is the sample's txt member, usually from the caption column. The captioner sees the
// clip at `fps` frames a second. If a clip is longer than a window, the captioner sees only as many
// frames as one window has, evenly spread over the clip. If the caption column has the captioner's
// log-probabilities (written_caption.h), the captioner sees no frames. The CLIP model sees the
// middle frames of kClipFrames equal parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "columns/caption/model_caption.h"
#include "io/manifest.h"
#include "media/decode/hardware.h"
#include "shard/reader.h"
#include "share/slots.h"

namespace vfm::columns {

/// Costs of a model that scores captions, for a dry run: floating-point operations (FLOPs) a clip,
/// counted from the scored captions (models/vlm/answer_cost.h). Thread-safety: any thread.
class ScoreCosts {
 public:
  /// Adds the FLOPs of a caption with the video and without the video. `with` is 0 if the caption's
  /// log-probabilities were stored.
  void add(double with, double without);

  /// Returns an object, or null if no clip was added. "clips" is the number of clips. "written" is
  /// the number of clips with stored log-probabilities. "flops" has the mean FLOPs of a clip with
  /// the video ("with_video") and without it ("alone").
  Json to_json() const;
  /// Returns the costs as a line of text.
  std::string words() const;

 private:
  mutable std::mutex mutex_;  // guards all members below
  double with_ = 0, without_ = 0;
  std::int64_t clips_ = 0, written_ = 0;
};

struct ScoreOptions {
  std::vector<std::string> inputs;
  std::string directory;  ///< Folder of the columns, or empty for the folder of each shard.
  bool force = false;
  shard::ReadLimits limits;
  std::string captioner, clip;  ///< Folders of the two models, or empty.
  ModelCaptionOptions model;    ///< Settings of the captioner.
  ScoreCosts* costs = nullptr;  ///< Collector of costs; may be null.
  /// Hardware decoder, or null for decoding in software.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Writes the columns. Returns the number of errors recorded. If a sample has no caption, or if a
/// model cannot score the sample, an error is recorded, and the sample's other fields are written.
/// Throws Error and Stopped.
long score_captions(const ScoreOptions& options, share::Slots& slots, Progress& progress,
                    io::ManifestWriter& manifest);

}  // namespace vfm::columns
