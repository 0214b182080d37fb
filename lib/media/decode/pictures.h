// Inside lib/media only: counts the pictures that a decoder drops without an error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "media/libav.h"

namespace vfm::media {

/// A counter of the packets and pictures of a whole stream. Counts only for codecs that may drop
/// pictures without an error and have one picture in each packet: H.264 (frames only), HEVC,
/// MPEG-1, 2 and 4, H.263 and its variants, WMV, VP3 to VP9, Theora, AV1.
class PictureCount {
 public:
  PictureCount() = default;
  explicit PictureCount(const AVCodecParameters& parameters);
  /// Counts a packet that the decoder took. `failed` means that the packet is already counted as
  /// corrupt.
  void packet(const AVPacket& packet, bool failed);
  void failure() { ++failed_; }  ///< Counts a picture that was lost with an error.
  void picture(const AVFrame& frame);
  /// Returns the number of pictures that the decoder neither returned nor reported as lost.
  std::int64_t lost() const;

 private:
  AVCodecID codec_ = AV_CODEC_ID_NONE;
  int length_size_ = 0;  // Bytes of the length of a NAL unit; 0 for start codes.
  bool fields_ = false;
  std::int64_t expected_ = 0, shown_ = 0, failed_ = 0;
};

}  // namespace vfm::media
