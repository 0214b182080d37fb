// Pictures of 8 bits a channel in another size, with the bits that Pillow's Image.resize() gives:
// what encoders of pictures were trained on and are used with.
//
// A pixel of the result is a weighted mean of the pixels under a filter around its place, which is
// as wide as the filter, or when the picture shrinks, as many times wider ("antialias"). First
// along rows, then along columns, with 8 bits between. Weights are whole numbers of 2^-22, so no
// order of the sums and no processor changes a bit. Pictures over 100 times as high as wide that
// become lower go along columns first. So does Pillow up to 12.3; since 13 it goes along columns
// first wherever that is less work, and pixels of such shapes differ by a rounding.
// Pure. Thread-safety: any thread.
// Source: Pillow, src/libImaging/Resample.c, for what is rounded where; Keys, "Cubic convolution
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

/// Some of the pixels of a picture, which lie in it.
struct PictureWindow {
  std::int64_t left = 0, top = 0;
  int width = 0, height = 0;
};

/// Those pixels of `picture` in the size `width` x `height`, packed RGB. No others are made, so
/// what a centre crop throws away costs no memory, whatever the picture's shape. Throws Error for
/// an empty picture, one whose bytes are not its size, or a window outside the result.
std::vector<std::uint8_t> resize_picture(const PictureView& picture, std::int64_t width,
                                         std::int64_t height, Resample resample,
                                         const PictureWindow& window);

}  // namespace vfm::models
