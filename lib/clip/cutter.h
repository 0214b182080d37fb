// One video to clips: decode, find shots, measure, stitch, split, encode, in one pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/rational.h"
#include "clip/bars.h"
#include "clip/clip.h"
#include "clip/encoder.h"
#include "clip/late_frames.h"
#include "clip/recent_times.h"
#include "clip/spans.h"
#include "curate/clip_meter.h"
#include "curate/shot_detector.h"
#include "media/audio.h"
#include "media/decoder.h"
#include "media/tone_map.h"

namespace vfm::clip {

/// {"frame":F,"pts":P,"time":S,"type":"cut","score":X}: one change of shot, as shots are listed.
Json change_json(const curate::ShotChange& change, std::int64_t pts, Rational time_base);

/// A finished clip. `mp4` is empty where the caller has it already (ClipCutter::Known).
struct Clip {
  Span span;
  std::string mp4;
  Json facts;                        ///< KEY.json from "stream" on: no key, no source
  const GivenSpan* given = nullptr;  ///< that it was cut by
  bool hdr = false;                  ///< 10 bits, in the source's colours
};

class ClipCutter {
 public:
  /// Opens the video. `progress` hears of the place in it. Throws Error.
  ClipCutter(const std::string& path, const ClipRecipe& recipe, bool verify,
             const media::DecodeOptions& decode, Progress& progress);
  ~ClipCutter();

  using Emit = std::function<void(Clip&&)>;
  /// The end of a clip that begins at `pts_begin` and need not be encoded again, if there is one.
  using Known = std::function<std::optional<std::int64_t>(std::int64_t pts_begin)>;
  /// Decodes to the end; `emit` gets the clips in order. Throws Error when nothing decodes, and
  /// StaleClips when a known clip does not end where it did; Stopped.
  /// With `spans`, clips are these, in order but where they overlap: those that overlap an earlier
  /// one come after. Spans that have no frames, or end after the video, are told in errors().
  void run(const Emit& emit, const Known& known, const std::vector<GivenSpan>* spans = nullptr);

  const media::StreamInfo& info() const { return decoder_.info(); }
  /// After run: frames, corrupt, seconds, cuts, left_out, errors of single clips.
  Json summary() const;
  std::int64_t corrupt() const;
  std::int64_t sound_corrupt() const { return sound_corrupt_; }  ///< packets of sound
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  struct Waiting {
    media::Frame frame;
    curate::SmallPicture picture;
    curate::FrameMeasures measures;
  };
  struct Boundary {
    std::string type = "start";
    double score = 0;
  };
  struct Piece;
  void run_shots(const Emit& emit, const Known& known);
  void run_stride(const Emit& emit, const Known& known);
  void run_spans(const std::vector<GivenSpan>& spans, const Emit& emit, const Known& known);
  std::vector<Piece> pieces_of(const std::vector<GivenSpan>& spans);
  void run_pass(const std::vector<Piece>& pieces, std::size_t at, std::size_t end, const Emit& emit,
                const Known& known);
  void add_given(Waiting& waiting, const Emit& emit, const Known& known);
  double shown_aspect() const;
  void tell_place(const media::Frame& frame);
  bool must_split(const media::Frame& frame) const;
  void decide(const Emit& emit, const Known& known);
  void place(const Waiting& waiting, const Emit& emit, const Known& known);
  bool stitches(const curate::ShotChange& change) const;
  const curate::SmallPicture* picture_of(std::int64_t index) const;
  void turn(const Boundary& boundary, std::int64_t begin, const media::Frame& frame,
            const Emit& emit);
  void close(const Boundary& end, const media::Frame* next, const Emit& emit);
  media::AudioTrack sound_of(const Span& span);
  void end_gap(std::int64_t pts);
  void leave_out(const Span& span, const std::string& reason);

  std::string path_;
  ClipRecipe recipe_;
  bool verify_;
  media::DecodeOptions decode_;
  media::Decoder decoder_;
  ItemProgress place_;
  std::int64_t corrupt_before_ = 0;        // in an earlier pass, at most
  std::optional<CroppedPicture> picture_;  // without bars, where there are some
  std::optional<media::AudioReader> audio_;
  std::int64_t sound_corrupt_ = 0;
  curate::ShotDetector detector_;
  std::int64_t frames_ = 0, max_length_ = 0;  // max_length_ in the time base; 0: none
  std::int64_t first_pts_ = 0, end_pts_ = 0;
  RecentTimes times_;
  std::deque<Waiting> queue_;
  LateFrames late_;
  std::deque<curate::ShotChange> changes_;
  std::optional<Waiting> last_;  // the frame placed last

  curate::FrameFeatures features_;
  media::ToneMapper tone_mapper_;                        // for features of HDR that is kept
  curate::MotionEstimator estimator_;                    // where no shots are looked for
  const GivenSpan* given_ = nullptr;                     // of the clip that is open
  std::set<std::pair<std::int64_t, std::int64_t>> cut_;  // of given spans

  std::unique_ptr<ClipEncoder> clip_;
  Boundary begin_;                         // of the clip that is open or comes next
  std::int64_t gap_end_ = 0;               // frames before this number belong to no shot
  std::optional<std::int64_t> gap_begin_;  // pts, while in a gap
  std::string gap_type_;
  Json cuts_ = Json::array(), left_out_ = Json::array();
  std::vector<std::string> errors_;
};

/// Thrown by ClipCutter::run: the shards of an earlier, killed run are not what this one would
/// write.
class StaleClips : public Error {
 public:
  StaleClips() : Error("the shards of an earlier run do not fit") {}
};

}  // namespace vfm::clip
