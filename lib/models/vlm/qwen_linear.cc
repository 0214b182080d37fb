// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen_linear.h"

#include <algorithm>

#include "base/error.h"
#include "nn/mlp.h"
#include "ops/matmul/bias.h"
#include "ops/matmul/block_rows.h"
#include "ops/matmul/few_rows.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/quantize.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/activations.h"
#include "tensor/device.h"
#include "tensor/meta.h"

namespace vfm::models {
namespace {

// Elements of a matrix that are converted at once: on the CPU they stay in the cache until they are
// used, on a GPU they are enough work for a product.
constexpr std::int64_t kQwenWidenedAtOnce = std::int64_t{1} << 20;
constexpr std::int64_t kQwenWidenedOnGpu = std::int64_t{64} << 20;

/// Some rows of a matrix that is not of the type of products, in that.
Tensor widened_rows(const QwenLinear& linear, const Tensor& rows, std::int64_t begin, DType dtype) {
  if (linear.blocks) return ops::dequantize_blocks({rows, *linear.blocks}, dtype);
  if (!linear.scales.defined()) return rows.to(dtype);
  return ops::dequantize_rows({rows, linear.scales.rows(begin, begin + rows.size(0))}, dtype);
}

/// y[row][0 .. out) = x W^T, where rows of y are `stride` apart.
void product_of_many(const Tensor& x, const QwenLinear& linear, float* y, std::int64_t stride) {
  const Tensor& weight = linear.weight;
  const std::int64_t count = x.size(0), in = x.size(1), out = weight.size(0);
  const auto multiply = [&](const Tensor& rows, std::int64_t begin) {
    ops::gemm(x.device(), count, rows.size(0), in, {x.raw(), x.dtype(), in, false},
              {rows.raw(), x.dtype(), in, true}, y + begin, DType::f32, stride, false);
  };
  if (weight.dtype() == x.dtype()) return multiply(weight, 0);
  // Parts of one size: a product of a few outputs at the end would cost as much as that of many.
  const std::int64_t at_once =
      layout_device(x.device()) == Device::cpu ? kQwenWidenedAtOnce : kQwenWidenedOnGpu;
  const std::int64_t parts = 1 + (out * in - 1) / at_once, each = (out + parts - 1) / parts;
  const std::int64_t step = std::max<std::int64_t>(64, (each + 15) / 16 * 16);
  for (std::int64_t begin = 0; begin < out; begin += step) {
    const Tensor rows = weight.rows(begin, std::min(out, begin + step));
    multiply(widened_rows(linear, rows, begin, x.dtype()), begin);
  }
}

}  // namespace

void QwenLinear::into(const Tensor& x, const Tensor& all, std::int64_t first) const {
  const std::int64_t stride = all.size(1);
  if (first < 0 || first + weight.size(0) > stride || all.size(0) != x.size(0))
    fail("{} outputs of {} rows do not fit {} from column {} on", weight.size(0), x.size(0),
         to_string(all.shape()), first);
  product_of_many(x.to(compute), *this, all.data<float>() + first, stride);
  if (bias.defined()) ops::add_bias(all, first, bias);
}

Tensor QwenLinear::operator()(const Tensor& x) const {
  if (x.size(0) <= ops::kFewRows) {
    const Tensor wide = x.to(compute).to(DType::f32);
    return blocks ? ops::few_rows_of_blocks(wide, {weight, *blocks}, bias)
                  : ops::few_rows(wide, weight, scales, bias);
  }
  const Tensor y({x.size(0), weight.size(0)}, DType::f32, x.device());
  into(x, y, 0);
  return y;
}

QwenFeedForward QwenFeedForward::from(const QwenMatrices& weights, const std::string& prefix) {
  return {weights.linear(prefix + "gate_proj"), weights.linear(prefix + "up_proj"),
          weights.linear(prefix + "down_proj")};
}

/// Gate and up beside each other.
Tensor QwenFeedForward::both(const Tensor& x) const {
  if (x.size(0) <= ops::kFewRows) return beside(gate(x), up(x));
  const std::int64_t inner = gate.weight.size(0);
  const Tensor all({x.size(0), inner + up.weight.size(0)}, DType::f32, x.device());
  gate.into(x, all, 0);
  up.into(x, all, inner);
  return all;
}

Tensor QwenFeedForward::operator()(const Tensor& x) const {
  ops::Tape tape(false);
  return nn::feed_by_rows(x, gate.weight.size(0),
                          [&](const Tensor& rows) { return down(ops::swiglu(tape, both(rows))); });
}

Tensor qwen_norm(const Tensor& x, const Tensor& weight, float epsilon) {
  ops::Tape tape(false);
  return ops::rmsnorm(tape, x, weight, epsilon);
}

Tensor beside(const Tensor& left, const Tensor& right) {
  const std::int64_t rows = left.size(0), width = left.size(1) + right.size(1);
  const Tensor both({rows, width}, DType::f32, left.device());
  const auto bytes = [](std::int64_t columns) {
    return static_cast<std::size_t>(columns) * sizeof(float);
  };
  std::int64_t first = 0;
  for (const Tensor* part : {&left, &right}) {
    copy_rows(both.data<float>() + first, bytes(width), part->raw(), bytes(part->size(1)),
              bytes(part->size(1)), rows, both.device());
    first += part->size(1);
  }
  return both;
}

}  // namespace vfm::models
