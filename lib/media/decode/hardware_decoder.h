// Inside lib/media only: the interface of hardware that decodes for a Decoder (hardware.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "media/decode/gpu_picture.h"
#include "media/libav.h"
#include "share/engine_sessions.h"

namespace vfm::media {

/// Thread-safety: any thread may use const members.
class HardwareDecoder : public std::enable_shared_from_this<HardwareDecoder> {
 public:
  virtual ~HardwareDecoder() = default;
  /// Returns the sessions that decoders take, or null if decoders need no sessions.
  virtual share::EngineSessions* sessions() const { return nullptr; }
  /// Returns how many bytes of GPU memory a stream needs, or 0 if the GPU cannot decode the stream.
  /// Decoders call session_bytes() only if sessions() is not null.
  virtual std::int64_t session_bytes(const AVCodecContext&) const { return 0; }
  /// Prepares a codec that has the parameters of the stream and is not yet opened. Returns true if
  /// the codec will decode on the hardware. If attach() returns false, the codec is unchanged. If
  /// sessions() is not null, `gpu` is the GPU that decodes.
  virtual bool attach(AVCodecContext& codec, int gpu) const = 0;
  /// Converts a picture of an attached codec to the format of the software decoder, with all
  /// properties. Returns null if this fails. Software must then decode the file.
  virtual AvFramePtr fetch(AvFramePtr picture) const = 0;
  /// Takes over a picture of an attached codec. The picture stays on the GPU. If the format is not
  /// the format of gpu_picture.h, returns null and leaves `picture` unchanged. The caller must
  /// then call fetch().
  virtual std::shared_ptr<const GpuPicture> keep(AvFramePtr& picture) const;
};

/// Returns true for 8-bit yuv420p pictures that FrameImporter::import() does not convert.
bool is_plain_sdr(const AVFrame& av);
/// Returns the Frame of a GPU picture, without Frame::gpu. is_plain_sdr() must be true for `av`.
Frame frame_on_gpu(const AVFrame& av);

/// Returns true if hardware.h lists the kind of stream, and this FFmpeg supports it with NVDEC.
bool nvdec_decodes_exactly(const AVCodecContext& codec);

/// Returns an upper bound of the GPU memory in bytes that NVDEC needs for a valid stream:
///   pictures * width * height * 3/2 * bytes of a sample + 16 MiB for the driver.
/// Width and height are rounded up to multiples of 64. `pictures` is the sum of 2 for FFmpeg, 3 for
/// this library, and the highest number of reference pictures for this size at the highest level:
///   H.264  table A-1: 696320 macroblocks, at most 16 pictures. The number is doubled, since FFmpeg
///          separately counts pictures that wait to be shown.
///   HEVC   A.4.2: 6 pictures of 35651584 samples, or more pictures if they are smaller, up to 16
///          pictures of a quarter of this size. The next picture is added.
///   VP9    8 pictures.
std::int64_t nvdec_session_bytes(const AVCodecContext& codec);

/// Converts a picture in system memory from NV12 or P010 to yuv420p or yuv420p10, and applies the
/// crop at the left and top. Returns null for other formats and odd crops.
AvFramePtr to_planar(const AVFrame& picture);

}  // namespace vfm::media
