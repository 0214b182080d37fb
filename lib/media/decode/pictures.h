// Inside lib/media only: counts packets with pictures to be shown, to find pictures that a decoder
// drops silently.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "media/libav.h"

namespace vfm::media {

/// Compares packets with pictures, from a stream's beginning to its end. Only codecs that may drop
/// pictures silently and have one picture in a packet are counted: H.264 (not coded in fields),
/// HEVC, MPEG-1, 2 and 4, H.263 and its relatives, WMV, VP3 to VP9, Theora, AV1.
class PictureCount {
 public:
  PictureCount() = default;
  explicit PictureCount(const AVCodecParameters& parameters);
  /// Notes a packet that the decoder took, or (`failed`) one already counted as corrupt.
  void packet(const AVPacket& packet, bool failed);
  void failure() { ++failed_; }  ///< a picture was lost with an error
  void picture(const AVFrame& frame);
  /// Pictures that were in the packets, did not come out, and were not reported.
  std::int64_t lost() const;

 private:
  AVCodecID codec_ = AV_CODEC_ID_NONE;
  int length_size_ = 0;  // of NAL units in mp4's form; 0: start codes
  bool fields_ = false;
  std::int64_t expected_ = 0, shown_ = 0, failed_ = 0;
};

}  // namespace vfm::media
