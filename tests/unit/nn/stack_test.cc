// A stack of blocks with skip connections: the second half of the blocks add what the first half
// handed on, so that a part of the stack hands on more than the residual stream.
// SPDX-License-Identifier: Apache-2.0
#include "nn/stack.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "nn/linear.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/add.h"
#include "support/noise.h"

using namespace vfm;
using nn::Recompute;
using nn::Stream;

namespace {

constexpr std::int64_t kRows = 5, kColumns = 8;
constexpr std::size_t kMade = 6;

// What all blocks of the made network read.
struct SkipContext {
  Tensor shift;  // [kRows, kColumns]
};

class SkipBlock {
 public:
  SkipBlock(nn::WeightMaker& make, std::size_t i)
      : i_(i), matrix_(make, {{"blocks." + std::to_string(i), kColumns}}, kColumns) {}

  Stream forward(ops::Tape& tape, Stream out, const SkipContext& context) const {
    if (i_ >= kMade / 2) {
      out.x = ops::add(tape, out.x, out.more.back());
      out.more.pop_back();
    }
    const Tensor shifted = ops::add(tape, out.x, context.shift);
    out.x = ops::silu(tape, matrix_.forward(tape, shifted));
    if (i_ < kMade / 2) out.more.push_back(out.x);
    return out;
  }

 private:
  std::size_t i_;
  nn::Linear matrix_;
};

struct SkipNetwork {
  explicit SkipNetwork(Recompute how) : recompute(how) {
    nn::WeightMaker make{weights, {.seed = 3}};
    for (std::size_t i = 0; i < kMade; ++i) {
      of_blocks.begin();
      blocks.emplace_back(make, i);
    }
  }

  std::deque<nn::Weight> weights;
  nn::BlockWeights of_blocks{weights};
  std::deque<SkipBlock> blocks;
  Tensor input = noise_tensor({kRows, kColumns}, 1), shift = noise_tensor({kRows, kColumns}, 2);
  Tensor input_gradient = Tensor::zeros({kRows, kColumns});
  Tensor shift_gradient = Tensor::zeros({kRows, kColumns});
  Recompute recompute;
};

class SkipForward final : public nn::StackForward<SkipBlock, SkipContext> {
 public:
  SkipForward(SkipNetwork& network, ops::Tape& tape)
      : StackForward({network.blocks, network.of_blocks, network.recompute}, tape),
        input_(network.input) {
    for (const nn::Weight& weight : network.weights)
      weight.watch(tape);
    tape.watch(network.input, network.input_gradient);
    tape.watch(network.shift, network.shift_gradient);
    context_.shift = network.shift;
  }

 private:
  Tensor start() override { return input_; }
  Tensor finish(const Stream& stream) override { return stream.x; }
  const Tensor input_;
};

struct Passed {
  std::vector<float> output;
  std::vector<Tensor> gradients;  // of the matrices, the input and the shift
};

Passed results(SkipNetwork& network, const Tensor& output) {
  Passed passed{{output.floats().begin(), output.floats().end()}, {}};
  for (nn::Weight& weight : network.weights)
    passed.gradients.push_back(weight.parameters()[0].grad);
  passed.gradients.push_back(network.input_gradient);
  passed.gradients.push_back(network.shift_gradient);
  return passed;
}

Passed whole(SkipNetwork&& network) {
  ops::Tape tape;
  const Tensor output = SkipForward(network, tape).forward();
  tape.backward(output, noise_tensor(output.shape(), 9));
  return results(network, output);
}

// Each part is on a tape of its own, and gets copies of what the part before hands on.
Passed parts(SkipNetwork&& network, const std::vector<std::size_t>& cuts) {
  struct Part {
    ops::Tape tape;
    nn::Streams in, in_gradients, out;
  };
  std::deque<Part> parts;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    Part& part = parts.emplace_back();
    SkipForward forward(network, part.tape);
    if (i == 0) {
      part.in = forward.embed();
    } else {
      for (const Tensor& made : parts[i - 1].out) {
        part.in.push_back(made.clone());
        part.in_gradients.push_back(Tensor::zeros(made.shape()));
        part.tape.watch(part.in.back(), part.in_gradients.back());
      }
    }
    part.out = forward.blocks(part.in, cuts[i], cuts[i + 1]);
    CHECK(part.out.size() == 1 + std::min(cuts[i + 1], kMade - cuts[i + 1]));
    if (i + 2 == cuts.size()) part.out = {forward.head(part.out)};
  }
  const Tensor output = parts.back().out.front();
  nn::Streams gradients = {noise_tensor(output.shape(), 9)};
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    nn::backward(part->tape, part->out, gradients);
    gradients = part->in_gradients;
  }
  return results(network, output);
}

void check_same(const Passed& found, const Passed& expected) {
  CHECK(found.output == expected.output);
  REQUIRE(found.gradients.size() == expected.gradients.size());
  for (std::size_t i = 0; i < expected.gradients.size(); ++i) {
    INFO("gradient " << i);
    const auto a = found.gradients[i].floats(), b = expected.gradients[i].floats();
    float most = 0;
    for (std::size_t j = 0; j < b.size(); ++j)
      most = std::max(most, std::abs(a[j] - b[j]));
    CHECK(most < 1e-5f);
    CHECK(std::ranges::any_of(b, [](float value) { return value != 0; }));
  }
}

}  // namespace

TEST_CASE("a stack of blocks with skip connections is the same in parts and recomputed") {
  const Passed expected = whole(SkipNetwork(Recompute::none));
  for (const Recompute recompute : {Recompute::none, Recompute::block}) {
    INFO(nn::recompute_name(recompute));
    check_same(whole(SkipNetwork(recompute)), expected);
    for (const std::vector<std::size_t>& cuts :
         {std::vector<std::size_t>{0, kMade}, {0, 1, kMade}, {0, 3, kMade}, {0, 2, 3, 5, kMade}})
      check_same(parts(SkipNetwork(recompute), cuts), expected);
  }
}
