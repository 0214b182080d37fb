// Lists of shots: our JSON, a table for people, and formats of other programs: PySceneDetect's CSV,
// edit decision lists, OpenTimelineIO's timelines and FFmpeg's chapters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/rational.h"
#include "curate/shots/shot_detector.h"

namespace vfm::clip {

/// {"frame":F,"pts":P,"time":S,"type":"cut","score":X}: one change of shot.
Json change_json(const curate::ShotChange& change, std::int64_t pts, Rational time_base);

/// A {"kind":"shots",...} record as a table for people: the video, then a line for each change.
std::string shots_table(const Json& record);

/// From one change of shot to the next. Frames are counted from 0, seconds and ticks from the first
/// frame.
struct Shot {
  std::int64_t frame_begin = 0, frame_end = 0;
  double begin = 0, end = 0;
  std::int64_t tick_begin = 0, tick_end = 0;
  std::string start_type = "start";  ///< of the change that it begins at, curate::name_of()
  double start_score = 0;
};

struct ShotsOfVideo {
  std::string path;
  Rational frame_rate;  ///< nominal; 0/1 if unknown
  std::vector<Shot> shots;
  Rational time_base{1, 1};  ///< of ticks
  std::int64_t lead = 0;     ///< ticks from the container's begin to the first frame
};

/// The columns of PySceneDetect's list of scenes, and Source. Frames count from 1, and a shot
/// includes its last frame.
std::string shots_csv_header();
std::string shots_csv(const ShotsOfVideo& video);

/// CMX 3600: the cuts of all videos, one after the other. Timecodes count frames, and are not of
/// the drop-frame kind: 29.97 frames a second count as 30.
class ShotsEdl {
 public:
  /// Throws Error for a rate above 100 frames a second: a timecode has two digits for the frame,
  /// and counting at a fraction of the rate, as some recorders do, would not identify the frame.
  static void check_rate(const std::string& path, Rational frame_rate);
  std::string header() const;
  std::string add(const ShotsOfVideo& video);

 private:
  std::int64_t events_ = 0;
  std::int64_t seconds_ = 0;  // of the result so far; each video begins on a whole second
};

/// OpenTimelineIO's JSON: one timeline with one track, on it the shots of one video after the
/// other, each a clip with its part of the file. It is complete only after footer().
///
/// A rational time counts frames at the frame rate, if these are within a tick of the shot's times;
/// else, for a variable frame rate, exact ticks of the stream's time base.
class ShotsTimeline {
 public:
  std::string header() const;
  std::string add(const ShotsOfVideo& video);
  std::string footer() const;

 private:
  bool any_ = false;
};

/// FFmpeg's metadata (FFMETADATA1): a chapter for each shot, in ticks of the video's time base.
/// Ticks count from the container's begin, as in FFmpeg: if sound comes first, `lead` before the
/// first frame. Further videos count from the end of the previous video, as in a joined file.
class ShotsChapters {
 public:
  std::string header() const;
  std::string add(const ShotsOfVideo& video);

 private:
  double seconds_ = 0;  // of the videos before
};

}  // namespace vfm::clip
