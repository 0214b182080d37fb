// The sums that the two parts of a Qwen2.5-VL have in common, and where their weights come from.
//
// Matrices may be stored in another type than products are computed in: of a few rows, as when a
// text is written, products read them as they are stored (ops/matmul/few_rows.h, block_rows.h); of
// many they are converted some outputs at a time. All else is f32. On any device, or on
// Device::meta, where what it would cost is counted.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/block_format.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// y = W x + b of a model's matrix; without b where it has none.
struct QwenLinear {
  Tensor weight;               ///< [O, I] f32, bf16 or f16; u8: codes, with their scales, or blocks
  Tensor scales, bias;         ///< [O] f32, or undefined
  DType compute = DType::f32;  ///< what x and W are rounded to before they are multiplied
  /// Of `weight` [O, bytes of a row], where those are blocks: on the CPU.
  std::optional<BlockFormat> blocks = {};

  /// x [N, I] f32; [N, O] f32. Of up to ops::kFewRows rows the bits of one do not depend on others.
  Tensor operator()(const Tensor& x) const;
  /// The same of many rows, into columns of `all` [N, more than O] f32 from column `first` on.
  void into(const Tensor& x, const Tensor& all, std::int64_t first) const;
};

/// A model's weights, by their names.
class QwenMatrices {
 public:
  QwenMatrices(DType compute, Device device) : compute_(compute), device_(device) {}
  virtual ~QwenMatrices() = default;

  DType compute() const { return compute_; }  ///< of products: f32 or bf16
  Device device() const { return device_; }
  /// NAME.weight, a matrix of its first dimension by all others, and NAME.bias.
  virtual QwenLinear linear(const std::string& name) const = 0;
  /// In f32.
  virtual Tensor vector(const std::string& name) const = 0;
  /// Rows of a matrix by their numbers, [N, I] f32. Throws Error for a number that it has not.
  virtual Tensor rows(const std::string& name, std::span<const std::int32_t> numbers) const = 0;

 private:
  DType compute_;
  Device device_;
};

/// W_down (silu(W_gate x) * (W_up x)), x [N, D] f32; some rows at a time.
struct QwenFeedForward {
  QwenLinear gate, up, down;
  static QwenFeedForward from(const QwenMatrices& weights, const std::string& prefix);
  Tensor operator()(const Tensor& x) const;

 private:
  Tensor both(const Tensor& x) const;
};

/// x / rms(x) * weight, of rows.
Tensor qwen_norm(const Tensor& x, const Tensor& weight, float epsilon);

/// Rows of tensors [N, *] f32 beside each other.
Tensor beside(const Tensor& left, const Tensor& right);

}  // namespace vfm::models
