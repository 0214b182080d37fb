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
#include "ops/matmul/quantize_rows.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/swiglu.h"

namespace vfm::models {
namespace {

// Elements of the inner width that are in memory at once.
constexpr std::int64_t kQwenInnerAtOnce = std::int64_t{16} << 20;
// Elements of a matrix that are converted at once: they stay in the cache until they are used.
constexpr std::int64_t kQwenWidenedAtOnce = std::int64_t{1} << 20;
// Below so many elements one thread goes through them sooner than several are woken.
constexpr std::int64_t kQwenAlone = 16384;

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
  const std::int64_t parts = 1 + (out * in - 1) / kQwenWidenedAtOnce,
                     each = (out + parts - 1) / parts;
  const std::int64_t step = std::max<std::int64_t>(64, (each + 15) / 16 * 16);
  for (std::int64_t begin = 0; begin < out; begin += step) {
    const Tensor rows = weight.rows(begin, std::min(out, begin + step));
    multiply(widened_rows(linear, rows, begin, x.dtype()), begin);
  }
}

void add_to_rows(float* y, std::int64_t rows, std::int64_t stride, const Tensor& bias) {
  if (bias.device() == Device::meta) return;  // nothing to count
  const std::int64_t width = bias.size(0);
  const float* const b = bias.data<float>();
#pragma omp parallel for schedule(static) if (rows * width > kQwenAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const to = y + row * stride;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i)
      to[i] += b[i];
  }
}

}  // namespace

void QwenLinear::into(const Tensor& x, const Tensor& all, std::int64_t first) const {
  const std::int64_t stride = all.size(1);
  if (first < 0 || first + weight.size(0) > stride || all.size(0) != x.size(0))
    fail("{} outputs of {} rows do not fit {} from column {} on", weight.size(0), x.size(0),
         to_string(all.shape()), first);
  float* const y = all.data<float>() + first;
  product_of_many(x.to(compute), *this, y, stride);
  if (bias.defined()) add_to_rows(y, x.size(0), stride, bias);
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
  const std::int64_t count = x.size(0), inner = gate.weight.size(0);
  const std::int64_t step = std::max<std::int64_t>(64, kQwenInnerAtOnce / inner);
  const auto feed = [&](const Tensor& rows) { return down(ops::swiglu(tape, both(rows))); };
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
#pragma omp parallel for schedule(static) if (rows * (a + b) > kQwenAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const to = both.data<float>() + row * (a + b);
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
#pragma omp parallel for schedule(static) if (x.size(0) * heads * half > kQwenAlone)
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    const float* c = cosines.data<float>() + row * half;
    const float* s = sines.data<float>() + row * half;
    float* head = x.data<float>() + row * width;
    for (int h = 0; h < heads; ++h, head += 2 * half)
#pragma omp simd
      for (std::int64_t i = 0; i < half; ++i) {
        const float a = head[i], b = head[half + i];
        head[i] = a * c[i] - b * s[i];
        head[half + i] = b * c[i] + a * s[i];
      }
  }
}

}  // namespace vfm::models
