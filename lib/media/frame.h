// A decoded picture as plain planes. lib/media gives it to lib/curate, which does not use FFmpeg.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace vfm::media {

/// The layout of the planes. Decoding converts all other formats to one of these layouts.
enum class PixelLayout {
  yuv420,     ///< planes Y (w x h), U and V (ceil(w/2) x ceil(h/2)), 8 bits
  yuv422,     ///< U and V (ceil(w/2) x h)
  yuv444,     ///< U and V (w x h)
  gray,       ///< Y only
  rgb24,      ///< one packed plane, R G B
  yuv420p10,  ///< as yuv420, 10 bits in two bytes: HDR, only with DecodeOptions::keep_hdr
};

/// The meaning of sample values: code points of ITU-T H.273, as in H.264, HEVC, AV1, mp4 and
/// FFmpeg. 2 is "unspecified"; resolve_matrix() then chooses a matrix as players do.
struct Color {
  std::uint8_t primaries = 2;
  std::uint8_t transfer = 2;
  std::uint8_t matrix = 2;  ///< 1 BT.709, 5 and 6 BT.601, 9 BT.2020
  friend bool operator==(const Color&, const Color&) = default;
};

/// Returns true for the HDR transfer functions 16 (PQ) and 18 (HLG).
inline bool is_hdr(int transfer) {
  return transfer == 16 || transfer == 18;
}
/// Returns true for SDR with BT.2020's primaries.
inline bool is_wide_sdr(int transfer, int primaries) {
  return primaries == 9 && (transfer == 1 || transfer == 6 || transfer == 14 || transfer == 15);
}

/// A source's HDR metadata, in the units of HEVC and mp4; all zero if the source has none.
struct HdrMetadata {
  /// The mastering screen (SMPTE ST 2086): x and y of red, green, blue and white in units of
  /// 0.00002; luminance in units of 0.0001 cd/m2.
  std::array<std::uint16_t, 8> screen{};
  std::uint32_t max_luminance = 0, min_luminance = 0;
  /// The brightest pixel (MaxCLL), and the brightest frame's mean (MaxFALL), in cd/m2 (CTA-861.3).
  std::uint16_t max_light = 0, max_frame_light = 0;

  bool has_screen() const { return screen[6] > 0 && max_luminance > 0; }
  bool has_light() const { return max_light > 0 || max_frame_light > 0; }
  friend bool operator==(const HdrMetadata&, const HdrMetadata&) = default;
};

/// Returns FFmpeg's name of a number of H.273, such as "bt709". Returns "unknown" for 2 and for
/// numbers without a name.
std::string transfer_name(int transfer);
std::string primaries_name(int primaries);

class CardPicture;  // card_picture.h

/// A frame. `owner` keeps the planes' memory alive (such as a decoder's buffer), so a Frame is
/// cheap to copy and safe to keep.
///
/// Scaler and Encoder read up to 64 bytes past the end of planes. Frames from Decoder,
/// make_frame(), copy_frame() and rotate_frame() have these bytes. Copy a frame over other memory
/// with copy_frame() first.
struct Frame {
  PixelLayout layout = PixelLayout::yuv420;
  int width = 0, height = 0;          ///< as stored, before rotation and pixel aspect
  const std::uint8_t* plane[3] = {};  ///< first byte of each plane
  int stride[3] = {};                 ///< bytes from row to row, may exceed the width
  bool full_range = false;            ///< luma 0..255 rather than 16..235
  Color color;
  HdrMetadata hdr;                   ///< yuv420p10: the frame's, or the container's if it has none
  std::uint8_t chroma_location = 0;  ///< yuv420p10: AVChromaLocation; 0 if unknown
  std::int64_t pts = 0;              ///< presentation time in the stream's time base
  std::int64_t duration = 0;         ///< time to the next frame, in the time base; 0 if unknown
  std::int64_t index = 0;            ///< 0, 1, 2... in presentation order
  bool key = false;
  bool interlaced = false;  ///< the source says that the frame has two fields
  bool top_first = false;   ///< the field with the first line came first
  std::shared_ptr<const void> owner;
  /// If set, the picture is in a GPU's memory and there are no planes; only with
  /// DecodeOptions::on_card, and yuv420.
  std::shared_ptr<const CardPicture> card;
};

/// Returns the number of planes: 1 for gray and rgb24, otherwise 3.
int plane_count(PixelLayout layout);
/// Return whether chroma has half as many columns, or rows, as luma.
bool half_columns(PixelLayout layout);
bool half_rows(PixelLayout layout);
/// Return the bytes in a row of plane `p`, without padding, and the plane's number of rows.
int plane_row_bytes(const Frame& frame, int p);
int plane_rows(const Frame& frame, int p);

/// Returns a new frame whose samples are zero. Its strides are multiples of 64.
Frame make_frame(PixelLayout layout, int width, int height);
/// Returns plane `p`, for writing, of a new frame that is not shared yet.
inline std::uint8_t* writable(Frame& frame, int p) {
  return const_cast<std::uint8_t*>(frame.plane[p]);
}

/// Copies all members from `from` to `to`, except layout, size and planes.
void copy_facts(const Frame& from, Frame& to);

/// Returns a copy with its own memory. The copy occupies none of a decoder's few buffers.
Frame copy_frame(const Frame& frame);

/// Flips the frame left to right if `mirror`, then turns it clockwise by 0, 90, 180 or 270 degrees,
/// as StreamInfo says. Samples move unchanged. (A quarter turn of yuv422 gives yuv444 with each
/// chroma sample twice.) Returns `frame` itself for 0 degrees without mirror. Throws Error for
/// another angle.
Frame rotate_frame(const Frame& frame, int degrees, bool mirror = false);

/// Returns the matrix to decode YUV with: 1, 5, 6, 9, 10 or 14 (ICtCp). It is color.matrix if
/// specified. Otherwise, it is BT.709 for limited range from 1280 wide or 577 high on, and BT.601
/// for full range (JPEG) or smaller pictures.
int resolve_matrix(const Frame& frame);

}  // namespace vfm::media
