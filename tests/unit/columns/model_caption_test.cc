// How clips are cut into windows that a model is asked about.
// SPDX-License-Identifier: Apache-2.0
#include "columns/model_caption.h"

#include <catch2/catch.hpp>

using vfm::columns::FrameWindow;
using vfm::columns::plan_windows;

TEST_CASE("windows cover a clip, and what is left is one where it is half as long") {
  using Windows = std::vector<FrameWindow>;
  CHECK(plan_windows(1, 256) == Windows{{0, 1}});
  CHECK(plan_windows(256, 256) == Windows{{0, 256}});
  CHECK(plan_windows(383, 256) == Windows{{0, 383}});
  CHECK(plan_windows(384, 256) == Windows{{0, 256}, {256, 384}});
  CHECK(plan_windows(512, 256) == Windows{{0, 256}, {256, 512}});
  CHECK(plan_windows(600, 256) == Windows{{0, 256}, {256, 600}});
}
