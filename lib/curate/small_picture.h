// Reduces a frame to 64 x 64 luma cells and 32 x 32 chroma cells, the input of shot detection and
// of most measures.
//
// The frame is stretched to a square. A cell is the mean of at most 16 of its pixels, so a frame
// takes about 15 microseconds at any size. Pixels are read as stored, before rotation and pixel
// aspect.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "media/colour/cell_rows.h"
#include "media/frame.h"

namespace vfm::curate {

inline constexpr int kLumaSide = media::kLumaCellRows;
inline constexpr int kChromaSide = media::kChromaCellRows;
inline constexpr int kLumaCells = kLumaSide * kLumaSide;
inline constexpr int kChromaCells = kChromaSide * kChromaSide;

/// A picture of row-major cells in full range. Luma is 0 (black) to 255 (white), and chroma 128 is
/// grey. The colours are BT.601 or BT.709, as in the source.
struct SmallPicture {
  alignas(32) std::array<std::uint8_t, kLumaCells> y;
  alignas(32) std::array<std::uint8_t, kChromaCells> u, v;
};

/// Writes the reduced frame to `out`. The frame may have any layout and size.
void sample_picture(const media::Frame& frame, SmallPicture& out);

/// Writes the means of 2 x 2 luma cells to `out`.
void halve_luma(const SmallPicture& picture, std::array<std::uint8_t, kChromaCells>& out);

/// The mean and standard deviation of the luma cells, and the fraction of cells darker than the
/// argument `dark`.
struct LumaStatistics {
  float mean = 0, deviation = 0, dark = 0;
};
LumaStatistics luma_statistics(const SmallPicture& picture, int dark = 24);

/// The part of a picture without black bars (letterbox, pillarbox), in luma cells. All edges are
/// even numbers. If all cells are black, the area is the whole picture.
struct ActiveArea {
  int left = 0, top = 0, right = kLumaSide, bottom = kLumaSide;  // column `right` and row `bottom`
                                                                 // are outside the area

  friend bool operator==(const ActiveArea&, const ActiveArea&) = default;
};
ActiveArea active_area(const SmallPicture& picture);
/// Returns the smallest area that contains `a` and `b`.
ActiveArea join(const ActiveArea& a, const ActiveArea& b);

/// Returns the square root of the sum of the variances of luma and both chroma planes within
/// `area`.
float colour_deviation(const SmallPicture& picture, const ActiveArea& area = {});

}  // namespace vfm::curate
