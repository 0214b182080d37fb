// Lists of shots: our JSON, and what other programs read: PySceneDetect's CSV, and edit decision
// lists.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/rational.h"
#include "curate/shot_detector.h"

namespace vfm::clip {

/// {"frame":F,"pts":P,"time":S,"type":"cut","score":X}: one change of shot.
Json change_json(const curate::ShotChange& change, std::int64_t pts, Rational time_base);

/// From one change of shot to the next. Frames are counted from 0, seconds from the first frame.
struct Shot {
  std::int64_t frame_begin = 0, frame_end = 0;
  double begin = 0, end = 0;
};

struct ShotsOfVideo {
  std::string path;
  Rational frame_rate;  ///< nominal; 0/1 if unknown
  std::vector<Shot> shots;
};

/// The columns of PySceneDetect's list of scenes, and Source. As there, the first frame is number
/// 1, and the last frame of a shot is in it.
std::string shots_csv_header();
std::string shots_csv(const ShotsOfVideo& video);

/// CMX 3600: one cut after the other, those of further videos behind. Timecodes count frames, and
/// are not of the drop-frame kind: 29.97 frames a second count as 30.
class ShotsEdl {
 public:
  std::string header() const;
  std::string add(const ShotsOfVideo& video);

 private:
  std::int64_t events_ = 0;
  std::int64_t seconds_ = 0;  // of the result so far; each video begins on a whole second
};

}  // namespace vfm::clip
