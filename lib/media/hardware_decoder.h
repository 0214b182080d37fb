// Inside lib/media only: what a Decoder needs of hardware that decodes for it (hardware.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/engine_sessions.h"
#include "media/card_picture.h"
#include "media/libav.h"

namespace vfm::media {

/// Thread-safety: const members from any thread.
class HardwareDecoder : public std::enable_shared_from_this<HardwareDecoder> {
 public:
  virtual ~HardwareDecoder() = default;
  /// Where decoders take sessions; null: they need none.
  virtual EngineSessions* sessions() const { return nullptr; }
  /// With sessions(): what one for such a stream takes of a GPU; 0: it is not decoded there.
  virtual std::int64_t session_bytes(const AVCodecContext&) const { return 0; }
  /// Called before the codec is opened, with the stream's parameters in it. True: it will decode on
  /// the hardware, with sessions() on that `gpu`. False: it is left as it was.
  virtual bool attach(AVCodecContext& codec, int gpu) const = 0;
  /// A picture of such a codec as the software decoder gives it, all properties included. Null if
  /// it cannot be had: then the file is software's.
  virtual AvFramePtr fetch(AvFramePtr picture) const = 0;
  /// Such a picture where it is, which is taken from `picture`. Null, and it is left, where it
  /// cannot be used as card_picture.h says: then fetch() it.
  virtual std::shared_ptr<const CardPicture> keep(AvFramePtr& picture) const;
};

/// Whether FrameImporter::import() would take samples of yuv420p of 8 bits as they are; and what
/// such a picture says of itself that stays on a GPU: the frame but for Frame::card.
bool is_plain_sdr(const AVFrame& av);
Frame frame_on_card(const AVFrame& av);

/// Whether a stream is of the kinds that hardware.h names, and this FFmpeg can hand it to NVDEC.
bool nvdec_decodes_exactly(const AVCodecContext& codec);

/// What NVDEC takes of a GPU's memory for such a stream, at most, of one of a level of its
/// standard:
///   pictures * (width * height * 3/2 * bytes of a sample, both sides rounded up to 64) + 16 MiB,
/// the last for what the driver has besides. Pictures are those that the stream may refer to, at
/// its size and the highest level (H.264 table A-1: 696320 macroblocks, at most 16, and as many
/// again that wait to be shown, which FFmpeg counts apart; HEVC A.4.2: 6 of 35651584 samples, 16
/// from a quarter of that on, and the next; VP9: 8), FFmpeg's 2 and the 3 that are kept here.
std::int64_t nvdec_session_bytes(const AVCodecContext& codec);

/// A picture in NV12 or P010, in the system's memory, as yuv420p or yuv420p10; cropped at the left
/// and the top, as FFmpeg leaves undone for hardware. Null for other formats and odd crops.
AvFramePtr to_planar(const AVFrame& picture);

}  // namespace vfm::media
