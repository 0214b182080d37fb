// Decides whether two shots are stitched.
//
// Two shots are stitched if their likeness reaches a threshold. The threshold is lower if sound
// continues across the change, and higher if sound breaks off (curate::threshold_with_sound).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "clip/options.h"
#include "media/decode/decoder.h"
#include "media/sound/sound_samples.h"

namespace vfm::clip {

/// The decision whether two adjacent shots are stitched.
struct Join {
  /// Likeness of the pictures. NaN is an unknown likeness, which prevents stitching.
  double likeness = 0;
  std::optional<double> sound;
  double threshold = 0;  ///< Minimum likeness to stitch the shots.
  bool joins() const { return likeness >= threshold; }
  /// Returns the fields likeness, sound and threshold. The likeness must not be NaN.
  Json json() const;
};

/// A decision, and the pts of the first frame after the earlier shot.
struct JoinPlace {
  std::int64_t pts = 0;
  Join join;
};

/// Adds two fields to a clip's json: `joins` is the list of decisions, and `sound_at_joins` is the
/// lowest known continuity of sound.
void add_joins(Json& facts, const std::vector<JoinPlace>& joins, Rational time_base);

/// The sound of one video. Calls in order of time are faster. Thread-safety: one thread at a time.
class SoundAcross {
 public:
  /// Notes the video, whose sound is opened when needed. Sound is used only with
  /// ClipRecipe::stitch_sound. For an endless source, sound is used only if clips keep sound.
  SoundAcross(const std::string& path, const ClipRecipe& recipe, const media::StreamInfo& info);

  /// Times in the video's time base: begin and end of the first shot, and begin of the next shot.
  struct Place {
    std::int64_t shot_begin = 0, end = 0, next = 0;
  };
  /// Decides whether to stitch the shots at `place`. `threshold` is the minimum likeness if sound
  /// is unknown (no sound, several streams, silence, too little sound, or sound that cannot be
  /// decoded). Throws Stopped, and temporary errors (may_pass()).
  Join judge(double likeness, double threshold, const Place& place);

 private:
  std::optional<double> across(const Place& place);

  std::string path_;
  int stream_;
  Rational time_base_;
  bool wanted_;
  std::unique_ptr<media::SoundSamples> samples_;
};

}  // namespace vfm::clip
