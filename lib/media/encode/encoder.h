// Encodes frames as an mp4 in memory. The bytes depend only on frames and options and, with some
// encoders, on the processor. Thread-safety: one thread at a time for each encoder.
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

/// Options of VideoEncoder. `quality` is on the scale of x264's CRF: 0 is best, 51 is worst, and at
/// 18 the loss is hardly visible. Encoders use `quality` as follows:
///   libx264       crf = quality
///   h264_nvenc    vbr with cq = quality
///   libopenh264   qmin = qmax = quality
///   libx265       crf = quality * 28/23
///   libsvtav1     crf = quality * 35/23, at most 63
///   libvpx-vp9    crf = quality * 31/23, at most 63
///   mpeg4         qscale = 2^(1 + (quality - 18) / 6), from 1 to 31
///   ffv1          lossless, in a mov
struct EncodeOptions {
  std::string encoder;  ///< FFmpeg's name, or empty for default_encoder().
  int quality = 18;
  int bit_depth = 8;          ///< Bits of a sample: 8, or 10 for yuv420p10 frames.
  std::string preset;         ///< Preset; empty for veryfast (x264, x265), p5 (nvenc), 8 (svtav1).
  int gop = 0;                ///< Highest number of frames in a closed GOP; 0 for two seconds.
  int threads = 1;            ///< Number of encoder threads. The bytes depend on it.
  int width = 0, height = 0;  ///< Size of the clip, to which all frames are scaled.
  Rational time_base;         ///< Unit of Frame::pts.
  Rational frame_rate;        ///< Nominal frames a second; 0/1 if unknown.
  Rational sample_aspect{1, 1};
  int rotation = 0;  ///< Clockwise rotation in degrees, for the display matrix of the mp4.
  /// Properties of a source's packets, with which the pictures will be joined
  /// (media/container/splice.h). If `splice` is set, `encoder` must be a result of
  /// splice_encoder().
  std::optional<SpliceKind> splice;
};

/// Returns nearest_rate() of `fps`. Throws Error for an impossible rate.
Rational frame_rate(double fps);

/// Returns the supported encoders that this FFmpeg has, in the order in which default_encoder()
/// tries them.
std::vector<std::string> available_encoders();

/// Returns the first of libx264, libopenh264, h264_nvenc, libx265, libsvtav1, libvpx-vp9, mpeg4
/// that opens on this machine. Throws Error{usage} if none opens.
std::string default_encoder();

/// Returns the available_encoders() that take 10-bit samples, in the order in which
/// default_ten_bit_encoder() tries them.
std::vector<std::string> ten_bit_encoders();
/// Returns the first of libx265, libx264, libsvtav1, libvpx-vp9 that opens on this machine with 10
/// bits. Throws Error{usage} if none opens.
std::string default_ten_bit_encoder();

/// Returns the values of VideoEncoder::coded_width() and coded_height() for a clip of `width` x
/// `height`. Throws Error for an unknown encoder.
std::pair<int, int> coded_size(const std::string& encoder, int width, int height);

/// An encoder of one clip. Pictures are 8-bit 4:2:0. With ffv1, pictures have the layout of the
/// first frame. With bit_depth 10, pictures are 10-bit 4:2:0. The HDR metadata of the first frame
/// are then written to the container and, with libx265, libx264 and libsvtav1, to the stream. All
/// pictures have the matrix and range of the first frame. H.264 and HEVC need an even width and
/// height, so an odd last column or row is repeated once. Encoders use no B-frames, so decoding
/// order is display order.
class VideoEncoder {
 public:
  /// Opens the encoder. Throws Error{usage} if an option is out of range, or if the encoder is
  /// missing or does not open.
  explicit VideoEncoder(const EncodeOptions& options);
  ~VideoEncoder();
  VideoEncoder(VideoEncoder&&) noexcept;

  /// Adds a frame. The pts of the first frame becomes time zero. Keeps gaps, and the duration of
  /// the last frame, exactly. Throws Error if a pts does not exceed the previous pts, or if HDR and
  /// SDR are mixed.
  void add(const Frame& frame);
  /// Adds an RGB image as a frame at `pts`.
  void add(const RgbImage& image, std::int64_t pts);
  /// Adds sound. May be called at any time before finish(). An empty track adds nothing.
  void add_audio(const AudioTrack& track);
  /// Ends encoding and returns the bytes of the mp4, with the moov box first. Throws Error if no
  /// frame was added.
  std::string finish();
  /// Ends encoding and returns only the pictures, with the pts of the frames. Must be called
  /// instead of finish() if EncodeOptions::splice is set.
  CodedVideo finish_piece();

  const std::string& encoder_name() const;  ///< FFmpeg's name, such as "libx264".
  const std::string& codec_name() const;    ///< FFmpeg's name, such as "h264".
  int coded_width() const;                  ///< Size of the pictures in the mp4.
  int coded_height() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::media
