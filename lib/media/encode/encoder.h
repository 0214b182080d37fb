// Encodes frames as one mp4 in memory. The bytes depend only on the frames and the options: the
// thread count is fixed, no clock or build string is used, and encoders that can do so use the same
// code path on every processor. Thread-safety: one thread at a time; different encoders are
// independent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rational.h"
#include "media/colour/scaler.h"
#include "media/container/splice.h"
#include "media/frame.h"
#include "media/sound/audio.h"

namespace vfm::media {

/// Quality is on x264's CRF scale: 0 is best, 51 is worst, and at 18 loss is hardly visible. Each
/// encoder gets:
///   libx264 crf; h264_nvenc vbr with cq; libopenh264 quality mode, qmin = qmax; libx265 crf *
///   28/23; libsvtav1 crf * 35/23; libvpx-vp9 crf * 31/23 (both at most 63); mpeg4 qscale
///   2^(1+(q-18)/6) in 1..31; ffv1 lossless (in a mov: mp4 has no name for it), ignored.
struct EncodeOptions {
  std::string encoder;  ///< FFmpeg's name; empty: default_encoder()
  int quality = 18;     ///< 0..51, on x264's CRF scale
  int bit_depth = 8;    ///< 8, or 10 for yuv420p10 frames (HDR) with ten_bit_encoders()
  std::string preset;   ///< encoder's own; empty: veryfast (x264, x265), p5 (nvenc), 8 (svtav1)
  int gop = 0;          ///< frames between key frames at most; 0: two seconds; GOPs are closed
  int threads = 1;      ///< keep this fixed: the bytes depend on it
  int width = 0, height = 0;  ///< of the clip; frames of another size are scaled to it
  Rational time_base;         ///< of the frames' pts
  Rational frame_rate;        ///< nominal; does not change times; 0/1 if unknown
  Rational sample_aspect{1, 1};
  int rotation = 0;  ///< clockwise degrees, stored as display matrix; rotate_frame() is better
  /// If set, pictures get these properties, to be joined with a source's pictures
  /// (media/container/splice.h); `encoder` is splice_encoder().
  std::optional<SpliceKind> splice;
};

/// Returns nearest_rate() of `fps`. Throws Error for an impossible rate.
Rational frame_rate(double fps);

/// Returns the known encoders that this FFmpeg has, in the order of default_encoder().
std::vector<std::string> available_encoders();

/// Returns the first of libx264, libopenh264, h264_nvenc, libx265, libsvtav1, libvpx-vp9, mpeg4
/// that opens here. Software H.264 comes first, since a GPU's bytes depend on its model and driver.
/// Throws Error{usage} if none opens.
std::string default_encoder();

/// Returns the available_encoders() that take 10 bits, in the order of default_ten_bit_encoder().
std::vector<std::string> ten_bit_encoders();
/// Returns the first of libx265, libx264, libsvtav1, libvpx-vp9 that opens here with 10 bits. HEVC
/// is first, since most players expect it for HDR10. Throws Error{usage} if none opens.
std::string default_ten_bit_encoder();

// An Encoder writes 8-bit 4:2:0 (ffv1: the layout of the first frame) in the first frame's matrix
// and range, with tags that say so. For bit_depth 10, it writes 10-bit 4:2:0 with the first frame's
// HDR metadata in the container and, with libx265, libx264 and libsvtav1, in the stream. H.264 and
// HEVC cannot have an odd width or height in 4:2:0, so the last column or row is repeated once;
// coded_width() includes the repeated column. There are no B-frames: decoding order is display
// order, and the mp4 needs no edit list for video.
/// Returns the values that VideoEncoder::coded_width() and coded_height() will return. Throws Error
/// for an unknown encoder.
std::pair<int, int> coded_size(const std::string& encoder, int width, int height);

class VideoEncoder {
 public:
  /// Throws Error{usage} for options out of range, or if the encoder does not exist here or does
  /// not open (no driver, wrong preset); the message lists the encoders that exist.
  explicit VideoEncoder(const EncodeOptions& options);
  ~VideoEncoder();
  VideoEncoder(VideoEncoder&&) noexcept;

  /// Adds a frame; pts must rise. The first pts becomes time zero; gaps and the duration of the
  /// last frame are kept exactly. Throws Error if a pts does not rise, or if HDR and SDR are mixed.
  void add(const Frame& frame);
  /// Adds an RGB image as a frame at `pts`.
  void add(const RgbImage& image, std::int64_t pts);
  /// Adds sound, any time before finish(). An empty track adds nothing.
  void add_audio(const AudioTrack& track);
  /// Flushes and returns the whole mp4 (moov first). Throws Error if no frame was added.
  std::string finish();
  /// Replaces finish() with EncodeOptions::splice. Returns only the pictures, with the frames' pts.
  CodedVideo finish_piece();

  const std::string& encoder_name() const;  ///< "libx264"
  const std::string& codec_name() const;    ///< "h264"
  int coded_width() const;                  ///< of the pictures in the mp4
  int coded_height() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::media
