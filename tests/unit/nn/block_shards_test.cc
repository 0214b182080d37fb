// Matrices that are gathered block by block: what they are, when they are there, and what is asked
// of the ranks.
// SPDX-License-Identifier: Apache-2.0
#include "nn/block_shards.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "dist/mesh.h"
#include "dist/threads.h"
#include "nn/placement.h"
#include "ops/matmul/linear.h"

using namespace vfm;
using dist::Axes;

namespace {

constexpr std::int64_t kWide = 3;  // of square matrices: 9 elements, which 2 ranks do not divide
constexpr std::size_t kBlocks = 4;

/// Element `at` of the matrix of block `i`.
float weight_at(std::size_t i, std::int64_t at) {
  return 0.25F * static_cast<float>((static_cast<std::int64_t>(i) * 5 + at * 7) % 11) - 1;
}

Tensor input_of(int rank) {
  Tensor x({2, kWide});
  std::iota(x.floats().begin(), x.floats().end(), 0.5F * static_cast<float>(rank) - 1);
  return x;
}

/// Through plain matrices: the gradients of all, for the sum of the output.
std::vector<std::vector<float>> plain_gradients(int rank) {
  ops::Tape tape;
  std::vector<Tensor> weights, gradients;
  Tensor x = input_of(rank);
  for (std::size_t i = 0; i < kBlocks; ++i) {
    weights.emplace_back(Shape{kWide, kWide});
    for (std::int64_t at = 0; at < kWide * kWide; ++at)
      weights[i].data<float>()[at] = weight_at(i, at);
    gradients.push_back(Tensor::zeros({kWide, kWide}));
    tape.watch(weights[i], gradients[i]);
    x = ops::linear(tape, x, weights[i]);
  }
  Tensor seed(x.shape());
  for (float& one : seed.floats())
    one = 1;
  tape.backward(x, seed);
  std::vector<std::vector<float>> all;
  for (const Tensor& gradient : gradients)
    all.emplace_back(gradient.floats().begin(), gradient.floats().end());
  return all;
}

}  // namespace

TEST_CASE("matrices that ranks keep together: products and gradients are those of whole ones") {
  using Options = nn::BlockShards::Options;
  using enum nn::BlockShards::Way;
  for (const Options& options : {Options{}, Options{.keep = true}, Options{.at_once = true}})
    for (const bool recompute : {false, true}) {
      CAPTURE(options.keep, options.at_once, recompute);
      dist::thread_worlds(3, [&](dist::World& world) {
        const dist::Mesh mesh(world, {});
        dist::Group& group = mesh.group(Axes::cp | Axes::dp);
        nn::BlockShards shards(group, group, nullptr, options);
        std::vector<std::shared_ptr<nn::ShardedMatrix>> matrices;
        std::vector<std::vector<nn::ShardedMatrix*>> blocks;
        const std::int64_t begin = nn::share(kWide * kWide, group.rank(), 3);
        for (std::size_t i = 0; i < kBlocks; ++i) {
          matrices.push_back(std::make_shared<nn::ShardedMatrix>(Shape{kWide, kWide}, DType::f32,
                                                                 Device::cpu, group, i != 1));
          for (std::int64_t at = 0; at < matrices[i]->own().elements(); ++at)
            matrices[i]->own().data<float>()[at] = weight_at(i, begin + at);
          blocks.push_back({matrices[i].get()});
        }
        shards.set_blocks(std::move(blocks));
        if (matrices[0]->own().elements() != 3) fail("not a third");
        const auto pass = [&](bool first) {
          ops::Tape tape;
          if (first && !options.at_once) tape.replace_gradients();
          for (const auto& matrix : matrices)
            matrix->watch(tape);
          Tensor x = input_of(world.rank());
          for (std::size_t i = 0; i < kBlocks; ++i) {
            shards.enter(tape, i);
            const auto block = [matrix = matrices[i]](ops::Tape& inner, const Tensor& in) {
              return std::vector{ops::linear(inner, in, ops::LinearWeight(matrix->name(), matrix))};
            };
            x = recompute ? tape.checkpoint(x, {}, block)[0] : block(tape, x)[0];
          }
          shards.enter(tape, kBlocks);
          Tensor seed(x.shape());
          for (float& one : seed.floats())
            one = 1;
          tape.backward(x, seed);
        };
        // Three passes on the first rank, two on the second, none on the last.
        const int passes = 3, mine = world.rank() == 2 ? 0 : 3 - world.rank();
        shards.gather_all(true);
        for (int i = 0; i < mine; ++i)
          pass(i == 0);
        for (int i = mine; i < passes; ++i)
          for (const auto way : {recorded, backward})
            shards.fill(way, i == 0);
        shards.finish();
        const auto zero = plain_gradients(0), one = plain_gradients(1);
        for (std::size_t i = 0; i < kBlocks; ++i) {
          if (matrices[i]->gradient().defined() != (i != 1)) fail("block {} is frozen or not", i);
          if (i == 1) continue;
          for (std::int64_t at = 0; at < 3; ++at) {
            const auto place = static_cast<std::size_t>(begin + at);
            const float made = matrices[i]->gradient().data<float>()[at];
            const float expected = 3 * zero[i][place] + 2 * one[i][place];
            if (std::abs(made - expected) > 1e-5F * (1 + std::abs(expected)))
              fail("gradient {} of block {}: {}, not {}", place, i, made, expected);
          }
        }
        const bool all = options.keep || options.at_once;
        if (shards.most_gathered() != (all ? static_cast<int>(kBlocks) : 2))
          fail("{} blocks were gathered", shards.most_gathered());
        // What the stretches are now is what the next step gathers.
        shards.drop();
        matrices[0]->own().data<float>()[0] = 7;
        shards.gather_all(false);
        shards.fill(forward);
        ops::Tape silent(false);
        if (all) shards.enter(silent, 0);
        if (all && matrices[0]->get().data<float>()[begin] != 7) fail("a matrix is stale");
        shards.drop();
      });
    }
}

TEST_CASE("a matrix that is used while its block is not gathered is an error") {
  dist::thread_worlds(2, [&](dist::World& world) {
    const dist::Mesh mesh(world, {});
    dist::Group& group = mesh.group(Axes::cp | Axes::dp);
    const nn::ShardedMatrix matrix({kWide, kWide}, DType::f32, Device::cpu, group, true);
    bool refused = false;
    try {
      matrix.get();
    } catch (const Error&) {
      refused = true;
    }
    if (!refused) fail("it was given");
  });
}
