// vfm-caption score: measures the quality of captions without a person, as the column
// X.score.tar. KEY.json has the fields of columns/score/caption_quality.h, and "caption_scored_by":
// the models, and the caption's hash.
//
// A caption is the sample's txt member, mostly of the caption column. A clip is decoded once. The
// captioner sees it once, however long it is: at `fps` frames a second, or, if these are more than
// in one window, as many as in a window, spread over the clip. It sees nothing if the caption
// column has its result (written_caption.h). The CLIP sees the middle frames of kClipFrames equal
// parts. Each caption is computed alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "columns/caption/model_caption.h"
#include "io/manifest.h"
#include "media/decode/hardware.h"
#include "shard/reader.h"
#include "share/slots.h"

namespace vfm::columns {

class ScoreCosts;

struct ScoreOptions {
  std::vector<std::string> inputs;
  std::string directory;  ///< of the columns; empty: beside their shards
  bool force = false;
  shard::ReadLimits limits;
  std::string captioner, clip;  ///< folders; empty: not scored by it
  ModelCaptionOptions model;    ///< how the captioner is asked
  ScoreCosts* costs = nullptr;  ///< collects the captioner's costs; may be null
  /// Decodes clips, with the same result; null: software.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Returns the number of errors recorded. A sample without a caption, or that a model cannot score,
/// is an error; it keeps its other fields. Throws Error; Stopped.
long score_captions(const ScoreOptions& options, share::Slots& slots, Progress& progress,
                    io::ManifestWriter& manifest);

}  // namespace vfm::columns
