// SPDX-License-Identifier: Apache-2.0
#include "media/decode/pictures.h"

#include <algorithm>
#include <cstddef>

namespace vfm::media {
namespace {

// FFmpeg's own limit for a packet of MPEG-4 that only repeats a picture.
constexpr int kMostForNothing = 19;

bool is_slice(AVCodecID codec, std::uint8_t first) {
  if (codec == AV_CODEC_ID_HEVC) return ((first >> 1) & 63) < 32;
  const int type = first & 31;
  return type == 1 || type == 2 || type == 5;
}

// In H.264 and HEVC, parameter sets alone are not a picture.
bool has_slice(AVCodecID codec, const std::uint8_t* data, std::size_t size, int length_size) {
  const auto prefix = static_cast<std::size_t>(length_size);
  for (std::size_t at = 0; prefix > 0 && at + prefix < size;) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < prefix; ++i)
      length = length << 8 | data[at + i];
    at += prefix;
    if (is_slice(codec, data[at])) return true;
    if (length > size - at) return false;
    at += length;
  }
  for (std::size_t at = 0; prefix == 0 && at + 3 < size; ++at)
    if (data[at] == 0 && data[at + 1] == 0 && data[at + 2] == 1 && is_slice(codec, data[at + 3]))
      return true;
  return false;
}

bool has_start_code(const std::uint8_t* data, std::size_t size, std::uint8_t code) {
  for (std::size_t at = 0; at + 3 < size; ++at)
    if (data[at] == 0 && data[at + 1] == 0 && data[at + 2] == 1 && data[at + 3] == code)
      return true;
  return false;
}

// VP9's uncompressed header: a marker of two bits, the profile, show_existing_frame, the type,
// show_frame.
bool vp9_shows(const std::uint8_t* data, std::size_t size) {
  if ((data[size - 1] & 0xe0) == 0xc0) return true;  // A superframe. Its last frame is shown.
  const int profile = (data[0] >> 5 & 1) | (data[0] >> 3 & 2);
  const int bit = profile == 3 ? 2 : 3;  // Of show_existing_frame.
  return (data[0] >> bit & 1) != 0 || (data[0] >> (bit - 2) & 1) != 0;
}

}  // namespace

PictureCount::PictureCount(const AVCodecParameters& parameters) : codec_(parameters.codec_id) {
  const std::uint8_t* extra = parameters.extradata;
  if (codec_ == AV_CODEC_ID_H264 && parameters.extradata_size > 6 && extra[0] == 1)
    length_size_ = (extra[4] & 3) + 1;
  if (codec_ == AV_CODEC_ID_HEVC && parameters.extradata_size > 22 &&
      (extra[0] || extra[1] || extra[2] > 1))
    length_size_ = (extra[21] & 3) + 1;
}

void PictureCount::packet(const AVPacket& packet, bool failed) {
  if (failed) ++failed_;
  const std::uint8_t* data = packet.data;
  const auto size = static_cast<std::size_t>(std::max(packet.size, 0));
  if (size == 0 || (packet.flags & AV_PKT_FLAG_DISCARD)) return;
  bool shows = false;
  switch (codec_) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC:
      shows = has_slice(codec_, data, size, length_size_);
      break;
    case AV_CODEC_ID_MPEG1VIDEO:
    case AV_CODEC_ID_MPEG2VIDEO:
      shows = has_start_code(data, size, 0);
      break;
    case AV_CODEC_ID_MPEG4:
    case AV_CODEC_ID_H263:
    case AV_CODEC_ID_FLV1:
    case AV_CODEC_ID_MSMPEG4V1:
    case AV_CODEC_ID_MSMPEG4V2:
    case AV_CODEC_ID_MSMPEG4V3:
    case AV_CODEC_ID_WMV1:
    case AV_CODEC_ID_WMV2:
    case AV_CODEC_ID_WMV3:
    case AV_CODEC_ID_VC1:
      shows = size > kMostForNothing;
      break;
    case AV_CODEC_ID_VP3:
    case AV_CODEC_ID_THEORA:
      shows = (data[0] & 0x80) == 0;  // Else a header.
      break;
    case AV_CODEC_ID_VP6:
    case AV_CODEC_ID_VP6F:
    case AV_CODEC_ID_AV1:
      shows = true;
      break;
    case AV_CODEC_ID_VP8:
      shows = (data[0] & 0x10) != 0;
      break;
    case AV_CODEC_ID_VP9:
      shows = vp9_shows(data, size);
      break;
    default:
      break;
  }
  expected_ += shows;
}

void PictureCount::picture(const AVFrame& frame) {
  ++shown_;
  fields_ = fields_ || frame.interlaced_frame;
}

std::int64_t PictureCount::lost() const {
  // Two packets of one field each may make one picture.
  const bool may_pair = codec_ == AV_CODEC_ID_H264 || codec_ == AV_CODEC_ID_MPEG2VIDEO;
  if (codec_ == AV_CODEC_ID_H264 && fields_) return 0;
  const std::int64_t lost = expected_ - shown_ - failed_;
  if (may_pair && lost * 2 >= expected_ - 2) return 0;
  return std::max<std::int64_t>(0, lost);
}

}  // namespace vfm::media
