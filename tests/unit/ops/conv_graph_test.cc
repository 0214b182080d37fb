// The graphs of convolutions that cuDNN gets, computed here operation by operation in double,
// against convolutions on the CPU: sizes, strides, edges, sums and gradients are right, whoever
// runs them.
// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv_graph.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ops/check.h"
#include "ops/determinism.h"

using namespace vfm;
using namespace vfm::ops;
using namespace vfm::ops::graph;

namespace {

using Values = std::vector<double>;

// Runs a graph of convolutions and sums. What is inside has the layout that it was given.
class GraphOfSums {
 public:
  GraphOfSums(const Graph& graph, std::map<std::int64_t, Values>& memory)
      : graph_(graph), memory_(memory) {
    for (const Operation& o : graph.operations())
      o.op == Op::add ? add(o) : convolve(o);
  }

 private:
  double& at(Edge e, std::array<std::int64_t, 4> i) {
    const TensorOfGraph& t = graph_.at(e);
    std::int64_t place = 0, size = 1;
    for (std::size_t d = 0; d < 4; ++d) {
      if (t.layout.dims[d] == 1) i[d] = 0;
      place += i[d] * t.layout.strides[d];
      size += (t.layout.dims[d] - 1) * t.layout.strides[d];
    }
    Values& values = memory_[t.id];
    if (values.empty()) values.assign(static_cast<std::size_t>(size), 0.);
    return values.at(static_cast<std::size_t>(place));
  }
  template <class F>
  void each(Edge e, const F& f) {
    const std::array<std::int64_t, 4>& dims = graph_.at(e).layout.dims;
    for (std::int64_t n = 0; n < dims[0] * dims[1] * dims[2] * dims[3]; ++n)
      f({n / (dims[3] * dims[2] * dims[1]), n / (dims[3] * dims[2]) % dims[1],
         n / dims[3] % dims[2], n % dims[3]});
  }
  void add(const Operation& o) {
    each(o.out,
         [&](const std::array<std::int64_t, 4>& i) { at(o.out, i) = at(o.a, i) + at(o.b, i); });
  }
  void convolve(const Operation& o) {
    const bool back = o.op == Op::convolution_back;
    const Edge image = back ? o.out : o.a, result = back ? o.a : o.out;
    const auto& size = graph_.at(image).layout.dims;
    const auto& made = graph_.at(result).layout.dims;
    const auto& taps = graph_.at(o.b).layout.dims;
    // The sizes are those of the window, or an engine refuses the graph.
    for (std::size_t d : {0, 1})
      REQUIRE((size[d + 2] + o.window.before[d] + o.window.after[d] - taps[d + 2]) /
                      o.window.strides[d] +
                  1 ==
              made[d + 2]);
    each(result, [&](const std::array<std::int64_t, 4>& r) {
      each(o.b, [&](const std::array<std::int64_t, 4>& w) {
        const std::int64_t y = r[2] * o.window.strides[0] - o.window.before[0] + w[2];
        const std::int64_t x = r[3] * o.window.strides[1] - o.window.before[1] + w[3];
        if (w[0] != r[1] || y < 0 || y >= size[2] || x < 0 || x >= size[3]) return;
        if (back)
          at(image, {r[0], w[1], y, x}) += at(o.b, w) * at(result, r);
        else
          at(result, r) += at(o.b, w) * at(image, {r[0], w[1], y, x});
      });
    });
  }

  const Graph& graph_;
  std::map<std::int64_t, Values>& memory_;
};

Values values_of(const Tensor& t) {
  const Tensor wide = t.to(DType::f32);
  return {wide.floats().begin(), wide.floats().end()};
}

// [out, in, taps] as [out, taps, in].
Values taps_first(const Tensor& w) {
  const Values given = values_of(w);
  Values turned;
  const std::int64_t in = w.size(1), taps = w.size(2);
  for (std::int64_t o = 0; o < w.size(0); ++o)
    for (std::int64_t a = 0; a < taps; ++a)
      for (std::int64_t i = 0; i < in; ++i)
        turned.push_back(given[static_cast<std::size_t>((o * in + i) * taps + a)]);
  return turned;
}

double worst(const Values& a, const Tensor& b) {
  const Values expected = values_of(b);
  REQUIRE(a.size() == expected.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(a[i] - expected[i]));
  return most;
}

}  // namespace

TEST_CASE("the graph of a convolution computes what the CPU computes, forward and backward") {
  Conv2d space{.height = 6,
               .width = 8,
               .in = 8,
               .out = 16,
               .kernel_height = 3,
               .kernel_width = 3,
               .pad_top = 1,
               .pad_bottom = 1,
               .pad_left = 1,
               .pad_right = 1};
  Conv2d halved = space;
  halved.stride_y = halved.stride_x = 2;
  halved.pad_top = halved.pad_left = 0;
  const Conv2d time{.height = 3, .width = 5, .in = 8, .out = 8, .kernel_height = 3};
  const Conv2d point{.height = 2, .width = 3, .in = 16, .out = 8};
  for (const Conv2d& c : {space, halved, time, point}) {
    INFO(text_of({c}));
    const Tensor x = noise_tensor({c.height * c.width, c.in}, 1);
    const Tensor w = noise_tensor({c.out, c.in, c.kernel_height * c.kernel_width}, 2);
    const Tensor bias = noise_tensor({c.out}, 3);
    const Tensor residual = noise_tensor({c.out_height() * c.out_width(), c.out}, 4);
    for (const bool with_bias : {false, true})
      for (const bool with_residual : {false, true}) {
        const Tensor y(residual.shape());
        conv2d(Device::cpu, c, DType::f32, x.raw(), w.raw(),
               with_bias ? bias.data<float>() : nullptr, with_residual ? residual.raw() : nullptr,
               y.raw());
        std::map<std::int64_t, Values> memory{{kConvX, values_of(x)},
                                              {kConvWeights, taps_first(w)},
                                              {kConvBias, values_of(bias)},
                                              {kConvResidual, values_of(residual)}};
        GraphOfSums(conv_graph({c, with_bias, with_residual}), memory);
        CHECK(worst(memory[kConvY], y) < 1e-4);
      }
    const Tensor dx(x.shape());
    conv2d_backward_data(Device::cpu, c, DType::f32, residual.raw(), w.raw(), dx.raw());
    std::map<std::int64_t, Values> memory{{kConvY, values_of(residual)},
                                          {kConvWeights, taps_first(w)}};
    GraphOfSums(conv_graph({c, false, false, true}), memory);
    CHECK(worst(memory[kConvX], dx) < 1e-4);
  }
}

TEST_CASE("cuDNN is asked for convolutions of bf16 and whole vectors, unless bits must repeat") {
  Conv2d c{.height = 4, .width = 4, .in = 8, .out = 16};
  CHECK(why_not_cudnn(c, DType::bf16).empty());
  CHECK(why_not_cudnn(c, DType::f32) == "it is for bf16");
  set_deterministic(true);
  CHECK_FALSE(why_not_cudnn(c, DType::bf16).empty());
  set_deterministic(false);
  c.in = 12;
  CHECK(why_not_cudnn(c, DType::bf16) == "its channels come in eights");
  c.in = 8, c.out = 3;
  CHECK_FALSE(why_not_cudnn(c, DType::bf16).empty());
}
