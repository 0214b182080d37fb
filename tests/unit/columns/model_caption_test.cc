// How clips are cut into windows that a model is asked about.
// SPDX-License-Identifier: Apache-2.0
#include "columns/model_caption.h"

#include <catch2/catch.hpp>

using vfm::columns::count_windows;
using vfm::columns::FrameWindow;
using vfm::columns::nth_window;

TEST_CASE("windows cover a clip, and what is left is one where it is half as long") {
  using Windows = std::vector<FrameWindow>;
  const auto plan_windows = [](std::int64_t frames, int window) {
    Windows windows;
    for (std::int64_t i = 0; i < count_windows(frames, window); ++i)
      windows.push_back(nth_window(frames, window, i));
    return windows;
  };
  CHECK(plan_windows(1, 256) == Windows{{0, 1}});
  CHECK(plan_windows(256, 256) == Windows{{0, 256}});
  CHECK(plan_windows(383, 256) == Windows{{0, 383}});
  CHECK(plan_windows(384, 256) == Windows{{0, 256}, {256, 384}});
  CHECK(plan_windows(512, 256) == Windows{{0, 256}, {256, 512}});
  CHECK(plan_windows(600, 256) == Windows{{0, 256}, {256, 600}});
  CHECK(plan_windows(3, 16) == Windows{{0, 3}});
  // What a container promises costs no memory.
  const std::int64_t far = std::int64_t{1} << 60;
  CHECK(count_windows(far, 16) == far / 16);
  CHECK(nth_window(far, 16, far / 16 - 1) == FrameWindow{far - 16, far});
}
