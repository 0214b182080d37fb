// The norm over all heads against its formula in double; ranks are columns of one matrix here, and
// threads in tests/unit/nn/collectives_test.cc.
// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/heads_norm.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "check.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/activations.h"
#include "support/noise.h"
#include "tensor/meta.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

constexpr float kNormEpsilon = 1e-3f;  // large enough to matter

double element(const Tensor& t, std::int64_t row, std::int64_t column) {
  return double{t.data<float>()[row * t.size(1) + column]};
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// An exchange as another rank of two would have it, whose sums are `other`'s.
Exchange sum_with(const Tensor& other) {
  const auto sum = [other](const Tensor& x) {
    const Tensor all = x.clone();
    for (std::size_t i = 0; i < all.floats().size(); ++i)
      all.floats()[i] += other.floats()[i];
    return all;
  };
  return {sum, sum};
}

}  // namespace

TEST_CASE("queries and keys are normed over all their heads, values pass") {
  each_isa([] {
    for (const std::int64_t width : {5, 16, 48}) {
      const std::int64_t tokens = 70;  // more than a chunk
      const Tensor x = noise_tensor({tokens, 3 * width}, 1);
      const HeadsNorm norm{{noise_tensor({width}, 2), noise_tensor({width}, 3)}, kNormEpsilon};
      Tape silent(false);
      const Tensor y = heads_norm(silent, x, norm);
      double worst = 0;
      for (std::int64_t t = 0; t < tokens; ++t)
        for (std::int64_t part = 0; part < 3; ++part) {
          double squares = 0;
          for (std::int64_t i = 0; i < width; ++i)
            squares += std::pow(element(x, t, part * width + i), 2);
          const double r = 1 / std::sqrt(squares / static_cast<double>(width) + kNormEpsilon);
          for (std::int64_t i = 0; i < width; ++i) {
            const double v = element(x, t, part * width + i);
            const double expected =
                part == 2 ? v
                          : v * r * norm.weights[static_cast<std::size_t>(part)].data<float>()[i];
            worst = std::max(worst, std::abs(expected - element(y, t, part * width + i)));
          }
        }
      CHECK(worst < 1e-5);
      CHECK(distance(heads_norm(silent, x.to(DType::bf16), norm), y) < 0.02);
      const auto through = [&](Tape& t) { return silu(t, heads_norm(t, x, norm)); };
      check_gradients({x, norm.weights[0], norm.weights[1]}, through);
    }
    // One part as wide as the row is an RMS norm.
    const Tensor x = noise_tensor({9, 24}, 4), weight = noise_tensor({24}, 5);
    const Tensor dy = noise_tensor({9, 24}, 6);
    const auto gradients_of = [&](bool heads) {
      return gradients({x, weight}, dy, [&](Tape& t) {
        return heads ? heads_norm(t, x, {{weight}, kNormEpsilon})
                     : rmsnorm(t, x, weight, kNormEpsilon);
      });
    };
    const auto heads = gradients_of(true), row = gradients_of(false);
    CHECK(distance(heads[0], row[0]) < 1e-6);
    CHECK(distance(heads[1], row[1]) < 1e-6);
    // Of bf16, against f32: rounded only.
    const Tensor low = x.to(DType::bf16), same = low.to(DType::f32);
    const HeadsNorm norm{{weight}, kNormEpsilon};
    const auto of = [&](const Tensor& leaf) {
      return gradients({leaf, weight}, dy.to(leaf.dtype()),
                       [&](Tape& t) { return heads_norm(t, leaf, norm); });
    };
    CHECK(distance(of(low)[0], of(same)[0]) < 0.01);
    CHECK(distance(of(low)[1], of(same)[1]) < 0.02);
  });
}

TEST_CASE("a rank's heads are normed with the sums of all ranks") {
  each_isa([] {
    constexpr std::int64_t kTokens = 40, kOwn = 24;
    // Both ranks' queries and keys, and what one rank has of them.
    const Tensor all_queries = noise_tensor({kTokens, 2 * kOwn}, 1);
    const Tensor all_keys = noise_tensor({kTokens, 2 * kOwn}, 2);
    const Tensor query_weight = noise_tensor({2 * kOwn}, 3),
                 key_weight = noise_tensor({2 * kOwn}, 4);
    const Tensor all_dy = noise_tensor({kTokens, 4 * kOwn}, 5);
    const auto both = [&](Tape& t, const Tensor& x) {
      return heads_norm(t, x, {{query_weight, key_weight}, kNormEpsilon});
    };
    Tensor joined({kTokens, 4 * kOwn});
    for (std::int64_t t = 0; t < kTokens; ++t) {
      std::copy_n(&all_queries.floats()[static_cast<std::size_t>(t * 2 * kOwn)], 2 * kOwn,
                  joined.data<float>() + t * 4 * kOwn);
      std::copy_n(&all_keys.floats()[static_cast<std::size_t>(t * 2 * kOwn)], 2 * kOwn,
                  joined.data<float>() + t * 4 * kOwn + 2 * kOwn);
    }
    Tape silent(false);
    const Tensor expected_y = both(silent, joined);
    const auto expected = gradients({joined, query_weight, key_weight}, all_dy,
                                    [&](Tape& t) { return both(t, joined); });
    // Columns of a rank: of queries, then of keys.
    const auto share = [&](const Tensor& of, std::int64_t rank) {
      const Tensor part({kTokens, 2 * kOwn});
      for (std::int64_t t = 0; t < kTokens; ++t)
        for (std::int64_t k = 0; k < 2; ++k)
          std::copy_n(of.data<float>() + (t * 4 + k * 2 + rank) * kOwn, kOwn,
                      part.data<float>() + (t * 2 + k) * kOwn);
      return part;
    };
    const auto norm_of = [&](std::int64_t rank, Exchange sum) {
      const auto part = [&](const Tensor& w) {
        return w.reshape({2, kOwn}).rows(rank, rank + 1).clone().reshape({kOwn});
      };
      return HeadsNorm{{part(query_weight), part(key_weight)}, kNormEpsilon, 2, std::move(sum)};
    };
    // What a rank gives to the exchange, in the forward and in the backward pass.
    struct Given {
      Tensor squares, products;
    };
    const auto given = [&](std::int64_t rank, const Tensor& squares) {
      Given g;
      const Exchange listen{[&](const Tensor& x) {
                              g.squares = x.clone();
                              return squares.defined() ? sum_with(squares).forward(x) : x.clone();
                            },
                            [&](const Tensor& x) { return (g.products = x.clone()).clone(); }};
      const Tensor x = share(joined, rank);
      gradients({x}, share(all_dy, rank),
                [&](Tape& t) { return heads_norm(t, x, norm_of(rank, listen)); });
      return g;
    };
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      const Tensor own_squares = given(rank, Tensor()).squares;
      const Given other = given(1 - rank, own_squares);
      CHECK(other.squares.shape() == Shape{kTokens, 2});
      const Exchange sum{sum_with(other.squares).forward, sum_with(other.products).adjoint};
      const HeadsNorm norm = norm_of(rank, sum);
      const Tensor x = share(joined, rank);
      CHECK(distance(heads_norm(silent, x, norm), share(expected_y, rank)) < 1e-6);
      const auto got = gradients({x, norm.weights[0], norm.weights[1]}, share(all_dy, rank),
                                 [&](Tape& t) { return heads_norm(t, x, norm); });
      CHECK(distance(got[0], share(expected[0], rank)) < 1e-5);
      for (std::size_t i : {1, 2})
        CHECK(distance(got[i],
                       expected[i].reshape({2, kOwn}).rows(rank, rank + 1).reshape({kOwn})) < 1e-5);
    }
  });
}

TEST_CASE("the norm over heads has the same bits again, and refuses what does not fit") {
  const Tensor x = noise_tensor({200, 120}, 1), dy = noise_tensor({200, 120}, 2);
  const HeadsNorm norm{{noise_tensor({40}, 3), noise_tensor({40}, 4)}, kNormEpsilon};
  const auto run = [&] {
    return gradients({x, norm.weights[0]}, dy, [&](Tape& t) { return heads_norm(t, x, norm); });
  };
  const auto first = run(), again = run();
  CHECK(same_bytes(first[0], again[0]));
  CHECK(same_bytes(first[1], again[1]));

  Tape silent(false);
  CHECK(heads_norm(silent, noise_tensor({0, 120}, 1), norm).shape() == Shape{0, 120});
  const auto refused = [&](const Tensor& of, const HeadsNorm& how, const char* why) {
    CHECK_THROWS_WITH(heads_norm(silent, of, how), Catch::Contains(why));
  };
  refused(noise_tensor({2, 79}, 1), norm, "do not fit");
  refused(noise_tensor({80}, 1), norm, "do not fit");
  refused(x.to(DType::f16), norm, "do not fit");
  HeadsNorm wrong = norm;
  wrong.weights[1] = wrong.weights[1].to(DType::bf16);
  refused(x, wrong, "a weight BF16");
  wrong = norm;
  wrong.ranks = 2;
  refused(x, wrong, "exchange");
}

TEST_CASE("bytes of the norm over heads") {
  constexpr std::int64_t kTokens = 64, kWidth = 32, kChunks = 2;
  const auto blank = [](Shape shape, DType dtype = DType::f32) {
    return Tensor(std::move(shape), dtype, Device::meta);
  };
  const auto bytes = [](const std::map<std::string, KernelWork>& kernels, const char* name) {
    return kernels.count(name) == 0 ? 0 : kernels.at(name).bytes;
  };
  constexpr double kElements = 1.0 * kTokens * kWidth;
  for (const bool ranks : {false, true}) {
    Tape tape;
    const Tensor x = blank({kTokens, 3 * kWidth}, DType::bf16), weight = blank({kWidth});
    tape.watch(x, blank({kTokens, 3 * kWidth}));
    tape.watch(weight, blank({kWidth}));
    HeadsNorm norm{{weight, blank({kWidth})}, kNormEpsilon};
    if (ranks) {
      const auto same = [](const Tensor& t) { return t.clone(); };
      norm.ranks = 2, norm.sum = {same, same};
    }
    Tensor y;
    std::map<std::string, KernelWork> work;
    {
      const MetaAccount account(Device::cuda);
      y = heads_norm(tape, x, norm);
      work = account.kernels();
    }
    // Two parts; with ranks x and the sums are read once more.
    const double part = (2 + 2) * kElements + 4 * kWidth + 4 * kTokens;
    CHECK(bytes(work, "heads_norm_forward") ==
          2 * (part + (ranks ? 2 * kElements + 4 * kTokens : 0)));
    CHECK(bytes(work, "copy_rows") == 2 * 2 * kElements);
    {
      const MetaAccount account(Device::cuda);
      tape.backward(y, blank({kTokens, 3 * kWidth}, DType::bf16));
      work = account.kernels();
    }
    CHECK(bytes(work, "heads_norm_products") == 2 * (4 * kElements + 4 * kWidth + 8 * kTokens));
    CHECK(bytes(work, "heads_norm_gradients") ==
          2 * (6 * kElements + 4 * kWidth + 8 * kTokens) + 4 * kWidth + 2 * 4 * kChunks * kWidth);
  }
}
