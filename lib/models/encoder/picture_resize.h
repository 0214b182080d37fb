// Resizes pictures with 8 bits per channel, with the bits of Pillow's Image.resize(), with which
// encoders of pictures were trained.
//
// A pixel of the result is a weighted mean of the pixels under a filter around its place. When the
// picture shrinks, the filter is wider by the same factor ("antialias"). The filter runs along
// rows, then along columns, with 8 bits in between. Weights are whole numbers of 2^-22, so neither
// the order of the sums nor the processor changes a bit. Pictures more than 100 times as high as
// wide that become lower are filtered along columns first. Pillow does the same up to 12.3. Since
// 13 it filters along columns first wherever that is less work, so pixels of such shapes differ by
// a rounding.
// Pure. Thread-safety: any thread.
// Source: Pillow, src/libImaging/Resample.c, for the places of rounding; Keys, "Cubic convolution
// interpolation for digital image processing" (1981), for the cubic with a = -1/2.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vfm::models {

/// Packed RGB, row-major: pixel (x, y) at 3 * (y * width + x). Upright, sRGB, full range.
struct PictureView {
  int width = 0, height = 0;
  std::span<const std::uint8_t> rgb;
};

/// The filter, by Pillow's numbers.
enum class Resample { lanczos = 1, bilinear = 2, bicubic = 3 };

/// A rectangle of pixels inside a picture.
struct PictureWindow {
  std::int64_t left = 0, top = 0;
  int width = 0, height = 0;
};

/// Resizes `picture` to `width` x `height` and returns the pixels in `window`, packed RGB. No other
/// pixels are computed, so what a centre crop discards costs no memory, whatever the picture's
/// shape. Throws Error for an empty picture, one with the wrong number of bytes for its size, or a
/// window outside the result.
std::vector<std::uint8_t> resize_picture(const PictureView& picture, std::int64_t width,
                                         std::int64_t height, Resample resample,
                                         const PictureWindow& window);

}  // namespace vfm::models
