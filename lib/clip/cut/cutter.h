// Cuts one video to clips in one pass. The subclasses of ClipCutter decide where clips begin and
// end: at changes of shot (clip/cut/shot_cutter.h), or at given places (clip/cut/given_cutter.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "base/progress.h"
#include "base/rational.h"
#include "clip/cut/bars.h"
#include "clip/cut/crew.h"
#include "clip/cut/encoder.h"
#include "clip/cut/late_frames.h"
#include "clip/options.h"
#include "clip/source.h"
#include "clip/store/clip_output.h"
#include "curate/measures/clip_meter.h"
#include "curate/shots/shot_detector.h"
#include "media/colour/scaler.h"
#include "media/colour/tone_map.h"
#include "media/container/source_packets.h"
#include "media/decode/decoder.h"
#include "media/sound/audio.h"
#include "media/sound/sound_meter.h"

namespace vfm::clip {

/// Seeks to the begin of the video's middle part, which is `seconds` long. If the video is shorter
/// or `seconds` is 0, does nothing.
void go_to_middle(media::Decoder& decoder, double seconds);

/// Thread-safety: one thread at a time.
class ClipCutter {
 public:
  /// Opens the video. All arguments must outlive the cutter. Throws Error.
  ClipCutter(const ClipSource& source, const ClipOptions& options, int threads, Crew& crew,
             Progress& progress, ClipOutput& output);
  virtual ~ClipCutter() = default;

  /// Decodes the video once, and passes each encoded clip to the output, in order. Returns early if
  /// ClipOutput::fits() is false. Throws Stopped, and Error if no frame can be decoded.
  virtual void cut() = 0;
  /// Passes the remaining clips to the output. Call settle() after cut(), even if cut() has thrown
  /// Error. If cut() and settle() both throw, the error from settle() is about an earlier part of
  /// the video.
  void settle();
  /// Returns the summary with "frames", "corrupt", "seconds", "cuts", "left_out", and errors about
  /// clips. Call summary() after settle().
  Json summary() const;

 protected:
  struct Seen {
    media::Frame frame;
    curate::SmallPicture picture;
    curate::FrameMeasures measures;
  };
  struct Boundary {
    std::string type = "start";
    double score = 0;
    bool opens = false;   // whether a fade in precedes the first shot
    bool closes = false;  // whether a fade out follows the last shot
  };

  double in_seconds(std::int64_t pts) const {
    return static_cast<double>(pts) * decoder_.info().time_base.value();
  }
  /// Decodes the next frame. Returns false at the end of the video, or of the part that
  /// ClipOptions::most_seconds selects.
  bool next(media::Frame& frame);
  /// Counts a decoded frame, and cuts off its black bars.
  void take(media::Frame& frame);
  double shown_aspect() const;
  /// Returns true if a clip's frames can be decoded again without decoding all earlier frames.
  bool may_read_again() const;
  /// Adds a frame to the open clip. If may_read_again() is true, the frame's pixels may be freed.
  void add_to_clip(const Seen& seen);
  void turn(const Boundary& boundary, const media::Frame* next);
  /// Returns true if the open clip has the first shot of the video.
  bool first_shot() const { return begin_.type == "start" || begin_.opens; }
  void leave_out(const Span& span, const std::string& reason);
  /// Returns the frame as shown: upright, in square pixels and SDR, without bars.
  media::RgbImage shown(const media::Frame& frame);
  /// Records an error that does not affect clips. A repeated error is recorded once.
  void note_once(const std::string& error);
  std::int64_t corrupt() const;

  const std::string& path_;
  const ClipOptions& options_;
  ClipOutput& output_;
  media::DecodeOptions decode_;
  media::Decoder decoder_;
  std::int64_t corrupt_before_ = 0;
  std::optional<CroppedPicture> picture_;
  VideoLanes lanes_;
  std::int64_t frames_ = 0, first_pts_ = 0, end_pts_ = 0;
  curate::FrameFeatures features_;
  media::ToneMapper tone_mapper_;
  media::Scaler scaler_;
  std::optional<Seen> last_;
  std::shared_ptr<ClipEncoder> clip_;
  Boundary begin_;
  const GivenSpan* given_ = nullptr;
  HeldJson cuts_ = HeldJson::array();
  std::vector<std::string> errors_;

 private:
  struct Ended {
    std::shared_ptr<ClipEncoder> clip;
    std::shared_ptr<Lane> lane;  // null if the clip exists already
    Boundary begin, end;
    const GivenSpan* given = nullptr;
    std::string audio_codec;
    std::size_t left_out = 0, error = 0;
  };
  SmartStart smart_from(std::int64_t pts);
  bool must_split(const media::Frame& frame) const;
  void encode(const Seen& seen, std::optional<media::Frame> before);
  void close(const Boundary& end, const media::Frame* next);
  void hand_over();
  void hand_over(const Ended& ended);
  media::AudioTrack sound_of(const Span& span);

  ItemProgress place_;
  std::optional<media::AudioReader> audio_;
  std::unique_ptr<media::SoundMeter> sound_meter_;
  std::unique_ptr<media::SourcePackets> packets_;
  std::int64_t sound_corrupt_ = 0;
  std::int64_t max_length_ = 0;  // maximum length in the time base
  std::set<std::pair<std::int64_t, std::int64_t>> cut_;
  // For each clip that may still fail, left_out_ has null, and errors_ has "".
  HeldJson left_out_ = HeldJson::array();
  std::shared_ptr<Lane> lane_;  // null if the open clip exists already
  std::shared_ptr<ClipFrames> again_;
  std::deque<Ended> ended_;  // clips to pass to the output
};

}  // namespace vfm::clip
