// Positions of clips larger than the trained ones.
// SPDX-License-Identifier: Apache-2.0
#include "ops/position/positions.h"

#include <catch2/catch.hpp>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "support/noise.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

Tensor table(std::int64_t rows, std::uint64_t key) {
  return noise_tensor({rows, 12}, key);
}

}  // namespace

TEST_CASE("half a step over twice the size passes through the same positions", "[positions]") {
  Tape tape(false);
  const Tensor t = table(2, 1), h = table(4, 2), w = table(4, 3);
  const TokenGrid small{2, 4, 4, 12};
  TokenGrid large{3, 7, 7, 12};
  large.step = {0.5, 0.5, 0.5};
  const Tensor few = learned_positions(tape, t, h, w, {small});
  const Tensor many = learned_positions(tape, t, h, w, {large});
  const RotaryAngles few_angles = rotary_angles({small}, 24, {2, 1, 1});
  const RotaryAngles many_angles = rotary_angles({large}, 24, {2, 1, 1});
  for (int frame = 0; frame < 2; ++frame)
    for (int row = 0; row < 4; ++row)
      for (int column = 0; column < 4; ++column) {
        const std::size_t a = (frame * 4 + row) * 4 + column;
        const std::size_t b = (2 * frame * 7 + 2 * row) * 7 + 2 * column;
        for (std::size_t i = 0; i < 12; ++i) {
          CHECK(many.floats()[b * 12 + i] == Approx(few.floats()[a * 12 + i]).margin(1e-5));
          CHECK(many_angles.sines.floats()[b * 12 + i] ==
                Approx(few_angles.sines.floats()[a * 12 + i]).margin(1e-6));
        }
      }
}

TEST_CASE("between two rows of a table both count in proportion", "[positions]") {
  Tape tape(false);
  Tensor t = Tensor::from(std::vector<float>{3, 0, 1, 2}, {2, 2});
  const Tensor none = Tensor::zeros({1, 2});
  TokenGrid grid{5, 1, 1};
  grid.step = {0.25, 1, 1};
  const Tensor result = learned_positions(tape, t, none, none, {grid});
  // A quarter of the way: (2.5, 0.5), over its root mean square sqrt((6.25 + 0.25) / 2).
  CHECK(result.floats()[2] == Approx(2.5 / std::sqrt(3.25)));
  CHECK(result.floats()[3] == Approx(0.5 / std::sqrt(3.25)));
  grid.frames = 6;  // the last position would be 1.25
  CHECK_THROWS_AS(learned_positions(tape, t, none, none, {grid}), Error);
}

TEST_CASE("steps are not for training", "[positions]") {
  Tape tape(true);
  TokenGrid grid{2, 1, 1};
  grid.step = {0.5, 1, 1};
  CHECK_THROWS_AS(learned_positions(tape, table(2, 1), table(1, 2), table(1, 3), {grid}), Error);
}
