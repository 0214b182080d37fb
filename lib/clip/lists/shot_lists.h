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

/// Returns a {"kind":"shots",...} record as text for people: a line for the video, and a line for
/// each change.
std::string shots_table(const Json& record);

/// The frames between two changes. Frames are numbered from 0. Seconds and ticks begin at the first
/// frame of the video.
struct Shot {
  std::int64_t frame_begin = 0, frame_end = 0;
  double begin = 0, end = 0;
  std::int64_t tick_begin = 0, tick_end = 0;
  std::string start_type = "start";  ///< Type of the change at the shot's begin.
  double start_score = 0;
};

struct ShotsOfVideo {
  std::string path;
  Rational frame_rate;  ///< Nominal frame rate, or 0/1 if unknown.
  std::vector<Shot> shots;
  Rational time_base{1, 1};  ///< Seconds per tick.
  std::int64_t lead = 0;     ///< Ticks from the container's start to the first frame.
};

/// shots_csv_header() and shots_csv() return CSV with the columns of PySceneDetect's list of
/// scenes, and a column "Source". Frames are numbered from 1. The end frame is a shot's last frame.
std::string shots_csv_header();
std::string shots_csv(const ShotsOfVideo& video);

/// An edit decision list in the format CMX 3600, with the shots of all videos in sequence.
/// Timecodes are not drop-frame: a rate of 29.97 is treated as 30 frames per second.
class ShotsEdl {
 public:
  /// Throws Error for a rate above 100 frames per second, which timecodes cannot express.
  static void check_rate(const std::string& path, Rational frame_rate);
  std::string header() const;
  std::string add(const ShotsOfVideo& video);

 private:
  std::int64_t events_ = 0;
  std::int64_t seconds_ = 0;
};

/// OpenTimelineIO's JSON, with one timeline of one track. The track has a clip for each shot of
/// each video, in sequence. The JSON is valid only after footer().
///
/// Times are in frames, if the frame rate gives each time with an error of at most a tick.
/// Otherwise times are in ticks of the stream's time base.
class ShotsTimeline {
 public:
  std::string header() const;
  std::string add(const ShotsOfVideo& video);
  std::string footer() const;

 private:
  bool any_ = false;
};

/// FFmpeg's metadata (FFMETADATA1), with a chapter for each shot, in ticks of the video's time
/// base. Tick 0 is the container's start, which is before the first frame if sound comes first.
/// Each further video begins at the end of the previous video.
class ShotsChapters {
 public:
  std::string header() const;
  std::string add(const ShotsOfVideo& video);

 private:
  double seconds_ = 0;
};

}  // namespace vfm::clip
