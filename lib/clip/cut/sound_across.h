// Decides whether two shots are stitched, with sound on both sides of the change as evidence.
//
// Two shots are joined if their likeness reaches a threshold. The threshold is lower if sound
// continues across the change, and higher if sound breaks (curate::threshold_with_sound). Sound is
// decoded only around changes whose likeness could suffice with continuing sound.
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

/// The decision about two adjacent shots.
struct Join {
  double likeness = 0;          ///< likeness of pictures; NaN: unknown, never enough
  std::optional<double> sound;  ///< curate::SoundContinuity::continuity, if requested
  double threshold = 0;         ///< least likeness to join
  bool joins() const { return likeness >= threshold; }
  /// Returns the fields likeness, sound and threshold. The likeness must not be NaN.
  Json json() const;
};

/// A join and its place: pts of the first frame after the earlier shot.
struct JoinPlace {
  std::int64_t pts = 0;
  Join join;
};

/// Adds two fields to a clip's json: the list `joins`, and `sound_at_joins`, the least known
/// continuity of sound.
void add_joins(Json& facts, const std::vector<JoinPlace>& joins, Rational time_base);

/// The sound of one video. Thread-safety: one thread at a time. Calls in order of time are faster.
class SoundAcross {
 public:
  /// Sound is opened when first needed. It is never opened without ClipRecipe::stitch_sound, for a
  /// source without sound, or for a URL unless clips keep sound.
  SoundAcross(const std::string& path, const ClipRecipe& recipe, const media::StreamInfo& info);

  /// The begin and end of the earlier shot, and the begin of the next shot, in the video's time
  /// base.
  struct Place {
    std::int64_t shot_begin = 0, end = 0, next = 0;
  };
  /// Decides by the likeness. `threshold` is the threshold without sound. It does not move if sound
  /// is unknown (none, several streams, silence, too little, not decodable). Throws Stopped, and
  /// Error of a cause that may_pass().
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
