// One video to clips: decode, find shots, measure, stitch, split, encode, in one pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/progress.h"
#include "base/rational.h"
#include "clip/bars.h"
#include "clip/clip.h"
#include "clip/encoder.h"
#include "clip/late_frames.h"
#include "clip/recent_times.h"
#include "clip/spans.h"
#include "clip/store.h"
#include "curate/clip_meter.h"
#include "curate/shot_detector.h"
#include "media/audio.h"
#include "media/decoder.h"
#include "media/tone_map.h"

namespace vfm::clip {

/// A finished clip, or a kept one, of which only `span` and `kept` are set.
struct Clip {
  Span span;
  std::optional<KeptClip> kept;
  std::string mp4;
  Json facts;                        ///< KEY.json from "stream" on: no key, no source
  const GivenSpan* given = nullptr;  ///< that it was cut by
  bool hdr = false;                  ///< 10 bits, in the source's colours
};

class ClipCutter {
 public:
  /// Opens the video. `progress` shows the position. With `spans`, which must outlive this, the
  /// clips are exactly these, in order; a span that overlaps an earlier one is cut in a later pass.
  /// Throws Error.
  ClipCutter(const std::string& path, const ClipRecipe& recipe, bool verify,
             const media::DecodeOptions& decode, Progress& progress,
             const std::vector<GivenSpan>* spans = nullptr);
  ~ClipCutter();

  /// Clips of a killed run: a clip that begins where the next of these does is not encoded. Call it
  /// before next(). kept(): those that were not reached yet.
  void keep(KeptClips clips) { kept_ = std::move(clips); }
  const KeptClips& kept() const { return kept_; }

  /// Decodes to the end of the next clip; nothing at the end of the video. Throws Error when
  /// nothing decodes; Stopped. Spans without frames, or that end after the video, are in
  /// errors().
  std::optional<Clip> next();

  const media::StreamInfo& info() const { return decoder_.info(); }
  /// At the end: frames, corrupt, seconds, cuts, left_out, errors of single clips.
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
  /// Of spans: a pass over the video, which cuts pieces [at, end).
  struct Pass {
    std::size_t at = 0, end = 0;
    bool found = false;           // frames of the piece at `at`
    double length = 0, here = 0;  // of and at the last frame, as pieces count
    std::int64_t number = 0;      // of the next frame
  };
  bool step_shots();
  bool step_stride();
  bool step_spans();
  void plan_spans();
  bool begin_pass();
  void cut_pieces(Waiting&& waiting);
  void end_pass();
  void add_given(Waiting& waiting);
  double shown_aspect() const;
  void report_place(const media::Frame& frame);
  bool must_split(const media::Frame& frame) const;
  void take_changes();
  bool place_next();
  void place(const Waiting& waiting);
  void add_to_clip(const Waiting& waiting);
  bool stitches(const curate::ShotChange& change) const;
  const curate::SmallPicture* picture_of(std::int64_t index) const;
  void turn(const Boundary& boundary, std::int64_t begin, const media::Frame& frame);
  void close(const Boundary& end, const media::Frame* next);
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
  media::ToneMapper tone_mapper_;      // for features of HDR that is kept
  curate::MotionEstimator estimator_;  // where no shots are looked for
  std::int64_t stride_ = 0;            // number of the last frame's
  const std::vector<GivenSpan>* spans_;
  std::optional<std::vector<SpanPiece>> pieces_;  // of spans_, once they are planned
  Pass pass_;
  const GivenSpan* given_ = nullptr;                     // of the clip that is open
  std::set<std::pair<std::int64_t, std::int64_t>> cut_;  // of given spans

  std::unique_ptr<ClipEncoder> clip_;
  Boundary begin_;                         // of the clip that is open or comes next
  std::int64_t gap_end_ = 0;               // frames before this number belong to no shot
  std::optional<std::int64_t> gap_begin_;  // pts, while in a gap
  std::string gap_type_;
  Json cuts_ = Json::array(), left_out_ = Json::array();
  std::vector<std::string> errors_;
  KeptClips kept_;
  std::optional<Clip> ready_;             // to be handed out
  bool decoded_ = false, ended_ = false;  // all frames; and all of them have their place
};

}  // namespace vfm::clip
