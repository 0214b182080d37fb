// Makes one clip: measures and encodes its frames, and verifies the result for --verify.
//
// Two threads may share a ClipEncoder (clip/cut/crew.h): the cutting thread decides where the clip
// begins and ends, and the encoding thread encodes frames.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/rational.h"
#include "clip/cut/shape.h"
#include "clip/cut/smart_cut.h"
#include "clip/cut/sound_across.h"
#include "clip/options.h"
#include "curate/measures/clip_meter.h"
#include "media/colour/resizer.h"
#include "media/colour/tone_map.h"
#include "media/container/source_packets.h"
#include "media/decode/decoder.h"
#include "media/encode/encoder.h"
#include "media/sound/audio.h"

namespace vfm::clip {

/// The data to verify a clip: upright frames of the source around the clip's begin and end, and the
/// times of all frames of the clip. A missing frame has no planes.
struct ClipEvidence {
  media::Frame before, first, second;
  media::Frame second_last, last, after;
  std::vector<std::int64_t> pts;
  std::int64_t end = 0;
  Rational time_base;
  /// List with picture_hash() of each copied frame, and "" for each encoded frame. The list is
  /// empty if all frames are encoded.
  std::vector<std::string> copied;
};

std::string picture_hash(const media::Frame& frame);

/// Decodes `mp4` and compares the frames with the source. The clip must have as many frames as
/// `evidence.pts`, at the same times after the first frame. Copied frames must be equal bit by bit.
/// The first frame must have a luma PSNR of at least 20 dB with its source frame, and no neighbour
/// of the source frame may match clearly better. The same holds for the last frame. A neighbour
/// that looks like the source frame is ignored. If the clip differs, throws Error with the
/// difference.
void verify_clip(const std::string& mp4, const ClipEvidence& evidence);

class ClipEncoder {
 public:
  /// Opens an encoder. If `verify` is true, finish() verifies the clip. If `known` is true, the
  /// clip exists, and nothing is encoded.
  ClipEncoder(const ClipRecipe& recipe, const media::StreamInfo& info, bool verify, bool known,
              SmartStart smart);

  // The cutting thread calls these functions.
  /// Counts a frame, before the frame is encoded.
  void count(const media::Frame& frame);
  static bool keeps(const media::Frame& frame) {
    return frame.layout == media::PixelLayout::yuv420p10;
  }
  bool hdr() const { return hdr_; }
  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return end_; }
  Span span() const { return {begin_, end_, info_.time_base}; }
  bool known() const { return known_; }
  /// Notes that the next shot belongs to this clip.
  void joined(const JoinPlace& place) {
    ++shots_;
    if (recipe_.stitch_sound) joins_.push_back(place);
  }
  /// Returns the frames to copy from `packets`, for finish(). Call copied_from() when the clip's
  /// end is known.
  media::CopiedVideo copied_from(media::SourcePackets* packets) const;

  // The encoding thread calls these functions.
  /// Encodes the next frame. `before` is the previous frame of the source, or null.
  void encode(const media::Frame& frame, const media::Frame* before,
              const curate::SmallPicture& picture, const curate::FrameMeasures& measures);
  /// Makes the mp4. `after` is the next frame of the source, for verification. If no part can be
  /// copied, all frames are encoded. Throws temporary errors (may_pass()). Any other Error sets
  /// failure(), and the clip is lost.
  void finish(const media::AudioTrack& audio, const media::Frame* after,
              const media::CopiedVideo& copied);

  // Any thread may call these functions after finish().
  const std::string& failure() const { return failure_; }  ///< Reason of the failure, or empty.
  std::string take_mp4() { return std::move(mp4_); }
  /// Returns the measured fields of KEY.json, in order.
  Json facts(const std::string& audio_codec) const;
  /// Returns the measured boxes, which are not in facts().
  std::optional<curate::PictureMeasures> pictures() const { return meter_.result(0).pictures; }

 private:
  media::Frame shown(const media::Frame& frame);
  void open(const media::Frame& first, const media::Frame* before);
  void open_encoder();
  void encode_shown(const media::Frame& frame);
  void encode_again();
  void prove(const std::string& mp4, const media::Frame* after);
  std::string make_mp4(const media::AudioTrack& audio, const media::Frame* after,
                       const media::CopiedVideo& copied);

  ClipRecipe recipe_;
  media::StreamInfo info_;
  bool known_;
  SmartStart start_;
  std::vector<std::int64_t> later_;
  // At most one of smart_ and encoder_ is set. If neither is set, finish() encodes all frames.
  std::unique_ptr<SmartCut> smart_;
  std::unique_ptr<media::VideoEncoder> encoder_;
  media::EncodeOptions encode_options_;
  std::optional<media::Resizer> resizer_;
  std::optional<FrameClock> clock_;
  curate::ClipMeter meter_;
  media::ToneMapper tone_mapper_;
  bool verify_;
  ClipEvidence evidence_;
  std::int64_t frames_ = 0, begin_ = 0, end_ = 0;
  std::int64_t encoded_ = 0;
  std::int64_t copied_ = 0;
  std::string codec_name_, encoder_name_;
  std::string mp4_, failure_;
  std::size_t bytes_ = 0;
  int width_ = 0, height_ = 0;  // upright, in square pixels
  Rational sample_aspect_{1, 1};
  media::Color color_;
  bool hdr_ = false;
  bool interlaced_ = false;
  int shots_ = 1;
  std::vector<JoinPlace> joins_;
  bool verified_ = false;
};

}  // namespace vfm::clip
