// Sizes of pictures and parts of them for which a GPU's pictures are compared with the CPU's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "media/colour/scaler.h"
#include "pack/gpu_canvas.h"
#include "support/gpu_decoder.h"
#include "tensor/device.h"

namespace vfm::test {

struct GpuSize {
  int width, height, to_width, to_height;
  media::ScaleOptions part = {};  ///< but the size
  bool full_range = false;
  int matrix = 2;
};

/// Filters of one line, two and more; parts, turns and mirrors; odd sizes; enlarged.
inline const std::vector<GpuSize> kGpuSizes = {
    {320, 180, 112, 64},
    {96, 64, 96, 64},
    {64, 48, 32, 24, {}, true},
    {131, 75, 131, 75, {}, false, 9},
    {97, 63, 48, 40, {}, true, 1},
    {60, 44, 120, 88},
    {60, 44, 60, 88, {}, false, 5},
    {45, 51, 40, 64, {}, true},
    {128, 72, 64, 64, {.crop_x = 0.2, .crop_y = 0, .crop_width = 0.5625, .crop_height = 1}},
    {128, 72, 48, 80, {.rotation = 90, .mirror = true}},
    {128, 72, 64, 32, {.rotation = 180}},
    {100,
     76,
     40,
     56,
     {.rotation = 270, .crop_x = 0.1, .crop_y = 0.3, .crop_width = 0.7, .crop_height = 0.6}},
};

/// A frame in which no two neighbours are equal.
inline media::Frame busy_frame(const GpuSize& size) {
  media::Frame frame = media::make_frame(media::PixelLayout::yuv420, size.width, size.height);
  frame.full_range = size.full_range;
  frame.color.matrix = static_cast<std::uint8_t>(size.matrix);
  for (int p = 0; p < 3; ++p)
    for (int y = 0; y < media::plane_rows(frame, p); ++y)
      for (int x = 0; x < media::plane_row_bytes(frame, p); ++x)
        media::writable(frame, p)[std::ptrdiff_t{y} * frame.stride[p] + x] =
            static_cast<std::uint8_t>(x * x * 13 + y * 101 + x * y * 7 + p * 59);
  return frame;
}

/// Draws such a frame on a canvas of `scales`, whose device has `memory`, and compares.
inline void check_gpu_size(pack::GpuScales& scales, const GpuSize& size, const GpuMemory& memory) {
  media::Frame frame = busy_frame(size);
  media::ScaleOptions options = size.part;
  options.width = size.to_width, options.height = size.to_height;
  media::RgbImage expected;
  media::Scaler().to_rgb(frame, options, expected);
  pack::GpuCanvas canvas(scales), copied(scales);
  canvas.begin(2, expected.height, expected.width);
  copied.begin(2, expected.height, expected.width);
  frame.gpu = std::make_shared<PlayedPicture>(frame, memory);
  for (const bool mirror : {false, true}) {
    REQUIRE(canvas.draw(frame, options, mirror, mirror));
    copied.put(expected, mirror, mirror);
  }
  const auto turn = take_turn(scales.device());
  const Tensor made = canvas.pictures().to(Device::cpu);
  const Tensor put = copied.pictures().to(Device::cpu);
  CHECK(std::memcmp(made.raw(), expected.pixels.data(), expected.pixels.size()) == 0);
  CHECK(std::memcmp(made.raw(), put.raw(), made.bytes()) == 0);
  // The second picture is the first from right to left.
  const auto *const first = made.data<std::uint8_t>(), *const second = first + made.bytes() / 2;
  const int last = 3 * (expected.width - 1);
  CHECK(std::memcmp(first + last, second, 3) == 0);
}

}  // namespace vfm::test
