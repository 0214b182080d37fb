// SPDX-License-Identifier: Apache-2.0
#include "nn/attention.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>

#include "support/noise.h"

using namespace vfm;

TEST_CASE("heads without norms are rotated, and stay as they are without angles") {
  constexpr int kDim = 12;
  std::deque<nn::Weight> weights;
  nn::WeightMaker make{weights, {}};
  const nn::Heads heads(make, {.heads = {2, 1, kDim}}, "", {});
  const Tensor qkv = noise_tensor({12, 4 * kDim}, 1);
  const ops::RotaryAngles angles = ops::rotary_angles({{3, 2, 2}}, kDim, {1, 1, 1});
  const ops::AttentionPack pack{{12}, {12}, 2, 1, kDim};
  ops::Tape silent(false);
  // Queries and keys turned by hand: halves of each head.
  const Tensor turned = qkv.clone();
  for (std::int64_t t = 0; t < 12; ++t)
    for (std::int64_t h = 0; h < 3; ++h)
      for (std::int64_t i = 0; i < kDim / 2; ++i) {
        float* const first = turned.data<float>() + (t * 4 + h) * kDim + i;
        float* const second = first + kDim / 2;
        const float a = *first, b = *second;
        const float c = angles.cosines.data<float>()[t * kDim / 2 + i];
        const float s = angles.sines.data<float>()[t * kDim / 2 + i];
        *first = a * c - b * s;
        *second = b * c + a * s;
      }
  const auto alike = [](const Tensor& a, const Tensor& b) {
    return std::ranges::equal(a.floats(), b.floats(),
                              [](float x, float y) { return std::abs(x - y) < 1e-5f; });
  };
  const Tensor rotated = heads.attend(silent, qkv, {{}, pack, angles});
  CHECK(alike(rotated, ops::self_attention(silent, turned, pack)));
  const Tensor still = heads.attend(silent, qkv, {{}, pack, {}});
  CHECK(alike(still, ops::self_attention(silent, qkv, pack)));
  CHECK_FALSE(alike(rotated, still));
}
