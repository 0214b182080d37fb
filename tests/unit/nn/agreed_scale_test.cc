// Parts of a tensor that ranks round to FP8 together: the values and the scale of the whole one,
// and what is sent.
// SPDX-License-Identifier: Apache-2.0
#include "nn/agreed_scale.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "dist/threads.h"
#include "support/noise.h"

using namespace vfm;

namespace {

std::unique_ptr<dist::Group> all_of(dist::World& world) {
  std::vector<int> ranks(static_cast<std::size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return world.group("parts", ranks);
}

/// Of which the largest is in the last of three parts.
Tensor rising(DType dtype) {
  Tensor x = noise_tensor({9, 16}, 1);
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.floats()[i] *= static_cast<float>(i + 1);
  return x.to(dtype);
}

}  // namespace

TEST_CASE("parts that ranks round together have the values and the scale of the whole") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor whole = rising(dtype);
    const ops::Quantized wanted = ops::quantize(whole);
    // Of four ranks one has nothing.
    for (const std::vector<std::int64_t>& ends :
         {std::vector<std::int64_t>{0, 9}, {0, 3, 6, 9}, {0, 5, 5, 8, 9}}) {
      const int ranks = static_cast<int>(ends.size()) - 1;
      std::atomic<int> right = 0;
      dist::thread_worlds(ranks, [&](dist::World& world) {
        const auto group = all_of(world);
        const auto rank = static_cast<std::size_t>(world.rank());
        const ops::Quantized part =
            nn::quantize_together(whole.rows(ends[rank], ends[rank + 1]), group.get());
        const Tensor values = wanted.values.rows(ends[rank], ends[rank + 1]);
        const auto* const own = part.values.data<std::uint8_t>();
        if (*part.scale.data<float>() == *wanted.scale.data<float>() &&
            std::equal(own, own + part.values.elements(), values.data<std::uint8_t>()) &&
            world.traffic().of("parts").bytes == 4 * (ranks - 1))
          ++right;
      });
      CHECK(right == ranks);
    }
  }
}

TEST_CASE("what is not finite in one rank's part is so in the scale of all") {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::atomic<int> found = 0;
    dist::thread_worlds(2, [&](dist::World& world) {
      Tensor part = noise_tensor({4, 16}, 3);
      if (world.rank() == 1) part.floats()[17] = bad;
      const auto group = all_of(world);
      if (std::isnan(*nn::quantize_together(part, group.get()).scale.data<float>())) ++found;
    });
    CHECK(found == 2);
  }
}

TEST_CASE("a rank alone rounds as ever, and asks nobody") {
  const Tensor x = rising(DType::f32);
  CHECK(*nn::quantize_together(x, nullptr).scale.data<float>() ==
        *ops::quantize(x).scale.data<float>());
}
