// The weights and factors by which an 8-bit 4:2:0 picture becomes RGB of another size.
// media/colour/scale_rule.h computes them. ops/picture/ uses them, also on a GPU, and gives the
// same bytes as media/colour/scaler.h.
//
// All numbers are 32-bit integers, as in swscale (libswscale/output.c and swscale.c):
//
//   rows      line[x] = min(sum of weights * samples >> 7, 32767), 15 bits for 8-bit samples
//   columns   y, u, v = sums of weights * lines, in 17 bits; u and v are signed; the rounding
//             depends on the number of lines
//   colour    y = (y - luma_offset) * luma_gain + 2^21
//             red = y + v * red_v, green = y + u * green_u + v * green_v, blue = y + u * blue_u;
//             each is clamped to 30 bits, and its highest 8 bits are the result
// Thread-safety: plain data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace vfm {

/// The weights in one direction. Result i of n is the sum over k < size of weights[k * n + i] *
/// input[first[i] + k]. Each index first[i] + k is in the input.
struct PictureTaps {
  int size = 0;
  std::vector<std::int32_t> first, weights;
};

/// All weights and factors of a picture. The weights of a row add up to about 2^14, and the weights
/// of a column to about 2^12. In the picture, chroma has half the columns and rows of luma, rounded
/// up. In the result, chroma has as many columns and rows as luma.
struct PictureScale {
  int width = 0, height = 0, to_width = 0, to_height = 0;
  PictureTaps luma_x, chroma_x, luma_y, chroma_y;
  /// Names in swscale: y_offset, y_coeff, v2r_coeff, u2g_coeff, v2g_coeff, u2b_coeff.
  std::int32_t luma_offset = 0, luma_gain = 0, red_v = 0, green_u = 0, green_v = 0, blue_u = 0;
};

}  // namespace vfm
