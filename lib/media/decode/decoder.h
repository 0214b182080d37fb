// Decodes a video file: chooses the stream, and gives every frame in presentation order, with exact
// time. Thread-safety: one thread at a time; different decoders are independent.
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

/// Facts of the chosen stream, from container and codec.
struct StreamInfo {
  int stream = -1;               ///< index in the container
  std::string container;         ///< FFmpeg's name: "mov,mp4,m4a,3gp,3g2,mj2"
  std::string codec;             ///< FFmpeg's name: "h264"
  std::string pixel_format;      ///< FFmpeg's name: "yuv420p10le"
  int width = 0, height = 0;     ///< coded
  Rational sample_aspect{1, 1};  ///< of the stored picture; a quarter turn inverts it
  int rotation = 0;              ///< clockwise degrees to show it upright: 0, 90, 180, 270
  bool mirror = false;           ///< flip left to right before the rotation
  int display_width = 0, display_height = 0;  ///< after rotation and sample aspect, rounded
  Rational time_base;
  Rational frame_rate;      ///< average; 0/1 if unknown
  double duration = 0;      ///< seconds by the container; 0 if unknown
  double start = 0;         ///< seconds by FFmpeg: the container's start, the earliest first time
                            ///< of its streams; 0 if unknown
  std::int64_t frames = 0;  ///< by the container; 0 if unknown
  bool image = false;       ///< a still picture file: one frame
  bool interlaced = false;  ///< by the container; frames have their own flag
  /// The coded video's H.273 numbers and bits of a sample. Transfer 16 and 18 are HDR; frames of
  /// HDR streams are SDR, except with DecodeOptions::keep_hdr.
  int transfer = 2, primaries = 2, bit_depth = 8;
  bool is_hdr() const { return media::is_hdr(transfer); }
  bool is_wide_sdr() const { return media::is_wide_sdr(transfer, primaries); }
  bool has_audio = false;   ///< true even if the audio codec is unknown
  std::string audio_codec;  ///< of the audio stream a player would choose
};

/// How the caller uses frames. With --isolate (isolated.h), frames for `glance` and `cells` stay in
/// memory that the decoding process can change at any time; frames for `any` are copied.
enum class FrameUse {
  any,
  /// Frames are read briefly, by code such as Scaler, which works with any bytes, even if they
  /// change. Ignored with keep_hdr.
  glance,
  /// Frames are read as for `glance`, but only the rows of cell_rows.h, as by
  /// curate::sample_picture(). Other rows can have any content.
  cells,
};

struct DecodeOptions {
  int stream = -1;  ///< container index; -1: as a player would choose (never cover art)
  int threads = 1;  ///< decoder threads; frames do not depend on their number
  bool keyframes_only = false;
  bool deinterlace = true;  ///< makes one progressive picture of an interlaced frame
  bool keep_hdr = false;    ///< HDR frames are yuv420p10, in their own colours
  FrameUse use = FrameUse::any;
  /// The result of choose_hardware() (hardware.h); null for software. Hardware is used only for
  /// streams that it decodes exactly. Frames, times and corrupt() are as in software, except as
  /// hardware.h says.
  const HardwareDecoder* hardware = nullptr;
  /// Whether to wait for a session, if `hardware` has sessions. Set it to false if the thread that
  /// waits for frames can itself have a session.
  bool waits_for_session = true;
  /// Leaves frames on the GPU, with Frame::card, if possible.
  bool on_card = false;
  PictureMemory* memory = nullptr;  ///< for lib/media only: memory for pictures; null: FFmpeg's own
};

/// A stream may change resolution: each frame has its own size. Pictures that do not have 8 bits
/// and a PixelLayout are converted to the nearest layout, bit-exactly; transparent pixels are laid
/// over black. HDR (PQ, HLG) is tone-mapped to BT.709, and BT.2020's colours in SDR become
/// BT.709's.
///
/// Time: pts is the container's, with edit lists applied. For a frame without a pts, or with a pts
/// that does not rise, pts is the end of the frame before. duration is the gap to the next frame.
/// For the last frame, duration is the first known of the container's, the gap before the frame,
/// and 1/frame_rate.
///
/// Still pictures (jpeg, png, webp, bmp, tiff, a GIF of one picture...) are videos of one frame.
/// Any call may throw Stopped (base/stop.h). A call without progress for input_limits().timeout
/// throws Error{Cause::timeout}, and so does each later call: FFmpeg's work is left behind
/// (bounded.h).
class Decoder {
 public:
  /// Opens a path or URL (a URL contains "://"). Throws Error: "cannot open 'x': ...", "'x' has no
  /// video stream (only audio)", "'x' is empty", "'x' is a directory", ...
  explicit Decoder(const std::string& path, const DecodeOptions& options = {});
  /// Reads a whole file from memory, which must outlive the decoder. `name` is for messages.
  Decoder(std::string_view bytes, const std::string& name, const DecodeOptions& options = {});
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  const StreamInfo& info() const;
  /// Reads the next frame in presentation order. Returns false at the end. Corrupt packets are
  /// skipped and counted. Throws Error if no frame of the file decodes, or the file cannot be read
  /// (a lost connection).
  bool next(Frame& frame);
  /// Makes next() return the first frame with pts >= `pts`, exactly as decoding from the start
  /// gives it, with index 0. Decoding begins at an earlier key frame if that is safe, otherwise at
  /// the beginning.
  void seek(std::int64_t pts);
  /// Returns true if, as far as is known, seek() decodes from a key frame, and not from the
  /// beginning.
  bool seeks() const;
  /// Returns the number so far of packets that could not be decoded, frames decoded with damage,
  /// and packets missing from a truncated file. At the end, the number includes pictures that the
  /// codec dropped silently, such as pictures before the first key frame of a recording.
  std::int64_t corrupt() const;

 private:
  struct Body;
  struct Here;
  struct Apart;
  struct State;
  std::unique_ptr<Body> body_;
};

}  // namespace vfm::media
