// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/join.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "check.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/row_ranges.h"
#include "support/noise.h"
#include "tensor/meta.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

bool equal_values(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::ranges::equal(a.to(DType::f32).floats(), b.to(DType::f32).floats());
}

}  // namespace

TEST_CASE("matrices are joined beside and below each other, and taken apart") {
  Tape silent(false);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor a = noise_tensor({5, 3}, 1, dtype), b = noise_tensor({5, 8}, 2, dtype),
                 none = noise_tensor({5, 0}, 3, dtype);
    const Tensor y = join_columns(silent, {a, none, b});
    REQUIRE(y.shape() == Shape{5, 11});
    CHECK(y.dtype() == dtype);
    const Tensor wide = y.to(DType::f32), left = a.to(DType::f32), right = b.to(DType::f32);
    for (std::int64_t row = 0; row < 5; ++row)
      for (std::int64_t i = 0; i < 11; ++i)
        CHECK(wide.data<float>()[row * 11 + i] ==
              (i < 3 ? left.data<float>()[row * 3 + i] : right.data<float>()[row * 8 + i - 3]));
    const std::vector<Tensor> parts = split_columns(silent, y, {3, 0, 8});
    CHECK(equal_values(parts[0], a));
    CHECK(parts[1].shape() == Shape{5, 0});
    CHECK(equal_values(parts[2], b));

    const Tensor c = noise_tensor({2, 3}, 4, dtype), empty = noise_tensor({0, 3}, 5, dtype);
    const Tensor below = join_rows(silent, {a, empty, c});
    REQUIRE(below.shape() == Shape{7, 3});
    CHECK(equal_values(take_ranges(silent, below, {{0, 5}}), a));
    CHECK(equal_values(take_ranges(silent, below, {{5, 7}}), c));
  }
  CHECK(join_columns(silent, {noise_tensor({0, 2}, 1), noise_tensor({0, 3}, 1)}).shape() ==
        Shape{0, 5});
}

TEST_CASE("gradients of joined matrices go to their parts") {
  const Tensor a = noise_tensor({5, 3}, 1), b = noise_tensor({5, 4}, 2),
               c = noise_tensor({2, 4}, 3);
  check_gradients({a, b}, [&](Tape& t) { return silu(t, join_columns(t, {a, b})); });
  check_gradients({b, c}, [&](Tape& t) { return silu(t, join_rows(t, {b, c})); });
  // The same matrix twice.
  check_gradients({a}, [&](Tape& t) { return silu(t, join_columns(t, {a, a})); });
  check_gradients({b}, [&](Tape& t) { return silu(t, join_rows(t, {b, b})); });
  // All parts used, and one alone.
  check_gradients({b}, [&](Tape& t) {
    const std::vector<Tensor> parts = split_columns(t, b, {1, 2, 1});
    return silu(t, join_columns(t, {parts[2], parts[0], parts[1]}));
  });
  check_gradients({b}, [&](Tape& t) { return silu(t, split_columns(t, b, {1, 2, 1})[1]); });
  // One that wants none.
  const Tensor dy = noise_tensor({5, 7}, 4);
  const auto alone = gradients({b}, dy, [&](Tape& t) { return join_columns(t, {a, b}); });
  Tape silent(false);
  CHECK(equal_values(alone[0], split_columns(silent, dy, {3, 4})[1]));
  // bf16: copies.
  const Tensor low = b.to(DType::bf16), low_dy = dy.to(DType::bf16);
  const auto of_low = gradients({low}, low_dy, [&](Tape& t) {
    return join_columns(t, {a.to(DType::bf16), low});
  });
  CHECK(equal_values(of_low[0].to(DType::bf16), split_columns(silent, low_dy, {3, 4})[1]));
}

TEST_CASE("matrices that do not fit are not joined") {
  Tape silent(false);
  const Tensor a = noise_tensor({5, 3}, 1);
  CHECK_THROWS_WITH(join_columns(silent, {}), Catch::Contains("no matrices"));
  CHECK_THROWS_WITH(join_columns(silent, {a, noise_tensor({4, 3}, 1)}), Catch::Contains("beside"));
  CHECK_THROWS_WITH(join_columns(silent, {a, a.to(DType::bf16)}), Catch::Contains("BF16"));
  CHECK_THROWS_WITH(join_rows(silent, {a, noise_tensor({5, 4}, 1)}), Catch::Contains("below"));
  CHECK_THROWS_WITH(split_columns(silent, a, {1, 1}), Catch::Contains("2 columns"));
  CHECK_THROWS_WITH(split_columns(silent, a, {4, -1}), Catch::Contains("-1 columns"));
}

TEST_CASE("bytes of joined columns: each is read and written once") {
  const auto blank = [](Shape shape) {
    return Tensor(std::move(shape), DType::bf16, Device::meta);
  };
  Tape silent(false);
  const MetaAccount account(Device::cuda);
  const Tensor y = join_columns(silent, {blank({6, 10}), blank({6, 20})});
  CHECK(y.shape() == Shape{6, 30});
  CHECK(account.kernels().at("copy_rows").bytes == 2.0 * 2 * 6 * 30);
}
