// What training a tokenizer needs: levels with a gradient, and the error of pixels.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/check.h"
#include "ops/loss/pixel_error.h"
#include "ops/pointwise/fsq.h"

using namespace vfm;
using namespace vfm::ops;

TEST_CASE("fsq: the gradient is that of the bound, as if nothing were rounded") {
  const std::vector<int> levels = {8, 5, 3};
  const Tensor z = noise_tensor({7, 5, 3}, 1), above = noise_tensor({7, 5, 3}, 2);
  const Tensor gradient = gradients({z}, above, [&](Tape& t) { return fsq(t, z, levels); })[0];
  for (std::size_t i = 0; i < z.floats().size(); ++i) {
    const int level = levels[i % 3];
    const double half = (level - 1) * 1.001 / 2, shift = std::atanh((level % 2 ? 0 : 0.5) / half);
    const double bent = std::tanh(z.floats()[i] + shift);
    CHECK(gradient.floats()[i] ==
          Approx(above.floats()[i] * (1 - bent * bent) * half / (level / 2)).margin(1e-6));
  }
  Tape silent(false);
  CHECK_THROWS_AS(fsq(silent, z, std::vector<int>{8, 5}), Error);
  CHECK_THROWS_AS(fsq(silent, z, std::vector<int>{8, 5, 2}), Error);
  CHECK_THROWS_AS(fsq(silent, z, {}), Error);
  Tensor odd = z.clone();
  odd.floats()[4] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(fsq(silent, odd, levels).floats()[4]));
}

TEST_CASE("pixel error: sums and gradient, of both kinds") {
  const Tensor output = noise_tensor({3, 5, 7, 3}, 1), target = noise_tensor({3, 5, 7, 3}, 2);
  output.floats()[9] = target.floats()[9];
  const PixelError error = pixel_error(output, target, {.l1 = 0.75, .l2 = 2}, 0.5);
  double absolute = 0, squares = 0;
  for (std::size_t i = 0; i < output.floats().size(); ++i) {
    const float e = output.floats()[i] - target.floats()[i];
    absolute += std::abs(e);
    squares += double{e} * e;
    const double sign = e > 0 ? 1 : e < 0 ? -1 : 0;
    CHECK(error.seed.floats()[i] == Approx(0.5 * (0.75 * sign + 4 * e)).margin(1e-6));
  }
  CHECK(error.read().absolute == Approx(absolute));
  CHECK(error.read().squares == Approx(squares));
  CHECK_FALSE(pixel_error(output, target, {}, 0).seed.defined());
  CHECK_THROWS_AS(pixel_error(output, noise_tensor({3}, 1), {}, 1), Error);
  // What is no number is no gradient either: the step is skipped.
  output.floats()[3] = std::numeric_limits<float>::quiet_NaN();
  const PixelError odd = pixel_error(output, target, {}, 1);
  CHECK(std::isnan(odd.read().absolute));
  CHECK(std::isnan(odd.seed.floats()[3]));
}
