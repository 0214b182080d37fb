// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen_weights.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "models/encoder/encoder_stack.h"
#include "models/folder/load_tensors.h"
#include "ops/matmul/block_rows.h"
#include "ops/matmul/few_rows.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/quantize_rows.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/swiglu.h"

namespace vfm::models {
namespace {

// Elements of the inner width that are in memory at once.
constexpr std::int64_t kQwenInnerAtOnce = std::int64_t{16} << 20;
// Elements of a matrix that are converted at once: they stay in the cache until they are used.
constexpr std::int64_t kQwenWidenedAtOnce = std::int64_t{1} << 20;

/// Some rows of a matrix that is not of the type of products, in that.
Tensor widened_rows(const QwenLinear& linear, const Tensor& rows, std::int64_t begin, DType dtype) {
  if (linear.blocks) return ops::dequantize_blocks({rows, *linear.blocks}, dtype);
  if (!linear.scales.defined()) return rows.to(dtype);
  return ops::dequantize_rows({rows, linear.scales.rows(begin, begin + rows.size(0))}, dtype);
}

/// x W^T of many rows, where W is not of the type of products.
Tensor widened_product(const Tensor& x, const QwenLinear& linear) {
  const Tensor& weight = linear.weight;
  const std::int64_t count = x.size(0), in = x.size(1), out = weight.size(0);
  const Tensor y({count, out}, DType::f32, x.device());
  const std::int64_t step = std::max<std::int64_t>(64, kQwenWidenedAtOnce / in);
  for (std::int64_t begin = 0; begin < out; begin += step) {
    const std::int64_t end = std::min(out, begin + step);
    const Tensor some = widened_rows(linear, weight.rows(begin, end), begin, x.dtype());
    ops::gemm(x.device(), count, end - begin, in, {x.raw(), x.dtype(), in, false},
              {some.raw(), x.dtype(), in, true}, y.data<float>() + begin, DType::f32, out, false);
  }
  return y;
}

void add_to_rows(const Tensor& y, const Tensor& bias) {
  if (y.device() == Device::meta) return;  // nothing to count
  const std::int64_t width = y.size(1);
  for (std::int64_t row = 0; row < y.size(0); ++row)
    for (std::int64_t i = 0; i < width; ++i)
      y.data<float>()[row * width + i] += bias.data<float>()[i];
}

}  // namespace

Tensor QwenLinear::operator()(const Tensor& x) const {
  const Tensor rounded = x.to(compute);
  if (x.size(0) <= ops::kFewRows) {
    const Tensor wide = rounded.to(DType::f32);
    return blocks ? ops::few_rows_of_blocks(wide, {weight, *blocks}, bias)
                  : ops::few_rows(wide, weight, scales, bias);
  }
  if (weight.dtype() == compute) {
    ops::Tape tape(false);
    // A bias is added row by row: nothing that is counted, and many times.
    return ops::linear(tape, rounded, weight, x.device() == Device::meta ? Tensor() : bias,
                       DType::f32);
  }
  const Tensor y = widened_product(rounded, *this);
  if (bias.defined()) add_to_rows(y, bias);
  return y;
}

QwenLinear QwenWeights::linear(const std::string& name) const {
  const io::TensorView& view = *set_.find(name + ".weight");
  QwenLinear linear;
  linear.compute = compute_;
  if (set_.find(name + ".bias") != nullptr) linear.bias = vector(name + ".bias");
  linear.blocks = block_format(view.dtype);
  if (linear.blocks) {
    if (int8_)
      fail_usage("'{}' of '{}' is {}: what is stored in few bits is not rounded again, to int8",
                 view.name, set_.path(), view.dtype);
    linear.weight = stored_blocks(view, device_).bytes;
    return linear;
  }
  const DType stored = float_type(view.dtype);
  const auto matrix = [&](DType dtype) {
    const Tensor all = use_weight(view, dtype, device_);
    return all.reshape({all.size(0), all.elements() / all.size(0)});
  };
  if (int8_) {
    const Tensor all = matrix(stored == DType::f16 ? DType::f32 : stored);
    const ops::QuantizedRows rows =
        ops::quantize_rows(all, ops::largest_of_rows(all), ops::RowFormat::int8);
    linear.weight = rows.values;
    linear.scales = rows.scales;
  } else {
    linear.weight = matrix(compute_ == DType::f32 ? stored : compute_);
  }
  return linear;
}

Tensor QwenWeights::vector(const std::string& name) const {
  return use_weight(*set_.find(name), DType::f32, device_);
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
  const Tensor all({count, down.weight.size(0)}, DType::f32, x.device());
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
  const Tensor both({rows, a + b}, DType::f32, left.device());
  if (both.device() == Device::meta) return both;
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
  if (x.device() == Device::meta) return;
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
