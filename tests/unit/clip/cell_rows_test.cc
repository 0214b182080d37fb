// Of a frame whose rows of cells alone are known (media::FrameUse::cells), what finds shots sees
// all that it would see.
// SPDX-License-Identifier: Apache-2.0
#include "media/colour/cell_rows.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>

#include "curate/small_picture.h"
#include "media/isolate/isolated_pictures.h"

using vfm::curate::sample_picture;
using vfm::curate::SmallPicture;
using vfm::media::Frame;
using vfm::media::PixelLayout;

TEST_CASE("rows of cells alone give the same cells") {
  std::mt19937 draw(1);
  for (const PixelLayout layout : {PixelLayout::yuv420, PixelLayout::yuv422, PixelLayout::yuv444,
                                   PixelLayout::gray, PixelLayout::rgb24})
    for (const auto& [width, height] :
         {std::pair{1, 1}, {64, 48}, {97, 63}, {96, 127}, {640, 361}, {1920, 1080}}) {
      CAPTURE(static_cast<int>(layout), width, height);
      Frame frame = vfm::media::make_frame(layout, width, height);
      Frame rows = vfm::media::make_frame(layout, width, height);
      for (int p = 0; p < vfm::media::plane_count(layout); ++p) {
        const auto bytes = static_cast<std::size_t>(frame.stride[p] * plane_rows(frame, p));
        for (std::size_t i = 0; i < bytes; ++i)
          writable(frame, p)[i] = static_cast<std::uint8_t>(draw());
        std::fill_n(writable(rows, p), bytes, std::uint8_t{77});
      }
      vfm::media::copy_pixels(frame, rows, true);
      SmallPicture of_all, of_rows;
      sample_picture(frame, of_all);
      sample_picture(rows, of_rows);
      CHECK(of_all.y == of_rows.y);
      CHECK(of_all.u == of_rows.u);
      CHECK(of_all.v == of_rows.v);
      if (height < 1000) continue;
      const std::uint8_t* const second = rows.plane[0] + rows.stride[0];
      CHECK(std::all_of(second, second + width, [](std::uint8_t v) { return v == 77; }));
    }
}
