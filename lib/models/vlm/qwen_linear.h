// Linear layers that both parts of Qwen2.5-VL use, and the interface to their weights.
//
// A matrix may be stored in another type than products are computed in. Products of a few rows, as
// when a text is written, read the matrix as it is stored (ops/matmul/few_rows.h, block_rows.h).
// For products of many rows some outputs at a time are converted. Everything else is f32. Runs on
// any device; on Device::meta the cost is counted.
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

/// y = W x + b with a matrix of the model; without b if there is none.
struct QwenLinear {
  Tensor weight;               ///< [O, I] f32, bf16 or f16; u8: codes, with their scales, or blocks
  Tensor scales, bias;         ///< [O] f32; undefined if there are none
  DType compute = DType::f32;  ///< type to which x and W are rounded before the product
  /// If `weight` holds blocks, [O, bytes of a row] on the CPU: their format.
  std::optional<BlockFormat> blocks = {};

  /// x [N, I] f32 to [N, O] f32. Up to ops::kFewRows rows, the bits of a row do not depend on
  /// others.
  Tensor operator()(const Tensor& x) const;
  /// The same for many rows. Writes to columns of `all` [N, more than O] f32 from column `first`
  /// on.
  void into(const Tensor& x, const Tensor& all, std::int64_t first) const;
};

/// A model's weights, by their names.
class QwenMatrices {
 public:
  QwenMatrices(DType compute, Device device) : compute_(compute), device_(device) {}
  virtual ~QwenMatrices() = default;

  DType compute() const { return compute_; }  ///< type of products: f32 or bf16
  Device device() const { return device_; }
  /// NAME.weight as a matrix of its first dimension by all others, and NAME.bias.
  virtual QwenLinear linear(const std::string& name) const = 0;
  /// A tensor in f32.
  virtual Tensor vector(const std::string& name) const = 0;
  /// The rows `numbers` of a matrix, [N, I] f32. Throws Error for a number out of range.
  virtual Tensor rows(const std::string& name, std::span<const std::int32_t> numbers) const = 0;

 private:
  DType compute_;
  Device device_;
};

/// W_down (silu(W_gate x) * (W_up x)), x [N, D] f32; computed some rows at a time.
struct QwenFeedForward {
  QwenLinear gate, up, down;
  static QwenFeedForward from(const QwenMatrices& weights, const std::string& prefix);
  Tensor operator()(const Tensor& x) const;

 private:
  Tensor both(const Tensor& x) const;
};

/// x / rms(x) * weight for each row.
Tensor qwen_norm(const Tensor& x, const Tensor& weight, float epsilon);

/// Two tensors [N, *] f32 side by side.
Tensor beside(const Tensor& left, const Tensor& right);

}  // namespace vfm::models
