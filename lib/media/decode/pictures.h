// Inside lib/media only: finds how many pictures a decoder drops silently.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "media/libav.h"

namespace vfm::media {

/// Compares the numbers of packets and pictures, from a stream's beginning to its end. Counts only
/// for codecs that may drop pictures silently and have one picture in a packet: H.264 (not coded in
/// fields), HEVC, MPEG-1, 2 and 4, H.263 and its relatives, WMV, VP3 to VP9, Theora, AV1.
class PictureCount {
 public:
  PictureCount() = default;
  explicit PictureCount(const AVCodecParameters& parameters);
  /// Counts a packet that the decoder took, or (`failed`) that is already counted as corrupt.
  void packet(const AVPacket& packet, bool failed);
  void failure() { ++failed_; }  ///< a picture was lost with an error
  void picture(const AVFrame& frame);
  /// Returns the number of pictures that were in packets, did not come out, and were not reported.
  std::int64_t lost() const;

 private:
  AVCodecID codec_ = AV_CODEC_ID_NONE;
  int length_size_ = 0;  // of NAL units in mp4's form; 0: start codes
  bool fields_ = false;
  std::int64_t expected_ = 0, shown_ = 0, failed_ = 0;
};

}  // namespace vfm::media
