// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen_weights.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "models/encoder/encoder_stack.h"
#include "ops/matmul/linear.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/swiglu.h"

namespace vfm::models {
namespace {

// Elements of the inner width that are in memory at once.
constexpr std::int64_t kQwenInnerAtOnce = std::int64_t{16} << 20;

}  // namespace

Tensor QwenLinear::operator()(const Tensor& x) const {
  ops::Tape tape(false);
  return ops::linear(tape, x.to(weight.dtype()), weight, bias, DType::f32);
}

QwenLinear QwenWeights::linear(const std::string& name) const {
  const Tensor matrix = use_weight(*set_.find(name + ".weight"), compute_, Device::cpu);
  const bool biased = set_.find(name + ".bias") != nullptr;
  return {matrix.reshape({matrix.size(0), matrix.elements() / matrix.size(0)}),
          biased ? vector(name + ".bias") : Tensor()};
}

Tensor QwenWeights::vector(const std::string& name) const {
  return use_weight(*set_.find(name), DType::f32, Device::cpu);
}

QwenFeedForward QwenFeedForward::from(const QwenWeights& weights, const std::string& prefix) {
  return {weights.linear(prefix + "gate_proj"), weights.linear(prefix + "up_proj"),
          weights.linear(prefix + "down_proj")};
}

Tensor QwenFeedForward::operator()(const Tensor& x) const {
  ops::Tape tape(false);
  const std::int64_t count = x.size(0), inner = gate.weight.size(0);
  const std::int64_t step = std::max<std::int64_t>(64, kQwenInnerAtOnce / inner);
  const auto feed = [&](const Tensor& rows) {
    return down(ops::swiglu(tape, beside(gate(rows), up(rows))));
  };
  if (count <= step) return feed(x);
  const Tensor all({count, down.weight.size(0)});
  for (std::int64_t begin = 0; begin < count; begin += step) {
    const std::int64_t end = std::min(count, begin + step);
    copy(feed(x.rows(begin, end)), all.rows(begin, end));
  }
  return all;
}

Tensor qwen_norm(const Tensor& x, const Tensor& weight, float epsilon) {
  ops::Tape tape(false);
  return ops::rmsnorm(tape, x, weight, epsilon);
}

Tensor beside(const Tensor& left, const Tensor& right) {
  const std::int64_t rows = left.size(0), a = left.size(1), b = right.size(1);
  const Tensor both({rows, a + b});
  float* to = both.data<float>();
  for (std::int64_t row = 0; row < rows; ++row, to += a + b) {
    std::copy_n(left.data<float>() + row * a, a, to);
    std::copy_n(right.data<float>() + row * b, b, to + a);
  }
  return both;
}

void turn_heads(const Tensor& x, int heads, const Tensor& cosines, const Tensor& sines) {
  const std::int64_t half = cosines.size(1), width = x.size(1);
  if (cosines.size(0) != x.size(0) || heads * 2 * half > width)
    fail("{} heads of {} do not fit rows {}", heads, 2 * half, to_string(x.shape()));
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    const float* c = cosines.data<float>() + row * half;
    const float* s = sines.data<float>() + row * half;
    float* head = x.data<float>() + row * width;
    for (int h = 0; h < heads; ++h, head += 2 * half)
      for (std::int64_t i = 0; i < half; ++i) {
        const float a = head[i], b = head[half + i];
        head[i] = a * c[i] - b * s[i];
        head[half + i] = b * c[i] + a * s[i];
      }
  }
}

}  // namespace vfm::models
