// The HTML page of vfm-clip shots --explain, which shows the detector's score over time, and
// pictures around changes that were found or nearly found.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "clip/cut/recent_times.h"
#include "clip/cut/shot_finder.h"
#include "clip/cut/sound_across.h"
#include "curate/shots/shot_detector.h"
#include "curate/small_picture.h"
#include "media/colour/scaler.h"
#include "media/decode/decoder.h"
#include "report/html.h"

namespace vfm::clip {

/// A series that is reduced to at most kMost points. The series is divided into equal parts. Each
/// point is the largest value of a part.
class Peaks {
 public:
  static constexpr std::size_t kMost = 1000;
  void add(double x, double y);
  const std::vector<double>& x() const { return x_; }
  const std::vector<double>& y() const { return y_; }

 private:
  std::vector<double> x_, y_;
  std::size_t part_ = 1;
  std::size_t in_last_ = 0;
};

struct Decision {
  std::int64_t frame = 0;
  /// Rank of the decision. If there are too many decisions, a page keeps the found changes with the
  /// lowest ranks, and the nearly found changes with the highest ranks.
  double rank = 0;
  std::string caption;
  std::string jpeg;  ///< JPEG of the frames before and after the decision, side by side.
  bool may_be_cut = false;
};

struct ExplainedVideo {
  std::string name, chart, chart_caption, found_title, near_title;
  std::vector<report::Figure> found, near;
};

/// The explanation of one video. With ClipRecipe::stitch_sound, the explanation says whether found
/// changes would be stitched. Memory: small pictures of the last 192 frames, and of decisions to
/// show. Thread-safety: one thread at a time.
class Explanation {
 public:
  static constexpr std::size_t kFound = 40, kNear = 12, kDots = 2000;

  Explanation(std::string path, const media::StreamInfo& info, const curate::ShotOptions& options,
              const ClipRecipe& recipe);
  /// Adds a frame. Call add() after `finder.push()` and before `finder.take()`.
  void add(const media::Frame& frame, const curate::SmallPicture& look, const ShotFinder& finder);
  /// Adds a change that ShotFinder::take() returned.
  void found(const curate::ShotChange& change);
  /// Adds decisions. Call settle() after each frame and after ShotFinder::finish(), once
  /// ShotFinder::take() has returned all changes.
  void settle(ShotFinder& finder);
  ExplainedVideo explained() const;

 private:
  const media::RgbImage* picture(std::int64_t frame) const;
  std::string pair(std::int64_t before, std::int64_t after) const;
  std::string stitched(const curate::ShotChange& change, std::int64_t shot_begin);
  void judged(const curate::Judgement& judgement);
  void nearly(Decision decision);
  std::string place(std::int64_t frame) const;
  double seconds(std::int64_t frame) const;

  std::string path_;
  media::StreamInfo info_;
  curate::ShotOptions options_;
  double threshold_;
  media::Scaler scaler_;
  std::vector<media::RgbImage> ring_;
  double stitch_threshold_;
  SoundAcross sound_;
  std::vector<curate::SmallPicture> looks_;
  std::int64_t shot_begin_ = 0;
  RecentTimes times_;
  std::int64_t frames_ = 0;
  Peaks scores_;
  std::vector<double> dots_x_, dots_y_;
  std::vector<Decision> found_, near_, waiting_;
  std::deque<curate::ShotChange> last_;
  std::optional<std::int64_t> fade_;
  media::RgbImage before_fade_;
  std::size_t changes_ = 0;
};

/// The page about many videos. Thread-safety: one thread at a time.
class ExplainPage {
 public:
  static constexpr std::size_t kVideos = 100, kDecisions = 240;
  void add(ExplainedVideo video);
  /// Writes the page. `incomplete` is the reason for missing data, or empty if no data are missing.
  void write(const std::string& path, const std::string& incomplete) const;

 private:
  std::vector<ExplainedVideo> videos_;
  std::size_t decisions_ = 0;
  bool any_left_out_ = false;
};

}  // namespace vfm::clip
