// Sound on both sides of a change of shot as evidence for stitching.
//
// Two shots are joined where their likeness reaches a threshold. The threshold is lower if the
// sound goes on across the change, and higher if it breaks (curate::threshold_with_sound). Sound is
// decoded only around changes whose likeness could suffice with continuing sound.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "clip/clip.h"
#include "media/decode/decoder.h"
#include "media/sound/sound_samples.h"

namespace vfm::clip {

/// The decision on two adjacent shots.
struct Join {
  double likeness = 0;          ///< of the pictures; NaN: not known, and never enough
  std::optional<double> sound;  ///< curate::SoundContinuity::continuity, if requested
  double threshold = 0;         ///< from which they are joined
  bool joins() const { return likeness >= threshold; }
  /// The fields likeness, sound, threshold. The likeness must be a number.
  Json json() const;
};

/// The place of a join: the pts of the first frame after the earlier shot.
struct JoinPlace {
  std::int64_t pts = 0;
  Join join;
};

/// Adds a clip's joins, a list, and sound_at_joins, their least known continuity.
void add_joins(Json& facts, const std::vector<JoinPlace>& joins, Rational time_base);

/// The sound of one video. Thread-safety: one thread at a time. Calls in time order are quicker.
class SoundAcross {
 public:
  /// Opens nothing yet. Nothing is ever opened without ClipRecipe::stitch_sound, without sound in
  /// the source, or, for an address, unless clips get its sound: else it would be fetched only for
  /// this.
  SoundAcross(const std::string& path, const ClipRecipe& recipe, const media::StreamInfo& info);

  /// The begin and end of the earlier shot, and the begin of the next, in the video's time.
  struct Place {
    std::int64_t shot_begin = 0, end = 0, next = 0;
  };
  /// Decides by the likeness and the threshold without sound. Unknown sound (none, several streams,
  /// silence, too little, not decodable) leaves that threshold. Throws Stopped, and Error of a
  /// cause that may pass.
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
