// Sound as evidence for stitching: what is heard on both sides of a change of shot.
//
// Two shots are joined where their likeness reaches a threshold. Where the sound goes on across the
// change the threshold is lower, where it breaks it is higher (curate::threshold_with_sound). Sound
// is decoded around those changes alone whose likeness could be enough if it went on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "clip/clip.h"
#include "media/decoder.h"
#include "media/sound_samples.h"

namespace vfm::clip {

/// What was decided of two shots that meet.
struct Join {
  double likeness = 0;          ///< of the pictures; NaN: not known, and never enough
  std::optional<double> sound;  ///< curate::SoundContinuity::continuity, where it was asked for
  double threshold = 0;         ///< from which they are joined
  bool joins() const { return likeness >= threshold; }
  /// likeness, sound, threshold. Of a likeness that is a number.
  Json json() const;
};

/// Where: the pts of the first frame that is not of the shot before.
struct JoinPlace {
  std::int64_t pts = 0;
  Join join;
};

/// Of a clip: joins, a list, and sound_at_joins, the least that is known of them.
void add_joins(Json& facts, const std::vector<JoinPlace>& joins, Rational time_base);

/// Of one video. Thread-safety: one thread at a time. Calls in the order of time are quicker.
class SoundAcross {
 public:
  /// Nothing is opened yet. Without ClipRecipe::stitch_sound nothing ever is, and nothing where
  /// the source has no sound. Of an address only where clips get its sound, as it would be fetched
  /// for this alone.
  SoundAcross(const std::string& path, const ClipRecipe& recipe, const media::StreamInfo& info);

  /// In the video's time: where the shot before begins and ends, and where the one after begins.
  struct Place {
    std::int64_t shot_begin = 0, end = 0, next = 0;
  };
  /// By the likeness and the threshold that it has without sound. What is not known of the sound
  /// (no sound, several streams of it, silence, too little of it, none that can be decoded) leaves
  /// that threshold. Throws Stopped, and Error of a cause that may pass.
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
