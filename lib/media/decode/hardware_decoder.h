// Inside lib/media only: the interface of hardware that decodes for a Decoder (hardware.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "media/decode/card_picture.h"
#include "media/libav.h"
#include "share/engine_sessions.h"

namespace vfm::media {

/// Thread-safety: const members from any thread.
class HardwareDecoder : public std::enable_shared_from_this<HardwareDecoder> {
 public:
  virtual ~HardwareDecoder() = default;
  /// Returns the sessions that decoders take, or null if decoders need no sessions.
  virtual share::EngineSessions* sessions() const { return nullptr; }
  /// If sessions() is not null, returns the bytes of GPU memory that a stream needs, or 0 if the
  /// GPU cannot decode the stream.
  virtual std::int64_t session_bytes(const AVCodecContext&) const { return 0; }
  /// Prepares a codec, with the stream's parameters set, before it is opened. Returns true if the
  /// codec will decode on the hardware (on GPU `gpu` if sessions() is not null). If it returns
  /// false, the codec is unchanged.
  virtual bool attach(AVCodecContext& codec, int gpu) const = 0;
  /// Converts a picture of an attached codec to the software decoder's form, with all properties.
  /// Returns null if this fails; software then decodes the file.
  virtual AvFramePtr fetch(AvFramePtr picture) const = 0;
  /// Takes a picture of an attached codec and leaves it on the GPU. If the picture does not fit
  /// card_picture.h, returns null and leaves `picture` unchanged; then call fetch().
  virtual std::shared_ptr<const CardPicture> keep(AvFramePtr& picture) const;
};

/// Returns true if FrameImporter::import() takes 8-bit yuv420p samples of `av` unchanged.
bool is_plain_sdr(const AVFrame& av);
/// Returns the frame of a picture on a GPU for which is_plain_sdr() is true, without Frame::card.
Frame frame_on_card(const AVFrame& av);

/// Returns true if hardware.h lists a stream's kind, and this FFmpeg can give the stream to NVDEC.
bool nvdec_decodes_exactly(const AVCodecContext& codec);

/// Returns the most bytes of GPU memory that NVDEC needs for a stream that obeys a level of its
/// standard:
///   pictures * (width * height * 3/2 * bytes of a sample, both sides rounded up to 64) + 16 MiB.
/// The last term is for the driver. `pictures` is the sum of 2 for FFmpeg, 3 kept here, and the
/// most reference pictures for the stream's size at the highest level:
///   H.264  table A-1: 696320 macroblocks, at most 16 pictures; as many again that wait to be shown
///          (FFmpeg counts them separately)
///   HEVC   A.4.2: 6 of 35651584 samples, up to 16 of a quarter of that or less; the next picture
///   VP9    8
std::int64_t nvdec_session_bytes(const AVCodecContext& codec);

/// Converts a picture in system memory from NV12 or P010 to yuv420p or yuv420p10. Also crops left
/// and top, which FFmpeg does not do for hardware. Returns null for other formats and odd crops.
AvFramePtr to_planar(const AVFrame& picture);

}  // namespace vfm::media
