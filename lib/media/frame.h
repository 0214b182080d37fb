// A decoded picture as planes of samples, without types of FFmpeg.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace vfm::media {

/// The arrangement of samples in planes.
enum class PixelLayout {
  yuv420,     ///< Planes Y (w x h), U and V (ceil(w/2) x ceil(h/2)) of 8 bits.
  yuv422,     ///< Planes Y (w x h), U and V (ceil(w/2) x h) of 8 bits.
  yuv444,     ///< Planes Y, U and V (each w x h) of 8 bits.
  gray,       ///< Plane Y of 8 bits.
  rgb24,      ///< One plane with bytes R, G and B for each pixel.
  yuv420p10,  ///< Planes of yuv420, with 10-bit samples in two bytes, for HDR.
};

/// The colour properties of a picture, as numbers of ITU-T H.273. The number 2 means "unspecified".
struct Color {
  std::uint8_t primaries = 2;
  std::uint8_t transfer = 2;
  std::uint8_t matrix = 2;  ///< 1 is BT.709, 5 and 6 are BT.601, 9 is BT.2020.
  friend bool operator==(const Color&, const Color&) = default;
};

/// Returns true for the HDR transfer functions 16 (PQ) and 18 (HLG).
inline bool is_hdr(int transfer) {
  return transfer == 16 || transfer == 18;
}
/// Returns true for SDR video with BT.2020's primaries.
inline bool is_wide_sdr(int transfer, int primaries) {
  return primaries == 9 && (transfer == 1 || transfer == 6 || transfer == 14 || transfer == 15);
}

/// HDR metadata in the units of HEVC and mp4. All members are zero if the source has no metadata.
struct HdrMetadata {
  /// The coordinates x and y of red, green, blue and white of the mastering screen (SMPTE ST 2086),
  /// in units of 0.00002.
  std::array<std::uint16_t, 8> screen{};
  /// The luminance of the mastering screen, in units of 0.0001 cd/m2.
  std::uint32_t max_luminance = 0, min_luminance = 0;
  /// The luminance of the brightest pixel (MaxCLL), and the highest mean luminance of a frame
  /// (MaxFALL), in cd/m2 (CTA-861.3).
  std::uint16_t max_light = 0, max_frame_light = 0;

  bool has_screen() const { return screen[6] > 0 && max_luminance > 0; }
  bool has_light() const { return max_light > 0 || max_frame_light > 0; }
  friend bool operator==(const HdrMetadata&, const HdrMetadata&) = default;
};

/// Return FFmpeg's name for a number of H.273, such as "bt709". Return "unknown" for 2 and for
/// numbers without a name.
std::string transfer_name(int transfer);
std::string primaries_name(int primaries);

class GpuPicture;  // gpu_picture.h

/// A picture of a video. Copies of a Frame share its planes, which exist until the last copy is
/// destroyed.
///
/// Scaler and VideoEncoder read up to 64 bytes past the end of a plane. Frames from Decoder,
/// make_frame(), copy_frame() and rotate_frame() have these bytes. Other frames must be copied with
/// copy_frame() first.
struct Frame {
  PixelLayout layout = PixelLayout::yuv420;
  int width = 0, height = 0;  ///< Size of the stored picture, before rotation and pixel aspect.
  const std::uint8_t* plane[3] = {};
  int stride[3] = {};       ///< Distance between rows in bytes.
  bool full_range = false;  ///< Set if luma ranges from 0 to 255 instead of from 16 to 235.
  Color color;
  HdrMetadata hdr;  ///< Metadata of a yuv420p10 frame, or of the container if the frame has none.
  std::uint8_t chroma_location = 0;  ///< AVChromaLocation of a yuv420p10 frame; 0 if unknown.
  std::int64_t pts = 0;              ///< Presentation time in the stream's time base.
  std::int64_t duration = 0;  ///< Time to the next frame in the stream's time base; 0 if unknown.
  std::int64_t index = 0;     ///< Number of the frame in presentation order, from 0.
  bool key = false;
  bool interlaced = false;  ///< Set if the source marks the frame as two fields.
  bool top_first = false;   ///< Set if the field with the top line is the earlier field.
  /// Owner of the memory of the planes.
  std::shared_ptr<const void> owner;
  /// Picture in GPU memory, or null. If `gpu` is set, the frame is yuv420 and has no planes.
  /// Decoder sets `gpu` only with DecodeOptions::on_gpu.
  std::shared_ptr<const GpuPicture> gpu;
};

/// Returns the number of planes: 1 for gray and rgb24, otherwise 3.
int plane_count(PixelLayout layout);
/// Return whether chroma planes have half the columns, or half the rows, of luma.
bool half_columns(PixelLayout layout);
bool half_rows(PixelLayout layout);
/// Return the number of bytes in a row of plane `p`, without padding, and the number of rows of
/// plane `p`.
int plane_row_bytes(const Frame& frame, int p);
int plane_rows(const Frame& frame, int p);

/// Returns a new frame. All samples are zero, and all strides are multiples of 64 bytes.
Frame make_frame(PixelLayout layout, int width, int height);
/// Returns plane `p` for writing. The frame must be new and not yet shared.
inline std::uint8_t* writable(Frame& frame, int p) {
  return const_cast<std::uint8_t*>(frame.plane[p]);
}

/// Copies all members from `from` to `to`, except layout, size and planes.
void copy_facts(const Frame& from, Frame& to);

/// Returns a copy whose planes have their own memory.
Frame copy_frame(const Frame& frame);

/// If `mirror` is true, flips the frame left to right. Then turns the frame clockwise by 0, 90, 180
/// or 270 degrees. A quarter turn converts yuv422 to yuv444, with each chroma sample twice. Returns
/// `frame` itself for 0 degrees without mirror. Throws Error for another angle.
Frame rotate_frame(const Frame& frame, int degrees, bool mirror = false);

/// Returns the H.273 number of the matrix for conversion to RGB: 1, 5, 6, 9, 10 or 14 (ICtCp). If
/// color.matrix is not specified, returns BT.709 for limited-range frames that are at least 1280
/// wide or 577 high, and BT.601 for all other frames.
int resolve_matrix(const Frame& frame);

}  // namespace vfm::media
