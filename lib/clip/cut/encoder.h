// Makes one clip: measures and encodes its frames, and verifies the result for --verify.
//
// Two threads may share a ClipEncoder (clip/cut/crew.h): one cuts the video and decides the clip's
// begin and end, the other encodes frames.
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

/// The data to verify a clip with: the source's frames around the clip's ends, upright, and the
/// times of all the clip's frames. Frames that do not exist have no planes.
struct ClipEvidence {
  media::Frame before, first, second;
  media::Frame second_last, last, after;
  std::vector<std::int64_t> pts;
  std::int64_t end = 0;
  Rational time_base;
  /// With --smart-cut, picture_hash() of each copied frame, and "" for each encoded frame. The list
  /// is empty if all frames were encoded.
  std::vector<std::string> copied;
};

/// Returns a hash of a frame's pixels.
std::string picture_hash(const media::Frame& frame);

/// Decodes `mp4` and compares it with the source. The number and times of frames must be equal. The
/// first and last frame must be like the source's (PSNR of luma at least 20 dB), and no
/// neighbouring frame of the source that looks different may fit better. Copied frames must be
/// equal to the bit. Throws Error, which says what differs.
void verify_clip(const std::string& mp4, const ClipEvidence& evidence);

class ClipEncoder {
 public:
  /// If `verify` is true, keeps frames with which finish() verifies the clip. If `known` is true,
  /// the clip exists already, and nothing is encoded. `smart` is used with ClipRecipe::smart.
  ClipEncoder(const ClipRecipe& recipe, const media::StreamInfo& info, bool verify, bool known,
              SmartStart smart);

  // For the cutting thread.
  /// Counts a frame, before it is encoded.
  void count(const media::Frame& frame);
  /// keeps() returns true if a frame stays HDR. hdr() returns true if the clip's frames stay HDR.
  static bool keeps(const media::Frame& frame) {
    return frame.layout == media::PixelLayout::yuv420p10;
  }
  bool hdr() const { return hdr_; }
  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return end_; }
  Span span() const { return {begin_, end_, info_.time_base}; }
  bool known() const { return known_; }
  /// Notes that the next shot was stitched to this clip.
  void joined(const JoinPlace& place) {
    ++shots_;
    if (recipe_.stitch_sound) joins_.push_back(place);
  }
  /// The frames to copy from `packets`, for finish(). Call it after the clip's end is known.
  media::CopiedVideo copied_from(media::SourcePackets* packets) const;

  // For the encoding thread.
  /// Encodes the next frame. `before`: the previous frame of the source, or null.
  void encode(const media::Frame& frame, const media::Frame* before,
              const curate::SmallPicture& picture, const curate::FrameMeasures& measures);
  /// Makes the mp4. `after`: the next frame of the source, for verification. If no part can be
  /// copied, all frames are encoded. After an error, failure() is set and the clip is lost; but
  /// errors that may_pass() are thrown.
  void finish(const media::AudioTrack& audio, const media::Frame* after,
              const media::CopiedVideo& copied);

  // After finish(), on any thread.
  const std::string& failure() const { return failure_; }  ///< empty: none
  std::string take_mp4() { return std::move(mp4_); }
  /// Returns measurements, in the order of KEY.json.
  Json facts(const std::string& audio_codec) const;
  /// Returns the measures of pictures that facts() lacks: boxes.
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
  SmartStart start_;                         // gets a reason when one is found
  std::vector<std::int64_t> later_;          // pts of frames after the head, which may be copied
  std::unique_ptr<SmartCut> smart_;          // either smart_
  std::unique_ptr<media::VideoEncoder>
      encoder_;  // or encoder_; or neither: all is encoded at the end
  media::EncodeOptions encode_options_;
  std::optional<media::Resizer> resizer_;
  std::optional<FrameClock> clock_;
  curate::ClipMeter meter_;
  media::ToneMapper tone_mapper_;  // for frames that the meter gets
  bool verify_;
  ClipEvidence evidence_;                          // filled only to verify
  std::int64_t frames_ = 0, begin_ = 0, end_ = 0;  // of the source
  std::int64_t encoded_ = 0;                       // frames of the clip
  std::int64_t copied_ = 0;                        // of encoded_
  std::string codec_name_, encoder_name_;
  std::string mp4_, failure_;
  std::size_t bytes_ = 0;       // of the mp4
  int width_ = 0, height_ = 0;  // upright, in square pixels
  Rational sample_aspect_{1, 1};
  media::Color color_;
  bool hdr_ = false;
  bool interlaced_ = false;  // at least one frame of the source
  int shots_ = 1;
  std::vector<JoinPlace> joins_;
  bool verified_ = false;
};

}  // namespace vfm::clip
