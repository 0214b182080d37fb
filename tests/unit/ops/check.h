// What the op tests share: random tensors, distances, and gradients against slopes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <vector>

#include "ops/cpu/isa.h"
#include "ops/tape.h"
#include "support/distance.h"
#include "support/noise.h"

namespace vfm::ops {

using vfm::distance;

// The largest difference, in units of the largest element of b.
inline double distance(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(DType::f32), y = b.to(DType::f32);
  return vfm::distance(x.floats(), y.floats());
}

// Runs `forward` and backward from `cotangent`; returns the gradients of `leaves`.
inline std::vector<Tensor> gradients(const std::vector<Tensor>& leaves, const Tensor& cotangent,
                                     const std::function<Tensor(Tape&)>& forward) {
  Tape tape;
  std::vector<Tensor> result;
  for (const Tensor& leaf : leaves) {
    result.push_back(Tensor::zeros(leaf.shape()));
    tape.watch(leaf, result.back());
  }
  const Tensor output = forward(tape);
  tape.backward(output, cotangent);
  return result;
}

// Every gradient of sum(cotangent * forward) against its slope in two random directions per leaf.
inline void check_gradients(const std::vector<Tensor>& leaves,
                            const std::function<Tensor(Tape&)>& forward, double tolerance = 2e-2,
                            float h = 1e-2f) {
  Tape silent(false);
  const Tensor cotangent = noise_tensor(forward(silent).shape(), 99);
  const std::vector<Tensor> analytic = gradients(leaves, cotangent, forward);
  const auto objective = [&] {
    const Tensor y = forward(silent);
    double sum = 0;
    for (std::size_t i = 0; i < y.floats().size(); ++i)
      sum += double{y.floats()[i]} * cotangent.floats()[i];
    return sum;
  };
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf)
    for (std::uint64_t trial = 0; trial < 2; ++trial) {
      INFO("leaf " << leaf << " trial " << trial);
      const Tensor direction = noise_tensor(leaves[leaf].shape(), 1000 + 10 * leaf + trial);
      const Tensor start = leaves[leaf].clone();
      double expected = 0, size = 0;
      for (std::size_t i = 0; i < direction.floats().size(); ++i) {
        expected += double{direction.floats()[i]} * analytic[leaf].floats()[i];
        size += double{analytic[leaf].floats()[i]} * analytic[leaf].floats()[i];
      }
      double slope = 0;
      for (const float side : {-h, h}) {
        for (std::size_t i = 0; i < start.floats().size(); ++i)
          leaves[leaf].floats()[i] = start.floats()[i] + side * direction.floats()[i];
        slope += (side > 0 ? 1 : -1) * objective() / (2 * double{h});
      }
      std::copy(start.floats().begin(), start.floats().end(), leaves[leaf].floats().begin());
      CHECK(std::abs(slope - expected) < tolerance * std::sqrt(size) + 1e-6);
    }
}

// Runs `body` under every instruction set that this machine has. `bf16`: also those that differ
// only in products of bf16.
inline void each_isa(const std::function<void()>& body, bool bf16 = false) {
  for (const Isa limit : {Isa::base, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    if (limit > Isa::avx512 && !bf16) break;
    limit_isa(limit);
    if (isa() != limit) continue;
    INFO("instruction set " << static_cast<int>(limit));
    body();
  }
  limit_isa(Isa::amx);
}

}  // namespace vfm::ops
