// Decoding a video file: the right stream, every frame, in presentation order, with exact time.
//
// Elsewhere: the use of frames (curate/), the choice of spans (tools, curate/).
// Thread-safety: one thread at a time; different decoders are independent.
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

/// The facts of the chosen stream from container and codec.
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
  double start = 0;         ///< the container's begin: the earliest first time of its streams, in
                            ///< FFmpeg's seconds; 0 if unknown
  std::int64_t frames = 0;  ///< by the container; 0 if unknown
  bool image = false;       ///< a still picture file: one frame
  bool interlaced = false;  ///< by the container; frames have their own flag
  /// H.273's numbers and the bits of a sample, as coded: HDR is 16 or 18; its frames are SDR,
  /// except with DecodeOptions::keep_hdr.
  int transfer = 2, primaries = 2, bit_depth = 8;
  bool is_hdr() const { return media::is_hdr(transfer); }
  bool is_wide_sdr() const { return media::is_wide_sdr(transfer, primaries); }
  bool has_audio = false;   ///< also if the file does not name its codec
  std::string audio_codec;  ///< of the audio stream a player would choose
};

/// The use of frames. With --isolate (isolated.h) frames that are not kept may stay in memory that
/// the decoding process can change at any time.
enum class FrameUse {
  any,
  /// Each is read briefly, by code that takes bytes as mere numbers, even if they change while it
  /// reads: Scaler. Ignored with keep_hdr.
  glance,
  /// The same, but only the rows of cells are read (cell_rows.h): curate::sample_picture(). Other
  /// rows may hold anything.
  cells,
};

struct DecodeOptions {
  int stream = -1;  ///< container index; -1: the one a player would choose (never cover art)
  int threads = 1;  ///< decoder threads; the frames do not depend on it
  bool keyframes_only = false;
  bool deinterlace = true;  ///< makes one whole picture of an interlaced frame
  bool keep_hdr = false;    ///< HDR frames are yuv420p10, in their own colours
  FrameUse use = FrameUse::any;
  /// From choose_hardware() (hardware.h): decodes only what it decodes exactly, and never changes a
  /// frame, a time or corrupt(), except as hardware.h says. Null: software.
  const HardwareDecoder* hardware = nullptr;
  /// With `hardware` that has sessions: whether to wait for one. False when decoding for a thread
  /// that may itself have one, and waits.
  bool waits_for_session = true;
  /// Leaves frames on the GPU where possible: they have Frame::card. Others come as usual.
  bool on_card = false;
  PictureMemory* memory = nullptr;  ///< for lib/media only: memory for pictures; null: FFmpeg's
};

/// Frames carry their stored size, so a stream may change resolution. Samples that are not 8 bits
/// or not of a PixelLayout are converted to the nearest layout, bit-exactly; transparent pixels are
/// laid over black. HDR (PQ, HLG) is tone-mapped to BT.709, and BT.2020's colours in SDR become
/// BT.709's.
///
/// Time: pts is the container's, edit lists honoured. A frame without pts, or with one that does
/// not rise, follows the frame before by that frame's duration. duration is the gap to the next
/// frame; for the last one by the container, else the gap before it, else 1/frame_rate.
///
/// Still pictures (jpeg, png, webp, bmp, tiff, a GIF of one picture...) are videos of one frame.
/// Honours base/stop.h: any call may throw Stopped. A call without progress for
/// input_limits().timeout throws Error{Cause::timeout}, and so does each later call: FFmpeg's work
/// is left behind (bounded.h).
class Decoder {
 public:
  /// Opens a path or URL ("://" makes a URL). Throws Error: "cannot open 'x': ...", "'x' has no
  /// video stream (only audio)", "'x' is empty", "'x' is a directory", ...
  explicit Decoder(const std::string& path, const DecodeOptions& options = {});
  /// Reads a whole file from memory, which must outlive the decoder. `name` is for messages.
  Decoder(std::string_view bytes, const std::string& name, const DecodeOptions& options = {});
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  const StreamInfo& info() const;
  /// The next frame in presentation order; false at the end. A corrupt packet is skipped and
  /// counted, decoding goes on after it. Throws Error when the file has no frame that decodes, or
  /// cannot be read (a lost connection).
  bool next(Frame& frame);
  /// Next frame returned is the first with pts >= `pts`, the same as decoding from the start would
  /// give (starts at a key frame before it; where that is not safe, at the beginning). Its index is
  /// 0.
  void seek(std::int64_t pts);
  /// True if seek() begins at a key frame, as far as known, and not at the beginning.
  bool seeks() const;
  /// Packets that could not be decoded, frames decoded with damage, and packets missing from a
  /// truncated file, so far. At the end also pictures that the codec dropped without a word, such
  /// as those before the first key frame of a recording.
  std::int64_t corrupt() const;

 private:
  struct Body;
  struct Here;
  struct Apart;
  struct State;
  std::unique_ptr<Body> body_;
};

}  // namespace vfm::media
