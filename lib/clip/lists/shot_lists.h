// Writes lists of shots: vfm's JSON, a table for people, PySceneDetect's CSV, edit decision lists
// (EDL), OpenTimelineIO's timelines and FFmpeg's chapters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/rational.h"
#include "curate/shots/shot_detector.h"

namespace vfm::clip {

/// Returns a change of shot as {"frame":F,"pts":P,"time":S,"type":"cut","score":X}.
Json change_json(const curate::ShotChange& change, std::int64_t pts, Rational time_base);

/// Returns a {"kind":"shots",...} record as text for people: the video, then a line for each
/// change.
std::string shots_table(const Json& record);

/// The frames between two changes. Frames are counted from 0, seconds and ticks from the first
/// frame.
struct Shot {
  std::int64_t frame_begin = 0, frame_end = 0;
  double begin = 0, end = 0;
  std::int64_t tick_begin = 0, tick_end = 0;
  std::string start_type = "start";  ///< type of the change at its begin (curate::name_of())
  double start_score = 0;
};

struct ShotsOfVideo {
  std::string path;
  Rational frame_rate;  ///< nominal; 0/1: unknown
  std::vector<Shot> shots;
  Rational time_base{1, 1};  ///< seconds per tick
  std::int64_t lead = 0;     ///< ticks from the container's start to the first frame
};

/// CSV with the columns of PySceneDetect's list of scenes, and Source. Frames count from 1; the end
/// frame is a shot's last frame.
std::string shots_csv_header();
std::string shots_csv(const ShotsOfVideo& video);

/// An EDL in CMX 3600: the shots of all videos in sequence. Timecodes count frames without
/// drop-frame: 29.97 frames a second count as 30.
class ShotsEdl {
 public:
  /// Throws Error for a rate above 100 frames a second, which timecodes cannot count.
  static void check_rate(const std::string& path, Rational frame_rate);
  std::string header() const;
  std::string add(const ShotsOfVideo& video);

 private:
  std::int64_t events_ = 0;
  std::int64_t seconds_ = 0;  // length of the list so far; each video begins at a whole second
};

/// OpenTimelineIO's JSON: one timeline with one track, which has a clip for each shot of each
/// video, in sequence. The JSON is valid only after footer().
///
/// A rational time counts frames at the frame rate, if the result is within a tick of the shot's
/// times. Otherwise (variable frame rate) the time counts exact ticks of the stream's time base.
class ShotsTimeline {
 public:
  std::string header() const;
  std::string add(const ShotsOfVideo& video);
  std::string footer() const;

 private:
  bool any_ = false;
};

/// FFmpeg's metadata (FFMETADATA1): a chapter for each shot, in ticks of the video's time base. As
/// in FFmpeg, tick 0 is the container's start, `lead` before the first frame if sound comes first.
/// The times of further videos count from the end of the previous video, as in a joined file.
class ShotsChapters {
 public:
  std::string header() const;
  std::string add(const ShotsOfVideo& video);

 private:
  double seconds_ = 0;  // of the previous videos
};

}  // namespace vfm::clip
