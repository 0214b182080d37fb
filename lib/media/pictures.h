// Inside lib/media only: which packets hold a picture that is to be shown, so that pictures which a
// decoder drops without a word can be counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "media/libav.h"

namespace vfm::media {

/// Packets against pictures, from the beginning of a stream to its end. Only codecs that may drop
/// pictures silently and have one picture in a packet are counted: H.264 (not coded in fields),
/// HEVC, MPEG-1, 2 and 4, H.263 and its relatives, WMV, VP3 to VP9, Theora, AV1.
class PictureCount {
 public:
  PictureCount() = default;
  explicit PictureCount(const AVCodecParameters& parameters);
  /// A packet that the decoder took, or (`failed`) one that is counted as corrupt already.
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
