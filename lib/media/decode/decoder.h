// Decodes a video into frames in presentation order, with exact times. Thread-safety: one thread at
// a time for each Decoder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/rational.h"
#include "media/frame.h"

namespace vfm::media {

class HardwareDecoder;
class PictureMemory;

/// Properties of the decoded stream, from the container and the codec.
struct StreamInfo {
  int stream = -1;            ///< Index of the stream in the container.
  std::string container;      ///< FFmpeg's name, such as "mov,mp4,m4a,3gp,3g2,mj2".
  std::string codec;          ///< FFmpeg's name, such as "h264".
  std::string pixel_format;   ///< FFmpeg's name, such as "yuv420p10le".
  int width = 0, height = 0;  ///< Coded size in pixels.
  Rational sample_aspect{1, 1};  ///< Width of a stored pixel divided by its height.
  int rotation = 0;     ///< Clockwise turn to show pictures upright: 0, 90, 180 or 270 degrees.
  bool mirror = false;  ///< Set if pictures must be flipped left to right before the rotation.
  int display_width = 0, display_height = 0;  ///< Size after rotation, for square pixels.
  Rational time_base;
  Rational frame_rate;  ///< Average frames a second; 0/1 if unknown.
  double duration = 0;  ///< Duration in seconds from the container; 0 if unknown.
  /// The earliest start of all streams in seconds; 0 if unknown.
  double start = 0;
  std::int64_t frames = 0;  ///< Number of frames in the container; 0 if unknown.
  bool image = false;       ///< Set if the file is a still picture.
  bool endless = false;     ///< Set if the source may have no end, as one of rtsp.
  bool interlaced = false;  ///< Set if the container marks the video as interlaced.
  /// The H.273 numbers of the coded video, and the number of bits of a sample. Frames of an HDR
  /// stream are SDR, unless DecodeOptions::keep_hdr is set.
  int transfer = 2, primaries = 2, bit_depth = 8;
  bool is_hdr() const { return media::is_hdr(transfer); }
  bool is_wide_sdr() const { return media::is_wide_sdr(transfer, primaries); }
  bool has_audio = false;   ///< Set if there is an audio stream, even in an unknown codec.
  std::string audio_codec;  ///< Codec of the audio stream that a player would choose.
};

/// The use of frames by the caller. With --isolate (isolated.h), frames for `glance` and `cells`
/// are not copied, so the decoding process can change them at any time.
enum class FrameUse {
  any,
  /// The caller reads frames briefly, with code that works even if samples change, such as Scaler.
  /// With keep_hdr, this value has no effect.
  glance,
  /// The same as `glance`, but the caller reads only the rows that cell_rows() (cell_rows.h)
  /// returns. Other rows can have any content.
  cells,
};

struct DecodeOptions {
  int stream = -1;  ///< Index of the stream; -1 for the stream that a player would choose.
  int threads = 1;  ///< Number of decoder threads. Frames do not depend on it.
  bool keyframes_only = false;
  bool deinterlace = true;  ///< Makes interlaced frames progressive.
  bool keep_hdr = false;    ///< Keeps HDR frames HDR, in the layout yuv420p10.
  FrameUse use = FrameUse::any;
  /// The result of choose_hardware() (hardware.h), or null for software. Hardware decodes only
  /// streams that it decodes exactly. Frames, times and corrupt() do not depend on the hardware,
  /// except as hardware.h says.
  const HardwareDecoder* hardware = nullptr;
  /// Makes the decoder wait until a session of `hardware` (share/engine_sessions.h) is free. Must
  /// be false if the thread that calls next() can already have a session.
  bool waits_for_session = true;
  /// Keeps frames on the GPU as Frame::gpu, if possible.
  bool on_gpu = false;
  PictureMemory* memory = nullptr;  ///< Memory for pictures, or null. Only for lib/media.
};

/// A decoder of one video stream. The size of frames may change. Pictures whose format is not a
/// PixelLayout are converted to the nearest 8-bit PixelLayout. Transparent pixels are blended with
/// black. HDR (PQ, HLG) and BT.2020 colours become BT.709.
///
/// Frame::pts is the time in the container, with edit lists applied. If a frame has no pts, or its
/// pts does not exceed the previous pts, the pts becomes the end of the previous frame.
/// Frame::duration is the time to the next frame. The duration of the last frame is, in order of
/// preference, the value of the container, the duration of the previous frame, or 1/frame_rate.
///
/// A still picture (JPEG, PNG, WebP, BMP, TIFF, a GIF of one picture...) is a video of one frame.
/// Any call may throw Stopped (base/stop.h). If a call makes no progress for
/// input_limits().timeout, this call and all later calls throw Error{Cause::timeout}.
class Decoder {
 public:
  /// Opens a path or URL (a URL contains "://"). Throws Error with a message such as "cannot open
  /// 'x': ...", "'x' has no video stream (only audio)" or "'x' is empty".
  explicit Decoder(const std::string& path, const DecodeOptions& options = {});
  /// Opens a file in memory. `bytes` must outlive the decoder. `name` is used in messages.
  Decoder(std::string_view bytes, const std::string& name, const DecodeOptions& options = {});
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  const StreamInfo& info() const;
  /// Reads the next frame in presentation order. Returns false at the end. Skips and counts corrupt
  /// packets. Throws Error if no frame of the file can be decoded, or if the file cannot be read.
  bool next(Frame& frame);
  /// Makes next() return the first frame with pts >= `pts`. The frame has index 0, and the same
  /// samples as in a Decoder that reads from the beginning. If possible, decoding begins at an
  /// earlier key frame, otherwise at the beginning of the file.
  void seek(std::int64_t pts);
  /// Returns false if seek() is known to decode from the beginning of the file.
  bool seeks() const;
  /// Returns the number of packets that could not be decoded, plus frames with damage, plus packets
  /// missing from a truncated file. After the last frame, the sum includes pictures that the codec
  /// dropped without an error.
  std::int64_t corrupt() const;

 private:
  struct Body;
  struct Here;
  struct Apart;
  struct State;
  std::unique_ptr<Body> body_;
};

}  // namespace vfm::media
