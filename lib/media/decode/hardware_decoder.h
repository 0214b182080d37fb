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
  /// The source of decoders' sessions; null: they need none.
  virtual share::EngineSessions* sessions() const { return nullptr; }
  /// With sessions(): bytes of a GPU for such a stream; 0: it is not decoded there.
  virtual std::int64_t session_bytes(const AVCodecContext&) const { return 0; }
  /// Called before the codec is opened, with the stream's parameters in it. True: it will decode on
  /// the hardware, with sessions() on that `gpu`. False: the codec is unchanged.
  virtual bool attach(AVCodecContext& codec, int gpu) const = 0;
  /// Converts a picture of such a codec to the software decoder's form, with all properties. Null
  /// if that fails: then software decodes the file.
  virtual AvFramePtr fetch(AvFramePtr picture) const = 0;
  /// Takes such a picture from `picture` and leaves it on the GPU. Null, with `picture` unchanged,
  /// if it does not fit card_picture.h: then fetch() it.
  virtual std::shared_ptr<const CardPicture> keep(AvFramePtr& picture) const;
};

/// Whether FrameImporter::import() takes 8-bit yuv420p samples unchanged; and the frame of such a
/// picture on a GPU, except Frame::card.
bool is_plain_sdr(const AVFrame& av);
Frame frame_on_card(const AVFrame& av);

/// Whether a stream is of the kinds that hardware.h names, and this FFmpeg can hand it to NVDEC.
bool nvdec_decodes_exactly(const AVCodecContext& codec);

/// Most bytes of GPU memory that NVDEC needs for such a stream, if it keeps a level of its
/// standard:
///   pictures * (width * height * 3/2 * bytes of a sample, both sides rounded up to 64) + 16 MiB,
/// the last term is for the driver. The pictures are the stream's reference pictures, at its size
/// and the highest level (H.264 table A-1: 696320 macroblocks, at most 16, and as many that wait to
/// be shown, which FFmpeg counts apart; HEVC A.4.2: 6 of 35651584 samples, up to 16 for a quarter
/// of that or less, and the next; VP9: 8), FFmpeg's 2, and 3 kept here.
std::int64_t nvdec_session_bytes(const AVCodecContext& codec);

/// A picture in NV12 or P010, in the system's memory, as yuv420p or yuv420p10; cropped at the left
/// and the top, as FFmpeg leaves undone for hardware. Null for other formats and odd crops.
AvFramePtr to_planar(const AVFrame& picture);

}  // namespace vfm::media
