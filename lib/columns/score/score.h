// vfm-caption score: measures the quality of captions automatically, and writes the column
// X.score.tar. KEY.json has the fields of columns/score/caption_quality.h, and "caption_scored_by":
// the models and the caption's hash.
//
// A caption is the sample's txt member, usually from the caption column. A clip is decoded once,
// and the captioner sees it once, at `fps` frames a second. In a clip longer than a window, it sees
// as many frames as in one window, spread over the clip. If the caption column has the captioner's
// result (written_caption.h), the captioner sees no frames. The CLIP model sees the middle frames
// of kClipFrames equal parts. Captions are scored one at a time.
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

/// Computes costs of a model that scores captions, for a dry run: floating-point operations (FLOPs)
/// a clip, counted from the scored captions (models/vlm/answer_cost.h). Thread-safety: any thread.
class ScoreCosts {
 public:
  /// Adds the FLOPs of one caption: with the video (0 if the caption's tokens were kept), and
  /// without the video.
  void add(double with, double without);

  /// Counts {"clips", "written"} ("written": clips with kept tokens), and the mean "flops" a clip:
  /// {"with_video", "alone"}. The result is null if no clip was added.
  Json to_json() const;
  /// Returns the same counts as a line of text.
  std::string words() const;

 private:
  mutable std::mutex mutex_;  // guards all
  double with_ = 0, without_ = 0;
  std::int64_t clips_ = 0, written_ = 0;
};

struct ScoreOptions {
  std::vector<std::string> inputs;
  std::string directory;  ///< the columns' folder; empty: each shard's folder
  bool force = false;
  shard::ReadLimits limits;
  std::string captioner, clip;  ///< folders of models; empty: none
  ModelCaptionOptions model;    ///< settings for the captioner
  ScoreCosts* costs = nullptr;  ///< collects costs; may be null
  /// If null, software decodes, with the same result.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Returns the number of errors recorded. A sample that has no caption, or that a model cannot
/// score, is an error; its other fields are kept. Throws Error and Stopped.
long score_captions(const ScoreOptions& options, share::Slots& slots, Progress& progress,
                    io::ManifestWriter& manifest);

}  // namespace vfm::columns
