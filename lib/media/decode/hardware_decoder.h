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
  /// The sessions that decoders take; null: decoders need no sessions.
  virtual share::EngineSessions* sessions() const { return nullptr; }
  /// If sessions() is not null: bytes of GPU memory that a stream needs; 0: the GPU cannot decode
  /// it.
  virtual std::int64_t session_bytes(const AVCodecContext&) const { return 0; }
  /// Called before the codec is opened, with the stream's parameters set. True: the codec will
  /// decode on the hardware (on GPU `gpu` if there are sessions()). False: the codec is unchanged.
  virtual bool attach(AVCodecContext& codec, int gpu) const = 0;
  /// Converts a picture of an attached codec to the software decoder's form, with all properties.
  /// Null if this fails: then software decodes the file.
  virtual AvFramePtr fetch(AvFramePtr picture) const = 0;
  /// Takes a picture of an attached codec and leaves it on the GPU. Null, with `picture` unchanged,
  /// if the picture does not fit card_picture.h: then fetch() it.
  virtual std::shared_ptr<const CardPicture> keep(AvFramePtr& picture) const;
};

/// True if FrameImporter::import() takes 8-bit yuv420p samples of `av` unchanged.
bool is_plain_sdr(const AVFrame& av);
/// The frame of a picture on a GPU for which is_plain_sdr() is true, without Frame::card.
Frame frame_on_card(const AVFrame& av);

/// True if hardware.h lists a stream's kind, and this FFmpeg can give it to NVDEC.
bool nvdec_decodes_exactly(const AVCodecContext& codec);

/// Most bytes of GPU memory that NVDEC needs for a stream that obeys a level of its standard:
///   pictures * (width * height * 3/2 * bytes of a sample, both sides rounded up to 64) + 16 MiB.
/// The last term is for the driver. `pictures` is the sum of 2 for FFmpeg, 3 kept here, and the
/// most reference pictures for the stream's size at the highest level:
///   H.264  table A-1: 696320 macroblocks, at most 16 pictures; as many again that wait to be shown
///          (FFmpeg counts them separately)
///   HEVC   A.4.2: 6 of 35651584 samples, up to 16 of a quarter of that or less; the next picture
///   VP9    8
std::int64_t nvdec_session_bytes(const AVCodecContext& codec);

/// Converts a picture in system memory from NV12 or P010 to yuv420p or yuv420p10. Also crops left
/// and top, which FFmpeg does not do for hardware. Null for other formats and odd crops.
AvFramePtr to_planar(const AVFrame& picture);

}  // namespace vfm::media
