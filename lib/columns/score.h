// vfm-caption --score: how good the captions of shards are, without a person, as the column
// X.score.tar. KEY.json has the fields of columns/caption_quality.h, and "caption_scored_by": what
// made them, and the hash of the caption that they are of.
//
// A caption is the sample's txt member, mostly of the caption column. A clip is decoded once. The
// model that captions looks at it once, however long it is: at `fps` frames a second, and where
// that are more frames than of one window, at as many spread over the clip; and not at all where
// the caption column has what it would say (written_caption.h). The CLIP sees the frames in the
// middle of kClipFrames equal parts. Each caption is computed by itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "base/slots.h"
#include "columns/model_caption.h"
#include "io/manifest.h"
#include "media/hardware.h"
#include "shard/reader.h"

namespace vfm::columns {

class ScoreCosts;

struct ScoreOptions {
  std::vector<std::string> inputs;
  std::string directory;  ///< of the columns; empty: beside their shards
  bool force = false;
  shard::ReadLimits limits;
  std::string captioner, clip;  ///< folders; empty: that part is not scored
  ModelCaptionOptions model;    ///< how the captioner is asked
  ScoreCosts* costs = nullptr;  ///< is told what the captioner's passes cost; null: nobody asks
  /// Decodes clips, with the same result; null: software.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Returns the number of errors recorded. A sample without a caption, or that a model cannot score,
/// is one; it keeps the fields that could be made. Throws Error; Stopped.
long score_captions(const ScoreOptions& options, Slots& slots, Progress& progress,
                    io::ManifestWriter& manifest);

}  // namespace vfm::columns
