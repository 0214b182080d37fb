// Converts an 8-bit 4:2:0 picture to RGB of another size, with the weights of
// lib/base/picture_scale.h: the CUDA version of lib/ops/picture/scale_picture.h, with the same
// bytes. The first kernel scales rows into lines, the second scales columns and converts colours.
//
// Pointers are to GPU memory and need only the alignment of an element. All functions return a
// cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for a size below 1 or more
// than 65535 rows.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Weights for `count` results: weight k of result i is weights[k * count + i].
struct PictureTaps {
  const std::int32_t* first = nullptr;
  const std::int32_t* weights = nullptr;
  int size = 0;
};

/// A plane, and its lines [rows, columns] to compute.
struct PicturePlane {
  const std::uint8_t* samples = nullptr;
  std::int64_t stride = 0;  ///< bytes from row to row
  int step = 1;             ///< bytes from sample to sample
  int rows = 0;
  PictureTaps taps;
  std::int16_t* lines = nullptr;
};

/// Y, U and V.
struct PictureRows {
  PicturePlane planes[3];
  int columns = 0;
};
int picture_rows(const PictureRows& rows, CUstream_st* stream);

/// Result (x, y) is the three bytes from rgb + x * step_x + y * step_y on.
struct PictureColours {
  const std::int16_t* lines[3] = {};  ///< Y, U, V, each `width` wide
  PictureTaps luma, chroma;           ///< for `height` results
  int width = 0, height = 0;
  std::int32_t luma_offset = 0, luma_gain = 0, red_v = 0, green_u = 0, green_v = 0, blue_u = 0;
  std::uint8_t* rgb = nullptr;
  std::int64_t step_x = 0, step_y = 0;
};
int picture_colours(const PictureColours& colours, CUstream_st* stream);

/// pixels[i] = bytes[i] / 127.5 - 1.
int picture_pixels(const std::uint8_t* bytes, float* pixels, std::int64_t count,
                   CUstream_st* stream);

}  // namespace vfm::kernels
